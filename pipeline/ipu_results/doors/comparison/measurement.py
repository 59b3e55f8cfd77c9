"""A measurement that is compared: its columns, the words that they may have, and where it is read
from.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ipu_results.doors.comparison.words import KnownWords
from ipu_results.errors import ComparisonError, DamagedRunError
from ipu_results.kit.files import load_schema_file, read_up_to
from ipu_results.kit.text import describe_unknown_columns, parse_toml
from ipu_results.record.link.machines import parse_machine
from ipu_results.schema.accelerators import find_accelerator
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

COMPARISON = load_schema_file("comparison.toml")
FIGURES = ("throughput", "latency_ms", "minutes", "efficiency", "power_w")
INPUT_SIZE = re.compile(COMPARISON["variant"]["input_size"])
SEQUENCE_LENGTH = re.compile(COMPARISON["variant"]["sequence_length"])
COUNTS = ("batch_size", "micro_batch_size", "chip_count", "sequence_length")
OTHER_NUMBERS = ("latency_ms_low", "latency_ms_high", "latency_max_ms")
SPARSITY = "sparsity"  # at most 1; a dense network has none
WORDS = (
    "model",
    "platform",
    "framework",
    "precision",
    "item",
    "task",
    "phase",
    "latency_kind",
    "latency_basis",
    "latency_scope",
    "power_scope",
    "benchmark",
    "division",
    "mlperf_round",
    "origin",
)
TEXTS = ("variant", "dataset", "sdk_version", "chip", "suspect", "run_id")
LOCAL = ("model", "platform", "framework", "precision")  # may have names of a run folder's own
# as files write them
FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
NUMBERS = frozenset({*COUNTS, *FIGURES, *OTHER_NUMBERS, SPARSITY})
FIELDS = NUMBERS.union(WORDS, TEXTS, {"packed"})
MAX_COUNT = 2**53  # up to which a double holds each whole number
MAX_FIGURE = 1e15  # a figure beyond it is a slip


def parse_sequence_length(variant: str | None) -> int | None:
    """Return the tokens of a sequence that a variant names, such as 128 of `SL128`; None where it
    names none.
    """
    match = SEQUENCE_LENGTH.search(variant or "")
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class Measurement:
    """Figures of one run at one batch size; null where they are not known.

    Units are those of the table `results`.

    `label` names it in a report. `setup` holds what a run folder knows beyond the columns,
    `remarks` what was assumed.
    """

    label: str
    model: str
    task: str
    origin: str = "measured"
    platform: str | None = None
    framework: str | None = None
    precision: str | None = None
    item: str | None = None
    phase: str | None = None
    latency_kind: str | None = None
    latency_basis: str | None = None
    latency_scope: str | None = None
    power_scope: str | None = None
    benchmark: str | None = None
    division: str | None = None
    variant: str | None = None
    dataset: str | None = None
    sdk_version: str | None = None
    chip: str | None = None
    mlperf_round: str | None = None
    suspect: str | None = None
    conditions: str | None = None
    run_id: str | None = None
    batch_size: int | None = None
    micro_batch_size: int | None = None
    chip_count: int | None = None
    sequence_length: int | None = None
    packed: bool | None = None
    sparsity: float | None = None
    throughput: float | None = None
    latency_ms: float | None = None
    latency_ms_low: float | None = None
    latency_ms_high: float | None = None
    latency_max_ms: float | None = None
    minutes: float | None = None
    efficiency: float | None = None
    power_w: float | None = None
    setup: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def figures(self) -> dict[str, float]:
        """The figures that are known, by the names of FIGURES."""
        figures = {name: getattr(self, name) for name in FIGURES}
        return {name: value for name, value in figures.items() if value is not None}

    def to_columns(self, run: int) -> dict[str, Any]:
        """Return the columns that the statements of a comparison read; `run` is the number."""
        columns = {column.name: getattr(self, column.name) for column in fields(self)}
        for name in ("label", "setup", "remarks"):
            del columns[name]
        input_size = INPUT_SIZE.search(self.variant or "")
        return {
            **columns,
            **self.setup,
            "run": run,
            "input_size": input_size[0] if input_size else None,
            "reported_latency": self.latency_kind or self.latency_basis,
            "reported_power": self.power_scope,
        }


def build_measurement(
    values: Mapping[str, Any],
    words: KnownWords,
    *,
    label: str,
    local: bool = False,
    setup: Mapping[str, str] = MappingProxyType({}),
) -> Measurement:
    """Check figures and words, and return them with canonical names.

    `local` values come from a run folder: a machine, framework or model that is unknown there
    keeps its own name. Raises ComparisonError that lists every unknown word and wrong number at
    once.
    """
    problems: list[str] = []
    columns: dict[str, Any] = {}
    for name, value in values.items():
        if value is not None and value != "":
            columns[name] = _parse(name, value, words, local, problems)
    if "model" not in columns:
        problems.append("no model; state model, such as resnet50")
    if not any(name in columns for name in FIGURES):
        problems.append(f"no figure; state at least one of {', '.join(FIGURES)}")
    if "minutes" in columns and columns.get("task") == "inference":
        problems.append(
            "minutes are a time to train, and the task is inference; state latency_ms instead"
        )
    # a variant and a column may both state it
    length = parse_sequence_length(columns.get("variant"))
    if length:
        stated = columns.setdefault("sequence_length", length)
        if stated != length:
            problems.append(
                f"variant {columns['variant']} and sequence length {stated} contradict each other;"
                " state one"
            )
    if problems:
        raise ComparisonError("; ".join(problems), place=label)
    _check_interval(columns, label)
    columns["model"] = _find_model(columns["model"], words, label)
    remarks = _fill(columns, words)
    if "task" not in columns:
        columns["task"] = "inference"
        if "minutes" in columns:
            columns["task"] = "training"
            remarks.append("task training: minutes are a time to train")
    return Measurement(label=label, setup=dict(setup), remarks=tuple(remarks), **columns)


def _find_model(name: str, words: KnownWords, label: str) -> str:
    """Return the model that a name stands for; a printed one, such as ResNeXt101, may stand for
    several. Raises ComparisonError then.
    """
    models = words.models.get(name, ())
    if not models or name in models:
        return name
    if len(models) > 1:
        message = f"model {name!r} names several models: {', '.join(models)}; state which"
        raise ComparisonError(message, place=label)
    return models[0]


def _check_interval(columns: Mapping[str, Any], label: str) -> None:
    """Raise ComparisonError for an interval with one end, or that its latency is outside of."""
    low = columns.get("latency_ms_low")
    high = columns.get("latency_ms_high")
    if low is None and high is None:
        return
    if low is None or high is None:
        message = "latency_ms_low and latency_ms_high are two ends of one interval: state both"
        raise ComparisonError(message, place=label)
    middle = columns.get("latency_ms") or low
    if not low <= middle <= high:
        message = "latency_ms is outside latency_ms_low to latency_ms_high"
        raise ComparisonError(message, place=label)


def _parse(name: str, value: object, words: KnownWords, local: bool, problems: list[str]) -> Any:
    """Return the value of a column, and add to the problems what is wrong with it."""
    if name in NUMBERS:
        return _parse_number(name, value, problems)
    if name == "packed":
        flag = value if isinstance(value, bool) else FLAGS.get(str(value).strip().casefold())
        if flag is None:
            problems.append(f"packed {value!r} is neither true nor false")
        return flag
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        problems.append(f"{name} {value!r} is not a text")
        return None
    text = str(value).strip()
    if not is_unicode(text):
        problems.append(f"{name} {text!r} is not Unicode text; write it in UTF-8")
        return None
    if name == "chip":
        return load_vocabulary().name_chip(text)
    if name == "dataset":
        return words.datasets.get(normalise_name(text), text)
    if name not in WORDS:
        return text
    known = words.find(name, text)
    if known is None and not (local and name in LOCAL):
        problem = words.describe_unknown(name, text)
        if name == "platform" and find_accelerator(text):
            problem += f"; for another machine with this chip state chip {text!r} and chip_count"
        problems.append(problem)
    return known or text


def is_unicode(text: str) -> bool:
    """Report whether a text can be written as UTF-8; half a surrogate pair, as Python has for a
    byte of another encoding, cannot.
    """
    return text == text.encode(errors="replace").decode()


def _parse_number(name: str, value: Any, problems: list[str]) -> float | int | None:
    """Return a finite number above zero; a figure that is not known is left out, not zero."""
    try:
        # float(True) is 1, which nobody means
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    is_count = name in COUNTS
    limit = MAX_COUNT if is_count else MAX_FIGURE
    if name == SPARSITY:
        limit = 1
    if not math.isfinite(number):
        problems.append(
            f"{name} {value!r} is not a number; write 1234.5, without separators or unit"
        )
    elif number <= 0:
        problems.append(f"{name} {value} is not above 0; leave out what was not measured")
    elif number > limit or (is_count and not number.is_integer()):
        kind = "whole number" if is_count else "number"
        problems.append(f"{name} {value} is not a {kind} in range")
    else:
        return int(number) if is_count else number
    return None


def _fill(columns: dict[str, Any], words: KnownWords) -> list[str]:
    """Fill in what follows from the machine and the model, and return a remark for each."""
    remarks = []
    machine = words.machines.get(columns.get("platform") or "", {})
    for name in ("chip", "chip_count"):
        if columns.get(name) is None and machine.get(name) is not None:
            columns[name] = machine[name]
            remarks.append(f"{name} {machine[name]}: all of {columns['platform']}")
    chip = columns.get("chip")
    chips = {facts["chip"] for facts in words.machines.values()}
    if chip and chip not in chips and not find_accelerator(chip):
        remarks.append(
            f"chip {chip}: unknown here, so no figure is compared with its peak or its rated power"
        )
    item = words.items.get(columns["model"])
    if columns.get("item") is None and item:
        columns["item"] = item
        remarks.append(f"item {item}: that of {columns['model']}")
    return remarks


POINTS = "points.csv"
SIDECAR = f"{POINTS}.toml"
RECORD = "record.json"
# of a run folder, in schema/vocabulary/table_headers.toml
READER = "sweep-points"
TABLE = "sweep_points"
MAX_BYTES = 10_000_000  # a thousand rows have far less: what is larger is another file
MAX_ROWS = 1000  # which are compared in one session, in memory
# of a point, under the names of `results`
COLUMN_OF_POINT = {
    point: column for column, point in load_schema_file("forms.toml")["sweep"]["columns"].items()
}
SETUP = ("sessions", "weights", "preprocessing", "model_precision", "pipeline")

Cells = dict[str, str]
"""The texts of a row by column."""


def read_source(path: Path, words: KnownWords) -> list[Measurement]:
    """Read the measurements of a run folder, a CSV file with a run a row, or a TOML file of one
    run.

    Raises ComparisonError for what cannot be read, and DamagedRunError for a folder whose points
    are not those of its sidecar.
    """
    if path.is_dir():
        return _read_run(path, words)
    if path.suffix.lower() == ".toml":
        return [build_measurement(_read_toml(path), words, label=path.name)]
    rows = _read_rows(path, _read(path), FIELDS)
    return [build_measurement(cells, words, label=label) for label, cells in rows.items()]


def read_run(folder: Path) -> tuple[dict[str, Cells], dict[str, Any]]:
    """Return the points of a run folder by their label, and its environment, empty if unknown.

    The machine has the name that the record gives it, in every command. Raises ComparisonError for
    what cannot be read, and DamagedRunError for a folder that contradicts itself.
    """
    path = folder / POINTS
    if not path.exists():
        raise ComparisonError(
            f"has no {POINTS}; a run folder of `ipu-results sweep` has one", place=str(folder)
        )
    data = _read(path)
    sidecar = folder / SIDECAR
    if sidecar.exists():
        try:
            digest = tomllib.loads(_read(sidecar).decode()).get("sha256")
        except ValueError as error:
            raise DamagedRunError("is not TOML", place=str(sidecar)) from error
        if digest != hashlib.sha256(data).hexdigest():
            raise DamagedRunError(f"is not the file that {SIDECAR} describes", place=str(path))
    known = FIELDS.union(load_vocabulary().header_of(READER, TABLE).names)
    points = _read_rows(path, data, known)
    environment = _read_environment(folder / RECORD)
    # a processor stands for the machine of the run, which has a name in the record
    machine = parse_machine(environment) if environment else None
    if machine is not None:
        for cells in points.values():
            if cells.get("platform") == machine.processor:
                cells["platform"] = machine.platform
    return points, environment


def _read_run(folder: Path, words: KnownWords) -> list[Measurement]:
    points, _ = read_run(folder)
    # the name of a folder may have bytes that are not UTF-8
    run_id = folder.resolve().name.encode(errors="replace").decode()
    measurements = []
    for label, cells in points.items():
        setup = {name: cells[name] for name in SETUP if cells.get(name)}
        stated = {}
        for name, value in cells.items():
            column = COLUMN_OF_POINT.get(name, name)
            if column in FIELDS:
                stated[column] = value
        stated["run_id"] = run_id
        if stated.get("origin") == "simulated":  # counts as emulated in every comparison
            stated["origin"] = "emulated"
        length = parse_sequence_length(stated.get("variant"))
        if length:
            stated |= {"sequence_length": str(length), "packed": "false"}  # `sweep` packs nothing
        measurement = build_measurement(stated, words, label=label, local=True, setup=setup)
        measurements.append(measurement)
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
        data = read_up_to(path, MAX_BYTES + 1)
    except OSError as error:
        raise ComparisonError(
            f"cannot be read: {error.strerror or error}", place=str(path)
        ) from error
    if len(data) > MAX_BYTES:
        raise ComparisonError(f"is larger than {MAX_BYTES // 1_000_000} MB", place=str(path))
    return data


def _read_toml(path: Path) -> dict[str, Any]:
    """Return the columns that a TOML file states at its top, such as `latency_ms = 1.9`."""
    try:
        values = parse_toml(_read(path).decode("utf-8-sig"))
    except ValueError as error:
        raise ComparisonError(f"is not TOML in UTF-8: {error}", place=str(path)) from error
    check_columns(values, str(path))
    return values


def check_columns(names: Iterable[str], place: str | None = None) -> None:
    """Raise ComparisonError for names that no column of a run has, each with the nearest known."""
    if unknown := [name for name in names if name not in FIELDS]:
        raise ComparisonError(describe_unknown_columns(unknown, sorted(FIELDS)), place=place)


def _read_rows(path: Path, data: bytes, known: Collection[str]) -> dict[str, Cells]:
    """Return the cells by column of each row, by a label that names the row; the first line has the
    names of columns of `results`.
    """
    place = str(path)
    try:
        # a spreadsheet writes a byte order mark
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ComparisonError(f"is not CSV in UTF-8: {error}", place=place) from error
    names = [name.strip() for name in rows[0]] if rows else []
    if unknown := [name for name in names if name not in known]:
        message = describe_unknown_columns(unknown, sorted(known))
        raise ComparisonError(message, place=f"{place}, line 1")
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ComparisonError(f"column {min(repeated)!r} occurs twice", place=f"{place}, line 1")
    # a spreadsheet also writes the blank rows below a table
    lines = [line for line in rows[1:] if any(map(str.strip, line))]
    if not lines:
        raise ComparisonError("has no row", place=place)
    if len(lines) > MAX_ROWS:
        message = f"has {len(lines)} rows, at most {MAX_ROWS} are compared at once"
        raise ComparisonError(message, place=place)
    cells_by_label = {}
    for number, line in enumerate(lines, 1):
        if len(line) != len(names):
            message = f"row {number} has another number of cells than the header"
            raise ComparisonError(message, place=place)
        cells_by_label[f"{path.name}, row {number}"] = dict(zip(names, line, strict=True))
    return cells_by_label
