"""What an agent means by a word that no row has: a part of a name, or a kind of chip."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache

from ipu_results.doors.comparison.statements import Row
from ipu_results.doors.mcp.refusal import WORDS
from ipu_results.kit.files import load_schema_file
from ipu_results.kit.text import has_in_a_row, split_parts

MIN_LETTERS = 3  # of a part that stands for a name by itself
MAX_NAMED = 3


def name_part(word: str, name: str) -> bool:
    """Return whether a name has the parts of a word in a row, as `8x A100-40GB (DGX A100)` those of
    `DGX A100`. One part alone needs letters, and three at least.
    """
    parts = split_parts(word)
    if len(parts) == 1:
        [part] = parts
        return part.isalpha() and len(part) >= MIN_LETTERS and part in split_parts(name)
    return has_in_a_row(word, name)


def list_named(names: Collection[str]) -> str:
    """List the first names in words, and count the others."""
    shown = names if isinstance(names, list) else sorted(names)
    more = f", {len(shown) - MAX_NAMED} more" if len(shown) > MAX_NAMED else ""
    return f"{', '.join(shown[:MAX_NAMED])}{more}"


def find_chips_of_kind(rows: Sequence[Row], word: str) -> set[str]:
    """Return the chips of rows that are of a kind, such as IPU or GPU, or of a maker, none for
    another word.
    """
    patterns = _load_patterns()
    makers = WORDS["kinds_of_chip"].get(word.casefold(), [word])
    found = [pattern for maker, pattern in patterns.items() if maker in makers]
    chips = {row["chip"] for row in rows if row["chip"] is not None}
    return {chip for chip in chips if any(pattern.search(chip) for pattern in found)}


@cache
def _load_patterns() -> dict[str, re.Pattern[str]]:
    """Return the pattern of the devices of each maker."""
    makers = load_schema_file("vocabulary/makers.toml")["maker"]
    return {maker["name"]: re.compile(maker["device"]) for maker in makers}
