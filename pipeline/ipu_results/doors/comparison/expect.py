"""Say what a third party will measure where a maker printed a figure: conformal intervals over the
record's pairs.

A pair is a counted row of `replications` of a maker and somebody else. Its deviation is the
logarithm of the ratio of the two rates. The interval is the median deviation, and around it the
quantile of Vovk, Gammerman and Shafer (2005) of the absolute deviations, each divided by what is
usual for its work and figure according to the other parties. `docs/explanation/expect.md` has it
for a buyer. `compare` states the interval with each figure of a maker that it names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import duckdb
import numpy as np

from ipu_results.kit.sql import run_query
from ipu_results.schema import fill_placeholders

COVERAGES = (0.8, 0.95)
GROUPS = ("model", "first_result_id")
# The coarser group counts as this number of pairs: 1 and 3 gave the same coverage, 1 the narrower
# intervals.
PRIOR_PAIRS = 1
WIDE = 10  # times the low end, from which an interval tells nothing
FLOOR = 0.005  # added to each deviation: a pair that agrees to the last digit has a logarithm then
LEFT_OUT = ("party", "round", "chip", "maker")
MAX_NEAREST = 5
TIME = "mlperf time to train"
PAIRS = """
    SELECT
        r.machines, r.measure, r.task, coalesce(r.model, r.test) AS model, r.chip, r.chip_count,
        r.ratio, coalesce(a.company, r.first_publisher) AS maker,
        coalesce(b.company, r.second_publisher) AS party,
        coalesce(a.round, r.first_document_id) AS round, r.first_figure, r.second_figure,
        r.vendor_part, r.first_result_id, r.second_result_id
    FROM replications r
    LEFT JOIN mlperf_entries a ON a.result_id = r.first_result_id
    LEFT JOIN mlperf_entries b ON b.result_id = r.second_result_id
    WHERE r.counts AND r.parties = 'vendor and independent'
    ORDER BY r.first_result_id, r.second_result_id
"""
FIGURES = fill_placeholders("""
    SELECT
        r.result_id, r.relationship, r.publisher, r.model, r.task, r.platform, r.chip, r.chip_count,
        r.batch_size, r.precision, r.errors, r.item, r.mlperf_round, r.published_on, r.throughput,
        e.minutes, e.company, e.submitter, lower(split_part(e.chip_printed, ' ', 1)) AS brand,
        e.benchmark AS test, r.result_id AS first_result_id,
        coalesce(e.round, r.document_id) AS round,
        CASE WHEN p.family IN ({ipu_families}) THEN 'graphcore' ELSE lower(p.family) END AS family
    FROM results r
    LEFT JOIN mlperf_entries e USING (result_id)
    LEFT JOIN (
        SELECT chip, max(family) AS family FROM platforms GROUP BY chip
    ) p ON p.chip = r.chip
    WHERE r.relationship IN ('vendor', 'official') AND r.origin <> 'emulated'
""")
ALIKE = {
    "IPU": (
        "Most third parties had help of the maker: column vendor_part of the view replications says"
        " which."
    ),
    "other": (
        "Most pairs are of NVIDIA's figures, and most third parties built systems with the maker's"
        " software: an interval for others is too narrow."
    ),
}

Row = Mapping[str, Any]
Kind = tuple[str, str, str]  # machines, measure and task of pairs


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often intervals made without a party, round or chip contained its pairs."""

    left_out: str
    nominal: float
    covered: int
    pairs: int


@dataclass(frozen=True, slots=True)
class ExpectedInterval:
    """Between `low` and `high`, in the unit of the figure, a third party is expected to measure."""

    nominal: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected of one figure of a maker, and what that rests on; `nearest` are the pairs
    most like it.
    """

    result_id: str
    figure: float
    unit: str
    intervals: Sequence[ExpectedInterval]
    pairs: int
    parties: int
    coverage: Sequence[Coverage]
    nearest: Sequence[Row]
    remarks: Sequence[str]

    @property
    def summary(self) -> str:
        """The intervals in one line, with what they rest on and what limits them."""
        narrowest = self.intervals[0]
        ends = [
            f"{_round(own.low)} to {_round(own.high)} {self.unit} ({own.nominal:.0%})"
            for own in self.intervals
        ]
        use = ", too wide to tell anything" if narrowest.high > WIDE * narrowest.low else ""
        rests_on = f"from {self.pairs} pairs of {self.parties} third parties"
        return f"{', '.join(ends)}, {rests_on}{use}. {' '.join(self.remarks)}"

    def to_record(self) -> dict[str, Any]:
        """Return everything as values of JSON."""
        return asdict(self)


class UsualDeviations:
    """How far pairs are usually from the middle: of all works, of one work, and of one figure, each
    within the last.
    """

    def __init__(self, pairs: Sequence[Row]) -> None:
        deviations = np.log([pair["ratio"] for pair in pairs])
        self.middle = float(np.median(deviations))
        logs = np.log(np.abs(deviations - self.middle) + FLOOR)
        self._base = float(logs.mean())
        rest = logs - self._base
        self._effects: dict[str, dict[Any, float]] = {}
        for name in GROUPS:
            members: dict[Any, list[float]] = {}
            for pair, value in zip(pairs, rest.tolist(), strict=True):
                members.setdefault(pair[name], []).append(value)
            effects = {
                key: sum(values) / (len(values) + PRIOR_PAIRS) for key, values in members.items()
            }
            rest -= [effects[pair[name]] for pair in pairs]
            self._effects[name] = effects

    def measure(self, pair: Row) -> float:
        """Return the deviation of a pair in units of the usual one."""
        return abs(math.log(pair["ratio"]) - self.middle) / self.get_usual(pair)

    def get_usual(self, row: Row) -> float:
        """Return the usual deviation of a row; a work or figure without a pair changes nothing."""
        return math.exp(
            self._base + sum(self._effects[name].get(row[name], 0.0) for name in GROUPS)
        )


class DeviationModel:
    """How far off a pair may be that is new in one column: of another party, or of another round.

    Each known pair is judged by those that differ from it in that column, as the new one will be.
    """

    def __init__(self, pairs: Sequence[Row], new: str) -> None:
        self._usual = UsualDeviations(pairs)
        self.middle = self._usual.middle
        scores = []
        for value in {pair[new] for pair in pairs}:
            if others := [pair for pair in pairs if pair[new] != value]:
                usual = UsualDeviations(others)
                scores += [usual.measure(pair) for pair in pairs if pair[new] == value]
        self._scores = sorted(scores)

    def get_arm(self, row: Row, nominal: float) -> float | None:
        """Return how far from the middle a deviation may be, None where the pairs are too few for
        this coverage.
        """
        place = math.ceil((len(self._scores) + 1) * nominal)
        return (
            None
            if place > len(self._scores)
            else self._scores[place - 1] * self._usual.get_usual(row)
        )


def measure_coverage(
    pairs: Sequence[Row], left_out: str
) -> Iterator[tuple[float, Row, bool, float]]:
    """Leave each value of a column out in turn; yield coverage, pair, whether its interval has it,
    and the width.
    """
    for value in sorted({pair[left_out] for pair in pairs}):
        rest = [pair for pair in pairs if pair[left_out] != value]
        if not rest:
            continue
        model = DeviationModel(rest, left_out)
        for pair in (pair for pair in pairs if pair[left_out] == value):
            for nominal in COVERAGES:
                if (arm := model.get_arm(pair, nominal)) is not None:
                    off = abs(math.log(pair["ratio"]) - model.middle)
                    yield nominal, pair, off <= arm, math.exp(2 * arm)


def expect_rows(
    connection: duckdb.DuckDBPyConnection, where: str = "true"
) -> dict[str, Expectation | str]:
    """Return what is expected of each figure of a maker by its id, or the reason why nothing can be
    said.
    """
    order = "ORDER BY published_on DESC NULLS LAST, result_id"
    rows = run_query(connection, f"SELECT * FROM ({FIGURES}) WHERE {where} {order}").to_pylist()
    kinds: dict[Kind, list[Row]] = {}
    for pair in run_query(connection, PAIRS).to_pylist() if rows else ():
        kinds.setdefault((pair["machines"], pair["measure"], pair["task"]), []).append(pair)
    get_coverages = cache(lambda kind: _measure_coverages(kinds[kind]))
    get_model = cache(lambda kind, new: DeviationModel(kinds[kind], new))
    return {row["result_id"]: _expect_row(row, kinds, get_coverages, get_model) for row in rows}


def _expect_row(
    row: Row,
    kinds: Mapping[Kind, Sequence[Row]],
    get_coverages: Callable[[Kind], Sequence[Coverage]],
    get_model: Callable[[Kind, str], DeviationModel],
) -> Expectation | str:
    """Return what is expected of one row, or the reason why nothing can be said."""
    is_time = row["minutes"] is not None
    figure = row["minutes"] if is_time else row["throughput"]
    maker = (row["family"] or "").split(" ")[0]
    if row["errors"]:
        return "its figure has an error flag; see the table flags"
    if figure is None:
        return "it prints neither a throughput nor a time to train"
    # as `replications` tells a maker's entries
    submitter = (row["submitter"] or "").lower()
    if row["relationship"] == "official" and not (
        maker in submitter or (row["brand"] or maker) in submitter
    ):
        return (
            f"{row['company']} is not the maker of {row['chip']}; the record's pairs start from a"
            " maker's figure"
        )
    kind = (
        "IPU" if maker == "graphcore" else "other",
        TIME if is_time else "throughput",
        row["task"],
    )
    pairs = kinds.get(kind, ())
    what = f"{row['task']} on {'IPUs' if kind[0] == 'IPU' else 'other chips'}, {kind[1]}"
    if not pairs:
        return (
            f"the record has no pair of a maker and a third party for {what}: what others measure"
            " cannot be expected"
        )
    # Of a round that the record knows, the third party is what is new
    model = get_model(
        kind, "party" if row["round"] in {pair["round"] for pair in pairs} else "round"
    )
    arms = [(nominal, model.get_arm(row, nominal)) for nominal in COVERAGES]
    intervals = [
        ExpectedInterval(nominal, *_apply(figure, model.middle, arm, is_time))
        for nominal, arm in arms
        if arm is not None
    ]
    if not intervals:
        return (
            f"the record has {len(pairs)} pairs for {what}, too few for an interval at"
            f" {COVERAGES[0]:.0%}"
        )
    remarks = [ALIKE[kind[0]]]
    remarks += [
        f"{len(pairs)} pairs are too few for {nominal:.0%}." for nominal, arm in arms if arm is None
    ]
    if row["model"] not in {pair["model"] for pair in pairs}:
        remarks.append(f"No pair is of {row['model']}: the interval is that of an unknown work.")
    return Expectation(
        row["result_id"],
        figure,
        "minutes" if is_time else f"{row['item']}s/s",
        intervals,
        len(pairs),
        len({pair["party"] for pair in pairs}),
        get_coverages(kind),
        _list_nearest(row, pairs),
        remarks,
    )


def _apply(figure: float, middle: float, arm: float, is_time: bool) -> tuple[float, float]:
    """Return the interval of a figure; a time is the longer, the lower the rate."""
    low, high = (math.exp(middle + sign * arm) for sign in (-1, 1))
    return (figure / high, figure / low) if is_time else (figure * low, figure * high)


def _measure_coverages(pairs: Sequence[Row]) -> list[Coverage]:
    judged: dict[tuple[str, float], list[bool]] = {}
    for left_out in LEFT_OUT[:2]:
        for nominal, _, is_covered, _ in measure_coverage(pairs, left_out):
            judged.setdefault((left_out, nominal), []).append(is_covered)
    return [Coverage(*key, sum(own), len(own)) for key, own in sorted(judged.items())]


def _list_nearest(row: Row, pairs: Sequence[Row]) -> list[Row]:
    """Return the pairs of the same figure, work, chip and number of chips first."""
    order = ("first_result_id", "model", "chip", "chip_count")
    names = (
        "party",
        "model",
        "chip",
        "chip_count",
        "round",
        "first_figure",
        "second_figure",
        "ratio",
        "vendor_part",
    )
    alike = sorted(pairs, key=lambda pair: [pair[name] != row[name] for name in order])
    return [
        {name: pair[name] for name in (*names, "second_result_id")} for pair in alike[:MAX_NEAREST]
    ]


def _round(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
