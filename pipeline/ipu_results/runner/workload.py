"""What a sweep runs: the model in the requested precision, images, and the outputs that fp32 computes for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ipu_results.runner.backends import converts_models
from ipu_results.runner.config import SweepTask
from ipu_results.runner.images import ImageStream, find_usable_images, hash_images
from ipu_results.runner.models import PreparedModel, fix_batch_size, open_cpu_session, prepare_model
from ipu_results.runner.synthetic_images import generate_images

Array = npt.NDArray[Any]

GENERATED = 48
MAX_IMAGES = 256
SEED = 0
CHUNK = 8  # images that the reference runs at once
PREPROCESSING = "centre crop {height} × {width} without resize, ImageNet normalisation"


@dataclass(frozen=True, slots=True)
class Workload:
    """The prepared model and images of a sweep.

    `images` are arguments of `ImageStream`. `reference` are fp32 outputs for the first images, None where the model's
    own file is not fp32. `metadata` describes the images in the record; `excluded` says which are not used, and why.
    """

    model: PreparedModel
    images: Mapping[str, Any]
    reference: Array | None
    metadata: Mapping[str, Any]
    excluded: tuple[str, ...]
    options: Mapping[str, Any]

    @property
    def preprocessing(self) -> str:
        return PREPROCESSING.format(**self.images)

    def select_reference(self, batch: int, sessions: int) -> Array | None:
        """Return the reference outputs in the order in which the sessions share the images of their first batch."""
        if self.reference is None:
            return None
        order = [session + turn * sessions for session in range(sessions) for turn in range(batch // sessions)]
        return np.asarray(self.reference[[number % len(self.reference) for number in order]])


def prepare_workload(task: SweepTask, work: Path) -> Workload:
    """Write the model and the images into the folder `work`. Raises RunnerError or ModelError naming the file."""
    config, batch_sizes = task.config, task.plan.batch_sizes
    plain = prepare_model(config.model, None, work)
    if config.images is None:
        folder, source = work / "images", f"generated, seed {SEED}"
        excluded: list[str] = []
        names = generate_images(folder, max(GENERATED, *batch_sizes), SEED)
    else:
        folder, source = Path(config.images), "folder"
        names, excluded = find_usable_images(folder, MAX_IMAGES, (plain.height, plain.width))
        if len(names) == MAX_IMAGES:
            excluded = [*excluded, f"all after {names[-1]}: {MAX_IMAGES} are taken"]
    count = min(len(names), max(batch_sizes))
    stream = ImageStream(folder, names, plain.height, plain.width, micro_batch=count)
    first = stream.prepare(stream.load())
    unchanged = config.precision in (None, plain.precision) or converts_models(task.device.backend)
    model = plain if unchanged else prepare_model(config.model, config.precision, work, first)
    return Workload(
        model=model,
        images={"folder": str(folder.resolve()), "names": names, "height": plain.height, "width": plain.width},
        reference=compute_reference(plain.path, first) if plain.precision == "fp32" else None,
        metadata={
            "source": source,
            "count": len(names),
            "sha256": hash_images(folder, names),
            "left_out": list(excluded),
        },
        excluded=tuple(excluded),
        options=_complete_options(task, plain, work),
    )


def _complete_options(task: SweepTask, model: PreparedModel, work: Path) -> dict[str, Any]:
    """Add a model file per batch size for a backend that compiles fixed shapes."""
    options = dict(task.config.options)
    if task.device.backend == "popart":
        sizes: Sequence[int] = [batch // task.plan.sessions for batch in task.plan.batch_sizes]
        options["static_models"] = {str(size): str(fix_batch_size(model, size, work)) for size in sizes}
    return options


def compute_reference(path: Path, images: Array) -> npt.NDArray[np.float32]:
    """Run images (n, 3, height, width) through an fp32 model by ONNX Runtime on the CPU; return (n, outputs)."""
    session = open_cpu_session(path)
    name = session.get_inputs()[0].name
    parts = [session.run(None, {name: images[i : i + CHUNK]})[0] for i in range(0, len(images), CHUNK)]
    return np.concatenate(parts).astype(np.float32)


def compare_outputs(outputs: Array, reference: Array) -> tuple[float | None, float]:
    """Return the smallest cosine of an image's outputs with the reference, and the share of images of equal top-1.

    Outputs are (images, outputs). The cosine is None where it is undefined: another shape, no image, a row of zeros,
    NaN or infinity. Rows with NaN or infinity agree with nothing.
    """
    if outputs.shape != reference.shape or not outputs.size:
        return None, 0.0
    finite = np.isfinite(outputs).all(axis=1) & np.isfinite(reference).all(axis=1)
    top1 = float((finite & (outputs.argmax(axis=1) == reference.argmax(axis=1))).mean())
    x, y = outputs.astype(np.float64), reference.astype(np.float64)
    scales = [np.abs(rows).max(axis=1, keepdims=True) for rows in (x, y)]
    if not finite.all() or any((scale == 0).any() for scale in scales):
        return None, top1
    x, y = x / scales[0], y / scales[1]  # so that no square overflows or vanishes
    cosines = (x * y).sum(axis=1) / (np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1))
    return float(np.clip(cosines.min(), -1, 1)), top1
