"""Which label belongs to which figure, where the text has lost the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

LEAST_OF_A_SERIES = 3


@dataclass(frozen=True, slots=True)
class Token:
    """A cell that stands alone on a line, with the number of that line."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the cells cannot be told apart: a reason code and a message."""

    reason: str
    message: str


Rows = tuple[tuple[Token, ...], ...]


def pair_columns(labels: Sequence[list[Token]], figures: Sequence[list[Token]]) -> Rows | Refusal:
    """Rows (label, figure) from two columns, each in the parts into which other lines divide it.

    Equal counts pair in order, the fewest parts first. A shorter label column is filled with blanks where it is a
    whole beginning of a regular series. Everything else is refused.
    """
    if rows := equal_columns(labels, figures):
        return rows
    shapes = shapes_of(figures[0])
    whole = [part for part in figures if len(shapes | shapes_of(part)) == 1]
    regular = beginning_of_series(labels, len(figures[0]))
    if regular and len(whole) == 1:
        lost = [Token("", token.line) for token in whole[0][len(regular) :]]
        return tuple(zip([*regular, *lost], whole[0], strict=True))
    return refusal(sum(map(len, labels)), sum(map(len, whole)))


def equal_columns(labels: Sequence[list[Token]], figures: Sequence[list[Token]]) -> Rows:
    """The rows of the fewest parts with equal counts; where these are no columns, neither are more parts."""
    count = min(set(ends(labels)) & set(ends(figures)), default=0)
    head, column = first_tokens(labels, count), first_tokens(figures, count)
    return tuple(zip(head, column, strict=True)) if ascending(head) and one_shape(column) else ()


def beginning_of_series(labels: Sequence[list[Token]], limit: int) -> list[Token]:
    """The most parts with fewer than `limit` labels that are the beginning of a series."""
    length = series_length(first_tokens(labels, limit - 1))
    count = max((end for end in ends(labels) if end <= length), default=0)
    return first_tokens(labels, count) if count >= LEAST_OF_A_SERIES else []


def refusal(labels: int, figures: int) -> Refusal:
    reason = "cells-missing" if figures < labels else "labels-missing"
    return Refusal(reason, f"{labels} labels and {figures} figures cannot be paired")


def ends(parts: Sequence[list[Token]]) -> list[int]:
    """How many tokens are in the first part, in the first two together, and so on."""
    return list(accumulate(map(len, parts)))


def first_tokens(parts: Sequence[list[Token]], count: int) -> list[Token]:
    return list(chain.from_iterable(parts))[:count]


def rows_cell_by_cell(tokens: Sequence[Token], label: int, width: int) -> Rows | Refusal:
    """Rows of `width` cells from cells that stand one after another.

    Refused unless the cells fill the rows, the labels ascend, and labels and figures differ in kind (2 and 1.36) or
    the labels are regular: otherwise a cell may be lost and what follows it shifted.
    """
    rows = tuple(tuple(tokens[start : start + width]) for start in range(0, len(tokens), width))
    if not rows or len(rows[-1]) != width:
        return Refusal("cells-missing", f"{len(tokens)} cells do not fill rows of {width}")
    labels = [row[label] for row in rows]
    others = [token for row in rows for place, token in enumerate(row) if place != label]
    if not ascending(labels) or not (all("." in token.text for token in others) or is_regular(labels)):
        return Refusal("cells-missing", "the labels are not a series, so a cell may be missing")
    return rows


def ascending(labels: Sequence[Token]) -> bool:
    """Whether labels are whole numbers, each above the one before."""
    if not all(label.text.isdecimal() for label in labels):
        return False
    return all(int(low.text) < int(high.text) for low, high in pairwise(labels))


def one_shape(figures: Sequence[Token]) -> bool:
    """Whether all figures or none have a decimal point, as those of one column have; a page number has none."""
    return len(shapes_of(figures)) <= 1


def shapes_of(figures: Sequence[Token]) -> set[bool]:
    return {"." in figure.text for figure in figures}


def is_regular(labels: Sequence[Token]) -> bool:
    """Whether ascending labels go up by one step or by one ratio."""
    if not ascending(labels):
        return False
    numbers = [int(label.text) for label in labels]
    steps = {high - low for low, high in pairwise(numbers)}
    triples = zip(numbers, numbers[1:], numbers[2:], strict=False)
    return len(steps) <= 1 or all(low * high == middle * middle for low, middle, high in triples)


def series_length(labels: Sequence[Token]) -> int:
    """How many labels from the first on are the first multiples of one number: 2, 4, 6.

    A gap would show in these. It would not in 4, 6, 8 (2 may be lost) nor in 1, 2, 4 (3 may be lost).
    """
    step = 0
    for place, label in enumerate(labels, 1):
        number = int(label.text) if label.text.isdecimal() else 0
        step = step or number
        if not number or number != step * place:
            return place - 1
    return len(labels)
