"""The drawing of points beside published rows: which series it shows, and how each can be told from the others."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import MissingExtraError, RunnerError
from ipu_results.runner import chart
from ipu_results.runner.beside import Published
from ipu_results.runner.chart import BLACK, COLORS, CROSS, DASHES, draw, series

from tests.test_runner_beside import BATCHES, XEON, emulated, measured, rows

REASON = "the interval is 40 % of the median"
QWANT = "C2, PopART, mixed: published, Qwant"
CARD = "C2, emulator, fp16: EMULATED, not measured"
CPU = f"{XEON}, onnxruntime, cpu, fp32: measured"
HOLLOW, SOLID = "transparent", [1, 0]

Drawing = dict[str, Any]
Draw = Callable[..., Drawing]


def sweep(make: Any, throughput: float, batches: Sequence[int] = BATCHES, **more: Any) -> list[dict[str, Any]]:
    return [make(batch, throughput, **more) for batch in batches]


BOTH = [*sweep(emulated, 2000.0), *sweep(measured, 10.0)]


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> Draw:
    """The Vega-Lite drawing instead of its image."""
    import altair  # noqa: PLC0415 (slow)

    def told(make: Callable[[Any], Any], suffix: str) -> bytes:  # noqa: ARG001
        return json.dumps(make(altair).to_dict()).encode()

    monkeypatch.setattr(chart, "render_chart", told)
    return lambda points, published=None: json.loads(draw(points, rows() if published is None else published, ".svg"))


def layers(spec: Drawing, panel: int, mark: str) -> Iterator[Drawing]:
    return (layer for layer in spec["hconcat"][panel]["layer"] if layer["mark"]["type"] == mark)


def data(spec: Drawing, layer: Drawing) -> list[dict[str, Any]]:
    named = layer.get("data") or spec["hconcat"][0].get("data") or spec["data"]  # altair moves what all share outwards
    found: list[dict[str, Any]] = named["values"] if "values" in named else spec["datasets"][named["name"]]
    return found


def points_of(spec: Drawing, panel: int = 0) -> Drawing:
    return next(layer for layer in layers(spec, panel, "point") if "shape" not in layer["mark"])


def by_name(encoded: Drawing) -> dict[str, Any]:
    scale = encoded["scale"]
    return dict(zip(scale["domain"], scale["range"], strict=True))


def axis(spec: Drawing, panel: int, channel: str = "y") -> Drawing:
    found: Drawing = points_of(spec, panel)["encoding"][channel]
    return found


def crossed(spec: Drawing, panel: int = 0) -> list[int]:
    crosses = [layer for layer in layers(spec, panel, "point") if layer["mark"].get("shape") == CROSS]
    return [row["batch"] for layer in crosses for row in data(spec, layer)]


# ---- how series are told apart


def test_emulated_is_dashed_and_hollow_and_nothing_else_is(drawing: Draw) -> None:
    for panel in (0, 1):
        spec = drawing(BOTH)
        line, marks = next(layers(spec, panel, "line")), points_of(spec, panel)
        assert by_name(line["encoding"]["strokeDash"]) == {QWANT: SOLID, CARD: [5, 4], CPU: SOLID}
        fills = by_name(marks["encoding"]["fill"])
        assert fills[CARD] == HOLLOW
        assert HOLLOW not in (fills[QWANT], fills[CPU])


def test_each_series_has_a_shape_and_a_colour_of_its_own(drawing: Draw) -> None:
    other = sweep(measured, 100.0, run_id="b", backend="openvino", compute_precision="bf16")
    encoding = points_of(drawing([*BOTH, *other]))["encoding"]
    for channel in ("shape", "color"):
        told = by_name(encoding[channel])
        assert len(told) == len(set(told.values())) == 4
    assert by_name(encoding["shape"])[QWANT] == "diamond"
    assert by_name(encoding["color"])[QWANT] == BLACK[0]


def test_channels_of_a_series_share_one_legend(drawing: Draw) -> None:
    spec = drawing(BOTH)
    encoding = {**next(layers(spec, 0, "line"))["encoding"], **points_of(spec)["encoding"]}
    shared = [encoding[name] for name in ("color", "fill", "shape", "strokeDash")]
    assert [one["scale"]["domain"] for one in shared] == [[QWANT, CARD, CPU]] * 4
    assert {(one["field"], one["title"]) for one in shared} == {("series", None)}
    assert set(spec["resolve"]["scale"].values()) == {"shared"}


def luminance(color: str) -> float:
    """Relative luminance, 0 to 1 (WCAG 2)."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return sum(share * one for share, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_first_colours_stand_out_from_the_paper() -> None:
    assert len(set(COLORS)) == len(COLORS)
    assert all(1.05 / (luminance(color) + 0.05) >= 3 for color in (*BLACK, *COLORS[:3]))


def test_a_suspect_point_is_crossed_out_and_the_key_says_so(drawing: Draw) -> None:
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
        found = next(row for row in data(spec, bars) if row["batch"] == 4)
        assert (found["y"], found["high"]) == pytest.approx(ends)
        assert [row["batch"] for row in data(spec, band)] == list(BATCHES)
        assert bars["mark"]["strokeDash"] == SOLID
    assert bars["mark"]["color"] == by_name(points_of(spec)["encoding"]["color"])[CPU]
    assert band["mark"]["color"] == by_name(points_of(spec)["encoding"]["color"])[CARD]


def test_a_lone_emulated_point_has_a_dashed_bar_for_its_band(drawing: Draw) -> None:
    spec = drawing([emulated(4)])
    (bar,) = layers(spec, 0, "rule")
    assert bar["mark"]["strokeDash"] == DASHES["emulated"]
    assert not list(layers(spec, 0, "area"))


def test_points_without_an_interval_are_drawn_without_bars(drawing: Draw) -> None:
    spec = drawing([measured(2, latency_ms_low=None, latency_ms_high=None)])
    assert not list(layers(spec, 0, "rule"))
    assert len(data(spec, points_of(spec))) == 7


# ---- which series


def test_the_papers_six_and_every_run_are_drawn(drawing: Draw) -> None:
    spec = drawing(BOTH)
    found = data(spec, points_of(spec, 1))
    assert [row["y"] for row in found if row["series"] == QWANT] == [
        1474.16,
        2063.03,
        2131.01,
        2409.79,
        2421.82,
        2526.35,
    ]
    assert [row["y"] for row in found if row["series"] == CPU] == [10.0] * 6
    assert [row["y"] for row in data(spec, points_of(spec, 0)) if row["series"] == CARD] == [
        batch / 2 for batch in BATCHES
    ]


def test_one_point_and_no_published_row_make_a_drawing(drawing: Draw) -> None:
    spec = drawing([measured(6)], [])
    assert [row["series"] for row in data(spec, points_of(spec))] == [CPU]
    assert "Differs" not in json.dumps(spec["title"])


@pytest.mark.parametrize("points", [[], [measured(origin="simulated")], [measured(origin=None)]])
def test_without_a_measured_or_emulated_point_nothing_is_drawn(points: list[dict[str, Any]]) -> None:
    with pytest.raises(RunnerError, match="no point is measured or emulated"):
        draw(points, rows(), ".svg")


def test_simulated_points_are_left_out_and_counted(drawing: Draw) -> None:
    spec = drawing([measured(2), measured(4, 7777.0, origin="simulated")])
    assert 7777.0 not in [row["y"] for row in data(spec, points_of(spec, 1))]
    assert spec["title"]["subtitle"][-1] == "Simulated points left out: 1"


def test_runs_of_one_device_are_named_by_their_ids() -> None:
    names = [one.name for one in series([measured(2, run_id="a"), measured(2, run_id="b")], [])]
    assert names == [f"{CPU}, a", f"{CPU}, b"]


def test_what_was_measured_and_what_was_emulated_are_never_one_series() -> None:
    found = series([measured(2), measured(4, origin="emulated")], [])
    assert [(one.origin, len(one.marks)) for one in found] == [("measured", 1), ("emulated", 1)]


def test_a_row_with_an_error_flag_is_not_drawn(drawing: Draw) -> None:
    flagged = [replace(row, errors=1) for row in rows()]
    spec = drawing([measured(2)], flagged)
    assert {row["series"] for row in data(spec, points_of(spec))} == {CPU}


@given(
    st.lists(
        st.tuples(
            st.integers(1, 512), st.floats(1e-2, 1e6), st.sampled_from(["measured", "emulated"]), st.sampled_from("ab")
        ),
        min_size=1,
        max_size=12,
    )
)
def test_every_point_stands_in_one_series_of_its_origin(told: list[tuple[int, float, str, str]]) -> None:
    points = [measured(batch, rate, origin=origin, run_id=run) for batch, rate, origin, run in told]
    found = series(points, [])
    assert len({one.name for one in found}) == len(found)
    drawn = sorted((mark.batch, mark.throughput, one.origin) for one in found for mark in one.marks)
    assert drawn == sorted((batch, rate, origin) for batch, rate, origin, _ in told)


# ---- axes


def test_axes_name_their_units(drawing: Draw) -> None:
    spec = drawing(sweep(measured, 10.0), [])
    assert axis(spec, 0)["title"] == "Latency, amortised (ms per batch)"
    assert axis(spec, 1)["title"] == "Throughput (images/s)"
    assert axis(spec, 0, "x")["title"] == "Batch size (total over all sessions)"
    assert axis(spec, 0, "x")["axis"]["values"] == list(BATCHES)


def test_a_latency_that_a_source_does_not_tell_the_kind_of_is_not_called_amortised(drawing: Draw) -> None:
    spec = drawing([emulated(4, platform="IPU-M2000")])
    assert axis(spec, 0)["title"] == "Latency (ms per batch)"


def test_a_processor_and_a_card_share_a_logarithmic_axis(drawing: Draw) -> None:
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


def test_series_alike_share_a_linear_axis_from_zero(drawing: Draw) -> None:
    spec = drawing(sweep(emulated, 2000.0))
    scale = axis(spec, 1)["scale"]
    assert "type" not in scale
    assert scale["domain"][0] == 0
    assert scale["domain"][1] > 2526.35


@pytest.mark.parametrize(("most", "log"), [(12, False), (31, False), (32, True), (64, True)])
def test_a_wide_range_of_batches_is_spread_by_logarithms(drawing: Draw, most: int, log: bool) -> None:
    encoded = axis(drawing([measured(2), measured(most)], []), 0, "x")
    assert (encoded["scale"].get("type") == "log") is log
    low, high = encoded["scale"]["domain"]
    assert low < 2 < most < high


def test_latencies_of_a_wide_range_of_batches_are_on_a_logarithmic_axis(drawing: Draw) -> None:
    wide, narrow = drawing([measured(2), measured(64)], []), drawing([measured(2), measured(12)], [])
    assert [axis(wide, panel)["scale"].get("type") for panel in (0, 1)] == ["log", None]
    assert [axis(narrow, panel)["scale"].get("type") for panel in (0, 1)] == [None, None]


# ---- words


def test_the_title_names_the_model_and_the_subtitle_what_differs(drawing: Draw) -> None:
    title = drawing([emulated(2, pipeline="serial")])["title"]
    assert title["text"] == "resnext101-32x4d: latency and throughput by batch size"
    assert title["subtitle"] == [
        "Differs from the published rows, or is not known: weights, compute precision, pipeline, framework",
        "Dashed and hollow: emulated, not measured; its band is the prediction's",
    ]


def test_lines_of_the_subtitle_fit(drawing: Draw) -> None:
    point = measured(2, suspect=REASON, sessions=1, pipeline="serial", preprocessing="other", latency_kind="isolated")
    subtitle = drawing([point, emulated(2)])["title"]["subtitle"]
    assert len(subtitle) <= 3
    assert max(map(len, subtitle)) <= chart.SUBTITLE


# ---- images


def text_of(svg: bytes) -> str:
    return " ".join(" ".join(ElementTree.fromstring(svg).itertext()).split())


def test_the_svg_holds_titles_and_names() -> None:
    text = text_of(draw(BOTH, rows(), ".svg"))
    for words in (QWANT, CARD, CPU, "Latency, amortised (ms per batch), log scale", "Throughput (images/s), log scale"):
        assert text.count(words) == 1 if words in (QWANT, CARD, CPU) else words in text


def test_a_name_from_a_model_file_is_escaped() -> None:
    svg = draw([measured(2, model="<script>alert(1)</script>", platform="a & <b>")], [], ".svg")
    assert b"<script" not in svg
    assert "<script>alert(1)</script>: latency" in text_of(svg)
    assert "a & <b>, onnxruntime" in text_of(svg)


def drawn_twice(points: list[dict[str, Any]], published: Sequence[Published], suffix: str) -> tuple[bytes, bytes]:
    return draw(points, published, suffix), draw(points, published, suffix)


def test_the_same_points_give_the_same_bytes() -> None:
    first, second = drawn_twice(BOTH, rows(), ".svg")
    assert first == second
    first, second = drawn_twice([measured(4, suspect=REASON)], rows(), ".png")
    assert first == second
    assert first.startswith(b"\x89PNG")


def test_an_emulated_line_is_dashed_in_the_image_itself() -> None:
    svg = draw(sweep(emulated, 2000.0), [], ".svg").decode()
    dashed = r'stroke="#0072B2"[^>]*stroke-dasharray="5,4"'
    assert re.search(dashed, svg)
    assert not re.search(dashed, draw(sweep(measured, 10.0), [], ".svg").decode())


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtraError, match=r"ipu-results\[plots\]"):
        draw([measured(2)], [], ".svg")
