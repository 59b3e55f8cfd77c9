"""Generate the text files of a release from its tables, and identify the code that does.

The same code and the same tables give the same bytes, so `verify` compares the files of a release of its own code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ipu_results._util.files import hash_file
from ipu_results._util.resources import CHECKOUT, PACKAGE, SCHEMA
from ipu_results._util.text import format_json
from ipu_results._util.version import read_version
from ipu_results.release import files
from ipu_results.release.card import format_card, format_dictionary
from ipu_results.release.croissant import format_croissant
from ipu_results.release.database import ReleaseStats
from ipu_results.release.datapackage import format_package
from ipu_results.release.texts import REPOSITORY_FILES, format_environment, format_texts
from ipu_results.store.csv_file import count_formulas

CODE = ("_util", "check/rules", "release", "schema", "store")
SUFFIXES = frozenset({".py", ".md", ".json", ".html", ".toml", ".sql"})


def format_files(
    release: Mapping[str, Any], stats: ReleaseStats, tables: Mapping[str, pa.Table], folder: Path
) -> dict[str, str]:
    """Return each text file but the tables and checksums, by name; `release` is the content of release.json."""
    return {
        **format_texts(release["version"], release["published_on"]),
        **format_pages(release, stats, tables, folder),
        files.ENVIRONMENT: format_environment(),
        files.RELEASE: format_json(release) + "\n",
    }


def format_pages(
    release: Mapping[str, Any], stats: ReleaseStats, tables: Mapping[str, pa.Table], folder: Path
) -> dict[str, str]:
    """Return the files that depend on the tables and on the code alone, by name."""
    return {
        "README.md": format_card(release, stats, sum(map(count_formulas, tables.values()))),
        "DICTIONARY.md": format_dictionary(release, stats),
        files.PACKAGE: format_package(release, stats, folder),
        files.CROISSANT: format_croissant(release, folder),
    }


def describe_generator() -> dict[str, str | None]:
    """Return the version of this package, and digests of its code and of the repository's texts (null in a wheel)."""
    texts = [CHECKOUT / name for name in REPOSITORY_FILES]
    return {
        "version": read_version(),
        "code_sha256": _digest(_list_code()),
        "texts_sha256": _digest(zip(REPOSITORY_FILES, texts, strict=True)) if all(map(Path.is_file, texts)) else None,
    }


def _list_code() -> Iterator[tuple[str, Path]]:
    """Yield name and path of every file that decides what a release holds."""
    for folder, root in (*((PACKAGE / name, PACKAGE) for name in CODE), (SCHEMA, SCHEMA)):
        for path in sorted(folder.rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path.relative_to(root).as_posix(), path


def _digest(paths: Iterable[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, path in paths:
        digest.update(f"{name} {hash_file(path)}\n".encode())
    return digest.hexdigest()
