"""Rank rows that may be compared; else refuse, with all that they mix and the arguments that would
pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ipu_results.doors.comparison.statements import Row, open_session, run_statements
from ipu_results.doors.mcp.names import list_first, name_value
from ipu_results.doors.mcp.refusal import Answer, RefusalError
from ipu_results.doors.mcp.rows import get_column, keep_stating
from ipu_results.doors.mcp.selection import NO_PHASE
from ipu_results.kit.sql import Connection
from ipu_results.kit.statements import run_statement
from ipu_results.kit.text import format_count

SAME = "same"
PER_CHIP = "per-chip"
WHOLE = "whole-machine"
DIVISIBLE = ("throughput",)  # figures that can be divided by the number of chips
HIGHER_IS_BETTER = ("throughput", "efficiency", "quality_value")
CHIPS = "chip_count"
MAX_NAMED = 6
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
# Figures that have the rules of others: an efficiency is of items, as a throughput, and of what the
# power is of.
RULED_AS = {
    "efficiency": ("throughput", "power_w"),
    "energy_per_item_j": ("power_w",),
    "run_energy_j": ("power_w",),
}
# Rows that agree in all columns that a rule reads are of one kind, named by the first of their ids.
# Only official rows state `comparable_rounds`: others get those of their model and round.
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
# One row of each kind, with values that no rule refuses:
# - unusable: repeated rows may be ranked.
# - model: rows of several are compared in the other columns, which a refusal names, too.
# - throughput, power_w: the rules of a figure do not depend on its value.
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
# What the figure of a row covers: a part of a run, or one metric. What a power covers is a column
# that the rules read, `power_scope`.
SCOPES = """
    SELECT c.result_id, f.scope
    FROM kinds c
    LEFT JOIN figures f
        ON f.result_id = c.result_id AND f.metric = $1 AND f.metric <> 'power_w'
"""
MIN_SHARE = 1 / 3  # a convention: of the rows, below which a value is not assumed
# Rows that differ in one of these are of two questions: which one is meant is not assumed.
NEVER_ASSUMED = ("model", "task", "item", "power_scope", "benchmark", "scope", "latency_basis")
# what an argument says of a row that states nothing; an argument cannot be null
BLANK = {"phase": NO_PHASE, "packed": False, "sparsity": 0}


class Conflict(NamedTuple):
    """A column in which the rows may not be compared, with its values."""

    column: str
    code: str
    values: Collection[Any]

    def list_values(self) -> str:
        """List the first values in words, and count the others."""
        return list_first(sorted(map(name_value, self.values)), MAX_NAMED)


class Assumption(NamedTuple):
    """Arguments that a question does not state, and the rows that may be ranked with them."""

    rows: list[Row]
    basis: str | None
    arguments: Answer
    words: list[str]
    is_common: bool
    """Whether each value is that of MIN_SHARE of the rows that differ in it, or more."""


class BrokenRule(NamedTuple):
    """A rule that keeps rows of two kinds apart."""

    first: str
    second: str
    column: str
    code: str


class KindRules(NamedTuple):
    """What the rules of a comparison say of some rows."""

    kinds: Mapping[str, str]
    """The kind of a row by its id."""
    scopes: Mapping[str, str | None]
    """What the figure of a row covers by its id."""
    broken: Sequence[BrokenRule]
    """In the order of the rules."""


@dataclass
class Ranking:
    """Rows in the order of their figure."""

    rows: list[Row]
    not_ranked: dict[str, int] = field(default_factory=dict)
    """How many rows are left out, by reason."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """The figure of one chip by the id of a row, where it is divided."""
    assumed: Sequence[str] = ()
    """The arguments that were not stated, with what else rows have."""

    def keep(self, rows: list[Row], reason: str) -> None:
        """Keep these rows, and count the others."""
        if len(rows) < len(self.rows):
            self.not_ranked[reason] = len(self.rows) - len(rows)
        self.rows = rows


def rank_rows(
    connection: Connection,
    rows: Sequence[Row],
    figure: str,
    order: str,
    basis: str | None,
    *,
    with_sparse: bool,
) -> Ranking:
    """Rank the rows by their figure.

    Where two of them may not be compared, those with the most common value of a column that is not
    stated are ranked, and `assumed` says so. Raises RefusalError where they differ in one of
    NEVER_ASSUMED. The batch size may differ.
    """
    without_order = {"figure": figure, "order": None}
    ranking = Ranking(list(rows))
    undoubted = [row for row in rows if not row["errors"] and not row["suspect"]]
    ranking.keep(undoubted, "flagged")
    if not ranking.rows:
        reason = f"all {len(rows)} rows are flagged as errors or suspect: they are not ranked"
        step = "leave out order to see them with their flags"
        raise RefusalError("flagged", reason, step, without_order)
    if not with_sparse:
        dense = [row for row in ranking.rows if not row["sparsity"]]
        if dense:
            ranking.keep(dense, "sparse")
    required = REQUIRED.get(figure, ())
    if basis == PER_CHIP:
        required = (*required, (CHIPS, "unknown-chip-count"))
    for column, code in required:
        stating = keep_stating(ranking.rows, column)
        if not stating:
            words = f"none of {format_count(len(ranking.rows), 'row')} states {column}"
            raise RefusalError(code, words, "leave out order to see the rows", without_order)
        ranking.keep(stating, f"without {column}")
    assumption = _check_ranking(connection, ranking.rows, figure, basis)
    ranking.rows = assumption.rows
    ranking.assumed = assumption.words
    if assumption.basis == PER_CHIP:
        ranking.keep(keep_stating(ranking.rows, CHIPS), f"without {CHIPS}")
    shares = {row["result_id"]: get_share(row, figure, assumption.basis) for row in ranking.rows}
    is_descending = order == "highest"
    if order == figure:
        is_descending = figure in HIGHER_IS_BETTER
    ranking.rows.sort(key=lambda row: shares[row["result_id"]], reverse=is_descending)
    if is_divided(figure, assumption.basis):
        ranking.shares = shares
    return ranking


def is_divided(figure: str, basis: str | None) -> bool:
    """Return whether a figure is divided by the chips on a basis."""
    return basis == PER_CHIP and figure in DIVISIBLE


def get_share(row: Row, figure: str, basis: str | None) -> float:
    """Return a figure, of one chip where it is divided."""
    value: float = row[figure]
    return value / row[CHIPS] if is_divided(figure, basis) else value


def _check_ranking(
    connection: Connection, rows: list[Row], figure: str, basis: str | None
) -> Assumption:
    """Return the rows to rank, and what that assumes. Raises RefusalError if too much is open."""
    rules = _load_kind_rules(connection, rows, figure)
    conflicts = list(_find_conflicts(rules, rows, figure, basis))
    assumption = _suggest_arguments(rules, rows, figure, basis)
    if not conflicts:
        return assumption
    is_open = any(conflict.column in NEVER_ASSUMED for conflict in conflicts)
    # a basis that the question states is not exchanged for another
    changes_basis = basis is not None and "chips_basis" in assumption.arguments
    if assumption.is_common and not is_open and not changes_basis:
        return assumption
    differing = [f"{conflict.column} ({conflict.list_values()})" for conflict in conflicts]
    reason = f"{format_count(len(rows), 'row')} differ in {', '.join(differing)}"
    stated = []
    for name, value in assumption.arguments.items():
        word = str(value)
        if isinstance(value, bool):
            word = word.lower()
        stated.append(f"{name} {word}")
    count = format_count(len(assumption.rows), "row")
    step = f"state {', '.join(stated)}: {count}" if stated else ""
    raise RefusalError(conflicts[0].code, reason, step, assumption.arguments)


def _load_kind_rules(connection: Connection, rows: Sequence[Row], figure: str) -> KindRules:
    """Hold each kind of row against each, by the rules of a comparison of this figure."""
    ids = get_column(rows, "result_id")
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


def _find_conflicts(
    rules: KindRules, rows: Sequence[Row], figure: str, basis: str | None
) -> Iterator[Conflict]:
    """Yield the columns in which two of some rows of a ranking may not be compared."""
    models = set(get_column(rows, "model"))
    if len(models) > 1:
        yield Conflict("model", "different-networks", models)
    kinds = {rules.kinds[row["result_id"]] for row in rows}
    codes: dict[str, str] = {}
    for rule in rules.broken:
        if rule.first in kinds and rule.second in kinds:
            codes.setdefault(rule.column, rule.code)
    for column, code in codes.items():
        values = set(get_column(rows, column))
        if column == "latency_basis":
            values = set(map(get_latency_basis, rows))  # the rule reads latency_kind, too
        yield Conflict(column, code, values)
    scopes = {rules.scopes[row["result_id"]] for row in rows}
    if len(scopes) > 1:
        yield Conflict("scope", "different-figures", scopes)
    chips = set(get_column(rows, CHIPS))
    if len(chips) > 1 and basis != WHOLE and not is_divided(figure, basis):
        yield Conflict(CHIPS, "different-chip-counts", chips)


def get_latency_basis(row: Row) -> str | None:
    """Return what the latency of a row times; None where its source does not say."""
    basis: str | None = row["latency_basis"] or row["latency_kind"]
    return basis


def _suggest_arguments(
    rules: KindRules, rows: list[Row], figure: str, basis: str | None
) -> Assumption:
    """Return arguments that keep rows that may be ranked; none where none would do.

    Of each column in which rows differ they name the value that most rows have.
    """
    arguments: Answer = {}
    words = []
    is_common = True
    kept = rows
    while conflict := next(_find_conflicts(rules, kept, figure, basis), None):
        if conflict.column == CHIPS:
            basis = PER_CHIP if figure in DIVISIBLE else WHOLE
            arguments["chips_basis"] = basis
            words.append(f"chips_basis {basis} ({CHIPS}: {conflict.list_values()})")
            continue
        values = Counter(_get_argument(row, conflict.column) for row in kept)
        del values[None]  # no argument keeps such rows
        if not values or conflict.column in arguments:  # one value of it was not enough
            return Assumption(rows, basis, {}, [], is_common=False)
        [(most_common, _)] = values.most_common(1)
        arguments[conflict.column] = most_common
        fitting = [row for row in kept if _get_argument(row, conflict.column) == most_common]
        if len(fitting) < MIN_SHARE * len(kept):
            is_common = False
        count = f"{len(fitting)} of {format_count(len(kept), 'row')}"
        words.append(f"{conflict.column} {most_common} ({count}; all: {conflict.list_values()})")
        kept = fitting
    return Assumption(kept, basis, arguments, words, is_common=is_common)


def _get_argument(row: Row, column: str) -> Any:
    """Return the argument that keeps a row, None where there is none."""
    value = row.get(column)
    return BLANK.get(column) if value is None else value
