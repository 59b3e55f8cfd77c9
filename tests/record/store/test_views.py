"""Views are evaluated from the tables, with the DuckDB file or without, and no two rows look alike."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import ipu_results
import pytest
from ipu_results.errors import QueryError, WarehouseError
from ipu_results.kit.sql import run_query
from ipu_results.record.store.files import DATABASE
from ipu_results.record.store.query import open_warehouse, read_parquet, read_view, write_duckdb
from ipu_results.schema import FILE_VIEWS, SHARED, TABLES, VIEWS, Column, View
from ipu_results.schema.frames import arrow_schema, file_schema
from pandas.testing import assert_frame_equal

from tests.conftest import Query

IDS = ("result_id", "row_number")
WITHOUT_DATABASE = shutil.ignore_patterns("*.duckdb")
# numbers that say what was run or compared; every other number is a figure
SETTINGS = tuple(
    "bound_ms chip_count batch_size sequence_length input_tokens output_tokens activation_bits"
    " weight_bits sessions threads position".split()
)


def separates_rows(column: Column) -> bool:
    """Return whether a column says what a row is about; a figure and an id do not."""
    if column.name.endswith(IDS) or column.figure:
        return False
    return column.kind not in ("integer", "double") or column.name.endswith(SETTINGS)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_no_two_rows_are_equal_in_all_but_figures(view: View, query: Query) -> None:
    columns = ", ".join(column.name for column in view.columns if separates_rows(column))
    alike = f"SELECT count(*), {columns} FROM {view.source} GROUP BY ALL HAVING count(*) > 1"
    assert query(alike) == []


@pytest.mark.parametrize("view", [view for view in VIEWS if view.order], ids=lambda view: view.name)
def test_no_two_rows_share_the_order_of_the_view(view: View, query: Query) -> None:
    keys = ", ".join(view.order)
    assert query(f"SELECT {keys} FROM {view.source} GROUP BY ALL HAVING count(*) > 1") == []


def test_flipped_bit_anywhere_in_a_parquet_file_is_refused(warehouse: Path, tmp_path: Path) -> None:
    data = (warehouse / "models.parquet").read_bytes()
    path = tmp_path / "models.parquet"
    for at in range(0, len(data), 13):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        path.write_bytes(flipped)
        with pytest.raises(WarehouseError, match=r"^models.parquet: cannot be read: "):
            read_parquet(path)


def test_view_without_files_gives_a_reason() -> None:
    assert [view.name for view in VIEWS if view not in FILE_VIEWS] == ["mlperf_pairs"]
    assert all(view.no_files for view in VIEWS if view not in FILE_VIEWS)


def test_load_evaluates_a_view_with_and_without_the_duckdb_file(
    warehouse: Path, tmp_path: Path
) -> None:
    shutil.copytree(warehouse, tmp_path, ignore=WITHOUT_DATABASE, dirs_exist_ok=True)
    of_each_type = {frozenset(column.kind for column in view.columns): view for view in FILE_VIEWS}
    for view in of_each_type.values():
        frame = ipu_results.load(view.name, warehouse=warehouse)
        assert_frame_equal(ipu_results.load(view.name, warehouse=tmp_path), frame)


def test_load_finds_a_detail_table_and_query_says_how_it_is_named(
    warehouse: Path, without_database: tuple[Path, Any]
) -> None:
    for folder in (warehouse, without_database[0]):
        facts = ipu_results.load("detail.facts", warehouse=folder)
        with open_warehouse(folder) as connection:
            assert run_query(connection, "FROM detail.facts").num_rows == len(facts) > 0
            for name in ("facts", "sdk_effect"):
                with pytest.raises(QueryError, match=rf"write FROM detail\.{name}$"):
                    run_query(connection, f"FROM {name}")


def test_every_view_of_an_attached_file_is_read(warehouse: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{warehouse / DATABASE}' AS ipu (READ_ONLY)")
        for view in VIEWS:
            if not view.parameters:  # a macro needs USE: DuckDB expands it where it is called
                connection.execute(f"DESCRIBE FROM ipu.{view.sql_name}")
        for view in SHARED:
            connection.execute(f"DESCRIBE FROM ipu.{view.sql_name}")


def test_views_of_empty_tables_are_empty_and_of_the_same_types(tmp_path: Path) -> None:
    path = tmp_path / DATABASE
    write_duckdb(path, {table.sql_name: arrow_schema(table).empty_table() for table in TABLES})
    with duckdb.connect(str(path), read_only=True) as connection:
        for view in VIEWS:
            rows = read_view(connection, view)
            assert (rows.num_rows, rows.schema) == (0, file_schema(view.file_table)), view.name


@pytest.fixture(scope="module")
def without_database(
    small: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Any]]:
    """Give a folder of small Parquet files alone, and a connection to all of them."""
    folder = tmp_path_factory.mktemp("parquet")
    shutil.copytree(small, folder, ignore=WITHOUT_DATABASE, dirs_exist_ok=True)
    with open_warehouse(folder) as whole:
        yield folder, whole


@pytest.mark.parametrize(
    "statement",
    [
        "FROM results SELECT count(*) HAVING count(*) > 0",
        "WITH a AS (FROM detail.latency_bounded) SELECT count(*) FROM a JOIN measurements USING (result_id)",
        "FROM per_dollar() SELECT count(*)",
        "SELECT count(*), format_rounded(max(value)) FROM rules.curves",
        "SELECT count(*) FROM results r NATURAL JOIN documents",
        "SELECT count(*) FROM results, (SHOW TABLES)",
        "SELECT count(*) FROM results, information_schema.tables",
        "FROM sqlite_master, results SELECT count(*)",
        "SELECT count(*) FROM results, duckdb_views() WHERE NOT internal",
        "SHOW TABLES",
    ],
)
def test_statement_of_a_folder_without_a_database_reads_what_it_needs(
    statement: str, without_database: tuple[Path, Any]
) -> None:
    folder, whole = without_database
    answer = run_query(whole, statement)
    with open_warehouse(folder, statement) as connection:
        assert run_query(connection, statement) == answer


def test_build_of_a_file_that_no_statement_reads_is_compared(built: Path) -> None:
    (built / DATABASE).unlink()
    (built / "claims.parquet").write_bytes(b"")
    with pytest.raises(WarehouseError, match=r"claims\.parquet"):
        open_warehouse(built, "FROM results").__enter__()


def test_join_using_opens_what_the_statement_reads(warehouse: Path, tmp_path: Path) -> None:
    shutil.copytree(warehouse, tmp_path, ignore=WITHOUT_DATABASE, dirs_exist_ok=True)
    statement = "SELECT count(*) FROM flags JOIN provenance Using ( result_id )"
    with open_warehouse(tmp_path, statement) as connection:
        opened = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
    assert {"flags", "provenance", "cells", "build"} <= opened
    assert "claims" not in opened
