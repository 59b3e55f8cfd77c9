"""The page about the emulator holds the figures of the validation; `python -m benchmarks.emulator
page` writes it.
"""

from __future__ import annotations

import pytest

from benchmarks.emulator import page, scores
from benchmarks.emulator.validation import load_validation


@pytest.mark.slow
def test_generated_parts_are_those_of_the_validation() -> None:
    assert page.read_parts() == page.generate_parts(load_validation(), scores.read_rows())
