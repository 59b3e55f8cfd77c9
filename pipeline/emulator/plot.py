"""The parts of each batch's time as stacked bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.emulator.prediction import Prediction
from pipeline.errors import ExtraMissing

FORMATS = (".svg", ".png")
PARTS = {"compute": "#3b6ea5", "exchange": "#e08e45", "supersteps": "#7a9e5f", "protocol": "#b5b5b5"}
SCALE = 2.0  # PNG pixels for each of the drawing's


def parts(one: Prediction) -> dict[str, float]:
    """Milliseconds between two batches of a full pipeline, by PARTS."""
    shares = (one.compute_share, one.exchange_share, one.superstep_share)
    return dict(zip(PARTS, [*(share * one.device_ms for share in shares), one.protocol_ms], strict=True))


def draw(predictions: Sequence[Prediction], model: str, suffix: str) -> bytes:
    """An image in one of FORMATS. Raises ExtraMissing."""
    try:
        import altair  # noqa: PLC0415 (slow, and of an extra)
        import vl_convert  # noqa: PLC0415
    except ImportError as error:
        raise ExtraMissing("--plot needs altair and vl-convert: pip install 'ipu-results[plots]'") from error
    drawing = _chart(altair, predictions, model).to_dict()
    if suffix == ".svg":
        return str(vl_convert.vegalite_to_svg(drawing)).encode()
    return bytes(vl_convert.vegalite_to_png(drawing, scale=SCALE))


def _chart(altair: Any, predictions: Sequence[Prediction], model: str) -> Any:
    first = predictions[0]
    bars = [
        {"batch": one.batch_size, "part": part, "order": order, "ms": ms}
        for one in predictions
        for order, (part, ms) in enumerate(parts(one).items())
    ]
    under = f"Emulated, not measured: protocol {first.protocol}, calibration {first.calibration_id}"
    color = altair.Scale(domain=list(PARTS), range=list(PARTS.values()))
    return (
        altair.Chart(altair.Data(values=bars), title=altair.Title(f"{model} on {first.target}", subtitle=under))
        .mark_bar()
        .encode(
            x=altair.X("batch:O", title="Batch size", sort=None, axis=altair.Axis(labelAngle=0)),
            y=altair.Y("ms:Q", title="Time per batch (ms)", stack="zero"),
            color=altair.Color("part:N", title=None, scale=color, sort=list(PARTS)),
            order=altair.Order("order:Q"),
        )
        .properties(width=altair.Step(60), height=300)
    )
