"""Link what documents say of the results of others: public configurations, the records of local
runs, and facts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import pandas as pd

from ipu_results.errors import CatalogueError, DamagedDocumentError
from ipu_results.normalise import NormalisedDocument, PassthroughRow, Results
from ipu_results.normalise.by_source import get_run_id
from ipu_results.schema import table
from ipu_results.schema.frames import build_frame
from ipu_results.schema.vocabulary import Vocabulary

TABLE = "facts"


def build_fact_frame(documents: Sequence[NormalisedDocument]) -> pd.DataFrame:
    """Build the table `facts`, in order of `fact_id`.

    Raises DamagedDocumentError for a fact with neither a value nor a text, with a number without
    its unit, or with the id of another fact.
    """
    facts: dict[str, dict[str, object]] = {}
    for row in (
        row for document in documents for row in document.passthrough if row.table == TABLE
    ):
        fact = {**row.values, "locator": row.locator}
        if message := _find_fault(fact, facts):
            raise DamagedDocumentError(
                message, document=str(fact["document_id"]), place=row.locator
            )
        facts[str(fact["fact_id"])] = fact
    return build_frame(table(TABLE), [facts[name] for name in sorted(facts)])


def _find_fault(fact: dict[str, object], others: dict[str, dict[str, object]]) -> str | None:
    if (fact["value"] is None) == (fact["text_value"] is None):
        return "a fact needs either a value or a text_value"
    if (fact["value"] is None) != (fact["unit"] is None):
        return "a value needs its unit, and a text has none"
    if fact["fact_id"] in others:
        return (
            f"{fact['fact_id']} is also the id of a fact in"
            f" {others[str(fact['fact_id'])]['document_id']}"
        )
    return None


Record = Mapping[str, Any]
Key = tuple[str, str, int]
"""Document, table and row number of a source row."""

NEAR = ("exact", "likely")  # a weak match says nothing of what a latency times
NAMED = ("repository", "tag", "path", "benchmark", "match_confidence")
UNNAMED = ("result_document", "result_table", "result_row", "note", "document_id")
# columns of a result that decide what is added
READ = ("batch_size", "micro_batch_size", "latency_ms")
# Factors of a global batch; a configuration may leave out those that are 1.
FACTORS = ("micro_batch_size", "replicas", "gradient_accumulation")


@dataclass(frozen=True, slots=True)
class Configurations:
    """The configurations by their source row, and what a definition of latency times (`bases`) and
    where (`scopes`).
    """

    rows: Mapping[Key, Sequence[PassthroughRow]]
    bases: Mapping[str, str | None]
    scopes: Mapping[str, str | None]

    @classmethod
    def collect(
        cls, documents: Sequence[NormalisedDocument], vocabulary: Vocabulary
    ) -> Configurations:
        """Collect and check the rows.

        Raises DamagedDocumentError for one that contradicts itself.
        """
        rows = [
            row
            for document in documents
            for row in document.passthrough
            if row.table == "configurations"
        ]
        for row in rows:
            values = row.values
            if (
                message := _find_missing(values)
                or _find_miscount(values)
                or _find_unknown(values, vocabulary)
            ):
                raise _damaged(row, message)
        by_key: dict[Key, list[PassthroughRow]] = defaultdict(list)
        for row in rows:
            by_key[_get_key(row.values)].append(row)
        return cls(by_key, vocabulary.latency_bases, vocabulary.latency_scopes)

    def get_basis(self, row: PassthroughRow) -> str | None:
        """Return what the configuration's latency times."""
        return self.bases.get(row.values["latency_definition"])


def link_configurations(
    results: Results, document_id: str, configurations: Configurations
) -> Results:
    """Add a micro-batch from an exact match with the printed batch, a latency basis from any but a
    weak match.

    A micro-batch that the result's own document gives stays. The cells of the configuration are
    cited. Raises DamagedDocumentError for a configuration that contradicts the printed batch.
    """
    if all(key[0] != document_id for key in configurations.rows):
        return results
    micros: dict[int, int] = {}
    bases: dict[int, str] = {}
    scopes: dict[int, str | None] = {}
    cited = dict(results.cited)
    sources = results.sources
    for position, part, index in zip(*(column.tolist() for column in sources[:3]), strict=True):
        fragments = results.parts[part]
        key = (document_id, fragments.table.name, fragments.table.numbers[fragments.rows[index]])
        for row in configurations.rows.get(key, ()):
            own = {
                name: column.get(position)
                for name, column in results.columns.items()
                if name in READ
            }
            if message := _find_disagreement(row.values, own):
                raise _damaged(row, message)
            cells = list(cited.get(position, ()))
            source = row.values["document_id"]
            micro = row.values["micro_batch_size"]
            basis = configurations.get_basis(row)
            match = row.values["match_confidence"]
            known = micros.get(position, own.get("micro_batch_size"))
            if (
                match == "exact"
                and row.values["batch_agrees"]
                and micro is not None
                and known is None
            ):
                micros[position] = micro
                cells.append((source, row.cite("micro_batch_size", "micro_batch_size", "item")))
            if match in NEAR and basis is not None and own.get("latency_ms") is not None:
                bases[position] = basis
                scopes[position] = configurations.scopes.get(row.values["latency_definition"])
                cells.append((source, row.cite("latency_definition", "latency_basis")))
            if cells:
                cited[position] = cells
    linked = results.set_values("micro_batch_size", micros).set_values("latency_basis", bases)
    linked = linked.set_values("latency_scope", scopes)
    return replace(linked, cited=cited)


def build_configuration_frame(
    configurations: Configurations, results: Mapping[Key, str | None]
) -> pd.DataFrame:
    """Build the table `configurations`; `results` maps source rows to their results, a quarantined
    row to None.

    Raises DamagedDocumentError for a configuration of a row that does not exist.
    """
    for (
        key,
        rows,
    ) in configurations.rows.items():  # before they are sorted, since a part of a key may be blank
        if key not in results:
            raise _damaged(rows[0], "there is no such row")
    records = [
        {**row.values, "latency_basis": configurations.get_basis(row), "result_id": results[key]}
        for key in sorted(configurations.rows)
        for row in configurations.rows[key]
    ]
    return build_frame(table("configurations"), records)


def _get_key(values: Record) -> Key:
    return values["result_document"], values["result_table"], values["result_row"]


def _damaged(row: PassthroughRow, message: str) -> DamagedDocumentError:
    place = " ".join(map(str, _get_key(row.values)))
    return DamagedDocumentError(
        f"{place}: {message}", document=row.values["document_id"], place=row.locator
    )


def _find_missing(values: Record) -> str | None:
    """Require a row to name its configuration completely, or to hold only a note."""
    missing = [name for name in NAMED if values[name] is None]
    present = [name for name, value in values.items() if name not in UNNAMED and value is not None]
    return f"{', '.join(missing)} missing" if missing and present else None


def _find_miscount(values: Record) -> str | None:
    """Require the batch to be the product of its factors, as far as they are known."""
    factors = [values[name] for name in FACTORS if values[name] is not None]
    total = values["global_batch_from_config"]
    if total is None or not factors or prod(factors) == total:
        return None
    return f"{' × '.join(map(str, factors))} is not {total}"


def _find_unknown(values: Record, vocabulary: Vocabulary) -> str | None:
    """Require every word of the row to be in the vocabulary, since a word without a meaning would
    check nothing.
    """
    definition = values["latency_definition"]
    if definition not in (None, *vocabulary.latency_bases):
        return f"unknown definition of latency {definition!r}"
    settings = split_settings(values["precision_flags"])
    unknown = [setting for setting in settings if setting not in vocabulary.precision_settings]
    return (
        f"unknown setting of precision {unknown[0]!r}: add it to precisions.toml, settings"
        if unknown
        else None
    )


def split_settings(text: str | None) -> list[str]:
    """Split `precision_flags` at its semicolons."""
    return [] if text is None else text.split("; ")


def _find_disagreement(values: Record, result: Record) -> str | None:
    """Compute again whether the batch agrees with the printed one, and compare with what the row
    says.
    """
    total = values["global_batch_from_config"]
    printed = result.get("batch_size")
    agrees = None if total is None or printed is None else total == printed
    if agrees is values["batch_agrees"]:
        return None
    return (
        f"batch_agrees is {values['batch_agrees']}, but {total} is configured and {printed} is"
        " printed"
    )


ResultsByRow = Mapping[Key, str | None]
RUN_COLUMNS = ("backend", "device")


def build_run_frames(
    documents: Sequence[NormalisedDocument], results: ResultsByRow, origins: Mapping[str, str]
) -> dict[str, pd.DataFrame]:
    """Build the tables `runs` and `run_points`. A quarantined point is in neither.

    `results` maps source rows (document, table, number) to their results, `origins` results to
    their origin. Raises CatalogueError for a record without points or points without a record,
    DamagedDocumentError if the two describe different runs or a run mixes origins.
    """
    records = {
        get_run_id(doc.document): doc for doc in documents if doc.document.reader == "sweep-record"
    }
    points = {
        get_run_id(doc.document): doc for doc in documents if doc.document.reader == "sweep-points"
    }
    for present, other, missing in ((records, points, "points"), (points, records, "record")):
        if unpaired := sorted(present.keys() - other.keys()):
            document = present[unpaired[0]].document.document_id
            raise CatalogueError(
                f"the run {unpaired[0]} has no {missing} document", document=document
            )
    runs = []
    accepted = []
    for run_id in sorted(records):
        own = sorted(
            _list_accepted(run_id, points[run_id], results), key=lambda point: point["batch_size"]
        )
        runs.append(
            _complete_run(
                run_id, records[run_id], points[run_id], {origins[row["result_id"]] for row in own}
            )
        )
        accepted += own
    return {
        "runs": build_frame(table("runs"), runs),
        "run_points": build_frame(table("run_points"), accepted),
    }


def _complete_run(
    run_id: str, record: NormalisedDocument, points: NormalisedDocument, origins: set[str]
) -> Record:
    [row] = record.passthrough
    if row.values["run_id"] != run_id:
        message = f"is the record of another run, {row.values['run_id']}"
        raise DamagedDocumentError(message, document=record.document.document_id, place="$.run_id")
    for column in RUN_COLUMNS:
        for point in points.passthrough:
            if point.values[column] != row.values[column]:
                message = (
                    f"{point.values[column]!r} is not the {column} of the run,"
                    f" {row.values[column]!r}"
                )
                raise DamagedDocumentError(
                    message, document=points.document.document_id, place=point.locator
                )
    if len(origins) > 1:
        raise DamagedDocumentError(
            f"mixes origins: {', '.join(sorted(origins))}", document=points.document.document_id
        )
    return {**row.values, "origin": next(iter(origins), None)}


def _list_accepted(
    run_id: str, points: NormalisedDocument, results: ResultsByRow
) -> Iterator[Record]:
    for row in points.passthrough:
        result_id = results.get((points.document.document_id, row.table_name, row.row_number))
        if result_id is not None:
            yield {**row.values, "run_id": run_id, "result_id": result_id}
