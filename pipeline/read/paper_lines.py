"""The lines of the paper's plain text: headers, captions, and the figures between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.read import paper
from pipeline.read.layouts import Layout
from pipeline.read.paper_runs import Token
from pipeline.read.reading import Fact

WIDE_BLANKS = re.compile(r"\t+|\s{2,}")
MAX_CAPTION_LINES = 3


@dataclass(frozen=True, slots=True)
class Caption:
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Source:
    """The lines as they are and cleaned, counted from 1, and the layouts that are looked for."""

    raw: tuple[str, ...]
    lines: tuple[str, ...]
    layouts: Sequence[Layout]
    names: frozenset[str]

    @property
    def numbers(self) -> range:
        return range(1, len(self.lines) + 1)

    def line(self, number: int) -> str:
        return self.lines[number - 1]

    def cells(self, number: int) -> tuple[str, ...]:
        return split_cells(self.raw[number - 1])

    def is_name(self, number: int) -> bool:
        return paper.folded(self.line(number)) in self.names

    def header(self, number: int) -> Layout | None:
        """The layout whose whole header stands on one line: `Batch size | Latency`."""
        cells = self.cells(number)
        return paper.layout_of(cells, self.layouts) if len(cells) > 1 else None

    def numbers_after(self, number: int) -> Iterator[int]:
        """The lines up to the next header or caption."""
        for following in range(number + 1, len(self.lines) + 1):
            if self.is_name(following) or self.header(following) or paper.is_caption(self.line(following)):
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

    def names_from(self, number: int) -> tuple[int, ...]:
        """The lines of the names that stand one under another from `number` on, blank lines aside."""
        found = []
        for following in range(number, len(self.lines) + 1):
            if self.is_name(following):
                found.append(following)
            elif self.line(following):
                break
        return tuple(found)


def source_of(text: str, layouts: Sequence[Layout]) -> Source:
    raw = tuple(text.replace("\r\n", "\n").split("\n"))
    return Source(raw, tuple(map(paper.plain, raw)), layouts, paper.known_names(layouts))


def split_cells(line: str) -> tuple[str, ...]:
    """Cells of a row: parted by `|` (an outer pair is a frame), or by tabs or wide blanks."""
    if "|" not in line:
        return tuple(map(paper.plain, WIDE_BLANKS.split(line.strip())))
    row = line.strip()
    if row.startswith("|") and row.endswith("|") and len(row) > 1:
        row = row[1:-1]
    return tuple(map(paper.plain, row.split("|")))


def captions_of(source: Source) -> list[Caption]:
    return [
        Caption(paper.join_lines(caption_lines(source, number)), number)
        for number in source.numbers
        if paper.is_caption(source.line(number))
    ]


def caption_lines(source: Source, number: int) -> Iterator[str]:
    """The first line of a caption and those that go on with it, up to a blank line, a header or a figure."""
    yield source.line(number)
    for following in list(source.numbers_after(number))[: MAX_CAPTION_LINES - 1]:
        line = source.line(following)
        if not line or paper.is_figure(line) or paper.split_fact(line):
            return
        yield line


def facts_of(source: Source) -> tuple[Fact, ...]:
    found = ((number, paper.split_fact(source.line(number))) for number in source.numbers)
    return tuple(Fact(*fact, f"line {number}") for number, fact in found if fact)
