"""What a configuration leads to: devices, plans, and what a sweep visits in which order."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ipu_results.emulator.target import DEFAULT_BATCH_SIZES, TARGETS
from ipu_results.errors import RunnerError, SweepConfigError
from ipu_results.runner import SweepConfig
from ipu_results.runner.backends import Device
from ipu_results.runner.config import (
    RUNS,
    SETTINGS,
    SweepPlan,
    SweepTask,
    check_batch_sizes,
    choose_batch_sizes,
    count_cores,
    parse_settings,
    plan_sweeps,
)

MODEL = Device("popart", "ipu-model", "simulated", "a model of an IPU")
EMULATED = [Device("emulator", name, "emulated", name) for name in TARGETS]
CPU = Device("onnxruntime", "cpu", "cpu", "a CPU")
DEVICES = {"popart": [MODEL], "emulator": EMULATED, "onnxruntime": [CPU], "openvino": []}


def plan(out: Path = RUNS, **fields: Any) -> list[SweepTask]:
    return plan_sweeps(SweepConfig(**fields), out, DEVICES.__getitem__)


def test_default_is_the_paper_on_an_emulated_c2_and_then_the_cpu() -> None:
    emulated, measured = plan()
    assert (emulated.device, measured.device) == (EMULATED[0], CPU)
    for task in (emulated, measured):
        assert (task.plan.batch_sizes, task.plan.sessions) == ((2, 4, 6, 8, 10, 12), 2)
    assert (emulated.plan.least_rounds, emulated.plan.most_rounds, emulated.threads) == (1, 1, None)
    assert (measured.plan.least_rounds, measured.plan.most_rounds) == (6, 1000)
    assert (measured.plan.budget_s, measured.threads) == (90.0, max(1, count_cores() // 2))


def test_default_batch_sizes_are_those_that_the_sessions_can_share() -> None:
    assert choose_batch_sizes(2) == DEFAULT_BATCH_SIZES["c2"] == (2, 4, 6, 8, 10, 12)
    assert choose_batch_sizes(4) == DEFAULT_BATCH_SIZES["bow-2000"] == (4, 8, 16, 32, 64)
    assert choose_batch_sizes(3) == (6, 12)
    assert choose_batch_sizes(7) == (7, 14, 21, 28, 35, 42)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"quick": True}, {"batch_sizes": (2, 4), "most_rounds": 2, "block_s": 0.5}),
        ({"quick": True, "rounds": 1}, {"least_rounds": 1, "most_rounds": 1, "iterations": 2}),
        ({"quick": True, "batch_sizes": (8,)}, {"batch_sizes": (8,)}),
        ({"rounds": 3}, {"least_rounds": 3, "most_rounds": 3}),
        ({"budget_s": 5.0}, {"least_rounds": 1, "most_rounds": 1000, "budget_s": 5.0}),
        ({"overlap": False, "seed": 7}, {"overlap": False, "seed": 7}),
    ],
)
def test_fields_of_the_configuration_shape_the_plan(
    fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    (task,) = plan(backend="onnxruntime", **fields)
    assert asdict(task.plan).items() >= expected.items()


def test_contradictions_are_refused() -> None:
    with pytest.raises(SweepConfigError, match="an emulated sweep has one round"):
        plan(backend="emulator", rounds=3)
    assert plan(rounds=3)[0].plan.most_rounds == 1, "auto: for the CPU alone"
    message = "a simulated run is not a result and is not appended to raw/runs"
    with pytest.raises(SweepConfigError, match=message):
        plan(backend="popart", device="ipu-model")
    assert plan(Path("elsewhere"), backend="popart", device="ipu-model")[0].device == MODEL


def test_settings_are_typed_fields_of_the_configuration() -> None:
    texts = ("sessions=4", "overlap=false", "budget_s=1.5", "python=a=b", 'options.a={"b": [1]}')
    with pytest.raises(SweepConfigError, match=r"^--set options\.x is set twice$"):
        parse_settings(["options.x=1", "options.x=2"])
    assert parse_settings([*texts, "options.noise=0.02", "seed=-1"]) == {
        "sessions": 4,
        "overlap": False,
        "budget_s": 1.5,
        "python": "a=b",
        "options": {"a": {"b": [1]}, "noise": 0.02},
        "seed": -1,
    }
    assert SETTINGS.keys() <= {field.name for field in fields(SweepConfig)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sesions=4", "with a key of network, sequence_length, sessions, .*, options.NAME$"),
        ("sessions", "is not KEY=VALUE"),
        ("options.=1", "is not KEY=VALUE with a key of"),
        ("options.noise=loud", "expected a JSON value"),
        pytest.param(f"options.x={'[' * 100_000}", "expected a JSON value", id="nested"),
        ("sessions=0", "expected a whole number from 1"),
        ("overlap=no", "expected true or false"),
        ("budget_s=nan", "expected a number of seconds from 0"),
        ("power_declared=W", "expected a number of watts"),
    ],
)
def test_unusable_setting_is_named_with_what_is_expected(text: str, message: str) -> None:
    with pytest.raises(SweepConfigError, match=f"^--set {re.escape(text)}.*{message}"):
        parse_settings([text])


def test_task_survives_the_journal_and_publishes_no_path() -> None:
    private = {"images": "/home/me/images", "model": "/home/me/net.onnx", "power_command": "w"}
    (task,) = plan(backend="onnxruntime", options={"a": 1}, **private)
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
    assert "  batch sizes 2, 4, 6, 8, 10, 12; 6 rounds however long they take" in task.describe()


# --- visits


def test_every_round_visits_every_batch_size_and_every_other_one_alone_too() -> None:
    plan = SweepPlan((2, 4, 6), 2)
    for number in range(4):
        visits = plan.list_visits(number)
        assert {visit.round for visit in visits} == {number}
        kinds = Counter(visit.kind for visit in visits)
        assert kinds == {"amortised": 3, **({} if number % 2 else {"isolated": 3})}
        assert len(set(visits)) == len(visits)


def test_order_is_frozen() -> None:
    """Another order would change every simulated sweep, and a resumed one would lose its place."""
    order = [(visit.batch_size, visit.kind[:2]) for visit in SweepPlan((2, 4, 6), 2).list_visits(0)]
    assert order == [(2, "am"), (6, "am"), (4, "is"), (2, "is"), (6, "is"), (4, "am")]


@pytest.mark.parametrize(
    ("least", "most", "budget", "expected"),
    [(6, 1000, 0, 6), (1, 3, 1e9, 3), (2, 1000, 45, 5), (6, 1000, 45, 6)],
)
def test_rounds_of_ten_seconds_within_minimum_budget_and_maximum(
    least: int, most: int, budget: float, expected: int
) -> None:
    plan = SweepPlan((2,), 2, least_rounds=least, most_rounds=most, budget_s=budget)
    done = 0
    while plan.needs_round(10.0 * done, done):
        done += 1
    assert done == expected


def test_batch_size_that_sessions_cannot_share_is_refused() -> None:
    for sizes, sessions, named in (((2, 3), 2, 3), ((4, 0), 1, 0)):
        message = f"^batch {named} cannot be shared evenly by {sessions} sessions; see --set"
        with pytest.raises(RunnerError, match=message):
            check_batch_sizes(sizes, sessions)
    assert check_batch_sizes([4, 2, 4, 8], 2) == (4, 2, 8), "repeated ones count once"
