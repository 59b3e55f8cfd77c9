"""The words that a comparison knows: those of the vocabulary and of the dataset, each with its nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import duckdb

from ipu_results._util.sql import run_query
from ipu_results.runner.reference_rows import BITS
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
        """Return the canonical form of a word, None if it is unknown."""
        return self.fields[field].get(normalise_name(word))

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
        connection, "SELECT DISTINCT model, network, effective_precision AS precision, item FROM results"
    ).to_pylist()
    machines = run_query(connection, "FROM platforms ORDER BY platform").to_pylist()
    models = {key: str(entry["model"]) for key, entry in vocabulary.models.items()}
    networks: dict[str, set[str]] = {}
    for row in rows:
        networks.setdefault(row["model"], set()).add(row["network"])
        networks.setdefault(row["network"], set()).add(row["network"])
    precisions = [*vocabulary.precision_bits, *BITS.values(), *(row["precision"] for row in rows if row["precision"])]
    results = table("results")
    choices = {
        name: _by_name(results.column(name).choices or ())
        for name in ("task", "phase", "latency_kind", "latency_basis", "power_scope", "benchmark", "division", "origin")
    }
    platforms = {key: str(entry["platform"]) for key, entry in vocabulary.platforms.items()}
    items = {entry["model"]: entry["item"] for entry in vocabulary.list_entries("model") if entry.get("item")}
    return KnownWords(
        fields={
            "model": _by_name(networks) | models,
            "platform": _by_name(machine["platform"] for machine in machines) | platforms,
            "framework": dict(vocabulary.frameworks),
            "precision": _by_name(precisions)
            | {normalise_name(spelling): name for spelling, name in vocabulary.precision_names.items()},
            "item": _by_name({*items.values(), *(row["item"] for row in rows if row["item"])}),
            **choices,
        },
        networks={model: tuple(sorted(names)) for model, names in networks.items()},
        items={row["network"]: items[row["model"]] for row in rows if row["model"] in items} | items,
        machines={machine["platform"]: machine for machine in machines},
    )


def _by_name(words: Iterable[str]) -> dict[str, str]:
    return {normalise_name(word): word for word in words}
