"""Ask the tools what a reader asked who had seen neither code nor tests, and what a third party will measure."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ipu_results.comparison import expect

from tests.conftest import ROOT, Query

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from ipu_results.serve.answers import Record
from ipu_results.serve.server import answer
from ipu_results.serve.sql import SqlWorker

VISITORS = tomllib.loads((ROOT / "tests/data/mcp_visitors.toml").read_text(encoding="utf-8"))["question"]


@pytest.mark.parametrize("entry", VISITORS, ids=[entry["ask"] for entry in VISITORS])
def test_a_question_of_a_visitor_is_answered(entry: Mapping[str, Any], record: Record, worker: SqlWorker) -> None:
    text = json.dumps(answer(record, worker, entry["tool"], entry["arguments"]), ensure_ascii=False)
    assert not [words for words in entry["expect"] if words not in text], text[:500]


def test_what_a_third_party_will_measure_is_that_of_the_command(
    record: Record, worker: SqlWorker, warehouse: Path, query: Query
) -> None:
    for company, is_known in (("NVIDIA", True), ("Dell", False)):
        [(result_id,)] = query(f"""
            SELECT min(result_id) FROM mlperf_entries
            WHERE company = '{company}' AND round = '2.0' AND benchmark = 'ssd' AND accelerators = 8
        """)
        actual = answer(record, worker, "expect", {"result_id": result_id})
        if is_known:
            [expected] = expect(result_id, warehouse=warehouse)
            assert actual["intervals"] == expected.to_record()["intervals"]
            assert all(pair["second_result_id"] in actual["citation"] for pair in actual["nearest"])
        else:
            assert actual["code"] == "no-pairs"
            assert "not the maker" in actual["reason"]
