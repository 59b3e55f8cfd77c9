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
    FIVE,
    FOUR,
    OPEN,
    SYSTEM,
    entry,
    evaluation,
    line,
    log,
    logs,
    put,
    score_one,
    stop,
)

RULES = load_rules()
PLACE = "ACME/results/acme1"
DESCRIPTION = "ACME/systems/acme1.json"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_whole_record(tmp_path: Path) -> None:
    """By hand: 11, 12 and 13 minutes are kept; 62.8 is the sum of squares around the mean of 13.2."""
    inner = line("train_samples", 0, 1_281_168)
    written = [
        log(minutes, inner=inner + evaluation(minutes, epoch_num=epochs))
        for minutes, epochs in [(10, 40), (11, 41), (12, 42), (13, 46), (20, 50)]
    ]
    scaling = json.dumps({"scaling_factor": 1.5}).encode()
    entry(tmp_path, written, scaling=scaling)
    record, _, findings = score_one(tmp_path)
    description = digest(json.dumps(SYSTEM).encode())
    cite = (
        "MLPerf Training v2.0 closed resnet, ACME,"
        " https://github.com/mlcommons/training_results_v2.0, ACME/results/acme1/resnet; MLPerf ID"
        " not known; day of retrieval not known; computed from the logs by ipu-results, result not"
        " verified by MLCommons Association"
    )
    assert list(record) == [name for name in COLUMNS["mlperf_entries"] if name not in SUMMARY]
    machine = ("2.0", "ACME", "closed", "ACME-1 x8", "resnet", 16, "ACME-1", "PyTorch 1.11")
    score = (5, 5, 18.0, f"{PLACE}/resnet", "ACME", 5, 5, 0, None, "onprem", "onprem", 2, 1.5)
    spread = pytest.approx(math.sqrt(62.8 / 4) / 13.2, abs=1e-12)
    convergence = (256, "epochs", 43.0, 43.0 * 1_281_168, None)
    quality = ("top-1 accuracy", 0.759, 0.76, "reached", None, None, None)
    host = ("ACME Xenon", 2, "Linux 5.4", "NCCL 2.9")
    unknown = (None,) * 8  # memory, links, notes and energy
    sources = (DESCRIPTION, description, digest(scaling), None, cite)
    values = machine + score + (10.0, 20.0, spread) + convergence + quality + host
    assert tuple(record.values()) == values + unknown + sources
    assert findings == []


def test_a_whole_run(tmp_path: Path) -> None:
    inner = line("train_samples", 0, 1_281_167) + evaluation(9, epoch_num=40) + line("seed", 0, 7)
    aborted = log(9, status="aborted", init=3, gbs=64, inner=inner)
    entry(tmp_path, [*FOUR, aborted])
    record, runs, findings = score_one(tmp_path)
    assert tuple(runs[4]) == COLUMNS["mlperf_runs"]
    run = ("2.0", f"{PLACE}/resnet", "result_4.txt", 9.0)
    outcome = ("aborted", False, "its status is aborted")
    progress = (3.0, 64, 40.0, 40 * 1_281_167.0, None, 0.76, None)
    content = ("7", 1, None, 8, digest(aborted))
    speed = (1, None, None, None, 0.0, "it has a single evaluation", None)
    assert tuple(runs[4].values()) == run + outcome + progress + content + speed
    assert findings == [
        f"{PLACE}/resnet/result_4.txt: does not count: its status is aborted",
        f"{PLACE}/resnet: its runs differ in global batch size: 64, 256",
    ]
    assert record["global_batch_size"] is None


@pytest.mark.parametrize(
    ("benchmark", "minutes", "aborted", "expected", "reason"),
    [
        ("resnet", [10, 11, 12, 13], 1, 12.0, None),
        ("resnet", [10, 11, 12], 2, None, "2 of 5 runs do not count, at most 1 may"),
        ("resnet", [10, 11], 0, None, "2 runs are too few for 1 to be left out at each end"),
        ("unet3d", list(range(5, 41)), 4, 24.5, None),
        ("unet3d", list(range(5, 40)), 5, None, "5 of 40 runs do not count, at most 4 may"),
        ("gpt3", [10, 11, 12], 0, 11.0, None),
    ],
)
def test_an_invalid_run_counts_as_one_of_the_slowest(
    tmp_path: Path,
    benchmark: str,
    minutes: list[float],
    aborted: int,
    expected: float | None,
    reason: str | None,
) -> None:
    written = [log(1, status="aborted")] * aborted + logs(*minutes)
    entry(tmp_path, written, benchmark, described=OPEN)  # which has no target to reach
    record, _, _ = score_one(tmp_path)
    assert (record["minutes"], record["no_score_reason"]) == (expected, reason)
    assert (record["n_runs"], record["n_success"]) == (len(minutes) + aborted, len(minutes))
    assert record["run_minutes_min"] == min(minutes, default=None)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (log(10, status="succuss"), "its status is succuss"),
        (log(10, status={"a": 1}), 'its status is {"a": 1}'),
        (log(10, status=None), "its run_stop has no status"),
        (
            line("init_start", -1) + line("init_stop") + line("run_start"),
            "has run_start and no run_stop",
        ),
        (line("init_start", -1) + line("init_stop"), "has no run_start and no run_stop"),
        (stop(5), "has no run_start before its run_stop"),
        (line("run_start", 6) + stop(5), "its run_stop is before its run_start"),
        (line("run_start", 5) + stop(5), "its run_stop is at the time of its run_start"),
        (line("run_start") + stop(5), "has no init_start and init_stop"),
        (b"", "holds no :::MLLOG line"),
        (b":::MLPv0.5.0 resnet 1 run_start\n", "has run_start and no run_stop"),
        (
            b":::MLL 1.0 run_start: {",
            "line 1 is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        (b":::MLL 1.0 run_start: [1]", "line 1 is not a JSON object"),
        (b":::MLL later run_start: {}", "line 1 is not of the form of v0.5 or v0.6"),
        (
            log(10) + b':::MLLOG {"key": \n',
            "line 7 is not JSON: Expecting value: line 1 column 8 (char 7)",
        ),
    ],
)
def test_why_a_run_does_not_count(tmp_path: Path, written: bytes, reason: str) -> None:
    entry(tmp_path, [*FOUR, written])
    record, runs, findings = score_one(tmp_path)
    assert [run["reason"] for run in runs] == [None] * 4 + [reason]
    assert record["n_success"] == 4
    assert record["minutes"] == 12.0
    assert findings == [f"{PLACE}/resnet/result_4.txt: does not count: {reason}"]


@pytest.mark.parametrize(
    ("division", "init", "reason"),
    [
        ("closed", 29.999, None),
        ("closed", 30, "its initialisation took 30.0 minutes, the limit is 30"),
        ("open", 239.999, None),
        ("ajar", 30, "its initialisation took 30.0 minutes, the limit is 30"),
    ],
)
def test_initialisation_has_a_limit(
    tmp_path: Path, division: str, init: float, reason: str | None
) -> None:
    entry(tmp_path, [*FOUR, log(13, init=init)], described=SYSTEM | {"division": division})
    assert score_one(tmp_path)[1][4]["reason"] == reason


BROKEN_FACTORS: list[Any] = [
    {"scaling_factor": factor} for factor in (True, "1.5", 0, math.nan, 10**400)
]


@pytest.mark.parametrize(
    "scaling", [None, {"scaling_factor": 1.023}, {"scaling_factor": 2, "reason": "review"}]
)
def test_scores_are_scaled(tmp_path: Path, scaling: dict[str, float] | None) -> None:
    entry(tmp_path, FIVE, scaling=scaling)
    record, _, findings = score_one(tmp_path)
    factor = scaling["scaling_factor"] if scaling else 1.0
    assert (record["scaling_factor"], record["minutes"], findings) == (factor, 12 * factor, [])
    assert record["run_minutes_min"] == 10.0


@pytest.mark.parametrize(
    "scaling", [*BROKEN_FACTORS, {}, "[1]", '{"scaling_factor": 1.5', "[" * 100_000, b"\xff\xfe"]
)
def test_an_unreadable_scaling_factor_makes_no_score(tmp_path: Path, scaling: Any) -> None:
    entry(tmp_path, FIVE, scaling=scaling)
    record, _, [finding] = score_one(tmp_path)
    assert (record["scaling_factor"], record["minutes"]) == (None, None)
    assert record["run_minutes_min"] == 10.0
    assert record["no_score_reason"] == "its scaling factor cannot be read"
    assert finding.startswith(f"{PLACE}/resnet/scaling.json: ")


@pytest.mark.parametrize(
    ("benchmark", "count", "finding"),
    [
        ("resnet", 6, "has 6 logs, the rules require 5"),
        ("BERT", 10, "is not a known benchmark; scored by the common rule"),
        ("mask", 5, None),
        ("mask", 4, "has 4 logs, the rules require 5"),
    ],
)
def test_another_number_of_logs_is_a_finding(
    tmp_path: Path, benchmark: str, count: int, finding: str | None
) -> None:
    entry(tmp_path, logs(*range(10, 10 + count)), benchmark, described=OPEN)
    record, _, findings = score_one(tmp_path)
    assert record["minutes"] == 10 + (count - 1) / 2
    assert findings == ([f"{PLACE}/{benchmark}: {finding}"] if finding else [])
    proper = "maskrcnn" if benchmark == "mask" else benchmark
    assert (record["benchmark"], record["path"]) == (proper, f"{PLACE}/{benchmark}")


@pytest.mark.parametrize(
    ("measured", "samples"),
    [
        ([("FID", 95, 1), ("CLIP", 0.16, 1), ("FID", 89, 2), ("CLIP", 0.16, 2)], 2.0),
        ([("FID", 90, 1), ("CLIP", 0.15, 1)], 1.0),
        ([("CLIP", 0.2, 1), ("CLIP", 0.2, 2), ("FID", 80, 2), ("FID", 80, 1)], 1.0),
        ([("FID", 80, 1), ("FID", 70, 1)], None),
        ([("FID", 80, 1), ("CLIP", 0.2, 2)], None),
        ([("FID", "80", 1), ("CLIP", [0.2], 1)], None),
    ],
)
def test_two_metrics_converge_together(
    tmp_path: Path, measured: list[tuple[str, object, int]], samples: float | None
) -> None:
    inner = b"".join(
        evaluation(5, value, metric=metric, samples_count=count)
        for metric, value, count in measured
    )
    entry(tmp_path, [log(10, inner=inner)] * 10, "stable_diffusion")
    assert score_one(tmp_path)[0]["samples_to_converge"] == samples


def test_batch_size_of_an_entry(tmp_path: Path) -> None:
    entry(tmp_path / "one", [*FOUR, log(20, gbs=None)])
    assert score_one(tmp_path / "one")[0]["global_batch_size"] == 256


def test_only_path_and_description_are_sources(tmp_path: Path) -> None:
    submission = {"org": "Other", "division": "open", "status": "cloud", "benchmark": "bert"}
    inner = b"".join(line(f"submission_{key}", 0, value) for key, value in submission.items())
    inner += evaluation(9, epoch_num=1)
    folder = entry(tmp_path, [log(minutes, inner=inner) for minutes in (10, 11, 12, 13, 20)])
    for place in (folder, folder.parent, tmp_path, tmp_path / "ACME", tmp_path / "ACME/results"):
        put(place, "summary.csv", "system,resnet\nacme1,1.0\n")
    record, _, findings = score_one(tmp_path)
    names = ("submitter", "division", "availability", "benchmark", "minutes")
    assert [record[name] for name in names] == ["ACME", "closed", "onprem", "resnet", 12.0]
    assert len(findings) == 10
    assert record["findings"] == (
        "is a log of bert by its submission_benchmark (5 runs) | is a log of the open division by"
        " its submission_division (5 runs)"
    )


def describe(**changed: object) -> System:
    return read_system(json.dumps(SYSTEM | changed).encode(), RULES)


SPELLINGS = {
    "onprem": [
        "on-prem",
        "on-premise",
        "Available",
        "available on-premise",
        "available onpremise",
        " onprem ",
    ],
    "cloud": ["cloud", "available cloud", "Available in cloud", "available-cloud"],
    "preview": ["Preview"],
    "research": ["Research", "RDI", "rdo", "internal", "Research, Development, or Internal (RDI)"],
    None: ["soon", "", None, 7],
}


@pytest.mark.parametrize("availability", SPELLINGS)
def test_spellings_of_an_availability(availability: str | None) -> None:
    for status in SPELLINGS[availability]:
        system = describe(status=status)
        assert system.availability == availability
        assert system.texts["status"] == (
            status.strip() or None if isinstance(status, str) else None
        )
        assert len(system.findings) == (availability is None)


def test_spellings_of_a_division() -> None:
    divisions = {
        spelling: describe(division=spelling).division
        for spelling in ("closed", "close", "OPEN ", "ajar")
    }
    assert divisions == {"closed": "closed", "close": "closed", "OPEN ": "open", "ajar": None}


def test_numbers_of_accelerators() -> None:
    for per_node, nodes, accelerators in ((8.0, "2.0", 16), (" 8 ", 1, 8), ("0", "1", 0)):
        system = describe(accelerators_per_node=per_node, number_of_nodes=nodes)
        assert (system.accelerators, system.findings) == (accelerators, ())
    for broken in ("8x", "", None, True, [8], -8, "8.5", "9" * 5000, "²"):
        system = describe(accelerators_per_node=broken)
        assert (system.accelerators, len(system.findings)) == (None, 1)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_names_are_kept_as_printed(encoding: str) -> None:
    name = "Größe\t1 (400W)"
    text = json.dumps(SYSTEM | {"system_name": f" {name} "}, ensure_ascii=False)
    assert read_system(text.encode(encoding), RULES).texts["system"] == name


@pytest.mark.parametrize(
    ("described", "finding"),
    [
        (None, "is missing; the system is unknown"),
        ('{"division": "closed",}', "is not JSON; the system is unknown: "),
        ("[" * 100_000, "is not JSON; the system is unknown: maximum recursion depth"),
        ("[]", "is not a JSON object; the system is unknown"),
    ],
)
def test_an_unknown_system_has_a_score(tmp_path: Path, described: str | None, finding: str) -> None:
    entry(tmp_path, FIVE, described=described)
    record, _, findings = score_one(tmp_path)
    unknown = [record[name] for name in ("system", "division", "accelerators")]
    assert (record["minutes"], unknown) == (12.0, [None] * 3)
    assert [text.startswith(f"{DESCRIPTION}: {finding}") for text in findings] == [True]


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
