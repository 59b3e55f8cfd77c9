"""A comparison as text or JSON: verdict, nearest rows, what differs, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ipu_results.doors.comparison.expect import Expectation
from ipu_results.doors.comparison.verdict import Comparison, Match, Ratio
from ipu_results.kit.text import (
    escape_unprintable,
    format_count,
    format_float,
    format_json,
    format_plain,
    format_table,
)

INTERVAL_NOTE = "from, to: the ratio of the far ends of the stated intervals or bands of both sides"
MLPERF_NOTE = (
    "Your MLPerf® score is unverified: result not verified by MLCommons Association. Unverified"
    " results have not been through an MLPerf® review and may use measurement methodologies and/or"
    " workload implementations that are inconsistent with the MLPerf® specification for verified"
    " results."
)


def format_comparisons(comparisons: Sequence[Comparison], output: str) -> str:
    """Format comparisons as `text` or `json`."""
    if output == "json":
        return format_json([comparison.to_record() for comparison in comparisons])
    return "\n\n".join("\n".join(_list_lines(comparison)) for comparison in comparisons)


def _list_lines(comparison: Comparison) -> Iterator[str]:
    yield escape_unprintable(comparison.description)
    yield escape_unprintable(comparison.verdict)
    if comparison.matches:
        yield ""
        yield _format_ratios(comparison)
    for title, lines in _list_sections(comparison):
        yield ""
        yield escape_unprintable(title)
        for line in lines:
            yield f"  {escape_unprintable(line)}"


def _format_ratios(comparison: Comparison) -> str:
    """Format every ratio as a row of a table; columns that are blank throughout are left out."""
    lines = [_build_cells(match, ratio) for match in comparison.matches for ratio in match.ratios]
    shown = [column for column in lines[0] if any(line[column] for line in lines)]
    return format_table(shown, [[line[column] for column in shown] for line in lines])


def _build_cells(match: Match, ratio: Ratio) -> dict[str, str]:
    row = match.row
    # only throughputs add up over chips
    per_chip = match.ratio_per_chip if ratio.figure == "throughput" else None
    return {
        "nearest row": match.group_name,
        "ours / theirs": format_plain(ratio.ratio),
        "from": _format_bound(ratio.low),
        "to": _format_bound(ratio.high),
        "figure": ratio.figure,
        "theirs": f"{ratio.theirs:.8g}",
        "unit": ratio.unit,
        "per chip": _format_bound(per_chip),
        "machine": _format_condition(row["platform"]),
        "batch": _format_condition(row["batch_size"]),
        "precision": _format_condition(row["precision"]),
        "framework": _format_condition(row["framework"]),
        "document": _format_condition(row["document_id"]),
        "result_id": row["result_id"],
        "distance": format_plain(match.distance),
    }


def _format_bound(value: float | None) -> str:
    return "" if value is None else format_plain(value)


def _format_condition(value: str | int | None) -> str:
    return "" if value is None else str(value)


def _list_sections(comparison: Comparison) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the lines of each part below the table."""
    matches = comparison.matches
    rows_of_party = Counter(match.group for match in matches)
    for match in matches:
        lines = _list_differences(match)
        if expected := comparison.expected.get(match.row["result_id"]):
            lines += _describe_expectation(expected)
        if match.row["attribution"]:
            lines.append(f"cite as: {match.row['attribution']}")
        source = match.row["publisher"]
        # one party has several rows where latencies are timed in several ways
        if rows_of_party[match.group] > 1:
            basis = match.row["latency_basis"] or match.row["latency_kind"] or "not stated"
            source += f", {basis}"
        title = f"what differs, ours / {match.group_name} ({source})"
        if not lines:
            title += ": nothing known"
        yield title, lines
    if any(ratio.low is not None for match in matches for ratio in match.ratios):
        yield INTERVAL_NOTE, []
    # one-line sections have a title alone
    for line in _list_peers(comparison):
        yield line, []
    checks = [f"{check.name}: {check.outcome}: {check.message}" for check in comparison.checks]
    yield "plausibility", checks
    if comparison.refusals:
        refused = [f"{refusal.rows} × {refusal.reason}" for refusal in comparison.refusals]
        yield "not compared", refused
    ours = comparison.measurement
    if comparison.unusable:
        unusable = f"of {ours.model} {ours.task}, {comparison.unusable}"
        yield f"{unusable}; no verdict rests on them", []
    if ours.remarks:
        yield "assumed", list(ours.remarks)
    if ours.benchmark == "mlperf-training":
        yield MLPERF_NOTE, []


def _list_differences(match: Match) -> list[str]:
    lines = []
    one_sided = []
    for difference in match.differences:
        ours = difference.ours
        theirs = difference.theirs
        if difference.known:
            lines.append(f"{difference.what}: {ours} / {theirs}")
        else:
            side = "ours" if theirs is None else "theirs"
            one_sided.append(f"{difference.what} ({side}: {ours or theirs})")
    if one_sided:
        lines.append(f"stated on one side only: {', '.join(one_sided)}")
    for figure, reason in match.not_compared.items():
        lines.append(f"{figure} not compared: {reason}")
    return lines


def _list_peers(comparison: Comparison) -> Iterator[str]:
    peers = comparison.peers
    machine = "of this machine, batch size and precision"
    if peers.get("rows"):
        low = format_float(peers["throughput_low"])
        high = format_float(peers["throughput_high"])
        yield f"rows {machine}: {peers['rows']}, throughput {low} to {high}"
    for basis, found in peers.get("latency_ms", {}).items():
        ends = format_float(found["low"])
        if found["low"] != found["high"]:
            ends += f" to {format_float(found['high'])}"
        rows = format_count(found["rows"], "row")
        yield f"latencies {machine}, {basis}: {rows}, {ends} ms"


def _describe_expectation(expected: Expectation | str) -> list[str]:
    if isinstance(expected, str):
        return [f"expected of a third party: not known: {expected}"]
    lines = [f"expected of a third party: {expected.summary}"]
    for coverage in expected.coverage:
        lines.append(
            f"such intervals at {coverage.nominal:.0%}, made without a pair's {coverage.left_out},"
            f" contained {coverage.covered} of {coverage.pairs}"
        )
    return lines
