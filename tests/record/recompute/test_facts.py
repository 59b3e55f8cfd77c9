"""Facts of public sources, and the claims that are recomputed from them and from the A100 rows
taken in with them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cases import every_case
from tests.conftest import Query, copy_documents, edit, find_error

MACHINES = "facts/machines.csv"
BLOGS_OF_LATER_ROUNDS = (
    "('graphcore-mlperf-v1.1-blog-2021-12-01', 'graphcore-mlperf-v2.0-blog-2022-06-29')"
)
MAX_NOT_RECOMPUTABLE = 33
MAX_WITHOUT_VALUES = 23  # the others show some that do not count


@every_case(__file__, "invalid_fact")
def test_invalid_fact_stops_the_build(tmp_path: Path, old: str, new: str, message: str) -> None:
    raw = copy_documents(tmp_path / "raw", MACHINES)
    edit(raw, MACHINES, old, new)
    assert message in find_error(raw)


def test_fact_has_its_source_and_its_place(query: Query) -> None:
    fact = """
        SELECT value, unit, path, left(revision, 7), locator
        FROM detail.facts WHERE fact_id = 'gc2-threads-per-tile'
    """
    path = "lib/poplin/codelets/TransposeSupervisor.cpp"
    assert query(fact) == [(6.0, "threads", path, "d03f355", "line 5")]
    assert query("SELECT count(*), count(DISTINCT document_id) FROM detail.facts") == [(184, 8)]
    files = "path IS NOT NULL AND (revision IS NULL OR source_sha256 IS NULL)"
    assert query(f"SELECT count(*) FROM detail.facts WHERE {files}") == [(0,)]


@pytest.mark.parametrize(
    ("claim", "values"),
    [
        (
            "sdk14-efficientnet-b0-inference-latency",
            [7.88 / 0.44, 7.88 / 1.43, 9.09 / 0.44, 9.09 / 1.43],
        ),
        (
            "blog2020-efficientnet-b0-inference-dominance",
            [8686 / 5253.19, 8289 / 5253.19, 8686 / 9729.85, 8289 / 9729.85],
        ),
        (
            "sdk14-bert-large-training-linear-scaling",
            [11159 / (2 * 2871.89), 2197.44 / (2 * 572.112)],
        ),
        ("mlperf2021-dgx-height", [264.0 / 44.45]),
        ("mlperf2021-resnet50-servers", [4.0]),
        ("page2023-ogb-challenges", [3.0]),
        ("qwant2020-threads-per-core", [6.0]),
        ("qwant2020-power-equivalent", [300 / 300, 300 / 350, 300 / 450]),
    ],
)
def test_claim_gives_what_hand_arithmetic_gives(
    query: Query, claim: str, values: list[float]
) -> None:
    [(recomputed,)] = query(f"SELECT recomputed FROM claims WHERE claim_id = '{claim}'")
    assert [item["value"] for item in json.loads(recomputed)] == pytest.approx(values, rel=1e-9)


def test_mlperf_bert_is_a_small_share_of_a_whole_pre_training(query: Query) -> None:
    """2,714,134.625 samples of POD16 at 512 tokens, over 7,038 x 65,536 x 128 and 1,564 x 32,768 x
    512 tokens.
    """
    tokens = 7038 * 65536 * 128 + 1564 * 32768 * 512
    shares = (
        "SELECT value, outcome FROM recomputations"
        " WHERE claim_id = 'mlperf2021-bert-share-of-training'"
    )
    [first, *others] = query(f"{shares} ORDER BY position")
    assert first == (pytest.approx(100 * 2714134.625 * 512 / tokens, rel=1e-9), "differs")
    assert [outcome for _, outcome in others] == ["differs", "differs"]


def test_few_claims_are_not_recomputable_and_each_names_what_is_needed(query: Query) -> None:
    claims = f"SELECT not_recomputable FROM claims WHERE document_id NOT IN {BLOGS_OF_LATER_ROUNDS}"
    assert query(f"SELECT count(*) FROM ({claims})") == [(127,)]
    reasons = query(f"{claims} AND verdict = 'not-recomputable'")
    without_values = query(f"{claims} AND recomputation IS NULL")
    assert 0 < len(reasons) <= MAX_NOT_RECOMPUTABLE
    assert 0 < len(without_values) <= MAX_WITHOUT_VALUES
    assert [reason for (reason,) in reasons if ". Needed: " not in reason] == []
