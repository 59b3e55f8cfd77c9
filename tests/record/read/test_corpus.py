"""Broken documents that were found by `make fuzz`, replayed; and the fuzzer itself, which must
notice what is wrong.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ipu_results.errors import DamagedDocumentError
from ipu_results.record.read import ParsedDocument
from ipu_results.record.read.records import read_mlperf_log

from tests.record.read import fuzz
from tests.record.read.fuzz import CORPUS, READERS, main, run_reader
from tests.record.read.fuzz_seeds import SEEDS, make_seeds

# pytest-xdist has threads
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
FILES = [
    (path.parent.name, path.name)
    for reader in READERS
    for path in sorted((CORPUS / reader).glob("*"))
]
MAX_CORPUS_BYTES = 20_000


@pytest.mark.parametrize(("reader", "name"), FILES)
def test_broken_document_gets_a_typed_error(reader: str, name: str) -> None:
    data = (CORPUS / reader / name).read_bytes()
    assert len(data) <= MAX_CORPUS_BYTES
    assert run_reader(reader, data) is None


@pytest.mark.parametrize("reader", SEEDS)
def test_fuzzing_starts_from_sound_documents(reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    documents: list[ParsedDocument] = []
    monkeypatch.setattr(fuzz, "check_document", lambda _, parsed: documents.append(parsed))
    monkeypatch.setattr(
        fuzz, "read_mlperf_log", lambda data: documents.append(read_mlperf_log(data))
    )
    assert all(run_reader(reader, seed) is None for seed in make_seeds(reader))
    assert any(document.tables and not document.problems for document in documents)


def fail_on_a_word(data: bytes) -> None:
    if b"Platform" in data:
        raise KeyError("Platform")
    raise DamagedDocumentError("is fine")


def test_failure_is_saved_as_a_smaller_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(READERS, "page-text", fail_on_a_word)
    assert main(["--reader", "page-text", "--seconds", "0.1", "--out", str(tmp_path)]) == 1
    assert "KeyError: 8 bytes in" in capsys.readouterr().out
    assert (tmp_path / "page-text-0").read_bytes() == b"Platform"
    assert main(["--reader", "mlperf-log", "--seconds", "0.1", "--out", str(tmp_path)]) == 0
