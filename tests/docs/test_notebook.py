"""The notebook of the docs is run without Jupyter, and its outputs are the real ones (`make docs`
writes them).
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.docs.docs_support import DOCS, UPDATE

BUILD = re.compile(r"build [0-9a-f]{64}")
NOTEBOOK = DOCS / "how-to" / "notebook.ipynb"
SVG = "image/svg+xml"
Output = dict[str, Any]


def run_cell(source: str, names: dict[str, object], number: int) -> list[Output]:
    """Return the outputs of a cell in nbformat 4: what it prints, and the value of its last
    expression.
    """
    module = ast.parse(source)
    last = ast.parse("None", mode="eval").body
    if isinstance(module.body[-1], ast.Expr):
        last = module.body.pop().value
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(module, f"cell {number}", "exec"), names)
        value = eval(compile(ast.Expression(last), f"cell {number}", "eval"), names)
    outputs: list[Output] = []
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


def list_texts(outputs: list[Output]) -> list[str]:
    """Return the texts of outputs without the build of the dataset.

    Images depend on the fonts of the machine.
    """
    texts = []
    for output in outputs:
        lines = output["text"] if "text" in output else output["data"]["text/plain"]
        texts.append(BUILD.sub("build", "".join(lines)))
    return texts


@pytest.mark.slow
@pytest.mark.docs
def test_the_notebook_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(code, 1):
        outputs = run_cell("".join(cell["source"]), names, number)
        assert outputs
        if UPDATE:
            cell["execution_count"] = number
            cell["outputs"] = outputs
        assert list_texts(cell["outputs"]) == list_texts(outputs)
    if UPDATE:
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        NOTEBOOK.write_text(f"{text}\n", encoding="utf-8")
    assert SVG in json.dumps(code)
