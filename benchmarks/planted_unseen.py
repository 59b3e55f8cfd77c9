"""More kinds of errors to plant, listed by someone who had not read the quality rules.

The author of the rules had the kinds of `planted_errors` in view; these were chosen from the rows
and their sources alone. A wrong label is one that the record has elsewhere, or is put together of
such parts, so that none gives itself away as absurd; a wrong figure is another one of the record, or
worked out of the row's own as a hurried reader would.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from benchmarks.planted_errors import Change, Draw, Mistake, Row

Changer = Callable[[Draw, Row, Row], Change | None]
Siblings = Mapping[Any, Sequence[Any]]

# What stands beside a mean latency in the tables of Heidelberg, ByteMLPerf and PopRT.
OTHER_LATENCIES = (
    "latency_p99_ms",
    "latency_min_ms",
    "latency_median_ms",
    "latency_max_ms",
    "latency_std_ms",
)
# Cells that a spreadsheet fills with that of the row before, where one is dragged too far.
FILLED = ("framework", "dataset_printed", "variant", "conditions")
# What tells one row from another; the item goes with the model.
LABELS = ("model_printed", "variant", "dataset_printed", "framework", "item")

# The performance page of 2023-07-04: throughput and latency of the same model, variant, framework
# and batch in its tables of Bow machines and in those of Classic ones.
BOW_AND_CLASSIC = (
    ((2908, 1.36), (2071, 1.92)),  # BERT-Large SL128, batches 4, 8 and 12
    ((4096, 1.94), (2911, 2.73)),
    ((4655, 2.56), (3303, 3.62)),
    ((6508, 0.60), (4580, 0.86)),  # BERT-Base SL128, batches 4 and 320
    ((28069, 11.41), (20803, 15.36)),
    ((9297, 0.58), (7397, 0.52)),  # ResNet-50 v1.5, lowest latency, higher throughput, batch 256
    ((12282, 1.66), (9404, 2.04)),
    ((46174, 26.16), (49816, 25.13)),
    ((10866, 0.39), (8686, 0.44)),  # EfficientNet-B0, lowest latency, higher throughput
    ((14789, 1.29), (10907, 1.69)),
    ((4419, 1.26), (3539, 1.09)),  # EfficientNet-B4, lowest latency, higher throughput
    ((5646, 3.53), (4081, 1.85)),
    ((924, 6.49), (690, 9.40)),  # Yolo v4 on images of 896, 640 and 512
    ((988, 6.76), (722, 9.74)),
    ((1854, 6.61), (1306, 10.03)),
    ((1948, 6.92), (1364, 10.39)),
    ((2477, 4.81), (1772, 7.25)),
    ((2663, 4.93), (1915, 7.31)),
    ((1920, None), (1144, None)),  # UNet (Medical), batches 4 and 8
    ((2081, None), (1190, None)),
    ((1183, None), (884, None)),  # training: BERT-Large, fine-tuning in PopART and PyTorch
    ((1009, None), (744, None)),
    ((16391, None), (11991, None)),  # BERT-Base, phase 1 in PopART, TensorFlow2 and PyTorch
    ((15173, None), (11035, None)),
    ((15911, None), (11184, None)),
    ((4387, None), (3155, None)),  # BERT-Base, phase 2 in TensorFlow2
    ((9653, None), (8496, None)),  # DeepVoice3
    ((1653, None), (1141, None)),  # FastSpeech2
    ((38036, None), (25534, None)),  # ResNet-50 v1.5 in PyTorch
    ((9000, None), (6379, None)),  # EfficientNet-B4 in TensorFlow1 on 16, in PyTorch, on 64
    ((8223, None), (4311, None)),
    ((34140, None), (24946, None)),
    ((12277, None), (9023, None)),  # ResNeXt101
    ((1843, None), (815, None)),  # Mini DALL-E
)
OTHER_TABLE = {own[0]: other for pair in BOW_AND_CLASSIC for own, other in (pair, pair[::-1])}

FRAMEWORKS = {
    "TensorFlow": ("PyTorch",),  # both name the halves of CARAML
    "TensorFlow1": ("TensorFlow2",),
    "TensorFlow2": ("TensorFlow1",),
    "PopART": ("PopRT",),
    "PopRT": ("PopART",),
}
PRECISIONS = {
    "16.16": ("16.32", "32.32"),
    "16.32": ("16.16", "32.32"),
    "32.32": ("16.16", "16.32"),
    "fp8": ("fp16",),
    "fp16": ("fp8", "fp32"),
    "fp32": ("fp16",),
    "FP8": ("FP16",),
    "FP16": ("FP32",),
    "FP32": ("FP16",),
    "half": ("single",),
    "single": ("half",),
    "INT8": ("FP16",),
    "INT8/BF16": ("INT8",),
    "BF16": ("FP16",),
    "TF32": ("mixed",),
    "mixed": ("FP16",),
}
# Sources print data made up for the run beside that of the task.
DATASETS = {
    "ImageNet": ("synthetic",),
    "ImageNet2012": ("Synthetic (host-generated)",),
    "ImageNet1k": ("Synthetic (host-generated)",),
    "COCO 2017": ("Synthetic (host-generated)",),
    "SQuAD": ("Synthetic (host-generated)",),
    "Wikipedia": ("Generated",),
    "OSCAR": ("synthetic",),
    "OPEN_IMAGENET": ("FAKE_DATASET",),
    "OPEN_SQUAD": ("FAKE_DATASET",),
    "FAKE_DATASET": ("OPEN_IMAGENET",),
}
REAL = {
    ("Synthetic (host-generated)", "image"): "ImageNet2012",
    ("Synthetic (host-generated)", "sequence"): "SQuAD",
    ("synthetic", "image"): "ImageNet",
    ("synthetic", "sequence"): "OSCAR",
}
ITEMS = {
    "sequence": ("token",),
    "token": ("sequence",),
    "frame": ("sequence",),
    "pixel": ("image",),
}
TASKS = {"training": ("inference",), "inference": ("training",)}
LATENCY_KINDS = {
    "per-batch": ("several-in-flight", "per-item"),
    "several-in-flight": ("per-batch",),
    "per-item": ("per-batch",),
}
SEQUENCES = {
    "SL128": ("SL384", "SL512"),
    "SL256": ("SL128",),
    "SL384": ("SL128", "SL512"),
    "SL512": ("SL128", "SL384"),
    "SL1024": ("SL512",),
}


def link(*ladders: Sequence[Any]) -> dict[Any, tuple[Any, ...]]:
    """Map each step of a ladder to those beside it, in all ladders that have it."""
    linked: dict[Any, tuple[Any, ...]] = {}
    for ladder in ladders:
        for place, step in enumerate(ladder):
            beside = (*ladder[max(place - 1, 0) : place], *ladder[place + 1 : place + 2])
            linked[step] = linked.get(step, ()) + beside
    return linked


# Sides of the images: at which the detector of Heidelberg was measured in several batches, of the
# image classifiers, and of Yolo v4 on the performance page.
SIDES = link(
    ("128x128", "224x224", "320x320", "416x416", "512x512", "640x640", "896x896"),
    ("224x224", "384x384"),
    ("image 416", "image 512", "image 640", "image 896"),
)
PHASES = link(
    ("Ph1 Pre-Training (SL128)", "Ph2 Pre-Training (SL384)", "Fine-Tuning (SL384 - SQuAD)"),
    ("Ph1 Pre-Training (SL128)", "Ph2 Pre-Training (SL512)"),
    ("Ph1 Pre-Training (SL128) - Packed", "Ph2 Pre-Training (SL512) - Packed"),
    ("pre-training SL128", "pre-training SL512"),
    ("Pre-Training", "Fine-Tuning"),
    ("Vision Transformer - Pre-Training", "Vision Transformer - Fine-Tuning"),
)
PACKING = link(
    ("Ph1 Pre-Training (SL128) - Packed", "Ph1 Pre-Training (SL128)"),
    ("Ph2 Pre-Training (SL512) - Packed", "Ph2 Pre-Training (SL512)"),
    ("SL128 packed", "SL128"),
    ("SL256 packed", "SL256"),
    ("SL384 packed", "SL384"),
    ("packed", "padded"),
)
SETTINGS = link(
    ("lowest latency config", "higher throughput config"),
    ("image 416, bps 5, max det 200", "image 416, bps 10, max det 100"),
    ("image 512, bps 5, max det 200", "image 512, bps 10, max det 300"),
    ("image 640, bps 5, max det 200", "image 640, bps 10, max det 300"),
    ("image 896, bps 5, max det 200", "image 896, bps 10, max det 300"),
    ("GPT2-Small", "GPT2-Medium", "GPT2-Large"),
    ("GPT2-Small (SL1024)", "GPT2-Medium (SL1024)", "GPT2-Large (SL1024)"),
)
# Models of the same item that stand beside each other in print, or differ in a word.
MODELS = link(
    ("BERT-Base", "BERT-Large"),
    ("BERT-Base", "BERT-Base HuggingFace"),
    ("BERT-Base", "Group BERT-Base"),
    ("ALBERT-Base", "BERT-Base", "RoBERTa-Base", "DeBERTa-Base"),
    ("EfficientNet-B0", "EfficientNet-B4", "EfficientNet-B7"),
    ("EfficientDet-D0", "EfficientDet-D1", "EfficientDet-D2", "EfficientDet-D3", "EfficientDet-D4"),
    ("MobileNet v3 small", "MobileNet v3 large"),
    ("ResNet-50 v1.5", "ResNet-50 v2"),
    ("ResNeXt101", "ResNeXt101-32x4d"),
    ("Swin-Tiny (224)", "Swin-Base (224)", "Swin-Large (224)", "Swin-Large (384)"),
    ("GPT-117M", "GPT-800M"),
    ("GPT2", "GPT2-XL"),
    ("Conformer", "Conformer-Medium"),
)
SDKS = link(
    ("2.3.0", "2.4.0", "2.5.1", "3.0", "3.1", "3.2", "3.3"),  # as the performance pages print them
    ("3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0"),  # the tags of Poplar
)
CHIP_COUNTS = link((1, 2, 4, 8, 16, 32, 64, 128, 256))
SIZES = link(
    ("Bow-2000", "Bow Pod8", "Bow Pod16", "Bow Pod64", "Bow Pod128", "Bow Pod256"),
    ("IPU-M2000", "IPU-POD16", "IPU-POD64", "IPU-POD128", "IPU-POD256"),
    [f"{count}x Bow IPU" for count in (1, 2, 4, 8, 16, 32, 64)],
    [f"{count}x Bow (Bow Pod64)" for count in (2, 4, 8, 16)],
    [f"{count}x GC200 (IPU-POD16)" for count in (1, 2, 4, 8)],
    [f"{count}x MI250 GCD (JURECA)" for count in (1, 3, 4, 5, 6, 7, 8, 16)],
    [f"{count}x A100-40GB (JURECA)" for count in (1, 2, 3, 4, 6, 8)],
    [f"{count}x H100-PCIe-80GB (JURECA)" for count in (1, 2, 3, 4)],
    [f"{count}x H100-SXM-94GB (WestAI)" for count in (1, 2, 3, 4)],
    [f"{count}x GH200-120GB (JEDI)" for count in (1, 2, 3, 4, 6, 8)],
    [f"{count}x A100-40GB (DGX A100)" for count in (1, 4, 8)],
    [f"{count}x A100-80GB" for count in (1, 8, 16, 32, 64)],
)
IPUS_OF = {"Bow-2000": 4, "IPU-M2000": 4}  # whose names give no number of them
# Machines of the same size that differ in the generation of their IPUs.
GENERATIONS = link(
    ("Bow-2000", "IPU-M2000"),
    ("Bow Pod16", "IPU-POD16"),
    ("Bow Pod64", "IPU-POD64"),
    ("Bow Pod128", "IPU-POD128"),
    ("Bow Pod256", "IPU-POD256"),
    ("1x Bow IPU", "GC200 IPU", "C600"),
    ("8x C600", "8x GC200"),
)
# GPUs of the same number that differ in form or in memory.
GPUS = link(
    ("1x A100-40GB", "1x A100-80GB"),
    ("1x A100-40GB (DGX A100)", "1x A100-80GB (DGX A100)"),
    ("8x A100-40GB (DGX A100)", "8x A100-80GB (DGX A100)"),
    ("1x H100-PCIe-80GB (JURECA)", "1x H100-SXM-94GB (WestAI)"),
    ("2x H100-PCIe-80GB (JURECA)", "2x H100-SXM-94GB (WestAI)"),
    ("3x H100-PCIe-80GB (JURECA)", "3x H100-SXM-94GB (WestAI)"),
    ("4x H100-PCIe-80GB (JURECA)", "4x H100-SXM-94GB (WestAI)"),
    ("1x GH200-120GB (JEDI)", "1x GH200-480GB (JURECA)"),
    ("1x MI250 GCD (JURECA)", "1x MI250 (JURECA)"),
)
# The chip by what the name of its machine says, the first that fits.
CHIPS = {
    r"Bow": "Bow",
    r"POD|M2000|GC200": "GC200",
    r"C600": "C600",
    r"A100-40GB \(DGX": "A100-SXM-40GB",
    r"A100-80GB \(DGX": "A100-SXM-80GB",
    r"A100-40GB$": "A100-40GB",
    r"A100-80GB$": "A100-80GB",
    r"H100-PCIe": "H100-PCIe-80GB",
    r"H100-SXM": "H100-SXM-94GB",
    r"GH200-120GB": "GH200-120GB",
    r"GH200-480GB": "GH200-480GB",
    r"MI250 GCD": "MI250 GCD",
    r"MI250 \(": "MI250",
}


def replace(column: str, siblings: Siblings) -> Changer:
    """Return a mistake that prints a sibling of a value."""

    def change(draw: Draw, row: Row, _: Row) -> Change | None:
        others = siblings.get(row[column])
        return {column: draw.choice(others)} if others else None

    return change


def rewrite(column: str, pattern: str, siblings: Siblings) -> Changer:
    """Return a mistake that prints a sibling of a part of a text."""

    def change(draw: Draw, row: Row, _: Row) -> Change | None:
        found = re.search(pattern, row[column])
        part = found[0] if found else ""
        others = siblings.get(part)
        return {column: row[column].replace(part, draw.choice(others))} if others else None

    return change


def add_footnote(draw: Draw, row: Row, _: Row) -> Change | None:
    """Read the mark of a footnote as the last digit of a whole number."""
    if row["throughput"] % 1:
        return None
    return {"throughput": row["throughput"] * 10 + draw.randint(1, 3)}


def exchange_columns(_: Draw, row: Row, __: Row) -> Change:
    """Print the throughput as the latency and the other way round."""
    return {"throughput": row["latency_ms"], "latency_ms": row["throughput"]}


def count_tokens(_: Draw, row: Row, __: Row) -> Change | None:
    """Print tokens a second for sequences a second."""
    length = re.search(r"SL(\d+)", row["variant"])
    return {"throughput": row["throughput"] * int(length[1])} if length else None


def take_item_latency(_: Draw, row: Row, __: Row) -> Change:
    """Print the time of an item as that of its batch."""
    return {"latency_ms": row["latency_ms"] / row["batch_size"]}


def take_other_latency(draw: Draw, row: Row, _: Row) -> Change | None:
    """Print a latency of the columns beside that of the mean."""
    beside = [row[name] for name in OTHER_LATENCIES if row[name] > 0]
    return {"latency_ms": draw.choice(beside)} if beside else None


def take_other_table(_: Draw, row: Row, __: Row) -> Change | None:
    """Print the figures of the same row in the page's table of the other generation."""
    is_page = row["table_name"].startswith(("bow_", "pod_"))
    other = OTHER_TABLE.get(row["throughput"]) if is_page else None
    return {"throughput": float(other[0]), "latency_ms": other[1]} if other else None


def take_micro_batch(_: Draw, row: Row, __: Row) -> Change:
    """Print the batch of one chip for that of the machine."""
    return {"batch_size": row["micro_batch_size"]}


def multiply_batch(_: Draw, row: Row, __: Row) -> Change:
    """Take the batch for that of one chip, and multiply it by the chips."""
    return {"batch_size": row["batch_size"] * row["chip_count"]}


def copy_batch(_: Draw, __: Row, other: Row) -> Change:
    """Print the batch of the neighbour."""
    return {"batch_size": other["batch_size"]}


def cut_batch(_: Draw, row: Row, __: Row) -> Change | None:
    """Cut a batch at the mark of its thousands, as a file separated by commas does."""
    return {"batch_size": row["batch_size"] // 1000} if row["batch_size"] >= 1000 else None


def leave_accumulation_out(_: Draw, row: Row, __: Row) -> Change | None:
    """Print the batch of one step of those whose gradients are accumulated."""
    if row["task"] != "training":
        return None
    return {"batch_size": row["micro_batch_size"] * row["chip_count"]}


def fill_down(draw: Draw, row: Row, other: Row) -> Change | None:
    """Fill one cell with that of the neighbour."""
    changed = [name for name in FILLED if pd.notna(row[name]) and pd.notna(other[name])]
    changed = [name for name in changed if row[name] != other[name]]
    name = draw.choice(changed) if changed else ""
    return {name: other[name]} if name else None


def shift_labels(_: Draw, row: Row, other: Row) -> Change | None:
    """Print the labels of the neighbour, so that they are one row off the figures."""
    if row["model_printed"] == other["model_printed"]:
        return None
    return {name: other[name] for name in LABELS}


def replace_precision(draw: Draw, row: Row, _: Row) -> Change | None:
    """Print a similar precision; the bits of the form X.Y go with it."""
    others = PRECISIONS.get(row["precision_printed"])
    if not others:
        return None
    precision = draw.choice(others)
    bits = re.fullmatch(r"(\d+)\.(\d+)", precision)
    if not bits:
        return {"precision_printed": precision}
    return {
        "precision_printed": precision,
        "activation_bits": int(bits[1]),
        "weight_bits": int(bits[2]),
    }


def exchange_real_and_synthetic(draw: Draw, row: Row, _: Row) -> Change | None:
    """Print made-up data for that of the task, or the other way round."""
    if real := REAL.get((row["dataset_printed"], row["item"])):
        return {"dataset_printed": real}
    return replace("dataset_printed", DATASETS)(draw, row, row)


def replace_chip_count(draw: Draw, row: Row, _: Row) -> Change | None:
    """Print another number of chips, where the table has a column of it."""
    if row["table_name"] != "independent_results":
        return None
    return replace("chip_count", CHIP_COUNTS)(draw, row, row)


def replace_machine(siblings: Siblings, column: str, find: Callable[[str], int | str]) -> Changer:
    """Return a mistake that prints another machine; what its name gives of the column goes with it."""

    def change(draw: Draw, row: Row, _: Row) -> Change | None:
        others = siblings.get(row["platform"])
        if not others:
            return None
        platform = draw.choice(others)
        return {"platform": platform, column: find(platform)}

    return change


def count_chips(platform: str) -> int:
    """Count the chips that the name of a machine gives."""
    count = re.search(r"^\d+(?=x )|(?<=Pod|POD)\d+$", platform)
    return int(count[0]) if count else IPUS_OF[platform]


def find_chip(platform: str) -> str:
    """Find the chip that the name of a machine gives."""
    return next(chip for pattern, chip in CHIPS.items() if re.search(pattern, platform))


UNSEEN: Mapping[str, tuple[Mistake, ...]] = {
    "figures": (
        Mistake("mark of a footnote read as a digit", add_footnote),
        Mistake("throughput and latency exchanged", exchange_columns),
        Mistake("tokens for sequences", count_tokens),
        Mistake("latency of one item", take_item_latency),
        Mistake("latency of another column", take_other_latency),
        Mistake("figures of the other generation's table", take_other_table),
    ),
    "batch": (
        Mistake("batch of one chip", take_micro_batch),
        Mistake("batch multiplied by the chips", multiply_batch),
        Mistake("batch of the neighbour", copy_batch),
        Mistake("batch cut at its thousands mark", cut_batch),
        Mistake("accumulation left out of the batch", leave_accumulation_out),
    ),
    "conditions": (
        Mistake("cell filled down", fill_down),
        Mistake("labels shifted by one row", shift_labels),
        Mistake("sibling of the model", replace("model_printed", MODELS)),
        Mistake("sibling of the framework", replace("framework", FRAMEWORKS)),
        Mistake("similar precision", replace_precision),
        Mistake("synthetic for real data, or real for synthetic", exchange_real_and_synthetic),
        Mistake("other unit of the throughput", replace("item", ITEMS)),
        Mistake("training for inference, or inference for training", replace("task", TASKS)),
        Mistake("other sequence length", rewrite("variant", r"SL\d+", SEQUENCES)),
        Mistake("other size of the images", rewrite("variant", r"(image )?\d+(x\d+)?", SIDES)),
        Mistake("other phase of the training", replace("variant", PHASES)),
        Mistake("packing left out or made up", replace("variant", PACKING)),
        Mistake("other setting or size in the variant", replace("variant", SETTINGS)),
        Mistake("other number of chips", replace_chip_count),
        Mistake("machine of the next size", replace_machine(SIZES, "chip_count", count_chips)),
        Mistake("machine of the other generation", replace_machine(GENERATIONS, "chip", find_chip)),
        Mistake("GPU of another form or memory", replace_machine(GPUS, "chip", find_chip)),
        Mistake("SDK beside it", replace("sdk_version", SDKS)),
        Mistake("other kind of latency", replace("latency_basis", LATENCY_KINDS)),
    ),
}
