"""Check bundles: what is wrong with each, what is doubtful, the nearest rows, and what would be
published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from ipu_results.build import check_documents, load_document
from ipu_results.check.gate import gate_results
from ipu_results.check.rules import find_flags, open_tables
from ipu_results.comparison import Comparison, Match
from ipu_results.errors import IpuResultsError, SubmissionError
from ipu_results.ground.limits import MAX_BUNDLES
from ipu_results.ground.sql import run_query
from ipu_results.ground.text import escape_unprintable, format_count, format_json, to_json_value
from ipu_results.normalise.values import describe_unknown_words
from ipu_results.schema import table
from ipu_results.schema.frames import build_frame
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.sources.catalogue import load_catalogue
from ipu_results.store.query import open_warehouse
from ipu_results.submission.bundle import (
    DESCRIPTION,
    HEADER,
    RESULTS,
    SUBMISSIONS,
    Bundle,
    Files,
    lay_bundle,
)
from ipu_results.submission.contents import KNOWN, list_folders, parse_bundle, read_contents
from ipu_results.submission.record import (
    FIGURES,
    ComparedRow,
    compare_rows,
    find_item_latencies,
    is_energy_unchecked,
)
from ipu_results.submission.refusals import (
    EMULATED,
    Fault,
    Reason,
    check_owner,
    check_present,
    check_words,
    find_emulated,
    find_unreadable,
    list_suspects,
    list_unknown_words,
    load_submission_words,
)

MATCH_COLUMNS = ("result_id", "document_id", "publisher", "relationship", "platform", "batch_size")
LITTLE = "R01"  # the quality rule on less than one batch in flight
# whose figures the record has
PUBLISHERS = "SELECT DISTINCT publisher FROM documents WHERE kind <> 'submission'"


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """Where to look: `raw` with the submissions so far, the warehouse, and the account that hands
    in, if known.
    """

    raw: Path = Path("raw")
    warehouse: Path = Path("warehouse")
    account: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A row that would be published, in words, with the verdict on it and the nearest rows of the
    record.
    """

    values: Mapping[str, Any]
    description: str
    verdict: str
    nearest: tuple[Match, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedBundle:
    """What became of a bundle: it is accepted if it has no fault.

    `flags` do not stop it; `bundle` is what was read.
    """

    name: str
    faults: tuple[Fault, ...]
    flags: tuple[str, ...] = ()
    rows: tuple[CheckedRow, ...] = ()
    bundle: Bundle | None = None

    @property
    def accepted(self) -> bool:
        return not self.faults

    def to_record(self) -> dict[str, Any]:
        """Return everything as values that JSON has."""
        submission = self.bundle.submission if self.bundle else None
        return {
            "bundle": self.name,
            "accepted": self.accepted,
            "document_id": submission and submission.document_id,
            "refused": [fault._asdict() for fault in self.faults],
            "flags": list(self.flags),
            "rows": [
                {
                    "description": row.description,
                    "verdict": row.verdict,
                    "nearest": [
                        {name: match.row[name] for name in MATCH_COLUMNS}
                        | {
                            "ratios": {own.figure: own.ratio for own in match.ratios},
                            "distance": match.distance,
                        }
                        for match in row.nearest
                    ],
                    "row": {name: to_json_value(value) for name, value in row.values.items()},
                }
                for row in self.rows
            ],
        }


def check_submission(path: Path, request: CheckRequest) -> list[CheckedBundle]:
    """Check a bundle, or each new bundle of a folder `submissions` that holds `<who>/<id>/`.

    Raises SubmissionError for a path that cannot be read, WarehouseError without a dataset to
    compare with.
    """
    if (
        path.is_dir()
        and not path.is_symlink()
        and not (path / DESCRIPTION).exists()
        and not (path / RESULTS).exists()
    ):
        return list(_check_folder(path, request))
    files, faults = read_contents(path)
    return [check_files(files, request, path.name, path, faults)]


def _check_folder(path: Path, request: CheckRequest) -> Iterator[CheckedBundle]:
    laid = request.raw / SUBMISSIONS
    places = []
    known = {place for place, _ in list_folders(laid)} if laid.is_dir() else set()
    for place, entry in list_folders(path):
        places.append(place)
        if len(places) > MAX_BUNDLES:
            raise SubmissionError(
                f"has more than {MAX_BUNDLES} bundles; hand in fewer at once", place=str(path)
            )
        if entry.is_symlink() or not entry.is_dir() or "/" not in place:
            reason: Reason = "link" if entry.is_symlink() else "unknown-file"
            yield CheckedBundle(place, (Fault(reason, "is not a folder with a bundle", place),))
            continue
        files, faults = read_contents(Path(entry.path))
        if faults or not is_laid(request.raw, place, files):
            yield check_files(files, request, place, Path(entry.path), faults, place)
    for place in sorted(known - set(places)):
        yield CheckedBundle(
            place, (Fault("owner", "is here and was removed; remove nothing", place),)
        )
    if not places and not known:
        raise SubmissionError(f"holds no bundle, which has a {DESCRIPTION}", place=str(path))


def check_files(
    files: Files,
    request: CheckRequest,
    name: str,
    path: Path,
    faults: Sequence[Fault] = (),
    place: str | None = None,
) -> CheckedBundle:
    """Check the files of a bundle; `faults` are those of its folder or archive, `place` its
    `<who>/<id>` if any.
    """
    if faults:
        return CheckedBundle(name, tuple(faults))
    bundle, problems = parse_bundle(files)
    if bundle is None:
        return CheckedBundle(name, tuple(problems))
    problems += find_emulated(bundle)
    problems += find_unreadable(bundle)
    problems += check_present(bundle, request.raw, path)
    if problems:  # the texts cannot be relied on: nothing else looks at them
        return CheckedBundle(name, tuple(problems), bundle=bundle)
    with open_warehouse(request.warehouse) as connection:
        words = load_submission_words(connection)
        publishers = frozenset(run_query(connection, PUBLISHERS)["publisher"].to_pylist())
        problems += check_owner(bundle, request.raw, publishers, request.account, place)
        problems += check_words(bundle, words)
        try:
            rows, raised, rejected = preview_bundle(bundle)
        except SubmissionError:
            raise
        except IpuResultsError as error:
            return CheckedBundle(name, (*problems, Fault("schema", str(error))), bundle=bundle)
        problems += rejected
        compared = compare_rows(connection, words, rows, bundle.submission.document_id)
    for _, _, own in compared:
        problems += own
    per_item = find_item_latencies(rows)
    flags = []
    for flag in raised:
        text = f"{flag['rule']}: {flag['message']}"
        # A bundle may state the latency of an item. It is R01's error only where a page calls it a
        # latency.
        if flag["rule"] == LITTLE and flag["result_id"] in per_item:
            flags.append(f"info {text}")
        elif flag["severity"] == "error":
            problems.append(Fault("implausible", text))
        else:
            flags.append(f"{flag['severity']} {text}")
    unknown = list_unknown_words(bundle.rows, words)
    for (column, text), count in sorted(unknown.items()):
        flags.append(f"{column} {text!r} is new to the record ({count} rows)")
    if word := EMULATED.search(bundle.submission.how):
        flags.append(f"how says {word[0]!r}: read whether the figures are measured")
    flags += list_suspects(bundle)
    flags += _list_doubts(compared)
    shown = tuple(_show_row(row, comparison) for row, comparison, _ in compared)
    return CheckedBundle(name, tuple(dict.fromkeys(problems)), tuple(flags), shown, bundle)


def _list_doubts(compared: Sequence[ComparedRow]) -> Iterator[str]:
    """Yield what a maintainer should look at: unknown variants, doubtful rows, unchecked energy."""
    comparisons = [comparison for _, comparison, _ in compared if comparison]
    remarks = dict.fromkeys(
        text for comparison in comparisons for text in comparison.measurement.remarks
    )
    for text in remarks:
        if text.startswith("variant "):
            yield text.removesuffix(" (variant)")
    for comparison in comparisons:
        if comparison.status == "doubtful":
            yield f"{comparison.measurement.label}: {comparison.verdict}"
    for row, _, _ in compared:
        if is_energy_unchecked(row):
            yield (
                f"{RESULTS}, row {row['row_number']}: nothing shows whether the unit of the energy"
                " is right; state the throughput of the same run, or the time of the whole run"
            )


def _show_row(row: Mapping[str, Any], comparison: Comparison | None) -> CheckedRow:
    values = {name: value for name, value in row.items() if value is not None}
    if comparison is None:
        return CheckedRow(values, f"row {row['row_number']}", "no figure that a comparison knows")
    return CheckedRow(values, comparison.description, comparison.verdict, comparison.matches)


def is_laid(raw: Path, place: str, files: dict[str, bytes]) -> bool:
    """Return whether `raw` has the same files of a bundle at `<who>/<id>`."""
    folder = raw / SUBMISSIONS / place
    present = {name: (folder / name).read_bytes() for name in KNOWN if (folder / name).is_file()}
    return bool(present) and present == files


UNREADABLE: dict[str, Reason] = {
    "conflicting-rows": "contradiction",
    "item-contradicts-model": "contradiction",
}
FIGURES_OF_ONE = (
    "model",
    "variant",
    "dataset",
    "task",
    "platform",
    "chip",
    "chip_count",
    "framework",
    "sdk_version",
)
KEY = (*FIGURES_OF_ONE, "precision", "batch_size", "micro_batch_size", "conditions")


def preview_bundle(
    bundle: Bundle,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[Fault]]:
    """Read a bundle as `ingest` would, alone: return its rows with all columns, also those that
    are published in other tables, the flags of the quality rules, and what is rejected.

    Raises IpuResultsError as `ingest` would.
    """
    vocabulary = load_vocabulary()
    with TemporaryDirectory() as folder:
        raw = Path(folder)
        lay_bundle(bundle, raw)
        documents = load_catalogue(raw)
        [loaded] = [load_document(own, vocabulary) for own in documents]
    checked = check_documents(documents, lambda _: loaded, vocabulary)
    filled, _ = gate_results([loaded])
    kept = [column.name for column in table("results").kept]
    results = checked.frames["results"].merge(filled[["result_id", *kept]], on="result_id")
    as_published = {  # the rules look at those alone
        **checked.frames,
        "cells": checked.cells,
        "results": results.assign(origin="published"),
        "contradictions": build_frame(table("contradictions"), []),
    }
    with open_tables(as_published) as connection:
        flags: Any = find_flags(connection).to_dict("records")
    faults = []
    for rejected in loaded.rejected:
        reason = UNREADABLE.get(
            rejected.reason, "unknown-word" if rejected.words else "unreadable-figure"
        )
        words = describe_unknown_words(rejected.words, vocabulary)
        # the message and the words often agree
        known = any(text.startswith(rejected.message) for text in words)
        message = "; ".join(words if known else [rejected.message, *words])
        faults.append(Fault(reason, message, f"{RESULTS}, {rejected.locator}"))
    refused = {rejected.locator for rejected in loaded.rejected}
    faults += [
        Fault("schema", row["message"], f"{RESULTS}, {row['locator']}")
        for row in checked.frames["quarantine"].to_dict("records")
        if row["locator"] not in refused
    ]
    records: Any = results.to_dict("records")
    rows = [
        {name: None if pd.isna(value) else value for name, value in row.items()} for row in records
    ]
    return rows, flags, [*faults, *_find_repeated(bundle), *_find_contradictions(rows)]


def _find_repeated(bundle: Bundle) -> Iterator[Fault]:
    """Yield the figures that the bundle states twice with the same value."""
    seen: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(bundle.rows, 2):
        key = tuple(row[name] for name in (*(HEADER.identity or ()), "metric", "unit", "value"))
        if key in seen:
            yield Fault(
                "duplicate", f"is the figure of line {seen[key]} again", f"{RESULTS}, line {number}"
            )
        seen.setdefault(key, number)


def _find_contradictions(rows: list[dict[str, Any]]) -> Iterator[Fault]:
    """Yield the results that are of one configuration in another spelling."""
    seen: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        first = seen.setdefault(tuple(row[name] for name in KEY), row)
        shared = [
            name for name in FIGURES if first is not row and None not in (row[name], first[name])
        ]
        if differing := [name for name in shared if row[name] != first[name]]:
            texts = "; ".join(
                f"{name} {first[name]:.12g} and {row[name]:.12g}" for name in differing
            )
            message = f"and row {first['row_number']} are of one configuration: {texts}"
            yield Fault("contradiction", message, f"{RESULTS}, row {row['row_number']}")
        elif shared:
            yield Fault(
                "duplicate",
                f"is row {first['row_number']} again",
                f"{RESULTS}, row {row['row_number']}",
            )


MAX_LINES = 50  # of each kind in text; JSON has all
MAX_LINE = 600  # characters


def format_checks(checks: Sequence[CheckedBundle], output: str) -> str:
    """Format checks as `text` or `json`."""
    if output == "json":
        return format_json([check.to_record() for check in checks])
    if not checks:
        return "nothing new: every bundle is here already"
    texts = ([escape_unprintable(line) for line in _list_lines(check)] for check in checks)
    return "\n\n".join(
        "\n".join(text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}…" for text in lines)
        for lines in texts
    )


def _list_lines(check: CheckedBundle) -> Iterator[str]:
    outcome = (
        "accepted" if check.accepted else f"refused, {format_count(len(check.faults), 'reason')}"
    )
    yield f"{check.name}: {outcome}"
    yield from _limit([f"refused: {fault}" for fault in check.faults])
    yield from _limit([f"flag: {flag}" for flag in check.flags])
    if check.bundle and check.accepted:
        submission = check.bundle.submission
        yield (
            f"document {submission.document_id}, {len(check.bundle.rows)} figures,"
            f" {submission.licence}"
        )
    rows = []
    for row in check.rows:
        values = f"result {row.values.get('result_id')}, {row.values.get('relationship')}"
        rows += [f"row: {row.description} ({values})", f"  {row.verdict}"]
        nearest = (match.description for match in row.nearest)
        rows += [f"  {text}" for text in nearest if text not in row.verdict]
    yield from _limit(rows)


def _limit(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:MAX_LINES]
    if len(lines) > MAX_LINES:
        yield f"and {len(lines) - MAX_LINES} more lines; see --format json"
