"""A process that keeps one core busy for seconds at a time and reports when: `-m
benchmarks.runner.competitor SEED`.

It detaches itself, as an unrelated process would be: a sweep does not count its own descendants as
foreign load.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread

from ipu_results.runner.estimate import NS, Block

from benchmarks.processes import ROOT

Spell = tuple[int, int]  # start and end in ns of the clock that all processes of a machine share

BUSY_S, IDLE_S = (1.0, 4.0), (2.0, 8.0)  # minimum and maximum


def compute_share(spells: Sequence[Spell], start: int, end: int) -> float:
    """Return the share of a time window in which the competitor was busy."""
    return sum(max(0, min(last, end) - max(first, start)) for first, last in spells) / (end - start)


def compute_block_share(block: Block, spells: Sequence[Spell]) -> float:
    """Return the share of the time from a block's first start to its last end, over all sessions."""
    starts = (session[0][0] for session in block.stamps)
    ends = (session[-1][-1] for session in block.stamps)
    return compute_share(spells, min(starts), max(ends))


@contextmanager
def run_competitor(seed: int | None, speedup: float = 1.0) -> Iterator[list[Spell]]:
    """Run a competitor, or none where the seed is None, and fill the list of its spells when it has
    ended.
    """
    spells: list[Spell] = []
    if seed is None:
        yield spells
        return
    command = [sys.executable, "-m", __name__, str(seed), str(speedup)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()  # its first line says that it has started
    process.wait()
    try:
        yield spells
    finally:
        process.stdin.close()
        spells += [(int(first), int(last)) for first, last in map(str.split, process.stdout)]
        process.stdout.close()


def main() -> None:
    """Detach, then alternate between idle and busy until standard input is closed."""
    seed, speedup = int(sys.argv[1]), float(sys.argv[2])
    if os.fork():
        os._exit(0)
    os.setsid()
    print("started", flush=True)
    stop, draw = Event(), random.Random(seed)

    def wait_for_end() -> None:
        sys.stdin.read()
        stop.set()

    Thread(target=wait_for_end, daemon=True).start()
    while not stop.wait(draw.uniform(*IDLE_S) / speedup):
        start = now = time.perf_counter_ns()
        until = start + int(draw.uniform(*BUSY_S) / speedup * NS)
        while now < until and not stop.is_set():
            now = time.perf_counter_ns()
        print(start, now, flush=True)


if __name__ == "__main__":
    main()
