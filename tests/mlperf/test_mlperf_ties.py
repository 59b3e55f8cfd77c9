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
from tests.mlperf.link_support import link_mlperf

RUNS = (10.0, 10.2, 9.9, 10.1, 10.3)
# Path, minutes, number of chips, first log: a and b share one, b and c are tied, d is far, e
# has two runs.
ENTRIES = (
    ("Graphcore/a", 10.0, 16, "x"),
    ("Baidu/b", 10.1, 8, "x"),
    ("NVIDIA/c", 10.15, 8, None),
    ("NVIDIA/d", 14.0, 16, None),
    ("Dell/e", 15.0, 16, None),
)


def make_database(
    entries: tuple[tuple[str, float, int, str | None], ...] = ENTRIES, **changes: dict[str, Any]
) -> Database:
    """Make a warehouse of one ranking by the statements of a build; `changes` are of entries,
    by folder.
    """
    runs: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    for path, score, chip_count, digest in entries:
        submitter, name = path.split("/")
        chip = "IPU" if submitter in {"Graphcore", "Baidu"} else "A100"
        records.append(
            {
                "path": path,
                "minutes": score,
                "benchmark": "bert",
                "submitter": submitter,
                "chip_printed": chip,
                "chip_count": chip_count,
                "energy_j": 3.6e6 * chip_count,
                "samples_to_converge": 160.0,
                **changes.get(name, {}),
            }
        )
        for number, value in enumerate(RUNS[:2] if submitter == "Dell" else RUNS):
            is_shared = digest is not None and number == 0
            log = digest if is_shared else f"{path}{number}"
            runs.append({"path": path, "sha256": log, "minutes": value + score - 10})
    with link_mlperf(records, runs) as connection:
        tables = {
            name: connection.table(table(name).sql_name).to_arrow_table().to_pylist()
            for name in ("mlperf_entries", "mlperf_runs", "rank_resolution", "mlperf_pair_tests")
        }
    for entry in tables["mlperf_entries"]:
        entry["minutes_per_sample"] = (entry["minutes"] or 0.0) / 160
    return make_warehouse(
        [{**TRAINED, "result_id": record["path"]} for record in records], **tables
    )


@pytest.fixture(scope="module")
def database() -> Database:
    """Make the warehouse of ENTRIES, which tests only read."""
    return make_database()


def test_every_pair_has_an_outcome(database: Database) -> None:
    rows = database.query(
        "SELECT split_part(path, '/', 2), split_part(other_path, '/', 2), shared_logs, outcome"
        " FROM detail.mlperf_pairs ORDER BY ALL"
    )
    assert rows == [
        ("a", "b", 1, "shared-logs"),
        ("a", "c", 0, "tied"),
        ("a", "d", 0, "separable"),
        ("a", "e", 0, "untested"),
        ("b", "c", 0, "tied"),
        ("b", "d", 0, "separable"),
        ("b", "e", 0, "untested"),
        ("c", "d", 0, "separable"),
        ("c", "e", 0, "untested"),
        ("d", "e", 0, "untested"),
    ]


def test_ranking_has_the_ranks_that_the_intervals_allow(database: Database) -> None:
    columns = "path, rank, best_rank, worst_rank, tied_with, tied_ranks, outcome"
    rows = database.query(
        f"SELECT {columns} FROM mlperf_ranking WHERE scope = 'all-sizes' ORDER BY rank"
    )
    assert rows == [
        ("Graphcore/a", 1, 1, 4, 2, "2, 3", None),
        ("Baidu/b", 2, 1, 4, 2, "1, 3", "shared-logs"),
        ("NVIDIA/c", 3, 1, 4, 2, "1, 2", "tied"),
        ("NVIDIA/d", 4, 4, 5, 0, None, "separable"),
        ("Dell/e", 5, 1, 5, 0, None, "untested"),
    ]


def test_ranking_of_one_size_has_entries_of_that_size(database: Database) -> None:
    rows = database.query(
        "SELECT ranking, rank, path, round(gap_percent, 1) FROM mlperf_ranking"
        " WHERE scope = 'same-size' ORDER BY ALL"
    )
    assert rows == [
        ("2.0/bert/closed/same-size/16", 1, "Graphcore/a", None),
        ("2.0/bert/closed/same-size/16", 2, "NVIDIA/d", 40.0),
        ("2.0/bert/closed/same-size/16", 3, "Dell/e", 7.1),
        ("2.0/bert/closed/same-size/8", 1, "Baidu/b", None),
        ("2.0/bert/closed/same-size/8", 2, "NVIDIA/c", 0.5),
    ]


def test_entry_on_ipus_is_next_to_every_other_entry(database: Database) -> None:
    columns = "ipu_path, path, outcome, is_ipu, round(ratio, 2), chip_count_ratio"
    rows = database.query(f"SELECT {columns} FROM detail.mlperf_ipu ORDER BY ALL")
    assert len(rows) == 8
    assert ("Graphcore/a", "NVIDIA/d", "ipu-faster", False, 1.4, 1.0) in rows
    assert ("Baidu/b", "Graphcore/a", "shared-logs", True, 0.99, 2.0) in rows
    slower = make_database((("Baidu/b", 10.2, 8, None), ("NVIDIA/c", 5.0, 8, None)))
    assert slower.query("SELECT outcome FROM detail.mlperf_ipu") == [("ipu-slower",)]
    alone = make_database((("Baidu/b", 10.2, 8, None),))
    assert alone.query("SELECT ipu_path, path, outcome FROM detail.mlperf_ipu") == [
        ("Baidu/b", None, None)
    ]


def test_trends_have_best_and_median_of_all_sizes_and_of_each(database: Database) -> None:
    columns = "chip_count, entries, best_minutes, median_minutes, best_chip_minutes"
    assert database.query(
        f"SELECT {columns} FROM detail.mlperf_trends WHERE scope <> 'same-chip'"
    ) == [
        (None, 5, 10.0, 10.15, pytest.approx(80.8)),
        (8, 2, 10.1, 10.125, pytest.approx(80.8)),
        (16, 3, 10.0, 14.0, 160.0),
    ]
    rates = (
        "SELECT best_samples_per_chip_minute FROM detail.mlperf_trends"
        " WHERE chip_count = 16 AND scope = 'same-size'"
    )
    assert database.query(rates) == [(1.0,)]


def test_progress_is_that_of_one_chip_and_of_all_apart() -> None:
    database = make_database((("NVIDIA/c", 20.0, 8, None), ("NVIDIA/d", 12.0, 8, None)))
    database.execute("UPDATE mlperf_entries SET round = '2.1' WHERE path = 'NVIDIA/d'")
    rows = database.query(
        "SELECT scope, round, round(progress, 3), round(speed_progress, 3) FROM detail.mlperf_trends"
    )
    scopes = ("all-sizes", "same-chip", "same-size")
    assert {row[0] for row in rows} == set(scopes)
    assert {row[1:] for row in rows} == {("2.0", 1.0, 1.0), ("2.1", 1.667, 1.667)}
    database.execute("UPDATE mlperf_entries SET chip = 'H100' WHERE round = '2.1'")
    rows = database.query(
        "SELECT scope, progress FROM detail.mlperf_trends WHERE round = '2.1' ORDER BY scope"
    )
    assert [(scope, round(progress, 3)) for scope, progress in rows] == [
        ("all-sizes", 1.667),
        ("same-chip", 1.0),
        ("same-size", 1.667),
    ]


def test_scaling_efficiency_is_against_the_smallest_system_of_a_company_and_chip() -> None:
    database = make_database(
        (("NVIDIA/a", 40.0, 8, None), ("NVIDIA/b", 25.0, 16, None), ("Google/c", 10.0, 16, None))
    )
    columns = (
        "path, base_chip_count, base_minutes, round(scaling_efficiency, 3),"
        " round(rate_efficiency, 3)"
    )
    assert database.query(
        f"SELECT {columns}, energy_kwh FROM detail.mlperf_per_chip ORDER BY path"
    ) == [
        ("Google/c", 16, 10.0, 1.0, 1.0, 16.0),
        ("NVIDIA/a", 8, 40.0, 1.0, 1.0, 8.0),
        ("NVIDIA/b", 8, 40.0, 0.8, 0.8, 16.0),
    ]


def test_measurement_that_was_entered_again_is_ranked_once() -> None:
    entries = (
        ("NVIDIA/a", 10.0, 8, None),
        ("Google/b", 10.1, 8, None),
        ("Azure/c", 10.1, 8, None),
        ("Dell/d", 14.0, 8, None),
    )
    database = make_database(entries)
    columns = "path, rank, repeats, tied_ranks, worst_rank, outcome, same_machine, speed_rank"
    assert database.query(
        f"SELECT {columns} FROM mlperf_ranking WHERE scope = 'all-sizes' ORDER BY minutes, path"
    ) == [
        ("NVIDIA/a", 1, False, "2", 3, None, None, 1),
        ("Azure/c", 2, False, "1", 3, "tied", True, 2),
        ("Google/b", 2, True, "1", 3, None, None, 2),
        ("Dell/d", 3, False, None, 3, "untested", True, 3),
    ]
    counts = (
        "entries, measurements, neighbouring_pairs, separable_pairs + untested_pairs, tied_groups"
    )
    assert database.query(
        f"SELECT {counts} FROM detail.rank_resolution WHERE scope = 'same-size'"
    ) == [(4, 3, 2, 1, 1)]
    assert database.query(
        "SELECT count(*) FILTER ('Google/b' IN (path, other_path)) FROM detail.mlperf_pairs"
    ) == [(0,)]
    assert database.query("SELECT rank FROM detail.mlperf_comparable ORDER BY path") == [
        (2,),
        (3,),
        (None,),
        (1,),
    ]


def test_unscored_entry_makes_ranks_bounds() -> None:
    missing = {"minutes": None, "logs_missing": 5}
    database = make_database(c=missing, e={"minutes": None, "logs_missing": 0})
    columns = "ranking, path, rank, rank_at_most, worst_rank, entries, unscored"
    assert database.query(f"SELECT {columns} FROM mlperf_ranking ORDER BY ranking, rank") == [
        ("2.0/bert/closed/all-sizes", "Graphcore/a", 1, 2, 3, 3, 1),
        ("2.0/bert/closed/all-sizes", "Baidu/b", 2, 3, 3, 3, 1),
        ("2.0/bert/closed/all-sizes", "NVIDIA/d", 3, 4, 4, 3, 1),
        ("2.0/bert/closed/same-size/16", "Graphcore/a", 1, 1, 1, 2, 0),
        ("2.0/bert/closed/same-size/16", "NVIDIA/d", 2, 2, 2, 2, 0),
        ("2.0/bert/closed/same-size/8", "Baidu/b", 1, 2, 2, 1, 1),
    ]


def test_entries_without_chips_are_ranked_by_nodes() -> None:
    entries = (("Intel/a", 10.0, 0, None), ("Intel/b", 10.1, 0, None), ("Intel/c", 10.2, 0, None))
    database = make_database(entries, a={"nodes": 4}, b={"nodes": 1}, c={"nodes": 1})
    ranks = (
        "SELECT ranking, nodes, rank, path FROM mlperf_ranking WHERE scope = 'same-size'"
        " ORDER BY ALL"
    )
    assert database.query(ranks) == [
        ("2.0/bert/closed/same-size/1-nodes", 1, 1, "Intel/b"),
        ("2.0/bert/closed/same-size/1-nodes", 1, 2, "Intel/c"),
        ("2.0/bert/closed/same-size/4-nodes", 4, 1, "Intel/a"),
    ]
    assert database.query("SELECT path, other_path FROM detail.mlperf_pairs WHERE same_size") == [
        ("Intel/b", "Intel/c")
    ]
    trends = (
        "SELECT nodes, entries, best_minutes, best_chip_minutes FROM detail.mlperf_trends"
        " WHERE scope = 'same-size'"
    )
    assert database.query(f"{trends} ORDER BY 1") == [(1, 2, 10.1, None), (4, 1, 10.0, None)]


def test_neighbours_with_the_same_chips_of_another_company_are_marked() -> None:
    database = make_database(
        (
            ("NVIDIA/a", 10.0, 8, None),
            ("NVIDIA/b", 10.1, 8, None),
            ("Google/c", 10.2, 8, None),
            ("Intel/d", 11.0, 16, None),
        )
    )
    rows = database.query(
        "SELECT path, same_machine FROM mlperf_ranking WHERE scope = 'all-sizes' ORDER BY rank"
    )
    assert rows == [("NVIDIA/a", None), ("NVIDIA/b", False), ("Google/c", True), ("Intel/d", False)]


def test_entry_that_is_slower_a_sample_with_a_lower_score_is_reversed() -> None:
    database = make_database((("NVIDIA/a", 10.0, 8, None), ("Google/c", 10.1, 8, None)))
    pairs = "SELECT outcome, speed_outcome FROM detail.mlperf_pairs"
    assert database.query(pairs) == [("tied", "untested")]
    database.execute("UPDATE detail.mlperf_pair_tests SET speed_p_value = 0.01")
    assert database.query(pairs) == [("tied", "same-order")]
    database.execute("UPDATE mlperf_entries SET minutes_per_sample = 0.01 WHERE path = 'Google/c'")
    assert database.query(pairs) == [("tied", "reversed")]
    database.execute("UPDATE detail.mlperf_pair_tests SET speed_p_value = 0.05")
    assert database.query(pairs) == [("tied", "tied")]


# Which rounds may be compared.

COMPARABLE = load_schema_file("vocabulary/mlperf.toml")["comparable"]


def test_blocks_of_one_benchmark_do_not_overlap() -> None:
    blocks = []
    for block in COMPARABLE:
        first = round_key(block["first_round"])
        last = round_key(block["last_round"])
        assert first <= last
        blocks.append((block["benchmark"], first, last))
    assert all("commit" in block["source"] for block in COMPARABLE)
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


def test_trends_say_nothing_of_benchmarks_with_few_rounds(database: Database) -> None:
    with pytest.raises(TooFewRowsError, match="7 of mlperf_trends"):
        database.answer("mlperf_trends")
