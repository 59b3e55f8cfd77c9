"""Figures that others measured, one a line: microbenchmarks and networks, with hostile lines
between them.
"""

from __future__ import annotations

from ipu_results.record.check.conservation import join_cells
from ipu_results.record.check.gate import gate_results
from ipu_results.record.normalise import NormalisedDocument
from ipu_results.schema.frames import to_pandas

from tests.cases import every_case
from tests.record.check.rules_support import load_dataset, run
from tests.record.read.reading_support import (
    list_numbers,
    list_results,
    normalise_table,
    rejections,
)

MICRO = {
    "device": "GC2",
    "device_count": "1",
    "operation": "matrix product",
    "shape": "n=512",
    "precision": "half",
    "metric": "arithmetic throughput",
    "statistic": "",
    "unit": "TFlops/s",
    "value": "58.2",
    "sdk_version": "1.0.49",
    "conditions": "",
    "place": "page 73, table 5.2, row 1",
}
NETWORK = {
    "model": "ResNet-50",
    "variant": "",
    "dataset": "ImageNet",
    "task": "training",
    "platform": "Some server",
    "chip": "GC200",
    "chip_count": "4",
    "framework": "PyTorch",
    "sdk_version": "3.0",
    "precision": "FP16",
    "batch_size": "256",
    "micro_batch_size": "4",
    "conditions": "real data",
    "metric": "throughput",
    "unit": "images/s",
    "value": "7,804",
    "power_scope": "",
    "place": "page 5, table 3, row 4",
}


def normalise_micro(*changes: dict[str, str]) -> NormalisedDocument:
    lines = ([*{**MICRO, **change}.values()] for change in changes)
    return normalise_table("microbenchmarks", "microbenchmarks", list(MICRO), *lines)


def normalise_networks(*changes: dict[str, str]) -> NormalisedDocument:
    lines = ([*{**NETWORK, **change}.values()] for change in changes)
    return normalise_table("comparators", "independent_results", list(NETWORK), *lines)


def flag(rule: str, *changes: dict[str, str]) -> list[tuple[int, str, str]]:
    """Return line, severity and message of the flags of a rule on lines of a document."""
    frame, [document] = gate_results([normalise_micro(*changes)], "microbenchmarks")
    cells = to_pandas(join_cells([document.cells]))
    flags = run(load_dataset() | {"microbenchmarks": frame, "cells": cells}, rule)
    lines = frame.rename(columns={"microbenchmark_id": "result_id"})
    hits = flags.merge(lines[["result_id", "row_number"]])
    told = hits[["row_number", "severity", "message"]]
    return sorted(told.itertuples(index=False, name=None))


def test_line_is_a_row_with_printed_and_canonical_value() -> None:
    line = normalise_micro({"unit": "GFlops/s", "value": "58,200"})
    frame, [document] = gate_results([line], "microbenchmarks")
    expected = {
        "value": 58200,
        "unit": "GFlops/s",
        "canonical_value": 58.2,
        "canonical_unit": "TFLOP/s",
        "chip": "GC2",
        "chip_count": 1,
        "precision": "FP16",
        "precision_printed": "half",
    }
    assert frame.iloc[0][list(expected)].to_dict() == expected
    cells = to_pandas(join_cells([document.cells])).set_index("column_name")
    said = cells.loc["value", ["raw_text", "value", "factor"]]
    assert said.tolist() == ["58,200", 58200, 0.001]
    assert set(cells["source_locator"]) == {MICRO["place"]}


@every_case(__file__, "hostile_figure")
def test_hostile_line_is_quarantined_alone(change: dict[str, str], reason: str) -> None:
    check_alone(normalise_micro({"shape": "n=256"}, change), reason)


@every_case(__file__, "hostile_network")
def test_hostile_network_line_is_quarantined_alone(change: dict[str, str], reason: str) -> None:
    check_alone(normalise_networks({"batch_size": "1"}, change), reason)


def check_alone(normalised: NormalisedDocument, expected: str) -> None:
    """Check that of two lines the second is rejected."""
    [(number, reason, _)] = rejections(normalised)
    assert (number, reason) == (2, expected)
    assert len(normalised.results) == 1


def test_repeated_key_with_another_value_is_refused_twice_and_a_copy_is_a_duplicate() -> None:
    refused = normalise_micro({}, {"value": "58.9"})
    assert [why for _, why, _ in rejections(refused)] == ["conflicting-rows"] * 2
    assert list_numbers(normalise_micro({}, {}), "duplicate") == [2]


def test_throughput_above_the_peak_is_an_error() -> None:
    """The peak of a GC2 is 124.5 TFLOP/s at 16 bits: GFLOP/s that are printed as TFLOP/s are above
    it.
    """
    assert flag("R30", {"value": "124.5"}, {"value": "58,200", "shape": "n=1"}) == [
        (2, "error", "58200 TFLOP/s; the peak of 1 × GC2 at half is 124.5")
    ]
    assert flag("R30", {"value": "125", "device_count": "2"}) == []
    printed = {"statistic": "theoretical", "device": "V100", "value": "125.0"}
    [(number, _, message)] = flag("R30", printed, {"device": "V100", "value": "126"})
    assert number == 2
    assert message == "126 TFLOP/s; the printed theoretical peak of 1 × V100 at half is 125"


def test_figure_a_thousand_times_its_neighbours_is_flagged() -> None:
    sweep = [{"shape": f"layer=a batch={size}", "value": str(size)} for size in (1, 2, 4, 8)]
    assert flag("R31", *sweep) == []
    sweep[2]["value"] = "4,000"
    [(number, severity, _)] = flag("R31", *sweep)
    assert (number, severity) == (3, "warn")
    one = {"shape": "transfers=1", "value": "6.34"}
    many = {"shape": "transfers=1216", "value": "7679.01"}
    assert flag("R31", one, many) == []


def test_two_figures_of_one_work_are_flagged() -> None:
    other = {"value": "58.9", "place": "page 72, table 5.1"}
    told = [(number, severity) for number, severity, _ in flag("R32", {}, other)]
    assert told == [(1, "warn"), (2, "warn")]
    assert flag("R32", {}, {"value": "58.24", "place": "page 72"}) == []
    assert flag("R32", {}, {**other, "conditions": "two mappings"}) == []


def test_share_times_number_is_the_total() -> None:
    total = {
        "operation": "gather",
        "metric": "latency",
        "unit": "us",
        "shape": "transfers=1216",
        "value": "1.361",
    }
    share = {**total, "unit": "ns", "statistic": "per transfer", "value": "1.119"}
    assert flag("R33", total, share) == []
    [(number, severity, message)] = flag("R33", total, {**share, "value": "1.361"})
    assert (number, severity) == (2, "warn")
    assert "1.361 ns × 1216 is 21.6% above 1.361 us" in message
    [(_, _, message)] = flag("R33", total, {**share, "unit": "us", "value": "1.361"})
    assert "1.361 us × 1216 is 1220 times 1.361 us" in message


def test_peak_is_the_largest_of_its_series() -> None:
    series = [
        {"shape": "n=512 batch=1", "value": "7.45"},
        {"shape": "n=512 batch=64", "value": "17.82"},
    ]
    peak = {"statistic": "peak over batches"}
    assert flag("R34", *series, {**peak, "value": "17.82"}) == []
    [(number, severity, message)] = flag("R34", *series, {**peak, "value": "15.04"})
    assert (number, severity) == (3, "warn")
    assert message.startswith("15.04 TFlops/s; at batch 64 it is 17.82")


def test_network_lines_of_one_configuration_are_one_result() -> None:
    energy = {
        "metric": "energy per item",
        "unit": "Wh",
        "value": "0.001",
        "power_scope": "card",
        "place": "page 6",
    }
    top1 = {"metric": "quality Top-1 accuracy", "unit": "%", "value": "75.9"}
    p99 = {"metric": "latency p99", "unit": "us", "value": "1500"}
    normalised = normalise_networks({}, energy, top1, p99, {"batch_size": "512"})
    assert not normalised.rejected
    first, second = list_results(normalised)
    expected = {
        "throughput": 7804.0,
        "energy_per_item_j": 3.6,
        "power_scope": "board",
        "quality_value": 75.9,
        "quality_metric": "Top-1 accuracy (%)",
        "latency_p99_ms": 1.5,
        "chip": "GC200",
        "chip_count": 4,
        "conditions": "real data",
        "task": "training",
    }
    assert {name: first.get(name) for name in expected} == expected
    assert (second["batch_size"], second.get("energy_per_item_j")) == (512, None)
    frame, [document] = gate_results([normalised])
    assert len(frame) == 2
    cells = to_pandas(join_cells([document.cells]))
    of_energy = cells[cells["column_name"] == "energy_per_item_j"]
    assert of_energy["source_locator"].tolist() == ["page 6"]


def test_scope_that_no_one_knows_is_refused() -> None:
    line = {"metric": "power", "unit": "W", "value": "300", "power_scope": "rack row"}
    frame, [document] = gate_results([normalise_networks({"batch_size": "8"}, line)])
    [rejected] = document.rejected
    assert (len(frame), rejected.reason) == (1, "power-scope-not-a-choice")
