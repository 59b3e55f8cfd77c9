"""The runner's benchmarks judge correctly. How fast anything is, is never tested."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import psutil
import pytest
from ipu_results.runner.estimate import Block, Kind, Stamps

from benchmarks.report import format_report
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
    iterations: list[Stamps] = []
    for end in ends:
        iterations.append((start, start, start, end, end))
        start = end
    return tuple(iterations)


def block(
    start_s: float, ms: Sequence[int], kind: Kind = "amortised", number: int = 0, **seen: Any
) -> Block:
    """One session with a batch of two, from this second on, an iteration for each of these
    milliseconds.
    """
    start = int(start_s * S)
    ends = [start + done * MS for done in accumulate(ms)]
    return Block(number, number, 2, kind, "", (stamped(start, *ends),), **seen)


def run_loop(ms: int = 100) -> tuple[tuple[Stamps, ...], ...]:
    """Run ten iterations at this pace, every other one 2 ms longer."""
    return block(0.0, [ms + 2 * (number % 2) for number in range(10)]).stamps


def quiet_blocks(ms: int = 100) -> list[Block]:
    """Six rounds of ten iterations of this time, one second after the other for 100 ms."""
    blocks = []
    for number in range(6):
        blocks.append(block(number, [ms] * 10, number=number, probe_ms=(5.0, 5.0)))
    return blocks


# the harness


def test_target_is_what_the_loop_adds() -> None:
    subject = overhead.LoopSubject("trivial", overhead.TrivialSession(), None, 1, overhead.READ)
    times = {overhead.RUN: [1.0, 1.0], overhead.READ: [3.0, 3.0], overhead.LOOP: [3.5, 4.5]}
    result = overhead.build_target(subject, times)
    assert result.value == result.limit == 1.0
    assert result.met
    rows = {row[0]: row for row in overhead.tabulate_ways(subject, times).rows}
    loop = rows[overhead.LOOP]
    assert (loop[2], loop[5]) == (3.0, 1.0)


# the competitor


def test_block_lasts_from_the_first_start_to_the_last_end_of_all_sessions() -> None:
    own = Block(0, 0, 2, "amortised", "", (stamped(10, 20, 30), stamped(12, 50)))
    assert compute_block_share(own, [(0, 20)]) == 0.25
    assert compute_block_share(own, [(40, 90)]) == 0.25


def test_competitor_reports_its_spells_and_is_not_our_process() -> None:
    before = time.perf_counter_ns()
    with run_competitor(3, speedup=1000.0) as spells:
        for child in psutil.Process().children(recursive=True):
            assert "runner.competitor" not in " ".join(child.cmdline())
        time.sleep(0.2)
        assert spells == []
    after = time.perf_counter_ns()
    moments = [before]
    for spell in spells:
        moments += spell
    moments.append(after)
    assert len(moments) > 2
    assert moments == sorted(moments)


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
    touched = block(5.0, [200] * 10, number=5)
    isolated = block(8.0, [150] * 3, "isolated", 6)
    blocks = [*quiet_blocks(100)[:5], touched, isolated]
    spells = [(5 * S, 6 * S), (7 * S, int(7.5 * S))]
    result = judge_trial(True, blocks, run_loop(), spells)
    assert result.shares == [0, 0, 0, 0, 0, 0.5, 0]
    assert compute_quiet_ms([result]) == pytest.approx(100)
    assert compute_quiet_ms([result], "isolated") == pytest.approx(150)


def test_blocks_are_counted_by_what_is_known_of_them() -> None:
    blocks = quiet_blocks(100)
    for number in (6, 8):
        blocks.append(block(number, [120] * 10, number=number, foreign_cpu=0.5))
    spells = [(6 * S, 7 * S), (int(2.95 * S), int(3.05 * S))]
    result = judge_trial(True, blocks, run_loop(), spells)
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
    seen = {"probe_ms": (5.0, 5.0), **seen}
    blocks = []
    for number in range(6):
        blocks.append(block(10 * number, [ms + number % 2] * 10, number=number, **seen))
    spells = [(0, 100 * S)] if competitor else []
    return judge_trial(competitor, blocks, run_loop(ms), spells)


def test_sweep_misleads_when_it_is_off_and_does_not_say_so() -> None:
    row = try_sweep(100).row
    assert contains_value(row, 100.5)
    assert not is_misleading(row, 100.5)
    assert not is_misleading(row, 104)  # not off by 5 %
    assert is_misleading(row, 120)
    assert not is_misleading(try_sweep(100, foreign_cpu=0.5).row, 120)  # suspect


def test_targets_count_what_misleads_and_what_was_caught() -> None:
    good = try_sweep(100)
    disturbed = try_sweep(140, competitor=True, foreign_cpu=0.4)
    report = real_sweeps.build_report([good, good, try_sweep(130), disturbed, good], 2)
    misleading, caught = report.targets
    assert (misleading.value, misleading.met) == (1, False)
    assert (caught.value, caught.met) == (100.0, True)
    text = format_report(report)
    for target in report.targets:
        assert f"- {target.format_line()}" in text
    lines = {row[0]: row[1:] for row in report.tables[1].rows}
    with_competitor = lines["sweep, competitor"]
    assert with_competitor[0] == 1
    assert with_competitor[-2:] == (0, 1)
    assert lines["naive loop, no competitor"][-2] == 3  # 130 ± 1 is not 100.5
    assert any(note.startswith("Sweep 3 is suspect: ") for note in report.notes)
