"""What is told and not read: each construct that hides or alters a figure, one at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from ipu_results.record.read import ParsedDocument
from ipu_results.record.read.pdf import read_pdf
from reportlab.pdfbase import pdfdoc, pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from tests.cases import every_case
from tests.record.read.pdf_support import (
    DrawCell,
    list_rows,
    make_pdf,
    make_stream,
    read_paper,
    set_lines,
    set_page,
    write,
)
from tests.record.read.reading_support import PAPER_HEADERS, problems

ROWS = [("2", "1.36"), ("4", "1.94"), ("6", "2.82"), ("8", "3.32")]
END = 17.5  # where the figure of the second row ends, from its start


def drawn(operators: str) -> DrawCell:
    """Draw a cell by operators of PDF, from its place: `()` is its text, `(7)` is another one."""

    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        canvas.translate(x, y)
        for part in re.split(r"(\(.*?\))", operators):
            if part.startswith("("):
                write(canvas, 0, 0, part[1:-1] or text)
            else:
                canvas._code.append(part)

    return draw_cell


def followed_by(mark: str, size: float, rise: float) -> DrawCell:
    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        write(canvas, x, y, text)
        canvas.setFont("Times-Roman", size)
        canvas.drawString(x + END, y + rise, mark)

    return draw_cell


def in_a_covered_form(canvas: Canvas, x: float, y: float, text: str) -> None:
    canvas.beginForm("cell")
    drawn("() 1 g -2 -3 30 13 re f")(canvas, x, y, text)
    canvas.endForm()
    canvas.doForm("cell")


@every_case(__file__, "plain")
def test_plain_figure_is_read_once(operators: str) -> None:
    document = read_paper(set_page(ROWS, drawn(operators)))
    assert (document.problems, list_rows(document)) == ((), ROWS)


@every_case(__file__, "not_plain")
def test_figure_that_is_not_plain_is_a_problem_of_its_row(operators: str, message: str) -> None:
    check_told(drawn(operators), message)


@pytest.mark.parametrize(("size", "rise"), [(7, 3.6), (9.5, 0), (10, 0.9), (8, -2)])
def test_digit_of_another_size_or_height_is_a_problem_of_its_row(size: float, rise: float) -> None:
    check_told(followed_by("2", size, rise), "digits differ in size or height")


def test_figure_that_is_covered_in_a_form_is_a_problem_of_its_row() -> None:
    check_told(in_a_covered_form, "cannot be seen")


def check_told(draw_cell: DrawCell, message: str) -> None:
    check_row(read_paper(set_page(ROWS, draw_cell)), message)


def check_row(document: ParsedDocument, message: str) -> None:
    """Check that the second row is told, and the others are read."""
    assert problems(document)[0] == "qwant_table_1 2 row-width"
    assert message in document.problems[0].message
    assert list_rows(document) == [ROWS[0], *ROWS[2:]]


def test_raised_letter_is_a_footnote_mark() -> None:
    document = read_paper(set_page(ROWS, followed_by("a", 7, 3.6)))
    assert list_rows(document) == ROWS
    assert document.tables[0].rows[1].footnotes == ((1, "a"),)


@pytest.mark.parametrize(("size", "rise"), [(5, 6.5), (8, -6)])
def test_mark_on_a_line_of_its_own_is_never_a_part_of_a_row(size: float, rise: float) -> None:
    document = read_paper(set_page(ROWS, followed_by("2", size, rise)))
    assert document.problems
    assert ROWS[1] not in list_rows(document)
    assert set(list_rows(document)) <= set(ROWS)


def annotate(canvas: Canvas) -> None:
    note = {"Type": pdfdoc.PDFName("Annot"), "Subtype": pdfdoc.PDFName("Popup")}
    box = pdfdoc.PDFArray([100, 670, 120, 680])
    canvas._addAnnotation(pdfdoc.PDFDictionary(note | {"Rect": box}))


def add_field(canvas: Canvas) -> None:
    canvas.acroForm.textfield(value="9.87", x=180, y=670, width=40, height=10, fontSize=8)


@pytest.mark.parametrize(
    "options", [{"before": annotate}, {"before": add_field}, {"cropBox": (90, 668, 300, 720)}]
)
def test_page_with_a_note_or_a_field_or_a_cropped_one_is_told(options: dict[str, Any]) -> None:
    document = read_paper(set_page(ROWS, **options))
    assert (document.tables, document.problems[0].table_name) == ((), "qwant_table_1")
    assert "the page has a note or a field, or is cropped" in document.problems[0].message


@pytest.mark.parametrize(("state", "rows"), [("ON", ROWS), ("OFF", ROWS[:1])])
def test_layer_that_is_off_is_not_read(state: str, rows: list[tuple[str, str]]) -> None:
    shown = set_lines(("Batch size", "Latency"), ROWS[0])
    optional = set_lines(*ROWS[1:], y=672)
    data = make_pdf(
        shown + b"/OC /Layer BDC\n" + optional + b"EMC\n",
        catalog=b"/OCProperties <</OCGs [6 0 R] /D <</Order [] /%s [6 0 R]>>>>" % state.encode(),
        resources=b"/Properties <</Layer 6 0 R>>",
        others=[b"<</Type /OCG /Name (layer)>>"],
    )
    assert list_rows(read_paper(data)) == rows


def turn(page: int, text: int) -> Callable[[Canvas], None]:
    """Turn the page, and the text on it, by some degrees."""

    def turn(canvas: Canvas) -> None:
        canvas.setPageRotation(page)
        if text:
            canvas.translate(300, 400)
            canvas.rotate(text)
            canvas.translate(-250, -650)

    return turn


@pytest.mark.parametrize(("page", "text"), [(90, 0), (180, 0), (0, 180), (0, 20)])
def test_turned_table_is_a_problem(page: int, text: int) -> None:
    document = read_paper(set_page(ROWS, before=turn(page, text)))
    assert problems(document) == ["qwant_table_1 unknown-header"]
    assert "turned" in document.problems[0].message


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_turned_page_with_upright_text_is_read(angle: int) -> None:
    assert list_rows(read_paper(set_page(ROWS, before=turn(angle, angle)))) == ROWS


# --- fonts that do not prove their digits

GLYPH = make_stream(b"600 0 0 0 500 700 d1 0 0 400 700 re f")
TYPE_3 = (
    b"<</Type /Font /Subtype /Type3 /FontBBox [0 0 600 700] /FontMatrix [0.001 0 0 0.001 0 0]"
    b" /CharProcs <</a 7 0 R>> /FirstChar 46 /LastChar 57 /Widths [%s]"
    b" /Encoding <</Differences [46 /period /a /zero /one /two /three /four /five /six /seven"
    b" /eight /nine]>>>>"
) % (b"600 " * 12)
MAP = b"/CIDInit /ProcSet findresource begin begincmap\n1 beginbfchar\n%s\nendbfchar\nendcmap"


def read_font(font: bytes, other: bytes) -> ParsedDocument:
    """Read a page with the figure of the second row in a font of its own."""
    row = b"BT /F1 10 Tf 100 672 Td (4) Tj ET BT /F2 10 Tf 180 672 Td (1.94) Tj ET\n"
    lines = set_lines(("Batch size", "Latency"), ROWS[0]) + row + set_lines(*ROWS[2:], y=658)
    return read_paper(make_pdf(lines, fonts=b"/F2 6 0 R", others=[font, other]))


def read_type_1(font: str, mapped: str) -> ParsedDocument:
    dictionary = f"<</Type /Font /Subtype /Type1 {font}"
    if mapped:
        dictionary += " /ToUnicode 7 0 R"
    return read_font(f"{dictionary}>>".encode(), make_stream(MAP % mapped.encode()))


@every_case(__file__, "font")
def test_font_that_does_not_prove_its_digits_is_a_problem_of_the_row(
    font: str, map: str, message: str
) -> None:
    check_row(read_type_1(font, map), message)


def test_drawn_font_does_not_prove_its_digits() -> None:
    check_row(read_font(TYPE_3, GLYPH), "does not prove")


def test_name_that_the_encoding_gives_a_glyph_is_what_the_page_shows() -> None:
    names = "/BaseFont /Helvetica /Encoding <</Differences [57 /one 57 /two]>>"
    assert ("4", "1.24") in list_rows(read_type_1(names, ""))


def test_digit_that_its_font_draws_raised_is_a_problem() -> None:
    pdfmetrics.registerFont(TTFont("Vera", "Vera.ttf"))
    rows = [("2", "1.36\u00b9"), ("4", "1.94")]
    plain = set_page(rows, font="Vera", pageCompression=0)
    data = plain.replace(b"<00B9>", b"<0031>")
    assert data != plain
    document = read_pdf(data, PAPER_HEADERS)
    assert "draws a digit raised" in document.problems[0].message
    assert list_rows(document) == rows[1:]
