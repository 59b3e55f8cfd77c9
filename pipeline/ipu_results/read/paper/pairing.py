"""Pair labels with figures where plain text has lost the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

MIN_LABELS_OF_A_SERIES = 3


@dataclass(frozen=True, slots=True)
class Token:
    """A cell that is alone on its line, with the number of that line."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the rows are ambiguous: a reason code and a message."""

    reason: str
    message: str


Part = list[Token]
"""Tokens on consecutive lines: other lines divide a column into parts."""
Rows = tuple[tuple[Token, ...], ...]


def pair_columns(labels: Sequence[Part], figures: Sequence[Part]) -> Rows | Refusal:
    """Return rows (label, figure) of two columns.

    Equal counts pair in order, the fewest parts first. A shorter label column is filled with blanks if it is a
    whole beginning of a regular series. Everything else is refused.
    """
    if rows := _pair_equal_columns(labels, figures):
        return rows
    shapes = _find_shapes(figures[0])
    whole = [part for part in figures if len(shapes | _find_shapes(part)) == 1]
    series = _find_series(labels, len(figures[0]))
    if series and len(whole) == 1:
        lost = [Token("", token.line) for token in whole[0][len(series) :]]
        return tuple(zip([*series, *lost], whole[0], strict=True))
    label_count, figure_count = sum(map(len, labels)), sum(map(len, whole))
    reason = "cells-missing" if figure_count < label_count else "labels-missing"
    return Refusal(reason, f"{label_count} labels and {figure_count} figures cannot be paired")


def cut_rows(tokens: Sequence[Token], label: int, width: int) -> Rows | Refusal:
    """Cut cells that follow one another into rows of `width`, of which column `label` labels the row.

    Refused unless the cells fill the rows, the labels ascend, and labels and figures differ in kind (2 and 1.36) or
    the labels are regular: otherwise a cell may be lost and what follows it shifted.
    """
    rows = tuple(tuple(tokens[start : start + width]) for start in range(0, len(tokens), width))
    if not rows or len(rows[-1]) != width:
        return Refusal("cells-missing", f"{len(tokens)} cells do not fill rows of {width}")
    labels = [row[label] for row in rows]
    others = [token for row in rows for column, token in enumerate(row) if column != label]
    if not _is_ascending(labels) or not (all("." in token.text for token in others) or _is_regular(labels)):
        return Refusal("cells-missing", "the labels are not a series, so a cell may be missing")
    return rows


def _pair_equal_columns(labels: Sequence[Part], figures: Sequence[Part]) -> Rows:
    """Pair the fewest parts with equal counts; if these are not columns, more parts are not either."""
    count = min(set(_count_tokens(labels)) & set(_count_tokens(figures)), default=0)
    first, second = _first_tokens(labels, count), _first_tokens(figures, count)
    # All figures of one column have a decimal point, or none has. A page number has none.
    is_column = _is_ascending(first) and len(_find_shapes(second)) <= 1
    return tuple(zip(first, second, strict=True)) if is_column else ()


def _find_series(labels: Sequence[Part], limit: int) -> list[Token]:
    """Return as many parts as possible that, with fewer than `limit` labels, are the first multiples of one number.

    A gap would show in 2, 4, 6. It would not in 4, 6, 8 (2 may be lost) nor in 1, 2, 4 (3 may be lost).
    """
    step = length = 0
    for label in _first_tokens(labels, limit - 1):
        number = int(label.text) if label.text.isdecimal() else 0
        step = step or number
        if not number or number != step * (length + 1):
            break
        length += 1
    count = max((end for end in _count_tokens(labels) if end <= length), default=0)
    return _first_tokens(labels, count) if count >= MIN_LABELS_OF_A_SERIES else []


def _count_tokens(parts: Sequence[Part]) -> list[int]:
    """Count the tokens in the first part, in the first two together, and so on."""
    return list(accumulate(map(len, parts)))


def _first_tokens(parts: Sequence[Part], count: int) -> list[Token]:
    return list(chain.from_iterable(parts))[:count]


def _find_shapes(figures: Sequence[Token]) -> set[bool]:
    return {"." in figure.text for figure in figures}


def _is_ascending(labels: Sequence[Token]) -> bool:
    if not all(label.text.isdecimal() for label in labels):
        return False
    return all(int(low.text) < int(high.text) for low, high in pairwise(labels))


def _is_regular(labels: Sequence[Token]) -> bool:
    """Check whether ascending labels go up by one step or by one ratio."""
    numbers = [int(label.text) for label in labels]
    steps = {high - low for low, high in pairwise(numbers)}
    triples = zip(numbers, numbers[1:], numbers[2:], strict=False)
    return len(steps) <= 1 or all(low * high == middle * middle for low, middle, high in triples)
