"""The official MLPerf record: scores recomputed from the runs, ids joined, the tables that are published of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from ipu_results.check.gate import build_frame
from ipu_results.errors import ConservationError
from ipu_results.mlperf.records import format_attribution
from ipu_results.mlperf.rules import ComparableRounds, Rules, load_rules
from ipu_results.mlperf.score import olympic_mean
from ipu_results.normalise import NormalisedDocument, PassthroughRow
from ipu_results.schema import table

Record = Mapping[str, Any]
Key = tuple[str, str]
GUESSED = "inferred"


def join_ids(documents: Sequence[NormalisedDocument]) -> None:
    """Give each official result the MLPerf id of its system, unless the id is merely inferred."""
    ids = _ids(documents)
    for normalised in documents:
        entries = {row.row_number: row.values for row in normalised.carried if row.table == "mlperf_entries"}
        for result in normalised.results if entries else ():
            known = ids.get(_system(entries[result.values["row_number"]]))
            if known and known["confidence"] != GUESSED:
                result.values["mlperf_id"] = known["mlperf_id"]


def official_frames(documents: Sequence[NormalisedDocument]) -> dict[str, pd.DataFrame]:
    """The MLPerf tables.

    Raises ConservationError where a score is not what its runs give, or a run or an id has no entry.
    """
    known = load_rules()
    ids = _ids(documents)
    runs = _rows(documents, "mlperf_runs")
    entries = [
        _entry(row, normalised, ids, known)
        for normalised in documents
        for row in normalised.carried
        if row.table == "mlperf_entries"
    ]
    assert_recomputed(entries, runs, known)
    _assert_known(entries, ids)
    return {
        "mlperf_entries": build_frame(table("mlperf_entries"), sorted(entries, key=_key)),
        "mlperf_runs": build_frame(table("mlperf_runs"), sorted(runs, key=lambda run: (*_key(run), run["file"]))),
        "mlperf_ids": build_frame(table("mlperf_ids"), sorted(ids.values(), key=lambda one: str(one["mlperf_id"]))),
        "mlperf_comparability": build_frame(table("mlperf_comparability"), [_block(block) for block in known.comparable]),
    }


def _ids(documents: Iterable[NormalisedDocument]) -> dict[Key, Record]:
    """The curated ids by round and system. Raises ConservationError where one system bears two."""
    ids: dict[Key, Record] = {}
    for one in _rows(documents, "mlperf_ids"):
        other = ids.setdefault((one["round"], one["system_path"]), one)
        if other is not one:
            message = f"{one['system_path']} bears {other['mlperf_id']} and {one['mlperf_id']}"
            raise ConservationError(message, document=one["document_id"])
    return ids


def assert_recomputed(entries: Iterable[Record], runs: Iterable[Record], known: Rules) -> None:
    """Every entry's score follows from its runs. Raises ConservationError naming the entry."""
    of_entry: dict[Key, list[Record]] = defaultdict(list)
    for run in runs:
        of_entry[_key(run)].append(run)
    for entry in entries:
        if wrong := _contradiction(entry, of_entry.pop(_key(entry), []), known):
            raise ConservationError(wrong, document=entry["document_id"], place=entry["path"])
    if of_entry:
        (round_, path), stray = next(iter(sorted(of_entry.items())))
        raise ConservationError(f"runs of {path}, round {round_}, have no entry", document=stray[0]["document_id"])


def _contradiction(entry: Record, runs: Sequence[Record], known: Rules) -> str | None:
    minutes = [run["minutes"] for run in runs if run["counted"]]
    told = (entry["n_runs"], entry["n_success"])
    if (len(runs), len(minutes)) != told:
        return f"{len(runs)} runs, {len(minutes)} of them counted; the entry says {told[0]} and {told[1]}"
    mean = olympic_mean(minutes, len(runs) - len(minutes), known.benchmark(entry["benchmark"]).drop)
    score = None if mean is None else mean * entry["scaling_factor"]
    if score != entry["minutes"]:
        return f"its runs give {score} minutes, the entry says {entry['minutes']}"
    return None


def _assert_known(entries: Iterable[Record], ids: Mapping[Key, Record]) -> None:
    systems = {_system(entry) for entry in entries}
    for place, known in ids.items():
        if place not in systems:
            message = f"{known['mlperf_id']} names {place[1]}, round {place[0]}, which has no entry"
            raise ConservationError(message, document=known["document_id"])


def _entry(row: PassthroughRow, normalised: NormalisedDocument, ids: Mapping[Key, Record], known: Rules) -> Record:
    entry = row.values
    results = {result.values["row_number"]: result.result_id for result in normalised.results}
    named = ids.get(_system(entry))
    told = f"{named['mlperf_id']} ({named['confidence']})" if named else None
    return {
        **entry,
        "result_id": results.get(row.row_number),
        "mlperf_id": named["mlperf_id"] if named else None,
        "mlperf_id_confidence": named["confidence"] if named else None,
        "comparable_rounds": known.comparable_rounds(entry["benchmark"], entry["round"]),
        "attribution": format_attribution(entry, told, normalised.document.retrieved_on),
    }


def _rows(documents: Iterable[NormalisedDocument], name: str) -> list[Record]:
    return [row.values for normalised in documents for row in normalised.carried if row.table == name]


def _key(record: Record) -> Key:
    return record["round"], record["path"]


def _system(entry: Record) -> Key:
    return entry["round"], entry["path"].rpartition("/")[0]


def _block(block: ComparableRounds) -> Record:
    return {name: getattr(block, name) for name in table("mlperf_comparability").names}
