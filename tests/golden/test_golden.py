"""What a user sees is what it was: see `python -m tests.golden --help`, and UPDATE_GOLDEN=1 to
renew the data.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.golden.store import compare, save
from tests.golden.subjects import SUBJECTS, make

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", [name for name, subject in SUBJECTS.items() if subject.held])
def test_what_a_user_sees_is_what_it_was(name: str, warehouse: Path) -> None:
    renew = os.environ.get("UPDATE_GOLDEN") == "1"
    compact = SUBJECTS[name].compact
    texts = make(name, warehouse, fast=not renew)
    if renew:
        save(name, texts, compact)
    assert "\n".join(compare(name, texts, compact, partial=not renew)) == ""
