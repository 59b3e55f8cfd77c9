"""Write PDF files object by object: for what reportlab cannot make."""

from __future__ import annotations

from collections.abc import Sequence


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
    resources: bytes = b"",
    others: Sequence[bytes] = (),
) -> bytes:
    """Return a PDF of one page with the stream `content`; `others` are its objects from number 6 on."""
    objects = [
        b"<</Type /Catalog /Pages 2 0 R %s>>" % catalog,
        b"<</Type /Pages /Kids [3 0 R] /Count 1>>",
        b"<</Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources <</Font <</F1 5 0 R>> %s>> %s>>" % (resources, page),
        make_stream(content, packed),
        b"<</Type /Font /Subtype /Type1 /BaseFont /Times-Roman>>",
        *others,
    ]
    out, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return out + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<</Size %d /Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        size,
        table,
        size,
        len(out),
    )
