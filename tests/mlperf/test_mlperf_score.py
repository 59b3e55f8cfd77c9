"""The official rule, on entries written for it, and the systems of entries."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.mlperf.entries import Entry, System, read_system
from ipu_results.mlperf.log import Evaluation, Log
from ipu_results.mlperf.records import COLUMNS, SUMMARY
from ipu_results.mlperf.rules import load_rules
from ipu_results.mlperf.score import score_entry

from tests.mlperf.mlperf_support import (
    DESCRIPTION,
    FIVE,
    FOUR,
    OPEN,
    PLACE,
    SYSTEM,
    entry,
    evaluation,
    line,
    load_cases,
    log,
    logs,
    put,
    score_one,
    stop,
    write,
)

RULES = load_rules()
BY_HAND = load_cases("score")


def assert_record(record: dict[str, Any], table: str, expected: dict[str, Any]) -> None:
    """Check that a record has these values, and None in all other columns."""
    columns = [name for name in COLUMNS[table] if name not in SUMMARY or table == "mlperf_runs"]
    assert list(record) == columns
    assert record == {**dict.fromkeys(columns), **expected}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_whole_record(tmp_path: Path) -> None:
    written = []
    for minutes, epochs in ((10, 40), (11, 41), (12, 42), (13, 46), (20, 50)):
        inner = line("train_samples", 0, 1_281_168) + evaluation(minutes, epoch_num=epochs)
        written.append(log(minutes, inner=inner))
    scaling = b'{"scaling_factor": 1.5}'
    entry(tmp_path, written, scaling=scaling)
    record, _, findings = score_one(tmp_path)
    expected = dict(BY_HAND["entry"])
    expected["run_minutes_cv"] = pytest.approx(expected["run_minutes_cv"], abs=1e-12)
    expected["system_sha256"] = digest((tmp_path / DESCRIPTION).read_bytes())
    expected["scaling_sha256"] = digest(scaling)
    assert_record(record, "mlperf_entries", expected)
    assert findings == []


def test_a_whole_run(tmp_path: Path) -> None:
    inner = line("train_samples", 0, 1_281_167) + evaluation(9, epoch_num=40) + line("seed", 0, 7)
    aborted = log(9, status="aborted", init=3, gbs=64, inner=inner)
    entry(tmp_path, [*FOUR, aborted])
    record, runs, findings = score_one(tmp_path)
    assert_record(runs[4], "mlperf_runs", BY_HAND["run"] | {"sha256": digest(aborted)})
    assert findings == [
        f"{PLACE}/resnet/result_4.txt: does not count: its status is aborted",
        f"{PLACE}/resnet: its runs differ in global batch size: 64, 256",
    ]
    assert record["global_batch_size"] is None


@pytest.mark.parametrize("case", BY_HAND["runs"], ids=str)
def test_an_invalid_run_counts_as_one_of_the_slowest(tmp_path: Path, case: dict[str, Any]) -> None:
    minutes = range(case["first"], case["last"] + 1)
    written = [log(1, status="aborted")] * case["aborted"]
    written += logs(*minutes)
    entry(tmp_path, written, case["benchmark"], described=OPEN)  # which has no target to reach
    record, _, _ = score_one(tmp_path)
    assert record["minutes"] == case.get("score")
    assert record["no_score_reason"] == case.get("reason")
    assert record["n_runs"] == len(written)
    assert record["n_success"] == len(minutes)
    assert record["run_minutes_min"] == case["first"]


JSON_PROBLEM = "line 7 is not JSON: Expecting value: line 1 column 8 (char 7)"


def assert_not_counted(root: Path, written: bytes, reason: str) -> None:
    entry(root, [*FOUR, written])
    record, runs, findings = score_one(root)
    assert [run["reason"] for run in runs] == [None] * 4 + [reason]
    assert record["n_success"] == 4
    assert record["minutes"] == 12.0
    assert findings == [f"{PLACE}/resnet/result_4.txt: does not count: {reason}"]


@pytest.mark.parametrize("case", BY_HAND["incomplete"], ids=lambda case: case["reason"])
def test_an_incomplete_run_does_not_count(tmp_path: Path, case: dict[str, Any]) -> None:
    assert_not_counted(tmp_path, write(case["lines"]), case["reason"])


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (log(10, status="succuss"), "its status is succuss"),
        (log(10, status={"a": 1}), 'its status is {"a": 1}'),
        (log(10, status=None), "its run_stop has no status"),
        (log(10) + stop(20), "has 2 run_stop lines: more than one run"),
        (b"", "holds no :::MLLOG line"),
        (b":::MLPv0.5.0 resnet 1 run_start\n", "has run_start and no run_stop"),
        (b":::MLL 1.0 run_start: [1]", "line 1 is not a JSON object"),
        (b":::MLL later run_start: {}", "line 1 is not of the form of v0.5 or v0.6"),
        (log(10) + b':::MLLOG {"key": \n', JSON_PROBLEM),
    ],
)
def test_why_a_run_does_not_count(tmp_path: Path, written: bytes, reason: str) -> None:
    assert_not_counted(tmp_path, written, reason)


TOO_LONG = "its initialisation took 30.0 minutes, the limit is 30"


@pytest.mark.parametrize(
    ("division", "init", "reason"),
    [
        ("closed", 29.999, None),
        ("closed", 30, TOO_LONG),
        ("open", 239.999, None),
        ("ajar", 30, TOO_LONG),
    ],
)
def test_initialisation_has_a_limit(
    tmp_path: Path, division: str, init: float, reason: str | None
) -> None:
    entry(tmp_path, [*FOUR, log(13, init=init)], described=SYSTEM | {"division": division})
    _, runs, _ = score_one(tmp_path)
    assert runs[4]["reason"] == reason


@pytest.mark.parametrize(
    ("scaling", "factor"),
    [
        (None, 1.0),
        ({"scaling_factor": 1.023}, 1.023),
        ({"scaling_factor": 1}, 1),
        ({"scaling_factor": 2, "reason": "review"}, 2),
    ],
)
def test_scores_are_scaled(
    tmp_path: Path, scaling: dict[str, object] | None, factor: float
) -> None:
    entry(tmp_path, FIVE, scaling=scaling)
    record, _, findings = score_one(tmp_path)
    assert record["scaling_factor"] == factor
    assert record["minutes"] == 12 * factor
    assert record["run_minutes_min"] == 10.0
    assert findings == []


def test_a_factor_below_one_is_a_finding(tmp_path: Path) -> None:
    entry(tmp_path, FIVE, scaling={"scaling_factor": 0.5})
    record, _, findings = score_one(tmp_path)
    message = "scaling_factor is 0.5: the rules have none below 1"
    assert record["minutes"] == 6.0
    assert record["findings"] == message
    assert findings == [f"{PLACE}/resnet/scaling.json: {message}"]


@pytest.mark.parametrize("factor", [True, "1.5", 0, math.nan, 10**400])
def test_a_factor_that_is_none_makes_no_score(tmp_path: Path, factor: object) -> None:
    entry(tmp_path, FIVE, scaling={"scaling_factor": factor})
    assert_no_factor(tmp_path)


@pytest.mark.parametrize("scaling", ["{}", "[1]", '{"scaling_factor": 1.5', "[" * 100_000, b"\xff"])
def test_a_file_without_a_factor_makes_no_score(tmp_path: Path, scaling: str | bytes) -> None:
    entry(tmp_path, FIVE, scaling=scaling)
    assert_no_factor(tmp_path)


def assert_no_factor(root: Path) -> None:
    record, _, [finding] = score_one(root)
    assert record["scaling_factor"] is None
    assert record["minutes"] is None
    assert record["run_minutes_min"] == 10.0
    assert record["no_score_reason"] == "its scaling factor cannot be read"
    assert finding.startswith(f"{PLACE}/resnet/scaling.json: ")


@pytest.mark.parametrize(
    ("benchmark", "count", "finding"),
    [
        ("resnet", 6, "has 6 logs, the rules require 5"),
        ("BERT", 10, "is not a known benchmark; scored by the common rule"),
        ("mask", 4, "has 4 logs, the rules require 5"),
    ],
)
def test_another_number_of_logs_is_a_finding(
    tmp_path: Path, benchmark: str, count: int, finding: str
) -> None:
    written = logs(*range(10, 10 + count))
    entry(tmp_path, written, benchmark, described=OPEN)
    record, _, findings = score_one(tmp_path)
    assert record["minutes"] == 10 + (count - 1) / 2
    assert findings == [f"{PLACE}/{benchmark}: {finding}"]


def test_a_benchmark_has_its_usual_name(tmp_path: Path) -> None:
    entry(tmp_path, FIVE, "mask", described=OPEN)
    record, _, findings = score_one(tmp_path)
    assert record["benchmark"] == "maskrcnn"
    assert record["path"] == f"{PLACE}/mask"
    assert findings == []


@pytest.mark.parametrize("case", BY_HAND["metrics"], ids=str)
def test_two_metrics_converge_together(tmp_path: Path, case: dict[str, Any]) -> None:
    inner = b""
    for metric, value, count in case["evaluations"]:
        inner += evaluation(5, value, metric=metric, samples_count=count)
    entry(tmp_path, [log(10, inner=inner)] * 10, "stable_diffusion")
    record, _, _ = score_one(tmp_path)
    assert record["samples_to_converge"] == case.get("samples")


def test_batch_size_of_an_entry(tmp_path: Path) -> None:
    entry(tmp_path, [*FOUR, log(20, gbs=None)])
    record, _, _ = score_one(tmp_path)
    assert record["global_batch_size"] == 256


def test_only_path_and_description_are_sources(tmp_path: Path) -> None:
    inner = evaluation(9, epoch_num=1)
    submission = {"org": "Other", "division": "open", "status": "cloud", "benchmark": "bert"}
    for key, value in submission.items():
        inner += line(f"submission_{key}", 0, value)
    folder = entry(tmp_path, [log(minutes, inner=inner) for minutes in (10, 11, 12, 13, 20)])
    put(folder, "summary.csv", "system,resnet\nacme1,1.0\n")
    put(tmp_path, "ACME/summary.csv", "system,resnet\nacme1,1.0\n")
    record, _, _ = score_one(tmp_path)
    assert record["submitter"] == "ACME"
    assert record["division"] == "closed"
    assert record["availability"] == "onprem"
    assert record["benchmark"] == "resnet"
    assert record["minutes"] == 12.0
    assert record["findings"] == (
        "is a log of bert by its submission_benchmark (5 runs) | is a log of the open division by"
        " its submission_division (5 runs)"
    )


# Systems


def describe(**changed: object) -> System:
    return read_system(json.dumps(SYSTEM | changed).encode(), RULES)


@pytest.mark.parametrize("availability", BY_HAND["availability"])
def test_spellings_of_an_availability(availability: str) -> None:
    for status in BY_HAND["availability"][availability]:
        system = describe(status=status)
        assert system.availability == availability
        assert system.texts["status"] == status.strip()
        assert system.findings == ()


@pytest.mark.parametrize(
    ("status", "kept"), [("soon", "soon"), ("", None), (None, None), (7, None)]
)
def test_an_unknown_availability_is_a_finding(status: object, kept: str | None) -> None:
    system = describe(status=status)
    assert system.availability is None
    assert system.texts["status"] == kept
    assert len(system.findings) == 1


@pytest.mark.parametrize(
    ("spelling", "division"),
    [("closed", "closed"), ("close", "closed"), ("OPEN ", "open"), ("ajar", None)],
)
def test_spellings_of_a_division(spelling: str, division: str | None) -> None:
    assert describe(division=spelling).division == division


@pytest.mark.parametrize(
    ("per_node", "nodes", "accelerators"), [(8.0, "2.0", 16), (" 8 ", 1, 8), ("0", "1", 0)]
)
def test_numbers_of_accelerators(per_node: object, nodes: object, accelerators: int) -> None:
    system = describe(accelerators_per_node=per_node, number_of_nodes=nodes)
    assert system.accelerators == accelerators
    assert system.findings == ()


@pytest.mark.parametrize("number", ["8x", "", None, True, [8], -8, "8.5", "9" * 5000, "²"])
def test_numbers_that_are_none(number: object) -> None:
    system = describe(accelerators_per_node=number)
    assert system.accelerators is None
    assert len(system.findings) == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_names_are_kept_as_printed(encoding: str) -> None:
    name = "Größe\t1 (400W)"
    text = json.dumps(SYSTEM | {"system_name": f" {name} "}, ensure_ascii=False)
    assert read_system(text.encode(encoding), RULES).texts["system"] == name


@pytest.mark.parametrize(
    ("described", "message"),
    [
        (None, "is missing; the system is unknown"),
        ('{"division": "closed",}', "is not JSON; the system is unknown: "),
        ("[" * 100_000, "is not JSON; the system is unknown: maximum recursion depth"),
        ("[]", "is not a JSON object; the system is unknown"),
    ],
)
def test_an_unknown_system_has_a_score(tmp_path: Path, described: str | None, message: str) -> None:
    entry(tmp_path, FIVE, described=described)
    record, _, [finding] = score_one(tmp_path)
    assert record["minutes"] == 12.0
    assert record["system"] is None
    assert record["division"] is None
    assert record["accelerators"] is None
    assert finding.startswith(f"{DESCRIPTION}: {message}")


# Whatever is read


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = st.dictionaries(st.sampled_from(sorted(SYSTEM)), JSON)


@given(st.binary(max_size=40) | (JSON | FIELDS).map(lambda fields: json.dumps(fields).encode()))
def test_any_description_is_read(data: bytes) -> None:
    system = read_system(data, RULES)
    assert system.division in {None, "closed", "open"}
    assert system.accelerators is None or 0 <= system.accelerators < 2**63


TIMES = st.floats(-6e303, 6e303) | st.integers(0, 10)  # as far apart as two times in a log can be
AMOUNTS = st.floats(-(2**62), 2**62) | st.integers(0, 10)
METRICS = st.sampled_from([None, "FID", "CLIP"])
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
            METRICS,
            st.none() | AMOUNTS,
            st.sampled_from(["epochs", "samples"]),
            AMOUNTS,
        )
    ).map(tuple),
)


@given(
    st.lists(LOGS, max_size=8),
    st.sampled_from(["resnet", "unet3d", "stable_diffusion", "bert", "novel"]),
    st.none()
    | st.binary(max_size=5)
    | st.floats().map(lambda factor: json.dumps({"scaling_factor": factor}).encode()),
)
def test_any_logs_are_scored(read: list[Log], benchmark: str, scaling: bytes | None) -> None:
    files = {f"result_{number}.txt": each for number, each in enumerate(read)}
    scored = score_entry(
        Entry("", "2.0", "ACME", "acme1", benchmark), files, System(), scaling, RULES
    )
    assert (scored.minutes is None) == (scored.reason is not None)
    assert len(scored.runs) == len(read)
    if scored.minutes is not None and scored.scaling_factor == 1.0:
        assert scored.run_minutes_min * (1 - 1e-12) <= scored.minutes
        assert scored.minutes <= scored.run_minutes_max * (1 + 1e-12)
