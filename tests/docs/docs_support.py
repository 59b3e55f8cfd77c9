"""Pages and their generated parts: compared with what they must be, or written with UPDATE_DOCS=1."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.conftest import ROOT

README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
REFERENCE = DOCS / "reference"
UPDATE = os.environ.get("UPDATE_DOCS") == "1"
PART = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- end -->)", re.S)


def check_page(page: Path, expected: str) -> None:
    """Compare a page with what it must be, or write it with UPDATE_DOCS=1."""
    if UPDATE:
        page.write_text(expected, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == expected


def check_part(page: Path, name: str, expected: str) -> None:
    """Compare the generated part `name` of a page in the same way."""
    text = page.read_text(encoding="utf-8")
    assert [part for _, part, _, _ in PART.findall(text)].count(name) == 1
    check_page(
        page,
        PART.sub(
            lambda match: match[1] + (expected if match[2] == name else match[3]) + match[4], text
        ),
    )
