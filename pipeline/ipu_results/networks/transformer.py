"""Build transformers that normalise before each half of a layer: ViT, after Dosovitskiy et al. 2020, and GPT-2."""

from __future__ import annotations

from dataclasses import dataclass

import onnx
from onnx import TensorProto

from ipu_results.networks.bert import IR, OPSET, SIGMA, add_attention, add_constants, add_gelu, add_linear, add_norm
from ipu_results.networks.builder import GraphBuilder

EPSILON = 1e-6
CLASSES, RESOLUTION, PATCH = 1000, 224, 16
PATCHES = (RESOLUTION // PATCH) ** 2
VOCABULARY, POSITIONS = 50257, 1024  # of GPT-2


@dataclass(frozen=True, slots=True)
class VisionTransformer:
    layers: int
    hidden: int

    def build(self, graph: GraphBuilder, name: str) -> onnx.ModelProto:
        image = graph.add_input("image", (3, RESOLUTION, RESOLUTION))
        kernel = graph.add_drawn("patches.weight", (self.hidden, 3, PATCH, PATCH), SIGMA)
        bias = graph.add_filled("patches.bias", (self.hidden,), 0.0)
        x = graph.add_node("Conv", "patches", image, kernel, bias, kernel_shape=[PATCH] * 2, strides=[PATCH] * 2)
        graph.add_integers("patches.shape", 0, self.hidden, PATCHES)
        x = graph.add_node("Reshape", "patches.flat", x, "patches.shape")
        x = graph.add_node("Transpose", "patches.turned", x, perm=[0, 2, 1])
        # A pad makes room for the token of the class, whose embedding is part of the positions.
        graph.add_integers("class.pads", 0, 1, 0, 0, 0, 0)
        x = graph.add_node("Pad", "class.token", x, "class.pads")
        x = graph.add_node("Add", "positions", x, graph.add_drawn("positions.table", (PATCHES + 1, self.hidden), SIGMA))
        x = add_layers(graph, x, self.layers, self.hidden)
        x = add_norm(graph, "norm", x, self.hidden, EPSILON)
        bounds = [graph.add_integers(f"class.{end}", at) for end, at in (("start", 0), ("end", 1), ("axis", 1))]
        x = graph.add_node("Slice", "class", x, *bounds)
        x = graph.add_node("Flatten", "class.flat", x)
        return graph.build_model(name, add_linear(graph, "classes", x, (self.hidden, CLASSES)), (CLASSES,), OPSET, IR)


@dataclass(frozen=True, slots=True)
class Gpt2:
    layers: int
    hidden: int

    def build(self, graph: GraphBuilder, name: str, sequence: int) -> onnx.ModelProto:
        tokens = graph.add_input("tokens", (sequence,), TensorProto.INT64)
        table = graph.add_drawn("embedding.words.table", (VOCABULARY, self.hidden), SIGMA)
        positions = graph.add_drawn("embedding.positions.table", (sequence, self.hidden), SIGMA)
        words = graph.add_node("Gather", "embedding.words", table, tokens)
        x = graph.add_node("Add", "embedding.add", words, positions)
        mask = graph.add_drawn("mask", (sequence, sequence), SIGMA)  # additive; its values do not matter here
        x = add_layers(graph, x, self.layers, self.hidden, mask)
        x = add_norm(graph, "head.norm", x, self.hidden, EPSILON)
        words = graph.add_node(
            "MatMul", "head.logits", x, graph.add_node("Transpose", "head.table", table, perm=[1, 0])
        )
        words = graph.add_node("Softmax", "head.softmax", words, axis=-1)
        return graph.build_model(name, words, (sequence, VOCABULARY), OPSET, IR)


def add_layers(graph: GraphBuilder, x: str, layers: int, hidden: int, mask: str | None = None) -> str:
    add_constants(graph, hidden)
    for layer in range(layers):
        name = f"layer{layer}"
        y = add_norm(graph, f"{name}.norm", x, hidden, EPSILON)
        y = add_attention(graph, name, y, hidden, mask, separate=mask is None)
        y = add_linear(graph, f"{name}.output", y, (hidden, hidden))
        x = graph.add_node("Add", f"{name}.add", y, x)
        y = add_norm(graph, f"{name}.feed.norm", x, hidden, EPSILON)
        y = add_gelu(graph, f"{name}.gelu", add_linear(graph, f"{name}.widen", y, (hidden, 4 * hidden)))
        x = graph.add_node("Add", f"{name}.feed.add", add_linear(graph, f"{name}.narrow", y, (4 * hidden, hidden)), x)
    return x


IMAGES = {"vit-base": VisionTransformer(12, 768)}
TEXTS = {"gpt2": Gpt2(12, 768), "gpt2-medium": Gpt2(24, 1024), "gpt2-large": Gpt2(36, 1280)}
