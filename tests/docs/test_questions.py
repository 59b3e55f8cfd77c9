"""The questions of docs/how-to/questions.md: SQL, pandas and polars give one answer."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path

import ipu_results
import pandas as pd
import polars as pl
import pytest

from tests.conftest import Query
from tests.docs.docs_support import DOCS, check_page

PAGE = DOCS / "how-to" / "questions.md"
QUESTION = re.compile(
    r"## (\d+)\. .+?\n.*?```console\n\$ ipu-results (query"
    r" .+?)\n.*?```python\n(.+?)```.*?```python\n(.+?)```"
    r".*?\*\*Caveat\.\*\* (.+?)(?=\n\n|\Z)",
    re.S,
)
UNORDERED = {"6"}  # rows with equal ratios
EXCLUDED = re.compile(r"(?<=\n)`usable` leaves out (?:\d+|N) of (?:\d+|N) rows\.(?=\n)")
# What `usable` is applied to where the statement has more than one FROM, or its view holds only
# rows that are usable.
FILTERED = {
    "3": """training WHERE chip IN ('Bow', 'GC200') AND usable
        AND (model, chip_count) IN (SELECT (model, chip_count) FROM generations)""",
    "6": """measurements WHERE origin = 'published' AND benchmark IS NULL AND throughput IS NOT NULL
        AND batch_size IS NOT NULL AND sdk_version IS NOT NULL AND usable""",
    "8": "measurements WHERE publisher = 'NVIDIA' AND throughput IS NOT NULL AND usable",
    "13": """measurements WHERE benchmark IS NULL AND throughput_per_chip IS NOT NULL
        AND packed IS NOT TRUE AND (task, model) IN (SELECT (task, model) FROM peak_shares)
        AND chip IN (SELECT chip FROM peak_shares WHERE datasheet_share IS NOT NULL) AND usable""",
    "14": "replications WHERE usable",
}
QUESTIONS = QUESTION.findall(PAGE.read_text(encoding="utf-8"))


def test_there_are_seventeen_questions_each_with_a_short_caveat() -> None:
    assert [number for number, *_ in QUESTIONS] == [str(number) for number in range(1, 18)]
    for *_, caveat in QUESTIONS:
        assert 10 < len(caveat.split()) < 70


@pytest.mark.parametrize(
    ("number", "command", "in_pandas", "in_polars", "_"), QUESTIONS, ids=lambda part: part[:2]
)
def test_statements_agree(
    number: str, command: str, in_pandas: str, in_polars: str, _: str, query: Query, warehouse: Path
) -> None:
    expected = normalise_rows(query(shlex.split(command)[1]))
    assert expected
    pandas_rows = evaluate(in_pandas, warehouse).itertuples(index=False, name=None)
    assert_same_rows(normalise_rows(pandas_rows), expected, ordered=number not in UNORDERED)
    assert_same_rows(
        normalise_rows(evaluate(in_polars, warehouse).rows()),
        expected,
        ordered=number not in UNORDERED,
    )


@pytest.mark.docs
def test_each_ranking_says_how_many_rows_usable_leaves_out(query: Query) -> None:
    sections = re.split(r"(?m)^(?=## )", PAGE.read_text(encoding="utf-8"))
    for number, (_, command, *_) in enumerate(QUESTIONS, 1):
        assert bool(EXCLUDED.search(sections[number])) == (
            str(number) in FILTERED or "usable" in command
        )
        if EXCLUDED.search(sections[number]):
            sentence = describe_excluded(str(number), shlex.split(command)[1], query)
            sections[number] = EXCLUDED.sub(sentence, sections[number])
    check_page(PAGE, "".join(sections))


def describe_excluded(number: str, statement: str, query: Query) -> str:
    """Count the rows that a statement reads with and without its filter `usable`."""
    filtered = FILTERED.get(number)
    if filtered is None:
        filtered = re.split(" GROUP BY | QUALIFY | ORDER BY ", statement.split(" FROM ", 1)[1])[0]
    [(rows,)] = query(f"SELECT count(*) FROM {filtered.replace('usable', 'TRUE')}")
    [(excluded,)] = query(f"SELECT count(*) FROM {filtered.replace('usable', 'NOT usable')}")
    return f"`usable` leaves out {excluded} of {rows} rows."


def evaluate(statement: str, warehouse: Path):  # type: ignore[no-untyped-def]
    """Evaluate one statement on the built warehouse."""
    names = {"ipu_results": ipu_results, "pd": pd, "pl": pl}
    with ipu_results.connect(warehouse) as connection:
        names["connection"] = connection
        return eval(statement.replace('"warehouse/', f'"{warehouse}/').strip(), names)


def normalise_rows(rows) -> list[tuple[object, ...]]:  # type: ignore[no-untyped-def]
    """Convert missing values to None and all numbers to floats."""
    return [tuple(map(_normalise, row)) for row in rows]


def _normalise(value: object) -> object:
    if (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, float) and math.isnan(value))
    ):
        return None
    plain = value.item() if hasattr(value, "item") else value
    return float(plain) if isinstance(plain, int) and not isinstance(plain, bool) else plain


def assert_same_rows(
    rows: list[tuple[object, ...]], expected: list[tuple[object, ...]], *, ordered: bool
) -> None:
    if not ordered:
        rows, expected = sorted(rows, key=str), sorted(expected, key=str)
    assert len(rows) == len(expected)
    for row, other in zip(rows, expected, strict=True):
        assert row == pytest.approx(other)
