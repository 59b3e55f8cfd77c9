"""Examples in the README are run, and their outputs are the real ones. UPDATE_DOCS=1 writes them anew."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from conftest import ROOT, Ask, run_cli
from ipu_results.check.rules import RULES, Rule
from ipu_results.schema import TABLES

README = ROOT / "README.md"
UPDATE = os.environ.get("UPDATE_DOCS") == "1"
BLOCK = re.compile(r"```(console|pycon)\n(.*?)```", re.S)
TABLE_ROW = re.compile(r"(?m)^\| `(\w+)` \| ([\d,]+) \| (.*) \|\n")


CONSTANT = re.compile(r"\b[A-Z]+_[A-Z_]+\b")


def figure(value: float) -> str:
    return f"{100 * value:g} %" if value < 1 else f"{value:g}"


def with_values(rule: Rule) -> str:
    """A rule's docstring with the thresholds that it names as figures."""
    module = sys.modules[rule.find.__module__]
    return CONSTANT.sub(lambda name: figure(getattr(module, name[0])), " ".join(str(rule.find.__doc__).split()))


def console(block: str) -> str:
    command = block.splitlines()[0]
    done = run_cli(*shlex.split(command.removeprefix("$ ipu-results ")))
    assert done.returncode == 0, done.stderr
    return f"{command}\n{done.stdout}"


def pycon(block: str) -> str:
    """Statements after `>>> `, each followed by what an interactive session would print."""
    names: dict[str, object] = {}
    shown = []
    for line in (line for line in block.splitlines() if line.startswith(">>> ")):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), pd.option_context("display.width", 100):
            exec(compile(line[4:], "README.md", "single"), names)
        shown.append(f"{line}\n{out.getvalue()}")
    return "".join(shown)


def rerun(text: str) -> str:
    runners = {"console": console, "pycon": pycon}
    return BLOCK.sub(lambda found: f"```{found.group(1)}\n{runners[found.group(1)](found.group(2))}```", text)


@pytest.fixture
def _in_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.usefixtures("_in_the_clone")
def test_the_examples_print_what_the_readme_says() -> None:
    text = README.read_text(encoding="utf-8")
    fresh = rerun(text)
    if UPDATE:
        README.write_text(fresh, encoding="utf-8")
    assert fresh == text or UPDATE
    kinds = [kind for kind, _ in BLOCK.findall(text)]
    assert kinds.count("console") == 11
    assert text.count(">>> ") >= 3


def test_the_table_of_tables_is_true(ask: Ask) -> None:
    text = README.read_text(encoding="utf-8")
    rows = []
    for table in TABLES:
        (count,) = ask(f"SELECT count(*) FROM {table.name}")[0]
        rows.append((table.name, f"{count:,}", table.description.rstrip(".")))
    if UPDATE:
        lines = "".join(f"| `{name}` | {count} | {told} |\n" for name, count, told in rows)
        head = "| table | rows | one row is |\n|---|---|---|\n"
        README.write_text(TABLE_ROW.sub("", text).replace(head, head + lines), encoding="utf-8")
    assert [tuple(row) for row in TABLE_ROW.findall(text)] == rows or UPDATE


def test_the_counts_in_the_prose_are_true(ask: Ask) -> None:
    text = " ".join(README.read_text(encoding="utf-8").split())
    counts = [
        ask(f"SELECT count(*) FROM {name}")[0][0] for name in ("results", "source_rows", "documents", "quarantine")
    ]
    assert "{} results from {} source rows of {} documents, no row lost, {} quarantined".format(*counts) in text


def test_the_list_of_rules_is_that_of_the_code(ask: Ask) -> None:
    """What a rule fires on is its docstring; the counts are those of the dataset."""
    page = ROOT / "docs" / "rules.md"
    found = {
        (rule, severity): n for rule, severity, n in ask("SELECT rule, severity, count(*) FROM flags GROUP BY ALL")
    }
    lines = []
    for rule in RULES:
        told = with_values(rule)
        counts = [str(found.get((rule.id, severity), 0)) for severity in ("error", "warn", "info")]
        lines.append(f"| {rule.id} | {rule.title} | {' | '.join(counts)} | {told} |")
    text = page.read_text(encoding="utf-8")
    head = text[: text.index("|---|---|") + len("|---|---|---|---|---|---|\n")]
    fresh = head + "\n".join(lines) + "\n"
    if UPDATE:
        page.write_text(fresh, encoding="utf-8")
    assert fresh == text or UPDATE


def test_links_between_our_files_lead_somewhere() -> None:
    for page in [README, *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_lock_holds_pins_and_hashes_and_no_index() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert all("==" in line for line in pins)
    assert text.count("--hash=sha256:") >= len(pins)
    assert "http" not in text
    assert "index" not in text


def test_the_lock_of_the_page_holds_versions_and_hashes_and_no_address() -> None:
    text = (ROOT / "site" / "package-lock.json").read_text(encoding="utf-8")
    entries = {name: entry for name, entry in json.loads(text)["packages"].items() if name}
    assert all({"version", "integrity"} <= entry.keys() for entry in entries.values())
    assert "://" not in text
    assert "resolved" not in text


def test_no_file_names_this_machine() -> None:
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=False).stdout.split()
    texts = {name: (ROOT / name).read_bytes() for name in listed if Path(name).suffix not in {".parquet", ".pdf"}}
    here = str(ROOT).encode()
    assert [name for name, data in texts.items() if here in data and len(here) > 3] == []
