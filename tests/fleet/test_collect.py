"""Runs of many machines merged into one folder: nothing lost, nothing half-written, nothing unverified."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
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
import tomli_w
from ipu_results import fleet
from ipu_results.build import IngestConfig, ingest
from ipu_results.errors import DamagedRunError
from ipu_results.fleet import CollectedRun, collect, folders
from ipu_results.sources.catalogue import COLLECTING

from tests.conftest import read_files, run_cli
from tests.runner.runs_support import POINTS, RUN_ID, emulated_point, point, put_emulated, put_run, write_sidecars

OTHER_ID = "20261122-080000-onnxruntime-cpu-00aa"
EMULATED = "20261122-090000-emulator-c2-00bb"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """Write the runs of two machines, in folders as a synchronised disk has them."""
    put_run(tmp_path / "lab" / "host-1")
    put_run(tmp_path / "lab" / "host-1", run_id=OTHER_ID)
    put_emulated(tmp_path / "lab" / "host-2" / "data", EMULATED)
    return tmp_path / "lab"


def count(outcomes: list[CollectedRun]) -> Counter[str]:
    return Counter(own.status for own in outcomes)


def list_runs(into: Path) -> list[str]:
    return sorted(path.name for path in into.iterdir() if not path.name.startswith("."))


def assert_nothing_staged(into: Path) -> None:
    left = [path for path in (into / COLLECTING).rglob("*") if path.name != ".lock"]
    assert left == []


# --- merging


def test_runs_of_all_machines_are_added_once(lab: Path, tmp_path: Path) -> None:
    into = tmp_path / "raw" / "runs"
    first = collect([str(lab)], into)
    assert count(first) == {"added": 3}
    before = read_files(into)
    assert list_runs(into) == sorted([RUN_ID, OTHER_ID, EMULATED])
    for name in (RUN_ID, OTHER_ID):
        assert read_files(into / name) == read_files(lab / "host-1" / "runs" / name)
    again = collect([str(lab / "host-1"), str(lab), str(into)], into)
    assert count(again) == {"present": 8}
    assert {own.run_id: own.digest for own in again} == {own.run_id: own.digest for own in first}
    assert read_files(into) == before
    assert ingest(IngestConfig(tmp_path / "raw", tmp_path / "warehouse")).results == 2 * len(POINTS) + 2
    assert_nothing_staged(into)


def test_source_may_be_a_run_itself(lab: Path, tmp_path: Path) -> None:
    (outcome,) = collect([str(lab / "host-1" / "runs" / RUN_ID)], tmp_path / "into")
    assert (outcome.run_id, outcome.status) == (RUN_ID, "added")


def test_digest_is_that_of_sha256sum(lab: Path, tmp_path: Path) -> None:
    (outcome,) = collect([str(lab / "host-2")], tmp_path / "into")
    folder = tmp_path / "into" / EMULATED
    names = sorted(path.name for path in folder.iterdir())
    printed = subprocess.run(["sha256sum", *names], cwd=folder, capture_output=True, check=True).stdout
    assert outcome.digest == hashlib.sha256(printed).hexdigest()
    assert outcome.size == sum(path.stat().st_size for path in folder.iterdir())


def test_other_run_of_the_same_id_is_a_conflict_and_both_are_kept(lab: Path, tmp_path: Path) -> None:
    put_run(tmp_path / "mine", [point(1, 99.0)], run_id=RUN_ID)
    into, apart = tmp_path / "into", tmp_path / "apart"
    collect([str(tmp_path / "mine")], into)
    before = read_files(into / RUN_ID)
    for _ in range(2):
        outcomes = collect([str(lab)], into, conflicts=apart)
        (conflict,) = [own for own in outcomes if own.status == "conflict"]
        assert conflict.run_id == RUN_ID
        assert "points.csv, points.csv.toml differ; the source keeps its own; kept in" in str(conflict.reason)
        assert read_files(into / RUN_ID) == before
    (kept,) = apart.iterdir()
    assert kept.name == f"{RUN_ID}-{str(conflict.digest)[:12]}"
    assert read_files(kept) == read_files(lab / "host-1" / "runs" / RUN_ID)
    assert list_runs(into) == sorted([RUN_ID, OTHER_ID, EMULATED])


@pytest.mark.parametrize("kind", ["damaged", "half", "link", "dangling", "file", "measured"])
def test_what_is_in_place_is_never_changed(lab: Path, tmp_path: Path, kind: str) -> None:
    into = tmp_path / "into"
    into.mkdir()
    target = into / RUN_ID
    if kind in ("damaged", "half"):
        shutil.copytree(lab / "host-1" / "runs" / RUN_ID, target)
        if kind == "half":
            (target / "stamps.parquet").unlink()
        else:
            (target / "blocks.jsonl").write_text("changed\n")
    elif kind in ("link", "dangling"):
        target.symlink_to(lab / "host-1" / "runs" / (RUN_ID if kind == "link" else "gone"))
    elif kind == "file":
        target.write_text("a file")
    else:
        (into / f"{RUN_ID}.unfinished").mkdir()
    before = {} if kind == "dangling" else read_files(into)
    outcomes = collect([str(lab)], into)
    assert count(outcomes) == {"conflict": 1, "added": 2}
    assert target.is_symlink() == (kind in ("link", "dangling"))
    assert {name: data for name, data in read_files(into).items() if name in before} == before


# --- what is skipped or refused


def make_unfinished(run: Path) -> None:
    (run / "journal.jsonl").write_text('{"step": "opened"}\n')
    run.rename(run.with_name(f"{run.name}.unfinished"))


def keep_journal(run: Path) -> None:
    (run / "record.json").unlink()
    (run / "journal.jsonl").write_text('{"step": "opened"}\n')


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (make_unfinished, "its journal has no end"),
        (keep_journal, "its journal has no end"),
        (lambda run: (run / "stamps.parquet").unlink(), "is incomplete: it has no stamps.parquet"),
        (lambda run: (run / "points.csv.toml").unlink(), "is incomplete: it has no points.csv.toml"),
    ],
)
def test_unfinished_run_is_skipped_and_named(
    lab: Path, tmp_path: Path, change: Callable[[Path], object], message: str
) -> None:
    change(lab / "host-1" / "runs" / RUN_ID)
    outcomes = collect([str(lab)], tmp_path / "into")
    assert count(outcomes) == {"unfinished": 1, "added": 2}
    (skipped,) = [own for own in outcomes if own.status == "unfinished"]
    assert skipped.run_id == RUN_ID
    assert message in str(skipped.reason)


def link_file(run: Path) -> None:
    (run / "blocks.jsonl").unlink()
    (run / "blocks.jsonl").symlink_to("/etc/passwd")


def link_run(run: Path) -> None:
    shutil.move(run, run.parents[3] / "elsewhere")
    run.symlink_to(run.parents[3] / "elsewhere")


def put_pipe(run: Path) -> None:
    (run / "stamps.parquet").unlink()
    os.mkfifo(run / "stamps.parquet")


def edit_sidecar(name: str, **changes: Any) -> Callable[[Path], None]:
    def edit(run: Path) -> None:
        entry = tomllib.loads((run / name).read_text())
        (run / name).write_text(tomli_w.dumps({**entry, **changes}))

    return edit


def change_run_id(run: Path) -> None:
    record = json.loads((run / "record.json").read_text())
    (run / "record.json").write_text(json.dumps({**record, "run_id": OTHER_ID}))
    write_sidecars(run)


def change_points(run: Path, old: str, new: str) -> None:
    text = (run / "points.csv").read_text()
    assert old in text
    (run / "points.csv").write_text(text.replace(old, new))
    write_sidecars(run)


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "link to a file": (link_file, "'blocks.jsonl' is a link: a run has files only"),
    "link to a run": (link_run, "is a link; not followed"),
    "folder inside": (lambda run: (run / "sub").mkdir(), "'sub' is not a regular file"),
    "named pipe": (put_pipe, "'stamps.parquet' is not a regular file"),
    "script inside": (lambda run: (run / "run.sh").write_text("echo"), "'run.sh' is not a file of a run"),
    "other folder name": (lambda run: run.rename(run.with_name("my run")), "is not the id of a run"),
    "changed blocks": (lambda run: (run / "blocks.jsonl").write_text("{}\n"), "sha256 is"),
    "changed stamps": (lambda run: (run / "stamps.parquet").write_bytes(b"PAR1"), "sha256 is"),
    "changed points": (lambda run: (run / "points.csv").write_text("a,b\n1,2\n"), "sha256 is"),
    "changed record": (lambda run: (run / "record.json").write_text("{}"), "sha256 is"),
    "sidecar of nothing": (lambda run: (run / "record.json.toml").write_text("x = 1\n"), "record.json.toml"),
    "sidecar is not TOML": (lambda run: (run / "points.csv.toml").write_text("{{"), "points.csv.toml"),
    "sidecar that takes hours to parse": (
        lambda run: (run / "points.csv.toml").write_text("a" + ".a" * 900_000 + " = 1\n"),
        "is not a readable sidecar",
    ),
    "title with HTML": (edit_sidecar("points.csv.toml", title="<script>alert(1)</script>"), "title holds HTML"),
    "note that runs backwards": (edit_sidecar("record.json.toml", note="\u202e"), "note has the character U+202E"),
    "HTML in a point": (lambda run: change_points(run, "Some CPU", "<b>CPU"), "platform holds HTML"),
    "attachment outside": (edit_sidecar("points.csv.toml", attachments={"../../x": "0" * 64}), "points.csv.toml"),
    "blocks not attached": (edit_sidecar("points.csv.toml", attachments={}), "attaches nothing"),
    "other document": (edit_sidecar("record.json.toml", document_id=f"sweep-{OTHER_ID}"), "is not a document of"),
    "not a run": (edit_sidecar("points.csv.toml", kind="curated"), "does not go with kind"),
    "rows lost": (edit_sidecar("points.csv.toml", tables={"sweep_points": {"rows": 9}}), "the sidecar expects 9"),
    "other record": (change_run_id, "is the record of another run"),
    "other backend": (lambda run: change_points(run, ",onnxruntime,", ",openvino,"), "is not the backend of the run"),
    "simulated": (lambda run: change_points(run, ",measured,", ",simulated,"), "no point of it makes a result"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_run_is_refused_and_nothing_of_it_is_written(lab: Path, tmp_path: Path, case: str) -> None:
    change, message = HOSTILE[case]
    change(lab / "host-1" / "runs" / RUN_ID)
    into = tmp_path / "into"
    outcomes = collect([str(lab)], into)
    assert count(outcomes) == {"refused": 1, "added": 2}
    (refused,) = [own for own in outcomes if own.status == "refused"]
    assert message in str(refused.reason)
    assert "\n" not in str(refused.reason)
    assert list_runs(into) == sorted([OTHER_ID, EMULATED])
    assert_nothing_staged(into)


def test_mixed_origins_are_refused(tmp_path: Path) -> None:
    put_run(tmp_path / "lab", [point(1, 99.0), emulated_point(2, 99.0, backend="onnxruntime", device="cpu")])
    (refused,) = collect([str(tmp_path / "lab")], tmp_path / "into")
    assert refused.status == "refused"
    assert "mixes origins: emulated, measured" in str(refused.reason)


@pytest.mark.parametrize(("name", "limit"), [("stamps.parquet", "MAX_RUN_FILE_BYTES"), ("points.csv", "MAX_BYTES")])
def test_oversized_file_is_refused(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: str
) -> None:
    run = lab / "host-1" / "runs" / RUN_ID
    monkeypatch.setattr(fleet, limit, max((run / own).stat().st_size for own in folders.FILES) + 100)
    with (run / name).open("ab") as file:
        file.truncate(2**24)
    (refused,) = [own for own in collect([str(lab)], tmp_path / "into") if own.status == "refused"]
    assert f"{name}: is larger than" in str(refused.reason)


def test_source_that_cannot_be_listed_does_not_stop_the_others(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    sources = [str(tmp_path / "absent"), str(tmp_path / "empty"), "nope://host/runs", str(lab)]
    outcomes = collect(sources, tmp_path / "into")
    assert [own.status for own in outcomes] == ["failed"] * 3 + ["added"] * 3
    for own, reason in zip(outcomes, ("No such file", "holds no run", "cannot be opened"), strict=False):
        assert reason in str(own.reason)
    monkeypatch.setattr(folders, "MAX_RUN_FOLDERS", 3)
    assert "has more than 3 folders below it" in str(collect([str(lab)], tmp_path / "into")[-1].reason)
    monkeypatch.undo()
    monkeypatch.setattr(folders, "MAX_RUN_DEPTH", 2)
    (deep,) = [own for own in collect([str(lab)], tmp_path / "into") if own.status == "refused"]
    assert "more than 2 folders below the source" in str(deep.reason)


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


@pytest.mark.slow
def test_runs_on_a_web_server_are_added(lab: Path, tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="the extra `remote` is not installed")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(lab))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://me:secret@127.0.0.1:{server.server_port}/"
        outcomes = collect([url], tmp_path / "into")
        again = collect([f"{url}host-1/"], tmp_path / "into")
        server.shutdown()
    assert count(outcomes) == {"added": 3}
    assert count(again) == {"present": 2}
    assert not any("secret" in own.source for own in outcomes)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_names_of_a_server_lead_nowhere_else(bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = bucket.ls
    run = f"/bucket/host-1/runs/{RUN_ID}"

    def list_hostile(path: str, detail: bool = True, **more: Any) -> list[dict[str, Any]]:
        entries = listed(path, detail=detail, **more)
        if path.rstrip("/") == "/bucket":
            entries += [{"name": "/bucket/..", "type": "directory"}, {"name": "/bucket/a\\b", "type": "directory"}]
            entries += [{"name": "/elsewhere/20261122-100000-x-00cc", "type": "directory"}]
            entries += [{"name": "/bucket/20261122-110000-x-00dd", "type": "directory", "islink": True}]
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
    (failed,) = [own for own in outcomes if own.status == "failed"]
    assert failed.reason == "stamps.parquet cannot be read: https://lab.example/x timed out"
    monkeypatch.undo()
    assert count(collect(["memory://bucket"], tmp_path / "into")) == {"added": 1, "present": 2}


# --- several at once, killed, full disk


def put_many(folder: Path, runs: int) -> list[str]:
    names = [f"20261122-{number:06d}-onnxruntime-cpu-00aa" for number in range(runs)]
    for name in names:
        put_run(folder, run_id=name)
    return names


def test_two_collectors_at_once_lose_nothing(tmp_path: Path) -> None:
    names = put_many(tmp_path / "lab", 12)
    into = tmp_path / "into"
    with ThreadPoolExecutor(3) as pool:
        parts = list(pool.map(lambda _: collect([str(tmp_path / "lab")], into), range(3)))
    outcomes = [own for part in parts for own in part]
    assert count(outcomes) == {"added": 12, "present": 24}
    assert list_runs(into) == names
    assert_nothing_staged(into)


@pytest.mark.slow
def test_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    names = put_many(tmp_path / "lab", 40)
    into = tmp_path / "into"
    command = [sys.executable, "-m", "ipu_results", "collect", str(tmp_path / "lab"), "--into", str(into)]
    running = [
        subprocess.Popen([*command, "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(3)
    ]
    records = [record for process in running for record in json.loads(process.communicate()[0])]
    assert Counter(record["status"] for record in records) == {"added": 40, "present": 80}
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
@pytest.mark.parametrize(("where", "at"), [("fsync", 3), ("fsync", 20), ("rename", 1), ("rename", 3)])
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
        assert ingest(IngestConfig(into.parent, tmp_path / "warehouse")).results == len(there) * len(POINTS)
    assert (
        count(collect([str(tmp_path / "lab")], into)) == Counter(added=5 - len(there), present=len(there)) - Counter()
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


def test_folder_that_cannot_be_written_is_one_error(lab: Path, tmp_path: Path) -> None:
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
    assert f"finding: unfinished: {lab}/host-2/data/runs/{EMULATED}.unfinished: is unfinished" in done.stderr
    assert done.stderr.endswith(f"{into}: 2 added, 1 unfinished\n")
    assert run_cli("collect", str(lab), "--into", into, "--strict").returncode == 1
    link_file(lab / "host-1" / "runs" / RUN_ID)
    done = run_cli("collect", str(lab), "--into", into)
    assert done.returncode == 1
    assert "error: refused: " in done.stderr
    assert OTHER_ID in done.stdout
    assert run_cli("collect").returncode == 2
