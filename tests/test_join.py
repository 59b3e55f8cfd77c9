"""From rows to results: which belong together, which are repeated, which contradict each other, and their ids."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipu_results.errors import DamagedDocumentError
from ipu_results.normalise import NormalisedDocument, normalise
from ipu_results.read import read_document
from ipu_results.read.document import MetadataItem, ParsedDocument, ReadProblem
from ipu_results.sources.catalogue import load_catalogue

from tests.reading_support import (
    GPT2,
    INFERENCE,
    RESNET,
    ROOT,
    TGN,
    TRAINING,
    UNET,
    WORDS,
    make_document,
    make_table,
    normalise_page,
    rejections,
)

BATCHES = ("2", "4", "6", "8", "10", "12")
LATENCY = ("1.36", "1.94", "2.82", "3.32", "4.13", "4.75")
THROUGHPUT = ("1474.16", "2063.03", "2131.01", "2409.79", "2421.82", "2526.35")
EFFICIENCY = ("6.51", "7.80", "7.87", "9.07", "9.68", "9.49")
PAPER = (
    make_table("qwant_table_1", ["Batch size", "Latency (ms)"], list(zip(BATCHES, LATENCY, strict=True))),
    make_table(
        "qwant_table_2", ["Batch size", "Throughput (images/second)"], list(zip(BATCHES, THROUGHPUT, strict=True))
    ),
    make_table(
        "qwant_table_3",
        ["Batch size", "Energy efficiency"],
        list(zip(BATCHES, EFFICIENCY, strict=True)),
        "Table 3. Energy efficiency (images/second/watt)",
    ),
)
METADATA = (
    MetadataItem("Platform", "C2", "line 1"),
    MetadataItem("Framework", "PopART", "line 2"),
    MetadataItem("Batch per chip", "half of the batch size", "line 3"),
    MetadataItem("Something else", "x", "line 4"),
)


def paper(reading: ParsedDocument) -> NormalisedDocument:
    return normalise(make_document("qwant-paper"), reading, WORDS)


def fates(normalised: NormalisedDocument) -> Counter[tuple[str, int]]:
    """Every source row, once for each fate that it has."""
    places = [place for result in normalised.results for place in (*result.accepted, *result.repeated)]
    places += [(rejected.table_name, rejected.row_number, rejected.locator) for rejected in normalised.rejected]
    return Counter((name, number) for name, number, _ in places)


# --- the paper's three tables


def test_three_tables_make_six_results_with_eighteen_figures() -> None:
    normalised = paper(ParsedDocument(PAPER))
    assert normalised.rejected == []
    told = [
        [
            str(result.values["batch_size"]),
            *(result.values[name] for name in ("latency_ms", "throughput", "efficiency")),
        ]
        for result in normalised.results
    ]
    figures = zip(BATCHES, LATENCY, THROUGHPUT, EFFICIENCY, strict=True)
    assert told == [[batch, *map(float, rest)] for batch, *rest in figures]
    assert {result.values["table_name"] for result in normalised.results} == {"qwant_c2"}
    assert [[place[0] for place in result.accepted] for result in normalised.results] == [
        ["qwant_table_1", "qwant_table_2", "qwant_table_3"]
    ] * 6
    assert sum(cell.column_name != "batch_size" for result in normalised.results for cell in result.cells) == 18


def test_setup_facts_hold_for_every_result_and_are_cited_as_cells() -> None:
    for result in paper(ParsedDocument(PAPER, metadata=METADATA)).results:
        assert (result.values["platform"], result.values["chip_count"], result.values["framework"]) == (
            "C2",
            2,
            "PopART",
        )
        assert result.values["micro_batch_size"] * 2 == result.values["batch_size"]
        assert [(cell.column_name, cell.raw_text, cell.locator) for cell in result.cells[6:]] == [
            ("platform", "C2", "line 1"),
            ("framework", "PopART", "line 2"),
            ("batch_per_chip", "half of the batch size", "line 3"),
        ]


def test_an_odd_batch_has_no_half() -> None:
    table = make_table("qwant_table_1", ["Batch size", "Latency (ms)"], [["3", "1.0"]])
    [result] = paper(ParsedDocument((table,), metadata=METADATA)).results
    assert "micro_batch_size" not in result.values


def test_a_fact_that_cannot_be_read_stops_the_document_naming_it() -> None:
    with pytest.raises(DamagedDocumentError, match=r"a-document: line 9: Chips: 'two' is not a figure"):
        paper(ParsedDocument(PAPER, metadata=(MetadataItem("Chips", "two", "line 9"),)))


def test_a_row_whose_batch_is_lost_is_rejected_and_the_others_are_joined() -> None:
    rows = [[batch if batch != "10" else "", text] for batch, text in zip(BATCHES, EFFICIENCY, strict=True)]
    third = make_table("qwant_table_3", ["Batch size", "Energy efficiency"], rows, PAPER[2].caption)
    normalised = paper(ParsedDocument((*PAPER[:2], third)))
    assert rejections(normalised) == [(5, "missing-batch", "no batch size to join the tables on")]
    assert [("efficiency" in result.values) for result in normalised.results] == [True] * 4 + [False, True]


def test_two_figures_for_one_batch_reject_all_rows_of_that_batch() -> None:
    again = make_table(
        "qwant_table_1", ["Batch size", "Latency (ms)"], [*zip(BATCHES, LATENCY, strict=True), ("4", "9")]
    )
    normalised = paper(ParsedDocument((again, *PAPER[1:])))
    assert sorted((rejected.table_name, rejected.row_number) for rejected in normalised.rejected) == [
        ("qwant_table_1", 2),
        ("qwant_table_1", 7),
        ("qwant_table_2", 2),
        ("qwant_table_3", 2),
    ]
    assert {rejected.reason for rejected in normalised.rejected} == {"conflicting-rows"}
    assert [result.values["batch_size"] for result in normalised.results] == [2, 6, 8, 10, 12]


# --- rows that are repeated or contradict each other


def test_a_row_printed_twice_is_one_result_and_a_repetition() -> None:
    normalised = normalise_page(GPT2, RESNET, GPT2, GPT2)
    assert [(result.accepted, result.repeated) for result in normalised.results] == [
        (
            [("bow_training", 1, "bow_training, row 1")],
            [("bow_training", 3, "bow_training, row 3"), ("bow_training", 4, "bow_training, row 4")],
        ),
        ([("bow_training", 2, "bow_training, row 2")], []),
    ]
    assert len(normalised.results[0].cells) == len(TRAINING)


@pytest.mark.parametrize("rows", [[0, 1], [1, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2]])
def test_one_configuration_with_different_figures_is_rejected_whole(rows: list[int]) -> None:
    printed = [[*GPT2[:8], figure] for figure in ("1,590", "1,591", "7")]
    normalised = normalise_page(*(printed[i] for i in rows), RESNET)
    assert [result.values["model"] for result in normalised.results] == ["ResNet-50 v1.5"]
    assert [number for number, *_ in rejections(normalised)] == list(range(1, len(rows) + 1))
    messages = {message for _, _, message in rejections(normalised)}
    assert len(messages) == 1
    assert re.fullmatch(
        r"bow_training row \d and bow_training row \d have one configuration and different figures", messages.pop()
    )


def test_rows_that_differ_in_one_printed_word_are_two_results() -> None:
    rows = [[*GPT2[:i], text, *GPT2[i + 1 :]] for i, text in ((1, ""), (2, "Bow Pod64"), (5, "x"), (6, "8,193"))]
    ids = [result.result_id for result in normalise_page(GPT2, *rows).results]
    assert len(set(ids)) == len(ids) == 5


def test_problems_of_the_reading_are_rejected_rows_and_lost_tables_are_not() -> None:
    problems = (
        ReadProblem("bow_training", 2, "line 9", "row-width", "8 cells under a header of 9", ("a", "b")),
        ReadProblem("bow_training", None, "line 1", "duplicate-table", "the table stands here again"),
    )
    reading = ParsedDocument((make_table("bow_training", TRAINING, [GPT2]),), problems)
    normalised = normalise(make_document("graphcore-performance"), reading, WORDS)
    assert [(r.table_name, r.row_number, r.locator, r.reason, r.raw) for r in normalised.rejected] == [
        ("bow_training", 2, "line 9", "row-width", ["a", "b"])
    ]


ROW = st.sampled_from([GPT2, RESNET, TGN, [*GPT2[:8], "7"], [*TGN[:8], "4,4O7"], ["GPT5", *GPT2[1:]], [""] * 8 + ["1"]])


@given(st.lists(ROW, max_size=9))
def test_every_row_has_exactly_one_fate(rows: list[list[str]]) -> None:
    assert fates(normalise_page(*rows)) == {("bow_training", number): 1 for number in range(1, len(rows) + 1)}


# --- identity


def ids_by_model(normalised: NormalisedDocument) -> dict[str, str]:
    return {result.values["model"]: result.result_id for result in normalised.results}


def test_ids_depend_on_neither_the_order_of_rows_nor_the_figures() -> None:
    before = ids_by_model(normalise_page(GPT2, RESNET, TGN))
    other_figures = [[*row[:8], "77"] for row in (TGN, GPT2, RESNET)]
    assert ids_by_model(normalise_page(*other_figures)) == before
    assert len(set(before.values())) == 3


@settings(max_examples=25)
@given(st.permutations(range(len(INFERENCE))))
def test_neither_ids_nor_values_depend_on_the_order_of_columns(order: list[int]) -> None:
    rows = [UNET, ["BERT-Large SL128", "SL128 packed", *UNET[2:]], ["FastPitch", "frames/s", *UNET[2:]]]
    before = normalise_page(*rows, header=INFERENCE, name="bow_inference").results
    shuffled = [[row[i] for i in order] for row in rows]
    after = normalise_page(*shuffled, header=[INFERENCE[i] for i in order], name="bow_inference").results
    assert [result.values for result in after] == [result.values for result in before]


def test_ids_depend_on_the_document_and_the_table() -> None:
    reading = ParsedDocument(
        (make_table("bow_training", TRAINING, [GPT2]), make_table("pod_training", TRAINING, [GPT2]))
    )
    ids = [
        result.result_id
        for document_id in ("one", "other")
        for result in normalise(make_document("graphcore-performance", document_id), reading, WORDS).results
    ]
    assert len(set(ids)) == 4
    assert all(re.fullmatch(r"[0-9a-f]{16}", result_id) for result_id in ids)


def test_an_id_is_the_same_in_every_build() -> None:
    assert normalise_page(GPT2).results[0].result_id == "20974619436811d8"


@pytest.fixture(scope="module")
def carried() -> list[NormalisedDocument]:
    documents = [document for document in load_catalogue(ROOT / "raw") if document.transcription_of is None]
    return [
        normalise(document, read_document(document.bytes(), WORDS.layouts, document.reader), WORDS)
        for document in documents
    ]


def test_no_row_of_the_carried_documents_is_rejected(carried: list[NormalisedDocument]) -> None:
    assert [rejected for normalised in carried for rejected in normalised.rejected] == []


def test_results_of_the_carried_documents_have_ids_of_their_own(carried: list[NormalisedDocument]) -> None:
    ids = [result.result_id for normalised in carried for result in normalised.results]
    assert len(set(ids)) == len(ids) > 500


def test_figures_of_the_carried_documents_are_the_printed_ones(carried: list[NormalisedDocument]) -> None:
    counts = {normalised.document.document_id: len(normalised.results) for normalised in carried}
    assert counts["graphcore-performance-2023-07-04"] == 248
    assert counts["qwant-c2-report-2020-02-28"] == 6
    for normalised in carried:
        for result in normalised.results:
            for cell in result.cells:
                if cell.value is not None and cell.factor == 1.0 and cell.raw_text[0].isdigit() and cell.unit != "s":
                    assert cell.value == float(cell.raw_text.replace(",", "").split(" ")[0])


def test_two_rows_of_a_page_are_never_one_result() -> None:
    """One with a throughput only, one with a latency only: on a page that is a contradiction, not a pair."""
    cells = ["GPT2", "GPT2-Small", "Bow-2000", "SDK 3.3", "PyTorch", "", "4", "16.16"]
    normalised = normalise_page([*cells, "100", ""], [*cells, "", "5.0"], header=INFERENCE, name="bow_inference")
    assert normalised.results == []
    assert [reason for _, reason, _ in rejections(normalised)] == ["conflicting-rows"] * 2
