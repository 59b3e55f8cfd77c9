"""The command that scores official results, as a user meets it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import ROOT, run_cli, run_process
from ipu_results._util.files import write_atomically
from ipu_results.errors import WorkerLostError
from ipu_results.mlperf.layout import plan
from ipu_results.mlperf.output import as_bytes
from ipu_results.mlperf.records import COLUMNS
from ipu_results.mlperf.rules import rules
from ipu_results.mlperf.scoring import in_processes, score_tree
from ipu_results.schema import table
from mlperf_support import SYSTEM, T0, KillingTree, SlowTree, entry, log, logs, put

FIVE = logs(10, 11, 12, 13, 20)
CONTRACT = [
    "round",
    "submitter",
    "division",
    "system",
    "benchmark",
    "accelerators",
    "accelerator",
    "framework",
    "n_runs",
    "n_success",
    "minutes",
    "path",
]
SHARED = ROOT.parent / "shared" / "mlperf"
V1, V2 = SHARED / "training_v1.0_results_part.tar.xz", SHARED / "training_v2.0_results.tar.xz"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three entries of two submitters, one of them a hole, and one run that does not count."""
    root = tmp_path / "training_results_v2.0"
    entry(root, [*FIVE[:4], log(9, status="aborted")])
    entry(root, logs(*range(30, 40)), "bert", submitter="Other", described=SYSTEM | {"division": "open"})
    entry(root, [], "ssd", name="acme2")
    put(root, "ACME/results/acme1/summary.csv", "resnet\n1.0\n")
    put(root, "README.md", "results")
    return root


def minutes(path: Path, *args: object) -> dict[str, float | None]:
    done = run_cli("mlperf", path, "--workers", "1", "--format", "json", *args)
    assert done.returncode == 0, done.stderr
    return {record["path"]: record["minutes"] for record in json.loads(done.stdout)}


def state(root: Path) -> dict[str, tuple[int, int, str]]:
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mtime_ns,
            path.lstat().st_mode,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in [root, *root.rglob("*")]
    }


def one_line(stderr: str) -> str:
    (line,) = stderr.splitlines()
    assert line.startswith("error: ")
    return line


def test_stdout_is_json_and_nothing_else(tree: Path) -> None:
    done = run_process("mlperf", tree, "--format", "json", "--workers", "1")
    records = json.loads(done.stdout)
    assert done.returncode == 0
    assert [list(record)[: len(CONTRACT)] for record in records] == [CONTRACT] * 3
    assert [[record[name] for name in CONTRACT] for record in records] == [
        [
            "2.0",
            "ACME",
            "closed",
            "ACME-1 x8",
            "resnet",
            16,
            "ACME-1",
            "PyTorch 1.11",
            5,
            4,
            12.0,
            "ACME/results/acme1/resnet",
        ],
        [
            "2.0",
            "ACME",
            "closed",
            "ACME-1 x8",
            "ssd",
            16,
            "ACME-1",
            "PyTorch 1.11",
            0,
            0,
            None,
            "ACME/results/acme2/ssd",
        ],
        [
            "2.0",
            "Other",
            "open",
            "ACME-1 x8",
            "bert",
            16,
            "ACME-1",
            "PyTorch 1.11",
            10,
            10,
            34.5,
            "Other/results/acme1/bert",
        ],
    ]
    assert done.stderr.splitlines() == [
        "finding: ACME/results/acme1/resnet/result_4.txt: does not count: its status is aborted",
        "finding: ACME/results/acme2/ssd: is a hole: its logs are missing",
    ]


def test_csv_has_the_columns_of_the_contract_first(tree: Path) -> None:
    done = run_cli("mlperf", tree, "--format", "csv", "--workers", "1")
    rows = list(csv.reader(io.StringIO(done.stdout)))
    assert rows[0][: len(CONTRACT)] == CONTRACT
    assert [row[10] for row in rows[1:]] == ["12.0", "", "34.5"]


def test_the_table_shows_the_columns_of_the_contract(tree: Path) -> None:
    shown = run_cli("mlperf", tree, "--workers", "1").stdout.splitlines()
    assert shown[0].split() == CONTRACT
    assert len(shown) == 2 + 3 + 1
    assert "not verified by MLCommons Association" in shown[-1]


def test_parquet_holds_the_same_records(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.parquet"
    done = run_cli("mlperf", tree, "--format", "parquet", "--out", out, "--workers", "1")
    assert (done.returncode, done.stdout) == (0, "")
    assert pq.read_table(out).to_pylist() == json.loads(
        run_cli("mlperf", tree, "--format", "json", "--workers", "1").stdout
    )


@pytest.mark.parametrize("kind", ["table", "csv", "json"])
def test_a_file_holds_what_stdout_would(tree: Path, tmp_path: Path, kind: str) -> None:
    out = put(tmp_path, "scores", b"old")
    args = ("mlperf", tree, "--format", kind, "--workers", "1")
    done = run_cli(*args, "--out", out)
    assert (done.returncode, done.stdout) == (0, "")
    assert out.read_text(encoding="utf-8") == run_cli(*args).stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores", "training_results_v2.0"]


@pytest.mark.parametrize(
    "args",
    [
        ["--format", "parquet"],
        ["--format", "xml"],
        ["--workers", "0"],
        ["--round", "latest"],
        ["--out", "."],
        ["another"],
    ],
)
def test_wrong_usage_is_exit_2(tree: Path, args: list[str]) -> None:
    done = run_cli("mlperf", tree, *args)
    assert (done.returncode, done.stdout) == (2, "")


def test_runs_are_told_one_by_one(tree: Path) -> None:
    records = json.loads(run_cli("mlperf", tree, "--runs", "--format", "json", "--workers", "1").stdout)
    assert len(records) == 15
    assert records[4] == {
        "round": "2.0",
        "path": "ACME/results/acme1/resnet",
        "file": "result_4.txt",
        "minutes": 9.0,
        "status": "aborted",
        "counted": False,
        "reason": "its status is aborted",
        "init_minutes": 2.0,
        "global_batch_size": 256,
        "epochs": None,
        "samples": None,
        "lines": 5,
        "sha256": hashlib.sha256(log(9, status="aborted")).hexdigest(),
    }


def test_a_log_given_up_has_no_digest(tmp_path: Path) -> None:
    folder = entry(tmp_path, FIVE[:4])
    with (folder / "result_4.txt").open("wb") as file:
        file.truncate(2 * 2**30)
    records = json.loads(run_cli("mlperf", tmp_path, "--runs", "--format", "json", "--workers", "1").stdout)
    assert (records[4]["reason"], records[4]["sha256"]) == ("a line is longer than 4,194,304 bytes", None)
    assert all(record["sha256"] for record in records[:4])


@pytest.mark.parametrize("kind", ["table", "csv", "json", "parquet"])
def test_holes_alone_have_no_runs(tmp_path: Path, kind: str) -> None:
    entry(tmp_path / "v2.0", [])
    out = tmp_path / "runs"
    done = run_cli("mlperf", tmp_path / "v2.0", "--runs", "--format", kind, "--out", out)
    assert (done.returncode, done.stderr) == (
        0,
        "finding: ACME/results/acme1/resnet: is a hole: its logs are missing\n",
    )
    if kind == "json":
        assert json.loads(out.read_bytes()) == []


def test_the_round_is_told_by_the_folder_or_the_user(tree: Path) -> None:
    other = tree.rename(tree.with_name("results"))
    unnamed = run_cli("mlperf", other, "--format", "json", "--workers", "1")
    assert {record["round"] for record in json.loads(unnamed.stdout)} == {None}
    assert "finding: results: names no round; give one with --round" in unnamed.stderr
    named = run_cli("mlperf", other, "--format", "json", "--workers", "1", "--round", "v1.1")
    assert {record["round"] for record in json.loads(named.stdout)} == {"1.1"}
    assert "names no round" not in named.stderr


def test_findings_leave_exit_0_but_when_strict(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.json"
    assert run_cli("mlperf", tree, "--workers", "1").returncode == 0
    assert run_cli("mlperf", tree, "--workers", "1", "--strict", "--out", out, "--format", "json").returncode == 1
    assert len(json.loads(out.read_bytes())) == 3
    entry(tmp_path / "v2.0", FIVE)
    assert run_cli("mlperf", tmp_path / "v2.0", "--workers", "1", "--strict").returncode == 0


@pytest.mark.parametrize("runs", [[], ["--runs"]])
def test_the_number_of_workers_changes_nothing(tree: Path, runs: list[str]) -> None:
    one, two = (run_process("mlperf", tree, "--format", "json", *runs, "--workers", n) for n in (1, 2))
    assert (one.returncode, one.stdout, one.stderr) == (two.returncode, two.stdout, two.stderr)


def test_the_input_stays_as_it_is(tree: Path) -> None:
    entry(tree, FIVE, "maskrcnn", scaling={"scaling_factor": 1.5})
    before = state(tree)
    for args in (["--workers", "1"], ["--workers", "2", "--runs"]):
        assert run_process("mlperf", tree, *args).returncode == 0
    assert state(tree) == before


def test_a_read_only_input_is_enough(tree: Path) -> None:
    for path in [tree, *tree.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert minutes(tree)["ACME/results/acme1/resnet"] == 12.0


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("nowhere", "is no folder"),
        ("README.md", "is no folder"),
        ("ACME", "is the folder of one submitter; give the one above it"),
        ("ACME/results", "holds no entry <submitter>/results/<system>/<benchmark>"),
        ("ACME/systems", "holds no entry <submitter>/results/<system>/<benchmark>"),
        ("ACME/results/acme1/resnet", "holds no entry <submitter>/results/<system>/<benchmark>"),
    ],
)
def test_what_is_no_checkout_is_one_clear_line(tree: Path, place: str, told: str) -> None:
    done = run_cli("mlperf", tree / place, "--format", "json")
    assert (done.returncode, done.stdout) == (1, "")
    assert one_line(done.stderr).endswith(told)


def test_an_empty_folder_is_one_clear_line(tmp_path: Path) -> None:
    done = run_cli("mlperf", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "holds no entry" in one_line(done.stderr)


def test_an_old_round_alone_is_refused(tmp_path: Path) -> None:
    entry(tmp_path / "training_results_v0.6", FIVE)
    done = run_cli("mlperf", tmp_path / "training_results_v0.6")
    assert (done.returncode, done.stdout) == (1, "")
    assert "round 0.6 is refused: its logs have another syntax; v0.7 and later are scored" in one_line(done.stderr)


def test_an_old_round_beside_others_is_a_finding(tmp_path: Path) -> None:
    entry(tmp_path / "v0.5", FIVE)
    entry(tmp_path / "v1.0", FIVE)
    done = run_cli("mlperf", tmp_path, "--format", "json", "--workers", "1")
    assert (done.returncode, len(json.loads(done.stdout))) == (0, 1)
    assert done.stderr == (
        "finding: v0.5: round 0.5 is refused: its logs have another syntax; v0.7 and later are scored\n"
    )


def test_terminal_codes_of_a_log_do_not_reach_the_terminal(tmp_path: Path) -> None:
    entry(tmp_path / "v2.0", [*FIVE[:4], log(9, status="\x1b[31m\nerror: no")])
    done = run_cli("mlperf", tmp_path / "v2.0", "--format", "json", "--workers", "1")
    assert done.stderr == (
        "finding: ACME/results/acme1/resnet/result_4.txt: does not count: its status is \\x1b[31m\\nerror: no\n"
    )


def test_terminal_codes_of_a_description_do_not_reach_the_table(tmp_path: Path) -> None:
    entry(tmp_path / "v2.0", FIVE, described=SYSTEM | {"system_name": "\x1b[31mA\nB"})
    shown = run_cli("mlperf", tmp_path / "v2.0", "--workers", "1").stdout.splitlines()
    assert (len(shown), r"\x1b[31mA\nB" in shown[2]) == (4, True)


@pytest.mark.parametrize("kind", ["json", "csv", "table", "parquet"])
def test_texts_that_are_not_unicode_are_written(tmp_path: Path, kind: str) -> None:
    root, out = tmp_path / "v2.0", tmp_path / "out"
    entry(root, FIVE, described=SYSTEM | {"system_name": "A\ud800"})
    os.rename(root / "ACME", os.fsencode(root) + b"/A\xff")
    done = run_cli("mlperf", root, "--format", kind, "--out", out, "--workers", "1")
    assert (done.returncode, done.stderr) == (0, "")
    written = pq.read_table(out).to_pylist() if kind == "parquet" else out.read_text(encoding="utf-8")
    assert r"A\ud800" in str(written).replace("\\\\", "\\")
    if kind == "json":
        assert json.loads(str(written))[0]["submitter"] == "A\udcff"


def test_a_file_is_whole_or_not_there(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = put(tmp_path, "scores.json", b"old")
    real = Path.write_bytes

    def write_bytes(self: Path, data: bytes) -> int:
        real(self, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    done = run_cli("mlperf", tree, "--out", out, "--workers", "1")
    assert (done.returncode, done.stdout) == (1, "")
    assert one_line(done.stderr) == f"error: {out}: cannot be written: No space left on device"
    assert out.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores.json", "training_results_v2.0"]


def test_an_interrupt_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "scores.json", b"[]")
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_or_device_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, b"[]")
    assert os.read(reader, 10) == b"[]"
    os.close(reader)
    assert pipe.is_fifo()


def test_a_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(put(tmp_path, "kept.json", b"old"))
    write_atomically(tmp_path / "link", b"[]")
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "kept.json").read_bytes()) == (True, b"[]")


def test_a_folder_that_is_not_there_is_one_clear_line(tree: Path, tmp_path: Path) -> None:
    done = run_cli("mlperf", tree, "--out", tmp_path / "none" / "x.json", "--workers", "1")
    assert done.returncode == 1
    assert one_line(done.stderr).endswith("cannot be written: No such file or directory")


@pytest.mark.parametrize("name", COLUMNS)
def test_no_records_still_have_columns(name: str) -> None:
    assert as_bytes("csv", name, []).decode() == f"{','.join(COLUMNS[name])}\n"
    assert json.loads(as_bytes("json", name, [])) == []
    read = pq.read_table(BytesIO(as_bytes("parquet", name, [])))
    assert (tuple(read.column_names), read.num_rows) == (COLUMNS[name], 0)


@pytest.mark.parametrize("name", COLUMNS)
def test_the_columns_are_those_of_the_warehouse(name: str) -> None:
    joined = {"document_id", "result_id", "mlperf_id", "mlperf_id_confidence", "comparable_rounds"}
    assert COLUMNS[name] == tuple(column for column in table(name).names if column not in joined)


def test_the_records_have_those_columns(tree: Path) -> None:
    [one, *_] = json.loads(run_cli("mlperf", tree, "--format", "json", "--workers", "1").stdout)
    [run, *_] = json.loads(run_cli("mlperf", tree, "--format", "json", "--runs", "--workers", "1").stdout)
    assert (tuple(one), tuple(run)) == (COLUMNS["mlperf_entries"], COLUMNS["mlperf_runs"])


@pytest.mark.parametrize("out", ["scores.json", "ACME/results/scores.json", ""])
def test_the_input_is_never_written_to(tree: Path, out: str) -> None:
    before = sorted(tree.rglob("*"))
    done = run_cli("mlperf", tree, "--format", "json", "--out", tree / out, "--workers", "1")
    assert done.returncode == 2
    assert sorted(tree.rglob("*")) == before


def test_a_killed_worker_is_one_clear_line(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.json"
    with pytest.raises(WorkerLostError, match="a worker was killed; nothing was written"):
        score_tree(KillingTree(str(tree)), in_processes(2))
    done = command_on(KillingTree, "mlperf", tree, "--workers", "2", "--out", out)
    stdout, stderr = done.communicate(timeout=60)
    assert (done.returncode, stdout) == (1, "")
    assert one_line(stderr) == "error: a worker was killed; nothing was written"
    assert not out.exists()


def command_on(tree: type, *args: object, **env: str) -> subprocess.Popen[str]:
    """The command in a process group of its own, on another kind of tree."""
    script = (
        f"import sys; sys.path[:0] = ['tests']; import mlperf_support, ipu_results.mlperf.tree as tree;"
        f"tree.LocalTree = mlperf_support.{tree.__name__};"
        f"from ipu_results.cli import main; main({list(map(str, args))!r}, prog_name='ipu-results')"
    )
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **env},
        start_new_session=True,
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_leaves_nothing_half_written(tree: Path, tmp_path: Path, workers: int) -> None:
    begun, out = tmp_path / "begun", tmp_path / "out" / "scores.json"
    out.parent.mkdir()
    process = command_on(SlowTree, "mlperf", tree, "--workers", workers, "--out", out, BEGUN=str(begun))
    until = time.monotonic() + 60
    while not begun.exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout) == (1, "")
    assert one_line(stderr).startswith("error: interrupted")
    assert list(out.parent.iterdir()) == []


WORKER = """
import sys
from ipu_results.mlperf.scoring import in_processes, score_tree
from ipu_results.mlperf.tree import LocalTree
found = score_tree(LocalTree(sys.argv[1]), in_processes(1), digests=True)
print([one.minutes for one in found.entries])
print(sorted({"pandas", "pyarrow", "duckdb", "numpy"} & set(sys.modules)))
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the memory figures of Linux")
def test_a_worker_is_small(tmp_path: Path) -> None:
    told = json.dumps({"key": "tracked_stats", "time_ms": T0, "value": {"loss": 0.1}, "metadata": {}})
    inner = f":::MLLOG {told}\n".encode() * 60_000 + b"noise\n" * 2_000_000
    entry(tmp_path, [log(minutes, inner=inner) for minutes in (10, 11, 12, 13, 20)])
    command = [sys.executable, "-c", WORKER, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, timeout=60)
    scores, modules, peak = done.stdout.splitlines()
    assert (scores, modules) == ("[12.0]", "[]")
    assert int(peak) < 60_000


def unpacked(archive: Path, target: Path, *wanted: str) -> list[str]:
    """All names in an archive; the members whose names begin as wanted are unpacked."""
    names = []
    with tarfile.open(archive, "r|xz") as tar:
        for member in tar:
            names.append(member.name + ("/" if member.isdir() else ""))
            if member.name.startswith(wanted):
                tar.extract(member, target, filter="data")
    return names


GOLD_V2 = {
    "ipu-pod16-TF1-closed/resnet": 19.635156,
    "ipu-pod64-TF1-closed/resnet": 6.302183,
    "ipu-pod128-TF1-closed/resnet": 4.185306,
    "ipu-pod256-TF1-closed/resnet": 2.672083,
    "ipu-pod16-POPART-closed/bert": 20.653890,
    "ipu-pod64-POPART-closed/bert": 6.702808,
    "ipu-pod128-POPART-closed/bert": 4.415231,
    "ipu-pod256-POPART-closed/bert": 3.184854,
    "ipu-pod16-PaddlePaddle-closed/bert": 20.746906,
    "ipu-pod64-PaddlePaddle-closed/bert": 6.768646,
    "ipu-pod64-POPART-open/rnnt": 109.357188,
}
GOLD_V1 = {
    "ipu-pod16-POPART-closed/bert": 34.488767,
    "ipu-pod64-POPART-closed/bert": 11.075850,
    "ipu-pod16-TF1/resnet": 37.115211,
    "ipu-pod64-TF1/resnet": 14.484628,
    "ipu-pod16-POPART-open/bert": 27.753863,
    "ipu-pod64-POPART-open/bert": 9.392079,
}


@pytest.mark.skipif(not V1.exists(), reason="the official logs are not here")
def test_the_official_figures_of_v1_0(tmp_path: Path) -> None:
    unpacked(V1, tmp_path, "v1.0/Graphcore/")
    scores = {path.removeprefix("Graphcore/results/"): score for path, score in minutes(tmp_path / "v1.0").items()}
    assert scores == pytest.approx(GOLD_V1, abs=6e-7)


@pytest.mark.skipif(not V2.exists(), reason="the official logs are not here")
def test_the_official_figures_of_v2_0(tmp_path: Path) -> None:
    scaled = "v2.0/Google/results/cloud-tpu-v4-4096-TF/ssd"
    names = unpacked(V2, tmp_path, "v2.0/Graphcore/", "v2.0/Google/systems", scaled)
    every = plan(names, rules())
    assert (len(every.entries), sum(len(one.logs) for one in every.entries)) == (262, 2760)
    assert len({one.submitter for one in every.entries}) == 21
    done = run_cli("mlperf", tmp_path / "v2.0", "--workers", "2", "--format", "json")
    records = {record["path"]: record for record in json.loads(done.stdout)}
    google = records.pop(scaled.removeprefix("v2.0/"))
    assert (google["scaling_factor"], google["division"]) == (1.023, "closed")
    scores = {path.removeprefix("Graphcore/results/"): record["minutes"] for path, record in records.items()}
    assert scores == pytest.approx(GOLD_V2, abs=6e-7)
