"""A check of one bundle against the committed record."""

from __future__ import annotations

from pathlib import Path

import pytest
from ipu_results.doors.submission.check import CheckedBundle, CheckRequest, check_submission

from tests.doors.submission.submission_support import Check


@pytest.fixture
def check(tmp_path: Path, warehouse: Path) -> Check:
    """Check one bundle against the committed record, without any submission in `raw`."""

    def check(path: Path) -> CheckedBundle:
        [checked] = check_submission(path, CheckRequest(tmp_path / "raw", warehouse))
        return checked

    return check
