"""The reference row of a point, the conditions in which the two differ, and the table and records
that show it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import WarehouseError
from ipu_results.ground.text import format_json
from ipu_results.runner.reference_rows import (
    PAPER,
    SETUPS,
    ReferenceRow,
    find_model_name,
    find_reference_row,
    find_reference_sweeps,
    list_differences,
    load_reference_rows,
    query_reference_rows,
)
from ipu_results.runner.report import build_records, format_summary, name_runs
from ipu_results.runner.workload import PREPROCESSING

from tests.conftest import ROOT
from tests.runner.runs_support import point as build_point

COMMITTED = ROOT / "warehouse"
NETWORK = "resnext101-32x4d"
XEON = "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"
BATCHES = (2, 4, 6, 8, 10, 12)
REASON = "the interval is 40 % of the median"
REPORT = "qwant-c2-report-2020-02-28"


@cache
def rows(model: str = NETWORK) -> tuple[ReferenceRow, ...]:
    """Return the rows of the committed results; only one test opens the warehouse as a whole."""
    with duckdb.connect() as connection:
        for name in ("results", "flags"):
            connection.execute(f"CREATE VIEW {name} AS FROM '{COMMITTED / f'{name}.parquet'}'")
        return tuple(query_reference_rows(connection, model))


def paper(batch: int = 4) -> ReferenceRow:
    return next(row for row in rows() if row.table_name == PAPER and row.batch_size == batch)


def measured(batch: int = 4, throughput: float = 10.0, **more: Any) -> dict[str, Any]:
    """Return a point of a CPU, its interval 5 % to either side."""
    latency = batch / throughput * 1000
    own = {
        "run_id": "20261121-134501-onnxruntime-cpu-3fa2",
        "platform": XEON,
        "framework": "ONNX Runtime",
        "latency_ms_low": latency * 0.95,
        "latency_ms_high": latency * 1.05,
        "interval_confidence": 0.97,
        "latency_isolated_ms": latency * 1.125,
        "sessions": 2,
        "pipeline": "overlap",
        "preprocessing": SETUPS[PAPER]["preprocessing"],
    }
    return build_point(batch, throughput, **{**own, **more})


def emulated(batch: int = 4, throughput: float = 2000.0, **more: Any) -> dict[str, Any]:
    """Return a point of the emulated C2, its band 5 % to either side."""
    own = {
        "run_id": "20261121-134701-emulator-c2-11aa",
        "origin": "emulated",
        "interval_confidence": None,
        "platform": "C2",
        "chip_count": 2,
        "framework": "emulator",
        "backend": "emulator",
        "device": "c2",
        "compute_precision": "fp16",
        "model_precision": "fp16",
        "calibration_id": "2b2f9c01",
    }
    return measured(batch, throughput, **{**own, **more})


def equal_pair(row: ReferenceRow, **more: Any) -> tuple[dict[str, Any], ReferenceRow]:
    """Return a point and a row that share everything: the paper's, with known weights."""
    known = replace(row, setup={**row.setup, "weights": "pretrained"})
    own = {"platform": "C2", "chip_count": 2, "framework": "PopART", "sdk_version": "1.0.136"}
    own |= {"compute_precision": "Mixed", "model_precision": "fp16", "weights": "pretrained"}
    return {**measured(row.batch_size or 0), **own, **more}, known


# --- rows


@pytest.mark.parametrize("name", [NETWORK, "ResNeXt101-32x4d", "RESNEXT101_32X4D"])
def test_every_name_of_a_network_leads_to_the_papers_rows(name: str) -> None:
    own = [
        (row.batch_size, row.throughput, row.latency_ms)
        for row in rows(name)
        if row.table_name == PAPER
    ]
    assert own == [
        (2, 1474.16, 1.36),
        (4, 2063.03, 1.94),
        (6, 2131.01, 2.82),
        (8, 2409.79, 3.32),
        (10, 2421.82, 4.13),
        (12, 2526.35, 4.75),
    ]


def test_only_published_inference_rows_count() -> None:
    assert len(rows()) > 40
    assert all(row.throughput and row.batch_size and row.publisher for row in rows())
    assert {row.platform for row in rows()} == {"C2", "IPU-M2000", "1x A100-40GB (DGX A100)"}
    with duckdb.connect() as connection:
        for name in ("results", "flags"):
            connection.execute(f"CREATE TABLE {name} AS FROM '{COMMITTED / f'{name}.parquet'}'")
        origin = "CASE batch_size WHEN 2 THEN 'measured' WHEN 4 THEN 'emulated' ELSE origin END"
        connection.execute(f"UPDATE results SET origin = {origin} WHERE table_name = '{PAPER}'")
        own = [
            row.batch_size
            for row in query_reference_rows(connection, NETWORK)
            if row.table_name == PAPER
        ]
    assert own == [6, 8, 10, 12]


def test_printed_name_of_two_networks_is_resolved_by_machine() -> None:
    def machines(name: str) -> set[tuple[str, str | None]]:
        return {(row.platform, row.framework) for row in rows(name) if row.model == "ResNeXt101"}

    assert machines(NETWORK) == {("C2", "PopART"), ("IPU-M2000", "TensorFlow1")}
    assert machines("resnext101-32x8d") == {("IPU-M2000", "PyTorch")}
    assert (find_model_name("my-own"), rows("my-own")) == (None, ())


def test_flags_of_severity_error_are_counted() -> None:
    flagged = {
        (row.model, row.batch_size, row.errors) for row in rows("EfficientDet-D0") if row.errors
    }
    assert ("EfficientDet-D0", 16, 1) in flagged
    assert not any(row.errors for row in rows() if row.table_name == PAPER)


def test_setup_of_the_paper_fits_its_rows() -> None:
    six = [row for row in rows() if row.table_name == PAPER]
    assert {row.chip_count for row in six} == {SETUPS[PAPER]["sessions"]}
    implied = [row.batch_size / row.throughput * 1000 for row in six]  # type: ignore[operator]
    assert SETUPS[PAPER]["latency_kind"] == "amortised"
    assert [row.latency_ms for row in six] == pytest.approx(implied, rel=0.005)
    assert SETUPS[PAPER]["preprocessing"] == PREPROCESSING.format(height=224, width=224)


def test_built_warehouse_has_the_same_rows(warehouse: Path, tmp_path: Path) -> None:
    def describe(some: Sequence[ReferenceRow]) -> list[tuple[object, ...]]:
        return sorted((row.result_id, row.throughput, row.errors) for row in some)

    assert describe(load_reference_rows(warehouse, NETWORK)) == describe(rows())
    with pytest.raises(
        WarehouseError, match="contains no dataset; build it with: ipu-results ingest"
    ):
        load_reference_rows(tmp_path, NETWORK)


# --- differences


def test_differences_of_a_cpu_and_of_the_emulated_card() -> None:
    assert list_differences(measured(), paper()) == [
        f"device: {XEON} / C2",
        "chips: not known / 2",
        "weights: random-he-seed0 / not stated by the source",
        "model precision: fp32 / fp16",
        "compute precision: fp32 / mixed",
        "framework: ONNX Runtime / PopART",
    ]
    assert list_differences(emulated(pipeline="serial"), paper()) == [
        "figures: emulated, not measured / published",
        "weights: random-he-seed0 / not stated by the source",
        "compute precision: fp16 / mixed",
        "pipeline: serial / overlap",
        "framework: emulator / PopART",
    ]


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ({}, []),
        ({"platform": "IPU-M2000"}, ["device: IPU-M2000 / C2"]),
        ({"chip_count": 1}, ["chips: 1 / 2"]),
        ({"sessions": 4}, ["sessions: 4 / 2"]),
        ({"model": "my-own"}, ["network: my-own / ResNeXt101-32x4d"]),
        ({"weights": None}, ["weights: not known / pretrained"]),
        (
            {"preprocessing": "resized"},
            [f"pre-processing: resized / {SETUPS[PAPER]['preprocessing']}"],
        ),
        ({"model_precision": "int8"}, ["model precision: int8 / fp16"]),
        ({"compute_precision": ""}, ["compute precision: not known / mixed"]),
        ({"latency_kind": "isolated"}, ["latency: isolated / amortised"]),
        ({"pipeline": "serial"}, ["pipeline: serial / overlap"]),
        ({"sdk_version": "3.3.0"}, ["SDK: 3.3.0 / 1.0.136"]),
        ({"sdk_version": None}, ["SDK: not known / 1.0.136"]),
        (
            {"framework": "ONNX Runtime"},
            ["framework: ONNX Runtime / PopART"],
        ),  # versions of other software say nothing
        ({"power_w": 300.0, "power_scope": "wall"}, ["power scope: wall / board"]),
        ({"power_w": 300.0, "power_scope": "board"}, []),
    ],
)
def test_exactly_what_differs_is_listed(more: dict[str, Any], lines: list[str]) -> None:
    point, row = equal_pair(paper())
    assert list_differences({**point, **more}, row) == lines


def test_scope_of_power_matters_only_where_both_have_power() -> None:
    point, row = equal_pair(paper(), power_w=300.0, power_scope="wall")
    assert list_differences(point, replace(row, efficiency=None)) == []
    assert list_differences({**point, "power_w": None}, row) == []


def test_silence_of_a_source_is_a_difference() -> None:
    row = next(own for own in rows() if own.platform == "IPU-M2000" and own.batch_size == 16)
    lines = list_differences(emulated(16, platform="IPU-M2000", chip_count=4, sessions=4), row)
    assert "sessions: 4 / not stated by the source" in lines
    assert "latency: amortised / not stated by the source" in lines
    assert not [
        line
        for line in lines
        if line.startswith(("device", "chips", "network", "compute precision"))
    ]


def test_graph_compiler_belongs_to_the_framework() -> None:
    point = measured(
        256, platform="1x A100-40GB (DGX A100)", framework="TensorFlow1", compute_precision="tf32"
    )
    by_software = {
        row.software: row for row in rows() if row.batch_size == 256 and row.computed_in == "TF32"
    }
    assert set(by_software) == {"TensorFlow1", "TensorFlow1, XLA"}
    assert find_reference_row(point, rows()) == by_software["TensorFlow1"]
    assert "framework: TensorFlow1 / TensorFlow1, XLA" in list_differences(
        point, by_software["TensorFlow1, XLA"]
    )
    assert "framework" not in " ".join(list_differences(point, by_software["TensorFlow1"]))


# --- which row


@pytest.mark.parametrize("batch", BATCHES)
def test_cpu_is_compared_with_the_papers_row_of_its_batch(batch: int) -> None:
    shuffled = sorted(rows(), key=lambda row: row.result_id)
    assert find_reference_row(measured(batch), shuffled) == paper(batch)


def test_same_platform_comes_before_the_paper_and_that_before_similarity() -> None:
    own = find_reference_row(emulated(4, platform="IPU-M2000", chip_count=4, sessions=4), rows())
    assert own is not None
    assert (own.platform, own.throughput, own.latency_ms) == ("IPU-M2000", 4483.0, 2.66)
    like = replace(
        paper(4),
        table_name="other",
        framework="ONNX Runtime",
        compute_precision="fp32",
        platform="CPU",
    )
    assert len(list_differences(measured(4), like)) < len(list_differences(measured(4), paper(4)))
    assert find_reference_row(measured(4), [like, *rows()]) == paper(4)
    point = measured(128, platform="A100", chip_count=1, framework="TensorFlow1")
    for precision in ("TF32", "mixed"):
        row = find_reference_row({**point, "compute_precision": precision}, rows())
        assert row is not None
        assert row.compute_precision == precision


@pytest.mark.parametrize("batch", [1000, 3, 14])
def test_unpublished_batch_has_no_reference_row(batch: int) -> None:
    assert find_reference_row(measured(batch), rows()) is None


@given(st.lists(st.integers(0, 2), min_size=60, max_size=60), st.sampled_from((*BATCHES, 16, 128)))
def test_row_with_an_error_flag_is_never_a_reference(errors: list[int], batch: int) -> None:
    flagged = [replace(row, errors=many) for row, many in zip(rows(), errors, strict=False)]
    own = find_reference_row(measured(batch), flagged)
    sound = [row for row in flagged if row.batch_size == batch and not row.errors]
    assert (own in sound) if sound else own is None
    assert all(row.errors == 0 for row in find_reference_sweeps([measured(batch)], flagged))


def test_reference_sweeps_are_whole_with_one_row_per_batch() -> None:
    for batch in (4, 14):  # with a reference row, and without any
        assert [row.table_name for row in find_reference_sweeps([measured(batch)], rows())] == [
            PAPER
        ] * 6
    assert find_reference_sweeps([measured(4)], []) == []
    points = [measured(64), measured(128, platform="1x A100-40GB (DGX A100)")]
    own = find_reference_sweeps(points, rows())
    batches = [(row.sweep, row.batch_size) for row in own]
    assert len(set(batches)) == len(batches)
    assert {row.platform for row in own} == {"IPU-M2000", "1x A100-40GB (DGX A100)"}
    for row in own:
        same = {other.batch_size for other in rows() if other.sweep == row.sweep}
        assert same == {batch for sweep, batch in batches if sweep == row.sweep}


# --- the table


def read_cells(text: str, header: str) -> list[str]:
    """Return a column of the table, by the position of its header."""
    lines = text.splitlines()
    rule = next(at for at, line in enumerate(lines) if line.lstrip().startswith("---"))
    spans, at = [], 0
    for dashes in lines[rule].split("  "):
        spans.append((at, at + len(dashes)))
        at += len(dashes) + 2
    start, end = next(span for span in spans if lines[rule - 1][slice(*span)].strip() == header)
    return [line[start:end].strip() for line in lines[rule + 1 : lines.index("", rule)]]


def test_line_of_the_table_by_hand() -> None:
    text = format_summary([measured(4, 10.0)], rows())
    expected = {
        "batch": "4",
        "figures": "measured",
        "images/s": "10",
        "from": "9.524",
        "to": "10.53",
        "ms (amortised)": "400",
        "ms (isolated)": "450",
        "precision": "fp32",
        "cosine": "1",
        "top-1": "1",
        "published": "C2",
        "published /s": "2063.03",
        "published ms": "1.94",
        "ours / published": "0.00485",
    }
    assert {header: read_cells(text, header) for header in expected} == {
        header: [value] for header, value in expected.items()
    }
    assert text.startswith(
        f"{NETWORK} on {XEON}, onnxruntime 1.31.0, 20261121-134501-onnxruntime-cpu-3fa2\n"
    )
    assert "nominal coverage 0.97" in text
    assert not any(word in text for word in ("p99", "emulated", " mark "))


def test_columns_appear_where_a_point_has_the_value() -> None:
    points = [measured(4, latency_p99_ms=512.25, power_w=92.0, suspect=REASON), measured(8)]
    text = format_summary(points, rows())
    assert read_cells(text, "ms (isolated p99)") == ["512.2", ""]
    assert read_cells(text, "W") == ["92", ""]
    assert read_cells(text, "mark") == ["suspect", ""]
    assert f"\nsuspect: batch 4: {REASON}\n" in text


def test_emulated_and_simulated_figures_are_labelled() -> None:
    text = format_summary([emulated(2), emulated(4)], rows())
    assert read_cells(text, "figures") == ["emulated, not measured"] * 2
    assert "on C2 (emulated, not measured), emulator" in text
    assert (
        "\nemulated, not measured: batch 2, 4; from, to: the prediction's band; calibration"
        " 2b2f9c01\n" in text
    )
    assert "nominal coverage" not in text
    text = format_summary([measured(origin="simulated")], rows())
    assert read_cells(text, "figures") == ["simulated, not measured"]
    assert "emulated" not in text


def test_points_with_the_same_differences_share_their_lines() -> None:
    text = format_summary([measured(batch) for batch in BATCHES], rows())
    assert text.count(f"what differs (ours / {REPORT}):") == 1
    assert text.count("  device: ") == 1
    text = format_summary([emulated(2), measured(2), measured(4)], rows())
    assert read_cells(text, "run") == ["emulator", "onnxruntime", "onnxruntime"]
    assert f"what differs (ours / {REPORT}), emulator, batch 2:" in text
    assert f"what differs (ours / {REPORT}), onnxruntime, batch 2, 4:" in text
    point, row = equal_pair(paper())
    assert f"no difference known from {REPORT}" in format_summary([point], [row])


@pytest.mark.parametrize(
    ("note", "line"),
    [
        (None, "no published row of this model and batch without an error flag: batch 2"),
        ("warehouse: holds no dataset", "warehouse: holds no dataset"),
    ],
)
def test_without_published_rows_their_columns_are_absent(note: str | None, line: str) -> None:
    text = format_summary([measured(2)], [], note)
    assert "published /s" not in text
    assert "ours / published" not in text
    assert text.splitlines()[-1] == line


def test_runs_have_the_shortest_unique_name() -> None:
    cpu, gpu = measured(run_id="a"), measured(run_id="b", device="cuda")
    assert name_runs([cpu, emulated(run_id="b")]) == {"a": "onnxruntime", "b": "emulator"}
    assert name_runs([cpu, gpu]) == {"a": "onnxruntime cpu", "b": "onnxruntime cuda"}
    assert name_runs([cpu, measured(run_id="b")]) == {"a": "a", "b": "b"}


# --- records


def test_records_hold_the_point_and_its_row_flat() -> None:
    record, without = build_records([measured(4, 10.0), measured(14)], rows())
    assert record["published_platform"] == "C2"
    assert record["published_throughput"] == 2063.03
    assert record["published_document_id"] == REPORT
    assert record["throughput_ratio"] == pytest.approx(10 / 2063.03)
    assert record["differs"] == list_differences(measured(4), paper())
    assert record.items() >= measured(4, 10.0).items()
    assert json.loads(format_json([record])) == [record]
    assert list(record) == list(without)
    assert {value for name, value in without.items() if name.startswith("published_")} == {None}
    assert (without["throughput_ratio"], without["differs"]) == (None, [])
