"""The readers of a release that no other test uses, and parts of releases that are verified once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ipu_results.release import publishing, texts, verify
from ipu_results.release.files import CHECKSUMS, ENVIRONMENT, RELEASE
from ipu_results.store import query
from ipu_results.store.files import DATABASE, get_parquet_name

from tests.conftest import install_aside

CHECKED: dict[object, Any] = {}  # what a check of these bytes gave


@pytest.fixture(scope="session")
def other_readers() -> Path:
    """Install the readers of a release that no other test uses: datasets, frictionless and mlcroissant."""
    return install_aside("readers")


@pytest.fixture
def without_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish without verifying, which takes half of the time; test_publish proves that `publish` does."""
    monkeypatch.setattr(publishing, "verify_release", lambda *_: [])


@pytest.fixture(scope="session", autouse=True)
def _check_once() -> Iterator[None]:
    """Check what depends on the bytes of some files alone once for the same bytes in a process.

    The checksums of a release are compared with its files before, each time: they name the bytes.
    """

    def remember(name: str, list_files: Callable[..., set[str]]) -> Callable[..., Iterator[Any]]:
        check = getattr(verify, name)

        def check_once(contents: Any, *args: Any, **options: Any) -> Iterator[Any]:
            lines = (getattr(contents, "folder", contents) / CHECKSUMS).read_text(encoding="utf-8").splitlines()
            read = list_files(**options)
            key = (name, *sorted(line for line in lines if not read or line.split("  ")[1] in read))
            problems, error = _get(key, lambda: _list_problems(check(contents, *args, **options)))
            yield from problems
            if error:
                raise error

        return check_once

    views = {get_parquet_name(view.name) for view in query.VIEWS} | {get_parquet_name("columns"), ENVIRONMENT}
    reads: dict[str, Callable[..., set[str]]] = {
        "_check_contents": set,
        "_check_rows": lambda name: {RELEASE, DATABASE, get_parquet_name(name), f"{name}.csv"},
        "_check_view_files": lambda: {RELEASE, DATABASE, *views},
    }
    define = texts._hash_own_definitions
    with pytest.MonkeyPatch.context() as patch:
        for name, list_files in reads.items():
            patch.setattr(verify, name, remember(name, list_files))
        patch.setattr(texts, "_hash_own_definitions", lambda: _get(query.sql_view, define))
        yield


def _list_problems(checked: Iterator[Any]) -> tuple[list[Any], Exception | None]:
    """List problems up to the error that ends a check."""
    problems: list[Any] = []
    try:
        problems.extend(checked)
    except Exception as error:
        return problems, error
    return problems, None


def _get(key: object, compute: Callable[[], Any]) -> Any:
    if key not in CHECKED:
        CHECKED[key] = compute()
    return CHECKED[key]
