"""Export networks that others built to ONNX.

Needs torch, torchvision and transformers: not the project's environment.

usage: PYTHON export_networks.py FOLDER [NAME ...]

Networks are built from their configurations with random weights, so nothing is downloaded. Each is
written to FOLDER as `NAME.legacy.onnx` and `NAME.dynamo.onnx`, after the two exporters of torch,
with a free batch. One JSON line is printed for each file: name, exporter, path, the inputs' shapes
for `--shape`, the multiply-accumulates that torch counts for two items, and the error of an export
that failed.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torchvision
import transformers
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

EXPORTERS = ("legacy", "dynamo")
OPSETS = {"legacy": 17, "dynamo": 18}
SEQUENCE = 128  # tokens of the example; free in the file
SIZES = {"inception_v3": 299}  # pixels of the side of an image, otherwise 224
CLASSIFIERS = (
    *(
        "resnet18",
        "mobilenet_v2",
        "mobilenet_v3_small",
        "mnasnet0_5",
        "efficientnet_b0",
        "regnet_y_400mf",
    ),
    *(
        "densenet121",
        "squeezenet1_1",
        "shufflenet_v2_x1_0",
        "googlenet",
        "inception_v3",
        "vgg11",
        "convnext_tiny",
    ),
    *("swin_t", "vit_b_16"),
)
SEGMENTERS = ("lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large", "deeplabv3_resnet50")
TOKENS, MASK = "input_ids", "attention_mask"
# Name in transformers, with the inputs that it is called with.
TRANSFORMERS = {
    "bert": ("Bert", (TOKENS, MASK, "token_type_ids")),
    "distilbert": ("DistilBert", (TOKENS, MASK)),
    "vit": ("ViT", ("pixel_values",)),
    "gpt2": ("GPT2", (TOKENS,)),
}
NAMES = (*CLASSIFIERS, *SEGMENTERS, *TRANSFORMERS)


class FirstOutput(nn.Module):  # type: ignore[misc]
    """Call a network by keyword and return its first tensor, since exporters know no dictionaries."""

    def __init__(self, network: nn.Module, inputs: tuple[str, ...]) -> None:
        super().__init__()
        self.network, self.inputs = network, inputs

    def forward(self, *arrays: torch.Tensor) -> torch.Tensor:
        if self.inputs == ("image",):
            result = self.network(*arrays)
            return result["out"] if isinstance(result, dict) else result
        return self.network(**dict(zip(self.inputs, arrays, strict=True)), return_dict=True)[0]


def build_network(name: str) -> tuple[nn.Module, tuple[str, ...], tuple[torch.Tensor, ...]]:
    """Return a network with random weights, the names of its inputs and an example of them at batch
    2.
    """
    if name in TRANSFORMERS:
        family, inputs = TRANSFORMERS[name]
        config = getattr(transformers, f"{family}Config")()
        config.use_cache = False
        network = getattr(transformers, f"{family}Model")(config)
        return network, inputs, tuple(_make_example(kind) for kind in inputs)
    models = torchvision.models.segmentation if name in SEGMENTERS else torchvision.models
    aux = {"aux_logits": False} if name in {"googlenet", "inception_v3"} else {}
    start = {"init_weights": False} if aux else {}
    backbone = {"weights_backbone": None} if name in SEGMENTERS else {}
    network = getattr(models, name)(weights=None, **aux, **start, **backbone)
    side = SIZES.get(name, 224)
    return network, ("image",), (torch.zeros(2, 3, side, side),)


def _make_example(kind: str) -> torch.Tensor:
    if kind == "pixel_values":
        return torch.zeros(2, 3, 224, 224)
    return (
        torch.ones(2, SEQUENCE, dtype=torch.int64)
        if kind == MASK
        else torch.zeros(2, SEQUENCE, dtype=torch.int64)
    )


def export(name: str, exporter: str, path: Path) -> None:
    """Write one network by one of `EXPORTERS`, with a free batch and, for text, a free length."""
    network, inputs, example = build_network(name)
    module = FirstOutput(network, inputs).eval()
    free = {0: "batch", 1: "sequence"} if inputs[0] == TOKENS else {0: "batch"}
    common: dict[str, Any] = {
        "input_names": list(inputs),
        "output_names": ["result"],
        "opset_version": OPSETS[exporter],
    }
    with torch.no_grad():
        if exporter == "legacy":
            torch.onnx.export(
                module,
                example,
                str(path),
                dynamo=False,
                dynamic_axes=dict.fromkeys(inputs, free),
                **common,
            )
            return
        axes = {axis: torch.export.Dim(label, min=1, max=4096) for axis, label in free.items()}
        shapes = {"arrays": tuple(axes for _ in inputs)}
        torch.onnx.export(
            module, example, str(path), dynamo=True, dynamic_shapes=shapes, verbose=False, **common
        )


def list_shapes(name: str) -> list[str]:
    """Return what `predict --shape` needs for the free length of a text."""
    inputs = TRANSFORMERS[name][1] if name in TRANSFORMERS else ()
    return [f"{kind}=N,{SEQUENCE}" for kind in inputs if kind != "pixel_values"]


def count_macs(name: str) -> int:
    """Count the multiply-accumulates of the example as torch does, which knows nothing of ONNX."""
    network, inputs, example = build_network(name)
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter:
        FirstOutput(network, inputs).eval()(*example)
    return int(counter.get_total_flops() // 2)


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    names = arguments[1:] or list(NAMES)
    if unknown := sorted(set(names) - set(NAMES)):
        print(f"{unknown[0]} is not a network: choose from {', '.join(NAMES)}", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")
    # the legacy exporter does not know the fused attention
    torch.backends.mha.set_fastpath_enabled(False)
    logging.disable(logging.WARNING)
    # Exporters print, some of them from C++: what they write to stdout is discarded.
    records = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    for name in names:
        macs = count_macs(name)
        for exporter in EXPORTERS:
            path = folder / f"{name}.{exporter}.onnx"
            error = _try(export, name, exporter, path)
            record = {
                "name": name,
                "exporter": exporter,
                "path": str(path),
                "shapes": list_shapes(name),
            }
            print(json.dumps({**record, "macs": macs, "error": error}), file=records, flush=True)
    return 0


def _try(action: Callable[..., None], *arguments: Any) -> str | None:
    """Return what went wrong in one line: one network must not stop the others."""
    try:
        action(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
