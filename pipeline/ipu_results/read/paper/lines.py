"""Index the lines of a paper's plain text: names, headers, captions, and the figures between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ipu_results.read.document import MetadataItem
from ipu_results.read.paper import terms
from ipu_results.read.paper.pairing import Part, Token
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
