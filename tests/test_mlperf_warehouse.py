"""The official record in the warehouse: tables, ids, comparability, attribution, and rule R12."""

from __future__ import annotations

import csv
import importlib.util
import io
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from conftest import PAGE, RAW, ROOT, Ask, copy_documents, edit, reseal, run_cli
from ipu_results._util.sql import run_query
from ipu_results.store.query import open_warehouse

from tests.rules_support import MLPERF_ROWS, Printed, dataset, found

ENTRIES, RUNS, IDS = (f"mlperf/{name}.csv" for name in ("training-v2.0-entries", "training-v2.0-runs", "ids"))
EARLIER = tuple(f"mlperf/training-v1.0-{name}.csv" for name in ("entries", "runs"))
ARCHIVES = {
    "2.0": ROOT.parent / "shared" / "mlperf" / "training_v2.0_results.tar.xz",
    "1.0": ROOT.parent / "shared" / "mlperf" / "training_v1.0_results_part.tar.xz",
}
POD16_RESNET = "Graphcore/results/ipu-pod16-TF1-closed/resnet"


def test_a_whole_round_and_the_comparable_part_of_another(ask: Ask) -> None:
    assert ask(
        "SELECT round, count(*), count(DISTINCT submitter), sum(n_runs) FROM mlperf_entries GROUP BY 1 ORDER BY 1"
    ) == [
        ("1.0", 8, 2, 65),
        ("2.0", 262, 21, 2760),
    ]
    assert ask("SELECT round, count(*), count(*) FILTER (counted) FROM mlperf_runs GROUP BY 1 ORDER BY 1") == [
        ("1.0", 65, 64),
        ("2.0", 2760, 2735),
    ]


def test_the_entry_of_one_printed_row_column_by_column(ask: Ask) -> None:
    columns = (
        "round submitter division system benchmark accelerators accelerator framework n_runs n_success path "
        "no_score_reason availability status nodes scaling_factor global_batch_size epochs_to_converge "
        "samples_to_converge mlperf_id mlperf_id_confidence comparable_rounds document_id"
    )
    assert ask(f"SELECT {columns.replace(' ', ', ')} FROM mlperf_entries WHERE mlperf_id = '2.0-2047'") == [
        (
            *("2.0", "Graphcore", "closed", "Bow-Pod16", "resnet", 16, "Graphcore Bow IPU"),
            *("TensorFlow 1.15 Poplar SDK 2.5.1", 5, 5, POD16_RESNET, None, "onprem", "onprem", 1, 1.0),
            *(3520, 38.0, 38 * 1281167.0, "2.0-2047", "printed", "0.6-4.0", "mlperf-training-v2.0-entries"),
        )
    ]


def test_its_row_in_the_results(ask: Ask) -> None:
    columns = (
        "origin publisher table_name task benchmark division mlperf_id mlperf_round model platform chip chip_count "
        "sdk_version framework batch_size throughput run_id"
    )
    sql = f"SELECT {columns.replace(' ', ', ')}, round(time_to_train_s / 60, 6) FROM results WHERE origin = 'official' "
    assert ask(f"{sql} AND mlperf_id = '2.0-2047'") == [
        (
            *("official", "MLCommons", "mlperf_entries", "training", "mlperf-training", "closed", "2.0-2047", "2.0"),
            *("ResNet-50 v1.5", "Bow Pod16", "Bow", 16, "2.5.1", "TensorFlow", 3520, None, None, 19.635156),
        )
    ]


def test_the_minutes_of_entry_result_and_cell_are_one_figure(ask: Ask) -> None:
    apart = (
        "FROM mlperf_entries e JOIN results r USING (result_id) JOIN cells c USING (result_id) "
        "WHERE c.column_name = 'time_to_train_s' AND "
    )
    assert ask(f"SELECT count(*) {apart} c.value = e.minutes AND c.raw_text = e.minutes::VARCHAR") == [(270,)]
    assert ask(f"SELECT count(*) {apart} abs(r.time_to_train_s - e.minutes * 60) > 1e-9") == [(0,)]


@pytest.mark.parametrize(
    ("round_", "system", "benchmark", "minutes"),
    [
        ("2.0", "ipu-pod16-TF1-closed", "resnet", 19.635156),
        ("2.0", "ipu-pod64-TF1-closed", "resnet", 6.302183),
        ("2.0", "ipu-pod128-TF1-closed", "resnet", 4.185306),
        ("2.0", "ipu-pod256-TF1-closed", "resnet", 2.672083),
        ("2.0", "ipu-pod16-POPART-closed", "bert", 20.653890),
        ("2.0", "ipu-pod64-POPART-closed", "bert", 6.702808),
        ("2.0", "ipu-pod128-POPART-closed", "bert", 4.415231),
        ("2.0", "ipu-pod256-POPART-closed", "bert", 3.184854),
        ("2.0", "ipu-pod16-PaddlePaddle-closed", "bert", 20.746906),
        ("2.0", "ipu-pod64-PaddlePaddle-closed", "bert", 6.768646),
        ("2.0", "ipu-pod64-POPART-open", "rnnt", 109.357188),
        ("1.0", "ipu-pod16-POPART-closed", "bert", 34.488767),
        ("1.0", "ipu-pod64-POPART-closed", "bert", 11.075850),
        ("1.0", "ipu-pod16-TF1", "resnet", 37.115211),
        ("1.0", "ipu-pod64-TF1", "resnet", 14.484628),
        ("1.0", "ipu-pod16-POPART-open", "bert", 27.753863),
        ("1.0", "ipu-pod64-POPART-open", "bert", 9.392079),
    ],
)
def test_graphcores_scores(ask: Ask, round_: str, system: str, benchmark: str, minutes: float) -> None:
    path = f"Graphcore/results/{system}/{benchmark}"
    [(score,)] = ask(f"SELECT minutes FROM mlperf_entries WHERE round = '{round_}' AND path = '{path}'")
    assert score == pytest.approx(minutes, abs=6e-7)


def test_the_one_scaled_score(ask: Ask) -> None:
    assert ask("SELECT path, scaling_factor FROM mlperf_entries WHERE scaling_factor <> 1") == [
        ("Google/results/cloud-tpu-v4-4096-TF/ssd", 1.023)
    ]


def test_every_published_row_meets_its_official_entry(ask: Ask) -> None:
    joined = ask(
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


def test_rule_12_fires_on_two_of_the_eleven(ask: Ask) -> None:
    told = "r.mlperf_id, f.severity, f.column_name, f.message, f.suggested"
    assert ask(f"SELECT {told} FROM flags f JOIN results r USING (result_id) WHERE rule = 'R12' ORDER BY 1") == [
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


def flags_beside(minutes: float, printed: str, id_: str = "2.0-2050") -> list[tuple[object, ...]]:
    """R12 on one published row that prints `printed` minutes, beside an official entry of `minutes`."""
    from ipu_results.check.rules.official import flag_official_record  # noqa: PLC0415

    row = Printed(MLPERF_ROWS[0].table, 1, (*MLPERF_ROWS[0].cells[:-1], printed))
    entry = {"result_id": row.result_id, "mlperf_id": id_, "minutes": minutes, "path": "S/results/s/resnet"}
    flags = flag_official_record(dataset([row], official=[entry]))
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
    assert flags_beside(minutes, printed) == expected


def test_rule_12_names_an_id_that_no_entry_bears() -> None:
    [(severity, column, _)] = flags_beside(6.302183, "6.30", id_="2.0-9999")
    assert (severity, column) == ("warn", "mlperf_id")
    assert found("R12", MLPERF_ROWS[:1])[0][0] == "warn"


def test_ids_are_curated_and_an_inferred_one_stays_out_of_the_results(ask: Ask) -> None:
    assert ask("SELECT confidence, count(*) FROM mlperf_ids GROUP BY 1 ORDER BY 1") == [
        ("confirmed", 2),
        ("inferred", 4),
        ("printed", 11),
    ]
    assert ask(
        "SELECT DISTINCT mlperf_round, mlperf_id FROM results WHERE origin = 'official' AND mlperf_id < '2' ORDER BY 2"
    ) == [
        ("1.0", "1.0-1098"),
        ("1.0", "1.0-1099"),
    ]
    assert ask("SELECT count(*) FROM mlperf_entries WHERE mlperf_id_confidence = 'inferred'") == [(4,)]
    assert ask("SELECT count(*) FROM mlperf_ids WHERE source = ''") == [(0,)]


def test_a_chip_under_four_names_is_one_chip(ask: Ask) -> None:
    names = ask(
        "SELECT DISTINCT accelerator FROM mlperf_entries e JOIN results r USING (result_id) "
        "WHERE r.chip = 'A100-80GB' ORDER BY 1"
    )
    assert names == [
        ("NVIDIA A100-SXM-80GB",),
        ("NVIDIA A100-SXM-80GB CTS",),
        ("NVIDIA A100-SXM4-80GB",),
        ("NVIDIA A100-SXM4-80GB (400W)",),
    ]


def test_comparable_rounds_are_data(ask: Ask) -> None:
    assert ask("SELECT benchmark, first_round, last_round FROM mlperf_comparability ORDER BY 1") == [
        ("bert", "1.0", "5.0"),
        ("resnet", "0.6", "4.0"),
    ]
    blocks = ask("SELECT DISTINCT benchmark, round, comparable_rounds FROM mlperf_comparable ORDER BY ALL")
    assert [row for row in blocks if row[0] in ("bert", "resnet")] == [
        ("bert", "1.0", "1.0-5.0"),
        ("bert", "2.0", "1.0-5.0"),
        ("resnet", "1.0", "0.6-4.0"),
        ("resnet", "2.0", "0.6-4.0"),
    ]
    assert all(block == round_ for benchmark, round_, block in blocks if benchmark not in ("bert", "resnet"))


def test_comparable_rows_keep_divisions_apart_and_show_chip_counts(ask: Ask) -> None:
    told = "SELECT division, round, system, accelerators, availability FROM mlperf_comparable"
    assert ask(f"{told} WHERE benchmark = 'rnnt' AND submitter = 'Graphcore'") == [
        ("open", "2.0", "Bow Pod64", 64, "onprem")
    ]
    assert ask("SELECT count(*), count(accelerators), count(division) FROM mlperf_comparable") == [(270, 270, 270)]


def test_minutes_per_chip_say_that_they_are_no_mlperf_metric(ask: Ask) -> None:
    [(spent, minutes, chips, told)] = ask(
        "SELECT accelerator_minutes, minutes, accelerators, attribution FROM mlperf_per_chip "
        "WHERE mlperf_id = '2.0-2047'"
    )
    assert spent == pytest.approx(19.635156 * 16, abs=1e-4)
    assert spent == minutes * chips  # type: ignore[operator]
    assert str(told).endswith("accelerator minutes are no MLPerf metric")


@pytest.mark.parametrize("view", ["inference", "training", "latest"])
def test_no_other_view_holds_mlperf_minutes(ask: Ask, view: str) -> None:
    mixed = f"SELECT count(*) FROM {view} v JOIN results r USING (result_id) WHERE r.benchmark = 'mlperf-training'"
    assert ask(mixed) == [(0,)]


@pytest.mark.parametrize("view", ["mlperf_comparable", "mlperf_per_chip"])
def test_the_mlperf_views_hold_no_throughput(ask: Ask, view: str) -> None:
    columns = {name for name, *_ in ask(f"DESCRIBE {view}")}
    assert columns.isdisjoint({"throughput", "latency_ms", "efficiency"})
    assert {"division", "comparable_rounds", "availability", "accelerators", "round", "attribution"} <= columns


def test_the_attribution_names_all_that_a_citation_needs(ask: Ask) -> None:
    [(told,)] = ask("SELECT attribution FROM mlperf_entries WHERE mlperf_id = '2.0-2047'")
    assert told == (
        "MLPerf Training v2.0 closed resnet, Graphcore, https://github.com/mlcommons/training_results_v2.0, "
        f"{POD16_RESNET}; MLPerf ID 2.0-2047 (printed); retrieved {date(2026, 11, 21)}; "
        "computed from the logs by ipu-results, result not verified by MLCommons Association"
    )
    marked = "attribution LIKE '%not verified by MLCommons Association%' AND attribution LIKE '%retrieved 2026-%'"
    assert ask(f"SELECT count(*) FROM mlperf_entries WHERE NOT ({marked})") == [(0,)]


def test_samples_are_more_than_one_batch(ask: Ask) -> None:
    """Five BERT entries log `epoch_num` 1 and their samples elsewhere."""
    assert ask("SELECT count(*) FROM mlperf_entries WHERE samples_to_converge < 100 * global_batch_size") == [(0,)]
    assert ask("SELECT count(*) FROM mlperf_entries WHERE benchmark = 'bert' AND samples_to_converge IS NULL") == [(0,)]


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return copy_documents(tmp_path / "raw", PAGE, ENTRIES, RUNS, IDS, *EARLIER)


def test_an_entry_without_a_score_is_published_and_is_no_result(raw: Path) -> None:
    path = "Fujitsu"
    lines = lines_of(raw, RUNS)
    mine = [line for line in lines if f",{path}/" in line and line.split(",")[1].endswith("/resnet")]
    where = mine[0].split(",")[1]
    lost = [line.replace(",success,True,,", ",aborted,False,its status is aborted,") for line in mine if where in line]
    rewrite(raw, RUNS, [lost[mine.index(line)] if line in mine and where in line else line for line in lines])
    entries = lines_of(raw, ENTRIES)
    [old] = [line for line in entries if f",{where}," in line]
    cells = next(csv.reader([old]))
    cells[9], cells[10], cells[12] = "0", "", "no run counts"
    cells[17:20] = ["", "", ""]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    rewrite(raw, ENTRIES, [out.getvalue() if line == old else line for line in entries])
    target = raw.parent / "warehouse"
    done = run_cli("ingest", "--raw", raw, "--warehouse", target)
    assert (done.returncode, done.stderr) == (0, "")
    with open_warehouse(target) as connection:
        found = run_query(
            connection, f"SELECT minutes, result_id FROM mlperf_entries WHERE path = '{where}'"
        ).to_pylist()
        counts = run_query(connection, "SELECT count(*) AS n FROM results WHERE origin = 'official'").to_pylist()
    assert (found, counts) == ([{"minutes": None, "result_id": None}], [{"n": 269}])


def test_a_run_names_its_log_and_digest(ask: Ask) -> None:
    assert ask("SELECT count(*), count(sha256), count(DISTINCT sha256) FROM mlperf_runs") == [(2825, 2825, 2825)]
    reasons = "SELECT status, reason, count(*) FROM mlperf_runs WHERE NOT counted GROUP BY ALL ORDER BY ALL"
    assert ask(reasons) == [
        ("abort", "its status is abort", 1),
        ("aborted", "its status is aborted", 24),
        (None, "has no run_start and run_stop after it", 1),
    ]


def ingest(raw: Path) -> str:
    """The one line with which an ingest of these documents fails."""
    target = raw.parent / "warehouse"
    done = run_cli("ingest", "--raw", raw, "--warehouse", target)
    assert done.returncode == 1
    assert not (target / "results.parquet").exists()
    [line] = done.stderr.splitlines()
    return line


def lines_of(raw: Path, file: str) -> list[str]:
    return (raw / file).read_text(encoding="utf-8").splitlines(keepends=True)


def rewrite(raw: Path, file: str, lines: list[str]) -> None:
    (raw / file).write_text("".join(lines), encoding="utf-8")
    reseal(raw, file)


def drop_a_run(raw: Path) -> None:
    rewrite(raw, RUNS, lines_of(raw, RUNS)[:-1])
    sidecar = raw / f"{RUNS}.toml"
    sidecar.write_text(sidecar.read_text().replace("rows = 2760", "rows = 2759"))


def drop_an_entry(raw: Path) -> None:
    rewrite(raw, ENTRIES, lines_of(raw, ENTRIES)[:-1])
    sidecar = raw / f"{ENTRIES}.toml"
    sidecar.write_text(sidecar.read_text().replace("rows = 262", "rows = 261"))


def swap_two_scores(raw: Path) -> None:
    text = (raw / ENTRIES).read_text(encoding="utf-8")
    one, other = "19.635155555555556", "6.302183333333333"
    (raw / ENTRIES).write_text(text.replace(one, "§").replace(other, one).replace("§", other), encoding="utf-8")
    reseal(raw, ENTRIES)


def count_an_aborted_run(raw: Path) -> None:
    line = next(line for line in lines_of(raw, RUNS) if "its status is aborted" in line)
    edit(raw, RUNS, line, line.replace(",False,its status is aborted,", ",True,,"))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (drop_a_run, "runs, "),
        (drop_an_entry, "have no entry"),
        (swap_two_scores, "minutes, the entry says"),
        (count_an_aborted_run, "counted; the entry says"),
        (lambda raw: edit(raw, ENTRIES, "19.635155555555556", "19.635155555555"), "minutes, the entry says"),
        (lambda raw: edit(raw, ENTRIES, ",1.023,", ",1.0,"), "minutes, the entry says"),
        (lambda raw: edit(raw, ENTRIES, ",minutes,", ",hours,"), "the header lacks 'minutes' and has unknown 'hours'"),
        (lambda raw: edit(raw, RUNS, ",counted,", ",told,"), "the header lacks 'counted' and has unknown 'told'"),
        (lambda raw: edit(raw, RUNS, ",True,", ",yes,"), "column 6 (counted): 'yes' is no boolean"),
        (lambda raw: edit(raw, RUNS, "24.411783333333332", '"24,4"'), "'24,4' is no double"),
        (lambda raw: edit(raw, RUNS, "24.411783333333332", "nan"), "column 4 (minutes): 'nan' is no double"),
        (lambda raw: edit(raw, IDS, "ipu-pod16-TF1-closed", "ipu-pod17"), "2.0-2047 names Graphcore/results/ipu-pod17"),
        (lambda raw: edit(raw, IDS, "ipu-pod16-TF1-closed", "ipu-pod64-TF1-closed"), "bears 2.0-2047 and 2.0-2050"),
        (lambda raw: edit(raw, IDS, ",printed,", ",guessed,"), "confidence is 'guessed'"),
        (lambda raw: edit(raw, IDS, "2.0-2046,", "2.0-2045,"), "mlperf_ids"),
        (lambda raw: rewrite(raw, RUNS, lines_of(raw, RUNS)[:99]), "the sidecar promises 2760"),
        (lambda raw: rewrite(raw, RUNS, [*lines_of(raw, RUNS)[:-1], "2.0,x"]), "truncated"),
    ],
)
def test_a_changed_record_stops_the_build(raw: Path, change: Callable[[Path], None], word: str) -> None:
    change(raw)
    line = ingest(raw)
    assert line.startswith("error: mlperf")
    assert word in line


@pytest.mark.skipif(not all(path.exists() for path in ARCHIVES.values()), reason="the official logs are not here")
def test_the_carried_figures_come_out_of_the_official_logs(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_derived", RAW / "mlperf" / "make_derived.py")
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    module.derive({round_: str(path) for round_, path in ARCHIVES.items()}, tmp_path)
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == sorted(path.name for path in (RAW / "mlperf").glob("training-*.csv"))
    for name in made:
        assert (tmp_path / name).read_bytes() == (RAW / "mlperf" / name).read_bytes(), name
    shutil.rmtree(tmp_path)
