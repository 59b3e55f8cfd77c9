"""All rules together: over the whole dataset, single rows and no row at all;
docs/reference/rules.md has the counts.
"""

from __future__ import annotations

import csv
from dataclasses import replace

import duckdb
import pandas as pd
import pytest
from ipu_results.errors import GateError
from ipu_results.record.check.rules import RULES, find_flags
from ipu_results.schema import table
from ipu_results.schema.pandera_schemas import build_gate_schema

from benchmarks.planted_errors import open_staged
from tests.conftest import RAW, ROOT, Query
from tests.record.check.rules_support import (
    change_results,
    list_doubtful,
    load_dataset,
    load_review,
    pick,
    run,
)

GPU_SWEEP = "sweep-20261127-185029-onnxruntime-cuda-0-fp16-f80f-points"  # of ResNeXt101 on an H100

FLAGS = table("flags")


@pytest.fixture(scope="module")
def flags() -> pd.DataFrame:
    return run(load_dataset())


def test_flags_with_their_messages_are_those_of_the_committed_dataset(flags: pd.DataFrame) -> None:
    """Fail for a changed message, too.

    That a build gives the committed dataset is the proof of test_ingest.
    """
    stored = pd.read_parquet(ROOT / "warehouse" / "flags.parquet").sort_values(
        list(FLAGS.key), ignore_index=True
    )
    pd.testing.assert_frame_equal(flags, stored[list(FLAGS.names)], check_dtype=False)


AUDITED = {
    "a suggestion or warning of R13 on a match that is not exact": (
        "SELECT count(*) FROM flags JOIN detail.configurations USING (result_id) WHERE rule = 'R13' "
        "AND match_confidence <> 'exact' AND (severity <> 'info' OR suggested IS NOT NULL)"
    ),
    "R02 on a row with R01": (
        "SELECT count(*) FROM flags f JOIN flags o USING (result_id)"
        " WHERE f.rule = 'R02' AND o.rule = 'R01'"
    ),
    "R05 on the latency of an item": (
        "SELECT count(*) FROM flags JOIN results USING (result_id)"
        " WHERE rule = 'R05' AND latency_basis = 'per-item'"
    ),
    "R16 twice for one name": (
        "SELECT count(*) FROM (SELECT message FROM flags WHERE rule = 'R16' GROUP BY ALL"
        " HAVING count(*) > 1)"
    ),
    "one batch timed with more in flight, without a flag": (
        "SELECT count(*) FROM results r"
        " WHERE latency_basis = 'per-batch' AND throughput / throughput_implied >= 1.4"
        " AND NOT EXISTS (FROM flags f WHERE f.result_id = r.result_id AND rule = 'R25')"
    ),
    "a packed batch without a flag": (
        "SELECT count(*) FROM results r WHERE variant ILIKE '%packed%' AND batch_size IS NOT NULL "
        "AND NOT EXISTS (FROM flags f WHERE f.result_id = r.result_id AND rule = 'R27')"
    ),
    "EfficientNet-B0 that heads the analysis of latency far ahead of TensorFlow, without a flag": (
        "SELECT count(*) FROM detail.latency_bounded r"
        " JOIN results t USING (table_name, model, platform, batch_size)"
        " WHERE r.model = 'EfficientNet-B0' AND r.platform = 'IPU-M2000'"
        " AND t.framework = 'TensorFlow1' AND r.throughput > 1.4 * t.throughput"
        " AND NOT EXISTS (FROM flags f WHERE f.result_id = r.result_id AND rule = 'R26')"
    ),
}


@pytest.mark.parametrize("sql", AUDITED.values(), ids=AUDITED)
def test_what_the_audit_disputed_has_no_rows(query: Query, sql: str) -> None:
    assert query(sql) == [(0,)]


@pytest.mark.parametrize("half", [0, 1])
def test_rules_of_a_document_give_the_same_flags_for_a_batch_of_documents(
    flags: pd.DataFrame, half: int
) -> None:
    tables = load_dataset()
    documents = sorted(tables["results"]["document_id"].unique())[half::2]
    batch = dict(tables)
    for name in ("results", "microbenchmarks"):
        batch[name] = tables[name][tables[name]["document_id"].isin(documents)]
    ids = {*batch["results"]["result_id"], *batch["microbenchmarks"]["microbenchmark_id"]}
    batch["cells"] = tables["cells"][tables["cells"]["result_id"].isin(ids)]
    rules = [rule.id for rule in RULES if rule.scope == "document"]
    expected = flags[flags["rule"].isin(rules) & flags["result_id"].isin(ids)]
    pd.testing.assert_frame_equal(run(batch, *rules), expected.reset_index(drop=True))


def test_order_of_rows_does_not_matter(flags: pd.DataFrame) -> None:
    data = load_dataset()
    shuffled = {name: frame.sample(frac=1, random_state=1) for name, frame in data.items()}
    pd.testing.assert_frame_equal(run(shuffled), flags)


def test_no_rows_give_an_empty_table_of_flags() -> None:
    nothing = {name: frame[:0] for name, frame in load_dataset().items()}
    flags = run(nothing)
    build_gate_schema(FLAGS).validate(flags)
    assert flags.empty


@pytest.mark.parametrize(
    "row", ["bow_inference 1", "bow_inference 37", "bow_training 35", "pod_inference 68"]
)
def test_single_row_is_compared_with_nothing(row: str) -> None:
    alone = pick(row)
    alone["microbenchmarks"] = alone["microbenchmarks"][:0]
    assert set(run(alone)["rule"]) <= {"R01", "R09", "R10", "R11", "R35"}


def test_only_published_rows_are_checked() -> None:
    data = change_results(load_dataset(), origin="emulated")
    # of the microbenchmarks alone
    assert set(run(data)["rule"]) >= {"R34"}
    data["microbenchmarks"] = data["microbenchmarks"][:0]
    assert set(run(data)["rule"]) == {"R47"}  # what the sweeps say of their points


def test_statement_gives_the_flags_of_its_rule_to_a_reader_who_pastes_it(
    database: duckdb.DuckDBPyConnection,
) -> None:
    stored = "SELECT result_id, column_name, severity, message FROM flags WHERE rule = $1"
    statements = "SELECT rule, statement FROM detail.rules"
    for rule, statement in database.execute(statements).fetchall():
        flags = database.sql(statement).select("result_id, column_name, severity, message")
        expected = database.sql(stored, params=[rule]).fetchall()
        assert sorted(flags.fetchall()) == sorted(expected), rule


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT nothing FROM rules.published", "nothing"),
        ("SELECT 'r1' AS result_id, 'throughput' AS column_name, 'warn' AS severity", "message"),
    ],
)
def test_rule_that_fails_or_returns_no_flag_is_named(statement: str, message: str) -> None:
    rule = replace(RULES[0], statement=statement)
    place = r"schema/rules/R01-latency-below-period\.sql"
    with (
        open_staged(pick("bow_inference 1")) as connection,
        pytest.raises(GateError, match=f"{place}: .*{message}"),
    ):
        find_flags(connection, [rule])


def test_suspect_points_are_flagged_with_what_their_sweep_says(query: Query) -> None:
    printed = []
    for path in (RAW / "runs").glob("*/points.csv"):
        for point in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            if point["suspect"]:
                printed.append((path.parent.name, int(point["batch_size"]), point["suspect"]))
    flagged = "SELECT run_id, batch_size, message FROM flags JOIN results USING (result_id)"
    assert sorted(query(f"{flagged} WHERE rule = 'R47'")) == sorted(printed)


def test_throughput_that_the_host_bounds_is_flagged() -> None:
    """The H100 of our sweep runs ResNeXt101 no faster at batch 12 than at 4, at 28 % of its power."""
    data = load_dataset()
    gpu = data["results"]["document_id"].eq(GPU_SWEEP)
    ids = set(data["results"].loc[gpu, "result_id"])
    flags = run(data, "R48")
    assert set(flags["result_id"]) == ids
    assert set(flags["severity"]) == {"warn"}
    watts = data["results"]["power_w"]
    doubled = watts.where(~gpu, 2 * watts)  # 311 to 393 W of 700: the chip has work
    assert run(change_results(data, power_w=doubled), "R48").empty


def test_every_hit_of_every_rule_was_read_by_hand(query: Query) -> None:
    """Fail when the dataset has another number of hits: read them, then bring
    schema/rule_review.toml up to date.
    """
    review = load_review()
    assert list(review) == [rule.id for rule in RULES]
    counts = dict(query("SELECT rule, count(*) FROM flags GROUP BY 1"))
    columns = "rule, table_name, row_number, column_name, result_id"
    hits = query(f"SELECT {columns} FROM flags JOIN results USING (result_id)")
    for name, rule in review.items():
        assert rule["hits"] == counts.get(name, 0), name
        places = [place for rule_id, *place in hits if rule_id == name]
        doubtful = []
        for entry in rule.get("doubtful", []):
            doubtful += map(tuple, list_doubtful(entry, places))
        assert len(set(doubtful)) == len(doubtful), name
