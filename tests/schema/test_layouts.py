"""Headers: how names are compared, what a unit is, and how a header that nearly fits is explained."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.record.normalise.fields import get_column
from ipu_results.record.read.text import clean, lift_footnote
from ipu_results.schema import table
from ipu_results.schema.vocabulary import (
    explain_mismatch,
    find_headers,
    normalise_header,
    parse_unit,
)

from tests.record.read.reading_support import (
    HEADERS,
    INFERENCE,
    LAYOUTS,
    MLPERF,
    OGB,
    TRAINING,
    WORDS,
)


def names(header: list[str]) -> list[str]:
    return [match.table for match in find_headers(header, LAYOUTS)]


@pytest.mark.parametrize(
    ("header", "normalised", "unit"),
    [
        ("Throughput (items/sec)", "throughput", "items/sec"),
        ("Latency [ms]", "latency", "ms"),
        ("Latency ( ms )", "latency", "ms"),
        ("Latency(ms)", "latency", "ms"),
        ("Batch-Size", "batch size", None),
        ("batch_size", "batch size", None),
        ("OGB-LSC 2022 Ranking", "ogb lsc 2022 ranking", None),
        ("Latency (ms) per batch", "latency (ms) per batch", None),
        ("Latency ()", "latency", ""),
        ("", "", None),
    ],
)
def test_name_and_unit_of_a_header(header: str, normalised: str, unit: str | None) -> None:
    assert (normalise_header(header), parse_unit(header)) == (normalised, unit)


def test_each_header_of_the_page_matches_its_table() -> None:
    assert {tuple(header): names(header) for header in HEADERS.values()} == {
        tuple(OGB): ["ogb_lsc"],
        tuple(TRAINING): ["bow_training", "pod_training"],
        tuple(INFERENCE): ["bow_inference", "pod_inference"],
        tuple(MLPERF): ["mlperf_v2_training"],
        tuple(HEADERS["pod_time_to_result"]): ["pod_time_to_result"],
    }


@given(st.permutations(INFERENCE))
def test_order_of_the_names_does_not_matter(header: list[str]) -> None:
    assert names(header) == ["bow_inference", "pod_inference"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (TRAINING[1:], "the header lacks 'Model'"),
        ([*TRAINING, "Power"], "the header has unknown 'Power'"),
        ([*TRAINING[:-1], "Speed"], "the header lacks 'Throughput' and has unknown 'Speed'"),
        ([*TRAINING, "Model"], "the header repeats 'Model'"),
        ([*TRAINING, ""], "the header has a column without a name"),
        *((other, None) for other in ([], [""] * 9, ["Model", "Platform"], ["a", "b", "c"])),
    ],
)
def test_nearly_known_header_is_explained(header: list[str], message: str | None) -> None:
    assert names(header) == []
    assert explain_mismatch(header, LAYOUTS) == message


@given(st.lists(st.sampled_from([*INFERENCE, "Other", ""]), max_size=12))
def test_header_with_three_known_names_fits_or_is_explained(header: list[str]) -> None:
    known = {normalise_header(name) for name in header} & {
        normalise_header(name) for name in INFERENCE
    }
    if len(known) >= 3:
        assert bool(names(header)) != bool(explain_mismatch(header, LAYOUTS))


def test_every_header_has_each_field_once() -> None:
    for header in WORDS.table_headers:
        fields = [field for _, field in header.fields]
        assert len(set(fields)) == len(fields), header.table
        assert [header.field_of(name.upper()) for name in header.names] == fields


def test_every_column_of_a_sweep_point_is_in_one_table() -> None:
    # A header of a local run's points is a column of `results` or of `run_points`, and only keys
    # are in both.
    headers = WORDS.header_of("sweep-points", "sweep_points").names
    results, points = table("results").as_filled().names, table("run_points").names
    own = [get_column(name) for name in headers]
    assert [name for name in own if name not in (*results, *points)] == []
    assert {*points} - {*own} == {"run_id", "result_id", "document_id"}
    keys = {"run_id", "result_id", "document_id", "batch_size", "calibration_id"}
    assert {*points} & {*results} == keys
    assert WORDS.header_of("sweep-record", "runs").names == table("runs").names[:-2]


def test_headers_of_the_configurations_are_columns_of_their_table() -> None:
    headers, columns = (
        WORDS.header_of("configurations", "configurations").names,
        table("configurations").names,
    )
    assert [name for name in columns if name not in headers] == [
        "result_id",
        "latency_basis",
        "document_id",
    ]
    assert [name for name in columns if name in headers] == list(headers)


# --- text of a cell


@given(st.text())
def test_cleaning_is_idempotent(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text("ab1,.*†²¹0⁶- ", max_size=12))
def test_footnote_mark_is_the_end_of_the_text_and_not_all_of_it(text: str) -> None:
    cell = clean(text)
    left, mark = lift_footnote(cell)
    assert cell.startswith(left)
    assert cell.endswith(mark)
    assert (left == "") == (cell == "")
    assert lift_footnote(left) == (left, "")


@pytest.mark.parametrize("text", ["*" * 50_000 + "x", "x" + " *" * 50_000 + "x", "²" * 50_000])
def test_long_runs_of_marks_end(text: str) -> None:
    assert "".join(lift_footnote(text)).replace(" ", "") == text.replace(" ", "")
