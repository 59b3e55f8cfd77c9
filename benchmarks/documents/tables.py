"""Tables whose figures are known: what a careful reader of the printed document reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from random import Random

from ipu_results.schema.vocabulary import TableHeader, load_vocabulary

from benchmarks.generate import (
    BOW,
    CLASSIC,
    DATASETS,
    FRAMEWORKS,
    LENGTHS,
    MODELS,
    PRECISIONS,
    SDKS,
)

FIGURE_FIELDS = frozenset(
    {
        "batch_size",
        "throughput",
        "latency_ms",
        "time_to_train_s",
        "time_to_result_s",
        "quality_value",
        "efficiency",
    }
)
LABELS_LEFT_BLANK = frozenset({"variant", "dataset"})
PAGE_TABLES = (
    "bow_training",
    "bow_inference",
    "pod_training",
    "pod_inference",
    "pod_time_to_result",
    "mlperf_v2_training",
    "ogb_lsc",
)
PAPER_TABLES = ("qwant_table_1", "qwant_table_2", "qwant_table_3")
PRINTED_UNITS = {
    "Throughput": "items/sec",
    "Latency": "ms",
    "Time To Result": "secs",
    "Energy efficiency": "images/s/W",
}
MINUTES = {"mlperf_v2_training": {"Time to Train": "mins"}}
CAPTIONS = {
    "qwant_table_1": "Table 1. Latency results for ResNeXt101 (milliseconds per batch)",
    "qwant_table_2": "Table 2. Throughput results (images/second) for ResNeXt101",
    "qwant_table_3": "Table 3. Energy efficiency results (images/second/watt) for ResNeXt101",
}
METRICS = ("MAE", "accuracy", "MRR")
PLAIN = "plain"
RAISED = "raised"
BOLD = "bold"
UNREADABLE = "unreadable"
"""Metric of a cell from which no figure may be read."""


@dataclass(frozen=True, slots=True)
class Run:
    """Text in one style: a footnote mark is RAISED."""

    text: str
    style: str = PLAIN


@dataclass(frozen=True, slots=True)
class Cell:
    """What is printed in a cell, and what it says: its text, or its figure and the name of a
    metric.

    `markup`, if there is any, is the HTML of a cell that runs cannot express. `spans` is (columns,
    rows).
    """

    runs: tuple[Run, ...]
    text: str
    value: Decimal | None = None
    metric: str = ""
    markup: str = ""
    spans: tuple[int, int] = (1, 1)

    @property
    def printed(self) -> str:
        return "".join(run.text for run in self.runs)

    def write(self, text: str) -> Cell:
        """Print the same figure in another form."""
        return replace(self, runs=(Run(text),), text=text)


@dataclass(slots=True)
class Table:
    """A printed table of a known header."""

    header: TableHeader
    columns: tuple[str, ...]
    rows: list[list[Cell]]
    caption: str = ""
    note: str = ""
    """A row of one cell over the whole width, printed last."""

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(self.header.field_of(name) for name in self.columns)


@cache
def find_table(name: str) -> TableHeader:
    return next(header for header in load_vocabulary().table_headers if header.table == name)


def draw_tables(
    random: Random, paper: bool, rows: int, units_in_captions: bool = False
) -> list[Table]:
    """Draw the three tables of a paper, or one to three tables of a performance page, with `rows`
    rows each.
    """
    if paper:
        batches = [str(batch) for batch in random.sample(range(1, 65), rows)]
        return [
            _draw_table(random, name, rows, batches, units_in_captions) for name in PAPER_TABLES
        ]
    names = random.sample(PAGE_TABLES, random.randint(1, 3))
    return [_draw_table(random, name, rows) for name in names]


def _draw_table(
    random: Random, name: str, rows: int, batches: Sequence[str] = (), bare: bool = False
) -> Table:
    header = find_table(name)
    units = {} if bare else PRINTED_UNITS | MINUTES.get(name, {})
    columns = []
    for printed in header.names:
        columns.append(f"{printed} ({units[printed]})" if printed in units else printed)
    table = Table(header, tuple(columns), [], CAPTIONS.get(name, ""))
    for number in range(rows):
        table.rows.append([_draw_cell(random, name, field, number) for field in table.fields])
    for row, batch in zip(table.rows, batches, strict=False):
        row[table.fields.index("batch_size")] = _figure(batch)
    return table


def _draw_cell(random: Random, table: str, field_name: str, number: int) -> Cell:
    if field_name in FIGURE_FIELDS:
        return _draw_figure(random, table, field_name)
    words = {
        "model": list(MODELS),
        "variant": [f"SL{length}, configuration {number}" for length in LENGTHS],
        "platform": CLASSIC if table.startswith("pod") else BOW,
        "sdk_version": SDKS,
        "framework": FRAMEWORKS,
        "dataset": [f"PCQM4Mv{number}"] if table == "ogb_lsc" else DATASETS,
        "precision": PRECISIONS,
        "division": ("Open", "Closed"),
        "mlperf_id": [f"2.0-{2000 + number}"],
        "quality_target": ["75.90% classification"],
        "ranking": [str(number + 1)],
    }
    choices = words[field_name]
    text = choices[0] if len(choices) == 1 else random.choice(choices)
    return Cell((Run(text),), text)


def _draw_figure(random: Random, table: str, field_name: str) -> Cell:
    if field_name == "batch_size":
        return _figure(str(random.choice((1, 4, 16, 256, 1024, 8192, 65536))))
    if field_name == "quality_value":
        metric = random.choice(METRICS)
        cell = _figure(f"{random.random():.4f}")
        return replace(cell.write(f"{cell.text} {metric}"), metric=metric)
    if table == "ogb_lsc" and field_name == "time_to_train_s":
        hours = random.randint(1, 90)
        minutes = random.randint(0, 59)
        text = f"{hours}h {minutes}m"
        return Cell((Run(text),), text, Decimal(hours * 3600 + minutes * 60))
    digits = random.choice((0, 1, 2, 3))
    size = random.choice((1, 10, 100, 10_000, 1_000_000))
    return _figure(f"{size * random.uniform(1, 10):.{digits}f}")


def _figure(text: str) -> Cell:
    value = Decimal(text)
    return Cell((), "", value).write(f"{value:,}")


def columns_of(table: Table, *fields: str) -> list[int]:
    return [place for place, name in enumerate(table.fields) if name in fields]


def to_cell(text: str) -> Cell:
    """Return a cell of plain text."""
    return Cell((Run(text),), text)
