"""Words that the vocabulary does not have, and the known word that is nearest to each."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ipu_results._util.text import format_count
from ipu_results.normalise.values import UnreadableCellError
from ipu_results.schema.vocabulary import Vocabulary, normalise_name

FILES = {
    "platform": "platforms",
    "model": "models",
    "framework": "frameworks",
    "precision": "precisions",
    "unit": "units",
    "metric": "units",
    "benchmark": "mlperf",
    "task": "table_headers",
    "header": "table_headers",
}
"""The file of `schema/vocabulary` that a word of each kind is added to."""
MIN_SIMILARITY = 0.5
MAX_LISTED = 12
MAX_COMPARED = 300
"""Words that are compared with the vocabulary: each takes about a millisecond."""


class UnknownWord(NamedTuple):
    """A word that the vocabulary does not have: its kind, such as `platform`, and the column that it is for."""

    kind: str
    column: str
    text: str


class UnknownWordError(UnreadableCellError):
    """A cell with an unknown word."""

    def __init__(self, word: UnknownWord, message: str) -> None:
        super().__init__(f"unknown-{word.kind}", message)
        self.word = word


def list_known_words(kind: str, column: str, vocabulary: Vocabulary) -> Mapping[str, str]:
    """Return the known words of a kind as they are printed, by normalised name."""
    if kind in ("platform", "model"):
        entries = vocabulary.platforms if kind == "platform" else vocabulary.models
        return {name: entry[kind] for name, entry in entries.items()}
    words: Mapping[str, Iterable[str]] = {
        "framework": vocabulary.frameworks.values(),
        "precision": vocabulary.precision_bits,
        "unit": vocabulary.units.get(column, ()),
        "metric": vocabulary.metrics,
        "benchmark": vocabulary.benchmarks,
        "task": vocabulary.tasks,
        "division": ("open", "closed"),
    }
    return {normalise_name(word): word for word in words.get(kind, ())}


def find_nearest(text: str, known: Mapping[str, str], cutoff: float = MIN_SIMILARITY) -> str | None:
    """Return the known word that is most similar to a text, None if none is similar."""
    matches = difflib.get_close_matches(normalise_name(text), known, 1, cutoff)
    return known[matches[0]] if matches else None


def describe_unknown_words(words: Iterable[UnknownWord], vocabulary: Vocabulary) -> list[str]:
    """Describe each distinct word in one line: its number of rows, the nearest known word and the file to add it to."""
    lines = []
    for number, (word, rows) in enumerate(sorted(Counter(words).items())):
        hint = f"; {_suggest(word, vocabulary)}" if number < MAX_COMPARED else ""
        place = f" (schema/vocabulary/{FILES[word.kind]}.toml)" if word.kind in FILES else ""
        lines.append(f"unknown {word.kind} {word.text!r} for {word.column} in {format_count(rows, 'row')}{hint}{place}")
    return lines


def _suggest(word: UnknownWord, vocabulary: Vocabulary) -> str:
    known = list_known_words(word.kind, word.column, vocabulary)
    nearest = find_nearest(word.text, known)
    if nearest is not None:
        return f"nearest known: {nearest!r}"
    names = sorted(set(known.values()))
    return f"known: {', '.join(names)}" if 0 < len(names) <= MAX_LISTED else "no known one is near"
