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
FILES = sorted(path for path in CORPUS.glob("*/*") if path.parent.name in READERS)
MAX_CORPUS_BYTES = 20_000
INPUTS = 60  # of a reader, first the sound ones; `make fuzz` reads as many as its time allows


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_broken_document_gets_a_typed_error(path: Path) -> None:
    data = path.read_bytes()
    assert len(data) <= MAX_CORPUS_BYTES
    assert run_reader(path.parent.name, data) == ""


@pytest.mark.parametrize("reader", SEEDS)
def test_fuzzing_starts_from_sound_documents(reader: str) -> None:
    document = read_document(make_seeds(reader)[0], WORDS.table_headers)
    assert document.tables
    assert not document.problems


@pytest.mark.parametrize("reader", SEEDS)
def test_sound_and_edited_documents_are_read_or_refused(reader: str) -> None:
    for data in islice(generate_inputs(reader, seed=1), INPUTS):
        assert run_reader(reader, data) == ""


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
