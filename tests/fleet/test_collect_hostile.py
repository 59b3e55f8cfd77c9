"""Runs that are refused: links, changed bytes, foreign documents, HTML, sizes."""

from __future__ import annotations

import gzip
import json
import os
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from ipu_results import fleet
from ipu_results.fleet import CollectedRun, collect, folders

from tests.fleet.conftest import OTHER_ID, assert_nothing_staged, count, explain, list_runs
from tests.runner.runs_support import RUN_ID, emulated_point, point, put_run, write_sidecars
from tests.sources.http_support import Handler, run_server


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


@pytest.fixture(scope="module")
def collected(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[dict[str, list[CollectedRun]], Path]:
    """Collect a hostile run of each case at once, each in a folder of its own, next to another run."""
    root = tmp_path_factory.mktemp("hostile")
    folders = {case: root / str(number) / "lab" for number, case in enumerate(HOSTILE)}
    for case, folder in folders.items():
        put_run(folder / "host-1")
        HOSTILE[case][0](folder / "host-1" / "runs" / RUN_ID)
    put_run(folders["link to a file"] / "host-1", run_id=OTHER_ID)
    outcomes = collect(list(map(str, folders.values())), root / "into")
    by_case = {
        case: [own for own in outcomes if f"{place}/" in own.source]
        for case, place in folders.items()
    }
    return by_case, root / "into"


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_run_is_refused_and_nothing_of_it_is_written(
    collected: tuple[dict[str, list[CollectedRun]], Path], case: str
) -> None:
    outcomes, into = collected
    assert count(outcomes[case]) == Counter(
        {"refused": 1} | ({"added": 1} if case == "link to a file" else {})
    )
    assert HOSTILE[case][1] in (reason := explain(outcomes[case], "refused"))
    assert "\n" not in reason
    assert list_runs(into) == [OTHER_ID]
    assert_nothing_staged(into)


def test_folder_that_becomes_a_link_after_it_was_listed_is_not_read(lab: Path) -> None:
    folder = folders.LocalFolder(str(lab))
    link_run(lab / "host-1" / "runs" / RUN_ID)
    with pytest.raises(OSError, match=r"symbolic links"):
        folder.open_file(f"host-1/runs/{RUN_ID}/points.csv")


def test_mixed_origins_are_refused(tmp_path: Path) -> None:
    put_run(
        tmp_path / "lab",
        [point(1, 99.0), emulated_point(2, 99.0, backend="onnxruntime", device="cpu")],
    )
    assert "mixes origins: emulated, measured" in explain(
        collect([str(tmp_path / "lab")], tmp_path / "into"), "refused"
    )


@pytest.mark.parametrize(
    ("name", "limit"), [("stamps.parquet", "MAX_RUN_FILE_BYTES"), ("points.csv", "MAX_BYTES")]
)
def test_oversized_file_is_refused(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: str
) -> None:
    run = lab / "host-1" / "runs" / RUN_ID
    monkeypatch.setattr(
        fleet, limit, max((run / own).stat().st_size for own in folders.FILES) + 100
    )
    with (run / name).open("ab") as file:
        file.truncate(2**24)
    assert f"{name}: is larger than" in explain(collect([str(lab)], tmp_path / "into"), "refused")


# --- web servers: the rules are those of `fetch`

LISTING = b"<html><a href='%s/'>run</a>" % RUN_ID.encode()


def list_without_end(handler: Handler, _: int) -> None:
    handler.send(LISTING, length=None)
    handler.drip(b"<a href='x/'>x</a>" * 5000, 0)


def list_packed(handler: Handler, _: int) -> None:
    handler.send(gzip.compress(LISTING + bytes(9_000_000)), Content_Encoding="gzip")


def send_file_without_end(handler: Handler, _: int) -> None:
    handler.send(b"", length=None, kind="application/octet-stream")
    handler.drip(b"x" * 50_000, 0)


WEB: dict[str, tuple[Callable[[Handler, int], object], str]] = {
    "endless listing": (list_without_end, "larger than the limit of 5000000 bytes"),
    "packed listing": (list_packed, "larger than the limit of 5000000 bytes"),
    "other place": (
        lambda own, _: own.send(b"", status=302, Location="http://169.254.169.254/"),
        "to another place",
    ),
    "other port": (
        lambda own, _: own.send(b"", status=302, Location="http://127.0.0.1:1/"),
        "to another place",
    ),
    "not a page": (
        lambda own, _: own.send(LISTING, kind="application/json"),
        "came as application/json",
    ),
    "other encoding": (
        lambda own, _: own.send(LISTING, Content_Encoding="br"),
        "came in the encoding br",
    ),
}


@pytest.mark.parametrize("case", WEB)
def test_web_server_is_read_by_the_rules_of_fetch(tmp_path: Path, case: str) -> None:
    respond, message = WEB[case]
    with run_server() as server:
        outcomes = collect([server.on(respond, "/runs/")], tmp_path / "into")
    assert message in explain(outcomes, "failed")
    assert_nothing_staged(tmp_path / "into")


def test_endless_file_of_a_web_server_ends_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "MAX_BYTES", 200_000)
    links = "".join(f"<a href='{name}'>{name}</a>" for name in folders.FILES)
    with run_server() as server:
        server.on(lambda own, _: own.send(LISTING), "/runs/")
        server.on(lambda own, _: own.send(f"<html>{links}".encode()), f"/runs/{RUN_ID}/")
        for name in folders.FILES:
            url = server.on(send_file_without_end, f"/runs/{RUN_ID}/{name}")
        outcomes = collect([url.rpartition(f"/{RUN_ID}")[0]], tmp_path / "into")
    assert "record.json cannot be read: 127.0.0.1/runs" in (reason := explain(outcomes, "failed"))
    assert "larger than the limit of 200000 bytes" in reason
    assert_nothing_staged(tmp_path / "into")


def test_links_of_a_web_server_lead_nowhere_else(tmp_path: Path) -> None:
    links = [
        "../other/",
        "http://127.0.0.1:1/x/",
        "//evil.invalid/y/",
        "%2e%2e/",
        "a%2Fb/",
        "http://[::1/",
        "?C=N",
        "x/?C=N",
        "/",
    ]
    with run_server() as server:
        body = "<html>" + "".join(f"<a href='{link}'>x</a>" for link in links)
        outcomes = collect(
            [server.on(lambda own, _: own.send(body.encode()), "/runs/")], tmp_path / "into"
        )
        assert dict(server.hits) == {"/runs/": 1}
    assert [own.reason for own in outcomes] == ["has a hostile name"] * 2


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("http://me:secret@127.0.0.1:1/runs/", "credentials is refused"),
        ("http://127.0.0.1:1/runs/?token=secret", "has a query"),
        ("simplecache::http://127.0.0.1:1/runs/", "in another way"),
        ("zip://runs::https://127.0.0.1:1/runs.zip", "in another way"),
    ],
)
def test_web_server_has_one_door(tmp_path: Path, source: str, message: str) -> None:
    (outcome,) = collect([source], tmp_path / "into")
    assert message in str(outcome.reason)
    assert "secret" not in f"{outcome.reason} {outcome.source}"
