"""Typeset a small paper in one or two columns as PDF: for the tests, and for
raw/qwant/make_transcription.py.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from reportlab.lib.pagesizes import letter
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

PAGE_WIDTH, PAGE_HEIGHT = float(letter[0]), float(letter[1])
LEADING = 1.2
COLUMN_PAD = 12.0
GAP_BEFORE_CAPTION = 10.0
GAP_AROUND_TABLE = 20.0
GAP_AROUND_PARAGRAPH = 4.0
MARK_SIZE = 0.7
MARK_RISE = 0.36
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
    """Layout of the whole paper; sizes in points."""

    geometry: str = "cvpr"
    caption: Literal["above", "below"] = "below"
    rules: bool = True
    ligatures: bool = False
    font: str = "Times-Roman"
    size: float = 10.0
    caption_size: float = 9.0
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
    """Rows of cells under a header.

    `1.36^*` sets the asterisk raised and small; an empty cell prints nothing.
    """

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
    font: str = field(init=False)
    ceiling: float = field(init=False)
    y: float = field(init=False)

    def __post_init__(self) -> None:
        self.canvas = Canvas(self.out, pagesize=letter, invariant=1)
        self.geometry = GEOMETRIES[self.style.geometry]
        self.font = register_vera() if self.style.ligatures else self.style.font
        self.ceiling = PAGE_HEIGHT - self.geometry.top
        self.y = self.ceiling

    def text(self, raw: str) -> str:
        return raw.replace("fi", "\ufb01").replace("fl", "\ufb02") if self.style.ligatures else raw

    def next_column(self) -> None:
        self.column += 1
        if self.column == self.geometry.columns:
            self.next_page()
        self.y = self.ceiling

    def next_page(self) -> None:
        if self.style.page_numbers:
            self.canvas.setFont(self.font, self.style.size)
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


def register_vera() -> str:
    """Register a font that has ligatures, and return its name."""
    if "Vera" not in pdfmetrics.getRegisteredFontNames():
        pdfmetrics.registerFont(TTFont("Vera", "Vera.ttf"))
    return "Vera"


def wrap(text: str, font: str, size: float, width: float) -> Iterator[tuple[str, float]]:
    """Yield the lines of a paragraph, each with the width that is left over."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}".lstrip()
        if line and pdfmetrics.stringWidth(longer, font, size) > width:
            yield line, width - pdfmetrics.stringWidth(line, font, size)
            longer = word
        line = longer
    yield line, 0.0


def set_title(press: Press, block: Title) -> None:
    press.canvas.setFont(press.font, press.style.size * 1.4)
    press.canvas.drawCentredString(
        PAGE_WIDTH / 2, press.down(press.style.size * 1.4), press.text(block.text)
    )
    press.ceiling = press.y = press.y - GAP_AROUND_TABLE


def set_paragraph(press: Press, block: Paragraph) -> None:
    size = press.style.size
    press.skip(GAP_AROUND_PARAGRAPH)
    for line, spare in wrap(press.text(block.text), press.font, size, press.geometry.width):
        y = press.down(size * LEADING)
        x = press.geometry.left(press.column)
        step = spare / max(line.count(" "), 1)
        for word in line.split():
            press.canvas.setFont(press.font, size)
            press.canvas.drawString(x, y, word)
            x += pdfmetrics.stringWidth(f"{word} ", press.font, size) + step
    press.skip(GAP_AROUND_PARAGRAPH)


def set_lines(press: Press, block: Lines) -> None:
    press.skip(GAP_AROUND_PARAGRAPH)
    for text in block.texts:
        y = press.down(press.style.size * LEADING)
        press.canvas.setFont(press.font, press.style.size)
        press.canvas.drawString(press.geometry.left(press.column), y, press.text(text))
    press.skip(GAP_AROUND_PARAGRAPH)


def set_caption(press: Press, caption: str) -> None:
    size = press.style.caption_size
    for line, _ in wrap(press.text(caption), press.font, size, press.geometry.width):
        y = press.down(size * LEADING)
        press.canvas.setFont(press.font, size)
        press.canvas.drawCentredString(
            press.geometry.left(press.column) + press.geometry.width / 2, y, line
        )


def measure_columns(press: Press, table: PaperTable) -> list[float]:
    texts = zip(*(map(press.text, row) for row in (table.columns, *table.rows)), strict=True)
    return [
        max(pdfmetrics.stringWidth(text, press.font, press.style.size) for text in column)
        + COLUMN_PAD
        for column in texts
    ]


def set_cells(press: Press, cells: Sequence[str], widths: Sequence[float]) -> None:
    """Set one row, each cell centred in its column, the table centred in the column of the page."""
    y, size = press.down(press.style.size * LEADING), press.style.size
    x = press.geometry.left(press.column) + (press.geometry.width - sum(widths)) / 2
    for cell, width in zip(cells, widths, strict=True):
        text, _, mark = press.text(cell).partition("^")
        start = x + (width - pdfmetrics.stringWidth(text, press.font, size)) / 2
        press.canvas.setFont(press.font, size)
        press.canvas.drawString(start, y, text)
        press.canvas.setFont(press.font, size * MARK_SIZE)
        press.canvas.drawString(
            start + pdfmetrics.stringWidth(text, press.font, size), y + size * MARK_RISE, mark
        )
        x += width


def set_rule(press: Press, widths: Sequence[float]) -> None:
    if press.style.rules:
        x = press.geometry.left(press.column) + (press.geometry.width - sum(widths)) / 2
        press.canvas.line(x, press.y - 3, x + sum(widths), press.y - 3)
        press.skip(2)


def set_table(press: Press, table: PaperTable) -> None:
    """Set caption, header and rows in one column."""
    widths = measure_columns(press, table)
    press.skip(GAP_AROUND_TABLE)
    height = press.style.size * LEADING * (len(table.rows) + 5) + GAP_BEFORE_CAPTION
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


def set_blocks(press: Press, blocks: Iterable[Block]) -> None:
    for block in blocks:
        SETTERS[type(block)](press, block)


def build(blocks: Iterable[Block], style: Style | None = None, *, title: str = "") -> bytes:
    """Return the PDF with `blocks` set one after another: the same bytes for the same blocks and
    style.
    """
    press = Press(style or Style())
    press.canvas.setTitle(title)
    set_blocks(press, blocks)
    return press.finish()


def without_cell(table: PaperTable, row: int, column: int) -> PaperTable:
    """Return the table with one cell of a row (both counted from 0) left blank."""
    cells = tuple("" if place == column else cell for place, cell in enumerate(table.rows[row]))
    return replace(table, rows=(*table.rows[:row], cells, *table.rows[row + 1 :]))


def without_column(table: PaperTable, column: int) -> PaperTable:
    return replace(
        table,
        columns=(*table.columns[:column], *table.columns[column + 1 :]),
        rows=tuple((*row[:column], *row[column + 1 :]) for row in table.rows),
    )


def with_header(table: PaperTable, column: int, name: str) -> PaperTable:
    return replace(table, columns=(*table.columns[:column], name, *table.columns[column + 1 :]))
