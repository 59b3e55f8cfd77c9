"""Predictions of a training step, by hand where a formula has one, and against published rows."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from ipu_results.emulator.network import load_network
from ipu_results.emulator.operators import Elementwise, Program, Tensor, make_gemm
from ipu_results.emulator.pipeline import (
    Stage,
    count_activations,
    count_rounds,
    cut_at_layers,
    cut_at_operators,
    estimate_all_reduce,
    is_computed_again,
    list_layer_starts,
)
from ipu_results.emulator.schedule import GradientProduct, derive_gradients
from ipu_results.emulator.target import load_target
from ipu_results.emulator.training import TrainingSetup, extend_target, predict_training
from ipu_results.errors import InconsistentModelError
from ipu_results.record.store.query import open_warehouse

from benchmarks.emulator import training
from benchmarks.emulator.page import read_parts
from benchmarks.emulator.rows import LARGE, TRAINING_SETS, load_training_rows, read_toml
from tests.conftest import run_cli

GRADIENTS = 64e6  # bytes of a chip
LINK, MACHINES, GATEWAY, START = 64e9, 48e9, 25e9, 2e-6  # bytes per second, seconds
M2000 = extend_target(load_target("m2000"))
# those of the M2000 are equal, and hide a mixture
UNEVEN = M2000.with_constants({"link.machine": MACHINES})
CHAIN = tuple(Stage(at, at + 1, at) for at in range(4))


def build_chain() -> Program:
    """Return two products with an activation after each: 10 inputs, results of 20, 20, 30 and 30
    elements.
    """
    operators = (
        make_gemm("layer0.product", 1, 1, 10, 20),
        Elementwise("layer0.gelu", "gelu", 20),
        make_gemm("layer1.product", 1, 1, 20, 30),
        Elementwise("layer1.gelu", "gelu", 30),
    )
    tensors = (Tensor("x", (1, 10), 16),), (Tensor("y", (1, 30), 16),)
    return Program("chain", operators, ((-1,), (0,), (1,), (2,)), *tensors, (3,), 200 + 600)


# Sums over replicas


def time_ring(parts: int, size: float, rate: float) -> float:
    """Sum over a ring: each part is sent on 2 (n - 1) times."""
    return 2 * (parts - 1) * (size / parts / rate + START)


@pytest.mark.parametrize(
    ("replicas", "chips", "seconds"),
    [
        (1, 4, 0.0),
        (4, 1, time_ring(4, GRADIENTS, LINK)),
        (16, 1, time_ring(4, GRADIENTS, LINK) + time_ring(4, GRADIENTS, MACHINES)),
        # A replica fills the machine, whose link carries the gradients of all four chips.
        (16, 4, time_ring(16, 4 * GRADIENTS, MACHINES)),
        (2, 8, time_ring(2, 4 * GRADIENTS, MACHINES)),
        # Two pods: each machine sends its sixteenth over its own gateway.
        (
            128,
            1,
            time_ring(4, GRADIENTS, LINK)
            + time_ring(16, GRADIENTS, MACHINES)
            + time_ring(2, GRADIENTS / 16, GATEWAY),
        ),
    ],
)
def test_all_reduce_by_hand(replicas: int, chips: int, seconds: float) -> None:
    assert estimate_all_reduce(GRADIENTS, replicas, chips, UNEVEN) == pytest.approx(seconds)


# The backward pass


@pytest.mark.parametrize(
    "name", ["resnet50", "resnext101-32x4d", "efficientnet-b4-g16", "bert-base", "unet"]
)
def test_gradients_have_twice_the_macs(name: str) -> None:
    """Only the first operator has no data to find a gradient for."""
    program = load_network(name)(2)
    products = [
        step
        for steps in derive_gradients(program)
        for step in steps
        if isinstance(step, GradientProduct)
    ]
    first = next(operator for operator in program.operators if hasattr(operator, "macs"))
    spared = 0 if name == "bert-base" else first.macs
    assert sum(product.macs for product in products) == 2 * program.macs - spared
    assert all(shape.macs >= product.macs for product in products for shape in product.shapes)


def test_gradients_of_shared_results_are_added() -> None:
    """A residual block reads its input twice; a split's parts are not the same tensor."""
    program = load_network("resnet50")(1)
    steps = [
        step for each in derive_gradients(program) for step in each if isinstance(step, Elementwise)
    ]
    assert sum(step.kind == "sum" for step in steps) == 16
    bert = load_network("bert-base")(1)
    sums = [
        step.name
        for each in derive_gradients(bert)
        for step in each
        if getattr(step, "kind", "") == "sum"
    ]
    assert len(sums) == 24
    assert not any("qkv" in name for name in sums)


# Stages


def test_stages_of_one_chip_are_all_computed_again() -> None:
    """Texas A&M's seven one-chip rows were 6 to 9 % too fast while the last stage was left out."""
    one_chip = tuple(Stage(at, at + 1, 0) for at in range(4))
    assert [is_computed_again(stage, one_chip) for stage in one_chip] == [True] * 4
    assert [is_computed_again(stage, CHAIN) for stage in CHAIN] == [True, True, True, False]


def test_norm_span_is_added_to_a_step() -> None:
    network = load_network("resnet50")
    plain, spanned = (
        predict_training(network, M2000, TrainingSetup(1, 2, norm_span=span)) for span in (1, 2)
    )
    assert spanned.round_s - plain.round_s == pytest.approx(3 * 5.5e-6 * 53)
    assert plain.step_ms_low <= plain.step_s * 1000 < plain.step_ms_high


def test_filling_and_draining_cost_a_round_a_stage() -> None:
    assert [count_rounds(CHAIN, count) for count in (1, 4, 60)] == [4, 7, 63]
    assert count_rounds((*CHAIN, Stage(4, 5, 0)), 4) == 8
    one_chip = tuple(Stage(at, at + 1, 0) for at in range(4))
    assert count_rounds(one_chip, 4) == 4
    prediction = predict_training(load_network("resnet50"), M2000, TrainingSetup(1, 1, 4, stages=4))
    assert prediction.bubble_share == pytest.approx(3 / 7)
    # Chips compute together and then exchange together.
    transfer = max(load.transfer for load in prediction.loads)
    work = 7 * (max(load.seconds - load.transfer for load in prediction.loads) + transfer)
    assert prediction.step_s == pytest.approx(work + prediction.all_reduce_s + prediction.update_s)
    assert prediction.throughput == pytest.approx(4 / prediction.step_s)


def test_layers_and_head_follow_the_configuration() -> None:
    program = load_network("bert-base-pretraining")(1)
    stages = cut_at_layers(program, (0, 4, 4, 4), "first")
    assert [stage.chip for stage in stages] == [0, 1, 2, 3, 0]
    names = [program.operators[stage.start].name.split(".")[0] for stage in stages]
    assert names == ["embedding", "layer0", "layer4", "layer8", "head"]
    assert [stage.chip for stage in cut_at_layers(program, (3, 3, 3, 3), "last")] == [0, 1, 2, 3]
    with pytest.raises(InconsistentModelError, match="13 layers on chips, but the network has 12"):
        cut_at_layers(program, (4, 9), "last")
    with pytest.raises(InconsistentModelError, match="not an operator to cut after"):
        cut_at_operators(program, ("nowhere",))


# Memory


def test_recomputation_keeps_inputs_alone() -> None:
    """Two chips: the first has three micro-batches under way, the last one."""
    program, stages = build_chain(), (Stage(0, 2, 0), Stage(2, 4, 1))
    first, last = stages
    assert count_activations(program, [first], stages, None) == 3 * (20 + 20)
    assert count_activations(program, [first], stages, "stage") == 3 * 10 + 20 + 20
    assert count_activations(program, [last], stages, "stage") == 30 + 30
    whole = (Stage(0, 4, 0),)
    assert count_activations(program, whole, whole, None) == 100
    assert count_activations(program, whole, whole, "layer") == 10 + 20 + 60


def test_stage_without_operators_begins_where_it_stands() -> None:
    """The stage of a chip with no layers keeps the images that it hands on."""
    program = build_chain()
    assert list_layer_starts(program, Stage(2, 2, 1)) == [2]
    stages = (Stage(0, 0, 0), Stage(0, 4, 1))
    assert count_activations(program, stages[:1], stages, "layer") == 3 * 10


def test_recomputation_takes_a_forward_pass_and_saves_memory() -> None:
    network = load_network("resnet50")
    kept, again = (
        predict_training(network, M2000, TrainingSetup(8, 1, 2, recompute)).loads[0]
        for recompute in (None, "layer")
    )
    assert (kept.recompute, again.recompute) == (0.0, kept.forward)
    assert again.memory < 0.8 * kept.memory
    assert kept.backward == again.backward > kept.forward


def test_less_memory_for_products_is_slower_and_state_off_chip_is_moved() -> None:
    network = load_network("resnet50")
    rich, poor = (
        predict_training(network, M2000, TrainingSetup(20, 1, 1, "layer", (share,)))
        for share in (0.6, 0.05)
    )
    assert poor.round_s > 1.05 * rich.round_s
    held, moved = (
        predict_training(network, M2000, TrainingSetup(4, 4, 1, offchip=off))
        for off in (False, True)
    )
    parameters = held.loads[0].parameters
    assert moved.offload_s == pytest.approx(2 * 8 * parameters / 4 / 7e9)
    assert held.memory_share > moved.memory_share


# Published rows


def test_rows_are_those_of_the_configurations(warehouse: Path) -> None:
    with open_warehouse(warehouse) as connection:
        rows = load_training_rows(connection)
    assert len(rows) == len({row.result_id for row in rows}) == 88
    assert sum(row.set == TRAINING_SETS[0] for row in rows) >= 40
    assert all(row.set == LARGE for row in rows if row.setup.replicas * row.setup.chips > 64)
    assert {
        row.setup.proportions
        for row in rows
        if (row.name, row.framework) == ("bert-large-pretraining-split", "PopART")
    } == {*((0.15, 0.25, 0.25, 0.25), (0.15, 0.4, 0.4, 0.4), (0.16, 0.21, 0.21, 0.21))}
    known = {
        *(each.name for each in fields(TrainingSetup)),
        *"rows model variants frameworks platforms".split(),
    }
    entries = read_toml("training_rows.toml")["rows"]
    assert {key for entry in entries for key in entry} <= known | {"network", "source", "set"}
    (squad,) = (row for row in rows if row.throughput == 884)
    assert (squad.setup.layers, squad.setup.accumulation, squad.setup.offchip) == (
        (2, 3, 3, 3, 3, 3, 3, 4),
        32,
        False,
    )


@pytest.mark.slow
def test_page_has_the_scores() -> None:
    """`python -m benchmarks.emulator training` writes them, from the committed warehouse."""
    assert read_parts(training.PAGE) == training.generate_parts(training.load_scores())


# The command


BERT = {
    "layers_per_ipu": "0,4,4,4",
    "head": "first",
    "replicas": "4",
    "accumulation": "510",
    "micro_batch": "8",
    "sequence": "384",
    "recompute": "layer",
    "available_memory": "0.28",
}
COMMAND = ("predict", "--training", "--model", "bert-base-pretraining", "--format", "json")


def test_command_predicts_a_step() -> None:
    pairs = [part for key, text in BERT.items() for part in ("--set", f"{key}={text}")]
    done = run_cli(*COMMAND, "--target", "m2000", *pairs)
    assert (done.returncode, done.stderr) == (0, "")
    (record,) = json.loads(done.stdout)
    assert (record["chips"], record["stages"], record["batch_size"], record["rounds"]) == (
        16,
        5,
        16320,
        514,
    )
    assert record["origin"] == "emulated"
    assert 3000 < record["throughput"] < 4500


def test_short_steps_of_one_process_are_refused() -> None:
    args = ("predict", "--training", "--target", "m2000", "--model", "resnet50")
    refused = run_cli(*args, "--set", "micro_batch=8")
    assert refused.returncode == 1
    assert "resnet50: host-bound: not predicted, as one process drives steps of" in refused.stderr
    assert run_cli(*args, "--set", "micro_batch=8", "--set", "instances=4").returncode == 0
    assert run_cli(*args, "--set", "micro_batch=8", "--set", "accumulation=900").returncode == 0
