"""An accepted bundle becomes results of its own, and changes nothing else: no view, analysis, claim
or flag.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from ipu_results import compare, provenance
from ipu_results.doors.site.data import build_results
from ipu_results.record.sources.catalogue import find_orphans, load_catalogue
from ipu_results.record.store.files import get_parquet_name
from ipu_results.record.store.query import open_warehouse
from ipu_results.schema import TABLES, VIEWS

from tests.conftest import copy_raw, query_rows, run_cli, run_ingest
from tests.doors.site.test_site import decode
from tests.doors.submission.submission_support import (
    ADA,
    get_place,
    latency,
    make_files,
    put_folder,
    throughput,
)

CPU = "Example CPU 9000"
OF_CPU = {"chip": "", "chip_count": "", "framework": "ONNX Runtime", "precision": "fp32"}
OF_A100 = {"chip": "A100-40GB", "chip_count": "1", "precision": "mixed", "batch_size": "256"}
ROWS = [
    throughput("17377.25"),  # better than what is published
    latency("1.0113"),
    throughput("2954.5", platform="1x A100-40GB", **OF_A100),
    throughput("31.25", model="TinyNet-9", platform=CPU, **OF_CPU),
]
FILES = make_files(ROWS, '{"cpu": "x"}', {"new_words": [CPU, "TinyNet-9"]})
SUBMITTED = "relationship = 'submitted'"
# The tables that hold the new rows, and the view that leads from each figure to its cell.
GROWN = set("results cells source_rows source_tables documents models platforms provenance".split())


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory, warehouse: Path) -> Path:
    """Return a copy of `raw` in which the command laid a bundle of four figures."""
    folder = tmp_path_factory.mktemp("submitted")
    raw = copy_raw(folder / "raw")
    bundle = put_folder(folder / "bundle", FILES)
    done = run_cli("check-submission", bundle, "--lay", "--raw", raw, "--warehouse", warehouse)
    assert (done.returncode, done.stderr) == (0, "")
    return raw


@pytest.fixture(scope="module")
def grown(raw: Path) -> Path:
    done = run_ingest(raw)
    assert (done.returncode, done.stderr) == (0, "")
    return raw.parent / "warehouse"


@pytest.mark.slow
def test_submitted_rows_are_results_of_their_own(grown: Path) -> None:
    columns = "origin, relationship, usable, publisher, model, platform, throughput, run_id"
    rows = query_rows(grown, f"SELECT {columns} FROM results WHERE {SUBMITTED} ORDER BY throughput")
    shared = ("measured", "submitted", False, ADA["name"])
    assert rows == [
        (*shared, "TinyNet-9", CPU, 31.25, None),
        (*shared, "ResNet-50 v1.5", "1x A100-40GB", 2954.5, None),
        (*shared, "ResNet-50 v1.5", "IPU-M2000", 17377.25, None),
    ]


@pytest.mark.slow
def test_no_other_view_table_or_file_changes(grown: Path, warehouse: Path) -> None:
    for table in TABLES:
        if table.name not in {"build", *GROWN}:
            file = get_parquet_name(table.sql_name)
            assert pq.read_table(grown / file).equals(pq.read_table(warehouse / file)), file
    for view in VIEWS:
        if view.name not in GROWN and not view.parameters:
            sql = f"FROM {view.sql_name} ORDER BY ALL"
            assert query_rows(grown, sql) == query_rows(warehouse, sql), view.name


@pytest.mark.slow
def test_tables_that_grow_keep_every_row(grown: Path, warehouse: Path) -> None:
    own = f"(SELECT result_id FROM results WHERE {SUBMITTED})"
    for name in ("results", "cells", "source_rows", "provenance"):
        kept = f"FROM {name} WHERE result_id IS NULL OR result_id NOT IN {own} ORDER BY ALL"
        assert query_rows(grown, kept) == query_rows(warehouse, f"FROM {name} ORDER BY ALL"), name
    for name in ("documents", "detail.source_tables", "models", "platforms"):
        rows = query_rows(grown, f"FROM {name}")
        assert set(query_rows(warehouse, f"FROM {name}")) <= set(rows), name


@pytest.mark.slow
def test_page_names_who_measured_a_submitted_row_and_changes_nothing_else(
    grown: Path, warehouse: Path
) -> None:
    parties = []
    sizes = []
    for folder in (warehouse, grown):
        with open_warehouse(folder) as connection:
            page = build_results(connection)
        parties.append(Counter(decode(page["results"], "relationship")))
        sizes.append({name: len(rows) for name, rows in page["sets"].items()})
    before, after = parties
    assert after - before == {"submitted": 3}
    assert sizes[0] == sizes[1]


@pytest.mark.slow
def test_verdict_of_a_comparison_rests_on_no_submitted_row(grown: Path) -> None:
    tiny = {"model": "TinyNet-9", "platform": CPU, "precision": "fp32", "batch_size": 16}
    [comparison] = compare(**tiny, throughput=31.25, warehouse=grown)
    assert comparison.status == "no-comparable-row"
    run = {"model": "ResNet-50 v1.5", "platform": "IPU-M2000", "precision": "16.16"}
    [comparison] = compare(**run, batch_size=16, throughput=17377.25, warehouse=grown)
    [match] = [match for match in comparison.matches if match.group == "submitted"]
    assert match.ratio.ratio == 1.0


@pytest.mark.slow
def test_submitted_figure_leads_to_its_line_and_its_place(grown: Path) -> None:
    [[result_id]] = query_rows(
        grown, f"SELECT result_id FROM results WHERE {SUBMITTED} AND platform = 'IPU-M2000'"
    )
    cells = provenance(result_id, warehouse=grown)
    texts = dict(zip(cells["column_name"], cells["raw_text"], strict=False))
    assert (texts["throughput"], texts["latency_ms"]) == ("17377.25", "1.0113")
    assert set(cells["document_kind"]) == {"submission"}


@pytest.mark.slow
def test_laid_bundle_is_complete_and_sealed(raw: Path) -> None:
    [document] = [found for found in load_catalogue(raw) if found.kind == "submission"]
    assert document.file == f"submissions/{get_place(FILES)}/results.csv"
    assert set(document.attachments) == {"submission.toml", "environment.json"}
    assert find_orphans(raw, load_catalogue(raw)) == []


def test_bundle_that_is_not_accepted_yet_adds_nothing_and_is_named(tmp_path: Path) -> None:
    raw = copy_raw(tmp_path / "raw")
    files = make_files()
    put_folder(raw / "submissions" / get_place(files), files)
    documents = load_catalogue(raw)
    assert "submission" not in {document.kind for document in documents}
    assert find_orphans(raw, documents) == [f"submissions/{get_place(files)}/results.csv"]
