"""What a citation needs: the row, its printed figures, its source, and what must be disclosed with
them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb

from ipu_results.errors import QueryError
from ipu_results.ground.physics import round_derived
from ipu_results.ground.sql import run_query
from ipu_results.ground.text import format_count
from ipu_results.schema import quote, table

AUTHOR = "The ipu-results authors"
MLPERF = "mlperf-training"
LOCAL = "local"  # the publisher of this project's own runs
MAX_IDS = 500
RESULTS = table("results")
FIGURES = (*(own.name for own in (*RESULTS.columns, *RESULTS.kept) if own.figure), "value")
SUSPECT = "R47"  # the rule that flags a suspect row
# A microbenchmark in the columns of a result, and with its own: what an answer, a citation and a
# table say of it.
MICROBENCHMARKS = """
    SELECT
        m.*, microbenchmark_id AS result_id, 'published' AS origin, operation AS model,
        operation AS model_printed, concat_ws(', ', metric, statistic, shape, conditions) AS variant,
        'microbenchmark' AS task, chip AS platform, coalesce(f.errors, 0) AS errors,
        f.errors IS NULL AS usable
    FROM microbenchmarks m
    LEFT JOIN (
        SELECT result_id, count(*) AS errors FROM flags WHERE severity = 'error' GROUP BY result_id
    ) f ON f.result_id = m.microbenchmark_id
"""
CITABLE = f"FROM results UNION ALL BY NAME ({MICROBENCHMARKS})"
EMULATED_STATUS = "emulated, not measured"  # the words that must stand at each figure
EMULATED, SUBMITTED = "emulated", "submitted"  # rows that count only where a question asks for them
COMPUTED_DIGITS = 9
# where the name of a column without its unit makes a poor label
LABELS = {"quality_value": "quality"}
# MLCommons also requires an ownership legend, whose wording is its own: "Attribution" in its
# Results Messaging Guidelines, read on 2026-11-22 at commit c195f80f of mlcommons/policies. An
# unverified result needs the word at each score, too.
LEGEND = (
    "MLPerf is a trademark of MLCommons Association. Add the ownership legend that its messaging"
    " guidelines ask for: https://github.com/mlcommons/policies"
)
NOT_VERIFIED = "Result not verified by MLCommons Association."
STATED = ", result not verified by MLCommons Association"  # at the end of the column `attribution`
DECIMAL = re.compile(r"\d+\.\d+(e-?\d+)?")
COMPILER = re.compile(r"compiled by (\w+)$")  # conditions of a row
UNMARKED = re.compile(r"\bMLPerf\b(?! ?®)")


def make_label(name: str) -> str:
    """Make the label of a column of figures: its name in words, without the unit that it ends in."""
    units = {own.name: own.unit or "" for own in (*RESULTS.columns, *RESULTS.kept)}
    words = name.split("_")
    if words[-1] == units.get(name, "").casefold():
        words = words[:-1]
    return LABELS.get(name, " ".join(words))


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure as its source prints it.

    `place` is in the source itself where that is known, else in our file.
    """

    column: str
    text: str
    unit: str | None
    place: str
    value: float | None

    @property
    def label(self) -> str:
        return make_label(self.column)


@dataclass(frozen=True, slots=True)
class Source:
    """The document that prints a row: `document_url` leads to it, and `url` as near to the row as
    is known.
    """

    document_id: str
    title: str
    publisher: str
    url: str | None
    document_url: str | None
    published_on: date | None
    retrieved_on: date | None
    sha256: str
    commit: str | None


@dataclass(frozen=True, slots=True)
class CitedResult:
    """A result with its figures.

    `status` must stand at each figure; `notes` must be disclosed with it.
    """

    result_id: str
    row: Mapping[str, Any]
    figures: tuple[Figure, ...]
    source: Source
    status: str | None
    notes: tuple[str, ...]
    attribution: str | None


def load_results(connection: duckdb.DuckDBPyConnection, ids: Sequence[str]) -> list[CitedResult]:
    """Load results or microbenchmarks with what their citation needs, in the order of `ids`.

    Raises QueryError for an unknown id.
    """
    if not ids:
        raise QueryError("no result_id to cite")
    if len(ids) > MAX_IDS:
        raise QueryError(f"{len(ids)} results are too many to cite at once, at most {MAX_IDS}")
    where = f"result_id IN ({', '.join(map(quote, ids))})"
    rows = {
        row["result_id"]: row
        for row in run_query(connection, f"FROM ({CITABLE}) WHERE {where}").to_pylist()
    }
    if unknown := [name for name in dict.fromkeys(ids) if name not in rows]:
        raise QueryError(
            f"unknown result {', '.join(map(repr, unknown[:5]))}; a result_id is r and 16 hex digits"
        )
    documents = {
        row["document_id"]: row for row in run_query(connection, "FROM documents").to_pylist()
    }
    queries = (
        f"FROM provenance WHERE {where} ORDER BY result_id, cell_number",
        f"FROM flags WHERE {where} AND (severity = 'error' OR rule = '{SUSPECT}') ORDER BY ALL",
        f"SELECT result_id, calibration_id FROM detail.run_points WHERE {where}",
    )
    cells, flags, points = (
        group_rows(run_query(connection, sql).to_pylist(), "result_id") for sql in queries
    )
    known = f"SELECT unnest([result_id, same_as]) FROM results WHERE {where}"
    entries = f"FROM mlperf_entries WHERE result_id IN ({known})"
    official = {row["result_id"]: row for row in run_query(connection, entries).to_pylist()}
    notes = {name: _list_notes(row, flags[name], points[name]) for name, row in rows.items()}
    return [
        _build_result(rows[name], cells[name], notes[name], documents, official)
        for name in dict.fromkeys(ids)
    ]


def group_rows(
    rows: Iterable[dict[str, Any]], column: str
) -> defaultdict[str, list[dict[str, Any]]]:
    """Group rows by a column, each group in the order of the rows; empty for a value that no row
    has.
    """
    groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row[column]].append(row)
    return groups


def _build_result(
    row: Mapping[str, Any],
    cells: Sequence[Mapping[str, Any]],
    notes: Sequence[str],
    documents: Mapping[str, Mapping[str, Any]],
    official: Mapping[str, Mapping[str, Any]],
) -> CitedResult:
    document = documents[row["document_id"]]
    own = [cell for cell in cells if cell["document_id"] == row["document_id"]]
    figures = {
        cell["column_name"]: Figure(
            cell["column_name"],
            _get_text(cell, is_ours=document["publisher"] == LOCAL),
            cell["unit"],
            cell["source_locator"] or cell["locator"],
            cell["value"],
        )
        for cell in reversed(own)
    }
    first = next((cell["source_url"] for cell in own if cell["column_name"] in FIGURES), None)
    source = Source(
        document["document_id"],
        document["title"],
        AUTHOR if document["publisher"] == LOCAL else document["publisher"],
        first or document["url"],
        document["url"],
        document["published_on"],
        document["retrieved_on"],
        document["sha256"],
        document["commit"],
    )
    is_mlperf = row["benchmark"] == MLPERF or row["origin"] == "official"
    entry = official.get(row["result_id"]) or official.get(row["same_as"] or "")
    return CitedResult(
        row["result_id"],
        row,
        tuple(figures[name] for name in sorted(figures)),
        source,
        EMULATED_STATUS if row["origin"] == EMULATED else "unverified" if is_mlperf else None,
        tuple(notes),
        _format_attribution(row, entry, source),
    )


def _get_text(cell: Mapping[str, Any], is_ours: bool) -> str:
    """Return the text of a cell as its source prints it, and without float noise where this project
    computed it.

    A score of MLPerf is computed from times in milliseconds: nine digits are beyond what they
    resolve.
    """
    text: str = cell["raw_text"].strip()
    if not DECIMAL.fullmatch(text) or round_derived(float(text)) != round_derived(cell["value"]):
        return text
    if cell["locator_in"] == "derivation":
        return repr(float(f"{float(text):.{COMPUTED_DIGITS}g}"))
    return repr(cell["value"]) if is_ours else text


def _list_notes(
    row: Mapping[str, Any],
    flags: Sequence[Mapping[str, Any]],
    points: Sequence[Mapping[str, Any]],
) -> list[str]:
    """List what must be disclosed; `points` is the point of a run that made the row."""
    notes = []
    if row["origin"] == EMULATED:
        known = [
            f", calibration {own['calibration_id']}" for own in points if own["calibration_id"]
        ]
        notes.append(f"Emulated by ipu-results, not measured{''.join(known)}.")
    if row["origin"] == "measured":
        notes.append("Measured by ipu-results.")
    for flag in flags:
        if flag["rule"] == SUSPECT:
            notes.append(f"Suspect: {flag['message']}.")
        else:
            rule = f"Quality rule {flag['rule']} of ipu-results flags an error"
            notes.append(f"{rule}: {flag['message']}.")
    return notes


def _format_attribution(
    row: Mapping[str, Any], entry: Mapping[str, Any] | None, source: Source
) -> str | None:
    """Return what MLCommons requires of a footnote: suite, version, division, benchmark, id,
    source, day, status.
    """
    if row["origin"] == "official" and entry is not None:
        return mark_name(f"{str(entry['attribution']).removesuffix(STATED)}. {NOT_VERIFIED}")
    if row["benchmark"] != MLPERF:
        return None
    benchmark = entry["benchmark"] if entry else row["model_printed"]
    what = (
        f"MLPerf Training v{row['mlperf_round'] or ' unknown'}"
        f" {row['division'] or 'division unknown'} {benchmark}"
    )
    day = (
        f"retrieved {source.retrieved_on}" if source.retrieved_on else "day of retrieval not known"
    )
    where = f"as printed by {source.publisher}, {source.url}"
    return mark_name(
        f"{what}, {where}; entry {row['mlperf_id'] or 'not known'}; {day}. {NOT_VERIFIED}"
    )


def mark_name(text: str) -> str:
    """Put the notice symbol behind each use of the name MLPerf."""
    return UNMARKED.sub("MLPerf®", text)


def find_figures(result: CitedResult) -> list[Figure]:
    """Return the figures of a result, those of the column list `figure`, in the order of the
    table's columns.
    """
    known = {figure.column: figure for figure in result.figures}
    return [known[name] for name in FIGURES if name in known]


def format_figure(figure: Figure, status: str | None) -> str:
    """Return a figure exactly as printed, with its unit, and its status where it has one."""
    unit = f" {figure.unit}" if figure.unit else ""
    return f"{figure.text}{unit}{f' ({status})' if status else ''}"


def describe_row(row: Mapping[str, Any]) -> str:
    """Describe what ran where, without figures."""
    printed = row["model_printed"]
    parts = (
        printed if printed == row["model"] else f"{printed} ({row['model']})",
        row["variant"],
        row["task"],
        row["platform"],
        format_count(row["chip_count"], "chip") if row["chip_count"] else None,
        f"batch {row['batch_size']}" if row["batch_size"] else None,
        describe_software(row),
        row["precision"],
        row["submitter"],
    )
    return ", ".join(part for part in parts if part)


def describe_software(row: Mapping[str, Any]) -> str:
    """Describe the framework with its version, and the compiler where the source names one."""
    compiler = COMPILER.match(row["conditions"] or "")
    parts = (row["framework"], compiler and compiler[1], row["sdk_version"])
    return " ".join(part for part in parts if part)
