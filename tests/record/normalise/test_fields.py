"""What one cell fills: columns of `results`, figures with their units, and words that the
vocabulary must know.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import CatalogueError
from ipu_results.record.normalise import normalise
from ipu_results.record.normalise.fields import (
    CONVERTERS,
    NO_VALUE,
    CellContext,
    CellValues,
    check_field,
    convert_cell,
)
from ipu_results.record.normalise.passthrough import parse_text
from ipu_results.record.normalise.rows import convert_texts
from ipu_results.record.normalise.values import UnreadableCellError
from ipu_results.record.read.document import TextColumn
from ipu_results.schema.vocabulary import normalise_name

from tests.cases import every_case
from tests.record.read.reading_support import (
    GPT2,
    INFERENCE,
    TRAINING,
    UNET,
    WORDS,
    list_cells,
    list_results,
    make_document,
    normalise_page,
    read_page,
    rejections,
    training_page,
    with_cell,
)


def convert(field: str, text: str, unit: str | None = None) -> dict[str, Any]:
    """Return the columns that a cell of a strict table fills."""
    return dict(convert_cell(field, text, CellContext(WORDS, unit, True)).values)


# words


@every_case(__file__, "word")
def test_word_gets_its_canonical_name(field: str, text: str, values: dict[str, Any]) -> None:
    assert convert(field, text) == values


@pytest.mark.parametrize("field", ["platform", "chip"])
def test_name_with_a_cyrillic_letter_is_refused_where_any_word_is_kept(field: str) -> None:
    with pytest.raises(UnreadableCellError, match=r"has U\+0421, which looks like a Latin letter"):
        convert_cell(field, "С2", CellContext(WORDS, None, False))


@pytest.mark.parametrize("text", ["A\0100", "A10\ufe0f0", "\u202e001A", "20\u200b927"])
def test_text_with_a_character_that_shows_nothing_is_refused(text: str) -> None:
    with pytest.raises(UnreadableCellError, match="which shows nothing"):
        convert_cell("chip", text, CellContext(WORDS, None, False))


def test_chips_may_be_zero_in_computed_tables_alone() -> None:
    assert convert_cell("chip_count", "0", CellContext(WORDS, None, True, True)).values == {}
    with pytest.raises(UnreadableCellError, match="not a whole number from 1"):
        convert("chip_count", "0")


def test_blank_and_not_given_fill_nothing() -> None:
    for field in CONVERTERS:
        for text in ("", *WORDS.not_given["any"], *WORDS.not_given.get(field, ())):
            assert convert_cell(field, text, CellContext(WORDS, None, True)) is NO_VALUE


@every_case(__file__, "unknown_word")
def test_unknown_word_rejects_its_row(column: int, kind: str, text: str, message: str) -> None:
    row = with_cell(GPT2, column, text)
    normalised = normalise_page(row, GPT2)
    [rejected] = normalised.rejected
    assert rejections(normalised) == [(1, f"unknown-{kind}", message)]
    assert rejected.locator == f"bow_training, row 1, column {column + 1} ({TRAINING[column]})"
    assert rejected.raw == dict(zip(TRAINING, row, strict=True))
    assert [result["row_number"] for result in list_results(normalised)] == [2]


@pytest.mark.parametrize("key", ["platform", "model"])
def test_no_printed_name_has_two_meanings(key: str) -> None:
    names: list[str] = []
    for entry in WORDS.list_entries(key):
        printed = [entry[key], *entry.get("spellings", []), *entry.get("variants", {})]
        names += set(map(normalise_name, printed))
    assert len(set(names)) == len(names)


# figures


@every_case(__file__, "figure")
def test_figure_is_exact_after_a_recorded_factor(
    field: str, text: str, unit: str | None, value: float, figure: float, factor: float
) -> None:
    converted = convert_cell(field, text, CellContext(WORDS, unit, True))
    assert dict(converted.values)[field] == value
    assert (converted.figure, converted.factor) == (figure, factor)


def test_unit_of_a_rate_names_the_item() -> None:
    for unit in ("images/second", "IMAGES/S"):
        assert convert("throughput", "5", unit) == {"throughput": 5.0, "item": "image"}


@every_case(__file__, "unknown_unit")
def test_unknown_or_missing_unit_is_refused(field: str, unit: str | None, message: str) -> None:
    with pytest.raises(UnreadableCellError, match=message) as caught:
        convert(field, "5", unit)
    assert caught.value.reason == "unknown-unit"


def test_unit_of_a_count_in_the_header_rejects_every_row() -> None:
    header = ["Batch Size (k)" if name.startswith("Batch Size") else name for name in TRAINING]
    normalised = normalise_page(GPT2, with_cell(GPT2, 8, "7"), header=header)
    assert len(normalised.results) == 0
    message = "unknown unit 'k' for batch_size"
    assert rejections(normalised) == [(number, "unknown-unit", message) for number in (1, 2)]


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("minutes", "is not a field"),  # it follows from logs
        ("usable", "is not a field"),
        ("thruput", "t: 'thruput' is not a field; nearest: throughput"),
    ],
)
def test_header_that_fills_no_field_is_refused(field: str, message: str) -> None:
    with pytest.raises(CatalogueError, match=message):
        check_field(field, "t")


def test_unit_of_the_header_is_recorded_with_the_cell() -> None:
    row = with_cell(UNET, 9, "1,360")
    header = with_cell(INFERENCE, 9, "Latency (us)")
    normalised = normalise_page(row, header=header, name="bow_inference")
    [result] = list_results(normalised)
    assert result["latency_ms"] == 1.36
    cell = list_cells(normalised)[9]
    said = [cell[name] for name in ("column_name", "raw_text", "value", "unit", "factor")]
    assert said == ["latency_ms", "1,360", 1360.0, "us", 0.001]


@every_case(__file__, "unreadable")
def test_unreadable_figure_rejects_its_row_and_names_the_cell(column: int, text: str) -> None:
    normalised = normalise_page(GPT2, with_cell(GPT2, column, text))
    [rejected] = normalised.rejected
    place = f"bow_training, row 2, column {column + 1} ({TRAINING[column]})"
    assert (rejected.reason, rejected.locator) == ("unreadable-figure", place)
    assert repr(text) in rejected.message
    assert len(normalised.results) == 1


# whole rows


def test_footnote_is_told_with_the_place_of_its_cell() -> None:
    parsed = read_page(training_page(with_cell(GPT2, 8, "1,590<sup>2</sup>")))
    normalised = normalise(make_document("performance-page"), parsed, WORDS)
    marked = [cell for cell in list_cells(normalised) if "footnote" in cell["locator"]]
    place = "table 1, row 1, column 9 (Throughput (items/sec)), footnote 2"
    assert [cell["locator"] for cell in marked] == [place]


def test_item_in_the_variant_cell_overrides_that_of_the_model() -> None:
    [result] = list_results(normalise_page(["FastPitch", "frames/s", *GPT2[2:]]))
    assert (result["variant"], result["item"]) == ("frames/s", "frame")


def test_blank_figure_is_a_cell_without_a_value() -> None:
    normalised = normalise_page(UNET, header=INFERENCE, name="bow_inference")
    [result] = list_results(normalised)
    assert "latency_ms" not in result
    cell = list_cells(normalised)[9]
    assert cell["raw_text"] == ""
    assert cell["value"] is None


@pytest.mark.parametrize("field", sorted({*CONVERTERS, "dataset", "conditions"}))
def test_printed_text_never_becomes_null(field: str) -> None:
    kept = CONVERTERS.get(field) is CONVERTERS["repo"]  # in `cells`, or in a table of its own
    for text in ("8x4", "1.024", "1\u00a0024", "x", "?"):
        for context in (CellContext(WORDS, "ms", False), CellContext(WORDS, None, False, True)):
            with suppress(UnreadableCellError):
                converted = convert_cell(field, text, context)
                assert kept or converted.values or converted.figure is not None, text


NAN = float("nan")


@pytest.mark.parametrize(
    "lost",
    [
        None,
        NAN,
        CellValues({"batch_size": None}),
        CellValues({}, NAN),
        CellValues({"power_w": NAN}, 1.0),
    ],
)
def test_converter_that_loses_a_text_is_stopped_for_every_kind_of_document(lost: Any) -> None:
    converted = convert_texts(TextColumn((0, 1), ("", "8x4")), lambda _: lost)
    assert converted[0] is lost
    assert str(converted[1]) == "no value comes of '8x4'"


@pytest.mark.parametrize(
    "text", ["NaN", "nan", "inf", "1e400", "1_000", "١٢", "１２", "٣.٥", " 12", "0x10", "½", "TBD"]
)
@pytest.mark.parametrize("kind", ["integer", "double"])
def test_only_plain_digits_are_figures_of_a_table_that_is_published_as_it_is(
    kind: Any, text: str
) -> None:
    with pytest.raises(UnreadableCellError, match="is not"):
        parse_text(kind, text)


@given(
    st.sampled_from(sorted(CONVERTERS)),
    st.text(max_size=20),
    st.booleans(),
    st.sampled_from([None, "ms", "mins"]),
)
def test_any_text_is_converted_or_refused(
    field: str, text: str, strict: bool, unit: str | None
) -> None:
    with suppress(UnreadableCellError):
        converted = convert_cell(field, text, CellContext(WORDS, unit, strict))
        blank = {name for name, value in converted.values.items() if value is None}
        assert blank <= {"division"}
