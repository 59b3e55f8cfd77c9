"""Figures, durations and versions: parsed exactly, and anything else refused with its reason."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.record.normalise.values import (
    MAX_DIGITS,
    UnreadableCellError,
    parse_derived_number,
    parse_duration_s,
    parse_mlperf_round,
    parse_number,
    parse_quality,
    parse_sdk_version,
    parse_target_metric,
    parse_whole_number,
)

from tests.cases import every_case


@every_case(__file__, "number")
def test_number_is_exact(text: str, value: str) -> None:
    assert str(parse_number(text)) == value


@pytest.mark.parametrize("text", ["9" * (MAX_DIGITS + 1), "0." + "3" * (MAX_DIGITS + 2)])
def test_number_of_too_many_digits_is_refused(text: str) -> None:
    with pytest.raises(UnreadableCellError):
        parse_number(text)


@every_case(__file__, "not_a_number")
def test_unreadable_number_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(UnreadableCellError) as caught:
        parse_number(text)
    assert caught.value.reason == "unreadable-figure"
    assert repr(text) in str(caught.value)


@given(st.decimals(0, 10**9, places=5, allow_nan=False, allow_infinity=False))
def test_number_survives_the_conversion_to_a_double(value: Decimal) -> None:
    assert parse_number(f"{value:,}") == parse_number(str(value)) == value
    assert Decimal(repr(float(parse_number(f"{value:,}")))) == value


@given(st.text("0123456789.,-eE+ O", max_size=10))
def test_any_text_is_a_number_or_refused(text: str) -> None:
    with suppress(UnreadableCellError):
        assert parse_number(text) == Decimal(text.replace(",", ""))


def test_whole_number_starts_at_one() -> None:
    assert [parse_whole_number(text) for text in ("1", "65,536", "4.0")] == [1, 65536, 4]
    for text in ("0", "1.5", "-2", "4x", "1" * 400):
        with pytest.raises(UnreadableCellError, match=r"is not|more than"):
            parse_whole_number(text)


@every_case(__file__, "duration")
def test_duration_needs_units_in_order(text: str, seconds: Decimal | int | None) -> None:
    assert parse_duration_s(text) == seconds


@every_case(__file__, "sdk_version")
def test_sdk_version_keeps_its_zeros(text: str, version: str | None) -> None:
    assert parse_sdk_version(text) == version


def test_quality_is_split_into_figure_and_metric() -> None:
    assert parse_quality("0.2562 MRR (test)") == (Decimal("0.2562"), "MRR (test)")
    for text in ("0.0719", "MAE", "MAE 0.07", "0,07 MAE", "0.0719MAE", "75.90%"):
        with pytest.raises(UnreadableCellError, match="figure"):
            parse_quality(text)


def test_metric_of_a_quality_target() -> None:
    assert parse_target_metric("75.90% classification") == "classification"
    assert parse_target_metric("0.72 Mask-LM accuracy") == "Mask-LM accuracy"
    assert parse_target_metric("75.90%") is None


def test_round_of_an_mlperf_id() -> None:
    assert parse_mlperf_round("2.0-2047") == "2.0"
    for text in ("2.0-", "-2047", "2-2047", "SDK 2.0-2047", "2.0-20a7", "2.0-2047-1", "2.0-２０"):
        with pytest.raises(UnreadableCellError, match="is not an MLPerf id") as caught:
            parse_mlperf_round(text)
        assert caught.value.reason == "unknown-mlperf-id"


@given(st.floats(0, allow_nan=False, allow_infinity=False))
def test_computed_double_is_read_back_unchanged(value: float) -> None:
    assert float(parse_derived_number(repr(abs(value)))) == abs(value)


@pytest.mark.parametrize(
    "text", ["", "-1.0", "nan", "inf", "1e999", "1,000", "1_0", " 1", "1.", ".5", "٣", "9" * 26]
)
def test_computed_figure_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(UnreadableCellError, match="is not a figure"):
        parse_derived_number(text)
