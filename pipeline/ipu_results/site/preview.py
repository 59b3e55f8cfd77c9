"""Preview images, which a link to a page shows elsewhere."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ipu_results.errors import import_extra
from ipu_results.ground.charts import render_specification

WIDTH, HEIGHT = 800, 420  # nearly the 1.91 to 1 that most sites show
CHARACTERS, TITLE_CHARACTERS = 62, 40  # of a line
MAX_LINES = 5
QUALITY = 75
CHART_SCALE = 1.0


def draw_card(title: str, lines: Sequence[str]) -> bytes:
    """Draw the title of a page and some lines as a JPEG. Raises MissingExtraError."""
    heading = textwrap.wrap(title, TITLE_CHARACTERS)[:MAX_LINES]
    below = [part for line in lines for part in textwrap.wrap(line, CHARACTERS)[:2]][:MAX_LINES]
    texts = [(34, "700", line) for line in heading] + [(22, "400", line) for line in below]
    y, parts = 84, []
    for size, weight, line in texts:
        parts.append(f'<text x="48" y="{y}" font-size="{size}" font-weight="{weight}">{escape(line)}</text>')
        y += round(size * 1.4)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        f'fill="#1b2127"><rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/><rect width="{WIDTH}" height="12" '
        f'fill="#14588a"/>{"".join(parts)}<text x="48" y="{HEIGHT - 28}" font-size="20" fill="#55606a">ipu-results'
        "</text></svg>"
    )
    return bytes(import_extra("vl_convert").svg_to_jpeg(svg, quality=QUALITY))


def draw_chart(specification: Mapping[str, Any]) -> bytes:
    """Draw a chart as a PNG. Raises MissingExtraError."""
    return render_specification(specification, ".png", CHART_SCALE)
