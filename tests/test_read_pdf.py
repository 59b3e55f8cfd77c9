"""The paper's tables from PDFs: many settings of the page, one truth; damaged files, one clear error."""

from __future__ import annotations

import importlib.util
import io
import logging
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ipu_results.errors import DamagedDocumentError, DocumentError, DocumentTooLargeError, UnrecognisedDocumentError
from ipu_results.read.paper.terms import METADATA_LABELS
from ipu_results.read.pdf import read_pdf
from ipu_results.read.document import ParsedDocument, SourceTable
from ipu_results.schema.layouts import TableHeader
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

ROOT = Path(__file__).resolve().parent.parent
QWANT = ROOT / "raw" / "qwant"
PDF = QWANT / "resnext101-c2-2020-02-28.pdf"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, QWANT / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


paper: Any = load("paper_layout")
transcription: Any = load("make_transcription")


def load_layouts() -> list[TableHeader]:
    entries = tomllib.loads((ROOT / "schema/vocabulary/layouts.toml").read_text(encoding="utf-8"))["layout"]
    return [
        TableHeader(entry["reader"], entry["table"], tuple(entry["fields"].items()), entry["task"])
        for entry in entries
        if entry["reader"] == "qwant-paper"
    ]


LAYOUTS = load_layouts()
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

WORDS = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore magna aliqua"
SENTENCE = f"{WORDS.capitalize()}, in 2020 and 12 of 4.75 enim minim."


def prose(sentences: int = 3) -> Any:
    return paper.Paragraph(" ".join([SENTENCE] * sentences))


def pdf_of(*tables: Any, between: int = 2, **style: Any) -> bytes:
    blocks = [prose(5)]
    for table in tables:
        blocks += [table, prose(between)]
    return bytes(paper.build([paper.Title("Some words on top of both columns"), *blocks], paper.Style(**style)))


def read(data: bytes) -> ParsedDocument:
    return read_pdf(data, LAYOUTS)


def cells(table: SourceTable) -> tuple[tuple[str, ...], ...]:
    return tuple(row.cells for row in table.rows)


def assert_truth(reading: ParsedDocument, *, rows: dict[int, Any] = ROWS) -> None:
    assert reading.problems == ()
    assert {table.name: cells(table) for table in reading.tables} == {f"qwant_table_{n}": rows[n] for n in rows}
    for table in reading.tables:
        number = int(table.name[-1])
        assert table.columns == ("Batch size", NAMES[number])
        assert table.caption == CAPTIONS[number]
        assert [row.number for row in table.rows] == list(range(1, len(table.rows) + 1))


def split(number: int, after: int, *blocks: Any) -> Any:
    return paper.replace(TABLES[number], split_after=after, split=blocks)


# --- the committed transcription


def test_our_transcription_reads_row_by_row() -> None:
    reading = read(PDF.read_bytes())
    assert [(table.name, cells(table)) for table in reading.tables] == [
        (f"qwant_table_{n}", ROWS[n]) for n in (1, 2, 3)
    ]
    assert [table.caption for table in reading.tables] == [
        "Table 1. Latency (milliseconds per batch)",
        "Table 2. Throughput (images/second)",
        "Table 3. Energy efficiency (images/second/watt)",
    ]
    assert reading.problems == ()


def test_our_transcription_states_the_setup() -> None:
    facts = read(PDF.read_bytes()).metadata
    assert [(fact.label, fact.text) for fact in facts] == [
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
    assert {fact.label for fact in facts} == set(METADATA_LABELS)
    assert all(re.fullmatch(r"page 1, box (\d+\.\d,){3}\d+\.\d", fact.locator) for fact in facts)


def test_the_labels_of_facts_are_those_of_the_vocabulary() -> None:
    vocabulary = tomllib.loads((ROOT / "schema/vocabulary/layouts.toml").read_text(encoding="utf-8"))
    assert set(vocabulary["facts"]["qwant-paper"]) == set(METADATA_LABELS)


def test_the_script_makes_the_committed_bytes() -> None:
    assert transcription.transcription() == PDF.read_bytes()


# --- settings of the page


@pytest.mark.parametrize("geometry", ["ieee", "cvpr", "single"])
@pytest.mark.parametrize("caption", ["above", "below"])
@pytest.mark.parametrize("rules", [True, False])
def test_every_setting_of_the_page_gives_the_same_rows(geometry: str, caption: str, rules: bool) -> None:
    assert_truth(read(pdf_of(*TABLES.values(), geometry=geometry, caption=caption, rules=rules)))


@pytest.mark.parametrize("order", [(3, 1, 2), (2, 3, 1), (3, 2, 1)])
def test_tables_stand_in_any_order(order: tuple[int, ...]) -> None:
    reading = read(pdf_of(*(TABLES[number] for number in order)))
    assert_truth(reading)
    assert [table.name for table in reading.tables] == [f"qwant_table_{number}" for number in order]


@pytest.mark.parametrize("geometry", ["ieee", "cvpr", "single"])
def test_ligatures_are_spelled_out(geometry: str) -> None:
    data = pdf_of(*TABLES.values(), geometry=geometry, ligatures=True, size=9.0, caption_size=8.0)
    assert_truth(read(data))


@pytest.mark.parametrize("between", [1, 6, 11])
def test_tables_without_prose_between_keep_their_captions(between: int) -> None:
    assert_truth(read(pdf_of(*TABLES.values(), between=between, caption="above")))
    assert_truth(read(pdf_of(*TABLES.values(), between=between, caption="below")))


def test_tables_follow_one_another_directly() -> None:
    for caption in ("above", "below"):
        data = paper.build([prose(9), *TABLES.values()], paper.Style(caption=caption))
        assert_truth(read(data))


def test_a_page_with_nothing_but_tables() -> None:
    for geometry in ("cvpr", "single"):
        assert_truth(read(paper.build(TABLES.values(), paper.Style(geometry=geometry, rules=False))))


def test_the_order_of_the_columns_is_that_of_the_page() -> None:
    rows = tuple((figure, label) for label, figure in ROWS[1])
    table = paper.PaperTable(CAPTIONS[1], ("Latency", "Batch size"), rows)
    reading = read(pdf_of(table))
    assert [(table.columns, cells(table)) for table in reading.tables] == [(("Latency", "Batch size"), rows)]


def test_a_unit_in_the_header_is_kept() -> None:
    reading = read(pdf_of(paper.with_header(TABLES[1], 1, "Latency (ms)")))
    assert reading.tables[0].columns == ("Batch size", "Latency (ms)")
    assert cells(reading.tables[0]) == ROWS[1]


def test_a_caption_hyphenated_over_two_lines_is_made_whole() -> None:
    width = paper.GEOMETRIES["cvpr"].width
    captions = (f"Table 1. Latency of{' a' * count} net (milli- seconds per batch)" for count in range(40))
    caption = next(text for text in captions if next(paper.wrap(text, "Times-Roman", 9.0, width))[0].endswith("milli-"))
    reading = read(pdf_of(paper.replace(TABLES[1], caption=caption)))
    assert reading.tables[0].caption == caption.replace("- ", "")


def test_a_footnote_sign_is_lifted_off() -> None:
    rows = (("2", "1.36^1"), ("4", "1.94*"), *ROWS[1][2:])
    table = read(pdf_of(paper.replace(TABLES[1], rows=rows))).tables[0]
    assert cells(table) == ROWS[1]
    assert [row.footnotes for row in table.rows[:3]] == [((1, "1"),), ((1, "*"),), ()]


def test_a_sentence_that_names_a_table_is_no_caption() -> None:
    text = f"{WORDS} {WORDS} as is shown by Table 1. The latency {WORDS}"
    for start in range(0, 60, 20):
        data = paper.build([prose(8), paper.Paragraph(text[start:]), *TABLES.values()], paper.Style())
        assert_truth(read(data))


# --- pages set by hand


def by_hand(*texts: tuple[float, float, str], size: float = 10) -> bytes:
    """A page in two columns of prose, 60 to 300 and 312 to 552, with `texts` at places from the bottom left."""
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


def table_at(x: float, y: float, pitch: float = 12, column: float = 70) -> list[tuple[float, float, str]]:
    """Rows of the first table, from the baseline of the row above the first."""
    return [
        (x + column * place, y - pitch * row, cell)
        for row, cells in enumerate(ROWS[1], 1)
        for place, cell in enumerate(cells)
    ]


@pytest.mark.parametrize(("x", "column"), [(60, 70), (390, 70), (240, 90), (260, 200)])
@pytest.mark.parametrize("pitch", [10, 12, 18])
def test_a_table_anywhere_on_the_page(x: float, column: float, pitch: float) -> None:
    caption = "Table 1: Latency of all that was tried (milliseconds per batch)"
    header = [(x, 700, "Batch size"), (x + column, 700, "Latency"), (200, 560, caption)]
    table = read(by_hand(*header, *table_at(x, 700, pitch, column))).tables[0]
    assert cells(table) == ROWS[1]
    assert table.caption == caption


def test_a_caption_above_its_title_line() -> None:
    texts = [(400, 740, "TABLE I"), (340, 728, "LATENCY RESULTS (MILLISECONDS PER BATCH)")]
    header = [(390, 710, "Batch size"), (460, 710, "Latency")]
    table = read(by_hand(*texts, *header, *table_at(390, 710))).tables[0]
    assert table.caption == "TABLE I LATENCY RESULTS (MILLISECONDS PER BATCH)"


def test_a_unit_under_the_name_belongs_to_the_header() -> None:
    header = [(390, 710, "Batch size"), (460, 710, "Latency"), (460, 698, "(ms)")]
    table = read(by_hand(*header, *table_at(390, 698))).tables[0]
    assert (table.columns, cells(table)) == (("Batch size", "Latency (ms)"), ROWS[1])


def test_a_header_over_two_lines_is_a_problem() -> None:
    header = [(390, 710, "Batch"), (390, 698, "size"), (460, 710, "Latency"), (390, 728, "Table 1. Latency (ms)")]
    reading = read(by_hand(*header, *table_at(390, 698)))
    assert [(problem.table_name, problem.reason) for problem in reading.problems] == [
        ("qwant_table_1", "unknown-header")
    ]


# --- tables that are split


@pytest.mark.parametrize("geometry", ["ieee", "cvpr"])
@pytest.mark.parametrize("after", [0, 1, 3, 5])
def test_a_table_goes_on_in_the_next_column(geometry: str, after: int) -> None:
    tables = (TABLES[1], split(2, after, paper.Break()), TABLES[3])
    assert_truth(read(pdf_of(*tables, geometry=geometry)))
    assert_truth(read(pdf_of(*tables, geometry=geometry, caption="above")))


@pytest.mark.parametrize("geometry", ["ieee", "cvpr", "single"])
@pytest.mark.parametrize("after", [0, 2, 5])
def test_a_table_goes_on_after_a_paragraph(geometry: str, after: int) -> None:
    data = pdf_of(TABLES[1], split(2, after, prose(2)), TABLES[3], geometry=geometry)
    assert_truth(read(data))


@pytest.mark.parametrize("geometry", ["cvpr", "single"])
def test_a_table_goes_on_on_the_next_page(geometry: str) -> None:
    reading = read(pdf_of(TABLES[1], split(2, 4, paper.Break("page")), TABLES[3], geometry=geometry))
    assert_truth(reading)
    assert [row.locator.split(",")[0] for row in reading.tables[1].rows] == ["page 1"] * 4 + ["page 2"] * 2


def test_a_table_goes_on_after_a_paragraph_in_the_next_column() -> None:
    data = pdf_of(TABLES[1], split(2, 3, paper.Break(), prose(2)), TABLES[3])
    assert_truth(read(data))


def test_a_split_table_has_one_locator_for_each_part() -> None:
    table = read(pdf_of(split(2, 3, paper.Break()))).tables[0]
    assert len(table.locator.split("; ")) == 2


# --- what is missing


@pytest.mark.parametrize("row", range(6))
@pytest.mark.parametrize("rules", [True, False])
def test_a_lost_label_is_an_empty_cell(row: int, rules: bool) -> None:
    data = pdf_of(TABLES[1], paper.without_cell(TABLES[2], row, 0), TABLES[3], rules=rules)
    lost = tuple(("" if place == row else label, figure) for place, (label, figure) in enumerate(ROWS[2]))
    assert_truth(read(data), rows={**ROWS, 2: lost})


@pytest.mark.parametrize("row", range(6))
def test_a_lost_figure_is_a_problem_of_its_row(row: int) -> None:
    reading = read(pdf_of(TABLES[1], paper.without_cell(TABLES[2], row, 1), TABLES[3]))
    (problem,) = reading.problems
    assert (problem.table_name, problem.row_number, problem.reason) == ("qwant_table_2", row + 1, "row-width")
    assert problem.raw == (BATCHES[row], "")
    assert [source.number for source in reading.tables[1].rows] == [
        number for number in range(1, 7) if number != row + 1
    ]
    assert cells(reading.tables[1]) == tuple(source for place, source in enumerate(ROWS[2]) if place != row)
    assert cells(reading.tables[0]) == ROWS[1]
    assert cells(reading.tables[2]) == ROWS[3]


def test_cells_set_together_are_a_problem_of_their_row() -> None:
    out = io.BytesIO()
    canvas = Canvas(out)
    for place, row in enumerate((("Batch size", "Latency"), *ROWS[1])):
        canvas.drawString(170 if place == 3 else 120, 700 - 12 * place, row[0])
        canvas.drawString(180 if place == 3 else 200, 700 - 12 * place, row[1])
    canvas.save()
    reading = read(out.getvalue())
    assert [(problem.row_number, problem.reason) for problem in reading.problems] == [(3, "row-width")]
    assert cells(reading.tables[0]) == (*ROWS[1][:2], *ROWS[1][3:])


@pytest.mark.parametrize("caption", ["above", "below"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_renamed_header_is_a_problem_of_its_table(number: int, caption: str) -> None:
    tables = {**TABLES, number: paper.with_header(TABLES[number], 1, "Foo")}
    reading = read(pdf_of(*tables.values(), caption=caption))
    (problem,) = reading.problems
    assert (problem.table_name, problem.row_number, problem.reason) == (f"qwant_table_{number}", None, "unknown-header")
    assert problem.raw == ("Batch size", "Foo")
    assert {t.name: cells(t) for t in reading.tables} == {f"qwant_table_{n}": ROWS[n] for n in ROWS if n != number}


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("caption", ["above", "below"])
def test_a_lost_column_is_a_problem_of_its_table(column: int, caption: str) -> None:
    tables = {**TABLES, 2: paper.without_column(TABLES[2], column)}
    reading = read(pdf_of(*tables.values(), caption=caption))
    assert [(problem.table_name, problem.reason) for problem in reading.problems] == [
        ("qwant_table_2", "unknown-header")
    ]
    assert {table.name: cells(table) for table in reading.tables} == {f"qwant_table_{n}": ROWS[n] for n in (1, 3)}


@pytest.mark.parametrize("caption", ["above", "below"])
def test_a_wholly_renamed_header_takes_no_rows_from_another_table(caption: str) -> None:
    renamed = paper.replace(TABLES[2], columns=("Foo", "Bar"))
    reading = read(pdf_of(TABLES[1], renamed, TABLES[3], caption=caption))
    assert [problem.reason for problem in reading.problems] == ["unknown-header"]
    assert {table.name: cells(table) for table in reading.tables} == {f"qwant_table_{n}": ROWS[n] for n in (1, 3)}


def test_a_table_that_stands_twice_is_read_once() -> None:
    reading = read(pdf_of(TABLES[1], TABLES[1]))
    assert [problem.reason for problem in reading.problems] == ["duplicate-table"]
    assert [cells(table) for table in reading.tables] == [ROWS[1]]


def test_a_header_without_rows_is_a_problem() -> None:
    reading = read(pdf_of(paper.replace(TABLES[1], rows=()), TABLES[3]))
    assert [(problem.table_name, problem.reason) for problem in reading.problems] == [
        ("qwant_table_1", "cells-missing")
    ]
    assert [table.name for table in reading.tables] == ["qwant_table_3"]


def test_a_pdf_without_known_tables_is_not_recognised() -> None:
    with pytest.raises(UnrecognisedDocumentError, match="no table with a known header"):
        read(pdf_of(paper.PaperTable("Table 1. Weather", ("Day", "Rain"), (("1", "2.5"),))))


# --- places


def test_every_cell_has_its_own_box() -> None:
    table = read(PDF.read_bytes()).tables[0]
    for row in table.rows:
        assert row.cell_locators is not None
        assert len(set(row.cell_locators)) == 2
    assert table.rows[0].locator == "page 1, box 410.8,124.2,470.8,134.2"
    assert table.cell_locator(table.rows[0], 1) == "page 1, box 453.3,124.2,470.8,134.2"


# --- damaged files


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.9, 0.98])
def test_a_truncated_pdf_is_damaged(share: float) -> None:
    data = PDF.read_bytes()
    with pytest.raises(DamagedDocumentError, match="truncated"):
        read(data[: int(len(data) * share)])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b" \n\n ", "is empty"),
        (b"<!DOCTYPE html><html><body>404 Not Found</body></html>", "is not a PDF but an HTML page"),
        (b"just words", "is not a PDF but some other file"),
        (bytes(range(256)) * 40, "is not a PDF but some other file"),
        (b"%PDF-1.4\n" + bytes(range(256)) * 40 + b"\n%%EOF\n", "cannot be read as a PDF"),
    ],
)
def test_other_files_are_damaged_pdfs(data: bytes, message: str) -> None:
    with pytest.raises(DamagedDocumentError, match=message):
        read(data)


def test_a_locked_pdf_says_so() -> None:
    out = io.BytesIO()
    canvas = Canvas(out, encrypt=StandardEncryption("secret", "owner"))
    canvas.drawString(72, 72, "Batch size")
    canvas.save()
    with pytest.raises(DamagedDocumentError, match="is encrypted: a password is needed"):
        read(out.getvalue())


def test_a_pdf_that_opens_without_a_password_is_read() -> None:
    out = io.BytesIO()
    canvas = Canvas(out, encrypt=StandardEncryption("", "owner"))
    for x, y, text in [(100, 700, "Batch size"), (170, 700, "Latency"), *table_at(100, 700)]:
        canvas.drawString(x, y, text)
    canvas.save()
    assert cells(read(out.getvalue()).tables[0]) == ROWS[1]


def many_pages(count: int) -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, invariant=1)
    for number in range(count):
        canvas.drawString(72, 72, str(number))
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def test_too_many_pages_are_refused() -> None:
    with pytest.raises(DocumentTooLargeError, match="has 1,000 pages, the limit is 500"):
        read(many_pages(1000))
    with pytest.raises(DocumentTooLargeError, match="has 3 pages, the limit is 2"):
        read_pdf(many_pages(3), LAYOUTS, max_pages=2)


def test_tables_are_found_behind_many_pages() -> None:
    blocks = [block for _ in range(60) for block in (paper.Paragraph("words"), paper.Break("page"))]
    reading = read(paper.build([*blocks, prose(8), *TABLES.values()], paper.Style()))
    assert_truth(reading)
    assert reading.tables[0].rows[0].locator.startswith("page 61, ")


def test_a_changed_byte_never_changes_a_cell(caplog: pytest.LogCaptureFixture) -> None:
    data = PDF.read_bytes()
    truth = read(data)
    start, end = data.index(b"stream"), data.index(b"endstream")
    for place in range(start + 10, end, max((end - start) // 60, 1)):
        changed = data[:place] + bytes([33 + (data[place] + 7) % 80]) + data[place + 1 :]
        assert tables_or_none(changed) in (None, truth.tables)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def tables_or_none(data: bytes) -> tuple[SourceTable, ...] | None:
    try:
        return read(data).tables
    except DocumentError:
        return None


# --- properties


@given(st.binary(max_size=400), st.booleans())
def test_arbitrary_bytes_are_a_typed_error(noise: bytes, framed: bool) -> None:
    data = b"%PDF-1.7\n" + noise + b"\n%%EOF" if framed else noise
    with pytest.raises(DocumentError):
        read(data)


@given(st.data())
def test_mutations_give_the_rows_or_a_typed_error(data: st.DataObject) -> None:
    original = PDF.read_bytes()
    start = data.draw(st.integers(0, len(original) - 1))
    end = data.draw(st.integers(start, min(start + 40, len(original))))
    changed = original[:start] + data.draw(st.binary(max_size=40)) + original[end:]
    known = {f"qwant_table_{number}": set(ROWS[number]) for number in ROWS}
    assert all(set(cells(table)) <= known[table.name] for table in tables_or_none(changed) or ())


figure = st.decimals(min_value=0, max_value=99999, places=2).map(lambda value: f"{value:.2f}")
labels = st.lists(st.integers(1, 4096), min_size=1, max_size=14, unique=True).map(lambda found: sorted(map(str, found)))


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(
    batches=labels,
    figures=st.lists(figure, min_size=14, max_size=14),
    geometry=st.sampled_from(["ieee", "cvpr", "single"]),
    caption=st.sampled_from(["above", "below"]),
    lost=st.integers(0, 13),
)
def test_random_rows_come_back(batches: list[str], figures: list[str], geometry: str, caption: str, lost: int) -> None:
    rows = tuple((("" if place == lost else label), figures[place]) for place, label in enumerate(batches))
    table = paper.PaperTable("Table 7. Throughput (images/second)", ("Batch size", "Throughput"), rows)
    reading = read(pdf_of(table, geometry=geometry, caption=caption))
    assert reading.problems == ()
    assert {t.name: (cells(t), t.caption) for t in reading.tables} == {
        "qwant_table_2": (rows, "Table 7. Throughput (images/second)"),
    }
