"""Prepare a release, for `make release VERSION=...`: version, changelog and tag. Nothing is pushed.

python .ci/release.py show                 print the version of pyproject.toml
python .ci/release.py prepare VERSION      raise the version and cut the changelog, in a clean checkout
python .ci/release.py tag VERSION          commit what changed, and tag it
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
HEADING = "## [Unreleased]\n"
CHANGED = (
    "CHANGELOG.md",
    "CITATION.cff",
    ".zenodo.json",
    "codemeta.json",
    "docs",
    "pyproject.toml",
    "warehouse",
)


class ReleaseRefusedError(Exception):
    """Why no release can be made, in one line with what to do."""


def run_git(root: Path, *args: str) -> str:
    return subprocess.run(
        ["git", *args], cwd=root, capture_output=True, text=True, check=True
    ).stdout


def read_version(root: Path) -> str:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def cut_changelog(text: str, version: str, day: str) -> str:
    """Give what is unreleased the version and the day, and leave an empty section above it.

    Raises ReleaseRefusedError if nothing is unreleased, or the version has a section.
    """
    if text.count(HEADING) != 1:
        raise ReleaseRefusedError(f"CHANGELOG.md needs one heading {HEADING.strip()!r}; add it")
    if f"## [{version}]" in text:
        raise ReleaseRefusedError(f"CHANGELOG.md has a section {version}; choose a higher version")
    before, after = text.split(HEADING)
    if not re.split(r"(?m)^(?:## |\[)", after)[0].strip():
        raise ReleaseRefusedError("CHANGELOG.md has nothing under Unreleased; say what changed")
    cut = f"{before}{HEADING}\n## [{version}] - {day}\n{after}"
    link = re.search(r"(?m)^\[Unreleased\]: (.+?)/(?:compare|commits)/.*$", cut)
    if link is None:
        raise ReleaseRefusedError("CHANGELOG.md has no link [Unreleased]; add it at the end")
    links = (
        f"[Unreleased]: {link[1]}/compare/v{version}...HEAD\n[{version}]:"
        f" {link[1]}/releases/tag/v{version}"
    )
    return cut[: link.start()] + links + cut[link.end() :]


def prepare(root: Path, version: str) -> None:
    """Raise the version of pyproject.toml, date the citation and cut the changelog; all or nothing.

    Raises ReleaseRefusedError for a version that is none, is lower than the present one or has a
    tag, and for a checkout with changes.
    """
    present = read_version(root)
    if not VERSION.fullmatch(version):
        raise ReleaseRefusedError(f"{version!r} is not a version such as 2.1.0")
    if [*map(int, version.split("."))] < [*map(int, present.split("."))]:
        raise ReleaseRefusedError(
            f"version {version} is lower than {present} of pyproject.toml; choose a higher one"
        )
    if run_git(root, "tag", "--list", f"v{version}"):
        raise ReleaseRefusedError(f"version {version} has a tag; choose a higher one")
    if changed := run_git(root, "status", "--porcelain"):
        raise ReleaseRefusedError(
            f"the checkout has changes; commit them first: {changed.splitlines()[0].strip()}"
        )
    day = datetime.now(UTC).date().isoformat()
    paths = [root / name for name in ("CHANGELOG.md", "pyproject.toml", "CITATION.cff")]
    changelog, project, citation = [path.read_text(encoding="utf-8") for path in paths]
    changelog = cut_changelog(changelog, version, day)
    stated = rf'(?m)^version = "{re.escape(present)}"$'
    project = re.sub(stated, f'version = "{version}"', project, count=1)
    citation = re.sub(r"(?m)^date-released: .*\n", "", citation)
    dated = f"version: {version}\ndate-released: {day}"
    citation = re.sub(r"(?m)^version: .*$", dated, citation)
    # all are made before the first is written
    for path, text in zip(paths, (changelog, project, citation), strict=True):
        path.write_text(text, encoding="utf-8")


def tag(root: Path, version: str) -> None:
    run_git(root, "add", "--", *(name for name in CHANGED if (root / name).exists()))
    run_git(root, "commit", "--message", f"Release {version}")
    run_git(root, "tag", "--annotate", f"v{version}", "--message", f"Release {version}")


def main(args: list[str]) -> int:
    try:
        match args:
            case ["show"]:
                print(read_version(ROOT))
            case ["prepare", version]:
                prepare(ROOT, version)
            case ["tag", version]:
                tag(ROOT, version)
                print(
                    f"tagged v{version}; next: read `git show v{version}`, then git push"
                    " --follow-tags"
                )
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except ReleaseRefusedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
