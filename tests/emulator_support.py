"""The validation of the committed warehouse, once for all tests, and the generated parts of its page."""

from __future__ import annotations

import re
from functools import cache

from conftest import ROOT
from ipu_results.emulator.baselines import TOLD
from ipu_results.emulator.published import SETS, Row, published
from ipu_results.emulator.report import (
    PERCENT,
    Report,
    Table,
    by_row,
    groups,
    misses,
    parts,
    ratios,
    scores,
    sensitivity,
    simpler,
    unfelt,
    validate,
)
from ipu_results.emulator.sensitivity import Change, assumed
from ipu_results.emulator.target import TARGETS, load_target
from ipu_results.store.query import open_warehouse

PAGE = ROOT / "docs" / "emulator.md"
PLOT = ROOT / "docs" / "emulator.svg"
PART = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- end -->)", re.S)


@cache
def rows() -> list[Row]:
    with open_warehouse(ROOT / "warehouse") as connection:
        return published(connection)


@cache
def report() -> Report:
    return validate(rows())


def grid(table: Table) -> str:
    return f"{table.told('github')}\n"


def generated(found: Report) -> dict[str, str]:
    """All parts of the page but the sensitivity, which takes minutes."""
    return {
        "calibration": _calibration(found),
        "scores": grid(scores(found)),
        "misses": "".join(f"* {line}\n" for line in misses(found)),
        "baselines": _baselines(found),
        "groups": grid(groups(found)),
        "parts": grid(parts(found)),
        "rows": "\n".join(f"### {table.title}\n\n{grid(table)}" for table in (by_row(found, name) for name in SETS)),
    }


def told_sensitivity(found: Report, changes: list[Change]) -> str:
    without = sorted(set(assumed()) - {one.constant for one in changes})
    still = ", ".join(f"`{name}`" for name in unfelt(found, changes))
    return (
        f"{stamp(found)}\n\n{grid(sensitivity(found, changes))}\n"
        f"Nothing moves with {still or 'none of the others'}. No network of these rows reads "
        f"{', '.join(f'`{name}`' for name in without)}.\n"
    )


def stamp(found: Report) -> str:
    """What the sensitivity was computed with, so that an old table is noticed."""
    digests = ", ".join(f"{name} {load_target(name).digest}" for name in TARGETS)
    return f"Computed with calibration {found.calibration.id} and constants {digests}."


def _calibration(found: Report) -> str:
    fits = found.calibration.jackknife
    numbers = [("all six", found.calibration.fit), *((f"without row {at}", one) for at, one in enumerate(fits, 1))]
    lines = [(name, f"{one.superstep:.0f}", f"{one.per_image * 1000:.3f}") for name, one in numbers]
    return f"Calibration `{found.calibration.id}`.\n\n" + grid(Table("", ("rows", "κ, cycles", "h, ms"), lines))


def _baselines(found: Report) -> str:
    how = "".join(f"* {name}: {told}\n" for name, told in TOLD.items())
    wins = "".join(
        f"* The mean error of the {one.against} on the 19 held-out rows is {one.watched:.1f} times the emulator's; the "
        f"target is {one.target:g}: {one.verdict}. On the honest rows it is {one.honest:.1f} times\n"
        for one in ratios(found)
    )
    return f"MAPE and, in brackets, the maximum, %.\n\n{grid(simpler(found))}\n{wins}\n{how}"


def percent(share: float) -> float:
    return round(PERCENT * share, 1)
