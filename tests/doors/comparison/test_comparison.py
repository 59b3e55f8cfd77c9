"""Compare figures with the record: ratios by hand, what is refused, what is implausible, and what
is not known.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ipu_results import compare
from ipu_results.doors.comparison import Comparison
from ipu_results.doors.comparison.report import format_comparisons
from ipu_results.doors.comparison.words import load_known_words
from ipu_results.doors.submission.refusals import load_submission_words
from ipu_results.errors import ComparisonError
from ipu_results.record.store.query import open_warehouse
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

from tests.cases import read_cases
from tests.conftest import ROOT, Query
from tests.doors.comparison.comparison_support import RESNET, compare_many, compare_one

EMULATED_RUN = ROOT / "raw" / "runs" / "20261121-141051-emulator-c2-0912"
STATED = read_cases(__file__, "stated.toml")
BERT_FP8 = {
    "model": "bert-base",
    "platform": "c600",
    "batch_size": 45,
    "precision": "fp8",
    "throughput": 4464,
}


def get_reasons(comparison: Comparison) -> str:
    return "\n".join(refusal.reason for refusal in comparison.refusals)


def test_ratio_is_that_of_the_nearest_printed_row(warehouse: Path) -> None:
    figures = {**RESNET, "throughput": 7800, "precision": "16.16", "framework": "tensorflow1"}
    other = {**RESNET, "throughput": 7800, "framework": "PyTorch"}
    other["variant"] = "higher throughput config"
    [comparison] = compare(warehouse=warehouse, **figures)
    same, pytorch = compare_many(warehouse, [figures, other])
    assert replace(comparison, expected={}) == same
    assert [match.group for match in comparison.matches] == ["vendor", "own", "emulated"]
    match = comparison.matches[0]
    assert match.row["platform"] == "IPU-M2000"
    assert match.row["batch_size"] == 4
    assert match.ratio.ratio == 7800 / 7152  # printed: 7,152 items/sec
    assert comparison.verdict.startswith(
        "plausible: 1.09 × the nearest row measured by the chip's maker (Graphcore"
    )
    assert comparison.peers == {"rows": 3, "throughput_low": 7152.0, "throughput_high": 9404.0}
    assert pytorch.matches[0].row["throughput"] == 9404.0


def test_same_machine_batch_and_precision_outweigh_everything_else(
    warehouse: Path, query: Query
) -> None:
    """Whatever framework, variant and SDK a row has, a row in the same set-up is nearer than any
    other.
    """
    printed = query("""
        SELECT platform, batch_size, throughput
        FROM results
        WHERE model = 'ResNet-50 v1.5'
            AND task = 'inference'
            AND platform LIKE '%2000'
            AND usable
    """)
    other = {"framework": "DGL", "sdk_version": "0", "variant": "?", "precision": "16.16"}
    runs = []
    for row in printed:
        figures = zip(("platform", "batch_size", "throughput"), row, strict=True)
        runs.append({"model": "resnet50", **other, **dict(figures)})
    for run, own in zip(runs, compare_many(warehouse, runs), strict=True):
        vendor = own.matches[0].row
        assert vendor["platform"] == run["platform"]
        assert vendor["batch_size"] == run["batch_size"]
        assert own.status == "plausible"


def test_intervals_of_both_sides_bound_the_ratio(warehouse: Path) -> None:
    first = compare(EMULATED_RUN, warehouse=warehouse)[0]
    independent = next(match for match in first.matches if match.group == "independent")
    throughput, latency = independent.ratios
    own = first.measurement
    assert own.latency_ms_low is not None
    assert own.latency_ms_high is not None
    assert throughput.low == pytest.approx(2000 / own.latency_ms_high / 1474.16)
    assert throughput.high == pytest.approx(2000 / own.latency_ms_low / 1474.16)
    assert latency.ratio == own.latency_ms / 1.36  # type: ignore[operator]
    assert latency.low == own.latency_ms_low / 1.36


def test_emulated_run_is_never_called_measured(warehouse: Path) -> None:
    for comparison in compare(EMULATED_RUN, warehouse=warehouse):
        assert comparison.verdict.startswith("emulated, not measured: ")
        for match in comparison.matches:
            differs = {own.what: (own.ours, own.theirs) for own in match.differences}
            assert differs["figures"] == ("emulated, not measured", "measured")
        # its own rows do not count
        assert not any(match.group == "emulated" for match in comparison.matches)


def test_emulated_row_settles_no_verdict(warehouse: Path) -> None:
    figures = {"model": "resnext101-32x4d", "platform": "c2", "batch_size": 2, "precision": "fp16"}
    comparison = compare_one(warehouse, **figures, throughput=1505)
    same = [match for match in comparison.matches if match.row["precision"] == "FP16"]
    assert [match.group for match in same] == ["emulated"]
    assert comparison.status == "other-conditions"


def test_row_left_out_in_doubt_is_named_with_its_rule_and_never_called_absent(
    warehouse: Path, query: Query
) -> None:
    run = {"model": "bert-large", "sequence_length": 128, "batch_size": 128, "precision": "fp16"}
    run |= {"platform": "1x H100-SXM-80GB", "throughput": 9000, "latency_ms": 14.2}
    [(result_id, reason)] = query("""
        SELECT r.result_id, f.message
        FROM results r
        JOIN flags f USING (result_id)
        WHERE f.rule = 'R47' AND r.platform = '1x H100-SXM-80GB' AND r.model = 'BERT-Large'
            AND r.batch_size = 128
    """)
    own, absent = compare_many(warehouse, [run, {**run, "batch_size": 100}])
    assert own.status == "other-conditions"
    assert own.verdict.endswith(
        "1 row of the same machine, batch size and precision is not compared with:"
        f" {result_id} (R47, suspect: {reason})"
    )
    assert "no row of the same machine, batch size and precision" in absent.verdict
    assert absent.verdict.endswith("its chip is A100-40GB, and that of the run H100-SXM-80GB")


def test_comparison_says_how_many_rows_are_not_usable(warehouse: Path, query: Query) -> None:
    own = compare_one(warehouse, **RESNET, throughput=7800)
    [(rows, usable)] = query("""
        SELECT count(*), count(*) FILTER (usable)
        FROM results
        WHERE model = 'ResNet-50 v1.5' AND task = 'inference'
    """)
    assert own.unusable.startswith(f"{rows - usable} of {rows} rows are not usable: ")
    assert f"of ResNet-50 v1.5 inference, {own.unusable}" in format_comparisons([own], "text")
    assert own.to_record()["unusable"] == own.unusable


def test_what_may_not_be_compared_is_refused_with_the_reason(warehouse: Path) -> None:
    cases = STATED["refused"]
    comparisons = compare_many(warehouse, [case["run"] for case in cases])
    for case, comparison in zip(cases, comparisons, strict=True):
        assert case["reason"] in get_reasons(comparison)
        for match in comparison.matches:
            assert match.row["task"] == comparison.measurement.task
            assert match.row["benchmark"] == comparison.measurement.benchmark
            assert not any(ratio.figure == "minutes" for ratio in match.ratios)


def test_mlperf_scores_are_compared_within_division_and_comparable_rounds(
    warehouse: Path, query: Query
) -> None:
    run = {"model": "resnet50", "task": "training", "platform": "bow pod16", "minutes": 21.0}
    run |= {"benchmark": "mlperf-training", "division": "closed"}
    rounds = [{**run, "mlperf_round": mlperf_round} for mlperf_round in ("2.0", "6.0")]
    closed, later = compare_many(warehouse, rounds)
    [match] = closed.matches
    entry = f"result_id = '{match.row['result_id']}'"
    [(division, minutes)] = query(f"SELECT division, minutes FROM mlperf_entries WHERE {entry}")
    assert division == "closed"
    assert match.ratio.ratio == pytest.approx(21.0 / minutes)
    assert "MLPerf division: closed / open" in get_reasons(closed)
    assert later.matches == ()
    with pytest.raises(ComparisonError, match="mlperf_round '99' is unknown"):
        compare_one(warehouse, **run, mlperf_round="99")  # MLCommons says nothing of it
    text = format_comparisons([closed], "text")
    assert "Unverified results have not been through an MLPerf® review" in text
    assert "cite as: MLPerf Training v2.0 closed resnet, Graphcore" in text


def test_operations_are_those_of_the_table_operation_counts(warehouse: Path, query: Query) -> None:
    counted = query("SELECT model, variant, macs FROM detail.operation_counts WHERE macs > 0")
    run = {"platform": "c600", "precision": "fp8", "throughput": 10}
    runs = [{**run, "model": model, "variant": variant} for model, variant, _ in counted]
    for stated in ({}, {"sequence_length": 100}, {"sequence_length": 384, "packed": True}):
        runs.append({**BERT_FP8, **stated})
    checks = [own.checks[1] for own in compare_many(warehouse, runs)]
    for (_, _, macs), check in zip(counted, checks, strict=False):
        assert check.value == pytest.approx(10 * macs * 2 / 1e12)
    unstated, uncounted, packed = checks[len(counted) :]
    assert "state sequence_length, counted are 128, 256, 384" in unstated.message
    assert "(SL100), which are counted for SL128, SL256, SL384 only" in uncounted.message
    assert "in packed sequences, whose lengths are not known" in packed.message


def test_figures_are_written_plainly(warehouse: Path) -> None:
    own = compare_one(warehouse, **RESNET, throughput=7_800_000, latency_ms=1000)
    text = format_comparisons([own], "text")
    assert "63791 TFLOP/s" in text
    assert "1950000 batches in flight" in text
    assert not re.search(r"\d[eE][+-]?\d\d\b(?!-)", re.sub(r"\br[0-9a-f]{16}\b", "", text))


@pytest.mark.parametrize(
    ("platform", "precision", "outcome"),
    [
        ("C600", "fp16", "doubtful"),  # ByteDance alone
        ("IPU-M2000", "fp16", "impossible"),
        # no source states BF16 of a C600: its bound is that of 16 bits, which nobody confirms
        ("C600", "bf16", "doubtful"),
    ],
)
def test_work_above_a_peak_of_one_source_is_doubted_and_not_refused(
    platform: str, precision: str, outcome: str, warehouse: Path
) -> None:
    run = {"model": "resnet50", "batch_size": 4, "throughput": 10_000_000}
    own = compare_one(warehouse, **run, platform=platform, precision=precision)
    [peak] = [check for check in own.checks if check.name == "peak of the chips"]
    assert peak.outcome == outcome
    if precision == "fp16":
        assert ("by one source alone" in peak.message) == (outcome == "doubtful")


def test_verdict_of_each_run(warehouse: Path) -> None:
    cases = STATED["judged"]
    comparisons = compare_many(warehouse, [case["run"] for case in cases])
    for case, own in zip(cases, comparisons, strict=True):
        assert own.status == case["status"], case
        for text in case.get("says", ()):
            assert text in own.verdict
        for text in case.get("does_not_say", ()):
            assert text not in own.verdict


def test_plausibility_by_hand(warehouse: Path) -> None:
    cases = STATED["checked"]
    runs = [{**RESNET, "throughput": 7800, **case["changes"]} for case in cases]
    for case, own in zip(cases, compare_many(warehouse, runs), strict=True):
        [made] = [made for made in own.checks if made.name == case["check"]]
        assert made.outcome == case["outcome"], case
        assert made.value == (pytest.approx(case["value"]) if "value" in case else None)
        is_impossible = case["outcome"] == "impossible"
        assert (own.status == "implausible") == is_impossible
        assert own.verdict.startswith(f"implausible: {made.name}: ") == is_impossible


def test_a_latency_is_compared_with_the_nearest_row_of_each_basis_where_none_is_stated(
    warehouse: Path,
) -> None:
    """0.52 ms is printed per batch (r6013660a177dead0), 1.66 ms of the same set-up with several
    batches in flight.
    """
    own = compare_one(warehouse, **RESNET, latency_ms=0.52)
    matches = [match.row for match in own.matches if match.group == "vendor"]
    vendor = {row["latency_basis"]: row["result_id"] for row in matches}
    assert vendor == {"per-batch": "r6013660a177dead0", "several-in-flight": "r9f9c88dbd0e35f60"}
    peers = own.peers["latency_ms"]
    assert peers["per-batch"] == {"rows": 1, "low": 0.52, "high": 0.52}
    assert peers["several-in-flight"]["low"] == 1.66
    assert "several-in-flight: 2 rows, 1.66 to 2.04 ms" in format_comparisons([own], "text")


COLUMNS = """
    framework platform model model_printed precision precision_printed item task phase
    latency_basis power_scope benchmark division origin
""".split()


def test_every_word_of_a_row_of_the_record_is_known_and_stays_as_it_is(
    query: Query, warehouse: Path
) -> None:
    with open_warehouse(warehouse) as connection:
        words = load_known_words(connection)
        submitted = load_submission_words(connection)
    for column in COLUMNS:
        field = column.removesuffix("_printed")
        # the spellings of a printed precision are one
        names = load_vocabulary().precision_names if column == "precision_printed" else {}
        values = query(f"SELECT DISTINCT {column} FROM results WHERE {column} IS NOT NULL")
        assert values
        for (value,) in values:
            expected = names.get(normalise_name(value), value)
            assert words.find(field, value) == submitted.find(field, value) == expected


def test_all_unknown_words_are_named_at_once_with_the_nearest(warehouse: Path) -> None:
    case = STATED["unknown"]
    with pytest.raises(ComparisonError) as caught:
        compare(**case["run"], warehouse=warehouse)
    assert [text for text in case["named"] if text not in str(caught.value)] == []


@pytest.mark.parametrize("case", STATED["wrong"], ids=lambda case: case["message"])
def test_wrong_figures_are_refused(case: dict[str, Any], warehouse: Path) -> None:
    with pytest.raises(ComparisonError, match=case["message"]):
        compare(**case["run"], warehouse=warehouse)


@pytest.mark.parametrize("variant", ["\udcff", "\ud800x"])
def test_text_that_is_not_unicode_is_refused(variant: str, warehouse: Path) -> None:
    with pytest.raises(ComparisonError, match="is not Unicode text; write it"):
        compare(**RESNET, throughput=1, variant=variant, warehouse=warehouse)


def test_comparison_against_one_machine_names_it_alone(warehouse: Path) -> None:
    """A Bow-2000 next to an A100 on BERT-Large: what is timed agrees, and where does not."""
    run = {"model": "bert-large", "sequence_length": 128, "batch_size": 8, "precision": "fp16"}
    run |= {"platform": "bow-2000", "latency_ms": 1.94, "latency_basis": "per-batch"}
    run["latency_scope"] = "host"
    [comparison] = compare(warehouse=warehouse, against="1x A100-40GB", **run)
    [match] = comparison.matches
    assert match.row["platform"] == "1x A100-40GB"
    assert match.row["latency_ms"] == 4.95
    differences = {own.what: (own.ours, own.theirs) for own in match.differences}
    assert differences["latency timed on"] == ("host", "device")
    assert differences["chips"] == ("4", "1")
    with pytest.raises(ComparisonError, match=r"platform 'A100' is unknown; the nearest"):
        compare(warehouse=warehouse, against="A100", **run)


@pytest.mark.parametrize(("chip", "is_unknown"), [("GC200", 0), ("h200", 0), ("banana", 1)])
def test_chip_without_a_peak_has_a_remark(warehouse: Path, chip: str, is_unknown: int) -> None:
    own = compare_one(warehouse, model="resnet50", batch_size=4, throughput=7800, chip=chip)
    assert " ".join(own.measurement.remarks).count("unknown here") == is_unknown
