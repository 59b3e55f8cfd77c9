"""What a configuration leads to: devices, plans and defaults; and a sweep that is started from
Python.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest
from ipu_results import runner
from ipu_results.emulator.target import DEFAULT_BATCH_SIZES, TARGETS
from ipu_results.errors import BackendError, RunnerError, SweepConfigError
from ipu_results.runner import Progress, SweepConfig, run_sweep
from ipu_results.runner.backends import Device
from ipu_results.runner.config import (
    RUNS,
    SweepTask,
    choose_batch_sizes,
    count_cores,
    parse_options,
    plan_sweeps,
)

from tests.runner.runner_support import write_images, write_tiny_model

MODEL = Device("popart", "ipu-model", "simulated", "a model of an IPU")
EMULATED = [Device("emulator", name, "emulated", name) for name in TARGETS]
CPU = Device("onnxruntime", "cpu", "cpu", "a CPU")


def plan(out: Path = RUNS, **fields: object) -> list[SweepTask]:
    own = {
        "popart": [MODEL],
        "emulator": EMULATED,
        "onnxruntime": [CPU],
        "openvino": [],
    }
    return plan_sweeps(SweepConfig(**fields), out, lambda name: own[name])  # type: ignore[arg-type]


def test_default_is_the_paper_on_an_emulated_c2_and_then_the_cpu() -> None:
    emulated, measured = plan()
    assert (emulated.device, measured.device) == (EMULATED[0], CPU)
    assert [task.plan.batch_sizes for task in (emulated, measured)] == [(2, 4, 6, 8, 10, 12)] * 2
    assert (emulated.plan.least_rounds, emulated.plan.most_rounds, emulated.threads) == (1, 1, None)
    assert (measured.plan.least_rounds, measured.plan.most_rounds, measured.plan.budget_s) == (
        6,
        1000,
        90.0,
    )
    assert measured.threads == max(1, count_cores() // 2)
    assert {task.plan.sessions for task in (emulated, measured)} == {2}


def test_machines_of_four_chips_have_four_sessions_and_the_vendors_sizes() -> None:
    (task,) = plan(backend="emulator", target="bow-2000")
    assert (task.plan.sessions, task.plan.batch_sizes) == (4, (4, 8, 16, 32, 64))


def test_default_batch_sizes_are_those_that_the_sessions_can_share() -> None:
    assert choose_batch_sizes(2) == DEFAULT_BATCH_SIZES["c2"] == (2, 4, 6, 8, 10, 12)
    assert choose_batch_sizes(4) == DEFAULT_BATCH_SIZES["bow-2000"] == (4, 8, 16, 32, 64)
    assert choose_batch_sizes(3) == (6, 12)
    assert choose_batch_sizes(7) == (7, 14, 21, 28, 35, 42)
    assert set(DEFAULT_BATCH_SIZES) == set(TARGETS)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"quick": True},
            {"batch_sizes": (2, 4), "least_rounds": 2, "most_rounds": 2, "block_s": 0.5},
        ),
        ({"quick": True, "rounds": 1}, {"least_rounds": 1, "most_rounds": 1, "iterations": 2}),
        ({"quick": True, "batch_sizes": (8,)}, {"batch_sizes": (8,)}),
        ({"rounds": 3}, {"least_rounds": 3, "most_rounds": 3}),
        ({"budget_s": 5.0}, {"least_rounds": 1, "most_rounds": 1000, "budget_s": 5.0}),
        (
            {"overlap": False, "seed": 7, "sessions": 1},
            {"overlap": False, "seed": 7, "sessions": 1},
        ),
    ],
)
def test_fields_of_the_configuration_shape_the_plan(
    fields: dict[str, object], expected: dict[str, object]
) -> None:
    (task,) = plan(backend="onnxruntime", **fields)
    assert {name: getattr(task.plan, name) for name in expected} == expected


def test_contradictions_are_refused() -> None:
    with pytest.raises(SweepConfigError, match="an emulated sweep has one round"):
        plan(backend="emulator", rounds=3)
    assert plan(rounds=3)[0].plan.most_rounds == 1, "auto: for the CPU alone"
    with pytest.raises(
        SweepConfigError, match=r"a simulated run is not a result and is not appended to raw/runs"
    ):
        plan(backend="popart", device="ipu-model")
    assert plan(Path("elsewhere"), backend="popart", device="ipu-model")[0].device == MODEL
    with pytest.raises(BackendError, match="is not a device of onnxruntime"):
        plan(backend="onnxruntime", device="tpu")


def test_options_are_json() -> None:
    assert parse_options(["noise=0.02", 'name="a=b"', "list=[1]"]) == {
        "noise": 0.02,
        "name": "a=b",
        "list": [1],
    }
    for text in ("noise", "noise=loud"):
        with pytest.raises(RunnerError, match=f"^'{text}' is not an option NAME=JSON$"):
            parse_options([text])


def test_task_survives_the_journal_and_publishes_no_path() -> None:
    images = "/home/me/images"
    (task,) = plan(
        backend="onnxruntime",
        images=images,
        model="/home/me/net.onnx",
        options={"a": 1},
        power_command="w",
    )
    assert msgspec.convert(json.loads(json.dumps(asdict(task))), SweepTask) == task
    assert task.describe_setup() == {
        "precision": None,
        "threads": task.threads,
        "power_declared": None,
        "model": "net.onnx",
        "network": None,
        "sequence_length": None,
        "images": "images",
        "power_command": True,
        "options": {"a": 1},
    }
    assert re.search(
        r"^  batch sizes 2, 4, .*; 6 rounds however long they take", task.describe(), re.M
    )


# --- the Python interface


class Stages(Progress):
    def __init__(self) -> None:
        self.stages: list[str] = []

    def stage(self, what: str) -> None:
        self.stages.append(what)


@pytest.mark.slow
def test_sweep_from_python(tmp_path: Path) -> None:
    model, images = write_tiny_model(tmp_path / "tiny.onnx"), write_images(tmp_path / "images")
    config = SweepConfig(
        backend="emulator", batch_sizes=(2, 4), model=str(model), images=str(images)
    )
    progress = Stages()
    (run,) = run_sweep(config, tmp_path / "runs", progress)
    assert run.folder == tmp_path / "runs" / run.run_id
    assert [(point["batch_size"], point["origin"]) for point in run.points] == [
        (2, "emulated"),
        (4, "emulated"),
    ]
    record = json.loads((run.folder / "record.json").read_text(encoding="utf-8"))
    assert record["command_line"] == "ipu_results.runner.run_sweep"
    assert progress.stages[0] == "building the model and its inputs"


def test_public_names_and_the_example_of_the_package() -> None:
    assert runner.__all__ == ["Progress", "SweepConfig", "SweepResult", "resume_sweep", "run_sweep"]
    assert all(getattr(runner, name) for name in runner.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'sweeps'"):
        _ = runner.sweeps
    example = re.findall(r"SweepConfig\((.*?)\)\)?, out", str(runner.__doc__))
    assert example == ['backend="emulator", target="c2", batch_sizes=(2, 4']
