"""What a reader of a PDF sees: hidden, struck, doubled, raised and overprinted text, and tables in
other shapes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest
from ipu_results.errors import UnrecognisedDocumentError
from PIL import Image
from reportlab.lib.colors import Color, white
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from tests.read.pdf_support import (
    Row,
    list_tables,
    make_pdf,
    place_rows,
    read_paper,
    set_lines,
    set_texts,
)
from tests.read.reading_support import problems

ROWS = [("2", "1.36"), ("4", "1.94"), ("6", "2.82"), ("8", "3.32")]
FONT, SIZE = "Times-Roman", 10.0
END = 17.5  # where the figure of the second row ends, from its start
DrawCell = Callable[[Canvas, float, float, str], None]


def draw(canvas: Canvas, x: float, y: float, text: str) -> None:
    canvas.setFont(FONT, SIZE)
    canvas.drawString(x, y, text)


def set_page(
    draw_cell: DrawCell = draw,
    *,
    rows: list[Row] = ROWS,
    header: Row = ("Batch size", "Latency"),
    before: Callable[[Canvas], None] | None = None,
    after: Callable[[Canvas], None] | None = None,
    **options: object,
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
            is_odd = place == 2 and column == 1
            canvas.saveState()
            (draw_cell if is_odd else draw)(canvas, 100 + 80 * column, 700 - 14 * place, text)
            canvas.restoreState()
    if after:
        after(canvas)
    canvas.save()
    return out.getvalue()


def assert_read(data: bytes, rows: list[Row] = ROWS) -> None:
    document = read_paper(data)
    assert (document.problems, list_tables(document)) == ((), [rows])


def assert_second_row_refused(data: bytes, message: str) -> None:
    document = read_paper(data)
    assert problems(document) == [("qwant_table_1", 2, "row-width")]
    assert message in document.problems[0].message
    assert list_tables(document) == [[ROWS[0], *ROWS[2:]]]


def drawn(operators: str) -> DrawCell:
    """Draw a cell by PDF operators, seen from its place: `()` draws its text, `(7)` another one."""

    def draw_cell(canvas: Canvas, x: float, y: float, text: str) -> None:
        canvas.translate(x, y)
        for part in re.split(r"(\(.*?\))", operators):
            if part.startswith("("):
                draw(canvas, 0, 0, part[1:-1] or text)
            else:
                canvas._code.append(part)

    return draw_cell


# --- text that cannot be seen

COVERED = "() 1 g -2 -3 30 13 re f"


def transparent(canvas: Canvas, x: float, y: float, text: str) -> None:
    canvas.setFillColor(Color(0, 0, 0, alpha=0))
    draw(canvas, x, y, text)


def in_a_covered_form(canvas: Canvas, x: float, y: float, text: str) -> None:
    canvas.beginForm("cell")
    drawn(COVERED)(canvas, x, y, text)
    canvas.endForm()
    canvas.doForm("cell")


@pytest.mark.parametrize(
    "draw_cell",
    [
        drawn("1 1 1 rg ()"),
        drawn("1 g ()"),
        drawn("0 0 0 0 k ()"),
        drawn("0 0 0.5 rg -4 -3 40 13 re f ()"),
        drawn("0.99 0.99 0.99 rg ()"),
        transparent,
        drawn(COVERED),
        in_a_covered_form,
        drawn("3 Tr ()"),
        drawn("7 Tr ()"),
        drawn("0.001 0 0 0.001 0 0 cm ()"),
        drawn("0.05 0 0 0.05 0 0 cm ()"),
        drawn("-90 -90 10 10 re W n ()"),
    ],
)
def test_figure_that_cannot_be_seen_is_missing(draw_cell: DrawCell) -> None:
    assert_second_row_refused(set_page(draw_cell), "a figure is missing in the row")


@pytest.mark.parametrize(
    "operators",
    [
        "0 0 0.5 rg -4 -3 40 13 re f 1 g ()",
        "0.83 g -4 -3 40 13 re f 0 g ()",
        "0.8 0.8 0.8 rg ()",
        "0 1 1 0 k ()",
        "1 Tr ()",
        "2 Tr ()",
        "0.6 0 0 0.6 0 0 cm ()",
        # rules and underlines are not strikes
        "() 0.5 w -1 -1.2 m 19 -1.2 l S",
        "() 0.5 w -40 9 m 60 9 l S",
        "() 0.5 w -40 -3.5 m 60 -3.5 l S",
        # struck twice for bold type
        "() ()",
        "() 1 0 0 1 0.3 0 cm ()",
        "() 1 0 0 1 0.4 -0.4 cm ()",
        "() 1 0 0 1 1 -0.5 cm ()",
    ],
)
def test_figure_that_can_be_seen_is_read_once(operators: str) -> None:
    assert_read(set_page(drawn(operators)))


STRUCK = "'1.94': it is struck through"


@pytest.mark.parametrize(
    ("operators", "message"),
    [
        (f"() 1 0 0 1 {END} 0 cm 1 g (7)", "'1.947': a part of it cannot be seen"),
        ("() 0.5 w -1 3 m 19 3 l S", STRUCK),
        ("() 0.5 w -1 0.5 m 19 6 l S", STRUCK),
        ("() 0.5 w 0 3 m 6 3 l S", STRUCK),
        ("() -1 2.6 20 0.7 re f", STRUCK),
        (f"{COVERED} 0 g (9.87)", "other text is printed over it"),
        (f"() 1 0 0 1 {END} 0 cm 0.9 Ts (2)", "digits differ in size or height"),
    ],
)
def test_figure_hidden_struck_or_raised_in_part_is_refused(operators: str, message: str) -> None:
    assert_second_row_refused(set_page(drawn(operators)), message)


def test_hidden_row_is_not_read() -> None:
    def draw_row(canvas: Canvas) -> None:
        canvas.setFillColor(white)
        draw(canvas, 100, 630, "10")
        draw(canvas, 180, 630, "9.99")

    assert_read(set_page(after=draw_row))


def test_text_outside_the_crop_box_is_not_read() -> None:
    assert_read(set_page(cropBox=(50, 600, 300, 760)))
    assert_read(set_page(cropBox=(90, 668, 300, 720)), ROWS[:2])
    with pytest.raises(UnrecognisedDocumentError):
        read_paper(set_page(cropBox=(90, 600, 170, 720)))


@pytest.mark.parametrize(("state", "rows"), [("ON", ROWS), ("OFF", ROWS[:1])])
def test_layer_that_is_off_is_not_read(state: str, rows: list[Row]) -> None:
    shown, optional = set_lines(("Batch size", "Latency"), *ROWS[:1]), set_lines(*ROWS[1:], y=672)
    content = shown + b"/OC /Layer BDC\n" + optional + b"EMC\n"
    data = make_pdf(
        content,
        catalog=b"/OCProperties <</OCGs [6 0 R] /D <</Order [] /%s [6 0 R]>>>>" % state.encode(),
        resources=b"/Properties <</Layer 6 0 R>>",
        others=[b"<</Type /OCG /Name (layer)>>"],
    )
    assert_read(data, rows)


@pytest.mark.parametrize(
    "rows",
    [
        [("11", "111.11"), ("22", "2222.22"), ("4444", "0.00")],  # equal digits next to one another
        # decimal commas arrive unchanged
        [("2", "1,360"), ("4", "0,920"), ("6", "1.234,5"), ("8", "12,5")],
    ],
)
def test_digits_and_marks_are_kept(rows: list[Row]) -> None:
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
    document = read_paper(set_page(followed_by("2", size, rise)))
    assert list_tables(document) == [ROWS]
    [table] = document.tables
    assert table.rows[1].footnotes == ((1, "2"),)


@pytest.mark.parametrize(
    ("size", "rise"), [(8.5, 0), (9.5, 0), (9.5, 1), (10, 0.9), (10, 3), (8, 0), (8, -2), (12, 0)]
)
def test_digit_of_another_size_or_height_is_refused(size: float, rise: float) -> None:
    assert_second_row_refused(
        set_page(followed_by("2", size, rise)), "digits differ in size or height"
    )


@pytest.mark.parametrize(("size", "rise"), [(5, 6), (8, -6)])
def test_mark_on_a_line_of_its_own_is_never_a_row(size: float, rise: float) -> None:
    document = read_paper(set_page(followed_by("2", size, rise)))
    assert ("qwant_table_1", 2, "row-width") in problems(document)
    assert all(set(rows) <= set(ROWS) - {ROWS[1]} for rows in list_tables(document))


def test_unit_in_small_letters_stays_with_its_figure() -> None:
    assert_read(set_page(followed_by("ms", 7, 0)), [ROWS[0], ("4", "1.94ms"), *ROWS[2:]])


def test_power_of_ten_is_refused() -> None:
    assert_second_row_refused(set_page(followed_by("3", 7, 3.6, "10")), "'10': to the power of 3")
    [table] = read_paper(set_page(followed_by("1", 7, 3.6, "10"))).tables
    assert (table.rows[1].cells, table.rows[1].footnotes) == (("4", "10"), ((1, "1"),))


# --- tables in other shapes

WIDE = ("Batch size", "Latency", "Throughput", "Energy efficiency")
WIDE_ROWS = [
    ("2", "1.36", "1474.16", "6.51"),
    ("4", "1.94", "2063.03", "7.80"),
    ("6", "2.82", "2131.01", "7.87"),
]


def draw_prose(canvas: Canvas) -> None:
    for x, y, text in place_rows(
        500, [["lorem ipsum dolor sit amet consectetur adipiscing elit"] * 2] * 20, (60, 312)
    ):
        draw(canvas, x, y, text)


@pytest.mark.parametrize("before", [None, draw_prose])
def test_one_wide_table_gives_all_its_columns(before: Callable[[Canvas], None] | None) -> None:
    document = read_paper(set_page(header=WIDE, rows=WIDE_ROWS, before=before))
    assert document.problems == ()
    assert [(table.name, table.columns) for table in document.tables] == [
        (f"qwant_table_{place}", ("Batch size", WIDE[place])) for place in (1, 2, 3)
    ]
    assert list_tables(document) == [
        [(row[0], row[place]) for row in WIDE_ROWS] for place in (1, 2, 3)
    ]


def test_lost_figure_of_a_wide_table_is_a_problem_of_its_table_alone() -> None:
    rows = [WIDE_ROWS[0], ("4", "1.94", "", "7.80"), WIDE_ROWS[2]]
    document = read_paper(set_page(header=WIDE, rows=rows))
    assert problems(document) == [("qwant_table_2", 2, "row-width")]
    assert [len(table.rows) for table in document.tables] == [3, 2, 3]


def test_known_column_after_an_unknown_one_is_a_problem() -> None:
    document = read_paper(
        set_page(header=("Batch size", "Latency", "Power", "Throughput"), rows=WIDE_ROWS)
    )
    assert problems(document) == [("qwant_table_2", None, "unknown-header")]
    assert [table.name for table in document.tables] == ["qwant_table_1"]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        pytest.param(
            [("Batch size", "2", "4", "6"), ("Throughput", "1474.16", "2063.03", "2131.01")],
            "unknown-header",
            id="turned",
        ),
        # It is read, and refused for its one row: the table above it has four.
        pytest.param(
            [("Batch",), ("size", "Throughput"), ("2", "1474.16")],
            "cells-missing",
            id="header of two lines",
        ),
    ],
)
def test_table_in_another_shape_is_a_problem(rows: list[Row], reason: str) -> None:
    texts = place_rows(700, [("Batch size", "Latency"), *ROWS], (100, 180), 14)
    document = read_paper(set_texts([*texts, *place_rows(400, rows, (100, 180, 260, 340), 12)]))
    assert problems(document) == [("qwant_table_2", None, reason)]
    assert list_tables(document) == [ROWS]


# --- pages that cannot be read


def make_page(draw_page: Callable[[Canvas], object]) -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, invariant=1)
    draw_page(canvas)
    canvas.save()
    return out.getvalue()


SCAN = make_page(
    lambda canvas: canvas.drawInlineImage(Image.new("L", (60, 80), 200), 0, 0, 595, 842)
)
INVISIBLE = set_page(lambda *_: None, before=lambda canvas: canvas.setFillColor(white))
TURNED = make_page(lambda canvas: (canvas.rotate(90), canvas.drawString(100, -100, "some words")))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (SCAN, "page 1 is an image without text (a scan)"),
        (INVISIBLE, "cannot be read: the text of page 1 cannot be seen"),
        (TURNED, "page 1 is turned by"),
    ],
)
def test_page_without_readable_text_is_named(data: bytes, message: str) -> None:
    with pytest.raises(UnrecognisedDocumentError) as caught:
        read_paper(data)
    assert message in caught.value.message


def turn(page: int, text: int) -> Callable[[Canvas], None]:
    """Turn the page, and the text on it, by some degrees."""

    def turn(canvas: Canvas) -> None:
        canvas.setPageRotation(page)
        if text:
            canvas.translate(300, 400)
            canvas.rotate(text)
            canvas.translate(-250, -650)

    return turn


def mirror(canvas: Canvas) -> None:
    canvas.translate(500, 0)
    canvas.scale(-1, 1)


@pytest.mark.parametrize(
    ("before", "message"),
    [
        *((turn(angle, 0), "turned") for angle in (90, 180, 270)),
        *((turn(0, angle), "") for angle in (90, 180, 270, 20)),
        (mirror, ""),
    ],
)
def test_turned_or_mirrored_table_is_a_problem(
    before: Callable[[Canvas], None], message: str
) -> None:
    document = read_paper(set_page(before=before))
    assert problems(document) == [("qwant_table_1", None, "unknown-header")]
    assert message in document.problems[0].message


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_turned_page_with_upright_text_is_read(angle: int) -> None:
    assert_read(set_page(before=turn(angle, angle)))
