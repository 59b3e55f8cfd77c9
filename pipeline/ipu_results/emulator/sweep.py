"""Sweep settings of a machine and its host path: predict every combination of their values.

A sweep writes each finished design to a journal next to its output. Started again, it continues there; the output is
written in one step when all designs are done.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from ipu_results.emulator.network import Network
from ipu_results.emulator.prediction import predict
from ipu_results.emulator.protocol import Protocol
from ipu_results.emulator.records import FIELDS, to_record
from ipu_results.emulator.settings import apply_settings, parse_pairs
from ipu_results.emulator.split import ConvolutionShape, SplitPlan, plan_split
from ipu_results.emulator.target import Target, load_calibration
from ipu_results.errors import IpuResultsError, UnrecognisedModelError
from ipu_results.ground.files import write_atomically
from ipu_results.ground.text import format_csv

MAX_DESIGNS = 100_000
SUFFIXES = (".csv", ".parquet")
# Constants that the search for splits does not read: a plan is the same whatever they are.
UNREAD_BY_SEARCH = (
    *("clock", "host.", "gateway.", "elementwise.", "batchnorm.", "softmax.", "layernorm.", "pool.", "globalpool."),
    *("rearrange.", "power.", "memory."),
)

Design = dict[str, str]
Planner = Callable[[ConvolutionShape, Target], SplitPlan]


def parse_sweeps(pairs: Sequence[str]) -> list[Design]:
    """Return a design for each combination of the values in KEY=a,b,c texts, the last key changing fastest.

    Raises UnrecognisedModelError for a text of another form and for more than MAX_DESIGNS.
    """
    values = {}
    for key, texts in parse_pairs(tuple(pairs)).items():
        values[key] = [text.strip() for text in texts.split(",")]
        if not all(values[key]):
            raise UnrecognisedModelError("is not KEY=a,b,c, for example clock=1.33e9,1.85e9", document=f"{key}={texts}")
    count = 1
    for texts_of_key in values.values():
        count *= len(texts_of_key)
    if count > MAX_DESIGNS:
        raise UnrecognisedModelError(f"makes {count} designs, more than {MAX_DESIGNS:,}", document="--sweep")
    return [dict(zip(values, combination, strict=True)) for combination in product(*values.values())]


class Sweep:
    """The designs of one sweep, in a fixed order. `predict_design` returns the records of one of them."""

    def __init__(
        self,
        network: Network,
        target: Target,
        protocol: Protocol,
        batch_sizes: Sequence[int],
        designs: Sequence[Design],
    ) -> None:
        """Check every design. Raises UnrecognisedModelError or InconsistentModelError for the first that is wrong."""
        self._network, self._target, self._protocol = network, target, protocol
        self._batch_sizes, self.designs = batch_sizes, designs
        self.columns = (*designs[0], *(name for name in FIELDS if name not in designs[0]))
        for design in designs:
            apply_settings(target, protocol, design)

    @property
    def digest(self) -> str:
        """Identify the request: a journal of another one is not continued."""
        calibration = load_calibration().id
        parts = (self._network.digest, self._target.digest, self._target.settings, repr(self._protocol), calibration)
        return hashlib.sha256(repr((*parts, list(self._batch_sizes), list(self.designs))).encode()).hexdigest()

    def predict_design(self, number: int, planner: Planner = plan_split) -> list[list[Any]]:
        """Return a row of `columns` for each batch size."""
        design = self.designs[number]
        machine, path = apply_settings(self._target, self._protocol, design)
        predictions = predict(self._network, machine, self._batch_sizes, path, planner=planner)
        values = {key: _read_value(text) for key, text in design.items()}
        records = [{**to_record(prediction, self._network.name), **values} for prediction in predictions]
        return [[record[name] for name in self.columns] for record in records]


def _read_value(text: str) -> str | float:
    """Return a number where the text is one, a whole one without a point."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


class SharedPlans:
    """A planner that looks a plan up under the machine without its constants that the search does not read."""

    def __init__(self, planner: Planner, base: Target) -> None:
        self._planner = planner
        self._unread = {name: constant.value for name, constant in base.constants if name.startswith(UNREAD_BY_SEARCH)}
        self._targets: dict[str, Target] = {}

    def __call__(self, shape: ConvolutionShape, target: Target) -> SplitPlan:
        known = self._targets.get(target.digest)
        if known is None:
            known = self._targets[target.digest] = target.with_constants(self._unread)
        return self._planner(shape, known)


def run_sweep(sweep: Sweep, out: Path, planner: Planner, report: Callable[[int], None] = lambda _: None) -> None:
    """Predict all designs and write `out`, as CSV or Parquet after its suffix.

    `report` is called with the number of designs that are done. Raises IpuResultsError where a file cannot be written.
    """
    journal = out.with_name(f".{out.name}.journal")
    done = dict(_read_journal(journal, sweep))
    with _open_journal(journal, sweep, done) as lines:
        for number in range(len(sweep.designs)):
            if number not in done:
                done[number] = sweep.predict_design(number, planner)
                lines.write(json.dumps([number, done[number]]) + "\n")
                lines.flush()
            report(number + 1)
    rows = [row for number in sorted(done) for row in done[number]]
    write_atomically(out, _format(sweep.columns, rows, out.suffix))
    with suppress(OSError):
        journal.unlink()


def _read_journal(path: Path, sweep: Sweep) -> Iterator[tuple[int, list[list[Any]]]]:
    """Yield the finished designs of an interrupted run of the same sweep. A line that was cut off does not count."""
    try:
        first, *lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        return
    if first != sweep.digest:
        return
    for line in lines:
        with suppress(msgspec.DecodeError, msgspec.ValidationError):
            yield msgspec.json.decode(line, type=tuple[int, list[list[Any]]])


def _open_journal(path: Path, sweep: Sweep, done: dict[int, list[list[Any]]]) -> Any:
    lines = [sweep.digest, *(json.dumps([number, rows]) for number, rows in done.items())]
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise IpuResultsError(f"cannot be written: {error.strerror or error}", place=str(path)) from error


def _format(columns: Iterable[str], rows: Sequence[Sequence[Any]], suffix: str) -> bytes:
    if suffix != ".parquet":
        return f"{format_csv([list(columns), *rows])}\n".encode()
    import pyarrow as pa  # noqa: PLC0415 (slow to import, and seldom needed)
    import pyarrow.parquet as pq  # noqa: PLC0415

    names = list(columns)
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())
