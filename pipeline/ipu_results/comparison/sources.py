"""Read figures from a run folder of `sweep` or from a CSV file. Data only: nothing of the folder is executed."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ipu_results.comparison.measurement import ALIASES, FIELDS, KnownWords, Measurement, build_measurement
from ipu_results.errors import ComparisonError, DamagedRunError
from ipu_results.ground.files import open_regular_file
from ipu_results.ground.text import describe_unknown_columns
from ipu_results.link.platforms import parse_machine
from ipu_results.runner.reference_rows import parse_sequence_length
from ipu_results.schema.vocabulary import load_vocabulary

POINTS, SIDECAR, RECORD = "points.csv", "points.csv.toml", "record.json"
READER, TABLE = "sweep-points", "sweep_points"  # of a run folder, in schema/vocabulary/table_headers.toml
MAX_BYTES = 10_000_000
MAX_ROWS = 1000
SETUP = ("sessions", "weights", "preprocessing", "model_precision", "pipeline")


def read_source(path: Path, words: KnownWords) -> list[Measurement]:
    """Read the measurements of a run folder or a CSV file.

    Raises ComparisonError for what cannot be read, and DamagedRunError for a folder whose points are not those of its
    sidecar.
    """
    if path.is_dir():
        return _read_run(path, words)
    return [build_measurement(values, words, label=label) for label, values in _read_rows(path, _read(path), FIELDS)]


def read_run(folder: Path) -> tuple[list[tuple[str, Mapping[str, str]]], dict[str, Any]]:
    """Return the label and the texts by column of each point of a run folder, and its environment, empty if unknown.

    Raises ComparisonError for what cannot be read, and DamagedRunError for a folder that contradicts itself.
    """
    if not (folder / POINTS).exists():
        raise ComparisonError(f"has no {POINTS}; a run folder of `ipu-results sweep` has one", place=str(folder))
    data = _read(folder / POINTS)
    if (folder / SIDECAR).exists():
        try:
            digest = tomllib.loads(_read(folder / SIDECAR).decode()).get("sha256")
        except ValueError as error:
            raise DamagedRunError("is not TOML", place=str(folder / SIDECAR)) from error
        if digest != hashlib.sha256(data).hexdigest():
            raise DamagedRunError(f"is not the file that {SIDECAR} describes", place=str(folder / POINTS))
    known = {*FIELDS, *load_vocabulary().header_of(READER, TABLE).names}
    return _read_rows(folder / POINTS, data, known), _read_environment(folder / RECORD)


def _read_run(folder: Path, words: KnownWords) -> list[Measurement]:
    lines, environment = read_run(folder)
    run_id = folder.resolve().name
    machine = parse_machine(run_id, environment) if environment else None
    measurements = []
    for label, values in lines:
        setup = {name: values[name] for name in SETUP if values.get(name)}
        # A simulated device counts as emulated in every comparison.
        origin = {"simulated": "emulated"}.get(values.get("origin") or "", values.get("origin"))
        own = {name: value for name, value in values.items() if ALIASES.get(name, name) in FIELDS}
        own["run_id"] = run_id
        if length := parse_sequence_length(own):
            own |= {"sequence_length": str(length), "packed": "false"}  # `sweep` packs nothing
        if machine is not None and own.get("platform") == machine.processor:
            own["platform"] = machine.name
        measurements.append(build_measurement({**own, "origin": origin}, words, label=label, local=True, setup=setup))
    return measurements


def _read_environment(path: Path) -> dict[str, Any]:
    """Return the environment of a run, empty where it has none."""
    if not path.exists():
        return {}
    try:
        environment = json.loads(_read(path))["environment"]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedRunError("is not the record of a run", place=str(path)) from error
    return environment if isinstance(environment, dict) else {}


def _read(path: Path) -> bytes:
    try:
        with open_regular_file(path) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ComparisonError(f"cannot be read: {error.strerror or error}", place=str(path)) from error
    if len(data) > MAX_BYTES:
        raise ComparisonError(f"is larger than {MAX_BYTES // 1_000_000} MB", place=str(path))
    return data


def _read_rows(path: Path, data: bytes, known: Any) -> list[tuple[str, Mapping[str, str]]]:
    """Return the label and the cells by column of each row; the first line has the names of columns of `results`."""
    place = str(path)
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ComparisonError(f"is not CSV in UTF-8: {error}", place=place) from error
    header, *lines = rows or [[]]
    names = [name.strip() for name in header]
    accepted = {*known, *ALIASES}
    if unknown := [name for name in names if name not in accepted]:
        raise ComparisonError(describe_unknown_columns(unknown, sorted(accepted)), place=f"{place}, line 1")
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ComparisonError(f"column {min(repeated)!r} occurs twice", place=f"{place}, line 1")
    lines = [line for line in lines if any(map(str.strip, line))]
    if not lines:
        raise ComparisonError("has no row", place=place)
    if len(lines) > MAX_ROWS:
        raise ComparisonError(f"has {len(lines)} rows, at most {MAX_ROWS} are compared at once", place=place)
    if wrong := next((number for number, line in enumerate(lines, 1) if len(line) != len(names)), None):
        raise ComparisonError(f"row {wrong} has another number of cells than the header", place=place)
    return [(f"{path.name}, row {number}", dict(zip(names, line, strict=True))) for number, line in enumerate(lines, 1)]
