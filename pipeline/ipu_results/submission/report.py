"""Format checked bundles: text for a terminal and for a comment, JSON for a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipu_results.comparison.verdict import describe_match
from ipu_results.ground.text import escape_unprintable, format_count, format_json
from ipu_results.submission.check import CheckedBundle, CheckedRow

MAX_LINES = 50  # of each kind in text; JSON has all
MAX_LINE = 600  # characters


def format_checks(checks: Sequence[CheckedBundle], output: str) -> str:
    """Format checks as `text` or `json`."""
    if output == "json":
        return format_json([check.to_record() for check in checks])
    if not checks:
        return "nothing new: every bundle is here already"
    return "\n\n".join("\n".join(map(_shorten, _list_lines(check))) for check in checks)


def _shorten(line: str) -> str:
    text = escape_unprintable(line)
    return text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}…"


def _list_lines(check: CheckedBundle) -> Iterator[str]:
    outcome = "accepted" if check.accepted else f"refused, {format_count(len(check.faults), 'reason')}"
    yield f"{check.name}: {outcome}"
    yield from _limit([f"refused: {fault}" for fault in check.faults])
    yield from _limit([f"flag: {flag}" for flag in check.flags])
    if check.bundle and check.accepted:
        submission = check.bundle.submission
        yield f"document {submission.document_id}, {len(check.bundle.rows)} figures, {submission.licence}"
    yield from _limit([line for row in check.rows for line in _describe_row(row)])


def _limit(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:MAX_LINES]
    if len(lines) > MAX_LINES:
        yield f"and {len(lines) - MAX_LINES} more lines; see --format json"


def _describe_row(row: CheckedRow) -> Iterator[str]:
    result_id = row.values.get("result_id")
    yield f"row: {row.description} (result {result_id}, {row.values.get('relationship')})"
    yield f"  {row.verdict}"
    for match in row.nearest:
        if (text := describe_match(match)) not in row.verdict:
            yield f"  {text}"
