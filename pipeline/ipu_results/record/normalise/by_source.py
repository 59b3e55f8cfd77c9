"""Convert the tables of a document to rows of `results`, in the way of its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ipu_results.errors import CatalogueError, DamagedDocumentError
from ipu_results.record.normalise.decimal_mark import DecimalMark, find_decimal_marks
from ipu_results.record.normalise.fields import LATENCIES, MICROBENCHMARKS, CellValues, get_column
from ipu_results.record.normalise.rows import (
    RESULTS,
    ConvertedRows,
    RejectedRow,
    TableSource,
    convert_texts,
    find_errors,
    map_texts,
    reject_row,
    reject_unreadable,
)
from ipu_results.record.normalise.values import (
    SDK,
    UnknownWord,
    UnknownWordError,
    UnreadableCellError,
    parse_number,
    parse_whole_number,
)
from ipu_results.record.read.document import ParsedDocument, SourceTable, TextColumn
from ipu_results.record.sources.catalogue import Document
from ipu_results.schema import table as published_table
from ipu_results.schema.vocabulary import (
    KINDS,
    TableHeader,
    Vocabulary,
    normalise_name,
    parse_unit,
)

TABLE = published_table(MICROBENCHMARKS)
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

Outcome = tuple[list[ConvertedRows], list[RejectedRow]]
"""The rows of one table, converted or rejected."""


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
        yield normalise_table(TableSource(document, table, header, vocabulary, marks))


def _refuse_second_units(document: Document, table: SourceTable, header: TableHeader) -> None:
    """Raise DamagedDocumentError for a unit in the name of a column beside a column of units."""
    if "unit" not in map(header.field_of, table.columns):
        return
    for name in table.columns:
        if parse_unit(name) is not None:
            message = f"{name!r} states a unit, which the column of units does too"
            raise DamagedDocumentError(message, document=document.document_id, place=table.locator)


def _one_per_row(source: TableSource) -> Outcome:
    """Make each row one result."""
    rows, rejected = source.convert(source.get_constants())
    return [rows], rejected


def _joined_on_batch(source: TableSource) -> Outcome:
    """Make one result per batch size from several tables; a row without a batch size cannot be
    placed.
    """
    return _require_batch(_one_per_row(source), "no batch size to join the tables on")


def _one_per_metric(source: TableSource) -> Outcome:
    """Convert rows that name their metric, and perhaps its unit; the rows of one configuration make
    one result.
    """
    table, vocabulary = source.table, source.vocabulary
    column = source.list_fields()
    parts: list[ConvertedRows] = []
    rejected: list[RejectedRow] = []
    groups = source.group_rows(
        [column[name] for name in ("task", "metric", "unit") if name in column]
    )
    for (task_text, metric, *units), rows in groups.items():
        task = vocabulary.tasks.get(task_text)
        group = source._replace(table=table.select(rows))
        value_field = _find_metric(metric, units[0] if units else None, vocabulary)
        if value_field is None or task is None:
            field, text = ("metric", metric) if value_field is None else ("task", task_text)
            word = UnknownWordError(UnknownWord(field, field, text), f"unknown {field} {text!r}")
            for position in rows:
                row = reject_row(table, position, word.reason, str(word))
                rejected.append(replace(row, words=(word.word,)))
            continue
        basis = vocabulary.metrics.get(metric, {}).get("latency_basis")
        values = {
            **source.get_constants(),
            "task": task,
            **({"latency_basis": basis} if basis else {}),
        }
        columns = {}
        if "path" in column:
            columns["framework"] = map_texts(
                group.table.texts[column["path"]],
                lambda path: _find_framework(path, vocabulary),
                RESULTS,
                "framework",
            )
        part, unreadable = _replace_value(group, value_field[0]).convert(
            values, columns, dict([value_field])
        )
        parts.append(part)
        rejected += unreadable
    return parts, rejected


def _find_framework(path: str, vocabulary: Vocabulary) -> str | None:
    """Return the framework of the folder that a script is in."""
    folders = vocabulary.framework_by_path.items()
    return next((name for folder, name in folders if path.startswith(folder)), None)


def _find_metric(metric: str, unit: str | None, vocabulary: Vocabulary) -> tuple[str, str] | None:
    """Return the field of a printed metric and its unit; of a quality, its name in place of the
    unit.
    """
    if unit is not None and metric.startswith(QUALITY):
        name = metric.removeprefix(QUALITY)
        return "quality_figure", f"{name} ({unit})" if unit else name
    entry = vocabulary.metrics.get(metric)
    if entry is None or ("unit" in entry) is (unit is not None):
        return None
    return entry["column"], entry["unit"] if unit is None else unit


def _replace_value(source: TableSource, field: str) -> TableSource:
    """Return a table whose column `value` has figures of one metric."""
    fields = tuple((name, field if old == "value" else old) for name, old in source.header.fields)
    return source._replace(header=replace(source.header, fields=fields))


def _mlperf_entry(source: TableSource) -> Outcome:
    """Make each row with a score one result; its software line names framework and SDK."""
    table, vocabulary = source.table, source.vocabulary
    column = source.list_fields()
    scores = table.texts[column["time_to_train_s"]]
    scored = table.select(
        [position for position, code in enumerate(scores.codes) if scores.distinct[code]]
    )
    software = scored.texts[column["software"]]
    printed: list[tuple[str, TextColumn, Callable[[str], str | None]]] = [
        (
            "model_printed",
            scored.texts[column["folder"]],
            lambda folder: vocabulary.benchmarks.get(folder, folder),
        ),
        (
            "framework",
            software,
            lambda text: ", ".join(_list_frameworks(text, vocabulary)) or text or None,
        ),
        ("sdk_version", software, _find_sdk),
    ]
    columns = {name: map_texts(texts, find, RESULTS, name) for name, texts, find in printed}
    rows, rejected = source._replace(table=scored).convert(
        {**source.get_constants(), "origin": "official"}, columns, {"time_to_train_s": "min"}
    )
    described = [
        map_texts(scored.texts[column[name]], str, RESULTS, "chip").to_pylist()
        for name in ("chip", "chip_memory", "path")
    ]
    refined = [chip or None for chip in map(vocabulary.refine_chip, *described)]
    chips = pa.array(refined, pa.string()).take(pa.array(rows.positions))
    values = {**rows.values, "chip": chips}
    return [replace(rows, values=values)], rejected


def _find_sdk(text: str) -> str | None:
    """Return the version of the SDK in a line such as `PopART Poplar SDK 2.5.1`."""
    sdk = SDK.search(text)
    return sdk.group(1) if sdk else None


def _list_frameworks(text: str, vocabulary: Vocabulary) -> list[str]:
    """List the frameworks that a software line names, sorted; what is in brackets counts if nothing
    else does.

    The name of an SDK is none, and TensorFlow next to TensorFlow1 says no more than that.
    """
    known: set[str] = set()
    for part in (BRACKETS.sub(" ", text), text):
        words = WORD.findall(SDK_NAME.sub(" ", part))
        for size in range(1, LONGEST_NAME + 1):
            names = (
                normalise_name("".join(words[at : at + size]))
                for at in range(len(words) - size + 1)
            )
            known |= {
                vocabulary.frameworks[name] for name in names if name in vocabulary.frameworks
            }
        if known:
            break
    return sorted(
        name
        for name in known
        if not any(other != name and other.startswith(name) for other in known)
    )


def _run_point(source: TableSource) -> Outcome:
    """Make each row one result of a local run; the row itself gives its origin."""
    constants = {
        **source.get_constants(),
        "origin": None,
        "run_id": get_run_id(source.document),
    }
    rows, rejected = source.convert(constants, units=POINT_UNITS)
    return _require_batch(([rows], rejected), "no batch size")


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


def _require_batch(outcome: Outcome, message: str) -> Outcome:
    [rows], rejected = outcome
    has_batch = np.zeros(len(rows.positions), bool)
    if "batch_size" in rows.values:
        has_batch = rows.values["batch_size"].is_valid().to_numpy(zero_copy_only=False)
    rejected += [
        rows.reject(index, "missing-batch", message)
        for index in np.flatnonzero(~has_batch).tolist()
    ]
    return [rows.filter(has_batch)], rejected


def _microbenchmarks(source: TableSource) -> Outcome:
    """Convert each line, with one figure, its metric and its unit as printed, to a row of
    `microbenchmarks`.
    """
    column = source.list_fields()
    groups = source.group_rows([column["metric"], column["unit"]])
    outcomes = [
        _convert_microbenchmarks(source._replace(table=source.table.select(rows)), unit)
        for (_, unit), rows in groups.items()
    ]
    return [part for part, _ in outcomes], [row for _, rejected in outcomes for row in rejected]


def _convert_microbenchmarks(
    source: TableSource, unit: str
) -> tuple[ConvertedRows, list[RejectedRow]]:
    """Convert lines of one metric in one unit; a row is rejected for the first check that it fails."""
    document, table, header, vocabulary, marks = source
    column = source.list_fields()
    mark = marks.get((table.name, table.columns[column["value"]]), DecimalMark.POINT)
    checks: list[tuple[str, Callable[[str], Any]]] = [
        *((field, partial(_require_text, field)) for field in REQUIRED),
        ("metric", lambda text: _find_unit(text, unit, vocabulary)),
        ("value", lambda text: parse_number(text, mark)),
        ("device_count", lambda text: parse_whole_number(text, mark) if text else None),
    ]
    texts = {field: table.texts[at] for field, at in column.items()}
    checked = [convert_texts(texts[field], check) for field, check in checks]
    errors = find_errors(table, checked, [column[field] for field, _ in checks])
    rejected = [
        reject_unreadable(table, position, errors[position][:1]) for position in sorted(errors)
    ]
    kept = np.delete(np.arange(len(table.numbers)), list(errors))
    [quantity], figures, counts = checked[-3:]
    canonical_unit, factor = quantity if len(kept) else ("", Decimal(0))
    # A text with an error is in no row that is kept.
    figure_of = {
        text: Decimal(0) if isinstance(own, ValueError) else own
        for text, own in zip(texts["value"].distinct, figures, strict=True)
    }
    count_of = {
        text: None if isinstance(own, ValueError) else own
        for text, own in zip(texts["device_count"].distinct, counts, strict=True)
    }
    chip_of = {
        text: vocabulary.chips.get(normalise_name(text), text) for text in texts["device"].distinct
    }
    printed: list[tuple[str, str, Callable[[str], Any]]] = [
        *(
            (name, field, lambda text: text or None)
            for field in texts
            if field not in FIGURES and (name := get_column(field, TABLE.name)) in TABLE.names
        ),
        ("chip", "device", chip_of.__getitem__),
        (
            "precision",
            "precision",
            lambda text: vocabulary.precision_names.get(normalise_name(text), text) or None,
        ),
        ("chip_count", "device_count", count_of.__getitem__),
        ("value", "value", lambda text: float(figure_of[text])),
        ("canonical_value", "value", lambda text: float(figure_of[text] * factor)),
        ("canonical_unit", "unit", lambda _: canonical_unit),
        ("document_id", "unit", lambda _: document.document_id),
        ("publisher", "unit", lambda _: document.publisher),
    ]
    values = {
        name: map_texts(texts[field], find, TABLE, name).take(pa.array(kept))
        for name, field, find in printed
    }
    converted = [[CellValues()] * len(own.distinct) for own in texts.values()]
    converted[column["value"]] = [
        CellValues((), float(own), unit, float(factor)) for own in figure_of.values()
    ]
    converted[column["device_count"]] = [
        CellValues((), float(own), "chip", 1.0) if own else CellValues()
        for own in count_of.values()
    ]
    return ConvertedRows(table, kept, header, converted, values), rejected


def _require_text(field: str, text: str) -> str:
    if not text:
        raise UnreadableCellError(f"missing-{field}", f"{field} is blank")
    return text


def _find_unit(metric: str, unit: str, vocabulary: Vocabulary) -> tuple[str, Decimal]:
    """Return the canonical unit of a metric, and the factor from the printed one."""
    quantity = vocabulary.microbenchmarks.get(metric)
    if quantity is None:
        raise UnknownWordError(
            UnknownWord("metric", "microbenchmarks", metric), f"unknown metric {metric!r}"
        )
    if unit not in quantity.factors:
        raise UnknownWordError(
            UnknownWord("unit", metric, unit), f"unknown unit {unit!r} for {metric}"
        )
    return quantity.unit, quantity.factors[unit]


NORMALISERS: dict[str, Callable[[TableSource], Outcome]] = {
    "one-per-row": _one_per_row,
    "joined-on-batch": _joined_on_batch,
    "one-per-metric": _one_per_metric,
    "mlperf-entry": _mlperf_entry,
    "run-point": _run_point,
    "microbenchmark": _microbenchmarks,
}
