"""The charts: question, finding, chart, caveats, and the numbers that the chart draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from ipu_results._util.charts import to_vega_lite
from ipu_results.analyses import ANALYSES, Analysis, Answer, build_specification, describe_answer, load_frames
from ipu_results.site.predicted import describe_points, draw_points
from ipu_results.site.predictions import build_points

RESULT_ID = "result_id"
PREDICTED = "predicted"
PREDICTED_QUESTION = "How close are the emulator's predictions to published figures?"
CALL = {"per_dollar": "per_dollar()"}  # macros, by the name of the analysis' view


def build_charts(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Collect the answers, in the order of the page. A new analysis is shown without any more code."""
    return [*(_build_analysis(connection, analysis) for analysis in ANALYSES), _build_predicted(connection)]


def _build_analysis(connection: duckdb.DuckDBPyConnection, analysis: Analysis) -> dict[str, Any]:
    frames = load_frames(connection, analysis)
    specification = build_specification(analysis, frames)
    views = [CALL.get(view, view) for view in analysis.views]
    return _build(analysis.name, analysis.question, views, describe_answer(analysis, frames), specification)


def _build_predicted(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    points = build_points(connection)
    specification = to_vega_lite(lambda alt: draw_points(alt, points))
    return _build(PREDICTED, PREDICTED_QUESTION, [], describe_points(points), specification)


def _build(
    name: str, question: str, views: Sequence[str], answer: Answer, specification: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "name": name,
        "question": question,
        "finding": answer.finding,
        "shows": specification["title"].get("subtitle", []),
        "figures": list(answer.figures),
        "caveats": list(answer.caveats),
        "views": list(views),
        "numbers": list_numbers(specification),
        "specification": specification,
    }


def list_numbers(specification: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List what a chart draws as tables: the fields of its tooltips under their titles, and the ids of the results."""
    tables: dict[tuple[str, ...], dict[str, Any]] = {}
    for tooltip, records in _walk(specification, [], {}):
        fields = [channel["field"] for channel in tooltip]
        titles = [channel.get("title", channel["field"]) for channel in tooltip]
        rows = [record for record in records if any(record.get(field) is not None for field in fields)]
        table = tables.setdefault(tuple(titles), {"headings": titles, "rows": [], "ids": []})
        known = {(tuple(row), key) for row, key in zip(table["rows"], table["ids"], strict=True)}
        for record in rows:
            row, key = [record.get(field) for field in fields], record.get(RESULT_ID)
            if (tuple(row), key) not in known:
                known.add((tuple(row), key))
                table["rows"].append(row)
                table["ids"].append(key)
    return list(tables.values())


def _walk(
    part: Any, records: Sequence[Mapping[str, Any]], outer: Mapping[str, Any]
) -> Iterator[tuple[list[dict[str, Any]], Sequence[Mapping[str, Any]]]]:
    """Find the marks with tooltips below a part of a chart, each with the records that it draws."""
    records = part.get("data", {}).get("values", records)
    encoding = {**outer, **part.get("encoding", {})}
    inner = [each for key in ("layer", "hconcat", "vconcat", "concat") for each in part.get(key, [])]
    inner += [part["spec"]] if "spec" in part else []
    for each in inner:
        yield from _walk(each, records, encoding)
    if not inner and encoding.get("tooltip"):
        yield encoding["tooltip"], records
