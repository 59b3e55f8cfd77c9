"""What the sessions of ONNX Runtime and OpenVINO share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ipu_results.errors import BackendError
from ipu_results.runner.backends import Session, check_images, check_inputs, format_error

FLOATS = ("float32", "float16")
INTEGERS = ("int64", "int32", "bool")  # of a text model

Array = npt.NDArray[Any]
Inputs = dict[str, tuple[str, tuple[int | None, ...]]]
"""Type and shape by name; None is a size that is not fixed."""


class LibrarySession(Session):
    """A model that a library runs: `infer` takes arrays by name and returns the first output."""

    def __init__(self, place: str, inputs: Inputs, infer: Callable[[dict[str, Array]], Array]) -> None:
        self._place, self._inputs = place, inputs
        self._infer: Callable[[dict[str, Array]], Array] | None = infer
        self._checked: list[tuple[Any, ...]] = []
        self.dtype = next((dtype for dtype, _ in inputs.values() if dtype in FLOATS), "float32")

    def run(self, images: Array | dict[str, Array]) -> npt.NDArray[np.float32]:
        feed = images if isinstance(images, dict) else {next(iter(self._inputs)): images}
        seen = [(name, x.shape, x.dtype) for name, x in feed.items()]
        if seen != self._checked:  # checked once for each shape
            if isinstance(images, dict):
                check_inputs(images, self._inputs, self._place)
            else:
                check_images(images, *next(iter(self._inputs.values())), self._place)
            self._checked = seen
        if self._infer is None:
            raise BackendError("is closed", place=self._place)
        try:
            outputs = self._infer(feed)
        except Exception as error:  # the classes of these libraries share no other base
            raise BackendError(format_error(error), place=self._place) from error
        return np.asarray(outputs, dtype=np.float32).reshape(len(outputs), -1)

    def close(self) -> None:
        self._infer = None


def find_majority(counts: Counter[str]) -> tuple[str, list[str]]:
    """Return the precision of most convolutions or products, and a note where some have another one."""
    precision, count = counts.most_common(1)[0]
    mixed = f"{count} of {counts.total()} convolutions or products are {precision}"
    return precision, [mixed] if len(counts) > 1 else []
