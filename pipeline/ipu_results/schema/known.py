"""The vocabulary as relations, as the statements of `schema` name them: `known_…`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import duckdb
import pyarrow as pa

from ipu_results.schema import table
from ipu_results.schema.frames import arrow_schema
from ipu_results.schema.vocabulary import Vocabulary

# relations of texts alone, with their columns
TEXTS = {
    "known_model": ("model_printed", "variant", "platform", "framework", "model", "source"),
    "known_phase": ("model_printed", "pattern", "phase"),
    "known_dataset": ("dataset_printed", "dataset", "packed"),
    "known_maker": ("chip", "maker"),
    "known_sparsity": ("pattern",),
    "known_precision": ("precision", "canonical"),
    "known_latency": ("definition", "basis", "scope"),
    "known_setting": ("setting",),
    "known_renamed": ("document_id", "condition", "column_name", "value"),
    "known_vendor": ("vendor", "start"),
}
PLATFORM = arrow_schema(table("platforms"))
SCHEMAS = {
    **{name: pa.schema([(column, pa.string()) for column in TEXTS[name]]) for name in TEXTS},
    "known_platform": PLATFORM.append(pa.field("part_of", pa.string())).append(
        pa.field("described_as", pa.list_(pa.string()))
    ),
    "known_network": arrow_schema(table("models")),
}


def register_known(connection: duckdb.DuckDBPyConnection, vocabulary: Vocabulary) -> None:
    """Make the lists of the vocabulary relations of a connection."""
    for name, rows in list_known(vocabulary).items():
        connection.register(name, rows)


def list_known(vocabulary: Vocabulary) -> dict[str, pa.Table]:
    """Return the lists of the vocabulary as tables, by the name of the relation."""
    rows: dict[str, list[Mapping[str, Any]]] = {
        f"known_{name}": list(entries) for name, entries in vocabulary.derived.items()
    }
    rows["known_model"] += [asdict(identity) for identity in vocabulary.identities]
    rows["known_precision"] = [
        {"precision": spelling, "canonical": name}
        for spelling, name in vocabulary.precision_names.items()
    ]
    rows["known_latency"] = [
        {"definition": text, "basis": basis, "scope": vocabulary.latency_scopes[text]}
        for text, basis in vocabulary.latency_bases.items()
    ]
    rows["known_setting"] = [{"setting": name} for name in vocabulary.precision_settings]
    rows["known_renamed"] = [
        {
            "document_id": entry["document_id"],
            "condition": json.dumps(entry["where"]),
            "column_name": entry["column"],
            "value": entry["is"],
        }
        for entry in vocabulary.renamed
    ]
    rows["known_vendor"] = [
        {"vendor": vendor, "start": start}
        for vendor, starts in vocabulary.vendors.items()
        for start in starts
    ]
    rows["known_platform"] = list(vocabulary.list_entries("platform"))
    rows["known_network"] = list(vocabulary.list_entries("model"))
    return {name: pa.Table.from_pylist(rows[name], schema) for name, schema in SCHEMAS.items()}
