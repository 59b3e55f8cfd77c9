"""Convert the text of one cell to the columns of `results` that it fills, by the field of its header."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple

from ipu_results.errors import CatalogueError
from ipu_results.normalise.decimal_mark import DecimalMark
from ipu_results.normalise.values import (
    AmbiguousFigureError,
    UnknownWord,
    UnknownWordError,
    UnreadableCellError,
    find_nearest,
    parse_derived_number,
    parse_duration_s,
    parse_mlperf_round,
    parse_number,
    parse_quality,
    parse_sdk_version,
    parse_target_metric,
    parse_whole_number,
)
from ipu_results.schema import table
from ipu_results.schema.vocabulary import KEPT_FIGURES, Vocabulary, normalise_name

LATENCIES = ("latency_ms_low", "latency_ms_high", "latency_isolated_ms", "latency_p90_ms", "latency_p99_ms")
STATISTICS = ("latency_min_ms", "latency_median_ms", "latency_max_ms", "latency_std_ms")
POWER_SCOPES = {"chip": "device", "card": "board"}
ENTRY_COLUMNS = [
    table("mlperf_entries").column(name)
    for name in (
        *(
            "submitter_folder",
            "logs_expected",
            "logs_present",
            "logs_missing",
            "convergence_unit",
            "tokens_to_converge",
        ),
        *("quality_reached", "quality_check", "second_quality_metric", "second_quality_target"),
        *("second_quality_reached", "host_processor", "host_processors_per_node", "operating_system"),
        *("other_software", "energy_j"),
    )
]
POINT_COLUMNS = [column for column in table("run_points").columns if column.name not in table("results").names]

Values = tuple[tuple[str, Any], ...]
NOT_GIVEN = frozenset({"-", "–", "—", "n/a", "N/A"})
GATHERED = frozenset(table("results").without_derived().names)


class CellValues(NamedTuple):
    """The columns that a cell fills, and its figure as printed: `figure` × `factor` is the value in `results`."""

    values: Values = ()
    figure: float | None = None
    unit: str | None = None
    factor: float | None = None


class CellContext(NamedTuple):
    """What the conversion of a cell depends on besides its text.

    `unit` is the unit that the header or caption prints. `strict` makes an unknown word an error. `derived` figures
    are doubles that we computed. `mark` divides the decimals of other figures.
    """

    vocabulary: Vocabulary
    unit: str | None
    strict: bool
    derived: bool = False
    mark: DecimalMark = DecimalMark.POINT


Converter = Callable[[str, CellContext], CellValues]


def convert_cell(field: str, text: str, context: CellContext) -> CellValues:
    """Return the columns that a cell fills, none for a blank cell. Raises UnreadableCellError."""
    if not text or text in NOT_GIVEN:
        return CellValues()
    return CONVERTERS.get(field, _keep_text(field))(text, context)


def check_field(field: str, table_name: str) -> None:
    """Refuse a field of `table_headers.toml` that no column has: its figures would be lost. Raises CatalogueError."""
    if field in CONVERTERS or field in GATHERED:
        return
    known = {name: name for name in (*CONVERTERS, *GATHERED)}
    message = f"{table_name}: {field!r} is not a field; nearest: {find_nearest(field, known) or 'none'}"
    raise CatalogueError(message, place="schema/vocabulary/table_headers.toml")


def _keep_text(column: str) -> Converter:
    return lambda text, _: CellValues(((column, text),))


def _require(kind: str, column: str, text: str, known: Any, context: CellContext) -> Any:
    """Return what is known of a word. Raises UnreadableCellError for an unknown word where the vocabulary binds."""
    if known is None and context.strict:
        raise UnknownWordError(UnknownWord(kind, column, text), f"unknown {kind} {text!r} in {column}")
    return known


def _convert_platform(text: str, context: CellContext) -> CellValues:
    known = context.vocabulary.platforms.get(normalise_name(text))
    entry = _require("platform", "platform", text, known, context)
    if entry is None:
        return CellValues((("platform", text),))
    return CellValues(tuple((column, entry[column]) for column in ("platform", "chip", "chip_count")))


def _convert_model(text: str, context: CellContext) -> CellValues:
    name = normalise_name(text)
    entry = _require("model", "model", text, context.vocabulary.models.get(name), context)
    if entry is None:
        return CellValues((("model", text),))
    variants = {normalise_name(spelling): variant for spelling, variant in entry.get("variants", {}).items()}
    implied = {"item": entry.get("item"), "variant": variants.get(name)}
    return CellValues((("model", entry["model"]), *((column, value) for column, value in implied.items() if value)))


def _convert_variant(text: str, context: CellContext) -> CellValues:
    item = context.vocabulary.find_rate_item(text)
    return CellValues((("variant", text), *((("item", item),) if item else ())))


def _convert_framework(text: str, context: CellContext) -> CellValues:
    known = context.vocabulary.frameworks.get(normalise_name(text))
    return CellValues((("framework", _require("framework", "framework", text, known, context) or text),))


def _convert_sdk(text: str, context: CellContext) -> CellValues:
    known = parse_sdk_version(text)
    return CellValues((("sdk_version", _require("sdk-version", "sdk_version", text, known, context) or text),))


def _convert_precision(text: str, context: CellContext) -> CellValues:
    bits = _require("precision", "precision", text, context.vocabulary.precision_bits.get(text), context)
    if bits is None:
        return CellValues((("compute_precision", text),))
    return CellValues((("precision", text), ("activation_bits", bits[0]), ("weight_bits", bits[1])))


def _convert_compute_precision(text: str, context: CellContext) -> CellValues:
    entry = context.vocabulary.compute_precisions.get(normalise_name(text), {"compute_precision": text})
    return CellValues(tuple(entry.items()))


def _convert_batch(text: str, context: CellContext) -> CellValues:
    if context.strict and context.unit:
        raise UnknownWordError(
            UnknownWord("unit", "batch_size", context.unit), f"unknown unit {context.unit!r} for batch_size"
        )
    try:
        batch = parse_whole_number(text, context.mark)
    except UnreadableCellError as error:
        if context.strict or isinstance(error, AmbiguousFigureError):
            raise
        return CellValues()
    return CellValues((("batch_size", batch),), float(batch), "item", 1.0)


def _convert_count(column: str, unit: str) -> Converter:
    """Convert a whole number from 1."""

    def converter(text: str, context: CellContext) -> CellValues:
        count = parse_whole_number(text, context.mark)
        return CellValues(((column, count),), float(count), unit, 1.0)

    return converter


def _convert_figure(column: str, units_of: str | None = None) -> Converter:
    """Convert a figure in one of the units of `column`, or of another column with the same units."""

    def converter(text: str, context: CellContext) -> CellValues:
        printed = parse_derived_number(text) if context.derived else parse_number(text, context.mark)
        unit = context.vocabulary.find_unit(units_of or column, context.unit or "")
        if unit is None:
            problem = f"unknown unit {context.unit!r}" if context.unit else "no unit"
            raise UnknownWordError(
                UnknownWord("unit", units_of or column, context.unit or ""), f"{problem} for {column}"
            )
        item: Values = (("item", unit.item),) if unit.item else ()
        value = float(printed * unit.factor)
        return CellValues(((column, value), *item), float(printed), context.unit, float(unit.factor))

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
    return CellValues((("quality_value", float(value)), ("quality_metric", metric)), float(value), metric, 1.0)


def _convert_quality_figure(text: str, context: CellContext) -> CellValues:
    """Convert a quality whose metric the context names in place of a unit."""
    value = float(parse_number(text, context.mark))
    return CellValues((("quality_value", value), ("quality_metric", context.unit)), value, context.unit, 1.0)


def _convert_power_scope(text: str, _: CellContext) -> CellValues:
    return CellValues((("power_scope", POWER_SCOPES.get(text, text)),))


def _convert_quality_target(text: str, _: CellContext) -> CellValues:
    metric = parse_target_metric(text)
    return CellValues((("quality_target", text), *((("quality_metric", metric),) if metric else ())))


def _convert_division(text: str, context: CellContext) -> CellValues:
    division = text.casefold() if text.casefold() in ("open", "closed") else None
    return CellValues((("division", _require("division", "division", text, division, context)),))


def _convert_mlperf_id(text: str, _: CellContext) -> CellValues:
    return CellValues((("mlperf_id", text), ("mlperf_round", parse_mlperf_round(text))))


def _convert_date(text: str, _: CellContext) -> CellValues:
    try:
        return CellValues((("published_on", date.fromisoformat(text)),))
    except ValueError as error:
        raise UnreadableCellError("unreadable-date", f"{text!r} is not a date") from error


def _convert_chip(text: str, context: CellContext) -> CellValues:
    return CellValues((("chip", context.vocabulary.chips.get(normalise_name(text), text)),))


def _convert_chip_count(text: str, context: CellContext) -> CellValues:
    """Convert a number of chips; 0, a machine without accelerators, fills no column."""
    if text == "0":
        return CellValues((), 0.0, "chip", None)
    return _convert_count("chip_count", "chip")(text, context)


def _convert_share(column: str) -> Converter:
    """Convert a figure without a unit."""

    def converter(text: str, _: CellContext) -> CellValues:
        share = float(parse_derived_number(text))
        return CellValues(((column, share),), share, None, 1.0)

    return converter


def _ignore(_: str, __: CellContext) -> CellValues:
    """Fill no column of `results`."""
    return CellValues()


def _keep_number(text: str, context: CellContext) -> CellValues:
    """Keep a printed figure in `cells` only."""
    return CellValues((), float(parse_number(text, context.mark)), None, None)


def _keep_double(unit: str | None = None) -> Converter:
    """Keep a figure that we computed, in any form of a double, in `cells` only."""

    def converter(text: str, _: CellContext) -> CellValues:
        try:
            return CellValues((), float(text), unit, None)
        except ValueError as error:
            raise UnreadableCellError("unreadable-figure", f"{text!r} is not a figure") from error

    return converter


CONVERTERS: dict[str, Converter] = {
    "platform": _convert_platform,
    "model": _convert_model,
    "variant": _convert_variant,
    "framework": _convert_framework,
    "sdk_version": _convert_sdk,
    "precision": _convert_precision,
    "compute_precision": _convert_compute_precision,
    "batch_size": _convert_batch,
    "micro_batch_size": _convert_count("micro_batch_size", "item"),
    "throughput": _convert_figure("throughput"),
    "latency_ms": _convert_figure("latency_ms"),
    **{column: _convert_figure(column, "latency_ms") for column in (*LATENCIES, *STATISTICS)},
    "interval_confidence": _convert_share("interval_confidence"),
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
    "mlperf_id": _convert_mlperf_id,
    "published_on": _convert_date,
    "chip": _convert_chip,
    "chip_count": _convert_chip_count,
    **dict.fromkeys(KEPT_FIGURES, _keep_number),
    **dict.fromkeys(("scaling_factor", "run_minutes_min", "run_minutes_max", "run_minutes_cv"), _keep_double()),
    **dict.fromkeys(("epochs_to_converge", "samples_to_converge"), _keep_double()),
    **dict.fromkeys(("repo", "path", "commit", "task", "metric", "unit", "place", "batch_per_chip"), _ignore),
    **dict.fromkeys(("submitter", "folder", "software", "no_score_reason", "availability", "status"), _ignore),
    **dict.fromkeys(("system_path", "system_sha256", "scaling_sha256", "attribution"), _ignore),
    **{column.name: _ignore if column.kind == "text" else _keep_double(column.unit) for column in POINT_COLUMNS},
    **{column.name: _ignore if column.kind == "text" else _keep_double(column.unit) for column in ENTRY_COLUMNS},
    "power_scope": _convert_power_scope,
    "entry_quality_metric": _ignore,
    "entry_quality_target": _keep_double(),
}
