"""What a sweep runs: the model in the requested precision, its inputs, and the outputs that fp32
computes for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ipu_results.errors import RunnerError
from ipu_results.runner.backends import load_backend
from ipu_results.runner.config import SweepTask
from ipu_results.runner.inputs import (
    ImageStream,
    SequenceStream,
    find_usable_images,
    generate_images,
    generate_sequences,
    hash_images,
    hash_sequences,
    save_sequences,
)
from ipu_results.runner.models import (
    Feeds,
    PreparedModel,
    fix_batch_size,
    name_inputs,
    open_cpu_session,
    prepare_model,
)

Array = npt.NDArray[Any]
Inputs = tuple[Mapping[str, Any], Array | Feeds, Mapping[str, Any], str]
"""Arguments of a stream, its first batch, what the record says of it, and the pre-processing."""

GENERATED = 48
MAX_IMAGES = 256
SEED = 0
CHUNK = 8  # items that the reference runs at once
PREPROCESSING = "centre crop {height} × {width} without resize, ImageNet normalisation"
TOKENS = "seeded tokens, {length} a sequence, no padding"


@dataclass(frozen=True, slots=True)
class Workload:
    """The prepared model and inputs of a sweep.

    `images` are arguments of `ImageStream`, or of `SequenceStream` for text. `reference` are fp32
    outputs for the first of them, None where the model's own file is not fp32. `metadata` describes
    them in the record; `excluded` says which are not used, and why.
    """

    model: PreparedModel
    images: Mapping[str, Any]
    reference: Array | None
    metadata: Mapping[str, Any]
    excluded: tuple[str, ...]
    options: Mapping[str, Any]
    preprocessing: str = ""

    def select_reference(self, batch: int, sessions: int) -> Array | None:
        """Return the reference outputs in the order in which the sessions share the items of their
        first batch.
        """
        if self.reference is None:
            return None
        order = [
            session + turn * sessions
            for session in range(sessions)
            for turn in range(batch // sessions)
        ]
        return np.asarray(self.reference[[number % len(self.reference) for number in order]])


def prepare_workload(task: SweepTask, work: Path) -> Workload:
    """Write the model and its inputs into the folder `work`.

    Raises RunnerError or ModelError naming the file.
    """
    config = task.config
    length = task.config.sequence_length
    plain = prepare_model(config.model, None, work, None, length)
    prepare = _prepare_sequences if plain.text_inputs else _prepare_images
    arguments, first, metadata, preprocessing = prepare(task, plain, work)
    traits = load_backend(task.device.backend).TRAITS
    options = dict(config.options)
    if traits.static:  # it compiles fixed shapes: a file for each
        sizes = [batch // task.plan.sessions for batch in task.plan.batch_sizes]
        options["static_models"] = {
            str(size): str(fix_batch_size(plain, size, work)) for size in sizes
        }
    unchanged = config.precision in (None, plain.precision) or traits.converts
    model = (
        plain if unchanged else prepare_model(config.model, config.precision, work, first, length)
    )
    model = model if config.network is None else replace(model, name=config.network)
    reference = compute_reference(plain.path, first) if plain.precision == "fp32" else None
    return Workload(
        model,
        arguments,
        reference,
        metadata,
        tuple(metadata.get("left_out", ())),
        options,
        preprocessing,
    )


def _prepare_images(task: SweepTask, model: PreparedModel, work: Path) -> Inputs:
    config = task.config
    batch_sizes = task.plan.batch_sizes
    if config.images is None:
        folder = work / "images"
        source = f"generated, seed {SEED}"
        excluded: list[str] = []
        names = generate_images(folder, max(GENERATED, *batch_sizes), SEED)
    else:
        folder = Path(config.images)
        source = "folder"
        names, excluded = find_usable_images(folder, MAX_IMAGES, (model.height, model.width))
        if len(names) == MAX_IMAGES:
            excluded = [*excluded, f"all after {names[-1]}: {MAX_IMAGES} are taken"]
    count = min(len(names), max(batch_sizes))
    stream = ImageStream(folder, names, model.height, model.width, micro_batch=count)
    size = {"height": model.height, "width": model.width}
    metadata = {
        "source": source,
        "count": len(names),
        "sha256": hash_images(folder, names),
        "left_out": excluded,
    }
    arguments = {"folder": str(folder.resolve()), "names": names, **size}
    return arguments, stream.prepare(stream.load()), metadata, PREPROCESSING.format(**size)


def _prepare_sequences(task: SweepTask, model: PreparedModel, work: Path) -> Inputs:
    """Generate full sequences.

    Raises RunnerError for a folder of images, and for a backend that takes images only.
    """
    if task.config.images is not None:
        raise RunnerError("takes text: --images is for image models", document=task.config.model)
    if load_backend(task.device.backend).TRAITS.images_only:
        message = (
            f"takes text, which {task.device.backend} does not run here: choose another --backend"
        )
        raise RunnerError(message, document=task.config.model)
    arrays = generate_sequences(model.text_inputs, max(GENERATED, *task.plan.batch_sizes), SEED)
    arguments = save_sequences(work / "sequences.npz", arrays)
    stream = SequenceStream(**arguments, micro_batch=max(task.plan.batch_sizes))
    metadata = {
        "source": f"generated, seed {SEED}",
        "count": len(arrays[model.input_name]),
        "sha256": hash_sequences(arrays),
        "sequence_length": model.sequence_length,
        "inputs": {own.name: own.role for own in model.text_inputs},
    }
    return (
        arguments,
        stream.prepare(stream.load()),
        metadata,
        TOKENS.format(length=model.sequence_length),
    )


def compute_reference(path: Path, batch: Array | Feeds) -> npt.NDArray[np.float32]:
    """Run images (n, 3, height, width), or sequences by input, through an fp32 model by ONNX
    Runtime on the CPU.

    Return the values of its first output, (n, outputs).
    """
    session = open_cpu_session(path)
    arrays = name_inputs(session, batch)
    count = len(next(iter(arrays.values())))
    cuts = [slice(start, start + CHUNK) for start in range(0, count, CHUNK)]
    parts = [session.run(None, {name: x[cut] for name, x in arrays.items()})[0] for cut in cuts]
    return np.concatenate(parts).reshape(count, -1).astype(np.float32)


def compare_outputs(outputs: Array, reference: Array) -> tuple[float | None, float]:
    """Return the smallest cosine of an item's outputs with the reference, and the share of items of
    equal top-1.

    Outputs are (items, outputs). The cosine is None where it is undefined: another shape, no item,
    a row of zeros, NaN or infinity. Rows with NaN or infinity agree with nothing.
    """
    if outputs.shape != reference.shape or not outputs.size:
        return None, 0.0
    finite = np.isfinite(outputs).all(axis=1) & np.isfinite(reference).all(axis=1)
    top1 = float((finite & (outputs.argmax(axis=1) == reference.argmax(axis=1))).mean())
    x = outputs.astype(np.float64)
    y = reference.astype(np.float64)
    scales = [np.abs(rows).max(axis=1, keepdims=True) for rows in (x, y)]
    if not finite.all() or any((scale == 0).any() for scale in scales):
        return None, top1
    # so that no square overflows or vanishes
    x = x / scales[0]
    y = y / scales[1]
    cosines = (x * y).sum(axis=1) / (np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1))
    return float(np.clip(cosines.min(), -1, 1)), top1
