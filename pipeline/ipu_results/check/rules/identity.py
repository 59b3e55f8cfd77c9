"""Say which network ran where a printed name stands for several."""

from __future__ import annotations

from dataclasses import asdict, fields

import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.schema.vocabulary import NetworkIdentity

NAMED = ["model_printed", "platform", "framework"]
COLUMNS = [field.name for field in fields(NetworkIdentity)]


def find_networks(data: Dataset) -> pd.DataFrame:
    """Return the `model` that ran in each published row: its printed one, or what that hides."""
    known = pd.DataFrame(
        [asdict(identity) for identity in data.vocabulary.identities], columns=COLUMNS
    )
    rows = data.published[NAMED].astype(object).merge(known.astype(object), how="left", on=NAMED)
    return rows[["model"]].fillna({"model": rows["model_printed"]}).set_axis(data.published.index)
