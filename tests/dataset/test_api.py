"""The Python interface: `import ipu_results`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import ipu_results
import pytest
from ipu_results import IpuResultsError, claims, connect, load, provenance
from ipu_results.errors import MissingExtraError, QueryError, WarehouseError
from ipu_results.ground import explain_missing
from ipu_results.schema import TABLES, VIEWS, table
from ipu_results.schema.frames import frame_dtypes

from tests.conftest import ROOT, Query

NAMES = [
    *("Emulator", "IpuResultsError", "cite", "claims", "compare", "connect"),
    *("load", "provenance", "score_mlperf"),
]


def test_public_names_are_these() -> None:
    assert ipu_results.__all__ == NAMES
    assert dir(ipu_results) == sorted([*NAMES, "__version__"])
    assert all(getattr(ipu_results, name).__doc__ for name in NAMES)
    assert ipu_results.__version__.count(".") == 2
    with pytest.raises(AttributeError, match="module 'ipu_results' has no attribute 'laod'"):
        ipu_results.laod  # noqa: B018


def test_import_is_lazy() -> None:
    heavy = "('pandas', 'duckdb', 'pyarrow', 'numpy')"
    code = (
        f"import sys, ipu_results; print([name for name in {heavy} if name in sys.modules],"
        " dir(ipu_results)[-1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout == "[] score_mlperf\n"


# load


def test_load_gives_a_table_with_its_dtypes_and_attributes(query: Query) -> None:
    frame = load()
    assert [(len(frame),)] == query("SELECT count(*) FROM results")
    assert dict(frame.dtypes) == frame_dtypes(table("results"))
    assert frame.attrs["table"] == "results"
    assert frame.attrs["dataset_version"] == ipu_results.__version__
    assert len(frame.attrs["build_id"]) == 64


def test_load_accepts_every_table_and_view(warehouse: Path, query: Query) -> None:
    for relation in (*TABLES, *VIEWS):
        frame = load(relation.name, warehouse=warehouse)
        source = getattr(relation, "source", relation.sql_name)
        assert list(frame) == [column.name for column in relation.columns]
        assert [(len(frame),)] == query(f"SELECT count(*) FROM {source}"), relation.name


@pytest.mark.parametrize(
    ("name", "filters", "where"),
    [
        ("results", {"platform": "IPU-M2000"}, "platform = 'IPU-M2000'"),
        (
            "results",
            {"platform": "IPU-M2000", "batch_size": [4, 8]},
            "platform = 'IPU-M2000' AND batch_size IN (4, 8)",
        ),
        ("results", {"batch_size": None}, "batch_size IS NULL"),
        ("results", {"batch_size": (4, None)}, "batch_size = 4 OR batch_size IS NULL"),
        ("results", {"throughput": 4354.0}, "throughput = 4354"),
        ("results", {"model": []}, "false"),
        (
            "inference",
            {"model": {"ResNeXt101", "FastSpeech2"}},
            "model IN ('ResNeXt101', 'FastSpeech2')",
        ),
        ("flags", {"rule": "R01", "severity": "error"}, "rule = 'R01' AND severity = 'error'"),
    ],
)
def test_load_filters_rows(name: str, filters: dict[str, Any], where: str, query: Query) -> None:
    frame = load(name, **filters)
    assert [(len(frame),)] == query(f"SELECT count(*) FROM {name} WHERE {where}")
    assert list(frame.index) == list(range(len(frame)))


def test_load_selects_columns() -> None:
    frame = load(columns=["throughput", "model"], platform="C2")
    assert list(frame) == ["throughput", "model"]
    assert set(frame["model"]) == {"ResNeXt101", "ResNeXt101-32x4d"}


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "message"),
    [
        (["reslts"], {}, QueryError, "there is no table or view 'reslts'; the nearest: results"),
        (
            ["results"],
            {"columns": ["modle"]},
            QueryError,
            "results has no column 'modle'; the nearest: model",
        ),
        (
            ["inference"],
            {"zzz": 1},
            QueryError,
            "inference has no column 'zzz'; choose from: result_id, ",
        ),
        (
            ["results"],
            {"platform": "M2000"},
            QueryError,
            "no row has platform 'M2000'; the nearest: IPU-M2000",
        ),
        (["results"], {"batch_size": "4"}, QueryError, "batch_size holds Int64; '4' is a str"),
        (["results"], {"model": 50}, QueryError, "model holds str; 50 is a int"),
        (
            ["results"],
            {"warehouse": "no-such-folder"},
            WarehouseError,
            "no-such-folder: contains no dataset",
        ),
    ],
)
def test_wrong_arguments_are_named(
    args: list[str], kwargs: dict[str, Any], error: type[IpuResultsError], message: str
) -> None:
    with pytest.raises(error, match=message):
        load(*args, **kwargs)


# connect, provenance, claims


def test_connection_is_read_only_and_has_the_views() -> None:
    with connect() as connection:
        assert connection.sql("SELECT count(*) FROM inference WHERE latency_ms < 5").fetchall() != [
            (0,)
        ]
        with pytest.raises(duckdb.Error):
            connection.sql("FROM '/etc/passwd'")


def test_connection_has_cursors_and_refuses_to_write(warehouse: Path, tmp_path: Path) -> None:
    shutil.copytree(
        warehouse, parquet_only := tmp_path / "warehouse", ignore=shutil.ignore_patterns("*.duckdb")
    )
    for folder in (warehouse, parquet_only):
        with connect(folder) as connection, connection.cursor() as cursor:
            assert cursor.sql("FROM inference LIMIT 1").fetchall() != []
        with (
            connect(folder) as connection,
            pytest.raises(duckdb.Error, match=r"read-only|only update base table"),
        ):
            connection.execute("UPDATE results SET throughput = 1")


def test_provenance_wants_a_known_result_id() -> None:
    for wrong in (12, "0000"):
        with pytest.raises(QueryError, match=str(wrong)):
            provenance(wrong)  # type: ignore[arg-type]


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


@pytest.mark.parametrize("result_id", ["r0000000000000000", "'; DROP TABLE results; --"])
def test_provenance_of_an_unknown_result_is_refused(result_id: str) -> None:
    with pytest.raises(QueryError, match="unknown result"):
        provenance(result_id)


def test_claims_can_be_filtered(query: Query) -> None:
    frame = claims(verdict=["contradicted", "not-supported"])
    assert set(frame["verdict"]) == {"contradicted", "not-supported"}
    assert [(len(claims()),)] == query("SELECT count(*) FROM claims")


def test_missing_package_is_named_with_its_extra() -> None:
    assert issubclass(MissingExtraError, IpuResultsError)
    message = str(explain_missing(ModuleNotFoundError(name="altair.vegalite")))
    assert message == "altair is not installed; install it with: pip install 'ipu-results[plots]'"
    assert "ipu-results[ingest]" in str(
        explain_missing(ModuleNotFoundError(name="msgspec"), "ingest")
    )
