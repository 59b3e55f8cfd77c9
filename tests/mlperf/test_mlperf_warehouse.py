"""The official record in the warehouse: tables, ids, comparability, attribution, and rule R12."""

from __future__ import annotations

import csv
import importlib.util
import io
import subprocess
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from ipu_results.check.rules.plausibility import flag_official_record
from ipu_results.ground.sql import run_query
from ipu_results.store.query import open_warehouse

from tests.conftest import PAGE, RAW, Query, copy_documents, edit, reseal, run_cli
from tests.mlperf.mlperf_support import V2, graphcore_scores

ENTRIES, RUNS, IDS = (f"mlperf/{name}.csv" for name in ("training-v2.0-entries", "training-v2.0-runs", "ids"))
EARLIER = tuple(f"mlperf/training-v1.0-{name}.csv" for name in ("entries", "runs"))
POD16_RESNET = "Graphcore/results/ipu-pod16-TF1-closed/resnet"


ENTRIES_AND_RUNS = {  # entries, those without a score, logs and those that count, by round
    "0.7": (135, 9, 895, 887),
    "1.0": (149, 11, 1279, 1252),
    "1.1": (186, 3, 1810, 1785),
    "2.0": (262, 0, 2760, 2735),
    "2.1": (199, 0, 1910, 1895),
    "3.0": (260, 0, 2771, 2732),
    "3.1": (209, 0, 2208, 2185),
    "4.0": (205, 3, 2418, 2405),
    "4.1": (154, 1, 1309, 1303),
    "5.0": (201, 0, 1717, 1707),
    "5.1": (185, 1, 1669, 1666),
}


def test_every_public_round(query: Query) -> None:
    entries = query("SELECT round, count(*), count(*) FILTER (minutes IS NULL) FROM mlperf_entries GROUP BY ALL")
    runs = query("SELECT round, count(*), count(*) FILTER (counted) FROM mlperf_runs GROUP BY ALL")
    counts = {round_: (*row, *{name: rest for name, *rest in runs}[round_]) for round_, *row in entries}
    assert counts == ENTRIES_AND_RUNS
    assert [sum(column) for column in zip(*counts.values(), strict=True)] == [2145, 28, 20_746, 20_552]
    reasons = (
        "SELECT status, reason, count(*) FROM mlperf_runs WHERE NOT counted AND round = '2.0' GROUP BY ALL ORDER BY ALL"
    )
    assert query(reasons) == [
        ("abort", "its status is abort", 1),
        ("aborted", "its status is aborted", 23),
        (None, "has run_start and no run_stop", 1),
    ]


def test_entries_whose_logs_our_copy_lacks_have_no_score(query: Query) -> None:
    missing = "FROM mlperf_entries WHERE logs_missing > 0"
    assert query(f"SELECT count(*), sum(logs_missing)::BIGINT, count(minutes) {missing}") == [(26, 200, 0)]
    assert query(f"SELECT DISTINCT no_score_reason {missing}") == [("logs missing in our copy",)]
    incomplete = "logs_missing = 0 AND logs_present < logs_expected AND minutes IS NOT NULL"
    assert query(
        f"SELECT round, path, logs_present, logs_expected, minutes FROM mlperf_entries WHERE {incomplete}"
    ) == [("1.0", "Supermicro/results/as-4142gs-tnr/unet3d", 22, 40, pytest.approx(41.2212369, abs=1e-6))]


def test_logs_that_were_handed_in_twice(query: Query) -> None:
    assert query(
        "SELECT round, path, logs_present, distinct_logs FROM mlperf_entries WHERE distinct_logs < logs_present"
    ) == [
        ("1.0", "Dell/results/DSS8440x8A100-PCIE-40GB/dlrm", 5, 2),
        ("1.1", "Azure/results/nd96amsr_a100_v4_ngc21.09_merlin_hugectr/dlrm", 5, 4),
    ]
    pair = "SELECT logs FROM mlperf_shared_logs WHERE path = 'smc-ac-power/results/1xSMC-H100-SXM-80GB/bert'"
    assert query(pair) == [(10,), (10,)]
    in_pairs = "SELECT round, path FROM mlperf_shared_logs UNION SELECT other_round, other_path FROM mlperf_shared_logs"
    assert query(f"SELECT count(*) FROM ({in_pairs})") == query(
        "SELECT count(*) FROM mlperf_entries WHERE shared_logs > 0"
    )


def test_progress_of_the_defects_that_were_found(query: Query) -> None:
    columns = "samples_to_converge, tokens_to_converge, epochs_to_converge"
    assert query(f"SELECT {columns} FROM mlperf_entries WHERE path LIKE 'Ailiverse/%/resnet'") == [
        (34_591_509.0, None, 27.0)
    ]
    assert query(
        "SELECT count(*), count(samples_to_converge) FROM mlperf_entries WHERE benchmark = 'stable_diffusion'"
    ) == [(73, 73)]
    assert query("SELECT max(epochs_to_converge) < 20000 FROM mlperf_entries") == [(True,)]
    without = "SELECT benchmark, count(*) FROM mlperf_entries WHERE samples_to_converge IS NULL AND minutes IS NOT NULL"
    assert query(f"{without} GROUP BY ALL ORDER BY ALL") == [("bert", 2), ("dlrm", 2), ("minigo", 50)]


def test_energy_where_the_official_rule_gives_one(query: Query) -> None:
    energies = "SELECT round, count(*) FROM mlperf_entries WHERE energy_j > 0 GROUP BY ALL ORDER BY ALL"
    assert query(energies) == [("4.0", 10), ("4.1", 1), ("5.0", 4)]


def test_reference_convergence_points_of_the_batch(query: Query) -> None:
    bert = "round = '2.0' AND path = 'ASUSTeK/results/ESC8000A-E11-8xA100-PCIE-80GB-NVBridge/bert'"
    assert query(f"SELECT global_batch_size, rcp_mean, rcp_unit FROM mlperf_entries WHERE {bert}") == [
        (448, 2_621_696.0, "samples")
    ]
    assert query("SELECT count(rcp_mean) FROM mlperf_entries") == [(1437,)]
    joined = "mlperf_entries e JOIN mlperf_rcp USING (round, benchmark, global_batch_size)"
    assert query(f"SELECT count(*) FROM {joined} WHERE e.rcp_mean IS NULL") == [(0,)]


def test_every_score_met_its_quality_target(query: Query) -> None:
    assert query("SELECT DISTINCT quality_check FROM mlperf_entries WHERE minutes IS NOT NULL") == [("reached",)]
    missed = "SELECT round, path, file FROM mlperf_runs WHERE reason LIKE 'did not reach%'"
    assert query(missed) == [("1.0", "Intel/results/8-nodes-64s-8376H-tensorflow/resnet", "result_4.txt")]


def test_an_entry_and_its_result_column_by_column(query: Query) -> None:
    columns = (
        "round submitter division system benchmark accelerators accelerator framework n_runs n_success path "
        "no_score_reason availability status nodes scaling_factor global_batch_size epochs_to_converge "
        "samples_to_converge mlperf_id mlperf_id_confidence comparable_rounds document_id"
    )
    assert query(f"SELECT {columns.replace(' ', ', ')} FROM mlperf_entries WHERE mlperf_id = '2.0-2047'") == [
        (
            *("2.0", "Graphcore", "closed", "Bow-Pod16", "resnet", 16, "Graphcore Bow IPU"),
            *("TensorFlow 1.15 Poplar SDK 2.5.1", 5, 5, POD16_RESNET, None, "onprem", "onprem", 1, 1.0),
            *(3520, 38.0, 38 * 1281167.0, "2.0-2047", "printed", "0.6-4.0", "mlperf-training-v2.0-entries"),
        )
    ]
    columns = (
        "origin publisher table_name task benchmark division mlperf_id mlperf_round model platform chip chip_count "
        "sdk_version framework batch_size throughput run_id"
    )
    sql = f"SELECT {columns.replace(' ', ', ')}, round(time_to_train_s / 60, 6) FROM results WHERE origin = 'official' "
    assert query(f"{sql} AND mlperf_id = '2.0-2047'") == [
        (
            *("official", "MLCommons", "mlperf_entries", "training", "mlperf-training", "closed", "2.0-2047", "2.0"),
            *("ResNet-50 v1.5", "Bow Pod16", "Bow", 16, "2.5.1", "TensorFlow", 3520, None, None, 19.635156),
        )
    ]


def test_entry_result_and_cell_have_the_same_minutes(query: Query) -> None:
    joined = (
        "FROM mlperf_entries e JOIN results r USING (result_id) JOIN cells c USING (result_id) "
        "WHERE c.column_name = 'time_to_train_s' AND "
    )
    assert query(f"SELECT count(*) {joined} c.value = e.minutes AND TRY_CAST(c.raw_text AS DOUBLE) = e.minutes") == [
        (2117,)
    ]
    assert query(f"SELECT count(*) {joined} abs(r.time_to_train_s - e.minutes * 60) > 1e-9") == [(0,)]


@pytest.mark.parametrize("round_", ["1.0", "2.0"])
def test_scores_of_graphcore(query: Query, round_: str) -> None:
    scores = query(f"SELECT path, minutes FROM mlperf_entries WHERE round = '{round_}' AND submitter = 'Graphcore'")
    assert dict(scores) == pytest.approx(graphcore_scores(round_), abs=6e-7)


def test_the_only_scaled_score_of_a_round(query: Query) -> None:
    assert query("SELECT path, scaling_factor FROM mlperf_entries WHERE scaling_factor <> 1 AND round = '2.0'") == [
        ("Google/results/cloud-tpu-v4-4096-TF/ssd", 1.023)
    ]


def test_every_published_row_has_its_official_entry(query: Query) -> None:
    joined = query(
        "SELECT p.mlperf_id, p.division = e.division, p.chip_count = e.accelerators, p.platform = o.platform, "
        "p.framework = o.framework, p.model = o.model, p.sdk_version = o.sdk_version, e.mlperf_id_confidence "
        "FROM results p JOIN mlperf_entries e USING (mlperf_id) JOIN results o ON o.result_id = e.result_id "
        "WHERE p.origin = 'published' ORDER BY 1"
    )
    paddle = {"2.0-2046", "2.0-2048"}  # the official software line of these two names no SDK
    assert len({row[0] for row in joined}) == len(joined) == 11
    for id_, *same, sdk, confidence in joined:
        assert (same, confidence) == ([True] * 5, "printed"), id_
        assert sdk is (None if id_ in paddle else True), id_


def test_rule_12_fires_on_two_of_the_eleven(query: Query) -> None:
    columns = "r.mlperf_id, f.severity, f.column_name, f.message, f.suggested"
    assert query(f"SELECT {columns} FROM flags f JOIN results r USING (result_id) WHERE rule = 'R12' ORDER BY 1") == [
        (
            *("2.0-2045", "info", "time_to_train_s"),
            "prints 20.66 mins; the logs of Graphcore/results/ipu-pod16-POPART-closed/bert give 20.6538895833, "
            "20.65 to the printed digits",
            "1239",
        ),
        (
            *("2.0-2053", "info", "time_to_train_s"),
            "prints 3.19 mins; the logs of Graphcore/results/ipu-pod256-POPART-closed/bert give 3.18485416667, "
            "3.18 to the printed digits",
            "190.8",
        ),
    ]


def compare_printed(minutes: float, printed: str, mlperf_id: str = "2.0-2050") -> list[tuple[object, ...]]:
    """Apply R12 to a published row that prints `printed` minutes and an official entry of `minutes`."""
    row = {"result_id": "r", "mlperf_id": "2.0-2050", "model": "ResNet-50 v1.5", "origin": "published"}
    cell = {
        "column_name": "time_to_train_s",
        "raw_text": printed,
        "value": float(printed),
        "unit": "mins",
        "factor": 60,
    }
    entry = {"result_id": "r", "mlperf_id": mlperf_id, "minutes": minutes, "path": "S/results/s/resnet"}
    results, cells, official = (pd.DataFrame([record]) for record in (row, {"result_id": "r"} | cell, entry))
    data: Any = SimpleNamespace(results=results, cells=cells, official=official)
    flags = flag_official_record(data)
    return list(zip(flags["severity"], flags["column_name"], flags["suggested"].astype(object), strict=True))


@pytest.mark.parametrize(
    ("minutes", "printed", "expected"),
    [
        (6.302183, "6.30", []),
        (6.304999, "6.3", []),
        (6.2951, "6.30", []),
        (6.3051, "6.30", [("info", "time_to_train_s", "378.6")]),
        (6.35, "6.30", [("warn", "time_to_train_s", "381")]),
        (6.399, "6.30", [("warn", "time_to_train_s", "384")]),
        (6.41, "6.30", [("error", "time_to_train_s", "384.6")]),
        (6302.183, "6.30", [("error", "time_to_train_s", "378130.8")]),
    ],
)
def test_rule_12_compares_at_the_printed_digits(
    minutes: float, printed: str, expected: list[tuple[object, ...]]
) -> None:
    assert compare_printed(minutes, printed) == expected


def test_rule_12_names_an_id_without_an_entry() -> None:
    [(severity, column, _)] = compare_printed(6.302183, "6.30", mlperf_id="2.0-9999")
    assert (severity, column) == ("warn", "mlperf_id")


def test_an_inferred_id_is_not_in_the_results(query: Query) -> None:
    assert query("SELECT confidence, count(*) FROM mlperf_ids GROUP BY 1 ORDER BY 1") == [
        ("confirmed", 2),
        ("inferred", 4),
        ("printed", 11),
    ]
    assert query(
        "SELECT DISTINCT mlperf_round, mlperf_id FROM results WHERE origin = 'official' AND mlperf_id < '2' ORDER BY 2"
    ) == [("1.0", "1.0-1098"), ("1.0", "1.0-1099")]
    assert query("SELECT count(*) FROM mlperf_entries WHERE mlperf_id_confidence = 'inferred'") == [(4,)]
    assert query("SELECT count(*) FROM mlperf_ids WHERE source = ''") == [(0,)]


def test_four_names_of_a_chip_are_one_chip(query: Query) -> None:
    names = query(
        "SELECT DISTINCT accelerator FROM mlperf_entries e JOIN results r USING (result_id) "
        "WHERE r.chip = 'A100-80GB' AND e.round = '2.0' ORDER BY 1"
    )
    suffixes = ("SXM-80GB", "SXM-80GB CTS", "SXM4-80GB", "SXM4-80GB (400W)")
    assert names == [(f"NVIDIA A100-{suffix}",) for suffix in suffixes]


def test_comparable_rounds_are_data(query: Query) -> None:
    ruled = "SELECT benchmark, first_round, last_round, dataset, quality_target FROM mlperf_comparability"
    assert query(f"{ruled} WHERE benchmark IN ('bert', 'resnet', 'rnnt') ORDER BY ALL") == [
        ("bert", "1.0", "5.0", "Wikipedia 2020/01/01", "0.720 Mask-LM accuracy"),
        ("resnet", "0.6", "4.0", "ImageNet", "75.90% classification"),
        ("rnnt", "1.0", "1.0", "LibriSpeech", "0.058 Word Error Rate"),
        ("rnnt", "1.1", "3.1", "LibriSpeech", "0.058 Word Error Rate"),
    ]
    blocks = query("SELECT DISTINCT benchmark, round, comparable_rounds FROM mlperf_comparable ORDER BY ALL")
    shown = {(benchmark, round_): block for benchmark, round_, block in blocks}
    assert [shown["bert", each] for each in ("0.7", "1.0", "5.0")] == ["0.7", "1.0-5.0", "1.0-5.0"]
    assert [shown["resnet", each] for each in ("0.7", "4.0")] == ["0.6-4.0", "0.6-4.0"]
    assert [shown["ssd", each] for each in ("1.1", "2.0")] == ["0.6-1.1", "2.0-5.1"]


def test_comparable_rows_have_division_and_chip_count(query: Query) -> None:
    select = "SELECT division, round, system, accelerators, availability FROM mlperf_comparable"
    assert query(f"{select} WHERE benchmark = 'rnnt' AND submitter = 'Graphcore'") == [
        ("open", "2.0", "Bow Pod64", 64, "onprem")
    ]
    assert query("SELECT count(*), count(accelerators), count(division) FROM mlperf_comparable") == [(2117, 2107, 2109)]


def test_minutes_per_chip_are_marked_as_derived(query: Query) -> None:
    [(product, minutes, chips, text)] = query(
        "SELECT accelerator_minutes, minutes, accelerators, attribution FROM mlperf_per_chip "
        "WHERE mlperf_id = '2.0-2047'"
    )
    assert product == minutes * chips == pytest.approx(19.635156 * 16, abs=1e-4)  # type: ignore[operator]
    assert str(text).endswith("MLPerf metric")


def test_mlperf_minutes_are_in_views_of_their_own(query: Query) -> None:
    for view in ("inference", "training", "latest"):
        mixed = f"SELECT count(*) FROM {view} v JOIN results r USING (result_id) WHERE r.benchmark = 'mlperf-training'"
        assert query(mixed) == [(0,)]
    for view in ("mlperf_comparable", "mlperf_per_chip"):
        columns = {name for name, *_ in query(f"DESCRIBE {view}")}
        assert columns.isdisjoint({"throughput", "latency_ms", "efficiency"})
        assert {"division", "comparable_rounds", "availability", "accelerators", "round", "attribution"} <= columns


def test_attribution_has_all_that_a_citation_needs(query: Query) -> None:
    assert query("SELECT attribution FROM mlperf_entries WHERE mlperf_id = '2.0-2047'") == [
        (
            "MLPerf Training v2.0 closed resnet, Graphcore, https://github.com/mlcommons/training_results_v2.0, "
            f"{POD16_RESNET}; MLPerf ID 2.0-2047 (printed); retrieved 2026-11-21; "
            "computed from the logs by ipu-results, result not verified by MLCommons Association",
        )
    ]
    marked = "attribution LIKE '%not verified by MLCommons Association%' AND attribution LIKE '%retrieved 2026-%'"
    assert query(f"SELECT count(*) FROM mlperf_entries WHERE NOT ({marked})") == [(0,)]


def test_samples_are_more_than_one_batch(query: Query) -> None:
    """Five BERT entries log `epoch_num` 1, and their samples in another line."""
    assert query(
        "SELECT count(*) FROM mlperf_entries WHERE benchmark = 'bert' AND minutes IS NOT NULL "
        "AND (samples_to_converge < 100 * global_batch_size OR samples_to_converge IS NULL AND round <> '0.7')"
    ) == [(0,)]


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return copy_documents(tmp_path / "raw", PAGE, ENTRIES, RUNS, IDS, *EARLIER)


def read_lines(raw: Path, file: str) -> list[str]:
    return (raw / file).read_text(encoding="utf-8").splitlines(keepends=True)


def write_lines(raw: Path, file: str, lines: list[str]) -> None:
    (raw / file).write_text("".join(lines), encoding="utf-8")
    reseal(raw, file)


@pytest.mark.slow
def test_an_entry_without_a_score_is_not_a_result(raw: Path) -> None:
    runs = read_lines(raw, RUNS)
    place = next(path for path in (line.split(",")[1] for line in runs) if path.startswith("Fujitsu/"))
    lost = (",success,True,,", ",aborted,False,its status is aborted,")
    write_lines(raw, RUNS, [line.replace(*lost) if f",{place}," in line else line for line in runs])
    out = io.StringIO()
    header = read_lines(raw, ENTRIES)[0].split(",")
    for cells in csv.reader(read_lines(raw, ENTRIES)):
        if place in cells:
            for name, text in {"n_success": "0", "minutes": "", "no_score_reason": "no run counts"}.items():
                cells[header.index(name)] = text
        csv.writer(out, lineterminator="\n").writerow(cells)
    write_lines(raw, ENTRIES, [out.getvalue()])
    target = raw.parent / "warehouse"
    done = run_cli("ingest", "--raw", raw, "--warehouse", target)
    assert (done.returncode, done.stderr) == (0, "")
    with open_warehouse(target) as connection:
        entry = run_query(connection, f"SELECT minutes, result_id FROM mlperf_entries WHERE path = '{place}'")
        results = run_query(connection, "SELECT count(*) AS n FROM results WHERE origin = 'official'")
        assert entry.to_pylist() == [{"minutes": None, "result_id": None}]
        assert results.to_pylist() == [{"n": 399}]


def drop_last_row(raw: Path, file: str) -> None:
    lines = read_lines(raw, file)
    write_lines(raw, file, lines[:-1])
    sidecar = raw / f"{file}.toml"
    sidecar.write_text(sidecar.read_text().replace(f"rows = {len(lines) - 1}", f"rows = {len(lines) - 2}"))


def swap_two_scores(raw: Path) -> None:
    text = (raw / ENTRIES).read_text(encoding="utf-8")
    a, b = "19.635155555555556", "6.302183333333333"
    write_lines(raw, ENTRIES, [text.replace(a, "§").replace(b, a).replace("§", b)])


def count_an_aborted_run(raw: Path) -> None:
    line = next(line for line in read_lines(raw, RUNS) if "its status is aborted" in line)
    edit(raw, RUNS, line, line.replace(",False,its status is aborted,", ",True,,"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: drop_last_row(raw, RUNS), "runs, "),
        (lambda raw: drop_last_row(raw, ENTRIES), "have no entry"),
        (swap_two_scores, "minutes, the entry "),
        (count_an_aborted_run, "counted; the entry "),
        (lambda raw: edit(raw, ENTRIES, "19.635155555555556", "19.635155555555"), "minutes, the entry "),
        (lambda raw: edit(raw, ENTRIES, ",1.023,", ",1.0,"), "minutes, the entry "),
        (lambda raw: edit(raw, ENTRIES, ",minutes,", ",hours,"), "the header lacks 'minutes' and has unknown 'hours'"),
        (lambda raw: edit(raw, RUNS, ",counted,", ",valid,"), "the header lacks 'counted' and has unknown 'valid'"),
        (lambda raw: edit(raw, RUNS, ",True,", ",yes,"), "line 2, column 6 (counted): 'yes' is "),
        (lambda raw: edit(raw, RUNS, "24.411783333333332", '"24,4"'), "'24,4' is "),
        (lambda raw: edit(raw, RUNS, "24.411783333333332", "nan"), "line 2, column 4 (minutes): 'nan' is "),
        (lambda raw: edit(raw, IDS, "ipu-pod16-TF1-closed", "ipu-pod17"), "2.0-2047 names Graphcore/results/ipu-pod17"),
        (lambda raw: edit(raw, IDS, "ipu-pod16-TF1-closed", "ipu-pod64-TF1-closed"), " 2.0-2047 and 2.0-2050"),
        (lambda raw: edit(raw, IDS, ",printed,", ",guessed,"), "confidence is 'guessed'"),
        (lambda raw: edit(raw, IDS, "2.0-2046,", "2.0-2045,"), "mlperf_ids"),
        (lambda raw: write_lines(raw, RUNS, read_lines(raw, RUNS)[:99]), "2760"),
        (lambda raw: write_lines(raw, RUNS, [*read_lines(raw, RUNS)[:-1], "2.0,x"]), "truncated"),
    ],
)
def test_a_changed_record_stops_the_build(raw: Path, change: Callable[[Path], None], message: str) -> None:
    change(raw)
    target = raw.parent / "warehouse"
    done = run_cli("ingest", "--raw", raw, "--warehouse", target)
    assert done.returncode == 1
    assert not (target / "results.parquet").exists()
    [line] = done.stderr.splitlines()
    assert line.startswith("error: mlperf")
    assert message in line


def load_script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, RAW / "mlperf" / f"{name}.py")
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


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
    kept, lost = "ACME/results/acme1/resnet/result_0.txt", "ACME/results/acme1/resnet/result_1.txt"
    for name in (kept, lost, "ACME/systems/acme1.json", "ACME/benchmarks/code.py", "README.md"):
        file = clone / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "Add"]):
        subprocess.run([*git, *command], check=True)
    listed = subprocess.run([*git, "rev-parse", f"HEAD:{lost}"], check=True, capture_output=True, text=True)
    digest = listed.stdout.strip()
    (clone / ".git/objects" / digest[:2] / digest[2:]).unlink()
    target = tmp_path / "target"
    assert list(load_script("export_round").export_round(clone, target)) == [lost]
    written = sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file())
    assert written == [kept, "ACME/systems/acme1.json"]
    assert (target / kept).read_text() == kept


def test_each_round_has_its_commit_and_missing_logs() -> None:
    sidecars = {path.name: tomllib.loads(path.read_text()) for path in (RAW / "mlperf").glob("training-*.toml")}
    assert len(sidecars) == 22
    assert all(len(sidecar["commit"]) == 40 for sidecar in sidecars.values())
    assert sum(len(sidecar.get("missing", ())) for sidecar in sidecars.values()) == 200
    unlicensed = {name for name, sidecar in sidecars.items() if not sidecar["licence"].startswith("Apache-2.0")}
    assert unlicensed == {f"training-v4.1-{name}.csv.toml" for name in ("entries", "runs")}
