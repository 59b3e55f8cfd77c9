"""Draw the parts of each batch's time as stacked bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipu_results._util.charts import PALETTE, apply_theme, make_data, make_title, render_chart
from ipu_results.emulator.prediction import Prediction

PARTS = PALETTE.time_parts  # colours by part, in the order of `compute_parts`


def compute_parts(prediction: Prediction) -> dict[str, float]:
    """Return the milliseconds between two batches of a full pipeline, by PARTS."""
    shares = (prediction.compute_share, prediction.exchange_share, prediction.superstep_share)
    return dict(zip(PARTS, [*(share * prediction.device_ms for share in shares), prediction.protocol_ms], strict=True))


def render_parts(predictions: Sequence[Prediction], model: str, suffix: str) -> bytes:
    """Render an image; `suffix` is .svg or .png. Raises MissingExtraError."""
    return render_chart(lambda altair: _build_chart(altair, predictions, model), suffix)


def _build_chart(altair: Any, predictions: Sequence[Prediction], model: str) -> Any:
    first = predictions[0]
    bars = [
        {"batch": prediction.batch_size, "part": part, "order": order, "ms": ms}
        for prediction in predictions
        for order, (part, ms) in enumerate(compute_parts(prediction).items())
    ]
    subtitle = f"Emulated, not measured: protocol {first.protocol}, calibration {first.calibration_id}"
    color = altair.Scale(domain=list(PARTS), range=list(PARTS.values()))
    chart = (
        altair.Chart(make_data(altair, bars), title=make_title(altair, f"{model} on {first.target}", subtitle))
        .mark_bar()
        .encode(
            x=altair.X("batch:O", title="Batch size", sort=None, axis=altair.Axis(labelAngle=0)),
            y=altair.Y("ms:Q", title="Time per batch (ms)", stack="zero"),
            color=altair.Color("part:N", title=None, scale=color, sort=list(PARTS)),
            order=altair.Order("order:Q"),
        )
        .properties(width=altair.Step(60), height=300)
    )
    return apply_theme(chart)
