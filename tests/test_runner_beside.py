"""The published row beside a point, what differs between the two, and the table and records that tell it."""

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
from ipu_results._util.text import format_json
from ipu_results.errors import WarehouseError
from ipu_results.runner.beside import (
    PAPER,
    SETUPS,
    Published,
    beside,
    canonical,
    companions,
    differences,
    published_rows,
    rows_of,
)
from ipu_results.runner.scene import PREPROCESSING
from ipu_results.runner.summary import interval, records, run_names, summary

COMMITTED = Path(__file__).resolve().parent.parent / "warehouse"
NETWORK = "resnext101-32x4d"
XEON = "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"
BATCHES = (2, 4, 6, 8, 10, 12)
REASON = "the interval is 40 % of the median"


@cache
def rows(model: str = NETWORK) -> tuple[Published, ...]:
    """Of the committed results; the warehouse as a whole is opened in one test only."""
    with duckdb.connect() as connection:
        for name in ("results", "flags"):
            connection.execute(f"CREATE VIEW {name} AS FROM '{COMMITTED / f'{name}.parquet'}'")
        return tuple(rows_of(connection, model))


def paper(batch: int = 4) -> Published:
    return next(row for row in rows() if row.table_name == PAPER and row.batch_size == batch)


def measured(batch: int = 4, throughput: float = 10.0, **more: Any) -> dict[str, Any]:
    """A point of a CPU, its interval 5 % to either side."""
    latency = batch / throughput * 1000
    point = {
        "run_id": "20261121-134501-onnxruntime-cpu-3fa2",
        "batch_size": batch,
        "sessions": 2,
        "throughput": throughput,
        "latency_ms": latency,
        "latency_ms_low": latency * 0.95,
        "latency_ms_high": latency * 1.05,
        "interval_confidence": 0.97,
        "latency_kind": "amortised",
        "latency_isolated_ms": latency * 1.125,
        "latency_p99_ms": None,
        "suspect": None,
        "origin": "measured",
        "model": NETWORK,
        "platform": XEON,
        "chip_count": None,
        "sdk_version": None,
        "framework": "ONNX Runtime",
        "compute_precision": "fp32",
        "item": "image",
        "power_w": None,
        "power_scope": None,
        "calibration_id": None,
        "backend": "onnxruntime",
        "backend_version": "1.31.0",
        "device": "cpu",
        "pipeline": "overlap",
        "preprocessing": "centre crop 224 × 224 without resize, ImageNet normalisation",
        "model_precision": "fp32",
        "weights": "random-he-seed0",
        "cosine": 1.0,
        "top1": 1.0,
    }
    return {**point, **more}


def emulated(batch: int = 4, throughput: float = 2000.0, **more: Any) -> dict[str, Any]:
    """A point of the emulated C2, its band 5 % to either side."""
    told = {
        "run_id": "20261121-134701-emulator-c2-11aa",
        "origin": "emulated",
        "interval_confidence": None,
        "platform": "C2",
        "chip_count": 2,
        "framework": "emulator",
        "compute_precision": "fp16",
        "model_precision": "fp16",
        "backend": "emulator",
        "device": "c2",
        "calibration_id": "2b2f9c01",
    }
    return measured(batch, throughput, **{**told, **more})


def alike(row: Published, **more: Any) -> tuple[dict[str, Any], Published]:
    """A point and a row that share everything: the paper's, with the weights told as well."""
    told = replace(row, setup={**row.setup, "weights": "pretrained"})
    point = measured(
        row.batch_size or 0,
        platform="C2",
        chip_count=2,
        framework="PopART",
        sdk_version="1.0.136",
        compute_precision="Mixed",
        model_precision="fp16",
        weights="pretrained",
    )
    return {**point, **more}, told


# ---- rows


@pytest.mark.parametrize("name", [NETWORK, "ResNeXt101-32x4d", "RESNEXT101_32X4D"])
def test_every_name_of_a_network_finds_the_papers_rows(name: str) -> None:
    found = [(row.batch_size, row.throughput, row.latency_ms) for row in rows(name) if row.table_name == PAPER]
    assert found == [
        (2, 1474.16, 1.36),
        (4, 2063.03, 1.94),
        (6, 2131.01, 2.82),
        (8, 2409.79, 3.32),
        (10, 2421.82, 4.13),
        (12, 2526.35, 4.75),
    ]


def test_local_runs_are_no_published_rows() -> None:
    with duckdb.connect() as connection:
        for name in ("results", "flags"):
            connection.execute(f"CREATE TABLE {name} AS FROM '{COMMITTED / f'{name}.parquet'}'")
        origin = "CASE batch_size WHEN 2 THEN 'measured' WHEN 4 THEN 'emulated' ELSE origin END"
        connection.execute(f"UPDATE results SET origin = {origin} WHERE table_name = '{PAPER}'")
        found = [row.batch_size for row in rows_of(connection, NETWORK) if row.table_name == PAPER]
    assert found == [6, 8, 10, 12]


@pytest.mark.parametrize("name", ["my-own", "<script>", ""])
def test_nothing_was_published_of_an_unknown_network(name: str) -> None:
    assert canonical(name) is None
    assert rows(name) == ()


def test_a_printed_name_that_stands_for_two_networks_is_told_apart() -> None:
    def machines(name: str) -> set[tuple[str, str | None]]:
        return {(row.platform, row.framework) for row in rows(name) if row.model == "ResNeXt101"}

    assert machines(NETWORK) == {("C2", "PopART"), ("IPU-M2000", "TensorFlow1")}
    assert machines("resnext101-32x8d") == {("IPU-M2000", "PyTorch")}


def test_rows_are_of_published_inference_alone() -> None:
    assert len(rows()) > 40
    assert all(row.throughput and row.batch_size and row.publisher for row in rows())
    assert {row.platform for row in rows()} == {"C2", "IPU-M2000", "1x A100-40GB (DGX A100)"}


def test_flags_of_severity_error_are_counted() -> None:
    flagged = {(row.model, row.batch_size, row.errors) for row in rows("EfficientDet-D0") if row.errors}
    assert ("EfficientDet-D0", 16, 1) in flagged
    assert not any(row.errors for row in rows() if row.table_name == PAPER)


def test_the_setup_of_the_paper_is_that_of_its_rows() -> None:
    six = [row for row in rows() if row.table_name == PAPER]
    assert {row.chip_count for row in six} == {SETUPS[PAPER]["sessions"]}
    implied = [row.batch_size / row.throughput * 1000 for row in six]  # type: ignore[operator]
    assert SETUPS[PAPER]["latency_kind"] == "amortised"
    assert [row.latency_ms for row in six] == pytest.approx(implied, rel=0.005)
    assert SETUPS[PAPER]["preprocessing"] == PREPROCESSING.format(height=224, width=224)


def test_a_built_warehouse_gives_the_same_rows(warehouse: Path) -> None:
    def known(found: Sequence[Published]) -> list[tuple[object, ...]]:
        return sorted((row.result_id, row.throughput, row.errors) for row in found)

    assert known(published_rows(warehouse, NETWORK)) == known(rows())


def test_without_a_warehouse_the_error_says_how_to_build_one(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="holds no dataset; build it with: ipu-results ingest"):
        published_rows(tmp_path, NETWORK)


# ---- what differs


def test_what_differs_for_a_cpu() -> None:
    assert differences(measured(), paper()) == [
        f"device: {XEON} / C2",
        "chips: not known / 2",
        "weights: random-he-seed0 / not told by the source",
        "model precision: fp32 / fp16",
        "compute precision: fp32 / mixed",
        "framework: ONNX Runtime / PopART",
    ]


def test_what_differs_for_the_emulated_card() -> None:
    assert differences(emulated(pipeline="serial"), paper()) == [
        "figures: emulated, not measured / published",
        "weights: random-he-seed0 / not told by the source",
        "compute precision: fp16 / mixed",
        "pipeline: serial / overlap",
        "framework: emulator / PopART",
    ]


def test_nothing_differs_between_equals() -> None:
    assert differences(*alike(paper())) == []


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"platform": "IPU-M2000"}, "device: IPU-M2000 / C2"),
        ({"chip_count": 1}, "chips: 1 / 2"),
        ({"sessions": 4}, "sessions: 4 / 2"),
        ({"model": "my-own"}, "network: my-own / ResNeXt101-32x4d"),
        ({"weights": None}, "weights: not known / pretrained"),
        ({"preprocessing": "resized to 256"}, f"pre-processing: resized to 256 / {SETUPS[PAPER]['preprocessing']}"),
        ({"model_precision": "int8"}, "model precision: int8 / fp16"),
        ({"compute_precision": ""}, "compute precision: not known / mixed"),
        ({"latency_kind": "isolated"}, "latency: isolated / amortised"),
        ({"pipeline": "serial"}, "pipeline: serial / overlap"),
        ({"sdk_version": "3.3.0"}, "SDK: 3.3.0 / 1.0.136"),
        ({"sdk_version": None}, "SDK: not known / 1.0.136"),
        ({"power_w": 300.0, "power_scope": "wall"}, "power scope: wall / board"),
    ],
)
def test_one_thing_that_differs_is_the_only_one_listed(more: dict[str, Any], line: str) -> None:
    point, row = alike(paper())
    assert differences({**point, **more}, row) == [line]


def test_versions_of_different_software_are_not_compared() -> None:
    point, row = alike(paper(), framework="ONNX Runtime")
    assert differences(point, row) == ["framework: ONNX Runtime / PopART"]


def test_the_scope_of_power_matters_only_where_both_have_power() -> None:
    point, row = alike(paper(), power_w=300.0, power_scope="wall")
    assert differences(point, replace(row, efficiency=None)) == []
    assert differences({**point, "power_w": None}, row) == []
    assert differences({**point, "power_scope": "board"}, row) == []


def test_what_a_source_leaves_out_is_said_to_be_untold() -> None:
    row = next(one for one in rows() if one.platform == "IPU-M2000" and one.batch_size == 16)
    point = emulated(16, platform="IPU-M2000", chip_count=4, sessions=4)
    told = differences(point, row)
    assert "sessions: 4 / not told by the source" in told
    assert "latency: amortised / not told by the source" in told
    assert not [one for one in told if one.startswith(("device", "chips", "network", "compute precision"))]


def test_a_graph_compiler_belongs_to_the_framework() -> None:
    point = measured(256, platform="1x A100-40GB (DGX A100)", framework="TensorFlow1", compute_precision="tf32")
    found = {row.software: row for row in rows() if row.batch_size == 256 and row.computed_in == "TF32"}
    assert set(found) == {"TensorFlow1", "TensorFlow1, XLA"}
    assert beside(point, rows()) == found["TensorFlow1"]
    assert "framework: TensorFlow1 / TensorFlow1, XLA" in differences(point, found["TensorFlow1, XLA"])
    assert not [one for one in differences(point, found["TensorFlow1"]) if one.startswith("framework")]


# ---- which row


@pytest.mark.parametrize("batch", BATCHES)
def test_the_papers_row_of_the_same_batch_stands_beside_a_cpu(batch: int) -> None:
    shuffled = sorted(rows(), key=lambda row: row.result_id)
    assert beside(measured(batch), shuffled) == paper(batch)


def test_a_row_of_the_same_platform_comes_before_the_papers() -> None:
    found = beside(emulated(4, platform="IPU-M2000", chip_count=4, sessions=4), rows())
    assert found is not None
    assert (found.platform, found.throughput, found.latency_ms) == ("IPU-M2000", 4483.0, 2.66)


def test_the_papers_row_comes_before_one_that_is_more_alike() -> None:
    like = replace(paper(4), table_name="other", framework="ONNX Runtime", compute_precision="fp32", platform="CPU")
    assert len(differences(measured(4), like)) < len(differences(measured(4), paper(4)))
    assert beside(measured(4), [like, *rows()]) == paper(4)


def test_among_others_the_row_most_alike_is_taken() -> None:
    point = measured(128, platform="A100", chip_count=1, framework="TensorFlow1", compute_precision="tf32")
    for precision in ("TF32", "mixed"):
        found = beside({**point, "compute_precision": precision}, rows())
        assert found is not None
        assert found.compute_precision == precision


@pytest.mark.parametrize("batch", [1000, 3, 14])
def test_a_batch_that_nobody_published_has_no_row(batch: int) -> None:
    assert beside(measured(batch), rows()) is None


@given(st.lists(st.integers(0, 2), min_size=60, max_size=60), st.sampled_from((*BATCHES, 16, 128)))
def test_a_row_with_an_error_flag_stands_beside_nothing(errors: list[int], batch: int) -> None:
    flagged = [replace(row, errors=many) for row, many in zip(rows(), errors, strict=False)]
    found = beside(measured(batch), flagged)
    sound = [row for row in flagged if row.batch_size == batch and not row.errors]
    assert (found in sound) if sound else found is None
    assert all(row.errors == 0 for row in companions([measured(batch)], flagged))


def test_the_papers_whole_sweep_goes_with_one_of_its_rows() -> None:
    for batch in (4, 14):  # a row of it stands beside the point, and no row at all
        assert [row.table_name for row in companions([measured(batch)], rows())] == [PAPER] * 6
    assert companions([measured(4)], []) == []


def test_a_sweep_goes_as_a_whole_with_one_row_per_batch() -> None:
    found = companions([measured(64), measured(128, platform="1x A100-40GB (DGX A100)")], rows())
    batches = [(row.sweep, row.batch_size) for row in found]
    assert len(set(batches)) == len(batches)
    assert {row.platform for row in found} == {"IPU-M2000", "1x A100-40GB (DGX A100)"}
    for row in found:
        same = [one for one in rows() if one.sweep == row.sweep]
        assert {one.batch_size for one in same} == {batch for sweep, batch in batches if sweep == row.sweep}


# ---- the table


def cells(text: str, header: str) -> list[str]:
    """A column of the table, by where its header stands; figures are to the right of their column."""
    lines = text.splitlines()
    rule = next(at for at, line in enumerate(lines) if line.startswith("---") or line.lstrip().startswith("---"))
    spans = [(at, at + len(dash)) for dash, at in _dashes(lines[rule])]
    start, end = next(span for span in spans if lines[rule - 1][slice(*span)].strip() == header)
    body = lines[rule + 1 : lines.index("", rule)]
    return [line[start:end].strip() for line in body]


def _dashes(line: str) -> list[tuple[str, int]]:
    found, at = [], 0
    for part in line.split("  "):
        found.append((part, at))
        at += len(part) + 2
    return [one for one in found if one[0]]


def test_a_line_of_the_table_by_hand() -> None:
    text = summary([measured(4, 10.0)], rows())
    wanted = {
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
        "its /s": "2063.03",
        "its ms": "1.94",
        "ours / published": "0.00485",
    }
    assert {header: cells(text, header) for header in wanted} == {header: [value] for header, value in wanted.items()}
    assert text.startswith(f"{NETWORK} on {XEON}, onnxruntime 1.31.0, 20261121-134501-onnxruntime-cpu-3fa2\n")
    assert "p99" not in text
    assert "nominal coverage 0.97" in text
    assert "emulated" not in text


def test_p99_and_power_are_shown_where_they_are_known() -> None:
    text = summary([measured(4, latency_p99_ms=512.25, power_w=92.0), measured(8)], rows())
    assert cells(text, "ms (isolated p99)") == ["512.2", ""]
    assert cells(text, "W") == ["92", ""]


def test_emulated_figures_say_so_in_their_line_and_below() -> None:
    text = summary([emulated(2), emulated(4)], rows())
    assert cells(text, "figures") == ["emulated, not measured"] * 2
    assert "on C2 (emulated, not measured), emulator" in text
    assert "\nemulated, not measured: batch 2, 4; from, to: the prediction's band; calibration 2b2f9c01\n" in text
    assert "nominal coverage" not in text


def test_simulated_figures_are_called_neither_measured_nor_emulated() -> None:
    text = summary([measured(origin="simulated")], rows())
    assert cells(text, "figures") == ["simulated, not measured"]
    assert "emulated" not in text


def test_a_suspect_point_is_marked_with_its_reason_below() -> None:
    text = summary([measured(2), measured(4, suspect=REASON), measured(6)], rows())
    assert cells(text, "mark") == ["", "suspect", ""]
    assert f"\nsuspect: batch 4: {REASON}\n" in text
    assert " mark " not in summary([measured(2)], rows())


def test_what_differs_is_said_once_where_it_is_the_same() -> None:
    text = summary([measured(batch) for batch in BATCHES], rows())
    assert text.count("what differs (ours / qwant-c2-report-2020-02-28):") == 1
    assert text.count("  device: ") == 1


def test_points_that_differ_otherwise_are_told_apart_by_run_and_batch() -> None:
    text = summary([emulated(2), measured(2), measured(4)], rows())
    assert cells(text, "run") == ["emulator", "onnxruntime", "onnxruntime"]
    assert "what differs (ours / qwant-c2-report-2020-02-28), emulator, batch 2:" in text
    assert "what differs (ours / qwant-c2-report-2020-02-28), onnxruntime, batch 2, 4:" in text


def test_equals_are_said_to_be_equal() -> None:
    point, row = alike(paper())
    assert "no difference known from qwant-c2-report-2020-02-28" in summary([point], [row])


@pytest.mark.parametrize(
    ("note", "line"),
    [
        (None, "no published row of this model and batch without an error flag: batch 2"),
        ("warehouse: holds no dataset", "warehouse: holds no dataset"),
    ],
)
def test_without_published_rows_there_are_no_columns_for_them(note: str | None, line: str) -> None:
    text = summary([measured(2)], [], note)
    assert "its /s" not in text
    assert "ours / published" not in text
    assert text.splitlines()[-1] == line


def test_runs_have_the_shortest_name_that_tells_them_apart() -> None:
    cpu, gpu = measured(run_id="a"), measured(run_id="b", device="cuda")
    assert run_names([cpu, emulated(run_id="b")]) == {"a": "onnxruntime", "b": "emulator"}
    assert run_names([cpu, gpu]) == {"a": "onnxruntime cpu", "b": "onnxruntime cuda"}
    assert run_names([cpu, measured(run_id="b")]) == {"a": "a", "b": "b"}


@given(st.integers(1, 4096), st.floats(0.01, 1e6))
def test_the_interval_holds_its_throughput(batch: int, throughput: float) -> None:
    ends = interval(measured(batch, throughput))
    assert ends is not None
    assert ends[0] < throughput < ends[1]
    assert interval(measured(batch, throughput, latency_ms_low=None)) is None


# ---- records


def test_records_hold_the_point_and_the_row_flat() -> None:
    (found,) = records([measured(4, 10.0)], rows())
    assert found["published_platform"] == "C2"
    assert found["published_throughput"] == 2063.03
    assert found["published_document_id"] == "qwant-c2-report-2020-02-28"
    assert found["throughput_ratio"] == pytest.approx(10 / 2063.03)
    assert found["differs"] == differences(measured(4), paper())
    assert found.items() >= measured(4, 10.0).items()
    assert json.loads(format_json([found])) == [found]


def test_records_without_a_row_have_the_same_fields() -> None:
    with_row, without = records([measured(4), measured(14)], rows())
    assert list(with_row) == list(without)
    told = {name: value for name, value in without.items() if name.startswith("published_")}
    assert set(told.values()) == {None}
    assert (without["throughput_ratio"], without["differs"]) == (None, [])
