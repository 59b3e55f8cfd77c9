"""Keep texts as short JSON, and describe where they differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import zip_longest
from math import ceil
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent / "data"
MAX_TEXT = 2_000  # characters that are kept whole
# of a longer text: cut lines, first lines, digests of equal parts
MAX_LINE, HEAD, BLOCKS = 160, 4, 24
MAX_SHOWN = 12  # items that a failure describes
Texts = Mapping[str, str]


def digest(text: str, length: int = 64) -> str:
    return sha256(text.encode()).hexdigest()[:length]


def split(text: str) -> list[str]:
    """Return lines; one long line of JSON is cut after its brackets, to find a difference in it."""
    lines = text.splitlines()
    if len(text) > MAX_TEXT * max(1, len(lines)):
        return re.sub(r"(?<=[}\]]),", ",\n", text).splitlines()
    return lines


def shorten(text: str, compact: bool = False) -> Any:
    """Return what is kept of a text: a digest if `compact`, all lines of a short one, digests of a
    long one's parts.
    """
    if compact:
        return digest(text, 16)
    lines = split(text)
    if len(text) <= MAX_TEXT:
        return lines
    return {
        "sha256": digest(text),
        "size": len(text),
        "lines": len(lines),
        "head": [line[:MAX_LINE] for line in lines[:HEAD]],
        "blocks": cut(lines),
    }


def cut(lines: list[str]) -> list[str]:
    step = ceil(len(lines) / BLOCKS)
    blocks = [lines[start : start + step] for start in range(0, len(lines), step)]
    return [digest("\n".join(block), 8) for block in blocks]


def load(subject: str) -> dict[str, Any]:
    path = DATA / f"{subject}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def save(subject: str, texts: Texts, compact: bool) -> None:
    kept = {name: shorten(text, compact) for name, text in texts.items()}
    text = json.dumps(kept, indent=0, ensure_ascii=False, sort_keys=True)
    (DATA / f"{subject}.json").write_text(f"{text}\n", encoding="utf-8")


def compare(subject: str, texts: Texts, compact: bool, partial: bool = False) -> list[str]:
    """Return what differs from the golden, item by item; `partial` allows items that were not made."""
    golden = load(subject)
    names = sorted(texts if partial else {*golden, *texts})
    lines = []
    for name in names:
        lines += _compare(name, golden.get(name), texts.get(name), compact)
    if len(lines) > MAX_SHOWN:
        return [*lines[:MAX_SHOWN], f"and {len(lines) - MAX_SHOWN} more items"]
    return lines


def _compare(name: str, expected: Any, text: str | None, compact: bool) -> Iterator[str]:
    if text is None:
        yield f"{name}: is not made any longer"
    elif expected is None:
        yield f"{name}: is new"
    elif (actual := shorten(text, compact)) != expected:
        yield f"{name}:\n{_describe(expected, actual, split(text))}"


def _describe(expected: Any, actual: Any, lines: list[str]) -> str:
    if isinstance(expected, str):
        start = lines[0][:MAX_LINE] if lines else ""
        return f"  other digest; begins: {start!r}; use `dump` in both trees and `diff -r`"
    if isinstance(expected, dict) and isinstance(actual, dict):
        size = ceil(len(lines) / BLOCKS)
        start = find_difference(expected["blocks"], actual["blocks"]) * size
        shown = "\n".join(f"  + {line[:MAX_LINE]}" for line in lines[start : start + 3])
        old = expected["lines"]
        return f"  {old} → {len(lines)} lines; differs from line {start + 1} on, now:\n{shown}"
    old = expected if isinstance(expected, list) else expected["head"]
    new = actual if isinstance(actual, list) else actual["head"]
    at = find_difference(old, new)
    return f"  - {old[at : at + 1]}\n  + {new[at : at + 1]}"


def find_difference(old: list[str], new: list[str]) -> int:
    """Return the place of the first item that differs."""
    for place, (was, now) in enumerate(zip_longest(old, new)):
        if was != now:
            return place
    return 0


def dump(texts: Texts, folder: Path) -> None:
    """Write the masked texts, to compare those of two trees with `diff -r`."""
    for name, text in texts.items():
        path = folder / (re.sub(r"[^\w./-]+", "_", name)[:120].lstrip("/.") + f"-{digest(name, 6)}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(split(text)) + "\n", encoding="utf-8")
