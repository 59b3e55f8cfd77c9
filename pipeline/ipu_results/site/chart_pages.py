"""The charts: question, finding, chart, caveats and numbers, a static page for each, and the list of all."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from ipu_results.analyses import ANALYSES, Analysis, Answer, build_specification, describe_answer, load_frames
from ipu_results.ground.charts import to_vega_lite
from ipu_results.site.html import Markup, format_table, join, link, list_items, tag
from ipu_results.site.page import Page
from ipu_results.site.predictions import build_points, describe_points, draw_points

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


Chart = Mapping[str, Any]


def build_chart_pages(charts: Sequence[Chart]) -> Iterator[Page]:
    """Yield a page for each chart, then the list of all."""
    yield from map(_build_page, charts)
    items = [join(link(f"chart/{chart['name']}.html", chart["question"]), f" {chart['finding']}") for chart in charts]
    description = f"{len(charts)} questions about IPU performance, answered from published figures."
    yield Page("charts.html", "Questions and answers", description, list_items(*items), "#/charts")


def _build_page(chart: Chart) -> Page:
    name = chart["name"]
    picture = f"{chart['name']}.svg"
    content = join(
        tag("p", chart["finding"], class_="finding"),
        tag("figure", link(picture, tag("img", src=picture, alt=f"Chart. {chart['finding']}"))),
        *(tag("p", figures) for figures in chart["figures"]),
        tag("h2", "What the rows cannot show"),
        list_items(*chart["caveats"]),
        tag("details", tag("summary", "The numbers"), *(_format_numbers(table) for table in chart["numbers"])),
        tag("p", "Download: ", link(f"{name}.csv", "CSV"), ", ", link(picture, "SVG"), "."),
    )
    path, live = f"chart/{name}.html", f"#/charts/{name}"
    return Page(path, chart["question"], chart["finding"], content, live, image=f"chart/{name}.png")


def format_picture(chart: Chart) -> Markup:
    """Format the picture of a chart as a link to its page, for a page at the top of the site."""
    image = tag("img", src=f"chart/{chart['name']}.svg", alt=f"Chart. {chart['finding']}")
    return tag("figure", link(f"chart/{chart['name']}.html", image))


def _format_numbers(table: Mapping[str, Any]) -> str:
    rows = [
        [*(_format(value) for value in row), link(f"../r/{key}.json", "source") if key else ""]
        for row, key in zip(table["rows"], table["ids"], strict=True)
    ]
    return format_table([*table["headings"], "Source"], rows)


def _format(value: Any) -> str:
    return "" if value is None else str(value)


def format_csv(chart: Chart) -> str:
    """Format the numbers of a chart as CSV, its tables one below another, with the ids of the results."""
    text = io.StringIO()
    writer = csv.writer(text)
    for table in chart["numbers"]:
        writer.writerow([*table["headings"], "result_id"])
        writer.writerows([*row, key] for row, key in zip(table["rows"], table["ids"], strict=True))
    return text.getvalue()
