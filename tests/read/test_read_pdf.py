"""The paper's tables from PDFs: many layouts of the page, one truth; damaged files, one clear
error.
"""

from __future__ import annotations

import re
import runpy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ipu_results.errors import (
    DamagedDocumentError,
    DocumentError,
    DocumentTooLargeError,
    UnrecognisedDocumentError,
)
from ipu_results.read import ParsedDocument, SourceTable, pdf_pages
from ipu_results.read.pdf import read_pdf
from ipu_results.read.text import METADATA_LABELS
from reportlab.lib.pdfencrypt import StandardEncryption

from tests.read import typeset_paper as paper
from tests.read.pdf_support import Row, Text, list_rows, place_rows, read_paper, set_texts
from tests.read.reading_support import BATCHES, FIGURES, PAPER_HEADERS, ROOT, WORDS, problems

PDF = ROOT / "raw" / "qwant" / "resnext101-c2-2020-02-28.pdf"
NAMES = {1: "Latency", 2: "Throughput", 3: "Energy efficiency"}
CAPTIONS = {
    1: "Table 1. Latency results for ResNeXt101 (milliseconds per batch)",
    2: "Table 2. Throughput results (images/second) for ResNeXt101",
    3: "Table 3. Energy efficiency results (images/second/watt) for ResNeXt101",
}
ROWS = {number: tuple(zip(BATCHES, FIGURES[number], strict=True)) for number in NAMES}
TABLES = {
    number: paper.PaperTable(CAPTIONS[number], ("Batch size", NAMES[number]), ROWS[number])
    for number in NAMES
}

LOREM = (
    "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut"
    " labore magna aliqua"
)
SENTENCE = f"{LOREM.capitalize()}, in 2020 and 12 of 4.75 enim minim."
GEOMETRIES = ("ieee", "cvpr", "single")
SIDES = ("above", "below")


def prose(sentences: int = 3) -> paper.Paragraph:
    return paper.Paragraph(" ".join([SENTENCE] * sentences))


def make_pdf(*tables: paper.PaperTable, between: int | None = 2, **style: Any) -> bytes:
    """Typeset tables with N sentences between them, or with nothing else if `between` is None."""
    blocks: list[paper.Block] = (
        [] if between is None else [paper.Title("Some words on top of both columns"), prose(5)]
    )
    for table in tables:
        blocks += [table, *[prose(between or 0)][: between or 0]]
    return paper.build(blocks, paper.Style(**style))


def tables(document: ParsedDocument) -> dict[str, tuple[Row, ...]]:
    return {table.name: tuple(row.cells for row in table.rows) for table in document.tables}


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
    document = read_paper(PDF.read_bytes())
    assert (document.problems, tables(document)) == (
        (),
        {f"qwant_table_{n}": ROWS[n] for n in ROWS},
    )
    assert [table.caption for table in document.tables] == [
        "Table 1. Latency (milliseconds per batch)",
        "Table 2. Throughput (images/second)",
        "Table 3. Energy efficiency (images/second/watt)",
    ]
    table = document.tables[0]
    assert all(len(set(row.cell_locators or ())) == 2 for row in table.rows)
    assert table.rows[0].locator == "page 1, box 410.8,124.2,470.8,134.2"
    assert table.cell_locator(table.rows[0], 1) == "page 1, box 453.3,124.2,470.8,134.2"
    assert {item.label: item.text for item in document.metadata} == {
        "Platform": "C2",
        "Chips": "2",
        "SDK version": "1.0.136",
        "Framework": "PopART",
        "Model": "ResNeXt101",
        "Precision": "mixed",
        "Dataset": "COCO validation subset",
        "Images": "10,000",
        "Batch per chip": "half of the batch size",
    }
    assert (
        {item.label for item in document.metadata}
        == set(METADATA_LABELS)
        == set(WORDS.metadata["inference-paper"])
    )
    assert all(
        re.fullmatch(r"page 1, box (\d+\.\d,){3}\d+\.\d", item.locator)
        for item in document.metadata
    )


def test_script_makes_the_committed_bytes() -> None:
    script = runpy.run_path(str(PDF.with_name("make_transcription.py")))
    assert script["make_transcription"]() == PDF.read_bytes()


# --- layouts of the page


@pytest.mark.parametrize(
    ("between", "style"),
    [
        *(
            (2, {"geometry": name, "caption": side, "rules": True})
            for name in GEOMETRIES
            for side in SIDES
        ),
        *(
            (2, {"geometry": name, "caption": side, "rules": False})
            for name in GEOMETRIES
            for side in SIDES
        ),
        *(
            (2, {"geometry": name, "ligatures": True, "size": 9.0, "caption_size": 8.0})
            for name in GEOMETRIES
        ),
        *((sentences, {"caption": side}) for sentences in (0, 1, 11) for side in SIDES),
        *((None, {"geometry": name, "rules": False}) for name in ("cvpr", "single")),
    ],
)
def test_every_layout_has_the_same_rows(between: int | None, style: dict[str, Any]) -> None:
    assert_truth(read_paper(make_pdf(*TABLES.values(), between=between, **style)))


@pytest.mark.parametrize("order", [(3, 1, 2), (2, 3, 1)])
def test_tables_in_any_order(order: tuple[int, ...]) -> None:
    document = read_paper(make_pdf(*(TABLES[number] for number in order)))
    assert_truth(document)
    assert [table.name for table in document.tables] == [
        f"qwant_table_{number}" for number in order
    ]


@pytest.mark.parametrize(
    ("table", "columns", "rows"),
    [
        (
            replace(
                TABLES[1],
                columns=("Latency", "Batch size"),
                rows=tuple(row[::-1] for row in ROWS[1]),
            ),
            ("Latency", "Batch size"),
            tuple(row[::-1] for row in ROWS[1]),
        ),
        (paper.with_header(TABLES[1], 1, "Latency (ms)"), ("Batch size", "Latency (ms)"), ROWS[1]),
    ],
)
def test_order_of_columns_and_unit_of_the_header_are_kept(
    table: paper.PaperTable, columns: Row, rows: Any
) -> None:
    [read] = read_paper(make_pdf(table)).tables
    assert (read.columns, tuple(row.cells for row in read.rows)) == (columns, rows)


def test_caption_hyphenated_over_two_lines_is_joined() -> None:
    width = paper.GEOMETRIES["cvpr"].width
    captions = (
        f"Table 1. Latency of{' a' * count} net (milli- seconds per batch)" for count in range(40)
    )
    caption = next(
        text
        for text in captions
        if next(paper.wrap(text, "Times-Roman", 9.0, width))[0].endswith("milli-")
    )
    document = read_paper(make_pdf(replace(TABLES[1], caption=caption)))
    assert document.tables[0].caption == caption.replace("- ", "")


def test_footnote_marks_are_lifted_off() -> None:
    rows = (("2", "1.36^1"), ("4", "1.94*"), *ROWS[1][2:])
    document = read_paper(make_pdf(replace(TABLES[1], rows=rows)))
    assert list_rows(document) == [*ROWS[1]]
    assert [row.footnotes for row in document.tables[0].rows[:3]] == [((1, "1"),), ((1, "*"),), ()]


def test_sentence_that_names_a_table_is_not_a_caption() -> None:
    text = f"{LOREM} {LOREM} as is shown by Table 1. The latency {LOREM}"
    for start in range(0, 60, 20):
        assert_truth(
            read_paper(paper.build([prose(8), paper.Paragraph(text[start:]), *TABLES.values()]))
        )


# --- pages set by hand


SENTENCE_LINES = [["lorem ipsum dolor sit amet consectetur adipiscing elit"]] * 20
PROSE = [*place_rows(400, SENTENCE_LINES, (60,)), *place_rows(403, SENTENCE_LINES, (312,))]
HEADER = ("Batch size", "Latency")


def read_by_hand(*texts: Text) -> SourceTable:
    """Read a page in two columns of prose, 60 to 300 and 312 to 552, with `texts` at places from
    the bottom left.
    """
    document = read_paper(set_texts([*PROSE, *texts]))
    [table] = document.tables
    assert (document.problems, list_rows(document)) == ((), [*ROWS[1]])
    return table


@pytest.mark.parametrize(
    ("x", "column", "pitch"),
    [(60, 70, 10), (390, 70, 18), (240, 90, 12), (260, 200, 12), (240, 90, 18)],
)
def test_table_anywhere_on_the_page(x: float, column: float, pitch: float) -> None:
    caption = "Table 1: Latency of all that was tried (milliseconds per batch)"
    texts = (
        place_rows(700, [HEADER], (x, x + column)),
        place_rows(700 - pitch, ROWS[1], (x, x + column), pitch),
    )
    assert read_by_hand(*texts[0], (200, 560, caption), *texts[1]).caption == caption


@pytest.mark.parametrize(
    ("header", "columns", "caption"),
    [
        (
            [
                (400, 740, "TABLE I"),
                (340, 728, "LATENCY RESULTS (MILLISECONDS)"),
                (390, 710, "Batch size"),
                (460, 710, "Latency"),
            ],
            HEADER,
            "TABLE I LATENCY RESULTS (MILLISECONDS)",
        ),
        (
            [(390, 710, "Batch size"), (460, 710, "Latency"), (460, 698, "(ms)")],
            ("Batch size", "Latency (ms)"),
            "",
        ),
        (
            [
                (390, 710, "Batch"),
                (390, 698, "size"),
                (460, 710, "Latency"),
                (390, 728, "Table 1. Latency (ms)"),
            ],
            HEADER,
            "Table 1. Latency (ms)",
        ),
    ],
)
def test_header_and_caption_of_two_lines_are_joined(
    header: list[Text], columns: Row, caption: str
) -> None:
    table = read_by_hand(*header, *place_rows(686, ROWS[1], (390, 460)))
    assert (table.columns, table.caption) == (columns, caption)


# --- tables that are split


@pytest.mark.parametrize(
    ("after", "blocks", "style"),
    [
        *((after, (paper.Break(),), {"caption": side}) for after in (0, 3, 5) for side in SIDES),
        *((3, (paper.Break(),), {"geometry": "ieee", "caption": side}) for side in SIDES),
        *((after, (prose(2),), {"geometry": name}) for after in (0, 5) for name in GEOMETRIES),
        (3, (paper.Break(), prose(2)), {}),
    ],
)
def test_table_continues_in_the_next_column_or_after_a_paragraph(
    after: int, blocks: tuple[paper.Paragraph | paper.Break, ...], style: dict[str, Any]
) -> None:
    assert_truth(read_paper(make_pdf(TABLES[1], split(2, after, *blocks), TABLES[3], **style)))


@pytest.mark.parametrize("geometry", ["cvpr", "single"])
def test_table_continues_on_the_next_page(geometry: str) -> None:
    document = read_paper(
        make_pdf(TABLES[1], split(2, 4, paper.Break("page")), TABLES[3], geometry=geometry)
    )
    assert_truth(document)
    assert [row.locator.split(",")[0] for row in document.tables[1].rows] == ["page 1"] * 4 + [
        "page 2"
    ] * 2
    assert len(document.tables[1].locator.split("; ")) == 2


# --- what is missing


@pytest.mark.parametrize("row", [0, 3, 5])
def test_lost_figure_is_a_problem_of_its_row(row: int) -> None:
    document = read_paper(make_pdf(TABLES[1], paper.without_cell(TABLES[2], row, 1), TABLES[3]))
    assert problems(document) == [("qwant_table_2", row + 1, "row-width")]
    assert document.problems[0].raw == (BATCHES[row], "")
    assert [source.number for source in document.tables[1].rows] == [
        n for n in range(1, 7) if n != row + 1
    ]
    kept = {2: (*ROWS[2][:row], *ROWS[2][row + 1 :])}
    assert tables(document) == {
        f"qwant_table_{number}": rows for number, rows in (ROWS | kept).items()
    }


def test_cells_between_the_columns_are_a_problem_of_their_row() -> None:
    texts = place_rows(700, [HEADER, *ROWS[1]], (120, 200))
    texts[6:8] = [(170, 664, texts[6][2]), (180, 664, texts[7][2])]
    document = read_paper(set_texts(texts))
    assert problems(document) == [("qwant_table_1", 3, "row-width")]
    assert list_rows(document) == [*ROWS[1][:2], *ROWS[1][3:]]


@pytest.mark.parametrize("caption", SIDES)
@pytest.mark.parametrize(
    ("number", "table"),
    [
        *((number, paper.with_header(TABLES[number], 1, "Foo")) for number in (1, 2, 3)),
        (2, paper.without_column(TABLES[2], 0)),
        (2, paper.without_column(TABLES[2], 1)),
        (2, replace(TABLES[2], columns=("Foo", "Bar"))),
    ],
)
def test_lost_column_or_renamed_header_is_a_problem_and_gets_no_rows_of_another_table(
    number: int, table: paper.PaperTable, caption: str
) -> None:
    document = read_paper(make_pdf(*(TABLES | {number: table}).values(), caption=caption))
    assert problems(document) == [(f"qwant_table_{number}", None, "unknown-header")]
    assert tables(document) == {f"qwant_table_{n}": ROWS[n] for n in ROWS if n != number}
    if "Batch size" in table.columns and "Foo" in table.columns:
        assert document.problems[0].raw == ("Batch size", "Foo")


@pytest.mark.parametrize(
    ("printed", "problem", "kept"),
    [
        ((TABLES[1], TABLES[1]), ("qwant_table_1", None, "duplicate-table"), (1,)),
        ((replace(TABLES[1], rows=()), TABLES[3]), ("qwant_table_1", None, "cells-missing"), (3,)),
        (
            (TABLES[1], replace(TABLES[2], rows=ROWS[2][:5])),
            ("qwant_table_2", None, "cells-missing"),
            (1,),
        ),
    ],
)
def test_repeated_empty_or_shorter_table_is_a_problem(
    printed: tuple[paper.PaperTable, ...], problem: tuple[str, None, str], kept: tuple[int, ...]
) -> None:
    document = read_paper(make_pdf(*printed))
    assert problems(document) == [problem]
    assert tables(document) == {f"qwant_table_{number}": ROWS[number] for number in kept}


def test_pdf_without_known_tables_is_not_recognised() -> None:
    with pytest.raises(UnrecognisedDocumentError, match="no table with a known header"):
        read_paper(make_pdf(paper.PaperTable("Table 1. Weather", ("Day", "Rain"), (("1", "2.5"),))))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        *(
            (PDF.read_bytes()[: int(PDF.stat().st_size * share)], "truncated")
            for share in (0.05, 0.6, 0.98)
        ),
        (b" \n\n ", "is empty"),
        (
            b"<!DOCTYPE html><html><body>404 Not Found</body></html>",
            "is not a PDF but an HTML page",
        ),
        (b"just words", "is not a PDF but some other file"),
        (b"%PDF-1.4\n" + bytes(range(256)) * 40 + b"\n%%EOF\n", "cannot be read as a PDF"),
    ],
)
def test_truncated_or_other_file_is_a_damaged_pdf(data: bytes, message: str) -> None:
    with pytest.raises(DamagedDocumentError, match=message):
        read_paper(data)


def encrypt(password: str) -> bytes:
    texts = place_rows(700, [HEADER, *ROWS[1]], (100, 170))
    return set_texts(texts, encrypt=StandardEncryption(password, "owner"))


def test_only_a_pdf_that_opens_without_a_password_is_read() -> None:
    assert list_rows(read_paper(encrypt(""))) == [*ROWS[1]]
    with pytest.raises(DamagedDocumentError, match="is encrypted: a password is needed"):
        read_paper(encrypt("secret"))


def test_too_many_pages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = paper.build([paper.Break("page")] * 3)
    monkeypatch.setattr(pdf_pages, "MAX_PAGES", 3)
    with pytest.raises(DocumentTooLargeError, match="has 4 pages, the limit is 3"):
        read_pdf(data, PAPER_HEADERS)
    monkeypatch.setattr(pdf_pages, "MAX_PAGES", 4)
    with pytest.raises(UnrecognisedDocumentError):
        read_pdf(data, PAPER_HEADERS)


def test_tables_after_many_pages_are_read() -> None:
    blocks = [block for _ in range(60) for block in (paper.Paragraph("words"), paper.Break("page"))]
    document = read_paper(paper.build([*blocks, prose(8), *TABLES.values()]))
    assert_truth(document)
    assert document.tables[0].rows[0].locator.startswith("page 61, ")


def read_or_none(data: bytes) -> ParsedDocument | None:
    try:
        return read_paper(data)
    except DocumentError:
        return None


@given(st.data())
def test_mutated_pdf_has_printed_rows_alone_or_is_refused(data: st.DataObject) -> None:
    original = PDF.read_bytes()
    start = data.draw(st.integers(0, len(original) - 1))
    end = data.draw(st.integers(start, min(start + 40, len(original))))
    changed = original[:start] + data.draw(st.binary(max_size=40)) + original[end:]
    document = read_or_none(changed)
    for name, rows in (tables(document) if document else {}).items():
        assert set(rows) <= set(ROWS[int(name[-1])])


figure = st.decimals(min_value=0, max_value=99999, places=2).map(lambda value: f"{value:.2f}")
labels = st.sets(st.integers(1, 4096), min_size=1, max_size=14).map(
    lambda numbers: [*map(str, sorted(numbers))]
)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(
    batches=labels,
    figures=st.lists(figure, min_size=14, max_size=14),
    geometry=st.sampled_from(GEOMETRIES),
    caption=st.sampled_from(SIDES),
    lost=st.integers(0, 13),
)
def test_any_rows_are_read_back(
    batches: list[str], figures: list[str], geometry: str, caption: str, lost: int
) -> None:
    rows = tuple(
        (("" if place == lost else label), figures[place]) for place, label in enumerate(batches)
    )
    table = paper.PaperTable(
        "Table 7. Throughput (images/second)", ("Batch size", "Throughput"), rows
    )
    document = read_paper(make_pdf(table, geometry=geometry, caption=caption))
    assert document.problems == ()
    assert tables(document) == {"qwant_table_2": rows}
    assert document.tables[0].caption == table.caption
