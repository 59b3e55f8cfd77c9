"""Check what a row is about, and how its figures are printed: names, items, repeats, lost zeros, thousands marks."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import Dataset, build_flags, build_no_flags, fill_template, map_texts
from ipu_results.schema import table

NAMED = ("model", "platform", "framework")
WORD_CELLS = ("model", "variant", "platform", "sdk_version", "framework", "dataset", "precision")
PACKED = r"\bpacked\b"
RATE = r"\b([A-Za-z]+)\s*/\s*(?:s|secs?|seconds?)\b"


def flag_unit(data: Dataset) -> pd.DataFrame:
    """Flag a throughput whose items are printed in another cell, or nowhere.

    It is an error if another cell of the row prints a rate such as `frames/s`, since the column's unit then does not
    hold for this row. It is a warning if no source says what the items are.
    """
    rows = data.published.loc[data.published["throughput"].notna(), ["result_id", "model", "throughput", "item"]]
    cells = data.printed_cells
    cells = cells[cells["column_name"].isin(WORD_CELLS) & cells["value"].isna() & cells["row"].isin(rows.index)]
    cells = cells[cells["raw_text"].str.contains("/", regex=False)]
    rates = cells["raw_text"].str.extract(RATE, expand=False).dropna()
    stated = cells.loc[rates.index, ["row", "result_id", "column_name", "raw_text"]].assign(unit=rates)
    stated = stated.assign(singular=stated["unit"].str.lower().str.removesuffix("s"))
    stated = stated.drop_duplicates("row")
    unstated = rows[rows["item"].isna() & ~rows.index.isin(stated["row"])]
    notes = data.models.set_index("model")["item_note"] if "item_note" in data.models else pd.Series(dtype="str")
    unstated = unstated.assign(note=("; " + unstated["model"].map(notes).astype("str")).fillna(""))
    printed = "the {column_name} cell prints a unit, {raw_text}: the throughput counts {unit} per second"
    unknown = "no source says what the {throughput} items per second of {model} are{note}"
    return pd.concat(
        [
            build_flags("R10", "error", stated, "throughput", printed, suggested="{singular}"),
            build_flags("R10", "warn", unstated, "throughput", unknown),
        ],
        ignore_index=True,
    )


def flag_name_variants(data: Dataset) -> pd.DataFrame:
    """Flag a model, platform or framework whose printed name is one of several and not the canonical one.

    One flag per printed name, at its first row; the message has the number of rows. A name that includes the variant,
    such as `BERT Large SL128`, is not a spelling of the model.
    """
    cells = data.printed_cells
    cells = cells[cells["column_name"].isin(NAMED) & (cells["raw_text"] != "")]
    variants = data.published["variant"].array.take(cells["row"].to_numpy())
    pairs = cells[["raw_text"]].assign(variant=variants)
    may_end = pairs["raw_text"].str.len() >= pairs["variant"].str.len()  # vectorised, as no test of endings is
    with_variant = pairs[may_end].drop_duplicates().dropna()
    with_variant = with_variant[[name.endswith(end) for name, end in with_variant.itertuples(index=False)]]
    if len(with_variant):
        cells = cells[pairs.merge(with_variant.assign(found=True), how="left")["found"].isna().to_numpy()]
    parts = [_names(data, cells, column) for column in NAMED]
    rows = pd.concat([part for part in parts if len(part)], ignore_index=True) if any(map(len, parts)) else parts[0]
    rows = rows[rows["raw_text"] != rows["canonical"]]
    name = ["column_name", "raw_text", "canonical"]
    rows = rows.assign(count=rows.groupby(name)["row"].transform("size")).drop_duplicates(name)
    rows = rows.assign(rows=np.where(rows["count"] > 1, " rows", " row"))
    template = "{raw_text} ({count}{rows}) is one of several printed names of {canonical}: {spellings}"
    return build_flags("R16", "info", rows, rows["column_name"].array, template, suggested="{canonical}")


def _names(data: Dataset, cells: pd.DataFrame, column: str) -> pd.DataFrame:
    rows = cells.loc[cells["column_name"] == column, ["row", "result_id", "column_name", "raw_text"]]
    canonical = data.published[column].array.take(rows["row"].to_numpy())
    rows = rows.assign(canonical=canonical).drop_duplicates("row")
    names = rows[["canonical", "raw_text"]].drop_duplicates().sort_values(["canonical", "raw_text"])
    names = names[names["canonical"].duplicated(keep=False)]
    spellings = names.groupby("canonical")["raw_text"].agg(", ".join)
    rows = rows[rows["canonical"].isin(spellings.index)]
    return rows.assign(spellings=rows["canonical"].map(spellings))


def flag_network_identity(data: Dataset) -> pd.DataFrame:
    """Flag a model name that hides which network ran, if a public configuration or the document names it."""
    if not data.vocabulary.identities:
        return build_no_flags()
    known = pd.DataFrame([asdict(identity) for identity in data.vocabulary.identities])
    known = known.astype({name: data.published[name].dtype for name in NAMED})
    rows = data.published[["result_id", *NAMED]].merge(known, on=list(NAMED), validate="m:1")
    rows = rows.assign(millions=np.round(rows["parameters"] / 1e6, 1))
    template = "{model} names several networks; here {network} ran ({millions} M parameters): {source}"
    return build_flags("R20", rows["severity"].array, rows, "model", template, suggested="{network}")


def flag_packed_batch(data: Dataset) -> pd.DataFrame:
    """Flag the batch of packed sequences: it counts packs, while the throughput counts sequences.

    The variant says that a row is packed, or its dataset is one of packs. A pack holds several sequences, so the batch
    is not a number of the items that the throughput counts.
    """
    rows = data.published[["result_id", "variant", "dataset", "batch_size", "throughput"]]
    packed = rows["variant"].str.contains(PACKED, case=False).eq(True)
    packed |= rows["dataset"].isin(data.vocabulary.packed_datasets)
    rows = rows[packed & rows["batch_size"].notna()]
    template = (
        "batch {batch_size} counts packs, which hold several sequences each; throughput {throughput} counts sequences"
    )
    return build_flags("R27", "info", rows, "batch_size", template)


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
    template = "the cell under the header {header} is blank"
    return build_flags("R09", severity, cells, cells["column_name"].array, template)


def flag_repeated_figure(data: Dataset) -> pd.DataFrame:
    """Flag a figure that two unrelated rows of a document (another model or task) print in the same column.

    Only figures of at least MIN_DIGITS significant digits count: shorter ones coincide by chance.
    """
    cells = data.printed_cells
    cells = cells[cells["column_name"].isin(COMPARED_COLUMNS)].drop_duplicates(["row", "column_name"])
    figures = map_texts(cells["raw_text"], read_digits)
    cells = cells.join(figures["figure"])[figures["digits"] >= MIN_DIGITS]
    rows = cells[["row", "result_id", "column_name", "raw_text", "figure"]].assign(
        document=data.groups("document_id")[cells["row"]],
        kind=data.groups("model", "task")[cells["row"]],
    )
    rows = _join_unrelated(rows)
    more = [f" and {count - 1} more" if count > 1 else "" for count in rows["unrelated"].to_list()]
    rows = rows.assign(place=data.format_places(rows["other"]), more=more)
    template = "{raw_text} is also printed by an unrelated row: {place}{more}"
    return build_flags("R14", "info", rows, rows["column_name"].array, template)


def read_digits(texts: pd.Series) -> pd.DataFrame:
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
    sizes = rows.groupby(["table", "column_name", "decimals"]).size().rename("count").reset_index()
    sizes = sizes.sort_values(["count", "decimals"], ascending=[False, True])
    usual = sizes.drop_duplicates(["table", "column_name"])
    usual = rows[["table", "column_name"]].merge(usual, on=["table", "column_name"], how="left")["decimals"]
    rows = rows.assign(usual=usual.to_numpy(), marks=rows["marked"].groupby(column).transform("any"))
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


def _losses(rows: pd.DataFrame) -> list[str]:
    zero = "{raw_text} has {decimals} of the column's usual {usual} decimals: a trailing zero is lost"
    mark = "{raw_text} has no thousands mark, other figures of the column have one"
    both = zip(rows["short"], fill_template(zero, rows), rows["unmarked"], fill_template(mark, rows), strict=True)
    return ["; ".join([zero] * short + [mark] * unmarked) for short, zero, unmarked, mark in both]


def _full_forms(rows: pd.DataFrame) -> list[str]:
    parts = zip(rows["whole"], rows["digits"], rows["usual"], rows["unmarked"], strict=True)
    whole = [(f"{int(whole):,}" if unmarked else whole, digits, usual) for whole, digits, usual, unmarked in parts]
    return [f"{figure}.{digits.ljust(usual, '0')}" if digits or usual else figure for figure, digits, usual in whole]
