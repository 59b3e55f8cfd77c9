"""Bundles for tests: good ones, and changes that make one hostile."""

from __future__ import annotations

import io
import stat
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tomli_w
from ipu_results.doors.submission.bundle import (
    DESCRIPTION,
    ENVIRONMENT,
    RESULTS,
    compute_id,
    format_rows,
    make_slug,
)
from ipu_results.doors.submission.check import CheckedBundle

from tests.cases import read_cases

M2000 = {
    "model": "ResNet-50 v1.5",
    "dataset": "synthetic",
    "task": "inference",
    "platform": "IPU-M2000",
    "chip": "GC200",
    "chip_count": "4",
    "framework": "PyTorch",
    "sdk_version": "3.3",
    "precision": "16.16",
    "batch_size": "16",
}
Check = Callable[[Path], CheckedBundle]
ADA = {"name": "Ada Example", "orcid": "0000-0002-1825-0097"}
BUNDLES = read_cases(__file__, "bundles.toml")


def figure(metric: str, value: str, unit: str = "", **changes: str) -> dict[str, str]:
    """Return a row of the template, of an IPU-M2000 but for `changes`."""
    stated = {"metric": metric, "unit": unit, "value": value, "place": f"log.txt, {metric}"}
    return M2000 | stated | changes


def throughput(value: str, **changes: str) -> dict[str, str]:
    return figure("throughput", value, "images/s", **changes)


def latency(value: str, **changes: str) -> dict[str, str]:
    return figure("latency", value, "ms", **changes)


ROWS = (throughput("14377.25"), latency("2.7113"))


def make_files(
    rows: Iterable[Mapping[str, str]] = (),
    environment: str | None = None,
    description: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, bytes]:
    """Return the files of a bundle with these rows, each as `figure` takes it, or with two rows;
    its description is that of a good one but for `description`.
    """
    stated: dict[str, Any] = {
        "origin": "measured",
        "submitted_on": date(2026, 11, 22),
        "licence": "CC-BY-4.0",
        "machine": "IPU-M2000",
        "how": "Mean of 1000 batches after 100.\n- machine idle",
        "who": ADA,
        **description,
    }
    figures = [figure(**row) for row in rows] or ROWS
    files = {RESULTS: format_rows(figures), DESCRIPTION: tomli_w.dumps(stated).encode()}
    if environment is not None:
        files[ENVIRONMENT] = environment.encode()
    return renew(files)


def renew(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files with the id that belongs to them."""
    description = tomllib.loads(files[DESCRIPTION].decode())
    description.pop("id", None)
    identity = compute_id(description, files[RESULTS], files.get(ENVIRONMENT))
    return {**files, DESCRIPTION: tomli_w.dumps({"id": identity, **description}).encode()}


def get_place(files: Mapping[str, bytes]) -> str:
    description = tomllib.loads(files[DESCRIPTION].decode())
    return f"{make_slug(description['who']['name'])}/{description['id']}"


def put_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def put_zip(
    path: Path, files: Mapping[str, bytes], *more: tuple[zipfile.ZipInfo | str, bytes]
) -> Path:
    """Write an archive of the files, and of `more` entries under their own names."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(f"bundle/{name}", data)
        for entry, data in more:
            archive.writestr(entry, data)
    return path


def make_link(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.create_system = 3  # Unix, whose modes are in the upper half
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


def zip_bytes(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()
