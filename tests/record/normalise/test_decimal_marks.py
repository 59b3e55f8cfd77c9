"""Decimal commas are read where they are proved, and a cell that is not one figure is quarantined."""

from __future__ import annotations

import pytest
from ipu_results.record.normalise.decimal_mark import DecimalMark, find_decimal_marks

from tests.cases import every_case
from tests.record.read.reading_support import (
    INFERENCE,
    OGB,
    UNET,
    WORDS,
    list_results,
    normalise_page,
    normalise_table,
    page_html,
    read_page,
    rejections,
    table_html,
)

OGB_ROW = [
    "PCQM4Mv2",
    "GPS++",
    "Bow Pod16",
    "SDK 3.0",
    "TensorFlow2",
    "14,000",
    "23h 43m",
    "0.0719 MAE",
    "First",
]


@every_case(__file__, "commas")
def test_commas_are_decimal_only_where_proved(
    texts: list[str], throughput: str, values: list[float], rejected: list[int]
) -> None:
    rows = [
        [*UNET[:6], str(number), UNET[7], throughput, text]
        for number, text in enumerate(texts, start=1)
    ]
    normalised = normalise_page(*rows, header=INFERENCE, name="bow_inference")
    assert [result["latency_ms"] for result in list_results(normalised)] == values
    assert [(number, reason) for number, reason, _ in rejections(normalised)] == [
        (number, "unreadable-figure") for number in rejected
    ]
    if throughput == "1,920" and rejected:
        assert "'1,920' can be read in two ways" in rejections(normalised)[0][2]


def test_proof_in_a_row_that_cannot_be_read_makes_its_table_ambiguous() -> None:
    row = [*UNET[:6], "1", UNET[7], "7", "1,360"]
    document = read_page(page_html(table_html(INFERENCE, [row, [*row[:8], "0,920"]])))
    [table] = document.tables
    tables = [(table, WORDS.header_of("performance-page", table.name))]
    marks = find_decimal_marks(tables, document.problems, "en")
    assert marks[table.name, INFERENCE[-1]] is DecimalMark.UNCLEAR
    assert find_decimal_marks(tables, language="en") == {}


@pytest.mark.parametrize(("language", "marks"), [("en", []), ("", [INFERENCE[-1]])])
def test_lost_digit_beside_a_point_is_doubtful_without_a_language(
    language: str, marks: list[str]
) -> None:
    rows = [[*UNET[:6], "1", UNET[7], "0.5", text] for text in ("1,474", "2,58")]
    document = read_page(page_html(table_html(INFERENCE, rows)))
    tables = [(table, WORDS.header_of("performance-page", table.name)) for table in document.tables]
    assert [name for _, name in find_decimal_marks(tables, language=language)] == marks


@pytest.mark.parametrize(
    "text",
    [
        "7.19 × 10⁻² MAE",
        "7.19 x 10^-2 MAE",
        "7.19 e-2 MAE",
        "1 234 MAE",
        "0.07 ± 0.01",
        "0.07 MAE ± 0.01",
        "0.07 – 0.08 MAE",
        "0.07 to 0.08 MAE",
        "0.07 (0.06-0.08) MAE",
        "0.07 +/- 0.01 MAE",
        "1.2 million MAE",
        "0.07 MAE 824,",
        "0.07 MAE 8; 9",
    ],
)
def test_metric_cell_that_is_not_one_figure_rejects_its_row(text: str) -> None:
    normalised = normalise_table(
        "graphcore-performance", "ogb_lsc", OGB, OGB_ROW, [*OGB_ROW[:7], text, OGB_ROW[8]]
    )
    assert [result["quality_value"] for result in list_results(normalised)] == [0.0719]
    assert [(number, reason) for number, reason, _ in rejections(normalised)] == [
        (2, "unreadable-figure")
    ]
