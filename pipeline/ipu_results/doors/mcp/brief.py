"""What a brief answer leaves out of a row, a claim or a comparison, and how texts name units."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ipu_results.doors.comparison.statements import Row
from ipu_results.doors.mcp.refusal import WORDS, Answer
from ipu_results.kit.text import to_json_value

SHOWN: Mapping[str, list[str]] = WORDS["shown"]
MAX_BRIEF = 3  # rows, claims or pairs of a brief answer, unless a limit is stated
MAX_RECOMPUTED = 2  # of a brief claim: the lowest and the highest
NOT_STATED = "not stated"
LINE_DIGITS = 9  # of a figure in a line
# who measured and how, in a row
WHO = ("relationship", "interest", "origin", "status")
# the interest and origin that a relationship says
USUAL: Mapping[str | None, Mapping[str, str]] = {
    "vendor": {"interest": "maker", "origin": "published"},
    "independent": {"interest": "neither", "origin": "published"},
    "official": {"origin": "official", "status": "unverified"},
    "own": {"interest": "own", "origin": "measured"},
    "submitted": {"interest": "submitted", "origin": "measured"},
}
# conditions that are of these figures alone
LATENCIES = frozenset({"latency_ms"})
POWERS = frozenset({"power_w", "efficiency", "energy_per_item_j", "run_energy_j"})
CONDITIONS_OF = {
    "latency_basis": LATENCIES,
    "latency_scope": LATENCIES,
    "power_scope": POWERS,
}
TEXTS = ("division", "mlperf_round")  # too short to look for in a description
NUMBER = re.compile(r"\d[\d,]*(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)
PRINTED_DIGITS = 1e-8  # a computed figure is printed with nine digits
RATIO_DIGITS = 6
RATE = re.compile(r"^(\w+)/s")


def drop_empty(value: Any) -> Any:
    """Leave out what is null or empty, at any depth."""
    if isinstance(value, (list, tuple)):
        return [drop_empty(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    short = {name: drop_empty(item) for name, item in value.items()}
    return {name: item for name, item in short.items() if item not in (None, "", [], {})}


def _shorten_row(described: Answer, names: Collection[str]) -> Answer:
    """Leave out what a row says twice, places and remarks of quality rules; errors, warnings on its
    figures, and the names of other warnings stay.

    `names` are the figures to keep. Without any, the rest of the answer has figures and conditions.
    """
    figures = {}
    for name, figure in described["figures"].items():
        if name in names:
            figures[name] = _shorten_figure(figure)
    shown = [flag for flag in described["flags"] if flag["severity"] != "info"]
    short = {
        "result_id": described["result_id"],
        "what": described["what"],
        **_describe_who(described),
        "usable": None if described["usable"] else False,
        "figures": figures,
        "flags": [_shorten_flag(flag) for flag in shown if _has_message(flag, figures)],
        "also_flagged": _name_flags(flag for flag in shown if not _has_message(flag, figures)),
        "conditions": _shorten_conditions(described, figures) if names else {},
        "written_by": described["written_by"],
    }
    shortened: Answer = drop_empty(short)
    return shortened


def _describe_who(described: Answer) -> Answer:
    """Return who measured and how; interest and origin only where the relationship does not say."""
    usual = USUAL.get(described["relationship"], {})
    who = {name: described[name] for name in WHO}
    return {name: value for name, value in who.items() if value != usual.get(name)}


def _shorten_figure(figure: Answer) -> Answer:
    """Leave out the printed text where the value says the same; computed digits go by the text."""
    text = figure["as_printed"]
    short = {"value": figure["value"], "unit": figure["unit"], "as_printed": text}
    number = NUMBER.search(text or "")
    if number is None or figure["unit"] is None:
        return short
    digits = number[0].replace(",", "")
    printed = float(digits)
    if not math.isclose(printed, figure["value"], rel_tol=PRINTED_DIGITS):  # in another unit
        return short
    short["value"] = int(printed) if printed.is_integer() else printed
    if str(short["value"]) == digits:  # 1.030 says more than 1.03
        short["as_printed"] = None
    return short


def _has_message(flag: Answer, figures: Collection[str]) -> bool:
    return flag["severity"] == "error" or flag["column_name"] in figures


def _shorten_flag(flag: Answer) -> Answer:
    """Leave out the message of an error, which the citation has."""
    return {**flag, "message": None} if flag["severity"] == "error" else flag


def _name_flags(flags: Iterable[Answer]) -> list[str]:
    """Name flags by rule and column."""
    return [f"{flag['rule']} {flag['column_name']}" for flag in flags]


def _shorten_conditions(described: Answer, figures: Collection[str]) -> Answer:
    """Leave out the conditions that `what` says, and those of figures that are not shown."""
    what = described["what"].casefold()
    short = {}
    for name, value in described["conditions"].items():
        about = CONDITIONS_OF.get(name)
        if name in SHOWN["implied"] or (about and about.isdisjoint(figures)):
            continue
        if name == "packed" and not value:  # the usual case
            continue
        word = f"sl{value}" if name == "sequence_length" else str(value).casefold()
        if name in TEXTS or word not in what:
            short[name] = value
    if described["conditions"].get("mlperf_round"):
        short.pop("benchmark", None)  # MLPerf Training is the only one with rounds
    return short


def shorten_rows(described: Sequence[Answer], names: Collection[str]) -> list[Answer]:
    """Shorten rows, and leave out of the later ones what they share with the first, and the
    messages of warnings.

    A condition that only the first states is `not stated` in a later one. `what` keeps the parts
    that differ, and names what only the first states.
    """
    rows = [_shorten_row(row, names) for row in described]
    later = []
    for row, whole in zip(rows[1:], described[1:], strict=True):
        short = _leave_out_shared(row, rows[0], whole["conditions"])
        later.append(_name_blanks(short, whole["conditions"], described[0]["conditions"]))
    return rows[:1] + later


def _leave_out_shared(row: Answer, first: Answer, stated: Answer) -> Answer:
    """Leave out of a later row what it shares with the first; `stated` are all its conditions."""
    later = {**row, "what": _keep_differing(row["what"], first["what"])}
    if all(row.get(name) == first.get(name) for name in WHO):
        for name in WHO:
            later.pop(name, None)
    later["figures"] = _drop_units(row.get("figures", {}), first.get("figures", {}))
    shared = first.get("conditions", {})
    conditions = {**row.get("conditions", {})}
    for name in shared:
        value = stated.get(name)
        conditions[name] = NOT_STATED if value is None else value
    later["conditions"] = {
        name: value for name, value in conditions.items() if value != shared.get(name)
    }
    later["flags"] = [{**flag, "message": None} for flag in row.get("flags", [])]
    shortened: Answer = drop_empty(later)
    return shortened


def _keep_other_parts(value: Any, first: Any) -> Any:
    """Leave out of a list in words, such as `Run Mode = A; Degree = 2`, what the first row has."""
    if not (isinstance(value, str) and isinstance(first, str)):
        return value
    parts = value.split("; ")
    others = first.split("; ")
    if len(parts) != len(others):
        return value
    return "; ".join(part for part in parts if part not in others)


def write_line(row: Answer, first: Answer, publisher: str) -> str:
    """Write a later row as a line: its id, figures, what differs from the first, and its flags.

    `publisher` is empty where it is that of the first row.
    """
    figures: dict[str, str] = {}
    for name, figure in row.get("figures", {}).items():
        words = f"{_cut_digits(figure['value'])} {figure.get('unit', '')}".strip()
        if "per_chip" in figure:
            words += f" ({figure['per_chip']:.6g} per chip)"
        figures[name] = words
    values = list(figures.values())
    if len(figures) > 1:
        values = [f"{name} {value}" for name, value in figures.items()]
    parts = [f"{row['result_id']}: {', '.join(values)}", row.get("what", ""), publisher]
    parts += [row[name] for name in WHO if name in row]
    shared = first.get("conditions", {})
    for name, value in row.get("conditions", {}).items():
        parts.append(f"{name} {_keep_other_parts(value, shared.get(name))}")
    flags = [f"{flag['rule']} {flag['column_name']}" for flag in row.get("flags", [])]
    if flags:
        parts.append(f"flagged {' '.join(flags)}")
    if "usable" in row:
        parts.append("not usable")
    return "; ".join(part for part in parts if part)


def _cut_digits(value: float) -> float:
    """Cut the digits of a computed figure; a whole number has all of its own."""
    return value if float(value).is_integer() else float(f"{value:.{LINE_DIGITS}g}")


def _keep_differing(what: str, first: str) -> str:
    others = first.split(", ")
    return ", ".join(part for part in what.split(", ") if part not in others)


def _name_blanks(row: Answer, stated: Answer, first: Answer) -> Answer:
    """Name in `what` the conditions that the first row states and this one does not: without that,
    they would pass for the same.
    """
    blanks = [
        name for name in SHOWN["what"] if stated.get(name) is None and first.get(name) is not None
    ]
    what = ", ".join([*filter(None, [row.get("what")]), f"{NOT_STATED}: {', '.join(blanks)}"])
    return {**row, "what": what} if blanks else row


def _drop_units(figures: Answer, first: Answer) -> Answer:
    """Leave out the unit of a figure where the first row has the same."""
    short = {}
    for name, figure in figures.items():
        is_same = name in first and first[name].get("unit") == figure.get("unit")
        short[name] = {**figure, "unit": None} if is_same else figure
    return short


def describe_match(match: Answer) -> Answer:
    """Describe a row that is nearest to a run."""
    described = {name: match[name] for name in SHOWN["match"]}
    described["result_id"] = match["row"]["result_id"]
    described["what_differs"] = match["differences"]
    return described


def shorten_comparison(answer: Answer) -> Answer:
    """Keep of a comparison the verdict, the nearest row with its ratios, and what the verdict does
    not say: of checks, those that failed.
    """
    nearest = answer["nearest"]
    short = {**answer, "figures_compared": None, "results": [], "plausibility": []}
    if nearest:
        figures = answer["results"][0]["figures"]
        short["nearest"] = [_shorten_match(nearest[0], figures)]
        short["not_compared"] = []
    short["not_compared"] = [
        {"reason": refused["reason"], "rows": refused["rows"]}
        for refused in short["not_compared"][:1]
    ]
    short["more_groups"] = [match["group"] for match in nearest[1:]]
    for check in answer["plausibility"]:
        if check["outcome"] in ("impossible", "doubtful"):
            message = None if check["message"] in answer["verdict"] else check["message"]
            failed = {"name": check["name"], "outcome": check["outcome"], "message": message}
            short["plausibility"].append(failed)
    return short


def _shorten_match(match: Answer, figures: Answer) -> Answer:
    """Keep of a match its ratios with the row's figures, and the conditions that both state."""
    ratios = []
    for ratio in match["ratios"]:
        figure = figures[ratio["figure"]]
        short = {"figure": ratio["figure"]}
        for name in ("ratio", "low", "high"):
            short[name] = ratio[name] and float(f"{ratio[name]:.{RATIO_DIGITS}g}")
        ratios.append({**short, "recorded": figure["value"], "unit": figure["unit"]})
    return {
        "result_id": match["result_id"],
        "group": match["group"],
        "ratios": ratios,
        "what_differs": [
            f"{difference['what']}: {difference['ours']} / {difference['theirs']}"
            for difference in match["what_differs"]
            if difference["ours"] and difference["theirs"]
        ],
    }


def shorten_cell(cell: Answer) -> Answer:
    """Leave out what the citation says, and the place in our file where that in the source is
    known.
    """
    repeated = {"title", "source_url"}
    if cell["source_locator"]:
        repeated |= {"locator", "locator_in"}
    if cell["factor"] == 1:  # as printed
        repeated.add("factor")
    return {name: value for name, value in cell.items() if name not in repeated}


def describe_claims(rows: Sequence[Row], *, is_brief: bool) -> list[Answer]:
    """Describe claims with their verdicts; of a brief answer the first alone has its values."""
    described: list[Answer] = []
    for row in rows:
        if is_brief and described:
            described.append({name: row[name] for name in SHOWN["claim_brief"]})
        else:
            described.append(_describe_claim(row, is_brief=is_brief))
    return described


def _describe_claim(row: Row, *, is_brief: bool) -> Answer:
    """Describe a claim with its verdict; a brief one has of many recomputations the ends."""
    names = SHOWN["claim"] if is_brief else SHOWN["claim"] + SHOWN["claim_whole"]
    described = {name: to_json_value(row[name]) for name in names}
    recomputed = json.loads(row["recomputed"] or "[]")
    if is_brief and len(recomputed) > MAX_RECOMPUTED:
        described["recomputations"] = len(recomputed)
        in_order = sorted(recomputed, key=lambda entry: float(entry["value"]))
        recomputed = [in_order[0], in_order[-1]]
    if is_brief:
        recomputed = [
            {"value": entry["value"], "arithmetic": entry["arithmetic"]} for entry in recomputed
        ]
    described["recomputed"] = recomputed
    if not is_brief:
        described["origin"] = "published"
        described["publisher"] = row["publisher"]
    return described


def write_unit(unit: str | None) -> str:
    """Write the unit of a rate as a reader does: images/s, which is image/s in the data."""
    return RATE.sub(r"\1s/s", unit or "")
