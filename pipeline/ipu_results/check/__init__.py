"""Check: gates, conservation and quality rules; from normalised documents to the frames that are published."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ipu_results.check.canary import CHANGES, GOOD
from ipu_results.check.conservation import (
    SourceKey,
    Tally,
    assert_cells_kept,
    assert_conserved,
    assert_promised,
)
from ipu_results.check.gate import build_frame, build_frame_from_tuples, check_gate, find_failures
from ipu_results.check.rules import Dataset, find_flags, load_identities
from ipu_results.claims.evaluate import claim_frames
from ipu_results.errors import GateError
from ipu_results.link.configurations import configuration_frames, join_configurations
from ipu_results.link.mlperf import join_ids, official_frames
from ipu_results.link.runs import run_frames
from ipu_results.normalise import NormalisedDocument, RejectedRow, Result
from ipu_results.read import ParsedDocument
from ipu_results.schema import TABLES, VIEWS, dictionary_rows, table
from ipu_results.schema.vocabulary import Vocabulary
from ipu_results.sources.catalogue import Document

__all__ = ["Checked", "Source", "check"]


@dataclass(frozen=True, slots=True)
class Source:
    """One document on its way: what it is, what was read and what that gave; `recomputations` go with its claims."""

    document: Document
    reading: ParsedDocument
    normalised: NormalisedDocument
    recomputations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checked:
    """Frames by table name, ready to be written, and the tally of each document's source rows."""

    frames: dict[str, pd.DataFrame]
    tallies: dict[str, Tally]


def check(
    sources: Sequence[Source],
    documents: Sequence[Document],
    differences: Sequence[Mapping[str, Any]],
    vocabulary: Vocabulary,
) -> Checked:
    """Gate every row, prove that none was lost, and flag what looks wrong.

    Raises GateError where a gate cannot be trusted or the pipeline's own tables fail it, ConservationError where a
    source row was lost.
    """
    check_gate(table("results"), GOOD, CHANGES)
    for source in sources:
        assert_promised(source.document.document_id, source.document.tables, source.reading)
    normalised = [source.normalised for source in sources]
    join_ids(normalised)
    join_configurations(normalised, vocabulary.latency_bases)
    results = _gated_results(sources)
    frames = {
        "documents": build_frame(table("documents"), [document.record() for document in documents]),
        "results": results,
        **official_frames(normalised),
        **run_frames(normalised),
        **configuration_frames(normalised, vocabulary.latency_bases),
        **_source_frames(sources),
        **_vocabulary_frames(results, vocabulary),
        "capture_differences": build_frame(table("capture_differences"), differences),
        "columns": build_frame(table("columns"), _dictionary()),
    }
    frames["flags"] = find_flags(_dataset(frames, sources, vocabulary))
    texts = {source.document.document_id: source.recomputations for source in sources}
    frames |= claim_frames(normalised, texts, frames)
    for name, frame in frames.items():
        if name != "results" and (failed := find_failures(table(name), frame)):
            document = frame["document_id"][failed[0].row] if "document_id" in frame else None
            message = f"{name}, row {failed[0].row}: {failed[0].message} ({len(failed)} failures)"
            raise GateError(message, document=document)
    return Checked(frames, {source.document.document_id: _tally(source) for source in sources})


def _gated_results(sources: Sequence[Source]) -> pd.DataFrame:
    """The frame of `results`; a result that the gate refuses is moved to its document's rejected rows."""
    results = [(source, result) for source in sources for result in source.normalised.results]
    frame = build_frame(table("results"), [result.values for _, result in results])
    refused: dict[int, str] = {}
    for failure in find_failures(table("results"), frame):
        if failure.row not in refused:
            refused[failure.row] = failure.reason
            source, result = results[failure.row]
            source.normalised.rejected += _rejected(result, failure.reason, failure.message)
    dropped = {id(results[index][1]) for index in refused}
    for source in sources if dropped else ():
        source.normalised.results[:] = [result for result in source.normalised.results if id(result) not in dropped]
    kept = frame.drop(index=list(refused)).reset_index(drop=True)
    if refused and find_failures(table("results"), kept):
        raise GateError("rows that passed the gate of results fail it without the refused ones")
    return kept


def _rejected(result: Result, reason: str, message: str) -> Iterable[RejectedRow]:
    places = [*result.accepted, *result.repeated]
    return [
        RejectedRow(name, number, locator, reason, message, raw)
        for (name, number, locator), raw in zip(places, result.raws, strict=True)
    ]


def _source_frames(sources: Sequence[Source]) -> dict[str, pd.DataFrame]:
    cells, rows, quarantine = [], [], []
    for source in sources:
        document_id = source.document.document_id
        for result in source.normalised.results:
            cells += [
                (result.result_id, number, *cell[:-1], document_id, cell.locator)
                for number, cell in enumerate(result.cells, start=1)
            ]
            cells += [
                (result.result_id, number, *cell[:-1], where, cell.locator)
                for number, (where, cell) in enumerate(result.cited, start=len(result.cells) + 1)
            ]
        rows += [(document_id, *place, *fate) for place, fate in _fates(source.normalised)]
        quarantine += [_quarantined(document_id, rejected) for rejected in source.normalised.rejected]
    rows.sort(key=lambda row: row[:3])
    quarantine.sort(key=lambda row: row[:3])
    return {
        "cells": build_frame_from_tuples(table("cells"), cells),
        "source_rows": build_frame_from_tuples(table("source_rows"), rows),
        "quarantine": build_frame_from_tuples(table("quarantine"), quarantine),
    }


def _fates(normalised: NormalisedDocument) -> Iterable[tuple[tuple[str, int, str], tuple[str, str | None]]]:
    for result in normalised.results:
        yield from ((place, ("accepted", result.result_id)) for place in result.accepted)
        yield from ((place, ("duplicate", result.result_id)) for place in result.repeated)
    yield from (((row.table_name, row.row_number, row.locator), ("accepted", None)) for row in normalised.alone)
    for rejected in normalised.rejected:
        yield (rejected.table_name, rejected.row_number, rejected.locator), ("quarantined", None)


def _quarantined(document_id: str, row: RejectedRow) -> tuple[Any, ...]:
    raw = json.dumps(row.raw, ensure_ascii=False)
    return document_id, row.table_name, row.row_number, row.locator, row.reason, row.message, raw


def _tally(source: Source) -> Tally:
    document_id = source.document.document_id
    fates = [((table_name, number), fate) for (table_name, number, _), (fate, _) in _fates(source.normalised)]
    tally = assert_conserved(document_id, source.reading, fates)
    out: list[SourceKey] = [key for key, fate in fates if fate != "accepted"]
    out += [(row.table_name, row.row_number) for row in source.normalised.alone]
    metadata = {item.locator for item in source.reading.metadata}
    cited = sum(cell.locator not in metadata for result in source.normalised.results for cell in result.cells)
    assert_cells_kept(document_id, source.reading, cited, out)
    return tally


def _vocabulary_frames(results: pd.DataFrame, vocabulary: Vocabulary) -> dict[str, pd.DataFrame]:
    """The vocabulary, with a line of its own for each printed name that has no entry in it."""
    named = {"platforms": ("platform", vocabulary.platform_rows()), "models": ("model", vocabulary.model_rows())}
    frames = {}
    for name, (key, entries) in named.items():
        printed = sorted(set(results[key].dropna()) - {entry[key] for entry in entries})
        rows = [{column: entry.get(column) for column in table(name).names} for entry in entries]
        rows += [{key: word, "source": "printed name, not in the vocabulary"} for word in printed]
        frames[name] = build_frame(table(name), sorted(rows, key=lambda row: str(row[key])))
    return frames


def _dictionary() -> list[dict[str, str | None]]:
    rows = [row for described in TABLES for row in dictionary_rows(described)]
    return rows + [row for view in VIEWS for row in dictionary_rows(view)]


def _dataset(frames: Mapping[str, pd.DataFrame], sources: Sequence[Source], vocabulary: Vocabulary) -> Dataset:
    sections = {
        (source.document.document_id, name): str(promise["platform"])
        for source in sources
        for name, promise in source.document.tables.items()
        if "platform" in promise
    }
    printed = frozenset(
        (source.document.document_id, name)
        for source in sources
        for name in {read.name for read in source.reading.tables}
        if vocabulary.layout(source.document.reader, name).strict
    )
    return Dataset(
        results=frames["results"],
        cells=frames["cells"],
        platforms=frames["platforms"],
        models=frames["models"],
        official=frames["mlperf_entries"],
        configurations=frames["configurations"],
        sections=sections,
        printed_tables=printed,
        identities=load_identities(),
        work=vocabulary.work,
        peaks=vocabulary.peaks,
    )
