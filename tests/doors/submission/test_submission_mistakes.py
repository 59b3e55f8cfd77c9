"""Mistakes that everybody makes, handed in: each is refused or doubted with the sentence that names
it.
"""

from __future__ import annotations

from pathlib import Path

from tests.doors.submission.submission_support import BUNDLES, Check, make_files, put_folder


def test_mistakes_are_named_at_the_hand_in(check: Check, tmp_path: Path) -> None:
    """Each has conditions of its own in one bundle, so that it is a result of its own."""
    rows = []
    for name, case in BUNDLES["mistake"].items():
        for row in case["rows"]:
            rows.append({**row, "conditions": f"case = {name}"})
    checked = check(put_folder(tmp_path / "bundle", make_files(rows)))
    text = "\n".join([*map(str, checked.faults), *checked.flags])
    for case in BUNDLES["mistake"].values():
        assert case["sentence"] in text


def test_honest_runs_are_accepted(check: Check, tmp_path: Path) -> None:
    checked = check(put_folder(tmp_path / "bundle", make_files(**BUNDLES["honest"])))
    assert checked.accepted, checked
    assert "doubtful" not in "\n".join(checked.flags)
