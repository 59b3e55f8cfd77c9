"""Say what a name of 1.x is since 2.0, for errors."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

from ipu_results.kit.files import load_schema_file

FIGURE = "figures.value"  # of the row whose metric is the old name
GONE = "gone"  # and why


@cache
def load_renamed() -> dict[str, Any]:
    """Load schema/renamed.toml, which describes itself."""
    return load_schema_file("renamed.toml")


def find_new_name(relation: str, name: str) -> str | None:
    """Return what a column of 1.x is, as schema/renamed.toml writes it; None for any other name."""
    renamed = load_renamed()
    names: dict[str, str] = renamed["columns"] | renamed["relation"].get(relation, {})
    return names.get(name)


def describe_column(name: str, relation: str, known: Collection[str]) -> str:
    """Say what an unknown column was renamed to, empty where none of `known` is it."""
    new = find_new_name(relation, name)
    if new is None:
        return ""
    is_column = new.isidentifier()
    if is_column and new not in known:
        return ""
    if new.startswith(GONE):
        return f"`{name}` is {new}, since 2.0"
    if new == FIGURE:
        return f"`{name}` is `{FIGURE}` where metric = '{name}' since 2.0"
    where = f" in {relation}" if is_column else ""
    return f"`{name}` is `{new}`{where} since 2.0"


def describe_relation(name: str) -> str:
    """Say where the rows of a relation that went are, empty for any other name."""
    new = load_renamed()["relations"].get(name, "")
    if new.startswith(GONE):
        return f"`{name}` is {new}, since 2.0"
    return f"`{name}` is `{new}` since 2.0" if new else ""
