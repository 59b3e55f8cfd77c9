"""Index the lines of a paper's plain text: names, headers, captions, and the figures between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise

from ipu_results.read.document import MetadataItem
from ipu_results.read.paper import terms
from ipu_results.schema.table_headers import TableHeader

WIDE_BLANKS = re.compile(r"\t+|\s{2,}")
MAX_CAPTION_LINES = 3


@dataclass(frozen=True, slots=True)
class TextLines:
    """The lines of a text, raw and cleaned, and what each of them is. Line numbers count from 1."""

    raw: tuple[str, ...]
    lines: tuple[str, ...]
    headers: Sequence[TableHeader]
    """The known headers."""
    names: frozenset[int]
    """Lines that are one name of a known header."""
    header_lines: dict[int, TableHeader]
    """Lines that are a whole header, such as `Batch size | Latency`."""
    caption_lines: frozenset[int]
    stacks: dict[int, tuple[int, ...]]
    """For a line with a name, the lines of the names one under another from there on, blank lines aside.

    Without an entry if no header has that many names.
    """

    def line(self, number: int) -> str:
        return self.lines[number - 1]

    def cells(self, number: int) -> tuple[str, ...]:
        return _split_cells(self.raw[number - 1])

    def numbers_after(self, number: int) -> Iterator[int]:
        """Yield the lines up to the next name, header or caption."""
        for following in range(number + 1, len(self.lines) + 1):
            if following in self.names or following in self.header_lines or following in self.caption_lines:
                return
            yield following

    def parts_after(self, number: int) -> list[Part]:
        """Return the figures that are alone on their lines, in the parts into which other lines divide them."""
        parts: list[Part] = []
        previous = None
        for following in self.numbers_after(number):
            if terms.is_figure(self.line(following)):
                if previous != following - 1:
                    parts.append([])
                parts[-1].append(Token(self.line(following), following))
                previous = following
        return parts

    def tokens_after(self, number: int) -> list[Token]:
        return [token for part in self.parts_after(number) for token in part]

    def captions(self) -> dict[int, str]:
        """Return the captions by their first line."""
        return {number: terms.join_lines(self._caption_from(number)) for number in sorted(self.caption_lines)}

    def metadata(self) -> tuple[MetadataItem, ...]:
        items = ((number, terms.split_metadata(line)) for number, line in enumerate(self.lines, 1))
        return tuple(MetadataItem(*item, f"line {number}") for number, item in items if item)

    def _caption_from(self, number: int) -> Iterator[str]:
        """Yield the lines of a caption, up to a blank line, a header or a figure."""
        yield self.line(number)
        for following in islice(self.numbers_after(number), MAX_CAPTION_LINES - 1):
            line = self.line(following)
            if not line or terms.is_figure(line) or terms.split_metadata(line):
                return
            yield line


def index_lines(text: str, headers: Sequence[TableHeader]) -> TextLines:
    raw = tuple(text.replace("\r\n", "\n").split("\n"))
    lines = tuple(map(terms.spell_out, raw))
    known = terms.known_names(headers)
    names = frozenset(number for number, line in enumerate(lines, 1) if terms.normalise_text(line) in known)
    captions = frozenset(number for number, line in enumerate(lines, 1) if terms.is_caption(line))
    rows = ((number, _split_cells(line)) for number, line in enumerate(raw, 1))
    matches = ((number, terms.match_header(cells, headers)) for number, cells in rows if len(cells) > 1)
    header_lines = {number: header for number, header in matches if header}
    stacks = _find_stacks(lines, names, max((len(header.keys) for header in headers), default=0))
    return TextLines(raw, lines, headers, names, header_lines, captions, stacks)


def _find_stacks(lines: Sequence[str], names: frozenset[int], max_names: int) -> dict[int, tuple[int, ...]]:
    """Collect the names from each name on, from the last line up, so that each line is visited once."""
    stacks: dict[int, tuple[int, ...]] = {}
    below: tuple[int, ...] = ()
    for number in range(len(lines), 0, -1):
        if number in names:
            below = (number, *below)[: max_names + 1]
            if len(below) <= max_names:
                stacks[number] = below
        elif lines[number - 1]:
            below = ()
    return stacks


def _split_cells(line: str) -> tuple[str, ...]:
    """Split a row at `|` (an outer pair is a frame), or at tabs or wide blanks."""
    if "|" not in line:
        return tuple(map(terms.spell_out, WIDE_BLANKS.split(line.strip())))
    row = line.strip()
    if row.startswith("|") and row.endswith("|") and len(row) > 1:
        row = row[1:-1]
    return tuple(map(terms.spell_out, row.split("|")))


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
