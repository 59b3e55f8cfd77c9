"""The page's tables from plain text: the real text, every form it may take, and lines lost or too many."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import DocumentError, UnrecognisedDocumentError
from ipu_results.read.html import read_html
from ipu_results.read.page_text import read_page_text
from ipu_results.read.document import ParsedDocument, SourceTable

from tests.reading_support import (
    GPT2,
    INFERENCE,
    LAYOUTS,
    PAGE,
    PAGE_TEXT,
    RESNET,
    TGN,
    TRAINING,
    UNET,
    Grid,
    delimited,
    grids,
    markdown,
    normalise_page,
    one_cell_a_line,
    page_tables,
    refusals,
    texts,
)

CARRIED = read_html(PAGE.read_bytes(), LAYOUTS)
ROWS = [GPT2, RESNET, TGN]
FORMS: dict[str, Callable[[Sequence[str], Grid], list[str]]] = {
    "one cell a line": one_cell_a_line,
    "pipes": delimited,
    "pipes without blanks": lambda header, rows: delimited(header, rows, "|"),
    "tabs": lambda header, rows: delimited(header, rows, "\t"),
    "markdown": markdown,
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def read(*lines: str) -> ParsedDocument:
    return read_page_text("\n".join(lines), LAYOUTS)


def lines_of(table: SourceTable) -> list[str]:
    return one_cell_a_line(table.columns, [row.cells for row in table.rows])


def rows_of(reading: ParsedDocument) -> list[list[str]]:
    return [row for rows in grids(reading).values() for row in rows]


# --- the real text


@pytest.mark.skipif(not PAGE_TEXT.exists(), reason="the page's text is not here")
def test_real_text_has_the_tables_of_the_carried_page() -> None:
    reading = read(PAGE_TEXT.read_text(encoding="utf-8"))
    assert texts(reading) == texts(CARRIED)
    assert reading.problems == ()
    assert [table.locator for table in reading.tables][:2] == ["line 39", "line 77"]


@pytest.mark.skipif(not PAGE_TEXT.exists(), reason="the page's text is not here")
def test_real_text_with_other_line_ends() -> None:
    text = PAGE_TEXT.read_text(encoding="utf-8")
    for ending in ("\r\n", "\r"):
        assert read(text.replace("\n", ending)) == read(text)


# --- the forms


@every_form
def test_a_table_in_every_form(form: Callable[[Sequence[str], Grid], list[str]]) -> None:
    reading = read("Some title", "", *form(TRAINING, ROWS), "", "Some text, with | in it.")
    assert texts(reading) == {"bow_training": [TRAINING, *ROWS]}
    assert reading.problems == ()


@every_form
def test_blank_cells_are_kept_where_they_stand(form: Callable[[Sequence[str], Grid], list[str]]) -> None:
    assert texts(read(*form(INFERENCE, [UNET, UNET]))) == {"bow_inference": [INFERENCE, UNET, UNET]}


@every_form
def test_text_before_the_header_in_the_same_block(form: Callable[[Sequence[str], Grid], list[str]]) -> None:
    reading = read("Training", "Our results", "Model", *form(TRAINING, ROWS))
    assert grids(reading) == {"bow_training": ROWS}
    assert reading.problems == ()


@every_form
def test_footnote_marks_are_lifted_off_cells_and_header(form: Callable[[Sequence[str], Grid], list[str]]) -> None:
    marked = ["GPT2²", *GPT2[1:8], "1,590*"]
    [table] = read(*form([*TRAINING[:8], "Throughput (items/sec)†"], [marked, RESNET])).tables
    assert [list(row.cells) for row in table.rows] == [GPT2, RESNET]
    assert table.rows[0].footnotes == ((0, "²"), (8, "*"))


@pytest.mark.parametrize("blank", ["\u00a0", "\u200b", " \u00a0 ", "\u2003", "\ufeff"])
def test_a_line_of_unusual_blanks_is_a_blank_cell(blank: str) -> None:
    lines = [blank if line == "\u00a0" else line for line in one_cell_a_line(TRAINING, ROWS)]
    assert grids(read(*lines)) == {"bow_training": ROWS}


@pytest.mark.parametrize("end", ["", " ", "\t", " \t "])
def test_an_empty_line_ends_the_table(end: str) -> None:
    reading = read(*one_cell_a_line(TRAINING, ROWS), end, "GPT2", "more text")
    assert grids(reading) == {"bow_training": ROWS}
    assert reading.problems == ()


@every_form
def test_a_row_may_begin_and_end_with_a_blank_cell(form: Callable[[Sequence[str], Grid], list[str]]) -> None:
    rows = [["", *UNET[1:]], UNET]
    assert texts(read(*form(INFERENCE, rows))) == {"bow_inference": [INFERENCE, *rows]}


def test_rows_and_cells_are_told_by_their_lines() -> None:
    table = read("a", "", *one_cell_a_line(TRAINING, ROWS)).tables[0]
    assert (table.locator, [row.locator for row in table.rows]) == ("line 3", ["line 12", "line 21", "line 30"])
    assert table.cell_locator(table.rows[1], 8) == "line 29"
    table = read("a", "", *markdown(TRAINING, ROWS)).tables[0]
    assert (table.locator, [row.locator for row in table.rows]) == ("line 3", ["line 5", "line 6", "line 7"])


def test_a_grid_with_rules_around_every_row() -> None:
    rule = "+" + "---+" * len(TRAINING)
    told = [line for row in (TRAINING, *ROWS) for line in (rule, f"| {' | '.join(row)} |")]
    assert grids(read(*told, rule)) == {"bow_training": ROWS}


@given(page_tables(), st.sampled_from(sorted(FORMS)))
def test_any_tables_in_any_form_are_read_back(tables: dict[str, tuple[list[str], list[list[str]]]], form: str) -> None:
    lines = [line for header, rows in tables.values() for line in ["", *FORMS[form](header, rows), "", "Words."]]
    reading = read(*lines)
    assert texts(reading) == {name: [header, *rows] for name, (header, rows) in tables.items()}
    assert reading.problems == ()


# --- lines lost or too many


def assert_no_wrong_row(table: SourceTable, lines: Sequence[str], *, may_lose: int) -> ParsedDocument:
    """Every row that is read stands in the table, at most `may_lose` are not read, and a problem names a line."""
    reading = read(*lines)
    printed = [list(row.cells) for row in table.rows]
    assert [row for row in rows_of(reading) if row not in printed] == []
    assert len(rows_of(reading)) >= len(printed) - may_lose
    assert reading.problems
    assert all(problem.locator.startswith("line ") for problem in reading.problems)
    return reading


def places(table: SourceTable, step: int, offset: int) -> range:
    return range(len(table.columns) + offset, len(lines_of(table)), step)


@pytest.mark.parametrize("table", CARRIED.tables, ids=lambda table: table.name)
def test_any_line_lost_costs_at_most_its_row_and_a_neighbour(table: SourceTable) -> None:
    lines = lines_of(table)
    for place in places(table, step=29, offset=0):
        assert_no_wrong_row(table, lines[:place] + lines[place + 1 :], may_lose=2)


@pytest.mark.parametrize("extra", ["twice", "Alien words", "7", "\u00a0"])
@pytest.mark.parametrize("table", CARRIED.tables, ids=lambda table: table.name)
def test_any_line_too_many_costs_at_most_three_rows(table: SourceTable, extra: str) -> None:
    lines = lines_of(table)
    for place in places(table, step=83, offset=3):
        inserted = lines[place] if extra == "twice" else extra
        assert_no_wrong_row(table, [*lines[:place], inserted, *lines[place:]], may_lose=3)


def test_each_line_of_a_short_table() -> None:
    table = CARRIED.tables[3]
    lines = lines_of(table)
    for place in range(len(table.columns), len(lines)):
        assert_no_wrong_row(table, lines[:place] + lines[place + 1 :], may_lose=2)


@given(st.sampled_from(CARRIED.tables), st.data())
def test_any_two_lines_lost(table: SourceTable, data: st.DataObject) -> None:
    lines = lines_of(table)
    place = st.integers(len(table.columns), len(lines) - 1)
    first, second = sorted((data.draw(place), data.draw(place)))
    if first != second:
        left = [line for i, line in enumerate(lines) if i not in (first, second)]
        assert_no_wrong_row(table, left, may_lose=4)


@given(st.sampled_from(CARRIED.tables), st.data())
def test_a_line_lost_and_another_one_too_many(table: SourceTable, data: st.DataObject) -> None:
    lines = lines_of(table)
    lost = data.draw(st.integers(len(table.columns), len(lines) - 1))
    extra = data.draw(st.integers(len(table.columns), len(lines) - 1))
    left = [line for i, line in enumerate(lines) for line in [line] * (1 + (i == extra) - (i == lost))]
    reading = read(*left)
    printed = [list(row.cells) for row in table.rows]
    wrong = [row for row in rows_of(reading) if row not in printed]
    apart = abs(lost // len(table.columns) - extra // len(table.columns))
    assert wrong == [] or apart < 2
    assert reading.problems or wrong or apart == 0
    assert len(rows_of(reading)) >= len(printed) - 6


@pytest.mark.parametrize("table", [CARRIED.tables[1], CARRIED.tables[4]], ids=lambda table: table.name)
def test_cells_that_changed_places_are_never_accepted_as_a_result(table: SourceTable) -> None:
    """Neither of two free texts is misplaced by its shape, so the row is read as printed: the vocabulary refuses it."""
    width, number = len(table.columns), 30
    original = list(table.rows[number - 1].cells)
    for column in range(width - 1):
        swapped = list(original)
        swapped[column], swapped[column + 1] = swapped[column + 1], swapped[column]
        rows = [list(row.cells) for row in table.rows]
        rows[number - 1] = swapped
        reading = read(*one_cell_a_line(table.columns, rows))
        kept = rows_of(reading)
        assert [row for i, row in enumerate(rows) if i != number - 1] == [row for row in kept if row != swapped]
        if swapped in kept:
            normalised = normalise_page(swapped, header=table.columns, name=table.name)
            assert normalised.results == []
            assert len(normalised.rejected) == 1
        else:
            assert refusals(reading) == [(table.name, number, "row-width")]


@pytest.mark.parametrize("column", range(len(TRAINING)))
@every_form
def test_a_lost_header_name(form: Callable[[Sequence[str], Grid], list[str]], column: int) -> None:
    reading = read(*form([*TRAINING[:column], *TRAINING[column + 1 :]], ROWS))
    assert reading.tables == ()
    assert refusals(reading) == [("", None, "unknown-header")]
    assert repr(TRAINING[column].split(" (")[0]) in reading.problems[0].message


@every_form
def test_a_renamed_header_name(form: Callable[[Sequence[str], Grid], list[str]]) -> None:
    reading = read(*form([*TRAINING[:5], "Data Source", *TRAINING[6:]], ROWS))
    assert reading.tables == ()
    assert "'Data Source'" in reading.problems[0].message


@every_form
def test_rows_without_their_header_are_a_problem(form: Callable[[Sequence[str], Grid], list[str]]) -> None:
    start = len(form(TRAINING, [])) if form is not markdown else 2
    reading = read(*form(INFERENCE, [UNET]), "", *form(TRAINING, ROWS)[start:])
    assert grids(reading) == {"bow_inference": [UNET]}
    assert refusals(reading) == [("", None, "unknown-header")]


@every_form
def test_rows_above_the_header_are_a_problem(form: Callable[[Sequence[str], Grid], list[str]]) -> None:
    start = len(form(TRAINING, [])) if form is not markdown else 2
    reading = read("Training", *form(TRAINING, ROWS)[start:], *form(TRAINING, [GPT2]))
    assert grids(reading) == {"bow_training": [GPT2]}
    assert refusals(reading) == [("", None, "unknown-header")]


@pytest.mark.parametrize("rows", [ROWS, [GPT2[:-1]]])
@every_form
def test_rows_under_a_misspelled_header_above_a_good_one_are_a_problem(
    form: Callable[[Sequence[str], Grid], list[str]], rows: Grid
) -> None:
    misspelled = [*TRAINING[:5], "Data Source", *TRAINING[6:]]
    reading = read("Model", "Words", "Words", *form(misspelled, rows), *form(TRAINING, [GPT2]))
    assert grids(reading) == {"bow_training": [GPT2]}
    assert refusals(reading) == [("", None, "unknown-header")]
    assert "'Data Source'" in reading.problems[0].message
    assert reading.problems[0].locator == "line 4"


@every_form
def test_rows_behind_an_empty_line_inside_the_table_are_a_problem(
    form: Callable[[Sequence[str], Grid], list[str]],
) -> None:
    lines = form(TRAINING, ROWS)
    cut = len(lines) - len(form(TRAINING, [])) * 2 if form is one_cell_a_line else len(lines) - 2
    reading = read(*lines[:cut], "", *lines[cut:])
    assert grids(reading) == {"bow_training": ROWS[:1]}
    assert refusals(reading) == [("", None, "unknown-header")]
    assert reading.problems[0].locator == f"line {cut + 2}"


def test_an_empty_line_inside_a_row_is_a_problem_of_the_row_and_of_those_behind() -> None:
    lines = one_cell_a_line(TRAINING, ROWS)
    reading = read(*lines[:13], "", *lines[13:])
    assert refusals(reading) == [("bow_training", 1, "row-width"), ("", None, "unknown-header")]
    assert reading.tables == ()


def test_an_empty_line_behind_the_header() -> None:
    lines = one_cell_a_line(TRAINING, ROWS)
    reading = read(*lines[:9], "", *lines[9:])
    assert refusals(reading) == [("bow_training", None, "no-rows"), ("", None, "unknown-header")]


@pytest.mark.parametrize("change", [lambda row: row[:-1], lambda row: [*row, "7"], lambda _: ["a note"]])
def test_a_delimited_row_too_short_or_too_long(change: Callable[[list[str]], list[str]]) -> None:
    reading = read(*delimited(TRAINING, [GPT2, change(RESNET), TGN]))
    assert grids(reading) == {"bow_training": [GPT2, TGN]}
    assert [(p.row_number, p.reason, p.locator) for p in reading.problems] == [(2, "row-width", "line 3")]


# --- not a table at all


@pytest.mark.parametrize("text", ["", "\n\n", "Words.\nMore words.", "a | b | c\nd | e | f", "Model\nPlatform"])
def test_text_without_a_table_is_not_an_empty_reading(text: str) -> None:
    with pytest.raises(UnrecognisedDocumentError):
        read(text)


@pytest.mark.parametrize(
    "text", [" " * 300_000 + "|x", "(" * 90_000, "*" * 90_000 + "x", "|" * 20_000, "1,\n" * 5_000, "Model\n" * 5_000]
)
def test_long_runs_are_taken(text: str) -> None:
    with pytest.raises(UnrecognisedDocumentError):
        read(text)


PIECES = st.sampled_from([*TRAINING, *GPT2, *TGN, "|", "\t", "\n", "\n\n", "\u00a0", "---", "²"])


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=60).map("\n".join), st.lists(PIECES).map(" | ".join)))
def test_any_text_is_read_or_refused(text: str) -> None:
    for document in (text, "\n".join([*one_cell_a_line(TRAINING, ROWS), text])):
        try:
            reading = read(document)
        except DocumentError:
            continue
        assert reading.tables or reading.problems
        assert all(len(row) == len(table[0]) for table in texts(reading).values() for row in table)
