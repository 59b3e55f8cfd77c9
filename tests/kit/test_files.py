"""The order of the files of `schema/`."""

from pathlib import Path

import pytest
from ipu_results.kit import files


def test_a_file_that_the_order_does_not_name_comes_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "order.toml").write_text('views = ["second", "detail.first"]\n')
    (tmp_path / "views").mkdir()
    for name in ("first.sql", "second.sql", "zero.sql", "new.sql", "new.toml"):
        (tmp_path / "views" / name).touch()
    monkeypatch.setattr(files, "SCHEMA", tmp_path)
    names = files.list_in_order("views", "views", ".sql")
    assert names == ["second", "detail.first", "new", "zero"]
