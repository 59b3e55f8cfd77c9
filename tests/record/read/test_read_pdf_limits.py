"""PDF files that unpack to, or draw, more than memory holds are refused before they are read."""

from __future__ import annotations

import base64
import io
import resource
import zlib
from functools import cache

import pytest
from ipu_results.errors import DamagedDocumentError, DocumentTooLargeError
from ipu_results.kit.limits import MAX_UNPACKED_PDF_BYTES, MAX_UNPACKED_STREAM_BYTES
from ipu_results.record.read.pdf.limits import open_pdf
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from tests.record.read.pdf_support import make_pdf, make_stream, read_paper, set_lines

pytestmark = pytest.mark.slow  # streams are made that unpack to a lot

ROWS = set_lines(("Batch size", "Latency"), ("2", "1.36"), ("4", "1.94"))
MEGABYTE = 1_000_000
FLATE = b"/Filter /FlateDecode"
TOO_LONG = f"a stream that unpacks to more than {MAX_UNPACKED_STREAM_BYTES:,}"
UNBOUNDED = "a stream that may unpack to any size"


def deflate_blanks(size: int) -> bytes:
    packer = zlib.compressobj(9)
    parts = [packer.compress(b" " * MEGABYTE) for _ in range(size // MEGABYTE)]
    return b"".join(parts) + packer.flush()


@cache
def make_bomb() -> bytes:
    return deflate_blanks(MAX_UNPACKED_STREAM_BYTES + 2 * MEGABYTE)


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        (FLATE, TOO_LONG),
        (b"/Filter [/FlateDecode]", TOO_LONG),
        (b"/Filter /Fl#61teDecode", TOO_LONG),
        (b"/Filter [/ASCII85Decode /FlateDecode]", TOO_LONG),
        (b"/F /Fl", UNBOUNDED),
        (b"/Filter 6 0 R", UNBOUNDED),
        (b"/Filter [/FlateDecode /FlateDecode]", UNBOUNDED),
        (b"/Filter /LZWDecode", UNBOUNDED),
        (b"/Filter /RunLengthDecode", UNBOUNDED),
    ],
)
def test_stream_that_may_unpack_to_too_much_is_refused(packed: bytes, message: str) -> None:
    bomb = make_bomb()
    content = base64.a85encode(bomb) + b"~>" if b"85" in packed else bomb
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for data in (
        make_pdf(content, packed=packed, others=[b"/FlateDecode"]),
        make_pdf(ROWS, others=[b"/FlateDecode", make_stream(content, packed)]),
    ):
        with pytest.raises(DocumentTooLargeError, match=message):
            read_paper(data)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < MAX_UNPACKED_STREAM_BYTES / 4


def test_many_streams_that_unpack_to_too_much_together_are_refused() -> None:
    part = make_stream(deflate_blanks(90 * MEGABYTE), FLATE)
    data = make_pdf(b"", others=[part] * (MAX_UNPACKED_PDF_BYTES // (90 * MEGABYTE) + 1))
    with pytest.raises(
        DocumentTooLargeError, match=f"^unpacks to more than {MAX_UNPACKED_PDF_BYTES:,}"
    ):
        open_pdf(data)


def test_large_image_is_refused_before_it_is_drawn() -> None:
    picture = b"/Subtype /Image /Width 90000 /Height 90000 /Filter /DCTDecode"
    with pytest.raises(DocumentTooLargeError, match="an image of more than"):
        read_paper(make_pdf(ROWS, others=[make_stream(b"", picture)]))


def test_encrypted_stream_that_unpacks_to_too_much_is_refused() -> None:
    out = io.BytesIO()
    canvas = Canvas(out, pageCompression=1, encrypt=StandardEncryption("", "owner"))
    canvas._code.append(" " * (MAX_UNPACKED_STREAM_BYTES + MEGABYTE))
    canvas.save()
    with pytest.raises(DocumentTooLargeError, match="a stream that unpacks"):
        read_paper(out.getvalue())


FORM = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources <</XObject <</X %d 0 R>>>>"


@pytest.mark.parametrize("levels", [1, 9])
def test_forms_that_draw_themselves_or_others_many_times_are_refused(levels: int) -> None:
    numbers = [6] if levels == 1 else range(7, 7 + levels)
    forms = [make_stream(b"/X Do\n" * 10, FORM % number) for number in numbers]
    last = make_stream(b"BT /F1 10 Tf (0123456789) Tj ET\n" * 10, FORM % 6)
    content = ROWS + b"/X % forms\nDo\n"
    data = make_pdf(content, resources=b"/XObject <</X 6 0 R>>", others=[*forms, last])
    with pytest.raises(DocumentTooLargeError, match="draws more than 10,000,000 bytes on page 1"):
        read_paper(data)


@pytest.mark.parametrize(("times", "message"), [(2, "characters on page 1"), (20, "bytes on page")])
def test_page_of_too_many_characters_is_refused(times: int, message: str) -> None:
    text = b"BT /F1 1 Tf " + b"(0)Tj " * 150_000 + b"ET\n"
    page = b"/Contents [%s]" % (b"4 0 R " * times)
    data = make_pdf(zlib.compress(ROWS + text), packed=FLATE, page=page)
    with pytest.raises(DocumentTooLargeError, match=message):
        read_paper(data)


def test_damaged_stream_and_lost_index_are_refused() -> None:
    packed = zlib.compress(ROWS)
    with pytest.raises(DamagedDocumentError, match="a stream of it is not whole"):
        read_paper(make_pdf(packed[:-6] + b"\0" * 6, packed=FLATE))
    data = make_pdf(ROWS)
    start = data.rsplit(b"startxref", 1)[1].split()[0]
    with pytest.raises(DamagedDocumentError, match="its index is not where its end states"):
        read_paper(data.replace(start, b"%d" % (int(start) + 7)))
