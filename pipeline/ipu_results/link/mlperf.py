"""Link the official MLPerf record: recompute its scores from the runs, and join the curated ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ipu_results.errors import ConservationError
from ipu_results.link.mlperf_intervals import describe_interval, estimate_intervals, resolve_rankings
from ipu_results.mlperf.records import format_attribution
from ipu_results.mlperf.rules import Rules, load_rules
from ipu_results.mlperf.score import olympic_mean
from ipu_results.normalise import NormalisedDocument, Result
from ipu_results.schema import table
from ipu_results.schema.frames import build_frame

Record = Mapping[str, Any]
Key = tuple[str, str]
INFERRED = "inferred"


@dataclass(frozen=True, slots=True)
class MlperfIds:
    """The curated ids by round and system."""

    rows: Mapping[Key, Record]

    @classmethod
    def collect(cls, documents: Iterable[NormalisedDocument]) -> MlperfIds:
        """Collect the ids. Raises ConservationError for a system with two."""
        ids: dict[Key, Record] = {}
        for row in _list_rows(documents, "mlperf_ids"):
            other = ids.setdefault((row["round"], row["system_path"]), row)
            if other is not row:
                message = f"{row['system_path']} has two ids, {other['mlperf_id']} and {row['mlperf_id']}"
                raise ConservationError(message, document=row["document_id"])
        return cls(ids)

    def find(self, entry: Record) -> Record | None:
        """Return the id of an entry's system, None if it has none."""
        return self.rows.get(_get_system(entry))


def link_mlperf_ids(document: NormalisedDocument, ids: MlperfIds) -> Sequence[Result]:
    """Return the document's results; official ones have the MLPerf id of their system, unless it is inferred."""
    entries = {row.row_number: row.values for row in document.passthrough if row.table == "mlperf_entries"}
    if not entries:
        return document.results
    named = {number: known for number, entry in entries.items() if (known := ids.find(entry))}
    return [
        replace(result, values={**result.values, "mlperf_id": known["mlperf_id"]})
        if (known := named.get(result.values["row_number"])) and known["confidence"] != INFERRED
        else result
        for result in document.results
    ]


def build_mlperf_frames(
    documents: Sequence[NormalisedDocument], ids: MlperfIds, results: Mapping[tuple[str, str, int], str | None]
) -> dict[str, pd.DataFrame]:
    """Build the MLPerf tables; `results` maps source rows (document, table, number) to their results.

    Raises ConservationError for a score that its runs do not give, and for a run or an id without an entry.
    """
    known = load_rules()
    runs = _list_rows(documents, "mlperf_runs")
    entries = [entry for document in documents for entry in _complete_entries(document, ids, results, known)]
    check_scores(entries, runs, known)
    intervals = estimate_intervals(entries, pd.DataFrame(runs, columns=table("mlperf_runs").names))
    entries = [{**entry, **describe_interval(entry, intervals)} for entry in entries]
    _check_ids(entries, ids)
    blocks = [
        {name: getattr(block, name) for name in table("mlperf_comparability").names} for block in known.comparable
    ]
    named = sorted(ids.rows.values(), key=lambda row: row["mlperf_id"])
    return {
        "mlperf_entries": build_frame(table("mlperf_entries"), sorted(entries, key=_get_key)),
        "mlperf_runs": build_frame(table("mlperf_runs"), sorted(runs, key=lambda run: (*_get_key(run), run["file"]))),
        "mlperf_ids": build_frame(table("mlperf_ids"), named),
        "rank_resolution": build_frame(table("rank_resolution"), resolve_rankings(entries, intervals)),
        "mlperf_comparability": build_frame(table("mlperf_comparability"), blocks),
    }


def check_scores(entries: Iterable[Record], runs: Iterable[Record], known: Rules) -> None:
    """Recompute every entry's score from its runs. Raises ConservationError that names the entry."""
    runs_by_entry: dict[Key, list[Record]] = defaultdict(list)
    for run in runs:
        runs_by_entry[_get_key(run)].append(run)
    for entry in entries:
        if message := _find_contradiction(entry, runs_by_entry.pop(_get_key(entry), []), known):
            raise ConservationError(message, document=entry["document_id"], place=entry["path"])
    if runs_by_entry:
        (mlperf_round, path), stray = next(iter(sorted(runs_by_entry.items())))
        raise ConservationError(
            f"runs of {path}, round {mlperf_round}, have no entry", document=stray[0]["document_id"]
        )


def _find_contradiction(entry: Record, runs: Sequence[Record], known: Rules) -> str | None:
    minutes = [run["minutes"] for run in runs if run["counted"]]
    expected = (entry["n_runs"], entry["n_success"])
    if (len(runs), len(minutes)) != expected:
        return f"{len(runs)} runs, {len(minutes)} of them counted; the entry says {expected[0]} and {expected[1]}"
    mean = olympic_mean(minutes, len(runs) - len(minutes), known.benchmark(entry["benchmark"]).drop)
    score = None if mean is None else mean * entry["scaling_factor"]
    if score != entry["minutes"]:
        return f"its runs give {score} minutes, the entry says {entry['minutes']}"
    return None


def _check_ids(entries: Iterable[Record], ids: MlperfIds) -> None:
    systems = {_get_system(entry) for entry in entries}
    for (mlperf_round, system), row in ids.rows.items():
        if (mlperf_round, system) not in systems:
            message = f"{row['mlperf_id']} names {system}, round {mlperf_round}, which has no entry"
            raise ConservationError(message, document=row["document_id"])


def _complete_entries(
    document: NormalisedDocument, ids: MlperfIds, results: Mapping[tuple[str, str, int], str | None], known: Rules
) -> Iterator[Record]:
    """Yield the document's entries with result, id, comparable rounds and attribution."""
    for row in document.passthrough:
        if row.table == "mlperf_entries":
            entry, named = row.values, ids.find(row.values)
            block = known.find_comparable(entry["benchmark"], entry["round"])
            cited_id = f"{named['mlperf_id']} ({named['confidence']})" if named else None
            yield {
                **entry,
                "result_id": results.get((document.document.document_id, row.table_name, row.row_number)),
                "mlperf_id": named["mlperf_id"] if named else None,
                "mlperf_id_confidence": named["confidence"] if named else None,
                "comparable_rounds": block.rounds if block else entry["round"],
                "comparable_model": block.model if block else None,
                "attribution": format_attribution(entry, cited_id, document.document.retrieved_on),
            }


def _list_rows(documents: Iterable[NormalisedDocument], name: str) -> list[Record]:
    return [row.values for document in documents for row in document.passthrough if row.table == name]


def _get_key(record: Record) -> Key:
    return record["round"], record["path"]


def _get_system(entry: Record) -> Key:
    return entry["round"], entry["path"].rpartition("/")[0]
