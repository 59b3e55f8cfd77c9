"""What a brief answer leaves out of a row, a claim or a comparison, and how texts name units."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ipu_results.doors.comparison.statements import Row
from ipu_results.doors.mcp.names import NOT_STATED
from ipu_results.doors.mcp.refusal import WORDS, Answer
from ipu_results.doors.mcp.rows import get_column, pick, round_digits
from ipu_results.kit.text import to_json_value

SHOWN: Mapping[str, list[str]] = WORDS["shown"]
MAX_BRIEF = 3  # rows, claims or pairs of a brief answer, unless a limit is stated
MAX_RECOMPUTED = 2  # of a brief claim: the lowest and the highest
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
LATENCIES = {"latency_ms"}
POWERS = {"power_w", "efficiency", "energy_per_item_j", "run_energy_j"}
CONDITIONS_OF = {
    "latency_basis": LATENCIES,
    "latency_scope": LATENCIES,
    "power_scope": POWERS,
}
# too short to look for in a description: `2.0` may be anything there
NOT_LOOKED_FOR = ("division", "mlperf_round")
NUMBER = re.compile(r"\d[\d,]*(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)
PRINTED_TOLERANCE = 1e-8  # relative: a computed figure is printed with nine digits
RATIO_DIGITS = 6
RATE = re.compile(r"^(\w+)/s")


def drop_empty(value: Any) -> Any:
    """Leave out what is null or empty, at any depth."""
    if isinstance(value, (list, tuple)):
        return list(map(drop_empty, value))
    if not isinstance(value, Mapping):
        return value
    short = {}
    for name, item in value.items():
        kept = drop_empty(item)
        if kept not in (None, "", [], {}):
            short[name] = kept
    return short


def shorten_rows(described: Sequence[Answer], names: Collection[str]) -> list[Answer]:
    """Shorten rows, and leave out of the later ones what they share with the first.

    `names` are the figures to keep. Without any, rows have no conditions, either: the rest of the
    answer has both. A later row has the parts of `what` that differ, `not stated` for a condition
    that only the first states, and no messages of warnings.
    """
    rows = [_shorten_row(row, names) for row in described]
    for row, whole in zip(rows[1:], described[1:], strict=True):
        row["what"] = _keep_differing(row["what"], rows[0]["what"])
        blanks = _list_blanks(whole["conditions"], described[0]["conditions"])
        if blanks:
            parts = [row["what"], f"{NOT_STATED}: {blanks}"]
            row["what"] = ", ".join(filter(None, parts))
        _leave_out_shared(row, rows[0], whole["conditions"])
    return list(map(drop_empty, rows))


def _shorten_row(described: Answer, names: Collection[str]) -> Answer:
    """Leave out what a row says twice, places and remarks of quality rules; errors, warnings on its
    figures, and the names of other warnings stay.
    """
    figures = {}
    for name, figure in described["figures"].items():
        if name in names:
            figures[name] = _shorten_figure(figure)
    conditions = {}
    if names:
        conditions = _shorten_conditions(described, figures)
    flags = []
    others = []
    for flag in described["flags"]:
        if flag["severity"] == "info":
            continue
        if flag["severity"] == "error":
            flags.append(_drop_message(flag))  # the citation has it
        elif flag["column_name"] in figures:
            flags.append(flag)
        else:
            others.append(_name_flag(flag))
    return {
        "result_id": described["result_id"],
        "what": described["what"],
        **_describe_who(described),
        "usable": None if described["usable"] else False,  # null is left out: most are usable
        "figures": figures,
        "flags": flags,
        "also_flagged": others,
        "conditions": conditions,
        "written_by": described["written_by"],
    }


def _describe_who(described: Answer) -> Answer:
    """Return who measured and how; interest and origin only where the relationship does not say."""
    usual = USUAL.get(described["relationship"], {})
    unusual = {}
    for name in WHO:
        if described[name] != usual.get(name):
            unusual[name] = described[name]
    return unusual


def _shorten_figure(figure: Answer) -> Answer:
    """Leave out the printed text where the value says the same.

    A value that was computed to more digits than the text has gets those of the text.
    """
    short = pick(figure, ("value", "unit", "as_printed"))
    number = NUMBER.search(figure["as_printed"] or "")
    if number is None or figure["unit"] is None:
        return short
    digits = number[0].replace(",", "")
    printed = float(digits)
    if not math.isclose(printed, figure["value"], rel_tol=PRINTED_TOLERANCE):  # in another unit
        return short
    short["value"] = int(printed) if printed.is_integer() else printed
    if str(short["value"]) == digits:  # 1.030 says more than 1.03
        short["as_printed"] = None
    return short


def _drop_message(flag: Answer) -> Answer:
    return {**flag, "message": None}


def _name_flag(flag: Answer) -> str:
    return f"{flag['rule']} {flag['column_name']}"


def _shorten_conditions(described: Answer, figures: Collection[str]) -> Answer:
    """Leave out the conditions that `what` says, and those of figures that are not shown."""
    what = described["what"].casefold()
    short = {}
    for name, value in described["conditions"].items():
        is_of_others = name in CONDITIONS_OF and CONDITIONS_OF[name].isdisjoint(figures)
        is_usual = name == "packed" and not value
        if not (is_of_others or is_usual or _is_said(name, value, what)):
            short[name] = value
    if described["conditions"].get("mlperf_round"):
        short.pop("benchmark", None)  # MLPerf Training is the only one with rounds
    stated: Answer = drop_empty(short)
    return stated


def _is_said(name: str, value: object, what: str) -> bool:
    """Return whether a description says a condition."""
    if name in SHOWN["implied"]:
        return True
    if name in NOT_LOOKED_FOR:
        return False
    if name == "sequence_length":
        return f"sl{value}" in what
    return str(value).casefold() in what


def _keep_differing(what: str, first: str, separator: str = ", ") -> str:
    """Keep the parts of a list in words that the first row's list does not have."""
    others = first.split(separator)
    return separator.join(part for part in what.split(separator) if part not in others)


def _list_blanks(stated: Answer, first: Answer) -> str:
    """Name the conditions that `what` of the first row states and a later row does not state: they
    would pass for the same.
    """
    blanks = []
    for name in SHOWN["what"]:
        if stated.get(name) is None and first.get(name) is not None:
            blanks.append(name)
    return ", ".join(blanks)


def _leave_out_shared(row: Answer, first: Answer, stated: Answer) -> None:
    """Leave out of a later row what it shares with the first; `stated` are all its conditions."""
    if all(row.get(name) == first.get(name) for name in WHO):
        for name in WHO:
            row.pop(name, None)
    for name, figure in row["figures"].items():
        if name in first["figures"] and figure["unit"] == first["figures"][name]["unit"]:
            figure["unit"] = None
    for name, value in first["conditions"].items():
        other = stated.get(name)
        if other == value:
            row["conditions"].pop(name, None)
        elif other is None:
            row["conditions"][name] = NOT_STATED
        else:
            row["conditions"][name] = other
    row["flags"] = list(map(_drop_message, row["flags"]))


def write_line(row: Answer, first: Answer, publisher: str) -> str:
    """Write a later row as a line: its id, figures, what differs from the first, and its flags.

    `publisher` is empty where it is that of the first row.
    """
    figures = row.get("figures", {})
    values = []
    for name, figure in figures.items():
        value = figure["value"]
        if not float(value).is_integer():  # a whole number has all digits of its own
            value = round_digits(value, LINE_DIGITS)
        words = f"{value} {figure.get('unit', '')}".strip()
        if "per_chip" in figure:
            words += f" ({figure['per_chip']:.6g} per chip)"
        if len(figures) > 1:
            words = f"{name} {words}"
        values.append(words)
    parts = [f"{row['result_id']}: {', '.join(values)}", row.get("what"), publisher]
    parts += map(row.get, WHO)
    for name, value in row.get("conditions", {}).items():
        shared = first.get("conditions", {}).get(name)
        parts.append(f"{name} {_keep_other_parts(value, shared)}")
    if "flags" in row:
        parts.append(f"flagged {' '.join(map(_name_flag, row['flags']))}")
    if "usable" in row:
        parts.append("not usable")
    return "; ".join(filter(None, parts))  # a row need not have all parts


def _keep_other_parts(value: Any, first: Any) -> Any:
    """Leave out of a list in words, such as `Run Mode = A; Degree = 2`, what the first row has."""
    if not (isinstance(value, str) and isinstance(first, str)):
        return value
    if value.count("; ") != first.count("; "):
        return value
    return _keep_differing(value, first, "; ")


def describe_match(match: Answer) -> Answer:
    """Describe a row that is nearest to a run."""
    return {
        **pick(match, SHOWN["match"]),
        "result_id": match["row"]["result_id"],
        "what_differs": match["differences"],
    }


def shorten_comparison(answer: Answer) -> Answer:
    """Keep of a comparison the verdict, the nearest row with its ratios, and what the verdict does
    not say: of checks, those that failed.
    """
    nearest = []
    refused = []
    if answer["nearest"]:
        [row] = answer["results"]
        nearest.append(_shorten_match(answer["nearest"][0], row["figures"]))
    elif answer["not_compared"]:
        refused.append(pick(answer["not_compared"][0], ("reason", "rows")))
    failed = []
    for check in answer["plausibility"]:
        if check["outcome"] in ("impossible", "doubtful"):
            short = pick(check, ("name", "outcome", "message"))
            if check["message"] in answer["verdict"]:
                short["message"] = None
            failed.append(short)
    return {
        **answer,
        "figures_compared": None,  # left out, as nulls are
        "nearest": nearest,
        "plausibility": failed,
        "not_compared": refused,
        "results": [],
        "more_groups": get_column(answer["nearest"][1:], "group"),
    }


def _shorten_match(match: Answer, figures: Answer) -> Answer:
    """Keep of a match its ratios with the row's figures, and the conditions that both state."""
    ratios = []
    for ratio in match["ratios"]:
        figure = figures[ratio["figure"]]
        short = {"figure": ratio["figure"]}
        for name in ("ratio", "low", "high"):
            if ratio[name] is not None:
                short[name] = round_digits(ratio[name], RATIO_DIGITS)
        ratios.append({**short, "recorded": figure["value"], "unit": figure["unit"]})
    differing = []
    for found in match["what_differs"]:
        if found["ours"] and found["theirs"]:
            differing.append(f"{found['what']}: {found['ours']} / {found['theirs']}")
    return {
        "result_id": match["result_id"],
        "group": match["group"],
        "ratios": ratios,
        "what_differs": differing,
    }


def shorten_cell(cell: Answer) -> Answer:
    """Leave out what the citation says, and the place in our file where that in the source is
    known.
    """
    short = dict(cell)
    del short["title"], short["source_url"]
    if cell["source_locator"]:
        del short["locator"], short["locator_in"]
    if cell["factor"] == 1:  # as printed
        del short["factor"]
    return short


def shorten_claims(claims: Sequence[Answer]) -> list[Answer]:
    """Keep of claims the verdicts, and of the first its values; of many recomputations the ends."""
    first = pick(claims[0], SHOWN["claim"])
    recomputed = first["recomputed"]
    if len(recomputed) > MAX_RECOMPUTED:
        first["recomputations"] = len(recomputed)
        in_order = sorted(recomputed, key=lambda entry: float(entry["value"]))
        recomputed = [in_order[0], in_order[-1]]
    first["recomputed"] = [pick(entry, ("value", "arithmetic")) for entry in recomputed]
    short = [first]
    for claim in claims[1:]:
        short.append(pick(claim, SHOWN["claim_brief"]))
    return short


def describe_claim(row: Row) -> Answer:
    """Describe a claim with its verdict."""
    described: Answer = to_json_value(pick(row, SHOWN["claim"] + SHOWN["claim_whole"]))
    described["recomputed"] = json.loads(row["recomputed"] or "[]")
    return {**described, "origin": "published", "publisher": row["publisher"]}


def write_unit(unit: str | None) -> str:
    """Write the unit of a rate as a reader does: images/s, which is image/s in the data."""
    return RATE.sub(r"\1s/s", unit or "")
