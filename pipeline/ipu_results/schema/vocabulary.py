"""The vocabulary: data files under `schema/vocabulary`, loaded once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from ipu_results._util.resources import SCHEMA
from ipu_results.schema.layouts import TableHeader


def normalise_name(name: str) -> str:
    """The form in which names are compared: without case, blanks, hyphens and underscores."""
    return re.sub(r"[\s\-_]+", "", name).casefold()


@dataclass(frozen=True, slots=True)
class Unit:
    factor: Decimal
    item: str | None


@dataclass(frozen=True)
class Vocabulary:
    """Names and units that sources use, by folded printed form.

    `work` is the multiply-accumulates of one inference in units of 10⁹ by network and printed variant ("" for none),
    `peaks` the column of `platforms` that bounds work of a precision, `latency_bases` what a script times that computes
    a latency in such words, None where it computes none.
    """

    layouts: tuple[TableHeader, ...]
    platforms: Mapping[str, Mapping[str, Any]]
    models: Mapping[str, Mapping[str, Any]]
    frameworks: Mapping[str, str]
    precision_bits: Mapping[str, tuple[int, int]]
    compute_precisions: Mapping[str, Mapping[str, str]]
    units: Mapping[str, Mapping[str, Unit]]
    metrics: Mapping[str, Mapping[str, str]]
    facts: Mapping[str, Mapping[str, str]]
    chips: Mapping[str, str]
    benchmarks: Mapping[str, str]
    framework_by_path: Mapping[str, str]
    tasks: Mapping[str, str]
    work: Mapping[tuple[str, str], float]
    peaks: Mapping[str, str]
    latency_bases: Mapping[str, str | None]

    def layouts_of(self, reader: str) -> tuple[TableHeader, ...]:
        return tuple(layout for layout in self.layouts if layout.reader == reader)

    def layout(self, reader: str, table: str) -> TableHeader:
        return next(layout for layout in self.layouts_of(reader) if layout.table == table)

    def unit(self, column: str, printed: str) -> Unit | None:
        return self.units.get(column, {}).get(printed.strip().casefold())

    def item_of_rate(self, text: str) -> str | None:
        """The item of a cell that holds nothing but a rate's unit, such as `frames/s`."""
        unit = self.unit("throughput", text)
        return unit.item if unit else None

    def platform_rows(self) -> list[Mapping[str, Any]]:
        return _distinct(self.platforms.values(), "platform")

    def model_rows(self) -> list[Mapping[str, Any]]:
        return _distinct(self.models.values(), "model")


@cache
def load_vocabulary() -> Vocabulary:
    platforms, units = _load("platforms"), _load("units")
    models = _load("models")["model"]
    frameworks, precisions, layouts = _load("frameworks"), _load("precisions"), _load("layouts")
    return Vocabulary(
        layouts=tuple(_layout(entry) for entry in layouts["layout"]),
        platforms=_by_name(
            "platform", [{**_chip_facts(platforms["chips"], entry), **entry} for entry in platforms["platform"]]
        ),
        models=_by_name("model", models),
        frameworks={
            normalise_name(name): canonical for canonical, more in frameworks.items() for name in [canonical, *more]
        },
        precision_bits={name: (x, y) for name, (x, y) in precisions["bits"].items()},
        compute_precisions={normalise_name(name): entry for name, entry in precisions["compute"].items()},
        units={
            column: {name.casefold(): Unit(Decimal(unit["factor"]), unit.get("item")) for name, unit in named.items()}
            for column, named in units.items()
            if column != "metrics"
        },
        metrics=units["metrics"],
        facts=layouts["facts"],
        chips={
            normalise_name(name): chip
            for chip, facts in platforms["chips"].items()
            for name in [chip, *facts.get("spellings", [])]
        },
        benchmarks={name: entry["model"] for name, entry in _load("mlperf")["benchmarks"].items() if "model" in entry},
        framework_by_path=layouts["comparators"]["framework_by_path"],
        tasks=layouts["comparators"]["tasks"],
        work=_work(models),
        peaks=precisions["peaks"],
        latency_bases={entry["text"]: entry.get("basis") for entry in _load("latencies")["definition"]},
    )


def _layout(entry: Mapping[str, Any]) -> TableHeader:
    identity = entry.get("identity")
    told = {"fields": tuple(entry["fields"].items()), "identity": None if identity is None else tuple(identity)}
    return TableHeader(**{**entry, **told})


def read_vocabulary_files() -> list[tuple[str, bytes]]:
    """Name and bytes of every vocabulary file, for the build's digest."""
    folder = SCHEMA / "vocabulary"
    return sorted((entry.name, entry.read_bytes()) for entry in folder.iterdir() if entry.name.endswith(".toml"))


def _load(name: str) -> dict[str, Any]:
    return tomllib.loads((SCHEMA / "vocabulary" / f"{name}.toml").read_text(encoding="utf-8"))


def _chip_facts(chips: Mapping[str, Mapping[str, Any]], entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: fact for name, fact in chips.get(entry["chip"], {}).items() if name != "spellings"}


def _work(models: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    return {
        (entry["model"], variant): entry["gmacs_per_item"]
        for entry in models
        for variant in entry.get("gmacs_variants", [])
    }


def _by_name(key: str, entries: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {
        normalise_name(name): entry
        for entry in entries
        for name in [entry[key], *entry.get("spellings", []), *entry.get("variants", {})]
    }


def _distinct(entries: Iterable[Mapping[str, Any]], key: str) -> list[Mapping[str, Any]]:
    return [entry for _, entry in sorted({entry[key]: entry for entry in entries}.items())]
