"""The model of a sweep: a built-in network or an ONNX file, checked and converted to the precision
of the sweep.
"""

from __future__ import annotations

import hashlib
import math
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError, EncodeError
from onnx import TensorProto

from ipu_results.emulator import networks
from ipu_results.emulator.networks.builder import BATCH
from ipu_results.errors import RunnerError, UnrecognisedModelError
from ipu_results.kit.files import hash_file
from ipu_results.runner.backends import format_error
from ipu_results.runner.inputs import TextInput, generate_sequences

if TYPE_CHECKING:
    from ipu_results.runner.backends import Batch

SEEDED = "random-he-seed0"
SEEDED_TEXT = "random-seed0"  # of 0.02, as published, and not by He's rule
EXPECTED = (
    "expected one float32 image input of shape (batch, 3, height, width) with fixed height and"
    " width, or integer inputs of shape (batch, sequence)"
)
QUANTISED = ("QuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger")
FLOATS = {TensorProto.FLOAT: "fp32", TensorProto.FLOAT16: "fp16", TensorProto.BFLOAT16: "bf16"}
PER_CHANNEL_OPSET = 13  # the first in which QuantizeLinear takes an axis
INTEGERS: dict[int, str] = {
    TensorProto.INT64: "int64",
    TensorProto.INT32: "int32",
    TensorProto.BOOL: "bool",
}
# a mask may be of floats, too
MASKS: dict[int, str] = {TensorProto.FLOAT: "float32", TensorProto.FLOAT16: "float16"}
# of an input by a part of its name; any other has tokens
ROLES = {"mask": "mask", "position": "positions", "type|segment": "types"}
RESHAPING = ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
# a typing error of some digits would fill the memory
MAX_SEQUENCE = 65_536  # tokens
FATAL = 4  # failures are raised, so ONNX Runtime need not print them too


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


@dataclass(frozen=True)
class _Source:
    """The user's model or a built-in one (`sha256` is "" then), its inputs changed in place to what
    is run.
    """

    name: str
    model: onnx.ModelProto
    sha256: str

    @property
    def built_in(self) -> bool:
        return not self.sha256

    def refuse(self, reason: str) -> RunnerError:
        return RunnerError(reason, document=self.name)


def prepare_model(
    source: str,
    precision: str | None,
    folder: Path,
    calibration: Batch | None = None,
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
    loaded = _load_source(source, sequence_length)
    model = loaded.model
    inputs = _list_inputs(model)
    first = inputs[0].name if inputs else ""
    texts: tuple[TextInput, ...] = ()
    size: tuple[int, ...] = (0, 0, 0)
    length = None
    changed = loaded.built_in
    # a model of text takes sequences of integers in one of its inputs at least
    if any(_is_sequence(value) for value in inputs):
        items = "sequences"
        length = _choose_length(loaded, inputs, sequence_length)
        changed |= _fix_lengths(model, inputs, length)
        texts = tuple(_describe_input(loaded, value) for value in inputs)
        feeds = generate_sequences(texts, 2, 0)
    elif sequence_length is not None:
        raise loaded.refuse("takes images: the setting sequence_length is for text models")
    else:
        items = "images"
        _check_image_input(loaded, inputs)
        size = _get_lengths(inputs[0])
        feeds = {first: np.zeros((2, *size), dtype=np.float32)}
    own_precision = _detect_precision(model)
    target = precision or own_precision
    if target == "bf16":  # for the backend to lower to
        target = own_precision
    # a file that is not fp32 cannot be converted without loss
    is_converted = target != own_precision
    if is_converted and own_precision != "fp32":
        raise loaded.refuse(f"is {own_precision} already and cannot be converted to {target}")
    label = source if loaded.built_in else Path(source).stem
    plain = folder / f"{label}-{own_precision}.onnx"
    _write_plain(loaded, plain, changed)
    if loaded.built_in:
        outputs = math.prod(_get_lengths(model.graph.output[0]))
        weights = SEEDED_TEXT if texts else SEEDED
    else:
        outputs = _count_outputs(loaded, plain, feeds, items)
        weights = loaded.sha256
    path = plain
    if is_converted:
        path = _convert(loaded, plain, target, calibration)
    return PreparedModel(
        path,
        sha256=hash_file(path),
        source_sha256=loaded.sha256 or hash_file(plain),
        weights=weights,
        precision=target,
        name=label,
        input_name=first,
        channels=size[0],
        height=size[1],
        width=size[2],
        outputs=outputs,
        text_inputs=texts,
        sequence_length=length,
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
    options.log_severity_level = FATAL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def name_inputs(session: Any, batch: Batch) -> dict[str, np.ndarray]:
    """Return arrays by input: images are those of the only input."""
    return batch if isinstance(batch, dict) else {session.get_inputs()[0].name: batch}


def _load_source(name: str, sequence_length: int | None) -> _Source:
    if name in networks.NAMES:
        length = sequence_length or networks.SEQUENCE
        try:
            return _Source(name, networks.build(name, weights=True, sequence=length), "")
        except UnrecognisedModelError as error:
            raise RunnerError(error.message, document=name) from error
    path = Path(name)
    if not path.is_file():
        names = ", ".join(networks.NAMES)
        raise RunnerError(f"is neither a file nor a built-in network: {names}", document=name)
    try:
        model = onnx.load(path)
    except (DecodeError, OSError, ValueError, onnx.checker.ValidationError) as error:
        raise RunnerError(
            f"cannot be read as an ONNX model: {format_error(error)}", document=name
        ) from error
    digest = hashlib.sha256(path.read_bytes())
    for file in _list_external_files(path):
        digest.update((path.parent / file).read_bytes())
    return _Source(name, model, digest.hexdigest())


def _list_external_files(path: Path) -> list[str]:
    files: set[str] = set()
    for tensor in onnx.load(path, load_external_data=False).graph.initializer:
        files.update(pair.value for pair in tensor.external_data if pair.key == "location")
    return sorted(files)


def _list_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs that are not weights, which older files list as inputs too."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights]


def _get_axes(value: onnx.ValueInfoProto) -> list[Any]:
    return list(value.type.tensor_type.shape.dim)


def _get_lengths(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    """Return the lengths of all dimensions but the batch, 0 for one that is free."""
    return tuple(axis.dim_value for axis in _get_axes(value)[1:])


def _is_sequence(value: onnx.ValueInfoProto) -> bool:
    return value.type.tensor_type.elem_type in INTEGERS and len(_get_axes(value)) == 2


def _format_type(value: onnx.ValueInfoProto, shape: Sequence[object]) -> str:
    kind = TensorProto.DataType.Name(value.type.tensor_type.elem_type)
    return f"{kind.lower()} ({', '.join(map(str, shape))})"


def _check_image_input(source: _Source, inputs: Sequence[onnx.ValueInfoProto]) -> None:
    if len(inputs) != 1:
        names = ", ".join(f"'{value.name}'" for value in inputs) or "none"
        raise source.refuse(f"has {len(inputs)} inputs ({names}): {EXPECTED}")
    image = inputs[0]
    lengths = _get_lengths(image)
    is_float = image.type.tensor_type.elem_type == TensorProto.FLOAT
    is_image = len(lengths) == 3 and lengths[0] == 3 and min(lengths) > 0
    if not is_float or not is_image:
        shape = []
        for axis in _get_axes(image):
            length = axis.dim_value if axis.HasField("dim_value") else axis.dim_param or "?"
            shape.append(length)
        raise source.refuse(f"input '{image.name}' is {_format_type(image, shape)}: {EXPECTED}")


def _detect_precision(model: onnx.ModelProto) -> str:
    """Return int8 where the graph quantises, else the type of most weights."""
    if any(node.op_type in QUANTISED for node in model.graph.node):
        return "int8"
    sizes = dict.fromkeys(FLOATS, 0)
    for tensor in model.graph.initializer:
        if tensor.data_type in sizes:
            sizes[tensor.data_type] += int(np.prod(tensor.dims))
    most_common = max(sizes, key=lambda kind: sizes[kind])
    return FLOATS[most_common]


def _write_plain(source: _Source, path: Path, changed: bool) -> None:
    """Copy the user's own bytes where they can be run; else write a file with a symbolic batch."""
    model = source.model
    fixed = any(_get_axes(value)[0].HasField("dim_value") for value in _list_inputs(model))
    if fixed:
        _set_batch(model, BATCH)
    if changed or fixed or _list_external_files(Path(source.name)):
        _save(source, model, path)
    else:
        shutil.copyfile(source.name, path)


def _set_batch(model: onnx.ModelProto, batch: int | str) -> None:
    # shapes inferred for the batch before would contradict it
    del model.graph.value_info[:]
    for value in (*_list_inputs(model), *model.graph.output):
        # an output may be a scalar, which has no batch
        for axis in _get_axes(value)[:1]:
            axis.Clear()
            if isinstance(batch, int):
                axis.dim_value = batch
            else:
                axis.dim_param = batch


def _count_outputs(source: _Source, path: Path, feeds: dict[str, np.ndarray], items: str) -> int:
    """Run a batch of two and return the outputs per item.

    A batch that the nodes have built in shows up here.
    """
    try:
        outputs = open_cpu_session(path).run(None, feeds)[0]
    except Exception as error:  # the library's own classes share no other base
        raise source.refuse(
            f"does not run for a batch of two {items}: {format_error(error)}"
        ) from error
    if not np.ndim(outputs) or len(outputs) != 2 or not np.size(outputs):
        shape = np.shape(outputs)
        raise source.refuse(f"output is of shape {shape} for two {items}: expected the batch first")
    return int(np.size(outputs) // 2)


def _convert(source: _Source, plain: Path, target: str, calibration: Batch | None) -> Path:
    """Write the fp32 model, which is in `plain`, as fp16 or int8 to the same folder.

    Raises RunnerError.
    """
    from onnxruntime.transformers.float16 import convert_float_to_float16  # noqa: PLC0415

    path = plain.with_name(plain.name.replace("-fp32.onnx", f"-{target}.onnx"))
    try:
        if target == "fp16":
            _save(source, convert_float_to_float16(source.model, keep_io_types=False), path)
        elif calibration is None or not len(calibration):
            raise source.refuse("needs images to calibrate int8 with")
        else:
            _quantise(plain, path, calibration)
        open_cpu_session(path)
    except RunnerError:
        raise
    except Exception as error:  # converters raise whatever their parts do
        raise source.refuse(f"cannot be converted to {target}: {format_error(error)}") from error
    return path


def _quantise(plain: Path, path: Path, calibration: Batch) -> None:
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
        opsets = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
        if max(opsets) < PER_CHANNEL_OPSET:
            onnx.save(onnx.version_converter.convert_version(model, PER_CHANNEL_OPSET), folded)
        arrays = name_inputs(open_cpu_session(folded), calibration)
        count = len(next(iter(arrays.values())))
        feeds = []
        for item in range(count):
            feeds.append({name: array[item : item + 1] for name, array in arrays.items()})
        remaining = iter(feeds)
        # what ONNX Runtime calls a calibration data reader
        reader = SimpleNamespace(get_next=lambda: next(remaining, None))
        quantization.quantize_static(
            str(folded),
            str(path),
            reader,
            per_channel=True,
            reduce_range=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )
    finally:
        folded.unlink(missing_ok=True)


def _save(source: _Source, model: onnx.ModelProto, path: Path) -> None:
    try:
        onnx.save(model, path)
    except (EncodeError, ValueError) as error:
        raise source.refuse(f"does not fit one file of 2 GB: {format_error(error)}") from error


def _choose_length(
    source: _Source, inputs: Sequence[onnx.ValueInfoProto], stated: int | None
) -> int:
    """Return the length of the model's sequences, or the stated one where they have any.

    Raises RunnerError where none is stated, or another one than the model's own.
    """
    lengths = set()
    for value in inputs:
        if _is_sequence(value):
            axis = _get_axes(value)[1]
            if axis.HasField("dim_value"):
                lengths.add(axis.dim_value)
    if len(lengths) > 1:
        printed = " and ".join(map(str, sorted(lengths)))
        raise source.refuse(f"its inputs have sequences of {printed} tokens: expected one length")
    length = lengths.pop() if lengths else stated
    if length is None:
        raise source.refuse(
            "takes sequences of any length; state how many tokens a sequence has, with the setting"
            " sequence_length"
        )
    if stated not in (None, length):
        raise source.refuse(f"takes sequences of {length} tokens, not {stated}")
    if not 1 <= length <= MAX_SEQUENCE:
        raise source.refuse(f"a sequence has 1 to {MAX_SEQUENCE:,} tokens, not {length}")
    return int(length)


def _fix_lengths(
    model: onnx.ModelProto, inputs: Sequence[onnx.ValueInfoProto], length: int
) -> bool:
    """Give every free dimension but the batch this length; return whether there was one."""
    symbols = set()
    for value in inputs:
        for axis in _get_axes(value)[1:]:
            if not axis.HasField("dim_value"):
                symbols.add(axis.dim_param)
                axis.dim_value = length
    if not symbols:
        return False
    for value in model.graph.output:
        for axis in _get_axes(value)[1:]:
            if axis.dim_param and axis.dim_param in symbols:
                axis.dim_value = length
    del model.graph.value_info[:]  # it may hold the free dimensions
    return True


def _describe_input(source: _Source, value: onnx.ValueInfoProto) -> TextInput:
    """Return how to fill an input. Raises RunnerError where that is not known."""
    kind = value.type.tensor_type.elem_type
    shape = _get_lengths(value)
    role = _guess_role(value.name)
    is_mask = role == "mask"
    dtypes = {**INTEGERS, **MASKS} if is_mask else INTEGERS
    # only a mask may have a row for each token
    has_other_shape = not shape or (len(shape) > 1 and not is_mask)
    if kind not in dtypes or has_other_shape:
        printed = _format_type(value, ("batch", *shape))
        raise source.refuse(
            f"input '{value.name}' is {printed}: expected tokens, types, positions or a mask,"
            " integers of shape (batch, sequence)"
        )
    limit = 0
    if role == "tokens":
        limit = _count_table_rows(source.model.graph, value.name)
        if not limit:
            raise source.refuse(
                f"input '{value.name}' leads to no table of words: the tokens to draw are not known"
            )
    return TextInput(value.name, dtypes[kind], shape, role, limit)


def _guess_role(name: str) -> str:
    for pattern, role in ROLES.items():
        if re.search(pattern, name, re.IGNORECASE):
            return role
    return "tokens"


def _count_table_rows(graph: onnx.GraphProto, name: str) -> int:
    """Return the rows of the first table that an input's values are looked up in, 0 without one."""
    rows = {tensor.name: tensor.dims[0] for tensor in graph.initializer if tensor.dims}
    reached = {name}
    for node in graph.node:
        source = node.input[0] if node.input else ""
        if node.op_type == "DequantizeLinear" and source in rows:
            rows[node.output[0]] = rows[source]
        if node.op_type == "Gather":
            indices = node.input[1]
            if indices in reached and source in rows:
                return int(rows[source])
        if node.op_type in RESHAPING and source in reached:
            reached.update(node.output)
    return 0
