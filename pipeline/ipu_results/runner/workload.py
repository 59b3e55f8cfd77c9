"""What a sweep runs: the model in the requested precision, its inputs, and the outputs that fp32
computes for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

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
    PreparedModel,
    fix_batch_size,
    name_inputs,
    open_cpu_session,
    prepare_model,
)

if TYPE_CHECKING:
    from ipu_results.runner.backends import Batch

GENERATED = 48  # images or sequences, or as many as the largest batch has
MAX_IMAGES = 256  # of a folder
SEED = 0
CHUNK = 8  # items that the reference runs at once


@dataclass(frozen=True)
class Inputs:
    """The inputs of a sweep: `stream` are the arguments of `ImageStream`, or of `SequenceStream`
    for text.

    `metadata` describes them in the record; `left_out` says which are not used, and why.
    """

    stream: Mapping[str, Any] | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    preprocessing: str | None = None
    left_out: Sequence[str] = ()


@dataclass(frozen=True)
class Workload:
    """The prepared model and inputs of a sweep; neither for a device that computes nothing.

    `reference` are fp32 outputs for the first inputs, None where the model's own file is not fp32.
    `options` are those of the backend.
    """

    options: Mapping[str, Any]
    model: PreparedModel | None = None
    inputs: Inputs = Inputs()
    reference: np.ndarray | None = None

    @property
    def path(self) -> str:
        return str(self.model.path) if self.model else ""

    def describe_model(self) -> dict[str, object]:
        """Return what the record says of the model."""
        model = self.model
        if model is None:
            return {"name": "none", "weights": "none"}
        size: dict[str, object] = {"height": model.height, "width": model.width}
        if model.sequence_length:
            size = {"sequence_length": model.sequence_length}
        return {
            "name": model.name,
            "precision": model.precision,
            "weights": model.weights,
            "sha256": model.sha256,
            "source_sha256": model.source_sha256,
            **size,
            "outputs": model.outputs,
        }

    def select_reference(self, batch: int, sessions: int) -> np.ndarray | None:
        """Return the reference outputs in the order in which the sessions share the items of their
        first batch.
        """
        if self.reference is None:
            return None
        order: list[int] = []
        for session in range(sessions):
            order += range(session, batch, sessions)
        return self.reference.take(order, axis=0, mode="wrap")


class Agreement(NamedTuple):
    """How outputs agree with those of fp32: the smallest cosine of an item's, and the share of items
    of equal top-1.

    The cosine is None where it is undefined, both where there is no reference.
    """

    cosine: float | None = None
    top1: float | None = None


def prepare_workload(task: SweepTask, work: Path) -> Workload:
    """Write the model and its inputs into the folder `work`, where the device computes anything.

    Raises RunnerError or ModelError naming the file.
    """
    config = task.config
    length = config.sequence_length
    traits = load_backend(task.device.backend).TRAITS
    if not traits.computes:
        return Workload(config.options)
    plain = prepare_model(config.model, None, work, sequence_length=length)
    if plain.text_inputs:
        inputs, first_batch = _prepare_sequences(task, plain, work)
    else:
        inputs, first_batch = _prepare_images(task, plain, work)
    options = dict(config.options)
    if traits.static:  # it compiles fixed shapes: a file for each
        files = {}
        for batch in task.plan.batch_sizes:
            size = batch // task.plan.sessions
            files[str(size)] = str(fix_batch_size(plain, size, work))
        options["static_models"] = files
    model = plain
    if config.precision not in (None, plain.precision) and not traits.converts:
        model = prepare_model(config.model, config.precision, work, first_batch, length)
    # the record knows it by this name
    if config.network is not None:
        model = replace(model, name=config.network)
    reference = None
    if plain.precision == "fp32":
        reference = compute_reference(plain.path, first_batch)
    return Workload(options, model, inputs, reference)


def _prepare_images(task: SweepTask, model: PreparedModel, work: Path) -> tuple[Inputs, Batch]:
    largest = max(task.plan.batch_sizes)
    size = (model.height, model.width)
    if task.config.images is None:
        folder = work / "images"
        source = f"generated, seed {SEED}"
        left_out: list[str] = []
        names = generate_images(folder, max(GENERATED, largest), SEED)
    else:
        folder = Path(task.config.images)
        source = "folder"
        names, left_out = find_usable_images(folder, MAX_IMAGES, size)
        if len(names) == MAX_IMAGES:
            left_out.append(f"all after {names[-1]}: {MAX_IMAGES} are taken")
    stream = ImageStream(folder, names, *size, micro_batch=min(len(names), largest))
    inputs = Inputs(
        stream={
            "folder": str(folder.resolve()),
            "names": names,
            "height": model.height,
            "width": model.width,
        },
        metadata={
            "source": source,
            "count": len(names),
            "sha256": hash_images(folder, names),
            "left_out": left_out,
        },
        preprocessing=(
            f"centre crop {model.height} × {model.width} without resize, ImageNet normalisation"
        ),
        left_out=left_out,
    )
    return inputs, stream.prepare(stream.load())


def _prepare_sequences(task: SweepTask, model: PreparedModel, work: Path) -> tuple[Inputs, Batch]:
    """Generate full sequences.

    Raises RunnerError for a folder of images, and for a backend that takes images only.
    """
    source = task.config.model
    backend = task.device.backend
    if task.config.images is not None:
        raise RunnerError("takes text: --images is for image models", document=source)
    if load_backend(backend).TRAITS.images_only:
        raise RunnerError(
            f"takes text, which {backend} does not run here: choose another --backend",
            document=source,
        )
    largest = max(task.plan.batch_sizes)
    arrays = generate_sequences(model.text_inputs, max(GENERATED, largest), SEED)
    arguments = save_sequences(work / "sequences.npz", arrays)
    stream = SequenceStream(**arguments, micro_batch=largest)
    inputs = Inputs(
        stream=arguments,
        metadata={
            "source": f"generated, seed {SEED}",
            "count": len(arrays[model.input_name]),
            "sha256": hash_sequences(arrays),
            "sequence_length": model.sequence_length,
            "inputs": {text.name: text.role for text in model.text_inputs},
        },
        preprocessing=f"seeded tokens, {model.sequence_length} a sequence, no padding",
    )
    return inputs, stream.prepare(stream.load())


def compute_reference(path: Path, batch: Batch) -> np.ndarray:
    """Run images (n, 3, height, width), or sequences by input, through an fp32 model by ONNX
    Runtime on the CPU.

    Return the values of its first output, (n, outputs), in float32.
    """
    session = open_cpu_session(path)
    arrays = name_inputs(session, batch)
    count = len(next(iter(arrays.values())))
    parts = []
    for start in range(0, count, CHUNK):
        chunk = {name: array[start : start + CHUNK] for name, array in arrays.items()}
        parts.append(session.run(None, chunk)[0])
    return np.concatenate(parts).reshape(count, -1).astype(np.float32)


def compare_outputs(outputs: np.ndarray, reference: np.ndarray) -> Agreement:
    """Compare outputs (items, outputs) with the reference.

    The cosine is None for another shape, no item, a row of zeros, NaN or infinity. Rows with NaN or
    infinity agree with nothing.
    """
    if outputs.shape != reference.shape or not outputs.size:
        return Agreement(None, 0.0)
    # by row
    is_finite = np.isfinite(outputs).all(axis=1) & np.isfinite(reference).all(axis=1)
    is_same = outputs.argmax(axis=1) == reference.argmax(axis=1)
    top1 = float((is_finite & is_same).mean())
    has_direction = outputs.any(axis=1) & reference.any(axis=1)
    if not is_finite.all() or not has_direction.all():
        return Agreement(None, top1)
    x = _scale_rows(outputs)
    y = _scale_rows(reference)
    lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    cosines = (x * y).sum(axis=1) / lengths
    return Agreement(float(np.clip(cosines.min(), -1, 1)), top1)


def _scale_rows(values: np.ndarray) -> np.ndarray:
    """Divide each row by its largest value, so that no square overflows or vanishes."""
    rows = values.astype(np.float64)
    largest = np.abs(rows).max(axis=1, keepdims=True)
    return np.asarray(rows / largest)
