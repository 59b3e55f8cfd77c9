"""Figures, durations and versions are parsed exactly; anything else is reported with its text."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.normalise.values import (
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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("37,112", "37112"),
        ("1,260,000", "1260000"),
        ("42029", "42029"),
        ("0.0719", "0.0719"),
        ("1.40", "1.40"),
        ("007", "7"),
        ("1,474.16", "1474.16"),
        ("9" * MAX_DIGITS, "9" * MAX_DIGITS),
    ],
)
def test_figures(text: str, value: str) -> None:
    assert parse_number(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    [
        "600,00",
        "60,0000",
        "4,4O7",
        "1,,000",
        ",100",
        "100,",
        "1.2.3",
        "1.",
        ".5",
        "-5",
        "+5",
        "1e5",
        "10^6",
        "10⁶",
        "1 590",
        "1'590",
        "~100",
        "16 16",
        "inf",
        "nan",
        "Infinity",
        "0x10",
        "1_000",
        "٣٧",
        "１２",
        "5\n",
        "",
        " 5",
        "1234,567",
        "9" * (MAX_DIGITS + 1),
        "0." + "3" * MAX_DIGITS,
    ],
)
def test_other_text_is_not_a_figure(text: str) -> None:
    with pytest.raises(UnreadableCellError) as caught:
        parse_number(text)
    assert caught.value.reason == "unreadable-figure"
    assert repr(text) in str(caught.value)


@given(st.integers(0, 10**MAX_DIGITS - 1))
def test_thousands_marks_do_not_change_a_figure(value: int) -> None:
    assert parse_number(f"{value:,}") == parse_number(str(value)) == value


@given(st.decimals(0, 10**9, places=5, allow_nan=False, allow_infinity=False))
def test_figure_is_unchanged_by_a_double(value: Decimal) -> None:
    printed = f"{value:,}"
    assert parse_number(printed) == value
    assert Decimal(repr(float(parse_number(printed)))) == value


@given(st.text("0123456789.,-eE+ O", max_size=10))
def test_any_text_is_a_figure_or_unreadable(text: str) -> None:
    try:
        value = parse_number(text)
    except UnreadableCellError:
        return
    assert value == Decimal(text.replace(",", ""))


@pytest.mark.parametrize("text", ["0", "1.5", "0.0", "-2", "2.01", "4x", "1" * 400])
def test_other_text_is_not_a_whole_number_from_one(text: str) -> None:
    with pytest.raises(UnreadableCellError, match=r"is not|more than"):
        parse_whole_number(text)


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("65,536", 65536), ("4.0", 4)])
def test_whole_numbers(text: str, value: int) -> None:
    assert parse_whole_number(text) == value


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("23h 43m", 85_380),
        ("11h 50m", 42_600),
        ("1d 2h 3m 4s", 93_784),
        ("1d2h", 93_600),
        ("45m", 2_700),
        ("90 s", 90),
        ("1.5s", Decimal("1.5")),
        ("0h 5m", 300),
        ("100h", 360_000),
    ],
)
def test_durations(text: str, seconds: Decimal) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "19.64", "43m 23h", "h", "23h43", "-1h", "1.5h", "5 min", "1h 1h", "9" * 10 + "h"]
)
def test_other_text_is_not_a_duration(text: str) -> None:
    assert parse_duration_s(text) is None


@given(st.integers(0, 99), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.sampled_from(["", " "]))
def test_durations_add_up(days: int, hours: int, minutes: int, seconds: int, gap: str) -> None:
    text = gap.join([f"{days}d", f"{hours}h", f"{minutes}m", f"{seconds}s"])
    assert parse_duration_s(text) == ((days * 24 + hours) * 60 + minutes) * 60 + seconds


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("SDK 3.3", "3.3"),
        ("SDK 2.4.0", "2.4.0"),
        ("SDK2.5", "2.5"),
        ("Poplar SDK 1.4", "1.4"),
        ("sdk 3", "3"),
        ("1.2.3", "1.2.3"),
        ("Pre-SDK2.5", None),
        ("SDK", None),
        ("3", None),
        ("SDK 3.3 beta", None),
        ("SDK 3.", None),
        ("SDK ３.３", None),
    ],
)
def test_sdk_versions(text: str, version: str | None) -> None:
    assert parse_sdk_version(text) == version


@given(st.lists(st.integers(0, 999), min_size=2, max_size=4))
def test_versions_keep_their_zeros(parts: list[int]) -> None:
    version = ".".join(map(str, parts))
    assert parse_sdk_version(f"SDK {version}") == parse_sdk_version(version) == version


def test_quality_is_a_figure_and_its_metric() -> None:
    assert parse_quality("0.0719 MAE") == (Decimal("0.0719"), "MAE")
    assert parse_quality("0.2562 MRR (test)") == (Decimal("0.2562"), "MRR (test)")


@pytest.mark.parametrize("text", ["0.0719", "MAE", "MAE 0.07", "0,07 MAE", "0.0719MAE", "75.90%"])
def test_quality_without_figure_or_metric_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableCellError, match="figure"):
        parse_quality(text)


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("75.90% classification", "classification"),
        ("0.72 Mask-LM accuracy", "Mask-LM accuracy"),
        ("classification", None),
        ("75.90%", None),
    ],
)
def test_metric_of_a_quality_target(text: str, metric: str | None) -> None:
    assert parse_target_metric(text) == metric


@pytest.mark.parametrize(("text", "printed_round"), [("2.0-2047", "2.0"), ("1.0-1025", "1.0")])
def test_round_of_an_mlperf_id(text: str, printed_round: str) -> None:
    assert parse_mlperf_round(text) == printed_round


@pytest.mark.parametrize(
    "text", ["2.0", "2.0-", "-2047", "2-2047", "SDK 2.0-2047", "2.0-20a7", "2.0-2047-1", "2.0-２０"]
)
def test_other_text_is_not_an_mlperf_id(text: str) -> None:
    with pytest.raises(UnreadableCellError) as caught:
        parse_mlperf_round(text)
    assert (caught.value.reason, str(caught.value)) == ("unknown-mlperf-id", f"{text!r} is not an MLPerf id")


# --- figures that we computed


@given(st.floats(0, allow_nan=False, allow_infinity=False))
def test_computed_figure_is_the_double_of_its_text(value: float) -> None:
    assert float(parse_derived_number(repr(abs(value)))) == abs(value)


@pytest.mark.parametrize(
    "text",
    ["", "-1.0", "+1", "nan", "inf", "1e999", "1,000", "1_0", " 1", "1 ", "1.", ".5", "1e", "٣", "9" * 26, "0x1"],
)
def test_other_text_is_not_a_computed_figure(text: str) -> None:
    with pytest.raises(UnreadableCellError, match="is not a figure"):
        parse_derived_number(text)
