"""Predict the matrix products of tt-metal's report on a Wormhole, another machine of cores with SRAM.

One test of generality: the predictions are written before the figures are read, and nothing is
tuned after. A product is split over the cores as over an IPU's tiles; blocks stream through the SRAM,
so that its size bounds no split. The first operand lies in SRAM where it fits, the second is read
from DRAM, and so is or goes there what does not fit. Reading overlaps with the rest.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ipu_results.emulator.operators import shape_product
from ipu_results.emulator.settings import load_target_file
from ipu_results.emulator.split import plan_split
from ipu_results.emulator.target import Target

from benchmarks.emulator.blind.predictions import FOLDER
from benchmarks.emulator.scores import SUMMARY, summarise
from benchmarks.report import ReportTable

SHAPES = FOLDER / "wormhole_shapes.csv"
PREDICTIONS = FOLDER / "wormhole.csv"
FIGURES = FOLDER / "wormhole_figures.csv"
"""Times with trace, in ns: tenstorrent/tt-metal at 06bd3735, tech_reports/GEMM_FLOPS/GEMM_FLOPS.md,
N150 Manually Tuned Configurations, column inference_time_avg. Two shapes of the 75 are not there.
"""
MACHINE = FOLDER / "wormhole.toml"
# Of an element; 16 of a block format share an exponent of a byte.
BYTES = {"BFLOAT16": 2.0, "BFLOAT8_B": 1 + 1 / 16, "BFLOAT4_B": 0.5 + 1 / 16}
# 4,096 multiplications and additions a cycle and core, counted apart: with 64 cores at 1 GHz that is
# the 262 TFLOP/s of the data sheet. A row of a 32 x 32 tile then takes half a cycle.
CYCLES_OF_ROW = {"LoFi": 0.5, "HiFi2": 1.0, "HiFi4": 2.0}
DRAM_RATE = 288e9  # bytes a second: 12 channels of GDDR6
NS = 1e9  # in a second; at 1 GHz, a cycle
CORES = 64
MACS_OF_ROW = 32 * 32  # of a row of a tile, in CYCLES_OF_ROW


def predict_products() -> Iterator[dict[str, Any]]:
    """Predict the nanoseconds of each product, and the two times that it waits for."""
    machine = load_target_file(MACHINE)
    with SHAPES.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            sizes = {name: int(line[name]) for name in "mkn"}
            target = _adapt(machine, line)
            chip = _time_chip(sizes, target)
            dram = _count_dram_bytes(sizes, target) / DRAM_RATE
            seconds = max(chip, dram)
            yield {
                **line,
                "chip_ns": f"{chip * NS:.6g}",
                "dram_ns": f"{dram * NS:.6g}",
                "predicted_ns": f"{seconds * NS:.6g}",
            }


def _adapt(machine: Target, line: Mapping[str, str]) -> Target:
    """Return the machine with the cost of a fidelity and the size of an element."""
    cycles = CYCLES_OF_ROW[line["fidelity"]]
    return machine.with_constants(
        {
            "amp1.worker_one": cycles,
            "amp1.worker_two": 2 * cycles,
            "amp1.worker_many": 3 * cycles,
            "amp1.worker_more": cycles,
            "element.bytes": BYTES[line["dtype"]],
            "plan.memory": 1e9,
        }
    )


def _time_chip(sizes: Mapping[str, int], target: Target) -> float:
    shape = shape_product(1, sizes["m"], sizes["k"], sizes["n"])
    plan = plan_split(shape, target)
    cycles = plan.cycles + plan.supersteps * target["superstep.cycles"]
    return cycles / target["clock"]


def _count_dram_bytes(sizes: Mapping[str, int], target: Target) -> float:
    size = target["element.bytes"]
    first = sizes["m"] * sizes["k"] * size
    second = sizes["k"] * sizes["n"] * size
    result = sizes["m"] * sizes["n"] * size
    room = target.tiles * target["sram"]
    moved = second
    if first <= room:
        room -= first
    else:
        moved += first
    return moved if result <= room else moved + result


def score_products() -> dict[str, list[tuple[float, float]]]:
    """Return the signed errors of the committed predictions by type and fidelity, each with that of
    operations over peak.
    """
    with PREDICTIONS.open(encoding="utf-8", newline="") as file:
        predicted = {_get_key(row): float(row["predicted_ns"]) for row in csv.DictReader(file)}
    errors: dict[str, list[tuple[float, float]]] = {}
    with FIGURES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            measured = float(row["measured_ns"])
            macs = int(row["m"]) * int(row["k"]) * int(row["n"])
            ideal = macs * CYCLES_OF_ROW[row["fidelity"]] / (CORES * MACS_OF_ROW)
            both = (predicted[_get_key(row)] / measured - 1, ideal / measured - 1)
            errors.setdefault(f"{row['dtype']} {row['fidelity']}", []).append(both)
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


def main() -> None:
    """Write the predictions."""
    rows = list(predict_products())
    with PREDICTIONS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"wrote {PREDICTIONS}", file=sys.stderr)


if __name__ == "__main__":
    main()
