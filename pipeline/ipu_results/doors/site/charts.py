"""The charts with question, finding, caveats and numbers."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypedDict

from pyarrow.csv import read_csv

from ipu_results.doors.analyses import (
    ANALYSES,
    Analysis,
    answer_question,
    build_specification,
    load_analysis,
)
from ipu_results.emulator.network import load_network
from ipu_results.emulator.networks import IMAGES
from ipu_results.emulator.prediction import predict
from ipu_results.emulator.target import DEFAULT_BATCH_SIZES, load_target, read_text
from ipu_results.errors import TooFewRowsError
from ipu_results.kit.sql import Connection

Part = Mapping[str, Any]  # of a specification, or a record that it draws


class NumberTable(TypedDict):
    """What a chart draws, as a table; `ids` are those of the results, where a row is one."""

    headings: list[str]
    rows: list[list[object]]
    ids: list[str | None]


class ChartData(TypedDict):
    """A question with its answer, as `site/src/load.ts` reads it; `specification` is Vega-Lite."""

    name: str
    question: str
    finding: str
    shows: list[str]
    figures: list[str]
    caveats: list[str]
    views: list[str]
    numbers: list[NumberTable]
    specification: Mapping[str, Any]


def build_charts(connection: Connection) -> list[ChartData]:
    """Collect the answers, in the order of the page. A new analysis is shown without any more code.

    An answer that a record of a few documents has no rows for is left out, with an
    IncompleteRecordWarning.
    """
    charts = []
    for analysis in ANALYSES:
        with skip_without_rows(f"chart {analysis.name}"):
            charts.append(build_chart(connection, analysis))
    with skip_without_rows("chart predicted"):
        charts.append(build_predicted(connection))
    return charts


def build_predicted(connection: Connection) -> ChartData:
    """Build the chart of the rows that the emulator is validated on, with the predictions that
    `python -m benchmarks.emulator freeze` made.
    """
    predictions = io.BytesIO(read_text("validated.csv").encode())
    connection.register("validated", read_csv(predictions))
    return build_chart(connection, load_analysis("predicted"))


def build_chart(connection: Connection, analysis: Analysis) -> ChartData:
    """Answer one question, with its chart and the numbers in it."""
    answer = answer_question(connection, analysis)
    specification = build_specification(connection, analysis, answer)
    return {
        "name": analysis.name,
        "question": analysis.question,
        "finding": answer.finding,
        "shows": specification["title"]["subtitle"],
        "figures": list(answer.figures),
        "caveats": list(answer.caveats),
        "views": [view.source for view in analysis.views],
        "numbers": list_numbers(specification),
        "specification": specification,
    }


class IncompleteRecordWarning(UserWarning):
    """The record has too few rows for a part of the site."""


@contextmanager
def skip_without_rows(part: str) -> Iterator[None]:
    """Leave out a part of the site for which the record has too few rows."""
    try:
        yield
    except TooFewRowsError as error:
        message = f"{part} is left out: the record has too few rows for it ({error})"
        warnings.warn(message, IncompleteRecordWarning, stacklevel=3)


def list_numbers(specification: Part) -> list[NumberTable]:
    """List what a chart draws as tables: the fields of its tooltips under their titles, and the ids
    of the results.
    """
    tables: dict[tuple[str, ...], NumberTable] = {}
    listed = set()
    for tooltip, records in _find_marks(specification, [], {}):
        headings = tuple(channel.get("title", channel["field"]) for channel in tooltip)
        table = tables.setdefault(headings, {"headings": list(headings), "rows": [], "ids": []})
        for record in records:
            row = [record.get(channel["field"]) for channel in tooltip]
            result_id = record.get("result_id")
            # Two marks of one record, such as a point and its label, are one row.
            line = (headings, tuple(row), result_id)
            if line in listed or all(value is None for value in row):
                continue
            listed.add(line)
            table["rows"].append(row)
            table["ids"].append(result_id)
    return list(tables.values())


def _find_marks(
    part: Part, records: Sequence[Part], outer: Part
) -> Iterator[tuple[list[Part], Sequence[Part]]]:
    """Find the marks with tooltips below a part of a chart, each with the records that it draws."""
    records = part.get("data", {}).get("values", records)
    encoding = {**outer, **part.get("encoding", {})}
    inner: list[Part] = []
    for key in ("layer", "hconcat", "vconcat", "concat"):
        inner += part.get(key, [])
    if "spec" in part:
        inner.append(part["spec"])
    for each in inner:
        yield from _find_marks(each, records, encoding)
    if not inner and encoding.get("tooltip"):
        yield encoding["tooltip"], records


def format_csv(chart: ChartData) -> str:
    """Format the numbers of a chart as CSV, its tables one below another, with the ids of the
    results.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    for table in chart["numbers"]:
        writer.writerow([*table["headings"], "result_id"])
        for row, result_id in zip(table["rows"], table["ids"], strict=True):
            writer.writerow([*row, result_id])
    return text.getvalue()


DIGITS = 6  # of what is calculated


def build_predictions(_: Connection) -> list[dict[str, object]]:
    """Collect predictions made in advance, since no browser runs the emulator.

    They are of each built-in image network on each machine, with the machine's own protocol.
    """
    predictions = []
    for target, batches in DEFAULT_BATCH_SIZES.items():
        machine = load_target(target)
        for name in IMAGES:
            for prediction in predict(load_network(name), machine, batches):
                record = prediction.to_record(name)
                predictions.append({key: _round(each) for key, each in record.items()})
    return predictions


def _round(value: object) -> object:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
