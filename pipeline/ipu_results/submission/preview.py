"""Read a bundle as `ingest` would, alone and in a folder of its own: the rows that it would publish."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from ipu_results.build import IngestConfig, check_documents, load_document
from ipu_results.check.rules import build_dataset, find_flags
from ipu_results.normalise.values import describe_unknown_words
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.sources.catalogue import load_catalogue
from ipu_results.submission.bundle import Bundle, lay_bundle
from ipu_results.submission.contents import RESULTS
from ipu_results.submission.fault import Fault, Reason
from ipu_results.submission.template import IDENTITY

UNREADABLE: dict[str, Reason] = {"conflicting-rows": "contradiction", "item-contradicts-model": "contradiction"}
FIGURES_OF_ONE = ("model", "variant", "dataset", "task", "platform", "chip", "chip_count", "framework", "sdk_version")
KEY = (*FIGURES_OF_ONE, "effective_precision", "batch_size", "micro_batch_size", "conditions")


@dataclass(frozen=True, slots=True)
class Preview:
    """The rows that a bundle would publish, and the flags of the quality rules on them."""

    rows: list[dict[str, Any]]
    flags: list[dict[str, Any]]


def preview_bundle(bundle: Bundle, figures: tuple[str, ...]) -> tuple[Preview, list[Fault]]:
    """Return what the bundle would publish, and its rejected rows. Raises IpuResultsError as `ingest` would."""
    vocabulary = load_vocabulary()
    with TemporaryDirectory() as folder:
        raw = Path(folder)
        lay_bundle(bundle, raw)
        documents = load_catalogue(raw)
        loaded = {own.document_id: load_document(own, vocabulary, IngestConfig(raw)) for own in documents}
    [own] = loaded.values()
    checked = check_documents(documents, lambda document: loaded[document.document_id], vocabulary)
    results = checked.frames["results"]
    printed = frozenset[tuple[str, str]]()
    as_published = {**checked.frames, "results": results.assign(origin="published")}  # the rules look at those alone
    flags = find_flags(build_dataset(as_published, documents, printed, vocabulary))
    faults = [
        Fault(
            UNREADABLE.get(row.reason, "unknown-word" if row.words else "unreadable-figure"),
            _describe_rejected(row.message, describe_unknown_words(row.words, vocabulary)),
            f"{RESULTS}, {row.locator}",
        )
        for row in own.normalised.rejected
    ]
    refused = {row.locator for row in own.normalised.rejected}
    faults += [
        Fault("schema", row["message"], f"{RESULTS}, {row['locator']}")
        for row in checked.frames["quarantine"].to_dict("records")
        if row["locator"] not in refused
    ]
    rows = [{name: None if pd.isna(value) else value for name, value in row.items()} for row in _to_records(results)]
    faults += _find_repeated(bundle)
    faults += _find_contradictions(rows, figures)
    return Preview(rows, _to_records(flags)), faults


def _describe_rejected(message: str, words: list[str]) -> str:
    """Join the reason and the unknown words, which often say the same."""
    return "; ".join(words if any(text.startswith(message) for text in words) else [message, *words])


def _to_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = frame.to_dict("records")
    return records


def _find_repeated(bundle: Bundle) -> Iterator[Fault]:
    """Yield the figures that the bundle states twice with the same value."""
    seen: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(bundle.rows, 2):
        key = tuple(row[name] for name in (*IDENTITY, "metric", "unit", "value"))
        if key in seen:
            yield Fault("duplicate", f"is the figure of line {seen[key]} again", f"{RESULTS}, line {number}")
        seen.setdefault(key, number)


def _find_contradictions(rows: list[dict[str, Any]], figures: tuple[str, ...]) -> Iterator[Fault]:
    """Yield the results that are of one configuration in another spelling."""
    seen: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        first = seen.setdefault(tuple(row[name] for name in KEY), row)
        shared = [name for name in figures if first is not row and None not in (row[name], first[name])]
        if differing := [name for name in shared if row[name] != first[name]]:
            texts = "; ".join(f"{name} {first[name]:.12g} and {row[name]:.12g}" for name in differing)
            message = f"and row {first['row_number']} are of one configuration: {texts}"
            yield Fault("contradiction", message, f"{RESULTS}, row {row['row_number']}")
        elif shared:
            yield Fault("duplicate", f"is row {first['row_number']} again", f"{RESULTS}, row {row['row_number']}")
