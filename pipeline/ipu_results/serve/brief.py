"""What a brief answer leaves out of a row or a claim, and the names that a text has in the tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ipu_results.comparison.comparable import NOT_STATED
from ipu_results.ground.text import to_json_value

IMPLIED = (  # conditions that `what` and the citation say, too
    *("network", "variant", "task", "platform", "chips", "batch_size", "framework", "sdk_version"),
    *("effective_precision", "submitter", "publisher", "published_on"),
)
CLAIM_COLUMNS = (
    *("claim_id", "claim", "figure", "value", "unit", "verdict", "recomputed", "gap_percent", "gap_kind"),
    *("interpretation", "not_recomputable", "model", "task", "metric", "subject", "baseline", "document_id", "place"),
)
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")
RATE = re.compile(r"^(\w+)/s")
ARGUMENTS = {"round": "mlperf_round", "model": "network", "platform": "machine"}  # of options that have other names


def shorten_row(described: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what a row says twice, places, nulls and remarks of quality rules; errors and warnings stay."""
    figures = {
        name: {key: value for key, value in figure.items() if key != "place"}
        for name, figure in described["figures"].items()
    }
    conditions = {
        name: value for name, value in described["conditions"].items() if value is not None and name not in IMPLIED
    }
    flags = [flag for flag in described["flags"] if flag["severity"] != "info"]
    kept = {name: value for name, value in described.items() if name != "how_obtained" and value is not None}
    return {**kept, "figures": figures, "flags": flags, "conditions": conditions}


def describe_matches(matches: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Describe the rows that are nearest to a run."""
    return [
        {name: match[name] for name in ("group", "group_name", "distance", "ratios", "ratio_per_chip", "not_compared")}
        | {"result_id": match["row"]["result_id"], "what_differs": match["differences"]}
        for match in matches
    ]


def shorten_comparison(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Keep of a comparison the nearest row with its ratios and what differs, failed checks and the first reason."""
    nearest, checks, refused = answer["nearest"], answer["plausibility"], answer["not_compared"]
    compared = {ratio["figure"] for match in nearest[:1] for ratio in match["ratios"]}
    kept = ("result_id", "what", "relationship", "origin", "status", "flags", "not_printed")
    return {
        **{name: value for name, value in answer.items() if name != "figures_compared"},
        "nearest": [
            {
                "result_id": match["result_id"],
                "group": match["group"],
                "ratios": [
                    {key: ratio[key] for key in ("figure", "ratio", "low", "high") if ratio[key] is not None}
                    for ratio in match["ratios"]
                ],
                "what_differs": [
                    f"{own['what']}: {own['ours'] or NOT_STATED} / {own['theirs'] or NOT_STATED}"
                    for own in match["what_differs"]
                ],
            }
            for match in nearest[:1]
        ],
        "more_groups": [match["group"] for match in nearest[1:]],
        "plausibility": [
            {name: check[name] for name in ("name", "outcome", "message")}
            for check in checks
            if check["outcome"] in ("impossible", "doubtful")
        ],
        "not_compared": [{name: refusal[name] for name in ("reason", "rows")} for refusal in refused[:1]],
        "results": [
            {name: result[name] for name in kept if name in result}
            | {"figures": {name: own for name, own in result["figures"].items() if name in compared}}
            for result in answer["results"]
        ],
    }


def describe_claim(row: Mapping[str, Any], *, is_brief: bool) -> dict[str, Any]:
    """Describe a claim with its verdict; a brief one has no nulls."""
    described = {name: to_json_value(row[name]) for name in CLAIM_COLUMNS if row[name] is not None or not is_brief}
    described["recomputed"] = json.loads(row["recomputed"] or "[]")
    return {**described, "origin": "published", "publisher": row["publisher"]}


def write_unit(unit: str | None) -> str:
    """Write the unit of a rate as a reader does: images/s, which is image/s in the data."""
    return RATE.sub(r"\1s/s", unit or "")


def name_arguments(value: Any) -> Any:
    """Write the options of the command that texts name, such as --latency-ms, as arguments of the tools."""
    if isinstance(value, str):
        return OPTION.sub(lambda match: ARGUMENTS.get(match[1]) or match[1].replace("-", "_"), value)
    if isinstance(value, Mapping):
        return {name: name_arguments(own) for name, own in value.items()}
    return [name_arguments(own) for own in value] if isinstance(value, (list, tuple)) else value
