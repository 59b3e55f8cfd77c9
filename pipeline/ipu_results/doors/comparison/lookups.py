"""What the vocabulary knows of chips and precisions, as relations that the statements read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from ipu_results.schema.accelerators import find_accelerator, load_accelerators
from ipu_results.schema.usable import REASONS
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

COLUMN_OF_PEAK = re.compile("peak_(.+)_t(?:fl)?ops")
WATTS = re.compile(r"(\d{2,4}) ?W\b")  # of a chip's name, such as `A100-PCIE-40GB (250W)`
LOOKUPS = {
    "chips": "chip VARCHAR, rated_power_w DOUBLE, is_accelerator BOOLEAN",
    "peaks": "chip VARCHAR, type VARCHAR, tflops DOUBLE, position BIGINT",
    "types": "word VARCHAR, type VARCHAR",
    "ratings": "lowest DOUBLE, highest DOUBLE",
    "reasons": "position BIGINT, unusable VARCHAR, words VARCHAR",
}
"""The columns of each relation."""


def build_lookups(chips: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the relations `chips` and `peaks` of these chips, `types` of precisions, `ratings`,
    the lowest and the highest rated power of one chip, and `reasons` why a row is not usable.
    """
    rated = []
    peaks = []
    for chip in sorted(chips):
        is_accelerator = find_accelerator(chip) is not None
        rating = get_rating(chip)
        rated.append({"chip": chip, "rated_power_w": rating, "is_accelerator": is_accelerator})
        for position, (name, tflops) in enumerate(list_peaks(chip).items()):
            peaks.append({"chip": chip, "type": name, "tflops": tflops, "position": position})
    types = []
    for word, column in load_vocabulary().peaks.items():
        types.append({"word": normalise_name(word), "type": _name_type(column)})
    reasons = []
    for position, (name, words) in enumerate(REASONS.items()):
        reasons.append({"position": position, "unusable": name, "words": words})
    ratings = list(load_vocabulary().chip_ratings.values())
    ratings += [found.power_w for found in load_accelerators() if found.power_w]
    return {
        "chips": rated,
        "peaks": peaks,
        "types": types,
        "ratings": [{"lowest": min(ratings), "highest": max(ratings)}],
        "reasons": reasons,
    }


def list_peaks(chip: str) -> dict[str, float]:
    """Return the dense peaks of one chip by type, in 10¹² operations per second: those that a
    source states of it, then those of its accelerator.
    """
    accelerator = find_accelerator(chip)
    peaks = dict(accelerator.peaks) if accelerator else {}
    facts = _load_chips().get(chip, {})
    # several words, such as half and fp16, lead to one column
    for column in sorted(set(load_vocabulary().peaks.values())):
        if facts.get(column):
            peaks[_name_type(column)] = facts[column]
    return peaks


def get_rating(chip: str) -> float | None:
    """Return the rated power of one chip in W, None where no source gives it."""
    accelerator = find_accelerator(chip)
    rated = load_vocabulary().chip_ratings.get(chip) or (accelerator and accelerator.power_w)
    # a name may state a card that is set to more than the rating of its kind
    if rated and (watts := WATTS.search(chip)):
        return max(rated, float(watts[1]))
    return rated or None


@cache
def _load_chips() -> Mapping[str, Mapping[str, Any]]:
    """Load what the vocabulary knows of each chip by name; of a machine, only what holds for one
    chip is read.
    """
    return {entry["chip"]: entry for entry in load_vocabulary().list_entries("platform")}


def _name_type(column: str) -> str:
    """Return the type of a column of a peak, such as fp16 of `peak_fp16_tflops`."""
    match = COLUMN_OF_PEAK.fullmatch(column)
    assert match
    return match[1]
