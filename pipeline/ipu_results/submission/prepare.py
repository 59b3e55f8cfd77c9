"""Hold the rows of a bundle against the record: copied rows, thousandfold figures, plausibility, nearest rows."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import tomli_w

from ipu_results.comparison.comparable import Row, load_rows
from ipu_results.comparison.measurement import FIELDS, POINTS, KnownWords, build_measurement, read_run
from ipu_results.comparison.verdict import UNVERIFIED, Comparison, compare_with_rows
from ipu_results.errors import SubmissionError
from ipu_results.ground.limits import MAX_BUNDLE_FILE
from ipu_results.ground.sql import run_query
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name
from ipu_results.sources.catalogue import read_limited
from ipu_results.submission.adapters import read_figures
from ipu_results.submission.adapters.files import describe_missing
from ipu_results.submission.bundle import MEASURED, compute_id, make_slug
from ipu_results.submission.consistency import find_inconsistencies
from ipu_results.submission.contents import DESCRIPTION, ENVIRONMENT, RESULTS
from ipu_results.submission.fault import Fault
from ipu_results.submission.power import PowerEvidence, compute_rate_at_rating, find_wrong_power
from ipu_results.submission.refusals import FigureIndex, find_copied_table, find_copies
from ipu_results.submission.template import COLUMNS, format_rows

THOUSAND = 3.0  # decimal powers that a wrong unit adds
NEAR = 0.5  # decimal powers by which the nearest row may itself be off


def compare_rows(
    connection: duckdb.DuckDBPyConnection, words: KnownWords, rows: Sequence[Row], document_id: str
) -> list[tuple[Row, Comparison | None, list[Fault]]]:
    """Return each row with its comparison, None where it has no figure to compare, and what is wrong with it."""
    others = [row for row in load_rows(connection) if row["document_id"] != document_id and row["same_as"] is None]
    index, evidence = FigureIndex(others), PowerEvidence(connection, words)
    candidates: dict[str, list[Row]] = defaultdict(list)
    for other in others:
        candidates[other["network"]].append(other)
    compared = []
    shared_figures = []
    for row in rows:
        place = f"results.csv, row {row['row_number']}"
        shared = list(index.find(row))
        faults = list(find_copies(row, candidates[row["network"]], shared, place))
        faults += find_inconsistencies(row, words, place)
        faults += find_wrong_power(row, evidence, place)
        comparison = None
        if any(row.get(name) is not None for name in ("throughput", "latency_ms", "efficiency", "power_w", "minutes")):
            comparison = _compare_row(row, candidates[row["network"]], words, place)
            faults += _find_impossible(comparison, place)
            faults += _find_thousandfold(comparison, place)
        if row["energy_per_item_j"] and not row["efficiency"]:
            implied = {**row, "efficiency": 1 / row["energy_per_item_j"]}
            faults += _find_thousandfold(
                _compare_row(implied, candidates[row["network"]], words, place), place, "1 / energy per item"
            )
        if rate := compute_rate_at_rating(row, evidence):
            implied = {**row, "throughput": rate, "efficiency": None, "power_w": None}
            text = "rated power over energy per item"
            faults += _find_thousandfold(_compare_row(implied, candidates[row["network"]], words, place), place, text)
        compared.append((row, comparison, faults))
        shared_figures.append((row, shared))
    if compared and not any(fault.reason == "copied" for fault in compared[0][2]):
        compared[0][2].extend(find_copied_table(shared_figures))
    return compared


def _compare_row(row: Row, candidates: Sequence[Row], words: KnownWords, place: str) -> Comparison:
    values = {name: row.get(name) for name in FIELDS if name not in ("model", "precision", "suspect", "run_id")}
    values |= {"model": row["network"], "precision": row["effective_precision"]}
    ours = build_measurement(values, words, label=place, local=True)
    return compare_with_rows(ours, candidates, words)


def load_publishers(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """Return the names of those whose figures the record has, submitters excluded."""
    sql = "SELECT DISTINCT publisher FROM documents WHERE kind <> 'submission'"
    return frozenset(row["publisher"] for row in run_query(connection, sql).to_pylist())


def _find_impossible(comparison: Comparison, place: str) -> Iterator[Fault]:
    for check in comparison.checks:
        if check.outcome == "impossible":
            yield Fault("implausible", f"{check.name}: {check.message}", place)


def _find_thousandfold(comparison: Comparison, place: str, computed: str | None = None) -> Iterator[Fault]:
    """Yield a fault for a figure that is about 1000 or 1,000,000 times, or such a part of, a row of the same chip.

    `computed` names how the figure follows from those of the row, None for a stated one.
    """
    ours = comparison.measurement
    for match in comparison.matches:
        same = ours.platform == match.row["platform"] or (ours.chip is not None and ours.chip == match.row["chip"])
        if match.group in UNVERIFIED or not same:
            continue
        for ratio in match.ratios:
            per_chip = match.ratio_per_chip if ratio.figure == "throughput" else None
            power = math.log10(per_chip or ratio.ratio)
            steps = round(power / THOUSAND)
            if steps and abs(power - steps * THOUSAND) <= NEAR:
                row = match.row
                nearest = f"{row['publisher']}, {row['platform']}, batch {row['batch_size']}, result {row['result_id']}"
                name = f"{computed}, a {ratio.figure} of {ratio.ours:.4g}," if computed else ratio.figure
                message = f"{name} is {per_chip or ratio.ratio:.3g} times that of the nearest row ({nearest})"
                hint = "J for mJ" if computed else "ms for s or µs"
                yield Fault("unit", f"{message}: is the unit right ({hint})?", place)
                return


def describe_row(row: Row) -> Mapping[str, Any]:
    """Return the columns of a published row that have a value."""
    return {name: value for name, value in row.items() if value is not None}


SWEEP = "sweep"
MAX_FILE_NAME = 200
METRICS = {  # columns of points.csv, with the metric and the unit of the template
    "throughput": ("throughput", "{item}s/s"),
    "latency_ms": ("latency", "ms"),
    "latency_p90_ms": ("latency p90", "ms"),
    "latency_p99_ms": ("latency p99", "ms"),
    "power_w": ("power", "W"),
}
SHARED = ("model", "platform", "chip", "chip_count", "framework", "sdk_version", "batch_size", "micro_batch_size")
CONDITIONS = (  # columns of points.csv in the template's `conditions`, with what they are called there
    *(("latency_kind", "latency"), ("latency_ms_low", "latency from"), ("latency_ms_high", "to")),
    *(("interval_confidence", "confidence"), ("sessions", "sessions"), ("provider", "provider")),
    *(("threads", "threads"), ("pipeline", "pipeline"), ("weights", "weights"), ("suspect", "suspect")),
)


@dataclass(frozen=True, slots=True)
class SubmissionRequest:
    """The paths to read, who measured how, and texts for blank columns by name; `adapter` is guessed if None."""

    paths: Sequence[Path]
    name: str
    licence: str
    how: str
    machine: str | None = None
    relation: str = "none"
    orcid: str | None = None
    affiliation: str | None = None
    contact: str | None = None
    account: str | None = None
    new_words: Sequence[str] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    adapter: str | None = None
    submitted_on: date | None = None


class PreparedBundle(NamedTuple):
    """A bundle that is not written: its `<who>/<id>`, its files, and remarks of the adapters for the submitter."""

    place: str
    files: dict[str, bytes]
    remarks: Sequence[str]


@dataclass(slots=True)
class Collected:
    """What the paths hold: rows of the template, environment, sources, remarks, and machines that a run names."""

    rows: list[dict[str, str]] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    sources: list[dict[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    platforms: list[str] = field(default_factory=list)


def prepare_bundle(request: SubmissionRequest) -> PreparedBundle:
    """Read the paths and return a bundle. Nothing is written.

    Raises SubmissionError for a file that cannot be read, and for figures of an emulator.
    """
    collected = Collected()
    for path in request.paths:
        _collect_run(path, collected) if path.is_dir() else _collect_file(path, request, collected)
    rows = [_fill_in(row, request.defaults) for row in collected.rows]
    if not rows:
        raise SubmissionError("no figure was read; name a run folder or a file with figures")
    results = format_rows(rows)
    environment = json.dumps(collected.environment, indent=1).encode() + b"\n" if collected.environment else None
    who = {name: getattr(request, name) for name in ("name", "orcid", "affiliation", "contact", "account")}
    machines = dict.fromkeys(row["platform"] for row in rows if row["platform"])
    description: dict[str, Any] = {
        "origin": MEASURED,
        "submitted_on": request.submitted_on or date.today(),
        "licence": request.licence,
        "how": request.how,
        "machine": request.machine or ", ".join(machines),
        "relation": request.relation,
        "new_words": sorted({*request.new_words, *collected.platforms}),
        "who": {name: value for name, value in who.items() if value},
        "sources": collected.sources,
    }
    identity = compute_id(description, results, environment)
    try:
        files = {DESCRIPTION: tomli_w.dumps({"id": identity, **description}).encode(), RESULTS: results}
    except UnicodeEncodeError as error:
        raise SubmissionError("an option has a byte that is not UTF-8; write it again") from error
    if environment is not None:
        files[ENVIRONMENT] = environment
    return PreparedBundle(f"{make_slug(request.name)}/{identity}", files, collected.remarks)


def _fill_in(row: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the row with texts for its blank columns. Raises SubmissionError for one that says another thing."""
    for name, text in defaults.items():
        if row.get(name) and _get_meaning(name, row[name]) != _get_meaning(name, text):
            raise SubmissionError(f"says {name} {row[name]!r}, not {text!r}", place=row.get("place"))
    return {name: row.get(name) or defaults.get(name, "") for name in {**dict.fromkeys(COLUMNS), **defaults}}


def _get_meaning(name: str, text: str) -> str:
    """Return a precision, model, platform or framework in its one spelling, any other text unchanged."""
    vocabulary = load_vocabulary()
    spellings: dict[str, Mapping[str, Any]] = {
        "precision": vocabulary.precision_names,
        "framework": vocabulary.frameworks,
        "model": {key: entry["model"] for key, entry in vocabulary.models.items()},
        "platform": {key: entry["platform"] for key, entry in vocabulary.platforms.items()},
    }
    return str(spellings.get(name, {}).get(normalise_name(text), text))


def _collect_file(path: Path, request: SubmissionRequest, collected: Collected) -> None:
    read = read_figures(path, request.adapter)
    missing = describe_missing(_fill_in(row, request.defaults) for row in read.figures)
    others = [remark for remark in read.remarks if remark != describe_missing(read.figures)]
    collected.rows += read.figures
    collected.environment |= read.environment
    collected.remarks += [f"{path.name}: {remark}" for remark in filter(None, [missing, *others])]
    collected.sources.append(_describe_source(path, read.adapter))


def _describe_source(path: Path, adapter: str) -> dict[str, str]:
    data = read_limited(path, path.name, MAX_BUNDLE_FILE * 100)
    return {"file": clean_file_name(path.name), "adapter": adapter, "sha256": hashlib.sha256(data).hexdigest()}


def clean_file_name(name: str) -> str:
    """Return the name of a file as a bundle accepts it; the sha256 tells which one it was."""
    return re.sub(r"^\W|[^\w .()+@-]", "_", name)[:MAX_FILE_NAME]


def _collect_run(folder: Path, collected: Collected) -> None:
    """Add the points of a run folder of `sweep`, each figure as its file prints it."""
    lines, environment = read_run(folder)
    for label, line in lines:
        if line.get("origin") != MEASURED:
            message = f"is {line.get('origin') or 'of unknown origin'}: only measured figures may be handed in"
            raise SubmissionError(message, document=folder.name, place=label)
        shared = {name: line.get(name, "") for name in SHARED}
        shared |= {
            "task": "inference",
            "precision": line.get("compute_precision", ""),
            "conditions": ", ".join(f"{text} {line[name]}" for name, text in CONDITIONS if line.get(name)),
        }
        for name, (metric, unit) in METRICS.items():
            if line.get(name):
                scope = line.get("power_scope", "") if metric == "power" else ""
                figure = {"metric": metric, "unit": unit.format(item=line.get("item") or "item"), "value": line[name]}
                place = f"{label} of run {folder.resolve().name}, {name}"
                collected.rows.append({**shared, **figure, "power_scope": scope, "place": place})
        if line.get("platform"):
            collected.platforms.append(line["platform"])
    collected.environment |= environment
    collected.sources.append(_describe_source(folder / POINTS, SWEEP))
