"""The views of ties, rankings, IPUs and trends, and what may be compared."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import duckdb
import pytest
from ipu_results.doors.analyses import answer_question, load_analysis
from ipu_results.errors import TooFewRowsError
from ipu_results.kit.files import load_schema_file
from ipu_results.mlperf.rules import round_key
from ipu_results.schema import table

from tests.conftest import Query
from tests.doors.analyses.analysis_support import TRAINED, Database, make_warehouse
from tests.doors.analyses.test_views import assert_rows
from tests.mlperf.link_support import link_mlperf
from tests.mlperf.mlperf_support import load_cases

CASES = load_cases("rankings")["case"]
RUNS = (10.0, 10.2, 9.9, 10.1, 10.3)
ON_IPUS = ("Graphcore", "Baidu")
LINKED = ("mlperf_entries", "mlperf_runs", "rank_resolution", "mlperf_pair_tests")


def make_database(case: dict[str, Any]) -> Database:
    """Make a warehouse of the entries of one ranking by the statements of a build."""
    runs: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    for path, score, chip_count, digest in case["entries"]:
        submitter, name = path.split("/")
        minutes = None if score == "none" else score
        record = {"path": path, "minutes": minutes, "benchmark": "bert", "submitter": submitter}
        record |= {"chip_printed": "IPU" if submitter in ON_IPUS else "A100"}
        record |= {"chip_count": chip_count, "energy_j": 3.6e6 * chip_count}
        record |= {"samples_to_converge": 160.0, **case.get("changes", {}).get(name, {})}
        records.append(record)
        for number, value in enumerate(RUNS[:2] if submitter == "Dell" else RUNS):
            log = digest if digest and number == 0 else f"{path}{number}"
            runs.append({"path": path, "sha256": log, "minutes": value + (minutes or 12) - 10})
    with link_mlperf(records, runs) as connection:
        tables = {}
        for linked in LINKED:
            rows = connection.table(table(linked).sql_name).to_arrow_table()
            tables[linked] = rows.to_pylist()
    for entry in tables["mlperf_entries"]:
        entry["minutes_per_sample"] = (entry["minutes"] or 0.0) / 160
    results = [{**TRAINED, "result_id": record["path"]} for record in records]
    return make_warehouse(results, **tables)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["fact"][0]["sql"])
def test_made_up_ranking(case: dict[str, Any]) -> None:
    database = make_database(case)
    for fact in case["fact"]:
        if "after" in fact:
            database.execute(fact["after"])
        assert_rows(database.query, fact)


def test_trends_say_nothing_of_benchmarks_with_few_rounds() -> None:
    with pytest.raises(TooFewRowsError, match="7 of mlperf_trends"):
        make_database(CASES[0]).answer("mlperf_trends")


def test_blocks_of_one_benchmark_do_not_overlap() -> None:
    blocks = []
    for block in load_schema_file("vocabulary/mlperf.toml")["comparable"]:
        first = round_key(block["first_round"])
        last = round_key(block["last_round"])
        assert first <= last
        assert "commit" in block["source"]
        blocks.append((block["benchmark"], first, last))
    for (benchmark, _, last), (next_benchmark, first, _) in pairwise(sorted(blocks)):
        assert benchmark != next_benchmark or last < first


# The analyses.


def test_share_of_noise_is_that_of_the_table(
    opened: duckdb.DuckDBPyConnection, query: Query
) -> None:
    text = answer_question(opened, load_analysis("mlperf_noise")).summary
    for scope in ("all-sizes", "same-size"):
        [(pairs, separable)] = query(
            "SELECT sum(neighbouring_pairs - shared_log_pairs - untested_pairs),"
            " sum(separable_pairs) FROM detail.rank_resolution WHERE division = 'closed' AND scope ="
            f" '{scope}'"
        )
        share = 100 * (1 - separable / pairs)
        assert f"cannot separate {share:.0f} % of {pairs:,.0f} neighbouring pairs" in text


def test_ipu_is_compared_with_the_node_of_its_own_round(opened: duckdb.DuckDBPyConnection) -> None:
    text = answer_question(opened, load_analysis("mlperf_ipu")).summary
    assert "34.49 [33.25, 35.73] against 21.69" in text
    assert "19.64 [19.47, 19.80] against 28.69 [28.45, 28.92] minutes, faster" in text
