"""From rows to results: which belong together, which are duplicates, which contradict each other,
and their ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipu_results.errors import DamagedDocumentError
from ipu_results.record.normalise import NormalisedDocument, normalise
from ipu_results.record.normalise.join import list_keys
from ipu_results.record.read.document import MetadataItem, ParsedDocument, ReadProblem, SourceTable

from tests.record.read.reading_support import (
    BATCHES,
    FIGURES,
    GPT2,
    INFERENCE,
    RESNET,
    TGN,
    TRAINING,
    UNET,
    WORDS,
    list_cells,
    list_numbers,
    list_results,
    make_document,
    make_table,
    normalise_page,
    rejections,
    with_cell,
)

LATENCY, THROUGHPUT, EFFICIENCY = FIGURES.values()
NAMES = ("Latency (ms)", "Throughput (images/second)", "Energy efficiency (images/second/watt)")


def make_part(number: int, figures: Sequence[str], batches: Sequence[str] = BATCHES) -> SourceTable:
    """Make a table of the paper; of the third its caption says the unit."""
    caption = NAMES[number - 1]
    rows = list(zip(batches, figures, strict=True))
    name = caption.removesuffix(" (images/second/watt)")
    return make_table(f"qwant_table_{number}", ["Batch size", name], rows, caption)


PAPER = [make_part(number, figures) for number, figures in FIGURES.items()]
METADATA = (
    MetadataItem("Platform", "C2", "line 1"),
    MetadataItem("Framework", "PopART", "line 2"),
    MetadataItem("Batch per chip", "half of the batch size", "line 3"),
    MetadataItem("Something else", "x", "line 4"),
)


def normalise_paper(
    *parts: SourceTable, **metadata: tuple[MetadataItem, ...]
) -> NormalisedDocument:
    return normalise(make_document("inference-paper"), ParsedDocument(parts, **metadata), WORDS)


def count_fates(normalised: NormalisedDocument) -> Counter[tuple[str, int]]:
    """Count the fates of every source row."""
    rejected = [(row.table_name, row.row_number) for row in normalised.rejected]
    return Counter([*list_keys(normalised.source_rows), *rejected])


# the paper's three tables


def test_three_tables_make_six_results_with_eighteen_figures() -> None:
    normalised = normalise_paper(*PAPER)
    assert normalised.rejected == []
    results = list_results(normalised)
    columns = {"batch_size": BATCHES, "latency_ms": LATENCY, "throughput": THROUGHPUT}
    for name, texts in (columns | {"efficiency": EFFICIENCY}).items():
        assert [result[name] for result in results] == list(map(float, texts))
    assert {result["table_name"] for result in results} == {"qwant_c2"}
    for number in range(6):
        cells = list_cells(normalised, number)
        figures = [cell["table_name"] for cell in cells if cell["column_name"] != "batch_size"]
        assert figures == [table.name for table in PAPER]


def test_setup_holds_for_every_result_and_is_cited() -> None:
    normalised = normalise_paper(*PAPER, metadata=METADATA)
    for number, result in enumerate(list_results(normalised)):
        setup = [result[name] for name in ("platform", "chip_count", "framework")]
        assert setup == ["C2", 2, "PopART"]
        assert result["micro_batch_size"] * 2 == result["batch_size"]
        cells = [
            (cell["column_name"], cell["raw_text"], cell["locator"])
            for cell in list_cells(normalised, number)
            if cell["row_number"] is None
        ]
        assert cells == [
            ("platform", "C2", "line 1"),
            ("framework", "PopART", "line 2"),
            ("batch_per_chip", "half of the batch size", "line 3"),
        ]


def test_cells_of_a_large_table_stay_with_their_rows() -> None:
    """The square of the number of rows exceeds 32 bits."""
    batches = [str(number) for number in range(1, 46_500)]
    normalised = normalise_paper(make_part(1, batches, batches))
    results = normalised.results
    cells = normalised.cells.filter(pc.field("column_name") == "latency_ms")
    assert cells["result_id"].to_pylist() == results["result_id"].to_pylist()
    assert cells["value"].to_pylist() == results["latency_ms"].to_pylist()


def test_odd_batch_has_no_micro_batch() -> None:
    table = make_part(1, ["1.0"], ["3"])
    [result] = list_results(normalise_paper(table, metadata=METADATA))
    assert "micro_batch_size" not in result


def test_unreadable_setup_stops_the_document() -> None:
    chips = MetadataItem("Chips", "two", "line 9")
    with pytest.raises(DamagedDocumentError, match="line 9: Chips: 'two' is not a figure"):
        normalise_paper(*PAPER, metadata=(chips,))


def test_row_without_a_batch_is_rejected_and_the_others_are_joined() -> None:
    third = make_part(3, EFFICIENCY, (*BATCHES[:4], "", BATCHES[5]))
    normalised = normalise_paper(*PAPER[:2], third)
    assert rejections(normalised) == [(5, "missing-batch", "no batch size to join the tables on")]
    without = [row["batch_size"] for row in list_results(normalised) if "efficiency" not in row]
    assert without == [10]


def test_two_figures_for_one_batch_reject_all_rows_of_that_batch() -> None:
    first = make_part(1, (*LATENCY, "9"), (*BATCHES, "4"))
    normalised = normalise_paper(first, *PAPER[1:])
    rejected = [(number, reason) for number, reason, _ in rejections(normalised)]
    assert sorted(rejected) == [(2, "conflicting-rows")] * 3 + [(7, "conflicting-rows")]
    assert [result["batch_size"] for result in list_results(normalised)] == [2, 6, 8, 10, 12]


# duplicates and contradictions


def test_row_printed_twice_is_one_result_and_a_duplicate() -> None:
    normalised = normalise_page(GPT2, RESNET, GPT2, GPT2)
    ids = dict.fromkeys(normalised.source_rows["result_id"].to_pylist())
    assert list(ids) == normalised.results["result_id"].to_pylist()
    assert list_numbers(normalised, "accepted") == [1, 2]
    assert list_numbers(normalised, "duplicate") == [3, 4]
    assert len(list_cells(normalised)) == len(TRAINING)


@pytest.mark.parametrize("rows", [[0, 1], [1, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2]])
def test_one_configuration_with_different_figures_is_rejected(rows: list[int]) -> None:
    figures = ("1,590", "1,591", "7")
    printed = [with_cell(GPT2, 8, figures[row]) for row in rows]
    normalised = normalise_page(*printed, RESNET)
    [result] = list_results(normalised)
    assert result["row_number"] == len(rows) + 1
    assert [number for number, *_ in rejections(normalised)] == list(range(1, len(rows) + 1))
    [message] = {message for _, _, message in rejections(normalised)}
    assert message.startswith("bow_training row ")
    assert message.endswith(" have one configuration and different figures")


def test_rows_with_different_figures_of_a_page_are_not_joined() -> None:
    """A throughput in one row and a latency in another make one result of the paper, but not of a
    page.
    """
    cells = ["GPT2", "GPT2-Small", "Bow-2000", "SDK 3.3", "PyTorch", "", "4", "16.16"]
    normalised = normalise_page(
        [*cells, "100", ""], [*cells, "", "5.0"], header=INFERENCE, name="bow_inference"
    )
    assert len(normalised.results) == 0
    assert [reason for _, reason, _ in rejections(normalised)] == ["conflicting-rows"] * 2


def test_unreadable_rows_are_rejected() -> None:
    of_table = ReadProblem("bow_training", None, "line 1", "duplicate-table", "`ingest` reports it")
    of_row = ReadProblem("bow_training", 2, "line 9", "row-width", "8 cells", ("a", "b"))
    table = make_table("bow_training", TRAINING, [GPT2])
    parsed = ParsedDocument((table,), (of_row, of_table), language="en")
    [row] = normalise(make_document("performance-page"), parsed, WORDS).rejected
    told = (row.table_name, row.row_number, row.locator, row.reason, row.raw)
    assert told == ("bow_training", 2, "line 9", "row-width", ["a", "b"])


ROW = st.sampled_from(
    [
        GPT2,
        RESNET,
        TGN,
        with_cell(GPT2, 8, "7"),
        with_cell(TGN, 8, "4,4O7"),
        with_cell(GPT2, 0, "GPT5"),
        [""] * 8 + ["1"],
    ]
)


@given(st.lists(ROW, max_size=9))
def test_every_row_has_exactly_one_fate(rows: list[list[str]]) -> None:
    assert count_fates(normalise_page(*rows)) == {
        ("bow_training", number): 1 for number in range(1, len(rows) + 1)
    }


# ids


def test_ids_depend_on_neither_order_nor_figures() -> None:
    rows = [GPT2, RESNET, TGN]
    before = normalise_page(*rows).results["result_id"].to_pylist()
    changed = [[*row[:8], "77"] for row in reversed(rows)]
    assert normalise_page(*changed).results["result_id"].to_pylist() == before[::-1]
    assert len(set(before)) == 3


@settings(max_examples=25)
@given(st.permutations(range(len(INFERENCE))))
def test_neither_ids_nor_values_depend_on_the_order_of_columns(order: list[int]) -> None:
    packed = ["BERT-Large SL128", "SL128 packed", *UNET[2:]]
    rows = [UNET, packed, ["FastPitch", "frames/s", *UNET[2:]]]
    before = normalise_page(*rows, header=INFERENCE, name="bow_inference")
    shuffled = [[row[i] for i in order] for row in rows]
    after = normalise_page(*shuffled, header=[INFERENCE[i] for i in order], name="bow_inference")
    assert after.results.equals(before.results)


def get_id(
    row: Sequence[str] = GPT2, table: str = "bow_training", document: str = "a-document"
) -> str:
    parsed = ParsedDocument((make_table(table, TRAINING, [row]),), language="en")
    [result] = list_results(normalise(make_document("performance-page", document), parsed, WORDS))
    return str(result["result_id"])


@pytest.mark.parametrize(
    "changed",
    [
        {"row": with_cell(GPT2, 1, "")},
        {"row": with_cell(GPT2, 2, "Bow Pod64")},
        {"row": with_cell(GPT2, 5, "x")},
        {"row": with_cell(GPT2, 6, "8,193")},
        {"table": "pod_training"},
        {"document": "other"},
    ],
)
def test_id_is_that_of_every_build_and_of_no_other_word_table_or_document(
    changed: dict[str, Any],
) -> None:
    assert get_id() == "r20974619436811d8"
    assert get_id(**changed) != get_id()
