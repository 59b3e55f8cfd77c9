"""The vocabulary: names, units and table headers of the sources (`schema/vocabulary`), and kinds of
documents.

The kinds are in `schema/kinds.toml`. A table header says which names make up a table; a printed one
is matched with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

from ipu_results.kit.files import SCHEMA, load_schema_file
from ipu_results.kit.physics import GIGA, SECONDS_PER_MINUTE, convert_unit
from ipu_results.schema import table

POWER_SCOPES = {"chip": "device", "card": "board"}  # printed words for what power was measured of
KEPT_FIGURES = ("images", "chips", "n_runs", "n_success", "nodes")
"""Figures that fill no column of `results`."""
NUMERIC_FIELDS = frozenset(("value", *KEPT_FIGURES)) | {
    column.name
    for column in table("results").as_filled().columns
    if column.kind in ("integer", "double")
}


Entry = Mapping[str, Any]

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
    frameworks: Mapping[str, str]
    precision_bits: Mapping[str, tuple[int, int]]
    compute_precisions: Mapping[str, Mapping[str, str]]
    units: Mapping[str, Mapping[str, Unit]]
    metrics: Mapping[str, Mapping[str, str]]
    metadata: Mapping[str, Mapping[str, str]]
    chips: Mapping[str, str]
    chip_refinements: Sequence[Mapping[str, str]]
    chip_ratings: Mapping[str, float]
    benchmarks: Mapping[str, str]
    framework_by_path: Mapping[str, str]
    tasks: Mapping[str, str]
    peaks: Mapping[str, str]
    precision_names: Mapping[str, str]
    remarks: tuple[Entry, ...]
    operation_counts: tuple[Entry, ...]
    derived: Mapping[str, Sequence[Entry]]
    microbenchmarks: Mapping[str, Quantity]
    not_given: Mapping[str, frozenset[str]]
    aggregates: frozenset[str]

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
        own = STATED_UNITS.get(column) or table("results").column(column).unit
        text = text.strip()
        if own is None:
            return Fraction(1), None  # a quality has the unit of its metric
        amount, _, item = text.partition("/") if own == "J" else (text, "", "")
        if printed := self.find_unit(PRINTED_IN.get(column, column), text):
            return (
                Fraction(printed.factor) / (SECONDS_PER_MINUTE if column in PRINTED_IN else 1),
                printed.item,
            )
        if factor := convert_unit(amount, own):
            return factor, name_item(item) if item else None
        item, _, per = text.partition("/")
        return (
            (Fraction(1), name_item(item))
            if item and f"item/{per.replace('sec', 's')}" == own
            else None
        )

    def gives_no_value(self, field: str, text: str) -> bool:
        """Check whether a cell is blank or has a text that stands for a value that the document
        does not give.
        """
        return not text or text in self.not_given["any"] or text in self.not_given.get(field, ())

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
        entries = {"platform": self.platforms, "model": self.models}[key].values()
        return [entry for _, entry in sorted({entry[key]: entry for entry in entries}.items())]


@cache
def load_vocabulary() -> Vocabulary:
    """Load the vocabulary once."""
    platforms = _load("platforms")
    units = _load("units")
    precisions = _load("precisions")
    headers = _load("table_headers")
    operations = _load("operation_counts")["model"]
    counts = tuple(
        {**entry, "variant": variant} for entry in operations for variant in entry["variants"]
    )
    gmacs = {
        (entry["model"], entry["variant"]): round(entry["macs"] / GIGA, GMAC_DIGITS)
        for entry in counts
    }
    # of a text the table `models` has the shortest, which is the first
    first = {model: {"gmacs_per_item": own} for (model, _), own in reversed(gmacs.items())}
    models = [{**entry, **first.get(entry["model"], {})} for entry in _load("models")["model"]]
    return Vocabulary(
        table_headers=tuple(_table_header(entry) for entry in headers["table_header"]),
        platforms=_by_name(
            "platform", (_with_chip(platforms["chips"], entry) for entry in platforms["platform"])
        ),
        models=_by_name("model", models),
        frameworks={
            normalise_name(name): canonical
            for canonical, spellings in _load("frameworks").items()
            for name in [canonical, *spellings]
        },
        precision_bits={name: (x, y) for name, (x, y) in precisions["bits"].items()},
        compute_precisions={
            normalise_name(name): entry for name, entry in precisions["compute"].items()
        },
        units={
            column: {
                name.casefold(): Unit(Decimal(unit["factor"]), unit.get("item"))
                for name, unit in named.items()
            }
            for column, named in units.items()
            if column != "metrics"
        },
        metrics=units["metrics"],
        metadata=headers["metadata"],
        chips={
            normalise_name(name): chip
            for chip in [*platforms["chips"], *platforms["chip_names"]]
            for name in [chip, *platforms["chip_names"].get(chip, ())]
        },
        chip_refinements=platforms["chip_refinements"],
        chip_ratings={
            chip: entry["rated_chip_power_w"]
            for chip, entry in platforms["chips"].items()
            if "rated_chip_power_w" in entry
        },
        benchmarks={
            name: entry["model"]
            for name, entry in _load("mlperf")["benchmarks"].items()
            if "model" in entry
        },
        framework_by_path=headers["comparators"]["framework_by_path"],
        tasks=headers["comparators"]["tasks"],
        peaks=precisions["peaks"],
        precision_names={
            normalise_name(spelling): name
            for name, spellings in precisions["names"].items()
            for spelling in [name, *spellings]
        },
        remarks=tuple(_load("remarks")["remark"]),
        operation_counts=counts,
        derived=_load("derived"),
        microbenchmarks={
            name: Quantity(
                entry["unit"], {unit: Decimal(factor) for unit, factor in entry["units"].items()}
            )
            for name, entry in _load("microbenchmarks")["metrics"].items()
        },
        not_given={field: frozenset(texts) for field, texts in headers["not_given"].items()},
        aggregates=frozenset(map(normalise_name, headers["aggregates"])),
    )


def read_vocabulary_files() -> list[tuple[str, bytes]]:
    """Return name and bytes of every vocabulary file, sorted, for the digest of a build."""
    return [
        (path.name, path.read_bytes()) for path in sorted((SCHEMA / "vocabulary").glob("*.toml"))
    ]


def _load(name: str) -> dict[str, Any]:
    return load_schema_file(f"vocabulary/{name}.toml")


def _table_header(entry: Entry) -> TableHeader:
    identity = entry.get("identity")
    converted = {
        "fields": tuple(entry["fields"].items()),
        "identity": None if identity is None else tuple(identity),
    }
    return TableHeader(**{**entry, **converted})


def _with_chip(chips: Mapping[str, Entry], entry: Entry) -> Entry:
    """Add what is known of the chip; the platform's own entry wins."""
    return {**chips.get(entry["chip"], {}), **entry}


def _by_name(key: str, entries: Iterable[Entry]) -> dict[str, Entry]:
    return {
        normalise_name(name): entry
        for entry in entries
        for name in [entry[key], *entry.get("spellings", []), *entry.get("variants", {})]
    }


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


UNIT = re.compile(r"\s*[(\[]\s*([^()\[\]]*?)\s*[)\]]\s*$")
SLASH = re.compile(r"\s*/\s*")
MIN_NAMES_OF_A_BROKEN_HEADER = 3


@dataclass(frozen=True, slots=True)
class TableHeader:
    """The header of one published table."""

    reader: str
    """Kind of the documents that have it."""
    table: str
    fields: tuple[tuple[str, str], ...]
    """Printed names without units, each with the field that it fills."""
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

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.fields)

    @property
    def keys(self) -> frozenset[str]:
        """Names in the form in which they are compared."""
        return frozenset(map(normalise_header, self.names))

    def lists(self, platform: str) -> bool:
        """Check whether a machine belongs in this table."""
        return self.platforms is not None and re.search(self.platforms, platform, re.I) is not None

    def field_of(self, header: str) -> str:
        """Return the field that a printed name fills."""
        return _map_fields(self.fields)[normalise_header(header)]


@lru_cache(maxsize=4096)
def _map_fields(fields: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {normalise_header(name): field for name, field in fields}


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
    texts = [
        text for text, field in zip(texts, fields, strict=True) if field in NUMERIC_FIELDS and text
    ]
    others = [text for text in texts if not UNITS.fullmatch(text)]
    return len(others) < len(texts) and not any(any(map(str.isdecimal, text)) for text in others)


def find_headers(columns: Sequence[str], headers: Iterable[TableHeader]) -> list[TableHeader]:
    """Return the headers whose names are exactly those of the printed `columns`, in any order."""
    names = [normalise_header(cell) for cell in columns]
    if len(set(names)) != len(names):
        return []
    return [header for header in headers if header.keys == frozenset(names)]


def explain_mismatch(columns: Sequence[str], headers: Iterable[TableHeader]) -> str | None:
    """Explain what is wrong with printed columns that are nearly one of `headers`; None if they
    resemble none.
    """
    names = [normalise_header(cell) for cell in columns if cell]
    closest = max(headers, key=lambda header: len(header.keys & set(names)), default=None)
    if closest is None or len(closest.keys & set(names)) < min(
        MIN_NAMES_OF_A_BROKEN_HEADER, len(closest.keys)
    ):
        return None
    missing = [name for name in closest.names if normalise_header(name) not in names]
    unknown = [cell for cell in columns if cell and normalise_header(cell) not in closest.keys]
    repeated = sorted(
        {cell for cell in columns if cell and names.count(normalise_header(cell)) > 1}
    )
    parts = [
        f"{what} {', '.join(map(repr, words))}"
        for what, words in (("lacks", missing), ("has unknown", unknown), ("repeats", repeated))
        if words
    ]
    if "" in columns:
        parts.append("has a column without a name")
    return f"the header {' and '.join(parts)}" if parts else None
