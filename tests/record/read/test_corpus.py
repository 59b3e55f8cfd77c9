"""Broken documents that were found by `make fuzz`, replayed; and the fuzzer itself, which must
notice what is wrong.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from ipu_results.errors import DamagedDocumentError
from ipu_results.record.read.dispatch import read_document

from tests.record.read.fuzz import CORPUS, READERS, WORDS, generate_inputs, main, run_reader
from tests.record.read.fuzz_seeds import SEEDS, make_seeds

# pytest-xdist has threads
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
FILES = [path for reader in READERS for path in sorted((CORPUS / reader).glob("*"))]
MAX_CORPUS_BYTES = 20_000
EDITED = 60  # documents of a reader; `make fuzz` reads as many as its time allows


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_broken_document_gets_a_typed_error(path: Path) -> None:
    data = path.read_bytes()
    assert len(data) <= MAX_CORPUS_BYTES
    assert run_reader(path.parent.name, data) == ""


@pytest.mark.parametrize("reader", SEEDS)
def test_fuzzing_starts_from_sound_documents(reader: str) -> None:
    seeds = make_seeds(reader)
    assert [run_reader(reader, seed) for seed in seeds] == [""] * len(seeds)
    documents = [read_document(seed, WORDS.table_headers) for seed in seeds[:1]]
    assert all(document.tables and not document.problems for document in documents)


@pytest.mark.parametrize("reader", SEEDS)
def test_edited_document_is_read_or_refused(reader: str) -> None:
    edited = generate_inputs(reader, seed=1)
    assert {run_reader(reader, data) for data in islice(edited, EDITED)} == {""}


def fail_on_a_word(data: bytes) -> None:
    if b"Platform" in data:
        raise KeyError("Platform")
    raise DamagedDocumentError("is fine")


def test_failure_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(READERS, "page-text", fail_on_a_word)
    assert main(["--reader", "page-text", "--seconds", "0.1", "--out", str(tmp_path)]) == 1
    assert "KeyError: " in capsys.readouterr().out
    assert b"Platform" in (tmp_path / "page-text-0").read_bytes()
    assert main(["--reader", "mlperf-log", "--seconds", "0.1", "--out", str(tmp_path)]) == 0
