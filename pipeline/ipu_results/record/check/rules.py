"""Run the quality rules: each is a statement of `schema/rules` that returns the figures that are
wrong.

A rule reports and never changes a figure. What several rules read is a statement of
`schema/rules/shared`, computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd
import pyarrow as pa

from ipu_results.kit.files import SCHEMA
from ipu_results.kit.sql import STAGED, Connection, create_table, map_statements
from ipu_results.kit.statements import define_macros, execute_text
from ipu_results.schema import RULES_SCHEMA, SHARED, read_head, sql_table, table
from ipu_results.schema.frames import build_frame, to_arrow

FLAGS = table("flags")
FOLDER = "rules"
SCOPE = "scope: "


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    `scope` is `document` where it compares a row with rows of its own document alone, else
    `record`. `statement` returns result_id, column_name, severity, message and, where it has a
    suggestion, suggested.
    """

    id: str
    title: str
    scope: str
    description: str
    statement: str

    @property
    def path(self) -> str:
        """The file of the statement, within `schema/`."""
        return f"{FOLDER}/{self.id}-{self.title}.sql"


def load_rule(path: Path) -> Rule:
    """Load a rule: its file is named by id and title, and its head says scope and what it flags."""
    rule_id, _, title = path.stem.partition("-")
    sql = path.read_text(encoding="utf-8")
    scope, _, description = read_head(sql).removeprefix(SCOPE).partition(" ")
    return Rule(rule_id, title, scope, description, sql)


RULES = tuple(map(load_rule, sorted((SCHEMA / FOLDER).glob("R*.sql"))))


def build_rule_frame() -> pd.DataFrame:
    """Build the table `rules`."""
    rows = [{"rule": rule.id, **asdict(rule)} for rule in RULES]
    return build_frame(table("rules"), rows)


def find_flags(connection: Connection, rules: Sequence[Rule] = RULES) -> None:
    """Create the table `flags` of rules over the staged tables, sorted by rule, result and column.

    Raises GateError for a statement that fails or returns what no flag has; it names the file.
    """
    define_macros(connection)
    for view in SHARED:
        execute_text(connection, view.path, f"CREATE TABLE {view.sql_name} AS {view.sql}")
    found = replace(FLAGS, schema=RULES_SCHEMA)  # in any order, before they are sorted
    connection.execute(sql_table(found)[0])  # without its comments

    def insert_flags(cursor: Connection, rule: Rule) -> None:
        flags = f"SELECT '{rule.id}' AS rule, * FROM ({rule.statement})"
        execute_text(cursor, rule.path, f"INSERT INTO {found.sql_name} BY NAME {flags}")

    map_statements(connection, STAGED, insert_flags, rules)
    ordered = f"FROM {found.sql_name} ORDER BY {', '.join(FLAGS.key)}"
    connection.execute(f"CREATE TABLE {FLAGS.sql_name} AS {ordered}")


def add_table(connection: Connection, name: str, frame: pd.DataFrame | pa.Table) -> None:
    """Add a table of one build, under the name that statements use."""
    definition = table(name).as_filled()
    rows = frame
    if isinstance(frame, pd.DataFrame):
        filled = tuple(column for column in definition.columns if column.name in frame)
        rows = to_arrow(replace(definition, columns=filled), frame)
    create_table(connection, definition.sql_name, rows)
