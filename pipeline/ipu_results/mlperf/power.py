"""Read the power logs of one training run.

The folder `power/<log without .txt>` of an entry has one `node_*.txt` per node and one `sw_*.txt`
per switch. The rule is that of mlperf-logging's result summarizer: mean power between start and
stop, times the conversion efficiency.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ipu_results.mlperf.log import (
    RunPower,
    describe_error,
    extract_marked,
    is_number,
    parse_object,
    split_blocks,
)

NODE, SWITCH = "node_", "sw_"
START, STOP, READING = "power_measurement_start", "power_measurement_stop", "power_reading"
EFFICIENCY, ESTIMATE = "conversion_eff", "interconnect_power_est"


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
    return RunPower(total) if nodes else RunPower(problem="has no power log of a node")


def measure_node(chunks: Iterable[bytes]) -> float:
    """Return the mean power of a node in watts.

    Raises ValueError where the log does not give it, OSError.
    """
    start = stop = previous = last = None
    joules_ms = 0.0
    efficiency = 1.0
    for time_ms, key, value in sorted(_read_lines(chunks), key=lambda line: line[0]):
        if key == START:
            start = previous = time_ms
        elif key == READING and stop is None and previous is not None:
            joules_ms += _to_number(value, key) * (time_ms - previous)
            previous = last = time_ms
        elif key == STOP:
            stop = time_ms
        elif key == EFFICIENCY:
            efficiency = _to_number(value, key)
    if start is None:
        raise ValueError(f"has no {START}")
    end = last if stop is None else stop
    if end is None or end <= start:
        raise ValueError(
            f"its {STOP} is not after its {START}" if stop is not None else f"has no {READING}"
        )
    return efficiency * joules_ms / (end - start)


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
            yield (
                _to_number(fields.get("time_ms"), "time_ms"),
                str(fields.get("key")),
                fields.get("value"),
            )


def _to_number(value: Any, name: str) -> float:
    if not is_number(value) or not math.isfinite(value):
        raise ValueError(f"{name} is not a number: {str(value)[:40]!r}")
    return float(value)
