"""PDF files that unpack to more than memory holds are refused, before they are unpacked."""

from __future__ import annotations

import base64
import io
import resource
import zlib
from functools import cache

import pytest
from ipu_results.errors import DamagedDocumentError, DocumentTooLargeError
from ipu_results.ground.limits import MAX_UNPACKED_PDF_BYTES, MAX_UNPACKED_STREAM_BYTES
from ipu_results.read.pdf import read_pdf
from ipu_results.read.pdf_limits import PackedStream, check_unpacked_size, measure_stream
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from tests.read.pdf_support import make_pdf, make_stream, set_lines
from tests.read.reading_support import PAPER_HEADERS

pytestmark = pytest.mark.slow  # streams are made that unpack to a lot

ROWS = (("Batch size", "Latency"), ("2", "1.36"), ("4", "1.94"))
MEGABYTE = 1_000_000
FLATE = b"/Filter /FlateDecode"


def deflate_blanks(size: int) -> bytes:
    packer = zlib.compressobj(9)
    parts = [packer.compress(bytes(MEGABYTE).replace(b"\0", b" ")) for _ in range(size // MEGABYTE)]
    return b"".join(parts) + packer.flush()


@cache
def make_bomb() -> bytes:
    return deflate_blanks(MAX_UNPACKED_STREAM_BYTES + 2 * MEGABYTE)


@cache
def make_twice() -> bytes:
    return zlib.compress(make_bomb(), 9)


BOMBS = {
    "content": lambda: make_pdf(make_bomb(), packed=FLATE),
    "in an array": lambda: make_pdf(make_bomb(), packed=b"/Filter [/FlateDecode]"),
    "short name": lambda: make_pdf(make_bomb(), packed=b"/F /Fl"),
    "escaped name": lambda: make_pdf(make_bomb(), packed=b"/Filter /Fl#61teDecode"),
    "indirect name": lambda: make_pdf(
        make_bomb(), packed=b"/Filter 6 0 R", others=[b"/FlateDecode"]
    ),
    "twice": lambda: make_pdf(make_twice(), packed=b"/Filter [/FlateDecode /FlateDecode]"),
    "as text": lambda: make_pdf(
        base64.a85encode(make_twice()) + b"~>", packed=b"/Filter [/A85 /Fl /Fl]"
    ),
    "other object": lambda: make_pdf(set_lines(*ROWS), others=[make_stream(make_bomb(), FLATE)]),
    "runs": lambda: make_pdf(
        b"\x81 " * (MAX_UNPACKED_STREAM_BYTES // 128 + 9), packed=b"/Filter /RunLengthDecode"
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_stream_that_unpacks_to_too_much_is_refused(name: str) -> None:
    data = BOMBS[name]()
    assert len(data) < 2 * MEGABYTE
    with pytest.raises(
        DocumentTooLargeError,
        match=f"a stream that unpacks to more than {MAX_UNPACKED_STREAM_BYTES:,}",
    ):
        read_pdf(data, PAPER_HEADERS)


def test_phrases_are_measured() -> None:
    # the example of PDF 32000-1, 7.4.4: ten bytes
    phrases = memoryview(bytes.fromhex("800B6050220C0C8501"))
    for part, size in ((phrases, 10), (memoryview(b"\xff" * 9), 9)):
        assert measure_stream(PackedStream(part, [b"LZWDecode"], 100)) == size
    with pytest.raises(DocumentTooLargeError):
        measure_stream(PackedStream(phrases, [b"LZWDecode"], 8))


def test_refusal_does_not_unpack_the_stream() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DocumentTooLargeError):
        read_pdf(BOMBS["content"](), PAPER_HEADERS)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < MAX_UNPACKED_STREAM_BYTES / 4


@pytest.mark.slow
def test_many_streams_that_unpack_to_too_much_together_are_refused() -> None:
    part = make_stream(deflate_blanks(90 * MEGABYTE), b"/Filter /FlateDecode")
    data = make_pdf(b"", others=[part] * (MAX_UNPACKED_PDF_BYTES // (90 * MEGABYTE) + 1))
    with pytest.raises(
        DocumentTooLargeError, match=f"^unpacks to more than {MAX_UNPACKED_PDF_BYTES:,} bytes"
    ):
        check_unpacked_size(data)


def test_large_image_is_refused_before_it_is_drawn() -> None:
    picture = (
        b"/Type /XObject /Subtype /Image /Width 90000 /Height 90000 /BitsPerComponent 8 /ColorSpace"
        b" /DeviceGray"
    )
    with pytest.raises(DocumentTooLargeError, match="an image of more than"):
        read_pdf(make_pdf(set_lines(*ROWS), others=[make_stream(b"", picture)]), PAPER_HEADERS)


def test_encrypted_stream_that_unpacks_to_too_much_is_refused() -> None:
    out = io.BytesIO()
    canvas = Canvas(out, pageCompression=1, encrypt=StandardEncryption("", "owner"))
    canvas._code.append(" " * (MAX_UNPACKED_STREAM_BYTES + MEGABYTE))
    canvas.save()
    with pytest.raises(DocumentTooLargeError, match="a stream that unpacks"):
        read_pdf(out.getvalue(), PAPER_HEADERS)


def test_nested_forms_are_refused() -> None:
    text = b"BT /F1 10 Tf (0123456789) Tj ET\n" * 10
    levels = [
        make_stream(
            b"/X Do\n" * 10,
            b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources <</XObject <</X %d 0 R>>>>"
            % (number + 1),
        )
        for number in range(6, 14)
    ]
    last = make_stream(
        text, b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources <</Font <</F1 5 0 R>>>>"
    )
    data = make_pdf(
        set_lines(*ROWS) + b"/X % forms\nDo\n",
        resources=b"/XObject <</X 6 0 R>>",
        others=[*levels, last],
    )
    with pytest.raises(
        DocumentTooLargeError,
        match="draws more than 1,000,000 characters, lines and images on page 1",
    ):
        read_pdf(data, PAPER_HEADERS)


@pytest.mark.parametrize("repeated", [False, True])
def test_page_of_too_many_characters_is_refused_before_they_are_drawn(repeated: bool) -> None:
    text = b"BT /F1 1 Tf " + b"(0)Tj " * (110_000 if repeated else 1_100_000) + b"ET\n"
    page = b"/Contents [%s]" % (b"4 0 R " * 10) if repeated else b""
    data = make_pdf(
        zlib.compress(set_lines(*ROWS) + text), packed=b"/Filter /FlateDecode", page=page
    )
    with pytest.raises(DocumentTooLargeError, match="draws more than 1,000,000"):
        read_pdf(data, PAPER_HEADERS)


@pytest.mark.parametrize("times", [1, 2])
def test_form_that_draws_itself_is_refused(times: int) -> None:
    form = make_stream(
        b"/X Do\n" * times,
        b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources <</XObject <</X 6 0 R>>>>",
    )
    data = make_pdf(
        set_lines(*ROWS) + b"/X Do\n", resources=b"/XObject <</X 6 0 R>>", others=[form]
    )
    with pytest.raises(DocumentTooLargeError, match="draws itself"):
        read_pdf(data, PAPER_HEADERS)


def test_index_that_is_not_where_the_end_states_is_refused() -> None:
    data = make_pdf(set_lines(*ROWS))
    start = int(data.rsplit(b"startxref", 1)[1].split()[0])
    with pytest.raises(DamagedDocumentError, match="its index is not where its end states"):
        read_pdf(data.replace(str(start).encode(), str(start + 7).encode()), PAPER_HEADERS)
