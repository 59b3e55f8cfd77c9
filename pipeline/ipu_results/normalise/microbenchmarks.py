"""Convert the lines of a file of microbenchmarks: one figure each, with its metric and its unit as printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from ipu_results.normalise.decimal_mark import DecimalMark
from ipu_results.normalise.fields import CellValues
from ipu_results.normalise.rows import RejectedRow, RowFragment
from ipu_results.normalise.values import UnreadableCellError, parse_number, parse_whole_number
from ipu_results.normalise.words import UnknownWord, UnknownWordError
from ipu_results.read.document import SourceRow, SourceTable
from ipu_results.schema.table_headers import TableHeader
from ipu_results.schema.vocabulary import Vocabulary, normalise_name
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
