"""What the text and the PDF of a paper have in common: captions, setup lines, tables that are
joined.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from statistics import multimode

from ipu_results.record.read.document import Headers, ParsedDocument, ReadProblem
from ipu_results.record.read.text import spell_out
from ipu_results.schema.vocabulary import TableHeader, normalise_header

CAPTION = re.compile(r"table\s+(?:\d+|[ivxl]+)\s*(?:[.:|–—-]|$)", re.I)
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
METADATA = re.compile(rf"({'|'.join(METADATA_LABELS)})\s*:\s*(.*)", re.I)
SPELLING_OF_LABELS = {label.casefold(): label for label in METADATA_LABELS}
# Fields that label a row: a row without its label is readable, one without its figure is not.
LABEL_FIELDS = frozenset({"batch_size"})
NOT_WORDS = re.compile(r"[\W_]+")
HYPHENATED = re.compile(r"(?<=[^\W\d_])-$")
# A column name that a caption mentions has at least this many letters: "is" may be a word.
MIN_LETTERS = 3


def normalise_text(text: str) -> str:
    """Return text in the form in which header names are compared."""
    return normalise_header(spell_out(text))


def is_caption(text: str) -> bool:
    return CAPTION.match(text) is not None


def join_lines(lines: Iterable[str]) -> str:
    """Join set lines to one text; a word hyphenated at the end of a line becomes whole."""
    text = ""
    for line in lines:
        if HYPHENATED.search(text) and line[:1].islower():
            text = text[:-1] + line
        else:
            text = f"{text} {line}".strip()
    return text


def split_metadata(line: str) -> tuple[str, str] | None:
    """Split `Label: value` if the label is a known one, and spell it as in METADATA_LABELS."""
    match = METADATA.match(line)
    if match is None or not match[2]:
        return None
    return SPELLING_OF_LABELS[match[1].casefold()], match[2]


def known_names(headers: Headers) -> frozenset[str]:
    """Return all header names, normalised."""
    return frozenset().union(*(header.keys for header in headers))


def mentions_measure(caption: str, header: TableHeader, headers: Headers) -> bool:
    """Check whether a caption has a column name that only `header` has, and that is not short."""
    text = NOT_WORDS.sub(" ", f" {caption} ").casefold()
    others = [other for other in headers if other is not header]
    for name in header.keys - known_names(others):
        if f" {name} " in text and sum(map(str.isalpha, name)) >= MIN_LETTERS:
            return True
    return False


def refuse_incomplete_tables(document: ParsedDocument, headers: Headers) -> ParsedDocument:
    """Turn each table that has another number of rows than most of those that it is joined with
    into a problem.

    The tables whose rows are joined list one sweep, so such a table has lost or gained cells. If
    two numbers of rows are equally common, nobody knows which is right.
    """
    # unread rows count: they are in the document
    joined = {header.table for header in headers if header.joins}
    sizes = Counter(problem.table_name for problem in document.problems if problem.row_number)
    for table in document.tables:
        sizes[table.name] += len(table.numbers)
    usual = multimode(sizes[table.name] for table in document.tables if table.name in joined)
    kept = []
    problems = [*document.problems]
    for table in document.tables:
        size = sizes[table.name]
        has_usual_size = usual == [size]
        if table.name not in joined or has_usual_size:
            kept.append(table)
            continue
        message = f"has {size} rows, others {' or '.join(map(str, usual))}"
        problems.append(ReadProblem(table.name, None, table.locator, "cells-missing", message))
    return replace(document, tables=tuple(kept), problems=tuple(problems))
