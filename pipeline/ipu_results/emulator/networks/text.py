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

from ipu_results.emulator.networks.builder import Flow, GraphBuilder, size_networks

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
        flow = self._add_embedding(graph, sequence)
        mask = graph.add_input("mask", (1, 1, sequence))
        add_layers(flow, self.layers, mask, separate=self.separate, norms_first=False)
        if not self.masked:
            add_linear(flow, "span", SPAN)
            return graph.build_model(name, flow.x, (sequence, SPAN), OPSET, IR)
        # The public implementations put the masked tokens first.
        masked = round(self.masked * sequence)
        flow.x = graph.add_slice(
            "head.masked",
            flow.x,
            start=(0,),
            end=(masked,),
            axis=(1,),
        )
        add_linear(flow, "head.dense", self.hidden)
        _add_gelu(flow, "head.gelu")
        normalise(flow, "head.norm", BERT_EPSILON)
        _add_words(flow, "head.words", "embedding.words.table")
        return graph.build_model(name, flow.x, (masked, BERT_WORDS), OPSET, IR)

    def _add_embedding(self, graph: GraphBuilder, sequence: int) -> Flow:
        tokens = graph.add_input("tokens", (sequence,), TensorProto.INT64)
        types = graph.add_input("types", (sequence,), TensorProto.INT64)
        tables = {}
        for role, rows in BERT_TABLES.items():
            name = f"embedding.{role}.table"
            tables[role] = graph.add_drawn(name, (rows, self.hidden), SIGMA)
        flow = Flow(graph, tables["words"], self.hidden)
        flow.add("Gather", "embedding.words", tokens)
        kinds = graph.add_node("Gather", "embedding.types", tables["types"], types)
        positions = graph.add_slice(
            "embedding.positions",
            tables["positions"],
            start=(0,),
            end=(sequence,),
        )
        flow.add("Add", "embedding.typed", kinds)
        flow.add("Add", "embedding.add", positions)
        return normalise(flow, "embedding.norm", BERT_EPSILON)


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
        flow = Flow(graph, table, self.hidden)
        flow.add("Gather", "embedding.words", tokens)
        flow.add("Add", "embedding.add", positions)
        # additive; its values do not matter here
        mask = graph.add_drawn("mask", (sequence, sequence), SIGMA)
        add_layers(flow, self.layers, mask, separate=self.separate)
        normalise(flow, "head.norm", PRE_NORM_EPSILON)
        _add_words(flow, "head.logits", table)
        return graph.build_model(name, flow.x, (sequence, GPT2_WORDS), OPSET, IR)


def add_layers(
    flow: Flow,
    layers: int,
    mask: str | None = None,
    *,
    separate: bool = True,
    norms_first: bool = True,
) -> None:
    """Add layers, each half of which, attention or `feed`, ends in a sum with what it began with.

    A half begins with its norm, or ends with it as in BERT.
    """
    _add_constants(flow)
    for layer in range(layers):
        flow.prefix = f"layer{layer}."
        for half in ("", "feed."):
            start = flow.x
            if norms_first:
                normalise(flow, f"{half}norm", PRE_NORM_EPSILON)
            if half:
                _add_feed(flow)
            else:
                _add_attention(flow, mask, separate=separate)
            flow.add("Add", f"{half}add", start)
            if not norms_first:
                normalise(flow, f"{half}norm", BERT_EPSILON)
    flow.prefix = ""


def _add_constants(flow: Flow) -> None:
    """Add what all layers share: the shapes of the heads, and the numbers of attention and GELU."""
    graph = flow.graph
    graph.add_integers("heads", 0, 0, flow.channels // HEAD, HEAD)
    graph.add_integers("joined", 0, 0, flow.channels)
    graph.add_scalar("attention.scale", 1 / math.sqrt(HEAD))
    graph.add_scalar("gelu.root", math.sqrt(2))
    graph.add_scalar("gelu.one", 1.0)
    graph.add_scalar("gelu.half", 0.5)


def _add_attention(flow: Flow, mask: str | None, *, separate: bool) -> None:
    """Add self-attention and the product of its output.

    One product for query, key and value is the default of the public BERT (`split_qkv` False in its
    bert_model.py); its pre-training configurations for PopART set it, and Hugging Face's ViT has
    three.
    """
    graph = flow.graph
    roles = ("query", "key", "value")
    if separate:
        parts = [add_linear(flow.branch(), role, flow.channels).x for role in roles]
    else:
        joined = add_linear(flow.branch(), "qkv", 3 * flow.channels).x
        parts = graph.add_split(joined, joined, roles)
    heads = []
    for part in parts:
        head = graph.add_node("Reshape", f"{part}.heads", part, "heads")
        turned = graph.add_node("Transpose", f"{part}.transposed", head, perm=[0, 2, 1, 3])
        heads.append(turned)
    query, key, value = heads
    columns = graph.add_node("Transpose", f"{flow.prefix}key.turned", key, perm=[0, 1, 3, 2])
    flow.x = query
    flow.add("MatMul", "scores", columns)
    flow.add("Mul", "scaled", "attention.scale")
    if mask is not None:
        flow.add("Add", "masked", mask)
    flow.add("Softmax", "softmax", axis=-1)
    flow.add("MatMul", "context", value)
    flow.add("Transpose", "context.turned", perm=[0, 2, 1, 3])
    flow.add("Reshape", "context.joined", "joined")
    add_linear(flow, "output", flow.channels)


def _add_feed(flow: Flow) -> None:
    hidden = flow.channels
    add_linear(flow, "widen", 4 * hidden)
    _add_gelu(flow, "gelu")
    add_linear(flow, "narrow", hidden)


def _add_words(flow: Flow, name: str, table: str) -> None:
    """Add the probabilities of all words, by the table that embeds them."""
    weights = flow.graph.add_node("Transpose", "head.table", table, perm=[1, 0])
    flow.add("MatMul", name, weights)
    flow.add("Softmax", "head.softmax", axis=-1)


def add_linear(flow: Flow, name: str, channels: int) -> Flow:
    place = flow.prefix + name
    weights = flow.graph.add_drawn(f"{place}.weight", (flow.channels, channels), SIGMA)
    flow.add("MatMul", f"{name}.product", weights)
    flow.channels = channels
    bias = flow.graph.add_filled(f"{place}.bias", (channels,), 0.0)
    return flow.add("Add", name, bias)


def normalise(flow: Flow, name: str, epsilon: float) -> Flow:
    place = flow.prefix + name
    scale = flow.graph.add_filled(f"{place}.scale", (flow.channels,), 1.0)
    shift = flow.graph.add_filled(f"{place}.shift", (flow.channels,), 0.0)
    return flow.add("LayerNormalization", name, scale, shift, axis=-1, epsilon=epsilon)


def _add_gelu(flow: Flow, name: str) -> None:
    source = flow.x
    flow.add("Div", f"{name}.divided", "gelu.root")
    flow.add("Erf", f"{name}.erf")
    raised = flow.add("Add", f"{name}.raised", "gelu.one").x
    flow.x = source
    flow.add("Mul", f"{name}.gated", raised)
    flow.add("Mul", name, "gelu.half")


MERGED: Mapping[str, Bert | Gpt2] = {
    **size_networks("bert", Bert),
    **size_networks("gpt2", Gpt2),
}
TEXTS = dict(MERGED)
for _name, _network in MERGED.items():
    TEXTS[f"{_name}-split"] = replace(_network, separate=True)
