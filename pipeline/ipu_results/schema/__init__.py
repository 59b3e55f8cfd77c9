"""The schema: every table, view and column is defined once, as data, and everything else is
generated from that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

from ipu_results.kit import physics
from ipu_results.kit.files import SCHEMA, list_in_order, load_schema_file
from ipu_results.kit.physics import DERIVED_DIGITS

Kind = Literal["text", "integer", "double", "date", "timestamp", "boolean"]
Level = Literal["patch", "minor", "major"]
Entry = Mapping[str, Any]  # a table of a TOML file

LIMITS: Mapping[str, Entry] = {
    "integer": {"low": 0, "high": 2**53},  # every integer up to here is exact as a double, too
    "double": {"low": 0, "high": 1e15},
}


MAIN = "main"
DETAIL = "detail"
RULES_SCHEMA = "rules"
"""The schemas of DuckDB: one for the relations to begin with, one for all others, and one for what
the quality rules share.
"""
# what one of our own statements reads: it names relations after FROM and JOIN alone
READ = re.compile(rf"\b(?:FROM|JOIN)\s+((?:{DETAIL}\.)?\w+)")
# any word of an expression may be a column
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
class Relation:
    """What tables and views have in common."""

    name: str
    description: str
    columns: tuple[Column, ...]
    schema: str = field(default=MAIN, kw_only=True)

    @property
    def sql_name(self) -> str:
        """The relation as a statement names it, and as its files are found."""
        return qualify(self.schema, self.name)

    @property
    def source(self) -> str:
        """The relation as a FROM clause names it."""
        return self.sql_name

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True)
class Table(Relation):
    """One published table.

    No two rows share the values of the `key` columns. `label` names a row to a reader. `kept`
    columns are filled by sources as well, and published in other places.
    """

    key: tuple[str, ...]
    label: tuple[str, ...] = ()
    kept: tuple[Column, ...] = ()
    checks: tuple[RowCheck, ...] = ()

    @property
    def row_checks(self) -> tuple[RowCheck, ...]:
        """The checks of which the table has all columns."""
        return tuple(check for check in self.checks if check.columns.issubset(self.names))

    @property
    def derived(self) -> tuple[Column, ...]:
        """The columns that are computed from others."""
        return tuple(column for column in self.columns if column.is_derived)

    def column(self, name: str) -> Column:
        return next(column for column in self.columns + self.kept if column.name == name)

    def as_filled(self) -> Table:
        """Return the table as sources fill it: without derived columns, with the `kept` ones."""
        filled = tuple(column for column in self.columns if not column.is_derived)
        return replace(self, columns=filled + self.kept, kept=())

    def list_kept(self, place: str) -> tuple[Column, ...]:
        """Return the columns whose values are published in one other place."""
        return tuple(column for column in self.kept if column.kept_in == place)

    def choices(self, name: str) -> tuple[str, ...]:
        """Return the values that a text column accepts."""
        return self.column(name).choices or ()


@dataclass(frozen=True, slots=True)
class View(Relation):
    """One published view, or a table macro where it has `parameters`: their names with defaults in
    SQL.

    Its rows are written to files sorted by the columns of `order`, of which no two rows share the
    values, else by all columns. `no_files` is the reason why a view is not written to files.
    """

    parameters: tuple[tuple[str, str], ...] = ()
    order: tuple[str, ...] = ()
    no_files: str | None = None
    folder: str = "views"

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
        order = ", ".join(self.order) or "ALL"
        return f"SELECT {', '.join(self.names)} FROM {source} ORDER BY {order}"

    @property
    def file_table(self) -> Table:
        """The view's files as a table: any column may be null, and none refers to another table."""
        # an outer join leaves blanks where the table has none
        columns = tuple(replace(column, required=False, references=None) for column in self.columns)
        return Table(self.name, self.description, columns, (), schema=self.schema)


def load_column(entry: Entry, table: str = "") -> Column:
    """Build a column from its TOML entry; numbers are bounded by LIMITS unless the entry says
    otherwise.

    `choices_of`, such as `precisions.bits`, makes the names of a part of the vocabulary the
    choices. The inputs of a derived column are named with their table, by default its own.
    """
    values = {**LIMITS.get(entry["type"], {}), **entry}
    values["kind"] = values.pop("type")
    if "choices_of" in values:
        values["choices"] = _load_part(values.pop("choices_of"))
    if "choices" in values:
        values["choices"] = tuple(values["choices"])
    # the file of a table names its own columns without the table
    for key in {"derived_from", "derived_with"}.intersection(values):
        inputs = [name if "." in name else f"{table}.{name}" for name in values[key]]
        values[key] = tuple(inputs)
        # a rule or a list of the vocabulary changes it, not a source
        values.setdefault("change_level", "minor")
    return Column(**values)


@cache  # statements of each build and each comparison ask for the same parts
def _load_part(name: str) -> Entry:
    """Return a part of the vocabulary by its name, such as `precisions.bits`."""
    file, _, part = name.partition(".")
    loaded: Entry = load_schema_file(f"vocabulary/{file}.toml")[part]
    return loaded


def load_table(sql_name: str, folder: str = "tables") -> Table:
    """Load `schema/tables/<name>.toml` for a name such as `results` or `detail.facts`."""
    schema, name = _split_name(sql_name)
    entry = load_schema_file(f"{folder}/{name}.toml")
    columns = []
    kept = []
    # one list in the file, so that a reader finds all fields of a source together
    for described in entry["columns"]:
        column = load_column(described, name)
        if column.kept_in is None:
            columns.append(column)
        else:
            kept.append(column)
    terms = {**entry.get("terms", {}), "figures": _list_figures(columns + kept)}
    names = {column.name for column in columns + kept}
    return Table(
        name,
        entry["description"],
        tuple(columns),
        tuple(entry["key"]),
        tuple(entry.get("label", ())),
        tuple(kept),
        tuple(_load_check(check, terms, names) for check in entry.get("checks", ())),
        schema=schema,
    )


def _list_figures(columns: Iterable[Column]) -> str:
    return ", ".join(column.name for column in columns if column.figure)


def _load_check(
    entry: Mapping[str, str], terms: Mapping[str, str], columns: Iterable[str]
) -> RowCheck:
    """Build a check from its TOML entry.

    In its expression, `{figures}` are the columns with `figure`, `{map}` is the part of the
    vocabulary that `map_of` names, and others in braces are `terms` of the table.
    """
    if "map_of" in entry:
        # Python writes a dict as DuckDB writes a MAP
        terms = {**terms, "map": f"MAP {_load_part(entry['map_of'])}"}
    sql = entry["sql"]
    for name, term in terms.items():
        sql = sql.replace(f"{{{name}}}", term)
    # on one line: it is the text of a CHECK, and of a check of pandera
    sql = " ".join(sql.split())
    read = frozenset(columns).intersection(WORD.findall(sql))
    return RowCheck(entry["name"], entry["description"], sql, read)


def _split_name(sql_name: str) -> tuple[str, str]:
    """Return schema and name of a relation as `schema/order.toml` lists it."""
    schema, _, name = sql_name.rpartition(".")
    return schema or MAIN, name


def load_view(sql_name: str, known: Mapping[str, Column]) -> View:
    """Load `schema/views/<name>.toml` for a name such as `latest` or `detail.latency_points`.

    A column is `table.column` of `known`, a copy of one under another name (`like`, with a `note`
    on the description), or an entry of its own; `table.*` stands for all columns of a table.
    """
    schema, name = _split_name(sql_name)
    entry = load_schema_file(f"views/{name}.toml")
    columns: list[Column] = []
    for described in entry["columns"]:
        columns += _list_view_columns(described, known)
    return View(
        name,
        entry["description"],
        tuple(columns),
        tuple(entry.get("parameters", {}).items()),
        tuple(entry.get("order", ())),
        entry.get("no_files"),
        schema=schema,
    )


def _list_view_columns(entry: str | Entry, known: Mapping[str, Column]) -> Iterable[Column]:
    if isinstance(entry, str):
        if not entry.endswith("*"):
            return [known[entry]]
        return [known[name] for name in known if name.startswith(entry[:-1])]
    if "like" not in entry:
        return [load_column(entry)]
    column = known[entry["like"]]
    note = f"{column.description} {entry['note']}"
    return [replace(column, name=entry["name"], description=note, required=False)]


def load_shared(name: str) -> View:
    """Load `schema/rules/shared/<name>.sql`, a relation that quality rules share."""
    folder = "rules/shared"
    text = (SCHEMA / folder / f"{name}.sql").read_text(encoding="utf-8")
    return View(name, read_head(text), (), folder=folder, schema=RULES_SCHEMA)


def read_head(sql: str) -> str:
    """Return the comment at the head of a statement as one line."""
    words = []
    for line in sql.splitlines():
        if not line.startswith("--"):
            break
        words.append(line.removeprefix("--").strip())
    return " ".join(words)


def _load_views(names: Iterable[str]) -> tuple[View, ...]:
    """Load the views, each of which may have columns of tables and of views before it."""
    known: dict[str, Column] = {}

    def add(relation: Relation) -> None:
        for column in relation.columns:
            known[f"{relation.name}.{column.name}"] = column

    for table in TABLES:
        add(table)
    views = []
    for name in names:
        view = load_view(name, known)
        add(view)
        views.append(view)
    return tuple(views)


# Each name has the relations in the order in which one can read those before it.
_ORDER = load_schema_file("order.toml")
TABLES = tuple(map(load_table, _ORDER["tables"]))
VIEWS = _load_views(list_in_order("views", "views", ".sql"))
SHARED = tuple(map(load_shared, list_in_order("rules", "rules/shared", ".sql")))
"""What the quality rules share."""
LINKS: tuple[str, ...] = tuple(_ORDER["links"])
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


# `{MIN_BATCHES_IN_FLIGHT}`
CONSTANT = re.compile(r"\{([A-Z_]+)\}")
# `{precisions.peaks: name, value}`
VALUES = re.compile(r"\{(\w+\.\w+): ([\w, ]+)\}")


def fill_placeholders(sql: str) -> str:
    """Return a statement with values in the place of names in braces.

    `{max_batch_factor}` is one of schema/comparison.toml, `{work}` one of schema/expressions.toml,
    `{few_figures}` are the metrics of the table `figures`, `{MIN_BATCHES_IN_FLIGHT}` is a constant
    of `physics`, and `{precisions.peaks: name, value}` the rows of a part of the vocabulary.
    """
    for name, value in _load_placeholders().items():
        sql = sql.replace(f"{{{name}}}", value)
    sql = CONSTANT.sub(lambda match: str(getattr(physics, match[1])), sql)
    return VALUES.sub(lambda match: _format_rows(match[1], match[2].split(", ")), sql)


def _format_rows(part: str, columns: Sequence[str]) -> str:
    """Return rows of schema/vocabulary for a VALUES clause.

    What is listed under a name has it as `name`, and a `value` if it is no table of its own. Each
    value of a list is a row, and an empty list one without a value. A table in a table is JSON.
    """
    entries: Any = _load_part(part)
    if isinstance(entries, Mapping):
        entries = _list_named_rows(entries)
    rows = []
    for entry in entries:
        values = [_quote_value(entry.get(name)) for name in columns]
        rows.append(f"({', '.join(values)})")
    return ", ".join(rows)


def _list_named_rows(entries: Entry) -> list[Entry]:
    rows: list[Entry] = []
    for name, entry in entries.items():
        if isinstance(entry, Mapping):
            rows.append({"name": name, **entry})
            continue
        values = entry if isinstance(entry, list) else [entry]
        for value in values or [None]:
            rows.append({"name": name, "value": value})
    return rows


def _quote_value(value: str | float | Entry | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, Mapping):
        return quote(json.dumps(value))
    return quote(value) if isinstance(value, str) else repr(value)


@cache  # every statement asks for them
def _load_placeholders() -> dict[str, str]:
    rules = load_schema_file("comparison.toml")
    run = rules["run"]
    few = [
        column.name for column in table("results").list_kept("figures") if column.kind == "double"
    ]
    return {
        **rules["variant"],
        **load_schema_file("expressions.toml"),
        "max_batch_factor": f"{run['max_batch_factor']:g}",
        "doubtful_factor": f"{run['doubtful_factor']:g}",
        "ipu_families": ", ".join(map(quote, rules["machines"]["ipu_families"])),
        "few_figures": ", ".join(map(quote, few)),
    }


def sql_table(table: Table) -> list[str]:
    """Return the DuckDB statements that create the table with its comments.

    The file has no keys: DuckDB would keep an index of each, which no query uses and a build pays
    for. `sql_faults` proves them instead, and datapackage.json has them.
    """
    lines = []
    for column in table.columns:
        constraint = " NOT NULL" if column.required else ""
        lines.append(f"{column.name} {SQL[column.kind]}{constraint}")
    for check in table.row_checks:
        lines.append(f"CHECK ({check.sql})")
    body = ",\n  ".join(lines)
    return [
        f"CREATE TABLE {table.sql_name} (\n  {body}\n)",
        f"COMMENT ON TABLE {table.sql_name} IS {quote(table.description)}",
        *_comment_columns(table, list(map(describe_column, table.columns))),
    ]


def _comment_columns(relation: Relation, descriptions: Sequence[str]) -> list[str]:
    comments = []
    for name, description in zip(relation.names, descriptions, strict=True):
        comments.append(f"COMMENT ON COLUMN {relation.sql_name}.{name} IS {quote(description)}")
    return comments


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
    sql = view.sql
    if view.schema != MAIN:
        # tables and views alone: a subquery of the statement keeps its name
        sql = _match_main_relations().sub(rf"\1{MAIN}.\2", sql)
    sql = _round_columns(view, sql)
    if view.parameters:
        parameters = ", ".join(f"{name} := {default}" for name, default in view.parameters)
        return [
            f"CREATE MACRO {view.sql_name}({parameters}) AS TABLE {sql}",
            f"COMMENT ON MACRO TABLE {view.sql_name} IS {quote(view.description)}",
        ]
    return [
        f"CREATE VIEW {view.sql_name} AS {sql}",
        f"COMMENT ON VIEW {view.sql_name} IS {quote(view.description)}",
        *_comment_columns(view, [column.description for column in view.columns]),
    ]


def _round_columns(view: View, sql: str) -> str:
    """Round the doubles that no source prints to DERIVED_DIGITS.

    The columns are listed: DuckDB stores those of `* REPLACE` and `* EXCLUDE` in any order, and the
    digest of the definition would change.
    """
    columns = list(view.names)
    for position, column in enumerate(view.columns):
        if column.is_rounded:
            rounded = f"CAST(printf('%.{DERIVED_DIGITS}g', {column.name}) AS DOUBLE)"
            columns[position] = f"{rounded} AS {column.name}"
    if columns == list(view.names):
        return sql
    return f"SELECT {', '.join(columns)} FROM ({sql})"


@cache
def _match_main_relations() -> re.Pattern[str]:
    """Return a pattern of what a statement reads from the main schema."""
    names = [relation.name for relation in (*TABLES, *VIEWS) if relation.schema == MAIN]
    return re.compile(rf"\b((?:FROM|JOIN)\s+)({'|'.join(names)})\b")


def quote(text: str) -> str:
    """Return `text` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def describe_column(column: Column) -> str:
    """Return the description, with the unit in brackets."""
    return f"{column.description} [{column.unit}]" if column.unit else column.description


def describe_relation(relation: Relation) -> dict[str, str]:
    """Return the row of the table `relations` for a table or view."""
    kind = "table"
    if isinstance(relation, View):
        kind = "macro" if relation.parameters else "view"
    return {
        "table_name": relation.name,
        "schema_name": relation.schema,
        "type": kind,
        "description": relation.description,
    }


def list_dictionary_rows(relation: Relation) -> list[dict[str, str | None]]:
    """Return the rows of the table `columns` for a table or view: one for each of its columns."""
    rows = []
    for column in relation.columns:
        inputs = column.derived_from + column.derived_with
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
