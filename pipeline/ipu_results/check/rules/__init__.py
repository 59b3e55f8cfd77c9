"""Run the quality rules: each is a statement of `schema/rules` that returns the figures that are wrong.

A rule reports and never changes a figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa

from ipu_results.check.rules.contradictions import find_contradicted
from ipu_results.check.rules.dataset import FLAGS, Dataset, build_dataset
from ipu_results.errors import GateError
from ipu_results.ground.files import SCHEMA
from ipu_results.ground.sql import create_table, get_first_line, open_engine
from ipu_results.ground.statements import create_table_as, define_macros, run_text
from ipu_results.schema import DETAIL, SHARED, read_head, table
from ipu_results.schema import RULES as RULES_SCHEMA
from ipu_results.schema.frames import arrow_schema, build_frame, to_arrow, to_pandas

__all__ = [
    "RULES",
    "Dataset",
    "Rule",
    "build_dataset",
    "build_rule_frame",
    "find_contradicted",
    "find_flags",
    "open_tables",
    "run_rule",
]

FOLDER = "rules"
SCOPE = "scope: "


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    `scope` is `document` where it compares a row with rows of its own document alone, else `record`.
    `statement` returns result_id, column_name, severity, message and, where it has a suggestion,
    suggested. A rule that is not ported yet has a function instead.
    """

    id: str
    title: str
    scope: str
    description: str
    statement: str
    find: Callable[[Dataset], pd.DataFrame] | None = None

    @property
    def path(self) -> str:
        """The file of the statement, within `schema/`."""
        return f"{FOLDER}/{self.id}-{self.title}.sql"


# Rules that are not ported to SQL yet.
FUNCTIONS = {
}


def load_rule(path: Path) -> Rule:
    """Load a rule: its file is named by id and title, and its head says scope and what it flags."""
    rule_id, _, title = path.stem.partition("-")
    sql = path.read_text(encoding="utf-8")
    scope, _, description = read_head(sql).removeprefix(SCOPE).partition(" ")
    return Rule(rule_id, title, scope, description, sql)


def _load_rules() -> tuple[Rule, ...]:
    rules = [load_rule(path) for path in (SCHEMA / FOLDER).glob("R*.sql")]
    for name, find in FUNCTIONS.items():
        rule_id, _, title = name.partition("-")
        description = " ".join(str(find.__doc__).split())
        rules.append(Rule(rule_id, title, "record", description, "", find))
    return tuple(sorted(rules, key=lambda rule: rule.id))


RULES = _load_rules()


def build_rule_frame() -> pd.DataFrame:
    """Build the table `rules`."""
    definition = table("rules")
    rows = [
        {
            "rule": rule.id,
            "title": rule.title,
            "scope": rule.scope,
            "description": rule.description,
            "statement": rule.statement,
        }
        for rule in RULES
    ]
    return build_frame(definition, rows)


@contextmanager
def open_tables(data: Dataset) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection with the tables of one build that rules read, and what the rules share."""
    frames = {
        "results": data.results,
        "figures": data.figures,
        "cells": data.cells,
        "platforms": data.platforms,
        "models": data.models,
        "configurations": data.configurations,
        "microbenchmarks": data.microbenchmarks,
        "mlperf_entries": data.official,
        "contradicted": data.contradicted,
        "contradictions": data.contradictions,
        "source_tables": data.source_tables,
        "operation_counts": data.operation_counts,
    }
    with open_engine() as connection:
        connection.execute(f"CREATE SCHEMA {DETAIL}; CREATE SCHEMA {RULES_SCHEMA}")
        for name, frame in frames.items():
            definition = table(name).as_filled()
            kept = tuple(column for column in definition.columns if column.name in frame)
            rows = to_arrow(replace(definition, columns=kept), frame)
            create_table(connection, definition.sql_name, rows)
        define_macros(connection)
        for view in SHARED:
            create_table_as(connection, view.sql_name, f"{view.folder}/{view.name}.sql", view.sql)
        yield connection


def run_rule(connection: duckdb.DuckDBPyConnection, rule: Rule) -> pa.Table:
    """Return the flags of a rule. Raises GateError for a statement that fails; it names the file."""
    rows = run_text(connection, rule.path, rule.statement)
    given = dict(zip(rows.column_names, rows.columns, strict=True))
    given["rule"] = pa.repeat(rule.id, rows.num_rows)
    given.setdefault("suggested", pa.nulls(rows.num_rows, pa.string()))
    try:
        return pa.table({name: given[name] for name in FLAGS.names}).cast(arrow_schema(FLAGS))
    except (KeyError, ValueError) as error:  # a column or a value that no flag has
        raise GateError(get_first_line(error), place=f"schema/{rule.path}") from error


def find_flags(data: Dataset, rules: Sequence[Rule] = RULES) -> pd.DataFrame:
    """Return the flags of rules, sorted by rule, result and column, whatever the order of the
    rows in `data`.
    """
    with open_tables(data) as connection:
        flags = [
            to_arrow(FLAGS, data.compute_once(rule.find)).replace_schema_metadata()
            if rule.find
            else run_rule(connection, rule).replace_schema_metadata()
            for rule in rules
        ]
    rows = pa.concat_tables(flags).sort_by([(name, "ascending") for name in FLAGS.key])
    return to_pandas(rows.cast(arrow_schema(FLAGS)))
