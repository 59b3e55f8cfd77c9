"""Convert the lines of a file of microbenchmarks: one figure each, with its metric and its unit as printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

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
from ipu_results.read.document import ParsedDocument, SourceRow, SourceTable
from ipu_results.schema import table as published_table
from ipu_results.schema.table_headers import TableHeader
from ipu_results.schema.vocabulary import KINDS, Vocabulary, normalise_name
from ipu_results.sources.catalogue import Document

TABLE = "microbenchmarks"
FIGURES = {"value", "device_count"}
REQUIRED = ("device", "operation", "metric", "unit", "value", "place")


def convert_microbenchmarks(
    document: Document,
    table: SourceTable,
    header: TableHeader,
    vocabulary: Vocabulary,
    marks: Mapping[tuple[str, str], DecimalMark],
) -> Iterator[RowFragment | RejectedRow]:
    """Convert each line to a row of `microbenchmarks`, or reject it for its first cell that cannot be read."""
    fields = tuple(header.field_of(name) for name in table.columns)
    mark = marks.get((table.name, table.columns[fields.index("value")]), DecimalMark.POINT)
    makers = {entry["chip"]: entry["maker"] for entry in vocabulary.derived["maker"]}
    for row in table.rows:
        texts = dict(zip(fields, row.cells, strict=True))
        field = "value"
        try:
            for field in REQUIRED:
                _require(field, texts[field])
            field = "metric"
            unit, factor = _find_unit(texts["metric"], texts["unit"], vocabulary)
            field = "value"
            figure = parse_number(texts["value"], mark)
            field = "device_count"
            count = parse_whole_number(texts[field], mark) if texts[field] else None
        except UnreadableCellError as error:
            yield _reject(table, row, fields.index(field), error)
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


def _require(field: str, text: str) -> None:
    if not text:
        raise UnreadableCellError(f"missing-{field}", f"{field} is blank")


def _find_unit(metric: str, unit: str, vocabulary: Vocabulary) -> tuple[str, Decimal]:
    """Return the canonical unit of a metric, and the factor from the printed one."""
    quantity = vocabulary.microbenchmarks.get(metric)
    if quantity is None:
        raise UnknownWordError(UnknownWord("metric", "microbenchmarks", metric), f"unknown metric {metric!r}")
    if unit not in quantity.factors:
        raise UnknownWordError(UnknownWord("unit", metric, unit), f"unknown unit {unit!r} for {metric}")
    return quantity.unit, quantity.factors[unit]


def _reject(table: SourceTable, row: SourceRow, column: int, error: UnreadableCellError) -> RejectedRow:
    words = (error.word,) if isinstance(error, UnknownWordError) else ()
    raw = dict(zip(table.columns, row.cells, strict=True))
    place = table.cell_locator(row, column)
    return RejectedRow(table.name, row.number, place, error.reason, str(error), raw, words)


Outcome = RowFragment | RejectedRow
Marks = Mapping[tuple[str, str], DecimalMark]
Normaliser = Callable[[Document, SourceTable, TableHeader, Vocabulary, Marks], Iterator[Outcome]]
RUN_ID = published_table("runs").column("run_id").pattern
POINT_UNITS = {
    "throughput": "items/s",
    **dict.fromkeys(("latency_ms", *LATENCIES), "ms"),
    "power_w": "W",
    "efficiency": "items/s/W",
}
WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:\.\d+)*")
SDK_NAME = re.compile(r"\bPoplar SDK\b")
QUALITY = "quality "
LONGEST_NAME = 3  # words of a framework's name
BRACKETS = re.compile(r"\([^()]*\)")


def normalise_rows(document: Document, parsed: ParsedDocument, vocabulary: Vocabulary) -> Iterator[Outcome]:
    """Yield every readable row of the document, converted or rejected, in printed order."""
    normalise_table = NORMALISERS[KINDS[document.reader].results or ""]
    tables = [(table, vocabulary.header_of(document.reader, table.name)) for table in parsed.tables]
    marks = find_decimal_marks(tables, parsed.problems)
    for table, header in tables:
        yield from normalise_table(document, table, header, vocabulary, marks)


def _one_per_row(
    document: Document, table: SourceTable, header: TableHeader, vocabulary: Vocabulary, marks: Marks
) -> Iterator[Outcome]:
    """Make each row one result."""
    converter, constants = RowConverter(table, header, vocabulary, marks), get_constants(document, header)
    return (converter.convert_row(row, constants) for row in table.rows)


def _joined_on_batch(
    document: Document, table: SourceTable, header: TableHeader, vocabulary: Vocabulary, marks: Marks
) -> Iterator[Outcome]:
    """Make one result per batch size from several tables; a row without a batch size cannot be placed."""
    for outcome in _one_per_row(document, table, header, vocabulary, marks):
        yield _require_batch(outcome, "no batch size to join the tables on")


def _one_per_metric(
    document: Document, table: SourceTable, header: TableHeader, vocabulary: Vocabulary, marks: Marks
) -> Iterator[Outcome]:
    """Convert rows that name their metric, and perhaps its unit; the rows of one configuration make one result."""
    converters: dict[tuple[str, str], RowConverter | None] = {}
    column = {header.field_of(name): i for i, name in enumerate(table.columns)}
    constants = get_constants(document, header)
    for row in table.rows:
        key = row.cells[column["metric"]], row.cells[column["unit"]] if "unit" in column else ""
        if key not in converters:
            metric = _find_metric(*key, vocabulary, has_units="unit" in column)
            converters[key] = metric and RowConverter(
                table, _with_metric(header, metric[0]), vocabulary, marks, {metric[0]: metric[1]}
            )
        converter = converters[key]
        task = vocabulary.tasks.get(row.cells[column["task"]])
        if converter is None or task is None:
            yield _reject_unknown(table, row, column, "metric" if converter is None else "task")
            continue
        basis = vocabulary.metrics.get(key[0], {}).get("latency_basis")
        values = {**constants, "task": task, **({"latency_basis": basis} if basis else {})}
        if "path" in column:
            values["framework"] = _find_framework(row.cells[column["path"]], vocabulary)
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


def _with_metric(header: TableHeader, field: str) -> TableHeader:
    return replace(header, fields=tuple((name, field if old == "value" else old) for name, old in header.fields))


def _reject_unknown(table: SourceTable, row: SourceRow, column: dict[str, int], field: str) -> RejectedRow:
    text = row.cells[column[field]]
    message = f"unknown {field} {text!r}"
    raw = dict(zip(table.columns, row.cells, strict=True))
    return RejectedRow(
        table.name, row.number, row.locator, f"unknown-{field}", message, raw, [UnknownWord(field, field, text)]
    )


def _find_framework(path: str, vocabulary: Vocabulary) -> str | None:
    return next((name for folder, name in vocabulary.framework_by_path.items() if path.startswith(folder)), None)


def _mlperf_entry(
    document: Document, table: SourceTable, header: TableHeader, vocabulary: Vocabulary, marks: Marks
) -> Iterator[Outcome]:
    """Make each row with a score one result; its software line names framework and SDK."""
    converter = RowConverter(table, header, vocabulary, marks, {"time_to_train_s": "min"})
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
    frameworks_named: set[str] = set()
    for part in (BRACKETS.sub(" ", text), text):
        words = WORD.findall(SDK_NAME.sub(" ", part))
        for size in range(1, LONGEST_NAME + 1):
            names = (normalise_name("".join(words[at : at + size])) for at in range(len(words) - size + 1))
            frameworks_named |= {vocabulary.frameworks[name] for name in names if name in vocabulary.frameworks}
        if frameworks_named:
            break
    return sorted(
        name
        for name in frameworks_named
        if not any(other != name and other.startswith(name) for other in frameworks_named)
    )


def _run_point(
    document: Document, table: SourceTable, header: TableHeader, vocabulary: Vocabulary, marks: Marks
) -> Iterator[Outcome]:
    """Make each row one result of a local run; the row itself gives its origin."""
    converter = RowConverter(table, header, vocabulary, marks, POINT_UNITS)
    constants = {**get_constants(document, header), "origin": None, "run_id": get_run_id(document)}
    return (_require_batch(converter.convert_row(row, constants), "no batch size") for row in table.rows)


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


NORMALISERS: dict[str, Normaliser] = {
    "one-per-row": _one_per_row,
    "joined-on-batch": _joined_on_batch,
    "one-per-metric": _one_per_metric,
    "mlperf-entry": _mlperf_entry,
    "run-point": _run_point,
    "microbenchmark": convert_microbenchmarks,
}
