"""The paper's tables from plain text: the real text, the tidy forms, and everything that can be lost."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import DamagedDocumentError, DocumentError, UnrecognisedDocumentError
from ipu_results.read.paper.text import read_paper_text
from ipu_results.read.document import ParsedDocument
from ipu_results.schema.layouts import TableHeader

ROOT = Path(__file__).resolve().parent.parent
REAL = ROOT.parent / "shared" / "sources" / "qwant-c2-report-arxiv-2002.11670.txt"


def load_layouts() -> list[TableHeader]:
    entries = tomllib.loads((ROOT / "schema/vocabulary/layouts.toml").read_text(encoding="utf-8"))["layout"]
    return [
        TableHeader(entry["reader"], entry["table"], tuple(entry["fields"].items()), entry["task"])
        for entry in entries
        if entry["reader"] == "qwant-paper"
    ]


LAYOUTS = load_layouts()
BATCHES = ("2", "4", "6", "8", "10", "12")
LATENCY = ("1.36", "1.94", "2.82", "3.32", "4.13", "4.75")
THROUGHPUT = ("1474.16", "2063.03", "2131.01", "2409.79", "2421.82", "2526.35")
EFFICIENCY = ("6.51", "7.80", "7.87", "9.07", "9.68", "9.49")
ROWS = tuple(zip(BATCHES, LATENCY, strict=True))

Rows = tuple[tuple[str, ...], ...]


def read(*lines: str) -> ParsedDocument:
    return read_paper_text("\n".join(lines), LAYOUTS)


def tables(reading: ParsedDocument) -> dict[str, Rows]:
    return {table.name: tuple(row.cells for row in table.rows) for table in reading.tables}


def refusals(reading: ParsedDocument) -> list[tuple[str, int | None, str]]:
    return [(problem.table_name, problem.row_number, problem.reason) for problem in reading.problems]


def columns(labels: tuple[str, ...] = BATCHES, figures: tuple[str, ...] = LATENCY) -> list[str]:
    """The table with a column after the other, text between them."""
    return ["Batch size", *labels, "", "Some words between.", "", "Latency", *figures, "", "Table 1. Latency (ms)"]


# --- the real text


@pytest.fixture(scope="module")
def real() -> ParsedDocument:
    if not REAL.exists():
        pytest.skip("the text of the paper is not at hand")
    return read_paper_text(REAL.read_text(encoding="utf-8"), LAYOUTS)


def test_the_real_text_as_it_is(real: ParsedDocument) -> None:
    assert tables(real) == {
        "qwant_table_1": ROWS,
        "qwant_table_2": tuple(zip(BATCHES, THROUGHPUT, strict=True)),
        "qwant_table_3": tuple(zip(("2", "4", "6", "8", "", ""), EFFICIENCY, strict=True)),
    }
    assert real.problems == ()


def test_the_captions_of_the_real_text(real: ParsedDocument) -> None:
    assert [(table.columns, table.caption) for table in real.tables] == [
        (("Batch size", "Latency"), "Table 1. Latency results for ResNeXt101 (milliseconds per batch)"),
        (("Batch size", "Throughput"), "Table 2. Throughput results (images/second) for ResNeXt101"),
        (
            ("Batch size", "Energy efficiency"),
            "Table 3. Energy efficiency results (images/second/watt) for ResNeXt101",
        ),
    ]


def test_the_places_in_the_real_text(real: ParsedDocument) -> None:
    lines = REAL.read_text(encoding="utf-8").split("\n")
    for table in real.tables:
        for row in table.rows:
            for place, cell in enumerate(row.cells):
                line = int(table.cell_locator(row, place).removeprefix("line "))
                assert lines[line - 1].strip() == (cell or row.cells[1])
    assert real.tables[2].rows[4].cell_locators == ("line 243", "line 243")


# --- the forms


def test_one_column_after_the_other() -> None:
    reading = read(*columns())
    assert tables(reading) == {"qwant_table_1": ROWS}
    assert reading.tables[0].caption == "Table 1. Latency (ms)"
    assert reading.tables[0].locator == "lines 1-17"
    assert reading.tables[0].rows[0].cell_locators == ("line 2", "line 12")


@pytest.mark.parametrize("mark", [" | ", "\t", "     "])
def test_one_row_a_line(mark: str) -> None:
    reading = read("Intro words.", f"Batch size{mark}Latency", *(mark.join(row) for row in ROWS))
    assert tables(reading) == {"qwant_table_1": ROWS}
    assert [row.locator for row in reading.tables[0].rows] == [f"line {line}" for line in range(3, 9)]


def test_a_framed_table_with_a_rule() -> None:
    reading = read("| Batch size | Latency |", "|---|---|", *(f"| {label} | {figure} |" for label, figure in ROWS))
    assert tables(reading) == {"qwant_table_1": ROWS}


def test_one_cell_a_line() -> None:
    reading = read("Batch size", "Latency", *(cell for row in ROWS for cell in row), "", "Table 1. Latency")
    assert tables(reading) == {"qwant_table_1": ROWS}
    assert reading.tables[0].rows[1].cell_locators == ("line 5", "line 6")


def test_one_cell_a_line_with_blank_lines() -> None:
    lines = [cell for row in ROWS for cell in (*row, "")]
    assert tables(read("Batch size", "", "Latency", "", *lines)) == {"qwant_table_1": ROWS}


@pytest.mark.parametrize("header", ["Energy e\ufb03ciency", "\f Energy efficiency", "ENERGY EFFICIENCY (images/s/W)"])
def test_the_header_as_it_may_be_printed(header: str) -> None:
    reading = read("Batch size", *BATCHES, "words", header, *EFFICIENCY)
    assert tables(reading) == {"qwant_table_3": tuple(zip(BATCHES, EFFICIENCY, strict=True))}
    assert reading.tables[0].columns[1] == header.replace("\ufb03", "ffi").strip()


def test_all_forms_in_one_text() -> None:
    reading = read(
        *columns(),
        *("", "Batch size | Throughput", *map(" | ".join, zip(BATCHES, THROUGHPUT, strict=True))),
        *("", "Batch size", "Energy efficiency", *(c for r in zip(BATCHES, EFFICIENCY, strict=True) for c in r)),
    )
    assert list(tables(reading)) == ["qwant_table_1", "qwant_table_2", "qwant_table_3"]
    assert reading.problems == ()


def test_setup_facts_are_found() -> None:
    reading = read("Platform: C2", "SDK version: 1.0.136", *columns())
    assert [(fact.label, fact.text, fact.locator) for fact in reading.metadata] == [
        ("Platform", "C2", "line 1"),
        ("SDK version", "1.0.136", "line 2"),
    ]


# --- what is lost


@pytest.mark.parametrize("kept", [3, 4, 5])
def test_labels_lost_at_the_end_are_blank(kept: int) -> None:
    reading = read(*columns(labels=BATCHES[:kept]))
    blanks = ("",) * (6 - kept)
    assert tables(reading) == {"qwant_table_1": tuple(zip(BATCHES[:kept] + blanks, LATENCY, strict=True))}
    assert reading.problems == ()


@pytest.mark.parametrize("lost", range(5))
def test_a_label_lost_anywhere_else_is_a_problem(lost: int) -> None:
    reading = read(*columns(labels=BATCHES[:lost] + BATCHES[lost + 1 :]))
    assert tables(reading) == {}
    assert refusals(reading) == [("qwant_table_1", None, "labels-missing")]


@pytest.mark.parametrize(
    ("labels", "known"),
    [(("3", "6", "9"), True), (("1", "2", "4"), False), (("3", "5", "7"), False), (("1", "2"), False)],
)
def test_only_the_first_multiples_of_a_number_stand(labels: tuple[str, ...], known: bool) -> None:
    assert bool(read(*columns(labels=labels)).tables) is known


@pytest.mark.parametrize("lost", range(6))
def test_a_lost_figure_is_a_problem(lost: int) -> None:
    reading = read(*columns(figures=LATENCY[:lost] + LATENCY[lost + 1 :]))
    assert tables(reading) == {}
    assert refusals(reading) == [("qwant_table_1", None, "cells-missing")]


@pytest.mark.parametrize("lost", range(12))
def test_a_cell_lost_row_by_row_is_a_problem(lost: int) -> None:
    cells = [cell for row in ROWS for cell in row]
    reading = read("Batch size", "Latency", *cells[:lost], *cells[lost + 1 :])
    assert tables(reading) == {}
    assert refusals(reading) == [("qwant_table_1", None, "cells-missing")]


def test_two_lost_figures_never_shift_whole_numbers() -> None:
    reading = read("Batch size", "Throughput", "2", "1474", "4", "6", "8", "2409", "10", "2421")
    assert tables(reading) == {}
    assert refusals(reading) == [("qwant_table_2", None, "cells-missing")]


def test_a_row_with_a_lost_cell() -> None:
    reading = read("Batch size | Latency", "2 | 1.36", " | 1.94", "6 | ", "8", "10 | 4.13")
    assert tables(reading) == {"qwant_table_1": (("2", "1.36"), ("", "1.94"), ("10", "4.13"))}
    assert refusals(reading) == [("qwant_table_1", 3, "row-width"), ("qwant_table_1", 4, "row-width")]
    assert [row.number for row in reading.tables[0].rows] == [1, 2, 5]


def test_a_page_number_is_no_label_and_no_figure() -> None:
    lines = ["Batch size", *BATCHES, "", "3", "\f", "Latency", *LATENCY, "", "4"]
    assert tables(read(*lines)) == {"qwant_table_1": ROWS}
    lost = ["Batch size", *BATCHES[:4], "", "3", "\f", "Latency", *LATENCY, "", "4"]
    assert tables(read(*lost)) == {"qwant_table_1": tuple(zip((*BATCHES[:4], "", ""), LATENCY, strict=True))}
    missing = ["Batch size", *BATCHES, "", "Latency", *LATENCY[:5], "", "4"]
    assert refusals(read(*missing)) == [("qwant_table_1", None, "cells-missing")]


def test_a_column_that_goes_on_after_other_text() -> None:
    lines = ["Batch size", *BATCHES[:4], "words", *BATCHES[4:], "Latency", *LATENCY[:2], "words", *LATENCY[2:]]
    assert tables(read(*lines)) == {"qwant_table_1": ROWS}


def test_a_renamed_figure_column_is_a_problem() -> None:
    efficiency = ("Batch size", *BATCHES, "words", "Energy efficiency", *EFFICIENCY)
    reading = read("Batch size", *BATCHES, "words", "Foo", *LATENCY, "", *efficiency)
    assert list(tables(reading)) == ["qwant_table_3"]
    assert refusals(reading) == [("qwant_table_1", None, "unknown-header")]


def test_a_renamed_label_column_is_a_problem() -> None:
    reading = read("Foo", *BATCHES, "words", "Latency", *LATENCY)
    assert tables(reading) == {}
    assert refusals(reading) == [("qwant_table_1", None, "unknown-header")]


def test_labels_without_figures_are_a_problem() -> None:
    reading = read("Batch size", *BATCHES, "words", "Latency", "words")
    assert tables(reading) == {}
    assert len(reading.problems) == 1


def test_a_table_that_stands_twice_is_read_once() -> None:
    reading = read(*columns(), "", *columns(figures=EFFICIENCY))
    assert tables(reading) == {"qwant_table_1": ROWS}
    assert refusals(reading) == [("qwant_table_1", None, "duplicate-table")]


def test_a_header_without_rows_is_a_problem() -> None:
    assert refusals(read("Batch size | Latency", "words")) == [("qwant_table_1", None, "cells-missing")]


@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_an_empty_text_is_damaged(text: str) -> None:
    with pytest.raises(DamagedDocumentError, match="is empty"):
        read_paper_text(text, LAYOUTS)


@pytest.mark.parametrize("text", ["words", "Latency\nwords", "batch_size,throughput\n2,3.5"])
def test_other_texts_are_not_recognised(text: str) -> None:
    with pytest.raises(UnrecognisedDocumentError, match="no table with a known header"):
        read_paper_text(text, LAYOUTS)


# --- long texts: in time that grows with the square of the length, these would not end


MANY = 20_000


@pytest.mark.parametrize("line", ["Latency", "Batch size", "Latency\n", "Batch size\nwords", "Table 1. Latency"])
def test_many_names_and_captions_without_figures_are_no_table(line: str) -> None:
    with pytest.raises(UnrecognisedDocumentError, match="no table with a known header"):
        read(*[line] * MANY)


@pytest.mark.parametrize("mark", ["", "words"])
def test_many_names_before_a_table(mark: str) -> None:
    reading = read(*["Latency", mark] * MANY, "words", *columns())
    assert tables(reading) == {"qwant_table_1": ROWS}
    assert reading.problems == ()


def test_a_stack_at_the_end_of_many_names() -> None:
    reading = read(*["Latency", ""] * MANY, "Batch size", "Latency", *(cell for row in ROWS for cell in row))
    assert tables(reading) == {"qwant_table_1": ROWS}
    assert reading.tables[0].locator == f"lines {2 * MANY + 1}-{2 * MANY + 14}"


def test_columns_in_many_parts() -> None:
    labels = [line for number in range(1, MANY) for line in (str(2 * number), "words")]
    figures = [line for _ in range(MANY) for line in ("1.5", "words")]
    reading = read("Batch size", *labels, "Latency", *figures)
    assert tables(reading) == {"qwant_table_1": (("2", "1.5"),)}


def test_a_table_that_stands_many_times_is_read_once() -> None:
    reading = read(*[*columns(), ""] * 2_000)
    assert tables(reading) == {"qwant_table_1": ROWS}
    assert refusals(reading) == [("qwant_table_1", None, "duplicate-table")] * 1_999
    assert reading.tables[0].caption == "Table 1. Latency (ms)"


@pytest.mark.parametrize("between", [[], ["words"] * 30])
def test_each_of_many_captions_is_given_away_once(between: list[str]) -> None:
    block = ["Batch size | Latency", "2 | 1.36", *between]
    captions = [f"Table {number}. Latency" for number in range(1, 2_001)]
    reading = read(*block * 2_000, "", *captions)
    assert len(reading.problems) == 1_999
    assert reading.tables[0].caption == captions[-1]


# --- properties

prose = st.lists(
    st.text("abcdefg ,;()-|ﬁé", min_size=1, max_size=40)
    | st.sampled_from(["In table 1 we see 2.5 ms.", "3.1.2", "[12] Somebody, 2020.", "", "\f"]),
    max_size=6,
)


@given(before=prose, between=prose, after=prose, form=st.sampled_from(["columns", "rows", "cells"]))
def test_text_around_and_between_changes_no_row(
    before: list[str], between: list[str], after: list[str], form: str
) -> None:
    lines = {
        "columns": ["Batch size", *BATCHES, *between, "Latency", *LATENCY],
        "rows": ["Batch size | Latency", *map(" | ".join, ROWS[:3]), *between, *map(" | ".join, ROWS[3:])],
        "cells": ["Batch size", "Latency", *between, *(cell for row in ROWS for cell in row)],
    }
    reading = read(*before, *lines[form], *after)
    assert tables(reading) == {"qwant_table_1": ROWS}
    assert reading.problems == ()


@given(step=st.integers(1, 40), count=st.integers(1, 20), start=st.integers(0, 20), length=st.integers(0, 20))
def test_labels_lost_in_one_piece_never_shift_a_row(step: int, count: int, start: int, length: int) -> None:
    truth = [(str(step * place), f"{place}.50") for place in range(1, count + 1)]
    kept = truth[:start] + truth[start + length :]
    lines = ["Batch size", *(label for label, _ in kept), "words", "Latency", *(figure for _, figure in truth)]
    reading = read(*lines)
    assert reading.tables or reading.problems or count == 1
    for rows in tables(reading).values():
        assert [figure for _, figure in rows] == [figure for _, figure in truth]
        assert all(label in ("", known) for (label, _), (known, _) in zip(rows, truth, strict=True))


@given(st.lists(st.sampled_from(["Batch size", "Latency", "Throughput", "2", "4", "1.5", "", "words", "|", "2 | 3"])))
def test_any_mixture_is_read_or_a_typed_error(lines: list[str]) -> None:
    try:
        reading = read(*lines)
    except DocumentError:
        return
    assert reading.tables or reading.problems
    assert all(len(row.cells) == len(table.columns) for table in reading.tables for row in table.rows)


@given(st.text(max_size=300))
def test_arbitrary_text_is_a_typed_error(text: str) -> None:
    with pytest.raises(DocumentError):
        read_paper_text(text, LAYOUTS)
