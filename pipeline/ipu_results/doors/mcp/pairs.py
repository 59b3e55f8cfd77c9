"""Compare two results of the record, or the figures of a user's run with it; what is not comparable
is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from ipu_results.doors.cite.facts import COMPUTED_DIGITS, EMULATED, SUBMITTED
from ipu_results.doors.comparison.measurement import FIGURES
from ipu_results.doors.comparison.statements import (
    Row,
    load_results,
    open_session,
    run_one,
    run_statements,
)
from ipu_results.doors.comparison.verdict import Comparison, build_stated, judge
from ipu_results.doors.mcp.answers import Record, get_unit
from ipu_results.doors.mcp.brief import describe_match, shorten_comparison, write_unit
from ipu_results.doors.mcp.ranking import (
    DIVISIBLE,
    PER_CHIP,
    SAME,
    WHOLE,
    get_share,
    is_divided,
)
from ipu_results.doors.mcp.refusal import Answer, RefusalError, join_refusals
from ipu_results.doors.mcp.rows import get_column, list_stated, round_digits
from ipu_results.errors import ComparisonError
from ipu_results.kit.sql import Connection
from ipu_results.kit.statements import run_statement
from ipu_results.kit.text import format_float
from ipu_results.schema.usable import describe_doubtful

# why rows of the run's model and task are not usable, null for a usable one
UNUSABLE = "SELECT c.unusable FROM mine JOIN candidates c USING (model, task)"
# `differences` tells a run from its nearest row: of a pair that is the second result
NEAREST = "CREATE TEMP TABLE nearest AS SELECT 1 AS run, $1 AS result_id, 1 AS position"


def compare_two(
    record: Record,
    first_result_id: str,
    second_result_id: str,
    figure: str | None = None,
    chips_basis: str = SAME,
    emulated: bool = False,
) -> Answer:
    """Compare a figure of two results.

    Raises RefusalError with the reason where they may not be compared.
    """
    first = record.get_row(first_result_id)
    second = record.get_row(second_result_id)
    is_reprint = first["same_as"] == second_result_id or second["same_as"] == first_result_id
    if is_reprint or first_result_id == second_result_id:
        raise RefusalError("same-measurement", "both ids are of one measurement")
    predicted = [row for row in (first, second) if row["origin"] == EMULATED]
    if predicted and not emulated:
        reason = f"{', '.join(get_column(predicted, 'result_id'))}: emulated, not measured"
        step = "ask with emulated true to set a prediction against a figure"
        raise RefusalError("emulated-not-measured", reason, step)
    apart = []
    for column, code in (("task", "different-tasks"), ("model", "different-networks")):
        if first[column] != second[column]:
            apart.append(RefusalError(code, f"{column}: {first[column]} / {second[column]}"))
    if apart:
        raise join_refusals(apart)
    chosen = _choose_figure(first, second, figure)
    with open_pair(record, first, second) as session:
        obstacles = find_pair_obstacles(session, chosen, chips_basis)
        if obstacles:
            raise _refuse_pair(obstacles, chosen, chips_basis)
        session.execute(NEAREST, [second_result_id])
        run_one(session, "differences")
        [pair] = run_statement(session, "serve/pair.sql", {"figure": chosen}).to_pylist()
    unit = get_unit(chosen, first["item"])
    divided = is_divided(chosen, chips_basis)
    if divided:
        unit = f"{unit}/chip"
    ours = get_share(first, chosen, chips_basis)
    theirs = get_share(second, chosen, chips_basis)
    statement = (
        f"{format_figure(first, chosen, ours)} {write_unit(unit)} /"
        f" {format_figure(second, chosen, theirs)} {write_unit(unit)} = {ours / theirs:.4g}"
    )
    results, citation = record.load([first, second], ())
    answer: Answer = {
        "figure": chosen,
        "unit": unit,
        "first": ours,
        "second": theirs,
        "ratio": ours / theirs,
        "statement": statement,
        "what_differs": pair["what_differs"],
        "results": results,
        "citation": citation,
    }
    if record.is_brief:  # the statement has both figures
        del answer["first"], answer["second"]
    if pair["low"] is not None and not divided:  # the interval is of the whole machines
        answer["ratio_interval"] = [pair["low"], pair["high"]]
    return answer


class Obstacle(NamedTuple):
    """Why a figure of two rows may not be compared; `code` names the rule for programs."""

    code: str
    reason: str


@contextmanager
def open_pair(record: Record, first: Row, second: Row) -> Iterator[Connection]:
    """Give a session in which each of two rows of the record is a run that is held against both."""
    ids = get_column([first, second], "result_id")
    with open_session(record.connection, "list_contains($ids, result_id)", {"ids": ids}) as session:
        # rows that are named may be compared, repeated ones, too
        session.execute("UPDATE candidates SET unusable = NULL")
        load_results(session, ids)
        run_statements(session, "shared_figures")
        yield session


def _refuse_pair(obstacles: Sequence[Obstacle], figure: str, basis: str) -> RefusalError:
    """Refuse a pair, and name all that keeps it apart.

    Where nothing but the size of the machines does, the arguments have the basis that passes.
    """
    [first, *others] = obstacles
    if others or first.code not in ("different-chip-counts", "unknown-chip-count"):
        return join_refusals([RefusalError(*obstacle) for obstacle in obstacles])
    bases = [WHOLE]
    if figure in DIVISIBLE and first.code == "different-chip-counts":
        bases = [PER_CHIP, WHOLE]
    passing = [other for other in bases if other != basis]
    step = f"ask with chips_basis {' or '.join(passing)} to compare machines of different size"
    return RefusalError(first.code, first.reason, step, {"chips_basis": passing[0]})


def _choose_figure(first: Row, second: Row, figure: str | None) -> str:
    """Return the figure, or the first that both rows have. Raises RefusalError without one."""
    ours = list_stated(first, FIGURES)
    theirs = list_stated(second, FIGURES)
    shared = [name for name in ours if name in theirs]
    if not shared:
        reason = f"no figure in common: {', '.join(ours)} / {', '.join(theirs)}"
        raise RefusalError("different-figures", reason)
    if figure is None:
        return shared[0]
    if figure not in shared:
        blank = [row for row in (first, second) if row[figure] is None]
        missing = " and ".join(get_column(blank, "result_id"))
        reason = f"{missing}: {figure} is not printed; it is unknown, and it is not zero"
        raise RefusalError("not-printed", reason, f"both print {', '.join(shared)}")
    return figure


def find_pair_obstacles(session: Connection, figure: str, basis: str) -> list[Obstacle]:
    """Return why a figure of the two rows of `open_pair` may not be compared; none where it may."""
    can_divide = is_divided(figure, PER_CHIP)
    values = {"figure": figure, "basis": basis, "can_divide": can_divide}
    found = run_statement(session, "serve/pair_obstacles.sql", values)
    return [Obstacle(**row) for row in found.to_pylist()]


def format_figure(row: Row, figure: str, value: float) -> str:
    """Format a figure or its share for the eye: a printed one with all digits, a computed one as a
    citation has it.
    """
    is_printed = row["origin"] == "published" and value == row[figure]
    if not is_printed:
        value = round_digits(value, COMPUTED_DIGITS)
    return format_float(value)


def compare_run(record: Record, **figures: str | float | bool) -> Answer:
    """Compare figures of a user's run with the nearest rows of the record."""
    try:
        stated = build_stated(figures, record.words)
    except ComparisonError as error:
        # the error has no code of its own, only words
        code = "unknown-word" if "unknown" in error.message else "wrong-input"
        raise RefusalError(code, error.message) from error
    values = {"model": stated.model, "submitted": SUBMITTED}
    where = "model = $model AND relationship IS DISTINCT FROM $submitted"
    with open_session(record.connection, where, values) as session:
        [comparison] = judge(session, [stated])
        if not comparison.matches and comparison.status == "no-comparable-row":
            raise _build_refusal(session, comparison)
        left_out = comparison.unusable
        if record.is_brief:
            unusable = session.sql(UNUSABLE).to_arrow_table()["unusable"].to_pylist()
            left_out = describe_doubtful(unusable)
    # predictions last
    nearest = sorted(
        comparison.matches, key=lambda match: (match.group == EMULATED, match.distance)
    )
    shown = nearest[:1] if record.is_brief else nearest
    results, citation = record.load([match.row for match in shown])
    in_order = replace(comparison, matches=tuple(nearest))
    answer = in_order.to_record()
    described = {
        "verdict": comparison.verdict,
        "comparison_status": comparison.status,
        "figures_compared": comparison.measurement.figures,
        "assumed": list(comparison.measurement.remarks),
        "nearest": list(map(describe_match, answer["matches"])),
        "plausibility": answer["checks"],
        "not_compared": answer["refusals"],
        "left_out": left_out,
        "results": results,
        "citation": citation,
    }
    return shorten_comparison(described) if record.is_brief else described


def _build_refusal(session: Connection, comparison: Comparison) -> RefusalError:
    """Refuse for the reason that the most rows have that print a figure which the user states."""
    ours = comparison.measurement
    found = run_statement(session, "comparison/objections.sql").to_pylist()
    if not found:
        reason = f"no row of {ours.model} prints {' or '.join(ours.figures)}"
        return RefusalError("different-figures", reason)
    [objection] = found
    # the reasons are of rows: that no row has the stated variant is a remark
    remarks = [remark for remark in ours.remarks if remark.startswith("variant ")]
    described = "; ".join([objection["reasons"], *remarks])
    return RefusalError(objection["code"], f"no row may be compared: {described}")
