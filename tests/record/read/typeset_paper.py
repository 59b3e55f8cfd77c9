"""Typeset a small paper in one or two columns as PDF: for the tests, and for
raw/qwant/make_transcription.py.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from reportlab.lib.pagesizes import letter
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfgen.canvas import Canvas

PAGE_WIDTH, PAGE_HEIGHT = float(letter[0]), float(letter[1])
LEADING = 1.2
COLUMN_PAD = 12.0
GAP_BEFORE_CAPTION = 10.0
GAP_AROUND_TABLE = 20.0
GAP_AROUND_PARAGRAPH = 4.0
MARK_SIZE, MARK_RISE = 0.7, 0.36
FONT, SIZE, CAPTION_SIZE = "Times-Roman", 10.0, 9.0
PAGE_NUMBER_HEIGHT = 30.0


@dataclass(frozen=True, slots=True)
class Geometry:
    """Columns of one width on a letter page, in points."""

    columns: int
    margin: float
    gutter: float
    top: float = 72.0
    bottom: float = 72.0

    @property
    def width(self) -> float:
        return (PAGE_WIDTH - 2 * self.margin - (self.columns - 1) * self.gutter) / self.columns

    def left(self, column: int) -> float:
        return self.margin + column * (self.width + self.gutter)


GEOMETRIES = {
    "ieee": Geometry(columns=2, margin=48.0, gutter=12.2),
    "cvpr": Geometry(columns=2, margin=58.5, gutter=22.5),
    "single": Geometry(columns=1, margin=90.0, gutter=0.0),
}


@dataclass(frozen=True, slots=True)
class Style:
    """Layout of the whole paper."""

    geometry: str = "cvpr"
    caption: Literal["above", "below"] = "below"
    page_numbers: bool = True


@dataclass(frozen=True, slots=True)
class Title:
    """A line across both columns."""

    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Justified prose."""

    text: str


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines set as they are, ragged right."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Break:
    """Continue in the next column, or on the next page."""

    of: Literal["column", "page"] = "column"


@dataclass(frozen=True, slots=True)
class PaperTable:
    """Rows of cells under a header; an empty cell prints nothing."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = Title | Paragraph | Lines | Break | PaperTable


@dataclass(slots=True)
class Press:
    """A canvas with the place at which the next line goes."""

    style: Style
    out: io.BytesIO = field(default_factory=io.BytesIO)
    page: int = 1
    column: int = 0
    canvas: Canvas = field(init=False)
    geometry: Geometry = field(init=False)
    ceiling: float = field(init=False)
    y: float = field(init=False)

    def __post_init__(self) -> None:
        self.canvas = Canvas(self.out, pagesize=letter, invariant=1)
        self.geometry = GEOMETRIES[self.style.geometry]
        self.ceiling = PAGE_HEIGHT - self.geometry.top
        self.y = self.ceiling

    def next_column(self) -> None:
        self.column += 1
        if self.column == self.geometry.columns:
            self.next_page()
        self.y = self.ceiling

    def next_page(self) -> None:
        if self.style.page_numbers:
            self.canvas.setFont(FONT, SIZE)
            self.canvas.drawCentredString(
                PAGE_WIDTH / 2, self.geometry.bottom - PAGE_NUMBER_HEIGHT, str(self.page)
            )
        self.canvas.showPage()
        self.page, self.column = self.page + 1, 0
        self.ceiling = self.y = PAGE_HEIGHT - self.geometry.top

    def down(self, height: float) -> float:
        """Move down by `height`, in the next column if it does not fit in this one, and return the
        new baseline.
        """
        if self.y - height < self.geometry.bottom:
            self.next_column()
        self.y -= height
        return self.y

    def skip(self, height: float) -> None:
        if self.y < self.ceiling:
            self.y -= height

    def finish(self) -> bytes:
        self.next_page()
        self.canvas.save()
        return self.out.getvalue()


def measure(text: str, size: float = SIZE) -> float:
    return float(pdfmetrics.stringWidth(text, FONT, size))


def wrap(text: str, size: float, width: float) -> Iterator[tuple[str, float]]:
    """Yield the lines of a paragraph, each with the width that is left over."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}".lstrip()
        if line and measure(longer, size) > width:
            yield line, width - measure(line, size)
            longer = word
        line = longer
    yield line, 0.0


def set_title(press: Press, block: Title) -> None:
    press.canvas.setFont(FONT, SIZE * 1.4)
    press.canvas.drawCentredString(PAGE_WIDTH / 2, press.down(SIZE * 1.4), block.text)
    press.ceiling = press.y = press.y - GAP_AROUND_TABLE


def set_paragraph(press: Press, block: Paragraph) -> None:
    press.skip(GAP_AROUND_PARAGRAPH)
    for line, spare in wrap(block.text, SIZE, press.geometry.width):
        y = press.down(SIZE * LEADING)
        x = press.geometry.left(press.column)
        step = spare / max(line.count(" "), 1)
        for word in line.split():
            press.canvas.setFont(FONT, SIZE)
            press.canvas.drawString(x, y, word)
            x += measure(f"{word} ") + step
    press.skip(GAP_AROUND_PARAGRAPH)


def set_lines(press: Press, block: Lines) -> None:
    press.skip(GAP_AROUND_PARAGRAPH)
    for text in block.texts:
        y = press.down(SIZE * LEADING)
        press.canvas.setFont(FONT, SIZE)
        press.canvas.drawString(press.geometry.left(press.column), y, text)
    press.skip(GAP_AROUND_PARAGRAPH)


def set_caption(press: Press, caption: str) -> None:
    for line, _ in wrap(caption, CAPTION_SIZE, press.geometry.width):
        y = press.down(CAPTION_SIZE * LEADING)
        press.canvas.setFont(FONT, CAPTION_SIZE)
        press.canvas.drawCentredString(
            press.geometry.left(press.column) + press.geometry.width / 2, y, line
        )


def measure_columns(table: PaperTable) -> list[float]:
    columns = zip(table.columns, *table.rows, strict=True)
    return [max(map(measure, column)) + COLUMN_PAD for column in columns]


def set_cells(press: Press, cells: Sequence[str], widths: Sequence[float]) -> None:
    """Set one row, each cell centred in its column, the table centred in the column of the page."""
    y = press.down(SIZE * LEADING)
    x = press.geometry.left(press.column) + (press.geometry.width - sum(widths)) / 2
    for text, width in zip(cells, widths, strict=True):
        start = x + (width - measure(text)) / 2
        press.canvas.setFont(FONT, SIZE)
        press.canvas.drawString(start, y, text)
        # the committed paper has room for a mark after each cell
        press.canvas.setFont(FONT, SIZE * MARK_SIZE)
        press.canvas.drawString(start + measure(text), y + SIZE * MARK_RISE, "")
        x += width


def set_rule(press: Press, widths: Sequence[float]) -> None:
    x = press.geometry.left(press.column) + (press.geometry.width - sum(widths)) / 2
    press.canvas.line(x, press.y - 3, x + sum(widths), press.y - 3)
    press.skip(2)


def set_table(press: Press, table: PaperTable) -> None:
    """Set caption, header and rows in one column."""
    widths = measure_columns(table)
    press.skip(GAP_AROUND_TABLE)
    height = SIZE * LEADING * (len(table.rows) + 5) + GAP_BEFORE_CAPTION
    if press.y - height < press.geometry.bottom:
        press.next_column()
    if press.style.caption == "above":
        set_caption(press, table.caption)
        press.skip(GAP_BEFORE_CAPTION)
    set_rule(press, widths)
    set_cells(press, table.columns, widths)
    set_rule(press, widths)
    for row in table.rows:
        set_cells(press, row, widths)
    set_rule(press, widths)
    if press.style.caption == "below":
        press.skip(GAP_BEFORE_CAPTION)
        set_caption(press, table.caption)
    press.skip(GAP_AROUND_TABLE)


def set_break(press: Press, block: Break) -> None:
    press.next_page() if block.of == "page" else press.next_column()


SETTERS = {
    Title: set_title,
    Paragraph: set_paragraph,
    Lines: set_lines,
    Break: set_break,
    PaperTable: set_table,
}


def build(blocks: Iterable[Block], style: Style | None = None, *, title: str = "") -> bytes:
    """Return the PDF with `blocks` set one after another: the same bytes for the same blocks and
    style.
    """
    press = Press(style or Style())
    press.canvas.setTitle(title)
    for block in blocks:
        SETTERS[type(block)](press, block)
    return press.finish()
