"""Set generated tables as PDF with reportlab, in the styles of papers, reports and slides."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4, letter
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer
from reportlab.platypus import Table as FlowTable

from benchmarks.documents.html import write_cell
from benchmarks.documents.mutations import HIDE_PDF, Draft
from benchmarks.documents.tables import BOLD, HIDDEN, RAISED, STRUCK, Cell, Run, Table, to_cell

MARGIN = 50.0
SMALL, RISE = 0.65, 0.35  # of a footnote mark, in ems
MARK_STYLES = {
    "raised-large": (0.9, RISE),
    "raised-same-size": (1.0, RISE),
    "baseline-small": (SMALL, 0.0),
}
DOUBLE_OFFSET = 0.3  # points between two strikes of one glyph
SPACING = 0.4  # points between letters
SUPERSCRIPT = re.compile("([⁻⁰⁴⁵⁶⁷⁸⁹¹²³]+)")
PLAIN_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−\u2009\u202f", "-0123456789-\u00a0\u00a0")
RAISED_DIGITS = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
PROSE = (
    "We measured the network on two cards with 12 batch sizes in 2020, and the host was idle at 3.5"
    " percent of load."
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
    form: bool = False
    page_rows: int = 1000
    repeat: bool = False


LAYOUTS = {
    "ruled": Layout(rules="grid"),
    "booktabs": Layout(font="Times-Roman", rules="booktabs", caption="above"),
    "unruled": Layout(),
    "zebra": Layout(fill="zebra"),
    "dark": Layout(fill="dark", rules="grid"),
    "dark header": Layout(fill="dark header"),
    "centred": Layout(align="centre", rules="booktabs"),
    "right aligned": Layout(align="right"),
    "large": Layout(size=11.0, gap=1.2),
    "tight": Layout(size=6.0, gap=1.0, leading=1.15),
    "loose": Layout(leading=2.6, gap=4.0, rules="grid"),
    "wide": Layout(gap=9.0),
    "two columns": Layout(font="Times-Roman", columns=2, rules="booktabs", size=9.0),
    "two columns, unruled": Layout(font="Times-Roman", columns=2, size=9.0, caption="above"),
    "rotated header": Layout(header="rotated", rules="grid"),
    "units below": Layout(header="units below", rules="booktabs"),
    "rotated page": Layout(rotation=90, rules="grid"),
    "cropped": Layout(crop=30.0),
    "form": Layout(form=True, rules="grid"),
    "truetype": Layout(font="Vera", rules="booktabs"),
    "typewriter": Layout(font="Courier", gap=2.0),
    "continued": Layout(page_rows=2, rules="grid"),
    "continued, header repeated": Layout(page_rows=2, rules="booktabs", repeat=True),
    "listing": Layout(font="Courier", header="listing", size=7.0),
    "joined": Layout(rules="grid", header="joined"),
    "side by side": Layout(header="side by side", rules="booktabs"),
    "transposed": Layout(header="transposed", rules="grid"),
    "picture": Layout(header="picture"),
}
PDF_UNUSUAL = frozenset(
    {"joined", "transposed", "rotated header", "rotated page", "picture", "listing"}
)
"""Dialects that the reader need not read, but must report."""


class Pen:
    """Draws runs of text on a canvas, and keeps the height of the page that is left."""

    def __init__(self, layout: Layout, style: dict[str, str], width: float) -> None:
        self.layout, self.style = layout, style
        if layout.font == "Vera" and "Vera" not in pdfmetrics.getRegisteredFontNames():
            pdfmetrics.registerFont(TTFont("Vera", "Vera.ttf"))
            pdfmetrics.registerFont(TTFont("Vera-Bold", "VeraBd.ttf"))
        self.size = (max(width + 2 * MARGIN, letter[0]), letter[1])
        self.out = io.BytesIO()
        self.canvas = Canvas(self.out, pagesize=self.size, invariant=1)
        self.left, self.y = MARGIN, self.size[1] - MARGIN
        self._start_page()

    def _start_page(self) -> None:
        if self.layout.rotation:
            self.canvas.setPageRotation(self.layout.rotation)
        if self.layout.crop:
            crop = self.layout.crop
            self.canvas.setCropBox((crop, crop, self.size[0] - crop, self.size[1] - crop))
            self.canvas.setFont("Helvetica", 8)
            self.canvas.drawString(4, 12, "printer's marks 2063.03 of sheet 12")

    def next_page(self) -> None:
        self.canvas.showPage()
        self._start_page()
        self.y = self.size[1] - MARGIN

    def finish(self) -> bytes:
        self.canvas.save()
        return self.out.getvalue()

    def font_of(self, run: Run) -> tuple[str, float, float]:
        """Return font, size and rise of a run."""
        font, size, rise = self.layout.font, self.layout.size, 0.0
        if run.style == RAISED:
            share, up = MARK_STYLES.get(self.style.get("raise", ""), (SMALL, RISE))
            size, rise = size * share, size * up
        if run.style == BOLD:
            font = {"Times-Roman": "Times-Bold"}.get(font, f"{font}-Bold")
        if run.style == HIDDEN and self.style.get("hide") == "zero-size":
            size = 0.1
        return font, size, rise

    def measure(self, cell: Cell) -> float:
        extra = SPACING if "spaced" in self.style else 0.0
        runs = list(_spell_runs(cell))
        letters = sum(len(run.text) for run in runs)
        return float(
            sum(pdfmetrics.stringWidth(run.text, *self.font_of(run)[:2]) for run in runs)
            + extra * letters
        )

    def draw(self, cell: Cell, x: float, y: float, hidden: bool = False) -> None:
        """Draw a cell; one with a `markup` is drawn otherwise by the pens of hostile documents."""
        for run in _spell_runs(cell):
            x = self._draw_run(replace(run, style=HIDDEN) if hidden else run, x, y)

    def _draw_run(self, run: Run, x: float, y: float) -> float:
        font, size, rise = self.font_of(run)
        extra = SPACING if "spaced" in self.style else 0.0
        width = float(pdfmetrics.stringWidth(run.text, font, size) + extra * len(run.text))
        canvas = self.canvas
        hide = self.style.get("hide", "white") if run.style == HIDDEN else ""
        if hide and hide not in HIDE_PDF:
            hide = "white"
        if hide == "white" and self.layout.fill == "zebra":  # white shows on grey
            hide = "transparent"
        canvas.saveState()
        if hide == "white":
            canvas.setFillColor(colors.darkblue if self.layout.fill == "dark" else colors.white)
        if hide == "transparent":
            canvas.setFillAlpha(0)
        if hide == "clip":
            path = canvas.beginPath()
            path.rect(0, 0, 5, 5)
            canvas.clipPath(path, stroke=0, fill=0)
        mode = 3 if hide == "mode-3" else None
        strikes = 2 if "double" in self.style else 1
        for strike in range(strikes):
            self._draw_text(run.text, x + strike * DOUBLE_OFFSET, y + rise, font, size, mode, extra)
        canvas.restoreState()
        if hide == "covered":
            canvas.saveState()
            canvas.setFillColor(colors.white)
            canvas.rect(x - 0.5, y - 2, width + 1, size + 2, stroke=0, fill=1)
            canvas.restoreState()
        if run.style == STRUCK:
            canvas.line(x, y + size * 0.3, x + width, y + size * 0.3)
        return x + width

    def _draw_text(
        self, text: str, x: float, y: float, font: str, size: float, mode: int | None, extra: float
    ) -> None:
        for place, glyph in enumerate(text) if "glyphs" in self.style else [(0, text)]:
            before = pdfmetrics.stringWidth(text[:place], font, size) + extra * place
            line = self.canvas.beginText(x + before, y)
            line.setFont(font, size)
            if extra:
                line.setCharSpace(extra)
            if mode is not None:
                line.setTextRenderMode(mode)
            line.textOut(glyph)
            self.canvas.drawText(line)


def _spell_runs(cell: Cell) -> Iterator[Run]:
    """Yield the runs with characters that the standard fonts have: raised digits as runs of their
    own.
    """
    for run in cell.runs:
        for text in SUPERSCRIPT.split(run.text):
            style = RAISED if SUPERSCRIPT.fullmatch(text) else run.style
            spelt = (
                text.translate(PLAIN_DIGITS)
                .encode("cp1252", "replace")
                .decode("cp1252")
                .replace("?", "~")
            )
            if text:
                yield Run(spelt, style)


def _set_layout(name: str) -> Callable[[Draft, Random], bytes]:
    def build(draft: Draft, _: Random) -> bytes:
        layout = LAYOUTS[name]
        # a row is hidden with all that it says
        if layout.header == "joined" and draft.tables[0].header.joins:
            hidden = frozenset().union(*(table.hidden_rows for table in draft.tables))
            draft.tables = [replace(table, hidden_rows=hidden) for table in draft.tables]
        tables = [
            _transpose(table) if layout.header == "transposed" else table for table in draft.tables
        ]
        if layout.header == "joined":
            tables = _join(tables)
        pen = Pen(layout, draft.style, 0)
        widths = [measure_columns(pen, table) for table in tables]
        if layout.columns == 2 and max(map(sum, widths)) > (letter[0] - 2 * MARGIN) / 2 - 10:
            layout = replace(layout, columns=1)
        steps = [
            max(sum(columns), pdfmetrics.stringWidth(table.caption, "Times-Roman", 8)) + 40
            for table, columns in zip(tables, widths, strict=True)
        ]
        total = sum(steps) if layout.header == "side by side" else max(map(sum, widths))
        pen = Pen(layout, draft.style, total)
        draw_prose(pen)
        top = lowest = pen.y
        for place, (table, columns) in enumerate(zip(tables, widths, strict=True)):
            if layout.header == "side by side":
                pen.y = top
            elif layout.columns == 2 and place == len(tables) - 1:
                pen.left, pen.y = letter[0] / 2 + 10, top
            elif pen.y - (len(table.rows) + 6) * layout.leading * layout.size < MARGIN:
                pen.next_page()
            draw_table(pen, table, columns)
            lowest = min(lowest, pen.y)
            if layout.header == "side by side":
                pen.left += steps[place]
        return pen.finish()

    return build


def measure_columns(pen: Pen, table: Table) -> list[float]:
    if pen.layout.header == "listing":
        return [
            pdfmetrics.stringWidth(
                max(_list_lines(table), key=len), pen.layout.font, pen.layout.size
            )
        ]
    rows = [_head(table, pen.layout), *table.rows]
    gap = pen.layout.gap * pen.layout.size
    return [max(pen.measure(cell) for cell in column) + gap for column in zip(*rows, strict=True)]


def _head(table: Table, layout: Layout) -> tuple[Cell, ...]:
    names = [
        name.split(" (")[0] if layout.header == "units below" else name for name in table.columns
    ]
    return tuple(to_cell(name) for name in names)


def _list_lines(table: Table) -> list[str]:
    """Return a table as lines of text: raised digits are, too; hidden and struck text is absent."""
    shown = [row for number, row in enumerate(table.rows) if number not in table.hidden_rows]
    rows = [list(table.columns), *[[_list_text(cell) for cell in row] for row in shown]]
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    return [
        "".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _list_text(cell: Cell) -> str:
    texts = (
        run.text.translate(RAISED_DIGITS) if run.style == RAISED else run.text
        for run in cell.runs
        if run.style not in (HIDDEN, STRUCK)
    )
    return "".join(texts)


def draw_prose(pen: Pen) -> None:
    width = (letter[0] - 2 * MARGIN) / pen.layout.columns - 12
    for column in range(pen.layout.columns):
        words, line, y = (PROSE * 2).split(), "", pen.size[1] - MARGIN
        for word in [*words, ""]:
            if not word or pdfmetrics.stringWidth(f"{line} {word}", "Times-Roman", 9) > width:
                pen.canvas.setFont("Times-Roman", 9)
                pen.canvas.drawString(MARGIN + column * (letter[0] / 2 + 10 - MARGIN), y, line)
                y, line = y - 11, word
            else:
                line = f"{line} {word}".strip()
        pen.y = y - 24


def draw_table(pen: Pen, table: Table, widths: Sequence[float]) -> None:
    layout, step = pen.layout, pen.layout.size * pen.layout.leading
    if layout.header == "picture":
        pen.y -= step * (len(table.rows) + 1)
        pen.canvas.rect(pen.left, pen.y, sum(widths), step * (len(table.rows) + 1), fill=1)
        return
    if layout.header == "listing":
        for line in _list_lines(table):
            pen.draw(to_cell(line), pen.left, pen.y)
            pen.y -= step
        pen.y -= 2 * step
        return
    if layout.caption == "above" and table.caption:
        draw_caption(pen, table.caption)
        pen.y -= 1.4 * step
    _draw_head(pen, table, widths)
    for number, row in enumerate(table.rows):
        if number and number % layout.page_rows == 0:
            pen.next_page()
            if layout.repeat:
                _draw_head(pen, table, widths)
        _draw_row(pen, row, widths, shaded=number % 2 == 1, hidden=number in table.hidden_rows)
    if layout.rules == "booktabs":
        pen.canvas.line(pen.left, pen.y + step * 0.75, pen.left + sum(widths), pen.y + step * 0.75)
    for note in table.notes:
        pen.y -= 0.8 * step
        pen.draw(to_cell(note), pen.left, pen.y)
    if layout.caption == "below" and table.caption:
        pen.y -= 0.8 * step
        draw_caption(pen, table.caption)
    pen.y -= 3.5 * step


def draw_caption(pen: Pen, caption: str) -> None:
    pen.canvas.setFont("Times-Roman", 8)
    pen.canvas.drawString(pen.left, pen.y, caption)


def _draw_head(pen: Pen, table: Table, widths: Sequence[float]) -> None:
    layout, step = pen.layout, pen.layout.size * pen.layout.leading
    head = _head(table, layout)
    if layout.header == "rotated":
        height = max(map(pen.measure, head))
        x = pen.left
        for cell, width in zip(head, widths, strict=True):
            pen.canvas.saveState()
            pen.canvas.translate(x + layout.size, pen.y - height)
            pen.canvas.rotate(90)
            pen.draw(cell, 0, 0)
            pen.canvas.restoreState()
            x += width
        pen.y -= height + step
        return
    if layout.rules:
        pen.canvas.line(pen.left, pen.y + step * 0.75, pen.left + sum(widths), pen.y + step * 0.75)
    _draw_row(pen, head, widths, head=True)
    if layout.header == "units below":
        units = [f"({name.split(' (')[1]}" if " (" in name else "" for name in table.columns]
        if any(units):
            _draw_row(pen, [to_cell(unit) for unit in units], widths)
    if layout.rules == "booktabs":
        pen.canvas.line(pen.left, pen.y + step * 0.75, pen.left + sum(widths), pen.y + step * 0.75)


def _draw_row(
    pen: Pen,
    row: Sequence[Cell],
    widths: Sequence[float],
    shaded: bool = False,
    hidden: bool = False,
    head: bool = False,
) -> None:
    layout, step, x = pen.layout, pen.layout.size * pen.layout.leading, pen.left
    bottom = pen.y - step * 0.25
    dark = layout.fill == "dark" or (layout.fill == "dark header" and head)
    if dark or (layout.fill == "zebra" and shaded):
        pen.canvas.saveState()
        pen.canvas.setFillColor(colors.darkblue if dark else colors.lightgrey)
        pen.canvas.rect(x, bottom, sum(widths), step, stroke=0, fill=1)
        pen.canvas.restoreState()
    pen.canvas.saveState()
    if dark:
        pen.canvas.setFillColor(colors.white)
    for cell, width in zip(row, widths, strict=True):
        free = width - pen.measure(cell) - layout.gap * layout.size / 2
        shift = {"right": free, "centre": (width - pen.measure(cell)) / 2}.get(
            layout.align, layout.gap * layout.size / 2
        )
        if layout.rules == "grid":
            pen.canvas.rect(x, bottom, width, step, fill=0)
        pen.draw(cell, x + shift, pen.y, hidden)
        x += width
    pen.canvas.restoreState()
    pen.y -= step


def _transpose(table: Table) -> Table:
    """Turn columns into rows; the first column has the names."""
    rows = [row for number, row in enumerate(table.rows) if number not in table.hidden_rows]
    first, *others = [
        (to_cell(name), *(row[place] for row in rows)) for place, name in enumerate(table.columns)
    ]
    columns = tuple(cell.printed for cell in first)
    return replace(table, columns=columns, rows=tuple(others), hidden_rows=frozenset())


def _join(tables: Sequence[Table]) -> list[Table]:
    """Print the three tables of a paper as one with four columns; others stay as they are."""
    if not tables[0].header.joins:
        return list(tables)
    batch = [table.fields.index("batch_size") for table in tables]
    units = (" (ms)", " (images/s)", " (images/s/W)")
    columns = [
        tables[0].columns[batch[0]],
        *(
            table.columns[1 - place] + unit
            for table, place, unit in zip(tables, batch, units, strict=True)
        ),
    ]
    rows = [
        (
            first[batch[0]],
            *(row[1 - place] for row, place in zip((first, *others), batch, strict=True)),
        )
        for first, *others in zip(*(table.rows for table in tables), strict=True)
    ]
    return [
        replace(tables[0], columns=tuple(columns), rows=tuple(rows), caption="Table 1. All results")
    ]


def _set_short_flow(draft: Draft, random: Random) -> bytes:
    """Set the tables on pages of a few rows, each with the header."""
    return _set_flow(draft, random, height=330)


def _set_flow(draft: Draft, _: Random, height: float = A4[0]) -> bytes:
    """Set the tables with reportlab's own layout engine, whose cells wrap."""
    out, styles = io.BytesIO(), getSampleStyleSheet()
    document = SimpleDocTemplate(out, pagesize=(A4[1], height), invariant=1)
    story: list[object] = [
        Paragraph("Results", styles["Heading1"]),
        Paragraph(PROSE, styles["BodyText"]),
    ]
    for table in draft.tables:
        rows = [
            [Paragraph(_write_flow(cell, draft.style), styles["BodyText"]) for cell in row]
            for number, row in enumerate(table.rows)
            if number not in table.hidden_rows
        ]
        style = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]
        grid = FlowTable([list(table.columns), *rows], style=style, repeatRows=int(height < A4[0]))
        story += [grid, Paragraph(table.caption, styles["Italic"]), Spacer(1, 20)]
    document.build(story)
    return out.getvalue()


def _write_flow(cell: Cell, style: dict[str, str]) -> str:
    shown = replace(cell, runs=tuple(run for run in cell.runs if run.style not in (HIDDEN, STRUCK)))
    struck = "".join(f"<strike>{run.text}</strike> " for run in cell.runs if run.style == STRUCK)
    white = "".join(
        f'<font color="white">{run.text}</font>' for run in cell.runs if run.style == HIDDEN
    )
    return (
        (struck + white + write_cell(shown, style))
        .replace("<sup>", "<super>")
        .replace("</sup>", "</super>")
    )


PDF_DIALECTS: dict[str, Callable[[Draft, Random], bytes]] = {
    **{name: _set_layout(name) for name in LAYOUTS},
    "platypus": _set_flow,
    "platypus, header repeated": _set_short_flow,
}
