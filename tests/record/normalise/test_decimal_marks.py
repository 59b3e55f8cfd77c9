"""Decimal commas are read where they are proved, and a cell that is not one figure is quarantined."""

from __future__ import annotations

from ipu_results.record.normalise.decimal_mark import DecimalMark, find_decimal_marks

from tests.cases import every_case
from tests.record.read.reading_support import (
    INFERENCE,
    OGB,
    UNET,
    WORDS,
    list_results,
    make_table,
    normalise_page,
    normalise_table,
    page_html,
    read_page,
    rejections,
    table_html,
)

LATENCY = INFERENCE[-1]
OGB_ROW = "PCQM4Mv2|GPS++|Bow Pod16|SDK 3.0|TensorFlow2|14,000|23h 43m|0.0719 MAE|First".split("|")


@every_case(__file__, "commas")
def test_commas_are_decimal_only_where_proved(
    texts: list[str], throughput: str, values: list[float], rejected: list[int]
) -> None:
    rows = []
    for number, text in enumerate(texts, start=1):
        rows.append([*UNET[:6], str(number), UNET[7], throughput, text])
    normalised = normalise_page(*rows, header=INFERENCE, name="bow_inference")
    assert [result["latency_ms"] for result in list_results(normalised)] == values
    assert [number for number, *_ in rejections(normalised)] == rejected
    assert {reason for _, reason, _ in rejections(normalised)} <= {"unreadable-figure"}
    if throughput == "1,920" and rejected:
        assert "'1,920' can be read in two ways" in rejections(normalised)[0][2]


def find_marks(rows: list[list[str]], language: str, problems: bool) -> dict[str, DecimalMark]:
    """Find the decimal marks of the columns of a page, with the rows that cannot be read or without."""
    document = read_page(page_html(table_html(INFERENCE, rows)))
    tables = [(table, WORDS.header_of("performance-page", table.name)) for table in document.tables]
    marks = find_decimal_marks(tables, document.problems if problems else (), language)
    return {column: mark for (_, column), mark in marks.items()}


def test_proof_in_a_row_that_cannot_be_read_makes_its_table_ambiguous() -> None:
    row = [*UNET[:8], "7", "1,360"]
    rows = [row, [*row[:8], "0,920"]]
    assert find_marks(rows, "en", problems=True)[LATENCY] is DecimalMark.UNCLEAR
    assert find_marks(rows, "en", problems=False) == {}


def test_lost_digit_beside_a_point_is_doubtful_without_a_language() -> None:
    rows = [[*UNET[:8], "0.5", text] for text in ("1,474", "2,58")]
    assert find_marks(rows, "en", problems=False) == {}
    assert [*find_marks(rows, "", problems=False)] == [LATENCY]


def test_figure_with_thousands_points_does_not_prove_a_decimal_point() -> None:
    names = ("Batch Size", "Throughput (items/sec)")
    table = make_table("bow_training", names, [["1.234", "0,920"]])
    marks = find_decimal_marks([(table, WORDS.header_of("performance-page", "bow_training"))])
    assert marks["bow_training", names[0]] is DecimalMark.UNCLEAR
    assert marks["bow_training", names[1]] is DecimalMark.COMMA


@every_case(__file__, "not_one_figure")
def test_metric_cell_that_is_not_one_figure_rejects_its_row(text: str) -> None:
    row = [*OGB_ROW[:7], text, OGB_ROW[8]]
    normalised = normalise_table("graphcore-performance", "ogb_lsc", OGB, OGB_ROW, row)
    assert [result["quality_value"] for result in list_results(normalised)] == [0.0719]
    [(number, reason, _)] = rejections(normalised)
    assert (number, reason) == (2, "unreadable-figure")
