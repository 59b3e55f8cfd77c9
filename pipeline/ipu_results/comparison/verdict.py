"""Compare a measurement with the record: nearest rows, ratios, what differs, what is implausible,
and a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import duckdb

from ipu_results.comparison.comparable import (
    NOT_STATED,
    RUN,
    Difference,
    Obstacle,
    Row,
    find_doubted,
    find_figure_obstacle,
    find_missing_figure,
    find_obstacle,
    get_latency_basis,
    is_same_set_up,
    list_differences,
    list_shared_figures,
    load_rows,
    remark_on_variant,
    sort_by_distance,
)
from ipu_results.comparison.expect import Expectation, expect_rows
from ipu_results.comparison.measurement import (
    Measurement,
    build_measurement,
    check_columns,
    read_source,
)
from ipu_results.comparison.mistakes import LIMITS, doubt_other_machine, doubt_share, name_mistake
from ipu_results.comparison.plausibility import (
    TEXTS,
    Check,
    check_plausibility,
    compute_share,
    find_limits,
)
from ipu_results.comparison.ratio import Ratio, compute_ratio, get_gap
from ipu_results.comparison.words import KnownWords, load_known_words
from ipu_results.errors import ComparisonError
from ipu_results.ground.files import DATASET
from ipu_results.ground.physics import MAX_BATCHES_IN_FLIGHT
from ipu_results.ground.text import format_plain, to_json_value
from ipu_results.schema import quote
from ipu_results.schema.usable import describe_unusable, find_unusable
from ipu_results.store.query import open_warehouse

MAX_EXAMPLES = 3  # ids of refused rows that are named for each reason
UNKNOWN = "unknown"  # published, by whom seen from the maker of the chip is not known
GROUP_NAMES: Mapping[str, str] = RUN["groups"]
ROW_NAMES: Mapping[str, str] = RUN["rows"]
GROUPS = tuple(GROUP_NAMES)
UNVERIFIED = ("emulated", "submitted")  # groups that no verdict rests on
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

Status = Literal[
    "implausible",
    "doubtful",
    "plausible",
    "depends",
    "other-conditions",
    "only-emulated",
    "no-comparable-row",
]


@dataclass(frozen=True, slots=True)
class Match:
    """The nearest row of a group.

    `not_compared` has the reason for each figure that both have and that is refused.
    """

    group: str
    distance: float
    row: Row
    ratios: tuple[Ratio, ...]
    not_compared: Mapping[str, str]
    differences: tuple[Difference, ...]
    ratio_per_chip: float | None = None

    @property
    def ratio(self) -> Ratio:
        """The ratio of the first figure that both have."""
        return self.ratios[0]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Rows that may not be compared, with the reason."""

    reason: Obstacle
    rows: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A measurement compared with the record.

    `peers` are the measured rows of its machine, batch and precision. `unusable`
    says how many rows of its model and task no verdict rests on, and why.

    `expected` has, by `result_id` of a matched figure of a maker, what a third party will measure
    of it, or a text that says why the record cannot tell.
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

    def to_record(self) -> dict[str, Any]:
        """Return everything as values that JSON has."""
        record = asdict(self)
        for match, own in zip(record["matches"], self.matches, strict=True):
            match["row"] = {name: own.row[name] for name in ROW_COLUMNS}
            match["group_name"] = GROUP_NAMES[own.group]
            match["attribution"] = own.row["attribution"]
        return {name: to_json_value(value) for name, value in record.items()}


def get_group(row: Row) -> str:
    """Return the group of a row: who measured, or that it is emulated."""
    return "emulated" if row["origin"] == "emulated" else row["relationship"] or UNKNOWN


def get_unit(figure: str, row: Row) -> str:
    """Return the unit of a figure as a reader writes it."""
    items = f"{row['item'] or 'item'}s"
    units = {
        "throughput": f"{items}/s",
        "efficiency": f"{items}/s/W",
        "latency_ms": "ms",
        "minutes": "min",
    }
    return units.get(figure, "W")


SETTLED = ("implausible", "doubtful", "plausible", "depends")


def judge(
    ours: Measurement,
    matches: Sequence[Match],
    refusals: Sequence[Refusal],
    checks: Sequence[Check],
    doubted: Sequence[Row] = (),
) -> tuple[Status, str]:
    """Return the status and the verdict: what is impossible first, then what the nearest measured
    row says.

    `doubted` are rows of the same set-up that an error or a doubt keeps from a comparison.
    """
    status, text = _judge_by_rows(ours, matches, refusals, describe_doubted(doubted))
    for outcome in ("impossible", "doubtful"):
        if failed := [check for check in checks if check.outcome == outcome]:
            worse: Status = "implausible" if outcome == "impossible" else "doubtful"
            status = worse
            text = f"{failed[0].name}: {failed[0].message}"
            break
    notes = [f"; your run is marked as suspect: {ours.suspect}"] if ours.suspect else []
    label = "emulated, not measured: " if ours.origin == "emulated" else ""
    return status, f"{label}{status.replace('-', ' ')}: {text}{''.join(notes)}"


def _judge_by_rows(
    ours: Measurement, matches: Sequence[Match], refusals: Sequence[Refusal], doubted: str
) -> tuple[Status, str]:
    measured = [match for match in matches if match.group not in UNVERIFIED]
    emulated = [match for match in matches if match.group == "emulated"]
    same = [match for match in measured if is_same_set_up(ours, match.row)]
    # not settled: a match that rests on a latency of which a side does not say what it times
    settled = [
        match for match in same if match.ratio.figure != "latency_ms" or _has_bases(ours, match)
    ]
    if same and not settled:
        return _judge_by_bases(ours, same)
    if settled:
        nearest = min(settled, key=lambda match: match.distance)
        has_bases = _has_bases(ours, nearest)
        others = (own for own in nearest.ratios[1:] if own.figure != "latency_ms" or has_bases)
        ratio = max([nearest.ratio, *others], key=get_gap)
        if get_gap(ratio) > LIMITS.doubtful_factor:
            batch = "" if ours.benchmark else TEXTS["same_batch"]
            named = name_mistake(ours, ratio.figure, ratio.ratio, nearest.row)
            limit = TEXTS["apart"].format(factor=f"{LIMITS.doubtful_factor:g}", batch=batch)
            return "doubtful", f"{describe_match(nearest, ratio)}: {limit}{named}"
        return "plausible", describe_match(nearest)
    if measured:
        nearest = min(measured, key=lambda match: match.distance)
        for match in sorted(measured, key=lambda match: match.distance):
            if doubt := doubt_other_machine(ours, match.ratio.figure, match.ratio.ratio, match.row):
                return "doubtful", f"{describe_match(match)}: {doubt}"
        return "other-conditions", f"{describe_match(nearest)}: {doubted or TEXTS['no_such_row']}"
    more = f"; {doubted}" if doubted else ""
    if emulated:
        return "only-emulated", f"{describe_match(emulated[0])}: {TEXTS['no_measured']}{more}"
    if matches:
        return "no-comparable-row", f"{describe_match(matches[0])}: {TEXTS['no_other']}{more}"
    if refusals:
        count = sum(refusal.rows for refusal in refusals)
        largest = refusals[0]
        rows = f"{count} row{'' if count == 1 else 's'}"
        what = {"model": ours.model, "most": largest.rows, "reason": largest.reason}
        return "no-comparable-row", f"{TEXTS['refused'].format(rows=rows, **what)}{more}"
    return "no-comparable-row", TEXTS["no_row"].format(model=ours.model)


def describe_doubted(rows: Sequence[Row]) -> str:
    """Say that rows of the same set-up are not compared with, and by which rule and reason; "" for
    none.
    """
    if not rows:
        return ""
    count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    verb = "is" if len(rows) == 1 else "are"
    such_as = ":" if len(rows) == 1 else ", such as"
    text = TEXTS["doubted"].format(rows=count, verb=verb)
    return f"{text}{such_as} {rows[0]['result_id']} ({rows[0]['doubt']})"


def _has_bases(ours: Measurement, match: Match) -> bool:
    """Return whether both sides say what their latency times."""
    return None not in (ours.stated_basis, get_latency_basis(match.row))


def _judge_by_bases(ours: Measurement, matches: Sequence[Match]) -> tuple[Status, str]:
    """Judge a latency by the nearest row of each basis; what only the basis can explain settles
    nothing.
    """
    bases: dict[str | None, Match] = {}
    for match in sorted(matches, key=lambda match: match.distance):
        bases.setdefault(get_latency_basis(match.row), match)
    gaps = [get_gap(match.ratio) for match in bases.values()]
    texts = [
        TEXTS["if_basis" if basis else "without_basis"].format(
            ratio=format_plain(match.ratio.ratio),
            basis=basis,
            row=_describe_row(match, match.ratio),
        )
        for basis, match in bases.items()
    ]
    stated = "; ".join(texts)
    if max(gaps) <= LIMITS.doubtful_factor:
        return "plausible", stated
    several = len(bases.keys() - {None}) > 1
    if min(gaps) > LIMITS.doubtful_factor * (1 if several else MAX_BATCHES_IN_FLIGHT):
        named = (
            name_mistake(ours, match.ratio.figure, match.ratio.ratio, match.row)
            for match in bases.values()
        )
        far = TEXTS["apart_bases"].format(factor=f"{LIMITS.doubtful_factor:g}")
        return "doubtful", f"{stated}: {far}{next(filter(None, named), '')}"
    step = TEXTS["rows_say_no" if ours.stated_basis else "state_basis"]
    return "depends", f"{stated}: {TEXTS['depends'].format(step=step)}"


def describe_match(match: Match, ratio: Ratio | None = None) -> str:
    """Describe a match in one line: ratio, by default that of the first figure, interval, figure
    and the row.
    """
    ratio = ratio or match.ratio
    ends = ""
    if ratio.low is not None and ratio.high is not None:
        ends = f" ({format_plain(ratio.low)} to {format_plain(ratio.high)})"
    words = {"kind": ROW_NAMES[match.group], "row": _describe_row(match, ratio)}
    return TEXTS["nearest"].format(ratio=f"{format_plain(ratio.ratio)}{ends}", **words)


def _describe_row(match: Match, ratio: Ratio) -> str:
    row = match.row
    batch = f", batch {row['batch_size']}" if row["batch_size"] else ""
    software = f", {row['framework']}" if row["framework"] else ""
    figure = f"{ratio.theirs:.12g} {get_unit(ratio.figure, row)}"
    size = f", {row['input_size']}" if row["input_size"] else ""
    return f"({row['publisher']}, {row['platform']}{size}{batch}{software}, {figure})"


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
    if (source is None) == (not figures):
        raise ComparisonError("compare either a file or figures: state one of the two")
    with open_warehouse(DATASET if warehouse is None else Path(warehouse)) as connection:
        words = load_known_words(connection)
        measurements = (
            [build_stated(figures, words)] if source is None else read_source(Path(source), words)
        )
        machine = None if against is None else words.find("platform", against)
        if against is not None and machine is None:
            raise ComparisonError(words.describe_unknown("platform", against))
        only = "" if machine is None else f" AND r.platform = {quote(machine)}"
        rows = {
            model: load_rows(connection, f"r.model = {quote(model)}{only}")
            for model in {own.model for own in measurements}
        }
        comparisons = [compare_with_rows(own, rows[own.model], words) for own in measurements]
        return _add_expectations(connection, comparisons)


def _add_expectations(
    connection: duckdb.DuckDBPyConnection, comparisons: Sequence[Comparison]
) -> list[Comparison]:
    """Add what a third party will measure of each matched figure of a maker, or why nobody knows."""
    ids = sorted({match.row["result_id"] for own in comparisons for match in own.matches})
    if not ids:
        return list(comparisons)
    answers = expect_rows(connection, f"result_id IN ({', '.join(map(quote, ids))})")
    completed = []
    for own in comparisons:
        matched = [match.row["result_id"] for match in own.matches]
        expected = {key: answers[key] for key in matched if key in answers}
        completed.append(replace(own, expected=expected))
    return completed


def build_stated(figures: Mapping[str, Any], words: KnownWords) -> Measurement:
    """Check the keywords of `compare`. Raises ComparisonError as `compare` does."""
    check_columns(figures)
    return build_measurement(figures, words, label="your figures")


def build_from_row(row: Row) -> Measurement:
    """Return a row of the record as a measurement."""
    names = {field.name for field in fields(Measurement)} & set(row)
    values = {name: row[name] for name in names if row[name] is not None}
    return Measurement(**{**values, "label": row["result_id"]})


def compare_with_rows(ours: Measurement, rows: Sequence[Row], words: KnownWords) -> Comparison:
    """Compare one measurement with rows of its model, each measurement once."""
    unusable = describe_unusable([row for row in rows if row["task"] == ours.task])
    rows = [row for row in rows if find_unusable(row) != "repeated"]
    ours = remark_on_variant(ours, rows)
    machine = words.machines.get(ours.platform or "", {})
    refused: dict[Obstacle, list[str]] = {}
    comparable: list[Row] = []
    for row in rows:
        reason = find_obstacle(ours, row) or find_missing_figure(ours, row)
        if reason is None:
            comparable.append(row)
        else:
            refused.setdefault(reason, []).append(row["result_id"])
    ordered = sort_by_distance(ours, comparable, machine.get("family"))
    matches = tuple(
        _build_match(ours, distance, row) for distance, row in _select_nearest(ours, ordered)
    )
    refusals = tuple(
        Refusal(why, len(ids), tuple(ids[:MAX_EXAMPLES]))
        for why, ids in _sort_by_size(refused, ours)
    )
    checks = tuple(check_plausibility(ours, machine))
    peers = _describe_peers(ours, comparable)
    doubted = [row for row in find_doubted(ours, rows) if get_group(row) not in UNVERIFIED]
    status, verdict = judge(ours, matches, refusals, checks, doubted)
    if status not in SETTLED and (doubt := doubt_share(ours, machine, find_best_share(ours, rows))):
        status = "doubtful"
        verdict = f"doubtful: {doubt}"
    verdict += _describe_packed(ours, rows, matches)
    return Comparison(ours, status, verdict, matches, refusals, checks, peers, unusable)


def find_best_share(ours: Measurement, rows: Sequence[Row]) -> tuple[float, Row] | None:
    """Return the highest share of the peak that a usable row of the model and task reaches, with
    the row.
    """
    shares = (
        (share, row)
        for row in rows
        if row["task"] == ours.task and row["usable"]
        if (share := compute_share(build_from_row(row), find_limits(row["chip"])))
    )
    return max(shares, key=lambda pair: pair[0], default=None)


def _describe_packed(ours: Measurement, rows: Sequence[Row], matches: Sequence[Match]) -> str:
    """Say that only rows of packed sequences have our machine, batch size and precision; "" where
    others have.
    """
    if ours.packed is not None or any(is_same_set_up(ours, match.row) for match in matches):
        return ""
    packed = replace(ours, packed=True)
    count = sum(
        is_same_set_up(packed, row)
        and find_obstacle(packed, row) is None
        and find_missing_figure(packed, row) is None
        for row in rows
    )
    if not count:
        return ""
    subject, have = ("1 row", "has") if count == 1 else (f"{count} rows", "have")
    return f"; {subject} {TEXTS['packed_rows'].format(have=have)}"


def _sort_by_size(
    refused: Mapping[Obstacle, list[str]], ours: Measurement
) -> list[tuple[Obstacle, list[str]]]:
    """Return what the user can state first, then the largest groups; rows of another task come
    last.

    Nothing could make those comparable.
    """
    other_task = f"may not be compared with {ours.task}"
    return sorted(
        refused.items(),
        key=lambda item: (
            not item[0].has_next_step,
            item[0].endswith(other_task),
            -len(item[1]),
            item[0],
        ),
    )


def _select_nearest(
    ours: Measurement, ordered: Sequence[tuple[float, Row]]
) -> list[tuple[float, Row]]:
    """Return the nearest row of each group, and of each latency basis where the run states a
    latency without one.
    """
    chosen: dict[tuple[str, str | None], tuple[float, Row]] = {}
    for distance, row in ordered:
        group = get_group(row)
        figures = (
            name
            for name in list_shared_figures(ours, row)
            if find_figure_obstacle(name, ours, row) is None
        )
        is_open = ours.stated_basis is None and next(figures) == "latency_ms"
        basis = get_latency_basis(row) if is_open else None
        if (group, basis) not in chosen and (basis or group not in {own for own, _ in chosen}):
            chosen[group, basis] = distance, row
    return sorted(chosen.values(), key=lambda pair: GROUPS.index(get_group(pair[1])))


def _build_match(ours: Measurement, distance: float, row: Row) -> Match:
    obstacles = {
        name: find_figure_obstacle(name, ours, row) for name in list_shared_figures(ours, row)
    }
    ratios = tuple(
        compute_ratio(name, ours, row) for name, obstacle in obstacles.items() if obstacle is None
    )
    per_chip = None
    if (
        ratios[0].figure == "throughput"
        and ours.chip_count
        and row["chip_count"]
        and ours.chip_count != row["chip_count"]
    ):
        per_chip = ratios[0].ratio / ours.chip_count * row["chip_count"]
    reasons = {name: obstacle for name, obstacle in obstacles.items() if obstacle is not None}
    return Match(
        get_group(row), distance, row, ratios, reasons, tuple(list_differences(ours, row)), per_chip
    )


def _describe_peers(ours: Measurement, rows: Sequence[Row]) -> dict[str, Any]:
    """Return number, lowest and highest throughput of the measured rows with our machine, batch and
    precision.

    A run with a latency gets the same of their latencies, by what they time.
    """
    peers = [row for row in rows if is_same_set_up(ours, row) and get_group(row) not in UNVERIFIED]
    values = [row["throughput"] for row in peers if row["throughput"]]
    described: dict[str, Any] = {
        "rows": len(values),
        "throughput_low": min(values, default=None),
        "throughput_high": max(values, default=None),
    }
    if ours.latency_ms is not None:
        latencies: dict[str, list[float]] = {}
        for row in peers:
            if row["latency_ms"]:
                latencies.setdefault(get_latency_basis(row) or NOT_STATED, []).append(
                    row["latency_ms"]
                )
        described["latency_ms"] = {
            basis: {"rows": len(own), "low": min(own), "high": max(own)}
            for basis, own in sorted(latencies.items())
        }
    return described
