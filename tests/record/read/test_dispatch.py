"""The reader of a document is chosen by its bytes, not by its name or publisher."""

from __future__ import annotations

import pytest
from ipu_results.errors import DocumentError, UnrecognisedDocumentError
from ipu_results.record.read.dispatch import read_document
from ipu_results.schema.vocabulary import ALIASES, KINDS

from tests.conftest import run_cli
from tests.record.read.reading_support import (
    GPT2,
    PAGE,
    ROOT,
    TRAINING,
    WORDS,
    assert_read,
    one_cell_a_line,
    table_html,
    training_page,
)

HEADERS = WORDS.table_headers
PDF = "raw/qwant/resnext101-c2-2020-02-28.pdf"
COMMITTED = {
    "raw/graphcore/performance-2023-07-04.html": "performance-page",
    "raw/graphcore/performance-2022-03.csv": "performance-csv",
    "raw/nvidia/a100-comparators.csv": "comparators",
    "raw/graphcore/public-configurations.csv": "configurations",
    PDF: "inference-paper",
}


@pytest.mark.parametrize("name", COMMITTED)
def test_kind_of_each_committed_document_is_guessed(name: str) -> None:
    data = (ROOT / name).read_bytes()
    guessed = read_document(data, HEADERS)
    assert guessed.tables
    assert guessed == read_document(data, HEADERS, COMMITTED[name])


TEXT = "\n".join(one_cell_a_line(TRAINING, [GPT2]))


@pytest.mark.parametrize("kind", [None, "performance-page"])
@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        f'<img height="1" src="x">\n\n{TEXT}'.encode(),  # a tracking image does not make it HTML
        *(training_page(GPT2).decode().encode(name) for name in ("utf-8-sig", "utf-16")),
        table_html(TRAINING, [GPT2]).encode(),
    ],
)
def test_html_in_any_encoding_and_text_are_distinguished(data: bytes, kind: str | None) -> None:
    assert_read(read_document(data, HEADERS, kind), bow_training=[GPT2])


def test_wrong_kind_is_refused_and_not_corrected() -> None:
    page = PAGE.read_bytes()
    as_paper = read_document(page, HEADERS, "inference-paper")
    assert as_paper.tables == ()
    assert {problem.reason for problem in as_paper.problems} == {"unknown-header"}
    with pytest.raises(UnrecognisedDocumentError):
        read_document(page, HEADERS, "performance-csv")
    pdf = (ROOT / PDF).read_bytes()
    assert read_document(pdf, HEADERS, "performance-csv").tables == ()


@pytest.mark.parametrize(("alias", "kind"), ALIASES.items())
def test_former_name_of_a_kind_is_accepted(alias: str, kind: str) -> None:
    [name] = [name for name, own in COMMITTED.items() if own == kind]
    data = (ROOT / name).read_bytes()
    assert read_document(data, HEADERS, alias) == read_document(data, HEADERS, kind)
    assert run_cli("extract", ROOT / name, "--kind", alias).returncode == 0


def test_unknown_kind_is_an_error_that_lists_the_kinds() -> None:
    with pytest.raises(UnrecognisedDocumentError, match=r"'no-such'.*performance-page"):
        read_document(training_page(GPT2), HEADERS, "no-such")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"Words.\n",
        b"\x00" * 50,
        b"<html></html>",
        b"a,b\n1,2\n",
        b"%PDF-1.4\n",
        b"PK\x03\x04" * 20,
    ],
)
def test_document_without_a_table_is_one_clear_error_for_every_kind(data: bytes) -> None:
    for kind in (None, *KINDS):
        with pytest.raises(DocumentError) as caught:
            read_document(data, HEADERS, kind)
        assert "\n" not in str(caught.value)
