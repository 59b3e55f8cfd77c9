"""Runs that are refused: links, changed bytes, foreign documents, HTML, sizes."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from ipu_results import fleet
from ipu_results.fleet import collect, folders

from tests.fleet.conftest import EMULATED, OTHER_ID, assert_nothing_staged, count, explain, list_runs
from tests.runner.runs_support import RUN_ID, emulated_point, point, put_run, write_sidecars


def link_file(run: Path) -> None:
    (run / "blocks.jsonl").unlink()
    (run / "blocks.jsonl").symlink_to("/etc/passwd")


def link_run(run: Path) -> None:
    run.symlink_to(run.rename(run.parents[3] / "elsewhere"))


def put_pipe(run: Path) -> None:
    (run / "stamps.parquet").unlink()
    os.mkfifo(run / "stamps.parquet")


def write(name: str, data: str) -> Callable[[Path], object]:
    return lambda run: (run / name).write_text(data)


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
    "script inside": (write("run.sh", "echo"), "'run.sh' is not a file of a run"),
    "other folder name": (lambda run: run.rename(run.with_name("my run")), "is not the id of a run"),
    "changed blocks": (write("blocks.jsonl", "{}\n"), "sha256 is"),
    "changed stamps": (write("stamps.parquet", "PAR1"), "sha256 is"),
    "changed points": (write("points.csv", "a,b\n1,2\n"), "sha256 is"),
    "changed record": (write("record.json", "{}"), "sha256 is"),
    "sidecar of nothing": (write("record.json.toml", "x = 1\n"), "record.json.toml"),
    "sidecar is not TOML": (write("points.csv.toml", "{{"), "points.csv.toml"),
    "sidecar that takes hours to parse": (write("points.csv.toml", f"a{'.a' * 900_000} = 1\n"), "is not a readable"),
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
    assert message in (reason := explain(outcomes, "refused"))
    assert "\n" not in reason
    assert list_runs(into) == sorted([OTHER_ID, EMULATED])
    assert_nothing_staged(into)


def test_mixed_origins_are_refused(tmp_path: Path) -> None:
    put_run(tmp_path / "lab", [point(1, 99.0), emulated_point(2, 99.0, backend="onnxruntime", device="cpu")])
    assert "mixes origins: emulated, measured" in explain(
        collect([str(tmp_path / "lab")], tmp_path / "into"), "refused"
    )


@pytest.mark.parametrize(("name", "limit"), [("stamps.parquet", "MAX_RUN_FILE_BYTES"), ("points.csv", "MAX_BYTES")])
def test_oversized_file_is_refused(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: str
) -> None:
    run = lab / "host-1" / "runs" / RUN_ID
    monkeypatch.setattr(fleet, limit, max((run / own).stat().st_size for own in folders.FILES) + 100)
    with (run / name).open("ab") as file:
        file.truncate(2**24)
    assert f"{name}: is larger than" in explain(collect([str(lab)], tmp_path / "into"), "refused")
