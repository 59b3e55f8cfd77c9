"""Rank rows that may be compared; else refuse, with all that they mix and the arguments that would
pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import duckdb

from ipu_results.doors.comparison.statements import open_session, run_statements
from ipu_results.doors.mcp.answers import NONE, Row
from ipu_results.doors.mcp.refusal import RefusalError
from ipu_results.kit.statements import run_statement
from ipu_results.kit.text import format_count

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
# Rows that agree in all columns that a rule reads are of one kind, named by the first of them. A printed
# result has the comparable rounds of the official ones of its round.
KINDS = """
    CREATE TEMP TABLE kinds AS
    WITH spanned AS (
        SELECT * REPLACE (
            max(comparable_rounds) OVER (PARTITION BY model, mlperf_round) AS comparable_rounds
        )
        FROM candidates
    )
    SELECT
        *,
        min(result_id) OVER (
            PARTITION BY task, benchmark, division, mlperf_round, comparable_rounds, phase,
                sequence_length, packed, sparsity, input_size, item, power_scope, latency_basis,
                latency_kind
        ) AS kind
    FROM spanned
"""
# One row of each kind. Repeated rows may be ranked, several models are held against each other for a
# refusal that names all columns, and the rules of a figure do not depend on its value.
CANDIDATES = """
    CREATE OR REPLACE TEMP TABLE candidates AS
    SELECT * EXCLUDE (kind) REPLACE (
        NULL::VARCHAR AS unusable, '' AS model, 1::DOUBLE AS throughput, 1::DOUBLE AS power_w
    )
    FROM kinds
    WHERE result_id = kind
"""
MINE = """
    INSERT INTO mine BY NAME
    SELECT row_number() OVER (ORDER BY result_id) AS run, *
    FROM candidates
"""
# What a figure covers: a part of a run, or one metric. That of a power is a column of results.
SCOPES = """
    SELECT c.result_id, f.scope
    FROM kinds c
    LEFT JOIN figures f
        ON f.result_id = c.result_id AND f.metric = $1 AND f.metric <> 'power_w'
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


class BrokenRule(NamedTuple):
    """A rule that keeps rows of two kinds apart."""

    first: str
    second: str
    column: str
    code: str


@dataclass(frozen=True, slots=True)
class KindRules:
    """What the rules of a comparison say of some rows: of each the kind and what its figure covers, by
    its id, and of two kinds the rules that keep them apart, in order.
    """

    kinds: Mapping[str, str]
    scopes: Mapping[str, str | None]
    broken: Sequence[BrokenRule]


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
    rules = load_kind_rules(connection, rows, figure)
    conflicts = list(find_conflicts(rules, rows, figure, basis))
    if not conflicts:
        return
    reason = f"{format_count(len(rows), 'row')} differ in {', '.join(map(str, conflicts))}"
    arguments, count = _suggest_arguments(rules, rows, figure, basis)
    stated = ", ".join(
        f"{name} {str(value).lower() if isinstance(value, bool) else value}"
        for name, value in arguments.items()
    )
    step = f"state {stated}: {format_count(count, 'row')}" if arguments else ""
    raise RefusalError(conflicts[0].code, reason, step, arguments)


def load_kind_rules(
    connection: duckdb.DuckDBPyConnection, rows: Sequence[Row], figure: str
) -> KindRules:
    """Hold each kind of row against each, by the rules of a comparison of this figure."""
    ids = [row["result_id"] for row in rows]
    with open_session(connection, "list_contains($ids, result_id)", {"ids": ids}) as session:
        session.execute(KINDS)
        session.execute(CANDIDATES)
        session.execute(MINE)
        run_statements(session, "shared_figures")
        figures = list(RULED_AS.get(figure, (figure,)))
        found = run_statement(session, "comparison/conflicts.sql", {"figures": figures})
        return KindRules(
            kinds=dict(session.execute("SELECT result_id, kind FROM kinds").fetchall()),
            scopes=dict(session.execute(SCOPES, [figure]).fetchall()),
            broken=[BrokenRule(**row) for row in found.to_pylist()],
        )


def find_conflicts(
    rules: KindRules, rows: Sequence[Row], figure: str, basis: str
) -> Iterator[Conflict]:
    """Yield the columns in which two of some rows of a ranking may not be compared."""
    models = tuple(dict.fromkeys(row["model"] for row in rows))
    if len(models) > 1:
        yield Conflict("model", "different-networks", models)
    kinds = {rules.kinds[row["result_id"]] for row in rows}
    codes: dict[str, str] = {}
    for rule in rules.broken:
        if rule.first in kinds and rule.second in kinds:
            codes.setdefault(rule.column, rule.code)
    for column, code in codes.items():
        read = get_latency_basis if column == "latency_basis" else itemgetter(column)
        yield Conflict(column, code, tuple(dict.fromkeys(map(read, rows))))
    scopes = tuple(dict.fromkeys(rules.scopes[row["result_id"]] for row in rows))
    if len(scopes) > 1:
        yield Conflict("scope", "different-figures", scopes)
    chips = tuple(dict.fromkeys(row[CHIPS] for row in rows))
    is_divided = basis == PER_CHIP and figure in DIVISIBLE
    if basis != WHOLE and not is_divided and len(chips) > 1:
        yield Conflict(CHIPS, "different-chip-counts", chips)


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
    rules: KindRules, rows: Sequence[Row], figure: str, basis: str
) -> tuple[dict[str, Any], int]:
    """Return arguments that keep rows that may be ranked, and how many; none where none would do.

    Of each column in which rows differ they name the value that most rows have.
    """
    arguments: dict[str, Any] = {}
    kept = list(rows)
    while conflict := next(find_conflicts(rules, kept, figure, basis), None):
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
