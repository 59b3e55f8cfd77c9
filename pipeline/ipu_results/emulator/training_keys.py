"""Read the keys of `--set` that describe a training step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ipu_results.emulator.settings import SWITCHES, Key, Protocol
from ipu_results.emulator.target import Target
from ipu_results.emulator.training import TrainingSetup

COUNT = Key(high=1_000_000)
KEYS: Mapping[str, Key] = {
    "micro_batch": COUNT,
    "replicas": COUNT,
    "accumulation": COUNT,
    "stages": COUNT,
    "layers_per_ipu": Key(low=0, high=1000, several=True),
    "head": Key(words={"first": "first", "last": "last"}),
    "cut_after": Key(names=True, several=True),
    "recompute": Key(words={"layer": "layer", "stage": "stage"}),
    "available_memory": Key(low=0, high=1, whole=False, several=True),
    "offchip": Key(words=SWITCHES),
    "instances": COUNT,
    "sequence": COUNT,
}


def build_setup(values: Mapping[str, Any], machine: Target, path: Protocol) -> TrainingSetup:
    """Build the setup that values of KEYS describe.

    `path` says what an input element is and which tiles move data. Replicas are as many as the
    machine has room for, unless they are given.
    """
    setup = TrainingSetup(
        micro_batch=values.get("micro_batch", 1),
        accumulation=values.get("accumulation", 1),
        recompute=values.get("recompute"),
        proportions=values.get("available_memory", ()),
        offchip=values.get("offchip", False),
        instances=values.get("instances"),
        input_bits=path.input_bits,
        io_tiles=path.io_tiles if path.overlapped else 0,
        layers=values.get("layers_per_ipu", ()),
        head=values.get("head", "last"),
        cut_after=values.get("cut_after", ()),
        stages=values.get("stages", 1),
    )
    room = max(1, machine.chips // setup.chips)
    return replace(setup, replicas=values.get("replicas", room))
