"""Cases that are data: a table for each test in the TOML file next to its module.

A table has `columns`, the arguments of the test, and `rows`, its cases. A column `id` names the
case. A row that ends early has None for the rest.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest


def read_cases(module: str, name: str = "") -> dict[str, Any]:
    """Return the content of a TOML file beside a module, by default of the same name."""
    path = Path(module).with_suffix(".toml")
    if name:
        path = path.with_name(name)
    return tomllib.loads(path.read_text(encoding="utf-8"))


def every_case(module: str, table: str) -> pytest.MarkDecorator:
    """Run a test on each row of a table of the file `module`, with .toml instead of .py.

    Raises KeyError where the file has no such table, ValueError for a row that is too long.
    """
    stated = read_cases(module)[table]
    columns = stated["columns"]
    has_ids = columns[0] == "id"
    cases = []
    for row in stated["rows"]:
        missing = len(columns) - len(row)
        if missing < 0:
            raise ValueError(f"{module}: {table}: {row} has more values than columns")
        values = [*row, *[None] * missing]
        name = values.pop(0) if has_ids else None
        cases.append(pytest.param(*values, id=name))
    if has_ids:
        columns = columns[1:]
    return pytest.mark.parametrize(columns, cases)
