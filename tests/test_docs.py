"""Examples in the docs are run, and their outputs are the real ones. UPDATE_DOCS=1 writes them."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import ipu_results
import pandas as pd
import pytest
from conftest import ROOT, Query, run_cli
from ipu_results.check.rules import RULES, Rule
from ipu_results.schema import TABLES

README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
UPDATE = os.environ.get("UPDATE_DOCS") == "1"
BLOCK = re.compile(r"```(console|pycon)\n(.*?)```", re.S)
PYTHON = re.compile(r"```python\n(.*?)```", re.S)
TABLE_HEAD = "| table | rows | one row is |\n|---|---|---|\n"
TABLE_ROW = re.compile(r"(?m)^\| `(\w+)` \| ([\d,]+) \| (.*) \|\n")
CONSTANT = re.compile(r"\b[A-Z]+_[A-Z_]+\b")
LOCKS = sorted(ROOT.glob("requirements*.lock"))


def check_page(page: Path, expected: str) -> None:
    """Compare a page with what it must be, or write it with UPDATE_DOCS=1."""
    if UPDATE:
        page.write_text(expected, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == expected


def run_console(block: str) -> str:
    command = block.splitlines()[0]
    done = run_cli(*shlex.split(command.removeprefix("$ ipu-results ")))
    assert done.returncode == 0, done.stderr
    return f"{command}\n{done.stdout}"


def run_pycon(block: str) -> str:
    """Run the statements after `>>> `, each followed by what an interactive session prints."""
    names: dict[str, object] = {}
    shown = []
    for line in (line for line in block.splitlines() if line.startswith(">>> ")):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), pd.option_context("display.width", 100):
            exec(compile(line[4:], "README.md", "single"), names)
        shown.append(f"{line}\n{out.getvalue()}")
    return "".join(shown)


RUNNERS = {"console": run_console, "pycon": run_pycon}


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda page: page.name)
def test_examples_print_what_the_docs_show(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = page.read_text(encoding="utf-8")
    check_page(page, BLOCK.sub(lambda match: f"```{match[1]}\n{RUNNERS[match[1]](match[2])}```", text))


def test_docs_have_examples_of_command_and_python() -> None:
    kinds = [kind for page in PAGES for kind, _ in BLOCK.findall(page.read_text(encoding="utf-8"))]
    assert kinds.count("console") >= 10
    assert "pycon" in kinds


def test_names_that_python_examples_import_exist() -> None:
    """Examples that take long or need other data are not run, but what they import must exist."""
    blocks = [block for page in PAGES for block in PYTHON.findall(page.read_text(encoding="utf-8"))]
    for node in (node for block in blocks for node in ast.walk(ast.parse(block))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(ast.unparse(node), {})
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "ipu_results":
            assert node.attr in ipu_results.__all__
    assert blocks


def test_table_of_tables_is_that_of_the_dataset(query: Query) -> None:
    [page] = [page for page in PAGES if TABLE_HEAD in page.read_text(encoding="utf-8")]
    text = page.read_text(encoding="utf-8")
    rows = ""
    for table in TABLES:
        [(count,)] = query(f"SELECT count(*) FROM {table.name}")
        rows += f"| `{table.name}` | {count:,} | {table.description.rstrip('.')} |\n"
    check_page(page, TABLE_ROW.sub("", text).replace(TABLE_HEAD, TABLE_HEAD + rows))


def test_counts_in_the_prose_are_those_of_the_dataset(query: Query) -> None:
    text = " ".join(README.read_text(encoding="utf-8").split())
    counts = [
        query(f"SELECT count(*) FROM {name}")[0][0] for name in ("results", "source_rows", "documents", "quarantine")
    ]
    assert "{} results from {} source rows of {} documents, no row lost, {} quarantined".format(*counts) in text


def format_threshold(value: float) -> str:
    return f"{100 * value:g} %" if value < 1 else f"{value:g}"


def describe_rule(rule: Rule) -> str:
    """Return a rule's docstring with the thresholds that it names as figures."""
    module = sys.modules[rule.find.__module__]
    text = " ".join(str(rule.find.__doc__).split())
    return CONSTANT.sub(lambda name: format_threshold(getattr(module, name[0])), text)


def test_list_of_rules_is_that_of_the_code(query: Query) -> None:
    [page] = [page for page in PAGES if page.name == "rules.md"]
    rows = query("SELECT rule, severity, count(*) FROM flags GROUP BY ALL")
    counts = {(rule, severity): count for rule, severity, count in rows}
    lines = [
        f"| {rule.id} | {rule.title} | {' | '.join(numbers)} | {describe_rule(rule)} |\n"
        for rule in RULES
        for numbers in [[str(counts.get((rule.id, severity), 0)) for severity in ("error", "warn", "info")]]
    ]
    text, head = page.read_text(encoding="utf-8"), "|---|---|---|---|---|---|\n"
    check_page(page, text[: text.index(head)] + head + "".join(lines))


def test_links_between_our_files_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def list_pins(lock: Path) -> set[str]:
    lines = lock.read_text(encoding="utf-8").splitlines()
    return {line.removesuffix("\\").strip() for line in lines if line and not line.startswith((" ", "#"))}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_lock_holds_pins_with_hashes_and_no_index(lock: Path) -> None:
    text, pins = lock.read_text(encoding="utf-8"), list_pins(lock)
    assert all("==" in pin for pin in pins)
    assert text.count("--hash=sha256:") >= len(pins) > 0
    assert "http" not in text
    assert "index" not in text
    assert pins <= list_pins(ROOT / "requirements.lock")


def test_lock_of_the_page_holds_versions_and_hashes_and_no_address() -> None:
    text = (ROOT / "site" / "package-lock.json").read_text(encoding="utf-8")
    entries = {name: entry for name, entry in json.loads(text)["packages"].items() if name}
    assert all({"version", "integrity"} <= entry.keys() for entry in entries.values())
    assert "://" not in text
    assert "resolved" not in text


def test_no_file_names_this_machine() -> None:
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=False).stdout.split()
    paths = [ROOT / name for name in listed if Path(name).suffix not in {".parquet", ".pdf"}]
    here = str(ROOT).encode()
    assert [path for path in paths if path.exists() and here in path.read_bytes() and len(here) > 3] == []
