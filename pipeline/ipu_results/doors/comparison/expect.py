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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ipu_results.doors.comparison.statements import Row
from ipu_results.kit.sql import Connection, run_query
from ipu_results.schema import fill_placeholders

COVERAGES = (0.8, 0.95)
GROUPS = ("model", "first_result_id")
# The coarser group counts as this number of pairs: 1 and 3 gave the same coverage, 1 the narrower
# intervals.
PRIOR_PAIRS = 1
MAX_WIDTH = 3  # of the narrowest interval, high end over low: a wider one tells nothing
FLOOR = 0.005  # added to each deviation: a pair that agrees to the last digit has a logarithm then
LEFT_OUT = ("party", "round", "chip", "maker")
TOLD = ("party", "round")  # of these, with an answer
MAX_NEAREST = 5
SHOWN = (
    "party",
    "model",
    "chip",
    "chip_count",
    "round",
    "first_figure",
    "second_figure",
    "ratio",
    "vendor_part",
    "second_result_id",
)
"""What an answer has of a pair."""
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


class Kind(NamedTuple):
    """Pairs that say something of each other."""

    machines: str
    measure: str
    task: str

    def __str__(self) -> str:
        machines = "IPUs" if self.machines == "IPU" else "other chips"
        return f"{self.task} on {machines}, {self.measure}"


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
        ends = []
        for interval in self.intervals:
            low = _round(interval.low)
            high = _round(interval.high)
            ends.append(f"{low} to {high} {self.unit} ({interval.nominal:.0%})")
        rests_on = f"from {self.pairs} pairs of {self.parties} third parties"
        return f"{', '.join(ends)}, {rests_on}. {' '.join(self.remarks)}"

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
        # what is usual multiplies from group to group: its logarithm is a sum
        logs = np.log(np.abs(deviations - self.middle) + FLOOR)
        self._base = float(logs.mean())
        rest = logs - self._base
        self._effects: dict[str, dict[str, float]] = {}
        for name in GROUPS:
            members: dict[str, list[float]] = {}
            for pair, value in zip(pairs, rest.tolist(), strict=True):
                members.setdefault(pair[name], []).append(value)
            effects = {}
            # the fewer pairs a group has, the nearer it is to the coarser one
            for key, values in members.items():
                effects[key] = sum(values) / (len(values) + PRIOR_PAIRS)
            rest -= [effects[pair[name]] for pair in pairs]
            self._effects[name] = effects

    def measure(self, pair: Row) -> float:
        """Return the deviation of a pair in units of the usual one."""
        return abs(math.log(pair["ratio"]) - self.middle) / self.get_usual(pair)

    def get_usual(self, row: Row) -> float:
        """Return the usual deviation of a row; a work or figure without a pair changes nothing."""
        effects = sum(self._effects[name].get(row[name], 0.0) for name in GROUPS)
        return math.exp(self._base + effects)


class DeviationModel:
    """How far off a pair may be that is new in one column: of another party, or of another round.

    Each known pair is judged by those that differ from it in that column, as the new one will be.
    """

    def __init__(self, pairs: Sequence[Row], new: str) -> None:
        self._usual = UsualDeviations(pairs)
        self.middle = self._usual.middle
        scores = []
        for value in {pair[new] for pair in pairs}:
            others = [pair for pair in pairs if pair[new] != value]
            if others:
                usual = UsualDeviations(others)
                scores += [usual.measure(pair) for pair in pairs if pair[new] == value]
        self._scores = sorted(scores)

    def get_arm(self, row: Row, nominal: float) -> float | None:
        """Return how far from the middle a deviation may be, None where the pairs are too few for
        this coverage.
        """
        # the score of a new pair is equally likely to be in any place among the known ones
        place = math.ceil((len(self._scores) + 1) * nominal)
        if place > len(self._scores):
            return None
        return self._scores[place - 1] * self._usual.get_usual(row)


class HeldOut(NamedTuple):
    """A pair and an interval that was made without it: whether it contains the pair, and the factor
    between its ends.
    """

    nominal: float
    pair: Row
    is_covered: bool
    width: float


def measure_coverage(pairs: Sequence[Row], left_out: str) -> Iterator[HeldOut]:
    """Leave each value of a column out in turn; yield its pairs with an interval of the rest."""
    for value in sorted({pair[left_out] for pair in pairs}):
        rest = [pair for pair in pairs if pair[left_out] != value]
        if not rest:
            continue
        model = DeviationModel(rest, left_out)
        for pair in pairs:
            if pair[left_out] != value:
                continue
            # ratios are judged by their logarithm: half and double are equally far off
            off = abs(math.log(pair["ratio"]) - model.middle)
            for nominal in COVERAGES:
                arm = model.get_arm(pair, nominal)
                if arm is not None:
                    yield HeldOut(nominal, pair, off <= arm, math.exp(2 * arm))


class KnownPairs:
    """The pairs of one kind, and what each further one is expected to be by them."""

    def __init__(self) -> None:
        self.pairs: list[Row] = []
        self._models: dict[str, DeviationModel] = {}

    @cached_property
    def coverages(self) -> list[Coverage]:
        """How often intervals made without a party, or without a round, contained its pairs."""
        judged: dict[tuple[str, float], list[bool]] = {}
        for left_out in TOLD:
            for held_out in measure_coverage(self.pairs, left_out):
                key = (left_out, held_out.nominal)
                judged.setdefault(key, []).append(held_out.is_covered)
        coverages = []
        for (left_out, nominal), covered in sorted(judged.items()):
            coverages.append(Coverage(left_out, nominal, sum(covered), len(covered)))
        return coverages

    def list_values(self, column: str) -> set[str]:
        """Return the values of a column."""
        return {pair[column] for pair in self.pairs}

    def choose_model(self, row: Row) -> DeviationModel:
        """Return the model of what is new: of a round that the pairs have, the third party."""
        new = "party" if row["round"] in self.list_values("round") else "round"
        if new not in self._models:
            self._models[new] = DeviationModel(self.pairs, new)
        return self._models[new]


def expect_rows(connection: Connection, where: str = "true") -> dict[str, Expectation | str]:
    """Return what is expected of each figure of a maker by its id, or the reason why nothing can be
    said.
    """
    order = "ORDER BY published_on DESC NULLS LAST, result_id"
    rows = run_query(connection, f"SELECT * FROM ({FIGURES}) WHERE {where} {order}").to_pylist()
    if not rows:
        return {}
    known: dict[Kind, KnownPairs] = {}
    for pair in run_query(connection, PAIRS).to_pylist():
        kind = Kind(pair["machines"], pair["measure"], pair["task"])
        known.setdefault(kind, KnownPairs()).pairs.append(pair)
    return {row["result_id"]: _expect_row(row, known) for row in rows}


def _expect_row(row: Row, known: Mapping[Kind, KnownPairs]) -> Expectation | str:
    """Return what is expected of one row, or the reason why nothing can be said."""
    is_time = row["minutes"] is not None
    figure = row["minutes"] if is_time else row["throughput"]
    maker = (row["family"] or "").split(" ")[0]
    if row["errors"]:
        return "its figure has an error flag; see the table flags"
    if figure is None:
        return "it prints neither a throughput nor a time to train"
    # as `replications` tells a maker's entries: by words of the submitter's name
    submitter = (row["submitter"] or "").lower()
    brand = row["brand"] or maker
    is_of_maker = maker in submitter or brand in submitter
    if row["relationship"] == "official" and not is_of_maker:
        return (
            f"{row['company']} is not the maker of {row['chip']}; the record's pairs start from a"
            " maker's figure"
        )
    machines = "IPU" if maker == "graphcore" else "other"
    kind = Kind(machines, TIME if is_time else "throughput", row["task"])
    if kind not in known:
        return (
            f"the record has no pair of a maker and a third party for {kind}: what others measure"
            " cannot be expected"
        )
    pairs = known[kind].pairs
    model = known[kind].choose_model(row)
    intervals = []
    remarks = [ALIKE[machines]]
    # a row may have the narrow interval and not the wide one, which needs more pairs
    for nominal in COVERAGES:
        arm = model.get_arm(row, nominal)
        if arm is None:
            remarks.append(f"{len(pairs)} pairs are too few for {nominal:.0%}.")
            continue
        low = math.exp(model.middle - arm)
        high = math.exp(model.middle + arm)
        if is_time:  # the longer, the lower the rate
            intervals.append(ExpectedInterval(nominal, figure / high, figure / low))
        else:
            intervals.append(ExpectedInterval(nominal, figure * low, figure * high))
    if not intervals:
        lowest = f"{COVERAGES[0]:.0%}"
        return f"the record has {len(pairs)} pairs for {kind}, too few for an interval at {lowest}"
    narrowest = intervals[0]
    width = narrowest.high / narrowest.low
    if width > MAX_WIDTH:
        return (
            f"others differ so much in {row['model']} that the interval at {narrowest.nominal:.0%}"
            f" would span a factor of {width:.1f}, above {MAX_WIDTH}"
        )
    if row["model"] not in known[kind].list_values("model"):
        remarks.append(f"No pair is of {row['model']}: the interval is that of an unknown work.")
    return Expectation(
        result_id=row["result_id"],
        figure=figure,
        unit="minutes" if is_time else f"{row['item']}s/s",
        intervals=intervals,
        pairs=len(pairs),
        parties=len(known[kind].list_values("party")),
        coverage=known[kind].coverages,
        nearest=_list_nearest(row, pairs),
        remarks=remarks,
    )


def _list_nearest(row: Row, pairs: Sequence[Row]) -> list[Row]:
    """Return the pairs of the same figure, work, chip and number of chips first."""
    by = ("first_result_id", "model", "chip", "chip_count")
    # False is before True: what is alike comes first
    nearest = sorted(pairs, key=lambda pair: [pair[name] != row[name] for name in by])
    return [{name: pair[name] for name in SHOWN} for pair in nearest[:MAX_NEAREST]]


def _round(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
