"""Set generated tables as PDF with reportlab, in the styles of papers, reports and slides."""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reportlab.lib import colors
from reportlab.lib.pagesizes import letter
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from benchmarks.documents.mutations import Draft
from benchmarks.documents.tables import BOLD, RAISED, Cell, Run, Table, to_cell

MARGIN = 50.0
GUTTER = 10.0  # on each side of the middle of a page in two columns
SECOND_COLUMN = letter[0] / 2 + GUTTER
SMALL = 0.65  # size of a footnote mark, in ems
RISE = 0.35  # of a footnote mark, in ems
PRINT = ("Times-Roman", 8)  # of captions and prose
BOLD_FONTS = {"Times-Roman": "Times-Bold"}
SUPERSCRIPT = re.compile("([⁻⁰⁴⁵⁶⁷⁸⁹¹²³]+)")
PLAIN_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−\u2009\u202f", "-0123456789-\u00a0\u00a0")
PROSE = (
    "We measured the network on two cards with 12 batch sizes in 2020, and",
    "the host was idle at 3.5 percent of load.",
)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table and its page look; sizes in points, the gap of columns in ems."""

    font: str = "Helvetica"
    size: float = 8.0
    rules: str = ""
    fill: str = ""
    align: str = "left"
    gap: float = 2.0
    leading: float = 1.5
    columns: int = 1
    caption: str = "below"
    header: str = "line"
    rotation: int = 0
    crop: float = 0.0
    page_rows: int = 1000


LISTED = tomllib.loads(Path(__file__).with_name("layouts.toml").read_text(encoding="utf-8"))
LAYOUTS = {name: Layout(**entry) for name, entry in LISTED.items()}
PDF_UNUSUAL = frozenset({"turned page", "continued", "cropped"})
"""Dialects that the reader need not read, but must report."""


class Pen:
    """Draws runs of text on a canvas, and keeps the height of the page that is left."""

    def __init__(self, layout: Layout, width: float = 0.0) -> None:
        self.layout = layout
        if layout.font == "Vera" and "Vera" not in pdfmetrics.getRegisteredFontNames():
            pdfmetrics.registerFont(TTFont("Vera", "Vera.ttf"))
            pdfmetrics.registerFont(TTFont("Vera-Bold", "VeraBd.ttf"))
        self.size = (max(width + 2 * MARGIN, letter[0]), letter[1])
        self.out = io.BytesIO()
        self.canvas = Canvas(self.out, pagesize=self.size, invariant=1)
        self.left = MARGIN
        self._start_page()

    def _start_page(self) -> None:
        self.y = self.size[1] - MARGIN
        crop = self.layout.crop
        self.canvas.setPageRotation(self.layout.rotation)
        if crop:
            self.canvas.setCropBox((crop, crop, self.size[0] - crop, self.size[1] - crop))
            self.canvas.setFont("Helvetica", 8)
            self.canvas.drawString(4, 12, "printer's marks 2063.03 of sheet 12")

    def next_page(self) -> None:
        self.canvas.showPage()
        self._start_page()

    def keep_together(self, rows: int) -> None:
        if self.y - (rows + 6) * self.step < MARGIN:
            self.next_page()

    def finish(self) -> bytes:
        self.canvas.save()
        return self.out.getvalue()

    @property
    def step(self) -> float:
        return self.layout.leading * self.layout.size

    def measure(self, cell: Cell) -> float:
        return sum(self._measure_run(run) for run in _spell_runs(cell))

    def _measure_run(self, run: Run) -> float:
        return float(pdfmetrics.stringWidth(run.text, self._find_font(run), self._find_size(run)))

    def _find_font(self, run: Run) -> str:
        font = self.layout.font
        return BOLD_FONTS.get(font, f"{font}-Bold") if run.style == BOLD else font

    def _find_size(self, run: Run) -> float:
        return self.layout.size * (SMALL if run.style == RAISED else 1)

    def draw(self, cell: Cell, x: float, y: float) -> None:
        """Draw a cell; one with a `markup` is drawn otherwise by the pens of hostile documents."""
        for run in _spell_runs(cell):
            rise = RISE * self.layout.size if run.style == RAISED else 0.0
            self.canvas.setFont(self._find_font(run), self._find_size(run))
            self.canvas.drawString(x, y + rise, run.text)
            x += self._measure_run(run)

    def draw_print(self, text: str, x: float) -> None:
        """Draw a text in small print."""
        self.canvas.setFont(*PRINT)
        self.canvas.drawString(x, self.y, text)


def _spell_runs(cell: Cell) -> Iterator[Run]:
    """Yield the runs with characters that the standard fonts have: raised digits as runs of their
    own.
    """
    for run in cell.runs:
        for text in filter(None, SUPERSCRIPT.split(run.text)):
            style = RAISED if SUPERSCRIPT.fullmatch(text) else run.style
            spelt = text.translate(PLAIN_DIGITS).encode("cp1252", "replace").decode("cp1252")
            yield Run(spelt.replace("?", "~"), style)


def _set_layout(name: str) -> Callable[[Draft], bytes]:
    return lambda draft: _set_tables(draft.tables, LAYOUTS[name])


def _set_tables(tables: Sequence[Table], layout: Layout) -> bytes:
    pen = Pen(layout)
    widths = [measure_columns(pen, table) for table in tables]
    widest = max(map(sum, widths))
    if widest > letter[0] / 2 - GUTTER - MARGIN:
        layout = replace(layout, columns=1)
    pen = Pen(layout, widest)
    draw_lines(pen, PROSE)
    top = pen.y
    for place, (table, columns) in enumerate(zip(tables, widths, strict=True)):
        if layout.columns == 2 and place == len(tables) - 1:
            pen.left = SECOND_COLUMN
            pen.y = top
        else:
            pen.keep_together(len(table.rows))
        draw_table(pen, table, columns)
    return pen.finish()


def measure_columns(pen: Pen, table: Table) -> list[float]:
    """Return the width of each column, with the gap after it."""
    widths = []
    for number, name in enumerate(_list_names(table, pen.layout)):
        cells = [name, *(row[number] for row in table.rows)]
        widths.append(max(map(pen.measure, cells)) + pen.layout.gap * pen.layout.size)
    return widths


def _list_names(table: Table, layout: Layout) -> list[Cell]:
    """Return the first line of the header: without the units, if they are below."""
    names = table.columns
    if layout.header == "units below":
        names = tuple(name.partition(" (")[0] for name in names)
    return list(map(to_cell, names))


def draw_lines(pen: Pen, lines: Sequence[str]) -> None:
    """Draw lines of small print, in each column of the page."""
    for text in lines:
        pen.draw_print(text, pen.left)
        if pen.layout.columns == 2:
            pen.draw_print(text, SECOND_COLUMN)
        pen.y -= 11
    pen.y -= 24


def draw_table(pen: Pen, table: Table, widths: Sequence[float]) -> None:
    layout = pen.layout
    if layout.caption == "above" and table.caption:
        pen.draw_print(table.caption, pen.left)
        pen.y -= 1.4 * pen.step
    _draw_rule(pen, widths)
    _draw_row(pen, _list_names(table, layout), widths, shaded=layout.fill == "dark")
    if layout.header == "units below":
        units = [name.partition(" (")[2] for name in table.columns]
        if any(units):
            _draw_row(pen, [to_cell(unit and f"({unit}") for unit in units], widths)
    _draw_rule(pen, widths)
    for number, row in enumerate(table.rows):
        if number and number % layout.page_rows == 0:
            pen.next_page()
        shaded = layout.fill == "dark" or (layout.fill == "zebra" and number % 2 == 1)
        _draw_row(pen, row, widths, shaded)
    _draw_rule(pen, widths)
    if table.note:
        pen.y -= 0.8 * pen.step
        pen.draw(to_cell(table.note), pen.left, pen.y)
    if layout.caption == "below" and table.caption:
        pen.y -= 0.8 * pen.step
        pen.draw_print(table.caption, pen.left)
    pen.y -= 3.5 * pen.step


def _draw_rule(pen: Pen, widths: Sequence[float]) -> None:
    if pen.layout.rules == "booktabs":
        y = pen.y + 0.75 * pen.step
        pen.canvas.line(pen.left, y, pen.left + sum(widths), y)


def _draw_row(pen: Pen, row: Sequence[Cell], widths: Sequence[float], shaded: bool = False) -> None:
    layout = pen.layout
    canvas = pen.canvas
    bottom = pen.y - pen.step * 0.25
    is_dark = layout.fill == "dark"
    canvas.saveState()
    if shaded:
        canvas.setFillColor(colors.darkblue if is_dark else colors.lightgrey)
        canvas.rect(pen.left, bottom, sum(widths), pen.step, stroke=0, fill=1)
    canvas.setFillColor(colors.white if is_dark else colors.black)
    x = pen.left
    for cell, width in zip(row, widths, strict=True):
        pad = layout.gap * layout.size / 2
        free = width - pen.measure(cell)
        shift = {"left": pad, "right": free - pad, "centre": free / 2}[layout.align]
        if layout.rules == "grid":
            canvas.rect(x, bottom, width, pen.step, fill=0)
        pen.draw(cell, x + shift, pen.y)
        x += width
    canvas.restoreState()
    pen.y -= pen.step


PDF_DIALECTS: dict[str, Callable[[Draft], bytes]] = {name: _set_layout(name) for name in LAYOUTS}
