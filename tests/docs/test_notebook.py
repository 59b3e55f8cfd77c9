"""The notebook of the docs is run without Jupyter, and its outputs are the real ones (`make docs`
writes them).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.docs.docs_support import DOCS, UPDATE
from tests.docs.notebook_support import SVG

BUILD = re.compile(r"build [0-9a-f]{64}")
NOTEBOOK = DOCS / "how-to" / "notebook.ipynb"


def run_notebook() -> list[list[dict[str, Any]]]:
    command = [sys.executable, ROOT / "tests/docs/notebook_support.py", NOTEBOOK]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    outputs: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return outputs


def list_texts(outputs: list[dict[str, Any]]) -> list[str]:
    """Return the texts of outputs without the build of the dataset.

    Images depend on the fonts of the machine.
    """
    texts = (
        "".join(output["text"] if "text" in output else output["data"]["text/plain"])
        for output in outputs
    )
    return [BUILD.sub("build", text) for text in texts]


@pytest.mark.slow
@pytest.mark.docs
def test_the_notebook_prints_what_it_shows() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    outputs = run_notebook()
    if UPDATE:
        for number, (cell, own) in enumerate(zip(code, outputs, strict=True), 1):
            cell["execution_count"] = number
            cell["outputs"] = own
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        NOTEBOOK.write_text(f"{text}\n", encoding="utf-8")
    for cell, own in zip(code, outputs, strict=True):
        assert own
        assert list_texts(cell["outputs"]) == list_texts(own)
    assert SVG in json.dumps(code)
