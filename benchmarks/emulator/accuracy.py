"""Show row by row how far the predictions of the published inference rows are from their figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ipu_results.emulator.prediction import MS

from benchmarks.emulator.rows import SETS
from benchmarks.emulator.scores import PERCENT
from benchmarks.emulator.scoring import ScoredRow
from benchmarks.emulator.sensitivity import ConstantChange
from benchmarks.emulator.validation import Validation
from benchmarks.report import ReportTable

VISIBLE = 0.005  # percentage points that round to something
NAMES: Mapping[str, str] = {
    "calibration": "C2, ResNeXt101 (the fit)",
    "resnext": "IPU-M2000, ResNeXt101",
    "ten": "The ten rows of ResNet-50, EfficientNet-B0 and -B4",
    "honest": "The other 57 inference rows",
}
HEADERS = ("C2", "ResNeXt101", "ten", "the 57")  # of SETS in narrow columns


def tabulate_doubtful(validation: Validation) -> ReportTable:
    """List the rows that a rule doubts, as printed and by the batch that their figures suggest."""
    rows = []
    for first in validation.scored:
        for reading, scored in (("printed", first), ("suggested", first.second)):
            if first.second is None or scored is None:
                continue
            rows.append(
                (
                    scored.row.result_id,
                    first.row.selector.network,
                    reading,
                    str(scored.row.batch_size),
                    f"{scored.row.seconds * MS:.3f}",
                    f"{scored.seconds * MS:.3f}",
                    _format_signed(scored.error),
                    _format_signed(scored.latency_error or 0.0),
                )
            )
    columns = (
        "result",
        "network",
        "batch is",
        "batch",
        "published ms",
        "emulated ms",
        "error %",
        "latency error %",
    )
    return ReportTable("Doubtful rows", columns, rows)


def tabulate_rows(validation: Validation, name: str) -> ReportTable:
    """List the rows of a set."""
    columns = (
        "network",
        "machine",
        "framework",
        "protocol",
        "batch",
        "published ms",
        "emulated ms",
        "chip",
        "host",
        "error %",
        "latency ms",
        "latency error %",
    )
    rows = [_format_row(scored) for scored in validation.scored if scored.row.set == name]
    return ReportTable(NAMES[name], columns, rows)


def _format_row(scored: ScoredRow) -> tuple[str, ...]:
    selector = scored.row.selector
    prediction = scored.prediction
    path = scored.row.protocol
    times = (
        scored.row.seconds * MS,
        scored.seconds * MS,
        prediction.device_ms,
        prediction.protocol_ms,
    )
    row = (
        selector.network,
        selector.target,
        selector.framework,
        f"{path.name}, {path.io_tiles}" if path.io_tiles else path.name,
        str(scored.row.batch_size),
        *(f"{ms:.3f}" for ms in times),
        _format_signed(scored.error),
    )
    if scored.row.latency is None or scored.latency_error is None:
        return (*row, "", "")
    return (*row, f"{scored.row.latency * MS:.2f}", _format_signed(scored.latency_error))


def tabulate_sensitivity(validation: Validation, changes: Sequence[ConstantChange]) -> ReportTable:
    """Show the change of the mean error per set, in points, at both ends of each assumed constant."""
    rows = [
        (
            *(change.constant, f"{change.usual:g}", f"{change.value:g}", f"{change.superstep:.0f}"),
            *(f"{PERCENT * point:+.2f}" for point in _compute_points(validation, change)),
        )
        for change in changes
        if is_visible(validation, change)
    ]
    return ReportTable(
        "Change of the mean error, in points", ("constant", "usual", "set to", "κ", *HEADERS), rows
    )


def is_visible(validation: Validation, change: ConstantChange) -> bool:
    """Check whether the mean error of any set moves by what the table shows."""
    return any(abs(point) * PERCENT >= VISIBLE for point in _compute_points(validation, change))


def _compute_points(validation: Validation, change: ConstantChange) -> list[float]:
    return [new - validation.score(name).mean for name, new in zip(SETS, change.means, strict=True)]


def _format_signed(share: float) -> str:
    return f"{PERCENT * share:+.1f}"
