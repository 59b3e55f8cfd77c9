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
    SYSTEM,
    entry,
    evaluation,
    line,
    log,
    logs,
    put,
    score,
    score_one,
    texts,
)

PLACE = "ACME/results/acme1"
STOPPED = "its power_measurement_stop is not after its power_measurement_start"
PROGRESS = ("convergence_unit", "samples_to_converge", "tokens_to_converge", "epochs_to_converge")


def measure(
    root: Path,
    inner: bytes,
    benchmark: str,
    round_: str,
    *,
    gbs: int = 256,
    runs: int = 10,
    open_: bool = False,
) -> dict[str, Any]:
    """Score an entry of equal runs and return its record."""
    described = SYSTEM | {"division": "open"} if open_ else SYSTEM
    entry(root, [log(10, inner=inner, gbs=gbs)] * runs, benchmark, described=described)
    [scored] = score(root, round_).entries
    return entry_record(scored)


def size(samples: object) -> bytes:
    return line("train_samples", 0, samples)


def planned(steps: object) -> bytes:
    return line("opt_learning_rate_training_steps", 0, steps)


def seen(value: object, at: float = 9, **metadata: object) -> bytes:
    return evaluation(at, value, **metadata)


@pytest.mark.parametrize(
    ("benchmark", "round_", "gbs", "inner", "expected"),
    [
        ("unet3d", "3.0", 56, size(168) + seen(0.91, epoch_num=2200), ("epochs", 369_600, None, 2200)),
        ("unet3d", "4.0", 56, size(168) + seen(0.91, epoch_num=383_040), ("samples", 383_040, None, 2280)),
        ("gpt3", "3.1", 2688, seen(2.689, epoch_num=1_211_105_280), ("tokens", 591_360, 1_211_105_280, None)),
        ("bert", "2.0", 448, seen(0.7202, epoch_num=2_550_016), ("samples", 2_550_016, None, None)),
        (
            "bert", "0.7", 256,
            planned(13_700) + size(3_507_200) + seen(0.7141, epoch_num=11_718),
            ("steps", 2_999_808, None, None),
        ),
        # six evaluations; what is called train_samples is the length of the schedule
        (
            "bert", "0.7", 440,
            planned(8103) + size(3_565_320) + seen(0.7121, epoch_num=6),
            ("evaluations", None, None, None),
        ),
        (
            "bert", "1.1", 4096,
            size(156_725_653) + seen(0.72, epoch_num=1, train_samples_since_beginning=111_001_600),
            ("samples", 111_001_600, None, None),
        ),
        ("resnet", "3.1", 2048, size(160_000) + seen(0.7612, epoch_num=27), ("epochs", 34_591_509, None, 27)),
        ("resnet", "2.0", 3264, size(1_277_952) + seen(0.76, epoch_num=35), ("epochs", 44_728_320, None, 35)),
        ("dlrm", "2.0", 55_296, seen(0.8026, epoch_num=1.75), ("epochs", 0.75 * 4_195_197_692, None, 1.75)),
        ("dlrm", "0.7", 55_296, seen(0.8026, epoch_num=18), ("evaluations", None, None, None)),
        ("ssd", "1.1", 912, size(117_266) + seen(0.231, epoch_num=50), ("epochs", 5_863_300, None, 50)),
        ("ssd", "2.0", 128, size(9143) + seen(0.35, epoch_num=5), ("epochs", 5_851_505, None, 5)),
        ("llama31_8b", "5.1", 32, seen(3.29, epoch_num=1, samples_count=172_000), ("samples", 172_000, None, None)),
    ],
)  # fmt: skip
def test_progress_is_in_one_unit_with_its_name(
    tmp_path: Path,
    benchmark: str,
    round_: str,
    gbs: int,
    inner: bytes,
    expected: tuple[object, ...],
) -> None:
    runs = load_rules().benchmark(benchmark).runs or 10
    record = measure(tmp_path, inner, benchmark, round_, gbs=gbs, runs=runs)
    assert tuple(record[name] for name in PROGRESS) == expected


@pytest.mark.parametrize(
    ("progress", "gbs"),
    [({"samples_count": 2_560_000}, 256), ({"epoch_num": 5, "step_num": 5000}, 512)],
)
def test_stored_models_are_evaluated_after_the_run(
    tmp_path: Path, progress: dict[str, int], gbs: int
) -> None:
    """Their results are written before the line that ends the run, with later times; the first that
    passes counts.
    """
    later = {name: value + 1000 for name, value in progress.items()}
    inner = b"".join(
        evaluation(90, value, key, metric=metric, **at)
        for at, fid in [(progress, 89.0), (later, 80.0)]
        for key, metric, value in [("eval_error", "FID", fid), ("eval_accuracy", "CLIP", 0.16)]
    )
    record = measure(tmp_path, inner, "stable_diffusion", "3.1", gbs=gbs)
    assert record["samples_to_converge"] == 2_560_000
    assert (record["quality_metric"], record["quality_reached"]) == ("FID", 89.0)
    assert (record["second_quality_reached"], record["quality_check"]) == (0.16, "reached")


@pytest.mark.parametrize(
    ("benchmark", "round_", "gbs", "value", "check"),
    [
        ("dlrm_dcnv2", "5.1", 55_296, 9.9, "missed"),
        ("dlrm_dcnv2", "5.1", 55_296, 0.80275, "reached"),
        ("dlrm_dcnv2", "5.1", 55_296, 0.80274, "missed"),
        ("bert", "0.7", 8191, 0.711, "missed"),
        ("bert", "0.7", 8192, 0.711, "reached"),
        ("bert", "1.0", 8192, 0.712, "missed"),
        ("ssd", "1.1", 912, 0.24, "reached"),
        ("ssd", "2.0", 912, 0.24, "missed"),
        ("rnnt", "2.0", 1024, 0.058, "reached"),
        ("rnnt", "2.0", 1024, 0.0581, "missed"),
        ("gpt3", "3.0", 1536, 2.6, "missed"),
        ("maskrcnn", "2.0", 96, {"BBOX": 0.38, "SEGM": 0.339}, "reached"),
        ("maskrcnn", "2.0", 96, {"BBOX": 0.38, "SEGM": 0.338}, "missed"),
        ("resnet", "2.0", 256, "0.76", "not checked"),
        ("novel", "2.0", 256, 0.76, "not checked"),
    ],
)
def test_quality_targets_are_checked(
    tmp_path: Path, benchmark: str, round_: str, gbs: int, value: object, check: str
) -> None:
    runs = load_rules().benchmark(benchmark).runs or 10
    record = measure(tmp_path, seen(value, epoch_num=1), benchmark, round_, gbs=gbs, runs=runs)
    counted = 0 if check == "missed" else runs
    assert record["n_success"] == counted
    assert (record["minutes"] is None) == (check == "missed")
    assert record["quality_check"] == (check if counted else "not checked")  # of the counted runs


def test_an_earlier_evaluation_may_have_reached_the_target(tmp_path: Path) -> None:
    inner = seen(0.7600, 8, epoch_num=1) + seen(0.7580, 9, epoch_num=2)
    record = measure(tmp_path, inner, "resnet", "2.0", runs=5)
    assert (record["quality_check"], record["n_success"]) == ("reached", 5)
    assert record["quality_reached"] == 0.76


def test_a_missed_target_is_named_and_does_not_matter_in_the_open_division(tmp_path: Path) -> None:
    missed = log(13, inner=evaluation(9, 0.7, epoch_num=1))
    entry(tmp_path, [*FOUR, missed])
    _, runs, findings = score_one(tmp_path)
    reason = "did not reach the quality target: top-1 accuracy 0.7, the target is 0.759"
    assert (runs[4]["reason"], findings) == (
        reason,
        [f"{PLACE}/resnet/result_4.txt: does not count: {reason}"],
    )
    put(tmp_path, "ACME/systems/acme1.json", SYSTEM | {"division": "open"})
    record, runs, _ = score_one(tmp_path)
    assert (runs[4]["counted"], record["quality_check"]) == (True, "missed")


def test_submitter_as_printed_and_as_folder(tmp_path: Path) -> None:
    entry(tmp_path, FIVE, submitter="SUPERMICRO", described=SYSTEM | {"submitter": "Supermicro"})
    record, _, _ = score_one(tmp_path)
    assert (record["submitter"], record["submitter_folder"]) == ("Supermicro", "SUPERMICRO")
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
    findings = texts(score(tmp_path))
    assert findings == [
        f"{PLACE}/resnet: has 1 logs twice: result_4.txt has the bytes of result_0.txt",
        f"Other/results/acme1/resnet: 1 of its logs are also those of {PLACE}/resnet",
    ]


def test_finding_of_a_system_is_listed_once(tmp_path: Path) -> None:
    described = SYSTEM | {"status": "soon"}
    entry(tmp_path, FIVE, described=described)
    entry(tmp_path, FIVE, "ssd", name="acme1b", described=described)
    (tmp_path / "ACME/results/acme1b/ssd").rename(tmp_path / "ACME/results/acme1/ssd")
    findings = texts(score(tmp_path))
    message = "ACME/systems/acme1.json: status is not a known availability: 'soon'"
    assert findings.count(message) == 1


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
    for each, present in zip(complete.entries, (4, 0), strict=True):
        record = entry_record(each)
        assert (record["n_runs"], record["logs_present"]) == (present, present)
        assert (record["minutes"], record["logs_missing"]) == (None, 1)
        assert record["no_score_reason"] == "logs missing in our copy"
    message = "logs missing in our copy: 1; it has no score"
    assert f"{PLACE}/resnet: {message}" in texts(complete)


def node(
    *readings: tuple[float, float],
    start: float = 0,
    stop_: float | None = 60,
    efficiency: float = 1,
) -> bytes:
    """Write a power log; times are in seconds."""

    def write(key: str, at: float, value: object) -> bytes:
        return line(key, at / 60, value)

    ends = b"" if stop_ is None else write("power_measurement_stop", stop_, None)
    measured = b"".join(write("power_reading", at, watts) for at, watts in readings)
    return (
        write("conversion_eff", -1, efficiency)
        + write("power_measurement_start", start, None)
        + measured
        + ends
    )


@pytest.mark.parametrize(
    ("files", "watts", "problem"),
    [
        ({"node_0.txt": node((30, 1000), (60, 2000))}, 1500, None),
        ({"node_0.txt": node((30, 1000), (60, 2000), efficiency=0.5), "node_1.txt": node((60, 100))}, 850, None),
        ({"node_0.txt": node((60, 100)), "sw_0.txt": line("interconnect_power_est", 0, 7)}, 107, None),
        # readings after the stop are not part of it
        ({"node_0.txt": node((30, 300), (90, 100))}, 150, None),
        ({"node_0.txt": node((30, 300), (60, 100), stop_=None)}, 200, None),
        ({"node_0.txt": node((30, 300), stop_=0)}, None, f"node_0.txt: {STOPPED}"),
        ({"node_0.txt": line("power_reading", 1, 7)}, None, "node_0.txt: has no power_measurement_start"),
        ({"node_0.txt": node((60, "7"))}, None, "node_0.txt: power_reading is not a number: '7'"),  # type: ignore[arg-type]
        ({"sw_0.txt": line("interconnect_power_est", 0, 7)}, None, "has no power log of a node"),
    ],
)  # fmt: skip
def test_power_by_the_official_rule(
    files: dict[str, bytes], watts: float | None, problem: str | None
) -> None:
    power = read_power({name: [data] for name, data in files.items()})
    assert (power.watts, power.problem) == (pytest.approx(watts) if watts else None, problem)


def test_energy_is_averaged_over_the_runs_of_the_score(tmp_path: Path) -> None:
    """By hand: 600, 660, 720, 780 and 1200 s at 1 to 5 kW; the kept ones are 1.32, 2.16 and 3.12
    MJ.
    """
    folder = entry(tmp_path, FIVE, scaling={"scaling_factor": 1.5})
    for run in range(5):
        put(folder, f"power/result_{run}/node_0.txt", node((60, 1000 * (run + 1))))
    put(folder, "power/result_0/total_power.txt", b"ignored")
    record, runs, _ = score_one(tmp_path)
    assert [run["energy_j"] for run in runs] == pytest.approx([0.6e6, 1.32e6, 2.16e6, 3.12e6, 6e6])
    assert record["energy_j"] == pytest.approx(1.5 * 2.2e6)
    (folder / "power/result_2/node_0.txt").write_bytes(node((30, 300), stop_=0))
    record, _, findings = score_one(tmp_path)
    assert (record["energy_j"], record["minutes"]) == (None, 18.0)
    message = f"its energy is unknown: node_0.txt: {STOPPED}"
    assert findings == [f"{PLACE}/resnet/result_2.txt: {message}"]
