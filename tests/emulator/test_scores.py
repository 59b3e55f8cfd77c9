"""Scores on every row of the record that can be built, simpler models, and the bands."""

from __future__ import annotations

from dataclasses import astuple, replace
from itertools import chain
from statistics import mean, median

import pytest
from ipu_results.emulator.network import load_network
from ipu_results.emulator.target import load_target
from ipu_results.record.store.query import open_warehouse

from benchmarks.emulator import baselines, scores, sets
from benchmarks.emulator.rows import load_selectors, read_toml
from benchmarks.emulator.scores import Score, check_coverage, fit_band, summarise
from tests.conftest import COMMITTED


def make(document: str, measured: float, **named: object) -> Score:
    score = Score("inference", "set", document, "network", f"{measured}", "ms", measured, 100.0)
    return replace(score, **named)


def test_band_holds_the_nominal_share_of_further_rows() -> None:
    assert fit_band([at / 10 for at in range(1, 20)]) == (0.2, 1.8)
    assert fit_band([3.0, 2.0, 4.0]) == (1.0, 4.0)


def test_coverage_leaves_the_document_out() -> None:
    others = [make("a", measured) for measured in (90, 95, 100, 105, 110)]
    refused = make("b", 900, host_bound=True)
    held = check_coverage([*others, make("b", 112), make("b", 108), refused])
    assert [held[each] for each in held if each.document == "b"] == [False, True]
    assert not [each for each in held if each.document == "a"], "two rows are too few for a band"


def test_summary_of_errors_by_hand() -> None:
    assert summarise([0.1, -0.5, 0.3, 0.1]) == ("4", "20.0", "25.0", "44.0", "+0.0")
    assert summarise([]) == ("0", "", "", "", "")


def test_line_through_the_two_nearest_rows() -> None:
    rows = [make("a", 2.0 * size, series="s", size=size) for size in (1.0, 2.0, 4.0, 64.0)]
    rows.append(make("a", 7.0))
    assert [each.nearest for each in baselines.interpolate(rows)] == [2.0, 4.0, 8.0, 128.0, None]
    bent = [replace(row, measured=row.size**2) for row in rows[:3]]
    assert [each.nearest for each in baselines.interpolate(bent)] == [-2.0, 6.0, 10.0]


def test_numbers_are_multiplied_with_what_a_network_counts() -> None:
    work = baselines.Work(1e-3, 2e-6, 3e-6)
    numbers = baselines.Numbers(2.0, 100.0, 10.0)
    assert numbers.estimate(work) == pytest.approx(2e-3 + 2e-4 + 3e-5)
    assert (work + work).scale(0.5) == work
    program = load_network("resnet50")(1)
    target = load_target("m2000")
    counted = baselines.count_work(program, target)
    assert counted.peak == pytest.approx(program.macs / (64 * 1472 * 1.33e9))
    assert counted.operators == pytest.approx(len(program.operators) / 1.33e9)


def list_measured() -> set[str]:
    """List the networks whose throughput or latency on an IPU the record holds."""
    sql = """
        SELECT DISTINCT model_printed FROM results
        WHERE origin = 'published' AND regexp_matches(platform, 'IPU|Bow|GC2|^C2$|C600')
    """
    with open_warehouse(COMMITTED) as connection:
        return {name for (name,) in connection.execute(sql).fetchall()}


def test_every_network_measured_on_an_ipu_is_scored_or_left_out_with_a_reason() -> None:
    record = read_toml("record.toml")
    trained = read_toml("training_rows.toml")["rows"]
    built = {entry["model"] for entry in chain(record["cards"], record["pages"], trained)}
    built |= {each.model for each in load_selectors()}
    # those of CARAML, PopTransformer and Heidelberg, each scored by a function of its own
    built |= {"GPT-117M", "GPT2-XL", "ChatGLM-6B", "YOLOv4-P5"}
    left_out = record["networks"]
    assert list_measured() - built - left_out.keys() == set()
    assert left_out.keys() <= list_measured(), "a reason for a network that is not measured"


@pytest.mark.slow
def test_exported_rows_are_those_of_the_present_model() -> None:
    for exported, scored in zip(scores.read_rows(), sets.score_all(), strict=True):
        for ours, theirs in zip(astuple(exported), astuple(scored), strict=True):
            assert scores._format_value(ours) == scores._format_value(theirs)


def test_vertex_runs_are_within_two_percent() -> None:
    rows = list(sets.score_vertex())
    assert len(rows) == 128
    assert mean(abs(row.error) for row in rows) < 0.02
    assert {row.measured - 24 * -(-int(row.row[2:]) // 6) for row in rows} <= set(range(314, 333))


def test_fp8_products_take_half_of_the_time_of_fp16() -> None:
    rows = [row for row in sets.score_products() if row.set == "sdk-products fp8"]
    assert sorted(round(row.measured) for row in rows) == [5502, 7377, 8178, 22415, 26425, 28265]
    assert median(abs(row.error) for row in rows) < 0.1


def test_collectives_are_timed_by_hand() -> None:
    rows = {(row.set, row.row.split(" page")[0]): row for row in sets.score_collectives()}
    gathered = rows["citadel gather, bandwidth", "transfers=1216 message_bytes=160"]
    cycles = 1216 * 160 / 4 + 600
    assert gathered.predicted == pytest.approx(cycles / 1.6e9 * 1e6)
    assert gathered.measured == pytest.approx(1216 * 160 / 6.303e9 * 1e6)
    assert rows["citadel broadcast, latency", "tiles=1216"].measured == pytest.approx(0.194)
