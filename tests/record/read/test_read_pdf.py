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
from ipu_results.record.read.pdf import find_pdf_headers, limits, read_pdf
from ipu_results.schema.vocabulary import TableHeader
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfbase.pdfmetrics import stringWidth

from tests.cases import every_case
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
from tests.record.read.typeset_paper import Paper, PaperTable, wrap

PDF = ROOT / "raw" / "qwant" / "resnext101-c2-2020-02-28.pdf"
HEADER = ("Batch size", "Latency")
NAMES = {1: "Latency", 2: "Throughput", 3: "Energy efficiency"}
CAPTIONS = {
    1: "Table 1. Latency (milliseconds per batch)",
    2: "Table 2. Throughput (images/second)",
    3: "Table 3. Energy efficiency (images/second/watt)",
}
ROWS = {number: tuple(zip(BATCHES, figures, strict=True)) for number, figures in FIGURES.items()}
LATENCY, THROUGHPUT, EFFICIENCY = (
    PaperTable(CAPTIONS[number], ("Batch size", name), ROWS[number])
    for number, name in NAMES.items()
)
TABLES = (LATENCY, THROUGHPUT, EFFICIENCY)
PROSE = "Lorem ipsum dolor sit amet, in 2020 and 12 of 4.75 consectetur. " * 6


def typeset(
    *tables: PaperTable, geometry: str = "cvpr", caption: str = "below", prose: str = PROSE
) -> bytes:
    """Typeset tables with a paragraph before each."""
    paper = Paper(geometry, caption)
    paper.set_title("Some words on top of both columns")
    for table in tables:
        paper.set_paragraph(prose)
        paper.set_table(table)
    return paper.finish()


def tables(document: ParsedDocument) -> dict[str, tuple[Row, ...]]:
    return {table.name: tuple(row.cells for row in table.rows) for table in document.tables}


def name_tables(*numbers: int) -> dict[str, tuple[Row, ...]]:
    return {f"qwant_table_{number}": ROWS[number] for number in numbers}


def assert_whole(document: ParsedDocument) -> None:
    assert (document.problems, tables(document)) == ((), name_tables(1, 2, 3))
    assert [table.caption for table in document.tables] == list(CAPTIONS.values())


# --- the committed transcription


def test_committed_transcription_has_the_printed_rows_captions_and_boxes() -> None:
    document = read_paper(PDF.read_bytes())
    assert_whole(document)
    table = document.tables[0]
    assert all(len(set(row.cell_locators or ())) == 2 for row in table.rows)
    assert table.rows[0].locator == "page 1, box 410.8,124.2,470.8,134.2"
    assert table.cell_locator(table.rows[0], 1) == "page 1, box 453.3,124.2,470.8,134.2"
    assert set(METADATA_LABELS) == set(WORDS.metadata["inference-paper"])
    script = runpy.run_path(str(PDF.with_name("make_transcription.py")))
    assert [f"{item.label}: {item.text}" for item in document.metadata] == [*script["SETUP"]]
    for item in document.metadata:
        assert re.fullmatch(r"page 1, box (\d+\.\d,){3}\d+\.\d", item.locator)
    assert script["make_transcription"]() == PDF.read_bytes()


X = (100, 200)
LATENCY_ROWS = (HEADER, *ROWS[1])


# --- layouts of the page


@pytest.mark.parametrize("caption", ["above", "below"])
@pytest.mark.parametrize("geometry", ["ieee", "cvpr", "single"])
def test_every_layout_has_the_same_rows_and_captions(geometry: str, caption: str) -> None:
    for prose in ("", PROSE * 3):  # all on one page, or on several
        assert_whole(read_paper(typeset(*TABLES, geometry=geometry, caption=caption, prose=prose)))


def test_sentence_that_names_a_table_is_not_a_caption() -> None:
    prose = (100, 742, "As the words before it say, and as is shown here and there as well, by")
    sentence = (100, 730, "Table 1. The latency of the rows of it, and of others, is lower than")
    caption = (100, 570, CAPTIONS[1])
    table = place_rows(700, LATENCY_ROWS, X)
    [read] = read_paper(set_texts([prose, sentence, *table, caption])).tables
    assert read.caption == CAPTIONS[1]


def test_caption_belongs_to_one_table() -> None:
    first = place_rows(700, LATENCY_ROWS, X)
    second = place_rows(560, [("Batch size", "Throughput"), *ROWS[2]], X)
    document = read_paper(set_texts([*first, (100, 590, "Table 1. Results"), *second]))
    assert [table.caption for table in document.tables] == ["Table 1. Results", ""]


# --- headers


COLUMNS = ("Model", "Batch Size", "Precision", "Throughput (items/sec)", "Latency (ms)")
FIELDS = tuple(zip(COLUMNS, ("model", "batch_size", "precision", "value", "value"), strict=True))
GRID = TableHeader("inference-paper", "t", FIELDS, "inference")
CELLS = [
    ("ResNet-50 v1.5", "4", "16.16", "9,801", "1.31"),
    ("BERT-Large", "1,024", "16.32", "12,100.5", "10.74"),
]


def set_grid(
    align: str = "left",
    width: float = 80,
    header: tuple[str, ...] = COLUMNS,
    max_name: float = 60,
    rise: float = 0,
    more: Sequence[Text] = (),
) -> bytes:
    """Set a table in columns of one width, as word processors do: names centred over it, on lines
    of at most `max_name` points, which begin higher by `rise` for each; cells at the left, right or
    middle.
    """
    shares = {"left": 0.0, "middle": 0.5, "right": 1.0}
    texts = list(more)

    def place(column: int, y: float, text: str, share: float) -> None:
        free = width - 8 - stringWidth(text, "Times-Roman", 10)
        texts.append((54 + column * width + share * free, y, text))

    for column, name in enumerate(header):
        lines = [line for line, _ in wrap(name, 10, max_name)]
        top = 700 + rise * (len(lines) - 1)
        for number, line in enumerate(lines):
            place(column, top - 12 * number, line, 0.5)
    for number, row in enumerate(CELLS):
        for column, text in enumerate(row):
            place(column, 664 - 16 * number, text, shares[align])
    return set_texts(texts)


@pytest.mark.parametrize(("width", "max_name"), [(80, 60), (80, 75), (110, 60), (110, 200)])
@pytest.mark.parametrize("rise", [0, 6])
@pytest.mark.parametrize("align", ["left", "right", "middle"])
def test_header_of_several_lines_is_read_over_cells_of_any_alignment(
    align: str, rise: float, width: float, max_name: float
) -> None:
    document = read_pdf(set_grid(align, width, max_name=max_name, rise=rise), [GRID])
    assert (document.problems, list_rows(document)) == ((), CELLS)
    assert document.tables[0].columns == COLUMNS


@every_case(__file__, "other_text")
def test_header_with_other_text_on_its_lines_is_a_problem(
    names: list[str], more: Sequence[Text]
) -> None:
    """Neither as the table with the other names, which has no latency, nor without the text."""
    other = TableHeader("inference-paper", "training", FIELDS[:4], "training")
    header = (*COLUMNS[: 5 - len(names)], *names)
    document = read_pdf(set_grid(header=header, more=more), [GRID, other])
    assert document.tables == ()
    assert document.problems


@every_case(__file__, "unclear")
def test_row_whose_cells_are_not_clear_is_a_problem(texts: Sequence[Text], message: str) -> None:
    document = read_pdf(set_grid(more=texts), [GRID])
    assert set(list_rows(document)) <= set(CELLS)
    assert document.problems
    assert all(message in problem.message for problem in document.problems)


@pytest.mark.parametrize(("first", "second"), [("1", "940"), ("1.5", "9.4")])
def test_row_without_a_label_nearer_than_others_may_go_on_with_a_figure(
    first: str, second: str
) -> None:
    texts = [
        *place_rows(700, [HEADER], X),
        *place_rows(680, [("2", first)], X),
        *place_rows(668, [("", second)], X),
        *place_rows(650, [("4", "7")], X),
    ]
    document = read_paper(set_texts(texts))
    assert list_rows(document) == [("4", "7")]
    assert [problem.row_number for problem in document.problems] == [1, 2]


def test_mixed_words_of_a_header_on_a_later_page_are_found() -> None:
    first = place_rows(700, LATENCY_ROWS, X)
    later = place_rows(700, [("Batch", "Energy"), ("size", "efficiency"), *ROWS[3]], X)
    document = read_paper(set_texts(first, [], [], later))
    assert (document.problems, tables(document)) == ((), name_tables(1, 3))


def test_numbers_of_lines_in_the_margin_are_no_batch_sizes() -> None:
    blank = [("", figure) for figure in FIGURES[1]]
    rows = place_rows(700, [HEADER, *blank], X)
    numbers = [(30, 686 - 14 * line, str(line)) for line in range(6)]
    assert list_rows(read_paper(set_texts(rows))) == blank
    assert list_rows(read_paper(set_texts(rows + numbers))) == []


def set_rows_apart(x: int, y: int, table_y: int = 700) -> bytes:
    table = place_rows(table_y, LATENCY_ROWS, X)
    rows = place_rows(y, ROWS[1], (x, x + 100))
    return set_texts(table + rows)


@pytest.mark.parametrize(
    ("data", "is_read"),
    [
        (set_rows_apart(100, 400), True),
        (set_texts(place_rows(700, LATENCY_ROWS, X), place_rows(700, ROWS[1], X)), True),
        (set_rows_apart(400, 700, table_y=400), True),
        (set_rows_apart(400, 700), False),  # beside the table
    ],
)
def test_rows_in_another_place_are_told(data: bytes, is_read: bool) -> None:
    document = read_paper(data)
    assert bool(tables(document)) is is_read
    assert document.problems
    if is_read:
        assert tables(document) == name_tables(1)
        assert "qwant_table_1 rows-below" in problems(document)


def test_figure_below_or_on_the_next_page_is_context_and_no_row() -> None:
    page = place_rows(700, LATENCY_ROWS, X)
    below = (200, 60, "12")
    next_page = (200, 700, "4.1")
    document = read_paper(set_texts([*page, below], [next_page]))
    assert tables(document) == name_tables(1)
    assert [text for _, text in document.context] == ["12", "4.1"]


def test_blank_for_the_label_above_is_a_problem() -> None:
    x = (40, 140, 200, 270, 340, 410, 480, 550, 610)
    row = ("BERT", "SL128", "IPU-POD16", "SDK 2.4.0", "PyTorch", "SQuAD", "16", "16.16", "1,000.5")
    blank = (row[0], "", *row[2:])
    texts = place_rows(700, [TRAINING, row, blank, blank], x)
    document = read_pdf(set_texts(texts, font="Helvetica", size=8, width=792), LAYOUTS)
    assert list_rows(document) == [row]
    assert [problem.row_number for problem in document.problems] == [2, 3]


@pytest.mark.parametrize("width", [80, 110])
def test_names_of_an_unknown_header_are_drafted(width: float) -> None:
    caption = (54, 740, "Table 1. Results")
    [(place, names)] = find_pdf_headers(set_grid(width=width, rise=6, more=[caption]))
    assert names == COLUMNS
    assert place.startswith("page 1, box ")
    assert find_pdf_headers(set_grid(width=width, rise=6)) == []


# --- what is missing


@pytest.mark.parametrize("number", NAMES)
def test_renamed_header_is_a_problem_and_gets_no_rows_of_another_table(number: int) -> None:
    printed = list(TABLES)
    printed[number - 1] = replace(TABLES[number - 1], columns=("Batch size", "Foo"))
    document = read_paper(typeset(*printed))
    assert "unknown-header" in problems(document)
    assert tables(document) == name_tables(*(NAMES.keys() - {number}))


def test_shorter_table_than_the_others_is_a_problem() -> None:
    shorter = replace(THROUGHPUT, rows=ROWS[2][:5])
    document = read_paper(typeset(LATENCY, shorter, EFFICIENCY))
    assert problems(document) == ["qwant_table_2 cells-missing"]
    assert tables(document) == name_tables(1, 3)


def encrypt(password: str) -> bytes:
    texts = place_rows(700, LATENCY_ROWS, X)
    return set_texts(texts, encrypt=StandardEncryption(password, "owner"))


def test_pdf_that_opens_without_a_password_is_read() -> None:
    assert tables(read_paper(encrypt(""))) == name_tables(1)


UNKNOWN = typeset(replace(LATENCY, columns=("Day", "Rain")))
NOISE = b"%PDF-1.4\n" + bytes(range(256)) * 40 + b"\n%%EOF\n"


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (UNKNOWN, UnrecognisedDocumentError, "no table with a known header"),
        (PDF.read_bytes()[:-200], DamagedDocumentError, "truncated"),
        (NOISE, DamagedDocumentError, "cannot be read as a PDF"),
        (encrypt("secret"), DamagedDocumentError, "is encrypted: a password is needed"),
        (set_texts([], [], [], []), DocumentTooLargeError, "more than 3 pages"),
        (set_texts([], []), UnrecognisedDocumentError, "a scan"),
    ],
)
def test_other_files_are_refused(
    data: bytes, error: type[DocumentError], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_PAGES", 3)
    with pytest.raises(error, match=message):
        read_paper(data)


@given(st.data())
def test_mutated_pdf_has_printed_rows_alone_or_is_refused(data: st.DataObject) -> None:
    original = PDF.read_bytes()
    start = data.draw(st.integers(0, len(original) - 1))
    lost = data.draw(st.integers(0, 40))
    added = data.draw(st.binary(max_size=40))
    changed = original[:start] + added + original[start + lost :]
    try:
        read = tables(read_paper(changed))
    except DocumentError:
        return
    for name, rows in read.items():
        printed = ROWS[int(name[-1])]
        assert set(rows) <= set(printed)


figures = st.decimals(min_value=0, max_value=99999, places=2).map("{:.2f}".format)
points = st.dictionaries(st.integers(1, 4096), figures, min_size=1, max_size=14)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(points, st.integers(0, 14))
def test_rows_are_read_back_and_lost_cells_are_told(figure_of: dict[int, str], lost: int) -> None:
    """A row without its label is read, and a row without its figure is a problem."""
    printed: list[Row] = []
    for place, batch in enumerate(sorted(figure_of)):
        label = "" if place == lost else str(batch)
        figure = "" if place == lost + 1 else figure_of[batch]
        printed.append((label, figure))
    document = read_paper(typeset(replace(THROUGHPUT, rows=tuple(printed))))
    assert list_rows(document) == [row for row in printed if row[1]]
    told = [problem.row_number for problem in document.problems]
    assert told == [place for place, row in enumerate(printed, 1) if not row[1]]
