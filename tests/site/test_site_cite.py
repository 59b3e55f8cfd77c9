"""The page cites results as the command does: the same text in every format, for every result."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from ipu_results.ground.sql import run_query
from ipu_results.release import ReleaseRequest, publish
from ipu_results.serve import cite
from ipu_results.serve.cite import FORMATS
from ipu_results.serve.facts import MAX_IDS
from ipu_results.site.citations import build_citations
from ipu_results.store.query import open_warehouse

from tests.conftest import COMMITTED, ROOT
from tests.site.test_site import copy_with_text

SITE = ROOT / "site"
Evaluate = Callable[..., list[Any]]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("node")]
# One of each kind: a vendor's page, a flagged row, MLPerf printed and official, suspect, repeated,
# measured, emulated, a paper, energy, a name with an umlaut.
KINDS = (
    "relationship = 'vendor' AND errors = 0 AND throughput IS NOT NULL",
    "origin = 'published' AND errors > 0",
    "origin = 'published' AND benchmark = 'mlperf-training'",
    "origin = 'official' AND mlperf_id IS NOT NULL",
    "suspect IS NOT NULL",
    "same_as IS NOT NULL",
    "origin = 'measured'",
    "origin = 'emulated'",
    "relationship = 'independent' AND throughput IS NOT NULL",
    "energy_per_item_j IS NOT NULL OR efficiency IS NOT NULL",
    "publisher LIKE '%ü%'",
)


def evaluate(module: str, shared: Any, calls: list[list[Any]]) -> list[Any]:
    """Run functions of a module of the page; the first argument of each is `shared`."""
    done = subprocess.run(
        ["node", "tests/evaluate.mjs", module],
        cwd=SITE,
        input=json.dumps({"shared": shared, "calls": calls}),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers: list[Any] = json.loads(done.stdout)
    return answers


def test_page_cites_each_kind_of_result_as_the_command_does(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    ids: list[str] = []
    for kind in KINDS:
        ids.append(
            find_one(
                connection,
                f"({kind}) AND result_id NOT IN {tuple(ids) or ('',)}".replace(",)", ")"),
            )
        )
    assert len(set(ids)) == len(KINDS) >= 10
    assert_same(build_citations(connection, COMMITTED), COMMITTED, [[key] for key in ids])


def find_one(connection: duckdb.DuckDBPyConnection, kind: str) -> str:
    chosen = "arg_min(result_id, hash(result_id)) AS result_id"
    [row] = run_query(connection, f"SELECT {chosen} FROM results WHERE {kind}").to_pylist()
    assert row["result_id"], kind
    return str(row["result_id"])


def assert_same(citations: Mapping[str, Any], warehouse: Path, selections: list[list[str]]) -> None:
    calls = [["formatCitation", ids, name] for ids in selections for name in FORMATS]
    answers = iter(evaluate("citation.ts", citations, calls))
    for ids in selections:
        for name in FORMATS:
            assert next(answers) == cite(ids, format=name, warehouse=warehouse), (name, ids[:3])


def test_page_cites_selections_of_all_results_as_the_command_does(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    ids = run_query(connection, "SELECT result_id FROM results ORDER BY hash(result_id)")[
        "result_id"
    ].to_pylist()
    selections = [ids[start : start + MAX_IDS] for start in range(0, len(ids), MAX_IDS)]
    assert_same(
        build_citations(connection, COMMITTED), COMMITTED, [*selections, [ids[0], ids[1], ids[0]]]
    )


def test_citation_of_a_release_states_version_and_digest(tmp_path: Path) -> None:
    release = tmp_path / "release"
    publish(ReleaseRequest(COMMITTED, release, published_on=date(2026, 1, 2)))
    with open_warehouse(release) as opened:
        citations = build_citations(opened, release)
        ids = [find_one(opened, kind) for kind in KINDS]
    assert_same(citations, release, [ids[:1], ids])
    assert "version 1.0.0, sha256 of SHA256SUMS " in citations["dataset"]["text"]


def test_hostile_title_is_cited_as_the_command_does(tmp_path: Path) -> None:
    title = "\\input{x} & 1 % $y_z$ --- **b** [a](b) <i> ~^|`\"' __init__ _é_ × “ MLPerf \u200b\n x"
    names = pq.read_table(COMMITTED / "documents.parquet")["document_id"].to_pylist()
    used = pq.read_table(COMMITTED / "results.parquet")["document_id"].to_pylist()
    folder = copy_with_text(tmp_path / "w", "documents", "title", title, names.index(used[0]))
    with open_warehouse(folder) as opened:
        citations, key = (
            build_citations(opened, folder),
            find_one(opened, f"document_id = '{used[0]}'"),
        )
    formats = [
        name for name in FORMATS if name != "csl-json"
    ]  # there, the zero-width space is a JSON escape or visible
    answers = evaluate(
        "citation.ts", citations, [["formatCitation", [key], name] for name in formats]
    )
    assert answers == [cite(key, format=name, warehouse=folder) for name in formats]


def test_unknown_no_and_too_many_results_are_refused(connection: duckdb.DuckDBPyConnection) -> None:
    citations = build_citations(connection, COMMITTED)
    many = list(citations["results"])[: MAX_IDS + 1]
    calls = [["formatCitation", ids, "latex"] for ids in ([], ["toString"], many)]
    assert [answer["error"] for answer in evaluate("citation.ts", citations, calls)] == [
        "no result to cite",
        "unknown result toString",
        f"{MAX_IDS + 1} results are too many to cite at once, at most {MAX_IDS}",
    ]
