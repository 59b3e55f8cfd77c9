"""What the two readers of a paper share: captions, figures, setup metadata, and the header names of its tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ipu_results.read.document import ParsedDocument, ReadProblem
from ipu_results.read.text import clean
from ipu_results.schema.table_headers import TableHeader, find_headers, normalise_header

METADATA_LABELS = (
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
"""Fields that label a row: a row without its label is readable, one without its figure is not."""
BLANK_FIELDS = frozenset({"variant", "dataset"})
"""Fields that performance pages leave blank where a model has none."""
LIGATURES = str.maketrans(
    {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb05": "st", "\ufb06": "st"}
)
CAPTION = re.compile(r"table\s+(?:\d+|[ivxl]+)\s*(?:[.:|–—-]|$)", re.IGNORECASE)
CAPTION_NUMBER = re.compile(r"table\s+(?:\d+|[ivxl]+)\s*[.:]?$", re.IGNORECASE)
TABLE_NUMBER = re.compile(r"table\s+((?:\d+|[ivxl]+)(?:[.\u2013-]\d+)*)\b", re.IGNORECASE)
CONTINUED = re.compile(r"\b(?:continue[sd]|cont(?:\.|['\u2019]?d\b))", re.IGNORECASE)
CONTINUATION_NOTE = re.compile(
    r"\W*(?:table\s+)?(?:continue[sd]|cont(?:\.|['\u2019]?d))"
    r"(?:\s+(?:on|from)\s+(?:the\s+)?(?:next|following|previous|preceding)\s+page)?\W*",
    re.IGNORECASE,
)
FIGURE = re.compile(r"[~≈<>≤≥±]?\s?(?:\d{1,3}(?:,\d{3})+|\d+)(?:[.,]\d+)?\s?%?[*†‡§¶]*")
METADATA = re.compile(rf"({'|'.join(map(re.escape, METADATA_LABELS))})\s*:\s*(.*)", re.IGNORECASE)
NOT_WORDS = re.compile(r"[\W_]+")
HYPHENATED = re.compile(r"(?<=[^\W\d_])-$")

MIN_LETTERS = 3
"""A column name that a caption mentions has at least this many letters."""

CaptionOffer = tuple[bool, float, int, int]
"""Whether the caption does not name the table's measure, distance, number of the table, number of the caption."""


def spell_out(raw: str) -> str:
    """Clean text and spell out its ligatures; superscripts and the like stay as they are."""
    return clean(raw.translate(LIGATURES))


def normalise_text(text: str) -> str:
    """Return text in the form in which header names are compared."""
    return normalise_header(spell_out(text))


def is_figure(text: str) -> bool:
    return FIGURE.fullmatch(text) is not None


def is_caption(text: str) -> bool:
    return CAPTION.match(text) is not None


def read_caption_number(text: str) -> str | None:
    """Return the number of the table that a text begins with: `5.3` of `Table 5.3: ...`."""
    match = TABLE_NUMBER.match(text)
    return match[1].casefold() if match else None


def mentions_continuation(text: str) -> bool:
    return CONTINUED.search(text) is not None


def is_continuation_note(text: str) -> bool:
    """Check whether a text says that a table continues, and nothing else."""
    return CONTINUATION_NOTE.fullmatch(text) is not None


def join_lines(lines: Iterable[str]) -> str:
    """Join set lines to one text; a word hyphenated at the end of a line becomes whole."""
    text = ""
    for line in lines:
        broken = HYPHENATED.search(text) and line[:1].islower()
        text = text[:-1] + line if broken else f"{text} {line}".strip()
    return text


def split_metadata(line: str) -> tuple[str, str] | None:
    """Split `Label: value` if the label is a known one, and spell it as in METADATA_LABELS."""
    match = METADATA.match(line)
    if match is None or not match[2]:
        return None
    label = next(label for label in METADATA_LABELS if label.casefold() == match[1].casefold())
    return label, match[2]


def known_names(headers: Iterable[TableHeader]) -> frozenset[str]:
    """Return all header names, normalised."""
    return frozenset().union(*(header.keys for header in headers))


def label_names(headers: Iterable[TableHeader]) -> frozenset[str]:
    """Return the normalised names of the columns that label the rows."""
    names = ((header, name) for header in headers for name in header.names)
    return frozenset(normalise_header(name) for header, name in names if header.field_of(name) in LABEL_FIELDS)


def label_columns(names: Sequence[str], header: TableHeader) -> frozenset[int]:
    """Return the columns, from 0, whose cells may be lost without making the row unreadable."""
    return frozenset(column for column, name in enumerate(names) if header.field_of(name) in LABEL_FIELDS)


def match_header(names: Sequence[str], headers: Sequence[TableHeader]) -> TableHeader | None:
    return next(iter(find_headers(names, headers)), None)


def mentions_measure(caption: str, header: TableHeader, headers: Sequence[TableHeader]) -> bool:
    """Check whether a caption has a column name that only `header` has, and that is not short: "is" may be a word."""
    text = NOT_WORDS.sub(" ", f" {caption} ").casefold()
    distinctive = header.keys - known_names(other for other in headers if other is not header)
    return any(f" {name} " in text for name in distinctive if sum(map(str.isalpha, name)) >= MIN_LETTERS)


def assign_captions(offers: Iterable[CaptionOffer]) -> dict[int, int]:
    """Return the caption of each table, the best offer first. No caption is assigned twice."""
    assigned: dict[int, int] = {}
    used: set[int] = set()
    for _, _, table, caption in sorted(offers):
        if table not in assigned and caption not in used:
            assigned[table] = caption
            used.add(caption)
    return assigned


def refuse_incomplete_tables(document: ParsedDocument, headers: Iterable[TableHeader]) -> ParsedDocument:
    """Turn each table that has another number of rows than the others that it is joined with into a problem.

    The tables whose rows are joined list one sweep, so such a table has lost or gained cells. If no number of rows is
    the most common one, the largest counts as right.
    """
    unread = Counter(problem.table_name for problem in document.problems if problem.row_number is not None)
    joined = {header.table for header in headers if header.joins}
    sizes = {table.name: len(table.rows) + unread[table.name] for table in document.tables if table.name in joined}
    counts = Counter(sizes.values())
    usual = max(counts, key=lambda size: (counts[size], size), default=0)
    problems = [
        ReadProblem(table.name, None, table.locator, "cells-missing", f"has {sizes[table.name]} rows, others {usual}")
        for table in document.tables
        if sizes.get(table.name, usual) != usual
    ]
    kept = tuple(table for table in document.tables if sizes.get(table.name, usual) == usual)
    return replace(document, tables=kept, problems=(*document.problems, *problems))
