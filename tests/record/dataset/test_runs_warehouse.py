"""Finished local runs in the warehouse: their rows, and what they leave unchanged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from ipu_results.build import IngestConfig, IngestSummary, ingest
from ipu_results.kit.physics import round_derived
from ipu_results.record.normalise.fields import PRINTED_COLUMNS
from ipu_results.record.store.query import open_warehouse
from ipu_results.schema import table

from tests.conftest import (
    PAGE,
    PAPER,
    Query,
    copy_documents,
    query_rows,
    run_ingest,
    select_figure,
)
from tests.runner.runs_support import (
    EMULATED,
    EMULATED_ID,
    POINT_COLUMNS,
    POINTS,
    RUN_ID,
    point,
    put_emulated,
    put_run,
    record,
)

OTHER_ID = "20261121-140000-emulator-c2-00b2"
RECORD_ID = f"sweep-{RUN_ID}"
POINTS_ID = f"sweep-{RUN_ID}-points"
MINE = f"run_id = '{RUN_ID}'"
RESULTS = table("results")


def build(raw: Path) -> IngestSummary:
    return ingest(IngestConfig(raw, raw.parent / "warehouse"))


def select(raw: Path, sql: str) -> list[tuple[Any, ...]]:
    return query_rows(raw.parent / "warehouse", sql)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Write local runs alone: one measured, two emulated alike."""
    raw = tmp_path / "raw"
    put_run(raw)
    put_emulated(raw)
    put_emulated(raw, OTHER_ID)
    return raw


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Query]:
    """Query a warehouse of the page, the paper and two runs."""
    raw = copy_documents(tmp_path_factory.mktemp("runs") / "raw", PAGE, PAPER)
    put_run(raw)
    put_emulated(raw)
    build(raw)
    with open_warehouse(raw.parent / "warehouse") as opened:
        yield lambda sql: opened.execute(sql).fetchall()


# rows


def name_column(header: str) -> str:
    return PRINTED_COLUMNS.get(header, header)


def select_column(header: str) -> str:
    """Return the SQL of what a header of points.csv fills, of a result `r` and its point `p`."""
    if header == "suspect":
        return "(SELECT message FROM flags f WHERE f.result_id = r.result_id AND rule = 'R47')"
    if header in table("run_points").names and header not in RESULTS.names:
        return f"p.{header}"
    return select_figure(name_column(header))


def test_run_column_by_column(local: Query) -> None:
    [row] = local(f"SELECT * FROM runs WHERE {MINE}")
    stored = dict(zip(table("runs").names, row, strict=True))
    for name in ("environment", "versions", "setup", "plan", "model", "images", "notes"):
        stored[name] = json.loads(stored[name])
    assert stored == {
        **record(),
        "started_at": datetime(2026, 11, 21, 13, 45, 1),
        "finished_at": datetime(2026, 11, 21, 13, 46, 31),
        "origin": "measured",
        "document_id": RECORD_ID,
    }


def test_point_has_the_columns_that_its_document_implies(local: Query) -> None:
    """The other columns are those of points.csv."""
    [row] = local(f"SELECT * FROM results WHERE {MINE} AND row_number = 2")
    derived = {column.name for column in RESULTS.columns if column.is_derived}
    own = {*derived, *map(name_column, POINT_COLUMNS)}
    stored = dict(zip(RESULTS.names, row, strict=True))
    implied = {name: stored[name] for name in stored.keys() - own if stored[name] is not None}
    assert implied == {
        "result_id": stored["result_id"],
        "publisher": "local",
        "document_id": POINTS_ID,
        "table_name": "sweep_points",
        "row_number": 2,
        "published_on": date(2026, 11, 21),
        "run_id": RUN_ID,
        "task": "inference",
        "relationship": "own",
        "interest": "own",
    }


@pytest.mark.parametrize(("run_id", "points"), [(RUN_ID, POINTS), (EMULATED_ID, EMULATED)])
def test_every_cell_of_points_csv_is_in_results_or_run_points(
    local: Query, run_id: str, points: tuple[dict[str, Any], ...]
) -> None:
    canonical = {"onnxruntime": "ONNX Runtime", "resnext101-32x4d": "ResNeXt101-32x4d"}
    implied = {"chip": "GC2", "chip_count": 2}
    for header in POINT_COLUMNS:
        if header == "latency_kind":
            continue
        stored = local(
            f"SELECT {select_column(header)} FROM results r JOIN detail.run_points p"
            f" USING (result_id) WHERE r.run_id = '{run_id}' ORDER BY r.batch_size"
        )
        written = [
            line.get(header, implied.get(header) if line["platform"] == "C2" else None)
            for line in points
        ]
        if header in ("framework", "model"):
            written = [canonical.get(value, value) for value in written]
        rounded = [round_derived(value) if type(value) is float else value for value in written]
        assert [value for (value,) in stored] == rounded, header


def test_every_cell_is_cited_with_its_figure_and_place(local: Query) -> None:
    columns = "column_name, raw_text, value, unit, factor, locator"
    cells = local(
        f"SELECT {columns} FROM cells JOIN results USING (result_id) WHERE {MINE}"
        " ORDER BY cell_number, 6"
    )
    assert len(cells) == 3 * len(POINT_COLUMNS)
    for cell in (
        ("throughput", "17.6", 17.6, "items/s", 1.0, "line 2, column 4 (throughput)"),
        ("foreign_cpu", "1e-05", 1e-05, None, None, "line 2, column 52 (foreign_cpu)"),
        ("load_s", "0.75", 0.75, "s", None, "line 3, column 44 (load_s)"),
        ("latency_p99_ms", "", None, None, None, "line 4, column 12 (latency_p99_ms)"),
    ):
        assert cell in cells


def test_point_joins_its_run_and_its_result(local: Query) -> None:
    apart = (
        "p.run_id <> r.run_id OR p.batch_size <> r.batch_size OR p.backend <> u.backend OR p.device"
        " <> u.device"
    )
    joined = "FROM detail.run_points p JOIN results r USING (result_id) JOIN runs u ON u.run_id = p.run_id"
    assert local(f"SELECT count(*), count(*) FILTER ({apart}) {joined}") == [(5, 0)]
    runs = "SELECT run_id, count(*), min(batch_size) FROM detail.local_runs GROUP BY 1 ORDER BY 1"
    assert local(runs) == [(RUN_ID, 3, 1), (EMULATED_ID, 2, 2)]
    columns = "provider, precision, model_precision, threads, pipeline, usable"
    row = f"SELECT {columns} FROM detail.local_runs WHERE {MINE} AND batch_size = 4"
    assert local(row) == [("CPUExecutionProvider", "FP32", "fp32", 2, "serial", False)]


# what runs leave unchanged


@pytest.mark.slow
def test_published_rows_and_their_flags_are_unchanged(local: Query, tmp_path: Path) -> None:
    raw = copy_documents(tmp_path / "raw", PAGE, PAPER)
    build(raw)
    runs = "(SELECT result_id FROM results WHERE publisher = 'local')"
    for name in ("results", "flags", "latest"):
        without = f"SELECT * FROM {name} WHERE result_id NOT IN {runs} ORDER BY ALL"
        assert local(without) == select(raw, f"SELECT * FROM {name} ORDER BY ALL"), name
    assert local(f"SELECT rule FROM flags WHERE result_id IN {runs}") == [("R47",)]
    assert local(f"SELECT count(*) FROM latest WHERE result_id IN {runs}") == [(0,)]


def test_inference_marks_unpublished_rows(local: Query) -> None:
    columns = "origin, count(*), count(run_id), count(*) FILTER (NOT usable)"
    rows = local(
        f"SELECT {columns} FROM inference WHERE origin <> 'published' GROUP BY ALL ORDER BY ALL"
    )
    assert rows == [("measured", 3, 3, 1)]
    assert local("SELECT origin FROM runs ORDER BY ALL") == [("emulated",), ("measured",)]
    assert local("SELECT count(*), count(run_id) FROM emulated") == [(2, 2)]


def test_unknown_platform_is_kept_as_printed(local: Query) -> None:
    assert local("SELECT source FROM platforms WHERE platform = 'Some CPU @ 2.00GHz'") == [
        ("printed name, not in the vocabulary",)
    ]


# builds


def test_no_source_row_is_lost_and_two_runs_alike_are_two_runs(runs: Path) -> None:
    build(runs)
    rows = """
        SELECT table_name, status, count(*), count(result_id)
        FROM source_rows GROUP BY ALL ORDER BY 1
    """
    assert select(runs, rows) == [
        ("runs", "accepted", 3, 0),
        ("sweep_points", "accepted", 7, 7),
    ]
    alike = """
        SELECT count(DISTINCT run_id), count(DISTINCT result_id), count(DISTINCT throughput)
        FROM results WHERE origin = 'emulated'
    """
    assert select(runs, alike) == [(2, 4, 2)]


@pytest.mark.slow
def test_result_id_depends_on_run_and_batch_only(runs: Path) -> None:
    build(runs)
    old = dict(select(runs, f"SELECT batch_size, result_id FROM results WHERE {MINE}"))
    shutil.rmtree(runs / "runs" / RUN_ID)
    put_run(runs, [point(8, 25.0, threads=1), point(1, 99.0), point(16, 3.0)])
    build(runs)
    new = dict(select(runs, f"SELECT batch_size, result_id FROM results WHERE {MINE}"))
    assert (new[1], new[8]) == (old[1], old[8])
    assert new[16] not in old.values()


@pytest.mark.slow
def test_unfinished_run_is_one_finding_without_rows(runs: Path) -> None:
    folder = runs / "runs" / RUN_ID
    folder.rename(folder.with_name(f"{RUN_ID}.unfinished"))
    done = run_ingest(runs, "--strict")
    resume = f"resume it with `ipu-results sweep --resume {RUN_ID}`, or delete its folder"
    assert done.returncode == 1
    assert done.stderr == f"finding: sweep {RUN_ID} is unfinished: {resume}\n"
    assert select(runs, "SELECT count(*) FROM runs") == [(2,)]


@pytest.mark.slow
def test_point_without_a_figure_or_a_batch_is_quarantined(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    points = [
        point(1, 17.6) | {"throughput": "nan"},
        point(2, 17.6) | {"throughput": "-17.6"},
        point(3, 17.6) | {"batch_size": None},
        point(4, 17.6) | {"micro_batch_size": 0.5},
        point(99, 19.1),
    ]
    put_run(raw, points)
    build(raw)
    unreadable = ("unreadable-figure",)
    reasons = select(raw, "SELECT reason FROM quarantine ORDER BY row_number")
    assert reasons == [unreadable, unreadable, ("missing-batch",), unreadable]
    assert select(raw, "SELECT batch_size FROM detail.run_points") == [(99,)]


@pytest.mark.slow
def test_simulated_points_make_no_result(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    put_run(raw, [point(size, 9.0, origin="simulated") for size in (1, 2)])
    assert build(raw).results == 0
    assert select(raw, "SELECT origin FROM runs") == [(None,)]
    assert select(raw, "SELECT count(*) FROM detail.run_points") == [(0,)]
