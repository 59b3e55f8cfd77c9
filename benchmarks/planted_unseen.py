"""More kinds of errors to plant, listed by someone who had not read the quality rules.

The author of the rules had the kinds of `planted_errors` in view; these were chosen from the rows
and their sources alone. A wrong label is one that the record has elsewhere, or is put together of
such parts, so that none gives itself away as absurd; a wrong figure is another one of the record, or
worked out of the row's own as a hurried reader would. The labels and figures are in
`planted_unseen.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.planted_errors import Change, Changer, Draw, Mistakes, Row

LISTED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
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

Siblings = Mapping[Any, Sequence[Any]]


def link(ladders: Sequence[Sequence[Any]]) -> Siblings:
    """Map each step of a ladder to those beside it, in all ladders that have it."""
    linked: dict[Any, list[Any]] = {}
    for ladder in ladders:
        for place, step in enumerate(ladder):
            beside = linked.setdefault(step, [])
            beside += ladder[max(place - 1, 0) : place]
            beside += ladder[place + 1 : place + 2]
    return linked


def load_siblings() -> dict[str, Siblings]:
    """Return by list what may stand for each label, as listed or as the steps beside it."""
    siblings: dict[str, Siblings] = dict(LISTED["siblings"])
    for name, ladders in LISTED["ladders"].items():
        siblings[name] = link(ladders)
    return siblings


def pair_tables() -> dict[float, Sequence[float]]:
    """Map each throughput of the page to the figures of the same row of the other generation."""
    others = {}
    for bow, classic in LISTED["bow_and_classic"]:
        others[bow[0]] = classic
        others[classic[0]] = bow
    return others


SIBLINGS = load_siblings()
OTHER_TABLE = pair_tables()


def replace(column: str, siblings: str) -> Changer:
    """Return a mistake that prints a sibling of a value, of this list."""

    def change(draw: Draw, row: Row, _: Row) -> Change | None:
        others = SIBLINGS[siblings].get(row[column])
        return {column: draw.choice(others)} if others else None

    return change


def rewrite(column: str, pattern: str, siblings: str) -> Changer:
    """Return a mistake that prints a sibling of a part of a text."""

    def change(draw: Draw, row: Row, _: Row) -> Change | None:
        found = re.search(pattern, row[column])
        others = SIBLINGS[siblings].get(found[0]) if found else None
        if not found or not others:
            return None
        return {column: row[column].replace(found[0], draw.choice(others))}

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
    return (
        dict(zip(("throughput", "latency_ms"), map(float, other), strict=False)) if other else None
    )


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
    printed = [name for name in FILLED if pd.notna(row[name]) and pd.notna(other[name])]
    changed = [name for name in printed if row[name] != other[name]]
    if not changed:
        return None
    name = draw.choice(changed)
    return {name: other[name]}


def shift_labels(_: Draw, row: Row, other: Row) -> Change | None:
    """Print the labels of the neighbour, so that they are one row off the figures."""
    if row["model_printed"] == other["model_printed"]:
        return None
    return {name: other[name] for name in LABELS}


def replace_precision(draw: Draw, row: Row, _: Row) -> Change | None:
    """Print a similar precision; the bits of the form X.Y go with it."""
    others = SIBLINGS["precisions"].get(row["precision_printed"])
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
    real = LISTED["real"].get(f"{row['dataset_printed']}, {row['item']}")
    if real:
        return {"dataset_printed": real}
    return replace("dataset_printed", "datasets")(draw, row, row)


def replace_chip_count(draw: Draw, row: Row, _: Row) -> Change | None:
    """Print another number of chips, where the table has a column of it."""
    if row["table_name"] != "independent_results":
        return None
    return replace("chip_count", "chip_counts")(draw, row, row)


def replace_machine(siblings: str, column: str, find: Callable[[str], int | str]) -> Changer:
    """Return a mistake that prints another machine; what its name gives of the column goes with it."""

    def change(draw: Draw, row: Row, _: Row) -> Change | None:
        others = SIBLINGS[siblings].get(row["platform"])
        if not others:
            return None
        platform = draw.choice(others)
        return {"platform": platform, column: find(platform)}

    return change


def count_chips(platform: str) -> int:
    """Count the chips that the name of a machine gives."""
    count = re.search(r"^\d+(?=x )|(?<=Pod|POD)\d+$", platform)
    return int(count[0] if count else LISTED["ipus"][platform])


def find_chip(platform: str) -> str:
    """Find the chip that the name of a machine gives."""
    for pattern, chip in LISTED["chips"].items():
        if re.search(pattern, platform):
            return str(chip)
    raise KeyError(platform)


UNSEEN: Mapping[str, Mistakes] = {
    "figures": {
        "mark of a footnote read as a digit": add_footnote,
        "throughput and latency exchanged": exchange_columns,
        "tokens for sequences": count_tokens,
        "latency of one item": take_item_latency,
        "latency of another column": take_other_latency,
        "figures of the other generation's table": take_other_table,
    },
    "batch": {
        "batch of one chip": take_micro_batch,
        "batch multiplied by the chips": multiply_batch,
        "batch of the neighbour": copy_batch,
        "batch cut at its thousands mark": cut_batch,
        "accumulation left out of the batch": leave_accumulation_out,
    },
    "conditions": {
        "cell filled down": fill_down,
        "labels shifted by one row": shift_labels,
        "sibling of the model": replace("model_printed", "models"),
        "sibling of the framework": replace("framework", "frameworks"),
        "similar precision": replace_precision,
        "synthetic for real data, or real for synthetic": exchange_real_and_synthetic,
        "other unit of the throughput": replace("item", "items"),
        "training for inference, or inference for training": replace("task", "tasks"),
        "other sequence length": rewrite("variant", r"SL\d+", "sequences"),
        "other size of the images": rewrite("variant", r"(image )?\d+(x\d+)?", "sides"),
        "other phase of the training": replace("variant", "phases"),
        "packing left out or made up": replace("variant", "packing"),
        "other setting or size in the variant": replace("variant", "settings"),
        "other number of chips": replace_chip_count,
        "machine of the next size": replace_machine("sizes", "chip_count", count_chips),
        "machine of the other generation": replace_machine("generations", "chip", find_chip),
        "GPU of another form or memory": replace_machine("gpus", "chip", find_chip),
        "SDK beside it": replace("sdk_version", "sdks"),
        "other kind of latency": replace("latency_basis", "latency_kinds"),
    },
}
