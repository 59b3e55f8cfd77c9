"""The runner's benchmarks judge correctly. How fast anything is, is never tested."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from ipu_results.runner.estimate import Block, Kind, Stamps

from benchmarks.report import Report, format_report
from benchmarks.runner import overhead, real_sweeps
from benchmarks.runner.common import (
    LoopMean,
    average_loop,
    contains_value,
    is_misleading,
)
from benchmarks.runner.competitor import compute_block_share, run_competitor
from benchmarks.runner.real_sweeps import (
    SweepTrial,
    compute_quiet_ms,
    count_marked,
    find_best_probe,
    judge_trial,
)

MS, S = 1_000_000, 1_000_000_000


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPU_RESULTS_LOCKS", str(tmp_path / "locks"))


def stamped(start: int, *ends: int) -> tuple[Stamps, ...]:
    """Return iterations without a gap between them."""
    return tuple(
        (begin, begin, begin, end, end)
        for begin, end in zip((start, *ends[:-1]), ends, strict=True)
    )


def block(
    start_s: float, ms: Sequence[int], kind: Kind = "amortised", number: int = 0, **seen: Any
) -> Block:
    """One session with a batch of two, from this second on, an iteration for each of these
    milliseconds.
    """
    start = int(start_s * S)
    ends = [start + sum(ms[: at + 1]) * MS for at in range(len(ms))]
    return Block(number, number, 2, kind, "", (stamped(start, *ends),), **seen)


def run_loop(ms: int = 100) -> tuple[tuple[Stamps, ...], ...]:
    """Run ten iterations at this pace, every other one 2 ms longer."""
    return block(0.0, [ms + 2 * (number % 2) for number in range(10)]).stamps


def quiet_blocks(ms: int = 100) -> list[Block]:
    """Six rounds of ten iterations of this time, one second after the other for 100 ms."""
    return [
        block(float(number), [ms] * 10, number=number, probe_ms=(5.0, 5.0)) for number in range(6)
    ]


def check_report(report: Report) -> None:
    for table in report.tables:
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert all(f"- {target.format_line()}" in format_report(report) for target in report.targets)


# the harness


def test_target_is_what_the_loop_adds() -> None:
    subject = overhead.LoopSubject("trivial", overhead.TrivialSession(), None, 1, overhead.READ)
    times = {overhead.RUN: [1.0, 1.0], overhead.READ: [3.0, 3.0], overhead.LOOP: [3.5, 4.5]}
    result = overhead.build_target(subject, times)
    assert (result.value, result.limit, result.met) == (1.0, 1.0, True)
    rows = {row[0]: row for row in overhead.tabulate_ways(subject, times).rows}
    assert (rows[overhead.LOOP][2], rows[overhead.LOOP][5]) == (3.0, 1.0)


# the competitor


def test_block_lasts_from_the_first_start_to_the_last_end_of_all_sessions() -> None:
    own = Block(0, 0, 2, "amortised", "", (stamped(10, 20, 30), stamped(12, 50)))
    assert compute_block_share(own, [(0, 20)]) == 0.25
    assert compute_block_share(own, [(40, 90)]) == 0.25


def test_competitor_reports_its_spells_and_is_not_our_process() -> None:
    before = time.perf_counter_ns()
    with run_competitor(3, speedup=1000.0) as spells:
        assert not any(
            "runner.competitor" in " ".join(own.cmdline())
            for own in psutil.Process().children(True)
        )
        time.sleep(0.2)
        assert spells == []
    after = time.perf_counter_ns()
    ends = [moment for spell in spells for moment in spell]
    assert ends
    assert ends == sorted(ends)
    assert before < ends[0]
    assert ends[-1] < after


# other ways of measuring


def test_naive_mean_counts_every_iteration_of_every_session() -> None:
    # 1, 3, 2 and 4 ms
    mean = average_loop((stamped(5, 5 + MS, 5 + 4 * MS), stamped(7, 7 + 2 * MS, 7 + 6 * MS)))
    assert mean.mean_ms == 2.5
    assert mean.error_ms == pytest.approx(1.96 * math.sqrt(5 / 3) / 2)
    assert LoopMean(2.5, 0.5).contains(3.0)
    assert not LoopMean(2.5, 0.5).contains(3.01)


# the verdict on the real machine


def test_quiet_value_leaves_out_what_a_competitor_touched() -> None:
    blocks = [
        *quiet_blocks(100)[:5],
        block(5.0, [200] * 10, number=5),
        block(8.0, [150] * 3, "isolated", 6),
    ]
    result = judge_trial(True, blocks, run_loop(), [(5 * S, 6 * S), (7 * S, int(7.5 * S))])
    assert result.shares == [0, 0, 0, 0, 0, 0.5, 0]
    assert compute_quiet_ms([result]) == pytest.approx(100)
    assert compute_quiet_ms([result], "isolated") == pytest.approx(150)


def test_blocks_are_counted_by_what_is_known_of_them() -> None:
    slow = [block(float(number), [120] * 10, number=number, foreign_cpu=0.5) for number in (6, 8)]
    blocks = [*quiet_blocks(100), slow[0], slow[1]]
    result = judge_trial(True, blocks, run_loop(), [(6 * S, 7 * S), (int(2.95 * S), int(3.05 * S))])
    assert result.marked == [False] * 6 + [True] * 2
    counts = list(count_marked([result]).values())
    # at work, at work but less, not at work, not at work and slow all the same, slow
    assert counts == [(1, 1), (2, 0), (5, 1), (1, 1), (2, 2)]


def test_probe_from_an_earlier_sweep_marks_blocks() -> None:
    assert not any(judge_trial(False, quiet_blocks(), run_loop(), []).marked)
    result = judge_trial(False, quiet_blocks(), run_loop(), [], best_probe_ms=3.0)
    assert all(result.marked)
    assert result.row.suspect
    assert find_best_probe([result]) == 5.0
    assert find_best_probe([]) is None


def try_sweep(ms: int, competitor: bool = False, **seen: Any) -> SweepTrial:
    """Judge a sweep at this pace throughout, with a little spread."""
    blocks = [
        block(
            10.0 * number, [ms + number % 2] * 10, number=number, **{"probe_ms": (5.0, 5.0), **seen}
        )
        for number in range(6)
    ]
    return judge_trial(competitor, blocks, run_loop(ms), [(0, 100 * S)] if competitor else [])


def test_sweep_misleads_when_it_is_off_and_does_not_say_so() -> None:
    row = try_sweep(100).row
    assert contains_value(row, 100.5)
    assert not is_misleading(row, 100.5)
    assert not is_misleading(row, 104)  # not off by 5 %
    assert is_misleading(row, 120)
    assert not is_misleading(try_sweep(100, foreign_cpu=0.5).row, 120)  # suspect


def test_targets_count_what_misleads_and_what_was_caught() -> None:
    result = [
        try_sweep(100),
        try_sweep(100),
        try_sweep(130),
        try_sweep(140, competitor=True, foreign_cpu=0.4),
        try_sweep(100),
    ]
    report = real_sweeps.build_report(result, 2)
    check_report(report)
    assert [(own.value, own.met) for own in report.targets] == [(1, False), (100.0, True)]
    lines = {row[0]: row[1:] for row in report.tables[1].rows}
    assert (lines["sweep, competitor"][0], lines["sweep, competitor"][-2:]) == (1, (0, 1))
    assert lines["naive loop, no competitor"][-2] == 3  # 130 ± 1 is not 100.5
    assert any(note.startswith("Sweep 3 is suspect: ") for note in report.notes)
