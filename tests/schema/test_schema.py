"""Every file follows from the one definition of a column, and the gates refuse invalid rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import GateError
from ipu_results.kit.sql import ATTACHED, open_engine
from ipu_results.record.check.gate import GOOD, find_failures
from ipu_results.record.store import files
from ipu_results.record.store.files import digest_rows
from ipu_results.record.store.query import check_keys
from ipu_results.schema import TABLES, VIEWS, table
from ipu_results.schema.frames import (
    arrow_schema,
    build_frame,
    build_frame_from_columns,
    frame_dtypes,
    to_arrow,
)
from ipu_results.schema.pandera_schemas import build_gate_schema

from tests.cases import every_case, read_cases
from tests.conftest import PAGE, Query, copy_documents, run_process
from tests.release.release_support import locate_table

RESULTS = table("results").as_filled()
CASES = read_cases(__file__)
BASES = CASES["base"]
NAMES = [table.name for table in TABLES]


# one definition


def test_pandera_arrow_and_frames_follow_the_definition() -> None:
    for definition in (each.as_filled() if each.kept else each for each in TABLES):
        arrow = arrow_schema(definition)
        assert tuple(arrow.names) == tuple(frame_dtypes(definition)) == definition.names
        assert not build_gate_schema(definition).coerce
        failures = find_failures(definition, build_frame(definition, [{}]))
        refused = {failure.message for failure in failures}
        for column in definition.columns:
            assert (f"{column.name} is blank or missing" in refused) is column.required
            assert arrow.field(column.name).nullable is not column.required
            assert column.description.endswith("."), column.name


def test_gate_refuses_a_missing_an_unknown_and_a_wrongly_typed_column() -> None:
    frame = build_frame(RESULTS, [GOOD])
    assert find_failures(RESULTS, frame) == []
    for changed in (
        frame.drop(columns="benchmark"),
        frame.assign(extra=1),
        frame.astype({"batch_size": "float64"}),
        frame[frame.columns[::-1]],
    ):
        with pytest.raises(GateError, match=r"the frame as a whole fails (column|dtype)"):
            find_failures(RESULTS, changed)


def test_parquet_has_units_descriptions_and_the_build_id(warehouse: Path) -> None:
    for name in NAMES:
        stored, expected = pq.read_schema(locate_table(warehouse, name)), arrow_schema(table(name))
        assert stored.remove_metadata().equals(expected.remove_metadata())
        assert [field.metadata for field in stored] == [field.metadata for field in expected], name
        assert len(stored.metadata[b"build_id"]) == 64


def test_parquet_and_duckdb_have_the_same_rows_and_build_lists_them(
    warehouse: Path, database: Any
) -> None:
    build = pq.read_table(locate_table(warehouse, "build")).to_pylist()
    counts = {row["table_name"]: row["row_count"] for row in build}
    assert counts.keys() == {*NAMES} - {"build"}
    for each in TABLES:
        parquet = pq.read_table(locate_table(warehouse, each.name))
        stored = database.sql(f"FROM {each.sql_name}").to_arrow_table()
        assert digest_rows(parquet) == digest_rows(stored), each.name
        assert counts.get(each.name, parquet.num_rows) == parquet.num_rows


def test_duckdb_has_checks_and_no_indexes(database: Any) -> None:
    kinds = database.sql("SELECT table_name, constraint_type FROM duckdb_constraints()").fetchall()
    checks = [name for name, kind in kinds if kind == "CHECK"]
    assert sorted(checks) == ["results", "results", "results", "runs"]
    assert {kind for _, kind in kinds} == {"CHECK", "NOT NULL"}
    assert database.sql("FROM duckdb_indexes()").fetchall() == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("INSERT INTO models SELECT * FROM models LIMIT 1", "models: model is repeated: "),
        (
            "UPDATE claims SET document_id = 'absent' WHERE starts_with(claim_id, 'sdk14')",
            "claims: document_id is not in documents: absent",
        ),
        (
            "DELETE FROM platforms WHERE platform = 'C2'",
            "results: platform is not in platforms: C2",
        ),
    ],
)
def test_broken_key_is_an_error(change: str, fault: str, warehouse: Path) -> None:
    tables = {own.sql_name: pq.read_table(locate_table(warehouse, own.name)) for own in TABLES}
    with open_engine(tables) as engine:
        check_keys(engine)
        with engine.cursor() as cursor:
            cursor.execute(f"USE {ATTACHED}")
            cursor.execute(change)
        with pytest.raises(GateError, match=f"a key does not hold: {fault}"):
            check_keys(engine)


def test_dictionary_describes_every_table_view_and_column(query: Query, database: Any) -> None:
    names = "schema_name, table_name, column_name"
    # what rules share describes itself, in the head of its file
    stored = f"""SELECT {names}, data_type FROM duckdb_columns()
        WHERE NOT internal AND schema_name <> 'rules'"""
    described = f"SELECT {names}, c.type FROM columns c JOIN relations r USING (table_name)"
    of_tables = query(f"{described} WHERE r.type <> 'macro'")
    assert {*of_tables} == {*database.sql(stored).fetchall()}
    macros = {view.name for view in VIEWS if view.parameters}
    assert {name for _, name, *_ in query(f"{described} WHERE r.type = 'macro'")} == macros
    relations = [name for (name,) in query("SELECT table_name FROM relations")]
    assert sorted(relations) == sorted([*NAMES, *(view.name for view in VIEWS)])
    for name in ("relations", "columns"):
        assert query(f"SELECT count(*) FROM {name} WHERE description = ''") == [(0,)]
    assert query("SELECT DISTINCT unit FROM columns WHERE column_name = 'latency_ms'") == [("ms",)]


def test_views_split_the_results(query: Query) -> None:
    mlperf = "benchmark = 'mlperf-training'"
    left_out = (
        "origin = 'emulated' OR sparsity IS NOT NULL OR same_as IS NOT NULL AND benchmark IS NULL"
        " OR result_id IN (SELECT result_id FROM flags WHERE rule = 'R36')"
        " OR document_id IN (SELECT document_id FROM documents WHERE figures_are IS NOT NULL)"
    )
    [(rows, official, others)] = query(
        f"SELECT count(*), count(*) FILTER ({mlperf}), count(*) FILTER ({left_out}) FROM results"
    )
    [(inference,)] = query("SELECT count(*) FROM inference")
    [(training,)] = query("SELECT count(*) FROM training")
    assert inference + training + official + others == rows
    assert official == 11 + 2117


def test_latest_omits_rows_that_a_newer_page_replaced(query: Query) -> None:
    model = "model = 'ResNet-50 v1.5'"
    row = f"{model} AND platform = 'Bow Pod16' AND framework = 'TensorFlow1' AND task = 'training'"
    assert query(f"SELECT count(*) FROM results WHERE {row}") == [(3,)]
    assert query(f"SELECT throughput, sdk_version FROM latest WHERE {row}") == [(44059.0, "3.0")]
    only_old = f"{model} AND platform = 'Bow Pod256'"
    assert query(f"SELECT throughput FROM latest WHERE {only_old}") == [(456906.0,)]


PROVENANCE = (
    "SELECT DISTINCT document_kind, locator_in, locator, source_url, source_locator FROM provenance"
)


@every_case(__file__, "provenance")
def test_provenance_names_our_file_and_the_source(
    query: Query, figure: str, kinds: list[str], locator: str, place: str, url: str | None
) -> None:
    assert query(f"{PROVENANCE} WHERE {figure}") == [(*kinds, locator, url, place)]


def test_every_figure_has_a_provenance_and_only_local_runs_have_no_source_address(
    query: Query,
) -> None:
    assert query("SELECT count(*) FROM provenance") == query(
        "SELECT count(*) FROM cells WHERE value IS NOT NULL"
    )
    without = "SELECT DISTINCT document_kind FROM provenance WHERE source_url IS NULL"
    assert query(without) == [("run",)]
    assert query("SELECT count(*) FROM provenance WHERE source_url SIMILAR TO '.*\\s.*'") == [(0,)]


def test_provenance_of_a_comparator_has_the_address_of_its_own_repository(query: Query) -> None:
    rows = query(
        "SELECT p.url, count(*) FROM provenance p"
        " JOIN cells c ON c.result_id = p.result_id AND c.column_name = 'repo'"
        " AND split_part(c.locator, ',', 1) = split_part(p.locator, ',', 1)"
        " WHERE p.url = 'https://github.com/' || c.raw_text"
        " AND starts_with(p.source_url, p.url || '/blob/') GROUP BY 1"
    )
    assert sorted(rows) == [
        ("https://github.com/NVIDIA/DeepLearningExamples", 446),
        ("https://github.com/NVIDIA/TensorRT", 160),
    ]
    assert query(
        "SELECT count(*) FROM provenance WHERE document_id = 'nvidia-a100-comparators'"
    ) == [(446 + 160,)]


# gates


def test_invalid_row_is_refused_for_its_reason() -> None:
    rows = []
    expected = {}
    for number, (base, reasons, change, *without) in enumerate(CASES["judged"]["rows"]):
        row = GOOD | {"result_id": f"r{number:016x}"} | BASES[base] | change
        for names in without:
            row |= dict.fromkeys(names)
        rows.append(row)
        expected[number] = set(reasons.split())
    refused: dict[int, set[str]] = {number: set() for number in expected}
    for failure in find_failures(RESULTS, build_frame(RESULTS, rows)):
        refused[failure.row].add(failure.reason)
    assert refused == expected


@pytest.mark.parametrize("value", ["12", 1.5, True])
def test_value_of_another_type_is_never_coerced(value: object) -> None:
    message = r"results\.batch_size has a value of type"
    with pytest.raises(GateError, match=message):
        build_frame(RESULTS, [GOOD | {"batch_size": value}])
    columns: dict[str, Any] = {name: [None] for name in RESULTS.names}
    with pytest.raises(GateError, match=message):
        build_frame_from_columns(RESULTS, columns | {"batch_size": pa.chunked_array([[value]])})


def test_arrow_refuses_a_null_in_a_required_column() -> None:
    with pytest.raises(GateError, match=r"results: .*model_printed.* non-nullable"):
        to_arrow(RESULTS, build_frame(RESULTS, [GOOD | {"model_printed": None}]))


@pytest.mark.slow
def test_validation_that_is_switched_off_stops_the_build(tmp_path: Path) -> None:
    raw = copy_documents(tmp_path / "raw", PAGE)
    env = {"PANDERA_VALIDATION_ENABLED": "False"}
    done = run_process("ingest", "--raw", raw, "--warehouse", tmp_path / "warehouse", env=env)
    assert done.returncode == 1
    assert "is pandera switched off?" in done.stderr
    assert not (tmp_path / "warehouse" / "results.parquet").exists()


# digests

Rows = list[tuple[str, int | None]]
ROW = st.tuples(st.text(max_size=5), st.none() | st.integers(-5, 5))


def make_arrow(rows: Rows) -> pa.Table:
    schema = pa.schema({"a": pa.string(), "b": pa.int64()})
    return pa.Table.from_pylist([{"a": a, "b": b} for a, b in rows], schema)


@given(st.lists(ROW, max_size=10), st.randoms())
def test_digest_depends_on_the_rows_and_not_on_their_order(rows: Rows, random: Any) -> None:
    digest = digest_rows(make_arrow(rows))
    shuffled = random.sample(rows, len(rows))
    assert digest_rows(make_arrow(shuffled)) == digest
    assert digest_rows(make_arrow([*rows, ("", None)])) != digest


def test_digest_of_many_rows_is_that_of_a_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = make_arrow([("b", None), ("a", None), ("", 2), ("a", 3)])
    whole = digest_rows(rows)
    monkeypatch.setattr(files, "MAX_ROWS", 2)
    assert digest_rows(rows) == whole


def test_digest_distinguishes_null_from_empty_and_columns_from_each_other() -> None:
    tables = [
        {"a": ["x", ""], "b": ["", "y"]},
        {"a": ["x", None], "b": ["", "y"]},
        {"b": ["x", ""], "a": ["", "y"]},
        {"a": ["", "x"], "b": ["x", "y"]},
        {"a": ["x", "-"], "b": ["", "y"]},
        {"a": ["x:1", ""], "b": ["", "y"]},
    ]
    assert len({digest_rows(pa.table(columns)) for columns in tables}) == len(tables)
