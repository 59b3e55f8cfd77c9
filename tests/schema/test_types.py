"""What a user's type checker sees, whether types of pandas are installed or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PROGRAM = """
import ipu_results
frame = ipu_results.load("results", platform="C2")
reveal_type(frame)
print(frame.result_id[0])
"""
# the least of pandas-stubs
STUBS = """
from typing import Any
def __getattr__(name: str) -> Any: ...
class DataFrame:
    def __getattr__(self, name: str) -> Any: ...
class Series[T]: ...
"""


@pytest.mark.slow
@pytest.mark.parametrize("has_stubs", [False, True])
def test_load_gives_a_frame_to_a_strict_type_checker(tmp_path: Path, has_stubs: bool) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    if has_stubs:
        (tmp_path / "pandas-stubs").mkdir()
        (tmp_path / "pandas-stubs" / "__init__.pyi").write_text(STUBS, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "program.py"]
    env = {**os.environ, "MYPYPATH": f"{ROOT / 'pipeline'}{os.pathsep}{tmp_path}"}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=env, check=False
    )
    assert done.returncode == 0, done.stdout
    [line] = [line for line in done.stdout.splitlines() if "Revealed type" in line]
    assert line.endswith('"ipu_results.schema.frames.DataFrame"')
