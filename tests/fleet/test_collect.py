"""Runs of many machines merged into one folder: nothing lost, nothing half-written, nothing
unverified.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import fsspec
import pytest
from ipu_results.build import IngestConfig, ingest
from ipu_results.errors import DamagedRunError
from ipu_results.fleet import collect, folders
from ipu_results.sources.catalogue import COLLECTING

from tests.conftest import check_raw, read_files, run_cli
from tests.fleet.conftest import (
    EMULATED,
    OTHER_ID,
    assert_nothing_staged,
    count,
    explain,
    list_runs,
)
from tests.runner.runs_support import POINTS, RUN_ID, point, put_run

# --- merging


def test_runs_of_all_machines_are_added_once(lab: Path, tmp_path: Path) -> None:
    into = tmp_path / "raw" / "runs"
    first = collect([str(lab)], into)
    assert count(first) == {"added": 3}
    before = read_files(into)
    assert list_runs(into) == sorted([RUN_ID, OTHER_ID, EMULATED])
    for name in (RUN_ID, OTHER_ID):
        assert read_files(into / name) == read_files(lab / "host-1" / "runs" / name)
    itself = str(lab / "host-1" / "runs" / RUN_ID)
    again = collect([itself, str(lab / "host-1"), str(lab), str(into)], into)
    assert count(again) == {"present": 9}
    assert {own.run_id: own.digest for own in again} == {own.run_id: own.digest for own in first}
    assert read_files(into) == before
    assert len(check_raw(tmp_path / "raw").frames["results"]) == 2 * len(POINTS) + 2
    assert_nothing_staged(into)


def test_digest_is_that_of_sha256sum(lab: Path, tmp_path: Path) -> None:
    (outcome,) = collect([str(lab / "host-2")], tmp_path / "into")
    folder = tmp_path / "into" / EMULATED
    names = sorted(path.name for path in folder.iterdir())
    printed = subprocess.run(
        ["sha256sum", *names], cwd=folder, capture_output=True, check=True
    ).stdout
    assert outcome.digest == hashlib.sha256(printed).hexdigest()
    assert outcome.size == sum(path.stat().st_size for path in folder.iterdir())


def test_other_run_of_the_same_id_is_a_conflict_and_both_are_kept(
    lab: Path, tmp_path: Path
) -> None:
    put_run(tmp_path / "mine", [point(1, 99.0)], run_id=RUN_ID)
    into, apart = tmp_path / "into", tmp_path / "apart"
    collect([str(tmp_path / "mine")], into)
    before = read_files(into / RUN_ID)
    for _ in range(2):
        outcomes = collect([str(lab)], into, conflicts=apart)
        (conflict,) = [own for own in outcomes if own.status == "conflict"]
        assert conflict.run_id == RUN_ID
        assert "points.csv, points.csv.toml differ; the source keeps its own; kept in" in str(
            conflict.reason
        )
        assert read_files(into / RUN_ID) == before
    (kept,) = apart.iterdir()
    assert kept.name == f"{RUN_ID}-{str(conflict.digest)[:12]}"
    assert read_files(kept) == read_files(lab / "host-1" / "runs" / RUN_ID)
    assert list_runs(into) == sorted([RUN_ID, OTHER_ID, EMULATED])


PLACES: dict[str, Callable[[Path, Path], object]] = {
    "damaged": (
        lambda run, target: (shutil.copytree(run, target) / "blocks.jsonl").write_text("changed\n")
    ),
    "half": lambda run, target: (shutil.copytree(run, target) / "stamps.parquet").unlink(),
    "link": lambda run, target: target.symlink_to(run),
    "dangling link": lambda run, target: target.symlink_to(run / "gone"),
    "file": lambda _, target: target.write_text("a file"),
    "measured now": lambda _, target: target.with_name(f"{RUN_ID}.unfinished").mkdir(),
}


@pytest.mark.parametrize("kind", PLACES)
def test_what_is_in_place_is_never_changed(lab: Path, tmp_path: Path, kind: str) -> None:
    into = tmp_path / "into"
    into.mkdir()
    PLACES[kind](lab / "host-1" / "runs" / RUN_ID, into / RUN_ID)
    before = read_files(into)
    outcomes = collect([str(lab)], into)
    assert count(outcomes) == {"conflict": 1, "added": 2}
    assert (into / RUN_ID).is_symlink() == ("link" in kind)
    assert read_files(into).items() >= before.items()


# --- what is skipped or refused


def make_unfinished(run: Path) -> None:
    keep_journal(run)
    run.rename(run.with_name(f"{run.name}.unfinished"))


def keep_journal(run: Path) -> None:
    (run / "record.json").rename(run / "journal.jsonl")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (make_unfinished, "its journal has no end"),
        (keep_journal, "its journal has no end"),
        (lambda run: (run / "stamps.parquet").unlink(), "is incomplete: it has no stamps.parquet"),
        (
            lambda run: (run / "points.csv.toml").unlink(),
            "is incomplete: it has no points.csv.toml",
        ),
    ],
)
def test_unfinished_run_is_skipped_and_named(
    lab: Path, tmp_path: Path, change: Callable[[Path], object], message: str
) -> None:
    change(lab / "host-1" / "runs" / RUN_ID)
    outcomes = collect([str(lab)], tmp_path / "into")
    assert count(outcomes) == {"unfinished": 1, "added": 2}
    assert message in explain(outcomes, "unfinished")


def test_source_that_cannot_be_listed_does_not_stop_the_others(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    sources = [str(tmp_path / "absent"), str(tmp_path / "empty"), "nope://host/runs", str(lab)]
    outcomes = collect(sources, tmp_path / "into")
    assert [own.status for own in outcomes] == ["failed"] * 3 + ["added"] * 3
    for own, reason in zip(
        outcomes, ("No such file", "holds no run", "cannot be opened"), strict=False
    ):
        assert reason in str(own.reason)
    monkeypatch.setattr(folders, "MAX_RUN_FOLDERS", 7)  # eight are below it
    assert "has more than 7 folders below it" in str(
        collect([str(lab)], tmp_path / "into")[-1].reason
    )
    monkeypatch.setattr(folders, "MAX_RUN_FOLDERS", 8)
    assert count(collect([str(lab)], tmp_path / "into")) == {"present": 3}
    monkeypatch.undo()
    monkeypatch.setattr(folders, "MAX_RUN_DEPTH", 2)
    assert "more than 2 folders below the source" in explain(
        collect([str(lab)], tmp_path / "into"), "refused"
    )


# --- URLs


@pytest.fixture
def bucket(lab: Path) -> Iterator[Any]:
    """Put the runs into an object store that this process alone sees."""
    store = fsspec.filesystem("memory")
    store.store.clear()
    store.pseudo_dirs[:] = [""]
    store.put(str(lab), "/bucket", recursive=True)
    yield store
    store.store.clear()
    store.pseudo_dirs[:] = [""]


def test_runs_at_a_url_are_added(bucket: Any, lab: Path, tmp_path: Path) -> None:
    into = tmp_path / "into"
    assert count(collect(["memory://bucket"], into)) == {"added": 3}
    assert count(collect([lab.as_uri(), "memory://bucket/host-2"], into)) == {"present": 4}
    bucket.pipe(f"/bucket/host-1/runs/{RUN_ID}/blocks.jsonl", b"changed")
    outcomes = collect(["memory://bucket"], into)
    assert count(outcomes) == {"refused": 1, "present": 2}


def test_runs_on_a_web_server_are_added(lab: Path, tmp_path: Path) -> None:
    put_run(lab / "host 3&ä")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(lab))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        outcomes = collect([url], tmp_path / "into")
        again = collect([f"{url}/host-1"], tmp_path / "into")
        server.shutdown()
    assert count(outcomes) == {"added": 3, "present": 1}
    assert count(again) == {"present": 2}


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_names_of_a_server_lead_nowhere_else(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = bucket.ls
    run = f"/bucket/host-1/runs/{RUN_ID}"

    def list_hostile(path: str, detail: bool = True, **more: Any) -> list[dict[str, Any]]:
        entries = listed(path, detail=detail, **more)
        if path.rstrip("/") == "/bucket":
            entries += [
                {"name": "/bucket/..", "type": "directory"},
                {"name": "/bucket/a\\b", "type": "directory"},
            ]
            entries += [{"name": "/elsewhere/20261122-100000-x-00cc", "type": "directory"}]
            entries += [
                {"name": "/bucket/20261122-110000-x-00dd", "type": "directory", "islink": True}
            ]
        if path.rstrip("/") == run:
            entries += [{"name": f"{run}/../../{OTHER_ID}/points.csv", "type": "file"}]
        return list(entries)

    monkeypatch.setattr(bucket, "ls", list_hostile)
    outcomes = collect(["memory://bucket"], tmp_path / "into")
    reasons = sorted(str(own.reason) for own in outcomes if own.status == "refused")
    assert reasons == ["has a hostile name", "has a hostile name", "is a link; not followed"]
    assert count(outcomes)["added"] == 3


def test_server_that_fails_in_the_middle_loses_one_run_only(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = bucket.open

    def fail(path: str, *args: Any, **more: Any) -> Any:
        if path.endswith(f"{OTHER_ID}/stamps.parquet"):
            raise TimeoutError("https://me:secret@lab.example/x?token=secret timed out")
        return opened(path, *args, **more)

    monkeypatch.setattr(bucket, "open", fail)
    outcomes = collect(["memory://bucket"], tmp_path / "into")
    assert count(outcomes) == {"failed": 1, "added": 2}
    assert (
        explain(outcomes, "failed")
        == "stamps.parquet cannot be read: https://lab.example/x timed out"
    )
    monkeypatch.undo()
    assert count(collect(["memory://bucket"], tmp_path / "into")) == {"added": 1, "present": 2}


# --- several at once, killed, full disk


def put_many(folder: Path, runs: int) -> list[str]:
    names = [f"20261122-{number:06d}-onnxruntime-cpu-00aa" for number in range(runs)]
    for name in names:
        put_run(folder, run_id=name)
    return names


def test_threads_at_once_lose_nothing(tmp_path: Path) -> None:
    names, into = put_many(tmp_path / "lab", 6), tmp_path / "into"
    with ThreadPoolExecutor(3) as pool:
        parts = list(pool.map(lambda _: collect([str(tmp_path / "lab")], into), range(3)))
    assert count([own for part in parts for own in part]) == {"added": 6, "present": 12}
    assert list_runs(into) == names
    assert_nothing_staged(into)


@pytest.mark.slow
def test_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    names = put_many(tmp_path / "lab", 12)
    into = tmp_path / "into"
    command = [
        sys.executable,
        "-m",
        "ipu_results",
        "collect",
        str(tmp_path / "lab"),
        "--into",
        str(into),
    ]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = [subprocess.Popen([*command, "--format", "json"], **pipes) for _ in range(3)]
    replies = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], replies
    records = [record for out, _ in replies for record in json.loads(out)]
    assert Counter(record["status"] for record in records) == {"added": 12, "present": 24}
    assert list_runs(into) == names
    assert_nothing_staged(into)


KILLED = """
import os, signal, sys
from ipu_results.fleet import collect
where, at = sys.argv[3], int(sys.argv[4])
real, calls = getattr(os, where), []
def kill(*args, **more):
    calls.append(args)
    if len(calls) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **more)
setattr(os, where, kill)
collect([sys.argv[1]], __import__("pathlib").Path(sys.argv[2]), workers=1)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "at"), [("fsync", 3), ("fsync", 20), ("rename", 1), ("rename", 3)]
)
def test_killed_collector_leaves_nothing_half_written(tmp_path: Path, where: str, at: int) -> None:
    names = put_many(tmp_path / "lab", 5)
    into = tmp_path / "raw" / "runs"
    command = [sys.executable, "-c", KILLED, str(tmp_path / "lab"), str(into), where, str(at)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    there = list_runs(into)
    assert set(there) < set(names)
    for name in there:
        assert read_files(into / name) == read_files(tmp_path / "lab" / "runs" / name)
    assert [path for path in (into / COLLECTING).iterdir() if path.is_dir()] != []
    if there:  # what was staged is not ingested
        assert ingest(IngestConfig(into.parent, tmp_path / "warehouse")).results == len(
            there
        ) * len(POINTS)
    assert (
        count(collect([str(tmp_path / "lab")], into))
        == Counter(added=5 - len(there), present=len(there)) - Counter()
    )
    assert list_runs(into) == names
    assert_nothing_staged(into)


@pytest.mark.parametrize("where", ["fsync", "rename"])
def test_full_disk_is_one_error_and_leaves_nothing(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, where, fail)
    with pytest.raises(DamagedRunError, match="No space left on device"):
        collect([str(lab)], tmp_path / "into")
    monkeypatch.undo()
    assert list_runs(tmp_path / "into") == []
    assert_nothing_staged(tmp_path / "into")
    assert count(collect([str(lab)], tmp_path / "into")) == {"added": 3}
    (tmp_path / "file").write_text("")
    with pytest.raises(DamagedRunError, match="cannot be written"):
        collect([str(lab)], tmp_path / "file")


# --- the command


def test_command_reports_each_run_and_its_exit_status(lab: Path, tmp_path: Path) -> None:
    into = str(tmp_path / "into")
    make_unfinished(lab / "host-2" / "data" / "runs" / EMULATED)
    done = run_cli("collect", str(lab), "--into", into, "--format", "json")
    records = {record["run_id"]: record for record in json.loads(done.stdout)}
    assert {name: record["status"] for name, record in records.items()} == {
        RUN_ID: "added", OTHER_ID: "added", EMULATED: "unfinished",
    }  # fmt: skip
    assert done.returncode == 0
    assert (
        f"finding: unfinished: {lab}/host-2/data/runs/{EMULATED}.unfinished: is unfinished"
        in done.stderr
    )
    assert done.stderr.endswith(f"{into}: 2 added, 1 unfinished\n")
    assert run_cli("collect", str(lab), "--into", into, "--strict").returncode == 1
    (lab / "host-1" / "runs" / RUN_ID / "run.sh").touch()
    done = run_cli("collect", str(lab), "--into", into)
    assert done.returncode == 1
    assert "error: refused: " in done.stderr
    assert OTHER_ID in done.stdout
    assert run_cli("collect").returncode == 2
