"""The views that compare: the page judges a run as the command does, in the same words."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
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


def ask(database: duckdb.DuckDBPyConnection, question: str, stated: dict[str, Any]) -> Any:
    """Return the answer to a question, as the page reads it."""
    statements = database.execute(
        "SELECT name, sql FROM record.statements WHERE question = ? ORDER BY position", [question]
    ).fetchall()
    (first, _), (last, _) = statements[0], statements[-1]
    for name, sql in statements:
        database.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")
        if name == first:
            places = ", ".join("?" * len(stated))
            database.execute(
                f"INSERT INTO {name} ({', '.join(stated)}) VALUES ({places})", [*stated.values()]
            )
    return database.sql(f"FROM {last}").to_arrow_table().to_pylist()[0]


def test_two_machines_are_compared_in_either_order(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = tmp_path / DATABASE
    path.write_bytes(build_comparison(connection))
    with duckdb.connect() as database:
        database.execute(f"ATTACH '{path}' AS record (READ_ONLY)")
        macros = "SELECT sql FROM record.statements WHERE question = 'macros'"
        for (sql,) in database.execute(macros).fetchall():
            database.execute(sql)
        database.execute("SET search_path = 'record,memory'")
        for names in (("Bow-2000", "IPU-M2000"), ("Bow Pod16", "8x A100-40GB (DGX A100)")):
            answers = []
            for a, b in (names, names[::-1]):
                answer = ask(database, "side_by_side", {"compared": "platform", "a": a, "b": b})
                answers.append({(pair["left"], pair["right"]): pair for pair in answer["pairs"]})
                assert {"name": b, "tests": len(answer["pairs"])} in answer["partners"]
            pairs, swapped = answers
            assert len(pairs) == len(swapped) >= 4
            for (left, right), pair in pairs.items():
                if other := swapped.get((right, left)):  # not so where two rows are equally near
                    assert pair["ratio"] == pytest.approx(1 / other["ratio"])
                    assert [each["left"] for each in pair["differences"]] == [
                        each["right"] for each in other["differences"]
                    ]
        answer = ask(database, "side_by_side", {"compared": "sdk_version"})
        assert (answer["a"], answer["b"]) == (answer["names"][0], answer["partners"][0]["name"])


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
        (own,) = compare(warehouse=COMMITTED, **case["run"])
        record = own.to_record()
        assert re.search(case["says"], record["verdict"]), record["verdict"]
        checks = [check for check in record["checks"] if check["name"] != NOT_ON_THE_PAGE]
        assert answer["verdict"].removesuffix(".") == name_fields(record["verdict"])
        assert answer["checks"] == [
            f"{check['name']}, {check['outcome']}: {name_fields(check['message'])}"
            for check in checks
        ]
        assert answer["refusals"] == [
            f"{refusal['rows']:,} × {refusal['reason']}" for refusal in record["refusals"]
        ]
        assert len(answer["ratios"]) == sum(len(match["ratios"]) for match in record["matches"])
        reasons |= {refusal["reason"].partition(":")[0] for refusal in record["refusals"]}
    assert len(reasons) >= 7
