"""Scores of the sets of measurements, and the bands that come from them."""

from __future__ import annotations

import tomllib
from dataclasses import astuple
from statistics import median

import pytest
from ipu_results.emulator.target import load_band

from benchmarks.emulator import bias, scores
from benchmarks.emulator.blind.predictions import FOLDER, hash_file
from benchmarks.emulator.scores import Score, check_coverage, fit_band, tabulate_scores


def make(network: str, measured: float, set_: str = "resnext") -> Score:
    return Score(set_, network, f"{network} {measured}", "ms", measured, 100.0)


def test_band_holds_the_nominal_share_of_further_rows() -> None:
    assert fit_band([float(at) for at in range(1, 20)]) == (2.0, 18.0)
    assert fit_band([3.0, 1.0, 2.0]) == (1.0, 3.0)


def test_coverage_leaves_the_network_out() -> None:
    others = [make("a", measured) for measured in (90, 95, 100, 105, 110)]
    held = check_coverage([*others, make("b", 112), make("b", 108)])
    assert [held[each] for each in held if each.network == "b"] == [False, True]
    assert not [each for each in held if each.network == "a"], "two rows are too few for a band"


def test_bias_is_the_share_of_predictions_that_are_too_fast() -> None:
    [row] = tabulate_scores([make("a", 110), make("a", 200), make("a", 80), make("a", 100)])
    assert row[:2] == ("resnext", "4")
    assert [float(cell) for cell in row[2:5]] == pytest.approx([17.0, 21.0, 50.0], abs=0.1)
    assert row[5] == "50 (15 to 85)"


def test_reason_stands_for_every_one_sided_set_that_chance_does_not_explain() -> None:
    known, one_sided = bias.read_reasons(), bias.list_one_sided(scores.read_rows())
    sure = {
        name
        for name, rows in one_sided.items()
        if bias.compute_sign_test([each.error < 0 for each in rows]) < 0.05
    }
    assert sure <= set(known) <= set(one_sided)
    assert {"train", "yolov4 latency"}.isdisjoint(one_sided)


def test_rows_of_a_reason_are_counted_apart() -> None:
    rows = [make("a", 110, "vertex"), make("b", 120, "vertex")]
    [line] = bias.tabulate_bias(rows)
    assert line[1:6] == (
        "100 (34 to 100)",
        "0.5",
        "2 of 2",
        "2: 100 % too fast, median -12.9 %",
        "",
    )
    assert bias.compute_sign_test([True] * 6) == pytest.approx(2 / 64)


@pytest.mark.slow
def test_exported_rows_are_those_of_the_present_model() -> None:
    now = [
        (*astuple(each)[:4], f"{each.measured:.6g}", f"{each.predicted:.6g}")
        for each in scores.score_all()
    ]
    assert [
        (*astuple(each)[:4], f"{each.measured:.6g}", f"{each.predicted:.6g}")
        for each in scores.read_rows()
    ] == now


def test_vertex_runs_are_within_two_percent() -> None:
    rows = list(scores.score_vertex())
    assert len(rows) == 128
    assert sum(abs(row.error) for row in rows) / len(rows) < 0.02
    assert {row.measured - 24 * -(-int(row.row[2:]) // 6) for row in rows} <= set(range(314, 333))


def test_fp8_products_take_half_of_the_time_of_fp16() -> None:
    rows = [row for row in scores.score_products() if row.set == "sdk-products fp8"]
    assert sorted(round(row.measured) for row in rows) == [5502, 7377, 8178, 22415, 26425, 28265]
    assert median(abs(row.error) for row in rows) < 0.04


@pytest.mark.parametrize("name", ["decoding.csv", "decoding-2.csv"])
def test_decoding_was_predicted_before_it_was_scored(name: str) -> None:
    sidecar = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    assert (sidecar["sha256"], sidecar["shapes_sha256"]) == (
        hash_file(FOLDER / name),
        hash_file(FOLDER / "decoding_shapes.csv"),
    )


def test_exported_rows_give_the_bands() -> None:
    rows = scores.read_rows()
    for kind in ("inference", "training of transformers", "training of convolutions"):
        expected = fit_band([each.ratio for each in rows if each.kind == kind])
        assert load_band(kind) == pytest.approx(expected, abs=0.001)
    held = check_coverage(rows)
    assert 0.75 <= sum(held.values()) / len(held) <= 0.88
