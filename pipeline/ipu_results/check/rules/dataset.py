"""What the rules look at, the tables of one build and what several rules derive from them once, and
how they flag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from string import Formatter
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ipu_results.ground.physics import count_batches_in_flight
from ipu_results.schema import table
from ipu_results.schema.frames import DTYPES, build_frame, build_frame_from_columns
from ipu_results.schema.vocabulary import Vocabulary

USED = """
    result_id document_id table_name row_number task model_printed variant dataset_printed platform chip chip_count
    sdk_version framework precision_printed batch_size micro_batch_size throughput item latency_ms latency_basis
    activation_bits latency_std_ms conditions efficiency energy_per_item_j power_w power_scope time_to_result_s
""".split()
CELLS_USED = (
    "result_id cell_number column_name header raw_text value unit factor document_id".split()
)


@dataclass(frozen=True, eq=False)
class Dataset:
    """The tables of one build, with the dtypes of `frame_dtypes`.

    `official` is `mlperf_entries`.
    """

    results: pd.DataFrame
    cells: pd.DataFrame
    platforms: pd.DataFrame
    models: pd.DataFrame
    official: pd.DataFrame
    configurations: pd.DataFrame
    source_tables: pd.DataFrame
    figures: pd.DataFrame
    operation_counts: pd.DataFrame
    vocabulary: Vocabulary
    microbenchmarks: pd.DataFrame = field(
        default_factory=lambda: build_frame(table("microbenchmarks"), [])
    )
    contradicted: pd.DataFrame = field(
        default_factory=lambda: build_frame(table("contradicted"), [])
    )
    contradictions: pd.DataFrame = field(
        default_factory=lambda: build_frame(table("contradictions"), [])
    )

    @cached_property
    def published(self) -> pd.DataFrame:
        """The published rows in printed order, index from 0, with columns that the rules share.

        `in_flight` is batches in flight, throughput × latency / (1000 × batch). `family` is the
        generation of the machine, `rated_power_w` what it may draw. `printed` says whether the
        header of the table is. Measured and emulated rows have checks of their own.
        """
        rows = self.results.loc[self.results["origin"] == "published", USED]
        order = ("document_id", "table_name", "row_number", "result_id")
        # Arrow takes a tenth of the time of pandas
        keys = pa.table({name: pa.array(rows[name]) for name in order})
        rows = rows.take(
            pc.sort_indices(keys, [(name, "ascending") for name in order])
        ).reset_index(drop=True)
        printed = self.source_tables.loc[
            self.source_tables["header_printed"], ["document_id", "table_name"]
        ]
        rows = rows.merge(
            printed.assign(printed=True),
            on=["document_id", "table_name"],
            how="left",
            validate="m:1",
        )
        rows["printed"] = rows["printed"].eq(True)
        machines = self.platforms.drop_duplicates("platform", ignore_index=True)
        machines = machines.reindex(
            find_positions(rows["platform"], machines["platform"])
        ).set_axis(rows.index)
        batch = rows["batch_size"].astype("float64")
        return rows.assign(
            family=machines["family"],
            rated_power_w=machines["rated_power_w"].astype("float64"),
            batch_size=batch,
            chip_count=rows["chip_count"].astype("float64"),
            in_flight=count_batches_in_flight(rows["throughput"], rows["latency_ms"], batch),
        )

    @cached_property
    def printed_cells(self) -> pd.DataFrame:
        """The cells of published rows in their own documents by row and cell number; `row` is as in
        `published`.

        The index is the position in `cells`, from which `read_cells` adds columns: most rules look
        at few of the cells.
        """
        rows = find_positions(self.cells["result_id"], self.published["result_id"])
        documents = self.published["document_id"].drop_duplicates()
        own = find_positions(self.published["document_id"], documents)
        cells = np.flatnonzero(rows >= 0)
        cells = cells[
            find_positions(self.cells["document_id"], documents)[cells] == own[rows[cells]]
        ]
        cells = cells[
            np.lexsort((self.cells["cell_number"].to_numpy(dtype="int64")[cells], rows[cells]))
        ]
        codes, names = pd.factorize(self.cells["column_name"])
        columns = pd.Categorical.from_codes(codes[cells], names)
        return pd.DataFrame({"row": rows[cells], "column_name": columns}, index=cells)

    def read_cells(self, cells: pd.DataFrame, *names: str) -> pd.DataFrame:
        """Add columns of `cells` to some of `printed_cells`."""
        return cells.assign(
            **{name: self.cells[name].array.take(cells.index.to_numpy()) for name in names}
        )

    def compute_once(self, compute: Callable[[Dataset], pd.DataFrame]) -> pd.DataFrame:
        """Return what `compute` derives from this dataset, computed once for all rules."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        return self._computed[compute]

    @cached_property
    def _computed(self) -> dict[Any, Any]:
        return {}

    def groups(self, *columns: str) -> Any:
        """Return one integer per published row, equal if all `columns` are equal; null equals null."""
        if columns not in self._computed:
            head = [self.groups(*columns[:-1])] if len(columns) > 1 else []
            self._computed[columns] = number_groups(*head, self.published[columns[-1]])
        return self._computed[columns]

    def format_places(self, rows: pd.Series) -> list[str]:
        """Describe rows of `published` for messages: `bow_training row 12 (DINO, Bow Pod64)`."""
        named = self.published.loc[rows, ["table_name", "row_number", "model_printed", "platform"]]
        places = zip(*(named[column].to_list() for column in named), strict=True)
        return [
            f"{table} row {number} ({model}, {platform})"
            for table, number, model, platform in places
        ]


def number_groups(*columns: Any) -> Any:
    """Return one integer per row, equal if all columns are equal; null equals null.

    New ones are one higher each.
    """
    numbers, *others = (
        pd.factorize(column, use_na_sentinel=False)[0].astype("int64") for column in columns
    )
    for other in others:
        numbers = pd.factorize(numbers * (other.max(initial=0) + 1) + other)[0].astype("int64")
    return numbers


def find_first(numbers: Any) -> Any:
    """Return the position of the first row of each of `number_groups`."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(numbers), prepend=-1))


def find_positions(values: pd.Series, known: pd.Series) -> Any:
    """Return the position of each value among the known ones, -1 for an unknown value."""
    array = pa.array(values)
    # Equal values follow each other, such as the ids of the cells of a row.
    runs = pc.run_end_encode(
        array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    )
    positions = pc.fill_null(pc.index_in(runs.values, value_set=pa.array(known)), -1)
    return np.repeat(positions.to_numpy(zero_copy_only=False), np.diff(runs.run_ends, prepend=0))


def map_texts(texts: pd.Series, function: Callable[[pd.Series], pd.DataFrame]) -> pd.DataFrame:
    """Apply a function to the distinct texts, and return its rows for each of the texts."""
    codes, distinct = pd.factorize(texts, use_na_sentinel=False)
    return function(pd.Series(distinct, dtype=texts.dtype)).take(codes).set_axis(texts.index)


def count_decimals(texts: pd.Series) -> pd.Series[float]:
    """Return the number of digits after the point at the end of each text."""
    return (
        extract_parts(texts, r"\.(?P<digits>\p{Nd}+)$")["digits"]
        .str.len()
        .fillna(0)
        .astype("float64")
    )


def extract_parts(texts: pd.Series, pattern: str) -> pd.DataFrame:
    """Return the named groups of a pattern as `Series.str.extract` does, in a tenth of its time.

    See the RE2 syntax.
    """
    parts = pc.extract_regex(pa.array(texts, pa.string()), pattern)
    columns = {field.name: pc.struct_field(parts, field.name) for field in parts.type}
    return pa.table(columns).to_pandas(types_mapper=DTYPES.get).set_axis(texts.index)


def build_dataset(
    frames: Mapping[str, pd.DataFrame],
    vocabulary: Vocabulary,
    contradictions: Mapping[str, str] = MappingProxyType({}),
) -> Dataset:
    """Collect what the rules look at."""
    names = (
        "results",
        "cells",
        "platforms",
        "models",
        "configurations",
        "microbenchmarks",
        "contradicted",
        "source_tables",
        "figures",
        "operation_counts",
    )
    return Dataset(
        **{name: frames[name] for name in names},
        official=frames["mlperf_entries"],
        vocabulary=vocabulary,
        contradictions=pd.DataFrame(
            {"contradiction_id": contradictions.keys(), "what": contradictions.values()}, dtype="str"
        ),
    )


FLAGS = table("flags")
NO_FLAGS = build_frame(FLAGS, [])


def build_flags(
    rule: str,
    severity: str | Sequence[str] | Any,
    rows: pd.DataFrame,
    column_name: str | Sequence[str] | Any,
    message: str | Sequence[str],
    *,
    suggested: str | Sequence[str | None] | None = None,
) -> pd.DataFrame:
    """Build one flag per row of `rows`, which holds result_id.

    Severity and column are per row or the same for all. Message and suggestion are per row, or one
    template that `fill_template` fills.
    """
    if rows.empty:
        return build_no_flags()
    texts = [
        fill_template(value, rows) if isinstance(value, str) else value
        for value in (message, suggested)
    ]
    values = (rule, severity, rows["result_id"].array, column_name, *texts)
    columns = {
        name: _build_column(value, len(rows))
        for name, value in zip(FLAGS.names, values, strict=True)
    }
    return build_frame_from_columns(FLAGS, columns)


def _build_column(value: Any, length: int) -> Any:
    if value is None or isinstance(value, str):
        return pa.repeat(pa.scalar(value, pa.string()), length)
    return pa.array(value, pa.string(), from_pandas=True)


def build_no_flags() -> pd.DataFrame:
    return NO_FLAGS.copy()


class TemplateFigure(float):
    """A double in a template: written without an exponent, and `{name:3}` rounds it to three
    significant digits.
    """

    def __format__(self, digits: str) -> str:
        return format_figure(
            float(float.__format__(self, f".{digits}g")) if digits else float(self)
        )


def fill_template(template: str, rows: pd.DataFrame) -> list[str]:
    """Fill `template` with the columns of each row; doubles are written as TemplateFigure says."""
    names = sorted({name for _, name, _, _ in Formatter().parse(template) if name})
    columns = (rows[name].to_list() for name in names)
    figures = (
        [TemplateFigure(value) if isinstance(value, float) else value for value in column]
        for column in columns
    )
    return [
        template.format(**dict(zip(names, values, strict=True)))
        for values in zip(*figures, strict=True)
    ]


def format_figure(value: float) -> str:
    """Format a double with as few digits as identify it, no exponent and no thousands mark, such as
    `1489341`.
    """
    text = f"{value:.12g}"
    return np.format_float_positional(value, trim="-") if "e" in text else text


def round_figures(values: pd.Series) -> pd.Series:
    """Round doubles to three significant digits, for ratios and estimates."""
    return pd.Series(
        [float(f"{value:.3g}") for value in values], index=values.index, dtype="float64"
    )
