"""The paper's tables from PDFs: many layouts of the page, one truth; damaged files, one clear error."""

from __future__ import annotations

import io
import logging
import re
import runpy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ipu_results.errors import DamagedDocumentError, DocumentError, DocumentTooLargeError, UnrecognisedDocumentError
from ipu_results.read import ParsedDocument, SourceTable
from ipu_results.read.pdf import read_pdf
from ipu_results.read.text import METADATA_LABELS
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from tests.read import typeset_paper as paper
from tests.read.reading_support import PAPER_HEADERS, ROOT, WORDS, problems

PDF = ROOT / "raw" / "qwant" / "resnext101-c2-2020-02-28.pdf"
BATCHES = ("2", "4", "6", "8", "10", "12")
FIGURES = {
    1: ("1.36", "1.94", "2.82", "3.32", "4.13", "4.75"),
    2: ("1474.16", "2063.03", "2131.01", "2409.79", "2421.82", "2526.35"),
    3: ("6.51", "7.80", "7.87", "9.07", "9.68", "9.49"),
}
NAMES = {1: "Latency", 2: "Throughput", 3: "Energy efficiency"}
CAPTIONS = {
    1: "Table 1. Latency results for ResNeXt101 (milliseconds per batch)",
    2: "Table 2. Throughput results (images/second) for ResNeXt101",
    3: "Table 3. Energy efficiency results (images/second/watt) for ResNeXt101",
}
ROWS = {number: tuple(zip(BATCHES, FIGURES[number], strict=True)) for number in NAMES}
TABLES = {number: paper.PaperTable(CAPTIONS[number], ("Batch size", NAMES[number]), ROWS[number]) for number in NAMES}

LOREM = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore magna aliqua"
SENTENCE = f"{LOREM.capitalize()}, in 2020 and 12 of 4.75 enim minim."
every_geometry = pytest.mark.parametrize("geometry", ["ieee", "cvpr", "single"])
captions_on_both_sides = pytest.mark.parametrize("caption", ["above", "below"])


def prose(sentences: int = 3) -> paper.Paragraph:
    return paper.Paragraph(" ".join([SENTENCE] * sentences))


def make_pdf(*tables: paper.PaperTable, between: int = 2, **style: Any) -> bytes:
    blocks: list[paper.Block] = [paper.Title("Some words on top of both columns"), prose(5)]
    for table in tables:
        blocks += [table, prose(between)]
    return paper.build(blocks, paper.Style(**style))


def read(data: bytes) -> ParsedDocument:
    return read_pdf(data, PAPER_HEADERS)


def cells(table: SourceTable) -> tuple[tuple[str, ...], ...]:
    return tuple(row.cells for row in table.rows)


def tables(document: ParsedDocument) -> dict[str, tuple[tuple[str, ...], ...]]:
    return {table.name: cells(table) for table in document.tables}


def assert_truth(document: ParsedDocument, *, rows: dict[int, Any] = ROWS) -> None:
    assert document.problems == ()
    assert tables(document) == {f"qwant_table_{number}": rows[number] for number in rows}
    for table in document.tables:
        number = int(table.name[-1])
        assert table.columns == ("Batch size", NAMES[number])
        assert table.caption == CAPTIONS[number]
        assert [row.number for row in table.rows] == list(range(1, len(table.rows) + 1))


def split(number: int, after: int, *blocks: paper.Paragraph | paper.Break) -> paper.PaperTable:
    return replace(TABLES[number], split_after=after, split=blocks)


# --- the committed transcription


def test_committed_transcription_has_the_printed_rows_captions_and_boxes() -> None:
    document = read(PDF.read_bytes())
    assert [(table.name, cells(table), table.caption) for table in document.tables] == [
        ("qwant_table_1", ROWS[1], "Table 1. Latency (milliseconds per batch)"),
        ("qwant_table_2", ROWS[2], "Table 2. Throughput (images/second)"),
        ("qwant_table_3", ROWS[3], "Table 3. Energy efficiency (images/second/watt)"),
    ]
    assert document.problems == ()
    table = document.tables[0]
    assert all(len(set(row.cell_locators or ())) == 2 for row in table.rows)
    assert table.rows[0].locator == "page 1, box 410.8,124.2,470.8,134.2"
    assert table.cell_locator(table.rows[0], 1) == "page 1, box 453.3,124.2,470.8,134.2"


def test_committed_transcription_states_the_setup() -> None:
    metadata = read(PDF.read_bytes()).metadata
    assert [(item.label, item.text) for item in metadata] == [
        ("Platform", "C2"),
        ("Chips", "2"),
        ("SDK version", "1.0.136"),
        ("Framework", "PopART"),
        ("Model", "ResNeXt101"),
        ("Precision", "mixed"),
        ("Dataset", "COCO validation subset"),
        ("Images", "10,000"),
        ("Batch per chip", "half of the batch size"),
    ]
    assert {item.label for item in metadata} == set(METADATA_LABELS) == set(WORDS.metadata["inference-paper"])
    assert all(re.fullmatch(r"page 1, box (\d+\.\d,){3}\d+\.\d", item.locator) for item in metadata)


def test_script_makes_the_committed_bytes() -> None:
    script = runpy.run_path(str(PDF.with_name("make_transcription.py")))
    assert script["make_transcription"]() == PDF.read_bytes()


# --- layouts of the page


@every_geometry
@captions_on_both_sides
@pytest.mark.parametrize("rules", [True, False])
def test_every_layout_has_the_same_rows(geometry: str, caption: str, rules: bool) -> None:
    assert_truth(read(make_pdf(*TABLES.values(), geometry=geometry, caption=caption, rules=rules)))


@pytest.mark.parametrize("order", [(3, 1, 2), (2, 3, 1)])
def test_tables_in_any_order(order: tuple[int, ...]) -> None:
    document = read(make_pdf(*(TABLES[number] for number in order)))
    assert_truth(document)
    assert [table.name for table in document.tables] == [f"qwant_table_{number}" for number in order]


@every_geometry
def test_ligatures_are_spelled_out(geometry: str) -> None:
    assert_truth(read(make_pdf(*TABLES.values(), geometry=geometry, ligatures=True, size=9.0, caption_size=8.0)))


@captions_on_both_sides
def test_captions_with_little_or_no_prose_between_the_tables(caption: str) -> None:
    for between in (1, 11):
        assert_truth(read(make_pdf(*TABLES.values(), between=between, caption=caption)))
    assert_truth(read(paper.build([prose(9), *TABLES.values()], paper.Style(caption=caption))))  # type: ignore[arg-type]


def test_page_with_nothing_but_tables() -> None:
    for geometry in ("cvpr", "single"):
        assert_truth(read(paper.build(TABLES.values(), paper.Style(geometry=geometry, rules=False))))


def test_columns_keep_the_order_of_the_page() -> None:
    rows = tuple((figure, label) for label, figure in ROWS[1])
    [table] = read(make_pdf(paper.PaperTable(CAPTIONS[1], ("Latency", "Batch size"), rows))).tables
    assert (table.columns, cells(table)) == (("Latency", "Batch size"), rows)


def test_unit_in_the_header_is_kept() -> None:
    [table] = read(make_pdf(paper.with_header(TABLES[1], 1, "Latency (ms)"))).tables
    assert (table.columns, cells(table)) == (("Batch size", "Latency (ms)"), ROWS[1])


def test_caption_hyphenated_over_two_lines_is_joined() -> None:
    width = paper.GEOMETRIES["cvpr"].width
    captions = (f"Table 1. Latency of{' a' * count} net (milli- seconds per batch)" for count in range(40))
    caption = next(text for text in captions if next(paper.wrap(text, "Times-Roman", 9.0, width))[0].endswith("milli-"))
    document = read(make_pdf(replace(TABLES[1], caption=caption)))
    assert document.tables[0].caption == caption.replace("- ", "")


def test_footnote_marks_are_lifted_off() -> None:
    rows = (("2", "1.36^1"), ("4", "1.94*"), *ROWS[1][2:])
    [table] = read(make_pdf(replace(TABLES[1], rows=rows))).tables
    assert cells(table) == ROWS[1]
    assert [row.footnotes for row in table.rows[:3]] == [((1, "1"),), ((1, "*"),), ()]


def test_sentence_that_names_a_table_is_not_a_caption() -> None:
    text = f"{LOREM} {LOREM} as is shown by Table 1. The latency {LOREM}"
    for start in range(0, 60, 20):
        assert_truth(read(paper.build([prose(8), paper.Paragraph(text[start:]), *TABLES.values()])))


# --- pages set by hand


def set_by_hand(*texts: tuple[float, float, str], size: float = 10) -> bytes:
    """Set a page in two columns of prose, 60 to 300 and 312 to 552, with `texts` at places from the bottom left."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(612, 792))
    canvas.setFont("Times-Roman", size)
    for line in range(20):
        canvas.drawString(60, 400 - 12 * line, "lorem ipsum dolor sit amet consectetur adipiscing elit")
        canvas.drawString(312, 403 - 12 * line, "lorem ipsum dolor sit amet consectetur adipiscing elit")
    for x, y, text in texts:
        canvas.drawString(x, y, text)
    canvas.rotate(90)
    canvas.drawString(200, -30, "arXiv:0000.00000v1 Batch size 26 Feb 2020")
    canvas.save()
    return out.getvalue()


def rows_at(x: float, y: float, pitch: float = 12, column: float = 70) -> list[tuple[float, float, str]]:
    """Place the rows of the first table below the baseline of its header."""
    return [
        (x + column * place, y - pitch * row, cell)
        for row, row_cells in enumerate(ROWS[1], 1)
        for place, cell in enumerate(row_cells)
    ]


@pytest.mark.parametrize(
    ("x", "column", "pitch"), [(60, 70, 10), (390, 70, 18), (240, 90, 12), (260, 200, 12), (240, 90, 18)]
)
def test_table_anywhere_on_the_page(x: float, column: float, pitch: float) -> None:
    caption = "Table 1: Latency of all that was tried (milliseconds per batch)"
    header = [(x, 700, "Batch size"), (x + column, 700, "Latency"), (200, 560, caption)]
    [table] = read(set_by_hand(*header, *rows_at(x, 700, pitch, column))).tables
    assert (cells(table), table.caption) == (ROWS[1], caption)


def test_caption_above_its_title_line() -> None:
    texts = [(400, 740, "TABLE I"), (340, 728, "LATENCY RESULTS (MILLISECONDS PER BATCH)")]
    header = [(390, 710, "Batch size"), (460, 710, "Latency")]
    [table] = read(set_by_hand(*texts, *header, *rows_at(390, 710))).tables
    assert table.caption == "TABLE I LATENCY RESULTS (MILLISECONDS PER BATCH)"


def test_unit_under_the_name_belongs_to_the_header() -> None:
    header = [(390, 710, "Batch size"), (460, 710, "Latency"), (460, 698, "(ms)")]
    [table] = read(set_by_hand(*header, *rows_at(390, 698))).tables
    assert (table.columns, cells(table)) == (("Batch size", "Latency (ms)"), ROWS[1])


def test_header_over_two_lines_is_one_name() -> None:
    header = [(390, 710, "Batch"), (390, 698, "size"), (460, 710, "Latency"), (390, 728, "Table 1. Latency (ms)")]
    document = read(set_by_hand(*header, *rows_at(390, 698)))
    assert (document.problems, document.tables[0].columns) == ((), ("Batch size", "Latency"))
    assert cells(document.tables[0]) == ROWS[1]


# --- tables that are split


@pytest.mark.parametrize("geometry", ["ieee", "cvpr"])
@captions_on_both_sides
@pytest.mark.parametrize("after", [0, 3, 5])
def test_table_continues_in_the_next_column(geometry: str, caption: str, after: int) -> None:
    split_table = split(2, after, paper.Break())
    assert_truth(read(make_pdf(TABLES[1], split_table, TABLES[3], geometry=geometry, caption=caption)))


@every_geometry
@pytest.mark.parametrize("after", [0, 5])
def test_table_continues_after_a_paragraph(geometry: str, after: int) -> None:
    assert_truth(read(make_pdf(TABLES[1], split(2, after, prose(2)), TABLES[3], geometry=geometry)))


@pytest.mark.parametrize("geometry", ["cvpr", "single"])
def test_table_continues_on_the_next_page(geometry: str) -> None:
    document = read(make_pdf(TABLES[1], split(2, 4, paper.Break("page")), TABLES[3], geometry=geometry))
    assert_truth(document)
    assert [row.locator.split(",")[0] for row in document.tables[1].rows] == ["page 1"] * 4 + ["page 2"] * 2


def test_table_continues_after_a_paragraph_in_the_next_column() -> None:
    assert_truth(read(make_pdf(TABLES[1], split(2, 3, paper.Break(), prose(2)), TABLES[3])))


def test_split_table_has_one_locator_for_each_part() -> None:
    table = read(make_pdf(split(2, 3, paper.Break()))).tables[0]
    assert len(table.locator.split("; ")) == 2


# --- what is missing


@pytest.mark.parametrize("row", range(6))
def test_lost_label_is_an_empty_cell(row: int) -> None:
    data = make_pdf(TABLES[1], paper.without_cell(TABLES[2], row, 0), TABLES[3], rules=row % 2 == 0)
    lost = tuple(("" if place == row else label, figure) for place, (label, figure) in enumerate(ROWS[2]))
    assert_truth(read(data), rows={**ROWS, 2: lost})


@pytest.mark.parametrize("row", [0, 3, 5])
def test_lost_figure_is_a_problem_of_its_row(row: int) -> None:
    document = read(make_pdf(TABLES[1], paper.without_cell(TABLES[2], row, 1), TABLES[3]))
    assert problems(document) == [("qwant_table_2", row + 1, "row-width")]
    assert document.problems[0].raw == (BATCHES[row], "")
    assert [source.number for source in document.tables[1].rows] == [n for n in range(1, 7) if n != row + 1]
    kept = tuple(source for place, source in enumerate(ROWS[2]) if place != row)
    assert tables(document) == {"qwant_table_1": ROWS[1], "qwant_table_2": kept, "qwant_table_3": ROWS[3]}


def test_cells_between_the_columns_are_a_problem_of_their_row() -> None:
    out = io.BytesIO()
    canvas = Canvas(out)
    for place, row in enumerate((("Batch size", "Latency"), *ROWS[1])):
        canvas.drawString(170 if place == 3 else 120, 700 - 12 * place, row[0])
        canvas.drawString(180 if place == 3 else 200, 700 - 12 * place, row[1])
    canvas.save()
    document = read(out.getvalue())
    assert problems(document) == [("qwant_table_1", 3, "row-width")]
    assert cells(document.tables[0]) == (*ROWS[1][:2], *ROWS[1][3:])


@captions_on_both_sides
@pytest.mark.parametrize("number", [1, 2, 3])
def test_renamed_header_is_a_problem_of_its_table(number: int, caption: str) -> None:
    changed = {**TABLES, number: paper.with_header(TABLES[number], 1, "Foo")}
    document = read(make_pdf(*changed.values(), caption=caption))
    assert problems(document) == [(f"qwant_table_{number}", None, "unknown-header")]
    assert document.problems[0].raw == ("Batch size", "Foo")
    assert tables(document) == {f"qwant_table_{n}": ROWS[n] for n in ROWS if n != number}


@captions_on_both_sides
@pytest.mark.parametrize(
    "table",
    [
        paper.without_column(TABLES[2], 0),
        paper.without_column(TABLES[2], 1),
        replace(TABLES[2], columns=("Foo", "Bar")),
    ],
    ids=["no labels", "no figures", "both renamed"],
)
def test_lost_column_or_header_is_a_problem_and_gets_no_rows_of_another_table(
    table: paper.PaperTable, caption: str
) -> None:
    document = read(make_pdf(TABLES[1], table, TABLES[3], caption=caption))
    assert problems(document) == [("qwant_table_2", None, "unknown-header")]
    assert tables(document) == {f"qwant_table_{number}": ROWS[number] for number in (1, 3)}


def test_repeated_table_is_read_once() -> None:
    document = read(make_pdf(TABLES[1], TABLES[1]))
    assert problems(document) == [("qwant_table_1", None, "duplicate-table")]
    assert [cells(table) for table in document.tables] == [ROWS[1]]


def test_header_without_rows_is_a_problem() -> None:
    document = read(make_pdf(replace(TABLES[1], rows=()), TABLES[3]))
    assert problems(document) == [("qwant_table_1", None, "cells-missing")]
    assert list(tables(document)) == ["qwant_table_3"]


def test_table_with_fewer_rows_than_the_others_is_a_problem() -> None:
    document = read(make_pdf(TABLES[1], replace(TABLES[2], rows=ROWS[2][:5]), TABLES[3]))
    assert problems(document) == [("qwant_table_2", None, "cells-missing")]
    assert list(tables(document)) == ["qwant_table_1", "qwant_table_3"]


def test_pdf_without_known_tables_is_not_recognised() -> None:
    with pytest.raises(UnrecognisedDocumentError, match="no table with a known header"):
        read(make_pdf(paper.PaperTable("Table 1. Weather", ("Day", "Rain"), (("1", "2.5"),))))


# --- damaged files


@pytest.mark.parametrize("share", [0.05, 0.6, 0.98])
def test_truncated_pdf_is_damaged(share: float) -> None:
    data = PDF.read_bytes()
    with pytest.raises(DamagedDocumentError, match="truncated"):
        read(data[: int(len(data) * share)])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b" \n\n ", "is empty"),
        (b"<!DOCTYPE html><html><body>404 Not Found</body></html>", "is not a PDF but an HTML page"),
        (b"just words", "is not a PDF but some other file"),
        (b"%PDF-1.4\n" + bytes(range(256)) * 40 + b"\n%%EOF\n", "cannot be read as a PDF"),
    ],
)
def test_other_files_are_damaged_pdfs(data: bytes, message: str) -> None:
    with pytest.raises(DamagedDocumentError, match=message):
        read(data)


def encrypt(password: str) -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, encrypt=StandardEncryption(password, "owner"))
    for x, y, text in [(100, 700, "Batch size"), (170, 700, "Latency"), *rows_at(100, 700)]:
        canvas.drawString(x, y, text)
    canvas.save()
    return out.getvalue()


def test_only_a_pdf_that_opens_without_a_password_is_read() -> None:
    assert cells(read(encrypt("")).tables[0]) == ROWS[1]
    with pytest.raises(DamagedDocumentError, match="is encrypted: a password is needed"):
        read(encrypt("secret"))


def test_too_many_pages_are_refused() -> None:
    data = paper.build([paper.Break("page")] * 3)
    with pytest.raises(DocumentTooLargeError, match="has 4 pages, the limit is 3"):
        read_pdf(data, PAPER_HEADERS, max_pages=3)
    with pytest.raises(UnrecognisedDocumentError):
        read_pdf(data, PAPER_HEADERS, max_pages=4)


def test_tables_after_many_pages_are_read() -> None:
    blocks = [block for _ in range(60) for block in (paper.Paragraph("words"), paper.Break("page"))]
    document = read(paper.build([*blocks, prose(8), *TABLES.values()]))
    assert_truth(document)
    assert document.tables[0].rows[0].locator.startswith("page 61, ")


def tables_or_none(data: bytes) -> tuple[SourceTable, ...] | None:
    try:
        return read(data).tables
    except DocumentError:
        return None


def test_changed_byte_never_changes_a_cell(caplog: pytest.LogCaptureFixture) -> None:
    data = PDF.read_bytes()
    truth = read(data)
    start, end = data.index(b"stream"), data.index(b"endstream")
    for place in range(start + 10, end, max((end - start) // 60, 1)):
        changed = data[:place] + bytes([33 + (data[place] + 7) % 80]) + data[place + 1 :]
        assert tables_or_none(changed) in (None, truth.tables)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


# --- properties


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_are_a_document_error(noise: bytes, framed: bool) -> None:
    data = b"%PDF-1.7\n" + noise + b"\n%%EOF" if framed else noise
    with pytest.raises(DocumentError):
        read(data)


@given(st.data())
def test_mutated_pdf_has_printed_rows_alone_or_is_refused(data: st.DataObject) -> None:
    original = PDF.read_bytes()
    start = data.draw(st.integers(0, len(original) - 1))
    end = data.draw(st.integers(start, min(start + 40, len(original))))
    changed = original[:start] + data.draw(st.binary(max_size=40)) + original[end:]
    known = {f"qwant_table_{number}": set(ROWS[number]) for number in ROWS}
    assert all(set(cells(table)) <= known[table.name] for table in tables_or_none(changed) or ())


figure = st.decimals(min_value=0, max_value=99999, places=2).map(lambda value: f"{value:.2f}")
labels = st.sets(st.integers(1, 4096), min_size=1, max_size=14).map(lambda numbers: [*map(str, sorted(numbers))])


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(
    batches=labels,
    figures=st.lists(figure, min_size=14, max_size=14),
    geometry=st.sampled_from(["ieee", "cvpr", "single"]),
    caption=st.sampled_from(["above", "below"]),
    lost=st.integers(0, 13),
)
def test_any_rows_are_read_back(batches: list[str], figures: list[str], geometry: str, caption: str, lost: int) -> None:
    rows = tuple((("" if place == lost else label), figures[place]) for place, label in enumerate(batches))
    table = paper.PaperTable("Table 7. Throughput (images/second)", ("Batch size", "Throughput"), rows)
    document = read(make_pdf(table, geometry=geometry, caption=caption))
    assert document.problems == ()
    assert [(t.name, cells(t), t.caption) for t in document.tables] == [("qwant_table_2", rows, table.caption)]
