"""The page about the emulator holds the figures of the validation; `python -m benchmarks.emulator
page` writes it.
"""

from __future__ import annotations

import re

import pytest

from benchmarks.emulator import page, scores
from benchmarks.emulator.rows import SETS, load_rows
from benchmarks.emulator.scores import PERCENT
from benchmarks.emulator.sensitivity import list_assumed, list_assumed_of, measure_changes
from benchmarks.emulator.validation import load_validation

pytestmark = pytest.mark.slow


def test_generated_parts_are_those_of_the_validation() -> None:
    parts = page.read_parts()
    sensitivity = parts.pop(page.SENSITIVITY)
    assert parts == page.generate_parts(load_validation(), scores.read_rows())
    assert sensitivity.startswith(page.format_stamp(load_validation()))
    constants = set(re.findall(r"[a-z]+\d?\.[a-z_]+|\bclock\b", sensitivity.split("\n", 1)[1]))
    assert constants >= set(list_assumed())


def test_a_line_of_the_sensitivity_is_recomputed() -> None:
    """One constant that changes no split, as all others need a new search."""
    name = "elementwise.start"
    assert name in list_assumed_of(load_rows())
    lines = page.read_parts()[page.SENSITIVITY].splitlines()
    cells = [line.replace(" ", "").strip("|").split("|") for line in lines]
    for change in measure_changes(load_rows(), [name]):
        constant = [name, f"{change.usual:g}", f"{change.value:g}", f"{change.superstep:.0f}"]
        [moved] = [line[4:] for line in cells if line[:4] == constant]
        for set_, mean, printed in zip(SETS, change.means, moved, strict=True):
            expected = PERCENT * (mean - load_validation().score(set_).mean)
            # 0 may have another sign on another processor
            assert float(printed) == pytest.approx(expected, abs=0.006)
