"""Charts: the palette, the theme, and Altair charts as Vega-Lite or as an image.

Altair and its renderer are an extra: functions that draw take the module `altair` as `alt`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ipu_results.ground import import_extra
from ipu_results.ground.files import load_schema_file

SCALE = 2.0  # PNG pixels per unit of the drawing
# of a machine's colour, for its series: unchanged, darker, lighter, darkest
SHADES = (0, -0.5, 0.4, -0.75)

# One shape and one dash per origin: a reader can distinguish them without colour.
ORIGIN_SHAPES = {"published": "circle", "measured": "triangle-up", "emulated": "square"}
ORIGIN_DASHES = {"published": [1, 0], "measured": [1, 0], "emulated": [4, 3]}
SHAPES = ("circle", "triangle-up", "square", "diamond", "triangle-down", "triangle-right", "stroke")
CROSS = "M-1,-1L1,1M-1,1L1,-1"
PLUS = "M-1,0L1,0M0,-1L0,1"


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by purpose, from `schema/palette.toml`.

    `machines` is by a word of the machine's name, `validation_sets` by the
    emulator's names, `ink` by the part of a drawing: mark, rule, muted, frame, grid.
    """

    series: tuple[str, ...]
    machines: Mapping[str, str]
    validation_sets: Mapping[str, str]
    ink: Mapping[str, str]

    def assign(self, machines: Sequence[str]) -> list[str]:
        """Return one colour per series, by the name of its machine.

        The first series of a machine has the machine's own colour, and each other one a shade of
        it: a reader recognises the machine in every chart. A series of an unknown machine has a
        colour of `series` that no machine of this chart has, repeated where there are more series
        than colours.
        """
        known = [self._find_machine(machine) for machine in machines]
        colors: list[str | None] = []
        for position, color in enumerate(known):
            number = known[:position].count(color) % len(SHADES)
            colors.append(None if color is None else mix_color(color, SHADES[number]))
        free = [color for color in self.series if color not in colors] or list(self.series)
        others = [position for position, color in enumerate(colors) if color is None]
        for number, position in enumerate(others):
            colors[position] = free[number % len(free)]
        return [color for color in colors if color]

    def _find_machine(self, name: str) -> str | None:
        matches = (
            color
            for word, color in self.machines.items()
            if re.search(rf"\b{word}", name, re.IGNORECASE)
        )
        return next(matches, None)


def mix_color(color: str, share: float) -> str:
    """Mix a colour `#RRGGBB` with white by a share of 0 to 1, with black by one of -1 to 0."""
    target = 255 if share > 0 else 0
    parts = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(part + (target - part) * abs(share)):02X}" for part in parts)


def _load_palette() -> Palette:
    content = load_schema_file("palette.toml")
    names = ("machines", "validation_sets", "ink")
    return Palette(tuple(content["series"]), **{name: content[name] for name in names})


PALETTE = _load_palette()


def make_data(alt: Any, records: Sequence[Mapping[str, Any]]) -> Any:
    """Put records inline into a chart."""
    return _make_shared(alt.Data)(values=[dict(record) for record in records])


@cache
def _make_shared(data: type) -> type:
    """Return a class of data that charts share: Altair copies each row whenever charts are put
    together.
    """
    return type(data.__name__, (data,), {"__deepcopy__": lambda self, _: self})


def make_title(alt: Any, text: str, *subtitle: str) -> Any:
    """Set a title at the left, with one line per `subtitle` below."""
    return alt.Title(
        text, subtitle=list(subtitle), anchor="start", fontSize=15, subtitleFontSize=11, offset=14
    )


def apply_theme(chart: Any, legend_columns: int | None = None) -> Any:
    """Set the frame, axes and legend that all charts share; the legend is below in N columns, or at
    the right.
    """
    below = {} if legend_columns is None else {"orient": "bottom", "columns": legend_columns}
    return (
        chart.configure_view(stroke=PALETTE.ink["frame"])
        .configure_axis(labelFontSize=11, titleFontSize=12, gridColor=PALETTE.ink["grid"])
        .configure_legend(labelLimit=0, labelFontSize=11, titleFontSize=11, symbolSize=90, **below)
    )


def list_log_ticks(low: float, high: float, steps: Sequence[int] = (1, 2, 5)) -> list[float]:
    """List the ticks of a logarithmic axis: multiples `steps` of each power of ten between the
    ends.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = (float(f"{step}e{power}") for power in powers for step in steps)
    return [tick for tick in ticks if low <= tick <= high]


def to_vega_lite(chart: Callable[[Any], Any]) -> dict[str, Any]:
    """Build `chart(altair)` and return it as Vega-Lite. Raises MissingExtraError."""
    return dict(chart(import_extra("altair")).to_dict())


def render_chart(chart: Callable[[Any], Any], suffix: str) -> bytes:
    """Build `chart(altair)` and render it; `suffix` is .svg or .png. Raises MissingExtraError."""
    return render_specification(to_vega_lite(chart), suffix)


def render_specification(
    specification: Mapping[str, Any], suffix: str, scale: float = SCALE
) -> bytes:
    """Render Vega-Lite; `suffix` is .svg or .png. Raises MissingExtraError."""
    renderer = import_extra("vl_convert")
    if suffix == ".svg":
        return str(renderer.vegalite_to_svg(specification)).encode()
    return bytes(renderer.vegalite_to_png(specification, scale=scale))
