"""What a citation needs of results: printed figures, the source, and what must be disclosed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ipu_results.errors import QueryError
from ipu_results.kit.sql import Connection
from ipu_results.kit.statements import run_script, run_statement
from ipu_results.schema import table

AUTHOR = "The ipu-results authors"
MAX_IDS = 500
MAX_NAMED = 5  # unknown ids that an error names
COMPUTED_DIGITS = 9  # beyond what times in milliseconds resolve; citations.sql has it, too
RESULTS = table("results")
COLUMNS = (*RESULTS.columns, *RESULTS.kept)
UNITS = {column.name: column.unit or "" for column in COLUMNS}
FIGURES = [column.name for column in COLUMNS if column.figure]
FIGURES.append("value")  # of a microbenchmark
# rows that count only where a question asks for them
EMULATED = "emulated"
SUBMITTED = "submitted"
# where the name of a column without its unit makes a poor label
LABELS = {"quality_value": "quality"}
# MLCommons also requires an ownership legend, whose wording is its own: "Attribution" in its
# Results Messaging Guidelines, read on 2026-11-22 at commit c195f80f of mlcommons/policies. An
# unverified result needs the word at each score, too.
LEGEND = (
    "MLPerf is a trademark of MLCommons Association. Add the ownership legend that its messaging"
    " guidelines ask for: https://github.com/mlcommons/policies"
)
UNMARKED = re.compile(r"\bMLPerf\b(?! ?®)")


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure with its unit, as its source prints it.

    `place` is in the source itself where that is known, else in our file.
    """

    column_name: str
    text: str
    place: str

    @property
    def label(self) -> str:
        """The name of the column in words, without the unit that it ends in."""
        words = self.column_name.split("_")
        if words[-1] == UNITS.get(self.column_name, "").casefold():
            words.pop()
        return LABELS.get(self.column_name, " ".join(words))


@dataclass(frozen=True, slots=True)
class CitedResult:
    """A result with its source, as schema/serve/citations.sql gives it.

    `document_url` leads to the source, and `url` as near to the row as is known. `status` must
    stand at each figure; `notes` must be disclosed with it.
    """

    result_id: str
    description: str
    origin: str
    is_score: bool
    document_id: str
    title: str
    author: str
    url: str | None
    document_url: str | None
    issued_on: str | None
    retrieved_on: str | None
    status: str | None
    figures: tuple[Figure, ...]
    notes: Sequence[str]
    flags: Sequence[Mapping[str, Any]]
    attribution: str | None

    def format_figure(self, figure: Figure) -> str:
        """Return a figure with its label, exactly as printed, and its status where it has one."""
        words = f"{figure.label} {figure.text}"
        return f"{words} ({self.status})" if self.status else words


@contextmanager
def open_citable(connection: Connection) -> Iterator[Connection]:
    """Give a cursor with the view `citable`: everything that has an id of its own.

    Raises GateError where one of the tables is not there.
    """
    with connection.cursor() as session:
        run_script(session, "serve/citable.sql")
        yield session


def load_results(connection: Connection, ids: Sequence[str]) -> list[CitedResult]:
    """Load results or microbenchmarks with what their citation needs, in the order of `ids`.

    Raises QueryError for an unknown id.
    """
    if not ids:
        raise QueryError("no result_id to cite")
    if len(ids) > MAX_IDS:
        raise QueryError(f"{len(ids)} results are too many to cite at once, at most {MAX_IDS}")
    values = {"ids": list(dict.fromkeys(ids)), "figures": FIGURES, "author": AUTHOR}
    with open_citable(connection) as session:
        rows = run_statement(session, "serve/citations.sql", values).to_pylist()
    results = []
    for row in rows:
        figures = tuple(Figure(**figure) for figure in row.pop("figures"))
        results.append(CitedResult(**row, figures=figures))
    known = {result.result_id for result in results}
    unknown = [repr(name) for name in values["ids"] if name not in known]
    if unknown:
        named = ", ".join(unknown[:MAX_NAMED])
        raise QueryError(f"unknown result {named}; a result_id is r and 16 hex digits")
    return results


def mark_name(text: str) -> str:
    """Put the notice symbol behind each use of the name MLPerf."""
    return UNMARKED.sub("MLPerf®", text)
