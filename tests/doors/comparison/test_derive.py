"""Derived columns: values checked by hand against their rows, nulls, and what stops a build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from ipu_results.errors import GateError
from ipu_results.kit.files import SCHEMA
from ipu_results.record.derive import collect_inputs
from ipu_results.schema import Table, table
from ipu_results.schema.frames import build_frame
from ipu_results.schema.vocabulary import load_vocabulary

from tests.conftest import Query, derive_frame
from tests.doors.analyses.analysis_support import make_warehouse

SQL = (SCHEMA / "derived" / "results.sql").read_text(encoding="utf-8")
ROW = {
    "result_id": f"r{0:016x}",
    "origin": "published",
    "publisher": "Graphcore",
    "document_id": "page",
}
ROW |= {"task": "inference", "model_printed": "Net", "platform": "Bow-2000", "chip": "Bow"}


def derive(
    *rows: Mapping[str, Any], definition: Table | None = None, sql: str | None = None, **values: Any
) -> list[dict[str, Any]]:
    """Derive the columns of rows, or of the one with these values."""
    rows = tuple(
        {**ROW, "result_id": f"r{at:016x}", **row} for at, row in enumerate(rows or [values])
    )
    frames = {"results": build_frame(table("results").as_filled(), rows)}
    inputs = collect_inputs(definition or table("results"))
    frames |= {name: build_frame(table(name), []) for name in inputs if name not in frames}
    frames["documents"] = pd.DataFrame(
        {
            "document_id": ["by-a-user"],
            "kind": ["submission"],
        }
    )
    derived = derive_frame(frames, definition, sql).set_index("result_id", drop=False)
    values_of = (derived.loc[row["result_id"]].to_dict() for row in rows)
    return [
        {name: None if pd.isna(value) else value for name, value in own.items()}
        for own in values_of
    ]


# the committed rows


RELATIONSHIPS = (
    "SELECT relationship, count(*) FROM results WHERE origin <> 'official' AND {} GROUP BY ALL"
    " ORDER BY ALL"
)
SAME = "SELECT {} FROM results p JOIN results o ON o.result_id = p.same_as"
MINUTES = "round(p.time_to_train_s / 60, 4), round(o.time_to_train_s / 60, 4)"
ENTRY = "FROM results r JOIN mlperf_entries e USING (result_id) WHERE"
COMMITTED: tuple[tuple[str, list[tuple[Any, ...]]], ...] = (
    (
        "SELECT DISTINCT publisher FROM results WHERE model = 'ResNeXt101-32x4d' ORDER BY 1",
        [("Graphcore",), ("NVIDIA",), ("Qwant",), ("local",)],
    ),
    (
        (
            "SELECT count(*) FROM results"
            " WHERE phase IS NULL AND task = 'training' AND variant ILIKE '%p%-t%aining%'"
        ),
        [(0,)],
    ),
    (
        # whose batches are of packs, as printed
        (
            "SELECT count(*), count(*) FILTER (result_id IN (SELECT result_id FROM flags"
            " WHERE rule = 'R27')) FROM results WHERE packed AND model <> 'SchNet'"
        ),
        [(36, 36)],
    ),
    (
        "SELECT DISTINCT dataset_printed FROM results WHERE dataset = 'ImageNet' ORDER BY 1",
        [("ImageNet",), ("ImageNet1k",), ("ImageNet2012",), ("OPEN_IMAGENET",), (None,)],
    ),
    (
        (
            f"SELECT count(*) {ENTRY} r.submitter <> e.submitter"
            " OR abs(r.time_to_train_s / 60 / e.minutes - 1) > 1e-9"
            " OR r.relationship <> 'official' OR r.chip <> e.chip"
            " OR r.chip_count IS DISTINCT FROM nullif(e.chip_count, 0)"
        ),
        [(0,)],
    ),
    ("SELECT count(*) FROM results WHERE submitter IS NULL AND origin = 'official'", [(0,)]),
    # All eleven printed rows of MLPerf are the same as official ones.
    (f"{SAME.format('count(*)')} WHERE o.origin = 'official'", [(11,)]),
    (
        (f"{SAME.format(MINUTES)} WHERE o.origin = 'official' ORDER BY 1 LIMIT 3"),
        [(2.67, 2.6721), (3.19, 3.1849), (4.19, 4.1853)],
    ),
    (
        (
            f"{SAME.format('p.document_id, o.document_id AS newer, count(*)')} "
            "AND o.origin = 'published' AND o.throughput = p.throughput GROUP BY ALL ORDER BY 1"
        ),
        [
            ("graphcore-performance-2022-h2", "graphcore-performance-2023-07-04", 5),
            ("graphcore-performance-2023-h1", "graphcore-performance-2023-07-04", 7),
        ],
    ),
    # Printed MLPerf times and repeated rows, emulated ones, and those of sparse networks are left
    # out.
    (
        "SELECT (SELECT count(*) FROM results) - count(*) FROM measurements",
        [(11 + 5 + 7 + 16 + 5,)],
    ),
    # Makers who measured for another publisher are vendors: ByteMLPerf's reports of 4 chips are
    # their makers' own.
    (RELATIONSHIPS.format("publisher = 'local'"), [("own", 56)]),
    (RELATIONSHIPS.format("publisher = 'Graphcore'"), [("vendor", 298 + 132 + 48 + 13)]),
    (RELATIONSHIPS.format("publisher = 'ByteDance'"), [("vendor", 71)]),
    # NVIDIA prints rows with and without XLA, which differ in that alone: views keep them apart.
    *(
        (
            (
                "SELECT count(*) FILTER (r.conditions = 'compiled by XLA') > 0,"
                f" count(*) > count(r.conditions) FROM {view} JOIN results r USING (result_id)"
                " WHERE r.publisher = 'NVIDIA'"
            ),
            [(True, True)],
        )
        for view in ("inference", "training", "latest")
    ),
    (
        f"SELECT r.framework, count(*) {ENTRY} e.framework LIKE 'PopART Poplar SDK%' GROUP BY 1",
        [("PopART", 15)],
    ),
)


@pytest.mark.parametrize(("sql", "expected"), COMMITTED)
def test_derived_columns_of_committed_rows(
    sql: str, expected: list[tuple[Any, ...]], query: Query
) -> None:
    assert query(sql) == expected


def test_flags_are_counted(query: Query) -> None:
    sql = (
        "SELECT severity, count(*) FROM flags SEMI JOIN results USING (result_id) GROUP BY severity"
        " ORDER BY 1"
    )
    [counts] = query("SELECT sum(errors), sum(warnings) FROM results")
    flags = dict(query(sql))
    assert [int(count) for count in counts] == [flags["error"], flags["warn"]]


def test_official_frameworks_are_canonical(query: Query) -> None:
    """What stays as printed names no framework: MLPerf containers, CUDA and ROCm."""
    sql = "SELECT DISTINCT framework FROM results WHERE origin = 'official'"
    known = set(load_vocabulary().frameworks.values())
    raw = [name for (name,) in query(sql) if name and not set(name.split(", ")) <= known]
    assert sorted({name.split()[0] for name in raw}) == ["CUDA", "NGC", "ROCm"]
    assert all("MLPerf" in name for name in raw if name.startswith("NGC"))


def test_rounds_have_their_day_of_publication(query: Query) -> None:
    sql = (
        "SELECT mlperf_round, min(published_on)::VARCHAR FROM results WHERE origin = 'official'"
        " GROUP BY 1"
    )
    days: dict[str, str | None] = dict(query(sql))
    assert (days["0.7"], days["2.0"], days["5.1"]) == ("2020-07-29", "2022-06-29", "2025-11-12")
    assert sorted(name for name, day in days.items() if day is None) == ["3.0", "3.1", "4.0"]


# single rows


VALUES: tuple[tuple[dict[str, Any], str, object], ...] = (
    ({"batch_size": 8, "latency_ms": 2.0}, "throughput_implied", 4000.0),
    (
        {"batch_size": 8, "latency_ms": 2.0, "latency_basis": "per-batch"},
        "throughput_implied",
        4000.0,
    ),
    (
        {"batch_size": 8, "latency_ms": 2.0, "latency_basis": "several-in-flight"},
        "throughput_implied",
        None,
    ),
    ({"batch_size": 8, "latency_ms": 2.0, "latency_basis": "per-item"}, "throughput_implied", None),
    ({"throughput": 100.0, "chip_count": 4}, "throughput_per_chip", 25.0),
    ({"precision_printed": "16.16"}, "precision", "FP16"),
    ({"precision_printed": "16.32"}, "precision", "16.32"),
    ({"precision_printed": "half"}, "precision", "FP16"),
    ({"precision_printed": "Mixed-Precision"}, "precision", "mixed"),
    ({"precision_printed": "INT8/BF16"}, "precision", "INT8/BF16"),
    ({"conditions": "model X; sparsity ratio 0.9375"}, "sparsity", 0.9375),
    ({"variant": "SL384"}, "packed", False),
    ({"dataset_printed": "Proprietary"}, "dataset", "Proprietary"),
    ({"throughput": 1.0}, "errors", 0),
    ({"throughput": 1.0}, "usable", True),
    ({"origin": "emulated"}, "usable", False),
    ({"origin": "measured", "document_id": "by-a-user"}, "usable", False),
)


def test_value_of_one_row() -> None:
    rows = zip(VALUES, derive(*(values for values, *_ in VALUES)), strict=True)
    assert [(*case, row[case[1]]) for case, row in rows if row[case[1]] != case[2]] == []


def test_another_figure_or_sdk_is_another_measurement() -> None:
    new = {
        **ROW,
        "result_id": "1",
        "document_id": "page-2",
        "sdk_version": "3.0",
        "throughput": 5.0,
    }
    old = {**new, "result_id": "2", "document_id": "page-1"}
    sql = "SELECT result_id, same_as FROM results ORDER BY 1"
    assert make_warehouse([new, old]).query(sql) == [("1", None), ("2", "1")]
    for change in ({"throughput": 6.0}, {"sdk_version": "2.6"}, {"conditions": "compiled by XLA"}):
        assert make_warehouse([new, {**old, **change}]).query(sql) == [("1", None), ("2", None)]


# what stops a build


def change_column(name: str, **changes: Any) -> Table:
    columns = [replace(c, **changes) if c.name == name else c for c in table("results").columns]
    return replace(table("results"), columns=tuple(columns))


def test_input_that_does_not_exist() -> None:
    definition = change_column("throughput_per_chip", derived_from=("results.rate",))
    message = "results.toml: throughput_per_chip is derived from results.rate, which does not exist"
    with pytest.raises(GateError, match=message):
        derive(definition=definition, throughput=1.0)


def test_input_that_is_not_declared_cannot_be_read() -> None:
    with pytest.raises(GateError, match=r"results\.sql: .*latency_scope"):
        derive(sql=SQL.replace("e.submitter,", "r.latency_scope AS submitter,"), throughput=1.0)


def test_value_without_its_input() -> None:
    wrong = SQL.replace("r.throughput / r.chip_count", "1.0::DOUBLE")
    message = (
        "results.sql: r0000000000000000: throughput_per_chip has a value without its input"
        " throughput"
    )
    with pytest.raises(GateError, match=message):
        derive(sql=wrong, latency_ms=1.0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("r.throughput / r.chip_count", "'fast'", "no throughput_per_chip of type double"),
        ("e.submitter,", "e.submitter, 1 AS rank,", "returns rank, which is not a derived column"),
        ("FROM results r\nLEFT", "FROM (FROM results LIMIT 0) r\nLEFT", "1 rows are lost"),
        (
            "LEFT JOIN repetitions o",
            "CROSS JOIN range(2) LEFT JOIN repetitions o",
            "has several rows",
        ),
        ("r.throughput / r.chip_count", "-r.throughput", "throughput_per_chip is"),
    ],
    ids=["type", "column", "lost row", "repeated row", "bound"],
)
def test_statement_that_does_not_fit_the_table(old: str, new: str, message: str) -> None:
    assert old in SQL
    with pytest.raises(GateError, match=message):
        derive(sql=SQL.replace(old, new), throughput=2.0, chip_count=2)
