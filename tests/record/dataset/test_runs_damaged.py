"""Every way of damaging a finished local run stops the build, which names the run and the place."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from ipu_results.record.sources.catalogue import RUN_FILES

from tests.conftest import find_error, read_files, run_ingest
from tests.runner.runs_support import (
    EMULATED_ID,
    POINTS,
    RUN_ID,
    emulated_point,
    format_points,
    put_emulated,
    put_run,
    write_sidecars,
)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Write one measured run and an emulated one."""
    raw = tmp_path / "raw"
    put_run(raw)
    put_emulated(raw)
    return raw


RECORD_ID = f"sweep-{RUN_ID}"
POINTS_ID = f"sweep-{RUN_ID}-points"
Damage = Callable[[Path], object]


def with_sidecars(damage: Damage, rows: int = len(POINTS)) -> Damage:
    """Return the damage by an author who updates the sidecars."""

    def apply(folder: Path) -> None:
        damage(folder)
        write_sidecars(folder, rows=rows)

    return apply


def replace(name: str, old: str, new: str) -> Damage:
    def apply(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return apply


def drop_last_line(folder: Path) -> None:
    lines = (folder / "points.csv").read_text().splitlines(keepends=True)
    (folder / "points.csv").write_text("".join(lines[:-1]))


def swap_lines(folder: Path) -> None:
    header, first, second, *rest = (folder / "points.csv").read_text().splitlines(keepends=True)
    (folder / "points.csv").write_text("".join([header, second, first, *rest]))


def remove(*names: str) -> Damage:
    return lambda folder: [(folder / name).unlink() for name in names]


def write(name: str, text: str) -> Damage:
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


def rename_in_sidecars(folder: Path) -> None:
    for name in ("record.json.toml", "points.csv.toml"):
        replace(name, RUN_ID, f"{RUN_ID}-b")(folder)


def edit_sidecar(name: str, **changes: Any) -> Damage:
    def edit(folder: Path) -> None:
        entry = tomllib.loads((folder / name).read_text(encoding="utf-8"))
        (folder / name).write_text(tomli_w.dumps({**entry, **changes}), encoding="utf-8")

    return edit


def write_points(*points: dict[str, Any]) -> Damage:
    return with_sidecars(write("points.csv", format_points(points)), len(points))


CHANGED = "the file or the sidecar changed"
MIXED = emulated_point(2, 9.0, backend="onnxruntime", device="cpu")
DAMAGES: list[tuple[Damage, str, str]] = [
    (swap_lines, POINTS_ID, CHANGED),
    (replace("record.json", '"seed": 0', '"seed": 1'), RECORD_ID, CHANGED),
    (replace("blocks.jsonl", "0", "1"), POINTS_ID, "blocks.jsonl: sha256 is"),
    (remove("stamps.parquet"), RUN_ID, "stamps.parquet: is missing"),
    (remove("points.csv", "points.csv.toml"), RUN_ID, "points.csv: is missing"),
    (remove("record.json.toml", "points.csv.toml"), RUN_ID, "points.csv.toml: is missing"),
    (remove(*RUN_FILES), RUN_ID, "blocks.jsonl: is missing"),
    (
        edit_sidecar("points.csv.toml", attachments={}),
        f"{RUN_ID}: points.csv.toml",
        "states no sha256 of blocks.jsonl",
    ),
    (with_sidecars(drop_last_line), POINTS_ID, "has 2 rows, the sidecar expects 3"),
    (
        with_sidecars(replace("points.csv", ",steal", ",theft")),
        POINTS_ID,
        "lacks 'steal' and has unknown 'theft'",
    ),
    (
        with_sidecars(replace("points.csv", "1e-05", "few")),
        POINTS_ID,
        "line 2, column 52 (foreign_cpu): 'few' is not of type double",
    ),
    (write_points({**POINTS[0], "steal": 1.5}), POINTS_ID, "run_points, row 0: "),
    (
        write_points(POINTS[0], {**POINTS[1], "device": "gpu"}),
        POINTS_ID,
        "'gpu' is not the device of the run",
    ),
    (write_points(POINTS[0], MIXED), POINTS_ID, "mixes"),
    (with_sidecars(write("record.json", "[]\n")), RECORD_ID, "$: "),
    (
        with_sidecars(replace("record.json", RUN_ID, EMULATED_ID)),
        RECORD_ID,
        "$.run_id: is the record of another run",
    ),
    (with_sidecars(replace("record.json", '"notes"', '"remarks"')), RECORD_ID, "remarks"),
    (
        with_sidecars(replace("record.json", "T13:45:01Z", " 13:45")),
        RECORD_ID,
        "$.started_at: '2026-11-21 13:45' is",
    ),
    (
        with_sidecars(replace("record.json", "T13:46:31Z", "T13:45:00Z")),
        RECORD_ID,
        "runs, row 0: the row is refused by the check run-times",
    ),
    (rename_in_sidecars, f"{RUN_ID}: record.json.toml", f"has the document_id '{RECORD_ID}-b'"),
    (
        replace("record.json.toml", RECORD_ID, "sweep-x"),
        f"{RUN_ID}: record.json.toml",
        "has the document_id 'sweep-x'",
    ),
]


@pytest.mark.parametrize(("damage", "document", "message"), DAMAGES)
def test_damaged_run_stops_the_build_and_is_named(
    runs: Path, damage: Damage, document: str, message: str
) -> None:
    damage(runs / "runs" / RUN_ID)
    line = find_error(runs)
    assert line.startswith(f"error: {document}")
    assert RUN_ID in line
    assert message in line
    assert "\n" not in line


def test_run_copied_into_raw_is_ingested_and_a_half_copied_one_keeps_the_old_build(
    tmp_path: Path,
) -> None:
    lab = put_run(tmp_path / "lab")
    raw = tmp_path / "raw"
    shutil.copytree(lab, raw / "runs" / RUN_ID)
    done = run_ingest(raw)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{len(POINTS)} results" in done.stdout
    before = read_files(tmp_path / "warehouse")
    (raw / "runs" / EMULATED_ID).mkdir()
    shutil.copyfile(lab / "points.csv", raw / "runs" / EMULATED_ID / "points.csv")
    done = run_ingest(raw)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {EMULATED_ID}: blocks.jsonl: is missing: the run is")
    assert read_files(tmp_path / "warehouse") == before
