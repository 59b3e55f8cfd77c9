"""Convert the tables of a document to fragments of results, in the way of its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

from ipu_results.errors import CatalogueError
from ipu_results.normalise.decimal_mark import DecimalMark, find_decimal_marks
from ipu_results.normalise.fields import LATENCIES, CellValues
from ipu_results.normalise.rows import RejectedRow, RowConverter, RowFragment, get_constants
from ipu_results.normalise.values import (
    SDK,
    UnknownWord,
    UnknownWordError,
    UnreadableCellError,
    parse_number,
    parse_whole_number,
)
from ipu_results.read.document import ParsedDocument, SourceTable
from ipu_results.schema import table as published_table
from ipu_results.schema.table_headers import TableHeader
from ipu_results.schema.vocabulary import KINDS, Vocabulary, normalise_name
from ipu_results.sources.catalogue import Document

TABLE = "microbenchmarks"
FIGURES = {"value", "device_count"}  # published as numbers; the other cells as they are printed
REQUIRED = ("device", "operation", "metric", "unit", "value", "place")
RUN_ID = published_table("runs").column("run_id").pattern
# The columns of a run's points have no unit in their names.
POINT_UNITS = {
    "throughput": "items/s",
    **dict.fromkeys(("latency_ms", *LATENCIES), "ms"),
    "power_w": "W",
    "efficiency": "items/s/W",
}
# A word of a software line with its version: `TensorFlow1.15`.
WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:\.\d+)*")
SDK_NAME = re.compile(r"\bPoplar SDK\b")  # Poplar alone is a framework
QUALITY = "quality "  # before the name of a quality in the column `metric`
LONGEST_NAME = 3  # words of a framework's name
BRACKETS = re.compile(r"\([^()]*\)")

Outcome = RowFragment | RejectedRow


class TableSource(NamedTuple):
    """One table of a document, and what its rows are converted with."""

    document: Document
    table: SourceTable
    header: TableHeader
    vocabulary: Vocabulary
    marks: Mapping[tuple[str, str], DecimalMark]
    """Decimal mark of a column, by table and printed name, where it is not simply a point."""

    def make_converter(self, units: Mapping[str, str] | None = None) -> RowConverter:
        return RowConverter(self.table, self.header, self.vocabulary, self.marks, units)


def normalise_rows(document: Document, parsed: ParsedDocument, vocabulary: Vocabulary) -> Iterator[Outcome]:
    """Yield every readable row of the document, converted or rejected, in printed order."""
    normalise_table = NORMALISERS[KINDS[document.reader].results or ""]
    tables = [(table, vocabulary.header_of(document.reader, table.name)) for table in parsed.tables]
    marks = find_decimal_marks(tables, parsed.problems)
    for table, header in tables:
        yield from normalise_table(TableSource(document, table, header, vocabulary, marks))


def _one_per_row(source: TableSource) -> Iterator[Outcome]:
    """Make each row one result."""
    converter, constants = source.make_converter(), get_constants(source.document, source.header)
    return (converter.convert_row(row, constants) for row in source.table.rows)


def _joined_on_batch(source: TableSource) -> Iterator[Outcome]:
    """Make one result per batch size from several tables; a row without a batch size cannot be placed."""
    for outcome in _one_per_row(source):
        yield _require_batch(outcome, "no batch size to join the tables on")


def _one_per_metric(source: TableSource) -> Iterator[Outcome]:
    """Convert rows that name their metric, and perhaps its unit; the rows of one configuration make one result."""
    document, table, header, vocabulary, _ = source
    converters: dict[tuple[str, str], RowConverter | None] = {}
    column = {header.field_of(name): i for i, name in enumerate(table.columns)}
    constants = get_constants(document, header)
    for row in table.rows:
        key = row.cells[column["metric"]], row.cells[column["unit"]] if "unit" in column else ""
        if key not in converters:
            metric = _find_metric(*key, vocabulary, has_units="unit" in column)
            converters[key] = metric and _replace_value(source, metric[0]).make_converter(dict([metric]))
        converter = converters[key]
        task = vocabulary.tasks.get(row.cells[column["task"]])
        if converter is None or task is None:
            field = "metric" if converter is None else "task"
            text = row.cells[column[field]]
            word = UnknownWordError(UnknownWord(field, field, text), f"unknown {field} {text!r}")
            yield replace(RejectedRow.from_error(table, row, (column[field], word)), locator=row.locator)
            continue
        basis = vocabulary.metrics.get(key[0], {}).get("latency_basis")
        values = {**constants, "task": task, **({"latency_basis": basis} if basis else {})}
        if "path" in column:
            folders, path = vocabulary.framework_by_path.items(), row.cells[column["path"]]
            values["framework"] = next((name for folder, name in folders if path.startswith(folder)), None)
        outcome = converter.convert_row(row, values)
        if isinstance(outcome, RowFragment):
            fields = tuple("quality_value" if field == "quality_figure" else field for field in outcome.fields)
            outcome = replace(outcome, fields=fields)
        yield outcome


def _find_metric(metric: str, unit: str, vocabulary: Vocabulary, *, has_units: bool) -> tuple[str, str] | None:
    """Return the field of a printed metric and its unit; of a quality, its name in place of the unit."""
    if has_units and metric.startswith(QUALITY):
        name = metric.removeprefix(QUALITY)
        return "quality_figure", f"{name} ({unit})" if unit else name
    entry = vocabulary.metrics.get(metric)
    if entry is None or ("unit" in entry) is has_units:
        return None
    return entry["column"], entry.get("unit", unit)


def _replace_value(source: TableSource, field: str) -> TableSource:
    """Return a table whose column `value` has figures of one metric."""
    fields = tuple((name, field if old == "value" else old) for name, old in source.header.fields)
    return source._replace(header=replace(source.header, fields=fields))


def _mlperf_entry(source: TableSource) -> Iterator[Outcome]:
    """Make each row with a score one result; its software line names framework and SDK."""
    document, table, header, vocabulary, _ = source
    converter = source.make_converter({"time_to_train_s": "min"})
    column = {header.field_of(name): i for i, name in enumerate(table.columns)}
    constants = {**get_constants(document, header), "origin": "official"}
    known: dict[str, dict[str, str | None]] = {}  # few lines repeat in many entries
    for row in table.rows:
        if not row.cells[column["time_to_train_s"]]:
            continue
        folder, software = row.cells[column["folder"]], row.cells[column["software"]]
        model = vocabulary.benchmarks.get(folder, folder)
        if software not in known:
            known[software] = _parse_software(software, vocabulary)
        yield converter.convert_row(row, {**constants, "model": model, **known[software]})


def _parse_software(text: str, vocabulary: Vocabulary) -> dict[str, str | None]:
    """Parse frameworks and SDK of a line such as `PopART Poplar SDK 2.5.1`; without a known one the line stays."""
    sdk = SDK.search(text)
    known = _list_frameworks(text, vocabulary)
    return {"framework": ", ".join(known) or text or None, "sdk_version": sdk.group(1) if sdk else None}


def _list_frameworks(text: str, vocabulary: Vocabulary) -> list[str]:
    """List the frameworks that a software line names, sorted; what is in brackets counts if nothing else does.

    The name of an SDK is none, and TensorFlow next to TensorFlow1 says no more than that.
    """
    known: set[str] = set()
    for part in (BRACKETS.sub(" ", text), text):
        words = WORD.findall(SDK_NAME.sub(" ", part))
        for size in range(1, LONGEST_NAME + 1):
            names = (normalise_name("".join(words[at : at + size])) for at in range(len(words) - size + 1))
            known |= {vocabulary.frameworks[name] for name in names if name in vocabulary.frameworks}
        if known:
            break
    return sorted(name for name in known if not any(other != name and other.startswith(name) for other in known))


def _run_point(source: TableSource) -> Iterator[Outcome]:
    """Make each row one result of a local run; the row itself gives its origin."""
    converter = source.make_converter(POINT_UNITS)
    run_id = get_run_id(source.document)
    constants = {**get_constants(source.document, source.header), "origin": None, "run_id": run_id}
    return (_require_batch(converter.convert_row(row, constants), "no batch size") for row in source.table.rows)


def get_run_id(document: Document) -> str:
    """Return the id of the local run that a document belongs to. Raises CatalogueError if its id holds none."""
    suffix = "-points" if document.reader == "sweep-points" else ""
    match = re.fullmatch(f"sweep-({RUN_ID}){suffix}", document.document_id)
    if match is None:
        message = f"must be called sweep-<run_id>{suffix}"
        raise CatalogueError(message, document=document.document_id, place=document.file)
    return match.group(1)


def _require_batch(outcome: Outcome, message: str) -> Outcome:
    if isinstance(outcome, RowFragment) and "batch_size" not in outcome.values:
        return outcome.reject("missing-batch", message)
    return outcome


def _microbenchmark(source: TableSource) -> Iterator[Outcome]:
    """Convert each line, with one figure, its metric and its unit as printed, to a row of `microbenchmarks`."""
    document, table, header, vocabulary, marks = source
    fields = tuple(header.field_of(name) for name in table.columns)
    mark = marks.get((table.name, table.columns[fields.index("value")]), DecimalMark.POINT)
    makers = {entry["chip"]: entry["maker"] for entry in vocabulary.derived["maker"]}
    for row in table.rows:
        texts = dict(zip(fields, row.cells, strict=True))
        field = "value"  # that is read, for the place of an error
        try:
            for field in REQUIRED:
                if not texts[field]:
                    raise UnreadableCellError(f"missing-{field}", f"{field} is blank")
            field = "metric"
            unit, factor = _find_unit(texts["metric"], texts["unit"], vocabulary)
            field = "value"
            figure = parse_number(texts["value"], mark)
            field = "device_count"
            count = parse_whole_number(texts[field], mark) if texts[field] else None
        except UnreadableCellError as error:
            yield RejectedRow.from_error(table, row, (fields.index(field), error))
            continue
        device = vocabulary.chips.get(normalise_name(texts["device"]), texts["device"])
        maker = makers.get(device)
        converted = {
            "value": CellValues((), float(figure), texts["unit"], float(factor)),
            "device_count": CellValues((), None if count is None else float(count), "chip", 1.0),
        }
        values = {
            **{name: text or None for name, text in texts.items() if name not in FIGURES},
            **{"document_id": document.document_id, "publisher": document.publisher, "device": device},
            **{"device_count": count, "value": float(figure), "relationship": None},
            **{"canonical_value": float(figure * factor), "canonical_unit": unit},
        }
        if maker is not None:
            values["relationship"] = "vendor" if maker in (document.publisher, document.measured_by) else "independent"
        identity = tuple(sorted((name, texts[name]) for name in header.identity or ()))
        cells = tuple(converted.get(name, CellValues()) if texts[name] else CellValues() for name in fields)
        yield RowFragment(table, row, fields, cells, TABLE, False, identity, values)


def _find_unit(metric: str, unit: str, vocabulary: Vocabulary) -> tuple[str, Decimal]:
    """Return the canonical unit of a metric, and the factor from the printed one."""
    quantity = vocabulary.microbenchmarks.get(metric)
    if quantity is None:
        raise UnknownWordError(UnknownWord("metric", "microbenchmarks", metric), f"unknown metric {metric!r}")
    if unit not in quantity.factors:
        raise UnknownWordError(UnknownWord("unit", metric, unit), f"unknown unit {unit!r} for {metric}")
    return quantity.unit, quantity.factors[unit]


NORMALISERS: dict[str, Callable[[TableSource], Iterator[Outcome]]] = {
    "one-per-row": _one_per_row,
    "joined-on-batch": _joined_on_batch,
    "one-per-metric": _one_per_metric,
    "mlperf-entry": _mlperf_entry,
    "run-point": _run_point,
    "microbenchmark": _microbenchmark,
}
