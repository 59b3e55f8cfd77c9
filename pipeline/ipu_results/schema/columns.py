"""The definition of a column and of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "integer", "double", "date", "timestamp", "boolean"]

FIGURE_LIMIT = 1e15


@dataclass(frozen=True, slots=True)
class Column:
    """One column: what it holds and which values it takes.

    `low` and `high` bound a number inclusively, `above` does not include itself; `choices` and `pattern` bind a text;
    `references` is `table.column` of the row that the value must exist in.
    """

    name: str
    kind: Kind
    description: str
    unit: str | None = None
    required: bool = False
    low: float | None = None
    high: float | None = None
    above: float | None = None
    choices: tuple[str, ...] | None = None
    pattern: str | None = None
    references: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """One published table; `key` names the columns that no two rows share."""

    name: str
    description: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


def text(name: str, description: str, **rules: object) -> Column:
    return Column(name, "text", description, **rules)  # type: ignore[arg-type]


def integer(name: str, description: str, **rules: object) -> Column:
    return Column(name, "integer", description, **{"low": 0, "high": 2**53, **rules})  # type: ignore[arg-type]


def double(name: str, description: str, **rules: object) -> Column:
    return Column(name, "double", description, **{"low": 0, "high": FIGURE_LIMIT, **rules})  # type: ignore[arg-type]


def boolean(name: str, description: str, **rules: object) -> Column:
    return Column(name, "boolean", description, **rules)  # type: ignore[arg-type]


def timestamp(name: str, description: str, **rules: object) -> Column:
    return Column(name, "timestamp", description, **rules)  # type: ignore[arg-type]


def date(name: str, description: str, **rules: object) -> Column:
    return Column(name, "date", description, **rules)  # type: ignore[arg-type]
