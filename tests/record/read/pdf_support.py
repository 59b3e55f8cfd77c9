"""PDF files of texts at places, and files written object by object: for what reportlab cannot make."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ipu_results.record.read import ParsedDocument
from ipu_results.record.read.pdf import read_pdf
from reportlab.pdfgen.canvas import Canvas

from tests.record.read.reading_support import PAPER_HEADERS

Row = tuple[str, ...]
Text = tuple[Any, ...]
"""Left edge and baseline in points from the bottom left, text, and the font if it is not that of
the page.
"""
DrawCell = Callable[[Canvas, float, float, str], None]


def read_paper(data: bytes) -> ParsedDocument:
    return read_pdf(data, PAPER_HEADERS)


def list_rows(document: ParsedDocument) -> list[Row]:
    return [row.cells for table in document.tables for row in table.rows]


def place_rows(
    y: float, rows: Iterable[Sequence[str]], x: Sequence[float], pitch: float = 14
) -> list[Text]:
    """Place cells at the left edges `x`, the first row on the baseline `y`."""
    return [
        (at, y - pitch * n, text)
        for n, row in enumerate(rows)
        for at, text in zip(x, row, strict=False)
        if text
    ]


def set_texts(
    *pages: Iterable[Text],
    font: str = "Times-Roman",
    size: float = 10,
    width: float = 612,
    **options: Any,
) -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(width, 792), invariant=1, **options)
    for page in pages:
        for x, y, text, *other in page:
            canvas.setFont(other[0] if other else font, size)
            canvas.drawString(x, y, text)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def write(canvas: Canvas, x: float, y: float, text: str, font: str = "Times-Roman") -> None:
    canvas.setFont(font, 10)
    canvas.drawString(x, y, text)


def set_page(
    rows: Sequence[Row],
    draw_cell: DrawCell = write,
    *,
    header: Row = ("Batch size", "Latency"),
    before: Callable[[Canvas], None] | None = None,
    font: str = "Times-Roman",
    **options: Any,
) -> bytes:
    """Set a table at (100, 700) with rows of 14 points; `draw_cell` draws the figure of the second
    row.
    """
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(612, 792), invariant=1, **options)
    if before:
        before(canvas)
    for place, cells in enumerate((header, *rows)):
        for column, text in enumerate(cells):
            x = 100 + 80 * column
            y = 700 - 14 * place
            canvas.saveState()
            if place == 2 and column == 1 and draw_cell is not write:
                draw_cell(canvas, x, y, text)
            else:
                write(canvas, x, y, text, font)
            canvas.restoreState()
    canvas.save()
    return out.getvalue()


def make_stream(content: bytes, dictionary: bytes = b"") -> bytes:
    return b"<<%s /Length %d>>\nstream\n%s\nendstream" % (dictionary, len(content), content)


def set_lines(*rows: Sequence[str], y: float = 700) -> bytes:
    """Return the operators that set rows of cells at (100, y), 80 points wide and 14 high."""
    return b"".join(
        b"BT /F1 10 Tf %g %g Td (%s) Tj ET\n" % (100 + 80 * column, y - 14 * place, text.encode())
        for place, row in enumerate(rows)
        for column, text in enumerate(row)
    )


def make_pdf(
    content: bytes,
    *,
    packed: bytes = b"",
    page: bytes = b"",
    catalog: bytes = b"",
    fonts: bytes = b"",
    resources: bytes = b"",
    others: Sequence[bytes] = (),
) -> bytes:
    """Return a PDF of one page with the stream `content`; `others` are its objects from number 6
    on.
    """
    objects = [
        b"<</Type /Catalog /Pages 2 0 R %s>>" % catalog,
        b"<</Type /Pages /Kids [3 0 R] /Count 1>>",
        b"<</Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources <</Font <</F1 5 0 R %s>> %s>> %s>>" % (fonts, resources, page),
        make_stream(content, packed),
        b"<</Type /Font /Subtype /Type1 /BaseFont /Times-Roman>>",
        *others,
    ]
    out = b"%PDF-1.7\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return (
        out + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<</Size %d /Root 1 0"
        b" R>>\nstartxref\n%d\n%%%%EOF" % (size, table, size, len(out))
    )
