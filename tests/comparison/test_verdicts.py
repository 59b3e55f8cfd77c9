"""Golden verdicts: every result of the record against each other row of its model.

`python -m tests.comparison.test_verdicts` writes verdicts.json again, in a commit of its own that
says what changed.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ipu_results.comparison.comparable import (
    Row,
    compute_distance,
    find_figure_obstacle,
    find_obstacle,
    get_latency_basis,
    is_comparable_round,
    list_differences,
    load_rows,
)
from ipu_results.comparison.measurement import FIGURES, Measurement
from ipu_results.comparison.verdict import build_from_row, compare_with_rows
from ipu_results.comparison.words import load_known_words
from ipu_results.ground.text import to_json_value
from ipu_results.serve.pairs import find_pair_obstacle
from ipu_results.store.query import open_warehouse

from tests.conftest import ROOT

COMMITTED = ROOT / "warehouse"
GOLDEN = Path(__file__).with_name("verdicts.json")
SAMPLED = 12  # pairs of each reason that are written in full
EVERY = 12  # of the results are compared as a whole; all of them would take minutes
BASES = ("same", "per-chip", "whole-machine")


def judge_pair(ours: Measurement, row: Row) -> tuple[str, list[str]]:
    """Return `not`, `depends` or `comparable`, and the reasons or the figures with distance and
    differences.
    """
    if obstacle := find_obstacle(ours, row):
        return "not", [f"{obstacle.code}{' !' if obstacle.has_next_step else ''}: {obstacle}"]
    shared = [name for name in FIGURES if getattr(ours, name) is not None and row[name] is not None]
    obstacles = {name: find_figure_obstacle(name, ours, row) for name in shared}
    texts = [
        f"{name}: {f'{own.code}: {own}' if own else 'comparable'}"
        for name, own in obstacles.items()
    ]
    allowed = [name for name, own in obstacles.items() if own is None]
    if not allowed:
        return "not", texts or ["no figure in common"]
    is_open = None in (ours.stated_basis, get_latency_basis(row))
    differences = [
        f"{own.what}: {own.ours} / {own.theirs}{'' if own.known else ' ?'}"
        for own in list_differences(ours, row)
    ]
    texts += [f"distance {compute_distance(ours, row, row['family']):.9g}", *differences]
    return "depends" if allowed == ["latency_ms"] and is_open else "comparable", texts


def list_pairs(rows: list[Row]) -> Iterator[tuple[Measurement, Row, Row]]:
    measured = [(build_from_row(row), row) for row in rows]
    return (
        (ours, first, second) for ours, first in measured for second in rows if first is not second
    )


def digest(lines: Iterator[str] | list[str]) -> str:
    hasher = hashlib.sha256()
    for line in lines:
        hasher.update(f"{line}\n".encode())
    return hasher.hexdigest()[:16]


def judge_model(rows: list[Row], samples: dict[str, list[tuple[str, Any]]]) -> dict[str, Any]:
    """Count the verdicts of a model, digest them, and offer each pair as a sample of its first
    reason.
    """
    counts: Counter[str] = Counter()
    hasher = hashlib.sha256()
    for ours, first, second in list_pairs(rows):
        verdict, reasons = judge_pair(ours, second)
        name = f"{first['result_id']} {second['result_id']}"
        hasher.update(f"{name} {verdict} {'; '.join(reasons)}\n".encode())
        kind = f"{verdict}: {reasons[0].partition(':')[0]}"
        counts[kind] += 1
        order = hashlib.sha256(name.encode()).hexdigest()
        own = samples.setdefault(kind, [])
        if len(own) < SAMPLED or order < own[-1][0]:
            own.append((order, (first, second, verdict, reasons)))
            own.sort(key=lambda sample: sample[0])
            del own[SAMPLED:]
    return {
        "rows": len(rows),
        "digest": hasher.hexdigest()[:16],
        "counts": dict(sorted(counts.items())),
    }


def describe_sample(first: Row, second: Row, verdict: str, reasons: list[str]) -> dict[str, Any]:
    """Return a pair in full: what compare says, and what MCP says of each figure by each basis of
    the chips.
    """
    figures = [name for name in FIGURES if first[name] is not None and second[name] is not None]
    obstacles = {
        f"{name}, {basis}": find_pair_obstacle(first, second, name, basis)
        for name in figures
        for basis in BASES
    }
    pair = {
        "first": first["result_id"],
        "second": second["result_id"],
        "verdict": verdict,
        "reasons": reasons,
    }
    return {
        **pair,
        "mcp": {
            name: f"{own.code}: {own}" if own else "comparable" for name, own in obstacles.items()
        },
    }


def group_by_model(connection: duckdb.DuckDBPyConnection) -> dict[str, list[Row]]:
    rows = sorted(load_rows(connection), key=lambda row: (row["model"], row["result_id"]))
    return {name: list(own) for name, own in groupby(rows, key=lambda row: row["model"])}


def compare_models(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return a digest of whole comparisons by model: verdicts, matches, refusals, checks and
    peers.
    """
    words, digests = load_known_words(connection), {}
    for name, rows in group_by_model(connection).items():
        rows.sort(
            key=lambda row: (
                str(row["document_id"]),
                str(row["table_name"]),
                row["row_number"] or 0,
                row["result_id"],
            )
        )
        chosen = [row for row in rows if int(row["result_id"][1:], 16) % EVERY == 0]
        records = (
            compare_with_rows(build_from_row(row), rows, words).to_record() for row in chosen
        )
        digests[name] = digest(
            [json.dumps(round_floats(record), sort_keys=True) for record in records]
        )
    return digests


def round_floats(value: Any) -> Any:
    """Return a record without the last digits of its floats, in which processors differ."""
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, Mapping):
        return {name: round_floats(own) for name, own in value.items()}
    return (
        [round_floats(own) for own in value]
        if isinstance(value, list | tuple)
        else to_json_value(value)
    )


def build_golden(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    samples: dict[str, list[tuple[str, Any]]] = {}
    models = {name: judge_model(rows, samples) for name, rows in group_by_model(connection).items()}
    pairs = [describe_sample(*sample) for _, own in sorted(samples.items()) for _, sample in own]
    return {"models": models, "comparisons": compare_models(connection), "pairs": pairs}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with open_warehouse(COMMITTED) as opened:
        yield opened


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    golden: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return golden


def test_verdicts_of_sampled_pairs_are_as_before(
    connection: duckdb.DuckDBPyConnection, golden: dict[str, Any]
) -> None:
    rows = {row["result_id"]: row for row in load_rows(connection)}
    for expected in golden["pairs"]:
        first, second = rows[expected["first"]], rows[expected["second"]]
        assert (
            describe_sample(first, second, *judge_pair(build_from_row(first), second)) == expected
        )


def test_both_ends_of_a_span_of_rounds_are_comparable() -> None:
    inside = [("0.7", "0.7-2.1"), ("2.1", "0.7-2.1"), ("2.0", "2.0")]
    outside = [
        ("0.6", "0.7-2.1"),
        ("3.0", "0.7-2.1"),
        ("2.1", "2.0"),
        ("next", "2.0"),
        ("2.0", None),
    ]
    assert all(is_comparable_round(*pair) for pair in inside)
    assert not any(is_comparable_round(*pair) for pair in outside)


@pytest.mark.slow
def test_verdicts_of_all_pairs_are_as_before(
    connection: duckdb.DuckDBPyConnection, golden: dict[str, Any]
) -> None:
    samples: dict[str, list[tuple[str, Any]]] = {}
    for name, rows in group_by_model(connection).items():
        assert judge_model(rows, samples) == golden["models"][name], name


@pytest.mark.slow
def test_comparisons_are_as_before(
    connection: duckdb.DuckDBPyConnection, golden: dict[str, Any]
) -> None:
    assert compare_models(connection) == golden["comparisons"]


if __name__ == "__main__":
    with open_warehouse(COMMITTED) as opened:
        GOLDEN.write_text(
            json.dumps(build_golden(opened), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
