"""What a sweep runs: the model in the asked precision, the images, and the outputs that fp32 gives for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ipu_results.runner.asked import Asked
from ipu_results.runner.backends import converts
from ipu_results.runner.images import Source, digest, usable
from ipu_results.runner.models import Prepared, prepare, static
from ipu_results.runner.photos import generate
from ipu_results.runner.reference import reference

Array = npt.NDArray[np.float32]

GENERATED = 48
MOST_IMAGES = 256
SEED = 0
PREPROCESSING = "centre crop {height} × {width} without resize, ImageNet normalisation"


@dataclass(frozen=True, slots=True)
class Scene:
    """`wanted` are fp32 outputs for the first images, None where the model's own file is not fp32.

    `left_out` names images that cannot be decoded, and why.
    """

    model: Prepared
    images: Mapping[str, Any]
    wanted: Array | None
    told: Mapping[str, Any]
    left_out: tuple[str, ...]
    options: Mapping[str, Any]

    @property
    def preprocessing(self) -> str:
        return PREPROCESSING.format(**self.images)

    def wanted_of(self, batch: int, sessions: int) -> Array | None:
        """The reference outputs in the order in which the sessions are dealt the images of their first batch."""
        if self.wanted is None:
            return None
        dealt = [session + turn * sessions for session in range(sessions) for turn in range(batch // sessions)]
        return np.asarray(self.wanted[[one % len(self.wanted) for one in dealt]])


def set_up(asked: Asked, work: Path) -> Scene:
    """Make the model and the images ready in the folder `work`. Raises RunnerError or ModelError naming the file."""
    plain = prepare(asked.model, None, work, None)
    folder, names, left_out, source = _images(asked, work, plain)
    size = {"height": plain.height, "width": plain.width}
    first = _first(folder, names, size, min(len(names), max(asked.plan.batch_sizes)))
    as_it_is = asked.precision in (None, plain.precision) or converts(asked.device.backend)
    model = plain if as_it_is else prepare(asked.model, asked.precision, work, first)
    told = {"source": source, "count": len(names), "sha256": digest(folder, names), "left_out": list(left_out)}
    images = {"folder": str(folder), "names": names, **size}
    wanted = reference(plain.path, first) if plain.precision == "fp32" else None
    return Scene(model, images, wanted, told, tuple(left_out), _options(asked, plain, work))


def _images(asked: Asked, work: Path, model: Prepared) -> tuple[Path, list[str], list[str], str]:
    if asked.images is None:
        folder = work / "images"
        folder.mkdir()
        return folder, generate(folder, max(GENERATED, *asked.plan.batch_sizes), SEED), [], f"generated, seed {SEED}"
    folder = Path(asked.images)
    names, left_out = usable(folder, MOST_IMAGES, (model.height, model.width))
    if len(names) == MOST_IMAGES:
        left_out = [*left_out, f"all after {names[-1]}: {MOST_IMAGES} are taken"]
    return folder.resolve(), names, left_out, "folder"


def _first(folder: Path, names: list[str], size: Mapping[str, int], count: int) -> Array:
    source = Source(folder, names, **size, dtype="float32", micro_batch=count, first=0, step=1)
    return np.asarray(source.prepare(source.load()), dtype=np.float32)


def _options(asked: Asked, model: Prepared, work: Path) -> dict[str, Any]:
    """A backend that compiles for one batch size is given a file for each."""
    if asked.device.backend != "popart":
        return dict(asked.options)
    micro = [batch // asked.plan.sessions for batch in asked.plan.batch_sizes]
    return {**asked.options, "static_models": {str(one): str(static(model, one, work)) for one in micro}}
