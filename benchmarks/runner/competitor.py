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

# minimum and maximum
BUSY_S = (1.0, 4.0)
IDLE_S = (2.0, 8.0)


def compute_block_share(block: Block, spells: Sequence[Spell]) -> float:
    """Return the share of the time from a block's first start to its last end, over all sessions,
    in which the competitor was busy.
    """
    start = min(session[0][0] for session in block.stamps)
    end = max(session[-1][-1] for session in block.stamps)
    busy = 0
    for first, last in spells:
        busy += max(0, min(last, end) - max(first, start))
    return busy / (end - start)


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
        for line in process.stdout:
            first, last = line.split()
            spells.append((int(first), int(last)))
        process.stdout.close()


def main() -> None:
    """Detach, then alternate between idle and busy until standard input is closed."""
    draw = random.Random(int(sys.argv[1]))
    speedup = float(sys.argv[2])
    if os.fork():
        os._exit(0)
    os.setsid()
    print("started", flush=True)
    stop = Event()

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
