"""The definition of a view and of a table macro: its columns are those of tables, or described on their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ipu_results._util.resources import SCHEMA
from ipu_results.schema.columns import Column, double, integer, text
from ipu_results.schema.generate import described_rows, quoted
from ipu_results.schema.tables import TABLES

NETWORK = text(
    "network", "The network that ran: rule R20's where the printed model names several, else the canonical model."
)
ERRORS = integer("errors", "Error flags on the result.")
WARNINGS = integer("warnings", "Warning flags on the result.")
IN_FLIGHT = double(
    "batches_in_flight",
    "Throughput times latency over the batch size (Little's law); null where the latency is that of an item.",
    above=0,
)


@dataclass(frozen=True, slots=True)
class View:
    """`columns` are `table.column` of the source, or a column described on its own.

    With `parameters` it is a table macro, called as `name(...)`; each parameter has a default, in SQL.
    """

    name: str
    description: str
    columns: tuple[str | Column, ...]
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def sql(self) -> str:
        return (SCHEMA / "views" / f"{self.name}.sql").read_text(encoding="utf-8")

    @property
    def source(self) -> str:
        """What stands after FROM."""
        return f"{self.name}()" if self.parameters else self.name

    @property
    def described(self) -> tuple[Column, ...]:
        return tuple(column if isinstance(column, Column) else _column(column) for column in self.columns)


@cache
def _column(path: str) -> Column:
    table_name, name = path.split(".")
    return next(table for table in TABLES if table.name == table_name).column(name)


def of(table: str, names: str) -> tuple[str, ...]:
    """Columns of a table by their names, parted by blanks."""
    return tuple(f"{table}.{name}" for name in names.split())


def view_rows(view: View) -> list[dict[str, str | None]]:
    """The view's lines in `columns`, the first one for the view itself."""
    return described_rows(view.name, "macro" if view.parameters else "view", view.description, view.described)


def sql_view(view: View) -> list[str]:
    """DuckDB statements that create the view or macro with its comments."""
    if view.parameters:
        parameters = ", ".join(f"{name} := {default}" for name, default in view.parameters)
        return [
            f"CREATE MACRO {view.name}({parameters}) AS TABLE {view.sql}",
            f"COMMENT ON MACRO TABLE {view.name} IS {quoted(view.description)}",
        ]
    comments = [
        f"COMMENT ON COLUMN {view.name}.{column.name} IS {quoted(column.description)}" for column in view.described
    ]
    created = f"CREATE VIEW {view.name} AS {view.sql}"
    return [created, f"COMMENT ON VIEW {view.name} IS {quoted(view.description)}", *comments]
