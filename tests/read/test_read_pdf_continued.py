"""Tables that continue on the next page under their header, printed again, and tables that only
look as if they did.
"""

from __future__ import annotations

import pytest
from ipu_results.read import ParsedDocument
from ipu_results.read.pdf import read_pdf

from tests.read.pdf_support import (
    Row,
    Text,
    list_rows,
    make_header,
    place_rows,
    read_texts,
    set_texts,
)

Page = list[Text]

X = (100.0, 240.0, 340.0)
HEADER = ("Layer", "Throughput (images/s)", "Latency (ms)")
NAMES = {"Layer": "model", "Throughput": "value", "Latency": "value"}
FIRST = [
    ("conv1", "1,474.16", "1.36"),
    ("conv2", "2,063.03", "1.94"),
    ("conv3", "2,131.01", "2.82"),
]
SECOND = [("conv4", "2,526.70", "3.17"), ("conv5", "2,703.00", "3.70")]
THIRD = [("conv6", "2,819.20", "4.26"), ("conv7", "2,900.10", "4.83")]
CAPTION = (100.0, 724.0, "Table 4.2: Layers of the network")


def set_rows(y: float, *rows: Row, x: tuple[float, ...] = X) -> Page:
    return place_rows(y, rows, x)


def read(*pages: Page, names: dict[str, str] = NAMES) -> ParsedDocument:
    return read_texts(names, *pages)


def list_reasons(document: ParsedDocument) -> list[str]:
    return [problem.reason for problem in document.problems]


ALONE = set_rows(700, HEADER, *FIRST)
TOP = [CAPTION, *ALONE]
AGAIN = set_rows(700, HEADER, *SECOND)
CHAPTER = [(100.0, 760.0, "78"), (300.0, 760.0, "CHAPTER 5. PRIMITIVES")]
SECTION = [(100.0, 760.0, "5.2. CONVOLUTION"), (440.0, 760.0, "79")]
TITLE = [(100.0, 760.0, "Report of the laboratory")]
PROSE = [
    (x, y, "A sentence of a paper that is long enough for a column of it.")
    for y in range(400, 100, -12)
    for x in (40, 320)
]
GROUPED = {"Layer": "model", "Small": "value", "Large": "value"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (TOP, AGAIN),
        ([*CHAPTER, *TOP], [*SECTION, *set_rows(700, HEADER, *SECOND, x=(60.0, 200.0, 300.0))]),
        ([*TITLE, *TOP, (300.0, 40.0, "1 / 2")], [*TITLE, *AGAIN, (300.0, 40.0, "2 / 2")]),
        (TOP, [(100.0, 724.0, "Table 4.2: (continued)"), *AGAIN]),
        (TOP, [(100.0, 724.0, "Table 4.2 - continued from previous page"), *AGAIN]),
        (TOP, [(100.0, 724.0, "Table 4.2 (cont'd)"), *AGAIN]),
        (TOP, [CAPTION, *AGAIN]),
        ([*TOP, (240.0, 652.0, "Continued on next page")], [(100.0, 715.0, "(continued)"), *AGAIN]),
        (ALONE, AGAIN),
        ([*TITLE, *ALONE], [*TITLE, *AGAIN, (100.0, 660.0, "Table 4.2: Layers")]),
    ],
)
def test_repeated_header_on_the_next_page_continues_the_table(first: Page, second: Page) -> None:
    document = read(first, second)
    assert (document.problems, list_rows(document)) == ((), FIRST + SECOND)
    (table,) = document.tables
    assert [row.number for row in table.rows] == [1, 2, 3, 4, 5]
    assert [row.locator.split(",")[0] for row in table.rows] == ["page 1"] * 3 + ["page 2"] * 2


def test_table_continues_over_three_pages_and_keeps_its_caption() -> None:
    note = (100.0, 724.0, "Table 4.2: continued")
    pages = (
        [*CHAPTER, *TOP],
        [*SECTION, note, *AGAIN],
        [(100.0, 760.0, "80"), *set_rows(700, HEADER, *THIRD)],
    )
    document = read(*pages)
    assert (document.problems, list_rows(document)) == ((), FIRST + SECOND + THIRD)
    assert document.tables[0].caption == CAPTION[2]


def test_table_over_both_columns_of_a_page_continues() -> None:
    document = read(TOP, [*AGAIN, *PROSE])
    assert (document.problems, list_rows(document)) == ((), FIRST + SECOND)


def test_long_caption_is_that_of_the_table_below_it() -> None:
    lines = (
        "Table 4.2: Layers of the network,|of which each|was measured|on one chip|of the"
        " first|board".split("|")
    )
    caption = [(100.0, 768.0 - 9 * number, line) for number, line in enumerate(lines)]
    document = read([(440.0, 780.0, "7"), *caption, *TOP[1:]], [(440.0, 780.0, "8"), *AGAIN])
    assert (document.problems, list_rows(document)) == ((), FIRST + SECOND)
    assert document.tables[0].caption == " ".join(lines)


def test_short_name_in_the_caption_of_the_next_table_is_no_mention() -> None:
    head = ("Layer", "S", "Latency (ms)")
    headers = [
        make_header({"Layer": "model", "S": "value", "Latency": "value"}),
        make_header({"Chip": "model", "Clock rate": "value"}, "u"),
    ]
    chips = set_rows(600, ("Chip", "Clock rate"), ("GC2", "1.6"))
    following = [(100.0, 630.0, "Table 4.3: Chips in images/s"), *chips]
    pages = [CAPTION, *set_rows(700, head, *FIRST)], [*set_rows(700, head, *SECOND), *following]
    document = read_pdf(set_texts(*pages), headers)
    assert (document.problems, list_rows(document)) == ((), [*FIRST, *SECOND, ("GC2", "1.6")])
    assert [table.caption for table in document.tables] == [
        CAPTION[2],
        "Table 4.3: Chips in images/s",
    ]


@pytest.mark.parametrize(
    ("line", "reasons", "rows"),
    [
        ("Throughput of one IPU", [], FIRST + SECOND),
        ("Throughput of two IPUs", ["duplicate-table"], FIRST),
    ],
)
def test_line_over_the_names_is_printed_again_with_them_or_begins_another_table(
    line: str, reasons: list[str], rows: list[Row]
) -> None:
    caption, over = (100.0, 740.0, "Table 4.2: Layers"), (250.0, 712.0, "Throughput of one IPU")
    first, second = (set_rows(700, tuple(GROUPED), *part) for part in (FIRST, SECOND))
    document = read([caption, over, *first], [(250.0, 712.0, line), *second], names=GROUPED)
    assert (list_reasons(document), list_rows(document)) == (reasons, rows)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            TOP,
            [(100.0, 724.0, "Table 4.3: Layers of the network"), *AGAIN],
            id="other caption above",
        ),
        pytest.param(TOP, [*AGAIN, (100.0, 660.0, "Table 4.3: Layers")], id="other caption below"),
        pytest.param(
            TOP, [(100.0, 724.0, "Table 4.3 (continued)"), *AGAIN], id="another table continues"
        ),
        pytest.param(
            [(100.0, 724.0, "Table 4-1: Layers"), *ALONE],
            [(100.0, 724.0, "Table 4-2: continued"), *AGAIN],
            id="another number behind a hyphen",
        ),
        pytest.param(
            [*TOP, (100.0, 400.0, "Total"), (240.0, 400.0, "16"), (100.0, 40.0, "1")],
            [
                *AGAIN,
                (100.0, 400.0, "Total"),
                (240.0, 400.0, "17.5"),
                (340.0, 400.0, "17"),
                (100.0, 40.0, "2"),
            ],
            id="a count below, and another page number",
        ),
        pytest.param(
            [(100.0, 760.0, "Run"), (440.0, 760.0, "16"), *TOP],
            [(100.0, 760.0, "Test"), (440.0, 760.0, "64"), *AGAIN],
            id="a count above in place of a page number",
        ),
        pytest.param(
            TOP,
            [(100.0, 724.0, "Table 4.2: Layers of another"), *AGAIN],
            id="same number, other text",
        ),
        pytest.param(
            ALONE, [(100.0, 724.0, "Table 4.2 (continued)"), *AGAIN], id="continues an unknown one"
        ),
        pytest.param(TOP, [(100.0, 724.0, "On two IPUs"), *AGAIN], id="title above"),
        pytest.param([*TOP, (100.0, 600.0, "So much for one IPU.")], AGAIN, id="text below"),
        pytest.param([*TOP, (100.0, 640.0, "a Not on this chip.")], AGAIN, id="footnote below"),
        pytest.param(
            [*ALONE, (100.0, 640.0, "Table 4.2: Layers")], AGAIN, id="caption below the first"
        ),
        pytest.param(
            TOP, set_rows(700, (HEADER[0], HEADER[2], HEADER[1]), *SECOND), id="other order"
        ),
        pytest.param(TOP, set_rows(700, (*HEADER[:2], "Latency (s)"), *SECOND), id="other unit"),
        pytest.param(TOP, set_rows(700, HEADER, *SECOND, x=(100, 230, 340)), id="other places"),
        pytest.param(
            [*CHAPTER, *ALONE], [*SECTION, *AGAIN], id="other running head, and no caption"
        ),
        pytest.param(
            [(100.0, 760.0, "Run 1"), *ALONE], [(100.0, 760.0, "Run 2"), *AGAIN], id="other title"
        ),
    ],
)
def test_equal_header_of_another_table_is_not_joined(first: Page, second: Page) -> None:
    document = read(first, second)
    assert list_rows(document) == FIRST
    assert "duplicate-table" in list_reasons(document)


PROSE_LINE = (100.0, 700.0, "A page of prose with the words throughput, latency and layer.")


@pytest.mark.parametrize(
    "pages", [(TOP, [PROSE_LINE], AGAIN), ([*TOP, *set_rows(600, HEADER, *SECOND)],)]
)
def test_equal_header_two_pages_later_or_on_the_same_page_is_not_joined(
    pages: tuple[Page, ...],
) -> None:
    document = read(*pages)
    assert (list_reasons(document), list_rows(document)) == (["duplicate-table"], FIRST)


@pytest.mark.parametrize("width", [2, 4])
def test_header_with_another_number_of_columns_is_not_joined(width: int) -> None:
    more = [(*HEADER, "Power (W)")[:width], *((*row, "91.5")[:width] for row in SECOND)]
    document = read(TOP, set_rows(700, *more, x=(*X, 440.0)[:width]))
    assert list_rows(document) == FIRST
    assert list_reasons(document) == ["duplicate-table"] * (width > len(X))


def test_text_at_the_joint_refuses_the_rows_on_both_sides_of_it() -> None:
    document = read(
        TOP, [*set_rows(700, HEADER), (100.0, 688.0, "of the stem"), *set_rows(676, *SECOND)]
    )
    assert list_rows(document) == [*FIRST[:2], SECOND[1]]
    assert list_reasons(document) == ["row-width", "row-width"]


def test_blank_label_that_the_part_before_has_refuses_the_row() -> None:
    names = {"Layer": "model", "Variant": "variant", "Latency": "value"}
    rows = [("conv1", "wide", "1.36"), ("conv2", "wide", "1.94"), ("conv3", "wide", "3.70")]
    head = ("Layer", "Variant", "Latency (ms)")
    second = set_rows(700, head, ("conv2", "", "3.17"), rows[2])
    document = read(set_rows(700, head, *rows[:2]), second, names=names)
    assert (list_reasons(document), list_rows(document)) == (["row-width"], rows)
