"""Which version of the dataset a citation names: a release with its digest, else the build."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ipu_results.errors import WarehouseError

REPOSITORY = "https://github.com/ipu-results/ipu-results"
NAME = "ipu-results: the open, verified record of Graphcore IPU performance"
RELEASE, CHECKSUMS = "release.json", "SHA256SUMS"  # as in release/files.py, which needs an extra


@dataclass(frozen=True, slots=True)
class DatasetVersion:
    """The release that was read, or the build where it is not a release. `checksum` is the sha256 of SHA256SUMS.

    `newest_source` is the day on which the newest source of an unreleased build was read.
    """

    build_id: str
    version: str | None = None
    published_on: str | None = None
    checksum: str | None = None
    newest_source: str | None = None

    @property
    def year(self) -> str:
        """Return the year of the release, else that in which the newest source of the build was read."""
        return (self.published_on or self.newest_source or "")[:4]

    def __str__(self) -> str:
        if self.version is None:
            return f"unreleased, build {self.build_id}"
        return f"version {self.version}, sha256 of SHA256SUMS {self.checksum}, build {self.build_id}"


def read_dataset_version(warehouse: Path, build_id: str) -> DatasetVersion:
    """Return the version of a release folder, the build alone of any other folder.

    Raises WarehouseError for a damaged release.
    """
    path = warehouse / RELEASE
    if not path.exists():
        return DatasetVersion(build_id, newest_source=_find_newest_source(warehouse))
    try:
        release = json.loads(path.read_text(encoding="utf-8"))
        checksum = hashlib.sha256((warehouse / CHECKSUMS).read_bytes()).hexdigest()
        stated = DatasetVersion(release["build_id"], release["version"], release["published_on"], checksum)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WarehouseError(
            "is not a release that can be read; check it with: ipu-results verify", place=str(path)
        ) from error
    if stated.build_id != build_id:
        raise WarehouseError(f"names another build than the tables: {stated.build_id[:12]}", place=str(path))
    return stated


def _find_newest_source(warehouse: Path) -> str | None:
    with suppress(OSError, pa.ArrowException):
        newest = pc.max(pq.read_table(warehouse / "documents.parquet", columns=["retrieved_on"])["retrieved_on"])
        return None if newest.as_py() is None else str(newest.as_py())
    return None
