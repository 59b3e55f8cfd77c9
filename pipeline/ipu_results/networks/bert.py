"""BERT encoders with the question-answering head of SQuAD, after Devlin et al. 2018."""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx
from onnx import TensorProto

from ipu_results.networks.builder import Builder

OPSET, IR = 17, 8  # the first with LayerNormalization
VOCABULARY, POSITIONS, TYPES, SPAN = 30522, 512, 2, 2
HEAD = 64
SIGMA = 0.02
EPSILON = 1e-12


@dataclass(frozen=True, slots=True)
class Bert:
    layers: int
    hidden: int

    def build(self, graph: Builder, name: str, sequence: int) -> onnx.ModelProto:
        x = self._embed(graph, sequence)
        mask = graph.data("mask", (1, 1, sequence))
        graph.integers("heads", 0, 0, self.hidden // HEAD, HEAD)
        graph.integers("joined", 0, 0, self.hidden)
        graph.scalar("attention.scale", 1 / math.sqrt(HEAD))
        for name_, value in (("root", math.sqrt(2)), ("one", 1.0), ("half", 0.5)):
            graph.scalar(f"gelu.{name_}", value)
        for layer in range(self.layers):
            x = self._layer(graph, f"layer{layer}", x, mask)
        return graph.model(name, linear(graph, "span", x, (self.hidden, SPAN)), (sequence, SPAN), OPSET, IR)

    def _embed(self, graph: Builder, sequence: int) -> str:
        tokens, types = (graph.data(one, (sequence,), TensorProto.INT64) for one in ("tokens", "types"))
        tables = {
            role: graph.drawn(f"embedding.{role}.table", (rows, self.hidden), SIGMA)
            for role, rows in (("words", VOCABULARY), ("positions", POSITIONS), ("types", TYPES))
        }
        bounds = [graph.integers(f"embedding.positions.{end}", at) for end, at in (("start", 0), ("end", sequence))]
        words = graph.node("Gather", "embedding.words", tables["words"], tokens)
        kinds = graph.node("Gather", "embedding.types", tables["types"], types)
        positions = graph.node("Slice", "embedding.positions", tables["positions"], *bounds)
        x = graph.node("Add", "embedding.add", graph.node("Add", "embedding.typed", words, kinds), positions)
        return self._normalise(graph, "embedding.norm", x)

    def _layer(self, graph: Builder, name: str, x: str, mask: str) -> str:
        y = linear(graph, f"{name}.output", self._attention(graph, name, x, mask), (self.hidden, self.hidden))
        x = self._normalise(graph, f"{name}.norm", graph.node("Add", f"{name}.add", y, x))
        y = gelu(graph, f"{name}.gelu", linear(graph, f"{name}.widen", x, (self.hidden, 4 * self.hidden)))
        y = linear(graph, f"{name}.narrow", y, (4 * self.hidden, self.hidden))
        return self._normalise(graph, f"{name}.feed.norm", graph.node("Add", f"{name}.feed.add", y, x))

    def _attention(self, graph: Builder, name: str, x: str, mask: str) -> str:
        query, key, value = (self._heads(graph, f"{name}.{role}", x) for role in ("query", "key", "value"))
        turned = graph.node("Transpose", f"{name}.key.turned", key, perm=[0, 1, 3, 2])
        scores = graph.node("MatMul", f"{name}.scores", query, turned)
        scores = graph.node("Mul", f"{name}.scaled", scores, "attention.scale")
        scores = graph.node("Add", f"{name}.masked", scores, mask)
        y = graph.node("MatMul", f"{name}.context", graph.node("Softmax", f"{name}.softmax", scores, axis=-1), value)
        y = graph.node("Transpose", f"{name}.context.turned", y, perm=[0, 2, 1, 3])
        return graph.node("Reshape", f"{name}.context.joined", y, "joined")

    def _heads(self, graph: Builder, name: str, x: str) -> str:
        y = graph.node("Reshape", f"{name}.heads", linear(graph, name, x, (self.hidden, self.hidden)), "heads")
        return graph.node("Transpose", f"{name}.transposed", y, perm=[0, 2, 1, 3])

    def _normalise(self, graph: Builder, name: str, x: str) -> str:
        scale = graph.filled(f"{name}.scale", (self.hidden,), 1.0)
        shift = graph.filled(f"{name}.shift", (self.hidden,), 0.0)
        return graph.node("LayerNormalization", name, x, scale, shift, axis=-1, epsilon=EPSILON)


def linear(graph: Builder, name: str, x: str, channels: tuple[int, int]) -> str:
    weights = graph.drawn(f"{name}.weight", channels, SIGMA)
    product = graph.node("MatMul", f"{name}.product", x, weights)
    return graph.node("Add", name, product, graph.filled(f"{name}.bias", channels[1:], 0.0))


def gelu(graph: Builder, name: str, x: str) -> str:
    y = graph.node("Erf", f"{name}.erf", graph.node("Div", f"{name}.divided", x, "gelu.root"))
    y = graph.node("Mul", f"{name}.gated", x, graph.node("Add", f"{name}.raised", y, "gelu.one"))
    return graph.node("Mul", name, y, "gelu.half")


NETWORKS = {"bert-base": Bert(12, 768), "bert-large": Bert(24, 1024)}
