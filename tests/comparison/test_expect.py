"""What a third party is expected to measure: conformal ranks, what differs by work, refusals, the
command.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ipu_results.comparison import compare
from ipu_results.comparison.expect import COVERAGES, DeviationModel, expect, measure_coverage
from ipu_results.comparison.report import format_comparisons
from ipu_results.errors import ComparisonError

from benchmarks.expect import bound_share
from tests.conftest import Query, run_cli


def make_pairs(*deviations: float, work: str = "A", party: str = "P") -> list[dict[str, Any]]:
    return [
        {
            "ratio": math.exp(own),
            "network": work,
            "party": party,
            "round": "1.0",
            "first_result_id": f"{work}{number}",
        }
        for number, own in enumerate(deviations)
    ]


def draw_parties(random: Random, count: int) -> list[dict[str, Any]]:
    """Draw parties of three pairs each; of one work they are off by ten times as much, of the other
    they agree.
    """
    return [
        pair
        for number in range(count)
        for work, spread in (("calm", 0.01), ("wild", 0.1))
        for pair in make_pairs(
            *(random.gauss(0, spread) for _ in range(3)), work=work, party=f"party {number}"
        )
    ]


@pytest.mark.parametrize(
    ("pairs", "nominal", "is_known"), [(19, 0.95, True), (18, 0.95, False), (4, 0.8, True)]
)
def test_so_many_pairs_are_enough_and_not_one_less(
    pairs: int, nominal: float, is_known: bool
) -> None:
    parties = [
        pair
        for number in range(pairs)
        for pair in make_pairs(0.01 * (number + 1), party=f"party {number}")
    ]
    arm = DeviationModel(parties, "party").get_arm(parties[0], nominal)
    assert (arm is not None) == is_known


def test_intervals_contain_as_many_pairs_of_a_new_party_as_they_say() -> None:
    random = Random(34)
    judged: dict[tuple[float, str], list[bool]] = {}
    for _ in range(60):
        *known, _, _, _, _, _, _ = everything = draw_parties(random, 12)
        model = DeviationModel(known, "party")
        for pair in everything[len(known) :]:
            for nominal in COVERAGES:
                arm = model.get_arm(pair, nominal)
                assert arm is not None
                judged.setdefault((nominal, pair["network"]), []).append(
                    abs(math.log(pair["ratio"]) - model.middle) <= arm
                )
    for nominal in COVERAGES:  # 360 each; only the coverage over all works is promised
        calm, wild = (judged[nominal, work] for work in ("calm", "wild"))
        assert sum(calm + wild) / len(calm + wild) == pytest.approx(nominal, abs=0.05)
        assert min(sum(calm) / len(calm), sum(wild) / len(wild)) > nominal - 0.15


def test_work_that_varies_more_has_a_wider_interval_and_an_unknown_one_is_between() -> None:
    model = DeviationModel(draw_parties(Random(1), 12), "party")
    calm, unknown, wild = (
        model.get_arm({"network": name, "first_result_id": ""}, 0.8)
        for name in ("calm", "", "wild")
    )
    assert calm < unknown < wild  # type: ignore[operator]
    assert wild > 3 * calm  # type: ignore[operator]


def test_party_has_no_say_in_the_interval_that_it_is_judged_by() -> None:
    pairs = [*draw_parties(Random(2), 9), *make_pairs(1.0, 1.1, 1.2, work="calm", party="odd")]
    covered = [
        is_covered
        for _, pair, is_covered, _ in measure_coverage(pairs, "party")
        if pair["party"] == "odd"
    ]
    assert covered == [False] * 6  # three pairs at two coverages


def test_a_lower_rate_is_a_longer_time(warehouse: Path, query: Query) -> None:
    """The middle of all ratios is below 1: others are slower, so more of a time's interval is above
    the figure.
    """
    [(result_id, minutes)] = query("""
        SELECT result_id, e.minutes FROM mlperf_entries e
        JOIN results r USING (result_id)
        WHERE round = '2.0' AND r.network LIKE 'RetinaNet%' AND company = 'NVIDIA' AND accelerators
        = 8
    """)
    [answer] = expect(result_id, warehouse=warehouse)
    assert (answer.figure, answer.unit) == (minutes, "minutes")
    narrow, wide = answer.intervals
    assert wide.low < narrow.low < minutes < narrow.high < wide.high
    assert narrow.high / minutes > minutes / narrow.low
    assert {pair["network"] for pair in answer.nearest[:3]} == {"RetinaNet-ResNeXt50"}
    assert all(own.pairs > 150 for own in answer.coverage)


def test_throughput_of_a_maker_has_an_interval_where_others_measured_alike(warehouse: Path) -> None:
    for answer in expect(
        model="resnet50", platform="bow-pod16", task="training", warehouse=warehouse
    ):
        assert answer.unit == "images/s"  # as compare prints it
        assert [own.nominal for own in answer.intervals] == [0.8]  # ten pairs
        assert ("too wide" in answer.summary) == (
            answer.intervals[0].high > 10 * answer.intervals[0].low
        )
        assert answer.intervals[0].low < answer.figure < answer.intervals[0].high
        assert any("too few for 95%" in remark for remark in answer.remarks)


def test_comparison_with_a_figure_of_a_maker_has_its_interval(warehouse: Path) -> None:
    [own] = compare(
        model="resnet50",
        platform="bow-pod16",
        task="training",
        throughput=30000,
        warehouse=warehouse,
    )
    [(result_id, expected)] = own.expected.items()
    assert expected == expect(result_id, warehouse=warehouse)[0]
    assert f"expected of a third party: {expected.summary}" in format_comparisons([own], "text")
    assert (
        own.to_record()["expected"][result_id]["intervals"][0]["low"] == expected.intervals[0].low
    )


def test_figure_without_a_pair_of_its_kind_is_refused(warehouse: Path, query: Query) -> None:
    [(result_id,)] = query(
        "SELECT result_id FROM inference WHERE publisher = 'Graphcore' ORDER BY 1 LIMIT 1"
    )
    with pytest.raises(
        ComparisonError, match="no pair of a maker and a third party for inference on IPUs"
    ):
        expect(result_id, warehouse=warehouse)
    [(result_id, company)] = query("""
        SELECT result_id, company FROM mlperf_entries
        WHERE company = 'Dell' AND minutes IS NOT NULL ORDER BY 1 LIMIT 1
    """)
    with pytest.raises(ComparisonError, match=f"{company} is not the maker"):
        expect(result_id, warehouse=warehouse)
    with pytest.raises(ComparisonError, match="no figure of a maker fits"):
        expect("nothing", warehouse=warehouse)
    with pytest.raises(ComparisonError, match="name a figure"):
        expect(warehouse=warehouse)


def test_command_prints_intervals_or_one_line(warehouse: Path) -> None:
    done = run_cli(
        "expect", "--model", "retinanet", "--round", "2.0", "--chips", 8, "--warehouse", warehouse
    )
    assert done.returncode == 0
    assert "80%" in done.stdout
    assert "rests on" in done.stdout
    done = run_cli(
        "expect",
        "--model",
        "retinanet",
        "--round",
        "2.0",
        "--format",
        "json",
        "--warehouse",
        warehouse,
    )
    assert {"intervals", "coverage", "nearest"} <= set(json.loads(done.stdout)[0])
    done = run_cli("expect", "--model", "resnet", "--warehouse", warehouse)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert run_cli("expect").returncode == 2


def test_binomial_interval_is_wilsons() -> None:
    assert bound_share(8, 10) == pytest.approx(
        (0.4902, 0.9433), abs=1e-4
    )  # Wilson (1927), z = 1.96
    assert bound_share(0, 5)[0] == pytest.approx(0)
