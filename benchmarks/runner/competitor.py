"""A process that takes one core for seconds at a time and tells when: `python -m benchmarks.runner_competitor SEED`.

It belongs to no one's family, as a stranger's process does; a sweep does not count its own descendants as foreign.
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

from ipu_results.runner.blocks import Block

from benchmarks.child import ROOT

Spell = tuple[int, int]  # ns of the clock that all processes of a machine share

BUSY_S, IDLE_S = (1.0, 4.0), (2.0, 8.0)  # from and to
WORK = 0.1  # of a block's time: a core taken for that long is 5 % of a machine of two


def share(spells: Sequence[Spell], start: int, end: int) -> float:
    """The part of a window in which the competitor was at work."""
    return sum(max(0, min(last, end) - max(first, start)) for first, last in spells) / (end - start)


def share_of(block: Block, spells: Sequence[Spell]) -> float:
    """The part of the time from a block's first start to its last end."""
    starts, ends = (session[0][0] for session in block.stamps), (session[-1][-1] for session in block.stamps)
    return share(spells, min(starts), max(ends))


@contextmanager
def competing(seed: int | None, shorter: float = 1.0) -> Iterator[list[Spell]]:
    """A competitor beside the block, none where the seed is None. Its spells are told when the block ends."""
    spells: list[Spell] = []
    if seed is None:
        yield spells
        return
    command = [sys.executable, "-m", __name__, str(seed), str(shorter)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()  # it is there
    process.wait()
    try:
        yield spells
    finally:
        process.stdin.close()
        for line in process.stdout:
            first, last = map(int, line.split())
            spells.append((first, last))
        process.stdout.close()


def main() -> None:
    seed, shorter = int(sys.argv[1]), float(sys.argv[2])
    if os.fork():
        os._exit(0)
    os.setsid()
    print("here", flush=True)
    stop, draw = Event(), random.Random(seed)

    def listen() -> None:
        sys.stdin.read()
        stop.set()

    Thread(target=listen, daemon=True).start()
    while not stop.wait(draw.uniform(*IDLE_S) / shorter):
        start = now = time.perf_counter_ns()
        until = start + int(draw.uniform(*BUSY_S) / shorter * 1e9)
        while now < until and not stop.is_set():
            now = time.perf_counter_ns()
        print(start, now, flush=True)


if __name__ == "__main__":
    main()
