"""Link the official MLPerf record: recompute scores from runs, join the curated ids, and complete
the entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from ipu_results.errors import ConservationError
from ipu_results.link.mlperf_names import add_names
from ipu_results.link.mlperf_ranking import (
    assess_runs,
    describe_interval,
    list_pair_tests,
    resolve_rankings,
)
from ipu_results.link.mlperf_reference import add_references, mark_pruned
from ipu_results.link.mlperf_speed import (
    Key,
    LoggedRun,
    Record,
    RunsByEntry,
    add_speeds,
    get_key,
    group_runs,
)
from ipu_results.mlperf.rules import Rules, format_attribution, load_rules, olympic_mean
from ipu_results.normalise import NormalisedDocument, list_passthrough
from ipu_results.schema import table
from ipu_results.schema.frames import arrow_schema, build_frame, build_frame_from_columns
from ipu_results.schema.vocabulary import KINDS, Vocabulary

MlperfIds = Mapping[Key, Record]
"""The curated ids by round and system."""


def collect_mlperf_ids(documents: Iterable[NormalisedDocument]) -> MlperfIds:
    """Collect the curated ids. Raises ConservationError for a system with two."""
    ids: dict[Key, Record] = {}
    for row in _list_rows(documents, "mlperf_ids"):
        other = ids.setdefault((row["round"], row["system_path"]), row)
        if other is not row:
            message = (
                f"{row['system_path']} has two ids, {other['mlperf_id']} and {row['mlperf_id']}"
            )
            raise ConservationError(message, document=row["document_id"])
    return ids


def build_mlperf_frames(
    documents: Sequence[NormalisedDocument],
    ids: MlperfIds,
    results: Mapping[tuple[str, str, int], str | None],
    vocabulary: Vocabulary,
) -> dict[str, pd.DataFrame]:
    """Build the MLPerf tables; `results` maps source rows (document, table, number) to their
    results.

    Raises ConservationError for a score that its runs do not give, and for a run or an id without
    an entry.
    """
    known = load_rules()
    run_rows = collect_runs(documents)
    runs = group_runs(run_rows)
    rcps = [dict(row) for row in _list_rows(documents, "mlperf_rcp")]
    entries = [
        entry
        for document in documents
        for entry in _complete_entries(document, ids, results, known)
    ]
    check_scores(entries, runs, known)
    _add_shared_logs(entries, runs)
    published = sorted(_list_rows(documents, "mlperf_published"), key=get_key)
    _add_published(entries, published)
    add_names(entries, runs, known, vocabulary)
    add_speeds(entries, runs)
    _add_rcps(entries, rcps)
    mark_pruned(rcps)
    add_references(entries, runs, rcps, known)
    units = {(row["round"], row["benchmark"]): row["rcp_unit"] for row in rcps}
    evidence = assess_runs(entries, runs, known, units)
    for entry in entries:
        entry.update(describe_interval(entry, evidence))
    _check_ids(entries, ids)
    blocks = [
        {name: getattr(block, name) for name in table("mlperf_comparability").names}
        for block in known.comparable
    ]
    named = sorted(ids.values(), key=lambda row: row["mlperf_id"])
    return {
        "mlperf_entries": build_frame(table("mlperf_entries"), sorted(entries, key=get_key)),
        "mlperf_runs": run_rows,
        "mlperf_rcp": build_frame(table("mlperf_rcp"), sorted(rcps, key=_get_rcp_key)),
        "mlperf_ids": build_frame(table("mlperf_ids"), named),
        "mlperf_published": build_frame(table("mlperf_published"), published),
        "rank_resolution": build_frame(
            table("rank_resolution"), resolve_rankings(entries, evidence)
        ),
        "mlperf_pair_tests": build_frame_from_columns(
            table("mlperf_pair_tests"), list_pair_tests(evidence)
        ),
        "mlperf_comparability": build_frame(table("mlperf_comparability"), blocks),
    }


def collect_runs(documents: Iterable[NormalisedDocument]) -> pd.DataFrame:
    """Return the runs of all documents in order of round, path and file, with the number of logs
    that have its bytes.

    There are too many for a record each.
    """
    definition = table("mlperf_runs")
    schema = arrow_schema(definition)
    parts = []
    for document in documents:
        if KINDS[document.document.reader].table == definition.name:
            parts.append(document.passthrough)
    present = [name for name in schema.names if parts and name in parts[0].column_names]
    runs = (
        pa.concat_tables([part.select(present) for part in parts])
        if parts
        else schema.empty_table()
    )
    ordered = runs.sort_by([(name, "ascending") for name in definition.key])
    columns = {
        name: ordered[name] if name in present else [None] * len(ordered) for name in schema.names
    }
    digests = ordered["sha256"].to_pylist()
    counts = {**Counter(digests), None: 1}
    return build_frame_from_columns(
        definition, columns | {"copies": [counts[digest] for digest in digests]}
    )


def _add_shared_logs(entries: Sequence[dict[str, Any]], runs: RunsByEntry) -> None:
    """Add how many logs of each entry differ, and how many another entry has too."""
    digests = {key: [run.sha256 for run in of_entry] for key, of_entry in runs.items()}
    entries_with = Counter(sha256 for logs in digests.values() for sha256 in set(logs))
    for entry in entries:
        logs = digests.get(get_key(entry), [])
        entry["distinct_logs"] = len(set(logs))
        entry["shared_logs"] = sum(entries_with[sha256] > 1 for sha256 in logs)


def _add_published(entries: Sequence[dict[str, Any]], published: Iterable[Record]) -> None:
    """Add printed minutes to entries without a score.

    Raises ConservationError for minutes of an unknown entry.
    """
    known = {get_key(entry): entry for entry in entries}
    for row in published:
        if (entry := known.get(get_key(row))) is None:
            message = f"has minutes of {row['path']}, round {row['round']}, which has no entry"
            raise ConservationError(message, document=row["document_id"])
        if entry["minutes"] is None:
            entry |= {
                "minutes_published": row["minutes_published"],
                "published_in": row["document_id"],
            }


def _add_rcps(entries: Sequence[dict[str, Any]], rcps: Iterable[Record]) -> None:
    """Add the reference convergence point at the batch size of each entry."""
    points = {_get_rcp_key(row): row for row in rcps}
    for entry in entries:
        point = (
            points.get(_get_rcp_key(entry), {}) if entry["global_batch_size"] is not None else {}
        )
        entry |= {name: point.get(name) for name in ("rcp_mean", "rcp_unit")}


def _get_rcp_key(record: Record) -> tuple[str, str, int]:
    return record["round"], record["benchmark"], record["global_batch_size"]


def check_scores(entries: Iterable[Record], runs: RunsByEntry, known: Rules) -> None:
    """Recompute every entry's score from its runs.

    Raises ConservationError that names the entry.
    """
    remaining = dict(runs)
    for entry in entries:
        if message := _find_contradiction(entry, remaining.pop(get_key(entry), []), known):
            raise ConservationError(message, document=entry["document_id"], place=entry["path"])
    if remaining:
        [stray, *_] = remaining[min(remaining)]
        message = f"runs of {stray.path}, round {stray.round}, have no entry"
        raise ConservationError(message, document=stray.document_id)


def _find_contradiction(entry: Record, runs: Sequence[LoggedRun], known: Rules) -> str | None:
    minutes = [run.minutes for run in runs if run.counted]
    expected = (entry["n_runs"], entry["n_success"])
    if entry["n_runs"] and not runs:
        return f"the entry says {entry['n_runs']} runs, and no document of raw/ has one"
    if (len(runs), len(minutes)) != expected:
        return (
            f"{len(runs)} runs, {len(minutes)} of them counted; the entry says {expected[0]} and"
            f" {expected[1]}"
        )
    mean = olympic_mean(minutes, len(runs) - len(minutes), known.benchmark(entry["benchmark"]).drop)
    has_score = (
        mean is not None and not entry["logs_missing"] and entry["scaling_factor"] is not None
    )
    score = mean * entry["scaling_factor"] if has_score else None
    if score != entry["minutes"]:
        return f"its runs give {score} minutes, the entry says {entry['minutes']}"
    return None


def _check_ids(entries: Iterable[Record], ids: MlperfIds) -> None:
    systems = {_get_system(entry) for entry in entries}
    for (mlperf_round, system), row in ids.items():
        if (mlperf_round, system) not in systems:
            message = f"{row['mlperf_id']} names {system}, round {mlperf_round}, which has no entry"
            raise ConservationError(message, document=row["document_id"])


def _complete_entries(
    document: NormalisedDocument,
    ids: MlperfIds,
    results: Mapping[tuple[str, str, int], str | None],
    known: Rules,
) -> Iterator[dict[str, Any]]:
    """Yield the document's entries with result, id, comparable rounds and attribution."""
    for row in list_passthrough([document], "mlperf_entries"):
        named = ids.get(_get_system(row), {})
        block = known.find_comparable(row["benchmark"], row["round"])
        cited_id = f"{named['mlperf_id']} ({named['confidence']})" if named else None
        yield {
            **row,
            "result_id": results.get(
                (document.document.document_id, row["table_name"], row["row_number"])
            ),
            "mlperf_id": named.get("mlperf_id"),
            "mlperf_id_confidence": named.get("confidence"),
            "comparable_rounds": block.rounds if block else row["round"],
            "model": block.model if block else None,
            "attribution": format_attribution(row, cited_id, document.document.retrieved_on),
        }


def _list_rows(documents: Iterable[NormalisedDocument], name: str) -> list[Record]:
    return [*list_passthrough(documents, name)]


def _get_system(entry: Record) -> Key:
    return entry["round"], entry["path"].rpartition("/")[0]
