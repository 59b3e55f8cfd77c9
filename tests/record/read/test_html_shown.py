"""A page is read with the evidence of what a browser shows of it, or if it is plain; here the
evidence is written by hand.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from ipu_results.errors import (
    DamagedDocumentError,
    UnprovenDocumentError,
    UnrecognisedDocumentError,
)
from ipu_results.record.read import ParsedDocument
from ipu_results.record.read.html import read_html
from ipu_results.record.read.html.shown import parse_shown

from tests.cases import every_case
from tests.record.read.reading_support import (
    GPT2,
    LAYOUTS,
    RESNET,
    TRAINING,
    assert_read,
    assert_told,
    page_html,
    read_page,
    table_html,
    training_page,
    with_cell,
)

THROUGHPUT = "the cell under 'Throughput (items/sec)'"
Cell = str | dict[str, Any] | None


def write_evidence(page: bytes, *rows: list[Cell], **changes: Any) -> bytes:
    """Write the evidence of a page with one training table."""
    shown = {
        "sha256": hashlib.sha256(page).hexdigest(),
        "browser": "Chromium",
        "files": {},
        "missing": [],
        "moved": "",
        "around": [],
        "tables": [[TRAINING, *rows]],
    }
    return json.dumps(shown | changes).encode()


def read_shown(page: bytes, *rows: list[Cell], **changes: Any) -> ParsedDocument:
    return read_html(page, LAYOUTS, parse_shown(write_evidence(page, *rows, **changes), page))


def read_figure(cell: str, shown: Cell) -> str:
    """Return the throughput written as `cell` and shown as evidence says, or why it is refused."""
    page = training_page(with_cell(GPT2, 8, f"<b class=x>{cell}</b>"))
    document = read_shown(page, with_cell(GPT2, 8, shown))
    if document.problems:
        return document.problems[0].message
    return document.tables[0].rows[0].cells[8]


@every_case(__file__, "as_written")
def test_figure_that_is_shown_as_it_is_written_is_read(cell: str, shown: Cell) -> None:
    assert read_figure(cell, shown) == "1,590"


@every_case(__file__, "otherwise")
def test_figure_that_is_shown_otherwise_is_refused(cell: str, shown: Cell, message: str) -> None:
    told = read_figure(cell, shown)
    assert told.startswith(THROUGHPUT)
    assert message in told


def test_cell_that_is_not_displayed_takes_no_column() -> None:
    page = training_page([*GPT2[:6], "<i class=x>7</i>", *GPT2[6:]])
    assert_read(read_shown(page, [*GPT2[:6], None, *GPT2[6:]]), bow_training=[GPT2])


def test_row_that_is_not_displayed_is_quarantined() -> None:
    document = read_shown(training_page(GPT2, RESNET), [None] * 9, RESNET)
    assert_told(document, ["bow_training 1 hidden-row"], bow_training=[RESNET])


@pytest.mark.parametrize("rows", [[GPT2], [GPT2[:8], RESNET]])
def test_table_that_a_browser_builds_otherwise_is_refused(rows: list[list[Cell]]) -> None:
    [problem, *_] = read_shown(training_page(GPT2, RESNET), *rows).problems
    assert "a browser builds another table" in problem.message


def test_header_that_is_shown_otherwise_or_hidden_is_a_problem() -> None:
    page = training_page(GPT2)
    scaled = [with_cell(TRAINING, 8, "Throughput (k items/sec)"), GPT2]
    for table in (scaled, [[None] * 9, [None] * 9]):
        document = read_shown(page, tables=[table])
        assert_told(document, ["unknown-header"])


def test_words_that_a_script_or_style_sheet_prints_are_to_be_signed() -> None:
    document = read_shown(training_page(GPT2), GPT2, around=["in thousands"])
    assert ("shown", "in thousands") in document.context


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"sha256": "0" * 64}, DamagedDocumentError, "evidence of other bytes"),
        ({"tables": 1}, DamagedDocumentError, "unreadable evidence"),
        ({"missing": ["a.css"]}, UnprovenDocumentError, "needs a.css"),
        ({"moved": "http://b"}, UnprovenDocumentError, "leads to http://b"),
    ],
)
def test_evidence_of_another_page_or_in_part_is_refused(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_shown(training_page(GPT2), GPT2, **changes)


# --- without evidence

PAGE = training_page(GPT2).decode()


@every_case(__file__, "plain")
def test_plain_page_needs_no_evidence(old: str, new: str) -> None:
    assert_read(read_page(PAGE.replace(old, new).encode()), bow_training=[GPT2])


@every_case(__file__, "not_plain")
def test_page_that_is_not_plain_needs_evidence(odd: str, old: str, new: str) -> None:
    page = PAGE.replace(old, new)
    with pytest.raises(UnprovenDocumentError, match=f"has {odd}.*ipu-results add"):
        read_page(page.encode())


def test_page_without_a_known_table_is_told_so_first() -> None:
    page = page_html("<script></script>", table_html(["Day", "Rain"], [["1", "2.5"]]))
    with pytest.raises(UnrecognisedDocumentError):
        read_page(page)
