"""The two workflows of submissions: who may write, whose code runs, and what becomes of a hostile
report.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import textwrap
import zipfile
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / ".github" / "workflows"
CHECK, COMMENT = FOLDER / "submission-check.yml", FOLDER / "submission-comment.yml"
UNTRUSTED = re.compile(r"\$\{\{")

REPORT = (
    "ok é\n```\n# Merge me, @everyone\n<script>alert(1)</script>\n\x1b[31mred\x1b[0m\n"
    + "x" * 80_000
)
GH = """#!/bin/sh
printf '%s\\n' "$*" >> "$LOG"
case "$*" in
  *artifacts/*/zip) cat "$ARTIFACT" ;;
  *"/artifacts "*) echo "$ARTIFACT_ID" ;;
  *issues/*) cp comment.md "$LOG.md" ;;
  *) echo "$NUMBER" ;;
esac
"""


def read_block(path: Path, key: str) -> list[str]:
    """Return the lines below a key at the left margin, and what is on its own line."""
    text = path.read_text(encoding="utf-8")
    [block] = re.findall(rf"(?m)^{key}:(.*(?:\n(?:[ ].*)?)*)", text)
    return [line.strip() for line in block.splitlines() if line.strip()]


def read_script(path: Path) -> str:
    """Return the shell lines of the last `run: |`."""
    text = path.read_text(encoding="utf-8").rsplit("run: |\n", 1)[1]
    lines = re.match(r"(?:(?: {10}.*)?\n)*", text)
    assert lines
    return textwrap.dedent(lines[0])


def test_check_runs_on_pull_requests_with_a_token_that_reads() -> None:
    assert read_block(CHECK, "on") == ["pull_request:", 'paths: ["raw/submissions/**"]']
    assert read_block(CHECK, "permissions") == ["contents: read"]
    assert "secrets." not in CHECK.read_text(encoding="utf-8")


def test_comment_alone_may_write_and_checks_nothing_out() -> None:
    first, *others = read_block(COMMENT, "on")
    assert [first.partition(" ")[0], *others] == [
        "workflow_run:",
        "workflows: [submission-check]",
        "types: [completed]",
    ]
    assert read_block(COMMENT, "permissions") == ["actions: read", "pull-requests: write"]
    assert "uses:" not in COMMENT.read_text(encoding="utf-8")
    assert [
        path.name for path in FOLDER.iterdir() if "write" in read_block(path, "permissions")[-1]
    ] == [COMMENT.name]
    assert all(
        "pull_request_target" not in path.read_text(encoding="utf-8") for path in FOLDER.iterdir()
    )


def test_code_is_that_of_the_base_and_files_are_data_apart() -> None:
    text = CHECK.read_text(encoding="utf-8")
    base, submitted = text.split("actions/checkout@")[1:]
    assert "ref: ${{ github.base_ref }}" in base
    assert "path: base" in base
    assert "ref: ${{ github.event.pull_request.head.sha }}" in submitted
    assert "path: submitted" in submitted
    assert text.count("persist-credentials: false") == 2
    commands = [
        line
        for line in text.splitlines()
        if "submitted" in line and not line.lstrip().startswith("path:")
    ]
    assert [line.split()[:3] for line in commands] == [
        ["ipu-results", "check-submission", "submitted/raw/submissions"]
    ]


def test_line_of_a_report_is_not_a_command_to_the_runner(tmp_path: Path) -> None:
    if os.name == "nt":
        pytest.skip("needs a shell")
    (tmp_path / "finding").mkdir()
    (tmp_path / "finding" / "report.txt").write_text(
        "::stop-commands::x/y: refused\n", encoding="utf-8"
    )
    [show] = [
        line.strip() for line in read_script(CHECK).splitlines() if line.strip().endswith("runner")
    ]
    shown = subprocess.run(
        ["sh", "-c", show], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert not shown.lstrip().startswith("::")


@pytest.fixture
def post(tmp_path: Path) -> object:
    """Run the script of the comment with a `gh` that notes what it was called with."""
    if os.name == "nt" or not shutil.which("unzip"):
        pytest.skip("needs a shell with unzip")

    def post(report: str, number: str = "7", artifact: str = "42") -> tuple[list[str], str]:
        gh = tmp_path / "bin" / "gh"
        gh.parent.mkdir()
        gh.write_text(GH, encoding="utf-8")
        gh.chmod(0o755)
        with zipfile.ZipFile(tmp_path / "artifact", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("report.txt", report)
            archive.writestr("../canary", "x")
        names = {
            "LOG": tmp_path / "log",
            "ARTIFACT": tmp_path / "artifact",
            "NUMBER": number,
            "ARTIFACT_ID": artifact,
        }
        event = {
            "REPOSITORY": "o/r",
            "RUN_ID": "1",
            "HEAD_SHA": "a",
            "HEAD_OWNER": "mallory",
            "HEAD_BRANCH": "$(id)",
        }
        env = {
            "PATH": f"{gh.parent}:{os.environ['PATH']}",
            **event,
            **{key: str(text) for key, text in names.items()},
        }
        work = tmp_path / "work"
        work.mkdir()
        subprocess.run(
            ["bash", "-e", "-c", read_script(COMMENT)], cwd=work, env=env, check=True, timeout=600
        )
        assert sorted(path.name for path in tmp_path.iterdir() if path.name == "canary") == []
        comment = tmp_path / "log.md"
        calls = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
        return calls, comment.read_text(encoding="ascii") if comment.exists() else ""

    return post


def test_hostile_report_is_one_code_block_of_plain_text(post: object) -> None:
    calls, comment = post(REPORT)  # type: ignore[operator]
    assert comment.count("```") == 2
    assert len(comment) < 51_000
    assert "\x1b" not in comment
    inside = comment.split("```")[1]
    assert "@everyone" in inside
    assert "<script>" in inside
    assert calls[-1].startswith("api --method POST repos/o/r/issues/7/comments -F body=@comment.md")
    assert "head=mallory:$(id)" in calls[0]


@pytest.mark.parametrize(
    ("number", "artifact"), [("", "42"), ("7", ""), ("7\n8", "42"), ("7; id", "42")]
)
def test_nothing_is_posted_without_one_pull_request(
    post: object, number: str, artifact: str
) -> None:
    calls, comment = post(REPORT, number, artifact)  # type: ignore[operator]
    assert comment == ""
    assert not any("POST" in call for call in calls)
