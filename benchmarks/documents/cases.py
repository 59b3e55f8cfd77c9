"""Judge a document that is kept next to what is printed in it: `NAME` and `NAME.json`."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.documents.judge import Row, Verdict, judge_rows


def judge_case(path: Path) -> Verdict:
    """Read and judge a document that is kept with its rows."""
    case = json.loads(path.with_name(f"{path.name}.json").read_text(encoding="utf-8"))
    printed = [(row.pop("table"), _parse_row(row)) for row in case["printed"]]
    return judge_rows(path.read_bytes(), case["reader"], printed)


def _parse_row(row: dict[str, tuple[float | None, str]]) -> Row:
    return frozenset((field, (number, text)) for field, (number, text) in row.items())
