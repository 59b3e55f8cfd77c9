"""Compare a figure that somebody states with every row of the record that it may be of."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from ipu_results.doors.comparison.statements import Row, list_same_latencies
from ipu_results.doors.mcp.answers import Record, get_unit
from ipu_results.doors.mcp.brief import write_unit
from ipu_results.doors.mcp.names import name_value
from ipu_results.doors.mcp.pairs import format_figure
from ipu_results.doors.mcp.ranking import CHIPS, get_latency_basis
from ipu_results.doors.mcp.refusal import WORDS, Answer, RefusalError
from ipu_results.doors.mcp.rows import get_column, list_unusable, pick
from ipu_results.doors.mcp.selection import require_figure, select_rows
from ipu_results.kit.physics import convert_unit
from ipu_results.schema.vocabulary import load_vocabulary

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
MIN_DIGITS = 2  # of a claim that count: one digit fits some row by chance
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
VERDICTS = ("exact", "rounds-to", "differs")  # the best first


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
) -> Answer:
    """Compare a stated figure with every row that fits its conditions.

    `verdict` is `exact` if a row has this figure, `rounds-to` if a row has one that rounds to it at
    the stated digits, else `differs`. Raises RefusalError for a unit that does not fit, and where
    no measured row has such a figure.
    """
    stated = _parse_value(value)
    parsed = load_vocabulary().parse_stated_unit(figure, _abbreviate_unit(unit))
    if parsed is None:
        step = f"figures of this kind are in {get_unit(figure)}"
        raise RefusalError("different-units", f"{figure} has no unit {unit!r}", step)
    factor, item = parsed
    # what a document prints is to be found, whether or not it may be ranked
    selection = select_rows(record, conditions, ("repeated", "error", "suspect"))
    rows = _keep_item(require_figure(record, selection, figure), item, unit)
    rows = _keep_latency(record, rows, latency_basis)
    judged = [_judge(row, figure, stated, factor) for row in rows]
    judged.sort(key=_get_distance)
    best = judged[0]
    words = _describe_best(best, figure, stated)
    if best.verdict == "differs":
        words += _suggest_unit(stated, figure, unit.strip(), rows)
    limit = 1 if record.is_brief else MAX_NEAREST
    shown = [one for one in judged if one.verdict == best.verdict][:limit]
    shown_rows = [one.row for one in shown]
    results, citation = record.load(shown_rows, (figure,))
    nearest = [_describe_nearest(one, figure) for one in shown]
    varying = _list_varying(rows, conditions)
    answer = {
        "verdict": best.verdict,
        "statement": f"{value} {unit}: {words}",
        "stated": {"value": str(stated), "unit": unit, "figure": figure},
        "assumed": selection.assumed,
        "rows_that_fit": len(rows),
        "rows_without_this_figure": len(selection.rows) - len(rows),
        "left_out": selection.left_out,
        "not_stated_and_varies": varying,
        "not_usable": list_unusable(shown_rows),
        "nearest": nearest,
        "results": results,
        "citation": citation,
    }
    if not record.is_brief:
        return answer
    # the statement has these
    del answer["stated"], answer["rows_without_this_figure"]
    answer["not_stated_and_varies"] = list(varying)
    if best.verdict == "differs":
        # no condition would single the figure out
        del answer["not_stated_and_varies"]
    # the one result is shown as the nearest, with its figure
    [row] = results
    del row["figures"]
    row |= pick(nearest[0], ("recorded", "unit"))
    answer["nearest"] = [row]
    answer["results"] = []
    return answer


def _get_distance(judged: Judgement) -> tuple[int, float, bool]:
    """Return a key to sort by: the best verdict first, then the least gap, then usable rows."""
    return (VERDICTS.index(judged.verdict), abs(judged.gap), not judged.row["usable"])


def _describe_best(best: Judgement, figure: str, stated: Decimal) -> str:
    """Say what the record has, and how the stated figure is to it."""
    row = best.row
    unit = write_unit(get_unit(figure, row["item"]))
    recorded = f"{format_figure(row, figure, row[figure])} {unit} ({row['result_id']})"
    if best.verdict == "differs":
        return (
            f"no row that fits has this figure; the nearest has {recorded}, and the stated one is "
            f"{best.gap:+.3g} % off"
        )
    words = f"the record has {recorded}"
    if best.verdict == "rounds-to":
        words += ", which rounds to it"
        ends_in_zeros = _find_last_place(stated) > 0
        if ends_in_zeros:
            words += ", if its zeros are of rounding"
    return words


def _describe_nearest(judged: Judgement, figure: str) -> Answer:
    return {
        "result_id": judged.row["result_id"],
        "recorded": judged.row[figure],
        "unit": get_unit(figure, judged.row["item"]),
        "stated_minus_recorded_percent": round(judged.gap, 3),
    }


def _list_varying(rows: Sequence[Row], conditions: Row) -> Answer:
    """List the values of the conditions that are not stated and in which the rows differ."""
    varying: Answer = {}
    for name in VARYING:
        values = list(dict.fromkeys(get_column(rows, name)))
        if conditions.get(name) is None and len(values) > 1:
            varying[name] = values[:MAX_VALUES]
            if len(values) > MAX_VALUES:
                varying[name].append(f"{len(values) - MAX_VALUES} more")
    return varying


def _judge(row: Row, figure: str, stated: Decimal, factor: Fraction) -> Judgement:
    """Judge a stated value, which times `factor` has the unit of the recorded figure."""
    # repr has the digits of the record: the float itself may be a little off
    recorded = Fraction(repr(row[figure])) / factor
    exact = Fraction(stated)
    gap = float((exact - recorded) / recorded * 100) if recorded else math.inf
    half_a_digit = Fraction(10) ** _find_last_place(stated) / 2
    # the record may have converted it as a float
    if exact == recorded or float(exact * factor) == row[figure]:
        verdict = "exact"
    elif exact - half_a_digit <= recorded < exact + half_a_digit:
        verdict = "rounds-to"
    else:
        verdict = "differs"
    return Judgement(row, verdict, gap)


def _find_last_place(stated: Decimal) -> int:
    """Return the power of ten of the last digit that counts.

    Zeros at the end of a whole number may be of rounding, such as those of 9300. Two digits count
    at least.
    """
    exponent = int(stated.as_tuple().exponent)
    if exponent < 0:
        return exponent
    digits = str(stated)
    counting = max(len(digits.rstrip("0")), MIN_DIGITS)
    return max(len(digits) - counting, 0)


def _suggest_unit(stated: Decimal, figure: str, unit: str, rows: Sequence[Row]) -> str:
    """Ask whether another unit of time is meant, in which a row has the figure; empty for none."""
    unit_of_record = get_unit(figure)
    if unit_of_record is None or len(stated.as_tuple().digits) < MIN_DIGITS:
        return ""
    for other in ("ms", "s", "min"):
        factor = convert_unit(other, unit_of_record)
        if factor is None or other == unit:
            continue
        for row in rows:
            if _judge(row, figure, stated, factor).verdict != "differs":
                where = f"in {other} it is the figure of {row['result_id']}"
                return f"; {where}: is the unit wrong?"
    return ""


def _abbreviate_unit(unit: str) -> str:
    """Write a unit that is in words as a source prints it: `images per second` as images/s."""
    words = WORDS["unit_words"]
    parts = []
    for part in unit.replace(" per ", "/").split("/"):
        word = part.strip()
        parts.append(words.get(word.casefold(), word))
    return "/".join(parts)


def _parse_value(value: str | float) -> Decimal:
    text = str(value).strip().replace(",", "")
    if not NUMBER.fullmatch(text):
        reason = f"{value!r} is not a number above zero"
        raise RefusalError("wrong-input", reason, 'write digits, such as "20.66"')
    return Decimal(text)


def _keep_item(rows: list[Row], item: str | None, unit: str) -> list[Row]:
    if item is None or item in GENERIC:
        return rows
    kept = [row for row in rows if row["item"] == item]
    if not kept:
        items = ", ".join(sorted(set(map(name_value, get_column(rows, "item")))))
        reason = f"the figure is stated in {unit}, and the record counts: {items}"
        raise RefusalError("different-items", reason)
    return kept


def _keep_latency(record: Record, rows: list[Row], basis: str | None) -> list[Row]:
    """Keep the rows whose latency may time the same; one that does not say may fit, too."""
    if basis is None:
        return rows
    bases = dict.fromkeys(map(get_latency_basis, rows))
    same = list_same_latencies(record.connection, basis, bases)
    kept = [row for row in rows if get_latency_basis(row) in same]
    if not kept:
        others = ", ".join(sorted(map(name_value, bases)))
        reason = f"the latency is stated {basis}, and the rows that fit are: {others}"
        raise RefusalError("different-latencies", reason)
    return kept
