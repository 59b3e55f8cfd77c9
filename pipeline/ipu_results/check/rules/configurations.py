"""Compare rows with the public configurations behind them. A weak match, the nearest known one, proves nothing."""

from __future__ import annotations

import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import build_flags, fill_template
from ipu_results.link.configurations import NEAR

FACTORS = ("micro_batch_size", "replicas", "gradient_accumulation")
COMMAND = "{benchmark} of {path}, {repository} {tag} ({match_confidence} match)"


def join_configurations(data: Dataset, *columns: str) -> pd.DataFrame:
    """Return published rows with `columns`, joined to their configuration if it is an exact or a likely match."""
    known = data.configurations
    known = known[known["match_confidence"].isin(NEAR) & known["result_id"].notna()].drop_duplicates("result_id")
    rows = data.published[["result_id", *columns]]
    return rows.merge(known, on="result_id", suffixes=("", "_configured"), validate="1:1")


def flag_batch_against_configuration(data: Dataset) -> pd.DataFrame:
    """Flag a printed batch that is not the configuration's: micro-batch × replicas × accumulation.

    Only exact and likely matches count. The suggestion is the configuration's batch.
    """
    rows = join_configurations(data, "batch_size")
    total = rows["global_batch_from_config"].astype("float64")
    rows = rows.assign(total=total)[total.notna() & rows["batch_size"].notna() & (total != rows["batch_size"])]
    rows = rows.assign(made=_format_factors(rows))
    template = f"prints batch {{batch_size}}; {COMMAND} gives {{total}}{{made}}"
    return build_flags(
        "R13", "warn", rows, "batch_size", fill_template(template, rows), suggested=fill_template("{total}", rows)
    )


def _format_factors(rows: pd.DataFrame) -> list[str]:
    """Return ` = 46 × 1 × 15`, or nothing if only the batch itself is known."""
    factors = zip(*(rows[name] for name in FACTORS), strict=True)
    known = [[str(factor) for factor in factors_of_row if pd.notna(factor)] for factors_of_row in factors]
    return [f" = {' × '.join(parts)}" if len(parts) > 1 else "" for parts in known]


def flag_data_against_configuration(data: Dataset) -> pd.DataFrame:
    """Flag a printed dataset that is not what the public command feeds. Only exact and likely matches count."""
    rows = join_configurations(data, "dataset")
    rows = rows[rows["dataset"].notna() & rows["dataset_agrees"].eq(False).fillna(False)]
    template = f"prints {{dataset}}; {COMMAND} feeds: {{data_fed}}"
    return build_flags(
        "R15", "info", rows, "dataset", fill_template(template, rows), suggested=rows["data_fed"].to_list()
    )
