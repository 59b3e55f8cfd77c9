"""Datasets for the rules' tests, built from rows as they are printed, and the rows that they use."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from ipu_results import schema
from ipu_results.check.rules import RULES, Dataset, Identity, load_identities
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
PAGE_TEXT = SHARED / "sources" / "graphcore-performance-results-2023-07-04.txt"
PAGE = "graphcore-performance-2023-07-04"

TRAINING = {
    "Model": "model",
    "Variant": "variant",
    "Platform": "platform",
    "SDK Version": "sdk_version",
    "Framework": "framework",
    "Dataset": "dataset",
    "Batch Size": "batch_size",
    "Precision": "precision",
    "Throughput (items/sec)": "throughput",
}
INFERENCE = {**TRAINING, "Latency (ms)": "latency_ms"}
TIME_TO_RESULT = {**dict(list(TRAINING.items())[:-1]), "Time To Result (secs)": "time_to_result_s"}
MLPERF = {
    "Division": "division",
    "Model": "model",
    "MLPerf Quality Target": "quality_target",
    "Platform": "platform",
    "SDK Version": "sdk_version",
    "Framework": "framework",
    "MLPerf ID": "mlperf_id",
    "Dataset": "dataset",
    "Precision": "precision",
    "Time to Train (mins)": "time_to_train_s",
}
OGB = {
    "Dataset Challenge": "dataset",
    "Model": "model",
    "Platform": "platform",
    "SDK Version": "sdk_version",
    "Framework": "framework",
    "Throughput (items/sec)": "throughput",
    "Time to Train": "time_to_train_s",
    "Evaluation Metric": "quality_value",
    "OGB-LSC 2022 Ranking": "ranking",
}
LAYOUTS = {
    "ogb_lsc": OGB,
    "bow_training": TRAINING,
    "bow_inference": INFERENCE,
    "mlperf_v2_training": MLPERF,
    "pod_training": TRAINING,
    "pod_time_to_result": TIME_TO_RESULT,
    "pod_inference": INFERENCE,
}
PRINTED_TABLES = frozenset((PAGE, table) for table in LAYOUTS)
SECTIONS = {(PAGE, "bow_inference"): "Bow-2000"}
CANONICAL = {
    "BERT Large": "BERT-Large",
    "BERT Base": "BERT-Base",
    "ResNet-50v1.5": "ResNet-50 v1.5",
    "ResNet50 v1.5": "ResNet-50 v1.5",
    "Unet (Medical)": "UNet (Medical)",
    "TF2 w/Keras": "TensorFlow2",
    "Pytorch Geometric": "PyTorch Geometric",
}
NO_ITEM = ("Cluster-GCN", "TGN", "FastPitch", "MPNN-GIN")
FACTORS = {"time_to_train_s": 60.0}

MACHINES = [
    ("C2", "Mk1", "GC2", 2),
    ("GC200 IPU", "Classic", "GC200", 1),
    ("IPU-M2000", "Classic", "GC200", 4),
    *((f"IPU-POD{count}", "Classic", "GC200", count) for count in (16, 64, 128, 256)),
    ("1x Bow IPU", "Bow", "Bow", 1),
    ("Bow-2000", "Bow", "Bow", 4),
    *((f"Bow Pod{count}", "Bow", "Bow", count) for count in (8, 16, 64, 128, 256)),
    ("1x A100-SXM4-40GB (DGX A100)", "NVIDIA Ampere", "A100-40GB", 1),
    ("8x A100-SXM4-40GB (DGX A100)", "NVIDIA Ampere", "A100-40GB", 8),
]


@dataclass(frozen=True)
class Printed:
    """One row as printed; `cells` in the order of the table's header, "" where the cell is blank."""

    table: str
    number: int
    cells: tuple[str, ...]
    document: str = PAGE

    @property
    def result_id(self) -> str:
        return hashlib.sha256(f"{self.document}/{self.table}/{self.number}".encode()).hexdigest()[:16]

    @property
    def fields(self) -> dict[str, str]:
        return LAYOUTS[self.table]


def rows(table: str, *lines: str, document: str = PAGE, first: int = 1) -> list[Printed]:
    """Rows from lines of cells joined by ` | `, as in `FastSpeech2 |  | Bow-2000 | …`."""
    cells = [tuple(cell.strip() for cell in line.split("|")) for line in lines]
    return [Printed(table, number, row, document) for number, row in enumerate(cells, first)]


def number(text: str) -> float | None:
    found = re.fullmatch(r"([\d,]*\.?\d+)(?: [A-Z]+)?", text)
    return float(found.group(1).replace(",", "")) if found else None


def result_of(row: Printed) -> dict[str, Any]:
    printed = {column: text for column, text in zip(row.fields.values(), row.cells, strict=True) if text}
    numeric = {"batch_size", "throughput", "latency_ms", "time_to_train_s", "time_to_result_s", "quality_value"}
    values: dict[str, Any] = {column: number(text) if column in numeric else text for column, text in printed.items()}
    for column in ("model", "platform", "framework"):
        values[column] = CANONICAL.get(values[column], values[column])
    machine = {name: (chip, count) for name, _, chip, count in MACHINES}.get(values["platform"], (None, None))
    return values | {
        "result_id": row.result_id,
        "origin": "published",
        "publisher": "Graphcore",
        "document_id": row.document,
        "table_name": row.table,
        "row_number": row.number,
        "task": "inference" if row.table in ("bow_inference", "pod_inference", "pod_time_to_result") else "training",
        "sdk_version": values["sdk_version"].removeprefix("SDK "),
        "chip": machine[0],
        "chip_count": machine[1],
        "item": None if values["model"] in NO_ITEM else "item",
    }


def cells_of(row: Printed) -> Iterator[dict[str, Any]]:
    results = schema.table("results")
    for position, ((header, column), text) in enumerate(zip(row.fields.items(), row.cells, strict=True), 1):
        figure = results.column(column).kind in ("integer", "double")
        yield {
            "result_id": row.result_id,
            "cell_number": position,
            "column_name": column,
            "header": header,
            "raw_text": text,
            "value": number(text) if figure else None,
            "factor": FACTORS.get(column, 1.0) if figure else None,
            "document_id": row.document,
            "locator": f"{row.table} row {row.number} column {position}",
        }


def frame(name: str, records: Iterable[dict[str, Any]]) -> pd.DataFrame:
    dtypes = schema.frame_dtypes(schema.table(name))
    records = list(records)
    columns = {column: pd.Series([record.get(column) for record in records], dtype=object) for column in dtypes}
    return pd.DataFrame({column: values.astype(dtypes[column]) for column, values in columns.items()})


def dataset(
    printed: Sequence[Printed],
    *,
    results: pd.DataFrame | None = None,
    identities: Sequence[Identity] | None = None,
    official: Sequence[dict[str, Any]] = (),
    configurations: Sequence[dict[str, Any]] = (),
) -> Dataset:
    """The dataset of these rows; `results` are further rows that have no cells, `official` the MLPerf entries.

    A row has the latency basis of its configuration.
    """
    bases = {known["result_id"]: known.get("latency_basis") for known in configurations}
    table = frame("results", [result_of(row) | {"latency_basis": bases.get(row.result_id)} for row in printed])
    words = load_vocabulary()
    return Dataset(
        results=table if results is None else pd.concat([table, results], ignore_index=True),
        cells=frame("cells", (cell for row in printed for cell in cells_of(row))),
        platforms=frame("platforms", [machine(*known) for known in MACHINES]),
        models=frame("models", []),
        official=frame("mlperf_entries", official),
        configurations=frame("configurations", configurations),
        sections=SECTIONS,
        printed_tables=PRINTED_TABLES,
        identities=load_identities() if identities is None else identities,
        work=words.work,
        peaks=words.peaks,
    )


def machine(name: str, family: str, chip: str, count: int) -> dict[str, Any]:
    facts = load_vocabulary().platforms.get(normalise_name(name), {})
    return {**facts, "platform": name, "family": family, "chip": chip, "chip_count": count}


def configuration(row: Printed, command: str, match: str = "exact", **told: Any) -> dict[str, Any]:
    """The configuration behind a row; `command` is its tag, path and benchmark."""
    tag, path, benchmark = command.split()
    named = {"repository": "graphcore/examples", "tag": tag, "path": path, "benchmark": benchmark}
    return {"result_id": row.result_id, **named, "match_confidence": match, **told}


def page_rows() -> list[Printed]:
    """Every row of the seven tables of the real page."""
    lines = PAGE_TEXT.read_text(encoding="utf-8").splitlines()
    blocks = [block.split("\n") for block in re.split(r"\n[ \t]*\n", "\n".join(lines))]
    found: list[Printed] = []
    left = list(LAYOUTS)
    for block in blocks:
        for table in left:
            names = list(LAYOUTS[table])
            header = [line.strip() for line in block]
            start = next((at for at in range(len(block)) if header[at : at + len(names)] == names), None)
            if start is None:
                continue
            cells = [line.replace("\u00a0", " ").strip() for line in block[start + len(names) :]]
            width = len(names)
            full = [tuple(cells[at : at + width]) for at in range(0, len(cells) - width + 1, width)]
            found += [Printed(table, position, row) for position, row in enumerate(full, 1)]
            left.remove(table)
            break
    return found


def comparator_results() -> pd.DataFrame:
    """The NVIDIA rows, latency and throughput of one batch joined, as one table of one document."""
    joined: dict[tuple[str, ...], dict[str, Any]] = {}
    with (SHARED / "facts" / "comparators_nvidia.csv").open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            key = tuple(line[name] for name in ("path", "commit", "system", "model", "task", "precision", "batch"))
            precision, _, compiler = (part.strip() for part in line["precision"].partition("+"))
            chips = re.match(r"(\d+)x", line["system"])
            column = "latency_ms" if "latency" in line["metric"] else "throughput"
            joined.setdefault(key, {})[column] = float(line["value"])
            joined[key] |= {
                "origin": "published",
                "publisher": "NVIDIA",
                "document_id": "nvidia-comparators",
                "table_name": "nvidia_a100",
                "row_number": len(joined),
                "result_id": hashlib.sha256("/".join(key).encode()).hexdigest()[:16],
                "task": line["task"].split()[0],
                "model": line["model"],
                "platform": line["system"],
                "chip_count": int(chips.group(1)) if chips else None,
                "framework": line["path"].split("/")[0],
                "compute_precision": precision,
                "compiler": compiler or None,
                "batch_size": int(line["batch"]) if line["batch"].isdigit() else None,
                "item": "item",
            }
    return frame("results", joined.values())


def history_results() -> pd.DataFrame:
    """The rows of earlier versions of the training table, one document per version."""
    with (SHARED / "facts" / "page_history_bow_training.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    records = [
        result_of(
            Printed(
                "bow_training",
                position,
                tuple(line[name] for name in (*list(TRAINING.values())[:-1], "throughput_items_per_s")),
                f"history-{line['page_version'].lower()}",
            )
        )
        | {"table_name": "bow_training_history"}
        for position, line in enumerate(lines, 1)
    ]
    return frame("results", records)


Finding = tuple[str, str, str, str, str | None]


def found(rule_id: str, printed: Sequence[Printed], **more: Any) -> list[Finding]:
    """What one rule finds, in printed order: severity, `table row`, column, message, suggestion."""
    rule = next(rule for rule in RULES if rule.id == rule_id)
    flags = rule.find(dataset(printed, **more))
    assert set(flags["rule"]) <= {rule_id}
    order = {row.result_id: position for position, row in enumerate(printed)}
    place = {row.result_id: f"{row.table} {row.number}" for row in printed}
    records = flags.astype(object).where(flags.notna(), None).to_dict("records")
    records = sorted(records, key=lambda flag: (order[flag["result_id"]], flag["column_name"]))
    return [
        (flag["severity"], place[flag["result_id"]], flag["column_name"], flag["message"], flag["suggested"])
        for flag in records
    ]


# Rows of the performance page of 2023-07-04 that more than one test speaks of.

FASTSPEECH = rows(
    "bow_inference",
    "FastSpeech2 | | Bow-2000 | SDK 3.1 | TensorFlow2 | Synthetic (host-generated) | 4 | 16.16 | 2,610 | 1.53",
    "FastSpeech2 | | Bow-2000 | SDK 3.1 | TensorFlow2 | Synthetic (host-generated) | 16 | 16.16 | 4,354 | 0.92",
    "FastSpeech2 | | Bow-2000 | SDK 3.1 | TensorFlow2 | Synthetic (host-generated) | 32 | 16.16 | 4,949 | 0.81",
    "FastSpeech2 | | Bow-2000 | SDK 3.1 | TensorFlow2 | Synthetic (host-generated) | 60 | 16.16 | 5,201 | 0.77",
    first=34,
)
BERT_LARGE = rows(
    "bow_inference",
    "BERT-Large | SL128 | Bow-2000 | SDK 3.1 | PopART | SQuAD | 4 | 16.16 | 2,908 | 1.36",
    "BERT-Large | SL128 | Bow-2000 | SDK 3.1 | PopART | SQuAD | 8 | 16.16 | 4,096 | 1.94",
    "BERT-Large | SL128 | Bow-2000 | SDK 3.1 | PopART | SQuAD | 12 | 16.16 | 4,655 | 2.56",
    "BERT-Large | SL128 | Bow-2000 | SDK 3.1 | PopART | SQuAD | 16 | 16.16 | 5,292 | 3.01",
    first=4,
)
EFFICIENTNET_B0 = rows(
    "pod_inference",
    "EfficientNet-B0 | | IPU-M2000 | SDK 2.4.0 | PyTorch | Synthetic (host-generated) | 128 | 16.16 | 86,986 | 6.77",
    "EfficientNet-B0 | | IPU-M2000 | SDK 2.4.0 | PyTorch | Synthetic (host-generated) | 144 | 16.16 | 69,852 | 9.15",
    "EfficientNet-B0 | | IPU-M2000 | SDK 2.4.0 | PyTorch | Synthetic (host-generated) | 196 | 16.16 | 61,714 | 13.38",
    first=40,
)
RESNEXT = rows(
    "pod_inference",
    "ResNeXt101 | | IPU-M2000 | SDK 2.4.0 | PyTorch | Synthetic (host-generated) | 4 | 16.16 | 3,395 | 1.14",
    "ResNeXt101 | | IPU-M2000 | SDK 2.4.0 | PyTorch | Synthetic (host-generated) | 8 | 16.16 | 4,840 | 1.62",
    "ResNeXt101 | | IPU-M2000 | SDK 2.4.0 | PyTorch | Synthetic (host-generated) | 16 | 16.16 | 6,483 | 2.43",
    "ResNeXt101 | | IPU-M2000 | SDK 2.4.0 | PyTorch | Synthetic (host-generated) | 64 | 16.16 | 11,320 | 27.83",
    first=32,
)
YOLO_BOW = rows(
    "bow_inference",
    *(
        f"Yolo v4 | image {variant} | Bow-2000 | SDK 3.3 | PyTorch | Synthetic (host-generated) | {figures}"
        for variant, figures in (
            ("896, bps 5, max det 200", "4 | 16.16 | 924 | 6.49"),
            ("896, bps 10, max det 300", "4 | 16.16 | 988 | 6.76"),
            ("640, bps 5, max det 200", "8 | 16.16 | 1,854 | 6.61"),
            ("640, bps 10, max det 300", "8 | 16.16 | 1,948 | 6.92"),
            ("512, bps 5, max det 200", "8 | 16.16 | 2,477 | 4.81"),
            ("512, bps 10, max det 300", "8 | 16.16 | 2,663 | 4.93"),
            ("416, bps 5, max det 200", "8 | 16.16 | 3,202 | 3.7"),
            ("416, bps 10, max det 100", "16 | 16.16 | 4,268 | 6.28"),
        )
    ),
    first=19,
)
YOLO_POD = rows(
    "pod_inference",
    *(
        f"Yolo v4 | image {variant} | IPU-M2000 | SDK 2.4.0 | PyTorch | Synthetic (host-generated) | {figures}"
        for variant, figures in (
            ("896, bps 5, max det 200", "4 | 16.16 | 690 | 9.4"),
            ("896, bps 10, max det 300", "4 | 16.16 | 722 | 9.74"),
            ("640, bps 5, max det 200", "8 | 16.16 | 1,306 | 10.03"),
            ("640, bps 10, max det 300", "8 | 16.16 | 1,364 | 10.39"),
            ("512, bps 5, max det 200", "8 | 16.16 | 1,772 | 7.25"),
            ("512, bps 10, max det 300", "8 | 16.16 | 1,915 | 7.31"),
            ("416, bps 5, max det 200", "4 | 16.16 | 2,195 | 5.88"),
            ("416, bps 10, max det 100", "4 | 16.16 | 2,994 | 9.42"),
        )
    ),
    first=62,
)
RESNET_256 = rows(
    "bow_inference",
    "ResNet-50v1.5 | | Bow-2000 | SDK 3.3 | PyTorch | Synthetic (host-generated) | 256 | 16.16 | 46,174 | 26.16",
    first=12,
) + rows(
    "pod_inference",
    "ResNet-50v1.5 | | IPU-M2000 | SDK 2.4.0 | PyTorch | Synthetic (host-generated) | 256 | 16.16 | 49,816 | 25.13",
    first=25,
)
DINO = rows(
    "bow_training",
    "DINO | Vision Transformer | Bow Pod16 | SDK 3.3 | PyTorch | ImageNet1k | 3,200 | 16.16 | 696",
    "DINO | Vision Transformer | Bow Pod64 | SDK 3.2 | PyTorch | ImageNet1k | 3,200 | 16.16 | 3,437",
    first=54,
)
VIT = rows(
    "bow_training",
    "ViT | Pre-Training | Bow Pod16 | SDK 3.3 | PyTorch | ImageNet1k | 65,536 | 16.16 | 7,608",
    "ViT | Pre-Training | Bow Pod64 | SDK 3.3 | PyTorch | ImageNet1k | 65,536 | 16.16 | 26,185",
    first=51,
)
TGN = rows(
    "bow_training",
    "TGN | Temporal Graph Network | 1x Bow IPU | SDK 3.3 | Pytorch Geometric | | | | 31,617",
    first=36,
)
CLUSTER_GCN = rows(
    "bow_training",
    "Cluster-GCN | | Bow-2000 | SDK 3.2 | TensorFlow2 | PPI | | 16.16 | 684,439",
    first=37,
)
FASTPITCH = rows(
    "bow_training",
    "FastPitch | frames/s | Bow Pod16 | SDK 3.3 | PyTorch | Generated | 128 | 32.32 | 1,489,341",
    first=35,
)
CLIP = rows(
    "bow_training",
    "CLIP | Multimodel (language/vision) | Bow Pod8 | SDK 3.3 | PyTorch | c3m | 795 | 16.16 | 2,498",
    "MPNN-GIN | MP Graph Isomorphism n/w | Bow-2000 | SDK 3.3 | TensorFlow2 | Generated | 1,024 | 16.16 | 473,608",
    first=64,
)
UNET = rows(
    "bow_inference",
    "Unet (Medical) | | Bow-2000 | SDK 3.3 | TensorFlow2 | Synthetic (host-generated) | 4 | 16.16 | 1,920 |",
    first=32,
)
MCMC = rows(
    "pod_time_to_result",
    "MCMC TFP | | IPU-M2000 | SDK 2.4.0 | TensorFlow1 | Proprietary | | 32.32 | 49",
)
GPT2 = rows(
    "bow_inference",
    "GPT2 | GPT2-Small | Bow Pod16 | SDK 3.3 | PyTorch | Synthetic (host-generated) | 4 | 16.16 | 1,361 | 5.51",
    "GPT2 | GPT2-Medium | Bow Pod16 | SDK 3.3 | PyTorch | Synthetic (host-generated) | 2 | 16.16 | 337 | 11.75",
    "GPT2 | GPT2-Large | Bow Pod16 | SDK 3.3 | PyTorch | Synthetic (host-generated) | 2 | 16.16 | 97 | 20.57",
)
GPT2_TRAINING = rows(
    "bow_training",
    "GPT2 | GPT2-Medium (SL1024) | Bow Pod16 | SDK 3.3 | PyTorch | Wikipedia | 8,192 | 16.16 | 337",
    first=27,
)
EFFICIENTNET_B4 = rows(
    "bow_training",
    "EfficientNet-B4 | G16-EfficientNet | Bow Pod16 | SDK 3.0 | TensorFlow1 | ImageNet2012 | 6,144 | 16.16 | 9,000",
    "EfficientNet-B4 | G16-EfficientNet | Bow Pod16 | SDK 3.3 | PyTorch | ImageNet2012 | 1,024 | 16.32 | 8,223",
    "EfficientNet-B4 | G16-EfficientNet | Bow Pod64 | SDK 3.0 | TensorFlow1 | ImageNet2012 | 6,144 | 16.16 | 34,140",
    first=47,
)
EFFICIENTDET = rows(
    "bow_inference",
    "EfficientDet-D0 | | Bow-2000 | SDK 3.3 | TF2 w/Keras | Synthetic (host-generated) | 16 | 16.16 | 5,171 | 0.77",
    first=27,
)
BERT_BASE = rows(
    "bow_inference",
    "BERT-Base | SL128 | Bow-2000 | SDK 3.1 | PopART | SQuAD | 4 | 16.16 | 6,508 | 0.6",
    "BERT-Base | SL128 | Bow-2000 | SDK 3.1 | PopART | SQuAD | 320 | 16.16 | 28,069 | 11.41",
    first=8,
)
RESNEXT_TENSORFLOW = rows(
    "pod_inference",
    "ResNeXt101 | | IPU-M2000 | SDK 2.4.0 | TensorFlow1 | Synthetic (host-generated) | 4 | 16.16 | 4,483 | 2.66",
    first=27,
)
OGB_ROWS = rows(
    "ogb_lsc",
    "PCQM4Mv2 | GPS++ | Bow Pod16 | SDK 3.0 | TensorFlow2 | 17,800 | 23h 43m | 0.0719 MAE | First",
    "WikiKG90Mv2 | TransE (256) | Bow Pod16 | SDK 3.0 | Poplar | 1,260,000 | 11h 50m | 0.2562 MRR | First",
)
MLPERF_ROWS = rows(
    "mlperf_v2_training",
    "Closed | ResNet50 v1.5 | 75.90% classification | Bow Pod64 | SDK 2.5.1 | TensorFlow | 2.0-2050 | ImageNet2012 "
    "| 16.16 | 6.30",
    "Open | RNN-T | - | Bow Pod64 | SDK 2.5.1 | PopART | 2.0-2125 | Customer dataset | 16.16 | 109.36",
    first=2,
)
