"""Predict language-model decoding on chips that share the layers: one token after another, no
pipeline.

Structure after graphcore/PopTransformer at `SOURCE`, of which only code and configurations were
read for this. A step computes every layer on its chip, then the head; chips wait for each other.
GPT2-XL fills its cache token by token. ChatGLM-6B reads its input in one pass and then decodes up
to the longest length, and its head is split over four chips.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ipu_results.emulator.operators import (
    Elementwise,
    Gemm,
    Operator,
    Program,
    Rearrangement,
    Reduction,
)
from ipu_results.emulator.prediction import MS
from ipu_results.emulator.schedule import schedule
from ipu_results.emulator.split import PlanCache
from ipu_results.emulator.target import Target
from ipu_results.emulator.training import load_training_target

from benchmarks.emulator.blind.predictions import FOLDER

SOURCE = "b5a7569de7f20f5ac263fad4147ce1c94720c5d8"
C600_CLOCK = 280e12 / (2 * 64 * 1472)  # 280 TFLOP/s of fp16 by the card's data sheet
SHAPES = FOLDER / "decoding_shapes.csv"


@dataclass(frozen=True, slots=True)
class Decoder:
    """Sizes of a decoder.

    `heads_on` chips share the head, `context` says whether the input is read in one pass.
    """

    layers: int
    width: int
    heads: int
    vocabulary: int
    hidden: int
    heads_on: int = 1
    context: bool = False


DECODERS = {
    "GPT2-XL": Decoder(48, 1600, 25, 50257, 6400),
    "ChatGLM-6B": Decoder(28, 4096, 32, 130528, 16384, heads_on=4, context=True),
}


def predict_decoding(plans: PlanCache) -> Iterator[dict[str, Any]]:
    """Predict each shape: tokens a second and milliseconds a token, as the benchmark's script
    defines both.

    A shape without a batch is that of the configuration: 1.
    """
    with SHAPES.open(encoding="utf-8", newline="") as file:
        for shape in csv.DictReader(file):
            seconds, step = predict_run(
                DECODERS[shape["model"]], load_machine(shape["machine"]), shape, plans
            )
            batch, longest, start = (
                int(shape["batch"] or 1),
                int(shape["max_length"]),
                int(shape["input_length"] or 0),
            )
            value = (
                batch * (longest - start) / seconds
                if shape["metric"] == "throughput"
                else seconds / longest * MS
            )
            yield {**shape, "predicted": value, "step_ms": step * MS, "run_ms": seconds * MS}


def load_machine(name: str) -> Target:
    """Load a GC200 with links; the C600 is one at another clock."""
    target = load_training_target("m2000")
    return target.with_constants({"clock": C600_CLOCK}) if name == "C600" else target


def predict_run(
    decoder: Decoder, target: Target, shape: Mapping[str, str], plans: PlanCache
) -> tuple[float, float]:
    """Return the seconds of a whole run and those of one step."""
    batch, longest, start = (
        int(shape["batch"] or 1),
        int(shape["max_length"]),
        int(shape["input_length"] or 0),
    )
    step = _time_pass(decoder, target, int(shape["chips"]), (batch, 1, longest), plans)
    first = (
        _time_pass(decoder, target, int(shape["chips"]), (batch, start, start), plans)
        if decoder.context
        else 0.0
    )
    return first + (longest - start) * step, step


def _time_pass(
    decoder: Decoder, target: Target, chips: int, sizes: tuple[int, int, int], plans: PlanCache
) -> float:
    batch, tokens, _ = sizes
    layer, head = (
        _time(operators, target, plans)
        for operators in (list_layer(decoder, *sizes), _list_head(decoder, batch))
    )
    sent = batch * tokens * decoder.width * target["element.bytes"]
    hop = sent / target["link.chip"] + target["link.start"]
    return decoder.layers * layer + head + chips * hop


def _time(operators: list[Operator], target: Target, plans: PlanCache) -> float:
    sources = tuple((at - 1,) if at else () for at in range(len(operators)))
    program = Program("decoder", tuple(operators), sources, (), (), (len(operators) - 1,), 0)
    plan = schedule(program, target, plans)
    return (plan.cycles + plan.supersteps * target["superstep.cycles"]) / target["clock"]


def list_layer(decoder: Decoder, batch: int, tokens: int, cached: int) -> list[Operator]:
    """List the operators of one layer for `tokens` new tokens and a cache of `cached`."""
    rows, width, groups, head = (
        batch * tokens,
        decoder.width,
        batch * decoder.heads,
        decoder.width // decoder.heads,
    )
    scores = Gemm("scores", groups, tokens, head, cached, constant=False)
    return [
        Elementwise("norm1", "layernorm", rows * width),
        Gemm("qkv", 1, rows, width, 3 * width, bias=True),
        Rearrangement("heads", "transpose", rows * width * 3),
        Rearrangement("cache", "scatter", rows * width * 2),
        scores,
        Elementwise("mask", "add", scores.elements),
        Elementwise("softmax", "softmax", scores.elements, cached),
        Gemm("values", groups, tokens, cached, head, constant=False),
        Rearrangement("join", "transpose", rows * width),
        Gemm("proj", 1, rows, width, width, bias=True),
        Elementwise("add1", "add", rows * width),
        Elementwise("norm2", "layernorm", rows * width),
        Gemm("up", 1, rows, width, decoder.hidden, bias=True),
        Elementwise("gelu", "gelu", rows * decoder.hidden),
        Gemm("down", 1, rows, decoder.hidden, width, bias=True),
        Elementwise("add2", "add", rows * width),
    ]


def _list_head(decoder: Decoder, batch: int) -> list[Operator]:
    words = -(-decoder.vocabulary // decoder.heads_on)
    logits = Gemm("head", 1, batch, decoder.width, words)
    return [
        Rearrangement("embedding", "gather", batch * decoder.width),
        Elementwise("norm", "layernorm", batch * decoder.width),
        logits,
        Reduction("argmax", "reduction", logits.elements, batch),
    ]
