"""Charts: the palette, and charts as Vega-Lite or as an image; what renders them is an extra."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, cycle, islice
from typing import Any

from ipu_results.kit.extras import import_extra
from ipu_results.kit.files import load_schema_file

SCALE = 2.0  # PNG pixels per unit of the drawing
# of a machine's colour, for its series: unchanged, darker, lighter, darkest
SHADES = (0, -0.5, 0.4, -0.75)

# A reader can distinguish them without colour.
SHAPES = ("circle", "triangle-up", "square", "diamond", "triangle-down", "triangle-right", "cross")
DASHES = ([1, 0], [4, 3], [7, 2])
VEGA_LITE = "https://vega.github.io/schema/vega-lite/v6.json"
TITLE_CHARACTERS = 92  # of a line
CROSS = "M-1,-1L1,1M-1,1L1,-1"
PLUS = "M-1,0L1,0M0,-1L0,1"

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by purpose, from `schema/palette.toml`.

    `machines` is by a word of the machine's name, `ink` by the part of a drawing: mark, rule,
    muted, frame, grid.
    """

    series: tuple[str, ...]
    machines: Mapping[str, str]
    ink: Mapping[str, str]

    def assign(self, machines: Sequence[str]) -> list[str]:
        """Return one colour per series, by the name of its machine.

        The first series of a machine has the machine's own colour, and each other one a shade of
        it: a reader recognises the machine in every chart. A series of an unknown machine has a
        colour of `series` that no machine of this chart has, repeated where there are more series
        than colours.
        """
        drawn: Counter[str] = Counter()  # series by the colour of their machine
        colors: list[str | None] = []
        for machine in machines:
            color = self._find_machine(machine)
            if color is None:
                colors.append(None)
                continue
            shade = SHADES[drawn[color] % len(SHADES)]
            colors.append(mix_color(color, shade))
            drawn[color] += 1
        free = [color for color in self.series if color not in colors]
        others = cycle(free or self.series)
        return [color or next(others) for color in colors]

    def _find_machine(self, name: str) -> str | None:
        for word, color in self.machines.items():
            if re.search(rf"\b{word}", name, re.IGNORECASE):
                return color
        return None


def mix_color(color: str, share: float) -> str:
    """Mix a colour `#RRGGBB` with white by a share of 0 to 1, with black by one of -1 to 0."""
    target = 255 if share > 0 else 0
    mixed = "#"
    for start in (1, 3, 5):  # red, green and blue
        part = int(color[start : start + 2], 16)
        mixed += f"{round(part + (target - part) * abs(share)):02X}"
    return mixed


def _load_palette() -> Palette:
    content = load_schema_file("palette.toml")
    return Palette(tuple(content["series"]), content["machines"], content["ink"])


PALETTE = _load_palette()


@dataclass(frozen=True, slots=True)
class Mark:
    """One way to draw rows: a mark of Vega-Lite, and the channels of its panel that it shows."""

    definition: Mapping[str, Any]
    channels: frozenset[str]


def _make_mark(channels: tuple[str, ...], kind: str, **definition: Any) -> Mark:
    return Mark({"type": kind, **definition}, frozenset(channels))


LINE = ("x", "y", "color", "strokeDash", "detail")
POINT = ("x", "y", "color", "shape", "tooltip")
COLORED = ("x", "y", "color", "tooltip")
OVER = {"size": 140, "stroke": PALETTE.ink["mark"], "strokeWidth": 1.6, "opacity": 1}
MARKS = {
    "line": _make_mark(LINE, "line", strokeWidth=1.4, opacity=0.8),
    "steps": _make_mark(LINE, "line", strokeWidth=1.4, interpolate="step-after"),
    "points": _make_mark(POINT, "point", filled=True, size=55, opacity=0.9),
    "rings": _make_mark(POINT, "point", size=55, opacity=0.8),
    "crosses": _make_mark(("x", "y"), "point", shape=CROSS, **OVER),
    "pluses": _make_mark(("x", "y"), "point", shape=PLUS, **OVER),
    "small crosses": _make_mark(COLORED, "point", shape=CROSS, size=30, opacity=0.6),
    "limits": _make_mark(("x", "y", "strokeDash", "detail"), "line", color=PALETTE.ink["rule"]),
    "intervals": _make_mark(("x", "y", "color"), "rule", strokeWidth=2, opacity=0.6),
    "ticks": _make_mark(COLORED, "tick", thickness=3, size=13),
    "rule": _make_mark((), "rule", color=PALETTE.ink["rule"], strokeDash=[4, 3]),
    "band": _make_mark((), "rule", color=PALETTE.ink["muted"], strokeWidth=3, opacity=0.5),
    "cells": _make_mark(COLORED, "rect", stroke=PALETTE.ink["frame"]),
    "text": _make_mark(("x", "y", "text"), "text"),
}
CHANNELS = ("x", "y", "x2", "y2", "color", "shape", "strokeDash", "detail", "text")
RANGES: Mapping[str, Callable[[list[str]], list[Any]]] = {
    "color": PALETTE.assign,
    "shape": lambda names: _repeat(SHAPES, names),
    "strokeDash": lambda names: _repeat(DASHES, names),
}
LOG_TICKS = [float(f"{step}e{power}") for power in range(-3, 10) for step in (1, 2, 5)]
# of the labels of rows: lines, and the title above
LABELS = {"grid": True, "titleAngle": 0, "titleAlign": "right", "titleX": -8, "titleY": -7}


def build_chart(
    chart: Record, finding: str, values: Record, select: Callable[[str], Sequence[Record]]
) -> dict[str, Any]:
    """Build a chart as Vega-Lite, with its rows in it, and the finding as its title.

    A chart has `panels`, and a panel `marks`, by the names of MARKS; what panels share is written
    in the chart. `rows` names what `select` returns: one panel for each value of a column `panel`.
    Channels such as `x` are those of Vega-Lite, or the name of a column alone; `series` is color
    and shape. A mark may have rows, channels and a style of its own, and draws the rows `where` an
    expression of Vega is true. The names of a scale are in the order of the rows unless it has a
    domain. That is a list or the name of one of `values`, as is the datum of a rule. Columns that
    do not begin with a small letter are shown at a point. Titles are filled with `values`.
    """
    select = cache(select)
    panels: list[dict[str, Any]] = []
    for part in chart["panels"]:
        panels += _draw_panels(_merge({**chart, "title": ""}, part), values, select)
    scales = dict.fromkeys(RANGES, "independent")
    scales.update(dict.fromkeys(chart.get("share", ()), "shared"))
    subtitle = [chart["title"], *chart.get("subtitle", ())]
    return {
        "$schema": VEGA_LITE,
        "title": {
            "text": textwrap.wrap(finding, TITLE_CHARACTERS),
            "subtitle": "\n".join(subtitle).format_map(values).splitlines(),
            "anchor": "start",
            "fontSize": 15,
            "subtitleFontSize": 11,
            "offset": 14,
        },
        "concat": panels,
        "columns": chart.get("columns", len(panels)),
        "spacing": 30,
        "resolve": {"scale": scales},
        "config": make_theme(chart.get("legend_columns")),
    }


def _merge(shared: Record, panel: Record) -> dict[str, Any]:
    """Add to a panel what all panels share, also to a channel."""
    merged = {**shared, **panel}
    for name in shared.keys() & panel.keys():
        if isinstance(shared[name], Mapping):
            merged[name] = {**shared[name], **panel[name]}
    return merged


def make_theme(legend_columns: int | None) -> dict[str, Any]:
    """Return frame, axes and legend, which is below in N columns, or at the right."""
    below = {} if legend_columns is None else {"orient": "bottom", "columns": legend_columns}
    legend = {"labelLimit": 0, "labelFontSize": 11, "titleFontSize": 11, "symbolSize": 90}
    return {
        "view": {"stroke": PALETTE.ink["frame"]},
        "axis": {"labelFontSize": 11, "titleFontSize": 12, "gridColor": PALETTE.ink["grid"]},
        "legend": {**legend, **below},
    }


def _draw_panels(
    part: Record, values: Record, select: Callable[[str], Sequence[Record]]
) -> Iterator[dict[str, Any]]:
    if "series" in part:
        part = {"color": part["series"], "shape": part["series"], **part}
    rows = select(part["rows"])
    for panel in dict.fromkeys(row.get("panel") for row in rows):
        drawn = []
        for mark in part["marks"]:
            every = select(mark["rows"]) if "rows" in mark else rows
            drawn.append([row for row in every if row.get("panel") == panel])
        channels: dict[str, Any] = {}
        of_panel = list(chain(*drawn))
        for name in CHANNELS:
            if name in part:
                is_shared = name in part.get("share", ())
                named = rows if is_shared else of_panel
                channels[name] = _make_channel(name, part[name], {}, named, values)
        yield {
            "title": panel or part["title"],
            "width": part.get("width", 400),
            "height": part.get("height", 330),
            "data": {"values": [row for row in rows if row.get("panel") == panel]},
            "layer": [
                _draw_mark(mark, channels, rows_of_mark, values)
                for mark, rows_of_mark in zip(part["marks"], drawn, strict=True)
            ],
        }


def _draw_mark(
    mark: Record, channels: Record, rows: Sequence[Record], values: Record
) -> dict[str, Any]:
    kind = MARKS[mark["mark"]]
    encoding = {name: channel for name, channel in channels.items() if name in kind.channels}
    for name in CHANNELS:
        if name in mark:
            encoding[name] = _make_channel(name, mark[name], channels.get(name, {}), rows, values)
    style = {**kind.definition, **mark.get("style", {})}
    layer: dict[str, Any] = {"mark": style, "encoding": encoding}
    if "where" in mark:
        layer["transform"] = [{"filter": mark["where"]}]
    if "rows" in mark:
        layer["data"] = {"values": rows}
    if any("datum" in channel for channel in encoding.values()):
        layer["data"] = {"values": [{}]}  # one line, not one for each row
    if "tooltip" in kind.channels and rows:
        shown = [name for name in rows[0] if not name[0].islower()]
        encoding["tooltip"] = [{"field": name, "type": "nominal"} for name in shown]
    return layer


def _make_channel(
    name: str, channel: str | Record, base: Record, rows: Sequence[Record], values: Record
) -> dict[str, Any]:
    """Complete a channel: what it does not say is that of `base`, or follows from the rows."""
    stated = {"field": channel} if isinstance(channel, str) else dict(channel)
    if name in ("x2", "y2"):  # of the kind of the other end
        return stated
    kind = "quantitative" if name in ("x", "y") else "nominal"
    made = {"type": kind, **base, **stated}
    if name in ("detail", "text"):
        return made
    if "datum" in stated:
        made.pop("field")
        made["datum"] = values.get(stated["datum"], stated["datum"])
        made["axis"] = {"grid": True, **made.get("axis", {})}  # that of a datum has none
        return made
    made.setdefault("title", made["field"])
    scale = dict(made.get("scale", {}))
    axis = made.get("axis", {})
    if isinstance(scale.get("domain"), str):
        scale["domain"] = values[scale["domain"]]
    if scale.get("type") == "log":
        made["scale"] = {"nice": False, **scale}
        ticks = {} if "tickCount" in axis else {"values": LOG_TICKS}
        made["axis"] = {"format": "~g", **ticks, **axis}
    if made["type"] == "nominal":
        found = dict.fromkeys(row[made["field"]] for row in rows if row.get(made["field"]))
        names = scale.get("domain", list(found))
        made["scale"] = {**scale, "domain": names}
        if name in RANGES:
            made["scale"] = {"range": RANGES[name](names), **made["scale"]}
        if "labelLimit" in axis:
            made["axis"] = {**LABELS, **axis}
    return made


def _repeat(signs: Sequence[Any], names: Sequence[str]) -> list[Any]:
    return list(islice(cycle(signs), len(names)))


def render_specification(
    specification: Mapping[str, Any], suffix: str, scale: float = SCALE
) -> bytes:
    """Render Vega-Lite; `suffix` is .svg or .png. Raises MissingExtraError."""
    renderer = import_extra("vl_convert")
    if suffix == ".svg":
        return str(renderer.vegalite_to_svg(specification)).encode()
    return bytes(renderer.vegalite_to_png(specification, scale=scale))
