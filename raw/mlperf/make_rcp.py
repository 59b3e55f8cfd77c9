"""Derive `rcp.csv` from the official reference convergence points: `python raw/mlperf/make_rcp.py REPOSITORY [TARGET]`.

REPOSITORY is a git directory of mlcommons/logging, also a bare one. The points are those of LATEST. Of each round it is
also read at the last commit before its results were published: the first commit of its results repository.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ipu_results.kit.files import write_atomically
from ipu_results.kit.text import format_records
from ipu_results.mlperf.rules import load_rules, round_key
from ipu_results.mlperf.score import olympic_mean

LATEST = "7bbf792686936919201796120b970dd820331099"
AT_ROUND = {  # with the day before which it is the last commit
    "1.0": "554874c4b43cc26276fe4bffbfb2ed4f844520c2",  # 2021-06-30
    "1.1": "beaf26dbba673b981fbd631a1ef5a9b9cbfa8baa",  # 2021-12-01
    "2.0": "065e4ce9931347a3efab4bbff2815c913597292b",  # 2022-06-29
    "2.1": "35004c441b9c22ac5e929609af150e0c10a24c66",  # 2022-11-08
    "3.0": "92e4ba7950e6df0468c72da8d95a948b94ef6af2",  # 2023-06-19
    "3.1": "cacda4a495358503ccb21e9378075502c5048e2b",  # 2023-11-07
    "4.0": "39fc7a0daca53879ee491cb3bb6ca1b5f97ad799",  # 2024-06-11
    "4.1": "c225c97ad0f765eb8686b2a3d6210aa462963e62",  # 2024-11-13
    "5.0": "44b4810e65e8c0a7d9e4e207c60e51d9458a3fb8",  # 2025-05-30
    "5.1": "0ebd7ee347e4ade847f530ffa11ac839415bb7a3",  # 2025-11-05
}
HERE = Path(__file__).resolve().parent
COLUMNS = (
    "round",
    "benchmark",
    "global_batch_size",
    "rcp_mean",
    "rcp_unit",
    "reference_runs",
    "at_round",
)
SAMPLES = {"bert", "llama2_70b_lora", "llama31_405b", "llama31_8b", "flux1"}
SAMPLES_FROM_3_1, STEPS_IN_3_1 = "unet3d", "stable_diffusion"


def get_unit(round_: str, benchmark: str) -> str:
    """Return what the points of a benchmark count; their files call nearly all of it epochs."""
    if benchmark == STEPS_IN_3_1:
        return "steps" if round_ == "3.1" else "samples"
    if benchmark == "gpt3":
        return "tokens"
    is_samples = benchmark in SAMPLES or (
        benchmark == SAMPLES_FROM_3_1 and round_key(round_) >= (3, 1)
    )
    return "samples" if is_samples else "epochs"


def list_points(repository: Path) -> Iterator[dict[str, Any]]:
    """Yield a record per round, benchmark and batch size; of several at one size the first, as the official tool."""
    rules = load_rules()
    for round_, commit in AT_ROUND.items():
        before = {
            (benchmark, point["BS"]) for benchmark, point in read_points(repository, commit, round_)
        }
        points: dict[tuple[str, int], dict[str, Any]] = {}
        for benchmark, point in read_points(repository, LATEST, round_):
            values = next(
                point[name]
                for name in point
                if name.lower() in {"epochs to converge", "samples to converge"}
            )
            mean, name = (
                olympic_mean(values, 0, rules.benchmark(benchmark).drop),
                (benchmark, point["BS"]),
            )
            row = (round_, *name, mean, get_unit(round_, benchmark), len(values), name in before)
            points.setdefault(name, dict(zip(COLUMNS, row, strict=True)))
        yield from points.values()


def read_points(repository: Path, commit: str, round_: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield benchmark and content of each point of a round, in the order of its file."""
    for path in run_git(repository, "ls-tree", "-r", "--name-only", commit).splitlines():
        *_, checker, folder, file = ("", "", *path.split("/"))
        if (
            checker == "rcp_checker"
            and folder in {f"training_{round_}.0", f"{round_}.0"}
            and file.startswith("rcps_")
        ):
            benchmark = file.removeprefix("rcps_").removesuffix(".json")
            yield from (
                (benchmark, point)
                for point in json.loads(run_git(repository, "show", f"{commit}:{path}")).values()
            )


def run_git(repository: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", repository, *arguments], capture_output=True, check=True, text=True
    ).stdout


def derive(repository: Path, target: Path = HERE) -> None:
    rows = sorted(
        list_points(repository), key=lambda row: (round_key(row["round"]), *list(row.values())[1:3])
    )
    text = format_records("csv", COLUMNS, (list(row.values()) for row in rows))
    write_atomically(target / "rcp.csv", f"{text}\n".encode())


if __name__ == "__main__":
    derive(*map(Path, sys.argv[1:3]))
