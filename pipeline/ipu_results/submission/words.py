"""Find the words of a bundle that the record does not know, all at once, each with the nearest known one."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import duckdb

from ipu_results.comparison.measurement import KnownWords, load_known_words
from ipu_results.ground.sql import run_query
from ipu_results.ground.text import format_count
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name
from ipu_results.submission.bundle import Bundle
from ipu_results.submission.contents import RESULTS
from ipu_results.submission.fault import Fault

NAMED = ("model", "platform", "chip", "framework", "precision")
"""Columns whose words are kept as printed where they are declared as new."""


def load_submission_words(connection: duckdb.DuckDBPyConnection) -> KnownWords:
    """Load the known words of a comparison, and every chip and framework that the record names."""
    words = load_known_words(connection)
    sql = "SELECT DISTINCT chip, framework FROM record"
    rows = run_query(connection, sql).to_pylist()
    named = {
        name: {normalise_name(row[name]): str(row[name]) for row in rows if row[name]} for name in ("chip", "framework")
    }
    return replace(
        words,
        fields={
            **words.fields,
            "chip": {**named["chip"], **load_vocabulary().chips},
            "framework": {**named["framework"], **words.fields["framework"]},
        },
    )


def list_unknown_words(rows: tuple[Mapping[str, str], ...], words: KnownWords) -> Counter[tuple[str, str]]:
    """Count the rows of each unknown word by column."""
    texts = Counter((name, row[name].strip()) for row in rows for name in NAMED if row[name].strip())
    return Counter({key: count for key, count in texts.items() if words.find(*key) is None})


def _strip(text: str) -> str:
    """Return what tells a name from another one: letters, digits, points and plus signs."""
    return re.sub(r"[^\w.+]|_", "", unicodedata.normalize("NFKC", text)).casefold()


def check_words(bundle: Bundle, words: KnownWords) -> Iterator[Fault]:
    """Yield a fault for each unknown word that the bundle does not declare as new."""
    declared = set(bundle.submission.new_words)
    for (name, text), rows in sorted(list_unknown_words(bundle.rows, words).items()):
        if same := next((known for key, known in words.fields[name].items() if _strip(key) == _strip(text)), None):
            message = f"{name} {text!r} is {same} in another spelling; write {same}"
            yield Fault("unknown-word", message, RESULTS)
        elif text not in declared:
            message = f"{words.describe_unknown(name, text)}, in {format_count(rows, 'row')}"
            yield Fault("unknown-word", f"{message}; correct it, or declare it as new (--new-word)", RESULTS)
