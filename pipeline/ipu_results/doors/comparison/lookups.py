"""What the vocabulary knows of chips and precisions, as relations that the statements read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ipu_results.schema.accelerators import find_accelerator, load_accelerators
from ipu_results.schema.usable import REASONS
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

COLUMN_OF_PEAK = re.compile("peak_(.+)_t(?:fl)?ops")
WATTS = re.compile(r"(\d{2,4}) ?W\b")  # of a chip's name, such as `A100-PCIE-40GB (250W)`
LOOKUPS = {
    "chips": "chip VARCHAR, accelerator VARCHAR, rated_power_w DOUBLE, is_accelerator BOOLEAN",
    "types": "word VARCHAR, type VARCHAR",
    "ratings": "lowest DOUBLE, highest DOUBLE",
    "reasons": "position BIGINT, unusable VARCHAR, words VARCHAR",
}
"""The columns of each relation."""


def build_lookups(chips: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the relations `chips` of these chips, `types` of precisions, `ratings`, the lowest and
    the highest rated power of one chip, and `reasons` why a row is not usable.
    """
    rated = []
    for chip in sorted(chips):
        accelerator = find_accelerator(chip)
        record = {
            "chip": chip,
            "accelerator": accelerator.chip if accelerator else None,
            "rated_power_w": get_rating(chip),
            "is_accelerator": accelerator is not None,
        }
        rated.append(record)
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
        "types": types,
        "ratings": [{"lowest": min(ratings), "highest": max(ratings)}],
        "reasons": reasons,
    }


def get_rating(chip: str) -> float | None:
    """Return the rated power of one chip in W, None where no source gives it."""
    accelerator = find_accelerator(chip)
    rated = load_vocabulary().chip_ratings.get(chip)
    if not rated and accelerator:
        rated = accelerator.power_w
    if not rated:
        return None
    # a name may state a card that is set to more than the rating of its kind
    watts = WATTS.search(chip)
    return max(rated, float(watts[1])) if watts else rated


def _name_type(column: str) -> str:
    """Return the type of a column of a peak, such as fp16 of `peak_fp16_tflops`."""
    match = COLUMN_OF_PEAK.fullmatch(column)
    assert match
    return match[1]
