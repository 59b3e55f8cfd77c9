"""How figures are printed: blank cells, figures that occur twice, lost zeros and thousands marks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ipu_results import schema
from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import findings, told

BLANK_IS_AN_ANSWER = ("variant",)
TELLING_COLUMNS = ("throughput", "latency_ms", "time_to_train_s", "time_to_result_s")
TELLING_DIGITS = 3
NUMBER_COLUMNS = tuple(
    column.name for column in schema.table("results").columns if column.kind in ("integer", "double")
)
PLAIN_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"


def r09(data: Dataset) -> pd.DataFrame:
    """A cell that the table's printed header promises is blank.

    Only information for a column where blank is an answer: a row without a variant has none.
    """
    cells = data.printed_cells
    cells = cells[cells["raw_text"] == ""].drop_duplicates(["row", "column_name"])
    cells = cells[data.published["printed"].to_numpy()[cells["row"]]]
    severity = np.where(cells["column_name"].isin(BLANK_IS_AN_ANSWER), "info", "warn")
    message = told("the cell under the header {header} is blank", cells[["header"]])
    return findings("R09", severity, cells, cells["column_name"].array, message)


def r14(data: Dataset) -> pd.DataFrame:
    """Two unrelated rows of a document, another model or another task, print the same figure in the same column.

    Only figures of at least TELLING_DIGITS significant digits: shorter ones meet by chance.
    """
    cells = data.printed_cells
    cells = cells[cells["column_name"].isin(TELLING_COLUMNS)].drop_duplicates(["row", "column_name"])
    cells = cells[_significant_digits(cells["raw_text"]) >= TELLING_DIGITS]
    rows = cells[["row", "result_id", "column_name", "raw_text"]].assign(
        figure=cells["raw_text"].str.replace(",", ""),
        document=data.groups("document_id")[cells["row"]],
        kind=data.groups("model", "task")[cells["row"]],
    )
    rows = _beside_unrelated(rows)
    rows = rows.assign(place=data.place(rows["other"]), more=_more(rows["unrelated"] - 1))
    template = "{raw_text} is also printed by an unrelated row: {place}{more}"
    return findings("R14", "info", rows, rows["column_name"].array, told(template, rows))


def _significant_digits(texts: pd.Series) -> pd.Series:
    """Digits from the first that is not zero; zeros that end a whole number may only fill it up and do not count."""
    digits = texts.str.replace(r"\D", "", regex=True).str.lstrip("0")
    return digits.where(texts.str.contains(".", regex=False), digits.str.rstrip("0")).str.len()


def _beside_unrelated(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows that share a figure with one of another kind: `other` is the first such row, `unrelated` their number."""
    same = ["document", "column_name", "figure"]
    rows = rows[rows.duplicated(same, keep=False)]
    rows = rows.assign(group=rows.groupby(same, sort=False).ngroup())
    kinds = rows.drop_duplicates(["group", "kind"])[["group", "kind", "row"]]
    first = kinds.drop_duplicates("group").set_index("group")
    second = kinds[kinds["group"].duplicated()].drop_duplicates("group").set_index("group")
    rows = rows[rows["group"].isin(second.index)]
    size = rows.groupby("group")["row"].transform("size") - rows.groupby(["group", "kind"])["row"].transform("size")
    of_first = rows["kind"] == rows["group"].map(first["kind"])
    other = rows["group"].map(second["row"]).where(of_first, rows["group"].map(first["row"]))
    return rows.assign(other=other.astype("int64"), unrelated=size)


def _more(counts: pd.Series) -> list[str]:
    return [f" and {count} more" if count else "" for count in counts.to_list()]


def r19(data: Dataset) -> pd.DataFrame:
    """A printed figure has lost a trailing zero or its thousands mark, going by the rest of its column.

    Fewer decimals than the column's most common number of them (the smaller of two equally common), or 1,000 and
    more without a mark in a column that prints one elsewhere.
    """
    cells = data.printed_cells
    cells = cells[cells["column_name"].isin(NUMBER_COLUMNS) & data.published["printed"].to_numpy()[cells["row"]]]
    cells = cells[cells["raw_text"].str.fullmatch(PLAIN_NUMBER)].drop_duplicates(["row", "column_name"])
    parts = cells["raw_text"].str.extract(r"^(?P<whole>[^.]*)\.?(?P<digits>.*)$")
    rows = cells[["result_id", "column_name", "raw_text"]].assign(
        table=data.groups("document_id", "table_name")[cells["row"]],
        whole=parts["whole"],
        digits=parts["digits"],
        decimals=parts["digits"].str.len().astype("int64"),
        marked=parts["whole"].str.contains(",", regex=False),
    )
    column = [rows["table"], rows["column_name"]]
    rows = rows.assign(usual=_most_common(rows), marks=rows["marked"].groupby(column).transform("any"))
    short = rows["decimals"] < rows["usual"]
    unmarked = rows["marks"] & ~rows["marked"] & (rows["whole"].str.len() > 3)
    rows = rows.assign(short=short, unmarked=unmarked)[short | unmarked]
    return findings("R19", "info", rows, rows["column_name"].array, _losses(rows), suggested=_full_forms(rows))


def _most_common(rows: pd.DataFrame) -> Any:
    sizes = rows.groupby(["table", "column_name", "decimals"]).size().rename("count").reset_index()
    sizes = sizes.sort_values(["count", "decimals"], ascending=[False, True])
    usual = sizes.drop_duplicates(["table", "column_name"]).drop(columns="count")
    merged = rows[["table", "column_name"]].merge(usual, on=["table", "column_name"], how="left")
    return merged["decimals"].to_numpy()


def _losses(rows: pd.DataFrame) -> list[str]:
    zero = "{raw_text} has {decimals} of the column's usual {usual} decimals: a trailing zero is lost"
    mark = "{raw_text} has no thousands mark, other figures of the column have one"
    both = zip(rows["short"], told(zero, rows), rows["unmarked"], told(mark, rows), strict=True)
    return ["; ".join([zero] * short + [mark] * unmarked) for short, zero, unmarked, mark in both]


def _full_forms(rows: pd.DataFrame) -> list[str]:
    parts = zip(rows["whole"], rows["digits"], rows["usual"], rows["unmarked"], strict=True)
    whole = [(f"{int(whole):,}" if unmarked else whole, digits, usual) for whole, digits, usual, unmarked in parts]
    return [f"{figure}.{digits.ljust(usual, '0')}" if digits or usual else figure for figure, digits, usual in whole]
