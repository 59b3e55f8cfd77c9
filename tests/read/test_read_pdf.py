"""The paper's tables from PDFs: many layouts of the page, one truth; damaged files, one clear
error.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Sequence
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
from ipu_results.read import ParsedDocument, pdf_limits
from ipu_results.read.pdf import find_pdf_headers, read_pdf
from ipu_results.read.text import METADATA_LABELS
from ipu_results.schema.vocabulary import TableHeader
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfbase.pdfmetrics import stringWidth

from tests.read import typeset_paper as paper
from tests.read.pdf_support import Row, Text, list_rows, place_rows, read_paper, set_texts
from tests.read.reading_support import (
    BATCHES,
    FIGURES,
    LAYOUTS,
    PAPER_HEADERS,
    ROOT,
    TRAINING,
    WORDS,
    problems,
)

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


def test_sentence_that_names_a_table_is_not_a_caption() -> None:
    text = f"{LOREM} {LOREM} as is shown by Table 1. The latency {LOREM}"
    for start in range(0, 60, 20):
        assert_truth(
            read_paper(paper.build([prose(8), paper.Paragraph(text[start:]), *TABLES.values()]))
        )


# --- headers


HEADER = ("Batch size", "Latency")
COLUMNS = ("Model", "Batch Size", "Precision", "Throughput (items/sec)", "Latency (ms)")
FIELDS = dict(zip(COLUMNS, ("model", "batch_size", "precision", "value", "value"), strict=True))
CELLS = [
    ("ResNet-50 v1.5", "4", "16.16", "9,801", "1.31"),
    ("BERT-Large", "1,024", "16.32", "12,100.5", "10.74"),
]


def set_grid(
    align: str,
    middle: bool,
    width: float = 80,
    header: tuple[str, ...] = COLUMNS,
    wrap: float = 60,
    more: Sequence[Text] = (),
) -> bytes:
    """Set a table in columns of one width, as word processors do: names centred over it, on lines
    of at most `wrap` points, from the top or about the middle; cells at the left, right or middle.
    """
    texts: list[Text] = list(more)
    for column, name in enumerate(header):
        lines = [line for line, _ in paper.wrap(name, "Times-Roman", 10, wrap)]
        top = 700 + (6 * (len(lines) - 1) if middle else 0)
        for number, line in enumerate(lines):
            free = width - 8 - stringWidth(line, "Times-Roman", 10)
            texts.append((54 + column * width + free / 2, top - 12 * number, line))
    for number, row in enumerate(CELLS):
        for column, text in enumerate(row):
            free = width - 8 - stringWidth(text, "Times-Roman", 10)
            left = {"left": 0, "right": free, "middle": free / 2}[align]
            texts.append((54 + column * width + left, 664 - 16 * number, text))
    return set_texts(texts)


def read_grid(data: bytes) -> ParsedDocument:
    return read_pdf(data, [TableHeader("inference-paper", "t", tuple(FIELDS.items()), "inference")])


@pytest.mark.parametrize("wrap", [60, 200])
@pytest.mark.parametrize("middle", [False, True])
@pytest.mark.parametrize("align", ["left", "right", "middle"])
@pytest.mark.parametrize("width", [80, 110])
def test_header_of_several_lines_is_read_over_cells_of_any_alignment(
    width: float, align: str, middle: bool, wrap: float
) -> None:
    if (width, wrap) == (80, 200):
        wrap = 75  # long names would meet
    document = read_grid(set_grid(align, middle, width, wrap=wrap))
    assert (document.problems, list_rows(document)) == ((), CELLS)
    assert document.tables[0].columns == COLUMNS


@pytest.mark.parametrize(
    ("header", "more"),
    [
        ((*COLUMNS[:4], "Lat."), ()),
        ((*COLUMNS[:4], "Latnecy (ms)"), ()),
        ((*COLUMNS[:4], ""), ()),
        ((*COLUMNS[:3], "Throughput", "Latency in"), ()),
        (COLUMNS, [(30, 700 - 12 * line, str(line)) for line in range(9)]),  # numbers of lines
        (COLUMNS, [(470, 700, "Power")]),
        (COLUMNS, [(306, 712, "Median")]),
        (COLUMNS, [(306, 676, "of ten")]),
    ],
)
def test_header_with_other_text_on_its_lines_is_a_problem(
    header: tuple[str, ...], more: Sequence[Text]
) -> None:
    """Neither as the table with the other names, which has no latency, nor without the text."""
    names = FIELDS.items()
    headers = [
        TableHeader("inference-paper", "t", tuple(names), "inference"),
        TableHeader("inference-paper", "training", tuple(names)[:4], "training"),
    ]
    document = read_pdf(set_grid("left", False, 80, header, more=more), headers)
    assert document.tables == ()
    assert {problem.reason for problem in document.problems} <= {
        *("unknown-header", "cells-missing", "row-width", "rows-below")
    }
    assert document.problems


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([(54, 632, "GPT2"), (220, 632, "16.16"), (294, 632, "7"), (380, 632, "2")], "missing"),
        ([(54, 636, "(training)")], "is close below"),
        ([(54, 632, "GPT2, on two of the"), (150, 632, "4"), (294, 632, "7")], "not under"),
        ([(x, 632, "1") for x in (54, 150, 220, 294, 330, 374)], "not under the names"),
    ],
)
def test_row_whose_cells_are_not_clear_is_a_problem(texts: Sequence[Text], message: str) -> None:
    document = read_grid(set_grid("left", False, more=texts))
    assert set(list_rows(document)) <= set(CELLS)
    assert [message in problem.message for problem in document.problems] == [True]


def test_numbers_of_lines_in_the_margin_are_no_batch_sizes() -> None:
    blank = [("", figure) for _, figure in ROWS[1]]
    rows = place_rows(700, [HEADER, *blank], (100, 200))
    numbers = [(30, 686 - 14 * line, str(line)) for line in range(6)]
    assert list_rows(read_paper(set_texts(rows))) == blank
    assert list_rows(read_paper(set_texts([*rows, *numbers]))) == []


def test_rows_after_a_note_on_the_next_page_or_in_the_next_column_are_told() -> None:
    note = [(54, 620, "All of them on one board")]
    below = place_rows(600, [CELLS[0]], (54, 134, 214, 294, 374))
    document = read_grid(set_grid("left", False, more=[*note, *below]))
    assert [problem.reason for problem in document.problems] == ["rows-below"]
    rows = place_rows(700, [HEADER, *ROWS[1]], (100, 200))
    pages = set_texts(rows, place_rows(700, ROWS[1], (100, 200)))
    columns = set_texts([*rows, *place_rows(700, ROWS[1][:3], (400, 500))])
    assert problems(read_paper(pages)) == [("qwant_table_1", None, "rows-below")]
    assert problems(read_paper(columns))[0][2] == "unknown-header"
    low = place_rows(400, [HEADER, *ROWS[1]], (100, 200))
    above = set_texts([*low, *place_rows(700, ROWS[1][:3], (400, 500))])
    assert problems(read_paper(above)) == [("qwant_table_1", None, "rows-below")]


def test_table_that_begins_again_on_the_next_page_is_read_once() -> None:
    rows = [place_rows(700, [HEADER, *part], (100, 200)) for part in (ROWS[1][:3], ROWS[1][3:])]
    document = read_paper(set_texts(*rows))
    assert list_rows(document) == [*ROWS[1][:3]]
    assert problems(document) == [("qwant_table_1", None, "duplicate-table")]


def test_machine_of_another_table_or_a_blank_for_the_label_above_is_a_problem() -> None:
    x = (40, 140, 200, 270, 340, 410, 480, 550, 610)
    row = ("BERT", "SL128", "IPU-POD16", "SDK 2.4.0", "PyTorch", "SQuAD", "16", "16.16", "1,000.5")
    other = (*row[:2], "Bow Pod16", *row[3:])
    blank = (row[0], "", *row[2:])
    texts = place_rows(700, [tuple(TRAINING), row, other, blank, blank], x)
    document = read_pdf(set_texts(texts, font="Helvetica", size=8, width=792), LAYOUTS)
    assert list_rows(document) == [row]
    assert [number for _, number, _ in problems(document)] == [2, 3, 4]


@pytest.mark.parametrize("width", [80, 110])
def test_names_of_an_unknown_header_are_drafted(width: float) -> None:
    caption = [(54, 740, "Table 1. Results")]
    [(place, names)] = find_pdf_headers(set_grid("left", True, width, more=caption))
    assert names == COLUMNS
    assert place.startswith("page 1, box ")
    assert find_pdf_headers(set_grid("left", True, width)) == []


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


@pytest.mark.parametrize("caption", SIDES)
@pytest.mark.parametrize(
    ("number", "table", "above"),
    [
        (1, paper.with_header(TABLES[1], 1, "Foo"), (3,)),
        (2, paper.with_header(TABLES[2], 1, "Foo"), (1, 3)),
        (3, paper.with_header(TABLES[3], 1, "Foo"), (1, 2)),
        (2, paper.without_column(TABLES[2], 0), ()),
        (2, paper.without_column(TABLES[2], 1), ()),
    ],
)
def test_lost_column_or_renamed_header_is_a_problem_and_gets_no_rows_of_another_table(
    number: int, table: paper.PaperTable, above: tuple[int, ...], caption: str
) -> None:
    document = read_paper(make_pdf(*(TABLES | {number: table}).values(), caption=caption))
    assert problems(document) == [
        (f"qwant_table_{number}", None, "unknown-header"),
        *((f"qwant_table_{other}", None, "rows-below") for other in above),
    ]
    assert tables(document) == {f"qwant_table_{n}": ROWS[n] for n in ROWS if n != number}


@pytest.mark.parametrize(
    ("printed", "problem", "kept"),
    [
        ((TABLES[1], TABLES[1]), ("qwant_table_1", None, "duplicate-table"), (1,)),
        ((replace(TABLES[1], rows=()), TABLES[3]), ("qwant_table_1", None, "cells-missing"), (3,)),
        (
            (TABLES[1], replace(TABLES[2], rows=ROWS[2][:5]), TABLES[3]),
            ("qwant_table_2", None, "cells-missing"),
            (1, 3),
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
    monkeypatch.setattr(pdf_limits, "MAX_PAGES", 3)
    with pytest.raises(DocumentTooLargeError, match="more than 3 pages"):
        read_pdf(data, PAPER_HEADERS)
    monkeypatch.setattr(pdf_limits, "MAX_PAGES", 4)
    with pytest.raises(UnrecognisedDocumentError):
        read_pdf(data, PAPER_HEADERS)


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
