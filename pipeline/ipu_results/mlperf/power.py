"""Read the power logs of one training run.

The folder `power/<log without .txt>` of an entry has one `node_*.txt` per node and one `sw_*.txt`
per switch. The rule is that of mlperf-logging's result summarizer: mean power between start and
stop, times the conversion efficiency.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from ipu_results.mlperf.log import (
    RunPower,
    describe_error,
    extract_marked,
    is_number,
    parse_object,
    split_blocks,
)

# how the names of files begin
NODE = "node_"
SWITCH = "sw_"
# keys of the lines
START = "power_measurement_start"
STOP = "power_measurement_stop"
READING = "power_reading"
EFFICIENCY = "conversion_eff"
ESTIMATE = "interconnect_power_est"


def read_power(files: Mapping[str, Iterable[bytes]]) -> RunPower:
    """Add up the files of one run, given by name; a file that cannot be read leaves the power
    unknown.
    """
    total = 0.0
    nodes = 0
    for name, chunks in files.items():
        try:
            if name.startswith(NODE):
                nodes += 1
                total += measure_node(chunks)
            elif name.startswith(SWITCH):
                total += estimate_switch(chunks)
        except (OSError, ValueError) as error:
            return RunPower(problem=f"{name}: {describe_error(error)}")
    if not nodes:
        return RunPower(problem="has no power log of a node")
    return RunPower(total)


def measure_node(chunks: Iterable[bytes]) -> float:
    """Return the mean power of a node in watts.

    Raises ValueError where the log does not give it, OSError.
    """
    start: float | None = None
    stop: float | None = None
    last: float | None = None
    previous = 0.0
    energy = 0.0  # in watts times milliseconds
    efficiency = 1.0  # where the log names none, as in the official rule
    for time_ms, key, value in sorted(_read_lines(chunks), key=itemgetter(0)):
        if key == START:
            start = time_ms
            previous = time_ms
        # a reading is of the time since the one before
        elif key == READING and stop is None and start is not None:
            energy += _to_number(value, key) * (time_ms - previous)
            previous = time_ms
            last = time_ms
        elif key == STOP:
            stop = time_ms
        elif key == EFFICIENCY:
            efficiency = _to_number(value, key)
    if start is None:
        raise ValueError(f"has no {START}")
    if stop is not None and stop <= start:
        raise ValueError(f"its {STOP} is not after its {START}")
    end = last if stop is None else stop
    if end is None or end <= start:
        raise ValueError(f"has no {READING}")
    return efficiency * energy / (end - start)


def estimate_switch(chunks: Iterable[bytes]) -> float:
    """Return the estimated power of a switch in watts; 0 without an estimate, as in the official
    rule.
    """
    efficiency = 1.0
    for _, key, value in _read_lines(chunks):
        if key == EFFICIENCY:
            efficiency = _to_number(value, key)
        elif key == ESTIMATE:
            return efficiency * _to_number(value, key)
    return 0.0


def _read_lines(chunks: Iterable[bytes]) -> Iterator[tuple[float, str, Any]]:
    """Yield time, key and value of each line. Raises ValueError for one that is broken."""
    for _, block in split_blocks(chunks):
        for text in extract_marked(block):
            fields = parse_object(text)
            time_ms = _to_number(fields.get("time_ms"), "time_ms")
            yield time_ms, str(fields.get("key")), fields.get("value")


def _to_number(value: Any, name: str) -> float:
    if not is_number(value) or not math.isfinite(value):
        raise ValueError(f"{name} is not a number: {str(value)[:40]!r}")
    return float(value)
