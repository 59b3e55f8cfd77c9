"""A build from the cache of read documents is the build without it, byte for byte."""

from __future__ import annotations

import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from ipu_results import build
from ipu_results.build import IngestConfig, ingest
from ipu_results.record.sources.catalogue import load_catalogue
from ipu_results.record.store import cache as caches
from ipu_results.record.store.cache import Cache
from ipu_results.record.store.files import DATABASE

from tests.conftest import PAGE, PAPER, copy_documents, edit, read_files

FILES = (
    PAGE,
    PAPER,
    "graphcore/performance-2022-03.csv",
    "graphcore/performance-2023-h1.csv",
    "graphcore/poprt-1.5.csv",
    "independent/caraml-2024.csv",
)
CHANGES = (
    ("graphcore/performance-2022-03.csv", ",42029", ",42030"),
    ("graphcore/performance-2023-h1.csv", ",6044", ",6045"),
    ("graphcore/poprt-1.5.csv", ",2814.4", ",2815.4"),
    ("independent/caraml-2024.csv", ",64.99", ",64.98"),
)


@pytest.fixture(autouse=True)
def _cache_beside_raw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the cache that a user has, and not the one that all tests share."""
    monkeypatch.setattr(build, "open_cache", lambda raw: Cache(raw.parent / ".cache", "code"))


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return copy_documents(tmp_path / "raw", *FILES)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / ".cache", "code")


def build_files(raw: Path, name: str = "warehouse") -> dict[str, bytes]:
    """Build a warehouse; return the bytes of its files, but for that of DuckDB."""
    ingest(IngestConfig(raw, raw.parent / name))
    files = read_files(raw.parent / name)
    del files[DATABASE]
    return files


@pytest.mark.slow
def test_build_after_a_change_is_that_of_an_empty_cache(raw: Path) -> None:
    """Of each document one figure changes; what was cached of it and of the others is used on."""
    before = build_files(raw)
    entries = len(list((raw.parent / ".cache").iterdir()))
    for file, old, new in CHANGES:
        edit(raw, file, old, new)
        cached = build_files(raw)
        assert cached != before
        before = cached
        assert len(list((raw.parent / ".cache").iterdir())) == entries
    shutil.rmtree(raw.parent / ".cache")
    assert build_files(raw, "cold") == before


def test_what_is_cached_is_not_read_again(
    raw: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    load = build.load_document

    def load_document(document: build.Document, *others: object) -> object:
        read.append(document.file)
        return load(document, *others)  # type: ignore[arg-type]

    def read_again() -> list[str]:
        read.clear()
        for document in load_catalogue(raw):
            build.load_cached(document, cache)
        return read

    monkeypatch.setattr(build, "load_document", load_document)
    assert sorted(read_again()) == sorted(FILES)
    assert read_again() == []
    sidecar = raw / f"{PAPER}.toml"
    sidecar.write_text(f"{sidecar.read_text(encoding='utf-8')}# a line\n", encoding="utf-8")
    assert read_again() == [PAPER]
    monkeypatch.setattr(build, "digest_code", lambda: "other code")
    assert sorted(read_again()) == sorted(FILES)


class Hostile:
    """Writes a file where it is unpickled."""

    def __init__(self, target: Path) -> None:
        self._target = target

    def __reduce__(self) -> tuple[object, ...]:
        return Path.write_text, (self._target, "opened")


@pytest.mark.parametrize("damage", ["cut", "of another document"])
def test_damaged_entry_is_not_opened(tmp_path: Path, cache: Cache, damage: str) -> None:
    cache.put("first", "value")
    cache.put("second", "other value")
    assert cache.get("first") == "value"
    first = tmp_path / ".cache" / "first"
    if damage == "cut":
        first.write_bytes(first.read_bytes()[:-1])
    else:
        first.write_bytes(first.with_name("second").read_bytes())
    assert cache.get("first") is None


def test_entry_of_another_user_is_not_opened(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = tmp_path / "opened"
    with monkeypatch.context() as other:
        other.setattr(caches, "_load_secret", lambda: b"k" * caches.KEY_BYTES)
        Cache(tmp_path / ".cache", "code").put("first", Hostile(opened))
    entry = (tmp_path / ".cache" / "first").read_bytes()
    assert pickle.loads(entry[caches.SIGNATURE_BYTES :]) == len("opened")
    opened.unlink()
    assert cache.get("first") is None
    assert not opened.exists()


def test_without_a_place_for_the_key_nothing_is_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    cache = Cache(tmp_path / ".cache", "code")
    cache.put("key", "value")
    assert cache.get("key") is None
    assert not (tmp_path / ".cache").exists()


def test_key_is_not_sent_to_workers(cache: Cache) -> None:
    assert cache._secret is not None
    assert cache._secret not in pickle.dumps(cache)


@pytest.mark.slow
def test_executor_of_processes_gives_the_same_build(raw: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        ingest(IngestConfig(raw, raw.parent / "there"), executor=processes)
    there = read_files(raw.parent / "there")
    del there[DATABASE]
    shutil.rmtree(raw.parent / ".cache")  # which the workers filled
    assert there == build_files(raw)
