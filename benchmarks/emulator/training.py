"""Generate the parts of docs/explanation/emulator-training.md that hold figures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from statistics import median

from ipu_results.emulator.prediction import MS
from ipu_results.record.store.query import open_warehouse

from benchmarks.emulator.page import format_table, write_parts
from benchmarks.emulator.rows import load_training_rows
from benchmarks.emulator.scores import PERCENT
from benchmarks.emulator.scoring import summarise_errors
from benchmarks.emulator.validation import TrainingScore, score_training
from benchmarks.processes import ROOT
from benchmarks.report import ReportTable

PAGE = ROOT / "docs" / "explanation" / "emulator-training.md"
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


def update_page() -> None:
    """Write all parts."""
    write_parts(generate_parts(load_scores()), PAGE)


def generate_parts(scores: Sequence[TrainingScore]) -> dict[str, str]:
    """Return the parts by name."""
    tables = {
        "scores": _tabulate_sets(scores),
        "groups": _tabulate_groups(scores),
        "rows": _tabulate_rows(scores),
    }
    return {name: format_table(table) for name, table in tables.items()}


def _tabulate_sets(scores: Sequence[TrainingScore]) -> ReportTable:
    rows = []
    for name, title in NAMES.items():
        errors = [each.error for each in scores if each.row.set == name]
        summary = summarise_errors(errors)
        shares = (summary.median, summary.mean, summary.max)
        rows.append((f"{title} (`{name}`)", str(len(errors)), *map(_format_share, shares)))
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


def _format_share(share: float) -> str:
    return f"{PERCENT * share:.1f}"
