"""Generate the parts of docs/explanation/emulator-training.md that hold figures."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from statistics import median

from ipu_results.emulator.prediction import MS
from ipu_results.emulator.target import load_target
from ipu_results.emulator.training import (
    extend_target,
    load_training_constants,
    predict_training,
)
from ipu_results.record.store.query import open_warehouse

from benchmarks.emulator.calibration import get_range
from benchmarks.emulator.page import format_table, write_parts
from benchmarks.emulator.rows import TRAINING_SETS, TrainingRow, load_training_rows
from benchmarks.emulator.scores import PERCENT
from benchmarks.emulator.scoring import summarise_errors
from benchmarks.emulator.validation import TrainingScore, iterate_sets, score_training
from benchmarks.processes import ROOT
from benchmarks.report import ReportTable

PAGE = ROOT / "docs" / "explanation" / "emulator-training.md"
SENSITIVITY = "sensitivity"
# assumed of the machine, and read by a training step
MORE = ("superstep.cycles", "host.prefetch", "host.process")
NAMES = {
    "train": "one machine and pods of up to 64 chips",
    "train-host-fed": "the same, images from PyTorch's data loader",
    "train-weak": "the same, configuration of a later release",
    "train-large": "128 and 256 chips",
}


@cache
def load_scores() -> tuple[TrainingScore, ...]:
    with open_warehouse(ROOT / "warehouse") as connection:
        return tuple(score_training(load_training_rows(connection)))


def update_page(*, sensitivity: bool = False) -> None:
    """Write all parts; the sensitivity, which takes minutes, on request."""
    parts = generate_parts(load_scores())
    if sensitivity:
        parts[SENSITIVITY] = format_sensitivity(load_scores())
    write_parts(parts, PAGE)


def generate_parts(scores: Sequence[TrainingScore]) -> dict[str, str]:
    """Return all parts but the sensitivity."""
    tables = {
        "scores": _tabulate_sets(scores),
        "groups": _tabulate_groups(scores),
        "rows": _tabulate_rows(scores),
    }
    return {name: format_table(table) for name, table in tables.items()}


def _tabulate_sets(scores: Sequence[TrainingScore]) -> ReportTable:
    rows = []
    for name, members in iterate_sets(scores):
        summary = summarise_errors([each.error for each in members])
        shares = (summary.median, summary.mean, summary.max)
        rows.append((f"{NAMES[name]} (`{name}`)", str(len(members)), *map(_format_share, shares)))
    return ReportTable("", ("rows", "n", "median %", "mean %", "max %"), rows)


def _tabulate_groups(scores: Sequence[TrainingScore]) -> ReportTable:
    """Summarise by set, network and framework, since frameworks differ more than machines do."""
    groups: dict[tuple[str, str, str], list[TrainingScore]] = {}
    for each in scores:
        name = each.row.name.removesuffix("-split")
        groups.setdefault((each.row.set, name, each.row.framework), []).append(each)
    rows = []
    for key, members in sorted(groups.items()):
        errors = [each.error for each in members]
        summary = summarise_errors(errors)
        shares = (_format_share(summary.median), _format_share(summary.max))
        rows.append((*key, str(len(members)), *shares, f"{PERCENT * median(errors):+.1f}"))
    return ReportTable(
        "", ("set", "network", "framework", "n", "median %", "max %", "median error %"), rows
    )


def _tabulate_rows(scores: Sequence[TrainingScore]) -> ReportTable:
    rows = []
    for each in scores:
        row = each.row
        prediction = each.prediction
        last = prediction.all_reduce_s + prediction.update_s + prediction.offload_s
        cells = {
            "set": row.set,
            "network": row.name,
            "variant": row.variant,
            "machine": row.target,
            "framework": row.framework,
            "chips": str(prediction.chips),
            "micro-batch": str(row.setup.micro_batch),
            "accumulation": str(row.setup.accumulation),
            "published /s": f"{row.throughput:g}",
            "emulated /s": f"{prediction.throughput:.0f}",
            "round ms": f"{prediction.round_s * MS:.2f}",
            "bubble": f"{prediction.bubble_share:.2f}",
            "sum, update ms": f"{last * MS:.1f}",
            "memory": prediction.memory_verdict,
            "error %": f"{PERCENT * each.error:+.1f}",
        }
        rows.append(cells)
    return ReportTable("", tuple(rows[0]), [tuple(cells.values()) for cells in rows])


def format_sensitivity(scores: Sequence[TrainingScore]) -> str:
    """Set each assumed constant to both ends of its range, and score one row of each network and
    setup again.
    """
    chosen = {
        _describe_setup(each.row): each
        for each in scores
        if each.row.set == TRAINING_SETS[0] and each.row.target == "m2000"
    }
    rows = [each.row for each in chosen.values()]
    constants = {**load_target("m2000").constants, **load_training_constants()}
    changes = [
        (name, each.value, value)
        for name, each in constants.items()
        if each.assumed and (name in dict(load_training_constants()) or name in MORE)
        for value in get_range(each)
    ]
    with ProcessPoolExecutor(2) as pool:
        medians = list(pool.map(_measure, [rows] * len(changes), changes))
    usual = summarise_errors([each.error for each in chosen.values()]).median
    table = [
        (name, f"{old:g}", f"{new:g}", f"{PERCENT * (value - usual):+.2f}")
        for (name, old, new), value in zip(changes, medians, strict=True)
    ]
    moving = [row for row in table if float(row[-1])]
    still = sorted({row[0] for row in table} - {row[0] for row in moving})
    text = format_table(
        ReportTable("", ("constant", "value", "changed to", "median, points"), moving)
    )
    text += f"\nOn {len(rows)} rows of the IPU-M2000, one of each network and micro-batch. "
    return f"{text}Nothing moves with {', '.join(f'`{name}`' for name in still)}.\n"


def _describe_setup(row: TrainingRow) -> tuple[str, int]:
    return row.name, row.setup.micro_batch


def _measure(rows: Sequence[TrainingRow], change: tuple[str, float, float]) -> float:
    name, _, value = change
    errors = []
    for row in rows:
        target = extend_target(load_target(row.target)).with_constants({name: value})
        prediction = predict_training(row.network, target, row.setup)
        errors.append(prediction.step_s / row.seconds - 1)
    return summarise_errors(errors).median


def _format_share(share: float) -> str:
    return f"{PERCENT * share:.1f}"
