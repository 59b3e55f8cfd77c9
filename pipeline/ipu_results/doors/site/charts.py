"""The charts with question, finding, caveats and numbers."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
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


def build_charts(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
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


def build_predicted(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Build the chart of the rows that the emulator is validated on, with the predictions that
    `python -m benchmarks.emulator freeze` made.
    """
    predictions = io.BytesIO(read_text("validated.csv").encode())
    connection.register("validated", read_csv(predictions))
    return build_chart(connection, load_analysis("predicted"))


def build_chart(connection: duckdb.DuckDBPyConnection, analysis: Analysis) -> dict[str, Any]:
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


def list_numbers(specification: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List what a chart draws as tables: the fields of its tooltips under their titles, and the ids
    of the results.
    """
    tables: dict[tuple[str, ...], dict[Any, None]] = {}
    for tooltip, records in _walk(specification, [], {}):
        fields = [channel["field"] for channel in tooltip]
        # An ordered set: two marks of one record, such as a point and its label, are one row.
        rows = tables.setdefault(
            tuple(channel.get("title", channel["field"]) for channel in tooltip), {}
        )
        for record in records:
            row = tuple(record.get(field) for field in fields)
            if any(value is not None for value in row):
                rows[row, record.get("result_id")] = None
    return [
        {
            "headings": list(headings),
            "rows": [list(row) for row, _ in rows],
            "ids": [key for _, key in rows],
        }
        for headings, rows in tables.items()
    ]


def _walk(
    part: Any, records: Sequence[Mapping[str, Any]], outer: Mapping[str, Any]
) -> Iterator[tuple[list[dict[str, Any]], Sequence[Mapping[str, Any]]]]:
    """Find the marks with tooltips below a part of a chart, each with the records that it draws."""
    records = part.get("data", {}).get("values", records)
    encoding = {**outer, **part.get("encoding", {})}
    inner = [
        each for key in ("layer", "hconcat", "vconcat", "concat") for each in part.get(key, [])
    ]
    inner += [part["spec"]] if "spec" in part else []
    for each in inner:
        yield from _walk(each, records, encoding)
    if not inner and encoding.get("tooltip"):
        yield encoding["tooltip"], records


def format_csv(chart: Mapping[str, Any]) -> str:
    """Format the numbers of a chart as CSV, its tables one below another, with the ids of the
    results.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    for table in chart["numbers"]:
        writer.writerow([*table["headings"], "result_id"])
        writer.writerows([*row, key] for row, key in zip(table["rows"], table["ids"], strict=True))
    return text.getvalue()


DIGITS = 6  # of what is calculated


def build_predictions(_: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
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


def _round(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
