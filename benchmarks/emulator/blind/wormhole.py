"""Score the predicted matrix products of tt-metal's report on a Wormhole, another machine of cores with SRAM.

One test of generality: the predictions are written before the figures are read, and nothing is
tuned after. A product is split over the cores as over an IPU's tiles; blocks stream through the SRAM,
so that its size bounds no split. The first operand lies in SRAM where it fits, the second is read
from DRAM, and so is or goes there what does not fit. Reading overlaps with the rest. Commit 05ac8678
has the program that wrote the predictions.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.emulator.blind.predictions import FOLDER, read_lines
from benchmarks.emulator.scores import SUMMARY, summarise
from benchmarks.report import ReportTable

SHAPES = FOLDER / "wormhole_shapes.csv"
PREDICTIONS = FOLDER / "wormhole.csv"
FIGURES = FOLDER / "wormhole_figures.csv"
"""Times with trace, in ns: tenstorrent/tt-metal at 06bd3735, tech_reports/GEMM_FLOPS/GEMM_FLOPS.md,
N150 Manually Tuned Configurations, column inference_time_avg. Two shapes of the 75 are not there.
"""
MACHINE = FOLDER / "wormhole.toml"
# 4,096 multiplications and additions a cycle and core, counted apart: with 64 cores at 1 GHz that is
# the 262 TFLOP/s of the data sheet. A row of a 32 x 32 tile then takes half a cycle.
CYCLES_OF_ROW = {"LoFi": 0.5, "HiFi2": 1.0, "HiFi4": 2.0}
CORES = 64
MACS_OF_ROW = 32 * 32  # of a row of a tile, in CYCLES_OF_ROW


def score_products() -> dict[str, list[tuple[float, float]]]:
    """Return the signed errors of the committed predictions by type and fidelity, each with that of
    operations over peak.
    """
    predicted = {_get_key(row): float(row["predicted_ns"]) for row in read_lines(PREDICTIONS)}
    errors: dict[str, list[tuple[float, float]]] = {}
    for row in read_lines(FIGURES):
        measured = float(row["measured_ns"])
        macs = int(row["m"]) * int(row["k"]) * int(row["n"])
        ideal = macs * CYCLES_OF_ROW[row["fidelity"]] / (CORES * MACS_OF_ROW)
        error = predicted[_get_key(row)] / measured - 1
        name = f"{row['dtype']} {row['fidelity']}"
        errors.setdefault(name, []).append((error, ideal / measured - 1))
    return errors


def _get_key(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("m", "k", "n", "dtype", "fidelity"))


def tabulate_products() -> ReportTable:
    """Summarise the errors by type and fidelity."""
    groups = score_products()
    pool = [each for members in groups.values() for each in members]
    rows = []
    for name, members in {"all": pool, **groups}.items():
        errors = summarise([error for error, _ in members])
        peak = summarise([error for _, error in members])
        rows.append((name, *errors, *peak[1:3]))
    columns = ("type and fidelity", *SUMMARY, "operations over peak: median %", "mean %")
    return ReportTable("Matrix products of a Wormhole", columns, rows)
