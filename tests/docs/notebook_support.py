"""Run the code cells of a notebook in one plain Python process, without Jupyter.

Prints their outputs as JSON.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

SVG = "image/svg+xml"


def run_cells(cells: list[str]) -> list[list[dict[str, Any]]]:
    """Return the outputs of each cell in nbformat 4: what it prints, and the value of its last
    expression.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    return [run_cell(cell, names, number) for number, cell in enumerate(cells, 1)]


def run_cell(source: str, names: dict[str, object], number: int) -> list[dict[str, Any]]:
    module = ast.parse(source)
    last: ast.expr = ast.Constant(None)
    if isinstance(module.body[-1], ast.Expr):
        last = module.body.pop().value
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(module, f"cell {number}", "exec"), names)
        value = eval(compile(ast.Expression(last), f"cell {number}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if out.getvalue():
        text = split_lines(out.getvalue())
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        data = {"text/plain": split_lines(repr(value))}
        if hasattr(value, "_repr_mimebundle_"):
            bundle = value._repr_mimebundle_(include=None, exclude=None)
            if SVG in bundle:
                data[SVG] = split_lines(bundle[SVG])
        shown = {"data": data, "execution_count": number, "metadata": {}}
        outputs.append({**shown, "output_type": "execute_result"})
    return outputs


def split_lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    notebook = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    print(json.dumps(run_cells(code)))
