"""Compute a network as a machine in fp16 would: every weight and every result is rounded to fp16."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from ipu_results.emulator.network import Network
from ipu_results.emulator.target import Target
from ipu_results.errors import InconsistentModelError, UnrecognisedModelError
from ipu_results.networks import build

FloatArray = npt.NDArray[Any]
FLOAT, FLOAT16 = TensorProto.FLOAT, TensorProto.FLOAT16
MAX_MESSAGE = 300  # characters of onnxruntime's own message


@lru_cache(maxsize=2)
def open_session(network: Network, data_inputs: tuple[str, ...]) -> Any:
    """Open an onnxruntime session in fp16, kept for the next batch because it takes seconds.

    Raises InconsistentModelError for a network without weights.
    """
    import onnxruntime  # noqa: PLC0415 (slow to import, and only needed to run)

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # keeps every cast
    options.log_severity_level = 4
    data = insert_fp16_casts(_load_weights(network, data_inputs)).SerializeToString()
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        message = " ".join(str(error).split())[:MAX_MESSAGE]
        raise UnrecognisedModelError(f"onnxruntime cannot run it: {message}", document=network.name) from error


def round_to_fp16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the nearest fp16 values as float32, infinite beyond 65504."""
    with np.errstate(over="ignore"):
        return values.astype(np.float16).astype(np.float32)


def insert_fp16_casts(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy whose float weights are fp16 values and whose float results pass through fp16 after each node.

    Each node computes in float32 and its result is rounded once, which is what accumulating in float32 and storing in
    fp16 gives. Partial sums that a machine keeps in fp16 are not rounded, and nothing inside a node is.
    """
    typed = onnx.shape_inference.infer_shapes(model)
    kinds = {value.name: value.type.tensor_type.elem_type for value in (*typed.graph.value_info, *typed.graph.output)}
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if tensor.data_type == FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(round_to_fp16(numpy_helper.to_array(tensor)), tensor.name))
    nodes = [cast for node in copy.graph.node for cast in _add_casts(node, kinds)]
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def _add_casts(node: onnx.NodeProto, kinds: dict[str, int]) -> Iterator[onnx.NodeProto]:
    """Rename the node's float outputs, and cast them to fp16 and back under their own names."""
    wide = [name for name in node.output if kinds.get(name) == FLOAT]
    for at, name in enumerate(node.output):
        if name in wide:
            node.output[at] = f"{name}/wide"
    yield node
    for name in wide:
        yield helper.make_node("Cast", [f"{name}/wide"], [f"{name}/half"], f"{name}/half", to=FLOAT16)
        yield helper.make_node("Cast", [f"{name}/half"], [name], f"{name}/rounded", to=FLOAT)


def _load_weights(network: Network, data_inputs: tuple[str, ...]) -> onnx.ModelProto:
    if network.built_in:
        return build(network.name, weights=True)
    model = onnx.ModelProto()
    model.CopyFrom(network.model)
    if network.folder is not None:
        onnx.load_external_data_for_model(model, str(network.folder))
    filled = {tensor.name for tensor in model.graph.initializer}
    if missing := [value.name for value in model.graph.input if value.name not in filled.union(data_inputs)]:
        message = f"has no weights (for example {missing[0]}): it can be timed but not run"
        raise InconsistentModelError(message, document=network.name)
    return model


Array = np.ndarray[Any, np.dtype[np.float64]]

SLIC_CHANNELS = 4  # that one stride of a SLIC call handles
SLIC_PIPELINE, SLIC_PIPELINE_2 = 5, 3  # elements that fill its pipeline, at strides 1 and 2


def ceil_div(dividend: Any, divisor: Any) -> Any:
    """Divide and round up.

    Arrays hold whole numbers below 2^26 as doubles: there a true division is exact enough and faster than a floor one.
    """
    if isinstance(dividend, np.ndarray) or isinstance(divisor, np.ndarray):
        return np.ceil(dividend / divisor)
    return -(-dividend // divisor)


def estimate_coefficient_load(target: Target) -> float:
    """Estimate the cycles to load the weights of a pass."""
    return 32 * target["conv.units"] / target["conv.load_bytes"]


def estimate_amp_1x1(target: Target, field: Array, groups: Array, ins: Array, outs: Array) -> Array:
    """Estimate a 1×1 convolution: field elements, convolution groups, input and output channel groups of the tile."""
    per_worker = ceil_div(field, target["workers"])
    # The inner loop has a prologue: one and two elements cost nearly as much as three.
    worker = np.where(
        per_worker == 1,
        target["amp1.worker_one"],
        np.where(
            per_worker == 2,
            target["amp1.worker_two"],
            target["amp1.worker_many"] + target["amp1.worker_more"] * (per_worker - 3),
        ),
    )
    # The first group of input channels zeroes the partials, later groups add to them.
    first = worker + target["amp1.zero"] + target["amp1.zero_more"] * per_worker
    load = target["amp1.pass"] + estimate_coefficient_load(target)
    later = target["amp1.in"] + outs * (target["amp1.out"] + load + target["workers"] * worker)
    zeroing = target["amp1.in_first"] + outs * (target["amp1.out"] + load + target["workers"] * first)
    start = target["amp1.start"] + target["amp1.start_first"] + target["amp1.start_step"] * (ins * groups - 1)
    cycles: Array = start + groups * (target["amp1.group"] + (ins - 1) * later + zeroing)
    return cycles


def estimate_amp_nx1(
    target: Target, rows: Array, columns: Array, groups: Array, ins: Array, outs: Array, taps: tuple[int, Array, int]
) -> Array:
    """Estimate a convolution over rows of field elements, otherwise as `estimate_amp_1x1`.

    `taps` are kernel columns, steps over the kernel's rows and the filter height, which is how many rows a step covers.
    """
    across, down, height = taps
    load = estimate_coefficient_load(target) + target[f"ampn.load_{height}"]
    worker = target["workers"] * _estimate_worker(target, rows, columns)
    if "ampn.group" in target:  # Mk1 calls the inner loop per input channel group, Mk2 hoists it
        inner = target["ampn.column"] + down * (target["ampn.row"] + load + worker)
        outer = target["ampn.in"] + outs * (target["ampn.out"] + across * inner)
        return target["ampn.start"] + groups * (target["ampn.group"] + ins * outer)
    calls = target["ampn.column"] + down * (load + target["ampn.row"])
    return target["ampn.start"] + groups * ins * outs * (target["ampn.inner"] + across * calls + worker * down * across)


def _estimate_worker(target: Target, rows: Array, columns: Array) -> Array:
    """Estimate the worker that holds most."""
    whole, broken = _deal_rows(target, rows, columns)
    cycles: Array = target["ampn.worker"] + whole * _estimate_piece(target, columns) + _estimate_piece(target, broken)
    return cycles


def _deal_rows(target: Target, rows: Array, columns: Array) -> tuple[Array, Array]:
    """Deal the elements to the workers: return the whole rows and the rest of a row of the one that holds most."""
    share = ceil_div(rows * columns, target["workers"])
    whole = share // columns
    return whole, share - whole * columns


def _estimate_piece(target: Target, length: Array) -> Array:
    more = target["ampn.piece_many"] + target["ampn.piece_more"] * (np.maximum(length, 3) - 3)
    short = np.where(length == 1, target["ampn.piece_one"], np.where(length == 2, target["ampn.piece_two"], more))
    cycles: Array = np.where(length <= 0, 0, short)
    return cycles


def estimate_slic(
    target: Target, rows: Array, columns: Array, blocks: Array, windows: int, stride: int, kind: tuple[int, int]
) -> Array:
    """Estimate a SLIC convolution: `blocks` of channel groups on the tile, `windows` of 1×4 taps each.

    `kind` is the channels of a group and the groups of one call. A call handles 4 groups at a time, so 8 and 16 take
    several strides over the same window.
    """
    channels, at_once = kind
    strides = max(1, channels * at_once // SLIC_CHANNELS)
    load = target[f"slic.load_{channels}x{at_once}"]
    if strides == 1:
        body = load + target["slic.body"]
    else:
        loads = strides * (load + target["slic.load_again"])
        body = loads + target["slic.loop"] * (strides - 1) + target["slic.body_many"]
    whole, broken = _deal_rows(target, rows, columns)
    started = target["slic.worker"] + (target["slic.worker_many"] if strides > 1 else 0)
    first, later = (
        started
        + whole * _estimate_slic_piece(target, columns, stride, zero)
        + np.sign(broken) * _estimate_slic_piece(target, broken, stride, zero)
        for zero in (True, False)
    )
    loop = target["slic.loop"]
    work = target["workers"] * strides * (first + (windows - 1) * later)
    block = target["slic.block"] + (target["slic.block_many"] if strides > 1 else 0) + loop + 1
    cycles: Array = target["slic.start"] + blocks * (block + windows * body + loop * (windows - 1) + work) + 1 - loop
    return cycles


def _estimate_slic_piece(target: Target, length: Array, stride: int, zero: bool) -> Array:
    """Estimate a whole or a broken row in one window. The first window also zeroes the partials."""
    if stride == 1:
        short = (target["slic.row_one"] if zero else target["slic.row_short"]) + length
        row = np.where(length < SLIC_PIPELINE, short, target["slic.row"] + length - SLIC_PIPELINE)
    else:
        row = target["slic.row2"] + target["slic.row2_more"] * np.maximum(length - SLIC_PIPELINE_2, 0)
    cycles: Array = target["slic.piece"] + (1 if zero else 0) + np.where(length <= 1, target["slic.row_one"], row)
    return cycles


def estimate_vmac(target: Target, field: Array, blocks: Array, kernel: tuple[int, int]) -> Array:
    """Estimate a depthwise convolution by vector multiply-accumulates: `blocks` of channels on the tile."""
    height, width = kernel
    row = target["vmac.row"] + target["vmac.tap"] * (width - 1)
    worker = target["vmac.worker"] + height * ceil_div(field, target["workers"]) * row
    block = target["vmac.block"] + target["vmac.element"] * field + target["workers"] * worker
    cycles: Array = target["vmac.start"] + blocks * block
    return cycles


def estimate_reduction(target: Target, depth: Array, partials: Array) -> tuple[Array, Array, Array]:
    """Estimate the addition of `depth` sets of `partials` elements a tile: cycles, stages and received elements."""
    cycles, received = np.zeros_like(partials), np.zeros_like(partials)
    many = np.where(depth < target["reduce.two_stages"], 2, 3)
    stages = np.where(depth <= 1, 0, np.where(depth < target["reduce.one_stage"], 1, many))
    for count in (1, 2, 3):
        chosen = stages == count
        each = np.ceil(depth[chosen] ** (1 / count))  # sets that a stage adds up
        left = partials[chosen]
        for _ in range(count):
            left = np.ceil(left / each)
            vectors = np.ceil(left / target["reduce.vector"])
            worker = ceil_div(vectors, target["workers"]) * (target["reduce.depth"] * each + target["reduce.rest"])
            cycles[chosen] += target["reduce.start"] + target["workers"] * worker
            received[chosen] += left * each
    return cycles, stages, received
