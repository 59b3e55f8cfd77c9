"""Analyses: questions answered by the warehouse, each one a file of `schema/analyses/`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from ipu_results.doors.analyses.question import (
    LISTED,
    Question,
    Settings,
    fill_sentences,
    select_rows,
)
from ipu_results.doors.charts import build_chart
from ipu_results.errors import TooFewRowsError
from ipu_results.kit.files import load_schema_file
from ipu_results.kit.sql import Connection
from ipu_results.kit.statements import run_text
from ipu_results.schema import VIEWS, View

SENTENCE_END = re.compile(r"(?<=[^.A-Z]\.) (?=[A-Z0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis(Question):
    """A question, and how the warehouse answers it.

    `views` are what it is about, the first one its rows. The sentences are a line each, in
    paragraphs; a line that names a null is left out. The `finding` is one sentence, and the title
    of the `chart`. `caveats` say what the rows cannot show.
    """

    folder: ClassVar[str] = "analyses"

    views: tuple[View, ...]
    finding: str
    figures: str
    caveats: str
    chart: Mapping[str, Any]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters of its macros, which a reader may set."""
        return tuple(name for view in self.views for name, _ in view.parameters)


@dataclass(frozen=True, slots=True)
class Answer:
    """The sentences of an answer, and the values that fill them.

    `figures` are paragraphs and `caveats` sentences. `summary` has all in paragraphs, with a blank
    line between two.
    """

    finding: str
    figures: tuple[str, ...]
    caveats: tuple[str, ...]
    summary: str
    values: Mapping[str, Any]
    settings: Settings


def load_analysis(name: str) -> Analysis:
    """Load `schema/analyses/NAME.toml`."""
    content = load_schema_file(f"analyses/{name}.toml")
    by_name = {view.name: view for view in VIEWS}
    views = tuple(by_name[view] for view in content.pop("views"))
    return Analysis(name=name, views=views, **content)


ANALYSES = tuple(load_analysis(name) for name in load_schema_file("order.toml")["analyses"])


def answer_question(
    connection: Connection, analysis: Analysis, settings: Settings = LISTED
) -> Answer:
    """Run the statement of an analysis, and fill its sentences.

    Raises TooFewRowsError for a record that cannot answer it, and GateError that names the file for
    a statement that fails, and for a placeholder that is no column.
    """
    [values] = select_rows(connection, analysis, "answer", settings)
    finding = fill_sentences(analysis, analysis.finding, values)
    figures = fill_sentences(analysis, analysis.figures, values)
    caveats = fill_sentences(analysis, analysis.caveats, values)
    if not finding:
        raise TooFewRowsError(
            _describe_lack(connection, analysis), place=f"analysis {analysis.name}"
        )
    sentences: list[str] = []
    for paragraph in caveats:
        sentences += SENTENCE_END.split(paragraph)
    return Answer(
        finding=finding[0],
        figures=tuple(figures),
        caveats=tuple(sentences),
        summary="\n\n".join([*finding, *figures, *caveats]),
        values=values,
        settings=settings,
    )


def build_specification(
    connection: Connection, analysis: Analysis, answer: Answer
) -> dict[str, Any]:
    """Build the chart of an answer as Vega-Lite, with the finding as its title."""
    return build_chart(
        analysis.chart,
        answer.finding,
        answer.values,
        lambda name: select_rows(connection, analysis, name, answer.settings),
    )


def read_rows(connection: Connection, analysis: Analysis, settings: Settings = LISTED) -> pa.Table:
    """Return the rows that an analysis is about, in the order of their file."""
    view = analysis.views[0]
    arguments = ", ".join(f"{name} := ${name}" for name, _ in view.parameters)
    source = f"{view.sql_name}({arguments})" if arguments else view.sql_name
    parameters = {name: settings.get(name) for name in analysis.parameters}
    return run_text(connection, analysis.path, view.select_rows(source), parameters)


def _describe_lack(connection: Connection, analysis: Analysis) -> str:
    counts = []
    for view in analysis.views:
        rows = run_text(connection, analysis.path, f"FROM {view.source}")
        counts.append(f"{len(rows)} of {view.name}")
    first = analysis.views[0]
    needed = re.split(r"(?<=\w)[.:] ", first.description)[0].rstrip(".")
    return (
        f"the record has too few rows for an answer ({', '.join(counts)}); {first.name} holds:"
        f' {needed}; see what there is with: ipu-results query "FROM {first.source}"'
    )
