"""Check how figures are printed: blank cells, figures that occur twice, lost zeros and thousands marks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import Dataset, map_texts
from ipu_results.check.rules.findings import build_flags, fill_template
from ipu_results.schema import table

MAY_BE_BLANK = ("variant",)
COMPARED_COLUMNS = ("throughput", "latency_ms", "time_to_train_s", "time_to_result_s")
MIN_DIGITS = 3
NUMBER_COLUMNS = tuple(
    column.name for column in table("results").without_derived().columns if column.kind in ("integer", "double")
)
PLAIN_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"


def flag_blank_cell(data: Dataset) -> pd.DataFrame:
    """Flag a blank cell under a header of the printed table.

    It is only information for a column that may be blank: a row without a variant has none.
    """
    cells = data.printed_cells
    cells = cells[cells["raw_text"] == ""].drop_duplicates(["row", "column_name"])
    cells = cells[data.published["printed"].to_numpy()[cells["row"]]]
    severity = np.where(cells["column_name"].isin(MAY_BE_BLANK), "info", "warn")
    message = fill_template("the cell under the header {header} is blank", cells[["header"]])
    return build_flags("R09", severity, cells, cells["column_name"].array, message)


def flag_repeated_figure(data: Dataset) -> pd.DataFrame:
    """Flag a figure that two unrelated rows of a document (another model or task) print in the same column.

    Only figures of at least MIN_DIGITS significant digits count: shorter ones coincide by chance.
    """
    cells = data.printed_cells
    cells = cells[cells["column_name"].isin(COMPARED_COLUMNS)].drop_duplicates(["row", "column_name"])
    figures = map_texts(cells["raw_text"], _read_digits)
    cells = cells.join(figures["figure"])[figures["digits"] >= MIN_DIGITS]
    rows = cells[["row", "result_id", "column_name", "raw_text", "figure"]].assign(
        document=data.groups("document_id")[cells["row"]],
        kind=data.groups("model", "task")[cells["row"]],
    )
    rows = _join_unrelated(rows)
    rows = rows.assign(place=data.format_places(rows["other"]), more=_more(rows["unrelated"] - 1))
    template = "{raw_text} is also printed by an unrelated row: {place}{more}"
    return build_flags("R14", "info", rows, rows["column_name"].array, fill_template(template, rows))


def _read_digits(texts: pd.Series) -> pd.DataFrame:
    """Return figures without thousands marks, and their significant digits.

    These begin with the first digit that is not zero; zeros at the end of a whole number do not count.
    """
    digits = texts.str.replace(r"\D", "", regex=True).str.lstrip("0")
    significant = digits.where(texts.str.contains(".", regex=False), digits.str.rstrip("0")).str.len()
    return pd.DataFrame({"figure": texts.str.replace(",", ""), "digits": significant})


def _join_unrelated(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows that share a figure with unrelated rows: `other` is the first of these, `unrelated` their number."""
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


def flag_number_format(data: Dataset) -> pd.DataFrame:
    """Flag a printed figure that has lost a trailing zero or its thousands mark, judged by the rest of its column.

    It has fewer decimals than the column's most common number (the smaller of two equally common ones), or is 1,000 or
    more without a mark in a column that prints one elsewhere.
    """
    cells = data.printed_cells
    cells = cells[cells["column_name"].isin(NUMBER_COLUMNS) & data.published["printed"].to_numpy()[cells["row"]]]
    cells = cells[cells["value"].notna()].drop_duplicates(["row", "column_name"])
    parts = map_texts(cells["raw_text"], _split_numbers)
    rows = cells[["result_id", "column_name", "raw_text"]].join(parts)
    rows = rows.assign(table=data.groups("document_id", "table_name")[cells["row"]])[parts["plain"]]
    column = [rows["table"], rows["column_name"]]
    rows = rows.assign(usual=_most_common(rows), marks=rows["marked"].groupby(column).transform("any"))
    short = rows["decimals"] < rows["usual"]
    unmarked = rows["marks"] & ~rows["marked"] & (rows["whole"].str.len() > 3)
    rows = rows.assign(short=short, unmarked=unmarked)[short | unmarked]
    return build_flags("R19", "info", rows, rows["column_name"].array, _losses(rows), suggested=_full_forms(rows))


def _split_numbers(texts: pd.Series) -> pd.DataFrame:
    """Split printed figures at the decimal point; `plain` says whether a text is nothing but a figure."""
    parts = texts.str.extract(r"^(?P<whole>[^.]*)\.?(?P<digits>.*)$")
    return parts.assign(
        plain=texts.str.fullmatch(PLAIN_NUMBER).astype(bool),
        decimals=parts["digits"].str.len().astype("int64"),
        marked=parts["whole"].str.contains(",", regex=False),
    )


def _most_common(rows: pd.DataFrame) -> Any:
    sizes = rows.groupby(["table", "column_name", "decimals"]).size().rename("count").reset_index()
    sizes = sizes.sort_values(["count", "decimals"], ascending=[False, True])
    usual = sizes.drop_duplicates(["table", "column_name"]).drop(columns="count")
    merged = rows[["table", "column_name"]].merge(usual, on=["table", "column_name"], how="left")
    return merged["decimals"].to_numpy()


def _losses(rows: pd.DataFrame) -> list[str]:
    zero = "{raw_text} has {decimals} of the column's usual {usual} decimals: a trailing zero is lost"
    mark = "{raw_text} has no thousands mark, other figures of the column have one"
    both = zip(rows["short"], fill_template(zero, rows), rows["unmarked"], fill_template(mark, rows), strict=True)
    return ["; ".join([zero] * short + [mark] * unmarked) for short, zero, unmarked, mark in both]


def _full_forms(rows: pd.DataFrame) -> list[str]:
    parts = zip(rows["whole"], rows["digits"], rows["usual"], rows["unmarked"], strict=True)
    whole = [(f"{int(whole):,}" if unmarked else whole, digits, usual) for whole, digits, usual, unmarked in parts]
    return [f"{figure}.{digits.ljust(usual, '0')}" if digits or usual else figure for figure, digits, usual in whole]
