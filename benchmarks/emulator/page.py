"""Generate the parts of docs/explanation/emulator.md that hold figures."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ipu_results.doors.charts import render_specification
from ipu_results.doors.site.charts import build_predicted
from ipu_results.emulator.prediction import MS
from ipu_results.emulator.target import TARGETS, load_target
from ipu_results.record.store.query import open_warehouse
from tabulate import tabulate

from benchmarks.emulator import accuracy
from benchmarks.emulator.blind.scoring import format_scores, score_convolutions
from benchmarks.emulator.blind.scoring_yolov4 import format_yolov4, score_yolov4
from benchmarks.emulator.blind.wormhole import tabulate_products
from benchmarks.emulator.rows import SETS, load_rows
from benchmarks.emulator.scores import (
    Score,
    tabulate_documents,
    tabulate_pool,
    tabulate_sets,
)
from benchmarks.emulator.sensitivity import ConstantChange, list_assumed, measure_changes
from benchmarks.emulator.validation import Validation
from benchmarks.processes import ROOT
from benchmarks.report import ReportTable

PAGE = ROOT / "docs" / "explanation" / "emulator.md"
PLOT = PAGE.with_suffix(".svg")
PART = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- end -->)", re.S)
SENSITIVITY = "sensitivity"


def read_parts(page: Path = PAGE) -> dict[str, str]:
    """Return the generated parts of a page by name."""
    return {name: text for _, name, text, _ in PART.findall(page.read_text(encoding="utf-8"))}


def write_parts(parts: Mapping[str, str], page: Path = PAGE) -> None:
    """Replace these parts of a page."""
    text = page.read_text(encoding="utf-8")
    page.write_text(
        PART.sub(lambda match: match[1] + parts.get(match[2], match[3]) + match[4], text),
        encoding="utf-8",
    )


def update_page(
    validation: Validation, scores: Sequence[Score], *, sensitivity: bool = False
) -> None:
    """Write all parts and the plot: the sensitivity, which takes minutes, on request or if it is of
    other constants.
    """
    parts = generate_parts(validation, scores)
    if sensitivity or not read_parts()[SENSITIVITY].startswith(format_stamp(validation)):
        changes = measure_changes(load_rows(), workers=os.cpu_count() or 1)
        parts[SENSITIVITY] = format_sensitivity(validation, changes)
    write_parts(parts)
    with open_warehouse(ROOT / "warehouse") as connection:
        chart = build_predicted(connection)
    PLOT.write_bytes(render_specification(chart["specification"], ".svg"))


def generate_parts(validation: Validation, scores: Sequence[Score]) -> dict[str, str]:
    """Return all parts but the sensitivity."""
    by_row = [accuracy.tabulate_rows(validation, name) for name in SETS]
    return {
        "pool": format_table(tabulate_pool(scores)),
        "documents": format_table(tabulate_documents(scores)),
        "sets": format_table(tabulate_sets(scores)),
        "calibration": _format_calibration(validation),
        "doubtful": format_table(accuracy.tabulate_doubtful(validation)),
        "blind_convolutions": format_scores(score_convolutions()),
        "wormhole": format_table(tabulate_products()),
        "blind_yolov4": format_yolov4(score_yolov4()),
        "rows": "\n".join(f"### {table.title}\n\n{format_table(table)}" for table in by_row),
    }


def format_sensitivity(validation: Validation, changes: list[ConstantChange]) -> str:
    moving = {change.constant for change in changes if accuracy.is_visible(validation, change)}
    still = _format_names({change.constant for change in changes} - moving)
    unread = _format_names(set(list_assumed()) - {change.constant for change in changes})
    return (
        f"{format_stamp(validation)}\n\n{format_table(accuracy.tabulate_sensitivity(validation, changes))}\n{f'Nothing moves with {still}. ' if still else ''}No"
        f" network of these rows reads {unread}.\n"
    )


def format_stamp(validation: Validation) -> str:
    """Name what the sensitivity was computed with, so that an old table is noticed."""
    digests = ", ".join(f"{name} {load_target(name).digest}" for name in TARGETS)
    return f"Computed with calibration {validation.calibration.id} and constants {digests}."


def _format_calibration(validation: Validation) -> str:
    calibration = validation.calibration
    fits = [("all six", calibration.fit)]
    fits += [(f"without row {number}", fit) for number, fit in enumerate(calibration.jackknife, 1)]
    fits += [(f"all six, κ {fit.superstep:.0f}", fit) for fit in calibration.ends]
    rows = [
        (name, f"{fit.superstep:.0f}", f"{fit.per_batch * MS:.3f}", f"{fit.per_image * MS:.3f}")
        for name, fit in fits
    ]
    table = ReportTable("", ("rows", "κ, cycles", "s, ms", "h, ms"), rows)
    return f"Calibration `{calibration.id}`.\n\n{format_table(table)}"


def format_table(table: ReportTable) -> str:
    return f"{tabulate(table.rows, table.columns, tablefmt='github', disable_numparse=True)}\n"


def _format_names(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
