"""The chart of points and published rows: which series it shows, and what distinguishes them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from ipu_results.errors import MissingExtraError, RunnerError
from ipu_results.ground.charts import CROSS, ORIGIN_DASHES, PALETTE
from ipu_results.runner import report
from ipu_results.runner.report import build_series, draw_chart

from tests.runner.test_runner_reference_rows import BATCHES, REASON, XEON, emulated, measured, rows

pytestmark = pytest.mark.slow  # sweeps are drawn

QWANT = "C2, PopART, mixed: published, Qwant"
CARD = "C2, emulator, fp16: EMULATED, not measured"
CPU = f"{XEON}, onnxruntime, cpu, fp32: measured"
HOLLOW, SOLID = "transparent", [1, 0]

Drawing = dict[str, Any]
Draw = Callable[..., Drawing]


def sweep(
    make: Any, throughput: float, batches: Sequence[int] = BATCHES, **more: Any
) -> list[dict[str, Any]]:
    return [make(batch, throughput, **more) for batch in batches]


BOTH = [*sweep(emulated, 2000.0), *sweep(measured, 10.0)]


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> Draw:
    """Return the Vega-Lite drawing instead of its image."""
    import altair  # noqa: PLC0415 (slow)

    def render(make: Callable[[Any], Any], suffix: str) -> bytes:  # noqa: ARG001
        return json.dumps(make(altair).to_dict()).encode()

    monkeypatch.setattr(report, "render_chart", render)
    return lambda points, published=None: json.loads(
        draw_chart(points, rows() if published is None else published, ".svg")
    )


def layers(spec: Drawing, panel: int, mark: str) -> Iterator[Drawing]:
    return (layer for layer in spec["hconcat"][panel]["layer"] if layer["mark"]["type"] == mark)


def data(spec: Drawing, layer: Drawing) -> list[dict[str, Any]]:
    named = (
        layer.get("data") or spec["hconcat"][0].get("data") or spec["data"]
    )  # altair moves what all share outwards
    values: list[dict[str, Any]] = (
        named["values"] if "values" in named else spec["datasets"][named["name"]]
    )
    return values


def points_of(spec: Drawing, panel: int = 0) -> Drawing:
    return next(layer for layer in layers(spec, panel, "point") if "shape" not in layer["mark"])


def by_name(encoded: Drawing) -> dict[str, Any]:
    return dict(zip(encoded["scale"]["domain"], encoded["scale"]["range"], strict=True))


def axis(spec: Drawing, panel: int, channel: str = "y") -> Drawing:
    encoded: Drawing = points_of(spec, panel)["encoding"][channel]
    return encoded


def crossed(spec: Drawing, panel: int = 0) -> list[int]:
    crosses = [
        layer for layer in layers(spec, panel, "point") if layer["mark"].get("shape") == CROSS
    ]
    return [row["batch"] for layer in crosses for row in data(spec, layer)]


# --- what distinguishes series


def test_only_emulated_series_are_dashed_and_hollow(drawing: Draw) -> None:
    spec = drawing(BOTH)
    for panel in (0, 1):
        line, marks = next(layers(spec, panel, "line")), points_of(spec, panel)
        assert by_name(line["encoding"]["strokeDash"]) == {
            QWANT: SOLID,
            CARD: ORIGIN_DASHES["emulated"],
            CPU: SOLID,
        }
        fills = by_name(marks["encoding"]["fill"])
        assert fills[CARD] == HOLLOW
        assert HOLLOW not in (fills[QWANT], fills[CPU])


def test_each_series_has_its_own_shape_and_colour_in_one_legend(drawing: Draw) -> None:
    other = sweep(measured, 100.0, run_id="b", backend="openvino", compute_precision="bf16")
    spec = drawing([*BOTH, *other])
    encoding = {**next(layers(spec, 0, "line"))["encoding"], **points_of(spec)["encoding"]}
    for channel in ("shape", "color"):
        values = by_name(encoding[channel])
        assert len(values) == len(set(values.values())) == 4
    assert by_name(encoding["shape"])[QWANT] == "diamond"
    shared = [encoding[name] for name in ("color", "fill", "shape", "strokeDash")]
    assert [encoded["scale"]["domain"][:3] for encoded in shared] == [[QWANT, CARD, CPU]] * 4
    assert {(encoded["field"], encoded["title"]) for encoded in shared} == {("series", None)}
    assert set(spec["resolve"]["scale"].values()) == {"shared"}


def test_suspect_point_is_crossed_out_and_explained(drawing: Draw) -> None:
    spec = drawing([measured(2), measured(4, suspect=REASON), measured(6)])
    assert crossed(spec, 0) == crossed(spec, 1) == [4]
    assert "crossed out: suspect" in " ".join(spec["title"]["subtitle"])
    plain = drawing([measured(2)])
    assert crossed(plain) == []
    assert "suspect" not in json.dumps(plain["title"])


def test_measured_points_have_bars_and_emulated_ones_a_band(drawing: Draw) -> None:
    spec = drawing(BOTH)
    for panel, ends in enumerate(((380.0, 420.0), (10 / 1.05, 10 / 0.95))):
        (bars,) = layers(spec, panel, "rule")
        (band,) = layers(spec, panel, "area")
        row = next(row for row in data(spec, bars) if row["batch"] == 4)
        assert (row["y"], row["high"]) == pytest.approx(ends)
        assert [row["batch"] for row in data(spec, band)] == list(BATCHES)
        assert bars["mark"]["strokeDash"] == SOLID
    colors = by_name(points_of(spec)["encoding"]["color"])
    assert (bars["mark"]["color"], band["mark"]["color"]) == (colors[CPU], colors[CARD])
    alone = drawing([emulated(4)])
    (bar,) = layers(alone, 0, "rule")
    assert bar["mark"]["strokeDash"] == ORIGIN_DASHES["emulated"], "a band needs two points"
    assert not list(layers(alone, 0, "area"))
    bare = drawing([measured(2, latency_ms_low=None, latency_ms_high=None)])
    assert not list(layers(bare, 0, "rule"))
    assert len(data(bare, points_of(bare))) == 7


# --- which series


def test_papers_rows_and_every_run_are_drawn(drawing: Draw) -> None:
    spec = drawing(BOTH)
    drawn = data(spec, points_of(spec, 1))
    published = [1474.16, 2063.03, 2131.01, 2409.79, 2421.82, 2526.35]
    assert [row["y"] for row in drawn if row["series"] == QWANT] == published
    assert [row["y"] for row in drawn if row["series"] == CPU] == [10.0] * 6
    latencies = [row["y"] for row in data(spec, points_of(spec, 0)) if row["series"] == CARD]
    assert latencies == [batch / 2 for batch in BATCHES]
    flagged = drawing([measured(2)], [replace(row, errors=1) for row in rows()])
    assert {row["series"] for row in data(flagged, points_of(flagged))} == {CPU}
    alone = drawing([measured(6)], [])
    assert [row["series"] for row in data(alone, points_of(alone))] == [CPU]
    assert "Differs" not in json.dumps(alone["title"])


@pytest.mark.parametrize("points", [[], [measured(origin="simulated")], [measured(origin=None)]])
def test_chart_without_a_measured_or_emulated_point_is_refused(
    points: list[dict[str, Any]],
) -> None:
    with pytest.raises(RunnerError, match="no point is measured or emulated"):
        draw_chart(points, rows(), ".svg")


def test_simulated_points_are_counted_and_not_drawn(drawing: Draw) -> None:
    spec = drawing([measured(2), measured(4, 7777.0, origin="simulated")])
    assert 7777.0 not in [row["y"] for row in data(spec, points_of(spec, 1))]
    assert spec["title"]["subtitle"][-1] == "Simulated points left out: 1"


def test_runs_of_one_device_are_named_by_their_ids() -> None:
    names = [
        own.name for own in build_series([measured(2, run_id="a"), measured(2, run_id="b")], [])
    ]
    assert names == [f"{CPU}, a", f"{CPU}, b"]


# --- axes and words


def test_axes_name_their_units(drawing: Draw) -> None:
    spec = drawing(sweep(measured, 10.0), [])
    assert axis(spec, 0)["title"] == "Latency, amortised (ms per batch)"
    assert axis(spec, 1)["title"] == "Throughput (images/s)"
    assert axis(spec, 0, "x")["title"] == "Batch size (total over all sessions)"
    assert axis(spec, 0, "x")["axis"]["values"] == list(BATCHES)
    unknown_kind = drawing([emulated(4, platform="IPU-M2000")])
    assert axis(unknown_kind, 0)["title"] == "Latency (ms per batch)"


def test_processor_and_card_share_a_logarithmic_axis(drawing: Draw) -> None:
    spec = drawing(BOTH)
    for panel in (0, 1):
        encoded = axis(spec, panel)
        drawn = data(spec, points_of(spec, panel))
        values = [row[key] for row in drawn for key in ("y", "low", "high") if row[key] is not None]
        low, high = encoded["scale"]["domain"]
        assert encoded["scale"]["type"] == "log"
        assert low < min(values) < max(values) < high
        assert all(low <= tick <= high for tick in encoded["axis"]["values"])
        assert len(encoded["axis"]["values"]) >= 3
        assert encoded["title"].endswith(", log scale")
    scale = axis(drawing(sweep(emulated, 2000.0)), 1)["scale"]
    assert "type" not in scale, "similar series share a linear axis from zero"
    assert scale["domain"][0] == 0
    assert scale["domain"][1] > 2526.35


@pytest.mark.parametrize(("largest", "log"), [(12, False), (31, False), (32, True), (64, True)])
def test_wide_range_of_batches_has_logarithmic_axes(drawing: Draw, largest: int, log: bool) -> None:
    spec = drawing([measured(2), measured(largest)], [])
    batches = axis(spec, 0, "x")["scale"]
    assert (batches.get("type") == "log") is log
    assert batches["domain"][0] < 2 < largest < batches["domain"][1]
    assert (axis(spec, 0)["scale"].get("type") == "log") is log, "latencies grow with the batch"
    assert axis(spec, 1)["scale"].get("type") is None


def test_title_names_the_model_and_the_subtitle_the_differences(drawing: Draw) -> None:
    title = drawing([emulated(2, pipeline="serial")])["title"]
    assert title["text"] == "resnext101-32x4d: latency and throughput by batch size"
    assert title["subtitle"] == [
        (
            "Differs from the published rows, or is not known: weights, compute precision,"
            " pipeline, framework"
        ),
        "Dashed and hollow: emulated, not measured; its band is the prediction's",
    ]
    point = measured(
        2,
        suspect=REASON,
        sessions=1,
        pipeline="serial",
        preprocessing="other",
        latency_kind="isolated",
    )
    subtitle = drawing([point, emulated(2)])["title"]["subtitle"]
    assert len(subtitle) <= 3
    assert max(map(len, subtitle)) <= report.SUBTITLE


# --- images


def text_of(svg: bytes) -> str:
    return " ".join(" ".join(ElementTree.fromstring(svg).itertext()).split())


def test_svg_holds_titles_and_names_and_is_reproducible() -> None:
    svg = draw_chart(BOTH, rows(), ".svg")
    text = text_of(svg)
    assert [text.count(name) for name in (QWANT, CARD, CPU)] == [1, 1, 1]
    assert "Latency, amortised (ms per batch), log scale" in text
    assert "Throughput (images/s), log scale" in text
    assert draw_chart(BOTH, rows(), ".svg") == svg
    _, shade = PALETTE.assign(["C2, published", "C2, emulated"])
    assert re.search(rf'stroke="{shade}"[^>]*stroke-dasharray="4,3"', svg.decode()), (
        "an emulated line is dashed"
    )


def test_name_from_a_model_file_is_escaped() -> None:
    svg = draw_chart(
        [measured(2, model="<script>alert(1)</script>", platform="a & <b>")], [], ".svg"
    )
    assert b"<script" not in svg
    assert "<script>alert(1)</script>: latency" in text_of(svg)
    assert "a & <b>, onnxruntime" in text_of(svg)


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtraError, match=r"ipu-results\[plots\]"):
        draw_chart([measured(2)], [], ".svg")
