"""Examples in the docs are run, their outputs are the real ones (`make docs` writes them), and
links lead somewhere.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
import tomllib
from doctest import DocTestParser
from pathlib import Path

import duckdb
import ipu_results
import pandas as pd
import pytest
from ipu_results.doors.analyses.findings import FINDINGS, fill_finding
from ipu_results.kit.text import format_markdown_table

from tests.conftest import ROOT, Query, run_cli
from tests.docs.docs_support import DOCS, PAGES, README, check_page, check_part

BLOCK = re.compile(r"```(console|pycon)\n(.*?)```", re.S)
PYTHON = re.compile(r"```python\n(.*?)```", re.S)
PAGE_OF_FINDINGS = DOCS / "explanation" / "findings.md"
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def run_console(block: str) -> str:
    command = block.splitlines()[0]
    done = run_cli(*shlex.split(command.removeprefix("$ ipu-results ")))
    assert done.returncode == 0, done.stderr
    return f"{command}\n{done.stdout}"


def run_pycon(block: str) -> str:
    """Run the statements after `>>> `, each followed by what an interactive session prints."""
    names: dict[str, object] = {}
    shown = []
    for example in DocTestParser().get_examples(block):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), pd.option_context("display.width", 100):
            exec(compile(example.source, "README.md", "single"), names)
        first, *others = example.source.splitlines()
        lines = [f">>> {first}", *(f"... {line}" for line in others)]
        shown.append("".join(f"{line}\n" for line in lines) + out.getvalue())
    return "".join(shown)


RUNNERS = {"console": run_console, "pycon": run_pycon}


@pytest.mark.docs
@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda page: page.name
)
def test_examples_print_what_the_docs_show(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    def run(match: re.Match[str]) -> str:
        language, block = match.groups()
        return f"```{language}\n{RUNNERS[language](block)}```"

    check_page(page, BLOCK.sub(run, page.read_text(encoding="utf-8")))


def test_names_that_python_examples_import_exist() -> None:
    """Examples that take long or need other data are not run, but what they import must exist."""
    nodes: list[ast.AST] = []
    for page in PAGES:
        for block in PYTHON.findall(page.read_text(encoding="utf-8")):
            nodes += ast.walk(ast.parse(block))
    assert nodes
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(ast.unparse(node), {})
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "ipu_results":
            assert node.attr in ipu_results.__all__


SENTENCES = {  # of the pages below, with the query that gives their figures
    "{} results from {} source rows of {} documents, no row lost, {} quarantined": (
        """
        SELECT (SELECT count(*) FROM results), (SELECT count(*) FROM source_rows), (SELECT count(*)
        FROM documents),
               (SELECT count(*) FROM quarantine)"""
    ),
    "Here `usable` leaves out {} of {} rows. Over the whole record it leaves out {} of {}": (
        """
        SELECT
            count(*) FILTER (NOT usable), count(*),
            (SELECT count(*) FROM results WHERE NOT usable), (SELECT count(*) FROM results)
        FROM inference
        WHERE model = 'ResNet-50 v1.5' AND latency_ms <= 5"""
    ),
    "that of {} of the {} rows measured here, all {} of an H100 among them": (
        """
        SELECT
            count(*) FILTER (NOT usable AND errors = 0), count(*),
            count(*) FILTER (chip LIKE 'H100%')
        FROM results
        WHERE origin = 'measured'
        HAVING bool_and(NOT usable) FILTER (chip LIKE 'H100%')"""
    ),
    "A further {} figures are microbenchmarks": "SELECT count(*) FROM microbenchmarks",
    "Of {} public documents that a search of {} found, {} are in the record": (
        """
        SELECT
            count(*), (SELECT max(searched_on) FROM detail.register_searches),
            count(*) FILTER (documents IS NOT NULL)
        FROM detail.register"""
    ),
    "{} published by vendors and others, {} from official MLPerf logs, {} measured here and {} emulated": (
        """
        SELECT
            count(*) FILTER (origin = 'published'), count(*) FILTER (origin = 'official'),
            count(*) FILTER (origin = 'measured'), count(*) FILTER (origin = 'emulated')
        FROM results"""
    ),
    "each counted once for a party ({} distinct works, of {} networks)": (
        """
        SELECT count(DISTINCT (model, chip, chip_count)), count(DISTINCT model)
        FROM replications
        WHERE counts AND machines = 'IPU' AND parties LIKE 'vendor and %'"""
    ),
    "In {} of the {} the second party states no batch size, and in {} no precision": (
        """
        SELECT
            count(*) FILTER (unstated LIKE '%batch%'), count(*),
            count(*) FILTER (unstated LIKE '%precision%')
        FROM replications
        WHERE counts AND machines = 'IPU' AND parties LIKE 'vendor and %'"""
    ),
    "Of {} claims that Graphcore and others made, {} are confirmed by figures outside their document, {} at least in part by the same document or another claim, and {} only by arithmetic over claims. {} rest on another baseline than they name. {} depend on how their words are read, {} on an MLPerf division, {} on the system and {} on the source, which they do not name. {} are not supported, {} are contradicted and {} cannot be recomputed. A later SDK is at or above the figure of {}, and {} differ in the last digit": (
        """
        WITH counts AS (SELECT verdict, count(*) AS claims FROM claims GROUP BY ALL)
        SELECT
            sum(claims)::INT, max(claims) FILTER (verdict = 'confirmed'),
            max(claims) FILTER (verdict = 'confirmed-internally'),
            max(claims) FILTER (verdict = 'circular'),
            max(claims) FILTER (verdict = 'swapped-baseline'),
            max(claims) FILTER (verdict = 'depends-on-reading'),
            max(claims) FILTER (verdict = 'depends-on-division'),
            max(claims) FILTER (verdict = 'depends-on-system'),
            max(claims) FILTER (verdict = 'depends-on-source'),
            max(claims) FILTER (verdict = 'not-supported'),
            max(claims) FILTER (verdict = 'contradicted'),
            max(claims) FILTER (verdict = 'not-recomputable'),
            max(claims) FILTER (verdict = 'reached-by-later-sdk'),
            max(claims) FILTER (verdict = 'last-digit-differs')
        FROM counts
        HAVING count(*) = 13"""
    ),
    "Of the {} claims of performance, {} are confirmed by figures outside their document, all of them MLPerf minutes: none of the {} of throughput, latency or other times is": (
        """
        SELECT
            count(*), count(*) FILTER (verdict = 'confirmed'),
            count(*) FILTER (metric <> 'MLPerf time to train')
        FROM claims
        WHERE kind = 'performance'
        HAVING bool_and(metric = 'MLPerf time to train') FILTER (verdict = 'confirmed')"""
    ),
    "Of {:,} changed figures on AWS Neuron's benchmark pages, {} changed while the versions of the software printed beside them stayed the same. {} of these changed by more than 5 %": (
        """
        SELECT count(*), count(*) FILTER (silent), count(*) FILTER (silent AND abs(ratio - 1) > 0.05)
        FROM revisions
        WHERE publisher = 'AWS'"""
    ),
    "whose {} changes of 2022 nobody can judge": (
        """
        SELECT count(*) FROM revisions
        WHERE publisher = 'AWS' AND silent IS NULL
        HAVING bool_and(year(published_on) = 2022)"""
    ),
    "It lists {} rows": "SELECT count(*) FROM results WHERE printed_until = '2024-02-28'",
    "differ by up to {:.2f} ": """
        SELECT max(spread)
        FROM (
            SELECT max(throughput) / min(throughput) AS spread
            FROM results
            WHERE origin = 'published'
                AND benchmark IS NULL
                AND errors = 0
                AND throughput IS NOT NULL
                AND batch_size IS NOT NULL
                AND platform IS NOT NULL
                AND printed_until IS NULL
            GROUP BY
                publisher, task, model, phase, sequence_length, packed, variant, platform,
                chip_count, batch_size, precision, input_tokens, output_tokens
        )
    """,
    "There are {} flags on {} rows of {} documents; {} are errors, on {} rows of {}": """
        WITH sources AS (
            SELECT result_id, document_id FROM results
            UNION ALL
            SELECT microbenchmark_id, document_id FROM microbenchmarks
        )
        SELECT
            count(*), count(DISTINCT result_id), count(DISTINCT document_id),
            count(*) FILTER (severity = 'error'),
            count(DISTINCT result_id) FILTER (severity = 'error'),
            count(DISTINCT document_id) FILTER (severity = 'error')
        FROM flags
        JOIN sources USING (result_id)
    """,
}


WITH_SENTENCES = (
    README,
    PAGE_OF_FINDINGS,
    DOCS / "explanation" / "revisions.md",
    DOCS / "how-to" / "compare-my-run.md",
)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_figures_of_sentences_are_those_of_the_dataset(sentence: str, query: Query) -> None:
    [figures] = query(SENTENCES[sentence])
    text = "\n".join(page.read_text(encoding="utf-8") for page in WITH_SENTENCES)
    assert sentence.format(*figures) in " ".join(text.split())


@pytest.mark.parametrize("page", [README, PAGE_OF_FINDINGS], ids=lambda page: page.name)
def test_table_of_findings_is_that_of_the_schema(
    page: Path, opened: duckdb.DuckDBPyConnection
) -> None:
    rows = []
    for finding in FINDINGS:
        if finding.in_readme or page != README:
            filled = fill_finding(opened, finding)
            rows.append((filled.statement, filled.figure, filled.objection))
    table = format_markdown_table(("finding", "figure", "best objection"), rows)
    check_part(page, "findings", table)


def test_readme_is_short_and_has_one_picture() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 110
    assert text.count("![") == 1


def list_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub names them."""
    headings = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_our_files_lead_somewhere() -> None:
    for page in [*PAGES, *ROOT.glob("*.md")]:
        for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
            path = page.parent / target if target else page
            assert path.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in list_anchors(path), f"{page.name}: {target}#{anchor}"


def test_every_page_is_in_the_index() -> None:
    index = DOCS / "index.md"
    linked = {index}
    for target, _ in LINK.findall(index.read_text(encoding="utf-8")):
        linked.add((DOCS / target).resolve())
    assert set(DOCS.rglob("*.md")) <= linked


def test_locks_have_no_address() -> None:
    for name in ("requirements.lock", "site/package-lock.json"):
        assert "://" not in (ROOT / name).read_text(encoding="utf-8"), name


def test_lock_holds_pins_with_hashes_and_no_index() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = re.findall(r"(?m)^[^ #\n].*?(?= *\\?$)", text)
    assert all("==" in pin for pin in pins)
    assert len(set(pins)) == len(pins)  # in one section only
    assert text.count("--hash=sha256:") >= len(pins) > 0
    assert "index" not in text


@pytest.mark.parametrize(
    ("section", "extras", "without"),
    [
        ("ingest", ["ingest", "build"], ["pytest", "onnx"]),
        ("user", ["emulator", "runner", "plots"], ["pytest"]),
        ("dev", ["dev"], []),
    ],
)
def test_sections_of_the_lock_hold_what_their_extras_name(
    section: str, extras: list[str], without: list[str]
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    before, found, _ = text.partition(f"# end of {section}\n")
    assert found
    pinned = set(re.findall(r"(?m)^([a-z0-9-]+)==", before))
    for extra in extras:
        for requirement in project["optional-dependencies"][extra]:
            name = re.split(r"[\[><=]", requirement)[0]
            assert name in {*pinned, "ipu-results"}
    assert pinned.isdisjoint(without)


def test_lock_of_the_page_holds_versions_and_hashes() -> None:
    """Npm installs what has no hash, pip with --require-hashes does not."""
    text = (ROOT / "site" / "package-lock.json").read_text(encoding="utf-8")
    packages = json.loads(text)["packages"]
    del packages[""]  # the page itself
    assert packages
    for name, entry in packages.items():
        assert "version" in entry, name
        assert entry["integrity"].startswith("sha512-"), name


def test_no_file_names_this_machine() -> None:
    found = subprocess.run(
        ["git", "grep", "-lF", str(ROOT), "--", ":!*.parquet", ":!*.pdf"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert found.stdout == ""


@pytest.mark.slow
def test_commands_of_predict_your_own_network_run_as_pasted(tmp_path: Path) -> None:
    """In an empty folder, in the order of the page: its first block writes the networks."""
    text = (DOCS / "how-to" / "predict-your-own-network.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```bash\n(.*?)```", text, re.S)
    assert len(blocks) >= 5
    python = f"python3() {{ '{sys.executable}' \"$@\"; }}"
    command = 'ipu-results() { python3 -m ipu_results "$@"; }'
    script = "\n".join(["set -e", python, command, *blocks])
    done = subprocess.run(
        ["bash", "-c", script],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "layers.csv").exists()
    assert (tmp_path / "designs.csv").exists()
