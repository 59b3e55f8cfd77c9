"""What a reader of a PDF sees: hidden, struck, doubled, raised and overprinted text, and tables in other shapes."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.read import ParsedDocument, SourceTable
from ipu_results.read.pdf import read_pdf
from reportlab.lib.colors import CMYKColor, Color, black, lightgrey, navy, white
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from tests.read.pdf_support import make_pdf, set_lines
from tests.read.reading_support import PAPER_HEADERS, problems

ROWS = (("2", "1.36"), ("4", "1.94"), ("6", "2.82"), ("8", "3.32"))
WITHOUT_THE_SECOND = (ROWS[0], *ROWS[2:])
FONT, SIZE = "Times-Roman", 10.0
DrawCell = Callable[[Canvas, float, float, str], None]


def draw(canvas: Canvas, x: float, y: float, text: str) -> None:
    canvas.setFont(FONT, SIZE)
    canvas.drawString(x, y, text)


def set_page(
    draw_cell: DrawCell = draw,
    *,
    rows: tuple[tuple[str, ...], ...] = ROWS,
    header: tuple[str, ...] = ("Batch size", "Latency"),
    before: Callable[[Canvas], None] | None = None,
    after: Callable[[Canvas], None] | None = None,
    **options: object,
) -> bytes:
    """Set a table at (100, 700) with rows of 14 points; `draw_cell` draws the figure of the second row."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(612, 792), invariant=1, **options)
    if before:
        before(canvas)
    for place, cells in enumerate((header, *rows)):
        for column, text in enumerate(cells):
            is_odd = place == 2 and column == 1
            canvas.saveState()
            (draw_cell if is_odd else draw)(canvas, 100 + 80 * column, 700 - 14 * place, text)
            canvas.restoreState()
    if after:
        after(canvas)
    canvas.save()
    return out.getvalue()


def read(data: bytes) -> ParsedDocument:
    return read_pdf(data, PAPER_HEADERS)


def cells(table: SourceTable) -> tuple[tuple[str, ...], ...]:
    return tuple(row.cells for row in table.rows)


def assert_read(data: bytes, rows: tuple[tuple[str, ...], ...] = ROWS) -> None:
    document = read(data)
    assert document.problems == ()
    assert [cells(table) for table in document.tables] == [rows]


def assert_second_row_refused(data: bytes, message: str) -> None:
    document = read(data)
    assert problems(document) == [("qwant_table_1", 2, "row-width")]
    assert message in document.problems[0].message
    assert [cells(table) for table in document.tables] == [WITHOUT_THE_SECOND]


# --- text that cannot be seen


def in_colour(text_colour: Color, background: Color | None = None) -> DrawCell:
    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        if background:
            canvas.setFillColor(background)
            canvas.rect(x - 4, y - 3, 40, 13, stroke=0, fill=1)
        canvas.setFillColor(text_colour)
        draw(canvas, x, y, text)

    return draw_cell


def in_gray(level: float) -> DrawCell:
    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        canvas.setFillGray(level)
        draw(canvas, x, y, text)

    return draw_cell


def covered(canvas: Canvas, x: float, y: float, text: str) -> None:
    draw(canvas, x, y, text)
    canvas.setFillColor(white)
    canvas.rect(x - 2, y - 3, 30, 13, stroke=0, fill=1)


def in_mode(mode: int) -> DrawCell:
    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        line = canvas.beginText(x, y)
        line.setFont(FONT, SIZE)
        line.setTextRenderMode(mode)
        line.textOut(text)
        canvas.drawText(line)

    return draw_cell


def in_size(size: float) -> DrawCell:
    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        canvas.setFont(FONT, size)
        canvas.drawString(x, y, text)

    return draw_cell


def clipped(canvas: Canvas, x: float, y: float, text: str) -> None:
    path = canvas.beginPath()
    path.rect(0, 0, 10, 10)
    canvas.clipPath(path, stroke=0)
    draw(canvas, x, y, text)


def in_a_covered_form(canvas: Canvas, x: float, y: float, text: str) -> None:
    canvas.beginForm("cell")
    covered(canvas, x, y, text)
    canvas.endForm()
    canvas.doForm("cell")


@pytest.mark.parametrize(
    "draw_cell",
    [
        in_colour(white),
        in_gray(1),
        in_colour(CMYKColor(0, 0, 0, 0)),
        in_colour(navy, navy),
        in_colour(Color(0.99, 0.99, 0.99)),
        in_colour(Color(0, 0, 0, alpha=0)),
        covered,
        in_a_covered_form,
        in_mode(3),
        in_mode(7),
        in_size(0.01),
        in_size(0.5),
        clipped,
    ],
)
def test_figure_that_cannot_be_seen_is_missing(draw_cell: DrawCell) -> None:
    assert_second_row_refused(set_page(draw_cell), "a figure is missing in the row")


@pytest.mark.parametrize(
    "draw_cell",
    [
        in_colour(white, navy),
        in_colour(black, lightgrey),
        in_colour(Color(0.8, 0.8, 0.8)),
        in_colour(CMYKColor(0, 1, 1, 0)),
        in_mode(1),
        in_mode(2),
        in_size(6),
    ],
)
def test_figure_in_any_colour_that_can_be_seen_is_read(draw_cell: DrawCell) -> None:
    assert_read(set_page(draw_cell))


def test_hidden_row_is_not_read() -> None:
    def draw_row(canvas: Canvas) -> None:
        canvas.setFillColor(white)
        draw(canvas, 100, 700 - 14 * 5, "10")
        draw(canvas, 180, 700 - 14 * 5, "9.99")

    assert_read(set_page(after=draw_row))


def test_figure_hidden_in_part_is_refused() -> None:
    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        draw(canvas, x, y, text)
        canvas.setFillColor(white)
        draw(canvas, x + stringWidth(text, FONT, SIZE), y, "7")

    assert_second_row_refused(set_page(draw_cell), "'1.947': a part of it cannot be seen")


def test_text_outside_the_crop_box_is_not_read() -> None:
    assert_read(set_page(cropBox=(50, 600, 300, 760)))
    assert_read(set_page(cropBox=(90, 668, 300, 720)), ROWS[:2])
    with pytest.raises(UnrecognisedDocumentError):
        read(set_page(cropBox=(90, 600, 170, 720)))


@pytest.mark.parametrize(("state", "rows"), [("ON", ROWS), ("OFF", ROWS[:1])])
def test_layer_that_is_off_is_not_read(state: str, rows: tuple[tuple[str, ...], ...]) -> None:
    shown, optional = set_lines(("Batch size", "Latency"), *ROWS[:1]), set_lines(*ROWS[1:], y=672)
    content = shown + b"/OC /Layer BDC\n" + optional + b"EMC\n"
    data = make_pdf(
        content,
        catalog=b"/OCProperties <</OCGs [6 0 R] /D <</Order [] /%s [6 0 R]>>>>" % state.encode(),
        resources=b"/Properties <</Layer 6 0 R>>",
        others=[b"<</Type /OCG /Name (layer)>>"],
    )
    assert_read(data, rows)


# --- text that is struck through or printed over


def struck(start: float, end: float, rise: float, end_rise: float | None = None, thickness: float = 0.5) -> DrawCell:
    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        draw(canvas, x, y, text)
        canvas.setLineWidth(thickness)
        canvas.line(x + start, y + rise, x + end, y + (rise if end_rise is None else end_rise))

    return draw_cell


def struck_by_a_bar(canvas: Canvas, x: float, y: float, text: str) -> None:
    draw(canvas, x, y, text)
    canvas.rect(x - 1, y + 2.6, 20, 0.7, stroke=0, fill=1)


@pytest.mark.parametrize("draw_cell", [struck(-1, 19, 3), struck(-1, 19, 0.5, 6), struck(0, 6, 3), struck_by_a_bar])
def test_struck_figure_is_refused(draw_cell: DrawCell) -> None:
    assert_second_row_refused(set_page(draw_cell), "'1.94': it is struck through")


@pytest.mark.parametrize("draw_cell", [struck(-1, 19, -1.2), struck(-40, 60, 9), struck(-40, 60, -3.5)])
def test_rules_and_underlines_are_not_strikes(draw_cell: DrawCell) -> None:
    assert_read(set_page(draw_cell))


def test_figure_printed_over_another_is_refused() -> None:
    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        covered(canvas, x, y, text)
        canvas.setFillColor(black)
        draw(canvas, x, y, "9.87")

    assert_second_row_refused(set_page(draw_cell), "other text is printed over it")


@pytest.mark.parametrize("shift", [(0, 0), (0.3, 0), (0.4, -0.4), (1.0, -0.5)])
def test_figure_struck_twice_is_read_once(shift: tuple[float, float]) -> None:
    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        for step in range(2):
            draw(canvas, x + step * shift[0], y + step * shift[1], text)

    assert_read(set_page(draw_cell))


def test_equal_digits_next_to_one_another_are_kept() -> None:
    rows = (("11", "111.11"), ("22", "2222.22"), ("4444", "0.00"))
    assert_read(set_page(rows=rows), rows)


# --- digits that differ from their neighbours


def followed_by(mark: str, size: float, rise: float, figure: str | None = None) -> DrawCell:
    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        text = figure or text
        draw(canvas, x, y, text)
        canvas.setFont(FONT, size)
        canvas.drawString(x + stringWidth(text, FONT, SIZE), y + rise, mark)

    return draw_cell


@pytest.mark.parametrize(("size", "rise"), [(7, 3.6), (8, 3), (8.5, 3.3), (9.3, 3), (6, 4.5)])
def test_raised_digit_is_a_footnote_mark(size: float, rise: float) -> None:
    [table] = read(set_page(followed_by("2", size, rise))).tables
    assert cells(table) == ROWS
    assert table.rows[1].footnotes == ((1, "2"),)


@pytest.mark.parametrize(("size", "rise"), [(8.5, 0), (9.5, 0), (9.5, 1), (10, 0.9), (10, 3), (8, 0), (8, -2), (12, 0)])
def test_digit_of_another_size_or_height_is_refused(size: float, rise: float) -> None:
    assert_second_row_refused(set_page(followed_by("2", size, rise)), "digits differ in size or height")


@pytest.mark.parametrize(("size", "rise"), [(5, 6), (8, -6)])
def test_mark_on_a_line_of_its_own_is_never_a_row(size: float, rise: float) -> None:
    document = read(set_page(followed_by("2", size, rise)))
    assert ("qwant_table_1", 2, "row-width") in problems(document)
    assert all(set(cells(table)) <= set(ROWS) - {ROWS[1]} for table in document.tables)


def test_digit_raised_with_the_text_rise_operator_is_refused_or_a_mark() -> None:
    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        line = canvas.beginText(x, y)
        line.setFont(FONT, SIZE)
        line.textOut(text)
        line.setRise(0.9)
        line.textOut("2")
        canvas.drawText(line)

    assert_second_row_refused(set_page(draw_cell), "digits differ in size or height")


def test_unit_in_small_letters_stays_with_its_figure() -> None:
    assert_read(set_page(followed_by("ms", 7, 0)), (ROWS[0], ("4", "1.94ms"), *ROWS[2:]))


def test_power_of_ten_is_refused() -> None:
    assert_second_row_refused(set_page(followed_by("3", 7, 3.6, "10")), "'10': to the power of 3")
    [table] = read(set_page(followed_by("1", 7, 3.6, "10"))).tables
    assert (table.rows[1].cells, table.rows[1].footnotes) == (("4", "10"), ((1, "1"),))


def test_decimal_commas_arrive_unchanged() -> None:
    rows = (("2", "1,360"), ("4", "0,920"), ("6", "1.234,5"), ("8", "12,5"))
    assert_read(set_page(rows=rows), rows)


# --- tables in other shapes

WIDE = ("Batch size", "Latency", "Throughput", "Energy efficiency")
WIDE_ROWS = (("2", "1.36", "1474.16", "6.51"), ("4", "1.94", "2063.03", "7.80"), ("6", "2.82", "2131.01", "7.87"))


def test_one_wide_table_gives_all_its_columns() -> None:
    document = read(set_page(header=WIDE, rows=WIDE_ROWS))
    assert document.problems == ()
    assert {table.name: (table.columns, cells(table)) for table in document.tables} == {
        f"qwant_table_{place}": (("Batch size", WIDE[place]), tuple((row[0], row[place]) for row in WIDE_ROWS))
        for place in (1, 2, 3)
    }


def test_lost_figure_of_a_wide_table_is_a_problem_of_its_table_alone() -> None:
    rows = (WIDE_ROWS[0], ("4", "1.94", "", "7.80"), WIDE_ROWS[2])
    document = read(set_page(header=WIDE, rows=rows))
    assert problems(document) == [("qwant_table_2", 2, "row-width")]
    assert [len(table.rows) for table in document.tables] == [3, 2, 3]


def test_known_column_after_an_unknown_one_is_a_problem() -> None:
    header = ("Batch size", "Latency", "Power", "Throughput")
    document = read(set_page(header=header, rows=WIDE_ROWS))
    assert problems(document) == [("qwant_table_2", None, "unknown-header")]
    assert [table.name for table in document.tables] == ["qwant_table_1"]


def test_wide_table_across_two_columns_of_prose_gives_all_its_columns() -> None:
    def draw_prose(canvas: Canvas) -> None:
        for line in range(20):
            for x in (60, 312):
                draw(canvas, x, 500 - 12 * line, "lorem ipsum dolor sit amet consectetur adipiscing elit")

    document = read(set_page(header=WIDE, rows=WIDE_ROWS, before=draw_prose))
    assert [table.name for table in document.tables] == ["qwant_table_1", "qwant_table_2", "qwant_table_3"]
    assert [cells(table) for table in document.tables] == [
        tuple((row[0], row[place]) for row in WIDE_ROWS) for place in (1, 2, 3)
    ]


def test_transposed_table_is_a_problem() -> None:
    def draw_block(canvas: Canvas) -> None:
        for place, row in enumerate((("Batch size", "2", "4", "6"), ("Throughput", "1474.16", "2063.03", "2131.01"))):
            for column, text in enumerate(row):
                draw(canvas, 100 + 70 * column, 400 - 14 * place, text)

    document = read(set_page(after=draw_block))
    assert problems(document) == [("qwant_table_2", None, "unknown-header")]
    assert [cells(table) for table in document.tables] == [ROWS]


def test_header_over_two_lines_without_a_caption_is_found() -> None:
    def draw_block(canvas: Canvas) -> None:
        for y, texts in ((400, ("Batch",)), (388, ("size", "Throughput")), (376, ("2", "1474.16"))):
            for column, text in enumerate(texts):
                draw(canvas, 100 + 80 * column, y, text)

    # It is read, and refused for its one row: the table above it has four.
    assert problems(read(set_page(after=draw_block))) == [("qwant_table_2", None, "cells-missing")]


# --- pages that cannot be read


def make_scan() -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, invariant=1)
    canvas.drawInlineImage(noise(), 0, 0, 595, 842)
    canvas.save()
    return out.getvalue()


def noise() -> object:
    from PIL import Image  # noqa: PLC0415

    return Image.new("L", (60, 80), 200)


def refuse(data: bytes) -> str:
    with pytest.raises(UnrecognisedDocumentError) as caught:
        read(data)
    return caught.value.message


def test_scan_is_named() -> None:
    assert "page 1 is an image without text (a scan)" in refuse(make_scan())


def test_invisible_text_over_a_scan_is_named() -> None:
    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        pass

    hidden = set_page(draw_cell, before=lambda canvas: canvas.setFillColor(white))
    assert refuse(hidden) == "cannot be read: the text of page 1 cannot be seen"


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_table_on_a_turned_page_is_a_problem(angle: int) -> None:
    def turn(canvas: Canvas) -> None:
        canvas.setPageRotation(angle)

    document = read(set_page(before=turn))
    assert problems(document) == [("qwant_table_1", None, "unknown-header")]
    assert "turned" in document.problems[0].message


@pytest.mark.parametrize("angle", [90, 180, 270, 20])
def test_turned_table_is_a_problem(angle: int) -> None:
    def turn(canvas: Canvas) -> None:
        canvas.translate(300, 400)
        canvas.rotate(angle)
        canvas.translate(-250, -650)

    document = read(set_page(before=turn))
    assert problems(document) == [("qwant_table_1", None, "unknown-header")]


def test_mirrored_table_is_a_problem() -> None:
    def mirror(canvas: Canvas) -> None:
        canvas.translate(500, 0)
        canvas.scale(-1, 1)

    assert problems(read(set_page(before=mirror))) == [("qwant_table_1", None, "unknown-header")]


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_turned_page_with_upright_text_is_read(angle: int) -> None:
    def turn(canvas: Canvas) -> None:
        canvas.setPageRotation(angle)
        canvas.translate(300, 400)
        canvas.rotate(angle)
        canvas.translate(-250, -650)

    assert_read(set_page(before=turn))


def test_turned_page_without_a_table_is_named() -> None:
    out = io.BytesIO()
    canvas = Canvas(out, invariant=1)
    canvas.rotate(90)
    canvas.drawString(100, -100, "some words")
    canvas.save()
    assert "page 1 is turned by" in refuse(out.getvalue())
