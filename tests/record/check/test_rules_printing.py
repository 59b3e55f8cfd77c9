"""Rules about what the cells print and what surrounds a row, on rows of the performance page of
2023-07-04.
"""

from __future__ import annotations

from benchmarks.planted_errors import Tables
from tests.record.check import rules_support as real
from tests.record.check.rules_support import (
    change,
    change_results,
    find,
    find_brief,
    find_places,
    pick,
    without_header,
)

UNET = "bow_inference 32"
BERT_BASE = "bow_inference 8"


def test_blank_cell_under_a_printed_header() -> None:
    data = pick(UNET)
    # its variant is blank, too: it has none
    assert find_brief("R09", data) == ["warn bow_inference 32 latency_ms"]
    # a transcription of ours prints no header
    assert find("R09", without_header(data)) == []


def test_unit_that_is_not_the_columns() -> None:
    printed = pick(real.FASTPITCH)
    for text in ("sentences/sec", "in frames / second", "clips/s, packed"):
        [flag] = find("R10", change(printed, real.FASTPITCH, variant=text))
        assert flag[0] == "error"
    # a slash alone is not a rate: `TF2 w/Keras`
    assert find("R10", pick(real.EFFICIENTDET)) == []


def print_figures(**figures: str) -> Tables:
    """Print throughputs in rows 51 and 52 (ViT), 53 (MAE) and 54 (DINO)."""
    data = pick(*(f"bow_training {name[1:]}" for name in figures))
    for name, figure in figures.items():
        data = change(data, f"bow_training {name[1:]}", throughput=figure)
    return data


def test_repeated_figure_names_the_first_row_and_counts_the_others() -> None:
    flags = find("R14", print_figures(_51="7,608", _52="7608", _54="7,608", _55="7,608"))
    named = [message.partition(": ")[2] for *_, message, _ in flags]
    first = "bow_training row 51 (ViT, Bow Pod16) and 1 more"
    other = "bow_training row 54 (DINO, Bow Pod16) and 1 more"
    assert named == [other, other, first, first]


def test_short_figures_and_related_rows_may_repeat() -> None:
    for data in (
        print_figures(_51="97", _54="97"),
        print_figures(_51="9,000", _54="9,000"),
        print_figures(_51="0.077", _54="0.077"),
        print_figures(_51="7,608", _52="7,608"),
    ):
        assert find("R14", data) == []
    data = print_figures(_51="7,608", _54="7,608")
    is_first = data["results"]["row_number"] == 51
    elsewhere = data["results"]["document_id"].where(is_first, "another")
    assert find("R14", change_results(data, document_id=elsewhere)) == []


def test_name_variants() -> None:
    assert find_brief("R16", pick(real.RESNET_256[0], "mlperf_v2_training 2-3")) == [
        "info bow_inference 12 model_printed ResNet-50 v1.5",
        "info mlperf_v2_training 2 model_printed ResNet-50 v1.5",
    ]
    flags = find_brief("R16", pick(real.EFFICIENTDET, real.FASTSPEECH))
    assert flags == ["info bow_inference 27 framework TensorFlow2"]
    assert find("R16", pick(*real.RESNET_256, real.TGN, real.VIT, real.RESNEXT)) == []


def test_lost_trailing_zero_and_thousands_mark() -> None:
    zero = "has {} of the column's usual 2 decimals: a trailing zero is lost"
    assert find("R19", pick(BERT_BASE, real.FASTSPEECH)) == [
        ("info", "bow_inference 8", "latency_ms", f"0.6 {zero.format(1)}", "0.60")
    ]
    printed = {"throughput": "28069", "latency_ms": "1141"}
    bare = change(pick(BERT_BASE, real.FASTSPEECH), BERT_BASE, **printed)
    mark = "28069 has no thousands mark, other figures of the column have one"
    assert find("R19", bare) == [
        ("info", "bow_inference 8", "latency_ms", f"1141 {zero.format(0)}", "1141.00"),
        ("info", "bow_inference 8", "throughput", mark, "28,069"),
    ]
    assert find("R19", change(pick(BERT_BASE), BERT_BASE, **printed)) == []
    assert find("R19", without_header(bare)) == []


def test_batch_of_packs() -> None:
    row = "bow_training 1"
    assert find_places("R27", pick(row)) == [row]
    assert find("R27", change(pick(row), row, variant="SL128, unpacked")) == []
    assert find("R27", change(pick(row), row, batch_size="")) == []
