"""The page of analyses: a question, its paragraph, its chart and where its rows stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ipu_results.analyses.analysis import Analysis, Frames

HEAD = """# Analyses

Each question is a view in DuckDB (columns: `SELECT * FROM columns WHERE table_name = '…'`), a paragraph whose figures
come from its rows, and a Vega-Lite chart (specification beside the image). MLPerf figures, rows with error flags and
emulated figures stand in columns of their own or are left out, never among others unmarked. Print one with
`ipu-results analyse NAME`, draw it with `--plot FILE`. This page is generated:
`UPDATE_DOCS=1 pytest tests/test_analyses.py`.
"""


def page(analyses: Sequence[Analysis], frames: Mapping[str, Frames]) -> str:
    """Markdown; `frames` are the rows of each analysis by its name."""
    return "\n".join([HEAD, *(_section(one, frames[one.name]) for one in analyses)])


def _section(one: Analysis, frames: Frames) -> str:
    views = ", ".join(f"`{view}` ({len(frames[view])} rows)" for view in one.views)
    image = f"![{one.question}](analyses/{one.name}.svg)"
    chart = f"{image}\n\n[Vega-Lite](analyses/{one.name}.vl.json)"
    return f"## {one.question}\n\n`ipu-results analyse {one.name}` · {views}\n\n{one.told(frames)}\n\n{chart}\n"
