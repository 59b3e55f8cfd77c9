"""The analyses as a whole: the page is what the code says, each has its view, its paragraph and its chart."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path

import pandas as pd
import pytest
from conftest import ROOT, Ask, run_cli
from ipu_results.analyses import ANALYSES, Analysis, Frames, draw, rows, specification
from ipu_results.analyses.page import page
from ipu_results.schema import VIEWS
from ipu_results.store.query import open_warehouse

UPDATE = os.environ.get("UPDATE_DOCS") == "1"
PAGE = ROOT / "docs" / "analyses.md"
EACH = pytest.mark.parametrize("asked", ANALYSES, ids=lambda asked: asked.name)


@pytest.fixture(scope="module")
def frames(warehouse: Path) -> dict[str, Frames]:
    with open_warehouse(warehouse) as connection:
        return {asked.name: rows(connection, asked) for asked in ANALYSES}


def test_every_view_of_the_analyses_belongs_to_one() -> None:
    shown = [view for asked in ANALYSES for view in asked.views]
    assert len(set(shown)) == len(shown)
    assert set(shown) <= {view.name for view in VIEWS}


def test_the_page_is_what_the_code_says(frames: dict[str, Frames]) -> None:
    fresh = page(ANALYSES, frames)
    if UPDATE:
        PAGE.write_text(fresh, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == fresh


@EACH
def test_the_committed_chart_is_what_the_code_draws(asked: Analysis, frames: dict[str, Frames]) -> None:
    path = PAGE.with_suffix("") / f"{asked.name}.vl.json"
    fresh = json.dumps(specification(asked, frames[asked.name]), ensure_ascii=False, indent=1) + "\n"
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(fresh, encoding="utf-8")
        path.with_name(f"{asked.name}.svg").write_bytes(draw(asked, frames[asked.name], ".svg"))
    assert path.read_text(encoding="utf-8") == fresh
    assert path.with_name(f"{asked.name}.svg").read_text(encoding="utf-8").startswith("<svg")


@EACH
def test_an_axis_has_a_title_and_a_chart_its_own(asked: Analysis, frames: dict[str, Frames]) -> None:
    found = specification(asked, frames[asked.name])
    assert found["title"]
    titles = list(_axes(found))
    assert titles
    assert all(titles)


def _axes(part: object) -> list[object]:
    """Titles of all x and y channels below a part of a specification."""
    if isinstance(part, list):
        return [title for one in part for title in _axes(one)]
    if not isinstance(part, dict):
        return []
    own = [
        channel.get("title")
        for name, channel in part.get("encoding", {}).items()
        if name in ("x", "y") and "field" in channel
    ]
    return own + [title for key in ("layer", "hconcat", "vconcat", "spec", "concat") for title in _axes(part.get(key))]


@EACH
def test_a_changed_figure_changes_paragraph_or_chart(asked: Analysis, frames: dict[str, Frames]) -> None:
    """Nothing is typed: with every figure of the rows doubled, the chart is another one."""
    doubled = {name: _doubled(frame) for name, frame in frames[asked.name].items()}
    assert specification(asked, doubled) != specification(asked, frames[asked.name])


def _doubled(frame: pd.DataFrame) -> pd.DataFrame:
    floats = frame.select_dtypes("float").columns
    return frame.assign(**{name: frame[name] * 2 for name in floats})


# command


def test_the_command_lists_the_questions() -> None:
    done = run_cli("analyse", "--format", "json")
    assert [one["name"] for one in json.loads(done.stdout)] == [asked.name for asked in ANALYSES]


def test_an_unknown_name_is_wrong_usage(warehouse: Path) -> None:
    done = run_cli("analyse", "nothing", "--warehouse", warehouse)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is none of" in done.stderr


@EACH
def test_the_command_prints_the_rows_and_tells_what_they_show(asked: Analysis, warehouse: Path, ask: Ask) -> None:
    done = run_cli("analyse", asked.name, "--format", "json", "--warehouse", warehouse)
    assert done.returncode == 0
    [view] = [view for view in VIEWS if view.name == asked.views[0]]
    [*rows] = ask(f"FROM {view.source}")
    found = [tuple(row.values()) for row in json.loads(done.stdout)]
    assert sorted(map(str, found)) == sorted(str(tuple(map(_plain, row))) for row in rows)
    assert " ".join(done.stderr.split()) in PAGE.read_text(encoding="utf-8")


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else value


def test_a_parameter_and_a_plot(warehouse: Path, tmp_path: Path) -> None:
    plot = tmp_path / "per-dollar.svg"
    done = run_cli(
        *("analyse", "per_dollar", "--set", "ipu_price=300000", "--plot", plot, "--format", "csv"),
        *("--warehouse", warehouse),
    )
    assert done.returncode == 0
    assert "300000.0" in done.stdout
    assert plot.read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["per_dollar", "--set", "price=3"], "has no parameter 'price'; it has ipu_price, gpu_price"),
        (["scaling", "--set", "ipu_price=3"], "has no parameter 'ipu_price'; it has none"),
        (["per_dollar", "--set", "ipu_price=-3"], "is no figure above 0"),
        (["per_dollar", "--set", "ipu_price"], "is not NAME=FIGURE"),
        (["scaling", "--plot", "x.gif"], "neither .svg nor .png"),
    ],
)
def test_wrong_usage_is_told(args: list[str], message: str, warehouse: Path) -> None:
    done = run_cli("analyse", *args, "--warehouse", warehouse)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
