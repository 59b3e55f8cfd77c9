"""Predict every combination of settings: a design is one of them, and the unit of work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from ipu_results.emulator.network import Network
from ipu_results.emulator.operators import Program
from ipu_results.emulator.prediction import Prediction, predict, select_micro_batch
from ipu_results.emulator.settings import Protocol, apply_settings, parse_pairs
from ipu_results.emulator.target import Target
from ipu_results.errors import InconsistentModelError, IpuResultsError, UnrecognisedModelError
from ipu_results.kit.files import write_atomically
from ipu_results.kit.parallel import run_tasks
from ipu_results.kit.text import format_csv

MAX_DESIGNS = 100_000
SUFFIXES = (".csv", ".parquet")

Design = Mapping[str, str]
Rows = list[list[Any]]


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
    combinations = product(*values.values())
    return [dict(zip(values, combination, strict=True)) for combination in combinations]


class Sweep:
    """The designs of one sweep, in a fixed order, and what predicts one of them.

    The predictor is sent to workers with each design: it has neither the other designs nor the
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
        self.columns = list(dict.fromkeys(designs[0]) | dict.fromkeys(Prediction.FIELDS))
        programs: dict[int, Program] = {}
        for design in designs:
            machine, path = apply_settings(target, protocol, design)
            for batch in batch_sizes:
                micro = select_micro_batch(batch, machine, path)
                if micro not in programs:
                    programs[micro] = network(micro)
        self.predictor = DesignPredictor(
            network.name, target, protocol, batch_sizes, programs, self.columns
        )


Task = tuple[int, Design]  # a design with its number


@dataclass(frozen=True, slots=True)
class DesignPredictor:
    """Predicts one design of a sweep. `programs` are those of the network by micro-batch."""

    name: str
    target: Target
    protocol: Protocol
    batch_sizes: Sequence[int]
    programs: Mapping[int, Program]
    columns: Sequence[str]

    def predict_design(self, task: Task) -> tuple[int, Rows]:
        """Return the number of a design, and a row of `columns` for each batch size."""
        number, design = task
        try:
            machine, path = apply_settings(self.target, self.protocol, design)
            predictions = predict(self.programs.__getitem__, machine, self.batch_sizes, path)
        except IpuResultsError as error:
            raise InconsistentModelError(str(error), place=name_design(task)) from error
        values = {key: _read_value(text) for key, text in design.items()}
        rows = []
        for prediction in predictions:
            record = {**prediction.to_record(self.name), **values}
            rows.append([record[name] for name in self.columns])
        return number, rows


def name_design(task: Task) -> str:
    """Name a design by its settings, for an error."""
    settings = ", ".join(f"{key}={value}" for key, value in task[1].items())
    return f"design {settings}"


def _read_value(text: str) -> str | float:
    """Return a number where the text is one, a whole one without a point."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def run_sweep(
    sweep: Sweep,
    out: Path,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> None:
    """Predict all designs and write `out`, as CSV or Parquet after its suffix.

    Designs are predicted by `executor`, or in this process where there is none. `progress` gets the
    number of designs that are done, and of all. Nothing is written before the last is done. Raises
    IpuResultsError where a file cannot be written.
    """
    total = len(sweep.designs)
    done: dict[int, Rows] = {}
    designs = list(enumerate(sweep.designs))
    tasks = run_tasks(sweep.predictor.predict_design, designs, executor, name_design)
    with closing(tasks) as results:
        for number, rows in results:
            done[number] = rows
            progress(len(done), total)
    rows_in_order = [row for number in range(total) for row in done[number]]
    write_atomically(out, _format(sweep.columns, rows_in_order, out.suffix))


def _format(columns: Sequence[str], rows: Rows, suffix: str) -> bytes:
    if suffix != ".parquet":
        return f"{format_csv([columns, *rows])}\n".encode()
    import pyarrow as pa  # noqa: PLC0415 (slow to import, and seldom needed)
    import pyarrow.parquet as pq  # noqa: PLC0415

    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(columns)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())
