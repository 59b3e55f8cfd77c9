"""Say of each set whose predictions lie mostly on one side whether chance does that, and which rows
and term do.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from math import comb
from pathlib import Path
from statistics import mean, median

from benchmarks.emulator.page import format_table
from benchmarks.emulator.scores import HEADER as SETS
from benchmarks.emulator.scores import Score, format_interval, group_sets, tabulate_scores
from benchmarks.report import ReportTable

REASONS = Path(__file__).parent / "bias.toml"
# within these shares, a set has two sides; from this p on, chance may be why
LOW, HIGH, CHANCE = 0.4, 0.6, 0.05
HEADER = ("set", "too fast %", "p, rows", "networks", "rows of the reason", "others", "reason")


def compute_sign_test(flags: Sequence[bool]) -> float:
    """Return the two-sided p value of this many rows on one side, if both sides are as likely and
    rows independent.
    """
    count, fewer = len(flags), min(sum(flags), len(flags) - sum(flags))
    return min(1.0, sum(comb(count, at) for at in range(fewer + 1)) / 2.0 ** (count - 1))


def read_reasons() -> dict[str, dict[str, str]]:
    return {
        entry["set"]: entry
        for entry in tomllib.loads(REASONS.read_text(encoding="utf-8"))["reasons"]
    }


def list_one_sided(scores: Sequence[Score]) -> dict[str, list[Score]]:
    """Return the sets with less or more rows too fast than LOW and HIGH."""
    return {
        name: members
        for name, members in group_sets(scores).items()
        if not LOW <= mean(each.error < 0 for each in members) <= HIGH
    }


def tabulate_bias(scores: Sequence[Score]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each one-sided set with a reason: how sure its side is, and which rows and
    term it comes from.

    A network is too fast if its median error is. Rows of a network share its errors, so rows alone
    overstate p.
    """
    reasons = read_reasons()
    for name, members in list_one_sided(scores).items():
        flags = [each.error < 0 for each in members]
        networks = [
            median(each.error for each in members if each.network == network) < 0
            for network in dict.fromkeys(each.network for each in members)
        ]
        if not (reason := reasons.get(name)):
            continue
        concerned = [
            bool(re.search(reason["rows"], f"{each.network} {each.row}")) for each in members
        ]
        parts = [
            [each for each, is_one in zip(members, concerned, strict=True) if is_one == side]
            for side in (1, 0)
        ]
        yield (
            *(
                name,
                format_interval(flags),
                f"{compute_sign_test(flags):.1g}",
                f"{sum(networks)} of {len(networks)}",
            ),
            *(_describe(part) for part in parts),
            reason["why"],
        )


def _describe(part: Sequence[Score]) -> str:
    if not part:
        return ""
    fast = 100 * mean(each.error < 0 for each in part)
    return (
        f"{len(part)}: {fast:.0f} % too fast, median"
        f" {100 * median(each.error for each in part):+.1f} %"
    )


def generate_parts(scores: Sequence[Score]) -> dict[str, str]:
    """Return the parts of docs/explanation/emulator.md about every set."""
    tables = {
        "sets": (SETS, tabulate_scores(scores)),
        "bias": (HEADER, list(tabulate_bias(scores))),
    }
    parts = {
        name: format_table(ReportTable("", header, rows)) for name, (header, rows) in tables.items()
    }
    chance = [name for name in list_one_sided(scores) if name not in read_reasons()]
    parts["bias"] += (
        f"\nOne-sided too, with too few rows to tell from chance: {'; '.join(chance)}.\n"
    )
    return parts
