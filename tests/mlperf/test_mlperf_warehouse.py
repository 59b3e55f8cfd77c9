"""The official record in the warehouse: tables, ids, comparability, attribution, and rule R12."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.conftest import Query
from tests.mlperf.mlperf_support import graphcore_scores
from tests.record.check.rules_support import change, load_dataset, pick, run

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


MISSING = "FROM mlperf_entries WHERE logs_missing > 0"
NO_SAMPLES = "mlperf_entries WHERE samples_to_converge IS NULL AND minutes IS NOT NULL"
CELLS = (
    "FROM mlperf_entries e JOIN results r USING (result_id) JOIN cells c USING (result_id) "
    "WHERE c.column_name = 'time_to_train_s' AND "
)
FACTS = {
    "SELECT status, reason, count(*) FROM mlperf_runs WHERE NOT counted AND round = '2.0' GROUP BY ALL ORDER BY ALL": [
        ("abort", "its status is abort", 1),
        ("aborted", "its status is aborted", 23),
        (None, "has run_start and no run_stop", 1),
    ],
    # An entry whose logs our copy lacks has no score.
    f"SELECT count(*), sum(logs_missing)::BIGINT, count(minutes) {MISSING}": [(26, 200, 0)],
    f"SELECT DISTINCT no_score_reason {MISSING}": [("logs missing in our copy",)],
    "SELECT round, path, logs_present, logs_expected, minutes FROM mlperf_entries WHERE logs_missing = 0 AND logs_present < logs_expected AND minutes IS NOT NULL": [
        (
            "1.0",
            "Supermicro/results/as-4142gs-tnr/unet3d",
            22,
            40,
            pytest.approx(41.2212369, abs=1e-6),
        )
    ],
    # logs that were handed in twice
    "SELECT round, path, logs_present, distinct_logs FROM mlperf_entries WHERE distinct_logs < logs_present": [
        ("1.0", "Dell/results/DSS8440x8A100-PCIE-40GB/dlrm", 5, 2),
        ("1.1", "Azure/results/nd96amsr_a100_v4_ngc21.09_merlin_hugectr/dlrm", 5, 4),
    ],
    "SELECT logs FROM detail.mlperf_shared_logs WHERE path = 'smc-ac-power/results/1xSMC-H100-SXM-80GB/bert'": [
        (10,),
        (10,),
    ],
    # progress of the defects that were found
    "SELECT samples_to_converge, tokens_to_converge, epochs_to_converge FROM mlperf_entries WHERE path LIKE 'Ailiverse/%/resnet'": [
        (34_591_509.0, None, 27.0)
    ],
    "SELECT count(*), count(samples_to_converge) FROM mlperf_entries WHERE benchmark = 'stable_diffusion'": [
        (73, 73)
    ],
    "SELECT max(epochs_to_converge) < 20000 FROM mlperf_entries": [(True,)],
    f"SELECT benchmark, count(*) FROM {NO_SAMPLES} GROUP BY ALL ORDER BY ALL": [
        ("bert", 2),
        ("dlrm", 2),
        ("minigo", 50),
    ],
    # Samples are more than one batch: five BERT entries log `epoch_num` 1, and their samples in
    # another line.
    "SELECT count(*) FROM mlperf_entries WHERE benchmark = 'bert' AND minutes IS NOT NULL AND (samples_to_converge < 100 * global_batch_size OR samples_to_converge IS NULL AND round <> '0.7')": [
        (0,)
    ],
    # energy where the official rule gives one
    "SELECT round, count(*) FROM mlperf_entries WHERE energy_j > 0 GROUP BY ALL ORDER BY ALL": [
        ("4.0", 10),
        ("4.1", 1),
        ("5.0", 4),
    ],
    # reference convergence points of the batch
    "SELECT global_batch_size, rcp_mean, rcp_unit FROM mlperf_entries WHERE round = '2.0' AND path = 'ASUSTeK/results/ESC8000A-E11-8xA100-PCIE-80GB-NVBridge/bert'": [
        (448, 2_621_696.0, "samples")
    ],
    "SELECT count(rcp_mean) FROM mlperf_entries": [(1437,)],
    "SELECT count(*) FROM mlperf_entries e JOIN detail.mlperf_rcp USING (round, benchmark, global_batch_size) WHERE e.rcp_mean IS NULL": [
        (0,)
    ],
    # Every score met its quality target.
    "SELECT DISTINCT quality_check FROM mlperf_entries WHERE minutes IS NOT NULL": [("reached",)],
    "SELECT round, path, file FROM mlperf_runs WHERE reason LIKE 'did not reach%'": [
        ("1.0", "Intel/results/8-nodes-64s-8376H-tensorflow/resnet", "result_4.txt")
    ],
    # Entry, result and cell have the same minutes.
    f"SELECT count(*) {CELLS} c.value = e.minutes AND abs(TRY_CAST(c.raw_text AS DOUBLE) / e.minutes - 1) < 1e-11": [
        (2117,)
    ],
    f"SELECT count(*) {CELLS} abs(r.time_to_train_s / e.minutes / 60 - 1) > 1e-11": [(0,)],
    "SELECT path, scaling_factor FROM mlperf_entries WHERE scaling_factor <> 1 AND round = '2.0'": [
        ("Google/results/cloud-tpu-v4-4096-TF/ssd", 1.023)
    ],
    # An inferred id is not in the results.
    "SELECT confidence, count(*) FROM detail.mlperf_ids GROUP BY 1 ORDER BY 1": [
        ("confirmed", 2),
        ("inferred", 4),
        ("printed", 11),
    ],
    "SELECT DISTINCT mlperf_round, mlperf_id FROM results WHERE origin = 'official' AND mlperf_id < '2' ORDER BY 2": [
        ("1.0", "1.0-1098"),
        ("1.0", "1.0-1099"),
    ],
    "SELECT count(*) FROM mlperf_entries WHERE mlperf_id_confidence = 'inferred'": [(4,)],
    "SELECT count(*) FROM detail.mlperf_ids WHERE source = ''": [(0,)],
    # The document prints scores: those that the logs give are equal at the printed digits.
    "SELECT p.minutes_published, round(e.minutes, 2), e.minutes_published AS own, e.published_in = p.document_id FROM detail.mlperf_published p JOIN mlperf_entries e USING (round, path) WHERE round = '0.7' ORDER BY 1": [
        (0.62, 0.62, None, None),
        (0.71, None, 0.71, True),
        (0.82, None, 0.82, True),
        *((minutes, minutes, None, None) for minutes in (3.33, 10.46, 17.07)),
    ],
    "SELECT count(minutes_published), count(minutes) FILTER (minutes_published > 0) FROM mlperf_entries": [
        (12, 0)
    ],
    "SELECT round, count(*), round(min(minutes_published), 3), any_value(published_in) FROM mlperf_entries WHERE minutes_published > 0 GROUP BY round ORDER BY round": [
        ("0.7", 2, 0.71, "nvidia-mlperf-v0.7-blog"),
        ("1.0", 9, 0.317, "mlcommons-cm4mlperf-results"),
        ("1.1", 1, 3.205, "mlcommons-cm4mlperf-results"),
    ],
    # four names of a chip are one chip
    "SELECT DISTINCT chip_printed FROM mlperf_entries e JOIN results r USING (result_id) WHERE r.chip = 'A100-SXM-80GB' AND e.round = '2.0' ORDER BY 1": [
        (f"NVIDIA A100-{suffix}",)
        for suffix in ("SXM-80GB", "SXM-80GB CTS", "SXM4-80GB", "SXM4-80GB (400W)")
    ],
    # comparable rows have division and chip count
    "SELECT division, round, platform, chip_count, availability FROM detail.mlperf_comparable WHERE benchmark = 'rnnt' AND submitter = 'Graphcore'": [
        ("open", "2.0", "Bow Pod64", 64, "onprem")
    ],
    "SELECT count(*), count(chip_count), count(division) FROM detail.mlperf_comparable": [
        (2117, 2107, 2109)
    ],
    "SELECT attribution FROM mlperf_entries WHERE mlperf_id = '2.0-2047'": [
        (
            (
                "MLPerf Training v2.0 closed resnet, Graphcore,"
                f" https://github.com/mlcommons/training_results_v2.0, {POD16_RESNET}; MLPerf ID"
                " 2.0-2047 (printed); retrieved 2026-11-21; computed from the logs by ipu-results,"
                " result not verified by MLCommons Association"
            ),
        )
    ],
    "SELECT count(*) FROM mlperf_entries WHERE NOT (attribution LIKE '%not verified by MLCommons Association%' AND attribution LIKE '%retrieved 2026-%')": [
        (0,)
    ],
}


@pytest.mark.parametrize(("sql", "rows"), FACTS.items())
def test_figures_of_the_record(query: Query, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert query(sql) == rows


def test_every_public_round(query: Query) -> None:
    entries = query(
        "SELECT round, count(*), count(*) FILTER (minutes IS NULL) FROM mlperf_entries GROUP BY 1"
    )
    runs = query("SELECT round, count(*), count(*) FILTER (counted) FROM mlperf_runs GROUP BY 1")
    assert {row[0]: row[1:] for row in entries} == {
        round_: counts[:2] for round_, counts in ENTRIES_AND_RUNS.items()
    }
    assert {row[0]: row[1:] for row in runs} == {
        round_: counts[2:] for round_, counts in ENTRIES_AND_RUNS.items()
    }
    assert sum(counts[2] for counts in ENTRIES_AND_RUNS.values()) == 20_746


def test_entries_with_shared_logs_are_those_of_the_pairs(query: Query) -> None:
    in_pairs = (
        "SELECT round, path FROM detail.mlperf_shared_logs UNION SELECT other_round, other_path"
        " FROM detail.mlperf_shared_logs"
    )
    assert query(f"SELECT count(*) FROM ({in_pairs})") == query(
        "SELECT count(*) FROM mlperf_entries WHERE shared_logs > 0"
    )


def test_an_entry_and_its_result_column_by_column(query: Query) -> None:
    entry = query("""
        SELECT
            round, submitter, division, platform_printed, benchmark, chip_count, chip_printed,
            framework, n_runs, n_success, path, no_score_reason, availability, status, nodes,
            scaling_factor, global_batch_size, epochs_to_converge, samples_to_converge,
            mlperf_id_confidence, comparable_rounds, document_id
        FROM mlperf_entries
        WHERE mlperf_id = '2.0-2047'
    """)
    machine = ("2.0", "Graphcore", "closed", "Bow-Pod16", "resnet", 16, "Graphcore Bow IPU")
    runs = ("TensorFlow 1.15 Poplar SDK 2.5.1", 5, 5, POD16_RESNET, None, "onprem", "onprem", 1)
    figures = (1.0, 3520, 38.0, 38 * 1281167.0, "printed", "0.6-4.0")
    assert entry == [machine + runs + figures + ("mlperf-training-v2.0-entries",)]
    result = query("""
        SELECT
            publisher, table_name, task, benchmark, division, mlperf_round, model_printed,
            platform, chip, chip_count, sdk_version, framework, batch_size, throughput, run_id,
            round(time_to_train_s / 60, 6)
        FROM results
        WHERE origin = 'official' AND mlperf_id = '2.0-2047'
    """)
    place = ("MLCommons", "mlperf_entries", "training", "mlperf-training", "closed", "2.0")
    machine = ("ResNet-50 v1.5", "Bow Pod16", "Bow", 16, "2.5.1", "TensorFlow")
    assert result == [place + machine + (3520, None, None, 19.635156)]


@pytest.mark.parametrize("round_", ["1.0", "2.0"])
def test_scores_of_graphcore(query: Query, round_: str) -> None:
    scores = query(
        "SELECT path, minutes FROM mlperf_entries"
        f" WHERE round = '{round_}' AND submitter = 'Graphcore'"
    )
    assert dict(scores) == pytest.approx(graphcore_scores(round_), abs=6e-7)


def test_every_published_row_has_its_official_entry(query: Query) -> None:
    joined = query(
        "SELECT p.mlperf_id, p.division = e.division, p.chip_count = e.chip_count, p.platform ="
        " o.platform, p.framework = o.framework, p.model = o.model, p.sdk_version = o.sdk_version,"
        " e.mlperf_id_confidence FROM results p JOIN mlperf_entries e USING (mlperf_id) JOIN"
        " results o ON o.result_id = e.result_id WHERE p.origin = 'published' ORDER BY 1"
    )
    paddle = {"2.0-2046", "2.0-2048"}  # the official software line of these two names no SDK
    assert len({row[0] for row in joined}) == len(joined) == 11
    for id_, *same, sdk, confidence in joined:
        assert (same, confidence) == ([True] * 5, "printed"), id_
        assert sdk is (None if id_ in paddle else True), id_


def test_rule_12_fires_on_two_of_the_eleven(query: Query) -> None:
    longer = (
        "prints 20.66 mins; the logs of Graphcore/results/ipu-pod16-POPART-closed/bert give"
        " 20.6538895833, 20.65 to the printed digits"
    )
    shorter = (
        "prints 3.19 mins; the logs of Graphcore/results/ipu-pod256-POPART-closed/bert give"
        " 3.18485416667, 3.18 to the printed digits"
    )
    columns = "r.mlperf_id, f.severity, f.message, f.suggested"
    assert query(
        f"SELECT {columns} FROM flags f JOIN results r USING (result_id) WHERE rule = 'R12'"
        " ORDER BY 1"
    ) == [("2.0-2045", "info", longer, "1239"), ("2.0-2053", "info", shorter, "190.8")]


PRINTED = "mlperf_v2_training 2"  # 2.0-2050, ResNet-50 v1.5


def compare_printed(
    minutes: float, printed: str, mlperf_id: str = "2.0-2050"
) -> list[tuple[object, ...]]:
    """Apply R12 to a published row that prints `printed` minutes and an official entry of
    `minutes`.
    """
    tables = change(pick(PRINTED), PRINTED, time_to_train_s=printed)
    official = load_dataset()["results"].query("origin == 'official'")
    entries = tables["mlperf_entries"].query("mlperf_id == '2.0-2050'")
    assert len(entries) == 1
    tables["results"] = pd.concat([tables["results"], official], ignore_index=True)
    tables["mlperf_entries"] = entries.assign(minutes=minutes, mlperf_id=mlperf_id)
    flags = run(tables, "R12")
    return list(
        zip(flags["severity"], flags["column_name"], flags["suggested"].astype(object), strict=True)
    )


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


def test_comparable_rounds_are_data(query: Query) -> None:
    ruled = (
        "SELECT benchmark, first_round, last_round, dataset, quality_target"
        " FROM detail.mlperf_comparability"
    )
    assert query(f"{ruled} WHERE benchmark IN ('bert', 'resnet', 'rnnt') ORDER BY ALL") == [
        ("bert", "1.0", "5.0", "Wikipedia 2020/01/01", "0.720 Mask-LM accuracy"),
        ("resnet", "0.6", "4.0", "ImageNet", "75.90% classification"),
        ("rnnt", "1.0", "1.0", "LibriSpeech", "0.058 Word Error Rate"),
        ("rnnt", "1.1", "3.1", "LibriSpeech", "0.058 Word Error Rate"),
    ]
    blocks = query(
        "SELECT DISTINCT benchmark, round, comparable_rounds FROM detail.mlperf_comparable ORDER BY ALL"
    )
    shown = {(benchmark, round_): block for benchmark, round_, block in blocks}
    assert [shown["bert", each] for each in ("0.7", "1.0", "5.0")] == ["0.7", "1.0-5.0", "1.0-5.0"]
    assert [shown["resnet", each] for each in ("0.7", "4.0")] == ["0.6-4.0", "0.6-4.0"]
    assert [shown["ssd", each] for each in ("1.1", "2.0")] == ["0.6-1.1", "2.0-5.1"]


def test_minutes_per_chip_are_marked_as_derived(query: Query) -> None:
    [(product, minutes, chip_count, text)] = query(
        "SELECT chip_minutes, minutes, chip_count, attribution FROM detail.mlperf_per_chip "
        "WHERE mlperf_id = '2.0-2047'"
    )
    assert product == pytest.approx(minutes * chip_count, rel=1e-11)  # type: ignore[operator]
    assert product == pytest.approx(19.635156 * 16, abs=1e-4)  # type: ignore[operator]
    assert str(text).endswith("MLPerf metric")


def test_mlperf_minutes_are_in_views_of_their_own(query: Query) -> None:
    for view in ("inference", "training", "latest"):
        mixed = (
            f"SELECT count(*) FROM {view} v JOIN results r USING (result_id)"
            " WHERE r.benchmark = 'mlperf-training'"
        )
        assert query(mixed) == [(0,)]
    for view in ("detail.mlperf_comparable", "detail.mlperf_per_chip"):
        columns = {name for name, *_ in query(f"DESCRIBE {view}")}
        assert columns.isdisjoint({"throughput", "latency_ms", "efficiency"})
        assert {
            "division",
            "comparable_rounds",
            "availability",
            "chip_count",
            "round",
            "attribution",
        } <= columns
