"""Predictions of a training step, by hand where a formula has one, and against published rows."""

from __future__ import annotations

from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from ipu_results.emulator.network import load_network
from ipu_results.emulator.operators import Elementwise, Product, Program, Tensor, make_gemm
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
from ipu_results.emulator.training import (
    TrainingPrediction,
    TrainingSetup,
    extend_target,
    predict_training,
)
from ipu_results.errors import InconsistentModelError
from ipu_results.record.store.query import open_warehouse

from benchmarks.emulator import training
from benchmarks.emulator.page import read_parts
from benchmarks.emulator.rows import LARGE, TRAINING_SETS, load_training_rows, read_toml
from tests.conftest import run_cli
from tests.emulator.model_support import predict_json

GRADIENTS = 64e6  # bytes of a chip
LINK, MACHINES, GATEWAY, START = 64e9, 48e9, 25e9, 2e-6  # bytes per second, seconds
M2000 = extend_target(load_target("m2000"))
# those of the M2000 are equal, and hide a mixture
UNEVEN = M2000.with_constants({"link.machine": MACHINES})
CHAIN = tuple(Stage(at, at + 1, at) for at in range(4))
ONE_CHIP = tuple(Stage(at, at + 1, 0) for at in range(4))


def build_chain() -> Program:
    """Return two products, each with an activation: of 10 inputs 20, 20, 30 and 30 results."""
    operators = (
        make_gemm("layer0.product", 1, 1, 10, 20),
        Elementwise("layer0.gelu", "gelu", 20),
        make_gemm("layer1.product", 1, 1, 20, 30),
        Elementwise("layer1.gelu", "gelu", 30),
    )
    sources = ((-1,), (0,), (1,), (2,))
    inputs = (Tensor("x", (1, 10), 16),)
    outputs = (Tensor("y", (1, 30), 16),)
    return Program("chain", operators, sources, inputs, outputs, (3,), 200 + 600)


# Sums over replicas


@pytest.mark.parametrize(
    ("replicas", "chips", "rings"),
    [
        (1, 4, []),
        (4, 1, [(4, GRADIENTS, LINK)]),
        (16, 1, [(4, GRADIENTS, LINK), (4, GRADIENTS, MACHINES)]),
        # A replica fills the machine, whose link carries the gradients of all four chips.
        (16, 4, [(16, 4 * GRADIENTS, MACHINES)]),
        (2, 8, [(2, 4 * GRADIENTS, MACHINES)]),
        # Two pods: each machine sends its sixteenth over its own gateway.
        (
            128,
            1,
            [(4, GRADIENTS, LINK), (16, GRADIENTS, MACHINES), (2, GRADIENTS / 16, GATEWAY)],
        ),
    ],
)
def test_all_reduce_by_hand(
    replicas: int, chips: int, rings: list[tuple[int, float, float]]
) -> None:
    """Over a ring of n each part is sent on 2 (n - 1) times."""
    seconds = 0.0
    for parts, size, rate in rings:
        seconds += 2 * (parts - 1) * (size / parts / rate + START)
    assert estimate_all_reduce(GRADIENTS, replicas, chips, UNEVEN) == pytest.approx(seconds)


# The backward pass


@pytest.mark.parametrize(
    "name", ["resnet50", "resnext101-32x4d", "efficientnet-b4-g16", "bert-base", "unet"]
)
def test_gradients_have_twice_the_macs(name: str) -> None:
    """Only the first operator has no data to find a gradient for."""
    program = load_network(name)(2)
    macs = 0
    for step in chain.from_iterable(derive_gradients(program)):
        if isinstance(step, GradientProduct):
            macs += step.macs
            assert min(shape.macs for shape in step.shapes) >= step.macs
    first = next(operator for operator in program.operators if isinstance(operator, Product))
    spared = 0 if name == "bert-base" else first.macs
    assert macs == 2 * program.macs - spared


def test_gradients_of_shared_results_are_added() -> None:
    """A residual block reads its input twice; a split's parts are not the same tensor."""
    for network, sums in (("resnet50", 16), ("bert-base", 24)):
        names = []
        for step in chain.from_iterable(derive_gradients(load_network(network)(1))):
            if isinstance(step, Elementwise) and step.kind == "sum":
                names.append(step.name)
        assert len(names) == sums
        assert not any("qkv" in name for name in names)


# Stages


def test_stages_of_one_chip_are_all_computed_again() -> None:
    """Texas A&M's seven one-chip rows were 6 to 9 % too fast while the last stage was left out."""
    assert [is_computed_again(stage, ONE_CHIP) for stage in ONE_CHIP] == [True] * 4
    assert [is_computed_again(stage, CHAIN) for stage in CHAIN] == [True, True, True, False]


def predict_resnet(*setup: int, **more: Any) -> TrainingPrediction:
    return predict_training(load_network("resnet50"), M2000, TrainingSetup(*setup, **more))


def test_norm_span_is_added_to_a_step() -> None:
    plain = predict_resnet(1, 2)
    spanned = predict_resnet(1, 2, norm_span=2)
    assert spanned.round_s - plain.round_s == pytest.approx(3 * 5.5e-6 * 53)
    assert plain.step_ms_low <= plain.step_s * 1000 < plain.step_ms_high


def test_filling_and_draining_cost_a_round_a_stage() -> None:
    assert [count_rounds(CHAIN, count) for count in (1, 4, 60)] == [4, 7, 63]
    assert count_rounds((*CHAIN, Stage(4, 5, 0)), 4) == 8
    assert count_rounds(ONE_CHIP, 4) == 4
    prediction = predict_resnet(1, 1, 4, stages=4)
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
    program = build_chain()
    first = Stage(0, 2, 0)
    last = Stage(2, 4, 1)
    stages = (first, last)
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
    (kept,) = predict_resnet(8, 1, 2).loads
    (again,) = predict_resnet(8, 1, 2, recompute="layer").loads
    assert (kept.recompute, again.recompute) == (0.0, kept.forward)
    assert again.memory < 0.8 * kept.memory
    assert kept.backward == again.backward > kept.forward


def test_less_memory_for_products_is_slower_and_state_off_chip_is_moved() -> None:
    rich = predict_resnet(20, 1, 1, recompute="layer", proportions=(0.6,))
    poor = predict_resnet(20, 1, 1, recompute="layer", proportions=(0.05,))
    assert poor.round_s > 1.05 * rich.round_s
    held = predict_resnet(4, 4, 1)
    moved = predict_resnet(4, 4, 1, offchip=True)
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
    proportions = set()
    for row in rows:
        if (row.name, row.framework) == ("bert-large-pretraining-split", "PopART"):
            proportions.add(row.setup.proportions)
    assert proportions == {
        (0.15, 0.25, 0.25, 0.25),
        (0.15, 0.4, 0.4, 0.4),
        (0.16, 0.21, 0.21, 0.21),
    }
    known = {field.name for field in fields(TrainingSetup)}
    known |= set("rows model variants frameworks platforms network source set".split())
    for entry in read_toml("training_rows.toml")["rows"]:
        assert entry.keys() <= known
    (squad,) = (row.setup for row in rows if row.throughput == 884)
    assert squad.layers == (2, 3, 3, 3, 3, 3, 3, 4)
    assert (squad.accumulation, squad.offchip) == (32, False)


@pytest.mark.slow
def test_page_has_the_scores() -> None:
    """`python -m benchmarks.emulator training` writes them, from the committed warehouse."""
    assert read_parts(training.PAGE) == training.generate_parts(training.load_scores())


# The command


BERT = (
    "--training --target m2000 --model bert-base-pretraining --set layers_per_ipu=0,4,4,4"
    " --set head=first --set replicas=4 --set accumulation=510 --set micro_batch=8"
    " --set sequence=384 --set recompute=layer --set available_memory=0.28"
)


def test_command_predicts_a_step() -> None:
    (record,) = predict_json(*BERT.split())
    expected = {"chips": 16, "stages": 5, "batch_size": 16320, "rounds": 514, "origin": "emulated"}
    assert record.items() >= expected.items()
    assert 3000 < record["throughput"] < 4500


def test_short_steps_of_one_process_are_refused() -> None:
    command = "predict --training --target m2000 --model resnet50 --set micro_batch=8"
    refused = run_cli(*command.split())
    assert refused.returncode == 1
    assert "resnet50: host-bound: not predicted, as one process drives steps of" in refused.stderr
    for setting in ("instances=4", "accumulation=900"):
        assert run_cli(*command.split(), "--set", setting).returncode == 0
