"""What the benchmarks of the runner share: small networks, images, sessions that are warm, blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from ipu_results.networks.builder import GraphBuilder, WeightGenerator
from ipu_results.networks.residual import ResNet
from ipu_results.runner import models, workload
from ipu_results.runner.blocks import Block
from ipu_results.runner.images import ImageStream
from ipu_results.runner.plan import Visit
from ipu_results.runner.sessions import SessionPool
from ipu_results.runner.synthetic_images import generate_images

NETWORK = "resnext101-32x4d"
FLOP = {NETWORK: 15.94e9}  # of one image: twice its multiply-accumulates
SETTLED = 0.05  # two medians of warm-up runs are as one
PHOTOS, QUICK_PHOTOS = 24, 4

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Stage:
    """The network in each precision, the images as a session is told of them, and the fp32 outputs of the first."""

    source: str
    models: Mapping[str, models.PreparedModel]
    images: Mapping[str, Any]
    first: Array
    wanted: Array

    def agrees(self, outputs: Array, sessions: int) -> float | None:
        """Least cosine of an image's outputs with the reference's, in the order in which sessions are dealt them."""
        count = len(outputs)
        dealt = [number + turn * sessions for number in range(sessions) for turn in range(count // sessions)]
        return workload.compare_outputs(outputs, self.wanted[dealt])[0]


def set_up(source: str, precisions: Sequence[str], work: Path, photos: int, first: int) -> Stage:
    """Write network and photographs into a folder. `first` images are for reference and calibration."""
    plain = models.prepare_model(source, None, work)
    names = generate_images(work / "images", photos, 0)
    images = ImageStream(work / "images", names, plain.height, plain.width, micro_batch=first)
    batch = np.asarray(images.prepare(images.load()), np.float32)
    found = {one: plain if one == "fp32" else models.prepare_model(source, one, work, batch) for one in precisions}
    told = {"folder": str(work / "images"), "names": names, "height": plain.height, "width": plain.width}
    return Stage(source, found, told, batch, workload.compute_reference(plain.path, batch))


def small_model(folder: Path, resolution: int = 32) -> str:
    """A ResNeXt of four bottlenecks with seeded weights, as a file: built and run in no time."""
    graph = ResNet((1, 1, 1, 1), groups=4, width=1, resolution=resolution).build(
        GraphBuilder(WeightGenerator(0)), "small"
    )
    path = folder / "small.onnx"
    onnx.save(graph, path)
    return str(path)


def least_model(folder: Path) -> Path:
    """One dense layer on images of 8 × 8: next to nothing to compute."""
    graph = GraphBuilder(WeightGenerator(0))
    pixels = graph.add_node("Flatten", "flatten", graph.add_input("image", (3, 8, 8)))
    path = folder / "least.onnx"
    onnx.save(graph.build_model("least", graph.add_dense("classes", pixels, (192, 10)), (10,)), path)
    return path


def warmed(crew: SessionPool, batch: int, runs: int, most: int = 8) -> float:
    """Run until the medians of two sets in turn agree; seconds of a batch."""
    crew.prepare(batch, "amortised")
    before = 0.0
    for _ in range(most):
        stamps = crew.run_stream(0.0, runs)
        now = median((one[-1] - one[0]) / 1e9 for session in stamps for one in session)
        if abs(now - before) <= SETTLED * before:
            break
        before = now
    return now


def measured(
    crew: SessionPool, visit: Visit, seconds: float, least: int, seen: AbstractContextManager[Any], number: int = 0
) -> Block:
    """One block, and what the observer has seen around it."""
    crew.prepare(visit.batch_size, visit.kind)
    started_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with seen as found:
        stamps = (crew.run_stream if visit.kind == "amortised" else crew.run_isolated)(seconds, least)
    told = {name: getattr(found, name) for name in ("probe_ms", "foreign_cpu", "steal", "others")}
    return Block(number, visit.round, visit.batch_size, visit.kind, started_at, stamps, **told)
