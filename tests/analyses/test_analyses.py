"""The analyses together: the page, the committed charts, their colours, and the command."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from math import log
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import duckdb
import pandas as pd
import pytest
from ipu_results.analyses import (
    ANALYSES,
    Analysis,
    Frames,
    build_specification,
    describe_answer,
    draw_chart,
    load_frames,
)
from ipu_results.analyses.analysis import format_page, split_summary
from ipu_results.errors import TooFewRowsError
from ipu_results.ground.charts import CROSS, PALETTE, SHADES, mix_color
from ipu_results.schema import VIEWS

from tests.conftest import Query, run_cli
from tests.docs.docs_support import REFERENCE, UPDATE, check_page

PAGE = REFERENCE / "analyses.md"
SVG = "{http://www.w3.org/2000/svg}"
COLOR = re.compile(r"#[0-9A-Fa-f]{6}")
Charts = dict[str, dict[str, Any]]
EACH = pytest.mark.parametrize("analysis", ANALYSES, ids=lambda analysis: analysis.name)


@pytest.fixture(scope="module")
def frames(opened: duckdb.DuckDBPyConnection) -> dict[str, Frames]:
    return {analysis.name: load_frames(opened, analysis) for analysis in ANALYSES}


@pytest.fixture(scope="module")
def charts(frames: dict[str, Frames]) -> Charts:
    return {
        analysis.name: build_specification(analysis, frames[analysis.name]) for analysis in ANALYSES
    }


def test_each_view_belongs_to_one_analysis() -> None:
    views = [view for analysis in ANALYSES for view in analysis.views]
    assert len(set(views)) == len(views)
    assert set(views) <= {view.name for view in VIEWS}


@pytest.mark.slow
@pytest.mark.docs
def test_page_is_current(frames: dict[str, Frames]) -> None:
    check_page(PAGE, format_page(ANALYSES, frames))


@EACH
@pytest.mark.docs
def test_committed_chart_is_current(
    analysis: Analysis, frames: dict[str, Frames], charts: Charts
) -> None:
    path = PAGE.with_suffix("") / f"{analysis.name}.vl.json"
    fresh = json.dumps(charts[analysis.name], ensure_ascii=False, indent=1) + "\n"
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(fresh, encoding="utf-8")
        path.with_name(f"{analysis.name}.svg").write_bytes(
            draw_chart(analysis, frames[analysis.name], ".svg")
        )
    assert path.read_text(encoding="utf-8") == fresh
    assert path.with_name(f"{analysis.name}.svg").read_text(encoding="utf-8").startswith("<svg")
    shades = {mix_color(color, share) for color in PALETTE.machines.values() for share in SHADES}
    assert set(COLOR.findall(fresh)) <= {*PALETTE.series, *PALETTE.ink.values(), *shades}


@EACH
def test_summary_opens_with_one_sentence_and_its_figure(
    analysis: Analysis, frames: dict[str, Frames]
) -> None:
    finding = analysis.summarise(frames[analysis.name]).split("\n\n")[0]
    assert re.findall(r"[.!?](?= [A-Z0-9]|$)", finding) == ["."]
    assert re.search(r"\d", finding)
    assert len(finding.split()) <= 60


@EACH
@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_rows_are_answered_or_refused_by_the_name_of_the_analysis(
    analysis: Analysis, frames: dict[str, Frames], count: int
) -> None:
    few = {name: rows.head(count) for name, rows in frames[analysis.name].items()}
    try:
        text = describe_answer(analysis, few).finding
    except TooFewRowsError as error:
        text = str(error)
    is_refused = text.startswith(f"analysis {analysis.name}: the record has too few rows")
    assert is_refused or (count and re.search(r"\d", text)), text


def test_an_error_of_the_code_is_not_too_few_rows(frames: dict[str, Frames]) -> None:
    analysis = replace(ANALYSES[0], summarise=lambda _: f"{float('7 of 9')}")
    with pytest.raises(ValueError, match="could not convert"):
        describe_answer(analysis, frames[analysis.name])


@EACH
def test_chart_and_axes_have_titles(analysis: Analysis, charts: Charts) -> None:
    assert charts[analysis.name]["title"]["text"]
    titles = _list_axis_titles(charts[analysis.name])
    assert titles
    assert all(titles)


def _list_axis_titles(part: object) -> list[object]:
    """List the titles of all x and y channels below a part of a specification."""
    if isinstance(part, list):
        return [title for item in part for title in _list_axis_titles(item)]
    if not isinstance(part, dict):
        return []
    channels = [channel for name, channel in part.get("encoding", {}).items() if name in ("x", "y")]
    own = [channel.get("title") for channel in channels if "field" in channel]
    keys = ("layer", "hconcat", "vconcat", "spec", "concat")
    return own + [title for key in keys for title in _list_axis_titles(part.get(key))]


@EACH
@pytest.mark.slow
def test_chart_follows_the_figures(
    analysis: Analysis, frames: dict[str, Frames], charts: Charts
) -> None:
    """With every figure of the rows halved the chart differs: no figure is typed."""
    halved = {name: _halve_figures(frame) for name, frame in frames[analysis.name].items()}
    assert build_specification(analysis, halved) != charts[analysis.name]


def _halve_figures(frame: pd.DataFrame) -> pd.DataFrame:
    """Halve and not double: no machine would then scale below linear, and the chart would have no
    finding.
    """
    return frame.assign(
        **{
            name: frame[name] / 2
            for name in frame.select_dtypes("float").columns
            if name != "bound_ms"
        }
    )


def test_machine_has_one_colour_and_no_two_series_share_one() -> None:
    c2, m2000 = PALETTE.machines["C2"], PALETTE.machines["M2000"]
    assert (
        PALETTE.assign(["IPU-M2000", "C2, 32x4d"]) == PALETTE.assign(["m2000", "c2"]) == [m2000, c2]
    )
    colors = PALETTE.assign(["laptop", "C2, published", "C2, emulated", "another"])
    assert colors[1] == c2
    assert len(set(colors)) == 4
    assert len(PALETTE.assign(["unknown"] * 20)) == 20


def test_chart_draws_the_interval_of_each_mean_and_pairs_that_do_not_count_as_crosses(
    query: Query,
) -> None:
    panels = _read_chart("replications")["vconcat"]
    rows = "SELECT mean_low, mean_high, mean_ratio FROM detail.replication_summary WHERE machines = '{}' "
    rows += "ORDER BY parties DESC, vendor_part DESC"
    counts = (
        "SELECT count(*) FILTER (counts), count(*) FILTER (NOT counts) FROM replications"
        " WHERE machines = '{}'"
    )
    for machines, panel in zip(("IPU", "other"), panels, strict=True):
        _, crosses, solid, bars, ticks = panel["layer"]
        assert (bars["mark"]["type"], ticks["mark"]["type"]) == ("rule", "tick")
        drawn = [(row["low"], row["high"], row["mean"]) for row in bars["data"]["values"]]
        assert drawn == [pytest.approx(row, abs=1e-4) for row in query(rows.format(machines))]
        records = crosses["data"]["values"]
        assert records == solid["data"]["values"]
        assert solid["encoding"]["shape"]["field"] == "parties"
        assert (crosses["mark"]["shape"], "shape" in crosses["encoding"]) == (CROSS, False)
        counted = sum(row["counted"] == "counted" for row in records)
        assert query(counts.format(machines)) == [(counted, len(records) - counted)]


def test_roofline_draws_the_peak_of_fp8_and_leaves_out_a_width_in_doubt(query: Query) -> None:
    chart = _read_chart("roofline")
    panels = {
        panel["title"]: panel["layer"]
        for pair in chart["hconcat"][0]["vconcat"]
        for panel in pair["hconcat"]
    }
    for chip, (roofs, hollow, filled) in panels.items():
        where = (
            f"chip = '{chip}' AND intensity IS NOT NULL AND errors = 0 AND NOT precision_doubtful"
        )
        columns = "result_id, effective_precision ILIKE 'fp8'"
        expected = query(f"SELECT {columns} FROM peak_shares WHERE {where} ORDER BY 1")
        points = hollow["data"]["values"]
        assert (
            sorted((row["result_id"], row["precision"].upper() == "FP8") for row in points)
            == expected
        )
        assert "== 'FP8'" in filled["transform"][0]["filter"]
        assert filled["mark"]["filled"]
        peaks = {
            row["kind"]: row["tflops"]
            for row in roofs["data"]["values"]
            if row["roof"].startswith("datasheet")
        }
        stated = (
            "SELECT DISTINCT datasheet_peak_tflops FROM peak_shares"
            f" WHERE chip = '{chip}' AND effective_precision"
        )
        assert query(f"{stated} IN ('16.16', 'mixed', 'FP16')") == [(peaks["datasheet, 16 bits"],)]
        assert query(f"{stated} ILIKE 'fp8'") == [
            (peaks[kind],) for kind in ("datasheet, FP8",) if kind in peaks
        ]


def _read_chart(name: str) -> dict[str, Any]:
    """Read a committed chart, which is compared with a new one above."""
    return json.loads((REFERENCE / "analyses" / f"{name}.vl.json").read_text(encoding="utf-8"))


# command


def test_command_lists_the_questions() -> None:
    done = run_cli("analyse", "--format", "json")
    assert [row["name"] for row in json.loads(done.stdout)] == [
        analysis.name for analysis in ANALYSES
    ]


@EACH
def test_command_prints_rows_and_summary(analysis: Analysis, warehouse: Path, query: Query) -> None:
    done = run_cli("analyse", analysis.name, "--format", "json", "--warehouse", warehouse)
    assert done.returncode == 0
    [view] = [view for view in VIEWS if view.name == analysis.views[0]]
    expected = [tuple(map(_to_json, row)) for row in query(f"FROM {view.source}")]
    printed = [tuple(row.values()) for row in json.loads(done.stdout)]
    assert sorted(map(str, printed)) == sorted(map(str, expected))
    assert " ".join(done.stderr.split()) in " ".join(PAGE.read_text(encoding="utf-8").split())


def _to_json(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else value


@pytest.mark.slow
def test_parameter_and_plot(warehouse: Path, tmp_path: Path) -> None:
    plot = tmp_path / "per-dollar.svg"
    options = (
        "--set",
        "ipu_price=300000",
        "--plot",
        plot,
        "--format",
        "csv",
        "--warehouse",
        warehouse,
    )
    done = run_cli("analyse", "per_dollar", *options)
    assert done.returncode == 0
    assert "300000.0" in done.stdout
    assert plot.read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nothing"], "'nothing' is not one of latency_bounded, generations"),
        (
            ["per_dollar", "--set", "price=3"],
            "has no parameter 'price'; it has ipu_price, gpu_price",
        ),
        (["scaling", "--set", "ipu_price=3"], "has no parameter 'ipu_price'; it has none"),
        (["per_dollar", "--set", "ipu_price=-3"], "is not a number above 0"),
        (["per_dollar", "--set", "ipu_price"], "is not NAME=NUMBER"),
        (["scaling", "--plot", "x.gif"], "neither .svg nor .png"),
    ],
)
def test_wrong_usage_is_reported(args: list[str], message: str, warehouse: Path) -> None:
    done = run_cli("analyse", *args, "--warehouse", warehouse)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@EACH
def test_summary_is_split_without_losing_a_word(
    analysis: Analysis, frames: dict[str, Frames]
) -> None:
    summary = analysis.summarise(frames[analysis.name])
    answer = split_summary(summary, analysis.caveats)
    words = " ".join([answer.finding, *answer.figures, *answer.caveats]).split()
    assert words == summary.split()
    assert answer.caveats
    assert not answer.finding.endswith("\n")


@pytest.mark.slow
def test_latency_of_a_point_is_at_its_place_on_the_axis(frames: dict[str, Frames]) -> None:
    """Compare each mark of the picture with the ticks of its own panel: 0.77 ms must be at 0.77."""
    [analysis] = [analysis for analysis in ANALYSES if analysis.name == "latency_bounded"]
    picture = ET.fromstring(draw_chart(analysis, frames[analysis.name], ".svg"))
    panels = [
        group
        for group in picture.iter(f"{SVG}g")
        if re.search(r"(^| )cell( |$)", group.get("class", ""))
    ]
    checked = 0
    for panel in panels:
        ticks = {}
        for group in panel.iter(f"{SVG}g"):
            if "X-axis" not in group.get("aria-label", ""):
                continue
            for text in group.iter(f"{SVG}text"):
                if text.text and re.fullmatch(r"[\d.]+", text.text):
                    ticks[float(text.text)] = _find_x(text)
        for path in panel.iter(f"{SVG}path"):
            label = re.search(r"Latency \(ms\): ([\d.]+)", path.get("aria-label", ""))
            if label and path.get("transform") and len(ticks) > 1:
                (low, x_low), (high, x_high) = min(ticks.items()), max(ticks.items())
                share = (log(float(label[1])) - log(low)) / (log(high) - log(low))
                assert _find_x(path) == pytest.approx(x_low + share * (x_high - x_low), abs=1.5)
                checked += 1
    assert checked > 100


def _find_x(element: ET.Element) -> float:
    return float(re.search(r"translate\(([-\d.]+)", element.get("transform", ""))[1])  # type: ignore[index]
