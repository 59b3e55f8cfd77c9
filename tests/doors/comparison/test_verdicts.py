"""Golden verdicts: every result of the record against each other row of its model.

`python -m tests.doors.comparison.test_verdicts WAREHOUSE` writes verdicts.json again, in a commit of its
own that says what changed.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ipu_results.doors.comparison.statements import load_results, open_session, run_statements
from ipu_results.doors.comparison.verdict import ROW_COLUMNS
from ipu_results.doors.mcp.answers import Record, open_record
from ipu_results.doors.mcp.pairs import find_pair_obstacles, open_pair
from ipu_results.kit.sql import run_query
from ipu_results.kit.text import to_json_value

GOLDEN = Path(__file__).with_name("verdicts.json")
SAMPLED = 3  # pairs of each reason that are written in full
MAX_PAIRS = 20_000  # about, that are judged together
EVERY = 12  # of the results are compared as a whole
BASES = ("same", "per-chip", "whole-machine")
# Each pair with its first obstacle, else what is said of each figure that both have.
PAIRS = """
    WITH figures AS (
        SELECT run, result_id, string_agg(
            format('{}: {}', figure, coalesce(
                format('{}: {}', obstacle.code, obstacle.reason), 'comparable'
            )), '; ' ORDER BY position
        ) AS texts
        FROM shared_figures
        GROUP BY run, result_id
    )
    SELECT m.model, m.result_id AS first, o.result_id AS second, CASE
        WHEN len(o.obstacles) = 0 THEN coalesce(f.texts, 'no figure in common')
        ELSE format('{}: {}', o.obstacles[1].code, o.obstacles[1].reason)
    END AS reason
    FROM obstacles o
    JOIN mine m USING (run)
    LEFT JOIN figures f ON f.run = o.run AND f.result_id = o.result_id
    WHERE m.result_id <> o.result_id
"""
JUDGED = f"""
    WITH pairs AS ({PAIRS}),
    counted AS (
        SELECT model, split_part(reason, ':', 1) AS kind, count(*) AS pairs
        FROM pairs
        GROUP BY model, kind
    )
    SELECT
        model,
        md5(string_agg(concat_ws(' ', first, second, reason), chr(10) ORDER BY first, second))
            AS digest,
        (
            SELECT map(list(kind ORDER BY kind), list(c.pairs ORDER BY kind))
            FROM counted c
            WHERE c.model = pairs.model
        ) AS counts
    FROM pairs
    GROUP BY model
"""
SAMPLES = f"""
    SELECT model, first, second, reason
    FROM ({PAIRS})
    QUALIFY row_number() OVER (
        PARTITION BY model, split_part(reason, ':', 1) ORDER BY md5(first || second)
    ) <= {SAMPLED}
    ORDER BY ALL
"""


def list_models(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    rows = run_query(connection, "SELECT model, result_id FROM results ORDER BY ALL").to_pylist()
    groups = groupby(rows, key=lambda row: row["model"])
    return {model: [row["result_id"] for row in own] for model, own in groups}


def split_models(models: Mapping[str, list[str]]) -> Iterator[list[str]]:
    """Yield models whose pairs are judged together: to plan the statements takes as long as to
    judge some thousand pairs.
    """
    together: list[str] = []
    pairs = 0
    for model, ids in models.items():
        together.append(model)
        pairs += len(ids) ** 2
        if pairs > MAX_PAIRS:
            yield together
            together = []
            pairs = 0
    if together:
        yield together


def judge_pairs(
    connection: duckdb.DuckDBPyConnection, sql: str, models: Mapping[str, list[str]]
) -> Iterator[dict[str, Any]]:
    """Yield what a statement says of the pairs of each model, repeated rows among them."""
    for together in split_models(models):
        values = {"models": together}
        with open_session(connection, "list_contains($models, model)", values) as session:
            session.execute("UPDATE candidates SET unusable = NULL")
            load_results(session, [key for model in together for key in models[model]])
            run_statements(session, "shared_figures")
            yield from session.sql(sql).to_arrow_table().to_pylist()


def judge_models(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return the number of pairs by reason, and a digest of all, of each model."""
    models = list_models(connection)
    judged: dict[str, Any] = {model: {"digest": None, "counts": {}} for model in models}
    for row in judge_pairs(connection, JUDGED, models):
        judged[row["model"]] = {"digest": row["digest"], "counts": dict(row["counts"])}
    return judged


def describe_pair(record: Record, first: str, second: str) -> dict[str, str]:
    """Return what MCP says of each figure of a pair by each basis of the chips."""
    left = record.get_row(first)
    right = record.get_row(second)
    described = {}
    with open_pair(record, left, right) as session:
        for figure in ("throughput", "latency_ms", "minutes", "efficiency", "power_w"):
            if left[figure] is None or right[figure] is None:
                continue
            for basis in BASES:
                found = find_pair_obstacles(session, figure, basis)
                words = ": ".join(found[0]) if found else "comparable"
                described[f"{figure}, {basis}"] = words
    return described


def compare_models(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return a digest of whole comparisons by model: verdicts, matches, refusals, checks, peers."""
    ids = [key for own in list_models(connection).values() for key in own]
    chosen = [key for key in ids if int(key[1:], 16) % EVERY == 0]
    with open_session(connection) as session:
        load_results(session, chosen)
        run_statements(session)
        sql = "SELECT model, answer.* FROM answer JOIN mine USING (run) ORDER BY run"
        answers = session.sql(sql).to_arrow_table().to_pylist()
    digests = {}
    for model, own in groupby(answers, key=lambda answer: answer["model"]):
        text = json.dumps([round_floats(answer) for answer in own], sort_keys=True)
        digests[model] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return digests


def round_floats(value: Any) -> Any:
    """Return an answer without the last digits of its floats, in which processors differ, and with
    the columns of a row that a comparison names.
    """
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, Mapping):
        names = ROW_COLUMNS if "document_id" in value else value
        return {name: round_floats(value[name]) for name in names}
    if isinstance(value, list):
        return [round_floats(own) for own in value]
    return to_json_value(value)


def build_golden(record: Record) -> dict[str, Any]:
    models = list_models(record.connection)
    samples: dict[str, list[tuple[str, str]]] = {}
    for row in judge_pairs(record.connection, SAMPLES, models):
        kind = row["reason"].partition(":")[0]
        samples.setdefault(kind, []).append((row["first"], row["second"]))
    pairs = [pair for own in samples.values() for pair in sorted(own)[:SAMPLED]]
    return {
        "models": judge_models(record.connection),
        "comparisons": compare_models(record.connection),
        "pairs": {" ".join(pair): describe_pair(record, *pair) for pair in sorted(pairs)},
    }


@pytest.fixture(scope="module")
def record(warehouse: Path) -> Iterator[Record]:
    opened = open_record(warehouse)
    yield opened
    opened.connection.close()


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    golden: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return golden


def test_verdicts_of_sampled_pairs_are_as_before(record: Record, golden: dict[str, Any]) -> None:
    """One pair of each description."""
    pairs = {json.dumps(expected): pair for pair, expected in golden["pairs"].items()}
    assert len(pairs) > 20
    for expected, pair in pairs.items():
        assert describe_pair(record, *pair.split()) == json.loads(expected), pair


def test_comparisons_are_as_before(record: Record, golden: dict[str, Any]) -> None:
    assert compare_models(record.connection) == golden["comparisons"]


@pytest.mark.parametrize(
    ("span", "inside", "outside"),
    [("0.7-2.1", ["0.7", "2.1"], ["0.6", "3.0"]), ("2.0", ["2.0"], ["2.1", "next"])],
)
def test_both_ends_of_a_span_of_rounds_are_comparable(
    record: Record, span: str, inside: list[str], outside: list[str]
) -> None:
    with open_session(record.connection, "FALSE") as session:
        sql = "SELECT is_round_within(unnest($rounds), $span)"
        rounds = [*inside, *outside]
        done = session.execute(sql, {"rounds": rounds, "span": span}).fetchall()
        assert done == [(True,)] * len(inside) + [(False,)] * len(outside)
        assert session.execute("SELECT is_round_within('2.0', NULL)").fetchall() == [(False,)]


@pytest.mark.slow
def test_verdicts_of_all_pairs_are_as_before(record: Record, golden: dict[str, Any]) -> None:
    assert judge_models(record.connection) == golden["models"]


if __name__ == "__main__":
    golden = build_golden(open_record(Path(sys.argv[1])))
    text = json.dumps(golden, indent=1, ensure_ascii=False)
    GOLDEN.write_text(f"{text}\n", encoding="utf-8")
