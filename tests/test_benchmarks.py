"""The benchmarks run and say what they measured; how fast is never tested."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import once

from benchmarks import mlperf, query, release, stages
from benchmarks.__main__ import main
from benchmarks.child import Measured, Outcome
from benchmarks.mlperf_compare import compared

ROOT = Path(__file__).resolve().parent.parent
NAMES = (
    *("ingest", "extract", "stages", "query", "mlperf", "emulator", "repeatability", "runner", "runner_real"),
    *("runner_configurations", "release"),
)


def small_round(root: Path) -> Path:
    """A round of one entry with five runs of 10 minutes."""
    results = root / "Graphcore" / "results" / "POD16" / "resnet"
    results.mkdir(parents=True)
    (root / "Graphcore" / "systems").mkdir()
    (root / "Graphcore" / "systems" / "POD16.json").write_text('{"division": "closed", "system_name": "POD16"}')
    keys = (("init_start", 0), ("init_stop", 1000), ("run_start", 1000), ("run_stop", 601_000))
    told = ({"key": key, "time_ms": at, "value": None, "metadata": {"status": "success"}} for key, at in keys)
    text = "".join(f":::MLLOG {json.dumps(line)}\n" for line in told)
    for run in range(5):
        (results / f"result_{run}.txt").write_text(text)
    return root


def here(function: Measured, _timeout_s: float = 0.0, /, **arguments: Any) -> Outcome:
    """Stands where a child process stands, of which each pays for its imports."""
    return Outcome(list(json.loads(json.dumps([*function(**arguments)]))))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with once(tmp_path_factory, "benchmarks") as (folder, first):
        if first:
            measure(folder)
    return json.loads((folder / "found.json").read_text(encoding="utf-8"))


def measure(folder: Path) -> None:
    """Every benchmark once; into found.json."""
    out, checkout = folder / "found.json", small_round(folder / "training_results_v2.0")
    asked = ["--quick", "--format", "markdown", "--out", str(out), "--mlperf", str(checkout)]
    shown = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(shown):
        patch.setattr(query, "in_child", here)
        patch.setattr(stages, "in_child", here)
        patch.setattr(release, "in_child", here)
        assert main(asked) == 0
    assert all(f"### `{name}`" in shown.getvalue() for name in NAMES)


def test_the_command_shows_what_it_writes(tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    command = [sys.executable, "-m", "benchmarks", "runner", "--quick", "--format", "markdown", "--out", out]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "### `runner`" in done.stdout
    (told,) = json.loads(out.read_text(encoding="utf-8"))["benchmarks"]
    assert told["name"] == "runner"


def test_every_benchmark_tells_figures_and_where_they_come_from(found: dict[str, Any]) -> None:
    assert {"cpu", "cores", "python", "duckdb", "date"} <= found["environment"].keys()
    assert [report["name"] for report in found["benchmarks"]] == list(NAMES)
    for table in (table for report in found["benchmarks"] for table in report["tables"]):
        assert table["rows"]
        assert all(len(row) == len(table["columns"]) for row in table["rows"])


def test_the_reader_has_no_wrong_cell_where_read_html_has(found: dict[str, Any]) -> None:
    faults = found["benchmarks"][1]["tables"][-1]["rows"]
    assert sum(ours for _, ours, _ in faults) == 0
    assert sum(theirs for _, _, theirs in faults) > 0


def test_every_size_comes_to_the_end_of_every_stage(found: dict[str, Any]) -> None:
    stages = found["benchmarks"][2]["tables"][0]["rows"]
    sizes = {row[0] for row in stages}
    assert len(stages) == 5 * len(sizes)


# MLPerf

STUB = """#!{python}
import json, sys
_, _, out, root, ruleset, _ = sys.argv[1:]
assert ruleset == "2.0.0"
entries = {{f"{{root}}/{path}": {{"minutes": {minutes}, "scaling_factor": 1.0}}}}
json.dump({{"version": "stub", "entries": entries}}, open(out, "w"))
"""


def summarizer(folder: Path, path: str, minutes: float) -> Path:
    """Stands where an interpreter with mlperf-logging stands, and tells one entry."""
    stub = folder / "python"
    stub.write_text(STUB.format(python=sys.executable, path=path, minutes=minutes))
    stub.chmod(0o755)
    return stub


def scored(tmp_path: Path, path: str, minutes: float) -> dict[str, Any]:
    out, checkout = tmp_path / "found.json", small_round(tmp_path / "training_results_v2.0")
    official = summarizer(tmp_path, path, minutes)
    asked = ["mlperf", "--quick", "--mlperf", str(checkout), "--official", str(official), "--out", str(out)]
    assert main(asked) == 0
    return json.loads(out.read_text(encoding="utf-8"))["benchmarks"][0]


def test_a_round_without_the_official_summarizer_says_so(found: dict[str, Any]) -> None:
    report = found["benchmarks"][4]
    assert any(note.startswith("NOT COMPARED") for note in report["notes"])
    assert "One process and two workers wrote the same bytes." in report["notes"]
    assert [table["title"] for table in report["tables"]][-1] == "Where the processor time of one process goes"


def test_equal_scores_are_counted(tmp_path: Path) -> None:
    report = scored(tmp_path, "Graphcore/results/POD16/resnet", 10.0)
    assert report["tables"][0]["rows"] == [["minutes", 1, 1, 0, 0.0], ["scaling_factor", 1, 1, 0, 0.0]]
    assert report["targets"][0]["met"]


def test_every_difference_and_every_missing_entry_is_listed(tmp_path: Path) -> None:
    report = scored(tmp_path, "Graphcore/results/POD16/bert", 10.0)
    assert report["tables"][1]["rows"][:2] == [
        ["Graphcore/results/POD16/bert", "minutes", "10.0", "no such entry"],
        ["Graphcore/results/POD16/resnet", "minutes", "no such entry", "10.0"],
    ]
    assert not report["targets"][0]["met"]


def test_figures_are_compared_one_by_one() -> None:
    official = {"equal": 1.0, "near": 2.0, "off": 3.0, "no score": None, "only theirs": 4.0, "scored by us": None}
    ours = {"equal": 1.0, "near": 2.0 + 1e-10, "off": 3.5, "no score": None, "only ours": None, "scored by us": 5.0}
    told = compared("minutes", official, ours)
    assert (told.entries, told.equal, told.empty, told.largest) == (7, 3, 1, 0.5)
    assert [(one.path, one.official, one.ours) for one in told.differences] == [
        ("off", "3.0", "3.5"),
        ("only ours", "no such entry", "none"),
        ("only theirs", "4.0", "no such entry"),
        ("scored by us", "none", "5.0"),
    ]
    assert compared("minutes", {"a": 1.0}, {"a": float("nan")}).equal == 0


def test_without_the_archive_it_is_skipped_and_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mlperf, "ARCHIVE", tmp_path / "round.tar.xz")
    assert main(["mlperf", "--quick"]) == 1
    assert f"mlperf: SKIPPED: {tmp_path / 'round.tar.xz'} is not there" in capsys.readouterr().out


@pytest.mark.skipif(not mlperf.ARCHIVE.exists(), reason="the archive of the round is not here")
def test_a_part_of_the_archive_is_scored(tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    assert main(["mlperf", "--quick", "--out", str(out)]) == 0
    report = json.loads(out.read_text(encoding="utf-8"))["benchmarks"][0]
    assert report["title"] == "score v2.0, 140 logs of 13 MB"
