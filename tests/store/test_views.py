"""The files of views hold what their SQL gives, and no two rows of a view look alike."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import ipu_results
import pyarrow.parquet as pq
import pytest
from ipu_results import api
from ipu_results.errors import QueryError, WarehouseError
from ipu_results.ground.sql import open_engine, run_query
from ipu_results.schema import FILE_VIEWS, VIEWS, Column, View, table
from ipu_results.schema.frames import build_frame, to_arrow
from ipu_results.store.files import DATABASE, get_csv_name, get_parquet_name
from ipu_results.store.query import (
    MixedBuildsError,
    evaluate_views,
    open_warehouse,
    read_parquet,
    read_view,
)
from ipu_results.store.tables import TableFile, put_telling_rows_first, read_csv
from pandas.testing import assert_frame_equal

from tests.conftest import Query
from tests.release.release_support import read_tables

IDS = ("result_id", "row_number")
SETTINGS = (  # numbers that say what was run or compared; every other number is a figure
    *(
        "bound_ms",
        "chip_count",
        "chips",
        "batch_size",
        "micro_batch_size",
        "accelerators",
        "sequence_length",
    ),
    *("activation_bits", "weight_bits", "sessions", "threads", "position"),
)


def separates_rows(column: Column) -> bool:
    """Return whether a column says what a row is about; a figure and an id do not."""
    if column.name.endswith(IDS) or column.figure:
        return False
    return column.kind not in ("integer", "double") or column.name.endswith(SETTINGS)


@pytest.mark.parametrize(
    "view", [view for view in VIEWS if view.name != "record"], ids=lambda view: view.name
)
def test_no_two_rows_are_equal_in_all_but_figures(view: View, query: Query) -> None:
    columns = ", ".join(column.name for column in view.columns if separates_rows(column))
    assert (
        query(f"SELECT count(*), {columns} FROM {view.source} GROUP BY ALL HAVING count(*) > 1")
        == []
    )


@pytest.mark.parametrize("view", FILE_VIEWS, ids=lambda view: view.name)
def test_files_hold_the_rows_in_the_order_of_the_view(
    view: View, warehouse: Path, database: duckdb.DuckDBPyConnection, query: Query
) -> None:
    rows = pq.read_table(warehouse / get_parquet_name(view.name))
    assert rows.num_rows > 0
    assert read_csv(warehouse / get_csv_name(view.name), rows.schema).equals(
        put_telling_rows_first(rows)
    )
    assert read_view(database, view).equals(rows)
    if view.order:
        keys = ", ".join(view.order)
        assert query(f"SELECT {keys} FROM {view.source} GROUP BY ALL HAVING count(*) > 1") == []


def test_flipped_bit_anywhere_in_a_parquet_file_is_refused(warehouse: Path, tmp_path: Path) -> None:
    data = (warehouse / "models.parquet").read_bytes()
    path = tmp_path / "models.parquet"
    for at in range(0, len(data), 13):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        with pytest.raises(WarehouseError, match=r"^models.parquet: cannot be read: "):
            read_parquet(path)


def test_view_without_files_gives_a_reason() -> None:
    assert [view.name for view in VIEWS if view not in FILE_VIEWS] == [
        "record",
        "submitted",
        "mlperf_pairs",
    ]
    assert all(view.no_files for view in VIEWS if view not in FILE_VIEWS)


def test_load_needs_no_duckdb_file_for_a_view(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "warehouse"
    folder.mkdir()
    for path in warehouse.glob("*.parquet"):
        shutil.copy(path, folder)
    for view in FILE_VIEWS:
        (folder / get_parquet_name(view.name)).unlink()
    shutil.copy(warehouse / DATABASE, folder)
    of_each_type = {frozenset(column.kind for column in view.columns): view for view in FILE_VIEWS}
    evaluated = {
        view.name: ipu_results.load(view.name, warehouse=folder) for view in of_each_type.values()
    }

    def refuse(_: Path) -> None:
        raise AssertionError("no file of the view was read")

    monkeypatch.setattr(api, "open_warehouse", refuse)
    for name, frame in evaluated.items():
        assert_frame_equal(ipu_results.load(name, warehouse=warehouse), frame)
    [row] = ipu_results.load(
        "inference", warehouse=warehouse, columns="throughput", latency_ms=1.53
    ).to_dict("records")
    assert list(row) == ["throughput"]
    with pytest.raises(QueryError):
        ipu_results.load("inference", warehouse=warehouse, colums="x")


def test_load_refuses_a_view_of_another_build(built: Path) -> None:
    path = built / get_parquet_name("latest")
    TableFile(pq.read_table(path)).write("0" * 64, path)
    with pytest.raises(MixedBuildsError, match=r"latest\.parquet are of two builds"):
        ipu_results.load("latest", warehouse=built)
    path.write_bytes(b"PAR1")
    with pytest.raises(WarehouseError, match="cannot be read"):
        ipu_results.load("latest", warehouse=built)


def test_views_of_empty_tables_are_empty_and_of_the_same_types(warehouse: Path) -> None:
    tables = {
        name: rows.slice(0, 0) for name, rows in read_tables(warehouse).items() if name != "build"
    }
    with open_engine(tables) as engine:
        for name, rows in evaluate_views(engine):
            assert (rows.num_rows, rows.schema.names) == (
                0,
                pq.read_schema(warehouse / get_parquet_name(name)).names,
            )


def test_view_that_cannot_be_evaluated_is_named(warehouse: Path) -> None:
    tables = read_tables(warehouse)
    tables["results"] = to_arrow(table("results"), build_frame(table("results"), [])).drop_columns(
        "throughput"
    )
    with (
        open_engine(tables) as engine,
        pytest.raises(WarehouseError, match=r"^measurements: cannot be evaluated: "),
    ):
        list(evaluate_views(engine))


@pytest.fixture(scope="module")
def without_database(
    warehouse: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Any]]:
    """Give a folder of Parquet files alone, and a connection to all of them."""
    folder = tmp_path_factory.mktemp("parquet")
    for path in warehouse.glob("*.parquet"):
        shutil.copy(path, folder)
    with open_warehouse(folder) as whole:
        yield folder, whole


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("SELECT count(*) FROM results", 3723),
        (
            (
                "WITH a AS (FROM detail.latency_bounded) SELECT count(*) FROM a JOIN measurements USING"
                " (result_id)"
            ),
            None,
        ),
        ("FROM per_dollar() SELECT count(*)", None),
        ("SELECT count(*) FROM results r NATURAL JOIN documents", None),
        ("SELECT count(*) FROM results, (SHOW TABLES)", None),
        ("SELECT count(*) FROM results, information_schema.tables", None),
        ("FROM sqlite_master, results SELECT count(*)", None),
        ("SELECT count(*) FROM results, duckdb_views() WHERE NOT internal", None),
        ("SHOW TABLES", None),
    ],
)
def test_statement_of_a_folder_without_a_database_reads_what_it_needs(
    statement: str, rows: int | None, without_database: tuple[Path, Any]
) -> None:
    folder, whole = without_database
    answer = run_query(whole, statement)
    with open_warehouse(folder, statement) as connection:
        assert run_query(connection, statement) == answer
    assert rows is None or answer.to_pydict() == {"count_star()": [rows]}


def test_build_of_a_file_that_no_statement_reads_is_compared(built: Path) -> None:
    (built / DATABASE).unlink()
    (built / "claims.parquet").write_bytes(b"")
    with (
        pytest.raises(WarehouseError, match=r"claims\.parquet"),
        open_warehouse(built, "FROM results"),
    ):
        pass


def test_join_using_opens_what_the_statement_reads(warehouse: Path, tmp_path: Path) -> None:
    for path in warehouse.glob("*.parquet"):
        shutil.copy(path, tmp_path)
    statement = "SELECT count(*) FROM flags JOIN provenance Using ( result_id )"
    with open_warehouse(tmp_path, statement) as connection:
        opened = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
    assert {"flags", "provenance", "cells", "build"} <= opened
    assert "claims" not in opened
