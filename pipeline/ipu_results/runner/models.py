"""The model of a sweep: a built-in network or an ONNX file, in the asked precision, and the fp32 outputs to meet."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

from ipu_results import networks
from ipu_results.errors import RunnerError
from ipu_results.networks.builder import BATCH
from ipu_results.runner.backends.base import one_line
from ipu_results.runner.precisions import converted, save
from ipu_results.runner.reference import cpu_session

Array = npt.NDArray[Any]

SEEDED = "random-he-seed0"
WANTED = "one float32 image input of shape (batch, 3, height, width) with fixed height and width"
QUANTISED = frozenset({"QuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"})
FLOATS = {TensorProto.FLOAT: "fp32", TensorProto.FLOAT16: "fp16", TensorProto.BFLOAT16: "bf16"}


@dataclass(frozen=True)
class Prepared:
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


def prepare(source: str, precision: str | None, folder: Path, calibration: Array | None = None) -> Prepared:
    """Write a built-in network, or an ONNX file, into `folder` with a symbolic batch and in the asked precision.

    fp16 converts weights and activations, inputs and outputs too; int8 is static QDQ, calibrated on `calibration`, fp32
    images as the network takes them; bf16 leaves the file as it is, for the backend to lower. None is the file's own.
    Raises `RunnerError` for a network that is no image classifier, or that cannot be converted.
    """
    model, origin, seeded = _source(source)
    image = _image_input(model, source)
    found = _precision(model)
    wanted = found if precision in (None, "bf16") else str(precision)
    if found not in (wanted, "fp32"):
        raise RunnerError(f"is {found} already and cannot be made {wanted}", document=source)
    plain = folder / f"{source if seeded else Path(source).stem}-{found}.onnx"
    _write_plain(model, plain, source, seeded)
    outputs = (
        model.graph.output[0].type.tensor_type.shape.dim[1].dim_value if seeded else _classes(plain, image, source)
    )
    channels, height, width = (axis.dim_value for axis in image.type.tensor_type.shape.dim[1:])
    origin = origin or _sha256(plain)
    path = plain if wanted == found else converted(model, plain, wanted, calibration, source)
    weights, name = SEEDED if seeded else origin, plain.stem.removesuffix(f"-{found}")
    return Prepared(path, _sha256(path), origin, weights, wanted, name, image.name, channels, height, width, outputs)


def static(prepared: Prepared, micro_batch: int, folder: Path) -> Path:
    """The same model with the batch fixed, for devices that compile one shape; its bytes are others."""
    model = onnx.load(prepared.path)
    _fix_batch(model, micro_batch)
    path = folder / f"{prepared.path.stem}-batch{micro_batch}.onnx"
    onnx.save(model, path)
    return path


def _source(source: str) -> tuple[onnx.ModelProto, str, bool]:
    """The model, the sha256 of its file ("" for a built-in one), and whether it is built in."""
    if source in networks.NAMES:
        if source not in networks.IMAGES:
            raise RunnerError(f"takes tokens, not images: wanted {WANTED}", document=source)
        return networks.build(source, weights=True), "", True
    path = Path(source)
    if not path.is_file():
        raise RunnerError(f"is no file and no built-in network: {', '.join(networks.IMAGES)}", document=source)
    try:
        model = onnx.load(path)
    except (DecodeError, OSError, ValueError, onnx.checker.ValidationError) as error:
        raise RunnerError(f"cannot be read as an ONNX model: {one_line(error)}", document=source) from error
    return model, _digest(path), False


def _digest(path: Path) -> str:
    digest = hashlib.sha256(path.read_bytes())
    for name in _beside(onnx.load(path, load_external_data=False)):
        digest.update((path.parent / name).read_bytes())
    return digest.hexdigest()


def _beside(model: onnx.ModelProto) -> list[str]:
    pairs = [pair for one in model.graph.initializer for pair in one.external_data if pair.key == "location"]
    return sorted({pair.value for pair in pairs})


def _images(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    parameters = {one.name for one in model.graph.initializer}
    return [one for one in model.graph.input if one.name not in parameters]


def _image_input(model: onnx.ModelProto, source: str) -> onnx.ValueInfoProto:
    inputs = _images(model)
    if len(inputs) != 1:
        names = ", ".join(f"'{one.name}'" for one in inputs) or "none"
        raise RunnerError(f"has {len(inputs)} inputs ({names}): wanted {WANTED}", document=source)
    kind = inputs[0].type.tensor_type
    shape = [axis.dim_value if axis.HasField("dim_value") else axis.dim_param or "?" for axis in kind.shape.dim]
    fixed = all(isinstance(axis, int) and axis > 0 for axis in shape[1:])
    if kind.elem_type != TensorProto.FLOAT or len(shape) != 4 or shape[1] != 3 or not fixed:
        printed = f"{TensorProto.DataType.Name(kind.elem_type).lower()} ({', '.join(map(str, shape))})"
        raise RunnerError(f"input '{inputs[0].name}' is {printed}: wanted {WANTED}", document=source)
    if len(model.graph.output) != 1:
        raise RunnerError(f"has {len(model.graph.output)} outputs: wanted one, (batch, classes)", document=source)
    return inputs[0]


def _precision(model: onnx.ModelProto) -> str:
    if any(node.op_type in QUANTISED for node in model.graph.node):
        return "int8"
    sizes = dict.fromkeys(FLOATS, 0)
    for one in model.graph.initializer:
        if one.data_type in sizes:
            sizes[one.data_type] += int(np.prod(one.dims))
    return FLOATS[max(sizes, key=lambda kind: sizes[kind])]


def _write_plain(model: onnx.ModelProto, path: Path, source: str, seeded: bool) -> None:
    """The user's own bytes where they can be run as they are; else a copy in one file, its batch made symbolic."""
    fixed = any(one.type.tensor_type.shape.dim[0].HasField("dim_value") for one in _images(model))
    if fixed:
        _fix_batch(model, BATCH)
    if seeded or fixed or _beside(onnx.load(source, load_external_data=False)):
        save(model, path, source)
    else:
        shutil.copyfile(source, path)


def _fix_batch(model: onnx.ModelProto, batch: int | str) -> None:
    del model.graph.value_info[:]
    for value in (*_images(model), *model.graph.output):
        for axis in value.type.tensor_type.shape.dim[:1]:
            axis.Clear()
            setattr(axis, "dim_value" if isinstance(batch, int) else "dim_param", batch)


def _classes(path: Path, image: onnx.ValueInfoProto, source: str) -> int:
    """Outputs per image, as a batch of two gives them; so a batch that the nodes have built in comes to light here."""
    shape = [2, *(axis.dim_value for axis in image.type.tensor_type.shape.dim[1:])]
    try:
        found = cpu_session(path).run(None, {image.name: np.zeros(shape, dtype=np.float32)})[0]
    except Exception as error:  # the library's own classes share no other base
        raise RunnerError(f"does not run for a batch of two images: {one_line(error)}", document=source) from error
    if np.ndim(found) != 2 or len(found) != 2:
        printed = f"is of shape {np.shape(found)} for two images"
        raise RunnerError(f"output {printed}: wanted one of shape (batch, classes)", document=source)
    return int(found.shape[1])


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
