"""A row against the public configuration behind it. Weak matches, the nearest known configuration, tell nothing."""

from __future__ import annotations

import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import findings, told
from ipu_results.link.configurations import NEAR

FACTORS = ("micro_batch_size", "replicas", "gradient_accumulation")
COMMAND = "{benchmark} of {path}, {repository} {tag} ({match_confidence} match)"


def behind(data: Dataset, *columns: str) -> pd.DataFrame:
    """Published rows with `columns` of theirs, beside their configuration if it is an exact or a likely match."""
    known = data.configurations
    known = known[known["match_confidence"].isin(NEAR) & known["result_id"].notna()].drop_duplicates("result_id")
    rows = data.published[["result_id", *columns]]
    return rows.merge(known, on="result_id", suffixes=("", "_configured"), validate="1:1")


def r13(data: Dataset) -> pd.DataFrame:
    """The printed batch is not the one that the public configuration gives: micro-batch × replicas × accumulation.

    Exact and likely matches alone; the suggestion is the configuration's.
    """
    rows = behind(data, "batch_size")
    total = rows["global_batch_from_config"].astype("float64")
    rows = rows.assign(total=total)[total.notna() & rows["batch_size"].notna() & (total != rows["batch_size"])]
    rows = rows.assign(made=_made(rows))
    template = f"prints batch {{batch_size}}; {COMMAND} gives {{total}}{{made}}"
    return findings("R13", "warn", rows, "batch_size", told(template, rows), suggested=told("{total}", rows))


def _made(rows: pd.DataFrame) -> list[str]:
    """` = 46 × 1 × 15`, or nothing where only the batch itself is known."""
    factors = zip(*(rows[name] for name in FACTORS), strict=True)
    known = [[str(factor) for factor in factors_of_row if pd.notna(factor)] for factors_of_row in factors]
    return [f" = {' × '.join(parts)}" if len(parts) > 1 else "" for parts in known]


def r15(data: Dataset) -> pd.DataFrame:
    """The printed dataset is not what the public command feeds. Exact and likely matches alone."""
    rows = behind(data, "dataset")
    rows = rows[rows["dataset"].notna() & rows["dataset_agrees"].eq(False).fillna(False)]
    template = f"prints {{dataset}}; {COMMAND} feeds: {{data_fed}}"
    return findings("R15", "info", rows, "dataset", told(template, rows), suggested=rows["data_fed"].to_list())
