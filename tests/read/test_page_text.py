"""The tables of a page saved as text: the real text, every form it may take, and lines lost or too
many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.read import ParsedDocument, SourceTable
from ipu_results.read.html import read_html
from ipu_results.read.page_text import read_page_text

from tests.read.reading_support import (
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
    assert_read_or_refused,
    delimited,
    grids,
    markdown,
    normalise_page,
    one_cell_a_line,
    page_tables,
    problems,
    texts,
)

COMMITTED = read_html(PAGE.read_bytes(), LAYOUTS)
ROWS = [GPT2, RESNET, TGN]
MISSPELLED = [*TRAINING[:5], "Data Source", *TRAINING[6:]]
LOST_HEADER = [("", None, "unknown-header")]

Form = Callable[[Sequence[str], Grid], list[str]]
FORMS: dict[str, Form] = {
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


def rows_of(document: ParsedDocument) -> list[list[str]]:
    return [row for rows in grids(document).values() for row in rows]


def without_header(form: Form) -> list[str]:
    start = 2 if form is markdown else len(form(TRAINING, []))
    return form(TRAINING, ROWS)[start:]


# --- the real text


@pytest.mark.skipif(not PAGE_TEXT.exists(), reason="the page's text is not here")
def test_real_text_has_the_tables_of_the_committed_page() -> None:
    text = PAGE_TEXT.read_text(encoding="utf-8")
    document = read(text)
    assert texts(document) == texts(COMMITTED)
    assert document.problems == ()
    assert [table.locator for table in document.tables][:2] == ["line 39", "line 77"]
    assert read(text.replace("\n", "\r\n")) == read(text.replace("\n", "\r")) == document


# --- the forms


@every_form
def test_table_in_every_form(form: Form) -> None:
    rows = [UNET, ["", *UNET[1:]], UNET]  # a row that begins and ends with a blank cell
    inference = "", *form(INFERENCE, rows), "", "Some text, with | in it."
    document = read("Training", "Our results", "Model", *form(TRAINING, ROWS), *inference)
    assert texts(document) == {
        "bow_training": [TRAINING, *ROWS],
        "bow_inference": [INFERENCE, *rows],
    }
    assert document.problems == ()


@every_form
def test_footnote_marks_are_lifted_off_cells_and_header(form: Form) -> None:
    marked = ["GPT2²", *GPT2[1:8], "1,590*"]
    [table] = read(*form([*TRAINING[:8], "Throughput (items/sec)†"], [marked, RESNET])).tables
    assert [list(row.cells) for row in table.rows] == [GPT2, RESNET]
    assert table.rows[0].footnotes == ((0, "²"), (8, "*"))


@pytest.mark.parametrize(
    ("blank", "end"),
    [("\u00a0", ""), ("\u200b", " \t "), (" \u00a0 ", ""), ("\u2003", ""), ("\ufeff", "")],
)
def test_line_of_unusual_blanks_is_a_blank_cell_and_an_empty_one_ends_the_table(
    blank: str, end: str
) -> None:
    lines = [blank if line == "\u00a0" else line for line in one_cell_a_line(TRAINING, ROWS)]
    document = read(*lines, end, "GPT2", "more text")
    assert (document.problems, grids(document)) == ((), {"bow_training": ROWS})


def test_locators_are_lines() -> None:
    table = read("a", "", *one_cell_a_line(TRAINING, ROWS)).tables[0]
    assert (table.locator, [row.locator for row in table.rows]) == (
        "line 3",
        ["line 12", "line 21", "line 30"],
    )
    assert table.cell_locator(table.rows[1], 8) == "line 29"
    table = read("a", "", *markdown(TRAINING, ROWS)).tables[0]
    assert (table.locator, [row.locator for row in table.rows]) == (
        "line 3",
        ["line 5", "line 6", "line 7"],
    )


def test_grid_with_rules_around_every_row() -> None:
    rule = "+" + "---+" * len(TRAINING)
    lines = [line for row in (TRAINING, *ROWS) for line in (rule, f"| {' | '.join(row)} |")]
    assert grids(read(*lines, rule)) == {"bow_training": ROWS}


@given(page_tables(), st.sampled_from(sorted(FORMS)))
def test_any_tables_in_any_form_are_read_back(
    tables: dict[str, tuple[list[str], list[list[str]]]], form: str
) -> None:
    lines = [
        line
        for header, rows in tables.values()
        for line in ["", *FORMS[form](header, rows), "", "Words."]
    ]
    document = read(*lines)
    assert texts(document) == {name: [header, *rows] for name, (header, rows) in tables.items()}
    assert document.problems == ()


# --- lines lost or too many


def assert_no_wrong_row(table: SourceTable, lines: Sequence[str], *, may_lose: int) -> None:
    """Check that every row read is in the table, that few are lost, and that each problem has the
    place of a line.
    """
    document = read(*lines)
    printed = [list(row.cells) for row in table.rows]
    assert [row for row in rows_of(document) if row not in printed] == []
    assert len(rows_of(document)) >= len(printed) - may_lose
    assert document.problems
    assert all(problem.locator.startswith("line ") for problem in document.problems)


@pytest.mark.parametrize("table", COMMITTED.tables, ids=lambda table: table.name)
def test_lost_line_costs_at_most_its_row_and_a_neighbour(table: SourceTable) -> None:
    lines = lines_of(table)
    step = 1 if table.name == "mlperf_v2_training" else 29  # each line of a short table
    for place in range(len(table.columns), len(lines), step):
        assert_no_wrong_row(table, lines[:place] + lines[place + 1 :], may_lose=2)


@pytest.mark.parametrize("table", COMMITTED.tables, ids=lambda table: table.name)
def test_line_too_many_costs_at_most_three_rows(table: SourceTable) -> None:
    lines = lines_of(table)
    for place in range(len(table.columns) + 3, len(lines), 83):
        for extra in (lines[place], "Alien words", "7", "\u00a0"):
            assert_no_wrong_row(table, [*lines[:place], extra, *lines[place:]], may_lose=3)


@given(st.sampled_from(COMMITTED.tables), st.data())
def test_lost_line_and_another_one_too_many_spoil_only_rows_next_to_each_other(
    table: SourceTable, data: st.DataObject
) -> None:
    lines, width = lines_of(table), len(table.columns)
    lost = data.draw(st.integers(width, len(lines) - 1))
    extra = data.draw(st.integers(width, len(lines) - 1))
    document = read(
        *(
            line
            for i, line in enumerate(lines)
            for line in [line] * (1 + (i == extra) - (i == lost))
        )
    )
    printed = [list(row.cells) for row in table.rows]
    wrong = [row for row in rows_of(document) if row not in printed]
    distance = abs(lost // width - extra // width)
    assert wrong == [] or distance < 2
    assert document.problems or wrong or distance == 0
    assert len(rows_of(document)) >= len(printed) - 6


@pytest.mark.parametrize(
    "table", [COMMITTED.tables[1], COMMITTED.tables[4]], ids=lambda table: table.name
)
def test_cells_that_changed_places_never_become_a_result(table: SourceTable) -> None:
    # Two swapped free texts have the right shapes, so the row is read as printed, and the
    # vocabulary refuses it.
    width, number = len(table.columns), 30
    original = list(table.rows[number - 1].cells)
    for column in range(width - 1):
        swapped = list(original)
        swapped[column], swapped[column + 1] = swapped[column + 1], swapped[column]
        rows = [list(row.cells) for row in table.rows]
        rows[number - 1] = swapped
        document = read(*one_cell_a_line(table.columns, rows))
        kept = rows_of(document)
        assert [row for i, row in enumerate(rows) if i != number - 1] == [
            row for row in kept if row != swapped
        ]
        if swapped in kept:
            normalised = normalise_page(swapped, header=table.columns, name=table.name)
            assert len(normalised.results) == 0
            assert len(normalised.rejected) == 1
        else:
            assert problems(document) == [(table.name, number, "row-width")]


# --- headers and rows that are lost


@every_form
def test_lost_or_misspelled_header_name_is_a_problem(form: Form) -> None:
    lost = {
        name.split(" (")[0]: [*TRAINING[:n], *TRAINING[n + 1 :]] for n, name in enumerate(TRAINING)
    }
    for name, header in (lost | {"Data Source": MISSPELLED}).items():
        document = read(*form(header, ROWS))
        assert (document.tables, problems(document)) == ((), LOST_HEADER)
        assert repr(name) in document.problems[0].message


@every_form
def test_rows_without_their_header_are_a_problem(form: Form) -> None:
    document = read(*form(INFERENCE, [UNET]), "", *without_header(form))
    assert grids(document) == {"bow_inference": [UNET]}
    assert problems(document) == LOST_HEADER


@every_form
def test_rows_above_the_header_or_under_a_misspelled_one_are_a_problem(form: Form) -> None:
    good = form(TRAINING, [GPT2])
    above = read("Training", *without_header(form), *good)
    assert (grids(above), problems(above)) == ({"bow_training": [GPT2]}, LOST_HEADER)
    for rows in (ROWS, [GPT2[:-1]], [GPT2[:2]]):
        document = read("Model", "Words", "Words", *form(MISSPELLED, rows), *good)
        assert (grids(document), problems(document)) == ({"bow_training": [GPT2]}, LOST_HEADER)
        assert "'Data Source'" in document.problems[0].message
        assert document.problems[0].locator == "line 4"


@every_form
def test_rows_after_an_empty_line_inside_the_table_are_a_problem(form: Form) -> None:
    lines = form(TRAINING, ROWS)
    cut = len(lines) - len(form(TRAINING, [])) * 2 if form is one_cell_a_line else len(lines) - 2
    document = read(*lines[:cut], "", *lines[cut:])
    assert grids(document) == {"bow_training": ROWS[:1]}
    assert problems(document) == LOST_HEADER
    assert document.problems[0].locator == f"line {cut + 2}"


@pytest.mark.parametrize(("line", "first"), [(13, (1, "row-width")), (9, (None, "no-rows"))])
def test_empty_line_inside_a_row_or_after_the_header_is_two_problems(
    line: int, first: tuple[int | None, str]
) -> None:
    lines = one_cell_a_line(TRAINING, ROWS)
    document = read(*lines[:line], "", *lines[line:])
    assert problems(document) == [("bow_training", *first), *LOST_HEADER]
    assert document.tables == ()


@pytest.mark.parametrize("row", [RESNET[:-1], [*RESNET, "7"], ["a note"]])
def test_delimited_row_too_short_or_too_long_is_a_problem(row: list[str]) -> None:
    document = read(*delimited(TRAINING, [GPT2, row, TGN]))
    assert grids(document) == {"bow_training": [GPT2, TGN]}
    assert [(p.row_number, p.reason, p.locator) for p in document.problems] == [
        (2, "row-width", "line 3")
    ]


# --- other text


@pytest.mark.parametrize(
    "text",
    [
        *("", "\n\n", "Words.\nMore words.", "a | b | c\nd | e | f", "Model\nPlatform"),
        # long runs end
        *(
            " " * 300_000 + "|x",
            "(" * 90_000,
            "*" * 90_000 + "x",
            "|" * 20_000,
            "1,\n" * 5_000,
            "Model\n" * 5_000,
        ),
    ],
)
def test_text_without_a_table_is_not_recognised(text: str) -> None:
    with pytest.raises(UnrecognisedDocumentError):
        read(text)


PIECES = st.sampled_from([*TRAINING, *GPT2, *TGN, "|", "\t", "\n", "\n\n", "\u00a0", "---", "²"])


@given(
    st.one_of(
        st.text(max_size=200),
        st.lists(PIECES, max_size=60).map("\n".join),
        st.lists(PIECES).map(" | ".join),
    )
)
def test_any_text_is_read_or_refused(text: str) -> None:
    assert_read_or_refused(read, text)
    assert_read_or_refused(read, *one_cell_a_line(TRAINING, ROWS), text)
