"""Derive `rcp.csv` from the official reference convergence points: `python raw/mlperf/make_rcp.py PACKAGE [TARGET]`.

PACKAGE is the folder `mlperf_logging` of the package mlperf-logging, of the version that the sidecar names.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ipu_results.ground.files import write_atomically
from ipu_results.ground.text import format_records
from ipu_results.mlperf.rules import load_rules, round_key
from ipu_results.mlperf.score import olympic_mean

HERE = Path(__file__).resolve().parent
COLUMNS = ("round", "benchmark", "global_batch_size", "rcp_mean", "rcp_unit", "reference_runs")
SAMPLES = {"bert", "llama2_70b_lora", "llama31_405b", "llama31_8b", "flux1"}
SAMPLES_FROM_3_1, STEPS_IN_3_1 = "unet3d", "stable_diffusion"


def get_unit(round_: str, benchmark: str) -> str:
    """Return what the points of a benchmark count; their files call nearly all of it epochs."""
    if benchmark == STEPS_IN_3_1:
        return "steps" if round_ == "3.1" else "samples"
    if benchmark == "gpt3":
        return "tokens"
    is_samples = benchmark in SAMPLES or (benchmark == SAMPLES_FROM_3_1 and round_key(round_) >= (3, 1))
    return "samples" if is_samples else "epochs"


def list_points(package: Path) -> Iterator[dict[str, Any]]:
    """Yield a record per round, benchmark and batch size; of several at one size the first, as the official tool."""
    rules = load_rules()
    for file in (package / "rcp_checker").glob("training_*/rcps_*.json"):
        round_, benchmark = re.sub(r"training_|\.0$", "", file.parent.name), file.stem.removeprefix("rcps_")
        if round_key(round_) > round_key(rules.last_round):
            continue
        points = {}
        for record in json.loads(file.read_bytes()).values():
            values = next(
                record[name] for name in record if name.lower() in {"epochs to converge", "samples to converge"}
            )
            mean = olympic_mean(values, 0, rules.benchmark(benchmark).drop)
            row = (round_, benchmark, record["BS"], mean, get_unit(round_, benchmark), len(values))
            points.setdefault(record["BS"], dict(zip(COLUMNS, row, strict=True)))
        yield from points.values()


def derive(package: Path, target: Path = HERE) -> None:
    rows = sorted(list_points(package), key=lambda row: (round_key(row["round"]), *list(row.values())[1:3]))
    text = format_records("csv", COLUMNS, (list(row.values()) for row in rows))
    write_atomically(target / "rcp.csv", f"{text}\n".encode())


if __name__ == "__main__":
    derive(*map(Path, sys.argv[1:3]))
