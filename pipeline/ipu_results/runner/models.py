"""The model of a sweep: a built-in network or an ONNX file, checked and converted to the precision of the sweep."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf.message import DecodeError, EncodeError
from onnx import TensorProto

from ipu_results import networks
from ipu_results.errors import RunnerError
from ipu_results.networks.builder import BATCH
from ipu_results.runner.backends import format_error

Array = npt.NDArray[Any]

SEEDED = "random-he-seed0"
EXPECTED = "expected one float32 image input of shape (batch, 3, height, width) with fixed height and width"
QUANTISED = frozenset({"QuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"})
FLOATS = {TensorProto.FLOAT: "fp32", TensorProto.FLOAT16: "fp16", TensorProto.BFLOAT16: "bf16"}
PER_CHANNEL_OPSET = 13  # the first in which QuantizeLinear takes an axis


@dataclass(frozen=True)
class PreparedModel:
    """The file that is run, fp32, fp16 or int8 in `precision`, and what it was made from.

    `weights` is "random-he-seed0" or the sha256 of the user's file, which `source_sha256` is too: of the file alone, or
    of the file followed by its external data in the order of their names.
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


def prepare_model(source: str, precision: str | None, folder: Path, calibration: Array | None = None) -> PreparedModel:
    """Write a built-in network, or an ONNX file, into `folder` with a symbolic batch and in the requested precision.

    fp16 converts weights and activations, inputs and outputs too. int8 is static QDQ, calibrated on `calibration`, fp32
    images as the network takes them. bf16 leaves the file unchanged, for the backend to lower. None is the file's own.
    Raises `RunnerError` for a network that is not an image classifier, or that cannot be converted.
    """
    model, origin, seeded = _load_source(source)
    image = _find_image_input(model, source)
    own = _detect_precision(model)
    target = own if precision in (None, "bf16") else str(precision)
    if own not in (target, "fp32"):
        raise RunnerError(f"is {own} already and cannot be converted to {target}", document=source)
    plain = folder / f"{source if seeded else Path(source).stem}-{own}.onnx"
    _write_plain(model, plain, source, seeded)
    outputs = (
        model.graph.output[0].type.tensor_type.shape.dim[1].dim_value
        if seeded
        else _count_classes(plain, image, source)
    )
    channels, height, width = (axis.dim_value for axis in image.type.tensor_type.shape.dim[1:])
    origin = origin or _hash_file(plain)
    path = plain if target == own else _convert(model, plain, target, calibration, source)
    weights, name = SEEDED if seeded else origin, plain.stem.removesuffix(f"-{own}")
    return PreparedModel(
        path, _hash_file(path), origin, weights, target, name, image.name, channels, height, width, outputs
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


def _load_source(source: str) -> tuple[onnx.ModelProto, str, bool]:
    """Return the model, the sha256 of its file ("" for a built-in one), and whether it is built in."""
    if source in networks.NAMES:
        if source not in networks.IMAGES:
            raise RunnerError(f"takes tokens, not images: {EXPECTED}", document=source)
        return networks.build(source, weights=True), "", True
    path = Path(source)
    if not path.is_file():
        names = ", ".join(networks.IMAGES)
        raise RunnerError(f"is neither a file nor a built-in network: {names}", document=source)
    try:
        model = onnx.load(path)
    except (DecodeError, OSError, ValueError, onnx.checker.ValidationError) as error:
        raise RunnerError(f"cannot be read as an ONNX model: {format_error(error)}", document=source) from error
    digest = hashlib.sha256(path.read_bytes())
    for name in _list_external_files(path):
        digest.update((path.parent / name).read_bytes())
    return model, digest.hexdigest(), False


def _list_external_files(path: str | Path) -> list[str]:
    tensors = onnx.load(path, load_external_data=False).graph.initializer
    return sorted({pair.value for tensor in tensors for pair in tensor.external_data if pair.key == "location"})


def _list_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs that are not weights, which older files list as inputs too."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights]


def _find_image_input(model: onnx.ModelProto, source: str) -> onnx.ValueInfoProto:
    inputs = _list_inputs(model)
    if len(inputs) != 1:
        names = ", ".join(f"'{value.name}'" for value in inputs) or "none"
        raise RunnerError(f"has {len(inputs)} inputs ({names}): {EXPECTED}", document=source)
    kind = inputs[0].type.tensor_type
    shape = [axis.dim_value if axis.HasField("dim_value") else axis.dim_param or "?" for axis in kind.shape.dim]
    fixed = all(isinstance(axis, int) and axis > 0 for axis in shape[1:])
    if kind.elem_type != TensorProto.FLOAT or len(shape) != 4 or shape[1] != 3 or not fixed:
        printed = f"{TensorProto.DataType.Name(kind.elem_type).lower()} ({', '.join(map(str, shape))})"
        raise RunnerError(f"input '{inputs[0].name}' is {printed}: {EXPECTED}", document=source)
    if len(model.graph.output) != 1:
        raise RunnerError(f"has {len(model.graph.output)} outputs: expected one, (batch, classes)", document=source)
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


def _write_plain(model: onnx.ModelProto, path: Path, source: str, seeded: bool) -> None:
    """Copy the user's own bytes where they can be run; else write one file with a symbolic batch."""
    fixed = any(value.type.tensor_type.shape.dim[0].HasField("dim_value") for value in _list_inputs(model))
    if fixed:
        _set_batch(model, BATCH)
    if seeded or fixed or _list_external_files(source):
        _save(model, path, source)
    else:
        shutil.copyfile(source, path)


def _set_batch(model: onnx.ModelProto, batch: int | str) -> None:
    del model.graph.value_info[:]
    for value in (*_list_inputs(model), *model.graph.output):
        for axis in value.type.tensor_type.shape.dim[:1]:
            axis.Clear()
            setattr(axis, "dim_value" if isinstance(batch, int) else "dim_param", batch)


def _count_classes(path: Path, image: onnx.ValueInfoProto, source: str) -> int:
    """Run a batch of two and return the outputs per image. A batch that the nodes have built in shows up here."""
    shape = [2, *(axis.dim_value for axis in image.type.tensor_type.shape.dim[1:])]
    try:
        outputs = open_cpu_session(path).run(None, {image.name: np.zeros(shape, dtype=np.float32)})[0]
    except Exception as error:  # the library's own classes share no other base
        raise RunnerError(f"does not run for a batch of two images: {format_error(error)}", document=source) from error
    if np.ndim(outputs) != 2 or len(outputs) != 2:
        printed = f"is of shape {np.shape(outputs)} for two images"
        raise RunnerError(f"output {printed}: expected shape (batch, classes)", document=source)
    return int(outputs.shape[1])


def _convert(model: onnx.ModelProto, plain: Path, target: str, calibration: Array | None, source: str) -> Path:
    """Write the fp32 model, which is in `plain`, as fp16 or int8 to the same folder. Raises RunnerError."""
    from onnxruntime.transformers.float16 import convert_float_to_float16  # noqa: PLC0415

    path = plain.with_name(plain.name.replace("-fp32.onnx", f"-{target}.onnx"))
    if target == "int8" and (calibration is None or not len(calibration)):
        raise RunnerError("needs images to calibrate int8 with", document=source)
    try:
        if target == "fp16":
            _save(convert_float_to_float16(model, keep_io_types=False), path, source)
        elif target == "int8" and calibration is not None:
            _quantise(plain, path, calibration)
        open_cpu_session(path)
    except RunnerError:
        raise
    except Exception as error:  # converters raise whatever their parts do
        raise RunnerError(f"cannot be converted to {target}: {format_error(error)}", document=source) from error
    return path


def _quantise(plain: Path, path: Path, images: Array) -> None:
    """Quantise to unsigned activations and signed weights of seven bits, per channel, batch-norms folded first.

    Without VNNI two products are added in 16 bits, which saturate at 8 bits of weight (2 × 255 × 127) and not at seven.
    Signed activations were slower than fp32 on such a CPU.
    """
    from onnxruntime import quantization  # noqa: PLC0415
    from onnxruntime.quantization.shape_inference import quant_pre_process  # noqa: PLC0415

    folded = path.with_suffix(".folded.onnx")
    try:
        quant_pre_process(str(plain), str(folded), skip_symbolic_shape=True)
        _raise_opset(folded)
        name = open_cpu_session(folded).get_inputs()[0].name
        feeds = iter([{name: images[i : i + 1]} for i in range(len(images))])
        reader = SimpleNamespace(get_next=lambda: next(feeds, None))
        kinds = {"activation_type": quantization.QuantType.QUInt8, "weight_type": quantization.QuantType.QInt8}
        quantization.quantize_static(str(folded), str(path), reader, per_channel=True, reduce_range=True, **kinds)
    finally:
        folded.unlink(missing_ok=True)


def _raise_opset(path: Path) -> None:
    model = onnx.load(path)
    if max(opset.version for opset in model.opset_import if opset.domain in ("", "ai.onnx")) < PER_CHANNEL_OPSET:
        onnx.save(onnx.version_converter.convert_version(model, PER_CHANNEL_OPSET), path)


def _save(model: onnx.ModelProto, path: Path, source: str) -> None:
    try:
        onnx.save(model, path)
    except (EncodeError, ValueError) as error:
        raise RunnerError(f"does not fit one file of 2 GB: {format_error(error)}", document=source) from error


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
