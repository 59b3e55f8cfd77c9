"""A build from the cache of read documents is the build without it, byte for byte."""

from __future__ import annotations

import pickle
import random
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from ipu_results import build
from ipu_results.build import IngestConfig, ingest
from ipu_results.errors import IpuResultsError
from ipu_results.record.store import cache as caches
from ipu_results.record.store.cache import Cache
from ipu_results.record.store.files import DATABASE

from tests.conftest import PAGE, PAPER, copy_documents, read_files, reseal

FILES = (
    PAGE,
    PAPER,
    "graphcore/performance-2022-03.csv",
    "graphcore/performance-2023-h1.csv",
    "graphcore/poprt-1.5.csv",
    "independent/caraml-2024.csv",
)
CHANGES = 20


@pytest.fixture(autouse=True)
def _cache_beside_raw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the cache that a user has, and not the one that all tests share."""
    monkeypatch.setattr(build, "open_cache", lambda raw: Cache(raw.parent / ".cache", "code"))


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return copy_documents(tmp_path / "raw", *FILES)


def build_files(raw: Path, name: str = "warehouse") -> dict[str, bytes] | str:
    """Build a warehouse; return the bytes of its files, but for that of DuckDB, or why it is
    refused.
    """
    try:
        ingest(IngestConfig(raw, raw.parent / name))
    except IpuResultsError as error:
        return str(error)
    files = read_files(raw.parent / name)
    del files[DATABASE]
    return files


def list_entries(raw: Path) -> list[Path]:
    return sorted((raw.parent / ".cache").iterdir())


def change_digit(path: Path, seed: int) -> None:
    """Change a digit of a file at random."""
    data = bytearray(path.read_bytes())
    digits = [at for at, byte in enumerate(data) if chr(byte).isdigit()]
    at = random.Random(seed).choice(digits)
    data[at] = ord("0") + (data[at] - ord("0") + 1) % 10
    path.write_bytes(data)


@pytest.mark.slow
def test_build_after_a_change_is_that_of_an_empty_cache(raw: Path) -> None:
    build_files(raw)
    entries = len(list_entries(raw))
    files = [file for file in FILES if (raw / file).suffix == ".csv"]
    for seed in range(CHANGES):
        file = files[seed % len(files)]
        change_digit(raw / file, seed)
        reseal(raw, file)
        cached = build_files(raw)
        assert len(list_entries(raw)) <= entries
        shutil.rmtree(raw.parent / ".cache")
        assert cached == build_files(raw, "cold"), (seed, file)


def test_what_is_cached_is_not_read_again(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = build_files(raw)
    read: list[str] = []
    load = build.load_document

    def load_document(document: build.Document, *others: object) -> object:
        read.append(document.file)
        return load(document, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(build, "load_document", load_document)
    assert build_files(raw) == before
    assert read == []
    sidecar = raw / f"{PAPER}.toml"
    sidecar.write_text(f"{sidecar.read_text(encoding='utf-8')}# a line\n", encoding="utf-8")
    build_files(raw)
    assert read == [PAPER]
    monkeypatch.setattr(build, "digest_code", lambda: "other code")
    build_files(raw)
    assert len(read) == 1 + len(FILES)


class Hostile:
    """Writes a file where it is unpickled."""

    def __init__(self, target: Path) -> None:
        self._target = target

    def __reduce__(self) -> tuple[object, ...]:
        return Path.write_text, (self._target, "opened")


@pytest.mark.parametrize("damage", ["another user's", "cut", "of another document"])
def test_entry_that_this_user_did_not_make_is_not_opened(
    raw: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = build_files(raw)
    first, second, *_ = list_entries(raw)
    opened = raw.parent / "opened"
    if damage == "cut":
        first.write_bytes(first.read_bytes()[:-1])
    elif damage == "of another document":
        first.write_bytes(second.read_bytes())
    else:
        with monkeypatch.context() as other:
            other.setattr(caches, "_load_secret", lambda: b"k" * caches.KEY_BYTES)
            Cache(raw.parent / ".cache", "code").put(first.name, Hostile(opened))
        assert pickle.loads(first.read_bytes()[caches.SIGNATURE_BYTES :]) == len("opened")
        opened.unlink()
    assert build_files(raw) == before
    assert not opened.exists()


def test_without_a_place_for_the_key_nothing_is_cached(
    raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (raw.parent / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(raw.parent / "file"))
    build_files(raw)
    assert not (raw.parent / ".cache").exists()


def test_key_is_not_sent_to_workers(tmp_path: Path) -> None:
    cache = Cache(tmp_path, "code")
    assert cache._secret is not None
    assert cache._secret not in pickle.dumps(cache)


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


def test_executor_of_processes_gives_the_same_build(
    raw: Path, processes: ProcessPoolExecutor
) -> None:
    ingest(IngestConfig(raw, raw.parent / "warehouse"), executor=processes)
    assert len(list_entries(raw)) >= len(FILES)
    files = read_files(raw.parent / "warehouse")
    del files[DATABASE]
    shutil.rmtree(raw.parent / ".cache")
    assert files == build_files(raw, "here")
