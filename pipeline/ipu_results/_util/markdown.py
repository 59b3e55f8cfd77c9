"""Markdown of data: every text that comes from a table is escaped, so that it shows as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

SPECIAL = re.compile(r"([\\`*\[\]|~]|(?<!\w)_|_(?!\w))")


def escape_markdown(value: Any) -> str:
    """A value as text that no Markdown or HTML reader takes for markup."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    one_line = " ".join(str(value).split())
    escaped = one_line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return SPECIAL.sub(r"\\\1", escaped)


def format_code(name: str) -> str:
    """The name of a table or column."""
    return f"`{name}`"


def format_markdown_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Cells that are `code(...)` already are taken as they are."""
    lines = [head, ["---"] * len(head), *([_cell(value) for value in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(value: Any) -> str:
    is_code = isinstance(value, str) and re.fullmatch(r"`[\w.-]+`", value)
    return str(value) if is_code else escape_markdown(value)
