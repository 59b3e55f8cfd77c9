"""Check a figure that someone states against what the record prints."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from ipu_results.comparison.comparable import find_figure_obstacle
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.serve.answers import Record, RefusalError, Row, get_unit
from ipu_results.serve.pairs import build_from_row
from ipu_results.serve.selection import require_figure, select_rows

MAX_NEAREST = 5
MAX_VALUES = 10
VARYING = (
    *("relationship", "division", "mlperf_round", "phase", "sequence_length", "packed", "batch_size", "framework"),
    *("sdk_version", "variant", "chips"),
)
TIMES = {
    "us": "1/1000000",
    "µs": "1/1000000",
    "ms": "1/1000",
    "s": "1",
    "sec": "1",
    "min": "60",
    "mins": "60",
    "h": "3600",
}
BASE = {"latency_ms": "ms", "minutes": "min", "time_to_result_s": "s"}
POWERS = {"W": "1", "kW": "1000", "mW": "0.001"}
ENERGIES = {"J": "1", "mJ": "0.001", "kJ": "1000", "Wh": "3600", "kWh": "3600000"}
GENERIC = frozenset({"item", "sample"})  # of any network
SHORT = {"img": "image", "seq": "sequence", "sec": "s"}
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def check_claimed_figure(record: Record, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Compare a stated figure with every row that fits its conditions.

    `verdict` is `exact` if a row has this figure, `rounds-to` if a row has one that rounds to it at the stated digits,
    else `differs`. Raises RefusalError for a unit that does not fit, and where no measured row has such a figure.
    """
    figure, unit = arguments["figure"], arguments["unit"]
    value = _parse_value(arguments["value"])
    factor, item = _parse_unit(figure, unit)
    # a row that does not say what its latency times may fit
    selection = select_rows(record, {**arguments, "latency_basis": None}, repeats=True)
    rows = _keep_item(require_figure(record, selection, figure), item, unit)
    rows = _keep_latency(rows, arguments.get("latency_basis"))
    order = {"exact": 0, "rounds-to": 1, "differs": 2}
    judged = sorted(
        ((*_judge(value, factor, row[figure]), row) for row in rows),
        key=lambda entry: (order[entry[0]], abs(entry[1]), entry[2]["same_as"] is not None),
    )
    verdict = judged[0][0]
    shown = [entry for entry in judged if entry[0] == verdict][:MAX_NEAREST]
    results, citation = record.load([row["result_id"] for _, _, row in shown])
    return {
        "verdict": verdict,
        "statement": _describe_claim(verdict, arguments, judged[0][1], judged[0][2]),
        "stated": {"value": str(value), "unit": unit, "figure": figure},
        "rows_that_fit": len(rows),
        "rows_without_this_figure": len(selection.rows) - len(rows),
        "left_out": selection.left_out,
        "not_stated_and_varies": _list_varying(rows, arguments),
        "flagged": [row["result_id"] for _, _, row in shown if row["errors"] or row["suspect"]],
        "nearest": [
            {
                "result_id": row["result_id"],
                "recorded": row[figure],
                "unit": get_unit(figure, row),
                "stated_minus_recorded_percent": round(gap, 3),
            }
            for _, gap, row in shown
        ],
        "results": results,
        "citation": citation,
    }


def _list_varying(rows: Sequence[Row], arguments: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the conditions that the claim leaves open and in which the rows differ."""
    values = {name: list(dict.fromkeys(row[name] for row in rows)) for name in VARYING if arguments.get(name) is None}
    return {name: known[:MAX_VALUES] for name, known in values.items() if len(known) > 1}


def _describe_claim(verdict: str, arguments: Mapping[str, Any], gap: float, row: Row) -> str:
    stated = f"{arguments['value']} {arguments['unit']}"
    recorded = f"{row[arguments['figure']]!r} {get_unit(arguments['figure'], row)} ({row['result_id']})"
    words = {"exact": f"the record has {recorded}", "rounds-to": f"the record has {recorded}, which rounds to it"}
    far = f"no row that fits has this figure; the nearest has {recorded}, and the stated one is {gap:+.3g} % off"
    return f"{stated}: {words.get(verdict, far)}"


def _judge(stated: Decimal, factor: Fraction, figure: float) -> tuple[str, float]:
    """Judge a stated value, which times `factor` has the unit of the recorded figure."""
    recorded = Fraction(repr(figure)) / factor
    gap = float((Fraction(stated) - recorded) / recorded * 100) if recorded else math.inf
    if Fraction(stated) == recorded or float(Fraction(stated) * factor) == figure:  # as the record converts it
        return "exact", gap
    digit = Decimal((0, (1,), int(stated.as_tuple().exponent)))
    rounded = (Decimal(recorded.numerator) / Decimal(recorded.denominator)).quantize(digit, rounding=ROUND_HALF_UP)
    return ("rounds-to" if rounded == stated else "differs"), gap


def _parse_value(value: Any) -> Decimal:
    text = str(value).strip().replace(",", "")
    try:
        if not NUMBER.fullmatch(text):
            raise InvalidOperation
        return Decimal(text)
    except InvalidOperation as error:
        step = 'write the digits of the claim, such as "20.66"'
        raise RefusalError("wrong-input", f"{value!r} is not a number above zero", step) from error


def _parse_unit(figure: str, unit: str) -> tuple[Fraction, str | None]:
    """Return the factor from the stated unit to that of the column, and the item that the unit names."""
    text = unit.strip()
    if figure in BASE and text in TIMES:
        return Fraction(TIMES[text]) / Fraction(TIMES[BASE[figure]]), None
    if figure == "power_w" and text in POWERS:
        return Fraction(POWERS[text]), None
    if figure == "quality_value":
        return Fraction(1), None
    column = {"minutes": "time_to_train_s"}.get(figure, figure)
    printed = load_vocabulary().find_unit(column, text)
    if printed is not None:  # as a source prints it
        return Fraction(printed.factor) / (60 if figure == "minutes" else 1), printed.item
    name, _, item = text.partition("/")
    if figure in ("energy_per_item_j", "run_energy_j") and name in ENERGIES:
        return Fraction(ENERGIES[name]), _name_item(item) if item else None
    parts = [SHORT.get(part, part) for part in text.split("/")]
    if parts[1:] == {"throughput": ["s"], "efficiency": ["s", "W"]}.get(figure) and parts[0]:
        return Fraction(1), _name_item(parts[0])
    known = get_unit(figure, {"item": None})
    raise RefusalError("different-units", f"{figure} has no unit {unit!r}", f"figures of this kind are in {known}")


def _name_item(text: str) -> str:
    item = text.removesuffix("s")
    return SHORT.get(item, item)


def _keep_item(rows: Sequence[Row], item: str | None, unit: str) -> list[Row]:
    if item is None or item in GENERIC:
        return list(rows)
    kept = [row for row in rows if row["item"] == item]
    if not kept:
        items = ", ".join(sorted({str(row["item"]) for row in rows}))
        raise RefusalError("different-items", f"the figure is stated in {unit}, and the record counts: {items}")
    return kept


def _keep_latency(rows: Sequence[Row], basis: str | None) -> list[Row]:
    if basis is None:
        return list(rows)
    kept = []
    for row in rows:
        stated = build_from_row({**row, "latency_basis": basis, "latency_kind": None})
        if find_figure_obstacle("latency_ms", stated, row) is None:
            kept.append(row)
    if not kept:
        bases = ", ".join(sorted({str(row["latency_basis"] or row["latency_kind"] or "not stated") for row in rows}))
        raise RefusalError("different-latencies", f"the latency is stated {basis}, and the rows that fit are: {bases}")
    return kept
