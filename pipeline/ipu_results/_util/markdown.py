"""Write Markdown from data: every text that comes from a table is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

SPECIAL = re.compile(r"([\\`*\[\]|~]|(?<!\w)_|_(?!\w))")


def escape_markdown(value: Any) -> str:
    """Return a value as one line that no Markdown or HTML reader takes for markup; null is empty."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    one_line = " ".join(str(value).split())
    escaped = one_line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return SPECIAL.sub(r"\\\1", escaped)


def format_code(name: str) -> str:
    """Return the name of a table or column as code."""
    return f"`{name}`"


def format_markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table with every cell escaped, except those that `format_code` made."""
    lines = [header, ["---"] * len(header), *([_format_cell(value) for value in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _format_cell(value: Any) -> str:
    is_code = isinstance(value, str) and re.fullmatch(r"`[\w.-]+`", value)
    return str(value) if is_code else escape_markdown(value)
