"""An Altair chart as the bytes of an image; Altair and its renderer are an extra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ipu_results.errors import ExtraMissing

MISSING = "--plot needs altair and vl-convert: pip install 'ipu-results[plots]'"
SCALE = 2.0  # PNG pixels for each of the drawing's


def specified(chart: Callable[[Any], Any]) -> dict[str, Any]:
    """The same drawing as Vega-Lite. Raises ExtraMissing."""
    try:
        import altair  # noqa: PLC0415 (slow, and of an extra)
    except ImportError as error:
        raise ExtraMissing(MISSING) from error
    return dict(chart(altair).to_dict())


def drawn(chart: Callable[[Any], Any], suffix: str) -> bytes:
    """`chart` makes the drawing with the module `altair`; `suffix` is .svg or .png. Raises ExtraMissing."""
    try:
        import vl_convert  # noqa: PLC0415 (slow, and of an extra)
    except ImportError as error:
        raise ExtraMissing(MISSING) from error
    drawing = specified(chart)
    if suffix == ".svg":
        return str(vl_convert.vegalite_to_svg(drawing)).encode()
    return bytes(vl_convert.vegalite_to_png(drawing, scale=SCALE))
