"""The page about the emulator says what the validation gives. UPDATE_DOCS=1 writes it anew, in some minutes."""

from __future__ import annotations

import os
import re

import emulator_support
import pytest
from emulator_support import PAGE, PART, PLOT, generated, report, rows, stamp
from ipu_results.emulator.published import SETS
from ipu_results.emulator.report import PERCENT
from ipu_results.emulator.scatter import draw
from ipu_results.emulator.sensitivity import assumed, changes, ends, read_by
from ipu_results.emulator.validation import score

UPDATE = os.environ.get("UPDATE_DOCS") == "1"
SENSITIVITY = "sensitivity"


def parts() -> dict[str, str]:
    return {name: text for _, name, text, _ in PART.findall(PAGE.read_text(encoding="utf-8"))}


@pytest.mark.skipif(not UPDATE, reason="writes the page")
def test_update() -> None:
    fresh = generated(report())
    if not parts()[SENSITIVITY].startswith(stamp(report())):
        fresh[SENSITIVITY] = emulator_support.told_sensitivity(report(), changes(rows(), workers=os.cpu_count() or 1))
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(PART.sub(lambda found: found[1] + fresh.get(found[2], found[3]) + found[4], text), encoding="utf-8")
    PLOT.write_bytes(draw(report(), ".svg"))


def test_the_generated_parts_are_those_of_the_validation() -> None:
    found = parts()
    assert {name: text for name, text in found.items() if name != SENSITIVITY} == generated(report())
    assert SENSITIVITY in found


def test_the_sensitivity_is_of_these_constants() -> None:
    text = parts()[SENSITIVITY]
    assert text.startswith(stamp(report()))
    named = set(re.findall(r"[a-z]+\d?\.[a-z_]+", text.split("\n", 1)[1]))
    assert named >= set(assumed())


def test_one_line_of_the_sensitivity_is_true() -> None:
    """One constant that changes no split, as all others take a new search."""
    (name,) = {"elementwise.mul"} & read_by(rows())
    for one in changes(rows(), [name]):
        moved = [PERCENT * (new - report().score(set_).mean) for new, set_ in zip(one.means, SETS, strict=True)]
        line = " | ".join([f"{name}", f"{one.usual:g}", f"{one.value:g}", *(f"{point:+.2f}" for point in moved)])
        cells = [" | ".join(row[:3] + row[4:]) for row in table(parts()[SENSITIVITY])]
        assert line in cells


def table(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def test_ends_are_the_stated_range_or_half_less_and_half_more() -> None:
    known = assumed()
    assert ends("slic.load", known["slic.load"]) == (18, 66)
    assert ends("slic.start", known["slic.start"]) == (50, 150)
    assert ends("rearrange.supersteps", known["rearrange.supersteps"]) == (0, 2)


def test_the_page_says_what_it_must() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert "a straight line through the six rows does as well" in text
    assert f"calibration `{report().calibration.id}`".lower() in text.lower()
    assert f"honest MAPE {PERCENT * report().score('honest').mean:.1f} %" in text
    assert score(report().line[0]).mean < score(report().inside).mean


def test_the_plot_says_that_it_is_emulated() -> None:
    svg = PLOT.read_text(encoding="utf-8")
    assert "EMULATED time per batch (ms)" in svg
    assert f"emulated, not measured; calibration {report().calibration.id}" in svg
