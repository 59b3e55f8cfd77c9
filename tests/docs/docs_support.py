"""Pages and their generated parts: compared with what they must be, or written with UPDATE_DOCS=1."""

from __future__ import annotations

import os
from pathlib import Path

from tests.conftest import ROOT

README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
REFERENCE = DOCS / "reference"
UPDATE = os.environ.get("UPDATE_DOCS") == "1"


def check_page(page: Path, expected: str) -> None:
    """Compare a page with what it must be, or write it with UPDATE_DOCS=1."""
    if UPDATE:
        page.write_text(expected, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == expected


def check_part(page: Path, name: str, expected: str) -> None:
    """Compare the generated part `name` of a page in the same way."""
    text = page.read_text(encoding="utf-8")
    begin = f"<!-- generated: {name} -->\n"
    before, part = text.split(begin)
    _, end, after = part.partition("<!-- end -->")
    check_page(page, f"{before}{begin}{expected}{end}{after}")
