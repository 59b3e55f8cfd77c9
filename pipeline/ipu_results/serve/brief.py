"""What a brief answer leaves out of a row or a claim, and the units and names of texts."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping
from fractions import Fraction
from typing import Any

from ipu_results.ground.physics import ENERGIES_J, POWERS_W, TIMES_S
from ipu_results.ground.text import to_json_value
from ipu_results.schema import table
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.serve import RefusalError

IMPLIED = (  # conditions that `what` and the citation say, too
    *("network", "variant", "task", "platform", "chips", "batch_size", "framework", "sdk_version"),
    *("effective_precision", "submitter", "publisher", "published_on"),
)
BRIEF_CLAIM = (
    *("claim_id", "claim", "figure", "verdict", "recomputed", "gap_percent", "gap_kind", "not_recomputable"),
    *("document_id", "place"),
)
CLAIM_COLUMNS = (*BRIEF_CLAIM, "value", "unit", "interpretation", "model", "task", "metric", "subject", "baseline")
MAX_BRIEF = 3  # rows, claims or pairs of a brief answer, unless a limit is stated
MAX_RECOMPUTED = 2  # of a brief claim: the lowest and the highest
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")
RATE = re.compile(r"^(\w+)/s")
BASE = {"latency_ms": "ms", "minutes": "min", "time_to_result_s": "s"}  # units of the columns
SHORT = {"img": "image", "seq": "sequence", "sec": "s"}
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
    """Keep of a comparison the verdict, the nearest row with its ratios, and what the verdict does not say.

    Of what differs, a brief comparison has what both sides state; of checks, those that failed.
    """
    nearest, refused = answer["nearest"][:1], answer["not_compared"]
    figures = answer["results"][0]["figures"] if nearest else {}
    return {
        **{name: value for name, value in answer.items() if name != "figures_compared"},
        "nearest": [
            {
                "result_id": match["result_id"],
                "group": match["group"],
                "ratios": [
                    {name: ratio[name] for name in ("figure", "ratio", "low", "high") if ratio[name] is not None}
                    | {"recorded": figures[ratio["figure"]]["value"], "unit": figures[ratio["figure"]]["unit"]}
                    for ratio in match["ratios"]
                ],
                "what_differs": [
                    f"{own['what']}: {own['ours']} / {own['theirs']}"
                    for own in match["what_differs"]
                    if own["ours"] and own["theirs"]
                ],
            }
            for match in nearest
        ],
        "more_groups": [match["group"] for match in answer["nearest"][1:]],
        "plausibility": [
            {"name": check["name"], "outcome": check["outcome"]}
            | ({} if check["message"] in answer["verdict"] else {"message": check["message"]})
            for check in answer["plausibility"]
            if check["outcome"] in ("impossible", "doubtful")
        ],
        "not_compared": [{name: own[name] for name in ("reason", "rows")} for own in refused[: 0 if nearest else 1]],
        "results": [],
    }


def shorten_pair(pair: Mapping[str, Any]) -> dict[str, Any]:
    """Keep of a pair of a maker and a third party who measured, on what, and the ratio."""
    return {name: pair[name] for name in ("party", "chip", "chips", "ratio", "vendor_part", "second_result_id")}


def keep_figures(results: Iterable[Mapping[str, Any]], names: Container[str]) -> list[dict[str, Any]]:
    """Keep of described rows the figures that an answer compares."""
    return [
        {**result, "figures": {name: own for name, own in result["figures"].items() if name in names}}
        for result in results
    ]


def shorten_cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what the citation says, nulls, and the place in our file where that in the source is known."""
    repeated = ("title", "source_url", *(("locator", "locator_in") if cell["source_locator"] else ()))
    return {name: value for name, value in cell.items() if name not in repeated and value is not None}


def describe_claim(row: Mapping[str, Any], *, is_brief: bool) -> dict[str, Any]:
    """Describe a claim with its verdict; a brief one has no nulls, and of many recomputations the ends."""
    names = BRIEF_CLAIM if is_brief else CLAIM_COLUMNS
    described = {name: to_json_value(row[name]) for name in names if row[name] is not None or not is_brief}
    recomputed = json.loads(row["recomputed"] or "[]")
    if is_brief and len(recomputed) > MAX_RECOMPUTED:
        described["recomputations"] = len(recomputed)
        in_order = sorted(recomputed, key=lambda own: float(own["value"]))
        recomputed = [in_order[0], in_order[-1]]
    return {**described, "recomputed": recomputed, "origin": "published", "publisher": row["publisher"]}


def write_unit(unit: str | None) -> str:
    """Write the unit of a rate as a reader does: images/s, which is image/s in the data."""
    return RATE.sub(r"\1s/s", unit or "")


def parse_unit(figure: str, unit: str) -> tuple[Fraction, str | None]:
    """Return the factor from the stated unit to that of the column, and the item that the unit names."""
    text = unit.strip()
    if figure in BASE and text in TIMES_S:
        return Fraction(TIMES_S[text]) / Fraction(TIMES_S[BASE[figure]]), None
    if figure == "power_w" and text in POWERS_W:
        return Fraction(POWERS_W[text]), None
    if figure == "quality_value":
        return Fraction(1), None
    column = {"minutes": "time_to_train_s"}.get(figure, figure)
    printed = load_vocabulary().find_unit(column, text)
    if printed is not None:  # as a source prints it
        return Fraction(printed.factor) / (60 if figure == "minutes" else 1), printed.item
    name, _, item = text.partition("/")
    if figure in ("energy_per_item_j", "run_energy_j") and name in ENERGIES_J:
        return Fraction(ENERGIES_J[name]), _name_item(item) if item else None
    parts = [SHORT.get(part, part) for part in text.split("/")]
    if parts[1:] == {"throughput": ["s"], "efficiency": ["s", "W"]}.get(figure) and parts[0]:
        return Fraction(1), _name_item(parts[0])
    known = table("results").column(figure).unit
    raise RefusalError("different-units", f"{figure} has no unit {unit!r}", f"figures of this kind are in {known}")


def _name_item(text: str) -> str:
    item = text.removesuffix("s")
    return SHORT.get(item, item)


def name_arguments(value: Any) -> Any:
    """Write the options of the command that texts name, such as --latency-ms, as arguments of the tools."""
    if isinstance(value, str):
        return OPTION.sub(lambda match: ARGUMENTS.get(match[1]) or match[1].replace("-", "_"), value)
    if isinstance(value, Mapping):
        return {name: name_arguments(own) for name, own in value.items()}
    return [name_arguments(own) for own in value] if isinstance(value, (list, tuple)) else value
