"""Build the published tables that follow from the accepted and the rejected rows, and from the vocabulary."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pandas as pd

from ipu_results.check.conservation import list_fates
from ipu_results.normalise import NormalisedDocument
from ipu_results.schema import TABLES, VIEWS, dictionary_rows, table
from ipu_results.schema.frames import build_frame, build_frame_from_tuples
from ipu_results.schema.vocabulary import Vocabulary
from ipu_results.sources.catalogue import Document

NOT_IN_VOCABULARY = "printed name, not in the vocabulary"


def build_source_frames(documents: Sequence[NormalisedDocument]) -> dict[str, pd.DataFrame]:
    """Build `cells`, `source_rows` and `quarantine`."""
    cells, rows, quarantine = [], [], []
    for document in documents:
        document_id = document.document.document_id
        for result in document.results:
            located = [(document_id, cell) for cell in result.cells] + list(result.cited)
            cells += [
                (result.result_id, number, *cell[:-1], where, cell.locator)
                for number, (where, cell) in enumerate(located, start=1)
            ]
        rows += [(document_id, *place, status, result_id) for place, status, result_id in list_fates(document)]
        for row in document.rejected:
            raw = json.dumps(row.raw, ensure_ascii=False)
            place = (document_id, row.table_name, row.row_number, row.locator)
            quarantine.append((*place, row.reason, row.message, raw))
    rows.sort(key=lambda row: row[:3])
    quarantine.sort(key=lambda row: row[:3])
    return {
        "cells": build_frame_from_tuples(table("cells"), cells),
        "source_rows": build_frame_from_tuples(table("source_rows"), rows),
        "quarantine": build_frame_from_tuples(table("quarantine"), quarantine),
    }


def build_vocabulary_frames(results: pd.DataFrame, vocabulary: Vocabulary) -> dict[str, pd.DataFrame]:
    """Build `platforms` and `models`: the vocabulary, and each printed name that has no entry in it."""
    frames = {}
    for name, key in (("platforms", "platform"), ("models", "model")):
        entries = vocabulary.list_entries(key)
        unknown = sorted(set(results[key].dropna()) - {entry[key] for entry in entries})
        rows = [{column: entry.get(column) for column in table(name).names} for entry in entries]
        rows += [{key: word, "source": NOT_IN_VOCABULARY} for word in unknown]
        frames[name] = build_frame(table(name), sorted(rows, key=lambda row: str(row[key])))
    return frames


def build_document_frame(documents: Sequence[Document]) -> pd.DataFrame:
    """Build `documents`."""
    return build_frame(table("documents"), [document.record() for document in documents])


def build_dictionary_frame() -> pd.DataFrame:
    """Build `columns`, the data dictionary of tables and views."""
    rows: list[Mapping[str, str | None]] = []
    for table_ in TABLES:
        rows += dictionary_rows(table_)
    for view in VIEWS:
        rows += dictionary_rows(view)
    return build_frame(table("columns"), rows)
