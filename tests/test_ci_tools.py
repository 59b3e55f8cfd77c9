"""The checks in .ci report what they are there for."""

from __future__ import annotations

import io
import os
import runpy
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cases import every_case, read_cases
from tests.conftest import ROOT, Done

CASES = read_cases(__file__)
ROWS = pa.table({"name": ["a", "b", "c"], "figure": [1.0, None, 0.0], "message": ["x", "y", "z"]})


def run_tool(tool: str, folder: Path, *args: str) -> Done:
    """Run a tool of .ci in this process."""
    out, err, path = io.StringIO(), io.StringIO(), str(ROOT / ".ci" / tool)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        patch.setattr(sys, "argv", [path, *args])
        patch.syspath_prepend(str(ROOT / ".ci"))
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(path, run_name="__main__")
    return Done(args, int(ended.value.code or 0), out.getvalue(), err.getvalue())


def run_git(folder: Path, *args: str) -> str:
    command = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org", *args]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, check=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Commit one table, one view with a file and one without."""
    (tmp_path / "warehouse/detail").mkdir(parents=True)
    files = {"pyproject.toml": "", "schema/tables/flags.toml": 'key = ["name"]\n'}
    files["schema/views/known.sql"] = "FROM flags WHERE figure IS NOT NULL"
    files["schema/views/stored.sql"] = "FROM flags"
    for name, code in CASES["code"].items():
        files[f"pipeline/ipu_results/{name}"] = code
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    run_git(tmp_path, "init", "--quiet")
    return tmp_path


def commit_rows(repository: Path, table: pa.Table, view: pa.Table = ROWS) -> str:
    pq.write_table(table, repository / "warehouse/flags.parquet")
    pq.write_table(view, repository / "warehouse/stored.parquet")
    run_git(repository, "add", ".")
    run_git(repository, "commit", "--quiet", "--allow-empty", "--message", "rows")
    return run_git(repository, "rev-parse", "HEAD")


def set_figures(values: list[float | None]) -> pa.Table:
    return ROWS.set_column(1, "figure", pa.array(values, pa.float64()))


SWAPPED = ROWS.take([1, 0, 2])
SINGLE = ROWS.cast(ROWS.schema.set(1, pa.field("figure", pa.float32())))


@pytest.mark.parametrize(
    ("table", "view", "expected"),
    [
        (set_figures([1.0, None, -0.0]), ROWS, ["flags.figure: 1", "known.figure: 1"]),
        (set_figures([1.0, 0.0, 0.0]), ROWS, ["flags.figure: 1", "known.(rows): 1"]),
        (ROWS, set_figures([2.0, None, 0.0]), ["stored.figure: 1"]),
        (ROWS, SWAPPED, ["stored.name: 2"]),
        (SWAPPED, ROWS, ["flags.(order of rows): 1"]),
        (ROWS.slice(1), ROWS, ["flags.(rows): 1"]),
        (ROWS, ROWS.select(["figure", "name", "message"]), ["stored.(columns): 1"]),
        (ROWS, ROWS.drop_columns("figure"), ["stored.(columns): 1"]),
        (ROWS, SINGLE, ["stored.(types): 1"]),
    ],
)
def test_each_difference_of_tables_and_views_is_reported(
    repository: Path, table: pa.Table, view: pa.Table, expected: list[str]
) -> None:
    base = commit_rows(repository, ROWS)
    commit_rows(repository, table, view)
    done = run_tool("compare_tables.py", repository, base, "--allow-reworded", "--allow-digests")
    *lines, last = done.stdout.splitlines()
    assert done.returncode == 1
    assert last.endswith("they differ")
    assert {f"CHANGED {difference}" for difference in expected} <= set(lines)


def test_reworded_columns_differ_unless_they_are_permitted(repository: Path) -> None:
    # of the row that `known` leaves out
    message = ROWS.set_column(2, "message", pa.array(["x", "new", "z"]))
    base = commit_rows(repository, ROWS)
    commit_rows(repository, message)
    strict = run_tool("compare_tables.py", repository, base)
    permissive = run_tool("compare_tables.py", repository, base, "--allow-reworded")
    assert strict.returncode == 1
    assert "reworded flags.message: 1" in strict.stdout.splitlines()
    assert permissive.returncode == 0
    assert "permitted reworded: 1" in permissive.stdout.splitlines()


def test_equal_commits_are_equal_and_every_field_is_counted(repository: Path) -> None:
    done = run_tool("compare_tables.py", repository, commit_rows(repository, ROWS))
    assert (done.returncode, done.stderr) == (0, "")
    last = done.stdout.splitlines()[-1]  # 9 fields each, and 2 rows of `known`
    assert last == "24 fields of 3 tables and views compared: every field equal"


def test_table_is_found_where_it_moved_to_and_one_that_went_is_missing(repository: Path) -> None:
    base = commit_rows(repository, ROWS)
    moved = repository / "warehouse/flags.parquet"
    run_git(repository, "mv", str(moved), str(repository / "warehouse/detail/flags.parquet"))
    run_git(repository, "commit", "--quiet", "--message", "moved")
    assert run_tool("compare_tables.py", repository, base).returncode == 0
    run_git(repository, "rm", "--quiet", "warehouse/stored.parquet", "schema/views/stored.sql")
    run_git(repository, "commit", "--quiet", "--message", "gone")
    done = run_tool("compare_tables.py", repository, base)
    assert done.returncode == 1
    assert "MISSING stored" in done.stdout.splitlines()


@every_case(__file__, "imports")
def test_import_against_the_rules_is_reported(
    tmp_path: Path, violation: str, files: dict[str, str]
) -> None:
    known = '"old -> older" = "gone"' if "mended" in violation else ""
    settings = f'layers = ["read", "link"]\n[alone]\nlink = ["link"]\n[known]\n{known}\n'
    for name, text in {"../../.ci/layers.toml": settings, **files}.items():
        path = tmp_path / "pipeline/ipu_results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.resolve().write_text(text, encoding="utf-8")
    done = run_tool("imports.py", tmp_path)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(violation)
    assert len(done.stdout.splitlines()) == 1


# release.py


CHANGELOG = (
    "# Changelog\n\n## [Unreleased]\n\nMore rows.\n\n## 1.0.0\n\nFirst.\n\n[Unreleased]:"
    " https://x.example/commits/main\n"
)


@pytest.fixture
def unreleased(tmp_path: Path) -> Path:
    """Commit a project at 2.0.0 that has something to release."""
    (tmp_path / ".ci").mkdir()
    shutil.copyfile(ROOT / ".ci" / "release.py", tmp_path / ".ci" / "release.py")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "2.0.0"\n')
    (tmp_path / "CITATION.cff").write_text("title: x\nversion: 2.0.0\nlicense: MIT\n")
    for args in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        run_git(tmp_path, *args)
    return tmp_path


def run_release(folder: Path, *args: str) -> Done:
    command = [sys.executable, str(folder / ".ci" / "release.py"), *args]
    env = dict(os.environ)
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": "t", f"GIT_{who}_EMAIL": "t@example.org"}
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


def test_release_raises_the_version_cuts_the_changelog_and_tags(unreleased: Path) -> None:
    assert run_release(unreleased, "prepare", "2.1.0").returncode == 0
    assert run_release(unreleased, "show").stdout == "2.1.0\n"
    day = datetime.now(UTC).date().isoformat()
    head = f"# Changelog\n\n## [Unreleased]\n\n## [2.1.0] - {day}\n\nMore rows.\n"
    links = (
        "[Unreleased]: https://x.example/compare/v2.1.0...HEAD\n"
        "[2.1.0]: https://x.example/releases/tag/v2.1.0\n"
    )
    changelog = (unreleased / "CHANGELOG.md").read_text()
    assert changelog == f"{head}\n## 1.0.0\n\nFirst.\n\n{links}"
    citation = (unreleased / "CITATION.cff").read_text()
    assert citation == f"title: x\nversion: 2.1.0\ndate-released: {day}\nlicense: MIT\n"
    assert run_release(unreleased, "tag", "2.1.0").returncode == 0
    assert run_git(unreleased, "tag", "--list") == "v2.1.0"
    assert run_git(unreleased, "status", "--porcelain") == ""
    assert "nothing under Unreleased" in run_release(unreleased, "prepare", "2.2.0").stderr


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("2.1", "is not a version"),
        ("1.9.9", "is lower than 2.0.0"),
        ("2.0.1", "has a tag"),
        ("3.0.0", "has changes"),
    ],
)
def test_release_that_cannot_be_made_changes_nothing(
    unreleased: Path, version: str, message: str
) -> None:
    run_git(unreleased, "tag", "v2.0.1")
    if version == "3.0.0":
        (unreleased / "new").touch()
    done = run_release(unreleased, "prepare", version)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert message in done.stderr
    assert (unreleased / "CHANGELOG.md").read_text() == CHANGELOG
