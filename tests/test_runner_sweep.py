"""Sweeps from their first step to a finished run: on simulated, emulated and real devices, and interrupted ones."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from ipu_results._util.sql import run_query
from ipu_results.build import ingest
from ipu_results.emulator.calibration import load_calibration
from ipu_results.errors import BackendError, DamagedRunError, RunnerError, SessionLostError, UnusableImagesError
from ipu_results.runner import sweep as sweeps
from ipu_results.runner.asked import Asked
from ipu_results.runner.backends.null import Machine
from ipu_results.runner.companions import VARIABLE
from ipu_results.runner.journal import Journal, unfinished
from ipu_results.runner.plan import Plan, Visit
from ipu_results.runner.sweep import Finished, new_id, resume, sweep
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.store.query import open_warehouse
from runner_support import (
    CLASSES,
    ODD,
    SIDE,
    TESTS,
    Told,
    children,
    cpu_asked,
    emulator_asked,
    install_odd,
    interrupted,
    null_asked,
    odd_asked,
    odd_python,
    pictures,
    tiny_model,
)

MODES = ("RGB", "broken", "L", "RGB", "CMYK", "RGB", "RGB")
MADE_AT = {"load_s"}  # of an emulated point: the time that reading the model of the machine took
FILES = {"record.json", "record.json.toml", "points.csv", "points.csv.toml", "blocks.jsonl", "stamps.parquet"}


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps of other tests are no companions."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "locks"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model") / "tiny.onnx")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pictures(tmp_path_factory.mktemp("images") / "pictures", MODES)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("raw")


Ran = tuple[Finished, Told]


@pytest.fixture(scope="module")
def on_cpu(raw: Path, model: Path, images: Path) -> Ran:
    """A sweep on the CPU by two sessions, of a folder where one picture is broken."""
    told = Told()
    return sweep(cpu_asked(model, images), raw / "runs", told), told


@pytest.fixture(scope="module")
def emulated(raw: Path, model: Path, images: Path) -> Ran:
    told = Told()
    return sweep(emulator_asked(model, images), raw / "runs", told), told


def record(run: Finished) -> dict[str, Any]:
    return dict(json.loads((run.folder / "record.json").read_text(encoding="utf-8")))


def blocks(run: Finished) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.folder / "blocks.jsonl").read_text(encoding="utf-8").splitlines()]


def points(run: Finished) -> list[dict[str, str]]:
    with (run.folder / "points.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def stamps(run: Finished) -> list[tuple[int, ...]]:
    return [tuple(row.values()) for row in pq.read_table(run.folder / "stamps.parquet").to_pylist()]


def visited(told: Told) -> list[Visit]:
    return [visit for visit, *_ in told.visits]


# --- a simulated device, whose truth is known


@pytest.mark.parametrize("sessions", [1, 2])
def test_a_quiet_null_device_is_measured_exactly(tmp_path: Path, sessions: int) -> None:
    told = Told()
    run = sweep(null_asked((2, 4, 6), sessions, options={"base_ms": 7, "per_item_ms": 11}), tmp_path, told)
    assert [point["batch_size"] for point in run.points] == [2, 4, 6]
    for point in run.points:
        truth_ms = 7 + 11 * point["batch_size"] / sessions
        assert point["throughput"] == pytest.approx(1000 * point["batch_size"] / truth_ms)
        for name in ("latency_ms", "latency_ms_low", "latency_ms_high", "latency_isolated_ms", "first_run_ms"):
            assert point[name] == pytest.approx(truth_ms)
        assert point["infer_ms"] == pytest.approx(truth_ms)
        assert (point["origin"], point["backend"], point["suspect"]) == ("simulated", "null", None)
        assert (point["micro_batch_size"], point["sessions"]) == (point["batch_size"] // sessions, sessions)
        assert (point["cosine"], point["top1"], point["power_w"]) == (None, None, None)
        assert (point["preprocess_ms"], point["retrieve_ms"]) == (0, 0)
    assert told.warnings == []


@pytest.mark.parametrize("seed", range(3))
def test_a_noisy_null_device_is_measured_within_its_noise(tmp_path: Path, seed: int) -> None:
    """2 % a batch, of which a median over rounds of blocks with 7 or more averages most away."""
    options = {"noise": 0.02, "seed": seed}
    run = sweep(null_asked((2, 6), options=options, budget_s=60.0), tmp_path, Told())
    machine = Machine.told(options)
    for point in run.points:
        truth_ms = machine.base_ms + machine.per_item_ms * point["batch_size"] / 2
        assert point["latency_ms"] == pytest.approx(truth_ms, rel=0.01)
        assert point["latency_ms_low"] < point["latency_ms"] < point["latency_ms_high"]
        assert point["interval_confidence"] == 0.95
        assert point["suspect"] is None


def test_what_a_slow_spell_does_is_marked_and_not_averaged_away(tmp_path: Path) -> None:
    options = {"regimes": [1.6, 10, 10], "seed": 3}
    run = sweep(null_asked((2, 6), options=options, budget_s=60.0), tmp_path, Told())
    assert all("blocks disturbed" in str(point["suspect"]) for point in run.points)
    assert all(point["latency_ms_high"] > 1.3 * point["latency_ms_low"] for point in run.points)


def test_the_same_options_give_the_same_run(tmp_path: Path) -> None:
    runs = [sweep(null_asked(), tmp_path, Told()) for _ in range(2)]
    one, two = ([{**point, "run_id": ""} for point in run.points] for run in runs)
    assert one == two
    assert stamps(runs[0]) == stamps(runs[1])
    assert runs[0].run_id != runs[1].run_id


def test_every_visit_of_the_plan_is_a_block(tmp_path: Path) -> None:
    told, asked = Told(), null_asked(least_rounds=3, most_rounds=3, budget_s=0.0)
    run = sweep(asked, tmp_path, told)
    wanted = [visit for number in range(3) for visit in asked.plan.visits(number)]
    assert visited(told) == wanted == [Visit(one["round"], one["batch_size"], one["kind"]) for one in blocks(run)]
    assert [done for _, done, _, _ in told.visits] == list(range(len(wanted)))
    assert {total for _, _, total, _ in told.visits} == {len(wanted)}
    left = [left_s for *_, left_s in told.visits]
    assert left == sorted(left, reverse=True)


def test_the_budget_is_time_of_the_device(tmp_path: Path) -> None:
    """Blocks of 2 s or eight batches; rounds begin while less than 60 s are spent."""
    run = sweep(null_asked((2,), least_rounds=1, budget_s=60.0), tmp_path, Told())
    spent = dict.fromkeys(range(run.points[0]["rounds"]), 0.0)
    for one in blocks(run):
        spent[one["round"]] += (one["window_ns"][1] - one["window_ns"][0]) / 1e9
    assert sum(spent.values()) >= 60 > sum(list(spent.values())[:-1])


def test_no_clock_of_the_machine_is_asked_where_time_is_calculated(
    tmp_path: Path, model: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clockless:
        def __getattr__(self, name: str) -> None:
            raise AssertionError(f"time.{name} was asked")

    for module in ("crew", "load", "backends.base"):
        monkeypatch.setattr(f"ipu_results.runner.{module}.time", Clockless())
    monkeypatch.setattr(sweeps, "environment", dict)
    assert sweep(null_asked((2,)), tmp_path, Told()).points
    assert sweep(emulator_asked(model, images, (2,)), tmp_path, Told()).points


# --- interrupted, and gone on with


def journal(out: Path, run_id: str) -> Journal:
    found = Journal(out, run_id)
    found.read()
    return found


def kept(out: Path) -> tuple[str, list[dict[str, Any]]]:
    (run_id,) = unfinished(out)
    return run_id, [one["block"] for one in journal(out, run_id).of("block")]


def assert_kept(run: Finished, before: list[dict[str, Any]]) -> None:
    """The first blocks of the run are these to the last nanosecond."""
    after = blocks(run)
    of_block: dict[int, list[tuple[int, ...]]] = {}
    for row in stamps(run):
        of_block.setdefault(row[0], []).append(row)
    for was, is_ in zip(before, after, strict=False):
        assert {name: is_[name] for name in was if name != "stamps"} == {
            name: value for name, value in was.items() if name != "stamps"
        }
        rows = [
            (was["block"], session, iteration, *row)
            for session, of_session in enumerate(was["stamps"])
            for iteration, row in enumerate(of_session)
        ]
        assert of_block[was["block"]] == rows


@pytest.mark.parametrize("visit", [1, 2, 6, 9])
def test_an_interrupted_sweep_measures_what_is_missing(tmp_path: Path, visit: int) -> None:
    asked = null_asked(least_rounds=2, most_rounds=2)
    with pytest.raises(KeyboardInterrupt):
        sweep(asked, tmp_path, interrupted(visit))
    run_id, before = kept(tmp_path)
    assert len(before) == visit - 1
    told = Told()
    run = resume(run_id, tmp_path, told)
    every = [one for number in range(2) for one in asked.plan.visits(number)]
    assert visited(told) == every[visit - 1 :]
    assert_kept(run, before)
    assert [one["block"] for one in blocks(run)] == list(range(len(every)))
    assert run.run_id == run_id
    assert unfinished(tmp_path) == []
    whole = sweep(asked, tmp_path, Told())
    assert [point["blocks"] for point in run.points] == [point["blocks"] for point in whole.points]


def test_a_sweep_may_be_interrupted_again_and_again(tmp_path: Path) -> None:
    asked = null_asked(least_rounds=2, most_rounds=2)
    with pytest.raises(KeyboardInterrupt):
        sweep(asked, tmp_path, interrupted(2))
    for _ in range(7):
        (run_id,) = unfinished(tmp_path)
        with pytest.raises(KeyboardInterrupt):
            resume(run_id, tmp_path, interrupted(2))
    run_id, before = kept(tmp_path)
    assert len(before) == 8
    run = resume(run_id, tmp_path, Told())
    assert_kept(run, before)
    assert len(blocks(run)) == 9


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from runner_support import killed, null_asked
from ipu_results.runner.sweep import sweep
sweep(null_asked(least_rounds=2, most_rounds=2), Path({out!r}), killed(5))
"""


def test_a_killed_sweep_keeps_its_blocks(tmp_path: Path) -> None:
    program = KILLED.format(tests=str(TESTS), out=str(tmp_path / "runs"))
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    run_id, before = kept(tmp_path / "runs")
    assert len(before) == 4
    told = Told()
    run = resume(run_id, tmp_path / "runs", told)
    assert_kept(run, before)
    assert len(told.visits) == len(blocks(run)) - 4 == 5
    assert {path.name for path in run.folder.iterdir()} == FILES


def started(out: Path) -> str:
    with pytest.raises(KeyboardInterrupt):
        sweep(null_asked(least_rounds=2, most_rounds=2), out, interrupted(3))
    (run_id,) = unfinished(out)
    return run_id


def other_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    real = sweeps.versions
    monkeypatch.setattr(sweeps, "versions", lambda names: {**real(names), "onnxruntime": "0.1"})


def other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    real = sweeps.environment
    monkeypatch.setattr(sweeps, "environment", lambda: {**real(), "cpu": "another CPU", "load_average": [99.0]})


def other_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipu_results.runner.backends.null.VERSION", "2")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (other_versions, r"versions onnxruntime was [\d.]+, is 0\.1"),
        (other_machine, "environment cpu was .+, is another CPU"),
        (other_backend, "facts backend_version was 1, is 2"),
    ],
)
def test_a_sweep_does_not_go_on_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[pytest.MonkeyPatch], None], told: str
) -> None:
    run_id = started(tmp_path)
    before = journal(tmp_path, run_id).path.read_bytes()
    with monkeypatch.context() as changed:
        change(changed)
        with pytest.raises(DamagedRunError) as caught:
            resume(run_id, tmp_path, Told())
    assert re.fullmatch(f"{run_id}: cannot go on here: {told}", str(caught.value))
    assert journal(tmp_path, run_id).path.read_bytes() == before
    assert resume(run_id, tmp_path, Told()).run_id == run_id


def test_a_busier_machine_is_the_same_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id, real = started(tmp_path), sweeps.environment
    monkeypatch.setattr(sweeps, "environment", lambda: {**real(), "load_average": [99.0, 99.0, 99.0]})
    assert resume(run_id, tmp_path, Told()).points


def test_a_run_that_is_being_measured_is_left_alone(tmp_path: Path) -> None:
    run_id = started(tmp_path)
    with (
        Journal(tmp_path, run_id).held(),
        pytest.raises(DamagedRunError, match=f"^{run_id}: another process is at it$"),
    ):
        resume(run_id, tmp_path, Told())
    assert len(kept(tmp_path)[1]) == 2


def test_runs_that_cannot_be_gone_on_with(tmp_path: Path) -> None:
    finished = sweep(null_asked((2,)), tmp_path, Told()).run_id
    for run_id in ("20260101-000000-null-null-0000", finished):
        with pytest.raises(DamagedRunError, match=f"^{run_id}: .*is no unfinished run$"):
            resume(run_id, tmp_path, Told())


def test_a_damaged_journal_is_not_gone_on_with(tmp_path: Path) -> None:
    run_id = started(tmp_path)
    path = journal(tmp_path, run_id).path
    lines = path.read_bytes().splitlines(keepends=True)
    for number in (0, 2):
        damaged = b"".join([*lines[:number], b"?" + lines[number], *lines[number + 1 :]])
        path.write_bytes(damaged)
        with pytest.raises(DamagedRunError, match=f"^{run_id}: line {number + 1}: is no journal"):
            resume(run_id, tmp_path, Told())
        assert path.read_bytes() == damaged


def test_a_sweep_that_is_stopped_while_opening_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sweeps, "open_crew", stopped)
    with pytest.raises(KeyboardInterrupt):
        sweep(null_asked(), tmp_path / "runs", Told())
    assert list((tmp_path / "runs").iterdir()) == []


# --- an emulated device


def test_an_emulated_run_says_that_it_is_one(emulated: Ran) -> None:
    run, told = emulated
    assert [point["batch_size"] for point in run.points] == [2, 4]
    for point in run.points:
        assert (point["origin"], point["platform"], point["chip"], point["chip_count"]) == ("emulated", "C2", "GC2", 2)
        assert point["calibration_id"] == load_calibration().id
        assert point["latency_ms_low"] < point["latency_ms"] < point["latency_ms_high"]
        assert (point["interval_confidence"], point["latency_p99_ms"]) == (None, None)
        assert (point["compute_precision"], point["model"], point["pipeline"]) == ("fp16", "tiny", "serial")
        assert (point["power_scope"], point["power_reason"]) == ("board", "predicted, not measured")
        assert point["efficiency"] == pytest.approx(point["throughput"] / point["power_w"])
        assert point["throughput"] == pytest.approx(1000 * point["batch_size"] / point["latency_ms"])
        assert (point["probe_ms"], point["foreign_cpu"], point["steal"]) == (None, None, None)
        assert point["cosine"] > 0.9999
    assert any("nothing is measured" in note for note in record(run)["notes"])
    assert told.warnings[1:] == []


def test_the_same_input_gives_the_same_emulated_figures(
    emulated: Ran, tmp_path: Path, model: Path, images: Path
) -> None:
    run, again = emulated[0], sweep(emulator_asked(model, images), tmp_path, Told())
    for one, two in zip(points(run), points(again), strict=True):
        assert {name for name in one if one[name] != two[name]} <= MADE_AT
    assert stamps(run) == stamps(again)
    told = [record(one) for one in (run, again)]
    assert [told[0][name] for name in ("model", "images", "plan")] == [
        told[1][name] for name in ("model", "images", "plan")
    ]


def test_an_interrupted_emulated_sweep_ends_with_the_same_figures(
    emulated: Ran, tmp_path: Path, model: Path, images: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        sweep(emulator_asked(model, images), tmp_path, interrupted(3))
    (run_id,) = unfinished(tmp_path)
    run = resume(run_id, tmp_path, Told())
    for one, two in zip(points(emulated[0]), points(run), strict=True):
        differing = {name for name in one if one[name] != two[name]} - MADE_AT
        assert all(float(two[name]) == pytest.approx(float(one[name])) for name in differing)


# --- a real device


def test_a_measured_run_agrees_with_the_reference(on_cpu: Ran) -> None:
    run, _ = on_cpu
    assert [point["batch_size"] for point in run.points] == [2, 4]
    for point in run.points:
        assert point["cosine"] == pytest.approx(1, abs=1e-6)
        assert point["top1"] == 1
        assert (point["compute_precision"], point["model_precision"]) == ("fp32", "fp32")
        assert (point["origin"], point["framework"], point["provider"]) == (
            "measured", "ONNX Runtime", "CPUExecutionProvider",
        )  # fmt: skip
        assert (point["pipeline"], point["threads"], point["sessions"]) == ("overlap", 1, 2)
        assert (point["model"], point["calibration_id"]) == ("tiny", None)


def test_loading_the_first_run_and_warming_up_are_apart(on_cpu: Ran) -> None:
    for point in on_cpu[0].points:
        assert point["load_s"] > 0
        assert point["compile_s"] is None, "ONNX Runtime compiles while it loads"
        assert point["first_run_ms"] > 0
        assert point["warm_up_runs"] >= 2
        assert point["rounds"] == 2
        assert "only 2 rounds" in point["suspect"]
        assert 0 < point["latency_ms"] < 1e4
        assert point["infer_ms"] > 0


def test_each_iteration_is_a_row_of_stamps(on_cpu: Ran, emulated: Ran) -> None:
    for run in (on_cpu[0], emulated[0]):
        table, told = pq.read_table(run.folder / "stamps.parquet"), blocks(run)
        assert table.num_rows == sum(one["iterations"] for one in told)
        rows = table.to_pylist()
        assert sorted({row["block"] for row in rows}) == [one["block"] for one in told] == list(range(len(told)))
        assert {row["session"] for row in rows} == {0, 1}
        times = [[row[name] for name in table.column_names[3:]] for row in rows]
        assert all(one == sorted(one) for one in times)


def test_a_prediction_leaves_blank_what_only_a_measurement_has(on_cpu: Ran, emulated: Ran) -> None:
    stamps = pq.read_table(on_cpu[0].folder / "stamps.parquet").num_rows
    assert stamps == sum(point["iterations"] for point in on_cpu[0].points)
    for point in emulated[0].points:
        assert [point[name] for name in ("iterations", "rounds", "infer_ms", "first_run_ms", "load_s")] == [None] * 5
        assert point["cosine"] > 0.99


def test_what_was_seen_around_each_block_stands_beside_it(on_cpu: Ran) -> None:
    for one in blocks(on_cpu[0]):
        assert len(one["probe_ms"]) == 2
        assert min(one["probe_ms"]) > 0
        assert 0 <= one["foreign_cpu"] <= 1
        assert one["others"] == 0
        assert one["throughput"] == pytest.approx(one["items"] / (one["window_ns"][1] - one["window_ns"][0]) * 1e9)


def test_pictures_that_cannot_be_used_are_told_and_listed(on_cpu: Ran) -> None:
    """Grey and CMYK ones are used like any other."""
    run, told = on_cpu
    (warning,) = told.warnings
    assert warning.startswith("image left out: 1-broken.jpg: ")
    said = record(run)["images"]
    assert (said["source"], said["count"]) == ("folder", len(MODES) - 1)
    assert said["left_out"] == [warning.removeprefix("image left out: ")]


def test_the_record_holds_what_the_run_was(on_cpu: Ran, model: Path) -> None:
    run, said = on_cpu[0], record(on_cpu[0])
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    assert (said["run_id"], said["backend"], said["device"]) == (run.run_id, "onnxruntime", "cpu")
    assert {**said["model"]} == {
        "name": "tiny", "precision": "fp32", "weights": digest, "sha256": digest, "source_sha256": digest,
        "height": SIDE, "width": SIDE, "outputs": CLASSES,
    }  # fmt: skip
    assert said["plan"]["batch_sizes"] == [2, 4]
    assert {"numpy", "onnx", "onnxruntime"} <= said["versions"].keys()
    assert said["started_at"] <= said["finished_at"]
    assert said["environment"]["python"]


@pytest.mark.parametrize("which", ["on_cpu", "emulated"])
def test_a_finished_run_vouches_for_its_files(which: str, request: pytest.FixtureRequest, model: Path) -> None:
    run: Finished = request.getfixturevalue(which)[0]
    assert {path.name for path in run.folder.iterdir()} == FILES
    assert run.folder.name == run.run_id
    for name in ("record.json", "points.csv"):
        sidecar = tomllib.loads((run.folder / f"{name}.toml").read_text(encoding="utf-8"))
        for file, told in {name: sidecar["sha256"], **sidecar.get("attachments", {})}.items():
            assert hashlib.sha256((run.folder / file).read_bytes()).hexdigest() == told
        assert (sidecar["publisher"], sidecar["kind"], sidecar["licence"]) == ("local", "run", "CC-BY-4.0")
        assert "url" not in sidecar
    everything = b"".join((run.folder / name).read_bytes() for name in sorted(FILES))
    assert str(model.parent).encode() not in everything, "a path of this machine"
    with (run.folder / "points.csv").open(encoding="utf-8") as file:
        assert file.readline().strip().split(",") == list(
            load_vocabulary().layout("sweep-points", "sweep_points").names
        )
    texts = [[row["batch_size"], row["throughput"]] for row in points(run)]
    assert texts == [[str(point["batch_size"]), str(point["throughput"])] for point in run.points]


def test_runs_are_ingested(raw: Path, on_cpu: Ran, emulated: Ran, tmp_path: Path) -> None:
    simulated = sweep(null_asked((2,)), raw / "runs", Told())
    warehouse = tmp_path / "warehouse"
    ingest(raw, warehouse)
    with open_warehouse(warehouse) as connection:
        sql = "SELECT run_id, batch_size, throughput, origin FROM local_runs ORDER BY run_id, batch_size"
        found = [tuple(row.values()) for row in run_query(connection, sql).to_pylist()]
        refused = run_query(connection, "SELECT DISTINCT document_id FROM quarantine").to_pylist()
    wanted = [
        (run.run_id, point["batch_size"], pytest.approx(point["throughput"]), point["origin"])
        for run in sorted((on_cpu[0], emulated[0]), key=lambda run: run.run_id)
        for point in run.points
    ]
    assert found == wanted
    assert [row["document_id"] for row in refused] == [f"sweep-{simulated.run_id}-points"]


def test_generated_pictures_in_turn(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One session, nothing made ahead, pictures of the seeded generator."""
    monkeypatch.setattr("ipu_results.runner.scene.GENERATED", 3)
    asked = cpu_asked(model, None, (1, 3), sessions=1)
    run = sweep(replace(asked, plan=replace(asked.plan, overlap=False)), tmp_path, Told())
    assert [(point["batch_size"], point["pipeline"]) for point in run.points] == [(1, "serial"), (3, "serial")]
    assert all(point["cosine"] == pytest.approx(1, abs=1e-6) for point in run.points)
    assert all(point["preprocess_ms"] > 0 for point in run.points)
    assert record(run)["images"] | {"sha256": ""} == {
        "source": "generated, seed 0", "count": 3, "sha256": "", "left_out": [],
    }  # fmt: skip
    rows = stamps(run)
    assert all(loaded > start for _, _, _, start, loaded, *_ in rows), "files are read in the block itself"


# --- sessions that fail


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setitem(sys.modules, ODD, None)  # type: ignore[arg-type]
    install_odd()
    before = children()
    yield odd_python(tmp_path / "odd")
    assert children() <= before


def test_a_session_that_dies_in_a_sweep_loses_no_block(tmp_path: Path, python: str) -> None:
    flag, out = tmp_path / "flag", tmp_path / "runs"
    asked = odd_asked(python, when="run", do="die", session=1, flag=str(flag))
    with pytest.raises(SessionLostError, match=r"^the process of session 1 was killed by SIGKILL$"):
        sweep(asked, out, Told(lambda visit: visit == 4 and flag.touch()))
    run_id, before = kept(out)
    assert len(before) == 3
    flag.unlink()
    told = Told()
    run = resume(run_id, out, told)
    assert_kept(run, before)
    assert len(told.visits) == len(blocks(run)) - 3 == 3
    assert [point["blocks"] for point in run.points] == [3, 3]


def test_a_device_that_fails_in_a_sweep_loses_no_block(tmp_path: Path, python: str) -> None:
    flag, out = tmp_path / "flag", tmp_path / "runs"
    asked = odd_asked(python, when="run", do="refuse", flag=str(flag))
    with pytest.raises(BackendError, match=r"^tiny: odd: takes no such batch$"):
        sweep(asked, out, Told(lambda visit: visit == 3 and flag.touch()))
    assert len(kept(out)[1]) == 2


def test_a_device_that_takes_no_batch_leaves_nothing_measured(tmp_path: Path, python: str) -> None:
    told = Told()
    with pytest.raises(BackendError, match="takes no such batch"):
        sweep(odd_asked(python, when="prepare", do="refuse"), tmp_path / "runs", told)
    assert [warning.partition(":")[0] for warning in told.warnings] == ["batch 2 is left out", "batch 4 is left out"]


def test_a_batch_that_the_device_does_not_take_is_left_out(tmp_path: Path, python: str) -> None:
    """It is told, and stands in the record; the others are measured."""
    flag = tmp_path / "flag"
    flag.touch()

    class Once(Told):
        def warn(self, what: str) -> None:
            super().warn(what)
            flag.unlink()

    told = Once()
    run = sweep(odd_asked(python, when="prepare", do="refuse", flag=str(flag)), tmp_path / "runs", told)
    assert [point["batch_size"] for point in run.points] == [4]
    assert told.warnings == ["batch 2 is left out: tiny: odd: takes no such batch"]
    assert record(run)["notes"] == ["batch 2 left out: takes no such batch"]
    assert {visit.batch_size for visit in visited(told)} == {4}


# --- what cannot be swept


def without(tmp_path: Path, asked: Asked, error: type[RunnerError]) -> str:
    """What a sweep says that cannot begin; it leaves nothing."""
    with pytest.raises(error) as caught:
        sweep(asked, tmp_path / "runs", Told())
    assert list((tmp_path / "runs").iterdir()) == []
    return str(caught.value)


def test_a_model_of_two_inputs_is_named(tmp_path: Path, images: Path) -> None:
    path = tiny_model(tmp_path / "two.onnx", inputs=2)
    said = without(tmp_path, cpu_asked(path, images), RunnerError)
    assert said.startswith(f"{path}: has 2 inputs ('image', 'other'): wanted one float32 image input")


def test_a_folder_without_pictures_is_named(tmp_path: Path, model: Path) -> None:
    folder = pictures(tmp_path / "bad", ["broken", "broken"])
    said = without(tmp_path, cpu_asked(model, folder), UnusableImagesError)
    assert said.startswith(f"{folder}: holds no image that can be decoded; 2 left out, the first 0-broken.jpg: ")


def test_options_and_devices_that_are_not_there(tmp_path: Path, model: Path, images: Path) -> None:
    assert "no option 'speed'" in without(tmp_path, null_asked(options={"speed": 2}), BackendError)
    one = emulator_asked(model, images, (2,))
    three = replace(one, plan=Plan((3,), 3))
    assert "has 2 chips, a session each, not 3" in without(tmp_path, three, BackendError)


def test_ids_of_runs() -> None:
    asked = replace(null_asked(), device=SimpleNamespace(backend="onnxruntime", name="cuda:0"), precision="fp16")
    found = new_id(asked, datetime(2026, 11, 21, 13, 45, 1, tzinfo=UTC))
    assert re.fullmatch(r"20261121-134501-onnxruntime-cuda-0-fp16-[0-9a-f]{4}", found)
