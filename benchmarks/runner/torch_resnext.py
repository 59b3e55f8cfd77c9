"""Build ResNeXt in torch with the weights of a built-in network.

For an interpreter that has torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from ipu_results.runner.backends import Session, SessionFacts, SessionSpec
from torch import nn
from torch.nn.functional import relu

Weights = Mapping[str, Any]


def build_convolution(weights: Weights, name: str, stride: int = 1) -> nn.Sequential:
    """Build a convolution with its batch-norm.

    It is grouped where it is the 3 × 3 of a bottleneck, which has as many channels in as out.
    """
    shape = weights[f"{name}.weight"].shape
    groups = shape[0] // shape[1] if name.endswith(".conv") else 1
    conv = nn.Conv2d(
        groups * shape[1], shape[0], shape[2], stride, shape[2] // 2, groups=groups, bias=False
    )
    norm = nn.BatchNorm2d(shape[0])
    conv.load_state_dict({"weight": _tensor(weights, f"{name}.weight")})
    roles = {"weight": "scale", "bias": "shift", "running_mean": "mean", "running_var": "variance"}
    state = {role: _tensor(weights, f"{name}.norm.{theirs}") for role, theirs in roles.items()}
    norm.load_state_dict({**state, "num_batches_tracked": torch.tensor(0)})
    return nn.Sequential(conv, norm)


class TorchBottleneck(nn.Module):  # type: ignore[misc]
    def __init__(self, weights: Weights, name: str, stride: int) -> None:
        super().__init__()
        self.reduce, self.expand = (
            build_convolution(weights, f"{name}.{part}") for part in ("reduce", "expand")
        )
        self.conv = build_convolution(weights, f"{name}.conv", stride)
        projects = f"{name}.project.weight" in weights
        self.project = (
            build_convolution(weights, f"{name}.project", stride) if projects else nn.Identity()
        )

    def forward(self, x: Any) -> Any:
        y = self.expand(relu(self.conv(relu(self.reduce(x), inplace=True)), inplace=True))
        return relu(y + self.project(x), inplace=True)


def build_network(weights: Weights) -> nn.Sequential:
    """Build a network from images (n, 3, height, width) to classes (n, classes)."""
    names = [
        name.removesuffix(".reduce.weight") for name in weights if name.endswith(".reduce.weight")
    ]
    blocks = [
        TorchBottleneck(weights, name, 2 if name.endswith(".0") and name != "stage1.0" else 1)
        for name in names
    ]
    dense = nn.Linear(*reversed(weights["classes.weight"].shape))
    dense.load_state_dict(
        {role: _tensor(weights, f"classes.{role}") for role in ("weight", "bias")}
    )
    stem = [build_convolution(weights, "stem", 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), dense).eval()


class TorchSession(Session):
    """Torch eager with its own number of threads. The model of the session is a file of weights."""

    def __init__(self, spec: SessionSpec) -> None:
        self.facts = SessionFacts("", "", "torch", torch.__version__, "fp32")
        with np.load(spec.model) as weights:
            self._network = build_network(weights)

    def run(self, images: Any) -> Any:
        with torch.inference_mode():
            return self._network(torch.from_numpy(images)).numpy()


def _tensor(weights: Weights, name: str) -> Any:
    return torch.from_numpy(np.ascontiguousarray(weights[name]))
