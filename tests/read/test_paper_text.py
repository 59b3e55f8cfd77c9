"""The paper's tables from plain text: the real text, the tidy forms, and everything that can be
lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.read import ParsedDocument
from ipu_results.read.paper_text import read_paper_text

from tests.read.reading_support import (
    BATCHES,
    FIGURES,
    PAPER_HEADERS,
    ROOT,
    assert_read_or_refused,
    problems,
)

REAL = ROOT.parent / "shared" / "sources" / "qwant-c2-report-arxiv-2002.11670.txt"
LATENCY, THROUGHPUT, EFFICIENCY = FIGURES.values()
ROWS = tuple(zip(BATCHES, LATENCY, strict=True))
CELLS = [cell for row in ROWS for cell in row]
ROW_LINES = [" | ".join(row) for row in ROWS]
FRAMED = ["| Batch size | Latency |", "|---|---|", *(f"| {line} |" for line in ROW_LINES)]

Rows = tuple[tuple[str, ...], ...]


def read(*lines: str) -> ParsedDocument:
    return read_paper_text("\n".join(lines), PAPER_HEADERS)


def tables(document: ParsedDocument) -> dict[str, Rows]:
    return {table.name: tuple(row.cells for row in table.rows) for table in document.tables}


def columns(labels: tuple[str, ...] = BATCHES, figures: tuple[str, ...] = LATENCY) -> list[str]:
    """Write a table with one column after the other, text between them."""
    return [
        "Batch size",
        *labels,
        "",
        "Some words between.",
        "",
        "Latency",
        *figures,
        "",
        "Table 1. Latency (ms)",
    ]


# --- the real text


@pytest.mark.skipif(not REAL.exists(), reason="the text of the paper is not here")
def test_real_text_has_the_printed_rows_captions_and_lines() -> None:
    text = REAL.read_text(encoding="utf-8")
    real = read(text)
    assert tables(real) == {
        "qwant_table_1": ROWS,
        "qwant_table_2": tuple(zip(BATCHES, THROUGHPUT, strict=True)),
        "qwant_table_3": tuple(zip(("2", "4", "6", "8", "", ""), EFFICIENCY, strict=True)),
    }
    assert real.problems == ()
    assert [(table.columns[1], table.caption) for table in real.tables] == [
        ("Latency", "Table 1. Latency results for ResNeXt101 (milliseconds per batch)"),
        ("Throughput", "Table 2. Throughput results (images/second) for ResNeXt101"),
        (
            "Energy efficiency",
            "Table 3. Energy efficiency results (images/second/watt) for ResNeXt101",
        ),
    ]
    lines = text.split("\n")
    for table in real.tables:
        for row in table.rows:
            for column, cell in enumerate(row.cells):
                line = int(table.cell_locator(row, column).removeprefix("line "))
                assert lines[line - 1].strip() == (cell or row.cells[1])
    assert real.tables[2].rows[4].cell_locators == ("line 243", "line 243")


# --- the forms


@pytest.mark.parametrize(
    ("lines", "table", "last"),
    [
        (columns(), "lines 1-17", "line 17"),
        (["Intro", "Batch size | Latency", *ROW_LINES], "lines 2-8", "line 8, column 2 (Latency)"),
        (
            ["Intro", "Batch size\tLatency", *map("\t".join, ROWS)],
            "lines 2-8",
            "line 8, column 2 (Latency)",
        ),
        (
            ["Intro", "Batch size     Latency", *map("     ".join, ROWS)],
            "lines 2-8",
            "line 8, column 2 (Latency)",
        ),
        (FRAMED, "lines 1-8", "line 8, column 2 (Latency)"),
        (["Batch size", "Latency", *CELLS, "", "Table 1. Latency"], "lines 1-14", "line 14"),
        (
            ["Batch size", "", "Latency", "", *(cell for row in ROWS for cell in (*row, ""))],
            "lines 1-21",
            "line 21",
        ),
        # a page number is neither label nor figure
        (
            ["Batch size", *BATCHES, "", "3", "\f", "Latency", *LATENCY, "", "4"],
            "lines 1-17",
            "line 17",
        ),
        # columns that continue after other text
        (
            [
                "Batch size",
                *BATCHES[:4],
                "x",
                *BATCHES[4:],
                "Latency",
                *LATENCY[:2],
                "x",
                *LATENCY[2:],
            ],
            "lines 1-16",
            "line 16",
        ),
    ],
)
def test_table_in_every_form(lines: list[str], table: str, last: str) -> None:
    document = read(*lines)
    assert (document.problems, tables(document)) == ((), {"qwant_table_1": ROWS})
    [read_table] = document.tables
    assert (read_table.locator, read_table.cell_locator(read_table.rows[-1], 1)) == (table, last)


@pytest.mark.parametrize(
    "header", ["Energy e\ufb03ciency", "\f Energy efficiency", "ENERGY EFFICIENCY (images/s/W)"]
)
def test_header_is_known_in_other_spellings(header: str) -> None:
    document = read("Batch size", *BATCHES, "words", header, *EFFICIENCY)
    assert tables(document) == {"qwant_table_3": tuple(zip(BATCHES, EFFICIENCY, strict=True))}
    assert document.tables[0].columns[1] == header.replace("\ufb03", "ffi").strip()


def test_setup_metadata_is_read() -> None:
    document = read("Platform: C2", "SDK version: 1.0.136", *columns())
    assert [(item.label, item.text, item.locator) for item in document.metadata] == [
        ("Platform", "C2", "line 1"),
        ("SDK version", "1.0.136", "line 2"),
    ]


# --- what is lost


@pytest.mark.parametrize("kept", [3, 4, 5])
def test_labels_lost_at_the_end_are_blank(kept: int) -> None:
    document = read(*columns(labels=BATCHES[:kept]))
    blanks = ("",) * (6 - kept)
    assert tables(document) == {
        "qwant_table_1": tuple(zip(BATCHES[:kept] + blanks, LATENCY, strict=True))
    }
    assert document.problems == ()


def drop(cells: Sequence[str], place: int) -> tuple[str, ...]:
    return (*cells[:place], *cells[place + 1 :])


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        *((columns(labels=drop(BATCHES, lost)), "labels-missing") for lost in range(5)),
        *((columns(figures=drop(LATENCY, lost)), "cells-missing") for lost in range(6)),
        *((["Batch size", "Latency", *drop(CELLS, lost)], "cells-missing") for lost in range(12)),
        # a page number
        (["Batch size", *BATCHES, "", "Latency", *LATENCY[:5], "", "4"], "cells-missing"),
        (["Batch size | Latency", "words"], "cells-missing"),
        (["Foo", *BATCHES, "words", "Latency", *LATENCY], "unknown-header"),
    ],
)
def test_table_with_a_lost_cell_or_label_is_a_problem(lines: list[str], reason: str) -> None:
    document = read(*lines)
    assert (tables(document), problems(document)) == ({}, [("qwant_table_1", None, reason)])


@pytest.mark.parametrize(
    ("labels", "known"),
    [
        (("3", "6", "9"), True),
        (("1", "2", "4"), False),
        (("3", "5", "7"), False),
        (("1", "2"), False),
    ],
)
def test_only_the_first_multiples_of_a_number_are_completed(
    labels: tuple[str, ...], known: bool
) -> None:
    assert bool(read(*columns(labels=labels)).tables) is known


def test_two_lost_figures_never_shift_whole_numbers() -> None:
    document = read("Batch size", "Throughput", "2", "1474", "4", "6", "8", "2409", "10", "2421")
    assert tables(document) == {}
    assert problems(document) == [("qwant_table_2", None, "cells-missing")]


def test_row_with_a_lost_cell_is_a_problem() -> None:
    document = read("Batch size | Latency", "2 | 1.36", " | 1.94", "6 | ", "8", "10 | 4.13")
    assert tables(document) == {"qwant_table_1": (("2", "1.36"), ("", "1.94"), ("10", "4.13"))}
    assert problems(document) == [
        ("qwant_table_1", 3, "row-width"),
        ("qwant_table_1", 4, "row-width"),
    ]
    assert [row.number for row in document.tables[0].rows] == [1, 2, 5]


def test_renamed_column_of_figures_is_a_problem() -> None:
    efficiency = ("Batch size", *BATCHES, "words", "Energy efficiency", *EFFICIENCY)
    document = read("Batch size", *BATCHES, "words", "Foo", *LATENCY, "", *efficiency)
    assert list(tables(document)) == ["qwant_table_3"]
    assert problems(document) == [("qwant_table_1", None, "unknown-header")]


def test_repeated_table_is_read_once_and_each_keeps_its_caption() -> None:
    document = read(*columns(), "", *columns(figures=EFFICIENCY))
    assert tables(document) == {"qwant_table_1": ROWS}
    assert problems(document) == [("qwant_table_1", None, "duplicate-table")]
    assert document.tables[0].caption == "Table 1. Latency (ms)"


def test_caption_that_does_not_name_the_measure_is_near_its_table() -> None:
    table = ["Batch size | Latency", *ROW_LINES]
    for distance, caption in ((1, "Table 4. Results"), (12, "Table 4. Results"), (13, "")):
        assert read(*table, *[""] * (distance - 1), "Table 4. Results").tables[0].caption == caption


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, "is empty") for text in ("", " \n\t\n")),
        *(
            (text, "no table with a known header")
            for text in ("words", "Latency\nwords", "batch_size,throughput\n2,3.5")
        ),
    ],
)
def test_empty_and_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(
        DamagedDocumentError if message == "is empty" else UnrecognisedDocumentError, match=message
    ):
        read(text)


# --- long texts: in time that grows with the square of the length, these would take minutes

MANY = 10_000


@pytest.mark.parametrize(
    "line", ["Latency", "Batch size", "Latency\n", "Batch size\nwords", "Table 1. Latency"]
)
def test_many_names_and_captions_without_figures_are_not_tables(line: str) -> None:
    with pytest.raises(UnrecognisedDocumentError, match="no table with a known header"):
        read(*[line] * MANY)


@pytest.mark.parametrize("mark", ["", "words"])
def test_table_after_many_names(mark: str) -> None:
    document = read(*["Latency", mark] * MANY, "words", *columns())
    assert (document.problems, tables(document)) == ((), {"qwant_table_1": ROWS})
    stacked = read(*["Latency", mark] * MANY, "Batch size", "Latency", *CELLS)
    assert tables(stacked) == {"qwant_table_1": ROWS}
    assert stacked.tables[0].locator == f"lines {2 * MANY + 1}-{2 * MANY + 14}"


def test_columns_in_many_parts() -> None:
    labels = [line for number in range(1, MANY) for line in (str(2 * number), "words")]
    figures = [line for _ in range(MANY) for line in ("1.5", "words")]
    document = read("Batch size", *labels, "Latency", *figures)
    assert tables(document) == {"qwant_table_1": (("2", "1.5"),)}


@pytest.mark.parametrize("between", [[], ["words"] * 30])
def test_many_tables_and_captions(between: list[str]) -> None:
    block = ["Batch size | Latency", "2 | 1.36", *between]
    captions = [f"Table {number}. Latency" for number in range(1, MANY // 5)]
    document = read(*block * (MANY // 5), "", *captions)
    assert tables(document) == {"qwant_table_1": (("2", "1.36"),)}
    assert problems(document) == [("qwant_table_1", None, "duplicate-table")] * (MANY // 5 - 1)
    assert document.tables[0].caption in captions


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
        "rows": [
            "Batch size | Latency",
            *map(" | ".join, ROWS[:3]),
            *between,
            *map(" | ".join, ROWS[3:]),
        ],
        "cells": ["Batch size", "Latency", *between, *CELLS],
    }
    document = read(*before, *lines[form], *after)
    assert tables(document) == {"qwant_table_1": ROWS}
    assert document.problems == ()


@given(
    step=st.integers(1, 40),
    count=st.integers(1, 20),
    start=st.integers(0, 20),
    length=st.integers(0, 20),
)
def test_labels_lost_in_one_piece_never_shift_a_row(
    step: int, count: int, start: int, length: int
) -> None:
    truth = [(str(step * place), f"{place}.50") for place in range(1, count + 1)]
    kept = truth[:start] + truth[start + length :]
    lines = [
        "Batch size",
        *(label for label, _ in kept),
        "words",
        "Latency",
        *(figure for _, figure in truth),
    ]
    document = read(*lines)
    assert document.tables or document.problems or count == 1
    for rows in tables(document).values():
        assert [figure for _, figure in rows] == [figure for _, figure in truth]
        assert all(label in ("", known) for (label, _), (known, _) in zip(rows, truth, strict=True))


@given(
    st.lists(
        st.sampled_from(
            ["Batch size", "Latency", "Throughput", "2", "4", "1.5", "", "words", "|", "2 | 3"]
        )
    )
)
def test_any_mixture_is_read_or_refused(lines: list[str]) -> None:
    assert_read_or_refused(read, *lines)
