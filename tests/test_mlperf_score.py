"""The official rule, on entries written for it."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.mlperf.layout import Entry
from ipu_results.mlperf.log import Evaluation, Log
from ipu_results.mlperf.rules import rules
from ipu_results.mlperf.score import Run, olympic_mean, score
from ipu_results.mlperf.systems import System, read_system
from mlperf_support import (
    SYSTEM,
    entry,
    evaluation,
    line,
    log,
    logs,
    put,
    scored,
    stop,
    the_record,
    the_runs,
    told,
)

FIVE = logs(10, 11, 12, 13, 20)
PLACE = "ACME/results/acme1"
DESCRIBED = "ACME/systems/acme1.json"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_whole_record(tmp_path: Path) -> None:
    """By hand: 11, 12 and 13 minutes are kept; 62.8 is the sum of squares around the mean of 13.2."""
    inner = line("train_samples", 0, 1000)
    written = [
        log(minutes, inner=inner + evaluation(minutes, epoch_num=epochs))
        for minutes, epochs in [(10, 40), (11, 41), (12, 42), (13, 46), (20, 50)]
    ]
    scaling = json.dumps({"scaling_factor": 1.5}).encode()
    entry(tmp_path, written, scaling=scaling)
    assert the_record(tmp_path) == {
        "round": "2.0",
        "submitter": "ACME",
        "division": "closed",
        "system": "ACME-1 x8",
        "benchmark": "resnet",
        "accelerators": 16,
        "accelerator": "ACME-1",
        "framework": "PyTorch 1.11",
        "n_runs": 5,
        "n_success": 5,
        "minutes": 18.0,
        "path": f"{PLACE}/resnet",
        "no_score_reason": None,
        "availability": "onprem",
        "status": "onprem",
        "nodes": 2,
        "scaling_factor": 1.5,
        "run_minutes_min": 10.0,
        "run_minutes_max": 20.0,
        "run_minutes_cv": pytest.approx(math.sqrt(62.8 / 4) / 13.2, abs=1e-12),
        "global_batch_size": 256,
        "epochs_to_converge": 43.0,
        "samples_to_converge": 43000.0,
        "system_path": DESCRIBED,
        "system_sha256": digest(json.dumps(SYSTEM).encode()),
        "scaling_sha256": digest(scaling),
        "attribution": (
            "MLPerf Training v2.0 closed resnet, ACME, https://github.com/mlcommons/training_results_v2.0, "
            "ACME/results/acme1/resnet; MLPerf ID not known; day of retrieval not told; computed from the logs by "
            "ipu-results, result not verified by MLCommons Association"
        ),
    }
    assert told(scored(tmp_path)) == []


def test_a_whole_run(tmp_path: Path) -> None:
    inner = line("train_samples", 0, 1000) + evaluation(9, epoch_num=40)
    written = log(9, status="aborted", init=3, gbs=64, inner=inner)
    entry(tmp_path, [*FIVE[:4], written])
    assert the_runs(tmp_path)[4] == {
        "round": "2.0",
        "path": f"{PLACE}/resnet",
        "file": "result_4.txt",
        "minutes": 9.0,
        "status": "aborted",
        "counted": False,
        "reason": "its status is aborted",
        "init_minutes": 3.0,
        "global_batch_size": 64,
        "epochs": 40.0,
        "samples": 40000.0,
        "lines": 7,
        "sha256": None,
    }
    assert told(scored(tmp_path)) == [
        f"{PLACE}/resnet/result_4.txt: does not count: its status is aborted",
        f"{PLACE}/resnet: its runs differ in global batch size: 64, 256",
    ]
    assert the_record(tmp_path)["global_batch_size"] is None


@pytest.mark.parametrize(
    ("values", "missing", "drop", "mean"),
    [
        ([10, 11, 12, 13, 20], 0, 1, 12),
        ([20, 13, 12, 11, 10], 0, 1, 12),
        ([10, 11, 12, 13], 1, 1, 12),
        ([10, 11, 12], 2, 1, None),
        ([10, 11, 18], 0, 1, 11),
        ([10, 11], 0, 1, None),
        ([10, 11], 1, 1, 11),
        ([10], 1, 1, None),
        ([], 0, 1, None),
        (list(range(1, 41)), 0, 4, 20.5),
        (list(range(1, 38)), 3, 4, 20.5),
        (list(range(1, 37)), 4, 4, 20.5),
        (list(range(1, 36)), 5, 4, None),
        (list(range(1, 10)), 0, 4, 5),
        (list(range(1, 9)), 0, 4, None),
    ],
)
def test_the_fastest_and_slowest_are_left_out(values: list[float], missing: int, drop: int, mean: float | None) -> None:
    assert olympic_mean(values, missing, drop) == mean


@pytest.mark.parametrize(
    ("benchmark", "minutes", "aborted", "score", "reason"),
    [
        ("resnet", [10, 11, 12, 13], 1, 12.0, None),
        ("resnet", [10, 11, 12], 2, None, "2 of 5 runs do not count, at most 1 may"),
        ("resnet", [10, 11], 0, None, "2 runs are too few for 1 to be left out at each end"),
        ("resnet", [10], 1, None, "2 runs are too few for 1 to be left out at each end"),
        ("resnet", [], 1, None, "1 runs are too few for 1 to be left out at each end"),
        ("unet3d", list(range(5, 41)), 4, 24.5, None),
        ("unet3d", list(range(5, 40)), 5, None, "5 of 40 runs do not count, at most 4 may"),
        ("unet3d", [1, 2, 3, 4, 5, 6, 7, 8], 0, None, "8 runs are too few for 4 to be left out at each end"),
        ("gpt3", [10, 11, 12], 0, 11.0, None),
    ],
)
def test_a_run_that_does_not_count_stands_in_for_a_slowest_one(
    tmp_path: Path, benchmark: str, minutes: list[float], aborted: int, score: float | None, reason: str | None
) -> None:
    entry(tmp_path, [log(1, status="aborted")] * aborted + logs(*minutes), benchmark)
    record = the_record(tmp_path)
    assert (record["minutes"], record["no_score_reason"]) == (score, reason)
    assert (record["n_runs"], record["n_success"]) == (len(minutes) + aborted, len(minutes))
    assert record["run_minutes_min"] == min(minutes, default=None)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (log(10, status="aborted"), "its status is aborted"),
        (log(10, status="abort"), "its status is abort"),
        (log(10, status="fail"), "its status is fail"),
        (log(10, status="succuss"), "its status is succuss"),
        (log(10, status="Success"), "its status is Success"),
        (log(10, status={"a": 1}), 'its status is {"a": 1}'),
        (log(10, status=0.5), "its status is 0.5"),
        (log(10, status=None), "its run_stop has no status"),
        (line("run_start") + line("run_stop", 5, "success"), "its run_stop has no status"),
        (line("init_start", -1) + line("init_stop") + line("run_start"), "has no run_start and run_stop after it"),
        (line("epoch_start"), "has no run_start and run_stop after it"),
        (stop(5), "has no run_start before its run_stop"),
        (line("run_start", 6) + stop(5), "its run_stop is before its run_start"),
        (line("run_start") + stop(5), "has no init_start and init_stop"),
        (b"The logs of this run are withheld.", "holds no :::MLLOG line"),
        (b"", "holds no :::MLLOG line"),
        (log(10) + b':::MLLOG {"key": \n', "line 6 is not JSON: Expecting value: line 1 column 8 (char 7)"),
    ],
)
def test_why_a_run_does_not_count(tmp_path: Path, written: bytes, reason: str) -> None:
    entry(tmp_path, [*FIVE[:4], written])
    runs = the_runs(tmp_path)
    assert [(run["counted"], run["reason"]) for run in runs] == [*[(True, None)] * 4, (False, reason)]
    assert the_record(tmp_path)["minutes"] == 12.0
    assert told(scored(tmp_path)) == [f"{PLACE}/resnet/result_4.txt: does not count: {reason}"]


@pytest.mark.parametrize(
    ("division", "init", "reason"),
    [
        ("closed", 29.999, None),
        ("closed", 30, "its initialisation took 30.0 minutes, the limit is 30"),
        ("close", 30, "its initialisation took 30.0 minutes, the limit is 30"),
        ("open", 239.999, None),
        ("open", 30, None),
        ("open", 240, "its initialisation took 240.0 minutes, the limit is 240"),
        ("ajar", 30, "its initialisation took 30.0 minutes, the limit is 30"),
        ("closed", 0, None),
    ],
)
def test_initialisation_has_a_limit(tmp_path: Path, division: str, init: float, reason: str | None) -> None:
    entry(tmp_path, [*FIVE[:4], log(13, init=init)], described=SYSTEM | {"division": division})
    assert the_runs(tmp_path)[4]["reason"] == reason


@pytest.mark.parametrize(
    ("scaling", "factor"),
    [
        (None, 1.0),
        ({"scaling_factor": 1.023}, 1.023),
        ({"scaling_factor": 2}, 2.0),
        ({"scaling_factor": 0.5, "reason": "review"}, 0.5),
        ({"scaling_factor": True}, None),
        ({"scaling_factor": "1.5"}, None),
        ({"scaling_factor": None}, None),
        ({"scaling_factor": 0}, None),
        ({"scaling_factor": -1.5}, None),
        ({"scaling_factor": math.nan}, None),
        ({"scaling_factor": math.inf}, None),
        ({"scaling_factor": 10**400}, None),
        ({}, None),
        ("[1]", None),
        ("7", None),
        ("", None),
        ('{"scaling_factor": 1.5', None),
        ("[" * 100_000, None),
        (b"\xff\xfe\xfa", None),
    ],
)
def test_the_scaling_factor(
    tmp_path: Path, scaling: bytes | str | dict[str, object] | None, factor: float | None
) -> None:
    entry(tmp_path, FIVE, scaling=scaling)
    record = the_record(tmp_path)
    assert record["scaling_factor"] == factor
    assert record["minutes"] == (None if factor is None else 12 * factor)
    assert record["run_minutes_min"] == 10.0
    assert record["no_score_reason"] == (None if factor is not None else "its scaling factor cannot be read")
    assert [one.startswith(f"{PLACE}/resnet/scaling.json: ") for one in told(scored(tmp_path))] == [True] * (
        factor is None
    )


@pytest.mark.parametrize(
    ("benchmark", "count", "finding"),
    [
        ("resnet", 5, None),
        ("resnet", 6, "holds 6 logs, the rules ask for 5"),
        ("bert", 5, "holds 5 logs, the rules ask for 10"),
        ("BERT", 10, "is no benchmark of the known rounds; scored by the common rule"),
        ("mask", 5, None),
        ("mask", 4, "holds 4 logs, the rules ask for 5"),
        ("novel", 5, "is no benchmark of the known rounds; scored by the common rule"),
    ],
)
def test_another_number_of_logs_is_a_finding_and_no_refusal(
    tmp_path: Path, benchmark: str, count: int, finding: str | None
) -> None:
    entry(tmp_path, logs(*range(10, 10 + count)), benchmark)
    assert the_record(tmp_path)["minutes"] == 10 + (count - 1) / 2
    assert told(scored(tmp_path)) == ([f"{PLACE}/{benchmark}: {finding}"] if finding else [])


@pytest.mark.parametrize(
    ("name", "runs"),
    {
        **dict.fromkeys(["bert", "minigo", "rnnt", "stable_diffusion", "llama2_70b_lora", "gnn"], 10),
        **dict.fromkeys(["dlrm_dcnv2", "llama31_8b", "flux1"], 10),
        **dict.fromkeys(["dlrm", "maskrcnn", "mask", "resnet", "ssd", "retinanet"], 5),
        **dict.fromkeys(["gpt3", "llama31_405b"], 3),
        "unet3d": 40,
    }.items(),
)
def test_the_rules_of_a_benchmark(name: str, runs: int) -> None:
    benchmark = rules().benchmark(name)
    assert (benchmark.runs, benchmark.drop) == (runs, 4 if name == "unet3d" else 1)


def test_an_alias_is_told_by_its_proper_name(tmp_path: Path) -> None:
    entry(tmp_path, FIVE, "mask")
    record = the_record(tmp_path)
    assert (record["benchmark"], record["path"]) == ("maskrcnn", f"{PLACE}/mask")


def test_bert_logs_call_samples_epochs(tmp_path: Path) -> None:
    entry(tmp_path, [log(10, inner=evaluation(9, epoch_num=count)) for count in (1000, 2000, 3000, 4000, 9000)], "bert")
    record = the_record(tmp_path)
    assert (record["epochs_to_converge"], record["samples_to_converge"]) == (None, 3000.0)


@pytest.mark.parametrize(("told", "samples"), [(2_400_384, 2_400_384.0), (None, None), (3, None)])
def test_a_bert_log_that_counts_evaluations_tells_its_samples_at_the_end(
    tmp_path: Path, told: object, samples: float | None
) -> None:
    inner = evaluation(9, epoch_num=1) + line("train_samples", 9, told)
    entry(tmp_path, [log(10 + run, inner=inner) for run in range(10)], "bert")
    assert the_record(tmp_path)["samples_to_converge"] == samples


@pytest.mark.parametrize("samples", [[1000, 2000], "1000", None])
def test_epochs_of_unknown_size_are_no_samples(tmp_path: Path, samples: object) -> None:
    inner = line("train_samples", 0, samples) + evaluation(9, epoch_num=40)
    entry(tmp_path, [log(10, inner=inner)] * 5)
    record = the_record(tmp_path)
    assert (record["epochs_to_converge"], record["samples_to_converge"]) == (40.0, None)


def test_convergence_is_unknown_where_one_run_does_not_say(tmp_path: Path) -> None:
    entry(tmp_path, [*[log(10, inner=evaluation(9, epoch_num=40))] * 4, log(10)])
    assert the_record(tmp_path)["epochs_to_converge"] is None


def test_accuracies_that_are_tables_are_no_hindrance(tmp_path: Path) -> None:
    inner = evaluation(9, {"BBOX": 0.377, "SEGM": 0.34}, epoch_num=13)
    entry(tmp_path, [log(minutes, inner=inner) for minutes in (10, 11, 12, 13, 20)], "maskrcnn")
    record = the_record(tmp_path)
    assert (record["minutes"], record["epochs_to_converge"]) == (12.0, 13.0)


@pytest.mark.parametrize(
    ("measured", "samples"),
    [
        ([("FID", 95, 1), ("CLIP", 0.16, 1), ("FID", 89, 2), ("CLIP", 0.16, 2), ("FID", 80, 3), ("CLIP", 0.2, 3)], 2.0),
        ([("FID", 90, 1), ("CLIP", 0.15, 1)], 1.0),
        ([("CLIP", 0.2, 1), ("CLIP", 0.2, 2), ("FID", 80, 2), ("FID", 80, 1)], 1.0),
        ([("FID", 80, 1), ("FID", 70, 1)], None),
        ([("FID", 80, 1), ("CLIP", 0.2, 2)], None),
        ([("FID", 95, 1), ("CLIP", 0.1, 1)], None),
        ([("FID", "80", 1), ("CLIP", [0.2], 1)], None),
        ([], None),
    ],
)
def test_two_metrics_converge_together(
    tmp_path: Path, measured: list[tuple[str, object, int]], samples: float | None
) -> None:
    inner = b"".join(evaluation(5, value, metric=metric, samples_count=count) for metric, value, count in measured)
    entry(tmp_path, [log(10, inner=inner)] * 10, "stable_diffusion")
    assert the_record(tmp_path)["samples_to_converge"] == samples


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [([256] * 5, 256), ([256] * 4 + [512], None), ([256] * 4 + [None], 256), ([None] * 5, None)],
)
def test_the_batch_size_of_an_entry(tmp_path: Path, sizes: list[object], taken: int | None) -> None:
    entry(tmp_path, [log(10, gbs=size) for size in sizes])
    assert the_record(tmp_path)["global_batch_size"] == taken


def test_a_log_with_several_batch_sizes_is_told(tmp_path: Path) -> None:
    entry(tmp_path, [*FIVE[:4], log(20, inner=line("global_batch_size", 1, 512))])
    finding = f"{PLACE}/resnet/result_4.txt: names several global batch sizes: none is taken"
    assert told(scored(tmp_path)) == [finding]
    assert (the_record(tmp_path)["global_batch_size"], the_record(tmp_path)["minutes"]) == (256, 12.0)


def test_submitters_own_summaries_are_never_a_source(tmp_path: Path) -> None:
    folder = entry(tmp_path, FIVE)
    before = the_record(tmp_path)
    for place in (folder, folder.parent, tmp_path, tmp_path / "ACME", tmp_path / "ACME/results"):
        put(place, "summary.csv", "system,resnet\nacme1,1.0\n")
    assert the_record(tmp_path) == before
    assert told(scored(tmp_path)) == []


def test_what_the_log_says_of_its_submission_is_no_source(tmp_path: Path) -> None:
    inner = b"".join(
        line(f"submission_{key}", 0, value)
        for key, value in [("org", "Other"), ("division", "open"), ("status", "cloud"), ("benchmark", "bert")]
    )
    entry(tmp_path, [log(minutes, inner=inner) for minutes in (10, 11, 12, 13, 20)])
    record = the_record(tmp_path)
    found = tuple(record[name] for name in ("submitter", "division", "availability", "benchmark"))
    assert found == ("ACME", "closed", "onprem", "resnet")


ONPREM = ["onprem", "on-prem", "on-premise", "available", "Available", "available on-premise", "Available on-premise"]
ONPREM += ["available onpremise", "Available on Premise", "available-onprem", " onprem "]


@pytest.mark.parametrize(
    ("status", "availability"),
    [
        *((spelling, "onprem") for spelling in ONPREM),
        *((spelling, "cloud") for spelling in ["cloud", "available cloud", "Available in cloud", "available-cloud"]),
        *((spelling, "preview") for spelling in ["preview", "Preview"]),
        *((spelling, "research") for spelling in ["research", "Research", "RDI", "rdo", "internal"]),
        ("Research, Development, or Internal (RDI)", "research"),
        ("soon", None),
        ("", None),
        (None, None),
        (7, None),
    ],
)
def test_every_spelling_of_an_availability(status: object, availability: str | None) -> None:
    system = read_system(json.dumps(SYSTEM | {"status": status}).encode(), rules())
    assert system.availability == availability
    assert system.status == (status.strip() or None if isinstance(status, str) else None)
    assert system.findings == (
        () if availability else (f"names no availability that the rules know: {system.status!r}",)
    )


@pytest.mark.parametrize(
    ("spelling", "division"),
    [("closed", "closed"), ("close", "closed"), ("Closed", "closed"), ("OPEN ", "open"), ("ajar", None)],
)
def test_every_spelling_of_a_division(spelling: str, division: str | None) -> None:
    assert read_system(json.dumps(SYSTEM | {"division": spelling}).encode(), rules()).division == division


@pytest.mark.parametrize(
    ("per_node", "nodes", "accelerators"),
    [
        ("8", "2", 16),
        (8, 2, 16),
        (8.0, "2.0", 16),
        (" 8 ", 1, 8),
        ("0", "1", 0),
        ("8x", "2", None),
        ("", "2", None),
        (None, 2, None),
        (True, 2, None),
        ([8], 2, None),
        (-8, 2, None),
        ("8.5", 2, None),
        ("9" * 5000, 2, None),
    ],
)
def test_numbers_in_every_form(per_node: object, nodes: object, accelerators: int | None) -> None:
    described = SYSTEM | {"accelerators_per_node": per_node, "number_of_nodes": nodes}
    system = read_system(json.dumps(described).encode(), rules())
    assert system.accelerators == accelerators
    assert len(system.findings) == (accelerators is None)


@pytest.mark.parametrize(
    "name", ["Bow Pod16", "Bow-Pod16", "NVIDIA A100-SXM4-80GB (400W)", "A100-SXM-80GB", "Größe\t1"]
)
def test_names_are_kept_as_they_are_printed(name: str) -> None:
    described = json.dumps(SYSTEM | {"system_name": name, "accelerator_model_name": f" {name} "})
    system = read_system(described.encode(), rules())
    assert (system.name, system.accelerator) == (name, name)


@pytest.mark.parametrize(
    ("described", "finding"),
    [
        (None, "is missing: the system is unknown"),
        ("{'division': 'closed'}", "is not JSON, the system is unknown: Expecting property name"),
        ('{"division": "closed",}', "is not JSON, the system is unknown: "),
        ("", "is not JSON, the system is unknown: Expecting value"),
        ("[" * 100_000, "is not JSON, the system is unknown: maximum recursion depth"),
        ("[]", "is not a JSON object: the system is unknown"),
    ],
)
def test_an_unknown_system_does_not_hinder_the_score(tmp_path: Path, described: str | None, finding: str) -> None:
    entry(tmp_path, FIVE, described=described)
    record = the_record(tmp_path)
    assert (record["minutes"], record["system"], record["division"], record["accelerators"]) == (12.0, None, None, None)
    (one,) = told(scored(tmp_path))
    assert one.startswith(f"{DESCRIBED}: {finding}")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_a_description_in_another_encoding_is_read(encoding: str) -> None:
    data = json.dumps(SYSTEM | {"framework": "Größe™"[:5]}, ensure_ascii=False).encode(encoding)
    assert read_system(data, rules()).framework == "Größe"


def test_a_system_without_results_is_told(tmp_path: Path) -> None:
    entry(tmp_path, FIVE)
    put(tmp_path, "ACME/systems/acme2.json", SYSTEM)
    assert told(scored(tmp_path)) == ["ACME/systems/acme2.json: describes a system without results"]


TIMES = st.floats(-6e303, 6e303) | st.integers(0, 10)  # as far apart as two times in a log can be
AMOUNTS = st.floats(-(2**62), 2**62) | st.integers(0, 10)
LOGS = st.builds(
    Log,
    status=st.sampled_from(["success", "aborted", None]),
    minutes=st.none() | TIMES,
    init_minutes=st.none() | TIMES,
    global_batch_size=st.none() | st.integers(1, 2**62),
    train_samples=st.none() | AMOUNTS,
    evaluations=st.lists(
        st.builds(
            Evaluation,
            st.sampled_from([None, "FID", "CLIP"]),
            st.none() | AMOUNTS,
            st.sampled_from(["epochs", "samples"]),
            AMOUNTS,
        )
    ).map(tuple),
)


@given(
    st.lists(LOGS.map(lambda log: Run("result_0.txt", log)), max_size=8),
    st.sampled_from(["resnet", "unet3d", "stable_diffusion", "bert", "novel"]),
    st.none() | st.binary(max_size=5) | st.floats().map(lambda factor: json.dumps({"scaling_factor": factor}).encode()),
)
def test_any_logs_are_scored(runs: list[Run], benchmark: str, scaling: bytes | None) -> None:
    one = score(Entry("", "2.0", "ACME", "acme1", benchmark), runs, System(), scaling, rules())
    assert (one.minutes is None) == (one.reason is not None)
    assert len(one.runs) == len(runs)
    if one.minutes is not None and one.scaling_factor == 1.0:
        assert one.run_minutes_min is not None
        assert one.run_minutes_max is not None
        assert one.run_minutes_min * (1 - 1e-12) <= one.minutes <= one.run_minutes_max * (1 + 1e-12)
