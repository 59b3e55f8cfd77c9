"""The files of the official record: what a changed one does to a build, and how they are made."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import PAGE, RAW, copy_documents, edit, find_error, get_error, reseal
from tests.mlperf.mlperf_support import V2, load_cases, put

ENTRIES, RUNS, IDS = (
    f"mlperf/{name}.csv" for name in ("training-v2.0-entries", "training-v2.0-runs", "ids")
)
EARLIER = tuple(f"mlperf/training-v1.0-{name}.csv" for name in ("entries", "runs"))


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return copy_documents(tmp_path / "raw", PAGE, ENTRIES, RUNS, IDS, *EARLIER)


def read_lines(raw: Path, file: str) -> list[str]:
    return (raw / file).read_text(encoding="utf-8").splitlines(keepends=True)


def write_lines(raw: Path, file: str, lines: list[str]) -> None:
    (raw / file).write_text("".join(lines), encoding="utf-8")
    reseal(raw, file)


@pytest.mark.parametrize("case", load_cases("files")["edited"], ids=lambda case: case["message"])
def test_an_edited_record_stops_the_build(raw: Path, case: dict[str, str]) -> None:
    edit(raw, f"mlperf/{case['file']}.csv", case["old"], case["new"])
    assert_stops(raw, case["message"])


def assert_stops(raw: Path, message: str) -> None:
    line = find_error(raw)
    assert line.startswith("error: mlperf")
    assert message in line


@pytest.mark.parametrize(("file", "message"), [(RUNS, "runs, "), (ENTRIES, "have no entry")])
def test_a_lost_row_stops_the_build(raw: Path, file: str, message: str) -> None:
    lines = read_lines(raw, file)
    write_lines(raw, file, lines[:-1])
    sidecar = raw / f"{file}.toml"
    text = sidecar.read_text()
    sidecar.write_text(text.replace(f"rows = {len(lines) - 1}", f"rows = {len(lines) - 2}"))
    assert_stops(raw, message)


def test_two_scores_that_changed_places_stop_the_build(raw: Path) -> None:
    text = (raw / ENTRIES).read_text(encoding="utf-8")
    slow = "19.635155555555556"
    fast = "6.302183333333333"
    write_lines(raw, ENTRIES, [text.replace(slow, "§").replace(fast, slow).replace("§", fast)])
    assert_stops(raw, "minutes, the entry ")


def test_an_aborted_run_that_counts_stops_the_build(raw: Path) -> None:
    line = next(line for line in read_lines(raw, RUNS) if "its status is aborted" in line)
    edit(raw, RUNS, line, line.replace(",False,its status is aborted,", ",True,,"))
    assert_stops(raw, "counted; the entry ")


def test_a_file_that_was_cut_stops_the_build(raw: Path) -> None:
    lines = read_lines(raw, RUNS)
    write_lines(raw, RUNS, lines[:99])
    assert_stops(raw, "2760")
    write_lines(raw, RUNS, [*lines[:-1], "2.0,x"])
    assert_stops(raw, "truncated")


def test_repeated_key_is_named_by_the_command(raw: Path) -> None:
    edit(raw, IDS, "2.0-2046,", "2.0-2045,")
    assert get_error(raw).startswith("error: mlperf-ids: mlperf_ids, row 6: ")


def test_published_minutes_need_an_entry(tmp_path: Path) -> None:
    raw = copy_documents(tmp_path / "raw", PAGE, ENTRIES, RUNS, "mlperf/published-v0.7-nvidia.csv")
    line = find_error(raw)
    assert line.startswith("error: nvidia-mlperf-v0.7-blog: has minutes of NVIDIA/results/dgxa100_")
    assert line.endswith(", round 0.7, which has no entry")


def load_script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, RAW / "mlperf" / f"{name}.py")
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def test_all_rounds_are_a_dataset_with_a_card(tmp_path: Path) -> None:
    load_script("make_dataset").make_dataset(tmp_path)
    rows = pq.read_table(tmp_path / "mlperf-training.parquet")
    summary = json.loads((tmp_path / "results_summary_v5.1.json").read_bytes())
    entries = [row for row in rows.to_pylist() if row["round"] == "5.1" and row["minutes"]]
    assert [each["Performance_Result"] for each in summary] == [row["minutes"] for row in entries]
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    digest = hashlib.sha256((tmp_path / "mlperf-training.parquet").read_bytes()).hexdigest()
    assert f"{rows.num_rows:,} entries of 11 rounds" in card
    assert digest in card
    assert all(f"| `{name}` |" in card for name in rows.column_names)


@pytest.mark.slow
@pytest.mark.skipif(not V2.exists(), reason="the official logs are not here")
def test_the_derived_files_come_from_the_official_logs(tmp_path: Path) -> None:
    with tarfile.open(V2) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    [folder] = (tmp_path / "unpacked").iterdir()
    (tmp_path / "checkouts").mkdir()
    folder.rename(tmp_path / "checkouts" / "training_results_v2.0")
    load_script("make_derived").derive(tmp_path / "checkouts", tmp_path, ["2.0"])
    for name in (ENTRIES, RUNS):
        assert (tmp_path / Path(name).name).read_bytes() == (RAW / name).read_bytes(), name


def test_incomplete_repository_is_exported_with_a_list_of_its_missing_files(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    kept = "ACME/results/acme1/resnet/result_0.txt"
    lost = "ACME/results/acme1/resnet/result_1.txt"
    for name in (kept, lost, "ACME/systems/acme1.json", "ACME/benchmarks/code.py", "README.md"):
        put(clone, name, name)
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "Add"]):
        subprocess.run([*git, *command], check=True)
    digest = subprocess.check_output([*git, "rev-parse", f"HEAD:{lost}"], text=True).strip()
    (clone / ".git/objects" / digest[:2] / digest[2:]).unlink()
    target = tmp_path / "target"
    assert list(load_script("export_round").export_round(clone, target)) == [lost]
    written = {path for path in target.rglob("*") if path.is_file()}
    assert written == {target / kept, target / "ACME/systems/acme1.json"}
    assert (target / kept).read_text() == kept


def test_each_round_has_its_commit_and_missing_logs() -> None:
    missing = 0
    unlicensed = set()
    for path in (RAW / "mlperf").glob("training-*.toml"):
        sidecar = tomllib.loads(path.read_text())
        assert len(sidecar["commit"]) == 40
        missing += len(sidecar.get("missing", ()))
        if not sidecar["licence"].startswith("Apache-2.0"):
            unlicensed.add(path.name)
    assert missing == 200
    assert unlicensed == {f"training-v4.1-{name}.csv.toml" for name in ("entries", "runs")}
