"""The benchmarks of the runner run and judge rightly; how fast anything is, is never tested."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.runner.blocks import Block, Kind, Stamps
from ipu_results.runner.estimate import estimate

from benchmarks import runner, runner_compared, runner_configurations, runner_judged, runner_naive, runner_real
from benchmarks.__main__ import main
from benchmarks.options import Options
from benchmarks.report import Report, as_markdown, as_text
from benchmarks.runner_compared import BEST, BEST_FP32, PLAIN, TORCH, Compared, Contender, Scanned
from benchmarks.runner_competitor import competing, share, share_of
from benchmarks.runner_judged import Tried, judged
from benchmarks.runner_naive import Naive, mean_of, told
from benchmarks.runner_support import Stage, set_up, small_model

QUICK = Options(quick=True)
MS, S = 1_000_000, 1_000_000_000

SUMMARY = """
================================================
MLPerf Results Summary
================================================
SUT name : PySUT
Scenario : SingleStream
Mode     : PerformanceOnly
90.0th percentile latency (ns) : 12000000
Result is : VALID
  Min duration satisfied : Yes
Early Stopping Result:
 * Processed at least 64 queries (199).
 * Would discard 9 highest latency queries.
{early}
 * Not enough queries processed for 99.0th percentile
 early stopping estimate (would need to process at
 least 662 total queries).

Mean latency (ns)               : 11000000
50.00 percentile latency (ns)   : 10500000
"""
EARLY = " * Early stopping 90.0th percentile estimate: 13000000"


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPU_RESULTS_LOCKS", str(tmp_path / "locks"))


def stamped(start: int, *ends: int) -> tuple[Stamps, ...]:
    """Return iterations without a gap between them."""
    return tuple((begin, begin, begin, end, end) for begin, end in zip((start, *ends[:-1]), ends, strict=True))


def block(start_s: float, ms: Sequence[int], kind: Kind = "amortised", number: int = 0, **seen: Any) -> Block:
    """One session with a batch of two, from this second on, an iteration for each of these milliseconds."""
    start = int(start_s * S)
    ends = [start + sum(ms[: at + 1]) * MS for at in range(len(ms))]
    return Block(number, number, 2, kind, "", (stamped(start, *ends),), **seen)


def loop(mean_ms: float = 100.0, error_ms: float = 1.0) -> Naive:
    return Naive(mean_ms, error_ms, 0, S)


def quiet_blocks(ms: int = 100) -> list[Block]:
    """Six rounds of ten iterations of this time, one second after the other for 100 ms."""
    return [block(float(number), [ms] * 10, number=number, probe_ms=(5.0, 5.0)) for number in range(6)]


def shaped(report: Report) -> None:
    for table in report.tables:
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert as_text(report).startswith(f"{report.name}: ")
    assert all(f"- {target.line()}" in as_markdown(report) for target in report.targets)


def test_missing_interpreter_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--torch", "--loadgen"):
        with pytest.raises(SystemExit):
            main([option, "/nowhere/python"])
        assert "/nowhere/python is not there" in capsys.readouterr().err


# the harness


class Counting:
    clock = staticmethod(time.perf_counter_ns)

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def run(self, images: Any) -> Any:
        self.seen.append(images)
        return np.zeros((1, 3))


def test_every_way_runs_the_same_batch_the_same_number_of_times() -> None:
    session, images = Counting(), object()
    subject = runner.Subject("one", session, images, 7, runner.RUN)  # type: ignore[arg-type]
    for name, way in runner.ways_of(subject).items():
        session.seen.clear()
        assert way() > 0
        assert session.seen == [images] * 7, name


def test_target_is_what_the_loop_adds() -> None:
    subject = runner.Subject("one", runner.Trivial(), None, 1, runner.READ)
    times = {runner.RUN: [1.0, 1.0], runner.READ: [3.0, 3.0], runner.LOOP: [3.5, 4.5]}
    result = runner.target(subject, times)
    assert (result.value, result.limit, result.met) == (1.0, 1.0, True)
    rows = {row[0]: row for row in runner.table(subject, times).rows}
    assert (rows[runner.LOOP][2], rows[runner.LOOP][5]) == (3.0, 1.0)


# the competitor


@given(st.lists(st.integers(0, 40), max_size=8, unique=True), st.integers(0, 40), st.integers(1, 20))
def test_share_counts_every_tick_once(ends: list[int], start: int, length: int) -> None:
    ends = sorted(ends)[: len(ends) // 2 * 2]
    spells = list(zip(ends[::2], ends[1::2], strict=True))
    ticks = [any(first <= tick < last for first, last in spells) for tick in range(start, start + length)]
    assert share(spells, start, start + length) == sum(ticks) / length


def test_block_lasts_from_the_first_start_to_the_last_end_of_all_sessions() -> None:
    own = Block(0, 0, 2, "amortised", "", (stamped(10, 20, 30), stamped(12, 50)))
    assert share_of(own, [(0, 20)]) == 0.25
    assert share_of(own, [(40, 90)]) == 0.25


def test_competitor_reports_its_spells_and_is_not_our_process() -> None:
    before = time.perf_counter_ns()
    with competing(3, shorter=1000.0) as spells:
        assert not any("runner_competitor" in " ".join(own.cmdline()) for own in psutil.Process().children(True))
        time.sleep(0.2)
        assert spells == []
    after = time.perf_counter_ns()
    ends = [moment for spell in spells for moment in spell]
    assert ends
    assert ends == sorted(ends)
    assert before < ends[0]
    assert ends[-1] < after


# other ways of measuring


def test_naive_estimate_by_hand() -> None:
    mean, error = mean_of([1.0, 2.0, 3.0, 4.0])
    assert mean == 2.5
    assert error == pytest.approx(1.96 * math.sqrt(5 / 3) / 2)
    assert Naive(2.5, 0.5, 0, 1).holds(3.0)
    assert not Naive(2.5, 0.5, 0, 1).holds(3.01)


def test_naive_loop_counts_every_iteration() -> None:
    calls: list[tuple[float, int]] = []

    def run_stream(seconds: float, min_batches: int) -> tuple[tuple[Stamps, ...], ...]:
        calls.append((seconds, min_batches))
        return stamped(5, 5 + MS, 5 + 4 * MS), stamped(7, 7 + 2 * MS)

    pool: Any = SimpleNamespace(prepare=lambda *_: None, run_stream=run_stream)
    result = runner_naive.naive(pool, 2, 1.5)
    assert calls == [(1.5, 2)]
    assert result == Naive(2.0, pytest.approx(1.96 / math.sqrt(3)), 5, 5 + 4 * MS)


def test_loadgens_summary_is_read() -> None:
    result = told(SUMMARY.format(early=EARLY), stamped(0, 10 * MS, 19 * MS, 30 * MS))
    assert (result.mean_ms, result.p90_ms, result.median_ms, result.early_ms) == (11.0, 12.0, 10.5, 13.0)
    assert (result.valid, result.queries, result.inside_ms) == ("VALID", 3, 10.0)
    assert (result.start, result.end) == (0, 30 * MS)
    assert told(SUMMARY.format(early=" * Not enough queries."), stamped(0, MS)).early_ms is None


def test_complaint_of_loadgen_is_reported() -> None:
    wanting = SUMMARY.replace("is : VALID", "is : INVALID").replace("satisfied : Yes", "satisfied : NO")
    assert told(wanting.format(early=EARLY), stamped(0, MS)).valid == "INVALID: min duration"


STUB = """#!{python}
import pathlib, sys
_, _, out, seconds, expected = sys.argv
for _ in range(5):
    print("query", flush=True)
    assert sys.stdin.readline() == "done\\n"
pathlib.Path(out, "mlperf_log_summary.txt").write_text({summary!r})
"""


@pytest.mark.slow
def test_loadgen_runs_with_each_sweep(tmp_path: Path) -> None:
    stub = tmp_path / "python"
    stub.write_text(STUB.format(python=sys.executable, summary=SUMMARY.format(early=EARLY)))
    stub.chmod(0o755)
    report = runner_real.run(Options(quick=True, loadgen=stub))
    shaped(report)
    assert [row[-2:] for row in report.tables[1].rows] == [(5, "VALID")] * runner_real.QUICK_SWEEPS
    assert any(row[0] == "LoadGen's mean, competitor" for row in report.tables[2].rows)
    assert not any("left out" in note for note in report.notes)


@pytest.mark.slow
def test_interpreter_without_loadgen_is_reported(tmp_path: Path) -> None:
    stub = tmp_path / "python"
    stub.write_text(f"#!{sys.executable}\nimport sys\nsys.exit(3)\n")
    stub.chmod(0o755)
    with pytest.raises(RuntimeError, match="LoadGen ended with 3"):
        runner_real.run(Options(quick=True, loadgen=stub))


# the verdict on the real machine


def test_quiet_value_leaves_out_what_a_competitor_touched() -> None:
    blocks = [*quiet_blocks(100)[:5], block(5.0, [200] * 10, number=5), block(8.0, [150] * 3, "isolated", 6)]
    result = judged(True, blocks, loop(), None, [(5 * S, 6 * S), (7 * S, int(7.5 * S))])
    assert result.shares == [0, 0, 0, 0, 0, 0.5, 0]
    assert runner_judged.quiet_of([result]) == pytest.approx(100)
    assert runner_judged.quiet_of([result], "isolated") == pytest.approx(150)


def test_blocks_are_counted_by_what_is_known_of_them() -> None:
    slow = [block(float(number), [120] * 10, number=number, foreign_cpu=0.5) for number in (6, 8)]
    blocks = [*quiet_blocks(100), slow[0], slow[1]]
    result = judged(True, blocks, loop(), None, [(6 * S, 7 * S), (int(2.95 * S), int(3.05 * S))])
    assert result.marked == [False] * 6 + [True] * 2
    counts = list(runner_judged.counted([result]).values())
    # at work, at work but less, not at work, not at work and slow all the same, slow
    assert counts == [(1, 1), (2, 0), (5, 1), (1, 1), (2, 2)]


def test_probe_from_an_earlier_sweep_marks_blocks() -> None:
    assert not any(judged(False, quiet_blocks(), loop(), None, []).marked)
    result = judged(False, quiet_blocks(), loop(), None, [], best_probe_ms=3.0)
    assert all(result.marked)
    assert result.row.suspect
    assert runner_real.best_of([result]) == 5.0
    assert runner_real.best_of([]) is None


def tried(ms: int, competitor: bool = False, **seen: Any) -> Tried:
    """Judge a sweep at this pace throughout, with a little spread."""
    blocks = [
        block(10.0 * number, [ms + number % 2] * 10, number=number, **{"probe_ms": (5.0, 5.0), **seen})
        for number in range(6)
    ]
    return judged(competitor, blocks, loop(ms), None, [(0, 100 * S)] if competitor else [])


def test_sweep_misleads_when_it_is_off_and_does_not_say_so() -> None:
    assert tried(100).holds(100.5)
    assert not tried(100).misleads(100.5)
    assert not tried(100).misleads(104)  # not off by 5 %
    assert tried(100).misleads(120)
    assert not tried(100, foreign_cpu=0.5).misleads(120)  # suspect


def test_targets_count_what_misleads_and_what_was_caught() -> None:
    result = [tried(100), tried(100), tried(130), tried(140, competitor=True, foreign_cpu=0.4), tried(100)]
    report = runner_judged.reported(result, 2)
    shaped(report)
    assert [(own.value, own.met) for own in report.targets] == [(1, False), (100.0, True)]
    lines = {row[0]: row[1:] for row in report.tables[2].rows}
    assert (lines["sweep, competitor"][0], lines["sweep, competitor"][-2:]) == (1, (0, 1))
    assert lines["naive loop, no competitor"][-2] == 3  # 130 ± 1 is not 100.5
    assert any(note.startswith("Sweep 3 is suspect: ") for note in report.notes)


# configurations


def test_contenders_share_the_cores() -> None:
    result = runner_compared.contenders({"onnxruntime": ("fp32", "int8")}, (1, 2), 4, torch=True)
    tuned = [(own.precision, own.sessions, own.threads) for own in result if not own.plain]
    assert tuned[:4] == [("fp32", 1, 4), ("fp32", 1, 3), ("fp32", 2, 2), ("fp32", 2, 1)]
    assert len(tuned) == 8
    assert [own.name for own in result if own.plain] == [
        *("onnxruntime plain, 1 × all", "onnxruntime plain, 1 × all, serial"),
        *("torch plain, 1 × all", "torch plain, 1 × all, serial"),
    ]
    assert not any(own.backend == "torch" for own in runner_compared.contenders({}, (1,), 4, torch=False))


def scanned(backend: str, precision: str, throughput: float, plain: bool = False, batch: int = 2) -> Scanned:
    return Scanned(Contender(backend, precision, 1, 1, plain), batch, throughput, 1.0, precision, 1)


def test_fastest_of_each_sort_is_chosen() -> None:
    fast, fp32 = scanned("openvino", "int8", 9.0), scanned("openvino", "fp32", 5.0)
    plain, torch = scanned("onnxruntime", "fp32", 6.0, True, 8), scanned("torch", "fp32", 3.0, True)
    slower = [scanned("onnxruntime", "fp32", 4.0), scanned("onnxruntime", "fp32", 5.0, True), scanned("x", "int8", 8.0)]
    result = runner_compared.chosen([fast, *slower, fp32, plain, torch])
    assert result == [(BEST, fast), (BEST_FP32, fp32), (PLAIN, plain), (TORCH, torch)]
    assert runner_compared.chosen([plain]) == [(PLAIN, plain)]


def compared(name: str, own: Scanned, ms: Sequence[int]) -> Compared:
    blocks = [block(float(at), [pace] * 10, number=at) for at, pace in enumerate(ms)]
    return Compared(name, own, estimate(blocks), blocks)


def test_ratio_is_the_median_of_the_rounds_ratios() -> None:
    fast = compared(BEST, scanned("a", "int8", 1.0), [100, 100, 400])
    slow = compared(TORCH, scanned("b", "fp32", 1.0), [200, 300, 400])
    assert runner_compared.ratio(fast.blocks, slow.blocks) == pytest.approx(2.0)  # 2, 3 and 1
    assert runner_compared.ratio(slow.blocks, fast.blocks) == pytest.approx(0.5)


def test_targets_are_ratios_and_a_share_of_the_peak() -> None:
    some = [
        compared(BEST, scanned("openvino", "int8", 40.0), [50] * 6),
        compared(BEST_FP32, scanned("openvino", "fp32", 20.0), [100] * 6),
        compared(PLAIN, scanned("onnxruntime", "fp32", 20.0, True), [125] * 6),
        compared(TORCH, scanned("torch", "fp32", 10.0, True), [200] * 6),
    ]
    report = runner_compared.reported([own.scanned for own in some], some, [300.0, 400.0], 16e9)
    shaped(report)
    assert [own.value for own in report.targets] == pytest.approx([4.0, 2.5, 80.0])  # 20 img/s × 16 GFLOP of 400
    rows = {row[0]: row for row in report.tables[0].rows}
    assert rows[BEST][-3:-1] == pytest.approx((640.0, 160.0))
    assert rows[TORCH][8:10] == pytest.approx((1.0, 0.625))


@pytest.mark.slow
def test_refusing_backend_is_left_out_with_its_reason(tmp_path: Path) -> None:
    stage = set_up(small_model(tmp_path), ["fp32"], tmp_path, 2, 2)
    place = runner_configurations.Place(stage, tmp_path / "weights.npz", None)
    size = runner_configurations.Size((2,), (1,), 0.0, 1, 1, 0.0, 1, 8, 1, {"onnxruntime": ("bf16",)})
    result, left_out = runner_configurations.scan(place, size)
    assert {own.contender.plain for own in result} == {True}
    assert all(own.cosine == pytest.approx(1) for own in result)
    assert left_out
    assert all(line.startswith("onnxruntime bf16, 1 × ") and "has no bf16" in line for line in left_out)


def test_outputs_are_compared_in_the_order_in_which_images_are_dealt() -> None:
    reference = np.eye(4, dtype=np.float32)
    stage = Stage("", {}, {}, reference, reference)
    assert stage.agrees(reference, 1) == 1
    assert stage.agrees(reference[[0, 2, 1, 3]], 2) == 1
    assert stage.agrees(reference, 2) == 0


@pytest.mark.slow
@pytest.mark.skipif("TORCH_PYTHON" not in os.environ, reason="TORCH_PYTHON names no interpreter with torch")
def test_torch_computes_the_same_network() -> None:
    report = runner_configurations.run(Options(quick=True, torch=Path(os.environ["TORCH_PYTHON"])))
    cosines = {row[0]: row[-1] for row in report.tables[1].rows}
    assert cosines["torch plain, 1 × all"] == pytest.approx(1, abs=1e-6)
    assert report.targets[0].name == "the best / torch eager"
