"""What is particular to one kind of document: which partial results its rows make."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from ipu_results.errors import CatalogueError
from ipu_results.normalise.fields import LATENCIES
from ipu_results.normalise.rows import RejectedRow, RowConverter, RowFragment, constants_of
from ipu_results.normalise.values import SDK
from ipu_results.read.document import ParsedDocument, SourceRow, SourceTable
from ipu_results.schema import table as published_table
from ipu_results.schema.layouts import TableHeader
from ipu_results.schema.vocabulary import Vocabulary, normalise_name
from ipu_results.sources.catalogue import Document

Outcome = RowFragment | RejectedRow
RUN_ID = published_table("runs").column("run_id").pattern
POINT_UNITS = {
    "throughput": "items/s",
    **dict.fromkeys(("latency_ms", *LATENCIES), "ms"),
    "power_w": "W",
    "efficiency": "items/s/W",
}
BRACKETS = re.compile(r"\([^()]*\)")


def partials(document: Document, reading: ParsedDocument, vocabulary: Vocabulary) -> Iterator[Outcome]:
    """Every readable row of the document, normalised or rejected, in printed order."""
    make = SOURCES.get(document.reader, _one_to_one)
    for table in reading.tables:
        yield from make(document, table, vocabulary.layout(document.reader, table.name), vocabulary)


def _one_to_one(
    document: Document, table: SourceTable, layout: TableHeader, vocabulary: Vocabulary
) -> Iterator[Outcome]:
    """Each row is one result."""
    converter, constants = RowConverter(table, layout, vocabulary), constants_of(document, layout)
    return (converter.row(row, constants) for row in table.rows)


def _joined_on_batch(
    document: Document, table: SourceTable, layout: TableHeader, vocabulary: Vocabulary
) -> Iterator[Outcome]:
    """Several tables make one result per batch size, so a row without one cannot be placed."""
    for outcome in _one_to_one(document, table, layout, vocabulary):
        yield _with_batch(outcome, "no batch size to join the tables on")


def _one_figure_a_line(
    document: Document, table: SourceTable, layout: TableHeader, vocabulary: Vocabulary
) -> Iterator[Outcome]:
    """Each line names its metric; the lines of one configuration make one result."""
    converters = {
        metric: RowConverter(table, _for_metric(layout, known["column"]), vocabulary, {known["column"]: known["unit"]})
        for metric, known in vocabulary.metrics.items()
    }
    column = {layout.field_of(header): i for i, header in enumerate(table.columns)}
    constants = constants_of(document, layout)
    for row in table.rows:
        converter = converters.get(row.cells[column["metric"]])
        task = vocabulary.tasks.get(row.cells[column["task"]])
        if converter is None or task is None:
            yield _unknown_words(table, row, column, converter is None)
            continue
        said = {**constants, "task": task, "framework": _framework(row.cells[column["path"]], vocabulary)}
        yield converter.row(row, said)


def _for_metric(layout: TableHeader, field: str) -> TableHeader:
    return replace(layout, fields=tuple((name, field if old == "value" else old) for name, old in layout.fields))


def _unknown_words(table: SourceTable, row: SourceRow, column: dict[str, int], metric: bool) -> RejectedRow:
    field = "metric" if metric else "task"
    message = f"unknown {field} {row.cells[column[field]]!r}"
    raw = dict(zip(table.columns, row.cells, strict=True))
    return RejectedRow(table.name, row.number, row.locator, f"unknown-{field}", message, raw)


def _framework(path: str, vocabulary: Vocabulary) -> str | None:
    return next((name for folder, name in vocabulary.framework_by_path.items() if path.startswith(folder)), None)


def _official(document: Document, table: SourceTable, layout: TableHeader, vocabulary: Vocabulary) -> Iterator[Outcome]:
    """Each row with a score is a result; the software line names framework and SDK."""
    converter = RowConverter(table, layout, vocabulary, {"time_to_train_s": "min"})
    column = {layout.field_of(header): i for i, header in enumerate(table.columns)}
    constants = {**constants_of(document, layout), "origin": "official"}
    for row in table.rows:
        if not row.cells[column["time_to_train_s"]]:
            continue
        folder, software = row.cells[column["folder"]], row.cells[column["software"]]
        model = vocabulary.benchmarks.get(folder, folder)
        yield converter.row(row, {**constants, "model": model, **_software(software, vocabulary)})


def _software(text: str, vocabulary: Vocabulary) -> dict[str, str | None]:
    """Framework and SDK of a line such as `PopART Poplar SDK 2.5.1`; a line of several frameworks stays as printed."""
    words = BRACKETS.sub("", text).split()
    known = vocabulary.frameworks.get(normalise_name(words[0])) if words and "," not in "".join(words) else None
    sdk = SDK.search(text)
    return {"framework": known or text or None, "sdk_version": sdk.group(1) if sdk else None}


def run_of(document: Document) -> str:
    """The id of the local run that a document is of. Raises CatalogueError where its name holds none."""
    suffix = "-points" if document.reader == "sweep-points" else ""
    found = re.fullmatch(f"sweep-({RUN_ID}){suffix}", document.document_id)
    if found is None:
        raise CatalogueError(f"is no sweep-<run_id>{suffix}", document=document.document_id, place=document.file)
    return found.group(1)


def _points(document: Document, table: SourceTable, layout: TableHeader, vocabulary: Vocabulary) -> Iterator[Outcome]:
    """Each row is one result of a local run, which says itself how its figures came to be."""
    converter = RowConverter(table, layout, vocabulary, POINT_UNITS)
    constants = {**constants_of(document, layout), "origin": None, "run_id": run_of(document)}
    return (_with_batch(converter.row(row, constants), "no batch size") for row in table.rows)


def _with_batch(outcome: Outcome, message: str) -> Outcome:
    if isinstance(outcome, RowFragment) and "batch_size" not in outcome.values:
        return outcome.reject("missing-batch", message)
    return outcome


SOURCES: dict[str, Callable[[Document, SourceTable, TableHeader, Vocabulary], Iterator[Outcome]]] = {
    "qwant-paper": _joined_on_batch,
    "comparators": _one_figure_a_line,
    "mlperf-entries": _official,
    "sweep-points": _points,
}
