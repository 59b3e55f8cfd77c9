"""Convert the tables of a document to rows of `results`, in the way of its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from ipu_results.errors import CatalogueError, DamagedDocumentError
from ipu_results.record.normalise.decimal_mark import DecimalMark, find_decimal_marks
from ipu_results.record.normalise.fields import (
    MICROBENCHMARKS,
    NO_VALUE,
    CellValues,
    get_column,
)
from ipu_results.record.normalise.rows import (
    CellError,
    ConvertedRows,
    RejectedRow,
    TableSource,
    map_texts,
    reject_row,
)
from ipu_results.record.normalise.values import (
    SDK,
    UnknownWord,
    UnknownWordError,
    UnreadableCellError,
    parse_number,
    parse_whole_number,
)
from ipu_results.record.read.document import ParsedDocument, SourceTable
from ipu_results.record.sources.catalogue import Document
from ipu_results.schema import table as published_table
from ipu_results.schema.vocabulary import (
    KINDS,
    UNITS_LIKE,
    Quantity,
    TableHeader,
    Vocabulary,
    normalise_name,
    parse_unit,
)

TABLE = published_table(MICROBENCHMARKS)
REQUIRED = ("device", "operation", "metric", "unit", "value", "place")
CHECKED = (*REQUIRED, "device_count")  # of a row the first that is wrong is told
MISSING = "missing-"
RUN_ID = published_table("runs").column("run_id").pattern
# The columns of a run's points have no unit in their names.
POINT_UNITS = {
    "throughput": "items/s",
    "latency_ms": "ms",
    **{column: "ms" for column, other in UNITS_LIKE.items() if other == "latency_ms"},
    "power_w": "W",
    "efficiency": "items/s/W",
}
# A word of a software line with its version: `TensorFlow1.15`.
WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:\.\d+)*")
SDK_NAME = re.compile(r"\bPoplar SDK\b")  # Poplar alone is a framework
QUALITY = "quality "  # before the name of a quality in the column `metric`
LONGEST_NAME = 3  # words of a framework's name
BRACKETS = re.compile(r"\([^()]*\)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The rows of one table, converted or rejected."""

    converted: list[ConvertedRows]
    rejected: list[RejectedRow]


def normalise_rows(
    document: Document, parsed: ParsedDocument, vocabulary: Vocabulary
) -> Iterator[Outcome]:
    """Yield the readable rows of each table, converted or rejected."""
    normalise_table = NORMALISERS[KINDS[document.reader].results or ""]
    tables = [(table, vocabulary.header_of(document.reader, table.name)) for table in parsed.tables]
    for table, header in tables:
        _refuse_second_units(document, table, header)
    is_template = KINDS[document.reader].format == "csv"
    language = "en" if is_template else parsed.language  # the template has decimal points
    marks = find_decimal_marks(tables, parsed.problems, language, document.decimal_mark)
    for table, header in tables:
        source = TableSource(document, table, header, vocabulary, marks)
        yield Outcome(normalise_table(source), source.rejected)


def _refuse_second_units(document: Document, table: SourceTable, header: TableHeader) -> None:
    """Raise DamagedDocumentError for a unit in the name of a column beside a column of units."""
    if "unit" not in map(header.field_of, table.columns):
        return
    for name in table.columns:
        if parse_unit(name) is not None:
            message = f"{name!r} states a unit, which the column of units does too"
            raise DamagedDocumentError(message, document=document.document_id, place=table.locator)


def _one_per_row(source: TableSource) -> list[ConvertedRows]:
    """Make each row one result."""
    return [source.convert(source.get_constants())]


def _joined_on_batch(source: TableSource) -> list[ConvertedRows]:
    """Make one result per batch size from several tables; a row without a batch size cannot be
    placed.
    """
    rows = source.convert(source.get_constants())
    return [_require_batch(source, rows, "no batch size to join the tables on")]


def _one_per_metric(source: TableSource) -> list[ConvertedRows]:
    """Convert rows that name their metric, and perhaps its unit; the rows of one configuration make
    one result.
    """
    vocabulary = source.vocabulary
    column = source.list_fields()
    find_framework = partial(_find_framework, vocabulary)
    fields = [name for name in ("task", "metric", "unit") if name in column]
    parts = []
    for texts, group in source.group_rows(fields).items():
        shared = dict(zip(fields, texts, strict=True))
        task = shared["task"]
        metric = shared["metric"]
        found = _find_metric(metric, shared.get("unit"), vocabulary)
        if found is None:
            _reject_unknown(group, "metric", metric)
            continue
        if task not in vocabulary.tasks:
            _reject_unknown(group, "task", task)
            continue
        constants = {**source.get_constants(), "task": vocabulary.tasks[task]}
        basis = vocabulary.metrics.get(metric, {}).get("latency_basis")
        if basis:
            constants["latency_basis"] = basis
        columns = {}
        if "path" in column:
            paths = group.table.texts[column["path"]]
            columns["framework"] = map_texts(paths, find_framework, "framework")
        field, unit = found
        of_metric = _replace_value(group, field)
        parts.append(of_metric.convert(constants, columns, {field: unit}))
    return parts


def _reject_unknown(source: TableSource, field: str, text: str) -> None:
    """Reject all rows of a part of a table for an unknown word that they have in common."""
    word = UnknownWord(kind=field, column=field, text=text)
    error = UnknownWordError(word, f"unknown {field} {text!r}")
    for position in range(len(source.table.numbers)):
        row = reject_row(source.table, position, error.reason, str(error))
        source.rejected.append(replace(row, words=(word,)))


def _find_framework(vocabulary: Vocabulary, path: str) -> str | None:
    """Return the framework of the folder that a script is in."""
    for folder, name in vocabulary.framework_by_path.items():
        if path.startswith(folder):
            return name
    return None


def _find_metric(metric: str, unit: str | None, vocabulary: Vocabulary) -> tuple[str, str] | None:
    """Return the field of a printed metric and its unit; of a quality, its name in place of the
    unit.

    `unit` is what the rows state, None in a table without a column of units. Then the metric must
    imply one, and otherwise it must not.
    """
    if unit is not None and metric.startswith(QUALITY):
        name = metric.removeprefix(QUALITY)
        if unit:
            name += f" ({unit})"
        return "quality_figure", name
    entry = vocabulary.metrics.get(metric, {})
    implied = entry.get("unit")
    if unit is not None and implied is None and entry:
        return entry["column"], unit
    if unit is None and implied is not None:
        return entry["column"], implied
    return None


def _replace_value(source: TableSource, field: str) -> TableSource:
    """Return a table whose column `value` has figures of one metric."""
    fields = tuple((name, field if old == "value" else old) for name, old in source.header.fields)
    return replace(source, header=replace(source.header, fields=fields))


def _mlperf_entry(source: TableSource) -> list[ConvertedRows]:
    """Make each row with a score one result; its software line names framework and SDK."""
    vocabulary = source.vocabulary
    column = source.list_fields()
    scores = source.table.texts[column["time_to_train_s"]]
    positions = []
    for position, code in enumerate(scores.codes):
        if scores.distinct[code]:
            positions.append(position)
    scored = source.select(positions)
    texts = scored.table.texts
    software = texts[column["software"]]
    name_model = partial(_name_model, vocabulary)
    name_frameworks = partial(_name_frameworks, vocabulary)
    columns = {
        "model_printed": map_texts(texts[column["folder"]], name_model, "model_printed"),
        "framework": map_texts(software, name_frameworks, "framework"),
        "sdk_version": map_texts(software, _find_sdk, "sdk_version"),
    }
    constants = {**source.get_constants(), "origin": "official"}
    rows = scored.convert(constants, columns, {"time_to_train_s": "min"})
    chips = []
    for row in scored.table.rows:
        printed = row.cells[column["chip"]]
        memory = row.cells[column["chip_memory"]]
        path = row.cells[column["path"]]
        chips.append(vocabulary.refine_chip(printed, memory, path) or None)
    refined = pa.array(chips, pa.string()).take(rows.positions)
    return [replace(rows, values={**rows.values, "chip": refined})]


def _name_model(vocabulary: Vocabulary, folder: str) -> str:
    return vocabulary.benchmarks.get(folder, folder)


def _find_sdk(text: str) -> str | None:
    """Return the version of the SDK in a line such as `PopART Poplar SDK 2.5.1`."""
    sdk = SDK.search(text)
    return sdk.group(1) if sdk else None


def _name_frameworks(vocabulary: Vocabulary, text: str) -> str | None:
    """Name the frameworks of a software line, sorted, or the whole line; what is in brackets counts
    if nothing else does.

    The name of an SDK is none, and TensorFlow next to TensorFlow1 says no more than that.
    """
    for part in (BRACKETS.sub(" ", text), text):
        names = sorted(_find_frameworks(vocabulary, part))
        if names:
            return ", ".join(name for name in names if not _is_part(name, names))
    return text or None


def _is_part(name: str, names: Sequence[str]) -> bool:
    """Check whether another of the names begins with one."""
    return any(other != name and other.startswith(name) for other in names)


def _find_frameworks(vocabulary: Vocabulary, text: str) -> set[str]:
    words = WORD.findall(SDK_NAME.sub(" ", text))
    known = set()
    for start in range(len(words)):
        for end in range(start + 1, start + LONGEST_NAME + 1):
            name = normalise_name("".join(words[start:end]))
            if name in vocabulary.frameworks:
                known.add(vocabulary.frameworks[name])
    return known


def _run_point(source: TableSource) -> list[ConvertedRows]:
    """Make each row one result of a local run; the row itself gives its origin."""
    run_id = get_run_id(source.document)
    constants = {**source.get_constants(), "origin": None, "run_id": run_id}
    rows = source.convert(constants, units=POINT_UNITS)
    return [_require_batch(source, rows, "no batch size")]


def get_run_id(document: Document) -> str:
    """Return the id of the local run that a document belongs to.

    Raises CatalogueError if its id holds none.
    """
    suffix = "-points" if document.reader == "sweep-points" else ""
    match = re.fullmatch(f"sweep-({RUN_ID}){suffix}", document.document_id)
    if match is None:
        message = f"must be called sweep-<run_id>{suffix}"
        raise CatalogueError(message, document=document.document_id, place=document.file)
    return match.group(1)


def _require_batch(source: TableSource, rows: ConvertedRows, message: str) -> ConvertedRows:
    """Return the rows with a batch size; the others are rejected."""
    has_batch = np.zeros(len(rows.positions), bool)
    if "batch_size" in rows.values:
        has_batch = rows.values["batch_size"].is_valid().to_numpy(zero_copy_only=False)
    for index in np.flatnonzero(~has_batch).tolist():
        source.rejected.append(rows.reject(index, "missing-batch", message))
    return rows.filter(has_batch)


def _microbenchmarks(source: TableSource) -> list[ConvertedRows]:
    """Convert each line, with one figure, its metric and its unit as printed, to a row of
    `microbenchmarks`.
    """
    groups = source.group_rows(("metric", "unit"))
    return [
        _convert_microbenchmarks(group, metric, unit) for (metric, unit), group in groups.items()
    ]


def _convert_microbenchmarks(source: TableSource, metric: str, unit: str) -> ConvertedRows:
    """Convert lines of one metric in one unit; a row is rejected for the first check it fails."""
    document = source.document
    fields = list(source.list_fields())
    mark = source.get_mark(source.table.columns[fields.index("value")])
    cells = MicrobenchmarkCells(source.vocabulary, metric, unit, mark)

    def choose_first(errors: Sequence[CellError]) -> Sequence[CellError]:
        """Return the first error in the order of CHECKED, of a blank cell if there is one."""
        ordered = sorted(errors, key=lambda error: CHECKED.index(fields[error[0]]))
        blank = [error for error in ordered if error[1].reason.startswith(MISSING)]
        return (blank or ordered)[:1]

    return source.fill(
        TABLE,
        [partial(cells.convert, name) for name in fields],
        {"document_id": document.document_id, "publisher": document.publisher},
        choose=choose_first,
    )


@dataclass(frozen=True, slots=True)
class MicrobenchmarkCells:
    """Converts the cells of lines of one metric in one unit."""

    vocabulary: Vocabulary
    metric: str
    unit: str
    mark: DecimalMark

    def convert(self, field: str, text: str) -> CellValues:
        """Return the columns of `microbenchmarks` that a cell fills. Raises UnreadableCellError."""
        if not text:
            if field in REQUIRED:
                raise UnreadableCellError(f"{MISSING}{field}", f"{field} is blank")
            return NO_VALUE
        name = get_column(field, TABLE.name)
        match field:
            case "metric":
                return CellValues({name: text, "canonical_unit": self._find_quantity().unit})
            case "value":
                figure = parse_number(text, self.mark)
                factor = self._find_quantity().factors[self.unit]
                values = {name: float(figure), "canonical_value": float(figure * factor)}
                return CellValues(values, float(figure), self.unit, float(factor))
            case "device_count":
                count = parse_whole_number(text, self.mark)
                return CellValues({name: count}, float(count), "chip", 1.0)
            case "device":
                return CellValues({name: self.vocabulary.chips.get(normalise_name(text), text)})
            case "precision":
                precision = self.vocabulary.precision_names.get(normalise_name(text), text)
                return CellValues({name: text, "precision": precision})
        return CellValues({name: text}) if name in TABLE.names else NO_VALUE

    def _find_quantity(self) -> Quantity:
        """Return what the metric is of: its canonical unit, and the factor from each other one."""
        quantity = self.vocabulary.microbenchmarks.get(self.metric)
        if quantity is None:
            word = UnknownWord("metric", "microbenchmarks", self.metric)
            raise UnknownWordError(word, f"unknown metric {self.metric!r}")
        if self.unit not in quantity.factors:
            word = UnknownWord("unit", self.metric, self.unit)
            raise UnknownWordError(word, f"unknown unit {self.unit!r} for {self.metric}")
        return quantity


NORMALISERS: dict[str, Callable[[TableSource], list[ConvertedRows]]] = {
    "one-per-row": _one_per_row,
    "joined-on-batch": _joined_on_batch,
    "one-per-metric": _one_per_metric,
    "mlperf-entry": _mlperf_entry,
    "run-point": _run_point,
    "microbenchmark": _microbenchmarks,
}
