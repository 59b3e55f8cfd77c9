"""Show row by row how far the predictions of the published inference rows are from their figures."""

from __future__ import annotations

from collections.abc import Mapping

from ipu_results.emulator.prediction import MS

from benchmarks.emulator.scores import PERCENT
from benchmarks.emulator.scoring import ScoredRow
from benchmarks.emulator.validation import Validation
from benchmarks.report import ReportTable

NAMES: Mapping[str, str] = {
    "calibration": "C2, ResNeXt101 (the fit)",
    "resnext": "IPU-M2000, ResNeXt101",
    "ten": "The ten rows of ResNet-50, EfficientNet-B0 and -B4",
    "honest": "The other 57 inference rows",
}


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


def _format_signed(share: float) -> str:
    return f"{PERCENT * share:+.1f}"
