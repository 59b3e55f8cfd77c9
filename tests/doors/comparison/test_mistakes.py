"""Mistakes that everybody makes, and honest runs: what `compare` says of each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ipu_results.doors.comparison import Comparison
from ipu_results.kit.text import find_nearest_words
from ipu_results.schema.accelerators import find_accelerator, load_accelerators

from tests.cases import every_case, read_cases
from tests.doors.comparison.comparison_support import compare_many

CASES = read_cases(__file__)
REFUSED = ("implausible", "doubtful")
FAILED = ("impossible", "doubtful")  # outcomes of a check
FIGURES = {"throughput", "latency_ms", "latency_max_ms", "minutes", "power_w", "efficiency"}


def compare_cases(warehouse: Path, cases: list[dict[str, Any]]) -> list[Comparison]:
    """Compare cases with the conditions of their machines."""
    runs = []
    for case in cases:
        run = {**CASES["machines"].get(case.get("on"), {}), **case}
        run.pop("on", None)
        runs.append(run)
    return compare_many(warehouse, runs)


def test_mistakes_are_refused_or_doubted_by_name(warehouse: Path) -> None:
    names = []
    cases = []
    for name, made in CASES["mistakes"].items():
        names += [name] * len(made)
        cases += made
    assert len(cases) >= 40
    missed = []
    for name, own in zip(names, compare_cases(warehouse, cases), strict=True):
        if own.status not in REFUSED or name not in list_what_is_said(own):
            missed.append(f"{name}: {own.verdict}")
    assert len(cases) - len(missed) >= 40, missed


def test_honest_runs_are_not_refused(warehouse: Path) -> None:
    runs = CASES["honest"]["runs"]
    assert len(runs) >= 40
    for own in compare_cases(warehouse, runs):
        assert own.status not in REFUSED, own.verdict


@every_case(__file__, "by_others")
def test_mistakes_by_others_are_named_or_doubted(
    warehouse: Path, name: str, moved: float, min_named: int, max_missed: int
) -> None:
    text = Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8")
    sets = tomllib.loads(text)
    named = 0
    missed = []
    for case, comparison in compare_each(warehouse, sets["case"], moved):
        said = list_what_is_said(comparison).lower()
        if comparison.status not in REFUSED:
            missed.append(case["name"])
        elif any(re.search(rf"\b{re.escape(words)}", said) for words in case["words"]):
            named += 1
    assert named >= min_named
    assert len(missed) <= max_missed, missed
    for _, comparison in compare_each(warehouse, sets["honest"]):
        assert comparison.status not in REFUSED, comparison.verdict


def compare_each(
    warehouse: Path, cases: list[dict[str, Any]], factor: float = 1
) -> Iterator[tuple[dict[str, Any], Comparison]]:
    """Compare the runs of cases, their figures times a factor."""
    runs = []
    for case in cases:
        run = dict(case["run"])
        for name in FIGURES & run.keys():
            run[name] = round(run[name] * factor, 4)
        runs.append(run)
    return zip(cases, compare_many(warehouse, runs), strict=True)


def list_what_is_said(comparison: Comparison) -> str:
    """Return the verdict and the messages of the checks that failed."""
    failed = [check.message for check in comparison.checks if check.outcome in FAILED]
    return "\n".join([comparison.verdict, *failed])


def test_figure_may_be_that_of_one_chip_from_four_chips(warehouse: Path) -> None:
    run = {"on": "h200", "batch_size": 128, "throughput": 4500}
    cases = [{**run, "chip_count": 3}, {**run, "chip_count": 4}]
    three, four = compare_cases(warehouse, cases)
    assert "one chip" not in three.verdict
    assert "one chip" in four.verdict


def test_every_rating_has_its_document() -> None:
    rated = [own for own in load_accelerators() if own.power_w is not None]
    assert len(rated) >= 25
    assert all("read on" in own.power_document for own in rated)


@every_case(__file__, "chips")
def test_chips_are_joined_by_the_words_of_their_names(name: str, chip: str | None) -> None:
    accelerator = find_accelerator(name)
    assert (accelerator and accelerator.chip) == chip


@every_case(__file__, "nearest")
def test_nearest_words_have_the_parts_of_a_word(
    word: str, words: list[str], nearest: list[str]
) -> None:
    assert find_nearest_words(word, words) == nearest
