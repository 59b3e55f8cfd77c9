"""The claims ledger over the real documents: verdicts follow from figures, and from nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from claims_support import CHARTS, PAGE, change, claims_folder, ledger_of, rewrite_sql, tables_of
from conftest import RAW, Ask, copy_raw, edit, run_cli
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.recompute.verdict import BOUNDED, HOLDS, NONE_AGREES, outcome, verdict
from ipu_results.schema import table

FIGURES = st.floats(0.01, 1e6)
TOLERANCES = st.sampled_from([0.5, 0.05, 0.005])
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


# verdicts by rule


def test_the_words_of_the_schema_are_those_of_the_rules() -> None:
    assert set(HOLDS) == set(table("claims").choices("relation"))
    outcomes = (["agrees"], ["exceeds"], ["agrees", "differs"], *([one] for one in NONE_AGREES))
    assert {verdict(found, internal) for found in outcomes for internal in (False, True)} == set(
        table("claims").choices("verdict")
    )
    assert {"agrees", "exceeds", *NONE_AGREES} == set(table("recomputations").choices("outcome"))


@pytest.mark.parametrize(
    ("relation", "claimed", "tolerance", "inside", "outside"),
    [
        ("eq", 3.7, 0.05, (3.66, 3.74), (3.64, 3.76)),
        ("rounded-or-cut", 17, 0.5, (16.5, 17.99), (16.49, 18.0)),
        ("more-than", 5, 0, (5.01, 500), (5, 4.9)),
        ("less-than", 3, 0, (2.99, 0), (3, 3.1)),
        ("just-over", 9, 1, (9, 9.99), (8.99, 10)),
        ("at-most", 300, 0.5, (300, 1), (300.1, 301)),
    ],
)
def test_a_relation_holds_within_its_bounds(
    relation: str, claimed: float, tolerance: float, inside: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    for basis in ("own", "internal"):
        assert {outcome(basis, relation, value, claimed, tolerance) for value in inside} == {"agrees"}
        assert {outcome(basis, relation, value, claimed, tolerance) for value in outside} == {"differs"}


@pytest.mark.parametrize(
    ("relation", "values"),
    [
        ("eq", {16.4: "falls-short", 16.6: "agrees", 17.4: "agrees", 17.6: "exceeds"}),
        ("rounded-or-cut", {16.4: "falls-short", 17.63: "agrees", 18.0: "exceeds"}),
        ("more-than", {16.9: "falls-short", 17.0: "falls-short", 17.1: "exceeds"}),
    ],
)
def test_a_later_sdk_bounds_from_above(relation: str, values: dict[float, str]) -> None:
    assert {value: outcome("later-sdk", relation, value, 17.0, 0.5) for value in values} == values


@given(st.sampled_from(BOUNDED), FIGURES, FIGURES, TOLERANCES)
def test_an_outcome_of_a_later_sdk_never_falls_as_the_value_grows(
    relation: str, one: float, other: float, tolerance: float
) -> None:
    order = ["falls-short", "agrees", "exceeds"]
    told = [order.index(outcome("later-sdk", relation, value, 100.0, tolerance)) for value in sorted((one, other))]
    assert told == sorted(told)


@pytest.mark.parametrize(
    ("internal", "outcomes", "expected"),
    [
        (False, ["agrees", "agrees"], "confirmed"),
        (True, ["agrees"], "confirmed-internally"),
        (False, ["agrees", "differs"], "depends-on-baseline"),
        (True, ["differs", "agrees"], "depends-on-baseline"),
        (False, ["differs"], "contradicted"),
        (True, ["differs", "differs"], "contradicted"),
        (False, ["exceeds"], "not-recomputable"),
        (True, ["agrees", "exceeds"], "not-recomputable"),
        (False, ["falls-short", "falls-short"], "not-supported"),
        (False, ["falls-short", "exceeds"], "depends-on-baseline"),
        (True, ["agrees", "falls-short"], "depends-on-baseline"),
    ],
)
def test_a_verdict_depends_on_the_outcomes(internal: bool, outcomes: list[str], expected: str) -> None:
    assert verdict(outcomes, internal) == verdict(outcomes[::-1], internal) == expected


# the real ledger


def test_every_claim_of_the_five_documents_is_there(ask: Ask) -> None:
    found = dict(ask("SELECT document_id, count(*) FROM claims GROUP BY 1"))  # type: ignore[arg-type]
    assert found == {
        "graphcore-mk2-blog-2020-12-09": 22,
        "graphcore-mk2-charts-sdk-1.4": 21,
        "graphcore-mlperf-v1.0-blog-2021-06-30": 33,
        "graphcore-performance-2023-07-04": 14,
        "qwant-c2-report-2020-02-28": 26,
    }


BY_HAND: dict[str, tuple[str, list[float]]] = {
    "sdk14-mcmc-speedup-17": ("confirmed-internally", [48 * 3600 / (200 * 49)]),
    "sdk14-mcmc-speedup-27": ("not-supported", [48 * 3600 / (200 * 49)]),
    "blog2020-resnext101-inference-throughput": (
        "depends-on-baseline",
        [
            *(4483 / a100 for a100 in (86.02, 107.46, 111.07, 127.96)),
            *(3395 / a100 for a100 in (86.02, 107.46, 111.07, 127.96)),
        ],
    ),
    "sdk14-resnext101-training-throughput": ("not-supported", [2514 / 908.4]),
    "blog2020-resnet50-inference-peak": ("not-supported", [50883, 40085]),
    "sdk14-efficientnet-b4-training-standard": ("confirmed-internally", [581 / 58, 595 / 58]),
    "mlperf2021-bert-pod64-minutes": ("depends-on-baseline", [11.07585, 9.392079166666667]),
    "mlperf2021-resnet50-pod64-minutes": ("confirmed", [14.48462777777778]),
    "sdk14-bert-large-training-time": (
        "depends-on-baseline",
        [
            14189 / 2871.89,
            4003 / 572.112,
            (7038 * 65536 / 2871.89 + 1564 * 32768 / 572.112) / (7038 * 65536 / 14189 + 1564 * 32768 / 4003),
        ],
    ),
    "qwant2020-latency-proportional": ("contradicted", [4.75 / 1.36]),
    "qwant2020-highest-throughput": ("confirmed-internally", [2526.35]),
}


@pytest.mark.parametrize("claim_id", BY_HAND)
def test_a_recomputation_gives_what_hand_arithmetic_gives(claim_id: str, ask: Ask) -> None:
    expected, values = BY_HAND[claim_id]
    found = ask(f"SELECT value FROM recomputations WHERE claim_id = '{claim_id}' ORDER BY position")
    assert [value for (value,) in found] == pytest.approx(values, rel=1e-9)
    assert ask(f"SELECT verdict FROM claims WHERE claim_id = '{claim_id}'") == [(expected,)]


@pytest.mark.parametrize(
    ("claim_id", "minutes"), [("mlperf2021-resnet50-per-dollar", "resnet"), ("mlperf2021-bert-per-dollar", "bert")]
)
def test_per_dollar_is_the_quotient_of_the_official_minutes_and_the_blog_prices(
    claim_id: str, minutes: str, ask: Ask
) -> None:
    entries = f"FROM mlperf_entries WHERE round = '1.0' AND division = 'closed' AND benchmark = '{minutes}'"
    [(gpu,)] = ask(f"SELECT minutes {entries} AND submitter = 'NVIDIA' AND accelerators = 8")
    [(ipu,)] = ask(f"SELECT minutes {entries} AND submitter = 'Graphcore' AND accelerators = 16")
    [(value,)] = ask(f"SELECT value FROM recomputations WHERE claim_id = '{claim_id}'")
    assert value == pytest.approx(gpu * 300_000 / (ipu * 149_995), rel=1e-12)  # type: ignore[operator]
    assert ask(f"SELECT verdict FROM claims WHERE claim_id = '{claim_id}'") == [("confirmed-internally",)]


def test_the_40_times_is_reached_by_some_rows_and_by_none_that_ran_the_larger_network(ask: Ask) -> None:
    """The best ratio of the PyTorch row, 39.47, prints as 39."""
    found = ask(
        "SELECT outcome, baseline LIKE '%32x8d%' FROM recomputations"
        " WHERE claim_id = 'blog2020-resnext101-inference-throughput' ORDER BY position"
    )
    small = [("exceeds", False), ("exceeds", False), ("agrees", False), ("falls-short", False)]
    assert found == [*small, *[("falls-short", True)] * 4]


def test_figures_of_another_sdk_are_never_the_claims_own(ask: Ask) -> None:
    """The release stands in the baseline of each value that rests on the page."""
    release = "regexp_extract(r.baseline, 'SDK (2[0-9.]+)', 1)"
    wrong = f"c.basis <> 'later-sdk' AND {release} <> '' AND {release} IS DISTINCT FROM c.sdk_version"
    assert ask(f"SELECT DISTINCT claim_id FROM claims c JOIN recomputations r USING (claim_id) WHERE {wrong}") == []
    assert ask("SELECT count(*) > 15 FROM claims WHERE basis = 'later-sdk'") == [(True,)]


def test_json_and_table_hold_the_same_values(ask: Ask) -> None:
    for claim_id, recomputed in ask("SELECT claim_id, recomputed FROM claims"):
        rows = ask(
            f"SELECT value, baseline, arithmetic FROM recomputations WHERE claim_id = '{claim_id}' ORDER BY position"
        )
        assert [tuple(one.values()) for one in json.loads(str(recomputed))] == rows


def test_a_claim_is_recomputed_or_says_why_not(ask: Ask) -> None:
    assert ask(
        "SELECT count(*) FROM claims WHERE (verdict = 'not-recomputable') <> (not_recomputable IS NOT NULL)"
    ) == [(0,)]
    values = "claim_id IN (SELECT claim_id FROM recomputations)"
    assert ask(f"SELECT count(*) FROM claims WHERE (recomputation IS NOT NULL) <> ({values})") == [(0,)]
    assert ask("SELECT count(*) FROM claims WHERE (recomputation IS NULL) <> (recomputation_sql IS NULL)") == [(0,)]


def test_every_recomputation_finds_its_rows_and_each_once(ask: Ask) -> None:
    assert ask("SELECT count(*) FROM claims WHERE recomputation IS NOT NULL AND recomputed = '[]'") == [(0,)]
    repeated = "SELECT claim_id FROM recomputations GROUP BY claim_id, baseline, arithmetic HAVING count(*) > 1"
    assert ask(repeated) == []


def test_a_tolerance_is_half_a_unit_of_the_last_printed_digit(ask: Ask) -> None:
    """Words and bounds apart, which have a tolerance of their own."""
    checked = 0
    strict = "relation IN ('eq', 'rounded-or-cut') AND recomputation IS NOT NULL"
    rows = ask(f"SELECT claim_id, figure, value, digits_tolerance FROM claims WHERE {strict}")
    for claim_id, figure, value, tolerance in rows:
        [*numbers] = NUMBER.findall(str(figure))
        if len(numbers) == 1 and float(numbers[0].replace(",", "")) == value:
            decimals = len(numbers[0].partition(".")[2])
            assert tolerance == pytest.approx(0.5 * 10**-decimals), claim_id
            checked += 1
    assert checked > 40


def test_contradictions_name_claims_that_are_there(ask: Ask) -> None:
    split = "SELECT unnest(string_split(claim_ids, ' ')) AS claim_id FROM contradictions"
    assert ask(f"SELECT count(*) FROM ({split}) ANTI JOIN claims USING (claim_id)") == [(0,)]
    needed = {"mcmc-17-and-27", "bert-minutes-open-and-closed", "bert-5.3-and-1.6"}
    assert needed <= {name for (name,) in ask("SELECT contradiction_id FROM contradictions")}


def test_the_tension_of_bert_is_a_third_fewer_samples(ask: Ask) -> None:
    [(told,)] = ask("SELECT recomputed FROM contradictions WHERE contradiction_id = 'bert-5.3-and-1.6'")
    values = [one["value"] for one in json.loads(str(told))]
    both = 1 - BY_HAND["sdk14-bert-large-training-time"][1][2] / (5.3 * 1.6)
    assert any(value == pytest.approx(both) for value in values)
    assert both == pytest.approx(1 / 3, abs=0.03)


def test_no_claim_of_a_document_is_prose_of_it(ask: Ask) -> None:
    assert max(len(str(claim)) for (claim,) in ask("SELECT claim FROM claims")) < 160


# a verdict follows the figures


@pytest.fixture(scope="module")
def frames(warehouse: Path) -> dict[str, pd.DataFrame]:
    return tables_of(warehouse)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return claims_folder(tmp_path)


def verdicts(raw: Path, frames: dict[str, pd.DataFrame]) -> dict[str, str]:
    return ledger_of(raw, frames)["claims"].set_index("claim_id")["verdict"].to_dict()


def test_the_ledger_apart_from_a_build_is_that_of_the_build(frames: dict[str, pd.DataFrame], ask: Ask) -> None:
    found = ledger_of(RAW, frames)
    assert found["claims"]["recomputed"].tolist() == [one for (one,) in ask("SELECT recomputed FROM claims")]


def test_another_figure_in_the_results_gives_another_verdict(folder: Path, frames: dict[str, pd.DataFrame]) -> None:
    """3.7 times 908.4 is 3361: a row that prints it agrees, and one that prints more says nothing."""
    results = frames["results"]
    row = (results["platform"] == "IPU-M2000") & (results["model"] == "ResNeXt101") & (results["task"] == "training")
    assert row.sum() == 1
    name, told = "sdk14-resnext101-training-throughput", {}
    for figure in (2514.0, 3361.1, 5000.0):
        changed = {**frames, "results": results.assign(throughput=results["throughput"].mask(row, figure))}
        told[figure] = verdicts(folder, changed)[name]
    assert told == {2514.0: "not-supported", 3361.1: "confirmed", 5000.0: "not-recomputable"}


def test_another_price_gives_another_verdict(folder: Path, frames: dict[str, pd.DataFrame]) -> None:
    """1.5504 prints as 1.6; with a DGX at 299,000 it is 1.545."""
    platforms = frames["platforms"]
    dearer = platforms["list_price_usd"].replace(300_000.0, 299_000.0)
    changed = {**frames, "platforms": platforms.assign(list_price_usd=dearer)}
    assert verdicts(folder, frames)["mlperf2021-resnet50-per-dollar"] == "confirmed-internally"
    assert verdicts(folder, changed)["mlperf2021-resnet50-per-dollar"] == "contradicted"


def test_another_claimed_figure_gives_another_verdict(folder: Path, frames: dict[str, pd.DataFrame]) -> None:
    change(folder, CHARTS, "sdk14-mcmc-speedup-17", value="19")
    change(folder, CHARTS, "sdk14-resnext101-training-throughput", value="2.5")
    found = verdicts(folder, frames)
    assert found["sdk14-mcmc-speedup-17"] == "not-supported"
    assert found["sdk14-resnext101-training-throughput"] == "not-recomputable"


def test_another_recomputation_gives_another_value(folder: Path, frames: dict[str, pd.DataFrame]) -> None:
    rewrite_sql(folder, "mcmc-speedup", "SELECT 27.0::DOUBLE AS value, 'b' AS baseline, 'a' AS arithmetic")
    found = verdicts(folder, frames)
    assert found["sdk14-mcmc-speedup-27"] == "confirmed"
    assert found["sdk14-mcmc-speedup-17"] == found["blog2020-mcmc-speedup"] == "not-recomputable"


def test_a_changed_page_changes_the_verdict_of_a_build(tmp_path: Path) -> None:
    """From the page's cell to the verdict through the real command."""
    raw = copy_raw(tmp_path / "raw", "runs")
    page = "graphcore/performance-2023-07-04.html"
    text = (raw / page).read_text(encoding="utf-8")
    assert text.count("20.66") == 1
    edit(raw, page, "20.66", "20.65")
    change(raw, PAGE, "page2023-mlperf-2.0-2045", figure="20.65", value="20.65")
    out = tmp_path / "warehouse"
    assert run_cli("ingest", "--raw", raw, "--warehouse", out).returncode == 0
    done = run_cli("claims", "page2023-mlperf-2.0-2045", "--format", "json", "--warehouse", out)
    assert json.loads(done.stdout)[0]["verdict"] == "confirmed"


def test_blog_and_chart_share_a_recomputation_and_not_a_baseline(ask: Ask) -> None:
    listed = "SELECT recomputation, list(verdict ORDER BY claim_id) FROM claims WHERE model = 'ResNeXt101' GROUP BY 1"
    shared = ask(listed)
    assert ("training-throughput-over-one-a100", ["depends-on-baseline", "not-supported"]) in shared


def test_every_recomputation_of_the_folder_is_used() -> None:
    folder = RAW / "claims"
    names = {path.stem for path in (folder / "sql").glob("*.sql")}
    sealed = {name for path in folder.glob("*.toml") for name in re.findall(r'"sql/([\w.-]+)\.sql"', path.read_text())}
    assert names == sealed


def test_no_verdict_rests_on_rows_that_were_published_after_the_claim_where_its_baseline_is_of_its_day(
    ask: Ask,
) -> None:
    """EfficientNet-B4: NVIDIA's rows of 2022 stand under a contradiction alone."""
    of = "FROM recomputations JOIN claims USING (claim_id) WHERE claim_id LIKE '%efficientnet-b4-training-%'"
    assert ask(f"SELECT count(*), count(*) FILTER (recomputations.baseline LIKE '%of 2022%') {of}") == [(8, 0)]
    [(told,)] = ask("SELECT recomputed FROM contradictions WHERE contradiction_id = 'latest-gpu-baseline'")
    assert "of 2022" in told


def test_a_gain_over_software_of_which_no_figure_is_at_hand_is_a_tension_and_no_verdict(ask: Ask) -> None:
    for claim, contradiction in (("resnet50", "resnet50-2.6-and-2.1"), ("bert", "bert-5.3-and-1.6")):
        assert ask(f"SELECT verdict FROM claims WHERE claim_id = 'mlperf2021-sdk-{claim}'") == [("not-recomputable",)]
        [(ids, told)] = ask(
            f"SELECT claim_ids, recomputed FROM contradictions WHERE contradiction_id = '{contradiction}'"
        )
        assert f"mlperf2021-sdk-{claim}" in ids.split()
        assert "value" in told


def test_what_rests_on_another_claim_is_confirmed_internally_whatever_its_basis(ask: Ask) -> None:
    """The 17x of the MCMC workload: seconds of the page, but the GPU's 48 hours are the vendor's own."""
    found = ask(
        "SELECT basis, verdict FROM claims WHERE claim_id IN ('blog2020-mcmc-speedup', 'sdk14-mcmc-speedup-17')"
    )
    assert found == [("later-sdk", "confirmed-internally")] * 2
    reads = r"regexp_matches(regexp_replace(recomputation_sql, '--[^\n]*', '', 'g'), '\bprinted\b')"
    assert ask(f"SELECT count(*) FROM claims WHERE verdict = 'confirmed' AND {reads}") == [(0,)]
