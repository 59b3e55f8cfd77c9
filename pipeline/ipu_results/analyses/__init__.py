"""Analyses: questions answered by the warehouse, each one a file of `schema/analyses/`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from string import Formatter
from types import MappingProxyType
from typing import Any

import duckdb
import pyarrow as pa

from ipu_results.errors import GateError, TooFewRowsError
from ipu_results.ground.charts import build_chart
from ipu_results.ground.files import load_schema_file
from ipu_results.ground.statements import run_text
from ipu_results.schema import VIEWS, View

Settings = Mapping[str, float]
SENTENCE_END = re.compile(r"(?<=[^.A-Z]\.) (?=[A-Z0-9])")
LISTED: Settings = MappingProxyType({})  # every parameter has its default


@dataclass(frozen=True, slots=True)
class Analysis:
    """A question, and how the warehouse answers it.

    `views` are what it is about, the first one its rows. `sql` has statements by name, each of
    which may read those before it. The one row of `answer` fills the sentences. They are a line
    each, in paragraphs; a line that names a null is left out. The `finding` is one sentence, and the
    title of the `chart`. `caveats` say what the rows cannot show.
    """

    name: str
    question: str
    views: tuple[View, ...]
    sql: Mapping[str, str]
    finding: str
    figures: str
    caveats: str
    chart: Mapping[str, Any]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters of its macros, which a reader may set."""
        return tuple(name for view in self.views for name, _ in view.parameters)

    @property
    def path(self) -> str:
        return f"analyses/{self.name}.toml"


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
    return Analysis(name, views=views, **content)


ANALYSES = tuple(load_analysis(name) for name in load_schema_file("order.toml")["analyses"])


def answer_question(
    connection: duckdb.DuckDBPyConnection, analysis: Analysis, settings: Settings = LISTED
) -> Answer:
    """Run the statement of an analysis, and fill its sentences.

    Raises TooFewRowsError for a record that cannot answer it, and GateError that names the file for
    a statement that fails, and for a placeholder that is no column.
    """
    [values] = _select(connection, analysis, "answer", settings)
    finding = _fill(analysis, analysis.finding, values)
    figures = _fill(analysis, analysis.figures, values)
    caveats = _fill(analysis, analysis.caveats, values)
    if not finding:
        raise TooFewRowsError(
            _describe_lack(connection, analysis), place=f"analysis {analysis.name}"
        )
    return Answer(
        finding=finding[0],
        figures=tuple(figures),
        caveats=tuple(sentence for text in caveats for sentence in SENTENCE_END.split(text)),
        summary="\n\n".join([*finding, *figures, *caveats]),
        values=values,
        settings=settings,
    )


def build_specification(
    connection: duckdb.DuckDBPyConnection, analysis: Analysis, answer: Answer
) -> dict[str, Any]:
    """Build the chart of an answer as Vega-Lite, with the finding as its title."""
    return build_chart(
        analysis.chart,
        answer.finding,
        answer.values,
        lambda name: _select(connection, analysis, name, answer.settings),
    )


def read_rows(
    connection: duckdb.DuckDBPyConnection, analysis: Analysis, settings: Settings = LISTED
) -> pa.Table:
    """Return the rows that an analysis is about, in the order of their file."""
    view = analysis.views[0]
    arguments = ", ".join(f"{name} := ${name}" for name, _ in view.parameters)
    source = f"{view.sql_name}({arguments})" if arguments else view.sql_name
    parameters = {name: settings.get(name) for name in analysis.parameters}
    return run_text(connection, analysis.path, view.select_rows(source), parameters)


def _select(
    connection: duckdb.DuckDBPyConnection, analysis: Analysis, name: str, settings: Settings
) -> list[dict[str, Any]]:
    """Return the rows of one statement, with integers where a number is one."""
    names = list(analysis.sql)
    before = [f"{each} AS ({analysis.sql[each]})" for each in names[: names.index(name)]]
    sql = f"{'WITH ' if before else ''}{', '.join(before)} {analysis.sql[name]}"
    parameters = {each: settings.get(each) for each in analysis.parameters}
    rows = run_text(connection, f"{analysis.path}, {name}", sql, parameters).to_pylist()
    return [{column: _to_plain(value) for column, value in row.items()} for row in rows]


def _to_plain(value: Any) -> Any:
    plain = float(value) if isinstance(value, Decimal) else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def _fill(analysis: Analysis, text: str, values: Mapping[str, Any]) -> list[str]:
    """Fill the sentences of each paragraph; one that names a null is left out."""
    paragraphs = []
    for paragraph in text.strip().split("\n\n"):
        filled = []
        for sentence in paragraph.splitlines():
            names = [name for _, name, _, _ in Formatter().parse(sentence) if name]
            try:
                used = [Formatter().get_field(name, (), values)[0] for name in names]
            except LookupError as error:
                message = f"no column of its answer is {error}, which a sentence names"
                raise GateError(message, place=f"schema/{analysis.path}") from error
            except TypeError:  # a part of a null
                used = [None]
            if None not in used:
                filled.append(sentence.format_map(values))
        paragraphs.append(" ".join(filled))
    return list(filter(None, paragraphs))


def _describe_lack(connection: duckdb.DuckDBPyConnection, analysis: Analysis) -> str:
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
