"""The readers of a release that no other test uses, and parts of releases that are verified once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ipu_results.record.store.files import DATABASE, get_csv_name, get_parquet_name
from ipu_results.release import publishing, verify
from ipu_results.release.files import CHECKSUMS, get_counts

from tests.conftest import install_aside

CHECKED: dict[object, Any] = {}  # what a check of these bytes gave


@pytest.fixture(scope="session")
def other_readers() -> Path:
    """Install the readers of a release that no other test uses: datasets, frictionless and
    mlcroissant.
    """
    return install_aside("readers")


@pytest.fixture
def without_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish without verifying, which takes half of the time; test_publish proves that `publish`
    does.
    """
    monkeypatch.setattr(publishing, "verify_release", lambda *_: [])


@pytest.fixture(scope="session", autouse=True)
def _check_once() -> Iterator[None]:
    """Check what depends on the bytes of some files alone once for the same bytes in a process.

    The checksums of a release are compared with its files before, each time: they name the bytes.
    """

    def remember(
        name: str, list_inputs: Callable[..., Iterable[object]]
    ) -> Callable[..., Iterator[Any]]:
        check = getattr(verify, name)

        def check_once(*args: Any, **options: Any) -> Iterator[Any]:
            key = (name, *list_inputs(*args, **options))
            problems, error = _get(key, lambda: _list_problems(check(*args, **options)))
            yield from problems
            if error:
                raise error

        return check_once

    def list_inputs_of_rows(contents: verify.ReleaseContents, name: str) -> Iterable[object]:
        names = (DATABASE, get_parquet_name(name), get_csv_name(name))
        lines = _list_digests(contents.folder, *names)
        release = contents.release
        return (
            *lines,
            release["build_id"],
            str(get_counts(release)[name]),
            name in release["tables"],
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            verify,
            "_check_contents",
            remember("_check_contents", lambda folder, _: _list_digests(folder)),
        )
        patch.setattr(verify, "_check_rows", remember("_check_rows", list_inputs_of_rows))
        yield


def _list_digests(folder: Path, *names: str) -> list[str]:
    """List the lines of SHA256SUMS for these files, or all."""
    lines = (folder / CHECKSUMS).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not names or line.split("  ")[1] in names]


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
