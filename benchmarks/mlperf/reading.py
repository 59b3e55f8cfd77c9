"""Decode the logs of a round line by line: the plainest way to read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import msgspec
from ipu_results.mlperf.log import MARK

from benchmarks.processes import Step


def decode_all_lines(logs: str, decoder: str) -> Iterator[Step]:
    """Decode every MLLOG line of the files listed in `logs`, each with a zero byte behind it, and
    drop the result.
    """
    decode: Callable[[bytes], object] = (
        json.loads if decoder == "json" else msgspec.json.Decoder().decode
    )
    with open(logs, encoding="utf-8") as file:
        paths = file.read().split("\0")[:-1]
    lines = broken = 0
    for path in paths:
        with open(path, "rb") as log:
            for line in log:
                at = line.rfind(MARK)
                if at < 0:
                    continue
                lines += 1
                try:
                    decode(line[at + len(MARK) :])
                except ValueError:
                    broken += 1
    yield {"files": len(paths), "lines": lines, "broken": broken}
