"""PDFs with one construct each that hides, moves or alters a figure, or is legal and rare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from reportlab.pdfbase import pdfdoc

from benchmarks.documents.judge import Verdict, read_and_judge
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

    `draw` are operators of PDF: `()` is the figure, `(<7)` and `(7>)` the figure with text before
    or after it, `(=7)` other text, `W` its width. The place is that of the figure, in units of a
    tenth of its size. `seen` is whether a reader of the page sees the figure as printed; all
    figures are altered where `near` is.
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


HIDDEN = {
    "white": "1 g ()",
    "nearly white": "0.95 g ()",
    "white box": "() 1 g 0 -2 W 12 re f",
    "half a box": "() 1 g 1 -2 W 12 re f",
    "lower half": "() 1 g 0 -2 W 5 re f",
    "nearly white box": "() 0.99 g 0 -2 W 12 re f",
    "black box": "() 0 -2 W 12 re f",
    "invisible": "3 Tr ()",
    "clip only": "7 Tr ()",
    "clipped": "0 -3 5 20 re W n (<7)",
    "without width": "0.01 0 0 1 0 0 cm ()",
    "tiny": "0.1 0 0 0.1 0 0 cm ()",
}
DRAWN_OVER = {
    "strike": "() 1 w 0 3 m W 3 l S",
    "red strike below": "1 0 0 RG 1 w 0 3 m W 3 l S ()",
    "thick strike": "() 0 2 W 2.2 re f",
    "tilted strike": "() 1 w 0 0 m W 8 l S",
    "bent strike": "() 0.6 w 0 3 m 5 9 5 -2 W 3 c S",
    "dashed strike": "() [1 1] 0 d 0.6 w 0 3 m W 3 l S",
    "strike in pieces": "() 0 3 1 0.5 re 2 3 1 0.5 re 4 3 1 0.5 re f",
    "strike by dash": "() (=\\227)",
    "strike by slash": "() (=/)",
    "overline of a digit": "() 0.6 w 0 8.5 m 5 8.5 l S",
    "line minus": "() 0.8 w -5 3 m -1 3 l S",
    "path digit": "() -3 0 1 7 re f",
    "path point": "() W 0 1 1 re f",
    "tall bar of a 1": "() -3 -0.3 1 7.4 re f",
    "picture over": "() q W 0 0 10 0 -1 cm BI /W 1 /H 2 /BPC 8 /CS /G ID \377\000 EI Q",
    "picture before": "() q 5 0 0 9 -7 0 cm BI /W 1 /H 2 /BPC 8 /CS /G ID \377\000 EI Q",
    "other text above": "() 1 0 0 rg (=X777)",
    "other text below": "1 g (<7) 0 g ()",
    "stacked": "() 1 0 0 1 0 3 cm ()",
}
SET_OTHERWISE = {
    "mirrored": "-1 0 0 1 W 0 cm ()",
    "upside down": "-1 0 0 -1 W 7 cm ()",
    "flipped": "1 0 0 -1 0 7 cm ()",
    "turned": "0 1 -1 0 7 0 cm ()",
    "raised rest": "() 1 0 0 1 W 6 cm (=7)",
    "small rest": "() 0.5 0 0 0.5 W 5 cm (=3)",
    "lowered rest": "() 0.5 0 0 0.5 W -2 cm (=7)",
    "outlined in white": "1 G 1 Tr ()",
}
OTHER_TEXT = {
    **{text: f"({text}>)" for text in (" k", "M", " - 7", " %", "x10")},
    **{text: f"({text})" for text in ("<-", "<<", "<O")},
}
SEEN = {
    "overline": "() 1 w 0 9 m W 9 l S",
    "underline": "() 1 w 0 -2 m W -2 l S",
    "marked": "1 1 0 rg 0 -2 W 12 re f 0 g ()",
    "slanted": "1 0 0.2 1 0 0 cm ()",
    "narrow": "0.6 0 0 1 0 0 cm ()",
    "outlined": "0.2 w 1 Tr ()",
    "replaced by tag": "/Span <</ActualText (7)>> BDC () EMC",
}
NOTES = ("FreeText", "StrikeOut", "Square", "Stamp", "Ink", "Popup", "Widget")
SCALES = (
    "Results (in thousands)",
    "All figures of this report are in units of 1000.",
    "Performance [x 1000]",
    "Alle Angaben in Tausend",
)


def _replace(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: re.sub(old, new, data)


ENCODING = rb"/Encoding /WinAnsiEncoding"
CONSTRUCTS: dict[str, Construct] = {
    name: Construct(draw)
    for group in (HIDDEN, DRAWN_OVER, SET_OTHERWISE, OTHER_TEXT)
    for name, draw in group.items()
}
CONSTRUCTS |= {name: Construct(draw, seen=True) for name, draw in SEEN.items()}
CONSTRUCTS |= {f"note: {kind}": Construct("()", note=kind) for kind in NOTES}
CONSTRUCTS |= {f"near: {text}": Construct(near=text) for text in SCALES}
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

    def draw(self, cell: Cell, x: float, y: float, hidden: bool = False) -> None:
        if not cell.markup or not self.construct.draw:
            super().draw(cell, x, y, hidden)
            return
        text, size, canvas = cell.markup, self.layout.size, self.canvas
        width = canvas.stringWidth(text, self.layout.font, EM)
        canvas.saveState()
        canvas.translate(x, y)
        canvas.scale(size / EM, size / EM)
        for part in re.split(r"(\(.*?\))", self.construct.draw):
            if not part.startswith("("):
                canvas._code.append(re.sub(r"(?<!/)\bW\b(?! n)", f"{width:g}", part))
                continue
            kind, shown = part[1:2], part[1:-1]
            shown = {"<": shown[1:] + text, "=": shown[1:], ")": text}.get(kind, text + shown[:-1])
            font = canvas._doc.getInternalFontName(self.layout.font)
            canvas._code.append(f"BT {font} {EM:g} Tf 0 0 Td ({shown}) Tj ET")
        canvas.restoreState()
        if self.construct.note:
            box = pdfdoc.PDFArray([x, y - 1, x + width, y + size])
            names = {"Type": "Annot", "Subtype": self.construct.note, "FT": "Tx"}
            entries = {key: pdfdoc.PDFName(name) for key, name in names.items()}
            canvas._addAnnotation(pdfdoc.PDFDictionary({**entries, "Rect": box, "F": 4}))


def build_pdf(name: str, seed: int) -> tuple[bytes, list[Table]]:
    """Return a PDF in which some figures have a construct, and the tables that a reader of it sees."""
    construct, random = CONSTRUCTS[name], Random(seed)
    rows = random.randint(1, MAX_ROWS)
    tables = draw_tables(random, random.random() < 0.5, rows, units_in_captions=True)
    for number, table in enumerate(tables):
        cells = [list(row) for row in table.rows]
        for row in cells:
            figures = [
                place
                for place, cell in enumerate(row)
                if cell.value is not None and not cell.metric
            ]
            chosen = random.sample(figures, 1) if construct.draw else figures
            for place in chosen if construct.draw or not construct.seen else ():
                marked = replace(row[place], markup=row[place].text)
                row[place] = marked if construct.seen else mark_unreadable(marked)
        tables[number] = replace(table, rows=tuple(map(tuple, cells)))
    pen = HostilePen(construct.layout, {}, 0)
    widths = [[width + 12 for width in measure_columns(pen, table)] for table in tables]
    pen = HostilePen(construct.layout, {}, max(map(sum, widths)))
    pen.construct = construct
    pen.canvas.setPageCompression(0)
    draw_lines(pen, [construct.near] if construct.near else [])
    for table, columns in zip(tables, widths, strict=True):
        pen.keep_together(len(table.rows))
        draw_table(pen, table, columns)
    data = pen.finish()
    return construct.change(data) if construct.change else data, tables


def run_hostile_pdf(count: int) -> Iterator[tuple[str, Verdict]]:
    """Read and judge this many PDFs, each construct in turn."""
    names = list(CONSTRUCTS)
    for number in range(count):
        name = names[number % len(names)]
        yield name, read_and_judge(*build_pdf(name, number))
