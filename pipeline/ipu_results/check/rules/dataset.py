"""What the rules look at: the published tables of one build, and what several rules compute from them once."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ipu_results._util.resources import SCHEMA

IDENTITIES = SCHEMA / "vocabulary" / "identities.toml"
USED = (
    "result_id",
    "document_id",
    "table_name",
    "row_number",
    "task",
    "model",
    "variant",
    "dataset",
    "platform",
    "chip",
    "chip_count",
    "sdk_version",
    "framework",
    "compiler",
    "precision",
    "compute_precision",
    "batch_size",
    "throughput",
    "item",
    "latency_ms",
    "latency_basis",
    "efficiency",
)
LABELS = {"document_id": "str", "table_name": "str", "printed": bool, "section": "str"}


@dataclass(frozen=True, slots=True)
class Identity:
    """Which network ran under a model name, on one platform and framework; `parameters` counts trained weights."""

    model: str
    platform: str
    framework: str
    network: str
    parameters: int
    severity: str
    source: str


def load_identities(path: Path = IDENTITIES) -> tuple[Identity, ...]:
    with path.open("rb") as file:
        return tuple(Identity(**entry) for entry in tomllib.load(file)["identity"])


@dataclass(frozen=True, eq=False)
class Dataset:
    """The tables of one build, in the dtypes of `schema.frame_dtypes`, and what is known of the printed tables.

    `sections` tells which platform the text around a table speaks of; `printed_tables` are those whose printed
    header promises cells. Both name a table as (document_id, table_name). `official` is `mlperf_entries`.
    `work` and `peaks` are those of the vocabulary.
    """

    results: pd.DataFrame
    cells: pd.DataFrame
    platforms: pd.DataFrame
    models: pd.DataFrame
    official: pd.DataFrame
    configurations: pd.DataFrame
    sections: Mapping[tuple[str, str], str]
    printed_tables: frozenset[tuple[str, str]]
    identities: Sequence[Identity]
    work: Mapping[tuple[str, str], float]
    peaks: Mapping[str, str]

    @cached_property
    def published(self) -> pd.DataFrame:
        """The published rows in printed order, index from 0, with columns that the rules share.

        `in_flight`: batches in flight, throughput × latency / (1000 × batch); `family`: generation of the machine;
        `section`, `printed`: of its table. Measured and emulated rows have checks of their own.
        """
        rows = self.results.loc[self.results["origin"] == "published", list(USED)]
        rows = rows.sort_values(["document_id", "table_name", "row_number", "result_id"], ignore_index=True)
        rows = rows.merge(self._labels(rows), on=["document_id", "table_name"], how="left", validate="m:1")
        families = self.platforms.drop_duplicates("platform").set_index("platform")["family"]
        batch = rows["batch_size"].astype("float64")
        return rows.assign(
            family=rows["platform"].map(families),
            batch_size=batch,
            chip_count=rows["chip_count"].astype("float64"),
            in_flight=rows["throughput"] * rows["latency_ms"] / (1000 * batch),
        )

    def _labels(self, rows: pd.DataFrame) -> pd.DataFrame:
        tables = rows[["document_id", "table_name"]].drop_duplicates()
        names = list(zip(tables["document_id"], tables["table_name"], strict=True))
        printed = np.array([name in self.printed_tables for name in names], dtype=bool)
        section = [self.sections.get(name, np.nan) for name in names]
        return tables.assign(printed=printed, section=section).astype(LABELS)

    @cached_property
    def printed_cells(self) -> pd.DataFrame:
        """The cells of published rows in their own documents by row and cell number; `row` is as in `published`."""
        positions = pd.Index(self.published["result_id"]).get_indexer(self.cells["result_id"])
        cells = self.cells.assign(row=positions)
        cells = cells[cells["row"] >= 0]
        own = self.published["document_id"].array.take(cells["row"].to_numpy())
        cells = cells[(cells["document_id"] == own).to_numpy()]
        return cells.iloc[np.lexsort((cells["cell_number"].to_numpy(dtype="int64"), cells["row"]))]

    def once(self, compute: Callable[[Dataset], pd.DataFrame]) -> pd.DataFrame:
        """What `compute` makes of this dataset, made once for all rules that need it."""
        if compute not in self._made:
            self._made[compute] = compute(self)
        return self._made[compute]

    @cached_property
    def _made(self) -> dict[Any, Any]:
        return {}

    def groups(self, *columns: str) -> Any:
        """One integer per published row, the same where all `columns` are; null equals null."""
        if columns not in self._made:
            self._made[columns] = self._combined(columns)
        return self._made[columns]

    def _combined(self, columns: tuple[str, ...]) -> Any:
        if len(columns) == 1:
            return pd.factorize(self.published[columns[0]])[0].astype("int64") + 1
        head, last = self.groups(*columns[:-1]), self.groups(columns[-1])
        return pd.factorize(head * (last.max(initial=0) + 1) + last)[0].astype("int64")

    def place(self, rows: pd.Series) -> list[str]:
        """Where rows of `published` stand, for messages: `bow_training row 12 (DINO, Bow Pod64)`."""
        named = self.published.loc[rows, ["table_name", "row_number", "model", "platform"]]
        return [f"{table} row {number} ({model}, {platform})" for table, number, model, platform in _tuples(named)]


def _tuples(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(zip(*(frame[column].to_list() for column in frame), strict=True))
