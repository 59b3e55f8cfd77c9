"""Sequences of a file as a text model takes them: arrays by input name.

Runs in the sessions' processes: Python 3.8 with numpy only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class SequenceStream:
    """The sequences of one session without end: the `first`, then every `step`th, and round again.

    Like `ImageStream`. Float inputs are converted to `dtype`.
    """

    def __init__(
        self,
        file: Path | str,
        inputs: Sequence[str],
        dtype: str = "float32",
        micro_batch: int = 1,
        first: int = 0,
        step: int = 1,
    ) -> None:
        with np.load(file) as arrays:
            read = {name: arrays[str(number)] for number, name in enumerate(inputs)}
        self._arrays = {name: x.astype(dtype) if x.dtype.kind == "f" else x for name, x in read.items()}
        self._count = len(next(iter(self._arrays.values())))
        self.micro_batch = micro_batch
        self.step = step
        self._next = first

    def load(self) -> list[int]:
        """Return the numbers of the next sequences, which are in memory."""
        places = range(self._next, self._next + self.micro_batch * self.step, self.step)
        self._next = places.stop
        return [place % self._count for place in places]

    def prepare(self, data: Sequence[int]) -> dict[str, Any]:
        """Return what `load` chose as the session takes it, by input: (micro-batch, …), C-contiguous."""
        return {name: x[data] for name, x in self._arrays.items()}


def save_sequences(file: Path, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Write arrays of one length; return the arguments of their `SequenceStream`."""
    np.savez(file, **{str(number): x for number, x in enumerate(arrays.values())})
    return {"file": str(file), "inputs": list(arrays)}
