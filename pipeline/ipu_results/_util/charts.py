"""An Altair chart as the bytes of an image; Altair and its renderer are an extra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ipu_results.errors import MissingExtraError

MISSING = "--plot needs altair and vl-convert: pip install 'ipu-results[plots]'"
SCALE = 2.0  # PNG pixels for each of the drawing's


def to_vega_lite(chart: Callable[[Any], Any]) -> dict[str, Any]:
    """The same drawing as Vega-Lite. Raises MissingExtraError."""
    try:
        import altair  # noqa: PLC0415 (slow, and of an extra)
    except ImportError as error:
        raise MissingExtraError(MISSING) from error
    return dict(chart(altair).to_dict())


def render_chart(chart: Callable[[Any], Any], suffix: str) -> bytes:
    """`chart` makes the drawing with the module `altair`; `suffix` is .svg or .png. Raises MissingExtraError."""
    try:
        import vl_convert  # noqa: PLC0415 (slow, and of an extra)
    except ImportError as error:
        raise MissingExtraError(MISSING) from error
    drawing = to_vega_lite(chart)
    if suffix == ".svg":
        return str(vl_convert.vegalite_to_svg(drawing)).encode()
    return bytes(vl_convert.vegalite_to_png(drawing, scale=SCALE))
