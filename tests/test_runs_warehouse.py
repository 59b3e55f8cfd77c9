"""Finished local runs in the warehouse: their rows, what they leave alone, and every way in which a run is damaged."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import RAW, Ask, run_cli
from ipu_results._util.sql import run_query
from ipu_results.build import Summary, ingest
from ipu_results.schema import TABLES, table
from ipu_results.store.query import open_warehouse

from tests.runs_support import (
    EMULATED,
    EMULATED_ID,
    POINT_COLUMNS,
    POINTS,
    RUN_ID,
    emulated_point,
    point,
    points_text,
    put_emulated,
    put_run,
    record,
    seal,
)

OTHER_ID = "20261121-140000-emulator-c2-00b2"
POINTS_ID = f"sweep-{RUN_ID}-points"
MINE = f"run_id = '{RUN_ID}'"


def build(raw: Path) -> Summary:
    return ingest(raw, raw.parent / "warehouse")


def rows(raw: Path, sql: str) -> list[tuple[Any, ...]]:
    with open_warehouse(raw.parent / "warehouse") as connection:
        return [tuple(row.values()) for row in run_query(connection, sql).to_pylist()]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Documents that are local runs alone: one measured, two emulated alike."""
    raw = tmp_path / "raw"
    put_run(raw)
    put_emulated(raw)
    put_emulated(raw, OTHER_ID)
    return raw


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Queries over a warehouse of the carried documents and two runs."""
    raw = tmp_path_factory.mktemp("runs") / "raw"
    shutil.copytree(RAW, raw, ignore=shutil.ignore_patterns("__pycache__", "runs", "claims"))
    put_run(raw)
    put_emulated(raw)
    build(raw)
    return lambda sql: rows(raw, sql)


# --- rows


def test_a_run_column_by_column(told: Ask) -> None:
    said = record()
    [row] = told(f"SELECT * FROM runs WHERE {MINE}")
    found = dict(zip(table("runs").names, row, strict=True))
    texts = {name: json.loads(str(found[name])) for name in ("environment", "versions", "setup", "plan", "model")}
    assert texts == {name: said[name] for name in texts}
    assert found["versions"] == '{"numpy": "2.4.0", "onnxruntime": "1.31.0"}'
    assert (found["images"], found["notes"]) == (json.dumps(said["images"], sort_keys=True), json.dumps(said["notes"]))
    assert {name: value for name, value in found.items() if name not in {*texts, "images", "notes"}} == {
        "run_id": RUN_ID,
        "backend": "onnxruntime",
        "device": "cpu",
        "started_at": datetime(2026, 11, 21, 13, 45, 1),
        "finished_at": datetime(2026, 11, 21, 13, 46, 31),
        "command_line": "ipu-results sweep --backend onnxruntime",
        "origin": "measured",
        "document_id": f"sweep-{RUN_ID}",
    }


def test_a_measured_point_column_by_column(told: Ask) -> None:
    [row] = told(f"SELECT * FROM results WHERE {MINE} AND row_number = 2")
    found = {name: value for name, value in zip(table("results").names, row, strict=True) if value is not None}
    assert len(str(found.pop("result_id"))) == 16
    assert found == {
        "origin": "measured",
        "publisher": "local",
        "document_id": POINTS_ID,
        "table_name": "sweep_points",
        "row_number": 2,
        "published_on": date(2026, 11, 21),
        "run_id": RUN_ID,
        "task": "inference",
        "model": "ResNeXt101-32x4d",
        "platform": "Some CPU @ 2.00GHz",
        "framework": "ONNX Runtime",
        "compute_precision": "fp32",
        "batch_size": 4,
        "micro_batch_size": 4,
        "throughput": 19.1,
        "item": "image",
        **{name: POINTS[1][name] for name in ("latency_ms", "latency_ms_low", "latency_ms_high")},
        "interval_confidence": 0.95,
        "latency_isolated_ms": 101.5,
        "latency_p90_ms": 120.25,
        "latency_kind": "amortised",
        "suspect": "interval of 12 %; probe 1.4 times slower",
    }


def test_an_emulated_point_says_so(told: Ask) -> None:
    columns = "origin, calibration_id, platform, chip, chip_count, sdk_version, framework, micro_batch_size, power_w"
    found = told(f"SELECT {columns}, power_scope, efficiency FROM results WHERE run_id = '{EMULATED_ID}' ORDER BY ALL")
    same = ("emulated", "a-calibration", "C2", "GC2", 2, "1.0.136", "PopART")
    assert found == [(*same, 1, 225.0, "board", 1480.0 / 225.0), (*same, 2, 225.0, "board", 2050.5 / 225.0)]
    assert told(f"SELECT origin FROM runs WHERE run_id = '{EMULATED_ID}'") == [("emulated",)]


@pytest.mark.parametrize(("run_id", "points"), [(RUN_ID, POINTS), (EMULATED_ID, EMULATED)])
def test_every_cell_of_points_csv_is_in_results_or_run_points(
    told: Ask, run_id: str, points: Sequence[dict[str, Any]]
) -> None:
    canonical = {"onnxruntime": "ONNX Runtime", "resnext101-32x4d": "ResNeXt101-32x4d"}
    implied = {"chip": "GC2", "chip_count": 2}
    found = {
        name: told(f"SELECT * FROM {name} WHERE run_id = '{run_id}' ORDER BY batch_size")
        for name in ("results", "run_points")
    }
    for header in POINT_COLUMNS:
        owner = "results" if header in table("results").names else "run_points"
        stored = [row[table(owner).names.index(header)] for row in found[owner]]
        printed = [line.get(header, implied.get(header) if line["platform"] == "C2" else None) for line in points]
        named = header in ("framework", "model")
        assert stored == [canonical.get(said, said) if named else said for said in printed], header


def test_every_cell_is_cited_with_its_figure_and_place(told: Ask) -> None:
    columns = "column_name, raw_text, value, unit, factor, locator"
    cells = told(f"SELECT {columns} FROM cells JOIN results USING (result_id) WHERE {MINE} ORDER BY cell_number, 6")
    assert len(cells) == 3 * len(POINT_COLUMNS)
    assert cells[3 * POINT_COLUMNS.index("throughput")] == (
        *("throughput", "17.6", 17.6, "items/s", 1.0, "line 2, column 4 (throughput)"),
    )
    by_name = {(name, locator.partition(",")[0]): cell for name, *cell, locator in cells}  # type: ignore[attr-defined]
    assert by_name["foreign_cpu", "line 2"] == ["1e-05", 1e-05, None, None]
    assert by_name["load_s", "line 3"] == ["0.75", 0.75, "s", None]
    assert by_name["latency_p99_ms", "line 4"] == ["", None, None, None]
    figures = [name for name in table("results").names if table("results").column(name).kind == "double"]
    for name in figures:
        apart = f"r.{name} IS DISTINCT FROM c.value * c.factor"
        wrong = (
            f"SELECT count(*) FROM results r JOIN cells c USING (result_id) WHERE column_name = '{name}' AND {apart}"
        )
        assert told(f"{wrong} AND r.publisher = 'local'") == [(0,)], name


def test_a_point_joins_its_run_and_its_result(told: Ask) -> None:
    apart = "p.run_id <> r.run_id OR p.batch_size <> r.batch_size OR p.backend <> u.backend OR p.device <> u.device"
    joined = "FROM run_points p JOIN results r USING (result_id) JOIN runs u ON u.run_id = p.run_id"
    assert told(f"SELECT count(*), count(*) FILTER ({apart}) {joined}") == [(5, 0)]
    assert told("SELECT run_id, count(*), min(batch_size) FROM local_runs GROUP BY 1 ORDER BY 1") == [
        (RUN_ID, 3, 1),
        (EMULATED_ID, 2, 2),
    ]


def test_the_view_of_local_runs_tells_what_must_agree(told: Ask) -> None:
    columns = "backend, device, started_at, provider, compute_precision, model_precision, threads, pipeline, suspect"
    assert told(f"SELECT {columns} FROM local_runs WHERE {MINE} AND batch_size = 4") == [
        (
            *("onnxruntime", "cpu", datetime(2026, 11, 21, 13, 45, 1), "CPUExecutionProvider", "fp32", "fp32", 2),
            *("serial", "interval of 12 %; probe 1.4 times slower"),
        )
    ]


# --- what runs leave alone


def test_published_rows_and_their_flags_stay_as_they_are(told: Ask, ask: Ask) -> None:
    local = "(SELECT result_id FROM results WHERE publisher = 'local')"
    for name in ("results", "flags", "latest"):
        kept = f"SELECT * FROM {name} WHERE result_id NOT IN {local} ORDER BY ALL"
        assert told(kept) == ask(kept), name
    assert told(f"SELECT count(*) FROM flags WHERE result_id IN {local}") == [(0,)]
    assert told(f"SELECT count(*) FROM latest WHERE result_id IN {local}") == [(0,)]


def test_inference_marks_what_was_not_published(told: Ask) -> None:
    columns = "origin, latency_kind, count(*), count(run_id), count(suspect)"
    found = told(f"SELECT {columns} FROM inference WHERE origin <> 'published' GROUP BY ALL ORDER BY ALL")
    assert found == [("emulated", "amortised", 2, 2, 0), ("measured", "amortised", 3, 3, 1)]
    assert told("SELECT count(*) FROM inference WHERE origin = 'published' AND run_id IS NOT NULL") == [(0,)]


def test_a_platform_that_no_source_names_is_kept_as_printed(told: Ask) -> None:
    assert told("SELECT source FROM platforms WHERE platform = 'Some CPU @ 2.00GHz'") == [
        ("printed name, not in the vocabulary",)
    ]


# --- builds


def test_no_source_row_is_lost(runs: Path) -> None:
    summary = build(runs)
    assert [(one.extracted, one.accepted, one.results) for one in summary.documents] == [
        *((1, 1, 0), (3, 3, 3)),
        *((1, 1, 0), (2, 2, 2)) * 2,
    ]
    assert rows(runs, "SELECT table_name, status, count(*), count(result_id) FROM source_rows GROUP BY ALL ORDER BY 1")[
        :2
    ] == [("runs", "accepted", 3, 0), ("sweep_points", "accepted", 7, 7)]


def test_two_emulated_runs_alike_are_two_runs(runs: Path) -> None:
    build(runs)
    same = "SELECT count(DISTINCT run_id), count(DISTINCT result_id), count(DISTINCT throughput) FROM results"
    assert rows(runs, f"{same} WHERE origin = 'emulated'") == [(2, 4, 2)]


def test_the_same_runs_give_the_same_bytes_in_any_order(runs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "raw"
    put_emulated(other, OTHER_ID)
    put_emulated(other)
    put_run(other)
    assert build(runs).build_id == build(other).build_id
    made = sorted(path.name for path in (runs.parent / "warehouse").glob("*.parquet"))
    assert len(made) == len(TABLES)
    for name in made:
        assert (runs.parent / "warehouse" / name).read_bytes() == (other.parent / "warehouse" / name).read_bytes()


def test_a_result_id_depends_on_run_and_batch_alone(runs: Path) -> None:
    build(runs)
    old = dict(rows(runs, f"SELECT batch_size, result_id FROM results WHERE {MINE}"))
    shutil.rmtree(runs / "runs" / RUN_ID)
    put_run(runs, [point(8, 25.0, threads=1), point(1, 99.0), point(16, 3.0)])
    build(runs)
    new = dict(rows(runs, f"SELECT batch_size, result_id FROM results WHERE {MINE}"))
    assert {size: new[size] for size in (1, 8)} == {size: old[size] for size in (1, 8)}
    assert len({*old.values(), *new.values()}) == 4


def test_an_unfinished_run_is_one_finding_and_no_row(runs: Path) -> None:
    folder = runs / "runs" / RUN_ID
    folder.rename(folder.with_name(f"{RUN_ID}.unfinished"))
    done = run_cli("ingest", "--raw", runs, "--warehouse", runs.parent / "warehouse")
    resume = f"resume it with `ipu-results sweep --resume {RUN_ID}`, or delete its folder"
    told = f"finding: sweep {RUN_ID} is unfinished: {resume}"
    assert (done.returncode, [line for line in done.stderr.splitlines() if "sweep" in line]) == (0, [told])
    assert rows(runs, "SELECT count(*) FROM runs") == [(2,)]
    assert run_cli("ingest", "--raw", runs, "--warehouse", runs.parent / "warehouse", "--strict").returncode == 1


# --- points that are refused


FIGURES = ("batch_size", "throughput")
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"origin": "simulated"}, "origin-not-a-choice"),
    ({"origin": None}, "missing-origin"),
    ({"origin": "published"}, "origin-place"),
    ({"origin": "official"}, "origin-place"),
    ({"origin": "emulated"}, "emulated-marked"),
    ({"calibration_id": "c"}, "emulated-marked"),
    ({"latency_ms": 1.0}, "latency-band"),
    ({"latency_ms": 57.0}, "local-latency"),
    ({"latency_kind": None}, "local-latency-kind"),
    ({"power_w": 50.0, "power_scope": "package", "efficiency": 1.0}, "local-efficiency"),
    ({"power_scope": "board"}, "local-power"),
    ({"power_w": 50.0, "power_scope": "rack"}, "power-scope-not-a-choice"),
    ({"model": None}, "missing-model"),
    ({"throughput": "nan"}, "unreadable-figure"),
    ({"throughput": "-17.6"}, "unreadable-figure"),
    ({"throughput": 0, "latency_kind": "isolated"}, "throughput-out-of-range"),
    ({"batch_size": None}, "missing-batch"),
    ({"micro_batch_size": 0.5}, "unreadable-figure"),
    ({"interval_confidence": 95}, "interval-confidence-out-of-range"),
]


NUMBERED = list(enumerate(REFUSED, start=1))


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of all the points that are no results, and a good one."""
    raw = tmp_path_factory.mktemp("refused") / "raw"
    computed = ({key: change[key] for key in change if key not in FIGURES} for change, _ in REFUSED)
    lines = [point(size, 17.6 * size, **change) for size, change in enumerate(computed, start=1)]
    put_run(raw, [*(line | change for line, (change, _) in zip(lines, REFUSED, strict=True)), point(99, 19.1)])
    build(raw)
    return raw


@pytest.mark.parametrize(("number", "refusal"), NUMBERED)
def test_a_point_that_is_no_result_is_quarantined(
    refused: Path, number: int, refusal: tuple[dict[str, Any], str]
) -> None:
    assert rows(refused, f"SELECT reason FROM quarantine WHERE row_number = {number}") == [(refusal[1],)]


def test_the_other_points_of_its_run_stay(refused: Path) -> None:
    status = "SELECT status, count(*) FROM source_rows WHERE table_name = 'sweep_points' GROUP BY ALL ORDER BY 1"
    assert rows(refused, status) == [("accepted", 1), ("quarantined", len(REFUSED))]
    assert rows(refused, "SELECT batch_size FROM run_points") == [(99,)]
    assert rows(refused, "SELECT origin FROM runs") == [("measured",)]


def test_a_run_of_the_null_backend_gives_no_result(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    put_run(raw, [point(size, 9.0, origin="simulated") for size in (1, 2)])
    assert build(raw).results == 0
    assert rows(raw, "SELECT origin FROM runs") == [(None,)]
    assert rows(raw, "SELECT count(*) FROM run_points") == [(0,)]


def test_two_points_of_one_batch_are_both_refused(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    put_run(raw, [point(1, 17.6), point(1, 17.7)])
    assert build(raw).documents[1].quarantined == 2
    assert rows(raw, "SELECT DISTINCT reason FROM quarantine") == [("conflicting-rows",)]


# --- damage


def resealed(change: Callable[[Path], object], count: int = len(POINTS)) -> Callable[[Path], None]:
    """A change whose author knew about the sidecars."""

    def damage(folder: Path) -> None:
        change(folder)
        seal(folder, rows=count)

    return damage


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return damage


def cut_off(folder: Path) -> None:
    data = (folder / "points.csv").read_bytes()
    (folder / "points.csv").write_bytes(data[:-20])


def without_last_line(folder: Path) -> None:
    lines = (folder / "points.csv").read_text().splitlines(keepends=True)
    (folder / "points.csv").write_text("".join(lines[:-1]))


def swapped(folder: Path) -> None:
    header, first, second, *rest = (folder / "points.csv").read_text().splitlines(keepends=True)
    (folder / "points.csv").write_text("".join([header, second, first, *rest]))


def without(*names: str) -> Callable[[Path], None]:
    return lambda folder: [(folder / name).unlink() for name in names] and None


def of_points(*points: dict[str, Any]) -> Callable[[Path], object]:
    return lambda folder: (folder / "points.csv").write_text(points_text(points), encoding="utf-8")


def copied(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("20261121-134502-onnxruntime-cpu-3fa2"))


def renamed_in_sidecars(folder: Path) -> None:
    for name in ("record.json.toml", "points.csv.toml"):
        replaced(name, RUN_ID, f"{RUN_ID}-b")(folder)


CHANGED = "the file or the sidecar was changed"
RECORD = f"sweep-{RUN_ID}"
DAMAGES: list[tuple[Callable[[Path], object], str, str]] = [
    (cut_off, POINTS_ID, CHANGED),
    (swapped, POINTS_ID, CHANGED),
    (replaced("points.csv", "17.6", "71.6"), POINTS_ID, CHANGED),
    (replaced("record.json", '"seed": 0', '"seed": 1'), RECORD, CHANGED),
    (replaced("blocks.jsonl", "0", "1"), POINTS_ID, f"blocks.jsonl: sha256 is|{CHANGED}"),
    (
        lambda folder: (folder / "stamps.parquet").write_bytes(b"PAR1"),
        POINTS_ID,
        f"stamps.parquet: sha256 is|{CHANGED}",
    ),
    (without("stamps.parquet"), POINTS_ID, "stamps.parquet: cannot be read: No such file"),
    (without("record.json"), RECORD, "record.json: cannot be read"),
    (without("points.csv"), POINTS_ID, "points.csv: cannot be read"),
    (without("points.csv", "points.csv.toml"), RECORD, f"the run {RUN_ID} has no points document"),
    (without("record.json", "record.json.toml"), POINTS_ID, f"the run {RUN_ID} has no record document"),
    (resealed(cut_off), POINTS_ID, "truncated"),
    (resealed(without_last_line), POINTS_ID, "has 2 rows, the sidecar promises 3"),
    (resealed(replaced("points.csv", ",steal", ",theft")), POINTS_ID, "lacks 'steal' and has unknown 'theft'"),
    (
        resealed(replaced("points.csv", "1e-05", "few")),
        POINTS_ID,
        "line 2, column 52 (foreign_cpu): 'few' is no double",
    ),
    (resealed(of_points({**POINTS[0], "steal": 1.5}), 1), POINTS_ID, "run_points, row 0: "),
    (
        resealed(of_points(POINTS[0], {**POINTS[1], "device": "gpu"}), 2),
        POINTS_ID,
        "'gpu' is not the device of the run",
    ),
    (
        resealed(of_points(POINTS[0], emulated_point(2, 9.0, backend="onnxruntime", device="cpu")), 2),
        POINTS_ID,
        "mixes",
    ),
    (resealed(lambda folder: (folder / "record.json").write_text("[]\n")), RECORD, "$: is no record of a sweep"),
    (resealed(replaced("record.json", RUN_ID, EMULATED_ID)), RECORD, "$.run_id: is the record of another run"),
    (resealed(replaced("record.json", '"notes"', '"remarks"')), RECORD, "$: lacks notes"),
    (
        resealed(replaced("record.json", "T13:45:01Z", " 13:45")),
        RECORD,
        "$.started_at: '2026-11-21 13:45' is no timestamp",
    ),
    (resealed(replaced("record.json", "T13:45:01Z", "T13:61:01Z")), RECORD, "is no timestamp"),
    (
        resealed(replaced("record.json", "T13:46:31Z", "T13:45:00Z")),
        RECORD,
        "runs, row 0: the row is refused by the check run-times",
    ),
    (copied, RECORD, "stands in"),
    (renamed_in_sidecars, RECORD, "is the record of another run"),
    (replaced("points.csv.toml", POINTS_ID, "sweep-x-points"), "sweep-x-points", "is no sweep-<run_id>-points"),
    (replaced("record.json.toml", "local", "Graphcore"), "", "has no valid publisher"),
]


@pytest.mark.parametrize(("damage", "document", "words"), DAMAGES)
def test_a_damaged_run_stops_the_build_in_one_line_that_names_it(
    runs: Path, damage: Callable[[Path], object], document: str, words: str
) -> None:
    damage(runs / "runs" / RUN_ID)
    target = runs.parent / "warehouse"
    done = run_cli("ingest", "--raw", runs, "--warehouse", target)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(f"error: {document}")
    assert RUN_ID in line or "sweep-x" in line
    assert [word for word in words.split("|") if word not in line] == []
    assert not (target / "results.parquet").exists()


@pytest.mark.parametrize(("file", "table_name"), [("record.json", "runs"), ("points.csv", "sweep_points")])
def test_extract_prints_the_files_of_a_run(runs: Path, file: str, table_name: str) -> None:
    done = run_cli("extract", runs / "runs" / RUN_ID / file)
    assert (done.returncode, done.stderr) == (0, "")
    header, *lines = csv.reader(done.stdout.splitlines())
    assert header[:2] == ["table_name", "run_id" if table_name == "runs" else "batch_size"]
    assert {line[0] for line in lines} == {table_name}
