"""The names of the warehouse's files, and of the folder in which a build is staged."""

from __future__ import annotations

import os
from pathlib import Path

DATABASE = "ipu_results.duckdb"
BUILD_ID = "build_id"  # key in the metadata of each Parquet file
LOCK = ".lock"
STAGING = ".staging"
COMMIT = "commit.json"


class DamagedCommitWarning(UserWarning):
    """The commit file of an interrupted build cannot be read, so the build was discarded."""


def get_parquet_name(table: str) -> str:
    """Return the name of the Parquet file of a table or view."""
    return f"{table}.parquet"


def get_csv_name(view: str) -> str:
    """Return the name of the CSV file of a view."""
    return f"{view}.csv"


def is_pending(target: Path) -> bool:
    """Return whether a process died here between its commit and its last rename."""
    return os.path.lexists(target / STAGING / COMMIT)
