"""Make a bundle of a run folder of `sweep`, or of files that an adapter reads.

Nothing is written.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from ipu_results.comparison.measurement import POINTS, read_run
from ipu_results.errors import SubmissionError
from ipu_results.ground.files import load_schema_file
from ipu_results.ground.limits import MAX_BUNDLE_FILE
from ipu_results.ground.text import has_in_a_row
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name
from ipu_results.sources.catalogue import read_limited
from ipu_results.submission import bundle
from ipu_results.submission.adapters import describe_missing, read_figures

SWEEP = "sweep"
MAX_SOURCE_BYTES = (
    100 * MAX_BUNDLE_FILE
)  # of a file that stays with the submitter: only its digest is handed in
MAX_FILE_NAME = 200  # characters, as `refusals` accepts
POINT = load_schema_file("adapters.toml")["sweep"]
FOLDERS: list[str] = load_schema_file("adapters.toml")["folders"]["files"]


@dataclass(frozen=True, slots=True)
class SubmissionRequest:
    """The paths to read, who measured how, and texts for blank columns by name; `adapter` is
    guessed if None.
    """

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
    """A bundle that is not written: its `<who>/<id>`, its files, and remarks of the adapters for
    the submitter.
    """

    place: str
    files: dict[str, bytes]
    remarks: Sequence[str]


@dataclass(slots=True)
class Collected:
    """What the paths hold: rows of the template, environment, sources, remarks, and machines that a
    run names.
    """

    rows: list[dict[str, str]] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    sources: list[dict[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    platforms: list[str] = field(default_factory=list)


def prepare_bundle(request: SubmissionRequest) -> PreparedBundle:
    """Read the paths and return a bundle. Nothing is written.

    Raises SubmissionError for a file that cannot be read, and for figures of an emulator.
    """
    for option, text, placeholder in (("who", request.name, "NAME"), ("how", request.how, "TEXT")):
        if text == placeholder:
            raise SubmissionError(
                f"--{option} {placeholder} is what a printed command leaves to you; write your own"
            )
    collected = Collected()
    for path in request.paths:
        file = _find_file(path)
        _collect_run(path, collected) if file is None else _collect_file(file, request, collected)
    rows = [_fill_in(row, request.defaults) for row in collected.rows]
    if not rows:
        raise SubmissionError("no figure was read; name a run folder or a file with figures")
    results = bundle.format_rows(rows)
    environment = (
        json.dumps(collected.environment, indent=1).encode() + b"\n"
        if collected.environment
        else None
    )
    who = {
        name: getattr(request, name)
        for name in ("name", "orcid", "affiliation", "contact", "account")
    }
    machines = dict.fromkeys(row["platform"] for row in rows if row["platform"])
    description: dict[str, Any] = {
        "origin": bundle.MEASURED,
        "submitted_on": request.submitted_on or date.today(),
        "licence": request.licence,
        "how": request.how,
        "machine": request.machine or ", ".join(machines),
        "relation": request.relation,
        "new_words": sorted({*request.new_words, *collected.platforms}),
        "who": {name: value for name, value in who.items() if value},
        "sources": collected.sources,
    }
    identity = bundle.compute_id(description, results, environment)
    try:
        files = {
            bundle.DESCRIPTION: tomli_w.dumps({"id": identity, **description}).encode(),
            bundle.RESULTS: results,
        }
    except UnicodeEncodeError as error:
        raise SubmissionError("an option has a byte that is not UTF-8; write it again") from error
    if environment is not None:
        files[bundle.ENVIRONMENT] = environment
    return PreparedBundle(f"{bundle.make_slug(request.name)}/{identity}", files, collected.remarks)


def _fill_in(row: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the row with texts for its blank columns.

    Raises SubmissionError for one that says another thing.
    """
    for name, text in defaults.items():
        own = row.get(name)
        is_part = name == "chip" and own and (has_in_a_row(text, own) or has_in_a_row(own, text))
        if own and not is_part and _get_meaning(name, own) != _get_meaning(name, text):
            raise SubmissionError(
                f"says {name} {row[name]!r}, not {text!r}", place=row.get("place")
            )
    return {
        name: row.get(name) or defaults.get(name, "")
        for name in {**dict.fromkeys(bundle.COLUMNS), **defaults}
    }


def _get_meaning(name: str, text: str) -> str:
    """Return a precision, model, platform or framework in its one spelling, any other text
    unchanged.
    """
    vocabulary = load_vocabulary()
    spellings: dict[str, Mapping[str, Any]] = {
        "precision": vocabulary.precision_names,
        "framework": vocabulary.frameworks,
        "model": {key: entry["model"] for key, entry in vocabulary.models.items()},
        "platform": {key: entry["platform"] for key, entry in vocabulary.platforms.items()},
    }
    return str(spellings.get(name, {}).get(normalise_name(text), text))


def _find_file(path: Path) -> Path | None:
    """Return the file to read: the path, or the report in the folder of another tool; None for one
    of `sweep`.

    Raises SubmissionError for a folder without either.
    """
    if not path.is_dir():
        return path
    if (path / POINTS).exists():
        return None
    files = [path / name for name in FOLDERS if (path / name).is_file()]
    if not files:
        message = (
            f"has neither {POINTS} of `ipu-results sweep` nor {', '.join(FOLDERS)}; name the files"
            " to read"
        )
        raise SubmissionError(message, document=str(path))
    return files[0]


def _collect_file(path: Path, request: SubmissionRequest, collected: Collected) -> None:
    read = read_figures(path, request.adapter)
    missing = describe_missing(_fill_in(row, request.defaults) for row in read.figures)
    others = [remark for remark in read.remarks if remark != describe_missing(read.figures)]
    collected.rows += read.figures
    collected.environment |= read.environment
    collected.remarks += [f"{path.name}: {remark}" for remark in filter(None, [missing, *others])]
    collected.sources.append(_describe_source(path, read.adapter))


def _describe_source(path: Path, adapter: str) -> dict[str, str]:
    """Return the entry of a file, with a name that a bundle accepts; the sha256 tells which one it
    was.
    """
    data = read_limited(path, path.name, MAX_SOURCE_BYTES)
    name = re.sub(r"^\W|[^\w .()+@-]", "_", path.name)[:MAX_FILE_NAME]
    return {"file": name, "adapter": adapter, "sha256": hashlib.sha256(data).hexdigest()}


def _collect_run(folder: Path, collected: Collected) -> None:
    """Add the points of a run folder of `sweep`, each figure as its file prints it."""
    lines, environment = read_run(folder)
    for label, line in lines:
        if line.get("origin") != bundle.MEASURED:
            message = (
                f"is {line.get('origin') or 'of unknown origin'}: only measured figures may be"
                " handed in"
            )
            raise SubmissionError(message, document=folder.name, place=label)
        notes = (
            f"{text} {line[name]}" for name, text in POINT["conditions"].items() if line.get(name)
        )
        shared = {column: line.get(name, "") for column, name in POINT["columns"].items()}
        shared |= {"task": "inference", "conditions": ", ".join(notes)}
        for name, (metric, unit) in POINT["figures"].items():
            if line.get(name):
                scope = line.get("power_scope", "") if metric == "power" else ""
                figure = {
                    "metric": metric,
                    "unit": unit.format(item=line.get("item") or "item"),
                    "value": line[name],
                }
                place = f"{label} of run {folder.resolve().name}, {name}"
                collected.rows.append({**shared, **figure, "power_scope": scope, "place": place})
        if line.get("platform"):
            collected.platforms.append(line["platform"])
    collected.environment |= environment
    collected.sources.append(_describe_source(folder / POINTS, SWEEP))
