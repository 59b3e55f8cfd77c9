"""Reading the logs of a round in this process: plainly, and step by step the way `ipu-results mlperf` does."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from statistics import median

from benchmarks.child import Step
from pipeline.mlperf.layout import Plan
from pipeline.mlperf.lines import blocks, decode, marked
from pipeline.mlperf.log import read_log
from pipeline.mlperf.output import as_bytes
from pipeline.mlperf.records import entry_record
from pipeline.mlperf.rules import rules
from pipeline.mlperf.scoring import in_processes, planned, score_tree
from pipeline.mlperf.tree import LocalTree

PLAIN_MARK = ":::MLLOG "


def plainly(logs: str) -> Iterator[Step]:
    """json.loads of every MLLOG line of the files that `logs` names, and nothing done with it."""
    with open(logs, encoding="utf-8") as file:
        paths = file.read().split("\0")[:-1]
    lines = broken = 0
    for path in paths:
        with open(path, encoding="latin-1") as file:
            for line in file:
                at = line.rfind(PLAIN_MARK)
                if at >= 0:
                    lines += 1
                    try:
                        json.loads(line[at + len(PLAIN_MARK) :])
                    except ValueError:
                        broken += 1
    yield {"files": len(paths), "lines": lines, "broken": broken}


def stepwise(root: str, repeats: int) -> Iterator[Step]:
    """Each step does all that the one before does and one thing more."""
    tree = LocalTree(root)
    steps: dict[str, Callable[[LocalTree], object]] = {
        "list the tree": _planned,
        "read the bytes": _read,
        "split off the marked lines": _split,
        "decode each line": _decoded,
        "fold lines into logs": _logs,
        "score, with systems/*.json": _scored,
        "write the JSON": _written,
    }
    for name, step in steps.items():
        taken = [_timed(step, tree) for _ in range(repeats)]
        seconds, user, system = (median(column) for column in zip(*taken, strict=True))
        yield {"step": name, "seconds": seconds, "user": user, "system": system}


def _timed(step: Callable[[LocalTree], object], tree: LocalTree) -> tuple[float, float, float]:
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    step(tree)
    taken, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    return taken, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime


def _planned(tree: LocalTree) -> Plan:
    return planned(tree.listing(), rules(), tree.name)


def _each_log(tree: LocalTree) -> Iterator[Iterator[bytes]]:
    for entry in _planned(tree).entries:
        for name in entry.logs:
            yield tree.chunks(f"{entry.full_path}/{name}")


def _read(tree: LocalTree) -> None:
    for chunks in _each_log(tree):
        for _ in chunks:
            pass


def _split(tree: LocalTree) -> None:
    for chunks in _each_log(tree):
        for _, block in blocks(chunks):
            marked(block)


def _decoded(tree: LocalTree) -> None:
    for chunks in _each_log(tree):
        for _, block in blocks(chunks):
            for text in marked(block):
                with suppress(ValueError):
                    decode(text)


def _logs(tree: LocalTree) -> None:
    for chunks in _each_log(tree):
        read_log(chunks)


def _scored(tree: LocalTree) -> None:
    score_tree(tree, in_processes(1))


def _written(tree: LocalTree) -> None:
    as_bytes("json", [entry_record(one) for one in score_tree(tree, in_processes(1)).entries])
