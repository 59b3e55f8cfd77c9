"""A table on both sides, and the SQL that compares them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from ipu_results.release.database import name_of
from ipu_results.release.difference import CellChange, Counted, Row
from ipu_results.release.side import SideTable

THERE = "there"


@dataclass(frozen=True, slots=True)
class Pair:
    """`key` names columns of both sides that pair their rows."""

    old: SideTable
    new: SideTable
    key: tuple[str, ...]

    @property
    def common(self) -> list[str]:
        return [name for name in self.old.columns if name in self.new.columns]

    def counts(self, connection: duckdb.DuckDBPyConnection) -> tuple[int, int, int, list[str]]:
        """Rows that are new, gone and on both sides, and the columns in which some of the last differ."""
        there, values = self._unused(THERE), [name for name in self.common if name not in self.key]
        both = f"old.{there} AND new.{there}"
        wanted = [f"old.{there} IS NULL", f"new.{there} IS NULL", both]
        wanted += [f"{both} AND {self._differs(name)}" for name in values]
        one, other = (f"(SELECT *, true AS {there} FROM {table.sql})" for table in (self.old, self.new))
        tables = f"{one} old FULL OUTER JOIN {other} new ON {self._on}"
        added, removed, paired, *cells = _one_row(connection, map(_count, wanted), tables)
        return added, removed, paired, [name for name, count in zip(values, cells, strict=True) if count]

    def cells(self, connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> tuple[int, dict[str, Counted]]:
        """Rows that differ in one of these columns, and per column the cells filled, emptied and changed."""
        wanted = ["true"]
        for name in names:
            old, new = f"old.{name_of(name)} IS NULL", f"new.{name_of(name)} IS NULL"
            wanted += [f"{old} AND NOT {new}", f"{new} AND NOT {old}"]
            wanted.append(f"NOT ({old} OR {new}) AND {self._differs(name)}")
        rows, *counts = _one_row(connection, map(_count, wanted), self._where(names))
        return rows, {name: Counted(*counts[3 * at : 3 * at + 3]) for at, name in enumerate(names)}

    def changed(self, connection: duckdb.DuckDBPyConnection, names: Sequence[str], limit: int) -> list[CellChange]:
        """The first cells that differ, in the order of the keys."""
        told = [f"new.{name_of(name)}" for name in self.key]
        for name in names:
            told += [self._differs(name), f"old.{name_of(name)}", f"new.{name_of(name)}"]
        query = f"SELECT {', '.join(told)} FROM {self._where(names)} ORDER BY {self._order('new')} LIMIT {limit}"
        found = []
        for row in connection.execute(query).fetchall():
            key, rest = dict(zip(self.key, row, strict=False)), row[len(self.key) :]
            triples = zip(names, rest[::3], rest[1::3], rest[2::3], strict=True)
            found += [CellChange(key, name, old, new) for name, differs, old, new in triples if differs]
        return found[:limit]

    def alone(
        self, connection: duckdb.DuckDBPyConnection, side: str, columns: Sequence[str], limit: int | None = None
    ) -> list[Row]:
        """The first rows that one side, `old` or `new`, alone has, in the order of the keys."""
        told = ", ".join(f"{side}.{name_of(name)}" for name in columns)
        sides = [f"{self.old.sql} old", f"{self.new.sql} new"]
        one, other = sides if side == "old" else reversed(sides)
        query = f"SELECT {told} FROM {one} ANTI JOIN {other} ON {self._on} ORDER BY {self._order(side)}"
        found = connection.execute(query if limit is None else f"{query} LIMIT {limit}").fetchall()
        return [dict(zip(columns, row, strict=True)) for row in found]

    def _unused(self, name: str) -> str:
        """A name that no column has."""
        taken = {column.lower() for column in (*self.old.columns, *self.new.columns)}
        while name in taken:
            name += "_"
        return name_of(name)

    @property
    def _on(self) -> str:
        return " AND ".join(self._sides(name, "IS NOT DISTINCT FROM") for name in self.key)

    def _order(self, side: str) -> str:
        return ", ".join(f"{side}.{name_of(name)}" for name in self.key)

    def _where(self, names: Sequence[str]) -> str:
        anything = " OR ".join(map(self._differs, names))
        return f"{self.old.sql} old JOIN {self.new.sql} new ON {self._on} WHERE {anything}"

    def _differs(self, name: str) -> str:
        return self._sides(name, "IS DISTINCT FROM")

    def _sides(self, name: str, operator: str) -> str:
        """Both values in one type: as they are, or as text where the types have nothing in common."""
        old, new = self.old.columns[name], self.new.columns[name]
        told = [f"{side}.{name_of(name)}" for side in ("old", "new")]
        if old.type != new.type and not (old.is_number and new.is_number):
            told = [f"CAST({one} AS VARCHAR)" for one in told]
        return f"({told[0]} {operator} {told[1]})"


def _one_row(connection: duckdb.DuckDBPyConnection, told: map[str], tables: str) -> tuple[int, ...]:
    (row,) = connection.execute(f"SELECT {', '.join(told)} FROM {tables}").fetchall()
    return tuple(row)


def _count(wanted: str) -> str:
    return f"count(*) FILTER (WHERE {wanted})"
