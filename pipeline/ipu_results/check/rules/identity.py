"""Check what a row is about, and how its figures are printed: names, items, repeats, lost zeros,
thousands marks.
"""

from __future__ import annotations

from dataclasses import asdict, fields

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import (
    Dataset,
    build_flags,
    extract_parts,
    fill_template,
    find_first,
    map_texts,
    number_groups,
)
from ipu_results.schema import table
from ipu_results.schema.vocabulary import NetworkIdentity

NAMED = ("model_printed", "platform", "framework")
IDENTITY_COLUMNS = [field.name for field in fields(NetworkIdentity)]
WORD_CELLS = (
    "model_printed",
    "variant",
    "platform",
    "sdk_version",
    "framework",
    "dataset_printed",
    "precision_printed",
)
PACKED = r"\bpacked\b"
RATE = r"\b([A-Za-z]+)\s*/\s*(?:s|secs?|seconds?)\b"


def flag_unit(data: Dataset) -> pd.DataFrame:
    """Flag a throughput whose items are printed in another cell, or nowhere.

    It is an error if another cell of the row prints a rate such as `frames/s`, since the column's
    unit then does not hold for this row. It is a warning if no source says what the items are.
    """
    counts = data.published["throughput"].notna()
    cells = data.printed_cells
    cells = cells[cells["column_name"].isin(WORD_CELLS) & counts.to_numpy()[cells["row"]]]
    cells = data.read_cells(cells[data.cells["value"].isna().to_numpy()[cells.index]], "raw_text")
    cells = cells[cells["raw_text"].str.contains("/", regex=False)]
    cells = (
        cells.assign(unit=cells["raw_text"].str.extract(RATE, expand=False))
        .dropna()
        .drop_duplicates("row")
    )
    stated = data.read_cells(cells, "result_id", "column_name")
    stated = stated.assign(singular=stated["unit"].str.lower().str.removesuffix("s"))
    columns = ["result_id", "model_printed", "throughput"]
    unstated = data.published.loc[counts & data.published["item"].isna(), columns].drop(
        stated["row"], errors="ignore"
    )
    notes = (
        data.models.set_index("model")["item_note"]
        if "item_note" in data.models
        else pd.Series(dtype="str")
    )
    unstated = unstated.assign(
        note=("; " + unstated["model_printed"].map(notes).astype("str")).fillna("")
    )
    printed = (
        "the {column_name} cell prints a unit, {raw_text}: the throughput counts {unit} per second"
    )
    unknown = "no source says what the {throughput} items per second of {model_printed} are{note}"
    return pd.concat(
        [
            build_flags("R10", "error", stated, "throughput", printed, suggested="{singular}"),
            build_flags("R10", "warn", unstated, "throughput", unknown),
        ],
        ignore_index=True,
    )


def flag_name_variants(data: Dataset) -> pd.DataFrame:
    """Flag a model, platform or framework whose printed name is one of several and not the
    canonical one.

    One flag per printed name, at its first row; the message has the number of rows. A name that
    includes the variant, such as `BERT Large SL128`, is not a spelling of the model.
    """
    cells = data.printed_cells
    cells = data.read_cells(cells[cells["column_name"].isin(NAMED)], "raw_text")
    cells = cells[cells["raw_text"] != ""]
    variants = data.published["variant"].array.take(cells["row"].to_numpy())
    pairs = number_groups(cells["raw_text"], variants)
    first = find_first(pairs)
    names = zip(
        cells["raw_text"].array.take(first).tolist(), variants.take(first).tolist(), strict=True
    )
    with_variant = [isinstance(variant, str) and name.endswith(variant) for name, variant in names]
    cells = cells[~np.array(with_variant, dtype=bool)[pairs]].drop_duplicates(
        ["column_name", "row"]
    )
    canonical = pd.concat([data.published[name] for name in NAMED]).array
    column = pd.Index(NAMED).get_indexer(cells["column_name"].cat.categories)[
        cells["column_name"].cat.codes
    ]
    at = cells["row"] + len(data.published) * column
    rows = cells.assign(canonical=canonical.take(at.to_numpy())).dropna(subset="canonical")
    groups = number_groups(rows["column_name"].cat.codes, rows["canonical"])
    names = number_groups(groups, rows["raw_text"])
    first = find_first(names)
    count = np.bincount(names)
    rows = data.read_cells(rows.iloc[first], "result_id", "column_name")
    rows = rows.assign(group=groups[first], count=count, rows=np.where(count > 1, " rows", " row"))
    rows = rows[rows["group"].duplicated(keep=False)].sort_values("raw_text")
    rows = rows.assign(
        spellings=rows["group"].map(rows.groupby("group")["raw_text"].agg(list).map(", ".join))
    )
    rows = rows[rows["raw_text"] != rows["canonical"]]
    template = (
        "{raw_text} ({count}{rows}) is one of several printed names of {canonical}: {spellings}"
    )
    return build_flags(
        "R16", "info", rows, rows["column_name"].array, template, suggested="{canonical}"
    )


def flag_network_identity(data: Dataset) -> pd.DataFrame:
    """Flag a model name that hides which network ran, if a public configuration or the document
    names it.
    """
    rows = data.compute_once(join_identities)
    rows = rows.assign(millions=np.round(rows["parameters"] / 1e6, 1))
    template = "{model_printed} names several networks; here {model} ran ({millions} M parameters): {source}"
    return build_flags(
        "R20", rows["severity"].array, rows, "model_printed", template, suggested="{model}"
    )


def join_identities(data: Dataset) -> pd.DataFrame:
    """Join the published rows whose model names several networks to the identity of the one that
    ran.
    """
    known = pd.DataFrame(
        [asdict(identity) for identity in data.vocabulary.identities], columns=IDENTITY_COLUMNS
    )
    known = known.astype(dict.fromkeys((*NAMED, "model"), data.published["model_printed"].dtype))
    rows = data.published.loc[
        data.published["model_printed"].isin(known["model_printed"]), ["result_id", *NAMED]
    ]
    return (
        rows.reset_index(names="row").merge(known, on=list(NAMED), validate="m:1").set_index("row")
    )


def find_networks(data: Dataset) -> pd.DataFrame:
    """Return the `network` that ran in each published row: its model, or what that hides."""
    known = data.compute_once(join_identities)["model"].reindex(data.published.index)
    return pd.DataFrame({"model": known.fillna(data.published["model_printed"])})


def flag_packed_batch(data: Dataset) -> pd.DataFrame:
    """Flag the batch of packed sequences: it counts packs, while the throughput counts sequences.

    The variant says that a row is packed, or its dataset is one of packs. A pack holds several
    sequences, so the batch is not a number of the items that the throughput counts.
    """
    rows = data.published[["result_id", "variant", "dataset_printed", "batch_size", "throughput"]]
    packed = rows["variant"].str.contains(PACKED, case=False).eq(True)
    packed |= rows["dataset_printed"].isin(data.vocabulary.packed_datasets)
    rows = rows[packed & rows["batch_size"].notna()]
    template = (
        "batch {batch_size} counts packs, which hold several sequences each; throughput"
        " {throughput} counts sequences"
    )
    return build_flags("R27", "info", rows, "batch_size", template)


MAY_BE_BLANK = ("variant",)
COMPARED_COLUMNS = ("throughput", "latency_ms", "time_to_train_s", "time_to_result_s")
MIN_DIGITS = 3
NUMBER_COLUMNS = tuple(
    column.name
    for column in table("results").as_filled().columns
    if column.kind in ("integer", "double")
)
PLAIN_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"


def flag_blank_cell(data: Dataset) -> pd.DataFrame:
    """Flag a blank cell under a header of the printed table.

    It is only information for a column that may be blank: a row without a variant has none.
    """
    cells = data.printed_cells
    cells = cells[(data.cells["raw_text"] == "").to_numpy()[cells.index]].drop_duplicates(
        ["row", "column_name"]
    )
    cells = cells[data.published["printed"].to_numpy()[cells["row"]]]
    cells = data.read_cells(cells, "result_id", "column_name", "header")
    severity = np.where(cells["column_name"].isin(MAY_BE_BLANK), "info", "warn")
    template = "the cell under the header {header} is blank"
    return build_flags("R09", severity, cells, cells["column_name"].array, template)


def flag_repeated_figure(data: Dataset) -> pd.DataFrame:
    """Flag a figure that two unrelated rows of a document (another model or task) print in the same
    column.

    Only figures of at least MIN_DIGITS significant digits count: shorter ones coincide by chance.
    """
    cells = data.compute_once(read_figures)
    cells = cells[cells["digits"] >= MIN_DIGITS]
    document = data.groups("document_id")[cells["row"]]
    rows = cells.assign(
        group=number_groups(document, cells["column_name"].cat.codes, cells["figure"]),
        kind=data.groups("model_printed", "task")[cells["row"]],
    )
    rows = data.read_cells(_join_unrelated(rows), "result_id", "column_name")
    more = [f" and {count - 1} more" if count > 1 else "" for count in rows["unrelated"].to_list()]
    rows = rows.assign(place=data.format_places(rows["other"]), more=more)
    template = "{raw_text} is also printed by an unrelated row: {place}{more}"
    return build_flags("R14", "info", rows, rows["column_name"].array, template)


def read_figures(data: Dataset) -> pd.DataFrame:
    """Return the printed cells of COMPARED_COLUMNS with their `raw_text`, and its `figure` and
    `digits`.
    """
    cells = data.printed_cells
    cells = cells[cells["column_name"].isin(COMPARED_COLUMNS)].drop_duplicates(
        ["row", "column_name"]
    )
    cells = data.read_cells(cells, "raw_text")
    return cells.join(map_texts(cells["raw_text"], _read_digits))


def _read_digits(texts: pd.Series) -> pd.DataFrame:
    """Return figures without thousands marks, and their significant digits.

    These begin with the first digit that is not zero; zeros at the end of a whole number do not
    count.
    """
    digits = texts.str.replace(r"\D", "", regex=True).str.lstrip("0")
    significant = digits.where(
        texts.str.contains(".", regex=False), digits.str.rstrip("0")
    ).str.len()
    return pd.DataFrame({"figure": texts.str.replace(",", ""), "digits": significant})


def _join_unrelated(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows that share a figure with unrelated rows: `other` is the first of these,
    `unrelated` their number.
    """
    rows = rows[rows["group"].duplicated(keep=False)]
    kinds = rows.drop_duplicates(["group", "kind"])[["group", "kind", "row"]]
    first = kinds.drop_duplicates("group").set_index("group")
    second = kinds[kinds["group"].duplicated()].drop_duplicates("group").set_index("group")
    rows = rows[rows["group"].isin(second.index)]
    size = rows.groupby("group")["row"].transform("size") - rows.groupby(["group", "kind"])[
        "row"
    ].transform("size")
    of_first = rows["kind"] == rows["group"].map(first["kind"])
    other = rows["group"].map(second["row"]).where(of_first, rows["group"].map(first["row"]))
    return rows.assign(other=other.astype("int64"), unrelated=size)


def flag_number_format(data: Dataset) -> pd.DataFrame:
    """Flag a printed figure that has lost a trailing zero or its thousands mark, judged by the rest
    of its column.

    It has fewer decimals than the column's most common number (the smaller of two equally common
    ones), or is 1,000 or more without a mark in a column that prints one elsewhere.
    """
    cells = data.printed_cells
    cells = cells[
        cells["column_name"].isin(NUMBER_COLUMNS)
        & data.published["printed"].to_numpy()[cells["row"]]
    ]
    cells = cells[data.cells["value"].notna().to_numpy()[cells.index]].drop_duplicates(
        ["row", "column_name"]
    )
    tables = data.groups("document_id", "table_name")[cells["row"]]
    cells = cells.assign(column=number_groups(tables, cells["column_name"].cat.codes))
    cells = data.read_cells(cells, "raw_text")
    parts = map_texts(cells["raw_text"], _split_numbers)
    rows = cells.join(parts)[parts["plain"]]
    sizes = rows.groupby(["column", "decimals"]).size().rename("count").reset_index()
    sizes = sizes.sort_values(["count", "decimals"], ascending=[False, True]).drop_duplicates(
        "column"
    )
    rows = rows.assign(
        usual=rows["column"].map(sizes.set_index("column")["decimals"]),
        marks=rows.groupby("column")["marked"].transform("any"),
    )
    short = rows["decimals"] < rows["usual"]
    unmarked = rows["marks"] & ~rows["marked"] & (rows["whole"].str.len() > 3)
    rows = rows.assign(short=short, unmarked=unmarked)[short | unmarked]
    rows = data.read_cells(rows, "result_id", "column_name")
    return build_flags(
        "R19", "info", rows, rows["column_name"].array, _losses(rows), suggested=_full_forms(rows)
    )


def _split_numbers(texts: pd.Series) -> pd.DataFrame:
    """Split printed figures at the decimal point; `plain` says whether a text is nothing but a
    figure.
    """
    parts = extract_parts(texts, r"^(?P<whole>[^.]*)\.?(?P<digits>.*)$")
    return parts.assign(
        plain=texts.str.fullmatch(PLAIN_NUMBER).astype(bool),
        decimals=parts["digits"].str.len().astype("int64"),
        marked=parts["whole"].str.contains(",", regex=False),
    )


def _losses(rows: pd.DataFrame) -> list[str]:
    zero = (
        "{raw_text} has {decimals} of the column's usual {usual} decimals: a trailing zero is lost"
    )
    mark = "{raw_text} has no thousands mark, other figures of the column have one"
    both = zip(
        rows["short"],
        fill_template(zero, rows),
        rows["unmarked"],
        fill_template(mark, rows),
        strict=True,
    )
    return ["; ".join([zero] * short + [mark] * unmarked) for short, zero, unmarked, mark in both]


def _full_forms(rows: pd.DataFrame) -> list[str]:
    parts = zip(rows["whole"], rows["digits"], rows["usual"], rows["unmarked"], strict=True)
    whole = [
        (f"{int(whole):,}" if unmarked else whole, digits, usual)
        for whole, digits, usual, unmarked in parts
    ]
    return [
        f"{figure}.{digits.ljust(usual, '0')}" if digits or usual else figure
        for figure, digits, usual in whole
    ]
