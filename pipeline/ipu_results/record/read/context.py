"""Collect the words of a document that may change what its figures mean.

No list can name all wordings, such as "in thousands", "relative to an A100" or "retracted". So
every text that is no cell of a row that was read is context, and a person signs it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from ipu_results.kit.files import load_schema_file
from ipu_results.record.read.document import Headers, ParsedDocument, SourceTable, Words
from ipu_results.schema.vocabulary import KINDS, find_headers, strip_unit

VOCABULARY = load_schema_file("vocabulary/context.toml")
SIGNED_FIELDS = frozenset(VOCABULARY["fields"])
HARMLESS = frozenset(VOCABULARY["harmless"])
SEPARATOR = ";"  # between the statements of one cell
DIGEST_LENGTH = 16


def digest_context(context: Iterable[Words]) -> str | None:
    """Return the digest of all words in their order, None if there are none.

    How a reader divides the words into texts makes no difference.
    """
    words = " ".join(text for _, text in context).split()
    if not words:
        return None
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:DIGEST_LENGTH]


def list_context(document: ParsedDocument, kind: str, headers: Headers) -> tuple[Words, ...]:
    """Return what a person signs: the texts that the reader found around the tables, rows of one
    text, names of columns with a unit, and statements in columns of free text.
    """
    words = [*document.context, *_list_lone_texts(document)]
    for table in document.tables:
        for name in table.columns:
            if name != strip_unit(name):
                words.append(Words(f"{table.name}, header", name))
        words += _list_statements(table, kind, headers)
    return tuple(each for each in words if each.text.casefold().strip(" .:") not in HARMLESS)


def _list_lone_texts(document: ParsedDocument) -> Iterator[Words]:
    """Yield the text of each row that has no other: it is about the other rows."""
    rows = [(problem.locator, problem.raw) for problem in document.problems]
    for table in document.tables:
        never_blank = [column for column in table.texts if "" not in column.distinct]
        # Two columns without a blank give every row two texts: most tables are not searched.
        has_two_texts_a_row = len(never_blank) >= 2
        if not has_two_texts_a_row:
            rows += [(row.locator, row.cells) for row in table.rows]
    for place, cells in rows:
        texts = set(cells) - {""}
        if len(texts) == 1:
            yield Words(place, texts.pop())


def _list_statements(table: SourceTable, kind: str, headers: Headers) -> Iterator[Words]:
    """Yield each statement of the columns of free text once.

    Our own lists and runs, and tables that we computed, have texts of a fixed form.
    """
    matched = find_headers(table.columns, headers)
    if not matched or matched[0].derived or KINDS[kind].results is None:
        return
    for name, texts in zip(table.columns, table.texts, strict=True):
        if matched[0].field_of(name) not in SIGNED_FIELDS:
            continue
        statements: dict[str, None] = {}
        for text in texts.distinct:
            for statement in text.split(SEPARATOR):
                statements[statement.strip()] = None
        for statement in statements:
            if statement:
                yield Words(f"{table.name}, {name}", statement)
