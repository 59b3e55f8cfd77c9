"""Keep a page next to what is printed in it: `NAME.html` and `NAME.html.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.documents.judge import Row, Verdict, find_printed_rows, judge_rows
from benchmarks.documents.tables import Table


def write_case(path: Path, data: bytes, tables: Sequence[Table]) -> None:
    """Write a document and the rows that are printed in it."""
    rows = [
        {
            "table": table.header.table,
            **{field: [number, text] for field, (number, text) in sorted(row)},
        }
        for table in tables
        for row in find_printed_rows(table)
    ]
    path.write_bytes(data)
    case = {"reader": tables[0].header.reader, "printed": rows}
    path.with_name(f"{path.name}.json").write_text(
        json.dumps(case, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def judge_case(path: Path) -> Verdict:
    """Read and judge a document that is kept with its rows."""
    case = json.loads(path.with_name(f"{path.name}.json").read_text(encoding="utf-8"))
    printed = [(row.pop("table"), _parse_row(row)) for row in case["printed"]]
    return judge_rows(path.read_bytes(), case["reader"], printed)


def _parse_row(row: dict[str, tuple[float | None, str]]) -> Row:
    return frozenset((field, (number, text)) for field, (number, text) in row.items())
