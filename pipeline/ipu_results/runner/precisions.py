"""The network in another precision: fp16 throughout, or int8 calibrated on images."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy.typing as npt
import onnx
from google.protobuf.message import EncodeError

from ipu_results.errors import RunnerError
from ipu_results.runner.backends.base import one_line
from ipu_results.runner.reference import cpu_session

PER_CHANNEL_OPSET = 13  # the first in which QuantizeLinear takes an axis


def converted(
    model: onnx.ModelProto, plain: Path, wanted: str, calibration: npt.NDArray[Any] | None, source: str
) -> Path:
    """Write the fp32 model, which lies at `plain`, as fp16 or int8 beside it. Raises RunnerError naming `source`."""
    from onnxruntime.transformers.float16 import convert_float_to_float16  # noqa: PLC0415

    path = plain.with_name(plain.name.replace("-fp32.onnx", f"-{wanted}.onnx"))
    if wanted == "int8" and (calibration is None or not len(calibration)):
        raise RunnerError("wants images to calibrate int8 with", document=source)
    try:
        if wanted == "fp16":
            save(convert_float_to_float16(model, keep_io_types=False), path, source)
        elif wanted == "int8" and calibration is not None:
            _quantise(plain, path, calibration)
        cpu_session(path)
    except RunnerError:
        raise
    except Exception as error:  # converters raise whatever their parts do
        raise RunnerError(f"cannot be made {wanted}: {one_line(error)}", document=source) from error
    return path


def _quantise(plain: Path, path: Path, images: npt.NDArray[Any]) -> None:
    """Unsigned activations and signed weights of seven bits, per channel, with batch-norms folded first.

    Without VNNI two products are added in 16 bits, which saturate at 8 bits of weight (2 × 255 × 127) and not at seven.
    Signed activations were slower than fp32 on such a CPU.
    """
    from onnxruntime import quantization  # noqa: PLC0415
    from onnxruntime.quantization.shape_inference import quant_pre_process  # noqa: PLC0415

    folded = path.with_suffix(".folded.onnx")
    try:
        quant_pre_process(str(plain), str(folded), skip_symbolic_shape=True)
        _raise_opset(folded)
        name = cpu_session(folded).get_inputs()[0].name
        feeds = iter([{name: images[i : i + 1]} for i in range(len(images))])
        reader = SimpleNamespace(get_next=lambda: next(feeds, None))
        kinds = {"activation_type": quantization.QuantType.QUInt8, "weight_type": quantization.QuantType.QInt8}
        quantization.quantize_static(str(folded), str(path), reader, per_channel=True, reduce_range=True, **kinds)
    finally:
        folded.unlink(missing_ok=True)


def _raise_opset(path: Path) -> None:
    model = onnx.load(path)
    if max(one.version for one in model.opset_import if one.domain in ("", "ai.onnx")) < PER_CHANNEL_OPSET:
        onnx.save(onnx.version_converter.convert_version(model, PER_CHANNEL_OPSET), path)


def save(model: onnx.ModelProto, path: Path, source: str) -> None:
    """Write a model in one file. Raises RunnerError naming `source` where it does not fit."""
    try:
        onnx.save(model, path)
    except (EncodeError, ValueError) as error:
        raise RunnerError(f"does not fit one file of 2 GB: {one_line(error)}", document=source) from error
