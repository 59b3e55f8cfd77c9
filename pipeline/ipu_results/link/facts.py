"""Collect the facts that are not results, from which claims are recomputed."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ipu_results.errors import DamagedDocumentError
from ipu_results.normalise import NormalisedDocument
from ipu_results.schema import table
from ipu_results.schema.frames import build_frame

TABLE = "facts"


def build_fact_frame(documents: Sequence[NormalisedDocument]) -> pd.DataFrame:
    """Build the table `facts`, in order of `fact_id`.

    Raises DamagedDocumentError for a fact with neither a value nor a text, with a number without its unit, or with
    the id of another fact.
    """
    facts: dict[str, dict[str, object]] = {}
    for row in (row for document in documents for row in document.passthrough if row.table == TABLE):
        fact = {**row.values, "locator": row.locator}
        if message := _find_fault(fact, facts):
            raise DamagedDocumentError(message, document=str(fact["document_id"]), place=row.locator)
        facts[str(fact["fact_id"])] = fact
    return build_frame(table(TABLE), [facts[name] for name in sorted(facts)])


def _find_fault(fact: dict[str, object], others: dict[str, dict[str, object]]) -> str | None:
    if (fact["value"] is None) == (fact["text_value"] is None):
        return "a fact needs either a value or a text_value"
    if (fact["value"] is None) != (fact["unit"] is None):
        return "a value needs its unit, and a text has none"
    if fact["fact_id"] in others:
        return f"{fact['fact_id']} is also the id of a fact in {others[str(fact['fact_id'])]['document_id']}"
    return None
