"""Set generated tables as PDF with reportlab, in the styles of papers, reports and slides."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from reportlab.lib import colors
from reportlab.lib.pagesizes import letter
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from benchmarks.documents.mutations import Draft
from benchmarks.documents.tables import BOLD, RAISED, Cell, Run, Table, to_cell

MARGIN = 50.0
SMALL, RISE = 0.65, 0.35  # of a footnote mark, in ems
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


LAYOUTS = {
    "ruled": Layout(rules="grid"),
    "booktabs": Layout(font="Times-Roman", rules="booktabs", caption="above"),
    "unruled": Layout(),
    "zebra": Layout(fill="zebra"),
    "dark": Layout(fill="dark", rules="grid"),
    "centred": Layout(align="centre", rules="booktabs"),
    "right aligned": Layout(align="right"),
    "large": Layout(size=11.0, gap=1.2),
    "tight": Layout(size=6.0, gap=1.0, leading=1.15),
    "loose": Layout(leading=2.6, gap=4.0, rules="grid"),
    "two columns": Layout(font="Times-Roman", columns=2, rules="booktabs", size=9.0),
    "units below": Layout(header="units below", rules="booktabs"),
    "turned page": Layout(rotation=90, rules="grid"),
    "cropped": Layout(crop=30.0),
    "truetype": Layout(font="Vera", rules="booktabs"),
    "typewriter": Layout(font="Courier", gap=2.0),
    "continued": Layout(page_rows=2, rules="grid"),
}
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

    def font_of(self, run: Run) -> tuple[str, float, float]:
        """Return font, size and rise of a run."""
        font, size, rise = self.layout.font, self.layout.size, 0.0
        if run.style == RAISED:
            size, rise = SMALL * size, RISE * size
        if run.style == BOLD:
            font = BOLD_FONTS.get(font, f"{font}-Bold")
        return font, size, rise

    def measure(self, cell: Cell) -> float:
        return sum(self._measure_run(run) for run in _spell_runs(cell))

    def _measure_run(self, run: Run) -> float:
        font, size, _ = self.font_of(run)
        return float(pdfmetrics.stringWidth(run.text, font, size))

    def draw(self, cell: Cell, x: float, y: float) -> None:
        """Draw a cell; one with a `markup` is drawn otherwise by the pens of hostile documents."""
        for run in _spell_runs(cell):
            font, size, rise = self.font_of(run)
            self.canvas.setFont(font, size)
            self.canvas.drawString(x, y + rise, run.text)
            x += self._measure_run(run)


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
    def build(draft: Draft) -> bytes:
        layout = LAYOUTS[name]
        tables = draft.tables
        pen = Pen(layout)
        widths = [measure_columns(pen, table) for table in tables]
        if layout.columns == 2 and max(map(sum, widths)) > letter[0] / 2 - MARGIN - 10:
            layout = replace(layout, columns=1)
        pen = Pen(layout, max(map(sum, widths)))
        draw_lines(pen, PROSE)
        top = pen.y
        for place, (table, columns) in enumerate(zip(tables, widths, strict=True)):
            if layout.columns == 2 and place == len(tables) - 1:
                pen.left, pen.y = letter[0] / 2 + 10, top
            else:
                pen.keep_together(len(table.rows))
            draw_table(pen, table, columns)
        return pen.finish()

    return build


def measure_columns(pen: Pen, table: Table) -> list[float]:
    rows = [_head(table, pen.layout), *table.rows]
    gap = pen.layout.gap * pen.layout.size
    return [max(pen.measure(cell) for cell in column) + gap for column in zip(*rows, strict=True)]


def _head(table: Table, layout: Layout) -> tuple[Cell, ...]:
    is_short = layout.header == "units below"
    return tuple(to_cell(name.split(" (")[0] if is_short else name) for name in table.columns)


def draw_lines(pen: Pen, lines: Sequence[str]) -> None:
    """Draw lines of small print, in each column of the page."""
    pen.canvas.setFont("Times-Roman", 8)
    for text in lines:
        for column in range(pen.layout.columns):
            pen.canvas.drawString(pen.left + column * (letter[0] / 2 + 10 - MARGIN), pen.y, text)
        pen.y -= 11
    pen.y -= 24


def draw_table(pen: Pen, table: Table, widths: Sequence[float]) -> None:
    layout = pen.layout
    if layout.caption == "above" and table.caption:
        _draw_caption(pen, table.caption)
        pen.y -= 1.4 * pen.step
    _draw_rule(pen, widths)
    _draw_row(pen, _head(table, layout), widths, shaded=layout.fill == "dark")
    if layout.header == "units below":
        units = [f"({name.split(' (')[1]}" if " (" in name else "" for name in table.columns]
        if any(units):
            _draw_row(pen, [to_cell(unit) for unit in units], widths)
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
        _draw_caption(pen, table.caption)
    pen.y -= 3.5 * pen.step


def _draw_caption(pen: Pen, caption: str) -> None:
    pen.canvas.setFont("Times-Roman", 8)
    pen.canvas.drawString(pen.left, pen.y, caption)


def _draw_rule(pen: Pen, widths: Sequence[float]) -> None:
    y = pen.y + 0.75 * pen.step
    if pen.layout.rules == "booktabs":
        pen.canvas.line(pen.left, y, pen.left + sum(widths), y)


def _draw_row(pen: Pen, row: Sequence[Cell], widths: Sequence[float], shaded: bool = False) -> None:
    layout, x = pen.layout, pen.left
    bottom = pen.y - pen.step * 0.25
    is_dark = layout.fill == "dark"
    pen.canvas.saveState()
    if shaded:
        pen.canvas.setFillColor(colors.darkblue if is_dark else colors.lightgrey)
        pen.canvas.rect(x, bottom, sum(widths), pen.step, stroke=0, fill=1)
    pen.canvas.setFillColor(colors.white if is_dark else colors.black)
    for cell, width in zip(row, widths, strict=True):
        pad = layout.gap * layout.size / 2
        free = width - pen.measure(cell)
        shift = {"right": free - pad, "centre": free / 2}.get(layout.align, pad)
        if layout.rules == "grid":
            pen.canvas.rect(x, bottom, width, pen.step, fill=0)
        pen.draw(cell, x + shift, pen.y)
        x += width
    pen.canvas.restoreState()
    pen.y -= pen.step


PDF_DIALECTS: dict[str, Callable[[Draft], bytes]] = {name: _set_layout(name) for name in LAYOUTS}
