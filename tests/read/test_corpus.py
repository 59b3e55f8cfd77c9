"""Broken documents that were found by `make fuzz`, replayed; and the fuzzer itself, which must
notice what is wrong.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

import pytest
from ipu_results.errors import DamagedDocumentError
from ipu_results.read import ParsedDocument
from ipu_results.read.records import read_mlperf_log

from tests.read import fuzz
from tests.read.fuzz import CORPUS, READERS, generate_inputs, main, mutate, run_reader
from tests.read.fuzz_seeds import SEEDS, TOKENS, make_seeds

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*fork:DeprecationWarning"
)  # pytest-xdist has threads
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


@pytest.mark.parametrize("reader", sorted(READERS))
def test_edits_change_a_document_and_are_the_same_in_every_run(reader: str) -> None:
    seeds = make_seeds(reader)[:2]
    edited = [mutate(seeds[0], seeds, TOKENS[reader], Random(number)) for number in range(5)]
    assert edited == [
        mutate(seeds[0], seeds, TOKENS[reader], Random(number)) for number in range(5)
    ]
    assert set(edited) != {seeds[0]}
    assert next(generate_inputs(reader, 0)) == seeds[0]


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


def test_message_of_several_lines_and_memory_of_an_input_are_failures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: bytes) -> None:
        raise DamagedDocumentError("two\nlines")

    monkeypatch.setattr(fuzz, "MAX_GROWTH_MB", -1.0)
    assert (run_reader("csv", b"") or "").startswith("memory grew by")
    monkeypatch.setitem(READERS, "csv", fail)
    assert run_reader("csv", b"") == "a message of several lines"


@pytest.mark.slow
def test_hanging_and_dying_readers_are_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fuzz, "HANG_S", 0.5)
    monkeypatch.setitem(READERS, "csv", lambda _: time.sleep(60))
    monkeypatch.setitem(READERS, "html", lambda _: os._exit(9))
    for reader, failure in (("csv", "no answer in 0 s"), ("html", "the process died")):
        assert main(["--reader", reader, "--seconds", "0.1", "--out", str(tmp_path)]) == 1
        assert failure in capsys.readouterr().out
