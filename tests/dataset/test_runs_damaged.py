"""Every way of damaging a finished local run stops the build, which names the run and the place."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import find_error
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
    put_run(raw := tmp_path / "raw")
    put_emulated(raw)
    return raw


RECORD_ID, POINTS_ID = f"sweep-{RUN_ID}", f"sweep-{RUN_ID}-points"
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


def truncate(folder: Path) -> None:
    (folder / "points.csv").write_bytes((folder / "points.csv").read_bytes()[:-20])


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


def copy(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("20261121-134502-onnxruntime-cpu-3fa2"))


def rename_in_sidecars(folder: Path) -> None:
    for name in ("record.json.toml", "points.csv.toml"):
        replace(name, RUN_ID, f"{RUN_ID}-b")(folder)


def write_points(*points: dict[str, Any]) -> Damage:
    return with_sidecars(write("points.csv", format_points(points)), len(points))


CHANGED = "the file or the sidecar changed"
MIXED = emulated_point(2, 9.0, backend="onnxruntime", device="cpu")
DAMAGES: list[tuple[Damage, str, str]] = [
    (swap_lines, POINTS_ID, CHANGED),
    (replace("record.json", '"seed": 0', '"seed": 1'), RECORD_ID, CHANGED),
    (replace("blocks.jsonl", "0", "1"), POINTS_ID, "blocks.jsonl: sha256 is"),
    (remove("stamps.parquet"), POINTS_ID, "stamps.parquet: cannot be read: No such file"),
    (
        remove("points.csv", "points.csv.toml"),
        RECORD_ID,
        f"the run {RUN_ID} has no points document",
    ),
    (
        remove("record.json", "record.json.toml"),
        POINTS_ID,
        f"the run {RUN_ID} has no record document",
    ),
    (with_sidecars(truncate), POINTS_ID, "truncated"),
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
    (with_sidecars(replace("record.json", '"notes"', '"remarks"')), RECORD_ID, "notes"),
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
    (copy, RECORD_ID, "is the id of both runs/"),
    (rename_in_sidecars, RECORD_ID, "is the record of another run"),
    (
        replace("points.csv.toml", POINTS_ID, "sweep-x-points"),
        "sweep-x-points",
        "must be called sweep-<run_id>-points",
    ),
    (
        replace("record.json.toml", "local", "Graphcore"),
        "",
        "publisher 'Graphcore' does not go with kind 'run'",
    ),
]


@pytest.mark.parametrize(("damage", "document", "message"), DAMAGES)
def test_damaged_run_stops_the_build_and_is_named(
    runs: Path, damage: Damage, document: str, message: str
) -> None:
    damage(runs / "runs" / RUN_ID)
    line = find_error(runs)
    assert line.startswith(f"error: {document}")
    assert RUN_ID in line or "sweep-x" in line
    assert message in line
