"""Read the logs of a round in this process: line by line, and step by step as `ipu-results mlperf` does."""

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

from benchmarks.processes import Step, take_turns


def decode_all_lines(logs: str, decoder: str) -> Iterator[Step]:
    """Decode every MLLOG line of the files listed in `logs`, each with a zero byte behind it, and drop the result."""
    decode: Callable[[bytes], object] = json.loads if decoder == "json" else msgspec.json.Decoder().decode
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
                        decode(line[at + len(MARK) :])
                    except ValueError:
                        broken += 1
    yield {"files": len(paths), "lines": lines, "broken": broken}


def read_stepwise(root: str, rounds: int) -> Iterator[Step]:
    """Measure steps that each do all that the one before does and one thing more.

    Processor time and its part in the system are the minimum over the rounds: other load hardly changes them.
    """
    tree = LocalTree(root)
    steps: dict[str, Callable[[], object]] = {
        "list the tree": lambda: _list_entries(tree),
        "read the bytes": lambda: _read(tree),
        "split off the marked lines": lambda: _split(tree),
        "decode each line": lambda: _decode(tree),
        "read the logs": lambda: _read_logs(tree),
        "score, with systems/*.json": lambda: score_tree(tree),
        "write the JSON": lambda: _write(tree),
    }
    ways = {name: _time_step(step) for name, step in steps.items()}
    for name, times in take_turns(ways, rounds).items():
        cpu, system = min(times)
        yield {"step": name, "cpu": cpu, "system": system}


def _time_step(step: Callable[[], object]) -> Callable[[], tuple[float, float]]:
    def measure() -> tuple[float, float]:
        before = resource.getrusage(resource.RUSAGE_SELF)
        step()
        after = resource.getrusage(resource.RUSAGE_SELF)
        system = after.ru_stime - before.ru_stime
        return after.ru_utime - before.ru_utime + system, system

    return measure


def _list_entries(tree: LocalTree) -> Inventory:
    return take_inventory(tree.listing(), load_rules(), tree.name)


def _open_logs(tree: LocalTree) -> Iterator[Iterator[bytes]]:
    for entry in _list_entries(tree).entries:
        for name in entry.logs:
            yield tree.chunks(f"{entry.full_path}/{name}")


def _read(tree: LocalTree) -> None:
    for chunks in _open_logs(tree):
        for _ in chunks:
            pass


def _split(tree: LocalTree) -> None:
    for chunks in _open_logs(tree):
        for _, block in split_blocks(chunks):
            extract_marked(block)


def _decode(tree: LocalTree) -> int:
    broken = 0
    for chunks in _open_logs(tree):
        for _, block in split_blocks(chunks):
            for text in extract_marked(block):
                try:
                    decode_line(text)
                except ValueError:
                    broken += 1
    return broken


def _read_logs(tree: LocalTree) -> None:
    for chunks in _open_logs(tree):
        read_log(chunks)


def _write(tree: LocalTree) -> None:
    format_scores("json", "mlperf_entries", [entry_record(entry) for entry in score_tree(tree).entries])
