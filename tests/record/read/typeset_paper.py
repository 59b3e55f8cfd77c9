"""Typeset a small paper in one or two columns as PDF: for the tests, and for
raw/qwant/make_transcription.py.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reportlab.lib.pagesizes import letter
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

PAGE_WIDTH = float(letter[0])
PAGE_HEIGHT = float(letter[1])
MARGIN = 72.0  # at the top and at the bottom
LEADING = 1.2
COLUMN_PAD = 12.0
GAP_BEFORE_CAPTION = 10.0
GAP_AROUND_TABLE = 20.0
GAP_AROUND_TEXT = 4.0
MARK_SIZE = 0.7
MARK_RISE = 0.36
FONT = "Times-Roman"
SIZE = 10.0
TITLE_SIZE = SIZE * 1.4
CAPTION_SIZE = 9.0
PAGE_NUMBER_HEIGHT = 30.0
LINES_AROUND_ROWS = 5  # the header and the caption, with room


@dataclass(frozen=True, slots=True)
class Geometry:
    """Columns of one width on a letter page, in points."""

    columns: int
    margin: float
    gutter: float

    @property
    def width(self) -> float:
        return (PAGE_WIDTH - 2 * self.margin - (self.columns - 1) * self.gutter) / self.columns


GEOMETRIES = {
    "ieee": Geometry(columns=2, margin=48.0, gutter=12.2),
    "cvpr": Geometry(columns=2, margin=58.5, gutter=22.5),
    "single": Geometry(columns=1, margin=90.0, gutter=0.0),
}


@dataclass(frozen=True, slots=True)
class PaperTable:
    """Rows of cells under a header; an empty cell prints nothing."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Paper:
    """A PDF in which texts and tables follow one another: the same bytes for the same ones."""

    def __init__(
        self, geometry: str = "cvpr", caption: str = "below", page_numbers: bool = True
    ) -> None:
        self.geometry = GEOMETRIES[geometry]
        self.caption = caption
        self.page_numbers = page_numbers
        self.out = io.BytesIO()
        self.canvas = Canvas(self.out, pagesize=letter, invariant=1)
        self.page = 0
        self._start_page()

    def _start_page(self) -> None:
        self.page += 1
        self.column = 0
        self.ceiling = PAGE_HEIGHT - MARGIN
        self.y = self.ceiling

    @property
    def left(self) -> float:
        """The left edge of the column."""
        width = self.geometry.width + self.geometry.gutter
        return self.geometry.margin + self.column * width

    def next_column(self) -> None:
        """Go on in the next column, or on the next page."""
        self.column += 1
        if self.column == self.geometry.columns:
            self.next_page()
        self.y = self.ceiling

    def next_page(self) -> None:
        """Go on on the next page."""
        if self.page_numbers:
            self.canvas.setFont(FONT, SIZE)
            y = MARGIN - PAGE_NUMBER_HEIGHT
            self.canvas.drawCentredString(PAGE_WIDTH / 2, y, str(self.page))
        self.canvas.showPage()
        self._start_page()

    def finish(self, title: str = "") -> bytes:
        """Return the PDF."""
        self.canvas.setTitle(title)
        self.next_page()
        self.canvas.save()
        return self.out.getvalue()

    def _down(self, height: float) -> float:
        """Move down, in the next column if it does not fit in this one; return the new baseline."""
        if self.y - height < MARGIN:
            self.next_column()
        self.y -= height
        return self.y

    def _skip(self, height: float) -> None:
        if self.y < self.ceiling:
            self.y -= height

    def set_title(self, text: str) -> None:
        """Set a line across both columns."""
        self.canvas.setFont(FONT, TITLE_SIZE)
        self.canvas.drawCentredString(PAGE_WIDTH / 2, self._down(TITLE_SIZE), text)
        self.y -= GAP_AROUND_TABLE
        self.ceiling = self.y

    def set_paragraph(self, text: str) -> None:
        """Set justified prose."""
        self._skip(GAP_AROUND_TEXT)
        for line, spare in wrap(text, SIZE, self.geometry.width):
            y = self._down(SIZE * LEADING)
            x = self.left
            for word in line.split():
                self._draw(x, y, word)
                x += measure(f"{word} ") + spare / max(line.count(" "), 1)
        self._skip(GAP_AROUND_TEXT)

    def set_lines(self, texts: Sequence[str]) -> None:
        """Set lines as they are, ragged right."""
        self._skip(GAP_AROUND_TEXT)
        for text in texts:
            y = self._down(SIZE * LEADING)
            self._draw(self.left, y, text)
        self._skip(GAP_AROUND_TEXT)

    def set_table(self, table: PaperTable) -> None:
        """Set caption, header and rows in one column."""
        widths = []
        for number, name in enumerate(table.columns):
            texts = [name, *(row[number] for row in table.rows)]
            widths.append(max(map(measure, texts)) + COLUMN_PAD)
        self._skip(GAP_AROUND_TABLE)
        lines = len(table.rows) + LINES_AROUND_ROWS
        if self.y - SIZE * LEADING * lines - GAP_BEFORE_CAPTION < MARGIN:
            self.next_column()
        if self.caption == "above":
            self._set_caption(table.caption)
            self._skip(GAP_BEFORE_CAPTION)
        self._set_rule(widths)
        self._set_row(table.columns, widths)
        self._set_rule(widths)
        for row in table.rows:
            self._set_row(row, widths)
        self._set_rule(widths)
        if self.caption == "below":
            self._skip(GAP_BEFORE_CAPTION)
            self._set_caption(table.caption)
        self._skip(GAP_AROUND_TABLE)

    def _set_caption(self, caption: str) -> None:
        for line, _ in wrap(caption, CAPTION_SIZE, self.geometry.width):
            y = self._down(CAPTION_SIZE * LEADING)
            self.canvas.setFont(FONT, CAPTION_SIZE)
            self.canvas.drawCentredString(self.left + self.geometry.width / 2, y, line)

    def _set_row(self, cells: Sequence[str], widths: Sequence[float]) -> None:
        """Set each cell centred in its column, and the table centred in the column of the page."""
        y = self._down(SIZE * LEADING)
        x = self._indent(widths)
        for text, width in zip(cells, widths, strict=True):
            start = x + (width - measure(text)) / 2
            self._draw(start, y, text)
            # the committed paper has room for a mark after each cell
            self.canvas.setFont(FONT, SIZE * MARK_SIZE)
            self.canvas.drawString(start + measure(text), y + SIZE * MARK_RISE, "")
            x += width

    def _set_rule(self, widths: Sequence[float]) -> None:
        x = self._indent(widths)
        self.canvas.line(x, self.y - 3, x + sum(widths), self.y - 3)
        self._skip(2)

    def _indent(self, widths: Sequence[float]) -> float:
        return self.left + (self.geometry.width - sum(widths)) / 2

    def _draw(self, x: float, y: float, text: str) -> None:
        self.canvas.setFont(FONT, SIZE)
        self.canvas.drawString(x, y, text)


def measure(text: str, size: float = SIZE) -> float:
    """Return the width of a text in points."""
    return float(stringWidth(text, FONT, size))


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
