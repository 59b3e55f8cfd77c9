"""Rank rows that may be compared; else refuse, with all that they mix and the arguments that would
pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, Literal

from ipu_results.comparison.comparable import (
    FIGURE_RULES,
    NOT_STATED,
    RULES,
    RUN,
    ColumnRule,
    find_rule_obstacle,
    get_latency_basis,
    is_comparable_round,
)
from ipu_results.ground.text import format_count
from ipu_results.serve import RefusalError
from ipu_results.serve.answers import NONE, Row

ChipsBasis = Literal["same", "per-chip", "whole-machine"]
SAME: ChipsBasis = "same"
PER_CHIP: ChipsBasis = "per-chip"
WHOLE: ChipsBasis = "whole-machine"
DIVISIBLE = ("throughput",)  # figures that can be divided by the number of chips
HIGHER_IS_BETTER = ("throughput", "efficiency", "quality_value")
CHIPS = "chip_count"
MAX_NAMED = 6
MODELS = ColumnRule("model", "equal", "different-networks")
DIVISIONS = ColumnRule("division", "stated", "mlperf-divisions")
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
    rows: Sequence[Row], figure: str, order: str, basis: str, *, with_sparse: bool
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
    check_ranking(sound, figure, basis)
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


def check_ranking(rows: Sequence[Row], figure: str, basis: str) -> None:
    """Refuse to rank rows of which any two may not be compared."""
    conflicts = list(find_conflicts(rows, figure, basis))
    if not conflicts:
        return
    reason = f"{format_count(len(rows), 'row')} differ in {', '.join(map(str, conflicts))}"
    arguments, count = _suggest_arguments(rows, figure, basis)
    stated = ", ".join(
        f"{name} {str(value).lower() if isinstance(value, bool) else value}"
        for name, value in arguments.items()
    )
    step = f"state {stated}: {format_count(count, 'row')}" if arguments else ""
    raise RefusalError(conflicts[0].code, reason, step, arguments)


def find_conflicts(rows: Sequence[Row], figure: str, basis: str) -> Iterator[Conflict]:
    """Yield the columns in which two of the rows may not be compared."""
    for rule in (MODELS, *RULES, *FIGURE_RULES):
        if rule.figures and figure not in rule.figures:
            continue
        if rule.kind == "mlperf":
            yield from _find_mlperf_conflicts(rule, rows)
        elif rule.kind in ("equal", "stated", "known", "latency"):
            is_latency = rule.kind == "latency"
            own = (get_latency_basis(row) if is_latency else row[rule.column] for row in rows)
            values = tuple(dict.fromkeys(own))
            pairs = combinations_with_replacement(values, 2)
            if any(find_rule_obstacle(rule, *pair) for pair in pairs):
                yield Conflict(rule.column, rule.code, values)
    scopes = tuple(dict.fromkeys(row["scopes"].get(figure) for row in rows))
    if len(scopes) > 1:
        yield Conflict("scope", "different-figures", scopes)
    chips = tuple(dict.fromkeys(row[CHIPS] for row in rows))
    is_divided = basis == PER_CHIP and figure in DIVISIBLE
    if basis != WHOLE and not is_divided and len(chips) > 1:
        yield Conflict(CHIPS, "different-chip-counts", chips)


def _find_mlperf_conflicts(rule: ColumnRule, rows: Sequence[Row]) -> Iterator[Conflict]:
    """Apply MLCommons' rules: within a benchmark, a division, and the rounds listed as comparable."""
    benchmarks = tuple(dict.fromkeys(row["benchmark"] for row in rows))
    if RUN["mlperf"] not in benchmarks:
        return
    if len(benchmarks) > 1:
        yield Conflict(rule.column, rule.code, benchmarks)
    divisions = tuple(dict.fromkeys(row["division"] for row in rows))
    if len(divisions) > 1 or None in divisions:
        yield Conflict(DIVISIONS.column, DIVISIONS.code, divisions)
    spans = {row["mlperf_round"]: row["comparable_rounds"] or row["mlperf_round"] for row in rows}
    if not all(is_comparable_round(own, span) for own in spans for span in spans.values()):
        yield Conflict("mlperf_round", "mlperf-rounds", tuple(spans))


def _list_required(figure: str, basis: str) -> Iterator[tuple[str, str]]:
    """Yield the columns that each row must state, with the code of a refusal."""
    for rule in FIGURE_RULES:
        if rule.kind == "stated" and figure in rule.figures:
            yield rule.column, rule.code
    if basis == PER_CHIP:
        yield CHIPS, "unknown-chip-count"


def _suggest_arguments(rows: Sequence[Row], figure: str, basis: str) -> tuple[dict[str, Any], int]:
    """Return arguments that keep rows that may be ranked, and how many; none where none would do.

    Of each column in which rows differ they name the value that most rows have.
    """
    arguments: dict[str, Any] = {}
    kept = list(rows)
    while conflict := next(find_conflicts(kept, figure, basis), None):
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
