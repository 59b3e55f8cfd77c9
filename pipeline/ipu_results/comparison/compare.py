"""Compare a measurement with the record: nearest rows, ratios, what differs, what is implausible, and a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ipu_results.comparison.candidates import (
    REASONS,
    Obstacle,
    Row,
    find_figure_obstacle,
    find_obstacle,
    get_latency_basis,
    list_differences,
    load_candidates,
    sort_by_distance,
)
from ipu_results.comparison.measurement import (
    FIELDS,
    FIGURES,
    KnownWords,
    Measurement,
    build_measurement,
    load_known_words,
)
from ipu_results.comparison.plausibility import check_plausibility
from ipu_results.comparison.sources import read_source
from ipu_results.comparison.verdict import (
    GROUPS,
    UNVERIFIED,
    Comparison,
    Match,
    Ratio,
    Refusal,
    get_group,
    is_same_set_up,
    judge,
)
from ipu_results.errors import ComparisonError
from ipu_results.ground.files import DATASET
from ipu_results.store.query import open_warehouse

PER_GROUP = 1
MAX_EXAMPLES = 3
MS = 1000.0


def compare(
    source: str | Path | None = None, *, warehouse: str | Path | None = None, **figures: Any
) -> list[Comparison]:
    """Compare figures with the record: a run folder, a CSV file, or figures as keywords, one comparison per row.

    `compare(model="resnet50", platform="ipu-m2000", batch_size=4, throughput=7800)`. Keywords are columns of `results`:
    text ones such as `framework`, `precision` and `latency_basis`, and the figures `throughput` (item/s), `latency_ms`,
    `efficiency` (item/s/W), `power_w` (W) and, for MLPerf, `minutes`. What was not measured is left out; it is not 0.

    Each comparison has `verdict` (one line), `status`, `matches` (the nearest row of each group with ratios and
    differences), `refusals` (rows that may not be compared, and why), `checks` (Little's law, peak, power), `peers`
    and `to_record()`.

    Raises ComparisonError for unknown words, all at once with the nearest known, and for figures that are not numbers;
    WarehouseError if `warehouse` holds no dataset.
    """
    if (source is None) == (not figures):
        raise ComparisonError("compare either a file or figures: state one of the two")
    with open_warehouse(DATASET if warehouse is None else Path(warehouse)) as connection:
        words = load_known_words(connection)
        measurements = [build_stated(figures, words)] if source is None else read_source(Path(source), words)
        rows = {network: load_candidates(connection, network) for network in {own.network for own in measurements}}
    return [compare_with_rows(own, rows[own.network], words) for own in measurements]


def build_stated(figures: Mapping[str, Any], words: KnownWords) -> Measurement:
    """Check the keywords of `compare`. Raises ComparisonError as `compare` does."""
    if unknown := sorted(set(figures) - FIELDS):
        raise ComparisonError(f"unknown figures or columns: {', '.join(unknown)}")
    return build_measurement(figures, words, label="your figures")


def compare_with_rows(ours: Measurement, rows: Sequence[Row], words: KnownWords) -> Comparison:
    """Compare one measurement with rows of its network, from `load_candidates`."""
    machine = words.machines.get(ours.platform or "", {})
    refused: dict[Obstacle, list[str]] = {}
    comparable: list[Row] = []
    for row in rows:
        reason = find_obstacle(ours, row) or _find_missing_figure(ours, row)
        if reason is None:
            comparable.append(row)
        else:
            refused.setdefault(reason, []).append(row["result_id"])
    ordered = sort_by_distance(ours, comparable, machine.get("family"))
    matches = tuple(_build_match(ours, distance, row) for distance, row in _select_nearest(ours, ordered))
    refusals = tuple(Refusal(why, len(ids), tuple(ids[:MAX_EXAMPLES])) for why, ids in _sort_by_size(refused, ours))
    checks = tuple(check_plausibility(ours, machine))
    peers = _describe_peers(ours, comparable)
    status, verdict = judge(ours, matches, refusals, checks)
    verdict += _describe_packed(ours, rows, matches)
    return Comparison(ours, status, verdict, matches, refusals, checks, peers)


def _describe_packed(ours: Measurement, rows: Sequence[Row], matches: Sequence[Match]) -> str:
    """Say that only rows of packed sequences have our machine, batch size and precision; "" where others have."""
    if ours.packed is not None or any(is_same_set_up(ours, match.row) for match in matches):
        return ""
    packed = replace(ours, packed=True)
    count = sum(
        is_same_set_up(packed, row) and find_obstacle(packed, row) is None and _find_missing_figure(packed, row) is None
        for row in rows
    )
    if not count:
        return ""
    subject = "1 row of packed sequences has" if count == 1 else f"{count} rows of packed sequences have"
    return f"; {subject} this machine, batch size and precision: state --packed if yours are packed"


def _sort_by_size(refused: Mapping[Obstacle, list[str]], ours: Measurement) -> list[tuple[Obstacle, list[str]]]:
    """Return what the user can state first, then the largest groups; rows of another task come last.

    Nothing could make those comparable.
    """
    other_task = f"may not be compared with {ours.task}"
    return sorted(
        refused.items(),
        key=lambda item: (not item[0].has_next_step, item[0].endswith(other_task), -len(item[1]), item[0]),
    )


def _select_nearest(ours: Measurement, ordered: Sequence[tuple[float, Row]]) -> list[tuple[float, Row]]:
    """Return the nearest row of each group, and of each latency basis where the run states a latency without one."""
    seen: Counter[tuple[str, str | None]] = Counter()
    chosen = []
    for distance, row in ordered:
        group = get_group(row)
        is_open = ours.stated_basis is None and _get_first_figure(ours, row) == "latency_ms"
        basis = get_latency_basis(row) if is_open else None
        if seen[group, basis] < PER_GROUP and (basis or group not in {own for own, _ in seen}):
            chosen.append((distance, row))
            seen[group, basis] += 1
    return sorted(chosen, key=lambda pair: GROUPS.index(get_group(pair[1])))


def _list_shared_figures(ours: Measurement, row: Row) -> Iterator[str]:
    return (name for name in FIGURES if getattr(ours, name) is not None and row[name] is not None)


def _get_first_figure(ours: Measurement, row: Row) -> str:
    return next(name for name in _list_shared_figures(ours, row) if find_figure_obstacle(name, ours, row) is None)


def _find_missing_figure(ours: Measurement, row: Row) -> Obstacle | None:
    """Return why no figure of a row can be compared; None where one can."""
    shared = list(_list_shared_figures(ours, row))
    obstacles = [find_figure_obstacle(name, ours, row) for name in shared]
    if not shared:
        theirs = [name for name in FIGURES if row[name] is not None]
        own = [name for name in FIGURES if getattr(ours, name) is not None]
        reason = REASONS["no_figure"].format(ours=", ".join(own), theirs=", ".join(theirs) or "none")
        return Obstacle(reason, "different-figures")
    reasons = list(dict.fromkeys(obstacle for obstacle in obstacles if obstacle is not None))
    return None if None in obstacles else Obstacle("; ".join(reasons), reasons[0].code)


def _build_match(ours: Measurement, distance: float, row: Row) -> Match:
    obstacles = {name: find_figure_obstacle(name, ours, row) for name in _list_shared_figures(ours, row)}
    ratios = tuple(_compute_ratio(name, ours, row) for name, obstacle in obstacles.items() if obstacle is None)
    per_chip = None
    if ratios[0].figure == "throughput" and ours.chips and row["chips"] and ours.chips != row["chips"]:
        per_chip = ratios[0].ratio / ours.chips * row["chips"]
    reasons = {name: obstacle for name, obstacle in obstacles.items() if obstacle is not None}
    return Match(get_group(row), distance, row, ratios, reasons, tuple(list_differences(ours, row)), per_chip)


def _compute_ratio(figure: str, ours: Measurement, row: Row) -> Ratio:
    own, theirs = getattr(ours, figure), row[figure]
    low, high = get_interval(figure, {name: getattr(ours, name, None) for name in INTERVAL_COLUMNS}) or (own, own)
    their_low, their_high = get_interval(figure, row) or (theirs, theirs)
    if low == high and their_low == their_high:
        return Ratio(figure, own, theirs, own / theirs)
    return Ratio(figure, own, theirs, own / theirs, low / their_high, high / their_low)


INTERVAL_COLUMNS = ("batch_size", "latency_ms_low", "latency_ms_high", "minutes_low", "minutes_high", "latency_kind")


def get_interval(figure: str, values: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the stated interval or band of a figure, the lower end first; None for a figure without one.

    The interval of an amortised latency is that of the throughput, too: batch size over latency.
    """
    low, high = values.get(f"{figure}_low"), values.get(f"{figure}_high")
    if figure == "throughput" and values.get("latency_kind") == "amortised" and values.get("batch_size"):
        ends = values.get("latency_ms_low"), values.get("latency_ms_high")
        low, high = (values["batch_size"] * MS / end if end else None for end in reversed(ends))
    return (low, high) if low and high else None


def _describe_peers(ours: Measurement, rows: Sequence[Row]) -> dict[str, Any]:
    """Return number, lowest and highest throughput of the measured rows with our machine, batch and precision.

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
                latencies.setdefault(get_latency_basis(row) or REASONS["not_stated"], []).append(row["latency_ms"])
        described["latency_ms"] = {
            basis: {"rows": len(own), "low": min(own), "high": max(own)} for basis, own in sorted(latencies.items())
        }
    return described
