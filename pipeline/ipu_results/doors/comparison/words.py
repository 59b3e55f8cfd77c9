"""The words that a measurement may have: those of the vocabulary and of the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ipu_results.doors.comparison.statements import Row
from ipu_results.kit.sql import Connection, run_query
from ipu_results.kit.text import find_nearest_words
from ipu_results.schema import table
from ipu_results.schema.vocabulary import POWER_SCOPES, load_vocabulary, normalise_name

MAX_LISTED = 12
CHOICES = (
    "task",
    "phase",
    "latency_kind",
    "latency_basis",
    "latency_scope",
    "power_scope",
    "benchmark",
    "division",
    "origin",
)
"""Columns whose words are those that `schema/tables/results.toml` lists."""
# The rounds of MLPerf Training that the record has, and those that its lists of comparable rounds
# name.
ROUNDS = """
    SELECT round AS mlperf_round
    FROM mlperf_entries
    UNION
    SELECT unnest(string_split(comparable_rounds, '-'))
    FROM mlperf_entries
    ORDER BY mlperf_round
"""


@dataclass(frozen=True)
class KnownWords:
    """Known words by field: `fields` maps a normalised word to its canonical form, and `datasets`
    the words of datasets, which may also be others.

    `models` are the models that a printed name stands for. `items` is what one item of a model is.
    `machines` holds the facts of each platform.
    """

    fields: Mapping[str, Mapping[str, str]]
    models: Mapping[str, tuple[str, ...]]
    items: Mapping[str, str]
    datasets: Mapping[str, str]
    machines: Mapping[str, Row]

    def find(self, field: str, word: str) -> str | None:
        """Return the canonical form of a word, None if it is unknown; what a row of the record has
        is not changed.
        """
        known = self.fields[field]
        return known.get(word) or known.get(normalise_name(word))

    def describe_unknown(self, field: str, word: str) -> str:
        """Describe an unknown word and the known ones that are nearest to it."""
        near = find_nearest_words(word, self.fields[field])  # also by other spellings
        if near:
            return f"{field} {word!r} is unknown; the nearest: {', '.join(near)}"
        names = sorted(set(self.fields[field].values()))
        more = ", …" if len(names) > MAX_LISTED else ""
        listed = f"known are {', '.join(names[:MAX_LISTED])}{more}"
        return f"{field} {word!r} is unknown and near to no known one; {listed}"


def load_known_words(connection: Connection) -> KnownWords:
    """Load the known words of an open warehouse."""
    vocabulary = load_vocabulary()
    machines = run_query(connection, "FROM platforms ORDER BY platform").to_pylist()
    columns = "model_printed, model, precision, item, framework, platform"
    rows = run_query(connection, f"SELECT DISTINCT {columns} FROM results ORDER BY ALL").to_pylist()
    models: dict[str, set[str]] = {}
    items = {}  # of printed names
    for entry in vocabulary.list_entries("model"):
        if entry.get("item"):
            items[entry["model"]] = entry["item"]
    items_of_models = {}  # that they stand for
    for row in rows:
        models.setdefault(row["model_printed"], set()).add(row["model"])
        models.setdefault(row["model"], set()).add(row["model"])
        if row["model_printed"] in items:
            items_of_models[row["model"]] = items[row["model_printed"]]
    printed = {}
    for name in ("precision", "framework", "platform", "item"):
        printed[name] = sorted({row[name] for row in rows if row[name]})

    results = table("results")
    fields = {name: _spell(results.column(name).choices or ()) for name in CHOICES}
    fields["power_scope"] |= POWER_SCOPES  # how sources write them
    fields["mlperf_round"] = {}
    for row in run_query(connection, ROUNDS).to_pylist():
        mlperf_round = row["mlperf_round"]  # MLCommons writes v2.0 as well as 2.0
        fields["mlperf_round"] |= {mlperf_round: mlperf_round, f"v{mlperf_round}": mlperf_round}
    platforms = [machine["platform"] for machine in machines]
    precisions = [*vocabulary.precision_bits, *printed["precision"]]
    fields |= {
        "model": _spell(models, vocabulary.model_names, models),
        "platform": _spell(platforms, vocabulary.platform_names, printed["platform"]),
        "framework": _spell(printed["framework"], vocabulary.frameworks, printed["framework"]),
        "precision": _spell(precisions, vocabulary.precision_names, printed["precision"]),
        "item": _spell([*items.values(), *printed["item"]]),
    }
    datasets = {}
    for entry in vocabulary.derived["dataset"]:
        datasets[normalise_name(entry["dataset_printed"])] = entry["dataset"]
    return KnownWords(
        fields=fields,
        models={name: tuple(sorted(meant)) for name, meant in models.items()},
        items=items_of_models | items,
        datasets=datasets,
        machines={machine["platform"]: machine for machine in machines},
    )


def _spell(
    words: Iterable[str],
    others: Mapping[str, str] = MappingProxyType({}),
    printed: Iterable[str] = (),
) -> dict[str, str]:
    """Return words by their normalised spelling, then other spellings, and words of the record as
    they are printed.
    """
    spelled = {normalise_name(word): word for word in words}
    spelled.update(others)
    for word in printed:
        spelled[word] = word
    return spelled
