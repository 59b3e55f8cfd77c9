"""What can differ between two sides, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ipu_results.release.side import Side, SideTable

Row = dict[str, Any]


class Counted(NamedTuple):
    added: int = 0
    removed: int = 0
    changed: int = 0


class ColumnChange(NamedTuple):
    """`what` is type, unit or description."""

    column: str
    what: str
    old: str | None
    new: str | None


class CellChange(NamedTuple):
    key: Row
    column: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class TableDifference:
    """`cells` counts, by column, cells of rows that both sides have: filled, emptied and changed ones."""

    old: SideTable
    new: SideTable
    rows: Counted = field(default_factory=Counted)
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()
    columns_changed: tuple[ColumnChange, ...] = ()
    cells: Mapping[str, Counted] = field(default_factory=dict)
    added_rows: Sequence[Row] = ()
    removed_rows: Sequence[Row] = ()
    changed_cells: Sequence[CellChange] = ()

    @property
    def name(self) -> str:
        return self.new.name

    @property
    def is_empty(self) -> bool:
        return not (any(self.rows) or self.columns_added or self.columns_removed or self.columns_changed)

    @property
    def all_cells(self) -> Counted:
        return _total(self.cells.values())

    @property
    def figures(self) -> Counted:
        """The cells that hold numbers."""
        return _total(counted for name, counted in self.cells.items() if self.new.columns[name].is_number)


@dataclass(frozen=True, slots=True)
class Difference:
    """`tables` are those on both sides that differ, `same` counts those that do not.

    `views` are the views and macros on both sides whose definition differs.
    """

    old: Side
    new: Side
    added: tuple[SideTable, ...]
    removed: tuple[SideTable, ...]
    tables: tuple[TableDifference, ...]
    same: int
    views: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.removed or self.tables or self.views)


def _total(counts: Iterable[Counted]) -> Counted:
    return Counted(*map(sum, zip(*counts, strict=True))) if (counts := list(counts)) else Counted()
