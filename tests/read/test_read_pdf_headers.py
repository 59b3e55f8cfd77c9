"""Headers over several lines, groups of columns, references in brackets, units apart, glyphs
without a character.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.read import pdf_glyphs
from ipu_results.read.pdf import find_pdf_headers, read_pdf
from ipu_results.read.pdf_glyphs import Glyph
from ipu_results.schema.vocabulary import TableHeader
from reportlab.pdfbase.pdfmetrics import stringWidth

from tests.read.pdf_support import (
    Row,
    Text,
    list_rows,
    make_header,
    place_rows,
    read_texts,
    set_texts,
)
from tests.read.reading_support import problems

X = (100, 220, 330, 440)
ROWS = [
    ("one tile", "1", "0.123", "122.565"),
    ("two tiles", "2", "0.130", "65.040"),
    ("a board", "4", "0.157", "39.2"),
]
NARROW = [row[:3] for row in ROWS]
NAMES = {
    "Experiment": "model",
    "Source tile count": "value",
    "Total latency": "value",
    "Avg. latency": "value",
}
FIRST_LINE = place_rows(700, [("Experiment", "Source", "Total", "Avg. latency")], X)
STACKED = [*FIRST_LINE, *place_rows(689, [("", "tile", "latency", "(ns)"), ("", "count")], X, 11)]
CAPTION = (100, 740, "Table 1. Total latency of transfers")
JOINED = ("Experiment", "Source tile count", "Total latency", "Avg. latency (ns)")


def name_columns(label: str, *values: str) -> dict[str, str]:
    return {label: "model"} | dict.fromkeys(values, "value")


# --- several lines


def set_two_lines(edge: float) -> list[Text]:
    """Set "of all" below "Latency", 32.8 points wide, from `edge` on."""
    return [*place_rows(700, [("Experiment", "Tiles", "Latency")], X), (X[2] + edge, 689, "of all")]


UNITS = [
    *FIRST_LINE,
    *place_rows(689, [("", "tile count", "latency"), ("", "", "(µs)", "(ns)")], X, 11),
    CAPTION,
]
TWO_LINES = name_columns("Experiment", "Tiles", "Latency of all")
FIGURES = ("Layer name", "1", "2", "4")
PRINTED_AGAIN = [*place_rows(700, [FIGURES], X), *place_rows(650, [("", *FIGURES[1:])], X)]
GROUPS = ("Throughput in TFLOPS of each", "Efficiency in W of each chip")
IN_GROUPS = [(200, 711, GROUPS[0]), (360, 711, GROUPS[1])]
GROUP_X = (100, 200, 280, 360, 440)
GROUP_LINE = place_rows(700, [("Layer", "IPU", "GPU", "IPU", "GPU")], GROUP_X)
GROUP_ROWS = [
    ("Conv1", "15.04", "6.26", "0.10", "0.03"),
    ("Conv2", "62.07", "22.85", "0.41", "0.09"),
]
DISTINCT = [
    (220, 711, "Throughput (images/sec) of"),
    *place_rows(700, [("Tiles", "first", "second")], (100, 220, 310)),
]
DISTINCT_ROWS = [("16 tiles", "1,113.0", "1,862.9"), ("32 tiles", "1,538.2", "3,717.2")]


@pytest.mark.parametrize(
    ("names", "header", "y", "x", "rows", "columns"),
    [
        pytest.param(NAMES, STACKED, 664, X, ROWS, JOINED, id="three lines"),
        pytest.param(
            *(NAMES, UNITS, 664, X, ROWS),
            ("Experiment", "Source tile count", "Total latency (µs)", "Avg. latency (ns)"),
            id="a line of units alone",
        ),
        pytest.param(
            TWO_LINES, set_two_lines(0), 675, X[:3], NARROW, tuple(TWO_LINES), id="left edge"
        ),
        pytest.param(
            TWO_LINES,
            set_two_lines(32.8 - 25),
            675,
            X[:3],
            NARROW,
            tuple(TWO_LINES),
            id="right edge",
        ),
        pytest.param(
            TWO_LINES,
            set_two_lines((32.8 - 25) / 2),
            675,
            X[:3],
            NARROW,
            tuple(TWO_LINES),
            id="middle",
        ),
        pytest.param(
            name_columns(*FIGURES),
            PRINTED_AGAIN,
            686,
            X,
            ROWS,
            FIGURES,
            id="figures, printed again",
        ),
        pytest.param(
            name_columns(
                "Layer", *(f"{group} {chip}" for group in GROUPS for chip in ("IPU", "GPU"))
            ),
            *([*IN_GROUPS, *GROUP_LINE], 686, GROUP_X, GROUP_ROWS),
            ("Layer", *(f"{group} {chip}" for group in GROUPS for chip in ("IPU", "GPU"))),
            id="group above names that repeat",
        ),
        pytest.param(
            name_columns("Tiles", "first", "second"),
            *(DISTINCT, 686, (100, 220, 310), DISTINCT_ROWS, ("Tiles", "first", "second")),
            id="group above distinct names is not a part of them",
        ),
    ],
)
def test_lines_of_a_header_are_joined_by_column(
    names: dict[str, str], header: list[Text], y: float, x: Row, rows: list[Row], columns: Row
) -> None:
    document = read_texts(names, [*header, *place_rows(y, rows, x)])
    assert (document.problems, list_rows(document)) == ((), rows)
    assert document.tables[0].columns == columns


BELOW = "of all the tiles here"
BELOW_X = (
    100,
    220,
    220 + stringWidth(BELOW, "Times-Roman", 10) - stringWidth("Tiles", "Times-Roman", 10),
)


@pytest.mark.parametrize(
    ("names", "header", "x", "rows"),
    [
        pytest.param(
            # "of all" overlaps "Latency", but begins, ends and is centred elsewhere: it may be of a
            # group of columns
            name_columns("Experiment", "Latency of all transfers"),
            [
                *place_rows(700, [("Experiment", "Latency")], (X[0], X[2])),
                (X[2] + 16, 689, "of all transfers"),
            ],
            *((X[0], X[2]), [(row[0], row[2]) for row in ROWS]),
            id="under no name in particular",
        ),
        pytest.param(
            name_columns("Experiment", f"Latency {BELOW}", "Tiles"),
            [*place_rows(700, [("Experiment", "Latency", "Tiles")], BELOW_X), (220, 689, BELOW)],
            *(BELOW_X, NARROW),
            id="below two names",
        ),
    ],
)
def test_line_that_may_belong_elsewhere_is_not_joined(
    names: dict[str, str], header: list[Text], x: tuple[float, ...], rows: list[Row]
) -> None:
    with pytest.raises(UnrecognisedDocumentError):
        read_texts(names, [*header, *place_rows(675, rows, x)])


@pytest.mark.parametrize(
    ("names", "header", "y", "x", "rows"),
    [
        pytest.param(
            *(NAMES, [(x, y - 12 if y < 700 else y, text) for x, y, text in STACKED], 652, X, ROWS),
            id="lines far apart",
        ),
        pytest.param(
            *(
                NAMES,
                [(x, y, text.replace("tile", "tiles")) for x, y, text in STACKED],
                664,
                X,
                ROWS,
            ),
            id="unknown name",
        ),
        pytest.param(
            {"Layer": "model", "Throughput IPU": "value", "GPU": "value", "IPU": "value"},
            [(200, 711, "Throughput"), *GROUP_LINE, (100, 740, "Table 1. Throughput IPU and GPU")],
            *(686, GROUP_X, GROUP_ROWS),
            id="repeated names with a group over some of them",
        ),
    ],
)
def test_header_that_is_not_known_refuses_the_table(
    names: dict[str, str], header: list[Text], y: float, x: tuple[float, ...], rows: list[Row]
) -> None:
    document = read_texts(names, [CAPTION, *header, *place_rows(y, rows, x)])
    assert not document.tables
    assert document.problems


def test_a_figure_that_is_a_name_elsewhere_does_not_end_a_table() -> None:
    headers = [make_header(NAMES), make_header(name_columns(*FIGURES), "b")]
    document = read_pdf(set_texts([CAPTION, *STACKED, *place_rows(664, ROWS, X)]), headers)
    assert list_rows(document) == ROWS


# --- parts of a cell

PLAIN = name_columns("Experiment", "Latency in all")
BOARD = {"Experiment": "model", "Board": "place", "Latency in all": "value"}
BRACKETS = [("On-chip", "(a)", "0.133"), ("Off-chip", "(b*)", "0.633")]
UNIT_X = (100, 300, 328)


@pytest.mark.parametrize(
    ("names", "x", "rows", "expected"),
    [
        (PLAIN, (100, 220, 300), BRACKETS, [("On-chip (a)", "0.133"), ("Off-chip (b*)", "0.633")]),
        (BOARD, (100, 220, 300), BRACKETS, BRACKETS),
        *(
            (
                PLAIN,
                UNIT_X,
                [("GEMM", "18.9", unit), ("SpMM", "58.2", unit)],
                [("GEMM", f"18.9 {unit}"), ("SpMM", f"58.2 {unit}")],
            )
            for unit in ("TFLOPS", "%", "img/sec", "µs")
        ),
    ],
)
def test_reference_in_brackets_and_unit_belong_to_the_text_before_them(
    names: dict[str, str], x: tuple[float, ...], rows: list[Row], expected: list[Row]
) -> None:
    header = place_rows(700, [tuple(names)], (100, 300) if names is PLAIN else (100, 220, 300))
    document = read_texts(names, [*header, *place_rows(686, rows, x)])
    assert (document.problems, list_rows(document)) == ((), expected)


@pytest.mark.parametrize(
    ("x", "row"),
    [
        *(
            ((100, 220, 300), ("On-chip", mark, "0.133"))
            for mark in ("(1)", "a", "12", "(a", "(abcd)")
        ),
        (UNIT_X, ("GEMM", "v18", "W")),
        *((UNIT_X, ("GEMM", "18.9", other)) for other in ("7.1", "-", "x2", "of all")),
    ],
)
def test_other_text_next_to_label_or_figure_refuses_the_row(x: tuple[float, ...], row: Row) -> None:
    header = place_rows(700, [tuple(PLAIN)], (100, 300))
    document = read_texts(
        PLAIN,
        [*header, *place_rows(686, [row], x), *place_rows(674, [("Off-chip", "0.633")], UNIT_X)],
    )
    assert set(list_rows(document)) <= {("Off-chip", "0.633")}
    assert ("t", 1, "row-width") in problems(document)


def test_table_that_is_not_joined_may_have_any_number_of_rows() -> None:
    others = [
        (100, 500, "Latency"),
        (220, 500, "Batch size"),
        (100, 540, "Table 2. Latency"),
        (100, 486, "1.36"),
    ]
    fields = (("Batch size", "batch_size"), ("Latency", "latency_ms"))
    joined = TableHeader("inference-paper", "j", fields, "", joins=True)
    page = [CAPTION, *STACKED, *place_rows(664, ROWS, X), *others, (220, 486, "2")]
    document = read_pdf(set_texts(page), [joined, make_header(NAMES)])
    assert {table.name: len(table.rows) for table in document.tables} == {"t": 3, "j": 1}
    assert document.problems == ()


# --- glyphs without a character


@pytest.mark.parametrize(
    ("glyph", "here", "text"),
    [
        ("(cid:22)", [("µ", 100.0)], "µ"),
        ("(cid:22)", [("×", 100.4)], "×"),
        ("(cid:22)", [("3", 100.0)], "(cid:22)"),
        ("(cid:22)", [(".", 100.0)], "(cid:22)"),
        ("(cid:22)", [("\x16", 100.0)], "(cid:22)"),
        ("(cid:22)", [("µ", 101.5)], "(cid:22)"),
        ("(cid:22)", [("µ", 100.0), ("m", 100.2)], "(cid:22)"),
        ("(cid:22)", [], "(cid:22)"),
        ("(cid:65)", [("A", 100.0)], "(cid:65)"),  # the code itself
    ],
)
def test_glyph_without_a_character_is_the_one_letter_at_its_place(
    monkeypatch: pytest.MonkeyPatch, glyph: str, here: list[tuple[str, float]], text: str
) -> None:
    characters = [(character, (x, 92.0), 92.0, 7.0) for character, x in here]
    monkeypatch.setattr(pdf_glyphs, "list_characters", lambda *_: iter(characters))
    page = SimpleNamespace(height=792, page_obj=SimpleNamespace(mediabox=(0, 0, 612, 792)))
    glyphs = [Glyph(glyph, 10, 100, 690, 105, 702, 700), Glyph("s", 10, 105, 690, 110, 702, 700)]
    assert [glyph.text for glyph in pdf_glyphs.name_unmapped(None, page, glyphs)] == [text, "s"]


def test_figure_with_a_glyph_without_a_character_is_refused() -> None:
    rows = [("On-chip", "0.1(cid:23)"), ("Off-chip", "0.633"), ("Off-board", "0.524")]
    document = read_texts(PLAIN, place_rows(700, [tuple(PLAIN), *rows], (100, 300)))
    assert list_rows(document) == rows[1:]
    assert [problem.message for problem in document.problems] == [
        "'0.1(cid:23)': a glyph of it has no known character"
    ]


# --- drafts


def test_names_of_an_unknown_header_are_drafted() -> None:
    [(place, names)] = find_pdf_headers(set_texts([CAPTION, *STACKED, *place_rows(664, ROWS, X)]))
    assert names == JOINED
    assert place.startswith("page 1, box 100.0,")


PROSE = [
    (100, 700 - 12 * line, "In 2020 and 12 of 4.75 there were 3 of them, of a kind")
    for line in range(9)
]
SENTENCES = [("of these sentences, each has more words than a name", "and so on"), ("12", "4.75")]


@pytest.mark.parametrize(
    "page",
    [
        [CAPTION, *PROSE],
        [CAPTION, *place_rows(700, SENTENCES, (100, 420))],
        [*STACKED, *place_rows(664, ROWS, X)],
    ],
)
def test_a_page_without_a_caption_or_with_prose_alone_has_no_draft(page: list[Text]) -> None:
    assert find_pdf_headers(set_texts(page)) == []
