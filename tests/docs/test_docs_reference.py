"""The reference pages are those of the code, the schema and the dataset; `make docs` writes them."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping
from itertools import dropwhile
from typing import Any

import click
import ipu_results
import pytest
from ipu_results import errors
from ipu_results.doors.cli import main
from ipu_results.doors.cli.common import Failure
from ipu_results.kit import limits
from ipu_results.kit.renamed import FIGURE, GONE, load_renamed
from ipu_results.kit.text import escape_markdown, format_code, format_markdown_table
from ipu_results.record.check.rules import RULES
from ipu_results.release.version import ChangeKind
from ipu_results.schema import MAIN, SHARED, TABLES, VIEWS, Column, Table, View, table

from tests.conftest import Query, run_cli
from tests.docs.docs_support import REFERENCE, check_part
from tests.record.check.rules_support import list_doubtful, load_review

pytestmark = pytest.mark.docs

API = {  # what the page of the Python API documents, by module
    "ipu_results": [
        "load",
        "connect",
        "provenance",
        "claims",
        "compare",
        "cite",
        "pandera_schema",
        "score_mlperf",
        "Emulator",
        "IpuResultsError",
    ],
    "ipu_results.add": [
        "AddConfig",
        "add_source",
        "preview_source",
        "SourceDraft",
        "SourcePreview",
    ],
    "ipu_results.build": ["IngestConfig", "ingest", "IngestSummary"],
    "ipu_results.release": ["ReleaseRequest", "publish", "verify_release", "diff_releases"],
    "ipu_results.runner": ["SweepConfig", "run_sweep", "resume_sweep", "SweepResult", "Progress"],
}
ERROR = re.compile(r"^( *)([A-Z]\w+)\n +(.+)$", re.M)


# tables.md

REPEATED = 5  # columns that a view takes from one table: so many are named, not described again


def describe_column(column: Column) -> str:
    choices = f" One of {', '.join(column.choices)}." if column.choices else ""
    return f"{column.description}{choices}"


def list_columns(columns: Iterable[Column]) -> str:
    rows = [
        (format_code(column.name), column.kind, column.unit, describe_column(column))
        for column in columns
    ]
    table = format_markdown_table(("column", "type", "unit", "description"), rows)
    return table.replace(r"\`", "`")  # a description names tables and columns as code


def list_repeated(view: View, table: Table) -> list[Column]:
    """Return the columns that the view takes from the table as they are."""
    texts = {(column.name, column.unit, column.description) for column in table.columns}
    repeated = []
    for column in view.columns:
        if (column.name, column.unit, column.description) in texts:
            repeated.append(column)
    return repeated


def format_view_columns(view: View) -> str:
    """List the columns of a view; those that it takes from one table are described there."""
    table = max(TABLES, key=lambda table: len(list_repeated(view, table)))
    repeated = list_repeated(view, table)
    if len(repeated) < REPEATED:
        return list_columns(view.columns)
    names = ", ".join(format_code(column.name) for column in repeated)
    text = f"As in [`{table.name}`](#{table.name}): {names}.\n"
    others = [column for column in view.columns if column not in repeated]
    return f"{text}\n{list_columns(others)}" if others else text


def format_section(relation: Table | View) -> str:
    """Return the heading of a relation, what one row is, and its columns."""
    text = f"### {relation.name}\n\n{relation.description}"
    if isinstance(relation, Table):
        key = ", ".join(format_code(name) for name in relation.key)
        return f"{text} Key: {key}.\n\n{list_columns(relation.columns)}"
    return f"{text}\n\n{format_view_columns(relation)}"


def format_overview(relations: Iterable[Table | View], counts: Mapping[str, int]) -> str:
    """Return a line for each relation: its place on the page, rows of a table, first sentence."""
    lines = ["| relation | rows | one row is |\n|---|---|---|\n"]
    for relation in relations:
        name = relation.name
        rows = f"{counts[name]:,}" if isinstance(relation, Table) else "view"
        sentence = relation.description.partition(". ")[0].rstrip(".")
        link = f"[`{relation.sql_name}`](#{name})"
        lines.append(f"| {link} | {rows} | {escape_markdown(sentence)} |\n")
    return "".join(lines).replace(r"\`", "`")


def test_tables_and_views_are_those_of_the_schema(query: Query) -> None:
    page = REFERENCE / "tables.md"
    counts = {table.name: query(f"SELECT count(*) FROM {table.sql_name}")[0][0] for table in TABLES}
    groups: dict[str, list[Table | View]] = {"main": [], "detail": []}
    for relation in (*TABLES, *VIEWS):
        groups["main" if relation.schema == MAIN else "detail"].append(relation)
    overviews = {"main": "overview", "detail": "detail_overview"}
    for name, relations in groups.items():
        check_part(page, overviews[name], format_overview(relations, counts))
        check_part(page, name, "\n".join(map(format_section, relations)))


# rules.md


HITS = "SELECT rule, table_name, row_number, column_name FROM flags JOIN results USING (result_id)"


def test_list_of_rules_is_that_of_the_code(query: Query) -> None:
    counts = {}
    for rule, severity, count in query("SELECT rule, severity, count(*) FROM flags GROUP BY ALL"):
        counts[rule, severity] = str(count)
    review = load_review()
    hits = query(HITS)
    lines = [
        "| rule | title | error | warn | info | right | doubtful | scope | fires when |\n",
        f"{'|---' * 9}|\n",
    ]
    doubts = ["| rule | doubtful | rows | because |\n|---|---|---|---|\n"]
    for rule in RULES:
        places = [place for name, *place in hits if name == rule.id]
        doubtful = 0
        for entry in review[rule.id].get("doubtful", []):
            count = len(list_doubtful(entry, places))
            doubtful += count
            column = f", `{entry['column']}`" if "column" in entry else ""
            rows = f"{', '.join(entry['rows'])}{column}"
            doubts.append(f"| {rule.id} | {count} | {rows} | {entry['reason']} |\n")
        flags = [counts.get((rule.id, name), "0") for name in ("error", "warn", "info")]
        right = review[rule.id]["hits"] - doubtful
        anchor = f"{rule.id}-{rule.title}".lower().replace("'", "")  # as GitHub makes it
        lines.append(
            f"| [{rule.id}](#{anchor}) | {rule.title} | {' | '.join(flags)} | {right} |"
            f" {doubtful} | {rule.scope} | {rule.description} |\n"
        )
    check_part(REFERENCE / "rules.md", "rules", "".join(lines))
    check_part(REFERENCE / "rules.md", "doubts", "".join(doubts))


def format_statement(name: str, sql: str) -> str:
    """Return a section with a statement, without its head, which other text repeats."""
    lines = dropwhile(lambda line: line.startswith("--"), sql.strip().splitlines())
    text = "\n".join(lines)
    return f"### {name}\n\n```sql\n{text}\n```\n"


def test_statements_of_rules_are_those_of_the_schema() -> None:
    page = REFERENCE / "rules.md"
    rules = [format_statement(f"{rule.id} {rule.title}", rule.statement) for rule in RULES]
    check_part(page, "statements", "\n".join(rules))
    shared = [
        format_statement(view.sql_name, view.sql).replace("\n\n", f"\n\n{view.description}\n\n", 1)
        for view in SHARED
    ]
    check_part(page, "shared", "\n".join(shared))


# release.md


def test_kinds_of_change_are_those_of_the_code() -> None:
    words = {"table": "TABLE", "column": "COLUMN", "what": "type", "new": "NEW", "old": "OLD"}
    lines = ["| change | what `publish` reports | lowest version |\n|---|---|---|\n"]
    for kind in ChangeKind:
        level, template = kind.value
        count = "N cells" if "{column}" in template else "N rows"
        name = kind.name.lower().replace("_", " ")
        lines.append(f"| {name} | `{template.format(**words, count=count)}` | {level} |\n")
    check_part(REFERENCE / "release.md", "changes", "".join(lines))


# commands.md


def test_commands_are_those_of_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    sections = []
    for name in main.commands:
        text = run_cli(name, "--help").stdout
        sections.append(f"## {name}\n\n```text\n{text}```\n")
    check_part(REFERENCE / "commands.md", "commands", "\n".join(sections))


# python-api.md


def is_public(node: ast.stmt) -> bool:
    if isinstance(node, ast.AnnAssign):
        name = ast.unparse(node.target)
    elif isinstance(node, ast.FunctionDef):
        name = node.name
    else:
        return False
    return name == "__init__" or not name.startswith("_")


def format_signature(documented: Any) -> str:
    """Return a function, or a class with its fields and methods, without bodies and docstrings."""
    [node] = ast.parse(textwrap.dedent(inspect.getsource(documented))).body
    assert isinstance(node, ast.ClassDef | ast.FunctionDef)
    nothing: list[ast.stmt] = [ast.Expr(ast.Constant(...))]
    for function in ast.walk(node):
        if isinstance(function, ast.FunctionDef):
            function.body = nothing
    if isinstance(node, ast.ClassDef):
        node.body = list(filter(is_public, node.body)) or nothing
        node.decorator_list = []
    text = re.sub(r":\n +\.\.\.$", ": ...", ast.unparse(node), flags=re.M)
    return re.sub(r"(: [^,=()]+\S)=(?=\S)", r"\1 = ", text).replace(":\n\n", ":\n")


def test_python_interface_is_that_of_the_docstrings() -> None:
    assert set(API["ipu_results"]) == set(ipu_results.__all__)
    sections = []
    for module, names in API.items():
        sections.append(f"## {module}\n")
        for name in names:
            documented = getattr(importlib.import_module(module), name)
            signature = format_signature(documented)
            text = inspect.cleandoc(documented.__doc__)
            code = f"```python\n{signature}\n```\n\n```text\n{text}\n```"
            sections.append(f"### {name}\n\n{code}\n")
    check_part(REFERENCE / "python-api.md", "api", "\n".join(sections))


# limits.md


def test_limits_are_those_of_the_code() -> None:
    groups = re.split(r"(?m)^# (.+)\n", inspect.getsource(limits))
    sections = []
    for title, source in zip(groups[1::2], groups[2::2], strict=True):
        entries = re.findall(r"(?m)^(\w+) = [^#]+?  # (.+)$", source)
        assert len(entries) == len(re.findall(r"(?m)^\w+ = ", source)), "a limit has no comment"
        rows = [(format_code(name), f"{getattr(limits, name):,}", text) for name, text in entries]
        sections.append(f"## {title}\n\n{format_markdown_table(('name', 'limit', 'of'), rows)}")
    check_part(REFERENCE / "limits.md", "limits", "\n".join(sections))


# errors.md


def test_errors_are_those_of_the_hierarchy() -> None:
    entries = ERROR.findall(str(errors.__doc__))
    parents = ["Exception"]
    stated = {}
    lines = []
    for indent, name, text in entries:
        level = len(indent) // 2
        parents[level + 1 :] = [name]
        stated[name] = parents[level]
        lines.append(f"{'  ' * level}* `{name}`: {text}\n")
    defined = {}
    for name, value in vars(errors).items():
        if isinstance(value, type):
            defined[name] = value.__base__.__name__
    assert stated == defined
    status = (
        f"Each of these ends a command with exit status {Failure.exit_code}. "
        f"Wrong usage ends it with {click.UsageError.exit_code}.\n\n"
    )
    check_part(REFERENCE / "errors.md", "errors", status + "".join(lines))


# names.md


def format_new_name(old: str, new: str) -> str:
    """Say where the values of a column of 1.x are, from its entry in schema/renamed.toml."""
    if new.startswith(GONE):
        return new
    condition = f" where `metric = '{old}'`" if new == FIGURE else ""
    return f"{format_code(new)}{condition}"


def test_names_of_1x_are_those_of_the_map() -> None:
    renamed = load_renamed()
    names = [("", old, format_code(new)) for old, new in renamed["relations"].items()]
    for place, columns in {"any": renamed["columns"], **renamed["relation"]}.items():
        names += [(place, old, format_new_name(old, new)) for old, new in columns.items()]
    lines = ["| relation | 1.x | 2.0 |\n|---|---|---|\n"]
    for place, old, new in names:
        relation = place if place == "any" else format_code(place or old)
        lines.append(f"| {relation} | {format_code(old) if place else ''} | {new} |\n")
    check_part(REFERENCE / "names.md", "names", "".join(lines))


# contract.md


def test_contract_has_the_relations_and_columns_of_the_schema() -> None:
    page = REFERENCE / "contract.md"
    tables = [each for each in TABLES if each.schema == MAIN]
    rows = [(format_code(each.name), ", ".join(each.key)) for each in tables]
    views = ", ".join(format_code(view.name) for view in VIEWS if view.schema == MAIN)
    keys = format_markdown_table(("table", "key"), rows)
    check_part(page, "relations", f"{keys}\nViews: {views}.\n")
    for name in ("results", "figures"):
        names = ", ".join(format_code(column.name) for column in table(name).columns)
        check_part(page, name, f"{names}.\n")


def test_contract_names_every_command_and_python_name() -> None:
    text = (REFERENCE / "contract.md").read_text(encoding="utf-8")
    names = [*main.commands, *ipu_results.__all__]
    assert [name for name in names if format_code(name) not in text] == []
