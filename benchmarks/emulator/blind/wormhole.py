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

from ipu_results.emulator.settings import load_target_file
from ipu_results.emulator.split import ConvolutionShape, plan_split
from ipu_results.emulator.target import Target

from benchmarks.emulator.blind.predictions import FOLDER

SHAPES = FOLDER / "wormhole_shapes.csv"
PREDICTIONS = FOLDER / "wormhole.csv"
MACHINE = FOLDER / "wormhole.toml"
# Of an element; 16 of a block format share an exponent of a byte.
BYTES = {"BFLOAT16": 2.0, "BFLOAT8_B": 1 + 1 / 16, "BFLOAT4_B": 0.5 + 1 / 16}
# 4,096 multiplications and additions a cycle and core, counted apart: with 64 cores at 1 GHz that is
# the 262 TFLOP/s of the data sheet. A row of a 32 x 32 tile then takes half a cycle.
CYCLES_OF_ROW = {"LoFi": 0.5, "HiFi2": 1.0, "HiFi4": 2.0}
DRAM_RATE = 288e9  # bytes a second: 12 channels of GDDR6
NS = 1e9


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
    m = sizes["m"]
    shape = ConvolutionShape(1, 1, sizes["k"], sizes["n"], m, 1, in_rows=m, in_columns=1)
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
