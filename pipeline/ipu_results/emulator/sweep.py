"""Predict every combination of settings: a design is one of them, and the unit of work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import product
from math import prod
from pathlib import Path

from ipu_results.emulator.network import Network
from ipu_results.emulator.operators import Program
from ipu_results.emulator.prediction import Record, predict, select_micro_batch
from ipu_results.emulator.settings import Protocol, apply_settings, parse_pairs
from ipu_results.emulator.target import Target
from ipu_results.errors import InconsistentModelError, IpuResultsError, UnrecognisedModelError
from ipu_results.kit.files import write_atomically
from ipu_results.kit.parallel import run_in_order
from ipu_results.kit.text import format_csv

MAX_DESIGNS = 100_000

Design = Mapping[str, str]


def parse_sweeps(pairs: Sequence[str]) -> list[Design]:
    """Return a design for each combination of the values in KEY=a,b,c texts, the last key changing
    fastest.

    Raises UnrecognisedModelError for a text of another form and for more than MAX_DESIGNS.
    """
    values: dict[str, list[str]] = {}
    for key, texts in parse_pairs(pairs).items():
        values[key] = [text.strip() for text in texts.split(",")]
        if not all(values[key]):
            raise UnrecognisedModelError(
                "is not KEY=a,b,c, for example clock=1.33e9,1.85e9", document=f"{key}={texts}"
            )
    count = prod(map(len, values.values()))
    if count > MAX_DESIGNS:
        raise UnrecognisedModelError(
            f"makes {count} designs, more than {MAX_DESIGNS:,}", document="--sweep"
        )
    designs: list[Design] = []
    for combination in product(*values.values()):
        designs.append(dict(zip(values, combination, strict=True)))
    return designs


class Sweep:
    """The designs of one sweep, in a fixed order, and what predicts one of them.

    `predict_design` is sent to workers with each design: it has neither the other designs nor the
    weights of the network.
    """

    def __init__(
        self,
        network: Network,
        target: Target,
        protocol: Protocol,
        batch_sizes: Sequence[int],
        designs: Sequence[Design],
    ) -> None:
        """Check every design, and read the program of each micro-batch.

        Raises UnrecognisedModelError or InconsistentModelError for the first design that is wrong.
        """
        self.designs = designs
        programs: dict[int, Program] = {}
        for design in designs:
            machine, path = apply_settings(target, protocol, design)
            for batch in batch_sizes:
                micro = select_micro_batch(batch, machine, path)
                if micro not in programs:
                    programs[micro] = network(micro)
        self.predict_design = partial(
            _predict_design, network.name, target, protocol, batch_sizes, programs
        )


def _predict_design(
    model: str,
    target: Target,
    protocol: Protocol,
    batch_sizes: Sequence[int],
    programs: Mapping[int, Program],
    design: Design,
) -> list[Record]:
    """Return a record for each batch size, the settings of the design first."""
    try:
        machine, path = apply_settings(target, protocol, design)
        predictions = predict(programs.__getitem__, machine, batch_sizes, path)
    except IpuResultsError as error:
        raise InconsistentModelError(str(error), place=name_design(design)) from error
    # The settings are first. Where the record has a field of the same name, the setting is kept.
    return [{**design, **prediction.to_record(model), **design} for prediction in predictions]


def name_design(design: Design) -> str:
    """Name a design by its settings, for an error."""
    settings = ", ".join(f"{key}={value}" for key, value in design.items())
    return f"design {settings}"


def run_sweep(
    sweep: Sweep,
    out: Path,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> None:
    """Predict all designs and write them to `out` as CSV.

    Designs are predicted by `executor`, or in this process where there is none. `progress` gets the
    number of designs that are done, and of all. Nothing is written before the last is done. Raises
    IpuResultsError where a file cannot be written, or has the suffix of another format.
    """
    if out.suffix.lower() != ".csv":
        raise InconsistentModelError("is not a .csv file", document=str(out))
    rows: list[Record] = []
    results = run_in_order(sweep.predict_design, sweep.designs, executor, name_design)
    for done, records in enumerate(results, start=1):
        rows += records
        progress(done, len(sweep.designs))
    lines = [list(rows[0])]
    lines += [list(row.values()) for row in rows]
    write_atomically(out, f"{format_csv(lines)}\n".encode())
