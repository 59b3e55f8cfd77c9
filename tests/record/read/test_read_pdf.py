"""The paper's tables from PDFs: many layouts of the page, one truth; damaged files, one clear
error.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ipu_results.errors import (
    DamagedDocumentError,
    DocumentError,
    DocumentTooLargeError,
    UnrecognisedDocumentError,
)
from ipu_results.record.read import ParsedDocument
from ipu_results.record.read.papers import METADATA_LABELS
from ipu_results.record.read.pdf import find_pdf_headers, read_pdf
from ipu_results.record.read.pdf import limits as pdf_limits
from ipu_results.schema.vocabulary import TableHeader
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfbase.pdfmetrics import stringWidth

from tests.record.read import typeset_paper as paper
from tests.record.read.pdf_support import Row, Text, list_rows, place_rows, read_paper, set_texts
from tests.record.read.reading_support import (
    BATCHES,
    FIGURES,
    LAYOUTS,
    ROOT,
    TRAINING,
    WORDS,
    problems,
)

PDF = ROOT / "raw" / "qwant" / "resnext101-c2-2020-02-28.pdf"
NAMES = {1: "Latency", 2: "Throughput", 3: "Energy efficiency"}
CAPTIONS = {
    1: "Table 1. Latency (milliseconds per batch)",
    2: "Table 2. Throughput (images/second)",
    3: "Table 3. Energy efficiency (images/second/watt)",
}
ROWS = {number: tuple(zip(BATCHES, FIGURES[number], strict=True)) for number in NAMES}
TABLES = {
    number: paper.PaperTable(CAPTIONS[number], ("Batch size", NAMES[number]), ROWS[number])
    for number in NAMES
}
PROSE = paper.Paragraph("Lorem ipsum dolor sit amet, in 2020 and 12 of 4.75 consectetur. " * 6)
GEOMETRIES = ("ieee", "cvpr", "single")
SIDES = ("above", "below")


def make_pdf(
    *tables: paper.PaperTable, geometry: str = "cvpr", caption: str = "below", prose: int = 1
) -> bytes:
    """Typeset tables with some paragraphs before each."""
    blocks: list[paper.Block] = [paper.Title("Some words on top of both columns")]
    for table in tables:
        blocks += [*[PROSE] * prose, table]
    return paper.build(blocks, paper.Style(geometry, caption))


def tables(document: ParsedDocument) -> dict[str, tuple[Row, ...]]:
    return {table.name: tuple(row.cells for row in table.rows) for table in document.tables}


def name_tables(*numbers: int) -> dict[str, tuple[Row, ...]]:
    return {f"qwant_table_{number}": ROWS[number] for number in numbers}


# --- the committed transcription


def test_committed_transcription_has_the_printed_rows_captions_and_boxes() -> None:
    document = read_paper(PDF.read_bytes())
    assert (document.problems, tables(document)) == ((), name_tables(1, 2, 3))
    assert [table.caption for table in document.tables] == [*CAPTIONS.values()]
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
    assert set(METADATA_LABELS) == set(WORDS.metadata["inference-paper"])
    assert all(
        re.fullmatch(r"page 1, box (\d+\.\d,){3}\d+\.\d", item.locator)
        for item in document.metadata
    )


def test_script_makes_the_committed_bytes() -> None:
    script = runpy.run_path(str(PDF.with_name("make_transcription.py")))
    assert script["make_transcription"]() == PDF.read_bytes()


# --- layouts of the page


@pytest.mark.parametrize("prose", [0, 1, 4])
@pytest.mark.parametrize("caption", SIDES)
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_every_layout_has_the_same_rows_and_captions(
    geometry: str, caption: str, prose: int
) -> None:
    data = make_pdf(*TABLES.values(), geometry=geometry, caption=caption, prose=prose)
    document = read_paper(data)
    assert (document.problems, tables(document)) == ((), name_tables(1, 2, 3))
    assert [table.caption for table in document.tables] == [*CAPTIONS.values()]


def test_sentence_that_names_a_table_is_not_a_caption() -> None:
    words = "As the words before it say and as is shown here and there as well by the rows of "
    for start in range(0, 60, 10):
        text = f"{words * 3} Table 1. The throughput {words * 2}"[start:]
        document = read_paper(paper.build([paper.Paragraph(text), *TABLES.values()]))
        assert [table.caption for table in document.tables] == [*CAPTIONS.values()]


# --- headers


HEADER = ("Batch size", "Latency")
COLUMNS = ("Model", "Batch Size", "Precision", "Throughput (items/sec)", "Latency (ms)")
FIELDS = tuple(zip(COLUMNS, ("model", "batch_size", "precision", "value", "value"), strict=True))
GRID = TableHeader("inference-paper", "t", FIELDS, "inference")
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
        lines = [line for line, _ in paper.wrap(name, 10, wrap)]
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


@pytest.mark.parametrize(("width", "wrap"), [(80, 60), (80, 75), (110, 60), (110, 200)])
@pytest.mark.parametrize("middle", [False, True])
@pytest.mark.parametrize("align", ["left", "right", "middle"])
def test_header_of_several_lines_is_read_over_cells_of_any_alignment(
    align: str, middle: bool, width: float, wrap: float
) -> None:
    document = read_pdf(set_grid(align, middle, width, wrap=wrap), [GRID])
    assert (document.problems, list_rows(document)) == ((), CELLS)
    assert document.tables[0].columns == COLUMNS


@pytest.mark.parametrize(
    ("header", "more"),
    [
        ((*COLUMNS[:4], "Lat."), ()),
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
    other = TableHeader("inference-paper", "training", FIELDS[:4], "training")
    document = read_pdf(set_grid("left", False, 80, header, more=more), [GRID, other])
    assert document.tables == ()
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
    document = read_pdf(set_grid("left", False, more=texts), [GRID])
    assert set(list_rows(document)) <= set(CELLS)
    assert document.problems
    assert all(message in problem.message for problem in document.problems)


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([("2", "1"), ("", "940"), ("4", "7")], [("4", "7")]),
        ([("2", "1.5"), ("", "9.4"), ("4", "7")], [("4", "7")]),
    ],
)
def test_row_without_a_label_nearer_than_others_may_go_on_with_a_figure(
    rows: Sequence[Row], kept: Sequence[Row]
) -> None:
    header, first, second, third = ([row] for row in (HEADER, *rows))
    places = ((700, header), (680, first), (668, second), (650, third))
    data = set_texts([text for y, row in places for text in place_rows(y, row, (100, 200))])
    document = read_paper(data)
    assert list_rows(document) == kept
    assert [number for _, number, _ in problems(document)] == [1, 2]


def test_mixed_words_of_a_header_on_a_later_page_are_found() -> None:
    header = [("Batch", "Energy"), ("size", "efficiency")]
    pages = [
        place_rows(700, rows, (100, 200)) for rows in ([HEADER, *ROWS[1]], [*header, *ROWS[3]])
    ]
    document = read_paper(set_texts(pages[0], [], [], pages[1]))
    assert (document.problems, tables(document)) == ((), name_tables(1, 3))


def test_numbers_of_lines_in_the_margin_are_no_batch_sizes() -> None:
    blank = [("", figure) for _, figure in ROWS[1]]
    rows = place_rows(700, [HEADER, *blank], (100, 200))
    numbers = [(30, 686 - 14 * line, str(line)) for line in range(6)]
    assert list_rows(read_paper(set_texts(rows))) == blank
    assert list_rows(read_paper(set_texts([*rows, *numbers]))) == []


X, BESIDE = (100, 200), (400, 500)


@pytest.mark.parametrize(
    ("pages", "is_read"),
    [
        ([[*place_rows(600, [HEADER, *ROWS[1]], X), *place_rows(400, ROWS[1][:1], X)]], True),
        ([place_rows(700, [HEADER, *ROWS[1]], X), place_rows(700, ROWS[1], X)], True),
        ([[*place_rows(400, [HEADER, *ROWS[1]], X), *place_rows(700, ROWS[1], BESIDE)]], True),
        ([[*place_rows(700, [HEADER, *ROWS[1]], X), *place_rows(700, ROWS[1], BESIDE)]], False),
    ],
)
def test_rows_in_another_place_are_told(pages: Sequence[Sequence[Text]], is_read: bool) -> None:
    document = read_paper(set_texts(*pages))
    assert tables(document) == (name_tables(1) if is_read else {})
    assert ("qwant_table_1", None, "rows-below") in problems(document) or not is_read
    assert problems(document)


def test_figure_below_or_on_the_next_page_is_context_and_no_row() -> None:
    page = place_rows(700, [HEADER, *ROWS[1]], X)
    document = read_paper(set_texts([*page, (200, 60, "12")], [(200, 700, "4.1")]))
    assert tables(document) == name_tables(1)
    assert [text for _, text in document.context] == ["12", "4.1"]


def test_blank_for_the_label_above_is_a_problem() -> None:
    x = (40, 140, 200, 270, 340, 410, 480, 550, 610)
    row = ("BERT", "SL128", "IPU-POD16", "SDK 2.4.0", "PyTorch", "SQuAD", "16", "16.16", "1,000.5")
    blank = (row[0], "", *row[2:])
    texts = place_rows(700, [tuple(TRAINING), row, blank, blank], x)
    document = read_pdf(set_texts(texts, font="Helvetica", size=8, width=792), LAYOUTS)
    assert list_rows(document) == [row]
    assert [number for _, number, _ in problems(document)] == [2, 3]


@pytest.mark.parametrize("width", [80, 110])
def test_names_of_an_unknown_header_are_drafted(width: float) -> None:
    caption = [(54, 740, "Table 1. Results")]
    [(place, names)] = find_pdf_headers(set_grid("left", True, width, more=caption))
    assert names == COLUMNS
    assert place.startswith("page 1, box ")
    assert find_pdf_headers(set_grid("left", True, width)) == []


# --- what is missing


def rename(number: int, *columns: str) -> paper.PaperTable:
    return replace(TABLES[number], columns=columns)


@pytest.mark.parametrize("caption", SIDES)
@pytest.mark.parametrize("number", NAMES)
def test_renamed_header_is_a_problem_and_gets_no_rows_of_another_table(
    number: int, caption: str
) -> None:
    printed = TABLES | {number: rename(number, "Batch size", "Foo")}
    document = read_paper(make_pdf(*printed.values(), caption=caption))
    assert ("", None, "unknown-header") in problems(document)
    assert tables(document) == name_tables(*(NAMES.keys() - {number}))


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
    assert tables(document) == name_tables(*kept)


def encrypt(password: str) -> bytes:
    texts = place_rows(700, [HEADER, *ROWS[1]], X)
    return set_texts(texts, encrypt=StandardEncryption(password, "owner"))


def test_pdf_that_opens_without_a_password_is_read() -> None:
    assert tables(read_paper(encrypt(""))) == name_tables(1)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (
            make_pdf(rename(1, "Day", "Rain")),
            UnrecognisedDocumentError,
            "no table with a known header",
        ),
        (PDF.read_bytes()[: int(PDF.stat().st_size * 0.98)], DamagedDocumentError, "truncated"),
        (
            b"%PDF-1.4\n" + bytes(range(256)) * 40 + b"\n%%EOF\n",
            DamagedDocumentError,
            "cannot be read as a PDF",
        ),
        (encrypt("secret"), DamagedDocumentError, "is encrypted: a password is needed"),
        (paper.build([paper.Break("page")] * 3), DocumentTooLargeError, "more than 3 pages"),
        (set_texts([], []), UnrecognisedDocumentError, "a scan"),
    ],
)
def test_other_files_are_refused(
    data: bytes, error: type[DocumentError], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf_limits, "MAX_PAGES", 3)
    with pytest.raises(error, match=message):
        read_paper(data)


@given(st.data())
def test_mutated_pdf_has_printed_rows_alone_or_is_refused(data: st.DataObject) -> None:
    original = PDF.read_bytes()
    start = data.draw(st.integers(0, len(original) - 1))
    end = data.draw(st.integers(start, min(start + 40, len(original))))
    changed = original[:start] + data.draw(st.binary(max_size=40)) + original[end:]
    try:
        read = tables(read_paper(changed))
    except DocumentError:
        return
    for name, rows in read.items():
        assert set(rows) <= set(ROWS[int(name[-1])])


figure = st.decimals(min_value=0, max_value=99999, places=2).map(lambda value: f"{value:.2f}")
labels = st.sets(st.integers(1, 4096), min_size=1, max_size=14).map(
    lambda numbers: [*map(str, sorted(numbers))]
)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(labels, st.lists(figure, min_size=14, max_size=14), st.integers(0, 14))
def test_rows_are_read_back_and_lost_cells_are_told(
    batches: list[str], figures: list[str], lost: int
) -> None:
    """A row without its label is read, and a row without its figure is a problem."""
    rows = [*zip(batches, figures, strict=False)]
    printed = [
        (label if place != lost else "", value if place != lost + 1 else "")
        for place, (label, value) in enumerate(rows)
    ]
    table = replace(TABLES[2], rows=tuple(printed))
    document = read_paper(make_pdf(table))
    assert list_rows(document) == [row for row in printed if row[1]]
    assert [number for _, number, _ in problems(document)] == [
        place for place, row in enumerate(printed, 1) if not row[1]
    ]
