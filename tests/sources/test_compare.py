"""Captures compared with transcriptions: every difference is listed, and none where there is none."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import CatalogueError
from ipu_results.read import ParsedDocument, ReadProblem
from ipu_results.read.html import read_html
from ipu_results.read.page_text import read_page_text
from ipu_results.sources.capture import CaptureDifference, compare_captures, find_differences
from ipu_results.sources.catalogue import Document

from tests.read.reading_support import (
    GPT2,
    INFERENCE,
    LAYOUTS,
    RESNET,
    TGN,
    TRAINING,
    UNET,
    WORDS,
    make_document,
    make_table,
    one_cell_a_line,
    page_html,
    page_tables,
    table_html,
    training_page,
)

ROWS = [GPT2, RESNET, TGN]
CUT = (
    "an HTML page that ends in the middle, without the end tag of a table, of its body or of"
    " itself: download it again, or name what the file is with --kind"
)
OURS = ParsedDocument(
    (make_table("bow_training", TRAINING, ROWS), make_table("bow_inference", INFERENCE, [UNET]))
)

Table = Sequence[Sequence[str]]


def against(*rows: Sequence[str], header: Sequence[str] = TRAINING) -> list[CaptureDifference]:
    """Compare OURS with a document whose first table has other rows."""
    return list(
        find_differences(
            OURS, ParsedDocument((make_table("bow_training", header, rows), OURS.tables[1]))
        )
    )


def compare_rows(ours: Table, theirs: Table) -> list[CaptureDifference]:
    left, right = (ParsedDocument((make_table("t", TRAINING, rows),)) for rows in (ours, theirs))
    return list(find_differences(left, right))


def test_equal_documents_do_not_differ() -> None:
    assert list(find_differences(OURS, OURS)) == []


@pytest.mark.parametrize("name", ["Throughput (items/hour)", "throughput (items/sec)"])
def test_changed_cell_or_header_is_one_difference(name: str) -> None:
    place = {"kind": "cell", "table_name": "bow_training"}
    assert against(GPT2, [*RESNET[:8], "44,060"], TGN, header=[*TRAINING[:8], name]) == [
        place
        | {
            "locator": "bow_training, header, column 9",
            "transcribed": "Throughput (items/sec)",
            "captured": name,
        },
        place
        | {
            "locator": "bow_training, row 2, column 9 (Throughput (items/sec))",
            "transcribed": "44,059",
            "captured": "44,060",
        },
    ]


def test_every_changed_cell_of_a_row_is_listed() -> None:
    differences = against(["x", *GPT2[1:8], "1"], RESNET, ["", *TGN[1:]])
    assert [(d["transcribed"], d["captured"]) for d in differences] == [
        ("GPT2", "x"),
        ("1,590", "1"),
        ("TGN", ""),
    ]


@pytest.mark.parametrize("place", range(4))
def test_inserted_or_removed_row_is_one_difference(place: int) -> None:
    row = ["DINO", *GPT2[1:]]
    expected = {
        "kind": "row",
        "table_name": "bow_training",
        "locator": f"bow_training, row {place + 1}",
    }
    assert against(*ROWS[:place], row, *ROWS[place:]) == [expected | {"captured": " | ".join(row)}]
    for lost in ROWS[place : place + 1]:
        assert against(*ROWS[:place], *ROWS[place + 1 :]) == [
            expected | {"transcribed": " | ".join(lost)}
        ]


def test_swapped_rows_are_differences() -> None:
    assert {difference["kind"] for difference in against(RESNET, GPT2, TGN)} == {"row"}


def test_many_equal_rows_are_matched_quickly() -> None:
    start = time.process_time()
    [difference] = compare_rows([GPT2] * 10_000, [GPT2] * 10_001)
    between = compare_rows([RESNET, *[GPT2] * 10_000, RESNET], [TGN, *[GPT2] * 10_001, TGN])
    assert time.process_time() - start < 60, "with the square of the rows this would take minutes"
    assert (difference["kind"], difference["captured"]) == ("row", " | ".join(GPT2))
    assert sum(d["kind"] == "row" for d in between) == 1
    assert {d["transcribed"] for d in between if d["kind"] == "cell"} <= set(RESNET)


def test_row_moved_to_the_end_leaves_the_others_matched() -> None:
    rows = [[str(n), *GPT2[1:]] for n in range(50)]
    differences = compare_rows(rows, [*rows[1:], rows[0]])
    assert [(d["kind"], d["locator"]) for d in differences] == [
        ("row", "t, row 1"),
        ("row", "t, row 50"),
    ]


def test_cell_that_makes_a_row_equal_to_its_neighbours_is_one_difference() -> None:
    [difference] = compare_rows([GPT2, ["x", *GPT2[1:]], GPT2], [GPT2, GPT2, GPT2])
    assert (difference["kind"], difference["transcribed"], difference["captured"]) == (
        "cell",
        "x",
        "GPT2",
    )


@given(st.lists(st.sampled_from(ROWS)), st.lists(st.sampled_from(ROWS)))
def test_lost_and_added_rows_explain_the_two_lengths(ours: Table, theirs: Table) -> None:
    differences = compare_rows(ours, theirs)
    rows = [d for d in differences if d["kind"] == "row"]
    assert sum("captured" in d for d in rows) - sum("transcribed" in d for d in rows) == len(
        theirs
    ) - len(ours)
    assert (differences == []) == (ours == theirs)


def test_cells_of_reordered_columns_are_compared() -> None:
    assert against(*(row[::-1] for row in ROWS), header=TRAINING[::-1]) == []
    [difference] = against(GPT2[::-1], ["1", *RESNET[::-1][1:]], TGN[::-1], header=TRAINING[::-1])
    assert (difference["transcribed"], difference["captured"]) == ("44,059", "1")


def test_lost_and_added_tables_and_unreadable_rows_are_differences() -> None:
    problem = ReadProblem("", None, "table 3", "unknown-header", "the header lacks 'Model'")
    theirs = ParsedDocument(
        (OURS.tables[0], make_table("pod_training", TRAINING, [GPT2])), (problem,)
    )
    assert [
        (d["kind"], d["table_name"], d.get("transcribed"), d.get("captured"))
        for d in find_differences(OURS, theirs)
    ] == [
        ("table", "bow_inference", "bow_inference", None),
        ("table", "pod_training", None, "pod_training"),
        ("row", None, None, "the header lacks 'Model'"),
    ]
    assert list(find_differences(OURS, theirs))[2]["locator"] == "table 3"


@given(page_tables())
def test_html_and_text_of_one_page_do_not_differ(
    tables: dict[str, tuple[list[str], list[list[str]]]],
) -> None:
    html = "".join(table_html(header, rows) for header, rows in tables.values())
    text = "\n".join(
        line for header, rows in tables.values() for line in [*one_cell_a_line(header, rows), ""]
    )
    from_html, from_text = read_html(page_html(html), LAYOUTS), read_page_text(text, LAYOUTS)
    assert (
        list(find_differences(from_html, from_text))
        == list(find_differences(from_text, from_html))
        == []
    )


# --- files


def write_capture(path: Path, data: bytes) -> Document:
    path.write_bytes(data)
    document = make_document("performance-page", "a-capture")
    digest = hashlib.sha256(data).hexdigest()
    return msgspec.structs.replace(
        document, path=path, file=path.name, sha256=digest, transcription_of="a-page"
    )


def compare(document: Document, max_bytes: int = 10**6) -> list[CaptureDifference]:
    original = read_html(training_page(*ROWS), LAYOUTS)
    return compare_captures([document], {"a-page": original}, WORDS, max_bytes, 10)


def test_differences_are_numbered_and_name_both_documents(tmp_path: Path) -> None:
    assert compare(write_capture(tmp_path / "c.html", b"\n" + training_page(*ROWS))) == []
    data = training_page(GPT2, RESNET, ["DINO", *TGN[1:8], "1"])
    differences = compare(write_capture(tmp_path / "c.html", data))
    assert [
        (d["document_id"], d["capture_id"], d["number"], d["captured"]) for d in differences
    ] == [("a-page", "a-capture", 1, "DINO"), ("a-page", "a-capture", 2, "1")]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("c.html", training_page(*ROWS)[:600], CUT),
        ("c.html", page_html("<h1>503</h1>"), "has no table"),
        ("c.html", b" ", "is empty"),
        ("c.pdf", training_page(*ROWS), "is not a PDF but an HTML page"),
        ("c.html", b"\x00\x01" * 90, "is not text: binary data"),
    ],
)
def test_unreadable_capture_is_one_difference(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    [difference] = compare(write_capture(tmp_path / name, data))
    assert (difference["kind"], difference["captured"], "transcribed" in difference) == (
        "unreadable",
        message,
        False,
    )
    assert difference["locator"]


def test_capture_that_is_not_its_sidecars_file_is_one_difference(tmp_path: Path) -> None:
    document = write_capture(tmp_path / "c.html", training_page(*ROWS))
    [too_large] = compare(document, max_bytes=100)
    [changed] = compare(msgspec.structs.replace(document, sha256="0"))
    document.path.unlink()
    [absent] = compare(document)
    assert {difference["kind"] for difference in (too_large, changed, absent)} == {"unreadable"}
    assert "the limit is 100" in too_large["captured"]
    assert (changed["locator"], "sha256" in changed["captured"]) == ("c.html", True)
    assert absent["captured"] == "cannot be read: No such file or directory"


def test_capture_of_an_unknown_document_is_an_error(tmp_path: Path) -> None:
    document = msgspec.structs.replace(
        write_capture(tmp_path / "c.html", training_page(*ROWS)), transcription_of="no-such"
    )
    with pytest.raises(
        CatalogueError, match="a-capture: is a capture of 'no-such', which is not in the catalogue"
    ):
        compare(document)
