"""`ipu-results mlperf` as a user meets it, and `score_mlperf`, which is the same from Python."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ipu_results
import pandas as pd
import pyarrow.parquet as pq
import pytest
from ipu_results.errors import MissingExtraError
from ipu_results.kit.files import write_atomically
from ipu_results.mlperf.records import COLUMNS, MAIN_COLUMNS, SUMMARY, format_scores
from ipu_results.schema import table

from tests.conftest import ROOT, run_cli, run_process
from tests.mlperf.mlperf_support import (
    FIVE,
    FOUR,
    OPEN,
    SYSTEM,
    V1,
    V2,
    entry,
    evaluation,
    line,
    load_cases,
    log,
    logs,
    put,
)

BY_HAND = load_cases("score")
UNREADABLE = "cannot be read; pass a folder or a tar archive (.tar, .tar.gz, .tar.xz)"
LOG = "ACME/results/acme1/resnet/result_1.txt"
FINDINGS = [
    "ACME/results/acme1/resnet/result_4.txt: does not count: its status is aborted",
    "ACME/results/acme2/ssd: has no logs",
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three entries of two submitters, one of them without logs, and one run that does not count."""
    root = tmp_path / "training_results_v2.0"
    entry(root, [*FOUR, log(9, status="aborted")])
    entry(root, logs(*range(30, 40)), "bert", submitter="Other", described=OPEN)
    entry(root, [], "ssd", name="acme2")
    put(root, "ACME/results/acme1/summary.csv", "resnet\n1.0\n")
    put(root, "README.md", "results")
    return root


def run(path: Path, *args: object) -> subprocess.CompletedProcess[str]:
    return run_cli("mlperf", path, "--workers", "1", *args)


def run_json(path: Path, *args: object) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = json.loads(run(path, "--format", "json", *args).stdout)
    return records


def error_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    return line.removeprefix("error: ")


def test_stdout_is_json_and_nothing_else(tree: Path) -> None:
    done = run_process("mlperf", tree, "--format", "json", "--workers", "1")
    records = json.loads(done.stdout)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [f"finding: {text}" for text in FINDINGS]
    assert tuple(records[0]) == COLUMNS["mlperf_entries"]
    names = ("division", "benchmark", "n_runs", "n_success", "minutes", "path")
    assert [tuple(record[name] for name in names) for record in records] == [
        ("closed", "resnet", 5, 4, 12.0, "ACME/results/acme1/resnet"),
        ("closed", "ssd", 0, 0, None, "ACME/results/acme2/ssd"),
        ("open", "bert", 10, 10, 34.5, "Other/results/acme1/bert"),
    ]


def test_csv_table_and_parquet_have_the_same_entries(tree: Path, tmp_path: Path) -> None:
    header, *rows = csv.reader(io.StringIO(run(tree, "--format", "csv").stdout))
    assert tuple(header) == COLUMNS["mlperf_entries"]
    assert [row[10] for row in rows] == ["12.0", "", "34.5"]
    names, _, *shown, attribution = run(tree).stdout.splitlines()
    assert tuple(names.split()) == MAIN_COLUMNS
    assert len(shown) == 3
    assert "not verified by MLCommons Association" in attribution
    done = run(tree, "--format", "parquet", "--out", tmp_path / "scores.parquet")
    assert done.returncode == 0
    assert done.stdout == ""
    assert pq.read_table(tmp_path / "scores.parquet").to_pylist() == run_json(tree)


@pytest.mark.parametrize("kind", ["table", "csv", "json"])
def test_a_file_has_what_stdout_would(tree: Path, tmp_path: Path, kind: str) -> None:
    out = put(tmp_path, "scores", b"old")
    assert run(tree, "--format", kind, "--out", out).stdout == ""
    assert out.read_text(encoding="utf-8") == run(tree, "--format", kind).stdout


def test_score_mlperf_has_the_records_of_the_command(tree: Path) -> None:
    frame = ipu_results.score_mlperf(tree)
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    assert records == run_json(tree)
    assert frame.attrs["findings"] == FINDINGS
    dtypes = frame[["accelerators", "minutes", "path"]].dtypes.astype(str)
    assert dtypes.to_list() == ["Int64", "float64", "str"]
    other = tree.rename(tree.with_name("results"))
    with ThreadPoolExecutor(2) as threads:
        frame = ipu_results.score_mlperf(str(other), round="v1.1", executor=threads)
    assert set(frame["round"]) == {"1.1"}


def test_score_mlperf_refuses_what_it_cannot_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="round 'latest' is not a version such as 2"):
        ipu_results.score_mlperf(tmp_path, round="latest")
    monkeypatch.setitem(sys.modules, "ipu_results.mlperf.round", None)
    with pytest.raises(MissingExtraError, match=r"ipu-results\[ingest\]"):
        ipu_results.score_mlperf(tmp_path)


@pytest.mark.parametrize(
    ("part", "paths"),
    [
        ("ACME/results", ["ACME/results/acme1/resnet", "ACME/results/acme2/ssd"]),
        ("ACME/results/acme1", ["ACME/results/acme1/resnet"]),
        ("Other/results/acme1/bert", ["Other/results/acme1/bert"]),
    ],
)
def test_a_part_of_a_round_is_scored_like_the_round(
    tree: Path, part: str, paths: list[str]
) -> None:
    scored = ipu_results.score_mlperf(tree / part)
    whole = ipu_results.score_mlperf(tree)
    assert scored["path"].to_list() == paths
    expected = whole[whole["path"].isin(paths)].reset_index(drop=True)
    pd.testing.assert_frame_equal(scored, expected)


def test_one_log_is_a_run_without_a_score(tree: Path) -> None:
    [record] = run_json(tree / LOG, "--runs")
    assert f"{record['path']}/{record['file']}" == LOG
    assert record["minutes"] == 11.0
    assert record["counted"]
    [scored] = run_json(tree / LOG)
    reason = "1 runs are too few for 1 to be left out at each end"
    assert scored["no_score_reason"] == reason


@pytest.mark.parametrize("folder", ["resnet", "mine"])
def test_logs_outside_a_round_are_an_entry(tmp_path: Path, folder: str) -> None:
    named = line("submission_benchmark", -1, "resnet")
    for number, each in enumerate(FIVE):
        put(tmp_path, f"{folder}/result_{number}.txt", named + each)
    done = run(tmp_path / folder, "--format", "json", "--round", "2.0")
    [record] = json.loads(done.stdout)
    assert record["path"] == folder
    assert record["round"] == "2.0"
    assert record["benchmark"] == "resnet"
    assert record["minutes"] == 12.0
    assert record["submitter"] is None
    by_logs = f"finding: {folder}: is not named like a benchmark; its logs name resnet"
    assert (by_logs in done.stderr.splitlines()) == (folder == "mine")
    assert f"finding: {folder}/system.json: is missing; the system is unknown" in done.stderr


def test_a_folder_of_logs_may_describe_its_system(tmp_path: Path) -> None:
    put(tmp_path, "resnet/result_0.txt", FIVE[0])
    put(tmp_path, "resnet/system.json", SYSTEM)
    done = run(tmp_path / "resnet", "--format", "json")
    [record] = json.loads(done.stdout)
    assert record["submitter"] == "ACME"
    assert record["division"] == "closed"
    assert record["accelerators"] == 16
    assert "finding: resnet: names no round; pass one with --round" in done.stderr


def test_a_log_may_have_any_name(tmp_path: Path) -> None:
    path = put(tmp_path, "elsewhere/run.log", FIVE[0])
    [record] = run_json(path, "--runs")
    assert record["path"] == "elsewhere"
    assert record["file"] == "run.log"
    assert record["minutes"] == 10.0


def test_a_ruleset_is_that_of_another_round(tmp_path: Path) -> None:
    written = [log(each, inner=evaluation(5, 0.715, epoch_num=1)) for each in range(10, 20)]
    entry(tmp_path / "v0.7", written, "bert")  # whose target was 0.712, and 0.72 from v1.0 on
    assert ipu_results.score_mlperf(tmp_path / "v0.7")["minutes"][0] == 14.5
    assert ipu_results.score_mlperf(tmp_path / "v0.7", ruleset="1.0")["n_success"][0] == 0
    [record] = run_json(tmp_path / "v0.7", "--ruleset", "1.0")
    assert record["minutes"] is None


def test_a_summary_has_the_keys_of_inference(tree: Path) -> None:
    [*_, bert] = json.loads(run(tree, "--format", "summary").stdout)
    assert len(bert) == 34
    expected = {"ID": None, "compliance": None, **BY_HAND["summary"]}
    assert {key: bert[key] for key in expected} == expected
    assert run(tree, "--format", "summary", "--runs").returncode == 2


BARE = """
import runpy, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"{name} is refused", name=name)
REFUSED = {"click", "duckdb", "filelock", "pandas", "pyarrow", "tabulate", "tomli_w"}
sys.meta_path.insert(0, Refuse())
sys.argv[0] = "mlperf"
runpy.run_module("ipu_results.mlperf", run_name="__main__")
"""


def test_the_module_needs_msgspec_and_numpy_alone(tree: Path) -> None:
    def run_bare(*args: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", BARE, *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)

    done = run_bare(tree, "--format", "json")
    command = run(tree, "--format", "json")
    assert done.returncode == 0
    assert done.stdout == command.stdout
    assert done.stderr == command.stderr
    assert run_bare(tree, "--runs").stdout == run(tree, "--runs", "--format", "csv").stdout
    lost = run_bare(tree / "none")
    assert lost.returncode == 1
    assert lost.stdout == ""
    assert lost.stderr == f"error: {tree / 'none'}: does not exist\n"
    assert run_bare(tree, "--round", "latest").returncode == 2


@pytest.mark.parametrize(
    "args", [["--format", "parquet"], ["--workers", "0"], ["--round", "latest"]]
)
def test_wrong_usage_is_exit_2(tree: Path, args: list[str]) -> None:
    done = run_cli("mlperf", tree, *args)
    assert done.returncode == 2
    assert done.stdout == ""


def test_findings_are_exit_1_only_when_strict(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.json"
    assert run(tree).returncode == 0
    assert run(tree, "--strict", "--out", out, "--format", "json").returncode == 1
    assert len(json.loads(out.read_bytes())) == 3
    entry(tmp_path / "v2.0", FIVE)
    assert run(tmp_path / "v2.0", "--strict").returncode == 0


def list_state(root: Path) -> list[tuple[Path, int, int]]:
    """List what writing to a folder would change: times and sizes."""
    stats = {path: path.lstat() for path in [root, *root.rglob("*")]}
    return [(path, stat.st_mtime_ns, stat.st_size) for path, stat in stats.items()]


def test_more_workers_change_neither_output_nor_input(tree: Path) -> None:
    before = list_state(tree)
    alone = run(tree, "--format", "json", "--runs")
    shared = run_process("mlperf", tree, "--format", "json", "--runs", "--workers", 2)
    assert alone.returncode == shared.returncode
    assert alone.stdout == shared.stdout
    assert alone.stderr == shared.stderr
    assert len(json.loads(alone.stdout)) == 15
    assert list_state(tree) == before


@pytest.mark.parametrize("out", ["scores.json", "ACME/results/scores.json", ""])
def test_the_input_is_never_written_to(tree: Path, out: str) -> None:
    before = list_state(tree)
    assert run(tree, "--format", "json", "--out", tree / out).returncode == 2
    assert list_state(tree) == before


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("nowhere", "does not exist"),
        ("README.md", "is a file that is not a tar archive; pass a folder"),
        ("round.zip", f"a zip archive {UNREADABLE}"),
        ("-", f"standard input {UNREADABLE}"),
        ("ACME/systems", "has no entry <submitter>/results/<system>/<benchmark>"),
    ],
)
def test_what_is_not_a_checkout_is_one_line(tree: Path, place: str, message: str) -> None:
    assert error_line(run(tree / place, "--format", "json")).endswith(message)


def test_terminal_codes_do_not_reach_the_terminal(tmp_path: Path) -> None:
    written = [*FOUR, log(9, status="\x1b[31m\nerror: no")]
    entry(tmp_path / "v2.0", written, described=SYSTEM | {"system_name": "\x1b[31mA\nB"})
    done = run(tmp_path / "v2.0")
    assert done.stderr.endswith(": does not count: its status is \\x1b[31m\\nerror: no\n")
    assert done.stderr.count("\n") == 1
    shown = done.stdout.splitlines()
    assert len(shown) == 4
    assert r"\x1b[31mA\nB" in shown[2]


@pytest.mark.parametrize("kind", ["json", "table", "parquet"])
def test_texts_that_are_not_unicode_are_written(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "v2.0"
    entry(root, FIVE, described=SYSTEM | {"system_name": "A\ud800"})
    os.rename(root / "ACME", os.fsencode(root) + b"/A\xff")
    done = run(root, "--format", kind, "--out", tmp_path / "out")
    assert done.returncode == 0
    assert done.stderr == ""
    assert rb"A\ud800" in (tmp_path / "out").read_bytes().replace(b"\\\\", b"\\")
    assert ipu_results.score_mlperf(root)["system"][0] == r"A\ud800"


def test_a_file_in_no_folder_is_an_error(tree: Path, tmp_path: Path) -> None:
    line = error_line(run(tree, "--out", tmp_path / "none" / "x"))
    assert line.endswith("cannot be written: No such file or directory")


def test_a_full_disk_leaves_the_old_file(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = put(tmp_path, "scores.json", b"old")
    write_bytes = Path.write_bytes

    def fill_disk(self: Path, data: bytes) -> int:
        write_bytes(self, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill_disk)
    assert error_line(run(tree, "--out", out)).endswith("written: No space left on device")
    assert out.read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == {"scores.json", tree.name}


def test_an_interrupt_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = put(tmp_path, "scores.json", b"old")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(out, b"[]")
    assert out.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["scores.json"]


def test_pipes_and_links_are_written_to_and_stay(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(tmp_path / "pipe", b"[]")
    assert os.read(reader, 10) == b"[]"
    os.close(reader)
    (tmp_path / "link").symlink_to(put(tmp_path, "kept.json", b"old"))
    write_atomically(tmp_path / "link", b"[]")
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "kept.json").read_bytes() == b"[]"


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_those_of_the_warehouse(name: str) -> None:
    columns = [column.header or column.name for column in table(name).columns]
    derived = [column for column in COLUMNS[name] if column not in SUMMARY]
    assert [column for column in columns if column in derived] == derived
    assert set(columns) >= set(COLUMNS[name])
    empty = pq.read_table(io.BytesIO(format_scores("parquet", name, [])))
    assert tuple(empty.column_names) == COLUMNS[name]
    assert empty.num_rows == 0


PEAK = """
import sys
from ipu_results.mlperf.round import score_path
print([entry.minutes for entry in score_path(sys.argv[1]).entries])
print(sorted({"pandas", "pyarrow", "duckdb", "numpy"} & set(sys.modules)))
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="needs the memory figures of Linux"
)
@pytest.mark.parametrize("name", ["v2.0", "v2.0.tar"])
def test_a_worker_is_small_whatever_the_size_of_a_log(tmp_path: Path, name: str) -> None:
    stats = line("tracked_stats", 0, {"loss": 0.1})
    long = log(10, inner=stats * 60_000 + b"noise\n" * 10_000_000)
    entry(tmp_path / "v2.0", [long, *logs(11, 12, 13, 20)])
    with tarfile.open(tmp_path / "v2.0.tar", "w") as tar:
        tar.add(tmp_path / "v2.0", "v2.0")
    command = [sys.executable, "-c", PEAK, tmp_path / name]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, check=True, timeout=600
    )
    minutes, modules, peak = done.stdout.splitlines()
    assert minutes == "[12.0]"
    assert modules == "[]"
    assert int(peak) < 60_000  # kB


@pytest.mark.slow
@pytest.mark.skipif(not V2.exists(), reason="the official logs are not here")
@pytest.mark.parametrize(("logs_of", "round_"), [(V1, "1.0"), (V2, "2.0")])
def test_a_round_alone_has_the_figures_of_the_warehouse(logs_of: Path, round_: str) -> None:
    """What `summary` says in Python, `schema/links` says in SQL."""
    names = [name for name in SUMMARY if name != "shared_logs"]  # those of all rounds there
    names += ["path", "minutes"]
    scored = ipu_results.score_mlperf(logs_of)
    if round_ == "1.0":
        # only its logs of Graphcore are here, and an interval needs those of others
        names = ["path", "minutes"]
    held = ipu_results.load("mlperf_entries", round=round_)
    held = held[held["path"].isin(scored["path"])]
    scored = scored[names].sort_values("path", ignore_index=True)
    held = held[names].sort_values("path", ignore_index=True)
    # 12 digits are kept
    pd.testing.assert_frame_equal(scored, held, check_dtype=False, rtol=1e-11)
