"""Names of the files of a release, and of the tables that describe the others."""

from __future__ import annotations

from collections.abc import Iterable

FORMAT = 1
RELEASE = "release.json"
PACKAGE = "datapackage.json"
CROISSANT = "croissant.json"
CITATION = "CITATION.cff"
SUFFIXES = (".parquet", ".csv")
DERIVED = "build"
DICTIONARY = "columns"


def table_files(tables: Iterable[str]) -> set[str]:
    """The files that hold tables."""
    return {f"{name}{suffix}" for name in tables for suffix in SUFFIXES}
