"""Read the keys that describe a training step: of `--set`, and of the table `training` in the TOML
file of a machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ipu_results.emulator.settings import SWITCHES, Protocol, read_file, refuse
from ipu_results.emulator.target import Target
from ipu_results.emulator.training import TrainingSetup

LARGEST_COUNT = 1_000_000


@dataclass(frozen=True, slots=True)
class Key:
    """What the values of a key may be: numbers of a `kind` and range, or `words`, or any text."""

    kind: type[int] | type[float] | type[str] = int
    low: float = 1
    high: float = LARGEST_COUNT
    words: tuple[str, ...] = ()
    several: bool = False
    """Texts with commas between them, and lists in a file, have several values."""

    def read(self, name: str, value: Any, document: str | None = None) -> Any:
        """Return a value, or a tuple where there may be several.

        Raises UnrecognisedModelError, naming the key.
        """
        if isinstance(value, list):
            texts = [str(each) for each in value]
        elif self.several:
            texts = [text.strip() for text in str(value).split(",")]
        else:
            texts = [str(value)]
        if not texts or (len(texts) > 1 and not self.several):
            raise refuse(name, f"must be {self._describe()}, not {value}", document)
        values = tuple(self._read_text(text) for text in texts)
        if None in values:
            raise refuse(name, f"must be {self._describe()}, not {value}", document)
        return values if self.several else values[0]

    def _read_text(self, text: str) -> Any:
        """Return one value, None for a text that is none."""
        if self.words:
            return text.lower() if text.lower() in self.words else None
        if self.kind is str:
            return text or None
        try:
            number = int(text) if self.kind is int else float(text)
        except ValueError:
            return None
        return number if self.low <= number <= self.high else None

    def _describe(self) -> str:
        if self.words:
            return f"one of {', '.join(self.words)}"
        if self.kind is str:
            return "names of operators"
        noun = "whole number" if self.kind is int else "number"
        article = f"{noun}s" if self.several else f"a {noun}"
        return f"{article} from {self.low:g} to {self.high:g}"


KEYS: Mapping[str, Key] = {
    "micro_batch": Key(),
    "replicas": Key(),
    "accumulation": Key(),
    "stages": Key(),
    "layers_per_ipu": Key(low=0, high=1000, several=True),
    "head": Key(words=("first", "last")),
    "cut_after": Key(kind=str, several=True),
    "recompute": Key(words=("layer", "stage")),
    "available_memory": Key(kind=float, low=0, high=1, several=True),
    "offchip": Key(words=tuple(SWITCHES)),
    "instances": Key(),
    "sequence": Key(),
}


def load_training_table(path: Path) -> dict[str, Any]:
    """Return the values of the table `training` of a machine's file, empty without one.

    Raises UnrecognisedModelError naming the file and the key.
    """
    document = str(path)
    table = read_file(path).get("training", {})
    if not isinstance(table, dict):
        raise refuse("`training`", "must be a table", document)
    for name in table:
        if name not in KEYS:
            raise refuse(name, f"is not a key of training: use {', '.join(KEYS)}", document)
    return {name: KEYS[name].read(name, value, document) for name, value in table.items()}


def build_setup(values: Mapping[str, Any], machine: Target, path: Protocol) -> TrainingSetup:
    """Build the setup that values of KEYS describe.

    `path` says what an input element is and which tiles move data. Replicas are as many as the
    machine has room for, unless they are given.
    """
    setup = TrainingSetup(
        values.get("micro_batch", 1),
        accumulation=values.get("accumulation", 1),
        recompute=values.get("recompute"),
        proportions=values.get("available_memory", ()),
        offchip=SWITCHES[values.get("offchip", "off")],
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
