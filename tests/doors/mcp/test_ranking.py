"""Rankings mix nothing that may not be compared, and say what they leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases import every_case
from tests.conftest import Query, run_cli
from tests.doors.mcp.conftest import Ask

ORDER = {"order": "throughput"}


@every_case(__file__, "mixed")
def test_a_ranking_names_all_that_it_mixes_and_what_would_pass(
    ask: Ask, arguments: dict[str, Any], named: list[str]
) -> None:
    actual = ask("find", **arguments)
    assert actual["status"] == "refused"
    assert [name for name in named if name not in actual["reason"]] == []
    passing = actual.get("arguments")
    if passing is None:
        return
    passed = ask("find", **(arguments | passing))
    assert passed["status"] == "answered"
    if "order" not in passing:
        assert f": {passed['rows_that_fit']} rows" in actual["next_step"]


@every_case(__file__, "assumed")
def test_what_a_ranking_assumes_is_said_and_is_as_if_stated(
    ask: Ask, arguments: dict[str, Any], name: str, value: object
) -> None:
    actual = ask("find", **arguments)
    assumed = actual.pop("assumed")
    assert any(words.startswith(f"{name} {value} (") for words in assumed)
    stated = ask("find", **arguments, **{name: value})
    assert "assumed" not in stated
    assert actual["results"] == stated["results"]
    assert actual["rows_that_fit"] == stated["rows_that_fit"]


@pytest.mark.parametrize("basis", ["same", "per-chip"])
def test_a_stated_basis_is_not_exchanged(ask: Ask, basis: str) -> None:
    minutes = {"model": "GPT-3", "order": "minutes"}
    assert ask("find", **minutes, chips_basis=basis)["code"] == "different-chip-counts"


@pytest.mark.parametrize("word", ["Groq", "a", "1", "100", "x"])
def test_a_word_that_is_no_part_of_a_name_is_unknown(ask: Ask, word: str) -> None:
    assert ask("find", platform=word)["code"] == "unknown-word"
    assert ask("find", chip=word)["code"] == "unknown-word"


@every_case(__file__, "no_row")
def test_a_refusal_without_a_row_names_what_to_take_back(
    ask: Ask, arguments: dict[str, Any]
) -> None:
    actual = ask("find", **arguments)
    assert actual["code"] == "no-match"
    assert ask("find", **(arguments | actual["arguments"]))["status"] == "answered"


@every_case(__file__, "several")
def test_a_refusal_names_all_unknown_words_and_arguments_at_once(
    ask: Ask, code: str, arguments: dict[str, Any], named: list[str]
) -> None:
    actual = ask("find", **arguments)
    assert actual["code"] == code
    assert [name for name in named if name not in actual["reason"]] == []


def test_the_fastest_within_a_latency_prints_it(ask: Ask) -> None:
    stated = {"model": "ResNet-50", "task": "inference", "platform": "IPU-M2000", **ORDER}
    within = ask("find", **stated, max_latency_ms=2)["results"][0]["figures"]
    fastest = ask("find", **stated)["results"][0]["figures"]
    assert within["latency_ms"]["value"] <= 2
    assert within["throughput"]["value"] < fastest["throughput"]["value"]


def test_a_pair_that_may_not_be_compared_names_all_that_keeps_it_apart(
    ask: Ask, query: Query
) -> None:
    sql = """
        SELECT min(result_id) FILTER (phase = 'pre-training phase 1' AND chip_count = 64),
            min(result_id) FILTER (phase = 'fine-tuning' AND chip_count = 16)
        FROM results
        WHERE model = 'BERT-Large' AND throughput IS NOT NULL AND usable
    """
    [(first, second)] = query(sql)
    reason = ask("compare", first_result_id=first, second_result_id=second)["reason"]
    for name in ("phase", "sequence length", "chip_count"):
        assert name in reason


def test_a_pair_of_machines_of_other_size_passes_with_the_arguments(ask: Ask) -> None:
    ids = {"first_result_id": "r338a92b0fd27a3ec", "second_result_id": "rc24faa5b6308f953"}
    refused = ask("compare", **ids)
    assert refused["code"] == "different-chip-counts"
    assert ask("compare", **ids, **refused["arguments"])["status"] == "answered"


def test_rows_of_an_unknown_chip_count_are_left_out_of_a_ranking_per_chip(ask: Ask) -> None:
    arguments = {"model": "ResNet-50", "task": "inference", "chips_basis": "per-chip", **ORDER}
    actual = ask("find", **arguments, limit=5)
    assert actual["not_ranked"]["without chip_count"] > 0
    shares = [row["figures"]["throughput"]["per_chip"] for row in actual["results"]]
    assert shares == sorted(shares, reverse=True)


def test_a_refusal_per_chip_does_not_ask_for_per_chip_again(ask: Ask) -> None:
    ids = {"first_result_id": "rf41aa72a62f05134", "second_result_id": "rd085f079129e31ab"}
    actual = ask("compare", **ids, chips_basis="per-chip")
    assert actual["code"] == "unknown-chip-count"
    assert actual["arguments"] == {"chips_basis": "whole-machine"}
    assert "per-chip" not in actual["next_step"]
    assert ask("compare", **ids, **actual["arguments"])["status"] == "answered"


def test_an_order_that_is_a_figure_shows_the_best_first(ask: Ask) -> None:
    same = {"model": "ResNet-50", "task": "inference", "chip_count": 4}
    best = ask("find", **same, **ORDER)
    stated = {"figure": "throughput", "order": "highest"}
    assert best["results"] == ask("find", **same, **stated)["results"]
    closed = {"model": "BERT", "division": "closed", "mlperf_round": "2.0", "chip_count": 16}
    fastest = ask("find", **closed, order="minutes", limit=5)
    values = [row["figures"]["minutes"]["value"] for row in fastest["results"]]
    assert values == sorted(values)
    wrong = ask("find", **same, **ORDER, figure="latency_ms")
    assert wrong["code"] == "wrong-input"


def test_an_answer_has_usable_rows_and_counts_the_others(ask: Ask, query: Query) -> None:
    where = "model = 'ResNet-50 v1.5' AND platform = 'IPU-M2000' AND task = 'inference'"
    sql = f"SELECT count(*), count(*) FILTER (usable) FROM results WHERE {where}"
    [(rows, usable)] = query(sql)
    stated = {"model": "ResNet-50 v1.5", "platform": "IPU-M2000", "task": "inference"}
    actual = ask("find", **stated, detail="whole")
    assert actual["rows_that_fit"] == usable
    assert actual["left_out"].startswith(f"{rows - usable} of {rows} rows are not usable: ")
    others = ask("find", **stated, usable=False)
    assert others["rows_that_fit"] == rows - usable
    assert all(row["usable"] is False for row in others["results"])


RANKING = """
    SELECT result_id, throughput
    FROM results
    WHERE model LIKE 'ResNeXt%'
    ORDER BY 2 DESC, 1
    LIMIT 50
"""
WITHOUT_IDS = "SELECT platform, throughput FROM results ORDER BY throughput DESC LIMIT 5"


def test_a_ranking_by_sql_says_how_many_rows_are_not_usable(
    ask: Ask, warehouse: Path, query: Query
) -> None:
    [(unusable,)] = query(
        f"SELECT count(*) FROM results JOIN ({RANKING}) USING (result_id) WHERE NOT usable"
    )
    words = f"{unusable} of 50 rows are not usable: "
    remarks = ask("sql", statement=RANKING)["remarks"]
    assert [remark for remark in remarks if remark.startswith(words)]
    assert words in run_cli("query", RANKING, "--warehouse", warehouse).stderr
    [(rows,)] = query("SELECT count(*) FROM results")
    open_ = f"of {rows:,} rows of results are not usable, and the statement does not leave them out"
    assert open_ in " ".join(ask("sql", statement=WITHOUT_IDS)["remarks"])
    assert open_ in run_cli("query", WITHOUT_IDS, "--warehouse", warehouse).stderr


@every_case(__file__, "silent")
def test_a_statement_that_ranks_nothing_unusable_has_no_remark(warehouse: Path, sql: str) -> None:
    assert run_cli("query", sql, "--warehouse", warehouse, "--format", "csv").stderr == ""


@every_case(__file__, "spelled")
def test_a_value_that_is_spelled_otherwise_is_named(warehouse: Path, sql: str, remark: str) -> None:
    assert remark in run_cli("query", sql, "--warehouse", warehouse).stderr


@every_case(__file__, "renamed")
def test_a_name_of_1x_in_sql_is_answered_with_its_new_one(
    ask: Ask, warehouse: Path, sql: str, message: str
) -> None:
    assert message in ask("sql", statement=sql)["reason"]
    assert message in run_cli("query", sql, "--warehouse", warehouse).stderr
