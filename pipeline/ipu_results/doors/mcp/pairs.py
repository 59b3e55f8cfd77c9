"""Compare results of the record, figures of a user and claimed figures; what is not comparable is
refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import duckdb

from ipu_results.doors.cite.facts import COMPUTED_DIGITS, EMULATED, SUBMITTED
from ipu_results.doors.comparison.measurement import FIGURES, Measurement
from ipu_results.doors.comparison.statements import (
    list_same_latencies,
    load_results,
    open_session,
    run_one,
    run_statements,
)
from ipu_results.doors.comparison.verdict import build_stated, judge
from ipu_results.doors.mcp.answers import Record, Row, get_unit, require_figure, select_rows
from ipu_results.doors.mcp.brief import MAX_BRIEF, describe_match, shorten_comparison, write_unit
from ipu_results.doors.mcp.ranking import (
    CHIPS,
    DIVISIBLE,
    NOT_STATED,
    PER_CHIP,
    SAME,
    WHOLE,
    get_latency_basis,
    get_share,
    suggest_chips_basis,
)
from ipu_results.doors.mcp.refusal import RefusalError
from ipu_results.errors import ComparisonError
from ipu_results.kit.physics import convert_unit
from ipu_results.kit.statements import run_statement
from ipu_results.kit.text import format_float
from ipu_results.schema.vocabulary import load_vocabulary

MAX_REASONS = 3
# of the two rows of a pair, the first as run 1
FIRST_OBSTACLES = """
    SELECT o.obstacles[1].code, o.obstacles[1].reason
    FROM obstacles o
    JOIN mine m USING (run)
    WHERE o.result_id <> m.result_id AND len(o.obstacles) > 0
    ORDER BY run
"""
FIGURE_OBSTACLE = """
    SELECT obstacle.code, obstacle.reason
    FROM shared_figures
    WHERE run = 1 AND result_id = $1 AND figure = $2 AND obstacle IS NOT NULL
"""
INTERVAL = "SELECT low, high FROM shared_figures WHERE run = 1 AND result_id = $1 AND figure = $2"
NEAREST = "CREATE TEMP TABLE nearest AS SELECT 1 AS run, $1 AS result_id, 1 AS position"


def compare_two(
    record: Record,
    first_result_id: str,
    second_result_id: str,
    figure: str | None = None,
    chips_basis: str = SAME,
    emulated: bool = False,
) -> dict[str, Any]:
    """Compare a figure of two results.

    Raises RefusalError with the reason where they may not be compared.
    """
    first = record.get_row(first_result_id)
    second = record.get_row(second_result_id)
    if (
        first["result_id"] in (second["result_id"], second["same_as"])
        or second["result_id"] == first["same_as"]
    ):
        raise RefusalError("same-measurement", "both ids are of one measurement")
    predicted = [row["result_id"] for row in (first, second) if row["origin"] == EMULATED]
    if predicted and not emulated:
        step = "ask with emulated true to set a prediction against a figure"
        raise RefusalError(
            "emulated-not-measured", f"{', '.join(predicted)}: emulated, not measured", step
        )
    for column, code in (("task", "different-tasks"), ("model", "different-networks")):
        if first[column] != second[column]:
            raise RefusalError(code, f"{column}: {first[column]} / {second[column]}")
    chosen = _choose_figure(first, second, figure)
    with open_pair(record, first, second) as session:
        obstacle = find_pair_obstacle(session, first, second, chosen, chips_basis)
        if obstacle is not None:
            step = _suggest_step(obstacle.code, chosen, chips_basis)
            raise RefusalError(obstacle.code, obstacle.reason, step)
        return _build_ratio(record, session, first, second, chosen, chips_basis)


class Obstacle(NamedTuple):
    """Why a figure of two rows may not be compared; `code` names the rule for programs."""

    code: str
    reason: str


@contextmanager
def open_pair(record: Record, first: Row, second: Row) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a session in which each of two rows of the record is a run that is held against both."""
    ids = [first["result_id"], second["result_id"]]
    with open_session(record.connection, "list_contains($ids, result_id)", {"ids": ids}) as session:
        session.execute("UPDATE candidates SET unusable = NULL")  # a repeated row may be named
        load_results(session, ids)
        run_statements(session, "shared_figures")
        yield session


def _suggest_step(code: str, figure: str, basis: str) -> str:
    """Return what to do after a refusal of a pair, empty for the step of its code."""
    if "chip" not in code:
        return ""
    bases = dict.fromkeys((suggest_chips_basis(figure), WHOLE))
    named = " or ".join(own for own in bases if own != basis)
    return f"ask with chips_basis {named} to compare machines of different size"


def _choose_figure(first: Row, second: Row, figure: str | None) -> str:
    own, theirs = ([name for name in FIGURES if row[name] is not None] for row in (first, second))
    shared = [name for name in own if name in theirs]
    if not shared:
        raise RefusalError(
            "different-figures", f"no figure in common: {', '.join(own)} / {', '.join(theirs)}"
        )
    if figure is None:
        return shared[0]
    if figure not in shared:
        missing = [row["result_id"] for row in (first, second) if row[figure] is None]
        reason = (
            f"{' and '.join(missing)}: {figure} is not printed; it is unknown, and it is not zero"
        )
        raise RefusalError("not-printed", reason, f"both print {', '.join(shared)}")
    return figure


def find_pair_obstacle(
    session: duckdb.DuckDBPyConnection, first: Row, second: Row, figure: str, basis: str
) -> Obstacle | None:
    """Return why a figure of the two rows of `open_pair` may not be compared; None where it may."""
    # each direction looks at the flags of one row only
    obstacles = [Obstacle(*own) for own in session.execute(FIRST_OBSTACLES).fetchall()]
    sizes = [first["batch_size"], second["batch_size"]]
    if sizes.count(None) == 1:  # in words for two rows, not for a user
        code = "different-batch-sizes"
        words = Obstacle(code, f"batch size: {sizes[0] or NOT_STATED} / {sizes[1] or NOT_STATED}")
        obstacles = [words if own.code == code else own for own in obstacles]
    flagged = [own for own in obstacles if own.code == "flagged"]
    of_figure = session.execute(FIGURE_OBSTACLE, [second["result_id"], figure]).fetchall()
    obstacles += [Obstacle(*own) for own in of_figure]
    if obstacles:
        return [*flagged, *obstacles][0]
    return _find_chips_obstacle(first[CHIPS], second[CHIPS], figure, basis)


def _find_chips_obstacle(
    ours: int | None, theirs: int | None, figure: str, basis: str
) -> Obstacle | None:
    if basis == WHOLE:
        return None
    counts = f"{CHIPS}: {ours or NOT_STATED} / {theirs or NOT_STATED}"
    if basis == PER_CHIP:
        if not ours or not theirs:
            return Obstacle("unknown-chip-count", counts)
        if figure not in DIVISIBLE and ours != theirs:
            words = f"{counts}, and {figure} cannot be divided by chips"
            return Obstacle("different-chip-counts", words)
        return None
    return None if ours == theirs else Obstacle("different-chip-counts", counts)


def _build_ratio(
    record: Record,
    session: duckdb.DuckDBPyConnection,
    first: Row,
    second: Row,
    figure: str,
    basis: str,
) -> dict[str, Any]:
    divide = basis == PER_CHIP and figure in DIVISIBLE
    values = [get_share(row, figure, basis) for row in (first, second)]
    unit = f"{get_unit(figure, first)}{'/chip' if divide else ''}"
    results, citation = record.load([first["result_id"], second["result_id"]], ())
    [(low, high)] = session.execute(INTERVAL, [second["result_id"], figure]).fetchall()
    session.execute(NEAREST, [second["result_id"]])
    run_one(session, "differences")
    differing = session.execute("SELECT unnest(differences) FROM differences").fetchall()
    differences = [
        f"{own['what']}: {own['ours'] or NOT_STATED} / {own['theirs'] or NOT_STATED}"
        for (own,) in differing
    ]
    both = zip(values, (first, second), strict=True)
    stated = " / ".join(
        f"{_format_figure(row, figure, value)} {write_unit(unit)}" for value, row in both
    )
    answer: dict[str, Any] = {
        "figure": figure,
        "unit": unit,
        **dict(zip(("first", "second"), values, strict=True)),
        "ratio": values[0] / values[1],
        "statement": f"{stated} = {values[0] / values[1]:.4g}",
        "what_differs": differences,
        "results": results,
        "citation": citation,
    }
    if low is not None and not divide:
        answer["ratio_interval"] = [low, high]
    return answer


def _format_figure(row: Row, figure: str, value: float) -> str:
    """Format a figure or its share for the eye: a printed one with all digits, a computed one as a
    citation has it.
    """
    is_printed = row["origin"] == "published" and value == row[figure]
    return format_float(value if is_printed else float(f"{value:.{COMPUTED_DIGITS}g}"))


def compare_run(record: Record, **figures: Any) -> dict[str, Any]:
    """Compare figures of a user's run with the nearest rows of the record."""
    try:
        ours = build_stated(figures, record.words)
    except ComparisonError as error:
        code = "unknown-word" if "unknown" in error.message else "wrong-input"
        raise RefusalError(code, error.message) from error
    values = {"model": ours.model, "submitted": SUBMITTED}
    where = "model = $model AND relationship IS DISTINCT FROM $submitted"
    with open_session(record.connection, where, values) as session:
        [comparison] = judge(session, [ours])
        if not comparison.matches and comparison.status == "no-comparable-row":
            _refuse_comparison(session, comparison.measurement)
    nearest = tuple(
        sorted(comparison.matches, key=lambda match: (match.group == EMULATED, match.distance))
    )
    results, citation = record.load(
        [match.row["result_id"] for match in nearest[: 1 if record.is_brief else None]]
    )
    answer = replace(comparison, matches=nearest).to_record()
    described = {
        "verdict": comparison.verdict,
        "comparison_status": comparison.status,
        "figures_compared": {
            name: getattr(ours, name) for name in FIGURES if getattr(ours, name) is not None
        },
        "assumed": list(comparison.measurement.remarks),
        "nearest": [describe_match(match) for match in answer["matches"]],
        "plausibility": answer["checks"],
        "not_compared": answer["refusals"],
        "left_out": comparison.unusable,
        "results": results,
        "citation": citation,
    }
    return shorten_comparison(described) if record.is_brief else described


def _refuse_comparison(session: duckdb.DuckDBPyConnection, ours: Measurement) -> None:
    """Refuse for the reason that the most rows have that print a figure which the user states."""
    path = "comparison/objections.sql"
    objections = run_statement(session, path).to_pylist()
    if not objections:
        stated = [name for name in FIGURES if getattr(ours, name) is not None]
        raise RefusalError(
            "different-figures", f"no row of {ours.model} prints {' or '.join(stated)}"
        )
    code = objections[0]["code"]
    shown = [f"{own['rows']} rows: {own['reason']}" for own in objections if own["code"] == code]
    # one that no row has
    remarks = [remark for remark in ours.remarks if remark.startswith("variant ")]
    described = "; ".join([*shown[:MAX_REASONS], *remarks])
    raise RefusalError(code, f"no row may be compared: {described}")


MAX_NEAREST = 5
MAX_VALUES = 10
VARYING = (
    "relationship",
    "interest",
    "division",
    "mlperf_round",
    "phase",
    "sequence_length",
    "packed",
    "batch_size",
    "framework",
    "sdk_version",
    "variant",
    "chip",
    CHIPS,
)
GENERIC = frozenset({"item", "sample"})  # of any network
MIN_DIGITS = 2  # of a claimed time that may have another unit: one digit fits some row by chance
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
VERDICTS = {"exact": 0, "rounds-to": 1, "differs": 2}  # the best first


class Judgement(NamedTuple):
    """What a stated figure is to a row: its verdict, and by how much percent it is above."""

    row: Row
    verdict: str
    gap: float


def check_claimed_figure(
    record: Record,
    figure: str,
    value: str | float,
    unit: str,
    latency_basis: str | None = None,
    **conditions: Any,
) -> dict[str, Any]:
    """Compare a stated figure with every row that fits its conditions.

    `verdict` is `exact` if a row has this figure, `rounds-to` if a row has one that rounds to it at
    the stated digits, else `differs`. Raises RefusalError for a unit that does not fit, and where
    no measured row has such a figure.
    """
    stated = _parse_value(value)
    parsed = load_vocabulary().parse_stated_unit(figure, unit)
    if parsed is None:
        step = f"figures of this kind are in {get_unit(figure, {'item': None})}"
        raise RefusalError("different-units", f"{figure} has no unit {unit!r}", step)
    factor, item = parsed
    # what a document prints is to be found, whether or not it may be ranked
    selection = select_rows(record, conditions, ("repeated", "error", "suspect"))
    # a row that does not say what its latency times may fit
    rows = _keep_item(require_figure(record, selection, figure), item, unit)
    rows = _keep_latency(record, rows, latency_basis)
    judged = [Judgement(row, *_judge(stated, factor, row[figure])) for row in rows]
    judged.sort(key=lambda own: (VERDICTS[own.verdict], abs(own.gap), not own.row["usable"]))
    best = judged[0]
    shown = [own for own in judged if own.verdict == best.verdict]
    shown = shown[: 1 if record.is_brief else MAX_NEAREST]
    results, citation = record.load([own.row["result_id"] for own in shown], (figure,))
    recorded = (
        f"{_format_figure(best.row, figure, best.row[figure])}"
        f" {write_unit(get_unit(figure, best.row))} ({best.row['result_id']})"
    )
    words = f"the record has {recorded}"
    if best.verdict == "rounds-to":
        words += ", which rounds to it"
    if best.verdict == "differs":
        words = (
            f"no row that fits has this figure; the nearest has {recorded}, and the stated one is "
            f"{best.gap:+.3g} % off"
        )
        if fitting := _find_unit(stated, figure, unit.strip(), rows):
            words += f"; {fitting}: is the unit wrong?"
    answer = {
        "verdict": best.verdict,
        "statement": f"{value} {unit}: {words}",
        "stated": {"value": str(stated), "unit": unit, "figure": figure},
        "rows_that_fit": len(rows),
        "rows_without_this_figure": len(selection.rows) - len(rows),
        "left_out": selection.left_out,
        "not_stated_and_varies": _list_open(
            rows, conditions, MAX_BRIEF if record.is_brief else MAX_VALUES
        ),
        "not_usable": [own.row["result_id"] for own in shown if not own.row["usable"]],
        "nearest": [
            {
                "result_id": own.row["result_id"],
                "recorded": own.row[figure],
                "unit": get_unit(figure, own.row),
                "stated_minus_recorded_percent": round(own.gap, 3),
            }
            for own in shown
        ],
        "results": results,
        "citation": citation,
    }
    if record.is_brief:
        del answer["stated"]
    return answer


def _list_open(
    rows: Sequence[Row], conditions: Mapping[str, Any], limit: int
) -> dict[str, list[Any]]:
    """List the values of the conditions that are not stated and in which the rows differ."""
    varying = {}
    for name in VARYING:
        values = list(dict.fromkeys(row[name] for row in rows))
        if conditions.get(name) is None and len(values) > 1:
            varying[name] = values[:limit]
            if len(values) > limit:
                varying[name].append(f"{len(values) - limit} more")
    return varying


def _judge(stated: Decimal, factor: Fraction, figure: float) -> tuple[str, float]:
    """Judge a stated value, which times `factor` has the unit of the recorded figure.

    The second value is how much percent it is above the figure.
    """
    recorded = Fraction(repr(figure)) / factor
    gap = float((Fraction(stated) - recorded) / recorded * 100) if recorded else math.inf
    # as the record converts it
    if Fraction(stated) == recorded or float(Fraction(stated) * factor) == figure:
        return "exact", gap
    digit = Decimal((0, (1,), int(stated.as_tuple().exponent)))
    exact = Decimal(recorded.numerator) / Decimal(recorded.denominator)
    if exact.quantize(digit, rounding=ROUND_HALF_UP) == stated:
        return "rounds-to", gap
    return "differs", gap


def _find_unit(stated: Decimal, figure: str, unit: str, rows: Sequence[Row]) -> str:
    """Say in which other unit of time a row has the stated figure; empty for none."""
    if len(stated.as_tuple().digits) < MIN_DIGITS:
        return ""
    for other in ("ms", "s", "min"):
        factor = convert_unit(other, get_unit(figure, {"item": None}) or "")
        if factor is None or other == unit:
            continue
        for row in rows:
            if _judge(stated, factor, row[figure])[0] != "differs":
                return f"in {other} it is the figure of {row['result_id']}"
    return ""


def _parse_value(value: Any) -> Decimal:
    text = str(value).strip().replace(",", "")
    if not NUMBER.fullmatch(text):
        reason = f"{value!r} is not a number above zero"
        raise RefusalError("wrong-input", reason, 'write digits, such as "20.66"')
    return Decimal(text)


def _keep_item(rows: Sequence[Row], item: str | None, unit: str) -> list[Row]:
    if item is None or item in GENERIC:
        return list(rows)
    kept = [row for row in rows if row["item"] == item]
    if not kept:
        items = ", ".join(sorted({str(row["item"]) for row in rows}))
        raise RefusalError(
            "different-items", f"the figure is stated in {unit}, and the record counts: {items}"
        )
    return kept


def _keep_latency(record: Record, rows: Sequence[Row], basis: str | None) -> list[Row]:
    if basis is None:
        return list(rows)
    bases = dict.fromkeys(get_latency_basis(row) for row in rows)
    same = list_same_latencies(record.connection, basis, bases)
    kept = [row for row in rows if get_latency_basis(row) in same]
    if not kept:
        others = ", ".join(sorted(str(own or NOT_STATED) for own in bases))
        raise RefusalError(
            "different-latencies",
            f"the latency is stated {basis}, and the rows that fit are: {others}",
        )
    return kept
