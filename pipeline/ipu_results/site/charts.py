"""The charts with question, finding, caveats and numbers: of the analyses, and of the emulator's
errors.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

import duckdb

from ipu_results.analyses import ANALYSES, Answer, build_specification, describe_answer, load_frames
from ipu_results.analyses.analysis import Record, format_percent
from ipu_results.analyses.drawing import make_scale, make_tooltips
from ipu_results.emulator.network import load_network
from ipu_results.emulator.prediction import MS, predict
from ipu_results.emulator.target import DEFAULT_BATCH_SIZES, load_target, read_text
from ipu_results.errors import TooFewRowsError
from ipu_results.ground.charts import PALETTE, apply_theme, make_data, to_vega_lite
from ipu_results.ground.sql import run_query
from ipu_results.networks import IMAGES
from ipu_results.schema import VIEWS

SOURCES = {view.name: view.source for view in VIEWS}  # as a FROM clause names a view


def build_charts(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Collect the answers, in the order of the page. A new analysis is shown without any more code.

    An answer that a record of a few documents has no rows for is left out, with an
    IncompleteRecordWarning.
    """
    charts = []
    for analysis in ANALYSES:
        with skip_without_rows(f"chart {analysis.name}"):
            frames = load_frames(connection, analysis)
            specification = build_specification(analysis, frames)
            answer = describe_answer(analysis, frames)
            charts.append(
                _build(analysis.name, analysis.question, analysis.views, answer, specification)
            )
    with skip_without_rows("chart predicted"):
        points = build_points(connection)
        specification = to_vega_lite(lambda alt: draw_points(alt, points))
        question = "How close are the emulator's predictions to published figures?"
        charts.append(_build("predicted", question, (), describe_points(points), specification))
    return charts


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
        "views": [SOURCES[view] for view in views],
        "numbers": list_numbers(specification),
        "specification": specification,
    }


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


# Name, sign and whether the emulator never saw the rows, by the emulator's sets.
SETS = {
    "calibration": "C2 rows it was fitted on",
    "resnext": "ResNeXt101, held out, errors known",
    "ten": "ten other networks, held out, errors known",
    "honest": "held out, errors not looked at",
}
SHAPES = ("circle", "square", "triangle-up", "diamond")
BAND = 0.25  # the dashed lines: an error that a user of the emulator should expect
MARGIN = 1.3  # factor between the outermost points and the ends of the axes
SIZE = 460
TITLES = {
    "published": "Published time per batch (ms)",
    "emulated": "EMULATED time per batch (ms)",
    "label": "Row",
    "platform": "Machine",
}
DIGITS = 6  # of what is calculated
ALL_DIGITS = 15  # of a published time


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
                predictions.append({key: _round(each, DIGITS) for key, each in record.items()})
    return predictions


def build_points(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Put the published time per batch of each row that the emulator is validated on next to its
    prediction, which `python -m benchmarks.emulator freeze` made.

    Raises TooFewRowsError where a row is missing.
    """
    lines = list(csv.DictReader(read_text("validated.csv").splitlines()))
    records = run_query(connection, VALIDATED).to_pylist()
    rows = {record["result_id"]: record for record in records}
    found = [line for line in lines if line["result_id"] in rows]
    if len(found) < len(lines):
        message = f"the warehouse holds {len(found)} of the {len(lines)} rows to validate against"
        raise TooFewRowsError(message)
    return [_make_point(line, rows[line["result_id"]]) for line in lines]


VALIDATED = """
    SELECT result_id, model, framework, platform, batch_size, throughput, latency_ms
    FROM results WHERE task = 'inference' AND origin = 'published'
"""


def _make_point(line: Mapping[str, str], row: Mapping[str, Any]) -> dict[str, Any]:
    # One batch is in flight where its latency is taken; else batches follow one another.
    if line["time"] == "latency":
        seconds = row["latency_ms"] / MS
    else:
        seconds = row["batch_size"] / row["throughput"]
    return {
        "result_id": row["result_id"],
        "set": line["set"],
        "label": f"{row['model']} {row['framework']}",
        "platform": row["platform"],
        "batch": row["batch_size"],
        "published": _round(seconds * MS, ALL_DIGITS),
        "emulated": float(line["emulated_ms"]),
    }


def _round(value: Any, digits: int) -> Any:
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def describe_points(points: Sequence[Record]) -> Answer:
    """Describe the errors of the rows whose errors were not looked at, then those of each set."""
    errors: dict[str, list[float]] = {name: [] for name in SETS}
    for point in points:
        errors.setdefault(point["set"], []).append(abs(point["emulated"] / point["published"] - 1))
    blind = errors["honest"]
    finding = (
        "The emulator's time per batch differs from the published one by"
        f" {format_percent(median(blind))} in the median of {len(blind)} rows whose errors were not"
        f" looked at while it was made, and by {format_percent(max(blind))} at most."
    )
    figures = " ".join(
        f"{name[0].upper()}{name[1:]}: {len(errors[key])} rows,"
        f" {format_percent(median(errors[key]))} in the median and"
        f" {format_percent(max(errors[key]))} at most."
        for key, name in SETS.items()
        if errors[key]
    )
    caveats = (
        "The other held-out rows fit better, but their errors were known while the model was made.",
        "Two numbers of the emulator were fitted on the C2 rows, so their errors show nothing.",
        (
            "Every emulated figure is calculated from the architecture. Nothing was executed on an"
            " IPU."
        ),
    )
    return Answer(finding, (figures,), caveats)


def draw_points(alt: Any, points: Sequence[Record]) -> Any:
    """Draw emulated over published time per batch on two equal logarithmic axes."""
    times = [point[name] for point in points for name in ("published", "emulated")]
    ends = [min(times) / MARGIN, max(times) * MARGIN]
    scale = alt.Scale(type="log", domain=ends, nice=False)
    axes = {
        "x": alt.X("published:Q", title=TITLES["published"], scale=scale),
        "y": alt.Y("emulated:Q", title=TITLES["emulated"], scale=scale),
    }
    records = [{**point, "set": SETS.get(point["set"], point["set"])} for point in points]
    names = list(SETS.values())
    color = alt.Color(
        "set:N",
        title="Rows",
        scale=make_scale(alt, names, [PALETTE.validation_sets[name] for name in SETS]),
    )
    shape = alt.Shape("set:N", title="Rows", scale=make_scale(alt, names, SHAPES))
    tooltip = make_tooltips(
        alt, "label", "platform", "batch", "published", "emulated", "set", **TITLES
    )
    marks = alt.Chart(make_data(alt, records)).mark_point(filled=True, size=70, opacity=0.85)
    lines = []
    for factor in (1 - BAND, 1, 1 + BAND):
        starts = [end / max(1, factor) for end in ends]
        line = [{"published": start, "emulated": start * factor} for start in starts]
        dash = [1, 0] if factor == 1 else [4, 4]
        style = {"color": PALETTE.ink["rule"], "strokeWidth": 1, "clip": True, "strokeDash": dash}
        lines.append(alt.Chart(make_data(alt, line)).mark_line(**style).encode(**axes))
    chart = alt.layer(*lines, marks.encode(**axes, color=color, shape=shape, tooltip=tooltip))
    subtitle = f"On the line both agree; the dashed lines are ± {BAND:.0%}"
    title = alt.Title(
        describe_points(points).finding, subtitle=[subtitle], anchor="start", fontSize=15
    )
    return apply_theme(chart.properties(width=SIZE, height=SIZE, title=title), legend_columns=2)
