"""What fp32 on the CPU gives for images, and how near other outputs come to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

CHUNK = 8  # images that are run at once


def reference(path: Path, images: Array) -> npt.NDArray[np.float32]:
    """What the fp32 model gives for images (n, 3, height, width), as (n, outputs), by ONNX Runtime on the CPU."""
    session = cpu_session(path)
    name = session.get_inputs()[0].name
    parts = [session.run(None, {name: images[i : i + CHUNK]})[0] for i in range(0, len(images), CHUNK)]
    return np.concatenate(parts).astype(np.float32)


def agreement(found: Array, wanted: Array) -> tuple[float | None, float]:
    """Least cosine of an image's outputs with the wanted ones, and the share of images with the same top-1.

    Outputs are (images, outputs). The cosine is None where one cannot be had: another shape, no image, a row of zeros,
    NaN or infinity; rows with NaN or infinity agree with nothing.
    """
    if found.shape != wanted.shape or not found.size:
        return None, 0.0
    finite = np.isfinite(found).all(axis=1) & np.isfinite(wanted).all(axis=1)
    top1 = float((finite & (found.argmax(axis=1) == wanted.argmax(axis=1))).mean())
    largest = [np.abs(one.astype(np.float64)).max(axis=1, keepdims=True) for one in (found, wanted)]
    if not finite.all() or any((one == 0).any() for one in largest):
        return None, top1
    x, y = (one.astype(np.float64) / scale for one, scale in zip((found, wanted), largest, strict=True))
    cosines = (x * y).sum(axis=1) / (np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1))
    return float(np.clip(cosines.min(), -1, 1)), top1


def cpu_session(path: Path) -> Any:
    """A session of ONNX Runtime on the CPU that prints nothing."""
    import onnxruntime  # noqa: PLC0415

    choices = onnxruntime.SessionOptions()
    choices.log_severity_level = 4
    return onnxruntime.InferenceSession(path, choices, providers=["CPUExecutionProvider"])
