"""Seeded parameter values, the same bytes on every machine and with every numpy."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

PER_DRAW = 4  # 16-bit values in a 64-bit draw
SIGMA = (2**16 - 1) / math.sqrt(12)  # standard deviation of a uniform 16-bit integer


class Values:
    """Uniform values from PCG64's raw draws: that stream is fixed by numpy's policy, its normal distribution is not."""

    def __init__(self, seed: int) -> None:
        self._draws = np.random.PCG64(seed)

    def draw(self, shape: tuple[int, ...], sigma: float) -> Array:
        """float32 of mean 0 and standard deviation `sigma`, none further out than 1.74 sigma."""
        count = math.prod(shape)
        raw = self._draws.random_raw(-(-count // PER_DRAW)).astype("<u8", copy=False)
        whole = raw.view("<i2")[:count].reshape(shape).astype(np.float32)
        whole += np.float32(0.5)
        whole *= np.float32(sigma / SIGMA)
        return whole
