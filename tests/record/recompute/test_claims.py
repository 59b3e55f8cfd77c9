"""Claims over the real documents: verdicts follow from the figures, and change with them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import duckdb
import pytest
from ipu_results.errors import DamagedDocumentError

from tests.conftest import RAW, Query
from tests.record.recompute.claims_support import (
    BLOG,
    CHARTS,
    change_row,
    copy_claims,
    evaluate,
    open_tables,
    write_sql,
)

Engine = duckdb.DuckDBPyConnection
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
MLPERF_BLOG = "graphcore-mlperf-v1.1-blog-2021-12-01.csv"
MCMC = 48 * 3600 / (200 * 49)


# the real claims


BY_HAND: dict[str, tuple[str, list[float]]] = {
    "sdk14-mcmc-speedup-17": ("depends-on-reading", [MCMC, 200 * MCMC]),
    "sdk14-mcmc-speedup-27": ("depends-on-reading", [MCMC, 200 * MCMC]),
    "blog2020-resnext101-inference-throughput": (
        "not-recomputable",
        [ipu / a100 for ipu in (4483, 3395) for a100 in (86.02, 107.46, 111.07, 127.96)],
    ),
    "sdk14-resnext101-training-throughput": (
        "not-supported",
        [2514 / a100 for a100 in (908.4, 300.42, 1132, 371)],
    ),
    "blog2020-resnet50-inference-peak": ("not-supported", [50883, 40085]),
    "blog2020-m2000-over-dgx-a100": (
        "contradicted",
        [
            2.6 * 1240.81 / 9604.92,
            2.6 * 2375 / 17400,
            3.7 * 908.4 / 6887.59,
            3.7 * 1132 / 8500,
        ],
    ),
    "sdk14-bert-large-inference-throughput": (
        "last-digit-differs",
        [2071 / (1000 / latency) for latency in (1.6, 1.87)],
    ),
    "mlperf2021-sdk-efficientnet": (
        "not-recomputable",
        [ipu / (18 * 58) for ipu in (1618, 1400)],
    ),
    "blog2020-efficientnet-b0-inference-throughput": (
        "circular",
        [16 * 4 * depth for depth in (8686 * 0.44 / 4000, 1, 8289 * 1.43 / 4000)],
    ),
    "qwant2020-power": (
        "depends-on-reading",
        [
            1474.16 / 6.51,
            2063.03 / 7.8,
            2131.01 / 7.87,
            2409.79 / 9.07,
            2421.82 / 9.68,
            2526.35 / 9.49,
            2131.01 / 7.87,
        ],
    ),
    "sdk14-efficientnet-b4-training-standard": ("circular", [581 / 58, 595 / 58]),
    "mlperf2021-bert-pod64-minutes": ("depends-on-division", [11.07585, 9.392079166666667]),
    "mlperf2021-resnet50-pod64-minutes": ("confirmed", [14.48462777777778]),
    "sdk14-bert-large-training-time": (
        "reached-by-later-sdk",
        [
            14189 / 2871.89,
            4003 / 572.112,
            (7038 * 65536 / 2871.89 + 1564 * 32768 / 572.112)
            / (7038 * 65536 / 14189 + 1564 * 32768 / 4003),
        ],
    ),
    "qwant2020-latency-proportional": (
        "depends-on-reading",
        # the line through the six rows has a fixed part of 18.32 / 6 - 7 * 24.02 / 70
        [4.75 / 1.36, (4.75 - 18.32 / 6 + 2.402) / (1.36 - 18.32 / 6 + 2.402)],
    ),
    "mlperf2021-sdk-updates": ("depends-on-reading", [3, 2]),
    "mlperf2021-mlperf-results": ("confirmed", [6]),
    "qwant2020-memory-bandwidth": ("depends-on-reading", [45, 31.13]),
    "mlperf2021b-resnet50-over-dgx": ("confirmed", [29.146588888888886 / 28.334533333333336]),
    "mlperf2021b-bert-pod128-minutes": ("contradicted", [5.878697916666667]),
    "mlperf2021b-bert-pod16-gain": (
        "depends-on-division",
        [
            100 * (34.48876666666666 / 32.69675625 - 1),
            100 * (1 - 32.69675625 / 34.48876666666666),
            100 * (27.7538625 / 26.05019375 - 1),
            100 * (1 - 26.05019375 / 27.7538625),
        ],
    ),
    "mlperf2022-resnet50-over-dgx": (
        "depends-on-reading",
        [
            100 * (28.685377777777777 / 19.635155555555556 - 1),
            100 * (1 - 19.635155555555556 / 28.685377777777777),
        ],
    ),
    "qwant2020-highest-throughput": ("confirmed-internally", [2526.35]),
    "sdk14-efficientnet-b0-inference-latency": (
        "swapped-baseline",
        [7.88 / 0.44, 7.88 / 1.43, 9.09 / 0.44, 9.09 / 1.43],
    ),
    "blog2020-efficientnet-b0-inference-dominance": (
        "swapped-baseline",
        [8686 / 5253.19, 8289 / 5253.19, 8686 / 9729.85, 8289 / 9729.85],
    ),
    "sdk14-bert-large-training-linear-scaling": (
        "not-recomputable",
        [11159 / (2 * 2871.89), 2197.44 / (2 * 572.112)],
    ),
    "mlperf2021-dgx-height": ("confirmed", [264.0 / 44.45]),
    "mlperf2021-resnet50-servers": ("confirmed", [4.0]),
    "page2023-ogb-challenges": ("confirmed", [3.0]),
    "qwant2020-threads-per-core": ("confirmed", [6.0]),
    "qwant2020-power-equivalent": ("swapped-baseline", [300 / 300, 300 / 350, 300 / 450]),
}


@pytest.mark.parametrize("claim_id", BY_HAND)
def test_recomputation_gives_what_hand_arithmetic_gives(claim_id: str, query: Query) -> None:
    verdict, values = BY_HAND[claim_id]
    rows = query(
        f"SELECT value FROM recomputations WHERE claim_id = '{claim_id}' ORDER BY position"
    )
    assert [value for (value,) in rows] == pytest.approx(values, rel=1e-9)
    assert query(f"SELECT verdict FROM claims WHERE claim_id = '{claim_id}'") == [(verdict,)]


@pytest.mark.parametrize(
    ("claim_id", "benchmark"),
    [("mlperf2021-resnet50-per-dollar", "resnet"), ("mlperf2021-bert-per-dollar", "bert")],
)
def test_ratio_per_dollar_is_that_of_official_minutes_and_printed_prices(
    claim_id: str, benchmark: str, query: Query
) -> None:
    entries = (
        "FROM mlperf_entries"
        f" WHERE round = '1.0' AND division = 'closed' AND benchmark = '{benchmark}'"
    )
    [(gpu,)] = query(f"SELECT minutes {entries} AND submitter = 'NVIDIA' AND chip_count = 8")
    [(ipu,)] = query(f"SELECT minutes {entries} AND submitter = 'Graphcore' AND chip_count = 16")
    [(value,)] = query(f"SELECT value FROM recomputations WHERE claim_id = '{claim_id}'")
    assert value == pytest.approx(gpu * 300_000 / (ipu * 149_995), rel=1e-11)
    [(verdict,)] = query(f"SELECT verdict FROM claims WHERE claim_id = '{claim_id}'")
    assert verdict == "confirmed-internally"


def test_figures_of_another_sdk_are_never_the_claims_own(query: Query) -> None:
    # is in the baseline of each value of the page
    release = "regexp_extract(r.baseline, 'SDK (2[0-9.]+)', 1)"
    wrong = (
        f"c.basis <> 'later-sdk' AND {release} <> '' AND {release} IS DISTINCT FROM c.sdk_version"
    )
    joined = "claims c JOIN recomputations r USING (claim_id)"
    assert query(f"SELECT DISTINCT claim_id FROM {joined} WHERE {wrong}") == []
    assert query("SELECT count(*) > 15 FROM claims WHERE basis = 'later-sdk'") == [(True,)]


def test_json_of_claims_and_table_of_recomputations_hold_the_same(query: Query) -> None:
    rows = "SELECT claim_id, value, baseline, arithmetic FROM recomputations ORDER BY 1, position"
    stated = []
    for claim_id, recomputed in query("SELECT claim_id, recomputed FROM claims ORDER BY 1"):
        stated += [(claim_id, *value.values()) for value in json.loads(recomputed)]
    assert stated == query(rows)


@pytest.mark.parametrize(
    "wrong",
    [
        "(verdict = 'not-recomputable') <> (not_recomputable IS NOT NULL)",
        "(recomputation IS NOT NULL) <> (claim_id IN (SELECT claim_id FROM recomputations))",
        "(recomputation IS NULL) <> (recomputation_sql IS NULL)",
        "len(claim) >= 160",  # our own words, not the document's prose
        "verdict = 'confirmed' AND regexp_matches(recomputation_sql, '(FROM|JOIN) printed\\b')",
    ],
)
def test_claim_is_recomputed_or_has_a_reason(wrong: str, query: Query) -> None:
    assert query(f"SELECT claim_id FROM claims WHERE {wrong}") == []


def test_tolerance_is_half_a_unit_of_the_last_printed_digit(query: Query) -> None:
    """Words and bounds have a tolerance of their own."""
    checked = 0
    strict = "relation IN ('eq', 'rounded-or-cut') AND recomputation IS NOT NULL"
    for claim_id, figure, value, tolerance in query(
        f"SELECT claim_id, figure, value, digits_tolerance FROM claims WHERE {strict}"
    ):
        numbers = NUMBER.findall(figure)
        if len(numbers) == 1 and float(numbers[0].replace(",", "")) == value:
            decimals = len(numbers[0].partition(".")[2])
            assert tolerance == pytest.approx(0.5 * 10**-decimals), claim_id
            checked += 1
    assert checked > 40


def test_latency_with_several_batches_in_flight_judges_no_claim(query: Query) -> None:
    judged = """
        SELECT
            r.latency_basis = 'several-in-flight' AS several, p.not_counted IS NULL AS counts,
            count(*)
        FROM claims
        JOIN recomputations p USING (claim_id)
        JOIN detail.recomputation_inputs i ON i.claim_id = p.claim_id AND i.position = p.position
        JOIN results r ON i.table_name = 'results' AND r.result_id = i.key AND r.chip = 'GC200'
        WHERE claims.metric = 'latency'
        GROUP BY ALL
        HAVING several"""
    assert {counts for _, counts, _ in query(judged)} == {False}


def test_claims_of_one_figure_and_evidence_have_one_verdict(query: Query) -> None:
    """The values that count are the evidence. A sentence and its chart have both in common."""
    grouped = """
        SELECT count(*), max(len(claims)), max(len(verdicts))
        FROM (
            SELECT
                value, unit, counted, list(DISTINCT verdict) AS verdicts, list(claim_id) AS claims
            FROM (
                SELECT
                    c.claim_id, c.value, c.unit, c.verdict,
                    list(r.value ORDER BY r.value) FILTER (r.not_counted IS NULL) AS counted
                FROM claims AS c
                JOIN recomputations AS r USING (claim_id)
                GROUP BY ALL
            )
            GROUP BY value, unit, counted
        )
    """
    [(groups, most_claims, most_verdicts)] = query(grouped)
    assert groups > 50
    assert (most_claims > 1, most_verdicts) == (True, 1)
    pairs = """
        SELECT a.claim_id, a.verdict AS verdict, b.verdict AS verdict_of_chart
        FROM detail.claim_conditions AS i
        JOIN claims AS a USING (claim_id)
        JOIN claims AS b ON b.claim_id = i.taken_from
        WHERE a.value = b.value AND a.unit = b.unit
    """
    twins = query(pairs)
    assert len(twins) > 10
    assert [twin for twin in twins if twin[1] != twin[2]] == []


def test_margins_between_sdks_are_the_largest_measured_ones(query: Query) -> None:
    """What is near a claim lies within them, and what lies above or below speaks against it."""
    [(lowest, highest)] = query("""
        SELECT min(later.throughput / earlier.throughput), max(later.throughput /
        earlier.throughput)
        FROM detail.sdk_effect AS earlier JOIN detail.sdk_effect AS later
        ON later.oldest_result_id = earlier.oldest_result_id AND later.position > earlier.position
    """)
    assert 0.9 < lowest < 1 < highest < 1.2
    outcomes = query("""
        SELECT r.outcome, (r.value + c.digits_tolerance) / c.value, (r.value - c.digits_tolerance *
        1.2) / c.value
        FROM recomputations AS r JOIN claims AS c USING (claim_id)
        WHERE c.basis = 'later-sdk' AND r.outcome IN ('within-sdk-spread', 'falls-short', 'exceeds')
    """)
    assert {row[0] for row in outcomes} == {"within-sdk-spread", "falls-short", "exceeds"}
    for outcome, upper, lower in outcomes:
        is_within = upper >= lowest and lower <= highest
        assert is_within == (outcome == "within-sdk-spread")


def test_every_value_names_the_rows_that_it_used(query: Query) -> None:
    recomputations = query("SELECT DISTINCT recomputation FROM detail.recomputation_inputs")
    files = (RAW / "claims" / "sql").glob("*.sql")
    assert {name for (name,) in recomputations} == {path.stem for path in files}
    values = "SELECT claim_id, position FROM recomputations"
    inputs = "SELECT claim_id, position FROM detail.recomputation_inputs WHERE claim_id <> ''"
    assert query(f"({values}) EXCEPT ({inputs})") == query(f"({inputs}) EXCEPT ({values})") == []


def test_figures_of_the_arithmetic_are_those_of_the_inputs(query: Query) -> None:
    """Every recomputed quotient of two results has the figures of the results that it names."""
    rows = query("""
        SELECT r.claim_id, r.arithmetic, list(coalesce(s.throughput, -1) ORDER BY s.throughput DESC)
        FROM recomputations AS r
        JOIN detail.recomputation_inputs AS i USING (claim_id, position)
        JOIN results AS s ON i.table_name = 'results' AND s.result_id = i.key
        WHERE regexp_full_match(r.arithmetic, '[\\d.]+ / [\\d.]+ = [\\d.]+')
            AND r.claim_id LIKE '%-training-%'
        GROUP BY ALL
    """)
    assert len(rows) > 30
    for claim_id, arithmetic, figures in rows:
        quotient, _, _ = arithmetic.partition(" = ")
        assert {float(text) for text in quotient.split(" / ")} >= set(figures), claim_id


def test_minutes_and_speed_of_bert_contradict_each_other_by_a_third(query: Query) -> None:
    [(recomputed,)] = query(
        "SELECT recomputed FROM contradictions WHERE contradiction_id = 'bert-5.3-and-1.6'"
    )
    fewer_samples = 1 - BY_HAND["sdk14-bert-large-training-time"][1][2] / (5.3 * 1.6)
    assert fewer_samples == pytest.approx(1 / 3, abs=0.03)
    assert pytest.approx(fewer_samples) in [value["value"] for value in json.loads(recomputed)]


# a changed figure changes the verdict


def get_verdicts(raw: Path, engine: Engine) -> dict[str, str]:
    return evaluate(raw, engine)["claims"].set_index("claim_id")["verdict"].to_dict()


def test_evaluation_without_a_build_is_that_of_the_build(
    tmp_path: Path, engine: Engine, query: Query
) -> None:
    claims = evaluate(copy_claims(tmp_path), engine)["claims"]
    assert [*zip(claims["claim_id"], claims["verdict"], claims["recomputed"], strict=True)] == (
        query("SELECT claim_id, verdict, recomputed FROM claims")
    )


def test_another_figure_in_the_tables_changes_the_verdict(tmp_path: Path, warehouse: Path) -> None:
    """3.7 times 908.4 is 3361: a row that prints it agrees, and one that prints more proves
    nothing.
    """
    raw = copy_claims(tmp_path, CHARTS)
    row = "platform = 'IPU-M2000' AND model_printed = 'ResNeXt101' AND task = 'training'"
    expected = {3361.1: "reached-by-later-sdk", 5000.0: "exceeded-by-later-sdk"}
    with open_tables(warehouse) as engine:
        for figure, verdict in expected.items():
            changed = f"UPDATE warehouse.results SET throughput = {figure} WHERE {row}"
            assert engine.execute(changed).fetchall() == [(1,)]
            verdicts = get_verdicts(raw, engine)
            assert verdicts["sdk14-resnext101-training-throughput"] == verdict


def test_another_claimed_figure_or_recomputation_changes_the_verdict(
    tmp_path: Path, engine: Engine
) -> None:
    raw = copy_claims(tmp_path, BLOG, CHARTS)
    change_row(raw, CHARTS, "sdk14-mcmc-speedup-17", value="24")
    change_row(raw, CHARTS, "sdk14-resnext101-training-throughput", value="2.9")
    write_sql(
        raw,
        "mcmc-speedup",
        b"SELECT 27.0::DOUBLE AS value, 'b' AS baseline, 'a' AS arithmetic,"
        b" ['platforms:C2'] AS inputs",
    )
    verdicts = get_verdicts(raw, engine)
    # 2.77, within the slow-down
    assert verdicts["sdk14-resnext101-training-throughput"] == "nearly-reached-by-later-sdk"
    assert verdicts["sdk14-mcmc-speedup-27"] == "reached-by-later-sdk"
    assert verdicts["sdk14-mcmc-speedup-17"] == "reached-by-later-sdk"  # 27 over the changed 24
    assert verdicts["blog2020-mcmc-speedup"] == "exceeded-by-later-sdk"  # 27 over 17


# differences between official scores


@pytest.mark.slow
def test_runs_that_do_not_separate_turn_a_confirmed_gain_into_spread(
    tmp_path: Path, warehouse: Path
) -> None:
    raw = copy_claims(tmp_path, MLPERF_BLOG)
    with open_tables(warehouse) as engine:
        for expected in ("confirmed", "within-run-to-run-spread"):
            verdicts = get_verdicts(raw, engine)
            assert verdicts["mlperf2021b-resnet50-over-dgx"] == expected
            assert verdicts["mlperf2021b-resnet50-pod16-minutes"] == "confirmed"
            engine.execute("UPDATE warehouse.detail.mlperf_pair_tests SET p_value = 0.05")


def test_column_of_the_spread_is_boolean_or_absent(tmp_path: Path, engine: Engine) -> None:
    raw = copy_claims(tmp_path, MLPERF_BLOG)
    name = "mlperf-over-a-dgx-a100"
    sql = (raw / "claims" / "sql" / f"{name}.sql").read_bytes()
    write_sql(raw, name, sql.replace(b"tied AS within_spread", b"1 AS within_spread"))
    with pytest.raises(DamagedDocumentError, match=r"mlperf-over-a-dgx-a100\.sql"):
        get_verdicts(raw, engine)
