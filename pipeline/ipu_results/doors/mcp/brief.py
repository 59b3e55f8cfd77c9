"""What a brief answer leaves out of a row, a claim or a comparison, and how texts name units."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from ipu_results.doors.comparison.statements import Row
from ipu_results.doors.mcp.refusal import WORDS, Answer
from ipu_results.kit.text import to_json_value

SHOWN: Mapping[str, list[str]] = WORDS["shown"]
MAX_BRIEF = 3  # rows, claims or pairs of a brief answer, unless a limit is stated
MAX_RECOMPUTED = 2  # of a brief claim: the lowest and the highest
WHOLE_ONLY = ("how_obtained", "interest_source")
RATE = re.compile(r"^(\w+)/s")


def drop_empty(value: Any) -> Any:
    """Leave out what is null or empty, at any depth."""
    if isinstance(value, (list, tuple)):
        return [drop_empty(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    short = {name: drop_empty(item) for name, item in value.items()}
    return {name: item for name, item in short.items() if item not in (None, "", [], {})}


def shorten_row(described: Answer, names: Collection[str]) -> Answer:
    """Leave out what a row says twice, places and remarks of quality rules; errors and warnings
    stay.

    `names` are the figures to keep. Without any, the rest of the answer has figures and conditions.
    """
    short = {name: value for name, value in described.items() if name not in WHOLE_ONLY}
    short["usable"] = None if described["usable"] else False
    short["figures"] = {
        name: {**figure, "place": None}
        for name, figure in described["figures"].items()
        if name in names
    }
    short["not_printed"] = [name for name in described["not_printed"] if name in names]
    short["flags"] = []
    for flag in described["flags"]:
        if flag["severity"] == "error":  # the citation has its message
            short["flags"].append({**flag, "message": None})
        elif flag["severity"] != "info":
            short["flags"].append(flag)
    short["conditions"] = {}
    if names:
        for name, value in described["conditions"].items():
            if name not in SHOWN["implied"]:
                short["conditions"][name] = value
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
        short = {name: ratio[name] for name in ("figure", "ratio", "low", "high")}
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
    return {name: value for name, value in cell.items() if name not in repeated}


def describe_claim(row: Row, *, is_brief: bool) -> Answer:
    """Describe a claim with its verdict; a brief one has of many recomputations the ends."""
    names = SHOWN["claim"] if is_brief else SHOWN["claim"] + SHOWN["claim_whole"]
    described = {name: to_json_value(row[name]) for name in names}
    recomputed = json.loads(row["recomputed"] or "[]")
    if is_brief and len(recomputed) > MAX_RECOMPUTED:
        described["recomputations"] = len(recomputed)
        in_order = sorted(recomputed, key=lambda entry: float(entry["value"]))
        recomputed = [in_order[0], in_order[-1]]
    described["recomputed"] = recomputed
    described["origin"] = "published"
    described["publisher"] = row["publisher"]
    return described


def write_unit(unit: str | None) -> str:
    """Write the unit of a rate as a reader does: images/s, which is image/s in the data."""
    return RATE.sub(r"\1s/s", unit or "")
