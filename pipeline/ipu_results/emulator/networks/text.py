"""Build transformers of text, BERT and GPT-2, and the layers that they share with the vision
transformer.

BERT is after Devlin et al. 2018, with the head of SQuAD or that of pre-training. GPT-2 is without
its dropouts. A name that ends in `-split` has Q, K and V in three products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import onnx
from onnx import TensorProto

from ipu_results.emulator.networks.builder import GraphBuilder

# the first with LayerNormalization
OPSET = 17
IR = 8
HEAD = 64  # channels of an attention head, in all of these networks
SIGMA = 0.02  # standard deviation of the initial weights, in both papers
# of layer norms: BERT's, and those of GPT-2 and ViT
BERT_EPSILON = 1e-12
PRE_NORM_EPSILON = 1e-6
BERT_WORDS = 30522
BERT_POSITIONS = 512
BERT_TABLES = {"words": BERT_WORDS, "positions": BERT_POSITIONS, "types": 2}
GPT2_WORDS = 50257
GPT2_POSITIONS = 1024
SPAN = 2  # outputs of question answering: the scores of a first and of a last token
# 20 of 128 tokens, and 56 to 58 of 384 or 76 of 512, in the public configurations
MASKED = 20 / 128


@dataclass(frozen=True, slots=True)
class Bert:
    """`masked` is the share of a sequence that pre-training predicts; 0 builds the
    question-answering head.

    `separate` computes Q, K and V in three products.
    """

    layers: int
    hidden: int
    masked: float = 0.0
    separate: bool = False
    longest: int = BERT_POSITIONS

    def build(self, graph: GraphBuilder, name: str, sequence: int) -> onnx.ModelProto:
        x = self._add_embedding(graph, sequence)
        mask = graph.add_input("mask", (1, 1, sequence))
        _add_constants(graph, self.hidden)
        for layer in range(self.layers):
            x = self._add_layer(graph, f"layer{layer}", x, mask)
        if self.masked:
            return self._add_pretraining(graph, name, x, round(self.masked * sequence))
        x = add_linear(graph, "span", x, (self.hidden, SPAN))
        return graph.build_model(name, x, (sequence, SPAN), OPSET, IR)

    def _add_embedding(self, graph: GraphBuilder, sequence: int) -> str:
        tokens = graph.add_input("tokens", (sequence,), TensorProto.INT64)
        types = graph.add_input("types", (sequence,), TensorProto.INT64)
        names = [
            graph.add_drawn(f"embedding.{role}.table", (rows, self.hidden), SIGMA)
            for role, rows in BERT_TABLES.items()
        ]
        words = graph.add_node("Gather", "embedding.words", names[0], tokens)
        kinds = graph.add_node("Gather", "embedding.types", names[2], types)
        ends = {"start": (0,), "end": (sequence,)}
        positions = graph.add_slice("embedding.positions", names[1], **ends)
        x = graph.add_node("Add", "embedding.typed", words, kinds)
        x = graph.add_node("Add", "embedding.add", x, positions)
        return self._add_norm(graph, "embedding.norm", x)

    def _add_pretraining(
        self, graph: GraphBuilder, name: str, x: str, masked: int
    ) -> onnx.ModelProto:
        """Predict the masked tokens, which the public implementations put first, by the table of
        words.
        """
        x = graph.add_slice("head.masked", x, start=(0,), end=(masked,), axis=(1,))
        x = add_linear(graph, "head.dense", x, (self.hidden, self.hidden))
        x = self._add_norm(graph, "head.norm", _add_gelu(graph, "head.gelu", x))
        words = _add_words(graph, "head.words", x, "embedding.words.table")
        return graph.build_model(name, words, (masked, BERT_WORDS), OPSET, IR)

    def _add_layer(self, graph: GraphBuilder, name: str, x: str, mask: str) -> str:
        y = _add_attention(graph, name, x, self.hidden, mask, separate=self.separate)
        y = graph.add_node("Add", f"{name}.add", y, x)
        x = self._add_norm(graph, f"{name}.norm", y)
        y = _add_feed(graph, name, x, self.hidden)
        y = graph.add_node("Add", f"{name}.feed.add", y, x)
        return self._add_norm(graph, f"{name}.feed.norm", y)

    def _add_norm(self, graph: GraphBuilder, name: str, x: str) -> str:
        return add_layer_norm(graph, name, x, self.hidden, BERT_EPSILON)


@dataclass(frozen=True, slots=True)
class Gpt2:
    layers: int
    hidden: int
    separate: bool = False
    longest: int = GPT2_POSITIONS

    def build(self, graph: GraphBuilder, name: str, sequence: int) -> onnx.ModelProto:
        tokens = graph.add_input("tokens", (sequence,), TensorProto.INT64)
        table = graph.add_drawn("embedding.words.table", (GPT2_WORDS, self.hidden), SIGMA)
        positions = graph.add_drawn("embedding.positions.table", (sequence, self.hidden), SIGMA)
        words = graph.add_node("Gather", "embedding.words", table, tokens)
        x = graph.add_node("Add", "embedding.add", words, positions)
        # additive; its values do not matter here
        mask = graph.add_drawn("mask", (sequence, sequence), SIGMA)
        x = add_pre_norm_layers(graph, x, self.layers, self.hidden, mask, separate=self.separate)
        x = add_layer_norm(graph, "head.norm", x, self.hidden, PRE_NORM_EPSILON)
        x = _add_words(graph, "head.logits", x, table)
        return graph.build_model(name, x, (sequence, GPT2_WORDS), OPSET, IR)


def add_pre_norm_layers(
    graph: GraphBuilder,
    x: str,
    layers: int,
    hidden: int,
    mask: str | None = None,
    *,
    separate: bool = True,
) -> str:
    """Add layers that normalise before each of their halves."""
    _add_constants(graph, hidden)
    for layer in range(layers):
        name = f"layer{layer}"
        y = add_layer_norm(graph, f"{name}.norm", x, hidden, PRE_NORM_EPSILON)
        y = _add_attention(graph, name, y, hidden, mask, separate=separate)
        x = graph.add_node("Add", f"{name}.add", y, x)
        y = add_layer_norm(graph, f"{name}.feed.norm", x, hidden, PRE_NORM_EPSILON)
        y = _add_feed(graph, name, y, hidden)
        x = graph.add_node("Add", f"{name}.feed.add", y, x)
    return x


def _add_constants(graph: GraphBuilder, hidden: int) -> None:
    """Add what all layers share: the shapes of the heads, and the numbers of attention and GELU."""
    graph.add_integers("heads", 0, 0, hidden // HEAD, HEAD)
    graph.add_integers("joined", 0, 0, hidden)
    graph.add_scalar("attention.scale", 1 / math.sqrt(HEAD))
    graph.add_scalar("gelu.root", math.sqrt(2))
    graph.add_scalar("gelu.one", 1.0)
    graph.add_scalar("gelu.half", 0.5)


def _add_attention(
    graph: GraphBuilder, name: str, x: str, hidden: int, mask: str | None, *, separate: bool
) -> str:
    """Add self-attention and the product of its output.

    One product for query, key and value is the default of the public BERT (`split_qkv` False in its
    bert_model.py); its pre-training configurations for PopART set it, and Hugging Face's ViT has
    three.
    """
    roles = ("query", "key", "value")
    if separate:
        parts = [add_linear(graph, f"{name}.{role}", x, (hidden, hidden)) for role in roles]
    else:
        joined = add_linear(graph, f"{name}.qkv", x, (hidden, 3 * hidden))
        parts = graph.add_split(joined, joined, roles)
    query, key, value = (_add_heads(graph, part) for part in parts)
    turned = graph.add_node("Transpose", f"{name}.key.turned", key, perm=[0, 1, 3, 2])
    scores = graph.add_node("MatMul", f"{name}.scores", query, turned)
    scores = graph.add_node("Mul", f"{name}.scaled", scores, "attention.scale")
    if mask is not None:
        scores = graph.add_node("Add", f"{name}.masked", scores, mask)
    scores = graph.add_node("Softmax", f"{name}.softmax", scores, axis=-1)
    y = graph.add_node("MatMul", f"{name}.context", scores, value)
    y = graph.add_node("Transpose", f"{name}.context.turned", y, perm=[0, 2, 1, 3])
    y = graph.add_node("Reshape", f"{name}.context.joined", y, "joined")
    return add_linear(graph, f"{name}.output", y, (hidden, hidden))


def _add_heads(graph: GraphBuilder, x: str) -> str:
    y = graph.add_node("Reshape", f"{x}.heads", x, "heads")
    return graph.add_node("Transpose", f"{x}.transposed", y, perm=[0, 2, 1, 3])


def _add_feed(graph: GraphBuilder, name: str, x: str, hidden: int) -> str:
    y = add_linear(graph, f"{name}.widen", x, (hidden, 4 * hidden))
    y = _add_gelu(graph, f"{name}.gelu", y)
    return add_linear(graph, f"{name}.narrow", y, (4 * hidden, hidden))


def _add_words(graph: GraphBuilder, name: str, x: str, table: str) -> str:
    """Add the probabilities of all words, by the table that embeds them."""
    table = graph.add_node("Transpose", "head.table", table, perm=[1, 0])
    x = graph.add_node("MatMul", name, x, table)
    return graph.add_node("Softmax", "head.softmax", x, axis=-1)


def add_linear(graph: GraphBuilder, name: str, x: str, channels: tuple[int, int]) -> str:
    weights = graph.add_drawn(f"{name}.weight", channels, SIGMA)
    product = graph.add_node("MatMul", f"{name}.product", x, weights)
    bias = graph.add_filled(f"{name}.bias", channels[1:], 0.0)
    return graph.add_node("Add", name, product, bias)


def add_layer_norm(graph: GraphBuilder, name: str, x: str, hidden: int, epsilon: float) -> str:
    scale = graph.add_filled(f"{name}.scale", (hidden,), 1.0)
    shift = graph.add_filled(f"{name}.shift", (hidden,), 0.0)
    return graph.add_node("LayerNormalization", name, x, scale, shift, axis=-1, epsilon=epsilon)


def _add_gelu(graph: GraphBuilder, name: str, x: str) -> str:
    y = graph.add_node("Div", f"{name}.divided", x, "gelu.root")
    y = graph.add_node("Erf", f"{name}.erf", y)
    y = graph.add_node("Add", f"{name}.raised", y, "gelu.one")
    y = graph.add_node("Mul", f"{name}.gated", x, y)
    return graph.add_node("Mul", name, y, "gelu.half")


MERGED: Mapping[str, Bert | Gpt2] = {
    "bert-base": Bert(12, 768),
    "bert-large": Bert(24, 1024),
    "bert-base-pretraining": Bert(12, 768, MASKED),
    "bert-large-pretraining": Bert(24, 1024, MASKED),
    "gpt2": Gpt2(12, 768),
    "gpt2-medium": Gpt2(24, 1024),
    "gpt2-large": Gpt2(36, 1280),
}
TEXTS = dict(MERGED)
for _name, _network in MERGED.items():
    TEXTS[f"{_name}-split"] = replace(_network, separate=True)
