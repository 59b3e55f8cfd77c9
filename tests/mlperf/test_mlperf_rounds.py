"""What the public rounds need beyond the plain rule: each case is one that a round really has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.mlperf.power import read_power
from ipu_results.mlperf.records import entry_record
from ipu_results.mlperf.round import score_path
from ipu_results.mlperf.rules import load_rules

from tests.mlperf.mlperf_support import (
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
    score,
    score_one,
    texts,
    write,
)

CASES = load_cases("rounds")
STOPPED = "its power_measurement_stop is not after its power_measurement_start"


def measure(root: Path, inner: bytes, case: dict[str, Any]) -> dict[str, Any]:
    """Score an entry of as many equal runs as its benchmark needs; return its record."""
    benchmark = case["benchmark"]
    runs = load_rules().benchmark(benchmark).runs or 10
    entry(root, [log(10, inner=inner, gbs=case["batch"])] * runs, benchmark)
    [scored] = score(root, case["round"]).entries
    return entry_record(scored)


def name_case(case: dict[str, Any]) -> str:
    return f"{case['benchmark']} {case['round']} {case['value']}"


@pytest.mark.parametrize("case", CASES["progress"], ids=name_case)
def test_progress_is_in_one_unit_with_its_name(tmp_path: Path, case: dict[str, Any]) -> None:
    inner = evaluation(9, case["value"], **case["at"])
    if "train_samples" in case:
        inner += line("train_samples", 0, case["train_samples"])
    if "planned_steps" in case:
        inner += line("opt_learning_rate_training_steps", 0, case["planned_steps"])
    record = measure(tmp_path, inner, case)
    stated = {}
    for name, value in record.items():
        if name.endswith("_to_converge") or name == "convergence_unit":
            stated[name] = value
    unstated = dict.fromkeys(stated.keys() - case["record"].keys())
    assert stated == {**case["record"], **unstated}


@pytest.mark.parametrize("case", CASES["target"], ids=name_case)
def test_quality_targets_are_checked(tmp_path: Path, case: dict[str, Any]) -> None:
    record = measure(tmp_path, evaluation(9, case["value"], epoch_num=1), case)
    missed = case["check"] == "missed"
    assert (record["minutes"] is None) == missed
    assert record["n_success"] == (0 if missed else record["n_runs"])
    # a run that missed its target does not count, and only those that count are checked
    assert record["quality_check"] == ("not checked" if missed else case["check"])


@pytest.mark.parametrize(
    ("progress", "batch"),
    [({"samples_count": 2_560_000}, 256), ({"epoch_num": 5, "step_num": 5000}, 512)],
)
def test_stored_models_are_evaluated_after_the_run(
    tmp_path: Path, progress: dict[str, int], batch: int
) -> None:
    """Their results are written before the line that ends the run, with later times; the first that
    passes counts.
    """
    later = {name: value + 1000 for name, value in progress.items()}
    inner = evaluation(90, 89.0, "eval_error", metric="FID", **progress)
    inner += evaluation(90, 0.16, "eval_accuracy", metric="CLIP", **progress)
    inner += evaluation(90, 80.0, "eval_error", metric="FID", **later)
    inner += evaluation(90, 0.16, "eval_accuracy", metric="CLIP", **later)
    case = {"benchmark": "stable_diffusion", "round": "3.1", "batch": batch}
    record = measure(tmp_path, inner, case)
    assert record["samples_to_converge"] == 2_560_000
    assert record["quality_metric"] == "FID"
    assert record["quality_reached"] == 89.0
    assert record["second_quality_reached"] == 0.16
    assert record["quality_check"] == "reached"


def test_an_earlier_evaluation_may_have_reached_the_target(tmp_path: Path) -> None:
    inner = evaluation(8, 0.76, epoch_num=1) + evaluation(9, 0.758, epoch_num=2)
    record = measure(tmp_path, inner, {"benchmark": "resnet", "round": "2.0", "batch": 256})
    assert record["quality_check"] == "reached"
    assert record["n_success"] == 5
    assert record["quality_reached"] == 0.76


def test_a_missed_target_is_named_and_does_not_matter_in_the_open_division(tmp_path: Path) -> None:
    missed = log(13, inner=evaluation(9, 0.7, epoch_num=1))
    entry(tmp_path, [*FOUR, missed])
    _, runs, findings = score_one(tmp_path)
    reason = "did not reach the quality target: top-1 accuracy 0.7, the target is 0.759"
    assert runs[4]["reason"] == reason
    assert findings == [f"{PLACE}/resnet/result_4.txt: does not count: {reason}"]
    put(tmp_path, "ACME/systems/acme1.json", OPEN)
    record, runs, _ = score_one(tmp_path)
    assert runs[4]["counted"]
    assert record["quality_check"] == "missed"


def test_submitter_as_printed_and_as_folder(tmp_path: Path) -> None:
    entry(tmp_path, FIVE, submitter="SUPERMICRO", described=SYSTEM | {"submitter": "Supermicro"})
    record, _, _ = score_one(tmp_path)
    assert record["submitter"] == "Supermicro"
    assert record["submitter_folder"] == "SUPERMICRO"
    assert ", Supermicro, " in record["attribution"]
    (tmp_path / "SUPERMICRO/systems/acme1.json").unlink()
    assert score_one(tmp_path)[0]["submitter"] == "SUPERMICRO"


@pytest.mark.parametrize(
    ("name", "benchmark", "suite"),
    [
        ("hpc_results_v2.0", "cosmoflow", "MLPerf HPC"),
        ("v2.0", "openfold", "MLPerf HPC"),
        ("inference_results_v4.1", "resnet50", "MLPerf Inference"),
        ("tiny_results_v1.0", "novel", "MLPerf Tiny"),
    ],
)
def test_other_suites_are_refused_by_name(
    tmp_path: Path, name: str, benchmark: str, suite: str
) -> None:
    entry(tmp_path / name, FIVE, benchmark)
    message = f"is refused: it holds {suite} results; only MLPerf Training is scored"
    with pytest.raises(UnrecognisedDocumentError, match=message):
        score(tmp_path, None)
    entry(tmp_path / "training_results_v2.0", FIVE)
    scored = score(tmp_path, None)
    assert [each.benchmark for each in scored.entries] == ["resnet"]
    assert f"{name}: {message}" in texts(scored)


def test_identical_logs_are_findings(tmp_path: Path) -> None:
    entry(tmp_path, [*FOUR, FIVE[0]])
    entry(tmp_path, [FIVE[1], *logs(14, 15, 16, 17)], submitter="Other")
    assert texts(score(tmp_path)) == [
        f"{PLACE}/resnet: has 1 logs twice: result_4.txt has the bytes of result_0.txt",
        f"Other/results/acme1/resnet: 1 of its logs are also those of {PLACE}/resnet",
    ]


def test_finding_of_a_system_is_listed_once(tmp_path: Path) -> None:
    entry(tmp_path, FIVE, described=SYSTEM | {"status": "soon"})
    entry(tmp_path, FIVE, "ssd", described=None)
    message = "ACME/systems/acme1.json: status is not a known availability: 'soon'"
    assert texts(score(tmp_path)).count(message) == 1


@pytest.mark.parametrize("place", ["result_0.txt", "resnet/raw/result_0.txt"])
def test_logs_at_other_depths_are_findings(tmp_path: Path, place: str) -> None:
    entry(tmp_path, FIVE)
    put(tmp_path, f"ACME/results/other/{place}", log(10))
    scored = score(tmp_path)
    message = f"1 logs are not directly in a benchmark's folder; ignored: {place}"
    assert f"ACME/results/other: {message}" in texts(scored)
    assert "ACME/results/other: has no benchmark folder" not in texts(scored)
    assert scored.entries[0].minutes == 12.0


def test_an_entry_with_missing_logs_has_no_score(tmp_path: Path) -> None:
    """The same with the files and without them: a complete checkout gives what an incomplete one
    gave.
    """
    entry(tmp_path, FIVE)
    missing = (f"{PLACE}/resnet/result_4.txt", "ACME/results/acme2/bert/result_0.txt")
    complete = score_path(str(tmp_path), round_="2.0", missing=missing)
    (tmp_path / missing[0]).unlink()
    assert score_path(str(tmp_path), round_="2.0", missing=missing) == complete
    for scored, present in zip(complete.entries, (4, 0), strict=True):
        record = entry_record(scored)
        assert record["n_runs"] == present
        assert record["logs_present"] == present
        assert record["minutes"] is None
        assert record["logs_missing"] == 1
        assert record["no_score_reason"] == "logs missing in our copy"
    message = "logs missing in our copy: 1; it has no score"
    assert f"{PLACE}/resnet: {message}" in texts(complete)


# Power


def measure_power(watts: float, minutes: float = 1) -> bytes:
    """Write a power log with one reading."""
    reading = line("power_reading", 1, watts)
    return line("power_measurement_start") + reading + line("power_measurement_stop", minutes)


@pytest.mark.parametrize("case", CASES["power"], ids=lambda case: case["says"])
def test_power_by_the_official_rule(case: dict[str, Any]) -> None:
    files = {name: [write(lines)] for name, lines in case["files"].items()}
    power = read_power(files)
    if "watts" in case:
        assert power.watts == pytest.approx(case["watts"])
        assert power.problem is None
    else:
        assert power.watts is None
        assert power.problem == case["problem"]


def test_energy_is_averaged_over_the_runs_of_the_score(tmp_path: Path) -> None:
    """By hand: 600, 660, 720, 780 and 1200 s at 1 to 5 kW; the kept ones are 1.32, 2.16 and 3.12
    MJ.
    """
    folder = entry(tmp_path, FIVE, scaling={"scaling_factor": 1.5})
    for run in range(5):
        put(folder, f"power/result_{run}/node_0.txt", measure_power(1000 * (run + 1)))
    put(folder, "power/result_0/total_power.txt", b"ignored")
    record, runs, _ = score_one(tmp_path)
    assert [run["energy_j"] for run in runs] == pytest.approx([0.6e6, 1.32e6, 2.16e6, 3.12e6, 6e6])
    assert record["energy_j"] == pytest.approx(1.5 * 2.2e6)
    put(folder, "power/result_2/node_0.txt", measure_power(300, minutes=0))
    record, _, findings = score_one(tmp_path)
    assert record["energy_j"] is None
    assert record["minutes"] == 18.0
    message = f"its energy is unknown: node_0.txt: {STOPPED}"
    assert findings == [f"{PLACE}/resnet/result_2.txt: {message}"]
