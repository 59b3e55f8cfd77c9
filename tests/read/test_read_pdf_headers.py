"""Headers over several lines, groups of columns, references in brackets, units apart, glyphs without a character."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.read import ParsedDocument, pdf_glyphs
from ipu_results.read.pdf import find_pdf_headers, read_pdf
from ipu_results.read.pdf_glyphs import Glyph
from ipu_results.schema.table_headers import TableHeader
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from tests.read.reading_support import problems

Text = tuple[float, float, str]
X = (100, 220, 330, 440)
ROWS = (("one tile", "1", "0.123", "122.565"), ("two tiles", "2", "0.130", "65.040"), ("a board", "4", "0.157", "39.2"))
NAMES = {"Experiment": "model", "Source tile count": "value", "Total latency": "value", "Avg. latency": "value"}
STACKED = [
    (X[0], 700, "Experiment"), (X[1], 700, "Source"), (X[2], 700, "Total"), (X[3], 700, "Avg. latency"),
    (X[1], 689, "tile"), (X[2], 689, "latency"), (X[3], 689, "(ns)"),
    (X[1], 678, "count"),
]  # fmt: skip


def set_texts(*texts: Text) -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(612, 792))
    canvas.setFont("Times-Roman", 10)
    for x, y, text in texts:
        canvas.drawString(x, y, text)
    canvas.save()
    return out.getvalue()


def rows_below(y: float, rows: tuple[tuple[str, ...], ...] = ROWS, places: tuple[float, ...] = X) -> list[Text]:
    return [(x, y - 12 * n, text) for n, row in enumerate(rows, 1) for x, text in zip(places, row, strict=True)]


def read(names: dict[str, str], *texts: Text) -> ParsedDocument:
    return read_pdf(set_texts(*texts), [TableHeader("inference-paper", "t", tuple(names.items()), "inference")])


def cells(document: ParsedDocument) -> list[tuple[str, ...]]:
    return [row.cells for table in document.tables for row in table.rows]


# --- several lines


def test_header_over_three_lines_is_joined_by_column() -> None:
    document = read(NAMES, *STACKED, *rows_below(676))
    assert document.problems == ()
    assert document.tables[0].columns == ("Experiment", "Source tile count", "Total latency", "Avg. latency (ns)")
    assert cells(document) == list(ROWS)


def test_line_of_units_alone_is_a_part_of_the_header() -> None:
    header = [*STACKED[:4], (X[1], 689, "tile count"), (X[2], 689, "latency"), (X[2], 678, "(µs)"), (X[3], 678, "(ns)")]
    document = read(NAMES, *header, (100, 740, "Table 1. Latency"), *rows_below(676))
    assert document.problems == ()
    assert document.tables[0].columns[2:] == ("Total latency (µs)", "Avg. latency (ns)")
    assert cells(document) == list(ROWS)


@pytest.mark.parametrize("edge", ["left", "right", "middle"])
def test_lines_of_a_name_share_an_edge_or_the_middle(edge: str) -> None:
    width = {"Latency": 32.8, "of all": 25.0}
    at = {
        "left": X[2],
        "right": X[2] + width["Latency"] - width["of all"],
        "middle": X[2] + (width["Latency"] - width["of all"]) / 2,
    }[edge]
    header = [(X[0], 700, "Experiment"), (X[1], 700, "Tiles"), (X[2], 700, "Latency"), (at, 689, "of all")]
    rows = tuple(row[:3] for row in ROWS)
    document = read(
        {"Experiment": "model", "Tiles": "value", "Latency of all": "value"}, *header, *rows_below(687, rows, X[:3])
    )
    assert (document.problems, cells(document)) == ((), list(rows))


def test_line_under_no_name_in_particular_is_not_joined() -> None:
    # "of all" overlaps "Latency", but begins, ends and is centred elsewhere: it may be of a group of columns
    header = [(X[0], 700, "Experiment"), (X[2], 700, "Latency"), (X[2] + 16, 689, "of all transfers")]
    rows = tuple((row[0], row[2]) for row in ROWS)
    with pytest.raises(UnrecognisedDocumentError):
        read(
            {"Experiment": "model", "Latency of all transfers": "value"}, *header, *rows_below(687, rows, (X[0], X[2]))
        )


def test_line_below_two_names_refuses_the_table() -> None:
    below = "of all the tiles here"
    x = 220 + stringWidth(below, "Times-Roman", 10) - stringWidth("Tiles", "Times-Roman", 10)
    header = [(100, 700, "Experiment"), (220, 700, "Latency"), (x, 700, "Tiles"), (220, 689, below)]
    names = {"Experiment": "model", f"Latency {below}": "value", "Tiles": "value"}
    with pytest.raises(UnrecognisedDocumentError):
        read(names, *header, *rows_below(687, tuple(row[:3] for row in ROWS), (100, 220, x)))


def test_lines_far_apart_are_not_one_header() -> None:
    far = [(x, y - 12 if y < 700 else y, text) for x, y, text in STACKED]
    document = read(NAMES, *far, (100, 740, "Table 1. Total latency of transfers"), *rows_below(664))
    assert not document.tables
    assert document.problems


def test_a_name_that_is_not_known_refuses_the_table() -> None:
    other = [(x, y, "tiles" if text == "tile" else text) for x, y, text in STACKED]
    document = read(NAMES, (100, 740, "Table 1. Total latency of transfers"), *other, *rows_below(676))
    assert not document.tables
    assert document.problems


def test_a_figure_that_is_a_name_elsewhere_does_not_end_a_table() -> None:
    batches = {"Layer name": "model", "1": "value", "2": "value", "4": "value"}
    headers = [TableHeader("inference-paper", name, tuple(n.items()), "") for name, n in (("t", NAMES), ("b", batches))]
    document = read_pdf(set_texts((100, 740, "Table 1. Latency"), *STACKED, *rows_below(676)), headers)
    assert cells(document) == list(ROWS)


def test_header_of_figures_that_is_printed_again_is_no_row() -> None:
    header = [(100, 700, "Layer name"), (220, 700, "1"), (330, 700, "2"), (440, 700, "4")]
    again = [(x, 650, text) for x, _, text in header[1:]]
    names = {"Layer name": "model", "1": "value", "2": "value", "4": "value"}
    document = read(names, *header, *rows_below(698), *again)
    assert (document.problems, cells(document)) == ((), list(ROWS))


# --- groups of columns

GROUPS = [
    (100, 700, "Layer"), (200, 711, "Throughput in TFLOPS of each"), (360, 711, "Efficiency in W of each chip"),
    (200, 700, "IPU"), (280, 700, "GPU"), (360, 700, "IPU"), (440, 700, "GPU"),
]  # fmt: skip
GROUP_ROWS = (("Conv1", "15.04", "6.26", "0.10", "0.03"), ("Conv2", "62.07", "22.85", "0.41", "0.09"))


def test_group_above_names_that_repeat_is_a_part_of_them() -> None:
    groups = ("Throughput in TFLOPS of each", "Efficiency in W of each chip")
    names = {"Layer": "model"} | {f"{group} {chip}": "value" for group in groups for chip in ("IPU", "GPU")}
    document = read(names, *GROUPS, *rows_below(698, GROUP_ROWS, (100, 200, 280, 360, 440)))
    assert (document.problems, cells(document)) == ((), list(GROUP_ROWS))
    assert document.tables[0].columns[1] == f"{groups[0]} IPU"


def test_repeated_names_with_a_group_over_some_of_them_are_refused() -> None:
    short = [(x, y, "Throughput" if y > 700 and x < 300 else text) for x, y, text in GROUPS if (x, y) != (360, 711)]
    names = {"Layer": "model", "Throughput IPU": "value", "GPU": "value", "IPU": "value"}
    caption = (100, 740, "Table 1. Throughput IPU and GPU")
    document = read(names, caption, *short, *rows_below(698, GROUP_ROWS, (100, 200, 280, 360, 440)))
    assert not document.tables
    assert document.problems


def test_group_above_distinct_names_is_not_a_part_of_them() -> None:
    header = [(100, 700, "Tiles"), (220, 711, "Throughput (images/sec) of"), (220, 700, "first"), (310, 700, "second")]
    rows = (("16 tiles", "1,113.0", "1,862.9"), ("32 tiles", "1,538.2", "3,717.2"))
    document = read(
        {"Tiles": "model", "first": "value", "second": "value"}, *header, *rows_below(698, rows, (100, 220, 310))
    )
    assert (document.problems, cells(document)) == ((), list(rows))


# --- parts of a cell

PLAIN_HEADER = [(100, 700, "Experiment"), (300, 700, "Latency in all")]


def test_reference_in_brackets_belongs_to_the_label_before_it() -> None:
    names = {"Experiment": "model", "Latency in all": "value"}
    rows = (("On-chip", "(a)", "0.133"), ("Off-chip", "(b*)", "0.633"))
    document = read(names, *PLAIN_HEADER, *rows_below(698, rows, (100, 220, 300)))
    assert document.problems == ()
    assert cells(document) == [("On-chip (a)", "0.133"), ("Off-chip (b*)", "0.633")]


def test_text_in_brackets_under_a_name_of_its_own_is_its_cell() -> None:
    names = {"Experiment": "model", "Board": "place", "Latency in all": "value"}
    header = [(100, 700, "Experiment"), (220, 700, "Board"), (300, 700, "Latency in all")]
    rows = (("On-chip", "(a)", "0.133"), ("Off-chip", "(b)", "0.633"))
    document = read(names, *header, *rows_below(698, rows, (100, 220, 300)))
    assert (document.problems, cells(document)) == ((), list(rows))


@pytest.mark.parametrize("mark", ["(1)", "a", "12", "(a", "(abcd)"])
def test_other_text_between_label_and_figure_refuses_the_row(mark: str) -> None:
    names = {"Experiment": "model", "Latency in all": "value"}
    rows = (("On-chip", mark, "0.133"), ("Off-chip", "(b)", "0.633"))
    document = read(names, *PLAIN_HEADER, *rows_below(698, rows, (100, 220, 300)))
    assert set(cells(document)) <= {("Off-chip (b)", "0.633")}
    assert ("t", 1, "row-width") in problems(document)


@pytest.mark.parametrize("unit", ["TFLOPS", "%", "img/sec", "µs"])
def test_unit_apart_from_its_figure_is_one_cell_with_it(unit: str) -> None:
    names = {"Experiment": "model", "Latency in all": "value"}
    rows = (("GEMM", "18.9", unit), ("SpMM", "58.2", unit))
    document = read(names, *PLAIN_HEADER, *rows_below(698, rows, (100, 300, 328)))
    assert document.problems == ()
    assert cells(document) == [("GEMM", f"18.9 {unit}"), ("SpMM", f"58.2 {unit}")]


def test_unit_behind_what_is_no_figure_refuses_the_row() -> None:
    names = {"Experiment": "model", "Latency in all": "value"}
    document = read(names, *PLAIN_HEADER, *rows_below(698, (("GEMM", "v18", "W"),), (100, 300, 328)))
    assert cells(document) == []
    assert problems(document)


@pytest.mark.parametrize("other", ["7.1", "-", "x2", "of all"])
def test_second_text_under_a_figure_column_that_is_no_unit_refuses_the_row(other: str) -> None:
    names = {"Experiment": "model", "Latency in all": "value"}
    document = read(names, *PLAIN_HEADER, *rows_below(698, (("GEMM", "18.9", other),), (100, 300, 328)))
    assert cells(document) == []
    assert problems(document)


# --- next to the tables of another paper


def test_table_that_is_not_joined_may_have_any_number_of_rows() -> None:
    others = [(100, 500, "Latency"), (220, 500, "Batch size"), (100, 540, "Table 2. Latency")]
    joined = TableHeader(
        "inference-paper", "j", (("Batch size", "batch_size"), ("Latency", "latency_ms")), "", joins=True
    )
    header = TableHeader("inference-paper", "t", tuple(NAMES.items()), "")
    texts = [(100, 740, "Table 1. Total latency"), *STACKED, *rows_below(676), *others]
    document = read_pdf(set_texts(*texts, *rows_below(498, (("1.36", "2"),), X[:2])), [joined, header])
    assert {table.name: len(table.rows) for table in document.tables} == {"t": 3, "j": 1}
    assert document.problems == ()


# --- glyphs without a character


@pytest.mark.parametrize(
    ("here", "text"),
    [
        ([("µ", 100.0)], "µ"),
        ([("×", 100.4)], "×"),
        ([("3", 100.0)], "(cid:22)"),
        ([(".", 100.0)], "(cid:22)"),
        ([("\x16", 100.0)], "(cid:22)"),
        ([("µ", 101.5)], "(cid:22)"),
        ([("µ", 100.0), ("m", 100.2)], "(cid:22)"),
        ([], "(cid:22)"),
    ],
)
def test_glyph_without_a_character_is_the_one_letter_at_its_place(
    monkeypatch: pytest.MonkeyPatch, here: list[tuple[str, float]], text: str
) -> None:
    characters = [(character, (x, 92.0), 92.0, 7.0) for character, x in here]
    monkeypatch.setattr(pdf_glyphs, "list_characters", lambda *_: iter(characters))
    page = SimpleNamespace(height=792, page_obj=SimpleNamespace(mediabox=(0, 0, 612, 792)))
    glyphs = [Glyph("(cid:22)", 10, 100, 690, 105, 702, 700), Glyph("s", 10, 105, 690, 110, 702, 700)]
    assert [glyph.text for glyph in pdf_glyphs.name_unmapped(None, page, glyphs)] == [text, "s"]


def test_character_that_is_the_code_itself_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_glyphs, "list_characters", lambda *_: iter([("A", (100.0, 92.0), 92.0, 7.0)]))
    page = SimpleNamespace(height=792, page_obj=SimpleNamespace(mediabox=(0, 0, 612, 792)))
    glyph = Glyph("(cid:65)", 10, 100, 690, 105, 702, 700)
    assert pdf_glyphs.name_unmapped(None, page, [glyph]) == [glyph]


def test_figure_with_a_glyph_without_a_character_is_refused() -> None:
    names = {"Experiment": "model", "Latency in all": "value"}
    rows = (("On-chip", "0.1(cid:23)"), ("Off-chip", "0.633"), ("Off-board", "0.524"))
    document = read(names, *PLAIN_HEADER, *rows_below(698, rows, (100, 300)))
    assert cells(document) == list(rows[1:])
    assert [problem.message for problem in document.problems] == ["'0.1(cid:23)': a glyph of it has no known character"]


# --- drafts


def test_names_of_an_unknown_header_are_drafted() -> None:
    caption = (100, 740, "Table 1. Total latency of transfers")
    [(place, names)] = find_pdf_headers(set_texts(caption, *STACKED, *rows_below(676)), 10)
    assert names == ("Experiment", "Source tile count", "Total latency", "Avg. latency (ns)")
    assert place.startswith("page 1, box 100.0,")


def test_a_page_without_a_caption_or_with_prose_alone_has_no_draft() -> None:
    prose = [(100, 700 - 12 * line, "In 2020 and 12 of 4.75 there were 3 of them, of a kind") for line in range(9)]
    assert find_pdf_headers(set_texts((100, 740, "Table 1. Prose"), *prose), 10) == []
    wide = [(100, 700, "of these sentences, each has more words than a name"), (420, 700, "and so on")]
    assert find_pdf_headers(set_texts((100, 740, "Table 1."), *wide, (100, 688, "12"), (420, 688, "4.75")), 10) == []
    assert find_pdf_headers(set_texts(*STACKED, *rows_below(676)), 10) == []
