"""The runner's benchmarks judge correctly. How fast anything is, is never tested."""

from __future__ import annotations

from benchmarks.runner import overhead


def test_target_is_what_the_loop_adds() -> None:
    subject = overhead.LoopSubject("trivial", overhead.TrivialSession(), None, 1, overhead.READ)
    times = {overhead.RUN: [1.0, 1.0], overhead.READ: [3.0, 3.0], overhead.LOOP: [3.5, 4.5]}
    result = overhead.build_target(subject, times)
    assert (result.value, result.limit, result.met) == (1.0, 1.0, True)
    rows = {row[0]: row for row in overhead.tabulate_ways(subject, times).rows}
    assert (rows[overhead.LOOP][2], rows[overhead.LOOP][3]) == (3.0, 1.0)
