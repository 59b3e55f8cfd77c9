"""Build the built-in networks as ONNX graphs, with seeded weights or by shapes alone."""

from __future__ import annotations

import onnx

from ipu_results.emulator.networks.builder import GraphBuilder
from ipu_results.emulator.networks.text import TEXTS
from ipu_results.emulator.networks.vision import IMAGES
from ipu_results.errors import UnrecognisedModelError

__all__ = [
    "ALL_NAMES",
    "IMAGES",
    "NAMES",
    "SEQUENCE",
    "TEXTS",
    "build",
]

ALL_NAMES = (*IMAGES, *TEXTS)
# What a measured run may be of. The others are for predictions alone.
NAMES = (
    "resnext101-32x4d",
    "resnext101-32x8d",
    "resnet50",
    "resnet50-folded",
    "efficientnet-b0",
    "efficientnet-b4",
    "efficientnet-b7",
    "bert-base",
    "bert-large",
)
# ends the names of networks whose batch-norms are in the convolutions, as inference runs them
FOLDED = "-folded"
SEED = 0
# tokens; the public configurations of BERT at inference and in the first phase of its training
SEQUENCE = 128


def build(name: str, *, weights: bool = False, sequence: int = SEQUENCE) -> onnx.ModelProto:
    """Build a network: images as NCHW float32, or tokens, types and an additive mask for BERT.

    `weights` are drawn, always the same; otherwise the parameters are inputs known by shape alone.
    The batch is free. `sequence` is BERT's, up to 512, or GPT-2's, up to 1024. The same arguments
    give the same bytes. Raises `UnrecognisedModelError`.
    """
    graph = GraphBuilder(SEED if weights else None, folded=name.endswith(FOLDED))
    if name in IMAGES:
        return IMAGES[name].build(graph, name)
    if name not in TEXTS:
        message = f"is not a built-in network: choose one of {', '.join(ALL_NAMES)}"
        raise UnrecognisedModelError(message, document=name)
    network = TEXTS[name]
    if not 1 <= sequence <= network.longest:
        message = f"a sequence has 1 to {network.longest} tokens, not {sequence}"
        raise UnrecognisedModelError(message, document=name)
    return network.build(graph, name, sequence)
