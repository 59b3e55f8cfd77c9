"""The vocabulary: names, units and table headers of the sources (`schema/vocabulary`), and kinds of
documents.

The kinds are in `schema/kinds.toml`. A table header says which names make up a table; a printed one
is matched with it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

from ipu_results.kit.files import SCHEMA, load_schema_file
from ipu_results.kit.physics import GIGA, SECONDS_PER_MINUTE, convert_unit
from ipu_results.schema import Entry, table

POWER_SCOPES = {"chip": "device", "card": "board"}  # printed words for what power was measured of
KEPT_FIGURES = ("images", "chips", "n_runs", "n_success", "nodes")
"""Figures that fill no column of `results`."""
NUMERIC_FIELDS = {"value", *KEPT_FIGURES}
for column in table("results").as_filled().columns:
    if column.kind in ("integer", "double"):
        NUMERIC_FIELDS.add(column.name)

Names = Mapping[str, str]
UNIT_TABLES = load_schema_file("vocabulary/units.toml")
UNITS_LIKE: Names = UNIT_TABLES["like"]
"""The column with the same units as another."""
NO_COLUMNS = ("like", "metrics")  # tables that are no column's units
MEASURED = (*(name for name in UNIT_TABLES if name not in NO_COLUMNS), *UNITS_LIKE)
"""The columns with units."""

# a derived column and the printed one that it is made of
PRINTED_IN = {"minutes": "time_to_train_s"}
STATED_UNITS = {"minutes": "min"}
ITEMS = {"img": "image", "seq": "sequence"}
GMAC_DIGITS = 3  # behind the point, as the messages of R21 print them too
# of joules, watts and seconds: no unit of the vocabulary is in mega
MEGA = re.compile(r"M(?i:[jw]|s(?:ecs?)?\b)")


def name_item(text: str) -> str:
    """Return the name of an item: image for img and images."""
    item = text.removesuffix("s")
    return ITEMS.get(item, item)


def normalise_name(name: str) -> str:
    """Return a name without case, blanks, hyphens and underscores, the form in which names are
    compared.
    """
    return re.sub(r"[\s\-_]+", "", name).casefold()


@dataclass(frozen=True, slots=True)
class Unit:
    """A printed unit: the factor to the column's own unit, and the item it names, if any."""

    factor: Decimal
    item: str | None


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a microbenchmark measures: its unit here, and the factor to it from each printed unit,
    in its exact case.
    """

    unit: str
    factors: Mapping[str, Decimal]


@dataclass(frozen=True)
class Vocabulary:
    """The names and units of the sources.

    `platforms`, `models`, `frameworks`, `compute_precisions` and `chips` are keyed by normalised
    printed name. `precision_bits` maps a printed precision to its bits of activations and weights.
    `units` are keyed by column and printed unit, `metrics` by the printed metric of a comparator.
    `metadata` maps the labels of a document kind to fields. `benchmarks` maps an MLPerf folder to
    its model. `peaks` names the column of `platforms` that bounds work at a precision.
    `precision_names` maps a precision, normalised, to the name that all its spellings share.
    `remarks` are the rows of `comparison_remarks`, `operation_counts` those
    of the table of that name. `derived` holds the lists that derived columns rest on.
    `microbenchmarks` maps the metric of a microbenchmark to its units. `not_given` is what a
    document prints where it gives no value, for a field or "any". `aggregates` are the normalised
    words that a row of totals has in place of a model.
    """

    table_headers: tuple[TableHeader, ...]
    platforms: Mapping[str, Entry]
    models: Mapping[str, Entry]
    frameworks: Names
    precision_bits: Mapping[str, tuple[int, int]]
    compute_precisions: Mapping[str, Names]
    units: Mapping[str, Mapping[str, Unit]]
    metrics: Mapping[str, Names]
    metadata: Mapping[str, Names]
    chips: Names
    chip_refinements: Sequence[Names]
    chip_ratings: Mapping[str, float]
    benchmarks: Names
    framework_by_path: Names
    tasks: Names
    peaks: Names
    precision_names: Names
    remarks: Sequence[Entry]
    operation_counts: Sequence[Entry]
    derived: Mapping[str, Sequence[Entry]]
    microbenchmarks: Mapping[str, Quantity]
    not_given: Mapping[str, Collection[str]]
    aggregates: Collection[str]

    def headers_of(self, reader: str) -> tuple[TableHeader, ...]:
        """Return the headers of a document kind."""
        return tuple(header for header in self.table_headers if header.reader == reader)

    def header_of(self, reader: str, table: str) -> TableHeader:
        """Return the header of one table of a document kind."""
        return next(header for header in self.headers_of(reader) if header.table == table)

    def find_unit(self, column: str, printed: str) -> Unit | None:
        """Return the unit of a column that is printed so, in any case but that of a prefix: MJ is
        not mJ.
        """
        text = printed.strip()
        return None if MEGA.match(text) else self.units.get(column, {}).get(text.casefold())

    def parse_stated_unit(self, column: str, text: str) -> tuple[Fraction, str | None] | None:
        """Return the factor from a unit that a user states to that of a column, and the item that
        it names.
        """
        unit = STATED_UNITS.get(column) or table("results").column(column).unit
        if unit is None:
            return Fraction(1), None  # a quality has the unit of its metric
        text = text.strip()
        # as a source prints it, before what only users write
        if printed := self.find_unit(PRINTED_IN.get(column, column), text):
            factor = Fraction(printed.factor)
            if column in PRINTED_IN:
                factor /= SECONDS_PER_MINUTE
            return factor, printed.item
        amount, _, item = text.partition("/")
        if unit != "J":  # only an energy is stated for an item: mJ/image
            amount = text
            item = ""
        if converted := convert_unit(amount, unit):
            return converted, name_item(item) if item else None
        # a rate of any item: a user may count what no source does
        item, _, per = text.partition("/")
        if item and f"item/{per.replace('sec', 's')}" == unit:
            return Fraction(1), name_item(item)
        return None

    def gives_no_value(self, field: str, text: str) -> bool:
        """Check whether a cell is blank or has a text that stands for a value that the document
        does not give.
        """
        return not text or text in self.not_given["any"] or text in self.not_given.get(field, ())

    @property
    def platform_names(self) -> Names:
        """The platform by each normalised printed name."""
        return {name: str(entry["platform"]) for name, entry in self.platforms.items()}

    @property
    def model_names(self) -> Names:
        """The model, as it is printed, by each normalised spelling."""
        return {name: str(entry["model"]) for name, entry in self.models.items()}

    def renames_model(self, text: str) -> bool:
        """Check whether a network has another name here than a source prints."""
        entry = self.models.get(normalise_name(text))
        return entry is not None and normalise_name(entry["model"]) != normalise_name(text)

    def name_chip(self, text: str | None) -> str | None:
        """Return the one name of a chip, None for a text that stands for no chip."""
        if self.gives_no_value("chip", text or ""):
            return None
        return self.chips.get(normalise_name(text or ""), text)

    def refine_chip(self, text: str | None, memory: str | None, path: str) -> str | None:
        """Return the one name of the chip of an official entry: by its text, its printed memory and
        the name of its system in the entry's path.
        """
        chip = self.name_chip(text)
        for entry in self.chip_refinements:
            is_alike = (memory or "").startswith(entry["memory"])
            if chip == entry["chip"] and is_alike and f"/{entry['system']}" in path:
                return entry["refined"]
        return chip

    def name_platform(self, text: str | None) -> str | None:
        """Return the one name of a machine, None for a text that stands for no machine."""
        if self.gives_no_value("platform", text or ""):
            return None
        entry = self.platforms.get(normalise_name(text or ""))
        return text if entry is None else entry["platform"]

    def find_rate_item(self, text: str) -> str | None:
        """Return the item of a cell that holds only the unit of a rate, such as `frames/s`."""
        unit = self.find_unit("throughput", text)
        return unit.item if unit else None

    def list_entries(self, key: str) -> list[Entry]:
        """Return the entries of `platform` or `model`, once each, sorted by canonical name."""
        entries = self.platforms if key == "platform" else self.models
        by_name = {entry[key]: entry for entry in entries.values()}
        return [by_name[name] for name in sorted(by_name)]


@cache
def load_vocabulary() -> Vocabulary:
    """Load the vocabulary once."""
    platforms = _load("platforms")
    chips = platforms["chips"]
    units = _load("units")
    precisions = _load("precisions")
    headers = _load("table_headers")
    operation_counts = _list_operation_counts()
    metrics = units.pop("metrics")  # which are no units
    del units["like"]
    return Vocabulary(
        table_headers=tuple(map(_build_header, headers["table_header"])),
        # what is known of the chip; the platform's own entry wins
        platforms=_index_entries(
            "platform", [{**chips.get(own["chip"], {}), **own} for own in platforms["platform"]]
        ),
        models=_index_entries("model", _list_models(operation_counts)),
        frameworks=_index_spellings(_load("frameworks")),
        precision_bits={name: tuple(bits) for name, bits in precisions["bits"].items()},
        compute_precisions={
            normalise_name(name): entry for name, entry in precisions["compute"].items()
        },
        metrics=metrics,
        units=_build_all_units(units),
        metadata=headers["metadata"],
        chips=_index_spellings({**dict.fromkeys(chips, ()), **platforms["chip_names"]}),
        chip_refinements=platforms["chip_refinements"],
        chip_ratings=_select(chips, "rated_chip_power_w"),
        benchmarks=_select(_load("mlperf")["benchmarks"], "model"),
        framework_by_path=headers["comparators"]["framework_by_path"],
        tasks=headers["comparators"]["tasks"],
        peaks=precisions["peaks"],
        precision_names=_index_spellings(precisions["names"]),
        remarks=_load("remarks")["remark"],
        operation_counts=operation_counts,
        derived=_load("derived"),
        microbenchmarks=_build_quantities(_load("microbenchmarks")["metrics"]),
        not_given=headers["not_given"],
        aggregates=set(map(normalise_name, headers["aggregates"])),
    )


def read_vocabulary_files() -> list[tuple[str, bytes]]:
    """Return name and bytes of every vocabulary file, sorted, for the digest of a build."""
    paths = sorted((SCHEMA / "vocabulary").glob("*.toml"))
    return [(path.name, path.read_bytes()) for path in paths]


def _load(name: str) -> dict[str, Any]:
    return load_schema_file(f"vocabulary/{name}.toml")


def _build_header(entry: Entry) -> TableHeader:
    values = {**entry, "fields": tuple(entry["fields"].items())}
    for name in ("identity", "required"):
        if name in entry:
            values[name] = tuple(entry[name])
    return TableHeader(**values)


def _build_all_units(units: Mapping[str, Mapping[str, Entry]]) -> dict[str, dict[str, Unit]]:
    """Index the units of each column, and of those that have the units of another."""
    built = {column: _build_units(printed) for column, printed in units.items()}
    for column, other in UNITS_LIKE.items():
        built[column] = built[other]
    return built


def _build_units(printed: Mapping[str, Entry]) -> dict[str, Unit]:
    units = {}
    for name, entry in printed.items():
        # a decimal: the factor of a printed figure must be exact
        units[name.casefold()] = Unit(Decimal(entry["factor"]), entry.get("item"))
    return units


def _build_quantities(metrics: Mapping[str, Entry]) -> dict[str, Quantity]:
    quantities = {}
    for name, entry in metrics.items():
        factors = {unit: Decimal(factor) for unit, factor in entry["units"].items()}
        quantities[name] = Quantity(entry["unit"], factors)
    return quantities


def _list_operation_counts() -> list[Entry]:
    """Return the operations of each variant of each model."""
    counts: list[Entry] = []
    for entry in _load("operation_counts")["model"]:
        for variant in entry["variants"]:
            counts.append({**entry, "variant": variant})
    return counts


def _list_models(operation_counts: Iterable[Entry]) -> list[Entry]:
    """Return the models, each with the operations of its first variant.

    Of a text that is the one with the shortest sequence.
    """
    gmacs: dict[str, Entry] = {}
    for entry in operation_counts:
        own = {"gmacs_per_item": round(entry["macs"] / GIGA, GMAC_DIGITS)}
        gmacs.setdefault(entry["model"], own)
    return [{**entry, **gmacs.get(entry["model"], {})} for entry in _load("models")["model"]]


def _index_entries(key: str, entries: Iterable[Entry]) -> dict[str, Entry]:
    """Index entries by their name, spellings and variants, normalised."""
    index = {}
    for entry in entries:
        for name in (entry[key], *entry.get("spellings", ()), *entry.get("variants", ())):
            index[normalise_name(name)] = entry
    return index


def _index_spellings(spellings_of: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Map each name and its spellings, normalised, to the name."""
    index = {}
    for name, spellings in spellings_of.items():
        for spelling in (name, *spellings):
            index[normalise_name(spelling)] = name
    return index


def _select(entries: Mapping[str, Entry], key: str) -> dict[str, Any]:
    """Return one value of the entries that have it."""
    return {name: entry[key] for name, entry in entries.items() if key in entry}


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """One kind of document; see the head of `schema/kinds.toml` for the fields."""

    name: str
    format: str
    results: str | None = None
    table: str | None = None
    into: str = "results"
    local: bool = False
    aliases: Sequence[str] = ()

    @property
    def is_ingested(self) -> bool:
        """Whether `ingest` accepts it; the others are for `extract` alone."""
        return self.results is not None or self.table is not None


KINDS = {
    name: DocumentKind(name, **entry) for name, entry in load_schema_file("kinds.toml").items()
}
ALIASES: Mapping[str, str] = {alias: name for name, kind in KINDS.items() for alias in kind.aliases}
"""The kind of each former name, which sidecars and `--kind` may still use."""


# brackets at the end alone: `Latency (ms) per batch` has no unit
UNIT = re.compile(r"\s*[(\[]\s*([^()\[\]]*?)\s*[)\]]\s*$")
SLASH = re.compile(r"\s*/\s*")
# fewer names in common are chance: many tables have a model and a platform
MIN_NAMES_OF_A_BROKEN_HEADER = 3


@dataclass(frozen=True, slots=True)
class TableHeader:
    """The header of one published table."""

    reader: str
    """Kind of the documents that have it."""
    table: str
    fields: tuple[tuple[str, str], ...]
    """Printed names, each with the field that it fills; one with its unit wins over one without."""
    task: str
    platforms: str | None = None
    """Pattern of the machines in the table: it decides between two tables with the same header."""
    benchmark: str | None = None
    strict: bool = False
    """Whether its rows must use the words of the vocabulary."""
    result_table: str | None = None
    """Table name of its results, if several printed tables make one result."""
    joins: bool = False
    """Whether several rows of one configuration make one result."""
    derived: bool = False
    """Whether we computed its figures."""
    identity: tuple[str, ...] | None = None
    """Fields that identify a row; all but figures if None."""
    required: tuple[str, ...] | None = None
    """Printed names that the table must have, if it may lack the others."""
    items: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    """What the figures of a column count, by its name with its unit, where that does not say it."""
    units: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    """The unit of a column, or the metric of a quality, by its printed name, which has none."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.fields)

    @property
    def keys(self) -> frozenset[str]:
        """Names in the form in which they are compared."""
        return frozenset(map(normalise_header, self.names))

    def fits(self, names: Collection[str]) -> bool:
        """Check whether names, in the form in which they are compared, can make up this header."""
        if self.required is None:
            return self.keys == set(names)
        needed = set(map(normalise_header, self.required))
        return self.keys.issuperset(names) and needed.issubset(names)

    def item_of(self, header: str) -> str | None:
        """Return what the figures under a printed name count, None if its unit says it."""
        return self.items.get(header)

    def lists(self, platform: str) -> bool:
        """Check whether a machine belongs in this table."""
        return self.platforms is not None and re.search(self.platforms, platform, re.I) is not None

    def field_of(self, header: str) -> str:
        """Return the field that a printed name fills."""
        fields = _map_fields(self.fields)
        name = normalise_header(header)
        return fields.get((name, _normalise_unit(header))) or fields[name, ""]


# every document of a kind has the same headers
@lru_cache(maxsize=4096)
def _map_fields(fields: tuple[tuple[str, str], ...]) -> dict[tuple[str, str], str]:
    """Map name and unit of each column to its field, and its name alone where no other has it."""
    mapped = {(normalise_header(name), _normalise_unit(name)): field for name, field in fields}
    for name, field in fields:
        mapped.setdefault((normalise_header(name), ""), field)
    return mapped


def _normalise_unit(header: str) -> str:
    return (parse_unit(header) or "").casefold()


# the headers of one document are compared with those of every table
@lru_cache(maxsize=4096)
def normalise_header(header: str) -> str:
    """Return a header name without its unit, in the form in which names are compared."""
    return re.sub(r"[\s\-_]+", " ", UNIT.sub("", header)).strip().casefold()


def strip_unit(header: str) -> str:
    """Return a header name as printed, without its unit."""
    return UNIT.sub("", header).strip()


def parse_unit(header: str) -> str | None:
    """Return the unit in the last brackets of a header, on one line: `(items/ sec)` is wrapped."""
    match = UNIT.search(header)
    return SLASH.sub("/", match[1]) if match else None


UNITS = re.compile(
    r"[(\[]?(?:in )?(?:[nuµμm]?s|m?secs?|mins?|hours?|[km]?w|[kmg]|[×x]"
    r" ?1[.,]?000|(?:thousand|million|billion)s?"
    r"|[\w ]+/ ?(?:s|sec|second|w|watt|j))[)\]]?",
    re.I,
)
"""What a row of units has in place of a figure."""


def has_units(texts: Iterable[str], fields: Iterable[str]) -> bool:
    """Check whether a row has units or scales in place of figures, and no figure: it is about the
    figures below it.
    """
    has_unit = False
    for text, field in zip(texts, fields, strict=True):
        if field not in NUMERIC_FIELDS or not text:
            continue
        if UNITS.fullmatch(text):
            has_unit = True
        elif any(map(str.isdecimal, text)):
            return False
    return has_unit


def find_headers(columns: Sequence[str], headers: Iterable[TableHeader]) -> list[TableHeader]:
    """Return the headers that the names of the printed `columns` make up, in any order."""
    names = set(map(normalise_header, columns))
    found = [header for header in headers if header.fits(names)]
    # a name that occurs twice leaves open which column it is
    if len(names) == len(columns):
        return found
    # a page that changed the unit of a column has both columns in the history of its rows
    distinct = {(normalise_header(name), parse_unit(name)) for name in columns}
    if len(distinct) < len(columns):
        return []
    return [header for header in found if header.required is not None]


def explain_mismatch(columns: Sequence[str], headers: Iterable[TableHeader]) -> str | None:
    """Explain what is wrong with printed columns that are nearly one of `headers`; None if they
    resemble none.
    """
    printed = list(filter(None, columns))
    names = list(map(normalise_header, printed))

    def count_shared(header: TableHeader) -> int:
        return len(header.keys.intersection(names))

    closest = max(headers, key=count_shared, default=None)
    if closest is None:
        return None
    if count_shared(closest) < min(MIN_NAMES_OF_A_BROKEN_HEADER, len(closest.keys)):
        return None
    needed = closest.names if closest.required is None else closest.required
    missing = [name for name in needed if normalise_header(name) not in names]
    unknown = []
    repeated = set()
    for cell, name in zip(printed, names, strict=True):
        if name not in closest.keys:
            unknown.append(cell)
        if names.count(name) > 1:
            repeated.add(cell)
    faults = {"lacks": missing, "has unknown": unknown, "repeats": sorted(repeated)}
    parts = []
    for fault, cells in faults.items():
        if cells:
            parts.append(f"{fault} {', '.join(map(repr, cells))}")
    if "" in columns:
        parts.append("has a column without a name")
    return f"the header {' and '.join(parts)}" if parts else None
