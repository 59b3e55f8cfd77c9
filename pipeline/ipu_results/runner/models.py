"""The model of a sweep: a built-in network or an ONNX file, checked and converted to the precision
of the sweep.
"""

from __future__ import annotations

import hashlib
import math
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf.message import DecodeError, EncodeError
from onnx import TensorProto

from ipu_results.emulator import networks
from ipu_results.emulator.networks.builder import BATCH
from ipu_results.errors import RunnerError, UnrecognisedModelError
from ipu_results.kit.files import hash_file
from ipu_results.runner.backends import format_error
from ipu_results.runner.inputs import TextInput, generate_sequences

Array = npt.NDArray[Any]
Feeds = Mapping[str, Array]

SEEDED = "random-he-seed0"
SEEDED_TEXT = "random-seed0"  # of 0.02, as published, and not by He's rule
EXPECTED = (
    "expected one float32 image input of shape (batch, 3, height, width) with fixed height and"
    " width, or integer inputs of shape (batch, sequence)"
)
QUANTISED = frozenset(
    {"QuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"}
)
FLOATS = {TensorProto.FLOAT: "fp32", TensorProto.FLOAT16: "fp16", TensorProto.BFLOAT16: "bf16"}
PER_CHANNEL_OPSET = 13  # the first in which QuantizeLinear takes an axis
INTEGERS: dict[int, str] = {
    TensorProto.INT64: "int64",
    TensorProto.INT32: "int32",
    TensorProto.BOOL: "bool",
}
MASKS: dict[int, str] = {TensorProto.FLOAT: "float32", TensorProto.FLOAT16: "float16"}  # of floats
# by a part of the name; else tokens
ROLES = {"mask": "mask", "position": "positions", "type|segment": "types"}
RESHAPING = frozenset({"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
MAX_SEQUENCE = 65_536  # tokens
STATE_IT = "state how many tokens a sequence has, with the setting sequence_length"


@dataclass(frozen=True)
class PreparedModel:
    """The file that is run, fp32, fp16 or int8 in `precision`, and what it was made from.

    `weights` is "random-he-seed0", "random-seed0" for text, or the sha256 of the user's file, which
    `source_sha256` is too: of the file alone, or of the file followed by its external data in the
    order of their names. `outputs` counts the values of the first output per item. A text model has
    `text_inputs` and `sequence_length` in place of an image.
    """

    path: Path
    sha256: str
    source_sha256: str
    weights: str
    precision: str
    name: str
    input_name: str
    channels: int
    height: int
    width: int
    outputs: int
    text_inputs: tuple[TextInput, ...] = ()
    sequence_length: int | None = None


def prepare_model(
    source: str,
    precision: str | None,
    folder: Path,
    calibration: Array | Feeds | None = None,
    sequence_length: int | None = None,
) -> PreparedModel:
    """Write a built-in network, or an ONNX file, into `folder` with a symbolic batch and in the
    requested precision.

    fp16 converts weights and activations, inputs and outputs too. int8 is static QDQ, calibrated on
    `calibration`, fp32 images as the network takes them, or sequences by input. bf16 leaves the
    file unchanged, for the backend to lower. None is the file's own. `sequence_length` is that of a
    text model that takes any. Raises `RunnerError` for a network that takes neither images nor
    text, or that cannot be converted.
    """
    model, origin, seeded = _load_source(source, sequence_length)
    inputs = _list_inputs(model)
    texts: tuple[TextInput, ...] = ()
    length = None
    changed = False
    # a model of text takes sequences of integers in one of its inputs at least
    if any(
        value.type.tensor_type.elem_type in INTEGERS and len(_get_axes(value)) == 2
        for value in inputs
    ):
        texts, length, changed = fix_text_inputs(model, inputs, sequence_length, source)
        name = texts[0].name
        shape = (0, 0, 0)
        feeds = generate_sequences(texts, 2, 0)
    else:
        if sequence_length is not None:
            raise RunnerError(
                "takes images: the setting sequence_length is for text models", document=source
            )
        image = _find_image_input(inputs, source)
        name = image.name
        shape = tuple(axis.dim_value for axis in image.type.tensor_type.shape.dim[1:])
        feeds = {name: np.zeros((2, *shape), dtype=np.float32)}
    own = _detect_precision(model)
    target = own if precision in (None, "bf16") else str(precision)
    if own not in (target, "fp32"):
        raise RunnerError(f"is {own} already and cannot be converted to {target}", document=source)
    plain = folder / f"{source if seeded else Path(source).stem}-{own}.onnx"
    _write_plain(model, plain, source, seeded or changed)
    items = "sequences" if texts else "images"
    declared = [axis.dim_value for axis in model.graph.output[0].type.tensor_type.shape.dim[1:]]
    outputs = math.prod(declared) if seeded else _count_outputs(plain, feeds, items, source)
    origin = origin or hash_file(plain)
    path = plain if target == own else _convert(model, plain, target, calibration, source)
    weights = (SEEDED_TEXT if texts else SEEDED) if seeded else origin
    label = plain.stem.removesuffix(f"-{own}")
    return PreparedModel(
        path, hash_file(path), origin, weights, target, label, name, *shape, outputs, texts, length
    )


def fix_batch_size(prepared: PreparedModel, micro_batch: int, folder: Path) -> Path:
    """Write the same model with a fixed batch, for devices that compile one shape."""
    model = onnx.load(prepared.path)
    _set_batch(model, micro_batch)
    path = folder / f"{prepared.path.stem}-batch{micro_batch}.onnx"
    onnx.save(model, path)
    return path


def open_cpu_session(path: Path) -> Any:
    """Open a session of ONNX Runtime on the CPU that prints nothing."""
    import onnxruntime  # noqa: PLC0415

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def name_inputs(session: Any, batch: Array | Feeds) -> dict[str, Array]:
    """Return arrays by input: images are those of the only input."""
    return dict(batch) if isinstance(batch, Mapping) else {session.get_inputs()[0].name: batch}


def _load_source(source: str, sequence_length: int | None) -> tuple[onnx.ModelProto, str, bool]:
    """Return the model, the sha256 of its file ("" for a built-in one), and whether it is built in."""
    if source in networks.NAMES:
        try:
            model = networks.build(
                source, weights=True, sequence=sequence_length or networks.SEQUENCE
            )
        except UnrecognisedModelError as error:
            raise RunnerError(error.message, document=source) from error
        return model, "", True
    path = Path(source)
    if not path.is_file():
        names = ", ".join(networks.NAMES)
        raise RunnerError(f"is neither a file nor a built-in network: {names}", document=source)
    try:
        model = onnx.load(path)
    except (DecodeError, OSError, ValueError, onnx.checker.ValidationError) as error:
        raise RunnerError(
            f"cannot be read as an ONNX model: {format_error(error)}", document=source
        ) from error
    digest = hashlib.sha256(path.read_bytes())
    for name in _list_external_files(path):
        digest.update((path.parent / name).read_bytes())
    return model, digest.hexdigest(), False


def _list_external_files(path: str | Path) -> list[str]:
    tensors = onnx.load(path, load_external_data=False).graph.initializer
    return sorted(
        {
            pair.value
            for tensor in tensors
            for pair in tensor.external_data
            if pair.key == "location"
        }
    )


def _list_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs that are not weights, which older files list as inputs too."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights]


def _find_image_input(inputs: list[onnx.ValueInfoProto], source: str) -> onnx.ValueInfoProto:
    if len(inputs) != 1:
        names = ", ".join(f"'{value.name}'" for value in inputs) or "none"
        raise RunnerError(f"has {len(inputs)} inputs ({names}): {EXPECTED}", document=source)
    kind = inputs[0].type.tensor_type
    shape = [
        axis.dim_value if axis.HasField("dim_value") else axis.dim_param or "?"
        for axis in kind.shape.dim
    ]
    fixed = all(isinstance(axis, int) and axis > 0 for axis in shape[1:])
    if kind.elem_type != TensorProto.FLOAT or len(shape) != 4 or shape[1] != 3 or not fixed:
        printed = (
            f"{TensorProto.DataType.Name(kind.elem_type).lower()} ({', '.join(map(str, shape))})"
        )
        raise RunnerError(f"input '{inputs[0].name}' is {printed}: {EXPECTED}", document=source)
    return inputs[0]


def _detect_precision(model: onnx.ModelProto) -> str:
    """Return int8 where the graph quantises, else the type of most weights."""
    if any(node.op_type in QUANTISED for node in model.graph.node):
        return "int8"
    sizes = dict.fromkeys(FLOATS, 0)
    for tensor in model.graph.initializer:
        if tensor.data_type in sizes:
            sizes[tensor.data_type] += int(np.prod(tensor.dims))
    return FLOATS[max(sizes, key=lambda kind: sizes[kind])]


def _write_plain(model: onnx.ModelProto, path: Path, source: str, changed: bool) -> None:
    """Copy the user's own bytes where they can be run; else write one file with a symbolic batch."""
    fixed = any(
        value.type.tensor_type.shape.dim[0].HasField("dim_value") for value in _list_inputs(model)
    )
    if fixed:
        _set_batch(model, BATCH)
    if changed or fixed or _list_external_files(source):
        _save(model, path, source)
    else:
        shutil.copyfile(source, path)


def _set_batch(model: onnx.ModelProto, batch: int | str) -> None:
    del model.graph.value_info[:]
    for value in (*_list_inputs(model), *model.graph.output):
        for axis in value.type.tensor_type.shape.dim[:1]:
            axis.Clear()
            setattr(axis, "dim_value" if isinstance(batch, int) else "dim_param", batch)


def _count_outputs(path: Path, feeds: Feeds, items: str, source: str) -> int:
    """Run a batch of two and return the outputs per item.

    A batch that the nodes have built in shows up here.
    """
    try:
        outputs = open_cpu_session(path).run(None, dict(feeds))[0]
    except Exception as error:  # the library's own classes share no other base
        raise RunnerError(
            f"does not run for a batch of two {items}: {format_error(error)}", document=source
        ) from error
    if not np.ndim(outputs) or len(outputs) != 2 or not np.size(outputs):
        printed = f"is of shape {np.shape(outputs)} for two {items}"
        raise RunnerError(f"output {printed}: expected the batch first", document=source)
    return int(np.size(outputs) // 2)


def _convert(
    model: onnx.ModelProto, plain: Path, target: str, calibration: Array | Feeds | None, source: str
) -> Path:
    """Write the fp32 model, which is in `plain`, as fp16 or int8 to the same folder.

    Raises RunnerError.
    """
    from onnxruntime.transformers.float16 import convert_float_to_float16  # noqa: PLC0415

    path = plain.with_name(plain.name.replace("-fp32.onnx", f"-{target}.onnx"))
    try:
        if target == "fp16":
            _save(convert_float_to_float16(model, keep_io_types=False), path, source)
        elif calibration is None or not len(calibration):
            raise RunnerError("needs images to calibrate int8 with", document=source)
        else:
            _quantise(plain, path, calibration)
        open_cpu_session(path)
    except RunnerError:
        raise
    except Exception as error:  # converters raise whatever their parts do
        raise RunnerError(
            f"cannot be converted to {target}: {format_error(error)}", document=source
        ) from error
    return path


def _quantise(plain: Path, path: Path, calibration: Array | Feeds) -> None:
    """Quantise to unsigned activations and signed weights of seven bits, per channel, batch-norms
    folded first.

    Without VNNI two products are added in 16 bits, which saturate at 8 bits of weight (2 × 255 ×
    127) and not at seven. Signed activations were slower than fp32 on such a CPU.
    """
    from onnxruntime import quantization  # noqa: PLC0415
    from onnxruntime.quantization.shape_inference import quant_pre_process  # noqa: PLC0415

    folded = path.with_suffix(".folded.onnx")
    try:
        quant_pre_process(str(plain), str(folded), skip_symbolic_shape=True)
        model = onnx.load(folded)
        if (
            max(own.version for own in model.opset_import if own.domain in ("", "ai.onnx"))
            < PER_CHANNEL_OPSET
        ):
            onnx.save(onnx.version_converter.convert_version(model, PER_CHANNEL_OPSET), folded)
        arrays = name_inputs(open_cpu_session(folded), calibration)
        count = len(next(iter(arrays.values())))
        feeds = iter([{name: x[i : i + 1] for name, x in arrays.items()} for i in range(count)])
        reader = SimpleNamespace(get_next=lambda: next(feeds, None))
        kinds = {
            "activation_type": quantization.QuantType.QUInt8,
            "weight_type": quantization.QuantType.QInt8,
        }
        quantization.quantize_static(
            str(folded), str(path), reader, per_channel=True, reduce_range=True, **kinds
        )
    finally:
        folded.unlink(missing_ok=True)


def _save(model: onnx.ModelProto, path: Path, source: str) -> None:
    try:
        onnx.save(model, path)
    except (EncodeError, ValueError) as error:
        raise RunnerError(
            f"does not fit one file of 2 GB: {format_error(error)}", document=source
        ) from error


def fix_text_inputs(
    model: onnx.ModelProto,
    inputs: Sequence[onnx.ValueInfoProto],
    sequence_length: int | None,
    source: str,
) -> tuple[tuple[TextInput, ...], int, bool]:
    """Give every free dimension but the batch the length of a sequence; return the inputs, the
    length, what changed.

    Raises RunnerError for a length that is not stated or not the model's own, and for an input that
    cannot be filled.
    """
    length = _choose_length(inputs, sequence_length, source)
    symbols = set()
    changed = False
    for value in inputs:
        for axis in _get_axes(value)[1:]:
            if not axis.HasField("dim_value"):
                symbols.add(axis.dim_param)
                axis.dim_value = length
                changed = True
    for value in model.graph.output if changed else ():
        for axis in _get_axes(value)[1:]:
            if axis.dim_param and axis.dim_param in symbols:
                axis.dim_value = length
    if changed:
        del model.graph.value_info[:]  # it may hold the free dimensions
    return tuple(_describe_input(model.graph, value, source) for value in inputs), length, changed


def _choose_length(inputs: Sequence[onnx.ValueInfoProto], stated: int | None, source: str) -> int:
    axes = [_get_axes(value) for value in inputs if value.type.tensor_type.elem_type in INTEGERS]
    lengths = {own[1].dim_value for own in axes if len(own) == 2 and own[1].HasField("dim_value")}
    if len(lengths) > 1:
        printed = " and ".join(map(str, sorted(lengths)))
        raise RunnerError(
            f"its inputs have sequences of {printed} tokens: expected one length", document=source
        )
    length = next(iter(lengths), stated)
    if length is None:
        raise RunnerError(f"takes sequences of any length; {STATE_IT}", document=source)
    if stated not in (None, length):
        raise RunnerError(f"takes sequences of {length} tokens, not {stated}", document=source)
    if not 1 <= length <= MAX_SEQUENCE:
        raise RunnerError(
            f"a sequence has 1 to {MAX_SEQUENCE:,} tokens, not {length}", document=source
        )
    return int(length)


def _describe_input(graph: onnx.GraphProto, value: onnx.ValueInfoProto, source: str) -> TextInput:
    kind = value.type.tensor_type.elem_type
    shape = tuple(axis.dim_value for axis in _get_axes(value)[1:])
    role = next(
        (role for pattern, role in ROLES.items() if re.search(pattern, value.name, re.I)), "tokens"
    )
    dtype = INTEGERS.get(kind) or MASKS.get(kind)
    fits = shape and (len(shape) == 1 or role == "mask") and (kind in INTEGERS or role == "mask")
    if dtype is None or not fits:
        printed = (
            f"{TensorProto.DataType.Name(kind).lower()} ({', '.join(map(str, ('batch', *shape)))})"
        )
        expected = "tokens, types, positions or a mask, integers of shape (batch, sequence)"
        raise RunnerError(
            f"input '{value.name}' is {printed}: expected {expected}", document=source
        )
    limit = _count_table_rows(graph, value.name) if role == "tokens" else 0
    if role == "tokens" and not limit:
        unknown = "leads to no table of words: the tokens to draw are not known"
        raise RunnerError(f"input '{value.name}' {unknown}", document=source)
    return TextInput(value.name, dtype, shape, role, limit)


def _count_table_rows(graph: onnx.GraphProto, name: str) -> int:
    """Return the rows of the first table that an input's values are looked up in, 0 without one."""
    rows = {tensor.name: tensor.dims[0] for tensor in graph.initializer if tensor.dims}
    reached = {name}
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in rows:
            rows[node.output[0]] = rows[node.input[0]]
        if node.op_type == "Gather" and node.input[1] in reached and node.input[0] in rows:
            return int(rows[node.input[0]])
        if node.op_type in RESHAPING and node.input[0] in reached:
            reached.update(node.output)
    return 0


def _get_axes(value: onnx.ValueInfoProto) -> list[Any]:
    return list(value.type.tensor_type.shape.dim)
