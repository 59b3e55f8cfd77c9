"""Show predictions: as a trace for Perfetto or chrome://tracing, as a chart, against one another,
and as a sweep.

A sweep predicts every combination of settings. It writes each finished design to a journal next to
its output. Started again, it continues there; the output is written in one step when all designs
are done.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from math import isclose, prod
from pathlib import Path
from typing import Any

import msgspec

from ipu_results.emulator.network import Network
from ipu_results.emulator.prediction import OperatorProfile, Prediction, predict
from ipu_results.emulator.settings import Protocol, apply_settings, parse_pairs
from ipu_results.emulator.split import ConvolutionShape, SplitPlan, plan_split
from ipu_results.emulator.target import Target, load_calibration
from ipu_results.errors import InconsistentModelError, IpuResultsError, UnrecognisedModelError
from ipu_results.ground.charts import PALETTE, apply_theme, make_data, make_title, render_chart
from ipu_results.ground.files import write_atomically
from ipu_results.ground.text import format_csv

US = 1e6  # the format counts microseconds
CHIP, HOST = 1, 2  # process ids
TRACKS = {"compute": (CHIP, 1), "exchange": (CHIP, 2), "sync": (CHIP, 3), "host": (HOST, 4)}


def build_trace(
    prediction: Prediction, profiles: Sequence[OperatorProfile], model: str
) -> dict[str, Any]:
    """Return the trace of one batch on one chip: each operator's sync, exchange and compute, one
    after another.

    The durations of the three chip tracks add up to `device_ms`. The host track has what a batch
    takes beyond the chip. A counter has the bytes of the live activations.
    """
    events = [*_name_tracks(prediction, model)]
    for profile in profiles:
        events += _trace_operator(profile)
    host = prediction.timing.protocol
    if host > 0:
        name = f"host path {prediction.protocol}"
        events.append(
            _make_event(
                name, "host", prediction.timing.device, host, {"protocol": prediction.protocol}
            )
        )
    return {
        "displayTimeUnit": "ns",
        "otherData": {
            "origin": prediction.origin,
            "model": model,
            "target": prediction.target,
            "batch_size": prediction.batch_size,
            "device_ms": prediction.device_ms,
            "protocol_ms": prediction.protocol_ms,
            "calibration_id": prediction.calibration_id,
        },
        "traceEvents": events,
    }


def _name_tracks(prediction: Prediction, model: str) -> Iterator[dict[str, Any]]:
    chip = f"one chip of {prediction.target}: {model}, batch {prediction.batch_size} (emulated)"
    for process, name in ((CHIP, chip), (HOST, "host")):
        yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}}
    for name, (process, track) in TRACKS.items():
        yield {
            "ph": "M",
            "name": "thread_name",
            "pid": process,
            "tid": track,
            "args": {"name": name},
        }
        yield {
            "ph": "M",
            "name": "thread_sort_index",
            "pid": process,
            "tid": track,
            "args": {"sort_index": track},
        }


def _trace_operator(profile: OperatorProfile) -> Iterator[dict[str, Any]]:
    step, start = profile.step, profile.start
    counters = {"live activations": profile.live_bytes, "fullest tile": profile.tile_bytes}
    for name, value in counters.items():
        yield {
            "ph": "C",
            "name": f"memory, {name}",
            "pid": CHIP,
            "tid": 0,
            "ts": start * US,
            "args": {"bytes": value},
        }
    details = {
        "kind": step.kind,
        "vertex": step.plan.vertex if step.plan else None,
        "supersteps": step.supersteps,
        "macs": step.macs,
        "peak_share": profile.peak_share,
        "energy_j": profile.energy_j,
    }
    for track, seconds in (
        ("sync", profile.sync),
        ("exchange", profile.exchange),
        ("compute", profile.compute),
    ):
        if seconds > 0:
            yield _make_event(step.name, track, start, seconds, details)
        start += seconds


def _make_event(
    name: str, track: str, start: float, seconds: float, details: dict[str, Any]
) -> dict[str, Any]:
    process, thread = TRACKS[track]
    times = {"ts": start * US, "dur": seconds * US}
    return {
        "ph": "X",
        "name": name,
        "cat": track,
        "pid": process,
        "tid": thread,
        **times,
        "args": details,
    }


PARTS = PALETTE.time_parts  # colours by part, in the order of `compute_parts`


def compute_parts(prediction: Prediction) -> dict[str, float]:
    """Return the milliseconds between two batches of a full pipeline, by PARTS."""
    shares = (prediction.compute_share, prediction.exchange_share, prediction.superstep_share)
    return dict(
        zip(
            PARTS,
            [*(share * prediction.device_ms for share in shares), prediction.protocol_ms],
            strict=True,
        )
    )


def render_parts(predictions: Sequence[Prediction], model: str, suffix: str) -> bytes:
    """Render an image; `suffix` is .svg or .png. Raises MissingExtraError."""
    return render_chart(lambda altair: _build_chart(altair, predictions, model), suffix)


def _build_chart(altair: Any, predictions: Sequence[Prediction], model: str) -> Any:
    first = predictions[0]
    bars = [
        {"batch": prediction.batch_size, "part": part, "order": order, "ms": ms}
        for prediction in predictions
        for order, (part, ms) in enumerate(compute_parts(prediction).items())
    ]
    subtitle = (
        f"Emulated, not measured: protocol {first.protocol}, calibration {first.calibration_id}"
    )
    color = altair.Scale(domain=list(PARTS), range=list(PARTS.values()))
    chart = (
        altair.Chart(
            make_data(altair, bars),
            title=make_title(altair, f"{model} on {first.target}", subtitle),
        )
        .mark_bar()
        .encode(
            x=altair.X("batch:O", title="Batch size", sort=None, axis=altair.Axis(labelAngle=0)),
            y=altair.Y("ms:Q", title="Time per batch (ms)", stack="zero"),
            color=altair.Color("part:N", title=None, scale=color, sort=list(PARTS)),
            order=altair.Order("order:Q"),
        )
        .properties(width=altair.Step(60), height=300)
    )
    return apply_theme(chart)


KEYS = ("batch_size", "operator")  # what names a record, those that it has
TOLERANCE = 1e-9  # relative: sums in another order differ by less
COMPARED_FIELDS = ("batch_size", "operator", "field", "before", "after", "ratio")

Record = Mapping[str, Any]
Key = tuple[Any, ...]


def load_predictions(path: Path) -> list[dict[str, Any]]:
    """Load the records of a file.

    Raises UnrecognisedModelError where `predict --format json` did not make it.
    """
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnrecognisedModelError(
            f"cannot be read: {error.strerror or error}", document=str(path)
        ) from error
    except (UnicodeDecodeError, ValueError) as error:
        raise UnrecognisedModelError("is not JSON", document=str(path)) from error
    records = records if isinstance(records, list) else []
    matches = (
        isinstance(each, dict) and each.get("origin") == "emulated" and "batch_size" in each
        for each in records
    )
    if not records or not all(matches):
        raise UnrecognisedModelError(
            "was not saved by `ipu-results predict --format json`", document=str(path)
        )
    return records


def compare_predictions(before: Sequence[Record], after: Sequence[Record]) -> list[dict[str, Any]]:
    """Return a row for every field that differs between records of one batch size and, with
    `--layers`, operator.

    `ratio` is after ÷ before, None for text and where before is 0. A record that one side lacks is
    one row whose field is `record`. Raises InconsistentModelError where no record is in both.
    """
    old, new = _index(before), _index(after)
    if not old.keys() & new.keys():
        raise InconsistentModelError(
            "the two predictions have no batch size and operator in common"
        )
    rows = []
    for key in dict.fromkeys((*old, *new)):
        place = {"batch_size": key[0], "operator": key[1]}
        if key not in old or key not in new:
            sides = ["present" if key in side else "absent" for side in (old, new)]
            rows.append(
                {**place, "field": "record", "before": sides[0], "after": sides[1], "ratio": None}
            )
            continue
        for field in dict.fromkeys((*old[key], *new[key])):
            first: Any = old[key].get(field)
            second: Any = new[key].get(field)
            numbers = all(
                isinstance(each, int | float) and not isinstance(each, bool)
                for each in (first, second)
            )
            if first != second and not (numbers and isclose(first, second, rel_tol=TOLERANCE)):
                ratio = second / first if numbers and first else None
                rows.append(
                    {**place, "field": field, "before": first, "after": second, "ratio": ratio}
                )
    return rows


def _index(records: Sequence[Record]) -> dict[Key, Record]:
    """Name records by batch size, operator, and their number among equal names."""
    index: dict[Key, Record] = {}
    for record in records:
        name, number = tuple(record.get(key) for key in KEYS), 1
        while (*name, number) in index:
            number += 1
        index[(*name, number)] = record
    return index


MAX_DESIGNS = 100_000
SUFFIXES = (".csv", ".parquet")
Design = dict[str, str]
Planner = Callable[[ConvolutionShape, Target], SplitPlan]


def parse_sweeps(pairs: Sequence[str]) -> list[Design]:
    """Return a design for each combination of the values in KEY=a,b,c texts, the last key changing
    fastest.

    Raises UnrecognisedModelError for a text of another form and for more than MAX_DESIGNS.
    """
    values = {}
    for key, texts in parse_pairs(tuple(pairs)).items():
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
    return [
        dict(zip(values, combination, strict=True)) for combination in product(*values.values())
    ]


class Sweep:
    """The designs of one sweep, in a fixed order.

    `predict_design` returns the records of one of them.
    """

    def __init__(
        self,
        network: Network,
        target: Target,
        protocol: Protocol,
        batch_sizes: Sequence[int],
        designs: Sequence[Design],
    ) -> None:
        """Check every design.

        Raises UnrecognisedModelError or InconsistentModelError for the first that is wrong.
        """
        self._network, self._target, self._protocol = network, target, protocol
        self._batch_sizes, self.designs = batch_sizes, designs
        self.columns = (
            *designs[0],
            *(name for name in Prediction.FIELDS if name not in designs[0]),
        )
        for design in designs:
            apply_settings(target, protocol, design)

    @property
    def digest(self) -> str:
        """Identify the request: a journal of another one is not continued."""
        calibration = load_calibration().id
        parts = (
            self._network.digest,
            self._target.digest,
            self._target.settings,
            repr(self._protocol),
            calibration,
        )
        return hashlib.sha256(
            repr((*parts, list(self._batch_sizes), list(self.designs))).encode()
        ).hexdigest()

    def predict_design(self, number: int, planner: Planner = plan_split) -> list[list[Any]]:
        """Return a row of `columns` for each batch size."""
        design = self.designs[number]
        machine, path = apply_settings(self._target, self._protocol, design)
        predictions = predict(self._network, machine, self._batch_sizes, path, planner=planner)
        values = {key: _read_value(text) for key, text in design.items()}
        records = [
            {**prediction.to_record(self._network.name), **values} for prediction in predictions
        ]
        return [[record[name] for name in self.columns] for record in records]


def _read_value(text: str) -> str | float:
    """Return a number where the text is one, a whole one without a point."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def run_sweep(
    sweep: Sweep, out: Path, planner: Planner, report: Callable[[int], None] = lambda _: None
) -> None:
    """Predict all designs and write `out`, as CSV or Parquet after its suffix.

    `report` is called with the number of designs that are done. Raises IpuResultsError where a file
    cannot be written.
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
    """Yield the finished designs of an interrupted run of the same sweep.

    A line that was cut off does not count.
    """
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
        raise IpuResultsError(
            f"cannot be written: {error.strerror or error}", place=str(path)
        ) from error


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
