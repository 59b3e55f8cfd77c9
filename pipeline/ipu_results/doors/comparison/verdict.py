"""Compare a measurement with the record: nearest rows, ratios, what differs, what is implausible,
and a verdict.

The statements of `schema/comparison/` judge; here their answer gets its public types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from ipu_results.doors.comparison.expect import Expectation, expect_rows
from ipu_results.doors.comparison.measurement import (
    Measurement,
    build_measurement,
    check_columns,
    read_source,
)
from ipu_results.doors.comparison.statements import (
    READS,
    Row,
    load_runs,
    open_session,
    run_statements,
)
from ipu_results.doors.comparison.words import KnownWords, load_known_words
from ipu_results.errors import ComparisonError
from ipu_results.kit.files import DATASET
from ipu_results.kit.sql import Connection
from ipu_results.kit.statements import run_text
from ipu_results.kit.text import find_nearest_words, to_json_value
from ipu_results.record.store.query import open_warehouse
from ipu_results.schema import quote
from ipu_results.schema.vocabulary import normalise_name

MAX_VARIANTS = 3  # that a remark names
ROW_COLUMNS = (
    "result_id",
    "origin",
    "relationship",
    "publisher",
    "document_id",
    "table_name",
    "row_number",
    "published_on",
    "model",
    "variant",
    "task",
    "phase",
    "platform",
    "chip",
    "chip_count",
    "framework",
    "sdk_version",
    "precision",
    "batch_size",
    "throughput",
    "item",
    "latency_ms",
    "latency_basis",
    "latency_kind",
    "minutes",
    "efficiency",
    "power_w",
    "power_scope",
    "run_id",
    "usable",
    "errors",
    "warnings",
)
VARIANTS = """
    SELECT DISTINCT variant
    FROM candidates
    WHERE model = $model AND variant <> '' AND unusable IS DISTINCT FROM 'repeated'
    ORDER BY variant
"""

Status = Literal[
    "implausible",
    "doubtful",
    "plausible",
    "depends",
    "other-conditions",
    "only-emulated",
    "no-comparable-row",
]
Outcome = Literal["ok", "impossible", "doubtful", "not checked"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its name, outcome and arithmetic; `value` and `limit` are null where it was not
    made.
    """

    name: str
    outcome: Outcome
    message: str
    value: float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ours over theirs; `low` and `high` bound it by the stated intervals of both, null where
    neither has one. `unit` is that of the two figures.
    """

    figure: str
    ours: float
    theirs: float
    ratio: float
    low: float | None
    high: float | None
    unit: str


@dataclass(frozen=True, slots=True)
class Difference:
    """One condition.

    `known` is false where either side does not state it: then it may be the same or not.
    """

    what: str
    ours: str | None
    theirs: str | None
    known: bool


@dataclass(frozen=True, slots=True)
class Match:
    """The nearest row of a group.

    `not_compared` has the reason for each figure that both have and that is refused, `description`
    the ratio of the first figure and the row in one line.
    """

    group: str
    group_name: str
    description: str
    distance: float
    row: Row
    ratios: tuple[Ratio, ...]
    not_compared: Mapping[str, str]
    differences: tuple[Difference, ...]
    ratio_per_chip: float | None

    @property
    def ratio(self) -> Ratio:
        """The ratio of the first figure that both have."""
        return self.ratios[0]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Rows that may not be compared, with the reason; `code` is its name for programs."""

    reason: str
    code: str
    rows: int
    examples: Sequence[str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A measurement compared with the record.

    `peers` are the measured rows of its machine, batch and precision. `unusable`
    says how many rows of its model and task no verdict rests on, and why.

    `expected` has, by `result_id` of a matched figure of a maker, what a third party will measure
    of it, or a text that says why the record cannot tell. `description` says in one line what ran
    where, with its figures.
    """

    measurement: Measurement
    status: Status
    verdict: str
    matches: tuple[Match, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    checks: tuple[Check, ...] = ()
    peers: Mapping[str, Any] = field(default_factory=dict)
    unusable: str = ""
    expected: Mapping[str, Expectation | str] = field(default_factory=dict)
    description: str = ""

    def to_record(self) -> dict[str, Any]:
        """Return everything as values that JSON has."""
        record = asdict(self)
        # programs get the parts of a sentence, and of a row what says what and where it is
        del record["description"]
        for match in record["matches"]:
            del match["description"]
            match["attribution"] = match["row"]["attribution"]
            match["row"] = {name: match["row"][name] for name in ROW_COLUMNS}
            for ratio in match["ratios"]:
                del ratio["unit"]
        for refusal in record["refusals"]:
            del refusal["code"]
        return {name: to_json_value(value) for name, value in record.items()}


def compare(
    source: str | Path | None = None,
    *,
    against: str | None = None,
    warehouse: str | Path | None = None,
    **figures: Any,
) -> list[Comparison]:
    """Compare figures with the record: a run folder, a TOML or CSV file, or figures as keywords,
    one comparison per run.

    `compare(model="resnet50", platform="ipu-m2000", batch_size=4, throughput=7800)`. Keywords are
    columns of `results`: text ones such as `framework`, `precision` and `latency_basis`, and the
    figures `throughput` (item/s), `latency_ms`, `efficiency` (item/s/W), `power_w` (W) and, for
    MLPerf, `minutes`. What was not measured is left out; it is not 0. With `against`, only rows of
    that machine are compared.

    Each comparison has `verdict` (one line), `status`, `matches` (the nearest row of each group
    with ratios and differences), `refusals` (rows that may not be compared, and why), `checks`
    (Little's law, peak, power), `peers`, `unusable` (rows that no verdict rests on) and
    `to_record()`.

    Raises ComparisonError for unknown words, all at once with the nearest known, and for figures
    that are not numbers; WarehouseError if `warehouse` holds no dataset.
    """
    has_file = source is not None
    has_figures = bool(figures)
    if has_file == has_figures:
        raise ComparisonError("compare either a file or figures: state one of the two")
    folder = DATASET if warehouse is None else Path(warehouse)
    with open_warehouse(folder, READS) as connection:
        words = load_known_words(connection)
        if source is None:
            measurements = [build_stated(figures, words)]
        else:
            measurements = read_source(Path(source), words)
        where = "list_contains($models, model)"
        values: dict[str, Any] = {"models": sorted({ours.model for ours in measurements})}
        if against is not None:
            where += " AND platform = $machine"
            values["machine"] = words.find("platform", against)
            if values["machine"] is None:
                raise ComparisonError(words.describe_unknown("platform", against))
        comparisons = compare_with_rows(connection, measurements, where, values)
        return _add_expectations(connection, comparisons)


def build_stated(figures: Mapping[str, Any], words: KnownWords) -> Measurement:
    """Check the keywords of `compare`. Raises ComparisonError as `compare` does."""
    check_columns(figures)
    return build_measurement(figures, words, label="your figures")


def compare_with_rows(
    connection: Connection,
    measurements: Sequence[Measurement],
    where: str,
    values: Mapping[str, Any],
) -> list[Comparison]:
    """Compare measurements with the rows of the record of which `where` holds, whose `$name` are
    `values`.
    """
    if not measurements:
        return []
    with open_session(connection, where, values) as session:
        return judge(session, measurements)


def judge(session: Connection, measurements: Sequence[Measurement]) -> list[Comparison]:
    """Compare measurements with the rows of a session, each measurement of the record once."""
    # a number of its own tells the runs of a session apart
    load_runs(session, [ours.to_columns(run) for run, ours in enumerate(measurements, 1)])
    run_statements(session)
    answers = run_text(session, "comparison/answer.sql", "FROM answer ORDER BY run").to_pylist()
    comparisons = []
    for ours, answer in zip(measurements, answers, strict=True):
        comparisons.append(_build_comparison(_remark_on_variant(session, ours), answer))
    return comparisons


def _build_comparison(ours: Measurement, answer: Row) -> Comparison:
    peers = dict(answer["peers"])
    latencies = peers.pop("latency_ms")
    if latencies is not None:
        peers["latency_ms"] = {found.pop("basis"): found for found in latencies}
    matches = []
    for match in answer["matches"]:
        reasons = {refused["figure"]: refused["reason"] for refused in match["not_compared"]}
        matches.append(msgspec.convert({**match, "not_compared": reasons}, Match))
    return Comparison(
        measurement=ours,
        status=answer["status"],
        verdict=answer["verdict"],
        matches=tuple(matches),
        refusals=msgspec.convert(answer["refusals"], tuple[Refusal, ...]),
        checks=msgspec.convert(answer["checks"], tuple[Check, ...]),
        peers=peers,
        unusable=answer["unusable"],
        description=f"{ours.label}: {answer['description']}",
    )


def _remark_on_variant(session: Connection, ours: Measurement) -> Measurement:
    """Remark on a variant that no row of the model has, with the nearest; it may be new, so it is
    not refused.
    """
    if not ours.variant:
        return ours
    rows = session.execute(VARIANTS, {"model": ours.model}).fetchall()
    known = [variant for (variant,) in rows]
    if not known or normalise_name(ours.variant) in map(normalise_name, known):
        return ours
    # where none is similar, some show what a variant looks like
    near = find_nearest_words(ours.variant, known) or known[:MAX_VARIANTS]
    remark = (
        f"variant {ours.variant!r}: no row of {ours.model} has it; the nearest: {', '.join(near)}"
        " (variant)"
    )
    return replace(ours, remarks=(*ours.remarks, remark))


def _add_expectations(
    connection: Connection, comparisons: Sequence[Comparison]
) -> list[Comparison]:
    """Add what a third party will measure of each matched figure of a maker, if it is known."""
    # all at once: the pairs of the record are read, and its models made, once
    matches = [match for comparison in comparisons for match in comparison.matches]
    ids = sorted({match.row["result_id"] for match in matches})
    answers = {}
    if ids:
        answers = expect_rows(connection, f"result_id IN ({', '.join(map(quote, ids))})")
    completed = []
    for comparison in comparisons:
        matched = [match.row["result_id"] for match in comparison.matches]
        expected = {result_id: answers[result_id] for result_id in matched if result_id in answers}
        completed.append(replace(comparison, expected=expected))
    return completed
