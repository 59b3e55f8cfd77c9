"""Check what a row is about: which thing a name means, which network ran, which items were counted."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import build_flags, build_no_flags, fill_template

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
    stated = stated.drop_duplicates("row")
    unstated = rows[rows["item"].isna() & ~rows.index.isin(stated["row"])]
    notes = data.models.set_index("model")["item_note"] if "item_note" in data.models else pd.Series(dtype="str")
    unstated = unstated.assign(note=("; " + unstated["model"].map(notes).astype("str")).fillna(""))
    printed = "the {column_name} cell prints a unit, {raw_text}: the throughput counts {unit} per second"
    unknown = "no source says what the {throughput} items per second of {model} are{note}"
    return pd.concat(
        [
            build_flags(
                "R10",
                "error",
                stated,
                "throughput",
                fill_template(printed, stated),
                suggested=stated["unit"].map(_singular),
            ),
            build_flags("R10", "warn", unstated, "throughput", fill_template(unknown, unstated)),
        ],
        ignore_index=True,
    )


def _singular(unit: str) -> str:
    return unit.lower().removesuffix("s")


def flag_name_variants(data: Dataset) -> pd.DataFrame:
    """Flag a model, platform or framework whose printed name is one of several and not the canonical one.

    One flag per printed name, at its first row; the message has the number of rows. A name that includes the variant,
    such as `BERT Large SL128`, is not a spelling of the model.
    """
    cells = data.printed_cells
    cells = cells[cells["column_name"].isin(NAMED) & (cells["raw_text"] != "")]
    variants = data.published["variant"].array.take(cells["row"].to_numpy())
    pairs = cells[["raw_text"]].assign(variant=variants)
    with_variant = pairs.drop_duplicates().dropna()
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
    return build_flags(
        "R16",
        "info",
        rows,
        rows["column_name"].array,
        fill_template(template, rows),
        suggested=rows["canonical"].to_list(),
    )


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
    if not data.identities:
        return build_no_flags()
    known = pd.DataFrame([asdict(identity) for identity in data.identities])
    known = known.astype({name: data.published[name].dtype for name in NAMED})
    rows = data.published[["result_id", *NAMED]].merge(known, on=list(NAMED), validate="m:1")
    rows = rows.assign(millions=np.round(rows["parameters"] / 1e6, 1))
    template = "{model} names several networks; here {network} ran ({millions} M parameters): {source}"
    return build_flags(
        "R20", rows["severity"].array, rows, "model", fill_template(template, rows), suggested=rows["network"].to_list()
    )


def flag_packed_batch(data: Dataset) -> pd.DataFrame:
    """Flag the batch of packed sequences: it counts packs, while the throughput counts sequences.

    The variant says that a row is packed, or its dataset is one of packs. A pack holds several sequences, so the batch
    is not a number of the items that the throughput counts.
    """
    rows = data.published[["result_id", "variant", "dataset", "batch_size", "throughput"]]
    packed = rows["variant"].str.contains(PACKED, case=False).eq(True) | rows["dataset"].isin(data.packed_datasets)
    rows = rows[packed & rows["batch_size"].notna()]
    template = (
        "batch {batch_size} counts packs, which hold several sequences each; throughput {throughput} counts sequences"
    )
    return build_flags("R27", "info", rows, "batch_size", fill_template(template, rows))
