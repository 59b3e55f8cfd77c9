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
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / ".github" / "workflows"
CHECK, COMMENT = FOLDER / "submission-check.yml", FOLDER / "submission-comment.yml"

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


def test_comment_alone_may_write_and_checks_nothing_out() -> None:
    assert read_block(CHECK, "on") == ["pull_request:", 'paths: ["raw/submissions/**"]']
    assert read_block(CHECK, "permissions") == ["contents: read"]
    assert "secrets." not in CHECK.read_text(encoding="utf-8")
    first, *others = read_block(COMMENT, "on")
    assert first.startswith("workflow_run:")
    assert others == ["workflows: [submission-check]", "types: [completed]"]
    assert read_block(COMMENT, "permissions") == ["actions: read", "pull-requests: write"]
    assert "uses:" not in COMMENT.read_text(encoding="utf-8")
    for path in FOLDER.iterdir():
        assert "pull_request_target" not in path.read_text(encoding="utf-8")
        permissions = " ".join(read_block(path, "permissions"))
        assert ("write" in permissions) == (path == COMMENT), path.name


def test_code_is_that_of_the_base_and_files_are_data_apart() -> None:
    text = CHECK.read_text(encoding="utf-8")
    _, base, submitted = text.split("actions/checkout@")
    assert "ref: ${{ github.base_ref }}" in base
    assert "path: base" in base
    assert "ref: ${{ github.event.pull_request.head.sha }}" in submitted
    assert "path: submitted" in submitted
    assert text.count("persist-credentials: false") == 2
    named = re.findall(r"(?m)^ *(.*)\bsubmitted\b(\S*)", text)
    command = ("ipu-results check-submission ", "/raw/submissions")
    assert named == [("path: ", ""), command]


def test_line_of_a_report_is_not_a_command_to_the_runner(tmp_path: Path) -> None:
    if os.name == "nt":
        pytest.skip("needs a shell")
    report = tmp_path / "finding" / "report.txt"
    report.parent.mkdir()
    report.write_text("::stop-commands::x/y: refused\n", encoding="utf-8")
    [show] = re.findall(r"(?m)^(.*) runner$", read_script(CHECK))
    shown = subprocess.check_output(["sh", "-c", show], cwd=tmp_path, text=True)
    assert not shown.lstrip().startswith("::")


EVENT = {
    "REPOSITORY": "o/r",
    "RUN_ID": "1",
    "HEAD_SHA": "a",
    "HEAD_OWNER": "mallory",
    "HEAD_BRANCH": "$(id)",
}
Post = Callable[..., tuple[list[str], str]]


@pytest.fixture
def post(tmp_path: Path) -> Post:
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
        env = {
            **EVENT,
            "PATH": f"{gh.parent}:{os.environ['PATH']}",
            "LOG": str(tmp_path / "log"),
            "ARTIFACT": str(tmp_path / "artifact"),
            "NUMBER": number,
            "ARTIFACT_ID": artifact,
        }
        work = tmp_path / "work"
        work.mkdir()
        script = ["bash", "-e", "-c", read_script(COMMENT)]
        subprocess.run(script, cwd=work, env=env, check=True, timeout=600)
        assert not (tmp_path / "canary").exists()
        calls = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
        comment = tmp_path / "log.md"
        return calls, comment.read_text(encoding="ascii") if comment.exists() else ""

    return post


def test_hostile_report_is_one_code_block_of_plain_text(post: Post) -> None:
    calls, comment = post(REPORT)
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
def test_nothing_is_posted_without_one_pull_request(post: Post, number: str, artifact: str) -> None:
    calls, comment = post(REPORT, number, artifact)
    assert comment == ""
    assert not any("POST" in call for call in calls)
