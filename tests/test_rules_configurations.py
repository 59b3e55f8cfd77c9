"""Rules over the public configuration behind a row and over what the machine can do; the rows are the page's."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from ipu_results.check.rules import find_flags, load_identities
from ipu_results.check.rules.plausibility import compute_implied_work, flag_power_above_rating
from ipu_results.emulator.frontend import read_program
from ipu_results.networks import NAMES, build
from ipu_results.schema.vocabulary import load_vocabulary

from tests.rules_support import (
    BERT_LARGE,
    CLIP,
    DINO,
    EFFICIENTDET,
    FASTSPEECH,
    GPT2_TRAINING,
    RESNET_256,
    RESNEXT,
    TGN,
    configuration,
    dataset,
    found,
    frame,
    rows,
)

ON_HOST = "generated (on host)"
OF_DINO = configuration(
    DINO[0],
    "v3.3.0 vision/dino/pytorch/benchmarks.yml pytorch_dino_train_real_pod16",
    "likely",
    micro_batch_size=2,
    replicas=2,
    gradient_accumulation=64,
    global_batch_from_config=256,
    batch_agrees=False,
)
OF_CLIP = configuration(
    CLIP[0],
    "v3.3.0 multimodal/CLIP/pytorch/benchmarks.yml pytorch_clip_vit_b_32_train_gen_pod16",
    "likely",
    micro_batch_size=46,
    replicas=1,
    gradient_accumulation=15,
    global_batch_from_config=690,
    batch_agrees=False,
    data_fed=ON_HOST,
    dataset_agrees=False,
)
OF_GPT2 = configuration(
    GPT2_TRAINING[0],
    "v3.3.0 nlp/gpt2/pytorch/benchmarks.yml pytorch_gpt2_medium_train_gen_pod16",
    micro_batch_size=1,
    replicas=2,
    gradient_accumulation=4096,
    global_batch_from_config=8192,
    batch_agrees=True,
    data_fed="generated",
    dataset_agrees=False,
)
OF_FASTSPEECH = configuration(
    FASTSPEECH[1],
    "v3.1.0 speech/fastspeech2/tensorflow2/benchmarks.yml tf2_fastspeech2_fp16_infer_gen_pod4",
    global_batch_from_config=16,
    batch_agrees=True,
    latency_basis="per-item",
)
CLIP_COMMAND = (
    "pytorch_clip_vit_b_32_train_gen_pod16 of multimodal/CLIP/pytorch/benchmarks.yml, graphcore/examples v3.3.0 "
    "(likely match)"
)


def test_batch_against_the_configuration() -> None:
    assert found("R13", DINO + CLIP, configurations=[OF_DINO, OF_CLIP]) == [
        (
            "warn",
            "bow_training 54",
            "batch_size",
            "prints batch 3200; pytorch_dino_train_real_pod16 of vision/dino/pytorch/benchmarks.yml, "
            "graphcore/examples v3.3.0 (likely match) gives 256 = 2 × 2 × 64",
            "256",
        ),
        ("warn", "bow_training 64", "batch_size", f"prints batch 795; {CLIP_COMMAND} gives 690 = 46 × 1 × 15", "690"),
    ]


def test_a_batch_that_only_the_configuration_names_as_a_whole() -> None:
    alone = {**OF_CLIP, "micro_batch_size": None, "replicas": None, "gradient_accumulation": None}
    [(_, _, _, message, _)] = found("R13", CLIP, configurations=[alone])
    assert message.endswith("gives 690")


@pytest.mark.parametrize(
    "change",
    [
        {"match_confidence": "weak"},
        {"match_confidence": None},
        {"global_batch_from_config": 795},
        {"global_batch_from_config": None},
        {"result_id": None},
    ],
)
def test_what_says_nothing_against_a_batch(change: dict[str, object]) -> None:
    assert found("R13", CLIP, configurations=[{**OF_CLIP, **change}]) == []
    assert found("R13", TGN, configurations=[{**OF_CLIP, "result_id": TGN[0].result_id}]) == []


def test_data_against_the_configuration() -> None:
    assert found("R15", GPT2_TRAINING + CLIP, configurations=[OF_GPT2, OF_CLIP]) == [
        (
            "info",
            "bow_training 27",
            "dataset",
            "prints Wikipedia; pytorch_gpt2_medium_train_gen_pod16 of nlp/gpt2/pytorch/benchmarks.yml, "
            "graphcore/examples v3.3.0 (exact match) feeds: generated",
            "generated",
        ),
        ("info", "bow_training 64", "dataset", f"prints c3m; {CLIP_COMMAND} feeds: {ON_HOST}", ON_HOST),
    ]


@pytest.mark.parametrize("change", [{"dataset_agrees": True}, {"dataset_agrees": None}, {"match_confidence": "weak"}])
def test_what_says_nothing_against_a_dataset(change: dict[str, object]) -> None:
    assert found("R15", GPT2_TRAINING, configurations=[{**OF_GPT2, **change}]) == []
    assert found("R15", TGN, configurations=[{**OF_GPT2, "result_id": TGN[0].result_id}]) == []


def test_a_latency_per_item_is_a_fact_where_the_configuration_says_so() -> None:
    told, *others = found("R01", FASTSPEECH + EFFICIENTDET, configurations=[OF_FASTSPEECH])
    assert told == (
        "error",
        "bow_inference 35",
        "latency_ms",
        "0.25 batches in flight: throughput 4354 × latency 0.92 ms / batch 16; 4.01 items, one item on each chip; the "
        "printed value is per item, as the script of speech/fastspeech2/tensorflow2/benchmarks.yml, graphcore/examples "
        "v3.1.0, computes it: at least 3.67 ms per batch",
        "at least 3.67",
    )
    assert len(others) == 3
    assert all("if the printed value is per item" in message for *_, message, _ in others)
    other_basis = found("R01", FASTSPEECH, configurations=[{**OF_FASTSPEECH, "latency_basis": "per-batch"}])
    assert all("if the printed value is per item" in message for *_, message, _ in other_basis)


# plausibility

MISPRINTS = [
    (
        *("bow_inference", "ResNet-50v1.5 | | Bow-2000 | SDK 3.3 | PyTorch | S | 256 | 16.16 | 461,740 | 26.16"),
        "3780 TFLOP/s: throughput 461740 × 4.089 GMAC of ResNet-50 v1.5 × 2; the peak of 4 × Bow at 16.16 is 1394.24",
    ),
    (
        *("bow_training", "ResNet-50 v1.5 | | Bow Pod16 | SDK 3.3 | PyTorch | I | 16,384 | 16.16 | 380,360"),
        "9330 TFLOP/s: throughput 380360 × 4.089 GMAC of ResNet-50 v1.5 × 2 × 3; the peak of 16 × Bow at 16.16 is "
        "5576.96",
    ),
    (
        *("pod_inference", "ResNeXt101 | | IPU-M2000 | SDK 2.4.0 | PyTorch | S | 64 | 16.16 | 113,200 | 27.83"),
        "3720 TFLOP/s: throughput 113200 × 16.414 GMAC of ResNeXt101-32x8d × 2; the peak of 4 × GC200 at 16.16 is "
        "998.6",
    ),
    (
        *("pod_inference", "BERT-Large | SL128 | IPU-M2000 | SDK 2.4.0 | PopART | SQuAD | 12 | 32.32 | 3,303 | 3.62"),
        "261 TFLOP/s: throughput 3303 × 39.46 GMAC of BERT-Large × 2; the peak of 4 × GC200 at 32.32 is 249.68",
    ),
]


@pytest.mark.parametrize(("table", "line", "message"), MISPRINTS)
def test_flops_above_the_peak(table: str, line: str, message: str) -> None:
    assert found("R21", rows(table, line)) == [("error", f"{table} 1", "throughput", message, None)]


def test_the_real_rows_stay_below_the_peak() -> None:
    printed = [*BERT_LARGE, *RESNET_256, *RESNEXT]
    assert len(compute_implied_work(dataset(printed))) == len(printed)
    assert found("R21", printed) == []


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("bow_training", "EfficientNet-B4 | G16-EfficientNet | Bow Pod16 | 3.0 | PyTorch | I | 1 | 16.16 | 9,000,000"),
        ("bow_training", "BERT Large | Ph2 (SL512) | Bow Pod16 | SDK 3.0 | PyTorch | W | 1 | 16.16 | 9,000,000"),
        ("bow_training", "ResNet-50 v1.5 | | Bow Pod16 | SDK 3.0 | PyTorch | I | 1 | | 9,000,000"),
        ("bow_training", "ResNet-50 v1.5 | | Bow Pod17 | SDK 3.0 | PyTorch | I | 1 | 16.16 | 9,000,000"),
        ("bow_training", "DINO | Vision Transformer | Bow Pod16 | SDK 3.3 | PyTorch | I | 1 | 16.16 | 9,000,000"),
        ("pod_inference", "ResNeXt101 | | IPU-M2000 | SDK 2.4.0 | PopART | S | 1 | 16.16 | 9,000,000 | 1"),
    ],
    ids=["variant", "sequence", "precision", "platform", "model", "network"],
)
def test_an_unknown_limit_says_nothing(table: str, line: str) -> None:
    assert found("R21", rows(table, line)) == []


def test_without_identities_a_name_for_several_networks_says_nothing() -> None:
    printed = rows(*MISPRINTS[2][:2])
    assert found("R21", printed, identities=load_identities()) != []
    assert found("R21", printed, identities=[]) == []


def paper(**change: object) -> dict[str, object]:
    row: dict[str, object] = {"result_id": "0" * 16, "origin": "published", "document_id": "paper", "platform": "C2"}
    return {**row, "model": "ResNeXt101", "throughput": 2409.79, "efficiency": 9.07, **change}


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        ({}, []),
        ({"efficiency": 0.907}, ["2656.9 W: throughput 2409.79 / efficiency 0.907; C2 is rated 300 W"]),
        ({"efficiency": 8.03}, ["300.1 W: throughput 2409.79 / efficiency 8.03; C2 is rated 300 W"]),
        ({"efficiency": 8.04}, []),
        ({"efficiency": 90.7}, []),
        ({"efficiency": None}, []),
        ({"efficiency": 0.907, "platform": "IPU-M2000"}, []),
    ],
)
def test_power_above_the_rating(change: dict[str, object], messages: list[str]) -> None:
    flags = flag_power_above_rating(replace(dataset([]), results=frame("results", [paper(**change)])))
    assert flags["message"].to_list() == messages
    assert set(flags["severity"]) <= {"warn"}


NETWORKS = {
    ("ResNet-50 v1.5", ""): "resnet50",
    ("ResNeXt101-32x4d", ""): "resnext101-32x4d",
    ("ResNeXt101-32x8d", ""): "resnext101-32x8d",
    ("EfficientNet-B0", ""): "efficientnet-b0",
    ("EfficientNet-B4", ""): "efficientnet-b4",
    ("EfficientNet-B7", ""): "efficientnet-b7",
    ("BERT-Base", "SL128"): "bert-base",
    ("BERT-Large", "SL128"): "bert-large",
}


def test_the_work_of_a_network_is_that_of_its_graph() -> None:
    work = load_vocabulary().work
    assert {network for network, _ in work} == {network for network, _ in NETWORKS}
    assert sorted(NETWORKS.values()) == sorted(NAMES)
    for place, name in NETWORKS.items():
        assert work[place] == round(read_program(build(name), 1).macs / 1e9, 3), name


def test_no_peak_is_below_what_tiles_and_clock_give() -> None:
    """Multiply-accumulates of a tile and cycle, in 16 bits: 32 on GC2, 64 on the later ones."""
    for platform, macs in (("C2", 32), ("IPU-M2000", 64), ("Bow-2000", 64)):
        entry = load_vocabulary().platforms[platform.replace("-", "").casefold()]
        peak = entry["tiles_per_chip"] * macs * entry["clock_ghz"] * 2 / 1000
        assert entry["peak_fp16_tflops"] == pytest.approx(peak, rel=0.005)
        assert entry["peak_fp32_tflops"] == pytest.approx(peak / 4, rel=0.005)


def test_a_cell_of_another_document_is_none_that_the_table_prints() -> None:
    data = dataset(FASTSPEECH)
    cited = data.cells.iloc[:1].assign(
        cell_number=99, raw_text="", document_id="elsewhere", column_name="latency_basis"
    )
    beside = replace(data, cells=pd.concat([data.cells, cited], ignore_index=True))
    assert len(beside.printed_cells) == len(data.printed_cells) == len(data.cells)
    pd.testing.assert_frame_equal(find_flags(beside), find_flags(data))
