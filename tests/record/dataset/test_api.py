"""The Python interface: `import ipu_results`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import ipu_results
import pandas as pd
import pandera.pandas as pandera
import pytest
import yaml
from ipu_results import IpuResultsError, claims, connect, load, pandera_schema, provenance
from ipu_results.errors import MissingExtraError, QueryError, WarehouseError
from ipu_results.kit.extras import explain_missing
from ipu_results.schema import TABLES, VIEWS, Table, table
from ipu_results.schema.frames import frame_dtypes
from pandera.errors import SchemaErrors

from tests.cases import every_case
from tests.conftest import ROOT, Query
from tests.release.release_support import locate_table

VALIDATED = 1_000  # rows of a table


def test_name_that_is_not_public_is_refused() -> None:
    assert dir(ipu_results) == sorted([*ipu_results.__all__, "__version__"])
    with pytest.raises(AttributeError, match="module 'ipu_results' has no attribute 'laod'"):
        ipu_results.laod  # noqa: B018


def test_import_is_lazy() -> None:
    heavy = {"pandas", "duckdb", "pyarrow", "numpy"}
    code = "import sys, ipu_results; dir(ipu_results); print(*sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert heavy.isdisjoint(done.stdout.split())


# load


def test_load_gives_a_table_with_its_dtypes_and_attributes(query: Query) -> None:
    frame = load()
    assert [(len(frame),)] == query("SELECT count(*) FROM results")
    days = dict.fromkeys(("published_on", "printed_until"), "datetime64[us]")
    assert dict(frame.dtypes) == frame_dtypes(table("results")) | days
    assert frame.attrs["table"] == "results"
    assert frame.attrs["dataset_version"] == ipu_results.__version__
    assert len(frame.attrs["build_id"]) == 64


@pytest.mark.parametrize(
    ("name", "filters", "where"),
    [
        (
            "results",
            {"platform": "IPU-M2000", "batch_size": [4, 8]},
            "platform = 'IPU-M2000' AND batch_size IN (4, 8)",
        ),
        ("results", {"batch_size": None}, "batch_size IS NULL"),
        ("results", {"batch_size": (4, None)}, "batch_size = 4 OR batch_size IS NULL"),
        ("results", {"model": []}, "false"),
        (
            "inference",
            {"model": {"ResNeXt101-32x4d", "FastSpeech2"}},
            "model IN ('ResNeXt101-32x4d', 'FastSpeech2')",
        ),
    ],
)
def test_load_filters_rows(name: str, filters: dict[str, Any], where: str, query: Query) -> None:
    columns = [next(iter(filters)), "result_id"]
    frame = load(name, columns=columns, **filters)
    assert [(len(frame),)] == query(f"SELECT count(*) FROM {name} WHERE {where}")
    assert list(frame.index) == list(range(len(frame)))
    assert list(frame) == columns


@every_case(__file__, "wrong_arguments")
def test_wrong_arguments_are_named(table: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError) as caught:
        load(table, **options)
    assert message in str(caught.value)


def test_folder_without_a_dataset_is_named() -> None:
    with pytest.raises(WarehouseError, match="no-such-folder: contains no dataset"):
        load(warehouse="no-such-folder")


def test_a_filter_of_dates_takes_a_day_in_any_form(query: Query) -> None:
    [(count,)] = query("SELECT count(*) FROM results WHERE published_on = DATE '2023-07-04'")
    for day in ("2023-07-04", date(2023, 7, 4), pd.Timestamp("2023-07-04")):
        assert len(load(published_on=day)) == count > 0


# connect, provenance, claims


def test_connection_has_cursors_and_reads_alone(warehouse: Path, tmp_path: Path) -> None:
    parquet_only = tmp_path / "warehouse"
    shutil.copytree(warehouse, parquet_only, ignore=shutil.ignore_patterns("*.duckdb"))
    for folder in (warehouse, parquet_only):
        with connect(folder) as connection:
            with connection.cursor() as cursor:
                assert cursor.sql("FROM inference LIMIT 1").fetchall() != []
            for statement in ("UPDATE results SET throughput = 1", "FROM '/etc/passwd'"):
                refused = "read-only|only update base|does not exist"
                with pytest.raises(duckdb.Error, match=refused):
                    connection.execute(statement)


@pytest.mark.parametrize("result_id", [12, "r0000000000000000", "'; DROP TABLE results; --"])
def test_provenance_of_an_unknown_result_is_refused(result_id: Any) -> None:
    with pytest.raises(QueryError, match=re.escape(str(result_id))):
        provenance(result_id)


def test_provenance_lists_the_printed_figures() -> None:
    [result_id] = load(throughput=1_489_341.0)["result_id"]
    frame = provenance(result_id)
    assert sorted(frame["column_name"]) == ["batch_size", "throughput"]
    [figure] = frame[frame["column_name"] == "throughput"].to_dict("records")
    assert (figure["raw_text"], figure["unit"], figure["factor"]) == ("1,489,341", "items/sec", 1.0)
    assert figure["locator"] == "table 2, row 35, column 9 (Throughput (items/sec))"


def test_provenance_takes_a_microbenchmark() -> None:
    frame = provenance("r35d033e522472c8d")
    assert list(frame[frame["column_name"] == "value"]["raw_text"]) == ["0.191"]


# pandera_schema


def test_every_table_and_view_is_loaded_and_passes_its_pandera_schema(
    warehouse: Path, query: Query
) -> None:
    """Of a long one the first rows: the gate of the build has seen all."""
    for relation in (*TABLES, *VIEWS):
        schema = pandera_schema(relation.name)
        frame = load(relation.name, warehouse=warehouse)
        assert list(schema.columns) == list(frame) == list(relation.names)
        assert [(len(frame),)] == query(f"SELECT count(*) FROM {relation.source}"), relation.name
        loaded = schema.validate(frame.head(VALIDATED))
        if isinstance(relation, Table):
            stored = pd.read_parquet(locate_table(warehouse, relation.name)).head(VALIDATED)
            pd.testing.assert_frame_equal(schema.validate(stored), loaded)


def test_pandera_schema_as_yaml_holds_every_column_and_check() -> None:
    schema = pandera_schema("results")
    text = schema.to_yaml()
    assert text is not None
    written = yaml.safe_load(text)
    assert list(written["columns"]) == list(table("results").names)
    checks = [check["options"]["error"] for check in written["checks"]]
    assert checks == ["precision_bits", "origin_place", "micro_batch"]
    read = pandera.DataFrameSchema.from_yaml(text)
    assert list(read.columns.values()) == list(schema.columns.values())
    frame = load("results").head(3).assign(task="Training", activation_bits=7)
    for each in (schema, read):
        with pytest.raises(SchemaErrors) as caught:
            each.validate(frame, lazy=True)
        failed = {*caught.value.failure_cases["check"]}
        assert failed == {"isin(['training', 'inference'])", "precision_bits"}


def test_pandera_schema_completes_and_converts_a_frame_of_plain_python() -> None:
    row = {"mlperf_id": "2.0-1", "round": "2.0", "system_path": "a/b", "confidence": "printed"}
    frame = pd.DataFrame([{**row, "source": "mine", "document_id": "mine"}], dtype=object)
    assert pandera_schema("mlperf_ids").validate(frame).dtypes.eq("str").all()
    flags = load("flags").drop(columns="suggested")
    assert list(pandera_schema("flags").validate(flags)) == list(table("flags").names)


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"batch_size": 1.5}, "coerce_dtype('Int64')"),
        ({"batch_size": 0}, "in_range(1, 9007199254740992)"),
        ({"usable": "no"}, "coerce_dtype('boolean')"),
        ({"usable": None}, "not_nullable"),
        ({"result_id": "r0123456789abcdef\n"}, r"str_matches('(?:r[0-9a-f]{16})\Z')"),
        ({"result_id": "r0123456789abcdef"}, "field_uniqueness"),
        ({"thruput": 1.0}, "column_in_schema"),
    ],
)
def test_pandera_schema_refuses(change: dict[str, Any], check: str) -> None:
    frame = load().head(2)
    for name, value in change.items():
        frame[name] = pd.Series([value] * 2, dtype=object)
    with pytest.raises(SchemaErrors) as caught:
        pandera_schema().validate(frame, lazy=True)
    assert check in {*caught.value.failure_cases["check"]}


def test_claims_can_be_filtered(query: Query) -> None:
    frame = claims(verdict=["contradicted", "not-supported"])
    assert set(frame["verdict"]) == {"contradicted", "not-supported"}
    assert [(len(claims()),)] == query("SELECT count(*) FROM claims")


def test_missing_package_is_named_with_its_extra() -> None:
    assert issubclass(MissingExtraError, IpuResultsError)
    message = str(explain_missing(ModuleNotFoundError(name="altair.vegalite")))
    assert message == "altair is not installed; install it with: pip install 'ipu-results[plots]'"
    named = explain_missing(ModuleNotFoundError(name="msgspec"), "ingest")
    assert "ipu-results[ingest]" in str(named)
