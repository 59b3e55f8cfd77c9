"""Gates return new results and change none of their input; conservation notices every lost row and
cell.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from ipu_results import build
from ipu_results.errors import ConservationError, GateError
from ipu_results.kit.sql import STAGED, open_database
from ipu_results.record.check import gate
from ipu_results.record.check.conservation import (
    RowCounts,
    check_conservation,
    join_cells,
)
from ipu_results.record.check.gate import (
    CHANGES,
    GOOD,
    check_gate,
    check_tables,
    gate_results,
)
from ipu_results.record.normalise import NormalisedDocument
from ipu_results.record.normalise.join import set_column
from ipu_results.record.normalise.rows import reject_row
from ipu_results.record.store.tables import open_memory_store
from ipu_results.schema import DETAIL, table
from ipu_results.schema.vocabulary import load_vocabulary

from tests.conftest import (
    PAGE,
    copy_documents,
    load_documents,
)

ENTRIES = "mlperf/training-v2.0-entries.csv"
CONFIGURATIONS = "graphcore/public-configurations.csv"
Documents = Sequence[NormalisedDocument]


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Documents:
    raw = copy_documents(tmp_path_factory.mktemp("gate") / "raw", PAGE, CONFIGURATIONS, ENTRIES)
    return load_documents(raw)


@pytest.fixture
def page(documents: Documents) -> NormalisedDocument:
    [document] = [
        document for document in documents if document.document.reader == "performance-page"
    ]
    return document


def change_result(document: NormalisedDocument, number: int, **values: Any) -> NormalisedDocument:
    """Return a document with other values in one of its results."""
    results = document.results
    for name, value in values.items():
        column = results[name].to_pylist()
        column[number] = value
        results = set_column(results, name, pa.array(column, results.schema.field(name).type))
    return dataclasses.replace(document, results=results)


def test_gate_is_trusted_only_if_it_refuses_every_invalid_row() -> None:
    results = table("results").as_filled()
    check_gate(results, GOOD, CHANGES)
    with pytest.raises(GateError, match="missed: missing-chip"):
        check_gate(results, GOOD, {**CHANGES, "missing-chip": {"chip": None}})
    with pytest.raises(GateError, match="does not refuse invalid rows"):
        check_gate(results, GOOD | {"chip_count": 0}, CHANGES)


def test_gate_moves_refused_results_to_the_rejected_rows_of_copies(
    page: NormalisedDocument,
) -> None:
    changed = change_result(change_result(page, 0, throughput=0.0), 3, task="baking")
    before = copy.deepcopy(changed)
    frame, [accepted] = gate_results([changed])
    assert changed == before
    first, second = accepted.rejected
    assert (first.table_name, first.row_number) == ("ogb_lsc", 1)
    assert first.reason == "throughput-out-of-range"
    assert first.message == "throughput is '0.0', which is out of range"
    assert (second.table_name, second.row_number) == ("bow_training", 2)
    assert second.reason == "task-not-a-choice"
    assert second.message == "task is 'baking', which is not one of training, inference"
    assert list(frame["result_id"]) == accepted.results["result_id"].to_pylist()
    assert len(accepted.results) == len(page.results) - 2
    assert accepted.rejected[0].raw["Model"] == "GPS++"


def test_two_results_with_one_id_are_both_refused(page: NormalisedDocument) -> None:
    count = len(page.results)
    repeated = pa.concat_tables([page.results, page.results.slice(count - 1)])
    _, [accepted] = gate_results([dataclasses.replace(page, results=repeated)])
    assert {row.reason for row in accepted.rejected} == {"repeated-key"}
    assert len(accepted.results) == count - 1


def test_invalid_row_of_the_pipelines_own_tables_stops_the_build(
    documents: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = join_cells([document.cells for document in documents])
    numbers = [1] * cells.num_rows
    repeated = set_column(cells, "cell_number", pa.array(numbers, pa.int64()))
    with pytest.raises(GateError, match=r"cells, row 0: .* are also those of another row"):
        check_tables({"cells": repeated})
    names = cells["column_name"].to_pylist()
    names[25] = None
    at = cells.schema.get_field_index("column_name")
    nameless = cells.set_column(at, "column_name", pa.array(names, pa.string()))
    monkeypatch.setattr(gate, "PIECE_ROWS", 10)
    with pytest.raises(GateError, match=r"cells, row 25: column_name is blank or missing"):
        check_tables({"cells": nameless})


def test_batches_give_the_rows_of_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last batch is of a document that has no results, and so no cells."""
    loaded = load_documents(copy_documents(tmp_path, PAGE))
    without = [NormalisedDocument(own.document) for own in loaded]
    monkeypatch.setattr(build, "check_expected_tables", lambda *_: None)
    whole = gate_tables([*loaded, *without])
    monkeypatch.setattr(build, "BATCH_RESULTS", 1)
    divided = gate_tables([*loaded, *without])
    assert len(whole["cells"]) > 0
    assert divided == whole


def gate_tables(documents: Documents) -> dict[str, pa.Table]:
    """Return the rows that documents have after the gates, by table."""
    with open_memory_store() as store, open_database(store.engine, STAGED, DETAIL) as staged:
        build.gate_documents(documents, load_vocabulary(), staged, store)
        names = [table(name).sql_name for name in (*build.STAGED_ROWS, *build.AT_ONCE)]
        return {name: staged.table(name).to_arrow_table() for name in names}


def check_rows(document: NormalisedDocument, **changes: Any) -> RowCounts:
    return check_conservation(dataclasses.replace(document, **changes))


def test_conservation_counts_rows_and_notices_lost_or_added_ones(tmp_path: Path) -> None:
    [page] = load_documents(copy_documents(tmp_path, PAGE))
    rows = page.source_rows
    assert check_rows(page) == RowCounts(extracted=248, accepted=248, quarantined=0, duplicates=0)
    lost = r"source rows lost \[\('ogb_lsc', 1\)\], without source \[\]"
    with pytest.raises(ConservationError, match=lost):
        check_rows(page, source_rows=rows.slice(1))
    added = r"source rows lost \[\], without source \[\('ogb_lsc', 1\)\]"
    twice = pa.concat_tables([rows, rows.slice(0, 1)])
    with pytest.raises(ConservationError, match=added):
        check_rows(page, source_rows=twice)
    refused = [reject_row(page.parsed.tables[0], 0, "reason", "message")]
    first = rows["locator"][0].as_py()
    is_first = pc.starts_with(page.cells["locator"], f"{first},")
    cells = page.cells.filter(pc.invert(is_first))
    counts = check_rows(page, source_rows=rows.slice(1), cells=cells, rejected=refused)
    assert counts == RowCounts(248, 247, 1, 0)


def test_conservation_notices_a_lost_cell(tmp_path: Path) -> None:
    [page] = load_documents(copy_documents(tmp_path, PAGE))
    count = len(page.cells)
    lost = f"{count} cells in accepted rows, {count - 1} of them cited"
    with pytest.raises(ConservationError, match=lost):
        check_rows(page, cells=page.cells.slice(1))
    first = page.cells.slice(0, 1)
    moved = pa.concat_tables([first, page.cells.slice(0, count - 1)])
    with pytest.raises(ConservationError, match="cells in accepted rows"):
        check_rows(page, cells=moved)
