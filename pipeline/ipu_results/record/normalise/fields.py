"""Convert the text of one cell to the columns of `results` that it fills, by the field of its
header.

The fields of an unknown header are drafted here too, as entries of `table_headers.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

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
    POWER_SCOPES,
    Vocabulary,
    normalise_header,
    normalise_name,
    parse_unit,
    strip_unit,
)

# Columns with the units of `latency_ms`.
LATENCIES = (
    "latency_ms_low",
    "latency_ms_high",
    "latency_isolated_ms",
    "latency_p90_ms",
    "latency_p99_ms",
)
STATISTICS = ("latency_min_ms", "latency_median_ms", "latency_max_ms", "latency_std_ms")
ENTRY_COLUMNS = [
    table("mlperf_entries").column(name)
    for name in """
    submitter_folder logs_expected logs_present logs_missing convergence_unit tokens_to_converge quality_reached
    quality_check second_quality_metric second_quality_target second_quality_reached host_processor
    host_processors_per_node operating_system other_software chip_memory chip_memory_type
    chip_interconnect host_memory host_network hardware_notes software_notes energy_j
    """.split()
]
MIN_SIMILARITY = 0.6  # of a printed column name and a known one
COMPUTED = """
    run_minutes_min run_minutes_max run_minutes_cv epochs_to_converge samples_to_converge
    """.split()
GIVEN = ("scaling_factor", "entry_quality_target")  # by files of the round
IGNORED = """
    repo path commit task metric unit place batch_per_chip submitter folder software no_score_reason availability status
    system_path system_sha256 scaling_sha256 attribution entry_quality_metric
    """.split()
PLATFORM_COLUMNS = ("platform", "chip", "chip_count")
POINT_COLUMNS = [
    column
    for column in table("run_points").columns
    if column.name not in table("results").as_filled().names
]

Values = tuple[tuple[str, Any], ...]
# Columns of `results` that a field of the same name fills.
GATHERED = frozenset(table("results").as_filled().names)
# A header says what a cell is about; these columns say that it is as printed. Ids rest on the
# fields: their names stay.
PRINTED_COLUMNS = {
    "model": "model_printed",
    "dataset": "dataset_printed",
    "precision": "precision_printed",
    "compute_precision": "precision_printed",
    "quality_figure": "quality_value",
    "chips": "chip_count",
}
MICROBENCHMARKS = "microbenchmarks"
MICROBENCHMARK_COLUMNS = {
    "device": "chip",
    "device_count": "chip_count",
    "precision": "precision_printed",
}


class CellValues(NamedTuple):
    """The columns that a cell fills, and its figure as printed: `figure` × `factor` is the value in
    `results`.
    """

    values: Values = ()
    figure: float | None = None
    unit: str | None = None
    factor: float | None = None


NO_VALUE = CellValues()
"""Of a blank cell, of a mark for no value, and of a text that is kept elsewhere."""


class CellContext(NamedTuple):
    """What the conversion of a cell depends on besides its text.

    `unit` is the unit that the header or caption prints. `strict` makes an unknown word an error.
    `derived` figures are doubles that we computed. `mark` divides the decimals of other figures.
    """

    vocabulary: Vocabulary
    unit: str | None
    strict: bool
    derived: bool = False
    mark: DecimalMark = DecimalMark.POINT


Converter = Callable[[str, CellContext], CellValues]


def _fill(
    figure: float | None = None,
    unit: str | None = None,
    factor: float | None = None,
    /,
    **columns: Any,
) -> CellValues:
    return CellValues(tuple(columns.items()), figure, unit, factor)


def convert_cell(field: str, text: str, context: CellContext) -> CellValues:
    """Return the columns that a cell fills, NO_VALUE for a blank cell.

    Raises UnreadableCellError.
    """
    if context.vocabulary.gives_no_value(field, text):
        return NO_VALUE
    if not (text.isascii() and text.isprintable()):
        char = (hidden := find_hidden(text)) or find_lookalike(text)
        if char:
            why = "shows nothing" if hidden else "looks like a Latin letter"
            message = f"{text!r} has U+{ord(char):04X}, which {why}: it would be another text"
            raise UnreadableCellError("unreadable-cell", message)
    return (CONVERTERS.get(field) or _keep_text(get_column(field)))(text, context)


def check_field(field: str, table_name: str) -> None:
    """Refuse a field of `table_headers.toml` that no column has: its figures would be lost.

    Raises CatalogueError.
    """
    if field in CONVERTERS or get_column(field) in GATHERED:
        return
    known = {name: name for name in (*CONVERTERS, *GATHERED, *PRINTED_COLUMNS)}
    message = (
        f"{table_name}: {field!r} is not a field; nearest: {find_nearest(field, known) or 'none'}"
    )
    raise CatalogueError(message, place="schema/vocabulary/table_headers.toml")


def get_column(field: str, result_table: str = "results") -> str:
    """Return the column that the field of a header fills, as `cells` names it."""
    names = MICROBENCHMARK_COLUMNS if result_table == MICROBENCHMARKS else PRINTED_COLUMNS
    return names.get(field, field)


def _keep_text(column: str) -> Converter:
    return lambda text, _: CellValues(((column, text),))


def _require(kind: str, column: str, text: str, known: Any, context: CellContext) -> Any:
    """Return what is known of a word.

    Raises UnreadableCellError for an unknown word where the vocabulary binds.
    """
    if known is None and context.strict:
        raise UnknownWordError(
            UnknownWord(kind, column, text), f"unknown {kind} {text!r} in {column}"
        )
    return known


def _convert_platform(text: str, context: CellContext) -> CellValues:
    known = context.vocabulary.platforms.get(normalise_name(text))
    entry = _require("platform", "platform", text, known, context)
    return (
        _fill(platform=text)
        if entry is None
        else _fill(**{name: entry[name] for name in PLATFORM_COLUMNS})
    )


def _convert_model(text: str, context: CellContext) -> CellValues:
    name = normalise_name(text)
    entry = _require("model", "model", text, context.vocabulary.models.get(name), context)
    if entry is None and name in context.vocabulary.aggregates:
        raise UnreadableCellError(
            "aggregate", f"{text!r} is an aggregate of other rows, not a network"
        )
    if entry is None:
        return _fill(model_printed=text)
    variants = {
        normalise_name(spelling): variant for spelling, variant in entry.get("variants", {}).items()
    }
    implied = {"item": entry.get("item"), "variant": variants.get(name)}
    return _fill(
        model_printed=entry["model"],
        **{column: value for column, value in implied.items() if value},
    )


def _convert_variant(text: str, context: CellContext) -> CellValues:
    item = context.vocabulary.find_rate_item(text)
    return _fill(variant=text, item=item) if item else _fill(variant=text)


def _convert_framework(text: str, context: CellContext) -> CellValues:
    known = context.vocabulary.frameworks.get(normalise_name(text))
    return _fill(framework=_require("framework", "framework", text, known, context) or text)


def _convert_sdk(text: str, context: CellContext) -> CellValues:
    return _fill(
        sdk_version=_require("sdk-version", "sdk_version", text, parse_sdk_version(text), context)
        or text
    )


def _convert_precision(text: str, context: CellContext) -> CellValues:
    bits = _require(
        "precision", "precision", text, context.vocabulary.precision_bits.get(text), context
    )
    if bits is None:
        return _fill(precision_printed=text)
    return _fill(precision_printed=text, activation_bits=bits[0], weight_bits=bits[1])


def _convert_compute_precision(text: str, context: CellContext) -> CellValues:
    return _fill(
        **context.vocabulary.compute_precisions.get(
            normalise_name(text), {"precision_printed": text}
        )
    )


def _convert_batch(text: str, context: CellContext) -> CellValues:
    if context.strict and context.unit:
        word = UnknownWord("unit", "batch_size", context.unit)
        raise UnknownWordError(word, f"unknown unit {context.unit!r} for batch_size")
    batch = parse_whole_number(text, context.mark)
    return _fill(float(batch), "item", 1.0, batch_size=batch)


def _convert_with(
    parse: Callable[[str, CellContext], Decimal | float],
    column: str | None = None,
    unit: str | None = None,
    factor: float | None = None,
) -> Converter:
    """Convert a figure that is printed without a unit to a column of `results`, or keep it in
    `cells` only.
    """

    def converter(text: str, context: CellContext) -> CellValues:
        value = parse(text, context)
        return CellValues(((column, value),) if column else (), float(value), unit, factor)

    return converter


def _parse_count(text: str, context: CellContext) -> int:
    return parse_whole_number(text, context.mark)


def _parse_given(text: str, _: CellContext) -> float:
    return parse_double(text)


def _parse_computed(text: str, _: CellContext) -> float:
    return round_derived(parse_double(text))


def _convert_elsewhere(column: Column) -> Converter:
    """Convert a cell of a column that another table has: it fills no column of `results`."""
    if column.kind == "text":
        return _ignore
    return _convert_with(_parse_given if column.exact else _parse_computed, unit=column.unit)


def _convert_figure(column: str, units_of: str | None = None) -> Converter:
    """Convert a figure in one of the units of `column`, or of another column with the same units.

    A computed one is rounded after its factor: what is behind DERIVED_DIGITS is noise.
    """

    def converter(text: str, context: CellContext) -> CellValues:
        printed = (
            parse_derived_number(text) if context.derived else parse_number(text, context.mark)
        )
        finish: Callable[[float], float] = round_derived if context.derived else float
        unit = context.vocabulary.find_unit(units_of or column, context.unit or "")
        if unit is None:
            problem = f"unknown unit {context.unit!r}" if context.unit else "no unit"
            word = UnknownWord("unit", units_of or column, context.unit or "")
            raise UnknownWordError(word, f"{problem} for {column}")
        item: Values = (("item", unit.item),) if unit.item else ()
        figure = finish(float(printed))
        value = figure if unit.factor == 1 else finish(float(printed * unit.factor))
        return CellValues(((column, value), *item), figure, context.unit, float(unit.factor))

    return converter


def _convert_time(column: str) -> Converter:
    """Convert a duration such as `23h 43m`, or a figure in a unit of time."""
    convert_figure = _convert_figure(column)

    def converter(text: str, context: CellContext) -> CellValues:
        seconds = parse_duration_s(text)
        if seconds is None:
            return convert_figure(text, context)
        return CellValues(((column, float(seconds)),), float(seconds), "s", 1.0)

    return converter


def _convert_quality_value(text: str, context: CellContext) -> CellValues:
    value, metric = parse_quality(text, context.mark)
    return _fill(float(value), metric, 1.0, quality_value=float(value), quality_metric=metric)


def _convert_quality_figure(text: str, context: CellContext) -> CellValues:
    """Convert a quality whose metric the context names in place of a unit."""
    value = float(parse_number(text, context.mark))
    return _fill(value, context.unit, 1.0, quality_value=value, quality_metric=context.unit)


def _convert_quality_target(text: str, _: CellContext) -> CellValues:
    metric = parse_target_metric(text)
    return (
        _fill(quality_target=text, quality_metric=metric) if metric else _fill(quality_target=text)
    )


def _convert_division(text: str, context: CellContext) -> CellValues:
    division = text.casefold() if text.casefold() in ("open", "closed") else None
    return _fill(division=_require("division", "division", text, division, context))


def _convert_date(text: str, _: CellContext) -> CellValues:
    try:
        return _fill(published_on=date.fromisoformat(text))
    except ValueError as error:
        raise UnreadableCellError("unreadable-date", f"{text!r} is not a date") from error


def _convert_chip_count(text: str, context: CellContext) -> CellValues:
    """Convert a number of chips; 0 of a machine of MLPerf without accelerators fills no column."""
    if text == "0" and context.derived:
        return CellValues((), 0.0, "chip", None)
    return _convert_with(_parse_count, "chip_count", "chip", 1.0)(text, context)


def _ignore(_: str, __: CellContext) -> CellValues:
    """Keep the text in `cells`, or in a table of its own, and fill no column of `results`."""
    return NO_VALUE


CONVERTERS: dict[str, Converter] = {
    "platform": _convert_platform,
    "model": _convert_model,
    "variant": _convert_variant,
    "framework": _convert_framework,
    "sdk_version": _convert_sdk,
    "precision": _convert_precision,
    "compute_precision": _convert_compute_precision,
    "batch_size": _convert_batch,
    "micro_batch_size": _convert_with(_parse_count, "micro_batch_size", "item", 1.0),
    "throughput": _convert_figure("throughput"),
    "latency_ms": _convert_figure("latency_ms"),
    **{column: _convert_figure(column, "latency_ms") for column in (*LATENCIES, *STATISTICS)},
    "interval_confidence": _convert_with(
        lambda text, _: round_derived(float(parse_derived_number(text))),
        "interval_confidence",
        factor=1.0,
    ),
    "power_w": _convert_figure("power_w"),
    "efficiency": _convert_figure("efficiency"),
    "energy_per_item_j": _convert_figure("energy_per_item_j"),
    "run_energy_j": _convert_figure("run_energy_j"),
    "time_to_train_s": _convert_time("time_to_train_s"),
    "time_to_result_s": _convert_time("time_to_result_s"),
    "quality_value": _convert_quality_value,
    "quality_figure": _convert_quality_figure,
    "quality_target": _convert_quality_target,
    "division": _convert_division,
    "mlperf_id": lambda text, _: _fill(mlperf_id=text, mlperf_round=parse_mlperf_round(text)),
    "published_on": _convert_date,
    "chip": lambda text, context: _fill(chip=context.vocabulary.name_chip(text)),
    "chip_count": _convert_chip_count,
    # What follows is published in a table of its own, or in `cells` only.
    **dict.fromkeys(
        KEPT_FIGURES, _convert_with(lambda text, context: parse_number(text, context.mark))
    ),
    **dict.fromkeys(COMPUTED, _convert_with(_parse_computed)),
    **dict.fromkeys(IGNORED, _ignore),
    **dict.fromkeys(GIVEN, _convert_with(_parse_given)),
    **{column.name: _convert_elsewhere(column) for column in (*POINT_COLUMNS, *ENTRY_COLUMNS)},
    "power_scope": lambda text, _: _fill(power_scope=POWER_SCOPES.get(text, text)),
}


def format_header_entries(
    rows: Iterable[FirstRow], kind: str, document_id: str, vocabulary: Vocabulary
) -> str:
    """Format an entry for each first row of a table; a column whose field is not certain is a
    placeholder.
    """
    known = {
        normalise_header(name): field
        for header in vocabulary.table_headers
        if KINDS[header.reader].results == "one-per-row"
        for name, field in header.fields
    }
    entries = []
    for number, (place, columns) in enumerate(rows, start=1):
        name = re.sub(r"\W+", "_", f"{document_id}-{number}")
        fields = {strip_unit(column): _guess_field(column, known, vocabulary) for column in columns}
        entry = {
            "reader": kind,
            "table": name,
            "task": f"{PLACEHOLDER}: training or inference",
            "fields": fields,
        }
        entries.append(f"# {place}\n{tomli_w.dumps({'table_header': [entry]})}")
    if entries:
        fields_known = {
            *known.values(),
            *(CONVERTERS.keys() & table("results").as_filled().names),
        }
        entries.append(f"# The fields are {', '.join(sorted(fields_known))}.")
    return "\n".join(entries)


def _guess_field(column: str, known: Mapping[str, str], vocabulary: Vocabulary) -> str:
    """Return the field of a column whose name is known, else a placeholder that names a similar
    one.
    """
    if (field := known.get(normalise_header(column))) is not None:
        return field
    unit = parse_unit(column)
    names = {header.replace(" ", ""): header for header in known}
    similar = find_nearest(normalise_header(column), names, MIN_SIMILARITY)
    counted = next(
        (field for field in vocabulary.units if unit and vocabulary.find_unit(field, unit)), None
    )
    nearest = counted or (known[similar] if similar else None)
    return f"{PLACEHOLDER}: a field, such as {nearest}" if nearest else f"{PLACEHOLDER}: a field"
