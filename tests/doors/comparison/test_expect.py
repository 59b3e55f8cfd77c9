"""What a third party is expected to measure: conformal ranks, what differs by work, refusals, and
what `compare` says of it.
"""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

import pytest
from ipu_results.doors.comparison import compare, expect
from ipu_results.doors.comparison.expect import (
    COVERAGES,
    DeviationModel,
    Expectation,
    expect_rows,
    measure_coverage,
)
from ipu_results.doors.comparison.report import format_comparisons
from ipu_results.record.store.query import open_warehouse

from benchmarks.expect import bound_share
from tests.doors.comparison.comparison_support import RESNET


def make_pairs(*deviations: float, work: str = "A", party: str = "P") -> list[dict[str, Any]]:
    shared = {"model": work, "party": party, "round": "1.0"}
    pairs = []
    for number, deviation in enumerate(deviations):
        pair = {"ratio": math.exp(deviation), "first_result_id": f"{work}{number}"}
        pairs.append({**shared, **pair})
    return pairs


def draw_parties(random: Random, count: int) -> list[dict[str, Any]]:
    """Draw parties of three pairs each; of one work they are off by ten times as much, of the other
    they agree.
    """
    pairs = []
    for number in range(count):
        for work, spread in (("calm", 0.01), ("wild", 0.1)):
            deviations = [random.gauss(0, spread) for _ in range(3)]
            pairs += make_pairs(*deviations, work=work, party=f"party {number}")
    return pairs


@pytest.mark.parametrize(
    ("pairs", "nominal", "is_known"), [(19, 0.95, True), (18, 0.95, False), (4, 0.8, True)]
)
def test_so_many_pairs_are_enough_and_not_one_less(
    pairs: int, nominal: float, is_known: bool
) -> None:
    parties = []
    for number in range(pairs):
        parties += make_pairs(0.01 * (number + 1), party=f"party {number}")
    arm = DeviationModel(parties, "party").get_arm(parties[0], nominal)
    assert (arm is not None) == is_known


def test_intervals_contain_as_many_pairs_of_a_new_party_as_they_say() -> None:
    random = Random(34)
    judged: dict[tuple[float, str], list[bool]] = {}
    for _ in range(60):
        drawn = draw_parties(random, 12)
        model = DeviationModel(drawn[:-6], "party")
        for pair in drawn[-6:]:  # of the last party
            for nominal in COVERAGES:
                arm = model.get_arm(pair, nominal)
                assert arm is not None
                is_covered = abs(math.log(pair["ratio"]) - model.middle) <= arm
                judged.setdefault((nominal, pair["model"]), []).append(is_covered)
    for nominal in COVERAGES:  # 360 each; only the coverage over all works is promised
        calm = judged[nominal, "calm"]
        wild = judged[nominal, "wild"]
        assert mean(calm + wild) == pytest.approx(nominal, abs=0.05)
        assert min(mean(calm), mean(wild)) > nominal - 0.15


def test_work_that_varies_more_has_a_wider_interval_and_an_unknown_one_is_between() -> None:
    model = DeviationModel(draw_parties(Random(1), 12), "party")
    arms = {}
    for name in ("calm", "unknown", "wild"):
        arms[name] = model.get_arm({"model": name, "first_result_id": ""}, 0.8) or math.nan
    assert arms["calm"] < arms["unknown"] < arms["wild"]
    assert arms["wild"] > 3 * arms["calm"]


def test_party_has_no_say_in_the_interval_that_it_is_judged_by() -> None:
    pairs = [*draw_parties(Random(2), 9), *make_pairs(1.0, 1.1, 1.2, work="calm", party="odd")]
    judged = measure_coverage(pairs, "party")
    covered = [held_out.is_covered for held_out in judged if held_out.pair["party"] == "odd"]
    assert covered == [False] * 6  # three pairs at two coverages


def expect_one(warehouse: Path, where: str) -> Expectation | str:
    """Return what is expected of the one figure of a maker that fits."""
    with open_warehouse(warehouse) as connection:
        [answer] = expect_rows(connection, where).values()
    return answer


def test_a_lower_rate_is_a_longer_time(warehouse: Path) -> None:
    """The middle of all ratios is below 1: others are slower, so more of a time's interval is above
    the figure.
    """
    retinanet = "model LIKE 'RetinaNet%' AND mlperf_round = '2.0'"
    answer = expect_one(warehouse, f"{retinanet} AND company = 'NVIDIA' AND chip_count = 8")
    assert isinstance(answer, Expectation)
    assert answer.unit == "minutes"
    narrow, wide = answer.intervals
    assert wide.low < narrow.low < answer.figure < narrow.high < wide.high
    assert narrow.high / answer.figure > answer.figure / narrow.low
    assert {pair["model"] for pair in answer.nearest[:3]} == {"RetinaNet-ResNeXt50"}
    assert "minutes (80%), " in answer.summary
    assert "minutes (95%), from 219 pairs of 21 third parties. " in answer.summary
    assert all(own.pairs > 150 for own in answer.coverage)


def test_comparison_with_a_figure_of_a_maker_has_its_interval(warehouse: Path) -> None:
    run = {"model": "retinanet", "platform": "dgxa100_ngc22.04_pytorch", "minutes": 90}
    run |= {"benchmark": "mlperf-training", "division": "closed", "mlperf_round": "2.0"}
    [own] = compare(**run, warehouse=warehouse)
    [(result_id, expected)] = own.expected.items()
    assert isinstance(expected, Expectation)
    assert expected == expect_one(warehouse, f"result_id = '{result_id}'")
    assert [interval.nominal for interval in expected.intervals] == [0.8, 0.95]
    narrow, wide = expected.intervals
    assert wide.low < narrow.low < expected.figure < narrow.high < wide.high
    text = format_comparisons([own], "text")
    assert f"expected of a third party: {expected.summary}" in text
    assert "such intervals at 80%, made without a pair's party, contained" in text
    record = own.to_record()["expected"][result_id]
    assert record["intervals"][0]["low"] == expected.intervals[0].low
    assert {"coverage", "nearest", "remarks"} <= set(record)


def test_an_interval_that_tells_nothing_is_refused(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_warehouse(warehouse) as connection:
        known = expect_rows(connection, "model LIKE 'RetinaNet%'").values()
        monkeypatch.setattr(expect, "MAX_WIDTH", 2)
        refused = expect_rows(connection, "model LIKE 'RetinaNet%'").values()
    widths = []
    for answer in known:
        if isinstance(answer, Expectation):
            narrow = answer.intervals[0]
            assert narrow.low < answer.figure < narrow.high
            widths.append(narrow.high / narrow.low)
    assert max(widths) <= 3
    reasons = [answer for answer in refused if "the interval at 80% would span" in str(answer)]
    assert len(reasons) == sum(width > 2 for width in widths) > 0
    assert f"a factor of {max(widths):.1f}, above 2" in " ".join(map(str, reasons))


def test_few_pairs_of_disinterested_parties_are_no_interval(warehouse: Path) -> None:
    """A paper that two authors of the vendor signed is no third party's."""
    where = "model = 'ResNet-50 v1.5' AND platform = 'Bow Pod16' AND task = 'training'"
    with open_warehouse(warehouse) as connection:
        answers = expect_rows(connection, f"{where} AND throughput IS NOT NULL")
    assert answers
    assert all("has 3 pairs for training on IPUs" in str(answer) for answer in answers.values())


def test_comparison_says_why_nothing_is_known_of_a_third_party(warehouse: Path) -> None:
    [own] = compare(**RESNET, throughput=7800, warehouse=warehouse)
    [(result_id, reason)] = own.expected.items()
    assert isinstance(reason, str)
    assert "no pair of a maker and a third party for inference on IPUs" in reason
    assert f"expected of a third party: not known: {reason}" in format_comparisons([own], "text")
    assert own.to_record()["expected"] == {result_id: reason}


def test_figure_of_another_than_the_maker_has_no_interval(warehouse: Path) -> None:
    of_dell = "FROM mlperf_entries WHERE company = 'Dell' AND minutes IS NOT NULL"
    answer = expect_one(warehouse, f"result_id = (SELECT min(result_id) {of_dell})")
    assert "Dell is not the maker" in str(answer)


def test_binomial_interval_is_wilsons() -> None:
    # Wilson (1927), z = 1.96
    assert bound_share(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert bound_share(0, 5)[0] == pytest.approx(0)
