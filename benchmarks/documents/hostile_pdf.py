"""PDFs with one construct each that hides, moves or alters a figure, or is legal and rare."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from reportlab.pdfbase import pdfdoc

from benchmarks.documents.judge import Trial, read_and_judge
from benchmarks.documents.mutations import mark_unreadable
from benchmarks.documents.pdf import LAYOUTS, Layout, Pen, draw_lines, draw_table, measure_columns
from benchmarks.documents.tables import Cell, Table, draw_tables

MAX_ROWS = 4
EM = 10.0  # units of a size of the font, in which operators are written
SHOWN = re.compile(rb"\([\d.,]+\) Tj")
OTHER_DIGITS = bytes.maketrans(b"123456789", b"234567891")


@dataclass(frozen=True, slots=True)
class Construct:
    """How some figures are drawn, what is printed near the tables, and what is done to the bytes of
    the file.

    `draw` are operators, as in `hostile_pdf.toml`. `seen` is whether a reader of the page sees the
    figure as printed; all figures are altered where `near` is.
    """

    draw: str = ""
    seen: bool = False
    near: str = ""
    note: str = ""
    change: Callable[[bytes], bytes] | None = None
    layout: Layout = LAYOUTS["ruled"]


def _update(data: bytes) -> bytes:
    """Change the digits of the first page, and append an update with the page as it was."""
    match = re.search(rb"(\d+) 0 obj\s*<<[^>]*>>\s*stream\r?\n(.*?)endstream", data, re.S)
    start = re.search(rb"startxref\s+(\d+)", data)
    root = re.search(rb"/Root \d+ 0 R", data)
    size = re.search(rb"/Size \d+", data)
    assert match
    assert start
    assert root
    assert size
    number, stream = match.groups()
    older = SHOWN.sub(lambda text: text[0].translate(OTHER_DIGITS), stream)
    data = data.replace(stream, older)
    body = b"%s 0 obj\n<</Length %d>>\nstream\n%sendstream\nendobj\n"
    body %= number, len(stream), stream
    index = b"xref\n%s 1\n%010d 00000 n \n" % (number, len(data) + 1)
    trailer = b"trailer\n<<%s %s /Prev %s>>\nstartxref\n%d\n%%%%EOF\n"
    trailer %= size[0], root[0], start[1], len(data) + 1 + len(body)
    return data + b"\n" + body + index + trailer


def _replace(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: re.sub(old, new, data)


ENCODING = rb"/Encoding /WinAnsiEncoding"
LISTED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CONSTRUCTS = {name: Construct(draw) for name, draw in LISTED["altered"].items()}
CONSTRUCTS |= {name: Construct(draw, seen=True) for name, draw in LISTED["seen"].items()}
CONSTRUCTS |= {f"note: {kind}": Construct("()", note=kind) for kind in LISTED["around"]["notes"]}
CONSTRUCTS |= {f"near: {text}": Construct(near=text) for text in LISTED["around"]["texts"]}
CONSTRUCTS |= {
    "junk before": Construct(change=lambda data: b"junk\r\n" + data, seen=True),
    "junk after": Construct(change=lambda data: data + b"\n" * 200, seen=True),
    "broken index": Construct(change=_replace(rb"startxref\s+\d+", b"startxref\n17"), seen=True),
    "update": Construct(change=_update, seen=True),
    "turned page": Construct(layout=replace(LAYOUTS["ruled"], rotation=180), seen=True),
    "wrong names of glyphs": Construct(
        change=_replace(ENCODING, b"/Encoding /MacExpertEncoding"), near="."
    ),
    "other digits": Construct(
        change=_replace(ENCODING, b"/Encoding <</Differences [49 /two /three /one]>>"), near="."
    ),
    "drawn font": Construct(change=_replace(rb"/Subtype /Type1\b", b"/Subtype /Type3"), near="."),
}


class HostilePen(Pen):
    """Draws the cells that have a `markup`, their figure, by the construct."""

    construct = Construct()

    def draw(self, cell: Cell, x: float, y: float) -> None:
        if not cell.markup or not self.construct.draw:
            super().draw(cell, x, y)
            return
        size = self.layout.size
        canvas = self.canvas
        width = canvas.stringWidth(cell.markup, self.layout.font, EM)
        font = canvas._doc.getInternalFontName(self.layout.font)
        canvas.saveState()
        canvas.translate(x, y)
        canvas.scale(size / EM, size / EM)
        for part in re.split(r"(\(.*?\))", self.construct.draw):
            if part.startswith("("):
                text = _complete(part[1:-1], cell.markup)
                canvas._code.append(f"BT {font} {EM:g} Tf 0 0 Td ({text}) Tj ET")
            else:
                canvas._code.append(re.sub(r"(?<!/)\bW\b(?! n)", f"{width:g}", part))
        canvas.restoreState()
        if self.construct.note:
            note = pdfdoc.PDFDictionary({"F": 4})
            note["Rect"] = pdfdoc.PDFArray([x, y - 1, x + width, y + size])
            names = {"Type": "Annot", "Subtype": self.construct.note, "FT": "Tx"}
            for key, name in names.items():
                note[key] = pdfdoc.PDFName(name)
            canvas._addAnnotation(note)


def _complete(text: str, figure: str) -> str:
    """Return what is written for `()`, `(text>)`, `(<text)` or `(=text)`: the figure, with a text
    after it or before it, or another text.
    """
    if text.startswith("="):
        return text[1:]
    if text.startswith("<"):
        return text[1:] + figure
    return figure + text[:-1]


def build_pdf(name: str, seed: int) -> tuple[bytes, list[Table]]:
    """Return a PDF in which some figures have a construct, and the tables that a reader sees."""
    construct = CONSTRUCTS[name]
    random = Random(seed)
    rows = random.randint(1, MAX_ROWS)
    tables = draw_tables(random, random.random() < 0.5, rows, units_in_captions=True)
    for table in tables:
        for row in table.rows:
            _alter_row(row, construct, random)
    pen = HostilePen(construct.layout)
    widths = []
    for table in tables:
        widths.append([width + 12 for width in measure_columns(pen, table)])
    pen = HostilePen(construct.layout, max(map(sum, widths)))
    pen.construct = construct
    pen.canvas.setPageCompression(0)
    draw_lines(pen, [construct.near] if construct.near else [])
    for table, columns in zip(tables, widths, strict=True):
        pen.keep_together(len(table.rows))
        draw_table(pen, table, columns)
    data = pen.finish()
    return construct.change(data) if construct.change else data, tables


def _alter_row(row: list[Cell], construct: Construct, random: Random) -> None:
    """Mark the figures that get the construct: one that is drawn otherwise, or all of them."""
    chosen = []
    for place, cell in enumerate(row):
        if cell.value is not None and not cell.metric:
            chosen.append(place)
    if construct.draw:
        chosen = random.sample(chosen, 1)
    elif construct.seen:
        return
    for place in chosen:
        cell = replace(row[place], markup=row[place].text)
        row[place] = cell if construct.seen else mark_unreadable(cell)


def run_hostile_pdf(count: int) -> Iterator[Trial]:
    """Read and judge this many PDFs, each construct in turn."""
    names = list(CONSTRUCTS)
    for number in range(count):
        name = names[number % len(names)]
        data, tables = build_pdf(name, number)
        yield Trial("pdf, hostile", name, data, tables, read_and_judge(data, tables))
