"""Tables of plain text: every form, lines that are lost or too many, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.record.read import ParsedDocument, SourceTable
from ipu_results.record.read.document import Headers
from ipu_results.record.read.plain_text import read_plain_text
from ipu_results.schema.vocabulary import TableHeader

from tests.cases import every_case
from tests.record.read.reading_support import (
    BATCHES,
    COMMITTED,
    FIGURES,
    GPT2,
    INFERENCE,
    LAYOUTS,
    OGB,
    PAPER_HEADERS,
    RESNET,
    TGN,
    TRAINING,
    UNET,
    Grid,
    Tables,
    assert_read,
    assert_told,
    delimited,
    grids,
    markdown,
    one_cell_a_line,
    page_tables,
    problems,
    texts,
    with_cell,
)

ROWS = [GPT2, RESNET, TGN]
LOST_HEADER = ["unknown-header"]
LATENCY = FIGURES[1]
PAIRS = [[*pair] for pair in zip(BATCHES, LATENCY, strict=True)]

Form = Callable[[Sequence[str], Grid], list[str]]
FORMS: dict[str, Form] = {
    "one cell a line": one_cell_a_line,
    "pipes": delimited,
    "tabs": partial(delimited, delimiter="\t"),
    "markdown": markdown,
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def read_lines(headers: Headers, lines: Sequence[str]) -> ParsedDocument:
    return read_plain_text("\n".join(lines).encode(), headers)


read = partial(read_lines, LAYOUTS)
read_paper = partial(read_lines, PAPER_HEADERS)


def columns(labels: Sequence[str] = BATCHES, figures: Sequence[str] = LATENCY) -> list[str]:
    """Write a table of a paper column by column."""
    between = ["", "Some words.", ""]
    return ["Batch size", *labels, *between, "Latency", *figures, "", "Table 1. Latency (ms)"]


def drop(cells: Sequence[str], place: int) -> list[str]:
    return [*cells[:place], *cells[place + 1 :]]


# --- lines of cells, and one cell a line


@every_form
def test_table_in_every_form(form: Form) -> None:
    marked = ["GPT2²", *GPT2[1:8], "1,590*"]
    header = with_cell(TRAINING, 8, "Throughput (items/sec)†")
    inference = ["", *form(INFERENCE, [UNET, UNET]), "", "Some text, with | in it."]
    document = read(["Training", "Model", *form(header, [marked, RESNET, TGN]), *inference])
    assert_read(document, bow_training=ROWS, bow_inference=[UNET, UNET])
    assert document.tables[0].columns == tuple(TRAINING)
    assert document.tables[0].rows[0].footnotes == ((0, "²"), (8, "*"))
    assert {"Training", "Some text, with"} <= {text for _, text in document.context}


@pytest.mark.parametrize("blank", ["\u200b", " \u00a0 ", "\ufeff"])
def test_line_of_unusual_blanks_is_a_blank_cell_and_an_empty_one_ends_the_table(
    blank: str,
) -> None:
    text = "\n".join(one_cell_a_line(TRAINING, ROWS))
    lines = text.replace("\u00a0", blank).splitlines()
    document = read([*lines, " \t ", "GPT2", "more text"])
    assert_read(document, bow_training=ROWS)
    assert [text for _, text in document.context] == ["GPT2", "more text"]


def test_locators_are_lines() -> None:
    table = read(["a", "", *one_cell_a_line(TRAINING, ROWS)]).tables[0]
    assert table.locator == "line 3"
    assert [row.locator for row in table.rows] == ["line 12", "line 21", "line 30"]
    assert table.cell_locator(table.rows[1], 8) == "line 29"
    table = read(["a", "", *markdown(TRAINING, ROWS)]).tables[0]
    assert table.locator == "line 3"
    assert table.rows[2].locator == "line 7"


@given(page_tables(), st.sampled_from(sorted(FORMS)))
def test_any_tables_in_any_form_are_read_back(tables: Tables, form: str) -> None:
    lines = []
    expected = {}
    for name, (header, rows) in tables.items():
        # outer pipes are a frame
        assume(form != "pipes" or all(row[0] or row[-1] for row in rows))
        lines += ["", *FORMS[form](header, rows), "", "Words."]
        expected[name] = [header, *rows]
    document = read(lines)
    assert texts(document) == expected
    assert document.problems == ()


@every_form
def test_header_that_lost_a_name_is_a_problem(form: Form) -> None:
    for lost in range(len(TRAINING)):
        document = read(form(drop(TRAINING, lost), ROWS))
        assert_told(document, LOST_HEADER)
        assert repr(TRAINING[lost].split(" (")[0]) in document.problems[0].message


@every_form
def test_rows_without_their_header_are_a_problem(form: Form) -> None:
    table = form(TRAINING, ROWS)
    bare = table[len(form(TRAINING, [])) :]
    good = form(INFERENCE, [UNET])
    renamed = form(with_cell(TRAINING, 5, "Data Source"), ROWS)
    assert_told(read([*good, "", *bare]), LOST_HEADER, bow_inference=[UNET])
    for headless in (bare, renamed):
        assert_told(read(["Words", *headless, *good]), LOST_HEADER, bow_inference=[UNET])


@every_form
def test_rows_after_an_empty_line_are_a_problem(form: Form) -> None:
    first = form(TRAINING, [GPT2])
    rest = form(TRAINING, ROWS)[len(first) :]
    assert_told(read([*first, "", *rest]), LOST_HEADER, bow_training=[GPT2])


@pytest.mark.parametrize(("line", "first"), [(13, "1 row-width"), (9, "no-rows")])
def test_empty_line_inside_a_row_or_after_the_header_is_two_problems(line: int, first: str) -> None:
    lines = one_cell_a_line(TRAINING, ROWS)
    document = read([*lines[:line], "", *lines[line:]])
    assert_told(document, [f"bow_training {first}", *LOST_HEADER])


# --- cells that are cut into rows


@given(st.sampled_from(COMMITTED.tables), st.data())
def test_lost_or_added_lines_never_make_a_wrong_row(
    table: SourceTable, data: st.DataObject
) -> None:
    printed = [[*row.cells] for row in table.rows]
    lines = one_cell_a_line(table.columns, printed)
    places = st.integers(len(table.columns), len(lines) - 1)
    if data.draw(st.booleans()):
        changed = data.draw(st.sets(places, min_size=1, max_size=2))
        for place in sorted(changed, reverse=True):
            del lines[place]
    else:
        place = data.draw(places)
        changed = {place}
        lines.insert(place, data.draw(st.sampled_from([*lines, "Alien words", "7", "\u00a0"])))
    document = read(lines)
    rows = []
    for read_rows in grids(document).values():
        rows += read_rows
    for row in rows:
        assert row in printed
    assert len(rows) >= len(printed) - 3 * len(changed)
    assert document.problems


def test_cells_that_can_be_cut_in_two_ways_are_no_rows() -> None:
    # the last three cells of one row may be the first of the next, which are lost
    row = COMMITTED.tables[0].rows[1].cells
    document = read(one_cell_a_line(OGB, [row, row[3:]]))
    assert_told(document, ["ogb_lsc 1 row-width"])
    # of no field is it certain where it is
    fields = (("Batch Size", "batch_size"), ("Throughput", "throughput"))
    header = TableHeader("performance-page", "t", fields, "training")
    assert read_lines([header], ["Batch Size", "Throughput", "1", "2"]).tables == ()


# --- column by column

NAMES = ["Batch size", "Latency"]


def set_columns(labels: str, figures: str) -> list[str]:
    """Write a table column by column, with words between, from words that blanks divide."""
    return ["Batch size", *labels.split(" "), "words", "Latency", *figures.split(" ")]


@pytest.mark.parametrize(
    "lines",
    [
        columns(),
        set_columns("2 4 6 8 x 10 12", "1.36 1.94 x 2.82 3.32 4.13 4.75"),
        # a page number is neither label nor figure
        set_columns("2 4 6 8 10 12  13 \f", "1.36 1.94 2.82 3.32 4.13 4.75  14"),
        delimited(NAMES, PAIRS),
        markdown(NAMES, PAIRS),
    ],
)
def test_table_of_a_paper_in_every_form(lines: list[str]) -> None:
    document = read_paper(["Platform: C2", *lines])
    assert_read(document, qwant_table_1=PAIRS)
    [item] = document.metadata
    assert (item.label, item.text, item.locator) == ("Platform", "C2", "line 1")


def test_labels_lost_at_the_end_are_blank() -> None:
    document = read_paper(columns(labels=BATCHES[:3]))
    blanks = [["", figure] for figure in LATENCY[3:]]
    assert_read(document, qwant_table_1=PAIRS[:3] + blanks)
    assert document.tables[0].rows[3].cell_locators == ("line 12", "line 12")


@every_case(__file__, "unpaired")
def test_columns_that_cannot_be_paired_are_a_problem(
    labels: str, figures: str, reason: str
) -> None:
    refuse(set_columns(labels, figures), reason)


def test_columns_one_cell_a_line_cannot_be_paired() -> None:
    refuse(one_cell_a_line(NAMES, PAIRS), "labels-missing")


def refuse(lines: list[str], reason: str) -> None:
    document = read_paper(lines)
    assert_told(document, [f"qwant_table_1 {reason}"])


@pytest.mark.parametrize(
    "lines",
    [
        ["Foo", *BATCHES, "words", "Latency", *LATENCY],
        ["Batch size", *BATCHES, "words", "Foo", *LATENCY],
        columns()[:8] + columns(),
    ],
)
def test_column_without_its_other_column_is_a_problem(lines: list[str]) -> None:
    efficiency = ["Batch size", *BATCHES, "words", "Energy e\ufb03ciency", *FIGURES[3]]
    document = read_paper([*lines, "", *efficiency])
    assert problems(document) == LOST_HEADER
    assert "qwant_table_3" in grids(document)


def test_table_of_fewer_rows_than_the_others_is_a_problem() -> None:
    shorter = ["Batch size", *BATCHES[:5], "words", "Energy efficiency", *FIGURES[3][:5]]
    throughput = ["Batch size", *BATCHES, "words", "Throughput", *FIGURES[2]]
    document = read_paper(columns() + shorter + throughput)
    assert [*grids(document)] == ["qwant_table_1", "qwant_table_2"]
    assert problems(document) == ["qwant_table_3 cells-missing"]
    assert read_paper(columns() + shorter).tables == ()


def test_repeated_table_is_read_once_and_two_captions_are_none() -> None:
    document = read_paper(columns() + columns(figures=FIGURES[3]))
    assert_told(document, ["qwant_table_1 duplicate-table"], qwant_table_1=PAIRS)
    assert document.tables[0].caption == "Table 1. Latency (ms)"
    assert read_paper([*columns(), "Table 2. Latency (s)"]).tables[0].caption == ""


@given(st.integers(1, 40), st.integers(1, 20), st.integers(0, 20), st.integers(0, 20))
def test_labels_lost_in_one_piece_never_shift_a_row(
    step: int, count: int, start: int, length: int
) -> None:
    places = range(1, count + 1)
    labels = [str(step * place) for place in places]
    figures = [f"{place}.50" for place in places]
    kept = labels[:start] + labels[start + length :]
    document = read_paper(columns(kept, figures))
    assert document.tables or document.problems
    for rows in grids(document).values():
        assert [figure for _, figure in rows] == figures
        for (label, _), printed in zip(rows, labels, strict=True):
            assert label in ("", printed)


# --- other text


LONG = 2_000


@pytest.mark.parametrize("text", ["Words.", "a | b | c\nd | e | f", "Model\nPlatform", "Latency"])
@pytest.mark.parametrize("headers", [LAYOUTS, PAPER_HEADERS])
def test_text_without_a_table_is_not_recognised(text: str, headers: Headers) -> None:
    with pytest.raises(UnrecognisedDocumentError):
        read_lines(headers, [text])


@pytest.mark.parametrize("part", [" ", "(", "*", "|", "1,\n", "Batch size\n", "Table 1. Latency\n"])
@pytest.mark.parametrize("headers", [LAYOUTS, PAPER_HEADERS])
def test_long_run_ends(part: str, headers: Headers) -> None:
    with pytest.raises(UnrecognisedDocumentError):
        read_lines(headers, [f"{part * 10 * LONG}x"])


def test_long_columns_and_many_tables_end() -> None:
    assert grids(read_paper(["Latency", "words"] * LONG + columns())) == {"qwant_table_1": PAIRS}
    tables = read_paper(["Batch size | Latency", "2 | 1.36", ""] * LONG)
    assert set(problems(tables)) == {"qwant_table_1 duplicate-table"}
    shifted = [GPT2, ["", *TGN]] * LONG
    assert grids(read(one_cell_a_line(TRAINING, shifted))) == {}


ODD = ["Batch size", "Latency", "4", "1.5", "|", "\t", "", "\u00a0", "---", "²"]
PIECES = st.sampled_from(TRAINING + GPT2 + TGN + ODD)


@given(st.lists(PIECES, max_size=30))
@pytest.mark.parametrize(
    ("table", "headers"), [(columns(), PAPER_HEADERS), (markdown(TRAINING, ROWS), LAYOUTS)]
)
def test_every_line_is_a_row_a_problem_or_context(
    table: list[str], headers: Headers, lines: list[str]
) -> None:
    whole = table + lines
    document = read_lines(headers, whole)
    told = {place for place, _ in document.context}
    names = {""}
    for read_table in document.tables:
        names.update(read_table.columns)
        for row in read_table.rows:
            told.update(row.cell_locators or [row.locator])
    for number, line in enumerate(whole, start=1):
        cells = {cell.strip() for cell in line.split("|")}
        assert f"line {number}" in told or cells <= names
