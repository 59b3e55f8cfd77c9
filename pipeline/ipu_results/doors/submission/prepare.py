"""Make a bundle of a run folder of `sweep`, or of files whose form is known.

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

from ipu_results.doors.comparison.measurement import POINTS, read_run
from ipu_results.doors.submission import bundle
from ipu_results.doors.submission.forms import read_figures
from ipu_results.errors import SubmissionError
from ipu_results.kit.files import load_schema_file

SWEEP = "sweep"
MAX_FILE_NAME = 200  # characters, as `refusals` accepts
POINT = load_schema_file("forms.toml")["sweep"]
ABOUT_MACHINE = ("machine", "relation")
ABOUT_PERSON = ("orcid", "affiliation", "contact", "account")
OF_ONE_FIGURE = ("value", "place")
SHARED = tuple(name for name in bundle.COLUMNS if name not in OF_ONE_FIGURE)
SETTABLE = SHARED + ABOUT_MACHINE + ABOUT_PERSON
"""What `--set` may state: columns of the template, and keys of the description."""
# What a row should say and a submitter must add.
EXPECTED = (
    "model",
    "task",
    "platform",
    "chip",
    "chip_count",
    "framework",
    "sdk_version",
    "precision",
    "batch_size",
)


@dataclass(frozen=True, slots=True)
class SubmissionRequest:
    """The paths to read, and who measured how."""

    paths: Sequence[Path]
    name: str
    licence: str
    how: str
    stated: Mapping[str, str] = field(default_factory=dict)
    """Texts by name: of columns that are blank in the files, and of the description (SETTABLE)."""
    new_words: Sequence[str] = ()


class PreparedBundle(NamedTuple):
    """A bundle that is not written: its `<who>/<id>`, its files, and remarks for the submitter."""

    place: str
    files: bundle.Files
    remarks: Sequence[str]


@dataclass(slots=True)
class Collected:
    """What the paths hold."""

    rows: list[dict[str, str]] = field(default_factory=list)
    """Lines of the template."""
    environment: dict[str, Any] = field(default_factory=dict)
    sources: list[dict[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    platforms: list[str] = field(default_factory=list)
    """Machines that runs name; they need not be declared as new words."""


def prepare_bundle(request: SubmissionRequest) -> PreparedBundle:
    """Read the paths and return a bundle. Nothing is written.

    Raises SubmissionError for a file that cannot be read, and for figures of an emulator.
    """
    for option, text, placeholder in (("who", request.name, "NAME"), ("how", request.how, "TEXT")):
        if text == placeholder:
            raise SubmissionError(
                f"--{option} {placeholder} is what a printed command leaves to you; write your own"
            )
    columns = {name: text for name, text in request.stated.items() if name in bundle.COLUMNS}
    collected = Collected()
    for path in request.paths:
        if path.is_dir():
            _collect_run(path, collected, columns)
        else:
            _collect_file(path, collected, columns)
    if not collected.rows:
        raise SubmissionError("no figure was read; name a run folder or a file with figures")
    try:
        place, files = _format_bundle(request, collected)
    except UnicodeEncodeError as error:
        raise SubmissionError(
            "an option or a file has a character that is not UTF-8; write it again"
        ) from error
    return PreparedBundle(place, files, collected.remarks)


def _format_bundle(request: SubmissionRequest, collected: Collected) -> tuple[str, bundle.Files]:
    """Return `<who>/<id>` of a bundle and its files."""
    results = bundle.format_rows(collected.rows)
    environment = None
    if collected.environment:
        environment = json.dumps(collected.environment, indent=1).encode() + b"\n"
    who = {"name": request.name}
    for name in ABOUT_PERSON:
        if request.stated.get(name):
            who[name] = request.stated[name]
    platforms = dict.fromkeys(row["platform"] for row in collected.rows if row["platform"])
    description: dict[str, Any] = {
        "origin": bundle.MEASURED,
        "submitted_on": date.today(),
        "licence": request.licence,
        "how": request.how,
        "machine": request.stated.get("machine", ", ".join(platforms)),
        "relation": request.stated.get("relation", "none"),
        "new_words": sorted({*request.new_words, *collected.platforms}),
        "who": who,
        "sources": collected.sources,
    }
    identity = bundle.compute_id(description, results, environment)
    text = tomli_w.dumps({"id": identity, **description})
    files = {bundle.DESCRIPTION: text.encode(), bundle.RESULTS: results}
    if environment is not None:
        files[bundle.ENVIRONMENT] = environment
    return f"{bundle.make_slug(request.name)}/{identity}", files


def _collect_file(path: Path, collected: Collected, columns: Mapping[str, str]) -> None:
    read = read_figures(path)
    rows = [_fill_in(row, columns) for row in read.figures]
    remarks = [*_list_missing(rows), *read.remarks]
    collected.rows += rows
    collected.environment |= read.environment
    collected.remarks += [f"{path.name}: {remark}" for remark in dict.fromkeys(remarks)]
    collected.sources.append(_describe_source(path.name, read.file.data, read.form))


def _fill_in(row: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return the row with texts for its blank columns.

    Raises SubmissionError for one that says another thing.
    """
    filled = {name: row.get(name, "") for name in bundle.COLUMNS}
    for name, text in columns.items():
        if filled[name] and filled[name] != text:
            raise SubmissionError(
                f"says {name} {filled[name]!r}, not {text!r}", place=row.get("place")
            )
        filled[name] = text
    return filled


def _list_missing(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return a remark on the columns that some row leaves blank, if there are any."""
    missing = [name for name in EXPECTED if not all(row[name] for row in rows)]
    if not missing:
        return []
    what = ", ".join(missing)
    return [f"the file does not state {what}: fill in what you know (--set NAME=TEXT)"]


def _describe_source(name: str, data: bytes, form: str) -> dict[str, str]:
    """Return the entry of a file, with a name that a bundle accepts; the sha256 tells which one it
    was.
    """
    plain = re.sub(r"^\W|[^\w .()+@-]", "_", name)[:MAX_FILE_NAME]
    return {"file": plain, "adapter": form, "sha256": hashlib.sha256(data).hexdigest()}


def _collect_run(folder: Path, collected: Collected, columns: Mapping[str, str]) -> None:
    """Add the points of a run folder of `sweep`, each figure as its file prints it."""
    if not (folder / POINTS).exists():
        raise SubmissionError(
            f"has no {POINTS} of `ipu-results sweep`; name the files to read", document=str(folder)
        )
    points, environment = read_run(folder)
    run_id = folder.resolve().name
    for label, line in points.items():
        origin = line.get("origin") or "of unknown origin"
        if origin != bundle.MEASURED:
            message = f"is {origin}: only measured figures may be handed in"
            raise SubmissionError(message, document=folder.name, place=label)
        shared = {column: line.get(name, "") for column, name in POINT["columns"].items()}
        conditions = {title: line.get(name, "") for name, title in POINT["conditions"].items()}
        shared |= {"task": "inference", "conditions": bundle.format_conditions(conditions)}
        for name, (metric, unit) in POINT["figures"].items():
            if not line.get(name):
                continue
            figure = {
                "metric": metric,
                "unit": unit.format(item=line.get("item") or "item"),
                "value": line[name],
                "place": f"{label} of run {run_id}, {name}",
            }
            if metric == "power":
                figure["power_scope"] = line.get("power_scope", "")
            collected.rows.append(_fill_in({**shared, **figure}, columns))
        if line.get("platform"):
            collected.platforms.append(line["platform"])
    collected.environment |= environment
    data = (folder / POINTS).read_bytes()
    collected.sources.append(_describe_source(POINTS, data, SWEEP))
