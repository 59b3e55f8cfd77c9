"""The schema: every table, view and column is defined once, as data, and everything else is
generated from that.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from ipu_results.kit import physics
from ipu_results.kit.files import SCHEMA, load_schema_file
from ipu_results.kit.physics import DERIVED_DIGITS

Kind = Literal["text", "integer", "double", "date", "timestamp", "boolean"]
Level = Literal["patch", "minor", "major"]

LIMITS: Mapping[str, Mapping[str, float]] = {
    "integer": {"low": 0, "high": 2**53},  # every integer up to here is exact as a double, too
    "double": {"low": 0, "high": 1e15},
}


MAIN = "main"
DETAIL = "detail"
RULES_SCHEMA = "rules"
"""The schemas of DuckDB: one for the relations to begin with, one for all others, and one for what the
quality rules share.
"""
READ = re.compile(rf"\b(?:FROM|JOIN)\s+((?:{DETAIL}\.)?\w+)")
WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its type, its meaning and the values it accepts.

    `low` and `high` are inclusive bounds of a number, `above` is an exclusive one. `choices` and
    `pattern` restrict a text. `references` is the `table.column` that must hold the value. `figure`
    marks a result's own figures: a row needs at least one of them. `change_level` is the part of
    the version that a release must raise if values of existing rows changed in this column. A
    derived column names its inputs, as `table.column` or a column of its own table: it is null
    without each of `derived_from`, and uses those of `derived_with` where they are known.
    `header` is the name of the column in our transcriptions, where it is another one. `kept_in`
    says where the values of a column are that only few rows have: not in the table itself. `exact`
    doubles have every digit that a source gives; others are computed here and rounded.
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
    figure: bool = False
    change_level: Level = "major"
    derived_from: tuple[str, ...] = ()
    derived_with: tuple[str, ...] = ()
    header: str | None = None
    exact: bool = False
    kept_in: str | None = None

    @property
    def is_derived(self) -> bool:
        return bool(self.derived_from or self.derived_with)

    @property
    def is_rounded(self) -> bool:
        """Whether its values are computed here."""
        return self.kind == "double" and not self.figure and not self.exact


@dataclass(frozen=True, slots=True)
class RowCheck:
    """What must hold between columns of one row: an SQL expression that is not false.

    Published tables have it as a CHECK constraint, the gate as a check of its pandera schema.
    """

    name: str
    description: str
    sql: str
    columns: frozenset[str]
    """Those that it reads."""


def qualify(schema: str, name: str) -> str:
    """Return the name of a relation as SQL writes it: without the main schema."""
    return name if schema == MAIN else f"{schema}.{name}"


@dataclass(frozen=True, slots=True)
class Table:
    """One published table.

    No two rows share the values of the `key` columns. `label` names a row to a reader. `kept`
    columns are filled by sources as well, and published in other places.
    """

    name: str
    description: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    label: tuple[str, ...] = ()
    schema: str = MAIN
    kept: tuple[Column, ...] = ()
    checks: tuple[RowCheck, ...] = ()

    @property
    def row_checks(self) -> tuple[RowCheck, ...]:
        """The checks of which the table has all columns."""
        return tuple(check for check in self.checks if check.columns <= {*self.names})

    @property
    def sql_name(self) -> str:
        """The table as a statement names it, and as its files are found."""
        return qualify(self.schema, self.name)

    @property
    def source(self) -> str:
        """The table as a FROM clause names it."""
        return self.sql_name

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def derived(self) -> tuple[Column, ...]:
        """The columns that are computed from others."""
        return tuple(column for column in self.columns if column.is_derived)

    def column(self, name: str) -> Column:
        return next(column for column in self.columns + self.kept if column.name == name)

    def as_filled(self) -> Table:
        """Return the table as the sources fill it: without derived columns, with the `kept` ones."""
        filled = tuple(column for column in self.columns if not column.is_derived)
        return replace(self, columns=filled + self.kept, kept=())

    def list_kept(self, place: str) -> tuple[Column, ...]:
        """Return the columns whose values are published in one other place."""
        return tuple(column for column in self.kept if column.kept_in == place)

    def choices(self, name: str) -> tuple[str, ...]:
        """Return the values that a text column accepts."""
        return self.column(name).choices or ()


@dataclass(frozen=True, slots=True)
class View:
    """One published view, or a table macro where it has `parameters`: their names with defaults in
    SQL.

    Its rows are written to files sorted by the columns of `order`, of which no two rows share the
    values, else by all columns. `no_files` is the reason why a view is not written to files.
    """

    name: str
    description: str
    columns: tuple[Column, ...]
    parameters: tuple[tuple[str, str], ...] = ()
    order: tuple[str, ...] = ()
    no_files: str | None = None
    schema: str = MAIN
    folder: str = "views"

    @property
    def sql_name(self) -> str:
        """The view as a statement names it, and as its files are found."""
        return qualify(self.schema, self.name)

    @property
    def path(self) -> str:
        """The file of its statement, within `schema/`."""
        return f"{self.folder}/{self.name}.sql"

    @property
    def sql(self) -> str:
        """The SELECT statement behind the view."""
        return fill_placeholders((SCHEMA / self.path).read_text(encoding="utf-8"))

    @property
    def source(self) -> str:
        """The view as a FROM clause names it, called where it is a macro."""
        return f"{self.sql_name}()" if self.parameters else self.sql_name

    def list_read(self) -> list[str]:
        """Return the names that its statement reads from: tables, views and its own subqueries.

        They are as the statement writes them.
        """
        return READ.findall(self.sql)

    @property
    def rows_sql(self) -> str:
        """The SELECT statement for the rows of the view's files, in their order."""
        return self.select_rows(self.source)

    def select_rows(self, source: str) -> str:
        """Return the SELECT statement for the rows of `source`, the view or a call of it, in the
        order of its files.
        """
        columns = ", ".join(column.name for column in self.columns)
        return f"SELECT {columns} FROM {source} ORDER BY {', '.join(self.order) or 'ALL'}"

    @property
    def file_table(self) -> Table:
        """The view's files as a table: any column may be null, and none refers to another table."""
        columns = tuple(replace(column, required=False, references=None) for column in self.columns)
        return Table(self.name, self.description, columns, (), schema=self.schema)


def load_column(entry: Mapping[str, Any]) -> Column:
    """Build a column from its TOML entry; numbers are bounded by LIMITS unless the entry says
    otherwise.

    `choices_of`, such as `precisions.bits`, makes the names of a part of the vocabulary the
    choices.
    """
    values = {**LIMITS.get(entry["type"], {}), **entry}
    kind = values.pop("type")
    choices = values.pop("choices", None)
    if "choices_of" in values:
        choices = _load_part(values.pop("choices_of"))
    if "derived_from" in values or "derived_with" in values:
        # a rule or a list of the vocabulary changes it, not a source
        values.setdefault("change_level", "minor")
    values |= {
        name: tuple(values[name]) for name in ("derived_from", "derived_with") if name in values
    }
    return Column(kind=kind, choices=None if choices is None else tuple(choices), **values)


def _load_part(name: str) -> Mapping[str, Any]:
    """Return a part of the vocabulary by its name, such as `precisions.bits`."""
    file, _, part = name.partition(".")
    loaded: Mapping[str, Any] = load_schema_file(f"vocabulary/{file}.toml")[part]
    return loaded


def load_table(sql_name: str, folder: str = "tables") -> Table:
    """Load `schema/tables/<name>.toml` for a name such as `results` or `detail.facts`."""
    schema, name = _split_name(sql_name)
    entry = _load(SCHEMA / folder / f"{name}.toml")
    loaded = [_qualify_inputs(load_column(column), name) for column in entry["columns"]]
    columns = tuple(column for column in loaded if column.kept_in is None)
    kept = tuple(column for column in loaded if column.kept_in is not None)
    key = tuple(entry["key"])
    label = tuple(entry.get("label", ()))
    terms = {**entry.get("terms", {}), "figures": _list_figures(loaded)}
    checks = tuple(_load_check(check, terms, loaded) for check in entry.get("checks", ()))
    return Table(name, entry["description"], columns, key, label, schema, kept, checks)


def _list_figures(columns: Iterable[Column]) -> str:
    return ", ".join(column.name for column in columns if column.figure)


def _load_check(
    entry: Mapping[str, str], terms: Mapping[str, str], columns: Iterable[Column]
) -> RowCheck:
    """Build a check from its TOML entry.

    In its expression, `{figures}` are the columns with `figure`, `{map}` is the part of the
    vocabulary that `map_of` names, and others in braces are `terms` of the table.
    """
    if "map_of" in entry:
        terms = {**terms, "map": f"MAP {_load_part(entry['map_of'])}"}
    sql = entry["sql"]
    for name, term in terms.items():
        sql = sql.replace(f"{{{name}}}", term)
    read = {column.name for column in columns}.intersection(WORD.findall(sql))
    return RowCheck(entry["name"], entry["description"], " ".join(sql.split()), frozenset(read))


def _split_name(sql_name: str) -> tuple[str, str]:
    """Return schema and name of a relation as `schema/order.toml` lists it."""
    schema, _, name = sql_name.rpartition(".")
    return schema or MAIN, name


def _qualify_inputs(column: Column, table: str) -> Column:
    """Name the inputs of a derived column with their table, which is its own unless one is given."""
    if not column.is_derived:
        return column
    inputs = [
        tuple(name if "." in name else f"{table}.{name}" for name in names)
        for names in (column.derived_from, column.derived_with)
    ]
    return replace(column, derived_from=inputs[0], derived_with=inputs[1])


def load_view(sql_name: str, known: Mapping[str, Column]) -> View:
    """Load `schema/views/<name>.toml` for a name such as `latest` or `detail.latency_points`.

    A column is `table.column` of `known`, a copy of one under another name (`like`, with a `note`
    on the description), or an entry of its own; `table.*` stands for all columns of a table.
    """
    schema, name = _split_name(sql_name)
    entry = _load(SCHEMA / "views" / f"{name}.toml")
    columns = tuple(column for named in entry["columns"] for column in _view_columns(named, known))
    return View(
        name,
        entry["description"],
        columns,
        parameters=tuple(entry.get("parameters", {}).items()),
        order=tuple(entry.get("order", ())),
        no_files=entry.get("no_files"),
        schema=schema,
    )


def _view_columns(entry: str | Mapping[str, Any], known: Mapping[str, Column]) -> list[Column]:
    if isinstance(entry, str):
        every = entry.removesuffix("*")
        return (
            [known[entry]]
            if every == entry
            else [known[name] for name in known if name.startswith(every)]
        )
    if "like" not in entry:
        return [load_column(entry)]
    column = known[entry["like"]]
    note = f"{column.description} {entry['note']}"
    return [replace(column, name=entry["name"], description=note, required=False)]


def _load(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def load_shared(name: str) -> View:
    """Load `schema/rules/shared/<name>.sql`, a relation that quality rules share."""
    folder = "rules/shared"
    text = (SCHEMA / folder / f"{name}.sql").read_text(encoding="utf-8")
    return View(name, read_head(text), (), schema=RULES_SCHEMA, folder=folder)


def read_head(sql: str) -> str:
    """Return the comment at the head of a statement as one line."""
    head = takewhile(lambda line: line.startswith("--"), sql.splitlines())
    return " ".join(line.removeprefix("--").strip() for line in head)


def _load_all() -> tuple[tuple[Table, ...], tuple[View, ...], tuple[View, ...]]:
    order = _load(SCHEMA / "order.toml")
    tables = tuple(load_table(name) for name in order["tables"])
    known = {f"{table.name}.{column.name}": column for table in tables for column in table.columns}
    views = []
    for name in order["views"]:
        view = load_view(name, known)
        known |= {f"{view.name}.{column.name}": column for column in view.columns}
        views.append(view)
    return tables, tuple(views), tuple(map(load_shared, order["rules"]))


TABLES, VIEWS, SHARED = _load_all()
"""What is published, and what the quality rules share: their relations, in the order in which each can
read those before it.
"""
LINKS: tuple[str, ...] = tuple(_load(SCHEMA / "order.toml")["links"])
"""The statements of `schema/links`, in the order in which they run."""
FILE_VIEWS = tuple(view for view in VIEWS if view.no_files is None)
"""The views of which a release has files."""


@cache
def table(name: str) -> Table:
    """Return the published table of this name."""
    return next(table for table in TABLES if table.name == name)


SQL: dict[Kind, str] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "boolean": "BOOLEAN",
}


CONSTANT = re.compile(r"\{([A-Z_]+)\}")
VALUES = re.compile(r"\{(\w+)\.(\w+): ([\w, ]+)\}")


def fill_placeholders(sql: str) -> str:
    """Return a statement with values in the place of names in braces.

    `{max_batch_factor}` is one of schema/comparison.toml, `{work}` one of schema/expressions.toml,
    `{few_figures}` are the metrics of the table `figures`, `{MIN_BATCHES_IN_FLIGHT}` is a constant
    of `physics`, and `{precisions.peaks: name, value}` the rows of a part of the vocabulary.
    """
    for name, value in _load_placeholders().items():
        sql = sql.replace(f"{{{name}}}", value)
    sql = CONSTANT.sub(lambda match: str(getattr(physics, match[1])), sql)
    return VALUES.sub(lambda match: _format_rows(match[1], match[2], match[3].split(", ")), sql)


def _format_rows(file: str, part: str, columns: Sequence[str]) -> str:
    """Return rows of schema/vocabulary for a VALUES clause.

    What is listed under a name has it as `name`, and a `value` if it is no table of its own. Each
    value of a list is a row, and an empty list one without a value. A table in a table is JSON.
    """
    entries = load_schema_file(f"vocabulary/{file}.toml")[part]
    if isinstance(entries, Mapping):
        entries = [row for name, entry in entries.items() for row in _list_rows(name, entry)]
    rows = (
        "(" + ", ".join(_quote_value(row.get(name)) for name in columns) + ")" for row in entries
    )
    return ", ".join(rows)


def _list_rows(name: str, entry: Any) -> list[dict[str, Any]]:
    if isinstance(entry, Mapping):
        return [{"name": name, **entry}]
    values = (entry or [None]) if isinstance(entry, list) else [entry]
    return [{"name": name, "value": value} for value in values]


def _quote_value(value: str | float | Mapping[str, Any] | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, Mapping):
        return quote(json.dumps(value))
    return quote(value) if isinstance(value, str) else repr(value)


@cache
def _load_placeholders() -> dict[str, str]:
    rules = load_schema_file("comparison.toml")
    families = ", ".join(map(quote, rules["machines"]["ipu_families"]))
    kept = table("results").list_kept("figures")
    metrics = ", ".join(quote(column.name) for column in kept if column.kind == "double")
    return {
        **rules["variant"],
        **load_schema_file("expressions.toml"),
        "max_batch_factor": f"{rules['run']['max_batch_factor']:g}",
        "doubtful_factor": f"{rules['run']['doubtful_factor']:g}",
        "ipu_families": families,
        "few_figures": metrics,
    }


def sql_table(table: Table) -> list[str]:
    """Return the DuckDB statements that create the table with its comments.

    The file has no keys: DuckDB would keep an index of each, which no query uses and a build pays
    for. `sql_faults` proves them instead, and datapackage.json has them.
    """
    lines = [
        f"{column.name} {SQL[column.kind]}{' NOT NULL' if column.required else ''}"
        for column in table.columns
    ]
    lines += [f"CHECK ({check.sql})" for check in table.row_checks]
    comments = [f"COMMENT ON TABLE {table.sql_name} IS {quote(table.description)}"]
    comments += [
        f"COMMENT ON COLUMN {table.sql_name}.{column.name} IS {quote(describe_column(column))}"
        for column in table.columns
    ]
    return [f"CREATE TABLE {table.sql_name} (\n  " + ",\n  ".join(lines) + "\n)", *comments]


def sql_faults(table: Table) -> list[str]:
    """Return SELECT statements for what may not be in a table: a row for each repeated key, and for
    each value that the column lacks which it refers to, with a text that describes it.
    """
    key = ", ".join(table.key)
    name = quote(f"{table.sql_name}: {key} is repeated: ")
    faults = [
        f"SELECT concat({name}, {key}) AS fault FROM {table.sql_name} GROUP BY {key}"
        " HAVING count(*) > 1"
    ]
    for column in table.columns:
        if column.references:
            other, its = column.references.split(".")
            name = quote(f"{table.sql_name}: {column.name} is not in {other}: ")
            faults.append(
                f"SELECT concat({name}, own.{column.name}) AS fault FROM {table.sql_name} AS own"
                f" ANTI JOIN {other} AS theirs ON own.{column.name} = theirs.{its}"
                f" WHERE own.{column.name} IS NOT NULL"
            )
    return faults


def sql_view(view: View) -> list[str]:
    """Return the DuckDB statements that create the view or macro with its comments.

    In a file that is attached, DuckDB looks up names without a schema in the schema of the view: a
    view in another one than main names main relations with theirs.
    """
    sql = view.sql if view.schema == MAIN else _read_main().sub(rf"\1{MAIN}.\2", view.sql)
    sql = _round_columns(view, sql)
    if view.parameters:
        parameters = ", ".join(f"{name} := {default}" for name, default in view.parameters)
        return [
            f"CREATE MACRO {view.sql_name}({parameters}) AS TABLE {sql}",
            f"COMMENT ON MACRO TABLE {view.sql_name} IS {quote(view.description)}",
        ]
    comments = [f"COMMENT ON VIEW {view.sql_name} IS {quote(view.description)}"]
    comments += [
        f"COMMENT ON COLUMN {view.sql_name}.{column.name} IS {quote(column.description)}"
        for column in view.columns
    ]
    return [f"CREATE VIEW {view.sql_name} AS {sql}", *comments]


def _round_columns(view: View, sql: str) -> str:
    """Round the doubles that no source prints to DERIVED_DIGITS.

    The columns are listed: DuckDB stores those of `* REPLACE` and `* EXCLUDE` in any order, and the
    digest of the definition would change.
    """
    if not any(column.is_rounded for column in view.columns):
        return sql
    columns = ", ".join(map(_round_column, view.columns))
    return f"SELECT {columns} FROM ({sql})"


def _round_column(column: Column) -> str:
    if not column.is_rounded:
        return column.name
    return f"CAST(printf('%.{DERIVED_DIGITS}g', {column.name}) AS DOUBLE) AS {column.name}"


@cache
def _read_main() -> re.Pattern[str]:
    """Return a pattern of what a statement reads from the main schema."""
    relations: list[Table | View] = [*TABLES, *VIEWS]
    names = "|".join(relation.name for relation in relations if relation.schema == MAIN)
    return re.compile(rf"\b((?:FROM|JOIN)\s+)({names})\b")


def quote(text: str) -> str:
    """Return `text` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def describe_column(column: Column) -> str:
    """Return the description, with the unit in brackets."""
    return format_description(column.description, column.unit)


def format_description(description: str, unit: str | None) -> str:
    """Return a description with the unit in brackets, if there is one."""
    return f"{description} [{unit}]" if unit else description


def describe_relation(relation: Table | View) -> dict[str, str]:
    """Return the row of the table `relations` for a table or view."""
    return {
        "table_name": relation.name,
        "schema_name": relation.schema,
        "type": _name_kind(relation),
        "description": relation.description,
    }


def list_dictionary_rows(relation: Table | View) -> list[dict[str, str | None]]:
    """Return the rows of the table `columns` for a table or view: one for each of its columns."""
    rows = []
    for column in relation.columns:
        inputs = (*column.derived_from, *column.derived_with)
        row = {
            "table_name": relation.name,
            "column_name": column.name,
            "type": SQL[column.kind],
            "unit": column.unit,
            "description": column.description,
            "derived_from": ", ".join(inputs) or None,
        }
        rows.append(row)
    return rows


def _name_kind(relation: Table | View) -> str:
    if isinstance(relation, Table):
        return "table"
    return "macro" if relation.parameters else "view"
