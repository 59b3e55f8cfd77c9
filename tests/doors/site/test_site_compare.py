"""The views that compare: the page judges a run as the command does, in the same words."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from ipu_results import compare
from ipu_results.doors.site.comparison import DATABASE, build_comparison

from tests.conftest import COMMITTED, ROOT, require

SITE = ROOT / "site"
RUNS = SITE / "tests" / "runs.json"
BROWSER_S = 300
# the page names the fields of its form in the place of columns
FIELDS = {
    "latency_ms": "“Latency”",
    "latency_basis": "“The latency times”",
    "sequence_length": "“Tokens a sequence”",
}
NOT_ON_THE_PAGE = "power rating"


def read_page(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the built page says of runs."""
    done = subprocess.run(
        ["node", "tests/verdicts.mjs"],
        cwd=SITE,
        input=json.dumps(runs),
        capture_output=True,
        text=True,
        timeout=BROWSER_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def list_statements(database: duckdb.DuckDBPyConnection, question: str) -> list[tuple[str, str]]:
    sql = "SELECT name, sql FROM record.statements WHERE question = ? ORDER BY position"
    return database.execute(sql, [question]).fetchall()


def ask(database: duckdb.DuckDBPyConnection, question: str, stated: dict[str, Any]) -> Any:
    """Return the answer to a question, as the page reads it."""
    values = dict(stated)
    for name, sql in list_statements(database, question):
        database.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")
        if values:  # into the first
            places = ", ".join("?" * len(values))
            columns = ", ".join(values)
            database.execute(
                f"INSERT INTO {name} ({columns}) VALUES ({places})", [*values.values()]
            )
            values.clear()
    return database.sql(f"FROM {name}").to_arrow_table().to_pylist()[0]


@pytest.fixture(scope="module")
def database(
    connection: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open what the page compares with, as the page does."""
    path = tmp_path_factory.mktemp("page") / DATABASE
    path.write_bytes(build_comparison(connection))
    with duckdb.connect() as database:
        database.execute(f"ATTACH '{path}' AS record (READ_ONLY)")
        for _, sql in list_statements(database, "macros"):
            database.execute(sql)
        database.execute("SET search_path = 'record,memory'")
        yield database


@pytest.mark.parametrize(
    ("a", "b"), [("Bow-2000", "IPU-M2000"), ("Bow Pod16", "8x A100-40GB (DGX A100)")]
)
def test_two_machines_are_compared_in_either_order(
    a: str, b: str, database: duckdb.DuckDBPyConnection
) -> None:
    pairs = ask_pairs(database, a, b)
    swapped = ask_pairs(database, b, a)
    assert len(pairs) == len(swapped) >= 4
    for (left, right), pair in pairs.items():
        other = swapped.get((right, left))  # none where two rows are equally near
        if other is not None:
            assert pair["ratio"] == pytest.approx(1 / other["ratio"])
            lefts = [each["left"] for each in pair["differences"]]
            assert lefts == [each["right"] for each in other["differences"]]


def ask_pairs(
    database: duckdb.DuckDBPyConnection, a: str, b: str
) -> dict[tuple[str, str], dict[str, Any]]:
    answer = ask(database, "side_by_side", {"compared": "platform", "a": a, "b": b})
    assert {"name": b, "tests": len(answer["pairs"])} in answer["partners"]
    return {(pair["left"], pair["right"]): pair for pair in answer["pairs"]}


def test_two_sdks_are_chosen_where_none_is_named(database: duckdb.DuckDBPyConnection) -> None:
    answer = ask(database, "side_by_side", {"compared": "sdk_version"})
    assert answer["a"] == answer["names"][0]
    assert answer["b"] == answer["partners"][0]["name"]


def name_fields(text: str) -> str:
    return re.sub(r"\b[a-z]+_[a-z_]+\b", lambda name: FIELDS.get(name[0], name[0]), text)


@pytest.mark.slow
@pytest.mark.usefixtures("node")
def test_page_and_command_give_the_same_verdict_and_words() -> None:
    """Twelve mistakes, five honest runs, and runs that reach every reason and verdict."""
    require((SITE / "dist" / "app.js").exists(), "needs `make site`")
    cases = json.loads(RUNS.read_text(encoding="utf-8"))
    answers = read_page([case["run"] for case in cases])
    reasons = set()
    for case, answer in zip(cases, answers, strict=True):
        [own] = compare(warehouse=COMMITTED, **case["run"])
        verdict = name_fields(own.verdict)
        assert re.search(case["says"], own.verdict), own.verdict
        assert answer["verdict"].removesuffix(".") == verdict
        checks = []
        for check in own.checks:
            if check.name != NOT_ON_THE_PAGE:
                checks.append(f"{check.name}, {check.outcome}: {name_fields(check.message)}")
        assert answer["checks"] == checks
        refusals = []
        for refusal in own.refusals:
            refusals.append(f"{refusal.rows:,} × {refusal.reason}")
            reasons.add(refusal.reason.partition(":")[0])
        assert answer["refusals"] == refusals
        assert len(answer["ratios"]) == sum(len(match.ratios) for match in own.matches)
    assert len(reasons) >= 7
