"""The lines of the paper's plain text: headers, captions, and the figures between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ipu_results.read import paper
from ipu_results.read.paper.runs import Token
from ipu_results.read.reading import MetadataItem
from ipu_results.schema.layouts import TableHeader

WIDE_BLANKS = re.compile(r"\t+|\s{2,}")
MAX_CAPTION_LINES = 3


@dataclass(frozen=True, slots=True)
class Caption:
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Source:
    """The lines as they are and cleaned, counted from 1, the layouts that are looked for, and what each line is.

    `headers` are the lines that hold a whole header: `Batch size | Latency`. `stacks` has for a line with a name the
    lines of the names that stand one under another from there on, blank lines aside, unless no layout has so many.
    """

    raw: tuple[str, ...]
    lines: tuple[str, ...]
    layouts: Sequence[TableHeader]
    names: frozenset[int]
    headers: dict[int, TableHeader]
    captions: frozenset[int]
    stacks: dict[int, tuple[int, ...]]
    label_names: frozenset[str]

    @property
    def numbers(self) -> range:
        return range(1, len(self.lines) + 1)

    def line(self, number: int) -> str:
        return self.lines[number - 1]

    def cells(self, number: int) -> tuple[str, ...]:
        return split_cells(self.raw[number - 1])

    def numbers_after(self, number: int) -> Iterator[int]:
        """The lines up to the next header or caption."""
        for following in range(number + 1, len(self.lines) + 1):
            if following in self.names or following in self.headers or following in self.captions:
                return
            yield following

    def parts_after(self, number: int) -> list[list[Token]]:
        """The figures that stand alone on their lines, in the parts into which other lines divide them."""
        parts: list[list[Token]] = []
        previous = None
        for following in self.numbers_after(number):
            if paper.is_figure(self.line(following)):
                if previous != following - 1:
                    parts.append([])
                parts[-1].append(Token(self.line(following), following))
                previous = following
        return parts


def source_of(text: str, layouts: Sequence[TableHeader]) -> Source:
    raw = tuple(text.replace("\r\n", "\n").split("\n"))
    lines = tuple(map(paper.plain, raw))
    known = paper.known_names(layouts)
    names = frozenset(number for number, line in enumerate(lines, 1) if paper.folded(line) in known)
    captions = frozenset(number for number, line in enumerate(lines, 1) if paper.is_caption(line))
    stacks = stacks_of(lines, names, max((len(layout.keys) for layout in layouts), default=0))
    return Source(raw, lines, layouts, names, headers_of(raw, layouts), captions, stacks, paper.label_names(layouts))


def headers_of(raw: Sequence[str], layouts: Sequence[TableHeader]) -> dict[int, TableHeader]:
    rows = ((number, split_cells(line)) for number, line in enumerate(raw, 1))
    found = ((number, paper.layout_of(cells, layouts)) for number, cells in rows if len(cells) > 1)
    return {number: layout for number, layout in found if layout}


def stacks_of(lines: Sequence[str], names: frozenset[int], most: int) -> dict[int, tuple[int, ...]]:
    """The names from each on, as long as they are at most `most`; from the last line up, so that none is seen twice."""
    stacks: dict[int, tuple[int, ...]] = {}
    below: tuple[int, ...] = ()
    for number in range(len(lines), 0, -1):
        if number in names:
            below = (number, *below)[: most + 1]
            if len(below) <= most:
                stacks[number] = below
        elif lines[number - 1]:
            below = ()
    return stacks


def split_cells(line: str) -> tuple[str, ...]:
    """Cells of a row: parted by `|` (an outer pair is a frame), or by tabs or wide blanks."""
    if "|" not in line:
        return tuple(map(paper.plain, WIDE_BLANKS.split(line.strip())))
    row = line.strip()
    if row.startswith("|") and row.endswith("|") and len(row) > 1:
        row = row[1:-1]
    return tuple(map(paper.plain, row.split("|")))


def captions_of(source: Source) -> list[Caption]:
    return [Caption(paper.join_lines(caption_lines(source, number)), number) for number in sorted(source.captions)]


def caption_lines(source: Source, number: int) -> Iterator[str]:
    """The first line of a caption and those that go on with it, up to a blank line, a header or a figure."""
    yield source.line(number)
    for following in islice(source.numbers_after(number), MAX_CAPTION_LINES - 1):
        line = source.line(following)
        if not line or paper.is_figure(line) or paper.split_fact(line):
            return
        yield line


def facts_of(source: Source) -> tuple[MetadataItem, ...]:
    found = ((number, paper.split_fact(source.line(number))) for number in source.numbers)
    return tuple(MetadataItem(*fact, f"line {number}") for number, fact in found if fact)
