"""Which reader takes a document: told from its bytes, never from its name or publisher."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results._util.limits import KINDS
from ipu_results.errors import DocumentError, DocumentTooLargeError, UnrecognisedDocumentError
from ipu_results.read import read_document

from tests.reading_support import (
    GPT2,
    PAGE,
    ROOT,
    TRAINING,
    UNET,
    WORDS,
    delimited,
    grids,
    markdown,
    one_cell_a_line,
    table_html,
    training_page,
)

LAYOUTS = WORDS.layouts
CARRIED = {
    "raw/graphcore/performance-2023-07-04.html": "graphcore-performance",
    "raw/graphcore/performance-2022-03.csv": "page-history",
    "raw/nvidia/a100-comparators.csv": "comparators",
    "raw/graphcore/public-configurations.csv": "configurations",
    "raw/qwant/resnext101-c2-2020-02-28.pdf": "qwant-paper",
}


@pytest.mark.parametrize("name", CARRIED)
def test_the_kind_of_each_carried_document_is_guessed(name: str) -> None:
    data = (ROOT / name).read_bytes()
    guessed = read_document(data, LAYOUTS)
    assert guessed.tables
    assert guessed == read_document(data, LAYOUTS, CARRIED[name])


@pytest.mark.parametrize("make", [one_cell_a_line, delimited, markdown])
def test_text_of_the_page_is_guessed(make: object) -> None:
    text = "\n".join(make(TRAINING, [GPT2]))  # type: ignore[operator]
    assert grids(read_document(text.encode(), LAYOUTS)) == {"bow_training": [GPT2]}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("kind", [None, "graphcore-performance"])
def test_html_in_any_encoding_is_read_as_html(encoding: str, kind: str | None) -> None:
    assert grids(read_document(training_page(GPT2).decode().encode(encoding), LAYOUTS, kind)) == {
        "bow_training": [GPT2]
    }


def test_text_that_begins_with_a_tracking_image_is_no_html() -> None:
    text = "\n".join(['<img height="1" src="x">', "", *one_cell_a_line(TRAINING, [GPT2])])
    assert grids(read_document(text.encode(), LAYOUTS)) == {"bow_training": [GPT2]}


def test_a_fragment_of_html_is_html() -> None:
    assert grids(read_document(table_html(TRAINING, [GPT2]).encode(), LAYOUTS)) == {"bow_training": [GPT2]}


def test_the_wrong_kind_is_refused_and_not_guessed() -> None:
    reading = read_document(PAGE.read_bytes(), LAYOUTS, "qwant-paper")
    assert reading.tables == ()
    assert {problem.reason for problem in reading.problems} == {"unknown-header"}
    with pytest.raises(UnrecognisedDocumentError):
        read_document(PAGE.read_bytes(), LAYOUTS, "page-history")
    assert (
        read_document((ROOT / "raw/qwant/resnext101-c2-2020-02-28.pdf").read_bytes(), LAYOUTS, "page-history").tables
        == ()
    )


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(UnrecognisedDocumentError, match=r"'no-such'.*graphcore-performance"):
        read_document(training_page(GPT2), LAYOUTS, "no-such")


def test_a_document_over_the_limit_is_not_read() -> None:
    data = training_page(GPT2)
    assert read_document(data, LAYOUTS, max_bytes=len(data)).tables
    with pytest.raises(DocumentTooLargeError, match=f"{len(data):,} bytes"):
        read_document(data, LAYOUTS, max_bytes=len(data) - 1)


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"Words.\n", b"\x00" * 50, b"<html></html>", b"a,b\n1,2\n", b"%PDF-1.4\n", b"PK\x03\x04" * 20]
)
@pytest.mark.parametrize("kind", [None, *KINDS])
def test_what_holds_no_table_is_one_clear_error(data: bytes, kind: str | None) -> None:
    with pytest.raises(DocumentError) as caught:
        read_document(data, LAYOUTS, kind)
    assert "\n" not in str(caught.value)


SEEDS = st.sampled_from([b"", b"<html>", b"<table><tr><td>", b"model,variant\n", "\n".join(TRAINING).encode(), b"|"])


@given(SEEDS, st.one_of(st.binary(max_size=120), st.text(max_size=80).map(str.encode)), st.sampled_from([None, *KINDS]))
def test_any_bytes_are_read_or_refused(seed: bytes, data: bytes, kind: str | None) -> None:
    for document in (seed + data, "\n".join(one_cell_a_line(TRAINING[:4], [UNET])).encode() + seed + data):
        try:
            reading = read_document(document, LAYOUTS, kind)
        except DocumentError:
            continue
        assert reading.tables or reading.problems
