"""Find the figures that an entry of `contradictions` is about: rule R35 flags those in doubt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import duckdb
import pandas as pd

from ipu_results.errors import DamagedDocumentError
from ipu_results.kit.sql import Connection, get_first_line
from ipu_results.record.normalise import NormalisedDocument, list_passthrough
from ipu_results.schema import table
from ipu_results.schema.frames import build_frame
from ipu_results.schema.records import ContradictionsRow


class Condition(TypedDict):
    """A line of raw/claims/contradicted.csv: which rows a contradiction is about."""

    contradiction_id: str
    rows_of: str
    condition: str
    column_name: str
    severity: str
    document_id: str
    locator: str


KEYS = {"results": "result_id", "microbenchmarks": "microbenchmark_id"}


def find_contradicted(
    connection: Connection, documents: Sequence[NormalisedDocument]
) -> dict[str, pd.DataFrame]:
    """Return the table `contradicted`, and of `contradictions` what each says.

    A line of raw/claims/contradicted.csv is a condition on the `rows` of one document. Raises
    DamagedDocumentError for a condition that cannot be evaluated, and for an unknown contradiction.
    """
    contradictions: list[ContradictionsRow] = list_passthrough(documents, "contradictions")
    known = {contradiction["contradiction_id"] for contradiction in contradictions}
    conditions: list[Condition] = list_passthrough(documents, "contradicted")
    for condition in conditions:
        if condition["contradiction_id"] not in known:
            message = f"unknown contradiction {condition['contradiction_id']!r}"
            raise DamagedDocumentError(message, **_locate(condition))
    figures: list[dict[str, object]] = []
    for name, key in KEYS.items():
        found = connection.execute(f"SELECT DISTINCT document_id FROM {name}").fetchall()
        ids = {document_id for (document_id,) in found}
        of_table = [condition for condition in conditions if condition["rows_of"] in ids]
        if of_table:
            connection.execute(f"CREATE OR REPLACE TEMP VIEW rows AS FROM {name}")
            figures += _select(connection, key, of_table)
    what = pd.DataFrame(contradictions, columns=["contradiction_id", "what"], dtype="str")
    return {"contradicted": build_frame(table("contradicted"), figures), "contradictions": what}


def _select(
    connection: Connection, key: str, conditions: Sequence[Condition]
) -> list[dict[str, object]]:
    """Return each condition with the ids of its rows that fit it and have a value in its column."""
    statements = []
    for number, condition in enumerate(conditions):
        statements.append(
            f"SELECT {number}, {key} FROM rows WHERE document_id = ${number + 1}"
            f' AND ({condition["condition"]}) AND "{condition["column_name"]}" IS NOT NULL'
        )
    documents = [condition["rows_of"] for condition in conditions]
    try:  # one statement, since planning each takes longer than its rows
        found = connection.execute(" UNION ALL ".join(statements), documents).fetchall()
    except duckdb.Error as error:
        if len(conditions) > 1:
            for condition in conditions:
                _select(connection, key, [condition])  # raises for the one at fault
        raise DamagedDocumentError(get_first_line(error), **_locate(conditions[0])) from error
    return [{**conditions[number], "result_id": row_id} for number, row_id in sorted(found)]


def _locate(condition: Condition) -> dict[str, str]:
    return {"document": condition["document_id"], "place": condition["locator"]}
