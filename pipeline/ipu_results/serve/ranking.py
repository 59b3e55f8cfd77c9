"""Rank rows that may be compared; else refuse, with all that they mix and the arguments that would
pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import duckdb

from ipu_results.comparison.statements import load_results, open_session, run_statements
from ipu_results.ground.statements import run_statement
from ipu_results.ground.text import format_count
from ipu_results.serve import RefusalError
from ipu_results.serve.answers import NONE, Row

SAME = "same"
PER_CHIP = "per-chip"
WHOLE = "whole-machine"
DIVISIBLE = ("throughput",)  # figures that can be divided by the number of chips
HIGHER_IS_BETTER = ("throughput", "efficiency", "quality_value")
CHIPS = "chip_count"
MAX_NAMED = 6
NOT_STATED = "not stated"
# the columns that each row must state for a figure to be ranked, with the code of a refusal
ITEM = ("item", "different-items")
SCOPE = ("power_scope", "different-power-scopes")
REQUIRED = {
    "throughput": (ITEM,),
    "efficiency": (ITEM, SCOPE),
    "power_w": (SCOPE,),
    "energy_per_item_j": (SCOPE,),
    "run_energy_j": (SCOPE,),
    "minutes": (("benchmark", "mlperf-with-other"),),
}
# the figures whose rules apply: an efficiency is of items, and of what the power is of
RULED_AS = {
    "efficiency": ("throughput", "power_w"),
    "energy_per_item_j": ("power_w",),
    "run_energy_j": ("power_w",),
}
# a printed result has the comparable rounds of the official ones of its round
SPANS = """
    UPDATE candidates
    SET comparable_rounds = spans.comparable_rounds
    FROM (
        SELECT model, mlperf_round, max(comparable_rounds) AS comparable_rounds
        FROM candidates
        GROUP BY model, mlperf_round
    ) spans
    WHERE candidates.model = spans.model AND candidates.mlperf_round = spans.mlperf_round
"""
KEPT = """
    CREATE OR REPLACE TEMP TABLE candidates AS
    FROM ranked WHERE list_contains($ids, result_id)
"""
# What a figure covers: a part of a run, or one metric. That of a power is a column of results.
SCOPES = """
    SELECT DISTINCT f.scope
    FROM candidates c
    LEFT JOIN figures f
        ON f.result_id = c.result_id AND f.metric = $1 AND f.metric <> 'power_w'
"""
# The rules on these columns let a blank pass, or a range: one row of each is held against all rows.
# On other columns rows that agree with one agree with each other.
REPRESENTATIVES = """
    SELECT min(result_id)
    FROM candidates
    GROUP BY input_size, latency_basis, latency_kind, mlperf_round
"""
# what an argument says of a row that states nothing; an argument cannot be null
BLANK = {"phase": NONE, "packed": False, "sparsity": 0}


@dataclass(frozen=True, slots=True)
class Conflict:
    """A column in which the rows may not be compared, with its values."""

    column: str
    code: str
    values: tuple[Any, ...]

    def __str__(self) -> str:
        names = sorted(NOT_STATED if value is None else str(value) for value in self.values)
        more = f", {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        return f"{self.column} ({', '.join(names[:MAX_NAMED])}{more})"


def rank_rows(
    connection: duckdb.DuckDBPyConnection,
    rows: Sequence[Row],
    figure: str,
    order: str,
    basis: str,
    *,
    with_sparse: bool,
) -> tuple[list[Row], dict[str, int]]:
    """Return the rows by their figure, and how many are not ranked, by reason.

    Raises RefusalError where any two of them may not be compared. The batch size may differ.
    """
    sound = [row for row in rows if not row["errors"] and not row["suspect"]]
    if not sound:
        raise RefusalError("flagged", f"all {len(rows)} rows are flagged as errors or suspect")
    not_ranked = {"flagged": len(rows) - len(sound)}
    if not with_sparse:
        dense = [row for row in sound if not row["sparsity"]] or sound
        not_ranked["sparse"] = len(sound) - len(dense)
        sound = dense
    for column, code in _list_required(figure, basis):
        stated = [row for row in sound if row[column] is not None]
        if not stated:
            words = f"none of {format_count(len(sound), 'row')} states {column}"
            raise RefusalError(code, words)
        not_ranked[f"without {column}"] = len(sound) - len(stated)
        sound = stated
    check_ranking(connection, sound, figure, basis)
    ranked = sorted(
        sound,
        key=lambda row: get_share(row, figure, basis),
        reverse=order == "highest" or (order == figure and figure in HIGHER_IS_BETTER),
    )
    return ranked, {why: count for why, count in not_ranked.items() if count}


def get_share(row: Row, figure: str, basis: str) -> float:
    """Return a figure, of one chip where it is divided."""
    value: float = row[figure]
    return value / row[CHIPS] if basis == PER_CHIP and figure in DIVISIBLE else value


def suggest_chips_basis(figure: str) -> str:
    """Return the basis on which machines of different size can be compared."""
    return PER_CHIP if figure in DIVISIBLE else WHOLE


def check_ranking(
    connection: duckdb.DuckDBPyConnection, rows: Sequence[Row], figure: str, basis: str
) -> None:
    """Refuse to rank rows of which any two may not be compared."""
    with open_ranking(connection, rows) as session:
        conflicts = list(find_conflicts(session, rows, figure, basis))
        if not conflicts:
            return
        reason = f"{format_count(len(rows), 'row')} differ in {', '.join(map(str, conflicts))}"
        arguments, count = _suggest_arguments(session, rows, figure, basis)
    stated = ", ".join(
        f"{name} {str(value).lower() if isinstance(value, bool) else value}"
        for name, value in arguments.items()
    )
    step = f"state {stated}: {format_count(count, 'row')}" if arguments else ""
    raise RefusalError(conflicts[0].code, reason, step, arguments)


@contextmanager
def open_ranking(
    connection: duckdb.DuckDBPyConnection, rows: Sequence[Row]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a session with these rows as the table `ranked`."""
    ids = [row["result_id"] for row in rows]
    with open_session(connection, "list_contains($ids, result_id)", {"ids": ids}) as session:
        session.execute(SPANS)
        # A user may rank repeated rows. Those of several models are held against each other, too, for
        # a refusal that names all columns. The rules of a figure do not depend on its value.
        changes = "unusable = NULL, model = '', throughput = 1, power_w = 1"
        session.execute(f"UPDATE candidates SET {changes}")
        session.execute("ALTER TABLE candidates RENAME TO ranked")
        yield session


def find_conflicts(
    session: duckdb.DuckDBPyConnection, rows: Sequence[Row], figure: str, basis: str
) -> Iterator[Conflict]:
    """Yield the columns in which two of some rows of a ranking may not be compared."""
    models = tuple(dict.fromkeys(row["model"] for row in rows))
    if len(models) > 1:
        yield Conflict("model", "different-networks", models)
    for column, code in _list_columns(session, rows, figure):
        read = get_latency_basis if column == "latency_basis" else itemgetter(column)
        yield Conflict(column, code, tuple(dict.fromkeys(map(read, rows))))
    scopes = tuple(scope for (scope,) in session.execute(SCOPES, [figure]).fetchall())
    if len(scopes) > 1:
        yield Conflict("scope", "different-figures", scopes)
    chips = tuple(dict.fromkeys(row[CHIPS] for row in rows))
    is_divided = basis == PER_CHIP and figure in DIVISIBLE
    if basis != WHOLE and not is_divided and len(chips) > 1:
        yield Conflict(CHIPS, "different-chip-counts", chips)


def _list_columns(
    session: duckdb.DuckDBPyConnection, rows: Sequence[Row], figure: str
) -> list[tuple[str, str]]:
    """Return the columns in which the rules of a comparison keep two of the rows apart, with codes."""
    session.execute(KEPT, {"ids": [row["result_id"] for row in rows]})
    session.execute("DELETE FROM mine")
    representatives = session.execute(REPRESENTATIVES).fetchall()
    load_results(session, [result_id for (result_id,) in representatives])
    run_statements(session, "shared_figures")
    figures = list(RULED_AS.get(figure, (figure,)))
    found = run_statement(session, "comparison/conflicts.sql", {"figures": figures})
    return [(row["column_name"], row["code"]) for row in found.to_pylist()]


def get_latency_basis(row: Row) -> str | None:
    """Return what the latency of a row times; None where its source does not say."""
    basis: str | None = row["latency_basis"] or row["latency_kind"]
    return basis


def _list_required(figure: str, basis: str) -> Iterator[tuple[str, str]]:
    """Yield the columns that each row must state, with the code of a refusal."""
    yield from REQUIRED.get(figure, ())
    if basis == PER_CHIP:
        yield CHIPS, "unknown-chip-count"


def _suggest_arguments(
    session: duckdb.DuckDBPyConnection, rows: Sequence[Row], figure: str, basis: str
) -> tuple[dict[str, Any], int]:
    """Return arguments that keep rows that may be ranked, and how many; none where none would do.

    Of each column in which rows differ they name the value that most rows have.
    """
    arguments: dict[str, Any] = {}
    kept = list(rows)
    while conflict := next(find_conflicts(session, kept, figure, basis), None):
        if conflict.column == CHIPS:
            basis = arguments["chips_basis"] = suggest_chips_basis(figure)
            continue
        values = [get_argument(row, conflict.column) for row in kept]
        known = Counter(value for value in values if value is not None)
        if not known or conflict.column in arguments:
            return {}, 0
        [(value, _)] = known.most_common(1)
        arguments[conflict.column] = value
        kept = [row for row, own in zip(kept, values, strict=True) if own == value]
    return arguments, len(kept)


def get_argument(row: Row, column: str) -> Any:
    """Return the argument that keeps a row, None where there is none."""
    value = row.get(column)
    return BLANK.get(column) if value is None else value
