"""What the two readers of the paper share: captions, figures, setup facts, and which header names make up a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ipu_results.read.reading import ParsedDocument, ReadProblem
from ipu_results.read.text import clean
from ipu_results.schema.layouts import TableHeader, find_headers, normalise_header

FACT_LABELS = (
    "Platform",
    "Chips",
    "SDK version",
    "Framework",
    "Model",
    "Precision",
    "Dataset",
    "Images",
    "Batch per chip",
)
LABEL_FIELDS = frozenset({"batch_size"})
LIGATURES = str.maketrans(
    {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb05": "st", "\ufb06": "st"}
)
CAPTION = re.compile(r"table\s+(?:\d+|[ivxl]+)\s*(?:[.:|–—-]|$)", re.IGNORECASE)
CAPTION_LABEL = re.compile(r"table\s+(?:\d+|[ivxl]+)\s*[.:]?$", re.IGNORECASE)
FIGURE = re.compile(r"[~≈<>≤≥±]?\s?(?:\d{1,3}(?:,\d{3})+|\d+)(?:[.,]\d+)?\s?%?[*†‡§¶]*")
FACT = re.compile(rf"({'|'.join(map(re.escape, FACT_LABELS))})\s*:\s*(.*)", re.IGNORECASE)
NOT_WORDS = re.compile(r"[\W_]+")
HYPHENATED = re.compile(r"(?<=[^\W\d_])-$")


def plain(raw: str) -> str:
    """Cleaned text with ligatures spelled out; superscripts and the like stay as they are."""
    return clean(raw.translate(LIGATURES))


def is_figure(text: str) -> bool:
    return FIGURE.fullmatch(text) is not None


def is_caption(text: str) -> bool:
    return CAPTION.match(text) is not None


def join_lines(lines: Iterable[str]) -> str:
    """One text out of set lines: a word that was hyphenated at the end of a line is made whole."""
    text = ""
    for line in lines:
        broken = HYPHENATED.search(text) and line[:1].islower()
        text = text[:-1] + line if broken else f"{text} {line}".strip()
    return text


def split_fact(line: str) -> tuple[str, str] | None:
    """`Label: value` with a known label, spelled as in FACT_LABELS."""
    found = FACT.match(line)
    if found is None or not found.group(2):
        return None
    label = next(label for label in FACT_LABELS if label.casefold() == found.group(1).casefold())
    return label, found.group(2)


def known_names(layouts: Iterable[TableHeader]) -> frozenset[str]:
    return frozenset().union(*(layout.keys for layout in layouts))


def label_names(layouts: Iterable[TableHeader]) -> frozenset[str]:
    """The names, folded, of the columns that hold the labels of the rows."""
    names = ((layout, name) for layout in layouts for name in layout.names)
    return frozenset(normalise_header(name) for layout, name in names if layout.field_of(name) in LABEL_FIELDS)


def telling_names(layout: TableHeader, layouts: Sequence[TableHeader]) -> frozenset[str]:
    """The names, folded, that no other of `layouts` has."""
    return layout.keys - known_names(other for other in layouts if other is not layout)


def layout_of(names: Sequence[str], layouts: Sequence[TableHeader]) -> TableHeader | None:
    return next(iter(find_headers(names, layouts)), None)


def label_columns(names: Sequence[str], layout: TableHeader) -> frozenset[int]:
    """The places of the columns whose cells may be lost without making the row unreadable."""
    return frozenset(place for place, name in enumerate(names) if layout.field_of(name) in LABEL_FIELDS)


def mentions(caption: str, layout: TableHeader, layouts: Sequence[TableHeader]) -> bool:
    """Whether a caption has a name in it by which `layout` is told from the others."""
    text = NOT_WORDS.sub(" ", f" {caption} ").casefold()
    return any(f" {name} " in text for name in telling_names(layout, layouts))


def closest_captions(distances: Iterable[tuple[bool, float, int, int]]) -> dict[int, int]:
    """The caption of each table, from (names another measure, distance, table, caption): each is given away once."""
    given: dict[int, int] = {}
    gone: set[int] = set()
    for _, _, table, caption in sorted(distances):
        if table not in given and caption not in gone:
            given[table] = caption
            gone.add(caption)
    return given


def folded(text: str) -> str:
    return normalise_header(plain(text))


def of_one_sweep(reading: ParsedDocument) -> ParsedDocument:
    """The paper's tables list one sweep, so one with another number of rows than the others has lost or gained cells.

    It becomes a problem; where no number is the most common, the largest is taken for right.
    """
    unread = Counter(problem.table_name for problem in reading.problems if problem.row_number is not None)
    sizes = {table.name: len(table.rows) + unread[table.name] for table in reading.tables}
    counts = Counter(sizes.values())
    usual = max(counts, key=lambda size: (counts[size], size), default=0)
    odd = [table for table in reading.tables if sizes[table.name] != usual]
    told = [
        ReadProblem(
            table.name, None, table.locator, "cells-missing", f"has {sizes[table.name]} rows, the others {usual}"
        )
        for table in odd
    ]
    kept = tuple(table for table in reading.tables if sizes[table.name] == usual)
    return replace(reading, tables=kept, problems=(*reading.problems, *told))
