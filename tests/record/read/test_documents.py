"""Generated documents with known figures: every figure is read exactly, or reported.

`pytest tests/record/read/test_documents.py --hypothesis-profile=long` searches for a counterexample among
5,000 documents.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from ipu_results.record.sources.browser import find_modules

from benchmarks.documents import judge
from benchmarks.documents.browser import is_installed, mark_unseen, render
from benchmarks.documents.comparison import MIN_EXACT, PLAIN_HTML, PLAIN_PDF, run_trials
from benchmarks.documents.hostile import build_page, find_contradicted, run_hostile
from benchmarks.documents.hostile_pdf import CONSTRUCTS as PDF_CONSTRUCTS
from benchmarks.documents.hostile_pdf import run_hostile_pdf
from benchmarks.documents.judge import (
    EXACT,
    REPORTED,
    SILENT,
    Trial,
    Verdict,
    judge_rows,
    read_and_judge,
)
from benchmarks.documents.mutations import MUTATIONS, UNDECIDABLE
from benchmarks.documents.recipes import (
    DIALECTS,
    MAX_MUTATIONS,
    MAX_ROWS,
    Recipe,
    build_document,
    list_mutations,
)
from benchmarks.documents.tables import Table

PLAIN_PAGE = Recipe("html: plain", False, 3, (), seed=0)
PLAIN_PAPER = Recipe("pdf: ruled", True, 3, (), seed=0)

# PDFs that were silently wrong; the test makes them, so no PDF is kept for them
READ_WRONG_ONCE = [
    Recipe("pdf: ruled", True, 1, ("decimal comma",), seed=1),
    Recipe("pdf: ruled", True, 1, ("decimal comma, proven in one column",), seed=1),
    Recipe("pdf: continued", False, 3, (), seed=1),
    Recipe("pdf: loose", False, 3, (), seed=1),
]


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    """Draw a document of any dialect, with any mutations of its format."""
    dialect = draw(st.sampled_from([*DIALECTS]))
    names = [name for name in list_mutations(dialect.split(":")[0]) if name != UNDECIDABLE]
    mutations = draw(st.lists(st.sampled_from(names), unique=True, max_size=MAX_MUTATIONS))
    return Recipe(
        dialect,
        draw(st.booleans()),
        draw(st.integers(1, MAX_ROWS)),
        tuple(mutations),
        draw(st.integers(0, 2**16)),
    )


FIGURES = Path(__file__).resolve().parents[2] / "corpus" / "figures"
CASES = sorted(path for path in FIGURES.iterdir() if path.suffix != ".json")
HOSTILE = 40  # pages, each of another construct; the benchmark reads all
PLAIN_DOCUMENTS = 150
FIND_CHROMIUM = (
    'import packaged from "@sparticuz/chromium"; console.log(await packaged.executablePath());'
)


def change_figure(table: Table, value: Decimal) -> Table:
    """Return a table that prints another last figure than its document."""
    rows = [[*row] for row in table.rows]
    place = max(number for number, cell in enumerate(rows[-1]) if cell.value is not None)
    rows[-1][place] = replace(rows[-1][place], value=value)
    return replace(table, rows=rows)


def names(trials: Iterable[Trial], outcome: str) -> set[str]:
    """Return which documents have an outcome, with its reason if a figure is silently wrong."""
    found = [trial for trial in trials if trial.verdict.outcome == outcome]
    return {f"{trial.name} {trial.verdict.reason}".strip() for trial in found}


def judge_file(path: Path) -> Verdict:
    """Judge a file that is kept next to what is printed in it, `NAME.json`."""
    case = json.loads(path.with_name(f"{path.name}.json").read_text(encoding="utf-8"))
    printed = []
    for row in case["printed"]:
        table = row.pop("table")
        cells = {(field, (number, text)) for field, (number, text) in row.items()}
        printed.append((table, frozenset(cells)))
    return judge_rows(path.read_bytes(), case["reader"], printed)


@pytest.fixture
def chromium(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge by what Chromium shows: that which CHROMIUM names, else that of the Node packages."""
    folder = find_modules()
    if folder is not None and not os.environ.get("CHROMIUM"):
        command = ["node", "--input-type=module", "--eval", FIND_CHROMIUM]
        found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        monkeypatch.setenv("CHROMIUM", found.stdout.strip())
    if not is_installed():
        pytest.skip("needs Chromium and the Node packages of site/")


# The judge itself: an oracle that calls everything right proves nothing


@pytest.mark.parametrize("recipe", [PLAIN_PAGE, PLAIN_PAPER])
def test_judge_accepts_what_is_printed_and_nothing_else(recipe: Recipe) -> None:
    data, tables = build_document(recipe)
    assert read_and_judge(data, tables).outcome == EXACT
    table, *others = tables
    first, second, *_ = table.rows
    mixed = [*first[:-1], second[-1]]
    for wrong in (
        change_figure(table, Decimal("0.5")),
        replace(table, rows=table.rows[1:]),
        replace(table, rows=[*table.rows, mixed]),
    ):
        assert read_and_judge(data, [wrong, *others]).outcome == SILENT


def test_lost_row_is_silent_where_a_quarantined_one_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, tables = build_document(replace(PLAIN_PAGE, mutations=("doubtful",)))
    assert read_and_judge(data, tables).outcome == REPORTED
    read = judge.normalise
    monkeypatch.setattr(judge, "normalise", lambda *args: replace(read(*args), rejected=[]))
    assert read_and_judge(data, tables).outcome == SILENT


# The documents


def test_every_mutation_changes_the_document() -> None:
    for name, mutation in MUTATIONS.items():
        recipe = PLAIN_PAGE if "html" in mutation.formats else PLAIN_PAPER
        changed = []
        for seed in range(8):
            plain = replace(recipe, seed=seed)
            mutated = replace(plain, mutations=(name,))
            changed.append(build_document(plain)[0] != build_document(mutated)[0])
        assert any(changed), name


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_file_that_was_read_wrong_once_is_exact_or_reported(path: Path) -> None:
    verdict = judge_file(path)
    assert verdict.outcome != SILENT, verdict.reason


@pytest.mark.parametrize(
    "recipe", READ_WRONG_ONCE, ids=lambda recipe: " ".join([recipe.dialect, *recipe.mutations])
)
def test_pdf_that_was_read_wrong_once_is_exact_or_reported(recipe: Recipe) -> None:
    verdict = read_and_judge(*build_document(recipe))
    assert verdict.outcome != SILENT, verdict.reason


@pytest.mark.slow
@pytest.mark.usefixtures("chromium")
def test_page_with_a_hostile_construct_is_exact_or_reported() -> None:
    data, tables = build_page("struck-undone", 0)
    wrong = [change_figure(tables[0], Decimal("0.5")), *tables[1:]]
    assert read_and_judge(data, wrong).outcome == SILENT
    trials = [*run_hostile(HOSTILE)]
    assert {"variable", "popover", "container"} <= names(trials, EXACT)
    assert names(trials, SILENT) == set()


def test_pdf_with_a_hostile_construct_is_exact_or_reported() -> None:
    trials = [*run_hostile_pdf(len(PDF_CONSTRUCTS))]
    assert {"slanted", "underline", "junk before", "update"} <= names(trials, EXACT)
    assert names(trials, SILENT) == set()


@pytest.mark.slow
@pytest.mark.usefixtures("chromium")
def test_browser_shows_what_the_constructs_say() -> None:
    data, tables = build_page("struck-undone", 0)
    [shown] = render([data.decode()])
    assert mark_unseen(tables, shown) == tables
    [hidden] = render([data.decode().replace("<tbody", "<tbody style='color:#fff'")])
    assert mark_unseen(tables, hidden) != tables
    assert find_contradicted(HOSTILE) == []


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(recipes())
def test_every_figure_is_exact_or_reported(recipe: Recipe) -> None:
    data, tables = build_document(recipe)
    assume(data)
    verdict = read_and_judge(data, tables)
    assert verdict.outcome != SILENT, verdict.reason


@pytest.mark.slow
def test_most_plain_documents_are_exact() -> None:
    trials = list(run_trials(PLAIN_DOCUMENTS))
    for kind in (PLAIN_HTML, PLAIN_PDF):
        outcomes = [trial.verdict.outcome for trial in trials if trial.kind == kind]
        assert 100 * outcomes.count(EXACT) >= MIN_EXACT[kind] * len(outcomes) > 0, kind
