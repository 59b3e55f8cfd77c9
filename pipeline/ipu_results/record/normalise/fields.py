"""Convert the text of one cell to the columns of `results` that it fills, by the field of its
header.

The fields of an unknown header are drafted here too, as entries of `table_headers.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any, NamedTuple, TypeVar

import tomli_w

from ipu_results.errors import CatalogueError
from ipu_results.kit.physics import round_derived
from ipu_results.kit.text import find_hidden, find_lookalike
from ipu_results.record.normalise.decimal_mark import DecimalMark
from ipu_results.record.normalise.values import (
    UnknownWord,
    UnknownWordError,
    UnreadableCellError,
    find_nearest,
    parse_derived_number,
    parse_double,
    parse_duration_s,
    parse_mlperf_round,
    parse_number,
    parse_quality,
    parse_sdk_version,
    parse_target_metric,
    parse_whole_number,
)
from ipu_results.record.read.document import FirstRow
from ipu_results.record.sources.catalogue import PLACEHOLDER
from ipu_results.schema import Column, table
from ipu_results.schema.vocabulary import (
    KEPT_FIGURES,
    KINDS,
    MEASURED,
    POWER_SCOPES,
    UNITS_LIKE,
    Vocabulary,
    normalise_header,
    normalise_name,
    parse_unit,
    strip_unit,
)

# Columns of `results` that a field of the same name fills.
GATHERED = frozenset(table("results").as_filled().names)
OF_ENTRIES = (
    "path",
    "submitter",
    "no_score_reason",
    "availability",
    "status",
    "system_path",
    "system_sha256",
    "scaling_sha256",
    "attribution",
    "scaling_factor",
    "submitter_folder",
    "logs_expected",
    "logs_present",
    "logs_missing",
    "convergence_unit",
    "tokens_to_converge",
    "quality_reached",
    "quality_check",
    "second_quality_metric",
    "second_quality_target",
    "second_quality_reached",
    "host_processor",
    "host_processors_per_node",
    "operating_system",
    "other_software",
    "chip_memory",
    "chip_memory_type",
    "chip_interconnect",
    "host_memory",
    "host_network",
    "hardware_notes",
    "software_notes",
    "energy_j",
)
"""Columns of `mlperf_entries` that a header may name. Others follow from logs, such as `minutes`: a
cell of theirs would be lost without a word."""
KEPT_ELSEWHERE = [
    *(column for column in table("run_points").columns if column.name not in GATHERED),
    *map(table("mlperf_entries").column, OF_ENTRIES),
]
"""Columns that another table has: their cells fill none of `results`."""
# Their cells have no unit: it is in their names.
COMPUTED = (
    "run_minutes_min",
    "run_minutes_max",
    "run_minutes_cv",
    "epochs_to_converge",
    "samples_to_converge",
)
CONDITION = "condition"
"""The field of a column that says more of the set-up: `conditions` has its name and its text."""
NOT_READ = "not_read"
"""The field of a column that no table has a place for; `cells` keeps its text."""
IGNORED = (
    CONDITION,
    NOT_READ,
    "repo",
    "commit",
    "task",
    "metric",
    "unit",
    "place",
    "batch_per_chip",
    "folder",
    "software",
    "entry_quality_metric",
)
PLATFORM_COLUMNS = ("platform", "chip", "chip_count")
# A header says what a cell is about; these columns say that it is as printed. Ids rest on the
# fields: their names stay.
PRINTED_COLUMNS = {
    "model": "model_printed",
    "dataset": "dataset_printed",
    "precision": "precision_printed",
    "compute_precision": "precision_printed",
    "quality_figure": "quality_value",
    "chips": "chip_count",
    CONDITION: "conditions",
}
MICROBENCHMARKS = "microbenchmarks"
MICROBENCHMARK_COLUMNS = {
    "device": "chip",
    "device_count": "chip_count",
    "precision": "precision_printed",
}
MIN_SIMILARITY = 0.6  # of a printed column name and a known one

T = TypeVar("T")


class CellValues(NamedTuple):
    """The columns that a cell fills, and its figure as printed: `figure` × `factor` is the value in
    `results`.
    """

    values: Mapping[str, Any]
    figure: float | None = None
    unit: str | None = None
    factor: float | None = None


NO_VALUE = CellValues({})
"""Of a blank cell, of a mark for no value, and of a text that is kept elsewhere."""


class CellContext(NamedTuple):
    """What the conversion of a cell depends on besides its text.

    `unit` is the unit that the header or caption prints. `strict` makes an unknown word an error.
    `derived` figures are doubles that we computed. `mark` divides the decimals of other figures.
    `item` is what the figures count, where the unit does not say it.
    """

    vocabulary: Vocabulary
    unit: str | None
    strict: bool
    derived: bool = False
    mark: DecimalMark = DecimalMark.POINT
    item: str | None = None


Converter = Callable[[str, CellContext], CellValues]


def convert_cell(field: str, text: str, context: CellContext) -> CellValues:
    """Return the columns that a cell fills, NO_VALUE for a blank cell.

    Raises UnreadableCellError.
    """
    if context.vocabulary.gives_no_value(field, text):
        return NO_VALUE
    if not (text.isascii() and text.isprintable()):
        _refuse_deceptive(text)
    converter = CONVERTERS.get(field)
    if converter is None:
        return CellValues({get_column(field): text})
    return converter(text, context)


def _refuse_deceptive(text: str) -> None:
    """Raise UnreadableCellError for a character that nobody sees, or that is taken for another."""
    why = "shows nothing"
    char = find_hidden(text)
    if not char:
        why = "looks like a Latin letter"
        char = find_lookalike(text)
    if char:
        message = f"{text!r} has U+{ord(char):04X}, which {why}: it would be another text"
        raise UnreadableCellError("unreadable-cell", message)


def check_field(field: str, table_name: str) -> None:
    """Refuse a field of `table_headers.toml` that no column has: its figures would be lost.

    Raises CatalogueError.
    """
    if field in CONVERTERS or get_column(field) in GATHERED:
        return
    known = {name: name for name in (*CONVERTERS, *GATHERED, *PRINTED_COLUMNS)}
    nearest = find_nearest(field, known) or "none"
    message = f"{table_name}: {field!r} is not a field; nearest: {nearest}"
    raise CatalogueError(message, place="schema/vocabulary/table_headers.toml")


def get_column(field: str, result_table: str = "results") -> str:
    """Return the column that the field of a header fills, as `cells` names it."""
    names = MICROBENCHMARK_COLUMNS if result_table == MICROBENCHMARKS else PRINTED_COLUMNS
    return names.get(field, field)


def _require(known: T | None, column: str, text: str, context: CellContext) -> T | None:
    """Return what is known of a word.

    Raises UnknownWordError for an unknown word where the vocabulary binds.
    """
    if known is None and context.strict:
        kind = column.replace("_", "-")
        word = UnknownWord(kind, column, text)
        raise UnknownWordError(word, f"unknown {kind} {text!r} in {column}")
    return known


def _convert_platform(text: str, context: CellContext) -> CellValues:
    known = context.vocabulary.platforms.get(normalise_name(text))
    entry = _require(known, "platform", text, context)
    if entry is None:
        return CellValues({"platform": text})
    return CellValues({name: entry.get(name) for name in PLATFORM_COLUMNS})


def _convert_model(text: str, context: CellContext) -> CellValues:
    name = normalise_name(text)
    entry = _require(context.vocabulary.models.get(name), "model", text, context)
    if entry is None:
        if name in context.vocabulary.aggregates:
            message = f"{text!r} is an aggregate of other rows, not a network"
            raise UnreadableCellError("aggregate", message)
        return CellValues({"model_printed": text})
    values = {"model_printed": entry["model"]}
    if entry.get("item"):
        values["item"] = entry["item"]
    for spelling, variant in entry.get("variants", {}).items():
        if variant and normalise_name(spelling) == name:
            values["variant"] = variant
    return CellValues(values)


def _convert_variant(text: str, context: CellContext) -> CellValues:
    values = {"variant": text}
    if item := context.vocabulary.find_rate_item(text):
        values["item"] = item
    return CellValues(values)


def _convert_framework(text: str, context: CellContext) -> CellValues:
    known = context.vocabulary.frameworks.get(normalise_name(text))
    return CellValues({"framework": _require(known, "framework", text, context) or text})


def _convert_sdk(text: str, context: CellContext) -> CellValues:
    version = _require(parse_sdk_version(text), "sdk_version", text, context)
    return CellValues({"sdk_version": version or text})


def _convert_precision(text: str, context: CellContext) -> CellValues:
    known = context.vocabulary.precision_bits.get(text)
    bits = _require(known, "precision", text, context)
    values: dict[str, Any] = {"precision_printed": text}
    if bits is not None:
        activation_bits, weight_bits = bits
        values |= {"activation_bits": activation_bits, "weight_bits": weight_bits}
    return CellValues(values)


def _convert_compute_precision(text: str, context: CellContext) -> CellValues:
    known = context.vocabulary.compute_precisions.get(normalise_name(text))
    return CellValues(known or {"precision_printed": text})


def _convert_batch(text: str, context: CellContext) -> CellValues:
    if context.strict and context.unit:
        word = UnknownWord("unit", "batch_size", context.unit)
        raise UnknownWordError(word, f"unknown unit {context.unit!r} for batch_size")
    batch = parse_whole_number(text, context.mark)
    return CellValues({"batch_size": batch}, float(batch), "item", 1.0)


def _convert_count(column: str, counted: str) -> Converter:
    """Convert a whole number from 1 of the things that are `counted`."""

    def converter(text: str, context: CellContext) -> CellValues:
        count = parse_whole_number(text, context.mark)
        return CellValues({column: count}, float(count), counted, 1.0)

    return converter


def _convert_chip_count(text: str, context: CellContext) -> CellValues:
    """Convert a number of chips; 0 of a machine of MLPerf without accelerators fills no column."""
    if text == "0" and context.derived:
        return CellValues({}, 0.0, "chip")
    return _convert_count("chip_count", "chip")(text, context)


def _convert_confidence(text: str, _: CellContext) -> CellValues:
    value = round_derived(float(parse_derived_number(text)))
    return CellValues({"interval_confidence": value}, value, factor=1.0)


def _keep_figure(text: str, context: CellContext) -> CellValues:
    """Convert a printed figure that no column of `results` has."""
    return CellValues({}, float(parse_number(text, context.mark)))


def _keep_double(unit: str | None, *, is_exact: bool) -> Converter:
    """Convert a double of ours that another table has, rounded unless it `is_exact`."""

    def converter(text: str, _: CellContext) -> CellValues:
        value = parse_double(text)
        return CellValues({}, value if is_exact else round_derived(value), unit)

    return converter


def _ignore(_: str, __: CellContext) -> CellValues:
    """Keep the text in `cells`, or in a table of its own, and fill no column of `results`."""
    return NO_VALUE


def _convert_elsewhere(column: Column) -> Converter:
    """Convert a cell of a column that another table has."""
    return _ignore if column.kind == "text" else _keep_double(column.unit, is_exact=column.exact)


def _convert_figure(column: str) -> Converter:
    """Convert a figure in one of the units of `column`.

    A computed one is rounded after its factor: what is behind DERIVED_DIGITS is noise.
    """
    units_column = UNITS_LIKE.get(column, column)

    def converter(text: str, context: CellContext) -> CellValues:
        finish: Callable[[float], float] = float
        if context.derived:
            finish = round_derived
            printed = parse_derived_number(text)
        else:
            printed = parse_number(text, context.mark)
        unit = context.vocabulary.find_unit(column, context.unit or "")
        if unit is None:
            problem = f"unknown unit {context.unit!r}" if context.unit else "no unit"
            word = UnknownWord("unit", units_column, context.unit or "")
            raise UnknownWordError(word, f"{problem} for {column}")
        values: dict[str, Any] = {column: finish(float(printed * unit.factor))}
        item = context.item or unit.item
        if item:
            values["item"] = item
        return CellValues(values, finish(float(printed)), context.unit, float(unit.factor))

    return converter


def _convert_time(column: str) -> Converter:
    """Convert a duration such as `23h 43m`, or a figure in a unit of time."""
    convert_figure = _convert_figure(column)

    def converter(text: str, context: CellContext) -> CellValues:
        duration = parse_duration_s(text)
        if duration is None:
            return convert_figure(text, context)
        seconds = float(duration)
        return CellValues({column: seconds}, seconds, "s", 1.0)

    return converter


def _convert_quality_value(text: str, context: CellContext) -> CellValues:
    figure, metric = parse_quality(text, context.mark)
    value = float(figure)
    return CellValues({"quality_value": value, "quality_metric": metric}, value, metric, 1.0)


def _convert_quality_figure(text: str, context: CellContext) -> CellValues:
    """Convert a quality whose metric the context names in place of a unit."""
    value = float(parse_number(text, context.mark))
    metric = context.unit
    return CellValues({"quality_value": value, "quality_metric": metric}, value, metric, 1.0)


def _convert_quality_target(text: str, _: CellContext) -> CellValues:
    values = {"quality_target": text}
    if metric := parse_target_metric(text):
        values["quality_metric"] = metric
    return CellValues(values)


def _convert_division(text: str, context: CellContext) -> CellValues:
    name = text.casefold()
    known = name if name in ("open", "closed") else None
    return CellValues({"division": _require(known, "division", text, context)})


def _convert_mlperf_id(text: str, _: CellContext) -> CellValues:
    return CellValues({"mlperf_id": text, "mlperf_round": parse_mlperf_round(text)})


def _convert_date(column: str) -> Converter:
    """Convert a day such as 2024-02-13."""

    def converter(text: str, _: CellContext) -> CellValues:
        try:
            return CellValues({column: date.fromisoformat(text)})
        except ValueError as error:
            raise UnreadableCellError("unreadable-date", f"{text!r} is not a date") from error

    return converter


def _convert_chip(text: str, context: CellContext) -> CellValues:
    return CellValues({"chip": context.vocabulary.name_chip(text)})


def _convert_power_scope(text: str, _: CellContext) -> CellValues:
    return CellValues({"power_scope": POWER_SCOPES.get(text, text)})


CONVERTERS: dict[str, Converter] = {
    # The entries after these win: `model` and the computed figures have a converter of their own.
    **{column.name: _convert_elsewhere(column) for column in KEPT_ELSEWHERE},
    **dict.fromkeys(COMPUTED, _keep_double(None, is_exact=False)),
    "entry_quality_target": _keep_double(None, is_exact=True),
    **dict.fromkeys(KEPT_FIGURES, _keep_figure),
    **dict.fromkeys(IGNORED, _ignore),
    **{column: _convert_figure(column) for column in MEASURED},
    "platform": _convert_platform,
    "model": _convert_model,
    "variant": _convert_variant,
    "framework": _convert_framework,
    "sdk_version": _convert_sdk,
    "precision": _convert_precision,
    "compute_precision": _convert_compute_precision,
    "batch_size": _convert_batch,
    "micro_batch_size": _convert_count("micro_batch_size", "item"),
    "input_tokens": _convert_count("input_tokens", "token"),
    "output_tokens": _convert_count("output_tokens", "token"),
    "interval_confidence": _convert_confidence,
    "time_to_train_s": _convert_time("time_to_train_s"),
    "time_to_result_s": _convert_time("time_to_result_s"),
    "quality_value": _convert_quality_value,
    "quality_figure": _convert_quality_figure,
    "quality_target": _convert_quality_target,
    "division": _convert_division,
    "mlperf_id": _convert_mlperf_id,
    "published_on": _convert_date("published_on"),
    "printed_until": _convert_date("printed_until"),
    "chip": _convert_chip,
    "chip_count": _convert_chip_count,
    "power_scope": _convert_power_scope,
}


def format_header_entries(
    rows: Iterable[FirstRow], kind: str, document_id: str, vocabulary: Vocabulary
) -> str:
    """Format an entry for each first row of a table; a column whose field is not certain is a
    placeholder.
    """
    field_of: dict[str, str] = {}
    for header in vocabulary.table_headers:
        if KINDS[header.reader].results == "one-per-row":
            for name, field in header.fields:
                field_of[normalise_header(name)] = field
    entries = []
    for number, (place, columns) in enumerate(rows, start=1):
        entry = {
            "reader": kind,
            "table": re.sub(r"\W+", "_", f"{document_id}-{number}"),
            "task": f"{PLACEHOLDER}: training or inference",
            "fields": {
                strip_unit(column): _guess_field(column, field_of, vocabulary) for column in columns
            },
        }
        entries.append(f"# {place}\n{tomli_w.dumps({'table_header': [entry]})}")
    if entries:
        fields = {*field_of.values(), *(CONVERTERS.keys() & GATHERED)}
        entries.append(f"# The fields are {', '.join(sorted(fields))}.")
    return "\n".join(entries)


def _guess_field(column: str, field_of: Mapping[str, str], vocabulary: Vocabulary) -> str:
    """Return the field of a column whose name is known, else a placeholder that names a similar
    one.
    """
    header = normalise_header(column)
    if header in field_of:
        return field_of[header]
    if unit := parse_unit(column):
        for field in vocabulary.units:
            if vocabulary.find_unit(field, unit):
                return f"{PLACEHOLDER}: a field, such as {field}"
    headers = {known.replace(" ", ""): known for known in field_of}
    similar = find_nearest(header, headers, MIN_SIMILARITY)
    if similar:
        return f"{PLACEHOLDER}: a field, such as {field_of[similar]}"
    return f"{PLACEHOLDER}: a field"
