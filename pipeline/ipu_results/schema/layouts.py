"""The table headers that the readers know: which names make up a table, and how a printed header is matched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

UNIT = re.compile(r"\s*[(\[]\s*([^()\[\]]*?)\s*[)\]]\s*$")
MIN_NAMES_OF_A_BROKEN_HEADER = 3


@dataclass(frozen=True, slots=True)
class TableHeader:
    """The header of one published table: printed names without units, each with the field it fills.

    `platforms` is a pattern of the machines that the table lists; it tells two tables with one header apart.
    `strict` binds its rows to the vocabulary. `result_table` is the table name of its results, where several
    printed tables make one result; `joins` where several rows of one configuration do. `derived` says that we computed
    its figures; `identity` names the fields that tell its rows apart, all but figures where it is None.
    """

    reader: str
    table: str
    fields: tuple[tuple[str, str], ...]
    task: str
    platforms: str | None = None
    benchmark: str | None = None
    strict: bool = False
    result_table: str | None = None
    joins: bool = False
    derived: bool = False
    identity: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.fields)

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(map(normalise_header, self.names))

    def lists(self, platform: str) -> bool:
        return self.platforms is not None and re.search(self.platforms, platform, re.I) is not None

    def field_of(self, header: str) -> str:
        return {normalise_header(name): field for name, field in self.fields}[normalise_header(header)]


def normalise_header(header: str) -> str:
    """Return a header without its unit, in the form in which headers are compared."""
    return re.sub(r"[\s\-_]+", " ", UNIT.sub("", header)).strip().casefold()


def parse_unit(header: str) -> str | None:
    found = UNIT.search(header)
    return found.group(1) if found else None


def find_headers(header: Sequence[str], layouts: Iterable[TableHeader]) -> list[TableHeader]:
    """Return the known headers with exactly the names of `header`, in any order."""
    names = [normalise_header(cell) for cell in header]
    if len(set(names)) != len(names):
        return []
    return [layout for layout in layouts if layout.keys == frozenset(names)]


def explain_mismatch(header: Sequence[str], layouts: Iterable[TableHeader]) -> str | None:
    """Describe what is wrong with a header that resembles a known one; None if it resembles none."""
    names = [normalise_header(cell) for cell in header if cell]
    closest = max(layouts, key=lambda layout: len(layout.keys & set(names)), default=None)
    if closest is None or len(closest.keys & set(names)) < min(MIN_NAMES_OF_A_BROKEN_HEADER, len(closest.keys)):
        return None
    missing = [name for name in closest.names if normalise_header(name) not in names]
    unknown = [cell for cell in header if cell and normalise_header(cell) not in closest.keys]
    repeated = sorted({cell for cell in header if cell and names.count(normalise_header(cell)) > 1})
    parts = [
        f"{what} {', '.join(map(repr, words))}"
        for what, words in (("lacks", missing), ("has unknown", unknown), ("repeats", repeated))
        if words
    ]
    if "" in header:
        parts.append("has a column without a name")
    return f"the header {' and '.join(parts)}" if parts else None
