"""What a terminal shows: help in groups, completion, the step that a command is at, and figures
without noise.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from ipu_results.doors.cli import main

from tests.conftest import ROOT, run_cli


def test_command_alone_prints_its_help_as_lines() -> None:
    alone, shown = run_cli(), run_cli("--help")
    assert (alone.returncode, alone.stderr) == (2, shown.stdout)
    assert [line for line in shown.stdout.splitlines() if re.fullmatch(r"\S[^:]*:", line)][1:] == [
        "Use the dataset:",
        "Predict and measure:",
        "Hand figures in:",
        "Make the dataset:",
        "Release it:",
    ]


def test_help_lists_the_commands_in_working_order() -> None:
    listed = run_cli("--help").stdout.split("Show this message and exit.\n")[1]
    assert re.findall(r"^  (\S+)", listed, re.MULTILINE) == list(main.commands)


def test_shell_completes_a_command() -> None:
    env = {
        "_IPU_RESULTS_COMPLETE": "bash_complete",
        "COMP_WORDS": "ipu-results ver",
        "COMP_CWORD": "1",
    }
    done = CliRunner().invoke(main, [], prog_name="ipu-results", env=env)
    assert done.stdout == "plain,verify\n"


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are not on Windows")
def test_status_line_appears_on_a_terminal_after_a_second_and_goes() -> None:
    code = """
import time
from ipu_results.doors.cli import common
common.SHOWN_AFTER_S, common.REFRESH_S = 0.2, 0.01
with common.show_step("read", "first") as update:
    update("verify", "x" * 500 + chr(27))
    time.sleep(0.5)
"""
    terminal = "import pty, sys; pty.spawn([sys.executable, '-c', sys.argv[1]])"
    command, env = [sys.executable, "-c", terminal, code], {**os.environ, "COLUMNS": "40"}
    done = subprocess.run(command, capture_output=True, check=True, cwd=ROOT, env=env)
    lines = done.stdout.decode().split("\r")
    assert lines[:2] == ["", f"0 s  verify {'x' * 27}\x1b[K"]
    assert lines[-1] == "\x1b[K"


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SELECT 0.11927499999999999::DOUBLE AS x", "0.119275"),
        ("SELECT 84.39710000000001::DOUBLE AS x", "84.3971"),
        ("SELECT 4076.631309287539::DOUBLE AS x", "4076.631309287539"),  # as PopRT prints it
        ("SELECT [0.1::DOUBLE + 0.2, 1e300, 5e-324] AS x", "[0.3, 1e+300, 5e-324]"),
        ("SELECT 'nan'::DOUBLE AS x", "nan"),
    ],
)
def test_tables_have_no_float_noise_and_csv_has_every_digit(
    warehouse: Path, sql: str, shown: str
) -> None:
    assert run_cli("query", sql, "--warehouse", warehouse).stdout.split()[2:] == shown.split()
    exact = run_cli("query", sql, "--warehouse", warehouse, "--format", "csv").stdout.split()[1:]
    assert (exact == [shown]) == (shown == "4076.631309287539")
