"""Generate the parts of docs/explanation/emulator.md that hold figures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ipu_results.doors.charts import render_specification
from ipu_results.doors.site.charts import build_predicted
from ipu_results.emulator.prediction import MS
from ipu_results.record.store.query import open_warehouse
from tabulate import tabulate

from benchmarks.emulator import accuracy
from benchmarks.emulator.blind.scoring import format_scores, score_convolutions
from benchmarks.emulator.blind.scoring_yolov4 import format_yolov4, score_yolov4
from benchmarks.emulator.blind.wormhole import tabulate_products
from benchmarks.emulator.rows import SETS
from benchmarks.emulator.scores import (
    Score,
    tabulate_documents,
    tabulate_pool,
    tabulate_sets,
)
from benchmarks.emulator.validation import Validation
from benchmarks.processes import ROOT
from benchmarks.report import ReportTable

PAGE = ROOT / "docs" / "explanation" / "emulator.md"
PLOT = PAGE.with_suffix(".svg")
PART = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- end -->)", re.S)


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


def update_page(validation: Validation, scores: Sequence[Score]) -> None:
    """Write all parts and the plot."""
    write_parts(generate_parts(validation, scores))
    with open_warehouse(ROOT / "warehouse") as connection:
        chart = build_predicted(connection)
    PLOT.write_bytes(render_specification(chart["specification"], ".svg"))


def generate_parts(validation: Validation, scores: Sequence[Score]) -> dict[str, str]:
    """Return the parts by name."""
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
