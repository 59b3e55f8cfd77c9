"""Show how far the emulator's predictions are from the published figures: scores, baselines, groups
and rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from ipu_results.emulator.prediction import MS
from ipu_results.emulator.target import TARGETS, Calibration, load_target
from ipu_results.store.query import open_warehouse

from benchmarks.emulator import scoring
from benchmarks.emulator.rows import (
    BLIND,
    DEVELOPMENT,
    SETS,
    PublishedRow,
    load_published_rows,
)
from benchmarks.emulator.scoring import (
    ErrorSummary,
    ScoredRow,
    predict_rows,
    summarise_errors,
)
from benchmarks.emulator.sensitivity import ConstantChange
from benchmarks.emulator.validation import (
    EXCLUDED,
    FIT,
    LATENCY,
    LATENCY_SECOND,
    LIMITS,
    SECOND,
    Validation,
    validate,
)
from benchmarks.processes import ROOT
from benchmarks.report import ReportTable

PERCENT = 100
GIGA = 1e9
GATEWAY, GATEWAY_END = "host.prefetch", 14e9  # what PCIe gen4 x8 can at most carry
WORST_ROWS = 12
VISIBLE = 0.005  # percentage points that round to something
DESCRIPTIONS: Mapping[str, str] = {
    scoring.SCALED[0]: (
        "a + b·images per chip on C2, b scaled by the network's MACs, all by the chip's peak MAC"
        " rate"
    ),
    scoring.SCALED[1]: "the same, all by the chip's clock",
    scoring.SCALED[2]: "the same, a by the clock and b by the peak MAC rate",
    scoring.UTILISATION: "MACs over the share of peak that the C2 rows have",
    scoring.ROOFLINE: "MACs over peak; all is in on-chip memory, so no bandwidth bounds it",
    scoring.PERFECT: (
        "each product spread evenly at peak rate, operands received once; one superstep each; κ, "
        "h refitted"
    ),
    scoring.GRID: (
        "each product on a grid of field × output channels, shares rounded up; a formula balances"
        " the bytes of inputs and weights, nothing is searched; peak rate; κ and h refitted"
    ),
}
PARTS = ("amp 1x1", "amp nx1", "slic", "vmac", "other operators", "supersteps", "host path")
NAMES: Mapping[str, str] = {
    FIT: "C2, in sample",
    EXCLUDED: "C2, leave one out",
    "calibration": "C2, ResNeXt101 (the fit)",
    "resnext": "IPU-M2000, ResNeXt101",
    "ten": "the ten rows of ResNet-50, EfficientNet-B0 and -B4",
    "honest": "every other inference row that the operators cover",
    SECOND: "the same, doubtful rows by their second reading",
    LATENCY: "latency of all rows but the fit",
    LATENCY_SECOND: "the same, doubtful rows by their second reading",
}
HEADERS = ("C2", "ResNeXt101", "ten", "the 57")  # of SETS in narrow columns


@cache
def load_rows() -> list[PublishedRow]:
    with open_warehouse(ROOT / "warehouse") as connection:
        return load_published_rows(connection)


@cache
def load_validation() -> Validation:
    return validate(load_rows())


def build_scores(validation: Validation) -> list[ReportTable]:
    return [tabulate_scores(validation), tabulate_baselines(validation)]


def build_tables(validation: Validation) -> list[ReportTable]:
    by_row = [tabulate_rows(validation, name) for name in SETS]
    parts = tabulate_parts(validation)
    return [
        *build_scores(validation),
        *by_row,
        tabulate_groups(validation),
        parts,
    ]


def tabulate_scores(validation: Validation) -> ReportTable:
    """Compare each set's errors with its target."""
    rows: list[tuple[str, ...]] = []
    for name, limits in LIMITS.items():
        errors = validation.score(name)
        mean, largest = limits.check(errors)
        if limits.max is None:
            target, verdict = _format_share(limits.mean), _format_verdict(mean)
        else:
            target = f"{_format_share(limits.mean)}, max {_format_share(limits.max)}"
            both = f"MAPE {_format_verdict(mean)}, maximum {_format_verdict(largest)}"
            verdict = "met" if mean and largest else both
        rows.append((NAMES[name], *_format_summary(errors), target, verdict))
    for name, line_errors in zip(
        ("in sample", "leave one out"), validation.line_errors, strict=True
    ):
        rows.append(
            (
                f"a straight line on C2, {name}",
                *_format_summary(summarise_errors(line_errors)),
                "",
                "",
            )
        )
    return ReportTable(
        "Scores on time per batch", ("rows", "n", "MAPE %", "max %", "target", "verdict"), rows
    )


def tabulate_gateway(validation: Validation) -> ReportTable:
    """Compare the scores at the chosen rate of the gateway's memory with those at the end of its
    range.
    """
    rate = GATEWAY_END
    targets = {
        name: load_target(name).with_constants({GATEWAY: rate})
        for name in TARGETS
        if GATEWAY in load_target(name)
    }
    usual = load_target("m2000")[GATEWAY]
    scored = predict_rows([each.row for each in validation.scored], validation.calibration, targets)
    other = replace(validation, scored=scored)
    rows = [
        (NAMES[name], _format_both(validation.score(name)), _format_both(other.score(name)))
        for name in ("resnext", "ten", BLIND, SECOND, LATENCY, LATENCY_SECOND)
    ]
    return ReportTable(
        "The gateway's memory", ("rows", f"{usual / GIGA:g} GB/s", f"{rate / GIGA:g} GB/s"), rows
    )


def tabulate_doubtful(validation: Validation) -> ReportTable:
    """List the rows that a rule doubts, as printed and by the batch that their figures suggest."""
    rows = []
    for first in validation.scored:
        for reading, scored in (("printed", first), ("suggested", first.second)):
            if first.second is None or scored is None:
                continue
            labels = (
                scored.row.result_id,
                first.row.selector.network,
                reading,
                str(scored.row.batch_size),
            )
            errors = (_format_signed(scored.error), _format_signed(scored.latency_error or 0.0))
            rows.append(
                (*labels, f"{scored.row.seconds * MS:.3f}", f"{scored.seconds * MS:.3f}", *errors)
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


def list_misses(validation: Validation) -> list[str]:
    """Return a line for each target that is missed."""
    lines = []
    for name, limits in LIMITS.items():
        errors = validation.score(name)
        for what, value, limit in (
            ("MAPE", errors.mean, limits.mean),
            ("maximum", errors.max, limits.max),
        ):
            if limit is not None and value > limit:
                target = _format_share(limit)
                lines.append(
                    f"{NAMES[name]}: {what} {PERCENT * value:.1f} % against a target of {target}"
                )
    return lines


def tabulate_baselines(validation: Validation) -> ReportTable:
    """Compare the emulator with each simpler model on the same rows."""
    sets = [(name,) for name in SETS] + [DEVELOPMENT]
    rows = [("emulator", *(_format_both(validation.score(*names)) for names in sets), "1.0")]
    for name in DESCRIPTIONS:
        summaries = (_format_both(validation.score_baseline(name, *names)) for names in sets)
        rows.append((name, *summaries, f"{validation.compute_ratio([name], *DEVELOPMENT):.1f}"))
    columns = ("model", *HEADERS, "ResNeXt101 + ten", "× emulator")
    return ReportTable("Against simpler models: MAPE (max), %", columns, rows)


def tabulate_rows(validation: Validation, name: str) -> ReportTable:
    """List the rows of a set."""
    title = NAMES[name][0].upper() + NAMES[name][1:]
    times = (
        "published ms",
        "emulated ms",
        "chip",
        "host",
        "error %",
        "latency ms",
        "latency error %",
    )
    columns = ("network", "machine", "framework", "protocol", "batch", *times)
    return ReportTable(
        title,
        columns,
        [_format_row(scored) for scored in validation.scored if scored.row.set == name],
    )


def _format_row(scored: ScoredRow) -> tuple[str, ...]:
    selector, prediction = scored.row.selector, scored.prediction
    times = (
        scored.row.seconds * MS,
        scored.seconds * MS,
        prediction.device_ms,
        prediction.protocol_ms,
    )
    labels = (
        selector.network,
        selector.target,
        selector.framework,
        _format_path(scored),
        str(scored.row.batch_size),
    )
    row = (*labels, *(f"{ms:.3f}" for ms in times), _format_signed(scored.error))
    if scored.row.latency is None or scored.latency_error is None:
        return (*row, "", "")
    return (*row, f"{scored.row.latency * MS:.2f}", _format_signed(scored.latency_error))


def _format_path(scored: ScoredRow) -> str:
    path = scored.row.protocol
    return f"{path.name}, {path.io_tiles}" if path.io_tiles else path.name


def tabulate_groups(validation: Validation) -> ReportTable:
    """Group the 57 rows by network, machine and protocol: where the model holds and where it does
    not.
    """
    groups: dict[tuple[str, ...], list[float]] = {}
    for scored in validation.scored:
        if scored.row.set == BLIND:
            selector = scored.row.selector
            groups.setdefault(
                (selector.network, selector.target, scored.row.protocol.name), []
            ).append(scored.error)
    rows = [
        (
            *key,
            *_format_summary(summarise_errors(errors)),
            _format_signed(sum(errors) / len(errors)),
        )
        for key, errors in groups.items()
    ]
    columns = ("network", "machine", "protocol", "n", "MAPE %", "max %", "mean error %")
    return ReportTable("The other 57 rows by network and protocol", columns, rows)


def tabulate_mechanisms(validation: Validation) -> ReportTable:
    """Group all rows by what bounds the time of a batch, doubtful ones by their second reading."""
    groups: dict[str, list[ScoredRow]] = {}
    for each in validation.scored:
        scored = each.second or each
        groups.setdefault(name_mechanism(scored), []).append(scored)
    rows = []
    for name, members in groups.items():
        errors = [scored.error for scored in members]
        latencies = [scored.latency_error for scored in members if scored.latency_error is not None]
        mean = _format_signed(sum(errors) / len(errors))
        rows.append(
            (
                name,
                *_format_summary(summarise_errors(errors)),
                mean,
                _format_both(summarise_errors(latencies)),
            )
        )
    columns = ("what bounds a batch", "n", "MAPE %", "max %", "mean error %", "latency, %")
    return ReportTable("Errors by mechanism", columns, rows)


def name_mechanism(scored: ScoredRow) -> str:
    """Say what a batch waits for: its chip, its host process, or one after the other."""
    protocol, timing = scored.row.protocol, scored.prediction.timing
    if protocol.overlapped:
        return (
            "the chip, transfers overlapped"
            if timing.period == timing.device
            else "the host process that feeds it"
        )
    if protocol.per_image:
        return "the chip, then the host, image by image"
    return (
        "the chip and the gateway's memory"
        if protocol.prefetch
        else "the chip, then the link to the host"
    )


def tabulate_parts(validation: Validation) -> ReportTable:
    """Split the predicted time of the rows that are furthest off."""
    rows = []
    for scored in sorted(validation.scored, key=lambda each: -abs(each.error))[:WORST_ROWS]:
        selector, shares = scored.row.selector, compute_shares(scored, validation.calibration)
        labels = (
            selector.network,
            selector.target,
            _format_path(scored),
            str(scored.row.batch_size),
        )
        rows.append(
            (
                *labels,
                _format_signed(scored.error),
                *(f"{PERCENT * shares[part]:.0f}" for part in PARTS),
            )
        )
    columns = ("network", "machine", "protocol", "batch", "error %", *PARTS)
    return ReportTable("Where the predicted time goes in the worst rows, %", columns, rows)


def compute_shares(scored: ScoredRow, calibration: Calibration) -> dict[str, float]:
    """Return the shares of the time between two batches by PARTS. They add to one."""
    target, plan = load_target(scored.row.selector.target), scored.prediction.schedule
    seconds = dict.fromkeys(PARTS, 0.0)
    for step in plan.steps:
        seconds[_select_part(step.plan.vertex if step.plan else "")] += (
            step.cycles / target["clock"]
        )
    seconds["supersteps"] = plan.supersteps * calibration.fit.superstep / target["clock"]
    seconds["host path"] = scored.prediction.protocol_ms / MS
    return {part: value / scored.seconds for part, value in seconds.items()}


def _select_part(vertex: str) -> str:
    if vertex.startswith("amp") and vertex != "amp 1x1":
        return "amp nx1"
    return next((part for part in PARTS if vertex and vertex.startswith(part)), "other operators")


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
        "Change of the MAPE, in points", ("constant", "usual", "set to", "κ", *HEADERS), rows
    )


def is_visible(validation: Validation, change: ConstantChange) -> bool:
    """Check whether the mean error of any set moves by what the table shows."""
    return any(abs(point) * PERCENT >= VISIBLE for point in _compute_points(validation, change))


def _compute_points(validation: Validation, change: ConstantChange) -> list[float]:
    return [new - validation.score(name).mean for name, new in zip(SETS, change.means, strict=True)]


def _format_share(share: float) -> str:
    return f"{PERCENT * share:.3g} %"


def _format_signed(share: float) -> str:
    return f"{PERCENT * share:+.1f}"


def _format_verdict(met: bool) -> str:
    return "met" if met else "missed"


def _format_summary(errors: ErrorSummary) -> tuple[str, str, str]:
    return str(errors.rows), f"{PERCENT * errors.mean:.1f}", f"{PERCENT * errors.max:.1f}"


def _format_both(errors: ErrorSummary) -> str:
    return f"{PERCENT * errors.mean:.1f} ({PERCENT * errors.max:.1f})"
