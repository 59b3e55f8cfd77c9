"""Sweeps of text models: inputs recognised by name, type and shape, seeded sequences, rows of the
right kind.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from ipu_results.build import IngestConfig, ingest
from ipu_results.doors.comparison.measurement import read_source
from ipu_results.doors.comparison.words import load_known_words
from ipu_results.emulator.networks.builder import GraphBuilder
from ipu_results.emulator.networks.text import Bert
from ipu_results.errors import RunnerError, SweepConfigError
from ipu_results.record.store.query import open_warehouse
from ipu_results.runner import Progress
from ipu_results.runner.backends import Device
from ipu_results.runner.config import SweepConfig, SweepPlan, SweepTask, plan_sweeps
from ipu_results.runner.inputs import (
    SequenceStream,
    TextInput,
    generate_sequences,
    hash_sequences,
    save_sequences,
)
from ipu_results.runner.models import prepare_model
from ipu_results.runner.report import format_summary
from ipu_results.runner.sweep import SweepResult, run_task
from ipu_results.runner.workload import compare_outputs, compute_reference

from tests.conftest import query_rows
from tests.runner.runner_support import SHORT, parse_model

LENGTH, WORDS = 16, 30
INPUTS = "int64[N,S] input_ids, int64[N,S] attention_mask, int32[N,S] token_type_ids"
BODY = """
    x = Gather(table, input_ids)
    m = Cast<to = 1>(attention_mask) t = Cast<to = 1>(token_type_ids)
    axes = Constant<value_ints = [2]>() w = Unsqueeze(m, axes) v = Unsqueeze(t, axes)
    hidden = MatMul(x, product) y = Mul(hidden, w) z = Add(y, v)
    pooled = ReduceMean<axes = [1], keepdims = 0>(z)
"""


def save(model: onnx.ModelProto, path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return str(path)


def store(folder: Path, inputs: str = INPUTS) -> str:
    """Write a text model as exporters do: any batch, any length, two outputs, weights as
    initialisers.
    """
    model = parse_model(f"({inputs}) => (float[N,S,4] z, float[N,4] pooled) {{ {BODY} }}")
    random = np.random.default_rng(0)
    for tensor, shape in (("table", (WORDS, 8)), ("product", (8, 4))):
        values = random.standard_normal(shape, np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, tensor))
    return save(model, folder / "bert_base.onnx")


def build_bert(folder: Path) -> str:
    """Write one layer of BERT, as the built-in networks are made, with the span as its output."""
    return save(Bert(1, 64).build(GraphBuilder(0), "bert-base", LENGTH), folder / "bert-base.onnx")


def make_task(source: str, device: Device, **more: Any) -> SweepTask:
    plan = SweepPlan((2, 4), 2, **SHORT)
    threads = 1 if device.kind == "cpu" else None
    return SweepTask(device, plan, SweepConfig(model=source, **more), threads)


CPU = Device("onnxruntime", "cpu", "cpu", "CPU")
C2 = Device("emulator", "c2", "emulated", "C2")
OPENVINO = Device("openvino", "CPU", "cpu", "CPU")


# --- inputs


def test_inputs_are_recognised_by_name_type_and_shape(tmp_path: Path) -> None:
    model = prepare_model(store(tmp_path / "user"), None, tmp_path, sequence_length=LENGTH)
    assert model.text_inputs == (
        TextInput("input_ids", "int64", (LENGTH,), "tokens", WORDS),
        TextInput("attention_mask", "int64", (LENGTH,), "mask"),
        TextInput("token_type_ids", "int32", (LENGTH,), "types"),
    )
    assert (model.sequence_length, model.outputs, model.name) == (LENGTH, LENGTH * 4, "bert_base")
    shape = onnx.load(model.path).graph.input[0].type.tensor_type.shape.dim
    assert (shape[0].dim_param, shape[1].dim_value) == ("N", LENGTH)


FIXED = INPUTS.replace("[N,S] input_ids", "[N,12] input_ids")
REFUSED = [
    (INPUTS, None, "takes sequences of any length; state how many tokens .* sequence_length"),
    (INPUTS, 10**6, "a sequence has 1 to 65,536 tokens"),
    (FIXED, 16, "takes sequences of 12 tokens, not 16"),
    (FIXED.replace("[N,S] att", "[N,16] att"), None, "of 12 and 16 tokens: expected one length"),
    (f"{INPUTS}, float[N,S] weights", 16, r"input 'weights' is float \(batch, 16\): expected tok"),
    (f"{INPUTS}, int64[N,S,S] spans", 16, r"input 'spans' is int64 \(batch, 16, 16\): expected"),
    (f"{INPUTS}, int64[N,S] labels", 16, "input 'labels' leads to no table of words"),
]


@pytest.mark.parametrize(("inputs", "length", "message"), REFUSED)
def test_text_model_that_cannot_be_fed_is_refused(
    tmp_path: Path, inputs: str, length: int | None, message: str
) -> None:
    source = store(tmp_path / "user", inputs)
    with pytest.raises(RunnerError, match=f"^{source}: .*{message}.*$"):
        prepare_model(source, None, tmp_path, sequence_length=length)


def test_sequences_are_full_and_the_same_each_time(tmp_path: Path) -> None:
    inputs = (
        TextInput("a/ids", "int32", (LENGTH,), "tokens", WORDS),
        TextInput("position_ids", "int64", (LENGTH,), "positions"),
        TextInput("mask", "bool", (LENGTH,), "mask"),
        TextInput("added", "float32", (1, 1, LENGTH), "mask"),
    )
    arrays = generate_sequences(inputs, 50, 0)
    assert set(np.unique(arrays["a/ids"])) == set(range(WORDS))
    assert arrays["mask"].all()
    assert not arrays["added"].any()
    assert (arrays["position_ids"][7] == np.arange(LENGTH)).all()
    assert hash_sequences(arrays) == hash_sequences(generate_sequences(inputs, 50, 0))
    assert hash_sequences(arrays) != hash_sequences(generate_sequences(inputs, 50, 1))
    arguments = save_sequences(tmp_path / "x.npz", arrays)
    stream = SequenceStream(**arguments, dtype="float16", micro_batch=20, first=1, step=2)
    for rows in (range(1, 41, 2), [*range(41, 50, 2), *range(1, 31, 2)]):  # and round again
        batch = stream.prepare(stream.load())
        assert (batch["a/ids"] == arrays["a/ids"][list(rows)]).all()
    assert batch["added"].dtype == np.float16
    assert batch["a/ids"].flags.c_contiguous


@pytest.mark.parametrize(("precision", "dtype"), [("fp16", "float16"), ("int8", "float32")])
def test_text_model_is_converted(tmp_path: Path, precision: str, dtype: str) -> None:
    source = build_bert(tmp_path / "user")
    plain = prepare_model(source, None, tmp_path)
    x = generate_sequences(plain.text_inputs, 8, 0)
    model = prepare_model(source, precision, tmp_path, x)
    assert (model.precision, model.weights) == (precision, plain.weights)
    arguments = save_sequences(tmp_path / "x.npz", x)
    stream = SequenceStream(**arguments, dtype=dtype, micro_batch=8)
    outputs = compute_reference(model.path, stream.prepare(stream.load()))
    cosine, _ = compare_outputs(outputs, compute_reference(plain.path, x))
    assert cosine is not None
    assert cosine > 0.95


# --- configuration


def test_network_of_a_file_is_a_name_of_the_record() -> None:
    config = SweepConfig(backend="emulator", model="net.onnx", network="bert_base")
    (task,) = plan_sweeps(config, Path("out"))
    assert task.config.network == "BERT-Base"
    message = "bert-bas is not a network of the record; the nearest is BERT-Base"
    with pytest.raises(SweepConfigError, match=message):
        plan_sweeps(replace(config, network="bert-bas"), Path("out"))
    message = "the setting network is for an ONNX file: resnet50 is a built-in network"
    with pytest.raises(SweepConfigError, match=message):
        plan_sweeps(replace(config, model="resnet50"), Path("out"))


@pytest.mark.parametrize(
    ("device", "more", "message"),
    [
        (Device("popart", "ipu", "ipu", "IPU"), {}, "takes text, which popart does not run here"),
        (CPU, {"images": "."}, "takes text: --images is for image models"),
    ],
)
def test_text_is_refused_where_images_are_needed(
    tmp_path: Path, device: Device, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(RunnerError, match=message):
        run_task(make_task(build_bert(tmp_path), device, **more), tmp_path / "runs", Progress())
    assert list((tmp_path / "runs").iterdir()) == []


# --- sweeps


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("text") / "raw"


@pytest.fixture(scope="module")
def runs(raw: Path) -> dict[str, SweepResult]:
    """Sweep a text model on the CPU and on the emulated C2."""
    bert = build_bert(raw.parent / "user")
    net = store(raw.parent / "user")
    more = {"sequence_length": LENGTH, "network": "BERT-Large"}
    tasks = {
        "cpu": make_task(bert, CPU, precision="fp32"),
        "openvino": make_task(net, OPENVINO, precision="fp32", **more),
        "emulated": make_task(bert, C2),
    }
    return {name: run_task(task, raw / "runs", Progress()) for name, task in tasks.items()}


def test_points_count_sequences_and_agree_with_the_reference(runs: dict[str, SweepResult]) -> None:
    for run in runs.values():
        for point in run.points:
            assert (point["item"], point["variant"]) == ("sequence", f"SL{LENGTH}")
            assert point["preprocessing"] == f"seeded tokens, {LENGTH} a sequence, no padding"
            assert point["cosine"] > 0.999
            assert point["throughput"] > 0
    assert runs["cpu"].points[0]["compute_precision"] == "fp32"
    assert runs["openvino"].points[0]["model"] == "BERT-Large"
    assert "sequences/s" in format_summary(runs["cpu"].points)


def test_runs_pass_the_gates_with_model_item_and_length(
    raw: Path, runs: dict[str, SweepResult]
) -> None:
    warehouse = raw.parent / "warehouse"
    assert ingest(IngestConfig(raw, warehouse)).results == 6
    sql = "SELECT origin, model, sequence_length, item, table_name, count(*) FROM results"
    rows = query_rows(warehouse, f"{sql} GROUP BY ALL ORDER BY ALL")
    kind = (LENGTH, "sequence", "sweep_sequence_points")
    names = [("emulated", "BERT-Base"), ("measured", "BERT-Base"), ("measured", "BERT-Large")]
    assert rows == [(*name, *kind, 2) for name in names]
    with open_warehouse(warehouse) as connection:
        measurements = read_source(runs["cpu"].folder, load_known_words(connection))
    for own in measurements:
        assert (own.model, own.sequence_length, own.packed) == ("BERT-Base", LENGTH, False)
