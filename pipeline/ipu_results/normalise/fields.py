"""What one cell says: for each field of a layout, the columns of `results` that its text fills."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from ipu_results.normalise.values import (
    Unreadable,
    derived_number,
    duration_s,
    mlperf_round,
    number,
    quality,
    sdk_version,
    target_metric,
    whole_number,
)
from ipu_results.schema import table
from ipu_results.schema.vocabulary import Vocabulary, normalise_name

LATENCIES = ("latency_ms_low", "latency_ms_high", "latency_isolated_ms", "latency_p90_ms", "latency_p99_ms")
OF_POINTS = [column for column in table("run_points").columns if column.name not in table("results").names]

Values = tuple[tuple[str, Any], ...]
NOT_GIVEN = frozenset({"-", "–", "—", "n/a", "N/A"})


class Converted(NamedTuple):
    """What a cell fills, and its figure as printed: `figure` × `factor` is the value in `results`."""

    values: Values = ()
    figure: float | None = None
    unit: str | None = None
    factor: float | None = None


class Source(NamedTuple):
    """What the conversion of a cell depends on besides its text.

    `unit` is the one that the header or caption prints; `strict` binds the row to the vocabulary; `derived` figures
    are doubles that we computed.
    """

    vocabulary: Vocabulary
    unit: str | None
    strict: bool
    derived: bool = False


Converter = Callable[[str, Source], Converted]


def convert(field: str, text: str, source: Source) -> Converted:
    """Columns that a cell fills; none for a blank one. Raises Unreadable."""
    if not text or text in NOT_GIVEN:
        return Converted()
    return CONVERTERS.get(field, _as_printed(field))(text, source)


def _as_printed(column: str) -> Converter:
    return lambda text, _: Converted(((column, text),))


def _known(kind: str, column: str, text: str, found: Any, source: Source) -> Any:
    if found is None and source.strict:
        raise Unreadable(f"unknown-{kind}", f"unknown {kind} {text!r} in {column}")
    return found


def _platform(text: str, source: Source) -> Converted:
    entry = _known("platform", "platform", text, source.vocabulary.platforms.get(normalise_name(text)), source)
    if entry is None:
        return Converted((("platform", text),))
    return Converted(tuple((column, entry[column]) for column in ("platform", "chip", "chip_count")))


def _model(text: str, source: Source) -> Converted:
    entry = _known("model", "model", text, source.vocabulary.models.get(normalise_name(text)), source)
    if entry is None:
        return Converted((("model", text),))
    variant = next(
        (said for name, said in entry.get("variants", {}).items() if normalise_name(name) == normalise_name(text)), None
    )
    extra = {"item": entry.get("item"), "variant": variant}
    return Converted((("model", entry["model"]), *((name, said) for name, said in extra.items() if said)))


def _variant(text: str, source: Source) -> Converted:
    item = source.vocabulary.item_of_rate(text)
    return Converted((("variant", text), *((("item", item),) if item else ())))


def _framework(text: str, source: Source) -> Converted:
    found = _known("framework", "framework", text, source.vocabulary.frameworks.get(normalise_name(text)), source)
    return Converted((("framework", found or text),))


def _sdk(text: str, source: Source) -> Converted:
    return Converted((("sdk_version", _known("sdk-version", "sdk_version", text, sdk_version(text), source) or text),))


def _precision(text: str, source: Source) -> Converted:
    bits = _known("precision", "precision", text, source.vocabulary.precision_bits.get(text), source)
    if bits is None:
        return Converted((("compute_precision", text),))
    return Converted((("precision", text), ("activation_bits", bits[0]), ("weight_bits", bits[1])))


def _compute_precision(text: str, source: Source) -> Converted:
    entry = source.vocabulary.compute_precisions.get(normalise_name(text), {"compute_precision": text})
    return Converted(tuple(entry.items()))


def _batch(text: str, source: Source) -> Converted:
    if source.strict and source.unit:
        raise Unreadable("unknown-unit", f"unknown unit {source.unit!r} for batch_size")
    try:
        batch = whole_number(text)
    except Unreadable:
        if source.strict:
            raise
        return Converted()
    return Converted((("batch_size", batch),), float(batch), "item", 1.0)


def _micro_batch(text: str, _: Source) -> Converted:
    size = whole_number(text)
    return Converted((("micro_batch_size", size),), float(size), "item", 1.0)


def _figure(column: str, units_of: str | None = None) -> Converter:
    """A figure in one of the units of `column`, or of the other column that it shares them with."""

    def converter(text: str, source: Source) -> Converted:
        printed = derived_number(text) if source.derived else number(text)
        unit = source.vocabulary.unit(units_of or column, source.unit or "")
        if unit is None:
            said = f"unknown unit {source.unit!r}" if source.unit else "no unit"
            raise Unreadable("unknown-unit", f"{said} for {column}")
        item: Values = (("item", unit.item),) if unit.item else ()
        return Converted(
            ((column, float(printed * unit.factor)), *item), float(printed), source.unit, float(unit.factor)
        )

    return converter


def _time(column: str) -> Converter:
    figure = _figure(column)

    def converter(text: str, source: Source) -> Converted:
        seconds = duration_s(text)
        if seconds is None:
            return figure(text, source)
        return Converted(((column, float(seconds)),), float(seconds), "s", 1.0)

    return converter


def _quality_value(text: str, _: Source) -> Converted:
    value, metric = quality(text)
    return Converted((("quality_value", float(value)), ("quality_metric", metric)), float(value), metric, 1.0)


def _quality_target(text: str, _: Source) -> Converted:
    metric = target_metric(text)
    return Converted((("quality_target", text), *((("quality_metric", metric),) if metric else ())))


def _division(text: str, source: Source) -> Converted:
    division = text.casefold() if text.casefold() in ("open", "closed") else None
    return Converted((("division", _known("division", "division", text, division, source)),))


def _mlperf_id(text: str, _: Source) -> Converted:
    return Converted((("mlperf_id", text), ("mlperf_round", mlperf_round(text))))


def _date(text: str, _: Source) -> Converted:
    try:
        return Converted((("published_on", date.fromisoformat(text)),))
    except ValueError as error:
        raise Unreadable("unreadable-date", f"{text!r} is not a date") from error


def _chip(text: str, source: Source) -> Converted:
    return Converted((("chip", source.vocabulary.chips.get(normalise_name(text), text)),))


def _chip_count(text: str, _: Source) -> Converted:
    """None for a machine without accelerators."""
    if text == "0":
        return Converted((), 0.0, "chip", None)
    count = whole_number(text)
    return Converted((("chip_count", count),), float(count), "chip", 1.0)


def _round(text: str, _: Source) -> Converted:
    return Converted((("mlperf_round", text),))


def _own(_: str, __: Source) -> Converted:
    """A cell that fills no column of `results`."""
    return Converted()


def _share(column: str) -> Converter:
    """A figure without a unit."""

    def converter(text: str, _: Source) -> Converted:
        share = float(derived_number(text))
        return Converted(((column, share),), share, None, 1.0)

    return converter


def _own_number(text: str, _: Source) -> Converted:
    printed: Decimal = number(text)
    return Converted((), float(printed), None, None)


def _own_double(text: str, _: Source) -> Converted:
    """A figure that we computed, in whatever form a double is written."""
    try:
        return Converted((), float(text), None, None)
    except ValueError as error:
        raise Unreadable("unreadable-figure", f"{text!r} is not a figure") from error


def _own_figure(unit: str | None) -> Converter:
    return lambda text, source: _own_double(text, source)._replace(unit=unit)


CONVERTERS: dict[str, Converter] = {
    "platform": _platform,
    "model": _model,
    "variant": _variant,
    "framework": _framework,
    "sdk_version": _sdk,
    "precision": _precision,
    "compute_precision": _compute_precision,
    "batch_size": _batch,
    "throughput": _figure("throughput"),
    "latency_ms": _figure("latency_ms"),
    **{column: _figure(column, "latency_ms") for column in LATENCIES},
    "interval_confidence": _share("interval_confidence"),
    "power_w": _figure("power_w"),
    "micro_batch_size": _micro_batch,
    "efficiency": _figure("efficiency"),
    "time_to_train_s": _time("time_to_train_s"),
    "time_to_result_s": _time("time_to_result_s"),
    "quality_value": _quality_value,
    "quality_target": _quality_target,
    "division": _division,
    "mlperf_id": _mlperf_id,
    "published_on": _date,
    "repo": _own,
    "path": _own,
    "commit": _own,
    "task": _own,
    "metric": _own,
    "batch_per_chip": _own,
    "images": _own_number,
    "chips": _own_number,
    "chip": _chip,
    "chip_count": _chip_count,
    "mlperf_round": _round,
    **dict.fromkeys(("n_runs", "n_success", "nodes"), _own_number),
    **dict.fromkeys(
        ("scaling_factor", "run_minutes_min", "run_minutes_max", "run_minutes_cv", "epochs_to_converge"), _own_double
    ),
    "samples_to_converge": _own_double,
    **dict.fromkeys(("submitter", "folder", "software", "no_score_reason", "availability", "status"), _own),
    **dict.fromkeys(("system_path", "system_sha256", "scaling_sha256", "attribution"), _own),
    **{column.name: _own if column.kind == "text" else _own_figure(column.unit) for column in OF_POINTS},
}
