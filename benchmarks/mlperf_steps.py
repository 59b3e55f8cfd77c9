"""Reading the logs of a round in this process: plainly, and step by step the way `ipu-results mlperf` does."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Iterator

import msgspec
from ipu_results.mlperf.entries import Inventory
from ipu_results.mlperf.log import MARK, decode_line, extract_marked, read_log, split_blocks
from ipu_results.mlperf.records import entry_record, format_scores
from ipu_results.mlperf.round import score_tree, take_inventory
from ipu_results.mlperf.rules import load_rules
from ipu_results.mlperf.tree import LocalTree

from benchmarks.child import Step


def plainly(logs: str, decoder: str) -> Iterator[Step]:
    """Every MLLOG line of the files that `logs` names decoded to a dict, and nothing done with it."""
    decoded: Callable[[bytes], object] = json.loads if decoder == "json" else msgspec.json.Decoder().decode
    with open(logs, encoding="utf-8") as file:
        paths = file.read().split("\0")[:-1]
    lines = broken = 0
    for path in paths:
        with open(path, "rb") as log:
            for line in log:
                at = line.rfind(MARK)
                if at >= 0:
                    lines += 1
                    try:
                        decoded(line[at + len(MARK) :])
                    except ValueError:
                        broken += 1
    yield {"files": len(paths), "lines": lines, "broken": broken}


def stepwise(root: str, repeats: int) -> Iterator[Step]:
    """Each step does all that the one before does and one thing more; of its runs the one of least processor time."""
    tree = LocalTree(root)
    steps: dict[str, Callable[[LocalTree], object]] = {
        "list the tree": _list_entries,
        "read the bytes": _read,
        "split off the marked lines": _split,
        "decode each line": _decode,
        "read the logs": _read_logs,
        "score, with systems/*.json": _score,
        "write the JSON": _write,
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in steps}
    for _ in range(repeats):
        for name, step in steps.items():
            taken[name].append(_timed(step, tree))
    for name, runs in taken.items():
        cpu, system = min(runs)
        yield {"step": name, "cpu": cpu, "system": system}


def _timed(step: Callable[[LocalTree], object], tree: LocalTree) -> tuple[float, float]:
    """Processor time, of which in the system; unlike wall time it hardly changes with other load."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    step(tree)
    after = resource.getrusage(resource.RUSAGE_SELF)
    system = after.ru_stime - before.ru_stime
    return after.ru_utime - before.ru_utime + system, system


def _list_entries(tree: LocalTree) -> Inventory:
    return take_inventory(tree.listing(), load_rules(), tree.name)


def _each_log(tree: LocalTree) -> Iterator[Iterator[bytes]]:
    for entry in _list_entries(tree).entries:
        for name in entry.logs:
            yield tree.chunks(f"{entry.full_path}/{name}")


def _read(tree: LocalTree) -> None:
    for chunks in _each_log(tree):
        for _ in chunks:
            pass


def _split(tree: LocalTree) -> None:
    for chunks in _each_log(tree):
        for _, block in split_blocks(chunks):
            extract_marked(block)


def _decode(tree: LocalTree) -> int:
    broken = 0
    for chunks in _each_log(tree):
        for _, block in split_blocks(chunks):
            for text in extract_marked(block):
                try:
                    decode_line(text)
                except ValueError:
                    broken += 1
    return broken


def _read_logs(tree: LocalTree) -> None:
    for chunks in _each_log(tree):
        read_log(chunks)


def _score(tree: LocalTree) -> None:
    score_tree(tree)


def _write(tree: LocalTree) -> None:
    format_scores("json", "mlperf_entries", [entry_record(entry) for entry in score_tree(tree).entries])
