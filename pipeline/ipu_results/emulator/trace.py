"""Write a prediction as a trace for Perfetto or chrome://tracing, in the Trace Event Format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ipu_results.emulator.prediction import Prediction
from ipu_results.emulator.profile import OperatorProfile

US = 1e6  # the format counts microseconds
CHIP, HOST = 1, 2  # process ids
TRACKS = {"compute": (CHIP, 1), "exchange": (CHIP, 2), "sync": (CHIP, 3), "host": (HOST, 4)}


def build_trace(prediction: Prediction, profiles: Sequence[OperatorProfile], model: str) -> dict[str, Any]:
    """Return the trace of one batch on one chip: each operator's sync, exchange and compute, one after another.

    The durations of the three chip tracks add up to `device_ms`. The host track has what a batch takes beyond the chip.
    A counter has the bytes of the live activations.
    """
    events = [*_name_tracks(prediction, model)]
    for profile in profiles:
        events += _trace_operator(profile)
    host = prediction.timing.protocol
    if host > 0:
        name = f"host path {prediction.protocol}"
        events.append(_make_event(name, "host", prediction.timing.device, host, {"protocol": prediction.protocol}))
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
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": track, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": process, "tid": track, "args": {"sort_index": track}}


def _trace_operator(profile: OperatorProfile) -> Iterator[dict[str, Any]]:
    step, start = profile.step, profile.start
    counters = {"live activations": profile.live_bytes, "fullest tile": profile.tile_bytes}
    for name, value in counters.items():
        yield {"ph": "C", "name": f"memory, {name}", "pid": CHIP, "tid": 0, "ts": start * US, "args": {"bytes": value}}
    details = {
        "kind": step.kind,
        "vertex": step.plan.vertex if step.plan else None,
        "supersteps": step.supersteps,
        "macs": step.macs,
        "peak_share": profile.peak_share,
        "energy_j": profile.energy_j,
    }
    for track, seconds in (("sync", profile.sync), ("exchange", profile.exchange), ("compute", profile.compute)):
        if seconds > 0:
            yield _make_event(step.name, track, start, seconds, details)
        start += seconds


def _make_event(name: str, track: str, start: float, seconds: float, details: dict[str, Any]) -> dict[str, Any]:
    process, thread = TRACKS[track]
    times = {"ts": start * US, "dur": seconds * US}
    return {"ph": "X", "name": name, "cat": track, "pid": process, "tid": thread, **times, "args": details}
