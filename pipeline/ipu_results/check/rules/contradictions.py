"""Find the figures that an entry of `contradictions` is about, and flag them with what it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import duckdb
import pandas as pd

from ipu_results.check.rules.dataset import Dataset, build_flags, find_positions
from ipu_results.errors import DamagedDocumentError
from ipu_results.ground.sql import create_table, get_first_line, open_engine
from ipu_results.normalise import NormalisedDocument
from ipu_results.schema import table
from ipu_results.schema.frames import build_frame, to_arrow

CONTRADICTED = "contradicted"
KEYS = {"results": "result_id", "microbenchmarks": "microbenchmark_id"}
SEVERITIES = ("info", "warn", "error")


def find_contradicted(
    documents: Iterable[NormalisedDocument], frames: Mapping[str, pd.DataFrame]
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the table `contradicted`, and what each contradiction says.

    A rule of raw/claims/contradicted.csv is a condition on the rows of one document. Raises
    DamagedDocumentError for a condition that cannot be evaluated, and for an unknown contradiction.
    """
    rows = [row for document in documents for row in document.passthrough]
    texts = {
        row.values["contradiction_id"]: row.values["what"]
        for row in rows
        if row.table == "contradictions"
    }
    rules = [{**row.values, "locator": row.locator} for row in rows if row.table == CONTRADICTED]
    for rule in rules:
        if rule["contradiction_id"] not in texts:
            place = {"document": rule["document_id"], "place": rule["locator"]}
            raise DamagedDocumentError(
                f"unknown contradiction {rule['contradiction_id']!r}", **place
            )
    figures = []
    with open_engine() as engine:
        for name, key in KEYS.items():
            rows = frames[name]["document_id"].isin([rule["rows_of"] for rule in rules])
            here = set(frames[name].loc[rows, "document_id"])
            if not (own := [rule for rule in rules if rule["rows_of"] in here]):
                continue
            words = " ".join(
                f"{key} document_id {rule['column_name']} {rule['condition']}" for rule in own
            ).lower()
            read = [column for column in table(name).as_filled().columns if column.name in words]
            definition = replace(table(name), columns=tuple(read))
            create_table(
                engine, "rows", to_arrow(definition, frames[name].loc[rows, list(definition.names)])
            )
            figures += _select(engine, key, own)
            engine.execute("DROP TABLE rows")
    return build_frame(table(CONTRADICTED), figures), texts


def _select(
    engine: duckdb.DuckDBPyConnection, key: str, rules: Sequence[Mapping[str, str]]
) -> list[Mapping[str, str]]:
    """Return each rule with the ids of its rows that fit its condition and have a value in its
    column.
    """
    statements = [
        f"SELECT {number}, {key} FROM rows WHERE document_id = ${number + 1} AND"
        f" ({rule['condition']}) "
        f'AND "{rule["column_name"]}" IS NOT NULL'
        for number, rule in enumerate(rules)
    ]
    try:  # one statement, since planning each takes longer than its rows
        ids = engine.execute(
            " UNION ALL ".join(statements), [rule["rows_of"] for rule in rules]
        ).fetchall()
    except duckdb.Error as error:
        if len(rules) > 1:  # find the rule at fault
            return [row for rule in rules for row in _select(engine, key, [rule])]
        place = {"document": rules[0]["document_id"], "place": rules[0]["locator"]}
        raise DamagedDocumentError(get_first_line(error), **place) from error
    return [{**rules[number], "result_id": own} for number, own in sorted(ids)]


def flag_contradicted(data: Dataset) -> pd.DataFrame:
    """Flag each figure that an entry of `contradictions` is about (table `contradicted`), with what
    it says.

    The severity is what the entry does to the figure: error where it cannot be what its column
    says, warn where it is one of two figures that cannot both be, info where the figure holds and a
    reader must know of the other.
    """
    known = pd.concat([data.published["result_id"], data.microbenchmarks["microbenchmark_id"]])
    rows = data.contradicted[find_positions(data.contradicted["result_id"], known) >= 0]
    names = ("result_id", "column_name", "severity", "contradiction_id")
    entries: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for result_id, column, severity, entry in zip(
        *(rows[name].to_list() for name in names), strict=True
    ):
        entries.setdefault((result_id, column), []).append(
            (severity, f"{entry}: {data.contradictions[entry]}")
        )
    severities = [
        max((severity for severity, _ in own), key=SEVERITIES.index) for own in entries.values()
    ]
    messages = ["; ".join(text for _, text in own) for own in entries.values()]
    rows = rows.drop_duplicates(["result_id", "column_name"])
    return build_flags("R35", severities, rows, rows["column_name"].array, messages)
