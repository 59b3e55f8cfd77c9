"""Link and gate return new results and change none of their input."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from conftest import PAGE, copy_documents, normalise_documents
from ipu_results.check.gate import check_tables, gate_results
from ipu_results.check.tables import build_source_frames
from ipu_results.errors import ConservationError, GateError
from ipu_results.link import link
from ipu_results.link.mlperf import link_mlperf_ids
from ipu_results.normalise import NormalisedDocument
from ipu_results.schema.vocabulary import load_vocabulary

MLPERF = ("mlperf/training-v1.0-entries.csv", "mlperf/training-v2.0-entries.csv", "mlperf/ids.csv")
CONFIGURATIONS = "graphcore/public-configurations.csv"


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> list[NormalisedDocument]:
    raw = copy_documents(tmp_path_factory.mktemp("link") / "raw", PAGE, CONFIGURATIONS, *MLPERF)
    return normalise_documents(raw)


def list_values(documents: Sequence[NormalisedDocument]) -> dict[str, dict[str, Any]]:
    return {result.result_id: dict(result.values) for document in documents for result in document.results}


def change_result(document: NormalisedDocument, number: int, **values: Any) -> NormalisedDocument:
    """Return a document with other values in one of its results."""
    results = list(document.results)
    results[number] = dataclasses.replace(results[number], values={**results[number].values, **values})
    return dataclasses.replace(document, results=results)


def test_link_changes_none_of_its_input(documents: list[NormalisedDocument]) -> None:
    before = copy.deepcopy(documents)
    linked = link(documents, load_vocabulary())
    assert documents == before
    assert [document.document for document in linked] == [document.document for document in documents]
    assert [document.rejected for document in linked] == [document.rejected for document in documents]
    assert linked != documents


def test_link_adds_ids_micro_batches_and_latency_bases_only(documents: list[NormalisedDocument]) -> None:
    before, after = list_values(documents), list_values(link(documents, load_vocabulary()))
    added: dict[str, int] = {}
    for result_id, values in after.items():
        for name in values:
            if values[name] != before[result_id].get(name):
                assert before[result_id].get(name) is None
                added[name] = added.get(name, 0) + 1
    assert before.keys() == after.keys()
    assert added == {"mlperf_id": 13, "micro_batch_size": 176, "latency_basis": 104}


def test_link_cites_what_it_adds(documents: list[NormalisedDocument]) -> None:
    linked = link(documents, load_vocabulary())
    cited = [
        (document_id, cell.column_name)
        for document in linked
        for result in document.results
        for document_id, cell in result.cited
    ]
    assert {document_id for document_id, _ in cited} == {"graphcore-public-configurations"}
    columns = [column for _, column in cited]
    assert (columns.count("micro_batch_size"), columns.count("latency_basis"), len(columns)) == (176, 104, 280)
    assert all(result.cited == () for document in documents for result in document.results)


def test_system_with_two_ids_is_refused(documents: list[NormalisedDocument]) -> None:
    [ids] = [document for document in documents if document.document.reader == "mlperf-ids"]
    others = [row._replace(values={**row.values, "mlperf_id": "2.0-9999"}) for row in ids.passthrough]
    with pytest.raises(ConservationError, match=r"has two ids, .* and 2\.0-9999"):
        link_mlperf_ids([ids, dataclasses.replace(ids, passthrough=others)])


def test_gate_accepts_valid_results_as_they_are(documents: list[NormalisedDocument]) -> None:
    linked = link(documents, load_vocabulary())
    frame, accepted = gate_results(linked)
    assert accepted == linked
    assert len(frame) == sum(len(document.results) for document in linked)
    check_tables(build_source_frames(accepted))


def test_gate_moves_refused_results_to_the_rejected_rows_of_copies(documents: list[NormalisedDocument]) -> None:
    [page] = [document for document in documents if document.document.reader == "graphcore-performance"]
    changed = change_result(change_result(page, 0, throughput=0.0), 3, task="baking")
    before = copy.deepcopy(changed)
    frame, [accepted] = gate_results([changed])
    assert changed == before
    assert [(row.table_name, row.row_number, row.reason, row.message) for row in accepted.rejected] == [
        ("ogb_lsc", 1, "throughput-out-of-range", "throughput is '0.0', which throughput-out-of-range refuses"),
        ("bow_training", 2, "task-not-a-choice", "task is 'baking', which task-not-a-choice refuses"),
    ]
    assert list(frame["result_id"]) == [result.result_id for result in accepted.results]
    assert len(accepted.results) == len(page.results) - 2
    assert accepted.rejected[0].raw["Model"] == "GPS++"


def test_two_results_with_one_id_are_both_refused(documents: list[NormalisedDocument]) -> None:
    [page] = [document for document in documents if document.document.reader == "graphcore-performance"]
    twice = dataclasses.replace(page, results=[*page.results, page.results[-1]])
    _, [accepted] = gate_results([twice])
    assert {row.reason for row in accepted.rejected} == {"repeated-key"}
    assert len(accepted.results) == len(page.results) - 1


def test_invalid_row_of_the_pipelines_own_tables_stops_the_build(documents: list[NormalisedDocument]) -> None:
    frames = build_source_frames(documents)
    cells = frames["cells"].assign(cell_number=1)
    with pytest.raises(GateError, match=r"cells, row 0: .* repeated-key refuses"):
        check_tables({**frames, "cells": cells})
