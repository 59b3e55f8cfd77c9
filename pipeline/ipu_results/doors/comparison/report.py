"""A comparison as text or JSON: the verdict, the nearest rows, what differs, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipu_results.doors.comparison.expect import Expectation
from ipu_results.doors.comparison.verdict import Comparison, Match
from ipu_results.kit.text import (
    escape_unprintable,
    format_float,
    format_json,
    format_plain,
    format_table,
)

COLUMNS = (
    "nearest row",
    "ours / theirs",
    "from",
    "to",
    "figure",
    "theirs",
    "unit",
    "per chip",
    "machine",
    "batch",
    "precision",
    "framework",
    "document",
    "result_id",
    "distance",
)
INTERVAL_NOTE = "from, to: the ratio of the far ends of the stated intervals or bands of both sides"
MLPERF_NOTE = (
    "Your MLPerf® score is unverified: result not verified by MLCommons Association. Unverified"
    " results have not been through an MLPerf® review and may use measurement methodologies and/or"
    " workload implementations that are inconsistent with the MLPerf® specification for verified"
    " results."
)

Cells = list[str]


def format_comparisons(comparisons: Sequence[Comparison], output: str) -> str:
    """Format comparisons as `text` or `json`."""
    if output == "json":
        return format_json([comparison.to_record() for comparison in comparisons])
    return "\n\n".join("\n".join(_list_lines(comparison)) for comparison in comparisons)


def _list_lines(comparison: Comparison) -> Iterator[str]:
    yield escape_unprintable(comparison.description)
    yield escape_unprintable(comparison.verdict)
    if comparison.matches:
        table, shown = _build_table(comparison)
        yield ""
        yield format_table(shown, table)
    for title, lines in _list_sections(comparison):
        yield ""
        yield escape_unprintable(title)
        yield from (f"  {escape_unprintable(line)}" for line in lines)


def _build_table(comparison: Comparison) -> tuple[list[Cells], list[str]]:
    """Return the cells of every ratio, and the names of the columns that are not blank throughout."""
    lines = [
        _build_cells(match, number)
        for match in comparison.matches
        for number in range(len(match.ratios))
    ]
    shown = [
        column
        for column, values in zip(COLUMNS, zip(*lines, strict=True), strict=True)
        if any(values)
    ]
    return [[line[COLUMNS.index(name)] for name in shown] for line in lines], shown


def _build_cells(match: Match, number: int) -> Cells:
    ratio = match.ratios[number]
    row = match.row
    per_chip = match.ratio_per_chip if ratio.figure == "throughput" else None
    ratios = [
        "" if value is None else format_plain(value)
        for value in (ratio.ratio, ratio.low, ratio.high, per_chip)
    ]
    names = (
        "platform",
        "batch_size",
        "precision",
        "framework",
        "document_id",
        "result_id",
    )
    texts = ["" if row[name] is None else str(row[name]) for name in names]
    figure = [ratio.figure, f"{ratio.theirs:.8g}", ratio.unit]
    return [
        match.group_name,
        *ratios[:3],
        *figure,
        ratios[3],
        *texts,
        format_plain(match.distance),
    ]


def _list_sections(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the lines of each part below the table."""
    for match in comparison.matches:
        known = [f"{own.what}: {own.ours} / {own.theirs}" for own in match.differences if own.known]
        unknown = [own for own in match.differences if not own.known]
        open_ = [
            f"{own.what} ({'ours' if own.theirs is None else 'theirs'}: {own.ours or own.theirs})"
            for own in unknown
        ]
        refused = [f"{name} not compared: {reason}" for name, reason in match.not_compared.items()]
        lines = [
            *known,
            *([f"stated on one side only: {', '.join(open_)}"] if open_ else []),
            *refused,
        ]
        if expected := comparison.expected.get(match.row["result_id"]):
            lines += _describe_expectation(expected)
        if match.row["attribution"]:
            lines.append(f"cite as: {match.row['attribution']}")
        several = [own.group for own in comparison.matches].count(match.group) > 1
        timed = match.row["latency_basis"] or match.row["latency_kind"] or "not stated"
        basis = f", {timed}" if several else ""
        title = f"what differs, ours / {match.group_name} ({match.row['publisher']}{basis})"
        yield (title, lines) if lines else (f"{title}: nothing known", [])
    if comparison.matches and any(
        ratio.low is not None for match in comparison.matches for ratio in match.ratios
    ):
        yield INTERVAL_NOTE, []
    if comparison.peers.get("rows"):
        ends = " to ".join(
            format_float(comparison.peers[name]) for name in ("throughput_low", "throughput_high")
        )
        yield (
            (
                f"rows of this machine, batch size and precision: {comparison.peers['rows']},"
                f" throughput {ends}"
            ),
            [],
        )
    for basis, own in (comparison.peers.get("latency_ms") or {}).items():
        ends = " to ".join(format_float(end) for end in sorted({own["low"], own["high"]}))
        rows = f"{own['rows']} row{'s' * (own['rows'] != 1)}"
        yield f"latencies of this machine, batch size and precision, {basis}: {rows}, {ends} ms", []
    yield (
        "plausibility",
        [f"{check.name}: {check.outcome}: {check.message}" for check in comparison.checks],
    )
    if comparison.refusals:
        yield (
            "not compared",
            [f"{refusal.rows} × {refusal.reason}" for refusal in comparison.refusals],
        )
    if comparison.unusable:
        ours = comparison.measurement
        unusable = f"of {ours.model} {ours.task}, {comparison.unusable}"
        yield f"{unusable}; no verdict rests on them", []
    if comparison.measurement.remarks:
        yield "assumed", list(comparison.measurement.remarks)
    if comparison.measurement.benchmark == "mlperf-training":
        yield MLPERF_NOTE, []


def _describe_expectation(expected: Expectation | str) -> list[str]:
    if isinstance(expected, str):
        return [f"expected of a third party: not known: {expected}"]
    lines = [f"expected of a third party: {expected.summary}"]
    for own in expected.coverage:
        lines.append(
            f"such intervals at {own.nominal:.0%}, made without a pair's {own.left_out}, contained"
            f" {own.covered} of {own.pairs}"
        )
    return lines
