"""Show predictions: as a trace for Perfetto or chrome://tracing, or against one another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from pathlib import Path
from typing import Any

from ipu_results.emulator.prediction import OperatorProfile, Prediction
from ipu_results.errors import InconsistentModelError, UnrecognisedModelError

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
    step = profile.step
    start = profile.start
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
    old = _index(before)
    new = _index(after)
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
        name = tuple(record.get(key) for key in KEYS)
        number = 1
        while (*name, number) in index:
            number += 1
        index[(*name, number)] = record
    return index
