"""What is told and not read: each construct that hides or alters a figure, one at a time."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from ipu_results.read.pdf import read_pdf
from reportlab.pdfbase import pdfdoc, pdfmetrics
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from tests.read.pdf_support import (
    DrawCell,
    list_rows,
    make_pdf,
    make_stream,
    read_paper,
    set_lines,
    set_page,
    write,
)
from tests.read.reading_support import PAPER_HEADERS, problems

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


def followed_by(mark: str, size: float, rise: float, figure: str = "") -> DrawCell:
    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        text = figure or text
        write(canvas, x, y, text)
        canvas.setFont("Times-Roman", size)
        canvas.drawString(x + stringWidth(text, "Times-Roman", 10), y + rise, mark)

    return draw_cell


def annotated(kind: str, **more: object) -> DrawCell:
    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        write(canvas, x, y, text)
        entries = {"Type": "Annot", "Subtype": kind} | more
        names = {key: pdfdoc.PDFName(value) for key, value in entries.items()}
        box = pdfdoc.PDFArray([x, y - 2, x + 20, y + 8])
        canvas._addAnnotation(pdfdoc.PDFDictionary(names | {"Rect": box}))

    return draw_cell


def in_a_field(canvas: Canvas, x: float, y: float, text: str) -> None:
    write(canvas, x, y, text)
    canvas.acroForm.textfield(value="9.87", x=x, y=y - 2, width=40, height=10, fontSize=8)


def in_a_covered_form(canvas: Canvas, x: float, y: float, text: str) -> None:
    canvas.beginForm("cell")
    drawn("() 1 g -2 -3 30 13 re f")(canvas, x, y, text)
    canvas.endForm()
    canvas.doForm("cell")


def shaded(canvas: Canvas, x: float, y: float, text: str) -> None:
    path = canvas.beginPath()
    path.rect(x, y - 2, 20, 10)
    canvas.clipPath(path, stroke=0)
    canvas.linearGradient(x, y, x + 20, y, ("red", "white"), extend=False)
    write(canvas, x, y, text)


@pytest.mark.parametrize(
    "draw_cell",
    [
        pytest.param(drawn(operators), id=operators)
        for operators in (
            "0 0 0.5 rg -40 -3 80 13 re f 1 g ()",
            "0.83 g -4 -3 40 13 re f 0 g ()",
            "0.8 0.8 0.8 rg ()",
            "0 1 1 0 k ()",
            "1 Tr ()",
            "0.6 0 0 0.6 0 0 cm ()",
            "-3 -3 40 14 re W n ()",
            # rules and underlines are not strikes
            "() 0.5 w -1 -1.5 m 19 -1.5 l S",
            "() 0.5 w -40 9 m 60 9 l S",
            "() 0.5 w -40 -3.5 m 60 -3.5 l S",
        )
    ],
)
def test_plain_figure_is_read_once(draw_cell: DrawCell) -> None:
    document = read_paper(set_page(ROWS, draw_cell))
    assert (document.problems, list_rows(document)) == ((), ROWS)


@pytest.mark.parametrize(
    ("draw_cell", "message"),
    [
        # not seen, or not all of it
        (drawn("1 1 1 rg ()"), "cannot be seen"),
        (drawn("0.95 g ()"), "cannot be seen"),
        (drawn("0 0 0.5 rg -4 -3 40 13 re f ()"), "cannot be seen"),
        (drawn("() 1 g -2 -3 30 13 re f"), "cannot be seen"),
        (in_a_covered_form, "cannot be seen"),
        (drawn("3 Tr ()"), "cannot be seen"),
        (drawn("7 Tr ()"), "cannot be seen"),
        (drawn("-90 -90 10 10 re W n ()"), "cannot be seen"),
        (drawn("-2 -3 9 20 re W n ()"), "cannot be seen"),
        (drawn("-2 -3 13 20 re W n ()"), "a part of it is hidden"),
        (drawn("() 1 g 3 -3 30 13 re f"), "a part of it is hidden"),
        (drawn("() 1 g 0 4 30 5 re f"), "a part of it is hidden"),
        (drawn("0.2 0 0 0.2 0 0 cm ()"), "too small"),
        (drawn(f"() 1 0 0 1 {END} 0 cm 1 g (7)"), "a part of it is hidden"),
        # lines, signs, pictures and notes
        (drawn("() 0.5 w -1 3 m 19 3 l S"), "a part of it is hidden"),
        (drawn("1 0 0 RG 1 w -1 3 m 19 3 l S ()"), "a part of it is hidden"),
        (drawn("() 0.5 w -1 0.5 m 19 6 l S"), ""),
        (drawn("() -1 2.6 20 0.7 re f"), "a part of it is hidden"),
        (drawn("() 0.5 w 0 7.5 m 6 7.5 l S"), "a line is drawn above"),
        (drawn("(1h 36m) 0.5 w 0 7.5 m 6 7.5 l S"), "a line is drawn above"),
        (drawn("() -4 2.3 3 0.7 re f"), "something is drawn in the row"),
        (drawn("() -3 0 0.9 6.5 re f"), "something is drawn in the row"),
        (shaded, ""),
        (annotated("FreeText"), "a note, a field"),
        (annotated("Popup"), "a note, a field"),
        (in_a_field, "a note, a field"),
        # other text
        (drawn("() 1 0 0 1 3 0 cm (9.87)"), "other text is printed over it"),
        (drawn("() 1 0 0 1 0.3 0 cm ()"), "other text is printed over it"),
        (drawn("() 0 1 -1 0 8 0 cm (7)"), "turned text is in the row"),
        (drawn("-1 0 0 1 20 0 cm ()"), "missing in the row"),
        (followed_by("2", 7, 3.6), "digits differ in size or height"),
        (followed_by("3", 7, 3.6, "10"), "digits differ in size or height"),
        (followed_by("2", 9.5, 0), "digits differ in size or height"),
        (followed_by("2", 10, 0.9), "digits differ in size or height"),
        (followed_by("2", 8, -2), "digits differ in size or height"),
    ],
)
def test_figure_that_is_not_plain_is_a_problem_of_its_row(
    draw_cell: DrawCell, message: str
) -> None:
    document = read_paper(set_page(ROWS, draw_cell))
    assert problems(document)[0] == ("qwant_table_1", 2, "row-width")
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


def test_sheet_that_is_cropped_is_told() -> None:
    document = read_paper(set_page(ROWS, cropBox=(90, 668, 300, 720)))
    assert (document.tables, problems(document)[0][0]) == ((), "qwant_table_1")


@pytest.mark.parametrize(("state", "rows"), [("ON", ROWS), ("OFF", ROWS[:1])])
def test_layer_that_is_off_is_not_read(state: str, rows: list[tuple[str, str]]) -> None:
    shown, optional = set_lines(("Batch size", "Latency"), *ROWS[:1]), set_lines(*ROWS[1:], y=672)
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


@pytest.mark.parametrize(("page", "text"), [(90, 0), (180, 0), (0, 90), (0, 180), (0, 20)])
def test_turned_table_is_a_problem(page: int, text: int) -> None:
    document = read_paper(set_page(ROWS, before=turn(page, text)))
    assert problems(document) == [("qwant_table_1", None, "unknown-header")]
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
TO_UNICODE = make_stream(
    b"/CIDInit /ProcSet findresource begin begincmap\n1 beginbfchar\n%s\nendbfchar\nendcmap"
)


def set_font(font: bytes, *others: bytes) -> bytes:
    """Set the figure of the second row in a font of its own."""
    row = b"BT /F1 10 Tf 100 672 Td (4) Tj ET BT /F2 10 Tf 180 672 Td (1.94) Tj ET\n"
    lines = set_lines(("Batch size", "Latency"), ROWS[0]) + row + set_lines(*ROWS[2:], y=658)
    return make_pdf(lines, fonts=b"/F2 6 0 R", others=[font, *others])


def name_font(name: bytes, more: bytes = b"") -> bytes:
    return b"<</Type /Font /Subtype /Type1 /BaseFont /%s %s>>" % (name, more)


MAPPED = name_font(b"Helvetica", b"/Encoding /WinAnsiEncoding /ToUnicode 7 0 R")


def map_code(text: bytes) -> bytes:
    return make_stream(TO_UNICODE.partition(b"stream\n")[2].rpartition(b"\nend")[0] % text)


@pytest.mark.parametrize(
    ("font", "others", "message"),
    [
        (name_font(b"ZapfDingbats"), (), "does not prove"),
        (name_font(b"Symbol"), (), "does not prove"),
        (name_font(b"Helvetica", b"/Encoding /MacExpertEncoding"), (), "does not prove"),
        (
            name_font(b"Helvetica", b"/Encoding <</Differences [57 /one 57 /two]>>"),
            (map_code(b"<39> <0039>"),),
            "",
        ),
        (TYPE_3, (GLYPH,), "does not prove"),
        (MAPPED, (map_code(b"<39> <0031>"),), "does not prove"),
        (MAPPED, (map_code(b"<2E> <200B>"),), "is not printed"),
        (MAPPED, (map_code(b"<2E> <0020>"),), "a blank of the row"),
        (MAPPED, (map_code(b"<2E> <00310032>"),), "no known character"),
    ],
)
def test_font_that_does_not_prove_its_digits_is_a_problem_of_the_row(
    font: bytes, others: tuple[bytes, ...], message: str
) -> None:
    document = read_paper(set_font(font, *others))
    figures = [row for row in list_rows(document) if row not in ROWS]
    if message:
        assert problems(document)[0] == ("qwant_table_1", 2, "row-width")
        assert message in document.problems[0].message
        assert figures == []
    else:  # a name that the encoding gives a glyph is what the page shows
        assert figures == [("4", "1.24")]


def test_digit_that_its_font_draws_raised_is_a_problem() -> None:
    pdfmetrics.registerFont(TTFont("Vera", "Vera.ttf"))
    rows = [("2", "1.36\u00b9"), ("4", "1.94")]
    plain = set_page(rows, font="Vera", pageCompression=0)
    data = plain.replace(b"<00B9>", b"<0031>")
    assert data != plain
    document = read_pdf(data, PAPER_HEADERS)
    assert "draws a digit raised" in document.problems[0].message
    assert list_rows(document) == rows[1:]
