"""PDFs with one construct each that hides, moves or alters a figure, or is legal and rare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from PIL import Image
from reportlab.lib import colors

from benchmarks.documents.judge import Verdict, read_and_judge
from benchmarks.documents.mutations import mark_unreadable
from benchmarks.documents.pdf import (
    LAYOUTS,
    Layout,
    Pen,
    draw_caption,
    draw_prose,
    draw_table,
    measure_columns,
)
from benchmarks.documents.tables import Cell, Table, draw_tables

MAX_ROWS = 4
DECOY = "7"
SHOWN = re.compile(rb"\([\d.,]+\) Tj")
OTHER_DIGITS = bytes.maketrans(b"123456789", b"234567891")


@dataclass(frozen=True, slots=True)
class Construct:
    """How some figures are drawn, what is printed near the tables, and what is done to the bytes of
    the file.

    `seen` is whether a reader of the page sees the figure as printed; all figures are altered where
    `near` is.
    """

    draw: Callable[[Pen, float, float, str], None] | None = None
    seen: bool = False
    near: str = ""
    below: str = ""
    change: Callable[[bytes], bytes] | None = None
    layout: Layout = LAYOUTS["ruled"]
    twice: bool = False
    unknowable: str = ""


def _text(pen: Pen, x: float, y: float, text: str, size: float = 0.0) -> float:
    pen.canvas.setFont(pen.layout.font, size or pen.layout.size)
    pen.canvas.drawString(x, y, text)
    return float(pen.canvas.stringWidth(text, pen.layout.font, size or pen.layout.size))


def _then(extra: Callable[[Pen, float, float, float], object], before: bool = False):  # type: ignore[no-untyped-def]
    """Draw the figure, and something at its place: `extra` gets the pen, the place and the width."""

    def draw(pen: Pen, x: float, y: float, text: str) -> None:
        width = pen.canvas.stringWidth(text, pen.layout.font, pen.layout.size)
        pen.canvas.saveState()
        for step in (extra, None) if before else (None, extra):
            if step is None:
                pen.canvas.restoreState()
                _text(pen, x, y, text)
                pen.canvas.saveState()
            else:
                step(pen, x, y, width)
        pen.canvas.restoreState()

    return draw


def _fill(x0: float, y0: float, x1: float, y1: float, colour: object = colors.black):  # type: ignore[no-untyped-def]
    """Fill a box, in ems from the start of the text; a negative `x1` counts from its end."""

    def extra(pen: Pen, x: float, y: float, width: float) -> None:
        em = pen.layout.size
        right = x + width if x1 < 0 else x + x1 * em
        pen.canvas.setFillColor(colour)
        pen.canvas.rect(
            x + x0 * em, y + y0 * em, right - x - x0 * em, (y1 - y0) * em, stroke=0, fill=1
        )

    return _then(extra)


def _raw(code: str) -> Callable[[Pen, float, float, str], None]:
    """Draw the figure with instructions of PDF: {x}, {y}, {size}, {font}, {text} and more."""

    def draw(pen: Pen, x: float, y: float, text: str) -> None:
        font = pen.canvas._doc.getInternalFontName(pen.layout.font)
        size = pen.layout.size
        width = pen.canvas.stringWidth(text, pen.layout.font, size)
        first = pen.canvas.stringWidth(text[:1], pen.layout.font, size)
        names = {
            "x": x,
            "y": y,
            "size": size,
            "font": font,
            "text": text,
            "rest": text[1:],
            "one": text[:1],
        }
        names |= {
            "end": x + width,
            "middle": y + 0.3 * size,
            "next": x + first,
            "low": y - 2,
            "high": y + size,
        }
        pen.canvas._code.append(code.format(**names))

    return draw


SHOW = "BT {font} {size} Tf {x} {y} Td ({text}) Tj ET "


def _picture(over: bool) -> Callable[[Pen, float, float, float], None]:
    def extra(pen: Pen, x: float, y: float, width: float) -> None:
        image = Image.new("L", (40, 20), 200)
        image.paste(0, (5, 3, 12, 17))
        pen.canvas.drawInlineImage(
            image, x if over else x - 7, y - 1, width if over else 6, pen.layout.size
        )

    return extra


def _annotate(kind: str, more: str = "") -> Callable[[Pen, float, float, float], None]:
    def extra(pen: Pen, x: float, y: float, width: float) -> None:
        from reportlab.pdfbase import pdfdoc  # noqa: PLC0415

        box = [x, y - 1, x + width, y + pen.layout.size]
        entries: dict[str, object] = {
            "Type": pdfdoc.PDFName("Annot"),
            "Subtype": pdfdoc.PDFName(kind),
        }
        entries |= {"Rect": pdfdoc.PDFArray(box), "F": 4}
        if kind == "StrikeOut":
            entries["QuadPoints"] = pdfdoc.PDFArray(
                [box[0], box[3], box[2], box[3], box[0], box[1], box[2], box[1]]
            )
        if kind == "Square":
            entries |= {"IC": pdfdoc.PDFArray([1, 1, 1]), "C": pdfdoc.PDFArray([1, 1, 1])}
        if more:
            entries |= {
                "Contents": pdfdoc.PDFString(more),
                "DA": pdfdoc.PDFString("/Helv 8 Tf 0 g"),
            }
        pen.canvas._addAnnotation(pdfdoc.PDFDictionary(entries))

    return extra


def _field(pen: Pen, x: float, y: float, text: str) -> None:
    pen.canvas.acroForm.textfield(
        value=text, x=x, y=y - 2, width=60, height=9, fontSize=7, borderWidth=0
    )


def _spread(pen: Pen, x: float, y: float, text: str) -> None:
    """Draw the characters from the last to the first, each at its place."""
    for place in reversed(range(len(text))):
        _text(
            pen,
            x + pen.canvas.stringWidth(text[:place], pen.layout.font, pen.layout.size),
            y,
            text[place],
        )


def _draw_text(pen: Pen, x: float, y: float, text: str) -> None:
    _text(pen, x, y, text)


def _with(before: str = "", after: str = "") -> Callable[[Pen, float, float, str], None]:
    return lambda pen, x, y, text: _draw_text(pen, x, y, before + text + after)


def _replaced(old: str, new: str) -> Callable[[Pen, float, float, str], None]:
    return lambda pen, x, y, text: _draw_text(pen, x, y, text.replace(old, new) + new)


def _digit_path(pen: Pen, x: float, y: float, text: str) -> None:
    _text(pen, x + 5, y, text)
    pen.canvas.rect(x + 2, y, 0.9, 5.6, stroke=0, fill=1)


def _point_path(pen: Pen, x: float, y: float, text: str) -> None:
    width = _text(pen, x, y, DECOY)
    pen.canvas.circle(x + width + 1, y + 0.5, 0.45, stroke=0, fill=1)
    _text(pen, x + width + 2, y, re.sub(r"\D", "", text))


def _update(data: bytes) -> bytes:
    """Change the digits of the first page, and append an update with the page as it was."""
    match = re.search(rb"(\d+) 0 obj\s*<<[^>]*>>\s*stream\r?\n(.*?)endstream", data, re.S)
    start = re.search(rb"startxref\s+(\d+)", data)
    if match is None or start is None:
        return data
    stream = match[2]
    older = SHOWN.sub(lambda text: text[0].translate(OTHER_DIGITS), stream)
    data = data[: match.start(2)] + older + data[match.end(2) :]
    place = len(data) + 1
    body = b"%s 0 obj\n<< /Length %d >>\nstream\n%sendstream\nendobj\n" % (
        match[1],
        len(stream),
        stream,
    )
    root = re.search(rb"/Root \d+ 0 R", data)
    size = re.search(rb"/Size \d+", data)
    table = b"xref\n%s 1\n%010d 00000 n \n" % (match[1], place)
    trailer = b"trailer\n<< %s %s /Prev %s >>\nstartxref\n%d\n%%%%EOF\n" % (
        size[0] if size else b"",
        root[0] if root else b"",
        start[1],
        place + len(body),
    )
    return data + b"\n" + body + table + trailer


CONSTRUCTS: dict[str, Construct] = {
    # signs, points and digits that are not text
    "path minus": Construct(
        _then(lambda pen, x, y, _: pen.canvas.rect(x - 4, y + 2.3, 3, 0.7, stroke=0, fill=1))
    ),
    "line minus": Construct(
        _then(lambda pen, x, y, _: pen.canvas.line(x - 4, y + 2.5, x - 1, y + 2.5))
    ),
    "path digit": Construct(_digit_path),
    "path point": Construct(_point_path),
    "picture over": Construct(_then(_picture(over=True))),
    "picture before": Construct(_then(_picture(over=False))),
    "field": Construct(_field),
    "note": Construct(_then(_annotate("FreeText", "7"))),
    # lines through it, and what is over it
    "thick strike": Construct(_fill(0, 0.2, -1, 0.42)),
    "tilted strike": Construct(_raw(SHOW + "1 w {x} {y} m {end} {high} l S")),
    "bent strike": Construct(
        _raw(SHOW + "0.6 w {x} {middle} m {next} {high} {next} {y} {end} {middle} c S")
    ),
    "dashed strike": Construct(
        _raw(SHOW + "[1 1] 0 d 0.6 w {x} {middle} m {end} {middle} l S [] 0 d")
    ),
    "strike in pieces": Construct(
        _then(
            lambda pen, x, y, w: [
                pen.canvas.line(x + at, y + 2.4, x + at + 0.9, y + 2.4) for at in range(int(w))
            ]
        )
    ),
    "strike by text": Construct(_then(lambda pen, x, y, _: _text(pen, x, y, "\u2014"))),
    "strike by slash": Construct(_then(lambda pen, x, y, _: _text(pen, x, y, "/"))),
    "strike annotation": Construct(_then(_annotate("StrikeOut"))),
    "white annotation": Construct(_then(_annotate("Square"))),
    "white box": Construct(_fill(0, -0.2, -1, 1, colors.white)),
    "half a box": Construct(_fill(0.1, -0.2, -1, 1, colors.white)),
    "nearly white box": Construct(_fill(0, -0.2, -1, 1, colors.Color(0.99, 0.99, 0.99))),
    "black box": Construct(_fill(0, -0.2, -1, 1)),
    "underline": Construct(
        _then(lambda pen, x, y, w: pen.canvas.line(x, y - 1, x + w, y - 1)), seen=True
    ),
    "overline": Construct(
        _then(lambda pen, x, y, w: pen.canvas.line(x, y + 7, x + w, y + 7)), seen=True
    ),
    "marked": Construct(
        _then(
            lambda pen, x, y, w: (
                pen.canvas.setFillColor(colors.yellow),
                pen.canvas.rect(x, y - 1, w, 8, 0, 1),
            ),
            True,
        ),
        seen=True,
    ),
    # how the text is set
    "from the last": Construct(_spread, seen=True),
    "slanted": Construct(
        _raw("BT {font} {size} Tf 1 0 0.2 1 {x} {y} Tm ({text}) Tj ET"), seen=True
    ),
    "mirrored": Construct(_raw("BT {font} {size} Tf -1 0 0 1 {end} {y} Tm ({text}) Tj ET")),
    "upside down": Construct(_raw("BT {font} {size} Tf -1 0 0 -1 {end} {high} Tm ({text}) Tj ET")),
    "flipped": Construct(_raw("BT {font} {size} Tf 1 0 0 -1 {x} {high} Tm ({text}) Tj ET")),
    "narrow": Construct(
        _raw("BT {font} {size} Tf 60 Tz {x} {y} Td ({text}) Tj 100 Tz ET"), seen=True
    ),
    "without width": Construct(_raw("BT {font} {size} Tf 0.1 Tz {x} {y} Td ({text}) Tj 100 Tz ET")),
    "backwards": Construct(_raw("BT {font} {size} Tf -100 Tz {end} {y} Td ({text}) Tj 100 Tz ET")),
    "raised rest": Construct(
        _raw("BT {font} {size} Tf {x} {y} Td ({one}) Tj 5 Ts ({text}) Tj 0 Ts ET")
    ),
    "small rest": Construct(
        _raw("BT {font} {size} Tf {x} {y} Td (10) Tj {font} 4 Tf 4 Ts ({one}) Tj 0 Ts ET")
    ),
    "lowered rest": Construct(
        _raw("BT {font} {size} Tf {x} {y} Td ({text}) Tj {font} 4 Tf -2 Ts (7) Tj 0 Ts ET")
    ),
    "outlined": Construct(
        _raw("BT 0.2 w 1 Tr {font} {size} Tf {x} {y} Td ({text}) Tj 0 Tr ET"), seen=True
    ),
    "outlined in white": Construct(
        _raw("q 1 G BT 1 Tr {font} {size} Tf {x} {y} Td ({text}) Tj 0 Tr ET Q")
    ),
    "clip only": Construct(_raw("q BT 7 Tr {font} {size} Tf {x} {y} Td ({text}) Tj ET Q")),
    "clipped": Construct(
        _raw("q {x} {low} 4.4 20 re W n BT {font} {size} Tf {x} {y} Td (7{text}) Tj ET Q")
    ),
    "replaced by tag": Construct(_raw("/Span <</ActualText (7)>> BDC " + SHOW + "EMC"), seen=True),
    "other text below": Construct(
        _raw("q 1 g BT {font} {size} Tf {x} {y} Td (7{text}) Tj ET Q " + SHOW), seen=True
    ),
    "other text above": Construct(
        _raw(SHOW + "q 1 0 0 rg BT {font} {size} Tf {x} {y} Td (X777) Tj ET Q")
    ),
    "stacked": Construct(_raw(SHOW + SHOW.replace("{y}", "{middle}"))),
    # what else is in the cell
    "unit k": Construct(_with(after=" k")),
    "unit M": Construct(_with(after="M")),
    "minus": Construct(_with(before="\u2013")),
    "less than": Construct(_with(before="<")),
    "letter O": Construct(_replaced("0", "O")),
    "letter l": Construct(_replaced("1", "l")),
    "range": Construct(_with(after=" - 7")),
    "percent": Construct(_with(after=" %")),
    "multiplied": Construct(_with(after="x10")),
    # scales
    "scale in a title": Construct(near="Results (in thousands)"),
    "scale in prose": Construct(near="All figures of this report are in units of 1000."),
    "scale by sign": Construct(near="Performance [x 1000]"),
    "scale below": Construct(below="* figures in thousands"),
    "scale in German": Construct(near="Alle Angaben in Tausend"),
    # files and pages
    "junk before": Construct(change=lambda data: b"junk\r\n" + data, seen=True),
    "junk after": Construct(change=lambda data: data + b"\n" * 200, seen=True),
    "broken index": Construct(
        change=lambda data: re.sub(rb"startxref\s+\d+", b"startxref\n17", data), seen=True
    ),
    "update": Construct(change=_update, seen=True),
    "rotated 180": Construct(layout=replace(LAYOUTS["ruled"], rotation=180), seen=True),
    "rotated 270": Construct(layout=replace(LAYOUTS["ruled"], rotation=270), seen=True),
    "two of one header": Construct(twice=True, seen=True),
    "wrong names of glyphs": Construct(
        change=lambda data: data.replace(
            b"/Encoding /WinAnsiEncoding", b"/Encoding /MacExpertEncoding"
        ),
        unknowable="the drawing of a glyph and its code are all that there is",
    ),
}


class HostilePen(Pen):
    """Draws the cells that have a `markup`, their figure, by the construct."""

    construct = Construct()

    def draw(self, cell: Cell, x: float, y: float, hidden: bool = False) -> None:
        if cell.markup and self.construct.draw is not None:
            self.canvas.saveState()
            self.construct.draw(self, x, y, cell.markup)
            self.canvas.restoreState()
        else:
            super().draw(cell, x, y, hidden)


def build_pdf(name: str, seed: int) -> tuple[bytes, list[Table]]:
    """Return a PDF in which some figures have a construct, and the tables that a reader of it sees."""
    construct, random = CONSTRUCTS[name], Random(seed)
    tables = draw_tables(
        random, random.random() < 0.5, random.randint(1, MAX_ROWS), units_in_captions=True
    )
    if construct.twice:
        other = draw_tables(random, paper=True, rows=2, units_in_captions=True)[0]
        tables = [draw_tables(random, paper=True, rows=2, units_in_captions=True)[0], other]
    for number, table in enumerate(tables):
        rows = [list(row) for row in table.rows]
        for row in rows:
            places = [
                place
                for place, cell in enumerate(row)
                if cell.value is not None and not cell.metric
            ]
            for place in (
                random.sample(places, 1) if construct.draw else () if construct.seen else places
            ):
                row[place] = replace(row[place], markup=row[place].text)
                row[place] = row[place] if construct.seen else mark_unreadable(row[place])
        tables[number] = replace(table, rows=tuple(map(tuple, rows)))
    pen = HostilePen(construct.layout, {}, 0)
    widths = [[width + 12 for width in measure_columns(pen, table)] for table in tables]
    pen = HostilePen(construct.layout, {}, max(map(sum, widths)))
    pen.construct = construct
    pen.canvas.setPageCompression(0)
    draw_prose(pen)
    if construct.near:
        draw_caption(pen, construct.near)
        pen.y -= 20
    for table, columns in zip(tables, widths, strict=True):
        if pen.y - (len(table.rows) + 6) * construct.layout.leading * construct.layout.size < 50:
            pen.next_page()
        draw_table(pen, table, columns)
    if construct.below:
        draw_caption(pen, construct.below)
    data = pen.finish()
    return construct.change(data) if construct.change else data, tables


def run_hostile_pdf(count: int) -> Iterator[tuple[str, Verdict]]:
    """Read and judge this many PDFs, each construct in turn."""
    names = [name for name, construct in CONSTRUCTS.items() if not construct.unknowable]
    for number in range(count):
        yield (
            names[number % len(names)],
            read_and_judge(*build_pdf(names[number % len(names)], number)),
        )
