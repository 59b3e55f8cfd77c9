"""The words that a comparison knows: those of the vocabulary and of the dataset, each with its nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import duckdb

from ipu_results._util.sql import run_query
from ipu_results.normalise.fields import POWER_SCOPES
from ipu_results.schema import table
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

SUGGESTED = 3
CUTOFF = 0.5  # similarity from which a known word counts as near
MAX_LISTED = 12


@dataclass(frozen=True)
class KnownWords:
    """Known words by field: `fields` maps a normalised word to its canonical form.

    `networks` are the networks of a canonical model. `items` is what one item of a network or model is. `machines`
    holds the facts of each platform.
    """

    fields: Mapping[str, Mapping[str, str]]
    networks: Mapping[str, tuple[str, ...]]
    items: Mapping[str, str]
    machines: Mapping[str, Mapping[str, Any]]

    def find(self, field: str, word: str) -> str | None:
        """Return the canonical form of a word, None if it is unknown; what a row of the record has is not changed."""
        known = self.fields[field]
        return known.get(word) or known.get(normalise_name(word))

    def describe_unknown(self, field: str, word: str) -> str:
        """Describe an unknown word and the known ones that are nearest to it."""
        known = self.fields[field]
        near = get_close_matches(normalise_name(word), list(known), n=SUGGESTED, cutoff=CUTOFF)
        if near:
            return f"{field} {word!r} is unknown; the nearest: {', '.join(dict.fromkeys(known[key] for key in near))}"
        names = sorted(set(known.values()))
        more = ", …" if len(names) > MAX_LISTED else ""
        return f"{field} {word!r} is unknown and near to no known one; known are {', '.join(names[:MAX_LISTED])}{more}"


def load_known_words(connection: duckdb.DuckDBPyConnection) -> KnownWords:
    """Load the known words of an open warehouse."""
    vocabulary = load_vocabulary()
    rows = run_query(
        connection,
        "SELECT DISTINCT model, network, effective_precision AS precision, item, framework, platform FROM results "
        "ORDER BY ALL",
    ).to_pylist()
    machines = run_query(connection, "FROM platforms ORDER BY platform").to_pylist()
    models = {key: str(entry["model"]) for key, entry in vocabulary.models.items()}
    networks: dict[str, set[str]] = {}
    for row in rows:
        networks.setdefault(row["model"], set()).add(row["network"])
        networks.setdefault(row["network"], set()).add(row["network"])
    precisions = _list_words(rows, "precision")
    results = table("results")
    choices = {
        name: _by_name(results.column(name).choices or ())
        for name in ("task", "phase", "latency_kind", "latency_basis", "power_scope", "benchmark", "division", "origin")
    }
    choices["power_scope"] |= POWER_SCOPES
    platforms = {key: str(entry["platform"]) for key, entry in vocabulary.platforms.items()}
    items = {entry["model"]: entry["item"] for entry in vocabulary.list_entries("model") if entry.get("item")}
    return KnownWords(
        fields={
            "model": _by_name(networks) | models | _as_printed(networks),
            "platform": _by_name(machine["platform"] for machine in machines)
            | platforms
            | _as_printed(_list_words(rows, "platform")),
            "framework": _by_name(_list_words(rows, "framework"))
            | dict(vocabulary.frameworks)
            | _as_printed(_list_words(rows, "framework")),
            "precision": _by_name([*vocabulary.precision_bits, *precisions])
            | dict(vocabulary.precision_names)
            | _as_printed(precisions),
            "item": _by_name([*items.values(), *_list_words(rows, "item")]),
            **choices,
        },
        networks={model: tuple(sorted(names)) for model, names in networks.items()},
        items={row["network"]: items[row["model"]] for row in rows if row["model"] in items} | items,
        machines={machine["platform"]: machine for machine in machines},
    )


def _list_words(rows: Iterable[Mapping[str, Any]], column: str) -> list[str]:
    return sorted({row[column] for row in rows if row[column]})


def _as_printed(words: Iterable[str]) -> dict[str, str]:
    return {word: word for word in words}


def _by_name(words: Iterable[str]) -> dict[str, str]:
    return {normalise_name(word): word for word in words}
