"""Table headers that the readers know: which names make up a table, and how a printed header is matched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

UNIT = re.compile(r"\s*[(\[]\s*([^()\[\]]*?)\s*[)\]]\s*$")
SLASH = re.compile(r"\s*/\s*")
MIN_NAMES_OF_A_BROKEN_HEADER = 3


@dataclass(frozen=True, slots=True)
class TableHeader:
    """The header of one published table."""

    reader: str
    """Kind of the documents that have it."""
    table: str
    fields: tuple[tuple[str, str], ...]
    """Printed names without units, each with the field that it fills."""
    task: str
    platforms: str | None = None
    """Pattern of the machines in the table: it decides between two tables with the same header."""
    benchmark: str | None = None
    strict: bool = False
    """Whether its rows must use the words of the vocabulary."""
    result_table: str | None = None
    """Table name of its results, if several printed tables make one result."""
    joins: bool = False
    """Whether several rows of one configuration make one result."""
    derived: bool = False
    """Whether we computed its figures."""
    identity: tuple[str, ...] | None = None
    """Fields that identify a row; all but figures if None."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.fields)

    @property
    def keys(self) -> frozenset[str]:
        """Names in the form in which they are compared."""
        return frozenset(map(normalise_header, self.names))

    def lists(self, platform: str) -> bool:
        """Check whether a machine belongs in this table."""
        return self.platforms is not None and re.search(self.platforms, platform, re.I) is not None

    def field_of(self, header: str) -> str:
        """Return the field that a printed name fills."""
        return _map_fields(self.fields)[normalise_header(header)]


@lru_cache(maxsize=4096)
def _map_fields(fields: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {normalise_header(name): field for name, field in fields}


@lru_cache(maxsize=4096)
def normalise_header(header: str) -> str:
    """Return a header name without its unit, in the form in which names are compared."""
    return re.sub(r"[\s\-_]+", " ", UNIT.sub("", header)).strip().casefold()


def strip_unit(header: str) -> str:
    """Return a header name as printed, without its unit."""
    return UNIT.sub("", header).strip()


def parse_unit(header: str) -> str | None:
    """Return the unit in the last brackets of a header, on one line: `(items/ sec)` is wrapped."""
    match = UNIT.search(header)
    return SLASH.sub("/", match[1]) if match else None


def find_headers(columns: Sequence[str], headers: Iterable[TableHeader]) -> list[TableHeader]:
    """Return the headers whose names are exactly those of the printed `columns`, in any order."""
    names = [normalise_header(cell) for cell in columns]
    if len(set(names)) != len(names):
        return []
    return [header for header in headers if header.keys == frozenset(names)]


def explain_mismatch(columns: Sequence[str], headers: Iterable[TableHeader]) -> str | None:
    """Explain what is wrong with printed columns that are nearly one of `headers`; None if they resemble none."""
    names = [normalise_header(cell) for cell in columns if cell]
    closest = max(headers, key=lambda header: len(header.keys & set(names)), default=None)
    if closest is None or len(closest.keys & set(names)) < min(MIN_NAMES_OF_A_BROKEN_HEADER, len(closest.keys)):
        return None
    missing = [name for name in closest.names if normalise_header(name) not in names]
    unknown = [cell for cell in columns if cell and normalise_header(cell) not in closest.keys]
    repeated = sorted({cell for cell in columns if cell and names.count(normalise_header(cell)) > 1})
    parts = [
        f"{what} {', '.join(map(repr, words))}"
        for what, words in (("lacks", missing), ("has unknown", unknown), ("repeats", repeated))
        if words
    ]
    if "" in columns:
        parts.append("has a column without a name")
    return f"the header {' and '.join(parts)}" if parts else None
