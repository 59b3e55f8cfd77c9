"""Rankings mix nothing that may not be compared, and say what they leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Query, run_cli
from tests.doors.mcp.conftest import Ask

ORDER = {"order": "throughput"}
MIXED = (
    (
        {"model": "BERT-Large", **ORDER},
        ["task", "phase", "sequence_length", "packed", "chip_count"],
    ),
    ({"model": "BERT", "order": "minutes"}, ["division", "mlperf_round", "chip_count"]),
    ({"model": "ResNet-50", "order": "latency_ms"}, ["latency_basis", "chip_count"]),
    ({"platform": "Bow-2000", **ORDER}, ["model", "task", "sequence_length", "input_size", "item"]),
    (ORDER, ["model", "task", "phase", "sequence_length", "packed", "item", "chip_count"]),
    ({"order": "efficiency"}, ["model", "item", "power_scope"]),
    ({"order": "run_energy_j", "usable": False}, ["flagged"]),
    ({"chip": "H100", "order": "throughput"}, ["model", "item"]),
    ({"chip": "Bow", "order": "latency_ms"}, ["model", "latency_basis"]),
    ({"publisher": "NVIDIA", "order": "throughput"}, ["model", "task"]),
    ({"order": "power_w"}, ["suspect", "emulated"]),
)


@pytest.mark.parametrize(("arguments", "named"), MIXED, ids=str)
def test_a_ranking_names_all_that_it_mixes_and_what_would_pass(
    ask: Ask, arguments: dict[str, Any], named: list[str]
) -> None:
    actual = ask("find", **arguments)
    assert actual["status"] == "refused"
    assert [name for name in named if name not in actual["reason"]] == []
    if "arguments" in actual:
        passed = ask("find", **(arguments | actual["arguments"]))
        assert passed["status"] == "answered", passed
        is_ranked = "order" not in actual["arguments"]
        assert not is_ranked or f": {passed['rows_that_fit']} rows" in actual["next_step"]


ASSUMED = (
    ({"model": "GPT-3", "order": "minutes"}, {"chips_basis": "whole-machine"}),
    ({"model": "ResNet-50", "task": "training", **ORDER}, {"chips_basis": "per-chip"}),
    (
        {"model": "BERT-Base", "task": "inference", "batch_size": 1, "order": "latency_ms"},
        {"sequence_length": 384},
    ),
)


@pytest.mark.parametrize(("arguments", "stated"), ASSUMED, ids=str)
def test_what_a_ranking_assumes_is_said_and_is_as_if_stated(
    ask: Ask, arguments: dict[str, Any], stated: dict[str, Any]
) -> None:
    actual = ask("find", **arguments)
    assumed = actual.pop("assumed")
    for name, value in stated.items():
        assert [words for words in assumed if words.startswith(f"{name} {value} (")]
    as_stated = ask("find", **arguments, **stated)
    assert "assumed" not in as_stated
    assert actual["results"] == as_stated["results"]
    assert actual["rows_that_fit"] == as_stated["rows_that_fit"]


@pytest.mark.parametrize("basis", ["same", "per-chip"])
def test_a_stated_basis_is_not_exchanged(ask: Ask, basis: str) -> None:
    minutes = {"model": "GPT-3", "order": "minutes"}
    assert ask("find", **minutes, chips_basis=basis)["code"] == "different-chip-counts"


@pytest.mark.parametrize("word", ["Groq", "a", "1", "100", "x"])
def test_a_word_that_is_no_part_of_a_name_is_unknown(ask: Ask, word: str) -> None:
    assert ask("find", platform=word)["code"] == "unknown-word"
    assert ask("find", chip=word)["code"] == "unknown-word"


NO_ROW = (
    {"model": "EfficientNet-B0", "task": "training", "platform": "Bow Pod16"},
    {"model": "BERT-Large", "task": "training", "relationship": "independent"},
    {"model": "Stable Diffusion", "chip": "Bow"},
    {"model": "ResNet-50", "task": "inference", "chip": "H100", "batch_size": 7},
    {"model": "ResNet-50", "figure": "latency_ms", "task": "inference", "max_latency_ms": 0.001},
)


@pytest.mark.parametrize("arguments", NO_ROW, ids=str)
def test_a_refusal_without_a_row_names_what_to_take_back(
    ask: Ask, arguments: dict[str, Any]
) -> None:
    actual = ask("find", **arguments)
    assert actual["code"] == "no-match"
    assert ask("find", **(arguments | actual["arguments"]))["status"] == "answered"


def test_a_refusal_names_all_unknown_words_and_arguments_at_once(ask: Ask) -> None:
    words = ask("find", model="RestNet", chip="Groq LPU", framework="JAXX")
    assert words["code"] == "unknown-word"
    assert [name for name in ("RestNet", "Groq LPU", "JAXX") if name not in words["reason"]] == []
    names = ask("find", batch=8, metric="throughput", task="serving")
    assert names["code"] == "wrong-input"
    for part in ("'batch', nearest: batch_size", "'metric', nearest: figure", "'serving'"):
        assert part in names["reason"]


def test_the_fastest_within_a_latency_prints_it(ask: Ask) -> None:
    stated = {"model": "ResNet-50", "task": "inference", "platform": "IPU-M2000", **ORDER}
    actual = ask("find", **stated, max_latency_ms=2)
    figures = actual["results"][0]["figures"]
    assert figures["latency_ms"]["value"] <= 2
    assert (
        figures["throughput"]["value"]
        < ask("find", **stated)["results"][0]["figures"]["throughput"]["value"]
    )


def test_a_pair_that_may_not_be_compared_names_all_that_keeps_it_apart(
    ask: Ask, query: Query
) -> None:
    sql = "SELECT result_id FROM results WHERE model = 'BERT-Large' AND phase = '%s' AND usable"
    picked = []
    for phase, chips in (("pre-training phase 1", 64), ("fine-tuning", 16)):
        where = f"{sql % phase} AND chip_count = {chips} AND throughput IS NOT NULL"
        picked.append(query(f"{where} ORDER BY result_id LIMIT 1")[0][0])
    ids = dict(zip(("first_result_id", "second_result_id"), picked, strict=True))
    reason = ask("compare", **ids)["reason"]
    assert [name for name in ("phase", "sequence length", "chip_count") if name not in reason] == []


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
    assert "whole-machine" in actual["next_step"]
    assert "per-chip" not in actual["next_step"]
    passed = ask("compare", **(ids | actual["arguments"]))
    assert passed["status"] == "answered"


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
    [(rows, usable)] = query(
        f"SELECT count(*), count(*) FILTER (usable) FROM results WHERE {where}"
    )
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


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT platform, throughput FROM results WHERE usable ORDER BY throughput LIMIT 5",
        "SELECT platform, throughput FROM results ORDER BY row_number LIMIT 5",
        "SELECT bow_platform, throughput_ratio FROM generations ORDER BY throughput_ratio LIMIT 5",
    ],
)
def test_a_statement_that_ranks_nothing_unusable_has_no_remark(warehouse: Path, sql: str) -> None:
    assert run_cli("query", sql, "--warehouse", warehouse, "--format", "csv").stderr == ""


@pytest.mark.parametrize(
    ("sql", "remark"),
    [
        ("FROM mlperf_entries WHERE round = 'v2.0'", "has round 'v2.0'; the nearest: 2.0"),
        ("FROM claims WHERE verdict LIKE 'not supp%'", "verdict 'not supp%'; the nearest: not-"),
        ("SELECT model FROM training WHERE chip = 'A100'", "chip = 'A100' finds none of A100-80GB"),
    ],
)
def test_a_value_that_is_spelled_otherwise_is_named(warehouse: Path, sql: str, remark: str) -> None:
    assert remark in run_cli("query", sql, "--warehouse", warehouse).stderr


def test_a_name_of_1x_in_sql_is_answered_with_its_new_one(ask: Ask, warehouse: Path) -> None:
    for sql, message in (
        ("SELECT network FROM results", "`network` is `model` in results since 2.0"),
        (
            "SELECT e.accelerator FROM mlperf_entries e",
            "`accelerator` is `chip_printed` in mlperf_entries since 2.0",
        ),
        ("SELECT power_w FROM inference", "`power_w` is `figures.value` where metric = 'power_w'"),
        ("FROM detail.record", "`record` is `results where relationship"),
    ):
        assert message in ask("sql", statement=sql)["reason"]
        assert message in run_cli("query", sql, "--warehouse", warehouse).stderr
    done = run_cli(
        "compare", "--set", "network=resnet50", "--set", "throughput=1", "--warehouse", warehouse
    )
    assert "`network` is `model`" in done.stderr
