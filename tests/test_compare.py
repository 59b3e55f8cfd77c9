"""Downloaded versions beside our transcriptions: every difference, and nothing where there is none."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import CatalogueError
from ipu_results.read.html import read_html
from ipu_results.read.page_text import read_page_text
from ipu_results.read.document import ParsedDocument, ReadProblem
from ipu_results.sources.capture.compare import CaptureDifference, compare_captures, find_differences
from ipu_results.sources.catalogue import Document

from tests.reading_support import (
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
OURS = ParsedDocument((make_table("bow_training", TRAINING, ROWS), make_table("bow_inference", INFERENCE, [UNET])))


def against(*rows: list[str], header: list[str] = TRAINING) -> list[CaptureDifference]:
    return list(find_differences(OURS, ParsedDocument((make_table("bow_training", header, rows), OURS.tables[1]))))


def test_equal_readings_do_not_differ() -> None:
    assert list(find_differences(OURS, OURS)) == []


def test_a_changed_cell() -> None:
    assert against(GPT2, [*RESNET[:8], "44,060"], TGN) == [
        {
            "kind": "cell",
            "table_name": "bow_training",
            "locator": "bow_training, row 2, column 9 (Throughput (items/sec))",
            "transcribed": "44,059",
            "captured": "44,060",
        }
    ]


def test_every_changed_cell_of_every_row() -> None:
    found = against(["x", *GPT2[1:8], "1"], RESNET, ["", *TGN[1:]])
    assert [(d["transcribed"], d["captured"]) for d in found] == [("GPT2", "x"), ("1,590", "1"), ("TGN", "")]


@pytest.mark.parametrize("place", range(4))
def test_an_inserted_row_is_one_difference(place: int) -> None:
    new = ["DINO", *GPT2[1:]]
    [found] = against(*ROWS[:place], new, *ROWS[place:])
    assert (found["kind"], found["captured"], found["locator"]) == (
        "row",
        " | ".join(new),
        f"bow_training, row {place + 1}",
    )
    assert "transcribed" not in found


@pytest.mark.parametrize("place", range(3))
def test_a_removed_row_is_one_difference(place: int) -> None:
    [found] = against(*ROWS[:place], *ROWS[place + 1 :])
    assert (found["kind"], found["transcribed"], found["locator"]) == (
        "row",
        " | ".join(ROWS[place]),
        f"bow_training, row {place + 1}",
    )
    assert "captured" not in found


def test_swapped_rows_are_differences() -> None:
    assert {found["kind"] for found in against(RESNET, GPT2, TGN)} == {"row"}


def tables_against(ours: list[list[str]], theirs: list[list[str]]) -> list[CaptureDifference]:
    one, other = (ParsedDocument((make_table("t", TRAINING, rows),)) for rows in (ours, theirs))
    return list(find_differences(one, other))


def test_one_more_of_many_equal_rows_is_one_difference() -> None:
    [found] = tables_against([GPT2] * 2000, [GPT2] * 2001)
    assert (found["kind"], found["captured"]) == ("row", " | ".join(GPT2))


def test_many_equal_rows_between_others_are_matched_in_no_time() -> None:
    start = time.perf_counter()
    found = tables_against([RESNET, *[GPT2] * 2000, RESNET], [TGN, *[GPT2] * 2001, TGN])
    assert time.perf_counter() - start < 2
    assert sum(one["kind"] == "row" for one in found) == 1
    assert {one["transcribed"] for one in found if one["kind"] == "cell"} <= set(RESNET)


def test_a_row_moved_to_the_end_leaves_the_others_matched() -> None:
    rows = [[str(n), *GPT2[1:]] for n in range(50)]
    found = tables_against(rows, [*rows[1:], rows[0]])
    assert [(one["kind"], one["locator"]) for one in found] == [("row", "t, row 1"), ("row", "t, row 50")]


def test_a_cell_that_makes_a_row_equal_to_its_neighbours_is_one_difference() -> None:
    [found] = tables_against([GPT2, ["x", *GPT2[1:]], GPT2], [GPT2, GPT2, GPT2])
    assert (found["kind"], found["transcribed"], found["captured"]) == ("cell", "x", "GPT2")


@given(st.lists(st.sampled_from([GPT2, RESNET, TGN])), st.lists(st.sampled_from([GPT2, RESNET, TGN])))
def test_rows_told_as_lost_and_added_explain_the_two_lengths(ours: list[list[str]], theirs: list[list[str]]) -> None:
    found = tables_against(ours, theirs)
    rows = [one for one in found if one["kind"] == "row"]
    assert sum("captured" in one for one in rows) - sum("transcribed" in one for one in rows) == len(theirs) - len(ours)
    assert (found == []) == (ours == theirs)


def test_reordered_columns_do_not_differ_and_their_cells_are_compared() -> None:
    assert against(*(row[::-1] for row in ROWS), header=TRAINING[::-1]) == []
    [found] = against(GPT2[::-1], ["1", *RESNET[::-1][1:]], TGN[::-1], header=TRAINING[::-1])
    assert (found["transcribed"], found["captured"]) == ("44,059", "1")


@pytest.mark.parametrize("name", ["Throughput (items/hour)", "Throughput", "throughput (items/sec)"])
def test_a_header_that_is_printed_differently(name: str) -> None:
    assert against(*ROWS, header=[*TRAINING[:8], name]) == [
        {
            "kind": "cell",
            "table_name": "bow_training",
            "locator": "bow_training, header, column 9",
            "transcribed": "Throughput (items/sec)",
            "captured": name,
        }
    ]


def test_a_lost_and_an_added_table() -> None:
    theirs = ParsedDocument((OURS.tables[0], make_table("pod_training", TRAINING, [GPT2])))
    assert [
        (d["kind"], d["table_name"], d.get("transcribed"), d.get("captured")) for d in find_differences(OURS, theirs)
    ] == [
        ("table", "bow_inference", "bow_inference", None),
        ("table", "pod_training", None, "pod_training"),
    ]


def test_rows_that_could_not_be_read_are_differences() -> None:
    theirs = replace(OURS, problems=(ReadProblem("", None, "table 3", "unknown-header", "the header lacks 'Model'"),))
    assert list(find_differences(OURS, theirs)) == [
        {"kind": "row", "table_name": None, "locator": "table 3", "captured": "the header lacks 'Model'"}
    ]


@given(page_tables())
def test_html_and_text_of_one_page_do_not_differ(tables: dict[str, tuple[list[str], list[list[str]]]]) -> None:
    html = "".join(table_html(header, rows) for header, rows in tables.values())
    text = "\n".join(line for header, rows in tables.values() for line in [*one_cell_a_line(header, rows), ""])
    from_html, from_text = read(page_html(html)), read_page_text(text, LAYOUTS)
    assert list(find_differences(from_html, from_text)) == list(find_differences(from_text, from_html)) == []


# --- from the files


def read(data: bytes) -> ParsedDocument:

    return read_html(data, LAYOUTS)


def capture(path: Path, data: bytes) -> Document:
    path.write_bytes(data)
    document = make_document("graphcore-performance", "a-capture")
    digest = hashlib.sha256(data).hexdigest()
    return replace(document, path=path, file=path.name, sha256=digest, transcription_of="a-page")


def compare(document: Document, max_bytes: int = 10**6) -> list[CaptureDifference]:
    return compare_captures([document], {"a-page": read(training_page(*ROWS))}, WORDS, max_bytes, 10)


def test_an_equal_capture_gives_no_rows(tmp_path: Path) -> None:
    assert compare(capture(tmp_path / "c.html", b"\n" + training_page(*ROWS))) == []


def test_differences_are_numbered_and_name_both_documents(tmp_path: Path) -> None:
    found = compare(capture(tmp_path / "c.html", training_page(GPT2, RESNET, ["DINO", *TGN[1:8], "1"])))
    assert [(d["document_id"], d["capture_id"], d["number"], d["captured"]) for d in found] == [
        ("a-page", "a-capture", 1, "DINO"),
        ("a-page", "a-capture", 2, "1"),
    ]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("c.html", training_page(*ROWS)[:600], "has no end: truncated"),
        ("c.html", page_html("<h1>503</h1>"), "holds no table"),
        ("c.html", b" ", "is empty"),
        ("c.pdf", training_page(*ROWS), "is not a PDF but an HTML page"),
        ("c.html", b"\x00\x01" * 90, "is not text: binary data"),
    ],
)
def test_a_capture_that_cannot_be_read_is_one_difference(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    [found] = compare(capture(tmp_path / name, data))
    assert (found["kind"], found["captured"], "transcribed" in found) == ("unreadable", message, False)
    assert found["locator"]


def test_a_capture_over_the_limit_is_one_difference(tmp_path: Path) -> None:
    [found] = compare(capture(tmp_path / "c.html", training_page(*ROWS)), max_bytes=100)
    assert found["kind"] == "unreadable"
    assert "the limit is 100" in found["captured"]


def test_a_capture_changed_behind_its_sidecar_is_one_difference(tmp_path: Path) -> None:
    [found] = compare(replace(capture(tmp_path / "c.html", training_page(*ROWS)), sha256="0"))
    assert (found["kind"], found["locator"]) == ("unreadable", "c.html")
    assert "the file or the sidecar was changed" in found["captured"]


def test_a_capture_whose_file_is_gone_is_one_difference(tmp_path: Path) -> None:
    document = capture(tmp_path / "c.html", training_page(*ROWS))
    document.path.unlink()
    [found] = compare(document)
    assert (found["kind"], found["captured"]) == ("unreadable", "cannot be read: No such file or directory")


def test_a_capture_of_nothing_in_the_catalogue_is_an_error(tmp_path: Path) -> None:
    document = replace(capture(tmp_path / "c.html", training_page(*ROWS)), transcription_of="no-such")
    with pytest.raises(CatalogueError, match="a-capture: is a capture of 'no-such', which is not here"):
        compare(document)
