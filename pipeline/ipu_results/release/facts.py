"""What the texts of a release tell of its own tables, asked of the DuckDB file that is published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ipu_results.release.corrections import Applied
from ipu_results.release.database import opened

ASKED = {
    "origins": "SELECT origin, task, count(*) FROM results GROUP BY ALL ORDER BY ALL",
    "documents": "SELECT count(*) FROM documents",
    "source_rows": "SELECT status, count(*) FROM source_rows GROUP BY ALL ORDER BY ALL",
    "flags": "SELECT rule, severity, count(*), count(DISTINCT result_id) FROM flags GROUP BY ALL ORDER BY ALL",
    "quarantine": "SELECT reason, count(*) FROM quarantine GROUP BY ALL ORDER BY ALL",
    "verdicts": "SELECT verdict, count(*) FROM claims GROUP BY ALL ORDER BY 2 DESC, 1",
    "licences": "SELECT document_id, title, publisher, licence, url FROM documents ORDER BY document_id",
    "columns": "SELECT table_name, column_name, type, unit, description FROM columns",
}
FORMULA = "'^[=+@\\t\\r-]'"


@dataclass(frozen=True, slots=True)
class Facts:
    """`tables` is rows and digest by table, `views` the digest of each definition, `found` the answers to ASKED.

    `formulas` are texts that Excel would run.
    """

    version: str
    published_on: date
    build_id: str
    tables: Mapping[str, Mapping[str, Any]]
    views: Mapping[str, str]
    found: Mapping[str, Sequence[tuple[Any, ...]]]
    formulas: int
    applied: Sequence[Applied] = ()

    @property
    def results(self) -> int:
        return sum(count for *_, count in self.found["origins"])


def ask(database: Path, texts: Mapping[str, Sequence[str]]) -> tuple[dict[str, list[tuple[Any, ...]]], int]:
    """The answers to ASKED, and how many values of the text columns given begin as a formula does."""
    with opened(database) as connection:
        found = {name: connection.execute(query).fetchall() for name, query in ASKED.items()}
        counts = (
            connection.execute(f"SELECT {_formulas(columns)} FROM {name}").fetchall()[0][0]
            for name, columns in texts.items()
            if columns
        )
        return found, sum(count or 0 for count in counts)


def _formulas(columns: Sequence[str]) -> str:
    return " + ".join(f"count(*) FILTER (WHERE regexp_matches({name}, {FORMULA}))" for name in columns)
