"""The benchmarks run and report what they measured. How fast anything is, is never tested."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.mlperf import comparison, independence
from benchmarks.mlperf.comparison import compare_figures
from benchmarks.planted_errors import KNOWN, draw_error, list_neighbours
from benchmarks.planted_unseen import UNSEEN
from benchmarks.processes import Step, run_steps
from benchmarks.report import (
    Report,
    ReportTable,
    ReportTarget,
    format_report,
)
from tests.record.check.rules_support import load_dataset

SUMMARIZER = """#!{python}
import json, sys
_, _, out, root, ruleset, _ = sys.argv[1:]
assert ruleset == "2.0.0"
scores = {{"minutes": 10.0, "scaling_factor": 1.0}}
folder = f"{{root}}/Graphcore/results/POD16"
entries = {{f"{{folder}}/{{name}}": scores for name in ("resnet", "bert")}}
json.dump({{"version": "stub", "entries": entries}}, open(out, "w"))
"""


def write_round(root: Path) -> Path:
    """Write a round of one entry with five runs of 10 minutes."""
    results = root / "Graphcore" / "results" / "POD16" / "resnet"
    results.mkdir(parents=True)
    (root / "Graphcore" / "systems").mkdir()
    (root / "Graphcore" / "systems" / "POD16.json").write_text(
        '{"division": "closed", "system_name": "POD16"}'
    )
    keys = (("init_start", 0), ("init_stop", 1000), ("run_start", 1000), ("run_stop", 601_000))
    lines = (
        {"key": key, "time_ms": at, "value": None, "metadata": {"status": "success"}}
        for key, at in keys
    )
    text = "".join(f":::MLLOG {json.dumps(line)}\n" for line in lines)
    for run in range(5):
        (results / f"result_{run}.txt").write_text(text)
    return root


def run_quick(folder: Path, name: str, *options: str) -> dict[str, Any]:
    """Run one benchmark at its smallest size and return its report as written to a file."""
    out = folder / "figures.json"
    assert main([name, "--quick", "--out", str(out), *options]) == 0
    figures: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    assert {"cpu", "cores", "python", "duckdb", "date"} <= figures["environment"].keys()
    (report,) = figures["benchmarks"]
    assert report["name"] == name
    assert report["tables"]
    for table in report["tables"]:
        assert table["rows"]
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    return dict(report)


# The command and its parts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ingset"], "'ingset' is not a benchmark; choose from: ingest, open, large, stages"),
        (["release", "--rows", "10"], "--rows must be at least 10,000"),
        (["--official", "/nowhere/python"], "/nowhere/python does not exist"),
    ],
)
def test_unusable_option_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err


def test_report_shows_tables_targets_and_notes() -> None:
    targets = [ReportTarget("ratio", 3.21, 3.0), ReportTarget("share", 90.0, 90.0, at_least=True)]
    report = Report(
        "name",
        "title",
        [ReportTable("Times", ("way", "s"), [("ours", 1234567)])],
        targets,
        ["A note."],
    )
    assert (
        format_report(report)
        == "### `name`: title\n\nTimes\n\n| way   |         s |\n|:------|----------:|\n| ours  |"
        " 1,234,567 |\n\n- ratio: 3.21, target at most 3: MISSED\n- share: 90, target at least"
        " 90: met\n- A note."
    )
    assert [target["met"] for target in report.to_json()["targets"]] == [False, True]


def fail_after_a_step(message: str) -> Iterator[Step]:
    yield {"seconds": 1.0}
    raise ValueError(message)


def test_failure_in_a_child_process_is_reported() -> None:
    with pytest.raises(RuntimeError, match=r"fail_after_a_step: .*ValueError: lost, after 1 steps"):
        run_steps(fail_after_a_step, message="lost")


# Every benchmark, at its smallest size


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in BENCHMARKS
        if name not in {"stages", "emulator", "mlperf", "mlperf_independence"}
    ],
)
def test_benchmark_reports_figures(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPU_RESULTS_LOCKS", str(tmp_path / "locks"))
    run_quick(tmp_path, name)


@pytest.mark.slow
def test_every_size_completes_every_stage(tmp_path: Path) -> None:
    stages = run_quick(tmp_path, "stages")["tables"][0]["rows"]
    assert len(stages) == 5 * len({row[0] for row in stages})


@pytest.mark.slow
def test_emulator_benchmark_reports_times(tmp_path: Path) -> None:
    report = run_quick(tmp_path, "emulator")
    (times,) = (table["rows"] for table in report["tables"])
    assert [name for name, _ in times] == ["cold", "warm"]
    assert all(seconds > 0 for _, seconds in times)
    assert len(report["targets"]) == 2


def test_every_mistake_can_happen_in_a_printed_row() -> None:
    """The benchmark at its smallest size plants only some of them."""
    neighbours = list_neighbours(load_dataset())
    for groups in (KNOWN, UNSEEN):
        for mistakes in groups.values():
            for name, mistake in mistakes.items():
                assert draw_error(mistake, random.Random(name), neighbours)


# MLPerf


@pytest.mark.slow
def test_missing_official_summarizer_is_reported(tmp_path: Path) -> None:
    report = run_quick(
        tmp_path, "mlperf", "--mlperf", str(write_round(tmp_path / "training_results_v2.0"))
    )
    assert any(note.startswith("NOT COMPARED") for note in report["notes"])
    assert "One process and two workers wrote the same bytes." in report["notes"]


@pytest.mark.slow
def test_official_scores_are_compared(tmp_path: Path) -> None:
    """The summarizer agrees on the entry of the round, and has one that is not there."""
    stub = tmp_path / "python"
    stub.write_text(SUMMARIZER.format(python=sys.executable))
    stub.chmod(0o755)
    checkout = write_round(tmp_path / "training_results_v2.0")
    report = run_quick(tmp_path, "mlperf", "--mlperf", str(checkout), "--official", str(stub))
    compared, differing = (table["rows"] for table in report["tables"][:2])
    assert [row[:3] for row in compared] == [["minutes", 2, 1], ["scaling_factor", 2, 1]]
    assert differing[0] == ["Graphcore/results/POD16/bert", "minutes", "10.0", "no such entry"]
    assert not report["targets"][0]["met"]


def test_figures_are_compared_entry_by_entry() -> None:
    official = {
        "equal": 1.0,
        "near": 2.0,
        "off": 3.0,
        "no score": None,
        "only theirs": 4.0,
        "scored by us": None,
    }
    ours = {
        "equal": 1.0,
        "near": 2.0 + 1e-10,
        "off": 3.5,
        "no score": None,
        "only ours": None,
        "scored by us": 5.0,
    }
    result = compare_figures("minutes", official, ours)
    assert (result.entries, result.equal, result.empty, result.largest) == (7, 3, 1, 0.5)
    assert result.differences == (
        ("off", "minutes", "3.0", "3.5"),
        ("only ours", "minutes", "no such entry", "none"),
        ("only theirs", "minutes", "4.0", "no such entry"),
        ("scored by us", "minutes", "none", "5.0"),
    )
    assert compare_figures("minutes", {"a": 1.0}, {"a": float("nan")}).equal == 0


def test_missing_archive_is_skipped_with_exit_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(comparison, "ARCHIVE", tmp_path / "round.tar.xz")
    assert main(["mlperf", "--quick"]) == 1
    assert f"SKIPPED: {tmp_path / 'round.tar.xz'} does not exist" in capsys.readouterr().out


HAS_ARCHIVE = pytest.mark.skipif(
    not comparison.ARCHIVE.exists(), reason="the archive of the round is not here"
)


@pytest.mark.slow
@HAS_ARCHIVE
def test_part_of_the_archive_is_scored(tmp_path: Path) -> None:
    assert run_quick(tmp_path, "mlperf")["title"] == "score v2.0, 140 logs of 13 MB"


@pytest.mark.slow
@HAS_ARCHIVE
def test_order_of_runs_is_read_from_the_logs(tmp_path: Path) -> None:
    report = run_quick(tmp_path, "mlperf_independence")
    assert report["title"] == "225 entries with the speed of 5 runs or more"


NOISE = np.array([0.3, -0.1, 0.2, -0.4, 0.1, -0.3, 0.4, -0.2, 0.0, 0.1])


@pytest.mark.parametrize(
    ("drift", "jump", "is_ordered", "is_sessions"),
    [(0.0, 0.0, False, False), (0.3, 0.0, True, True), (0.0, 3.0, True, True)],
)
def test_drift_and_sessions_are_found(
    drift: float, jump: float, is_ordered: bool, is_sessions: bool
) -> None:
    """Sessions of six and of four runs, whose noise has a deviation of 0.26."""
    sessions = np.repeat([0, 1], [6, 4])
    values = NOISE + drift * np.arange(10) + jump * sessions
    series = independence.Series("bert", independence.SPEED, values - values.mean(), sessions)
    found = independence.describe(series, 999, np.random.default_rng(1))
    assert (float(found["p"] or 0) < 0.05) is is_ordered
    assert (float(found["session_p"] or 0) < 0.05) is is_sessions
    if jump:  # the variance between two sessions is half of their squared distance
        assert found["component"] == pytest.approx(jump**2 / 2, rel=0.2)
