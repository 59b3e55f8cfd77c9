"""A static page for each chart, with its picture and its numbers, and the list of all."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ipu_results.site.html import Markup, format_table, join, link, list_items, tag
from ipu_results.site.page import Page

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
