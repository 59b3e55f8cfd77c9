"""Find the figures that an entry of `contradictions` is about: rule R35 flags those in doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pandas as pd

from ipu_results.errors import DamagedDocumentError
from ipu_results.kit.sql import get_first_line
from ipu_results.record.normalise import NormalisedDocument, list_passthrough
from ipu_results.schema import table
from ipu_results.schema.frames import build_frame

KEYS = {"results": "result_id", "microbenchmarks": "microbenchmark_id"}


def find_contradicted(
    connection: duckdb.DuckDBPyConnection, documents: Sequence[NormalisedDocument]
) -> dict[str, pd.DataFrame]:
    """Return the table `contradicted`, and of `contradictions` what each says.

    A line of raw/claims/contradicted.csv is a condition on the `rows` of one document. Raises
    DamagedDocumentError for a condition that cannot be evaluated, and for an unknown contradiction.
    """
    texts = list_passthrough(documents, "contradictions")
    known = {text["contradiction_id"] for text in texts}
    conditions = list_passthrough(documents, "contradicted")
    for condition in conditions:
        if condition["contradiction_id"] not in known:
            message = f"unknown contradiction {condition['contradiction_id']!r}"
            raise DamagedDocumentError(message, **_locate(condition))
    figures = []
    for name, key in KEYS.items():
        documents_of = connection.execute(f"SELECT DISTINCT document_id FROM {name}").fetchall()
        own = [condition for condition in conditions if (condition["rows_of"],) in documents_of]
        if own:
            connection.execute(f"CREATE OR REPLACE TEMP VIEW rows AS FROM {name}")
            figures += _select(connection, key, own)
    what = pd.DataFrame(texts, columns=["contradiction_id", "what"], dtype="str")
    return {"contradicted": build_frame(table("contradicted"), figures), "contradictions": what}


def _select(
    connection: duckdb.DuckDBPyConnection,
    key: str,
    conditions: Sequence[Mapping[str, str]],
) -> list[Mapping[str, str]]:
    """Return each condition with the ids of its rows that fit it and have a value in its column."""
    statements = [
        f"SELECT {number}, {key} FROM rows WHERE document_id = ${number + 1}"
        f' AND ({condition["condition"]}) AND "{condition["column_name"]}" IS NOT NULL'
        for number, condition in enumerate(conditions)
    ]
    documents = [condition["rows_of"] for condition in conditions]
    try:  # one statement, since planning each takes longer than its rows
        ids = connection.execute(" UNION ALL ".join(statements), documents).fetchall()
    except duckdb.Error as error:
        if len(conditions) > 1:  # find the one at fault
            return [row for own in conditions for row in _select(connection, key, [own])]
        raise DamagedDocumentError(get_first_line(error), **_locate(conditions[0])) from error
    return [{**conditions[number], "result_id": own} for number, own in sorted(ids)]


def _locate(condition: Mapping[str, Any]) -> dict[str, str]:
    return {"document": condition["document_id"], "place": condition["locator"]}
