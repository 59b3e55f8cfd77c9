"""Names in words: lists of them, and what an agent means by a word that no row has, such as a part
of a name or a kind of chip.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from ipu_results.doors.comparison.words import MAX_LISTED
from ipu_results.doors.mcp.refusal import WORDS
from ipu_results.kit.files import load_schema_file
from ipu_results.kit.text import find_nearest_words, has_in_a_row, split_parts

MIN_LETTERS = 3  # of a part that stands for a name by itself
MAX_NAMED = 3
NEAREST = 3
NOT_STATED = "not stated"


def name_value(value: object) -> str:
    """Name a value of a condition, a blank one as `not stated`."""
    return NOT_STATED if value is None else str(value)


def list_first(names: Sequence[str], limit: int = MAX_NAMED) -> str:
    """List the first names in words, and count the others."""
    shown = list(names[:limit])
    if len(names) > limit:
        shown.append(f"{len(names) - limit} more")
    return ", ".join(shown)


def list_by_count(names: Iterable[str]) -> list[str]:
    """List the different names, the most common first."""
    return [name for name, _ in Counter(names).most_common()]


def suggest(word: str, known: Iterable[str]) -> str:
    """Name the known words that are nearest to an unknown one."""
    names = sorted(set(known))
    near = find_nearest_words(word, names, NEAREST)
    if near:
        return f"nearest: {', '.join(near)}"
    return f"none is near; known are {', '.join(names[:MAX_LISTED])}, …"


def is_part_of_name(word: str, name: str) -> bool:
    """Return whether a name has the parts of a word in a row, such as DGX A100 in
    `8x A100-40GB (DGX A100)`.

    One part alone must be of letters, three at least.
    """
    parts = split_parts(word)
    if len(parts) == 1:
        [part] = parts
        return part.isalpha() and len(part) >= MIN_LETTERS and part in split_parts(name)
    return has_in_a_row(word, name)


def find_chips_of_kind(chips: Sequence[str], word: str) -> list[str]:
    """Return the chips of a kind, such as IPU or GPU, or of a maker; none for another word."""
    makers = WORDS["kinds_of_chip"].get(word.casefold())
    if makers is None:
        makers = [word]
    found: list[str] = []
    for maker, pattern in _load_patterns().items():
        if maker in makers:
            found += filter(pattern.search, chips)
    return found


@cache
def _load_patterns() -> dict[str, re.Pattern[str]]:
    """Return the pattern of the devices of each maker."""
    makers = load_schema_file("vocabulary/makers.toml")["maker"]
    return {maker["name"]: re.compile(maker["device"]) for maker in makers}
