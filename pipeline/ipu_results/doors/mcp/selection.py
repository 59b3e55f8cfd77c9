"""Select rows by stated conditions. What is not usable is left out and counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ipu_results.doors.cite.facts import EMULATED, SUBMITTED
from ipu_results.doors.comparison.statements import Row
from ipu_results.doors.mcp.answers import FIGURES, Record, suggest
from ipu_results.doors.mcp.brief import NOT_STATED
from ipu_results.doors.mcp.names import find_chips_of_kind, list_named, name_part
from ipu_results.doors.mcp.refusal import RefusalError, join_refusals
from ipu_results.kit.text import format_count, has_in_a_row
from ipu_results.schema.usable import describe_doubtful, describe_unusable
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

VIEWS_OF = {"energy_per_item_j": "energy_per_item"}  # which computes the figure of a result
# conditions whose words are checked against those of the record
CHECKED = ("platform", "task", "framework", "division", "item", "power_scope")
NUMBERS = ("batch_size", "chip_count", "sequence_length")
SETTINGS = ("packed", "sparsity")  # null is the usual case: not packed, dense
# GC2 and GC200 are two chips, and 2.0 and 2.1 two rounds
VERSIONED = ("framework", "dataset", "sdk_version")
MAX_VALUES = 4  # that a refusal names of a condition
REPEATED = "repeated"  # a second print of a measurement
PER_ITEM = "per-item"  # a latency_basis
NONE = "none"  # a phase that no row states
FAMILIES = ("chip", "phase")  # A100 means A100-40GB, too, but GC means neither GC2 nor GC200
# conditions of which people take one for another
NAMED_BY = ("chip", "platform", "publisher", "submitter")
# whose word may be a part of a name: DGX A100 means `8x A100-40GB (DGX A100)`
NAMED_IN_PART = ("model", "platform", "chip", "publisher", "submitter")
# in the order in which rows are selected: the first that leaves none is named
STATED_CONDITIONS = (
    "model",
    *CHECKED,
    "precision",
    *NUMBERS,
    "variant",
    "input_size",
    "publisher",
    "submitter",
    "sdk_version",
    "phase",
    "benchmark",
    "mlperf_round",
    "chip",
    "dataset",
    "relationship",
    "interest",
    "origin",
    "latency_basis",
    *SETTINGS,
)
# Reasons why no row of an answer is usable, the first that some row has, with its code.
HIDDEN = {
    EMULATED: "emulated-not-measured",
    SUBMITTED: "submitted-not-requested",
    "error": "flagged",
    "suspect": "flagged",
    REPEATED: "no-match",
}


@dataclass(frozen=True)
class Selection:
    """The rows that fit: those to answer with, and those that are not usable and left out."""

    rows: list[Row]
    hidden: list[Row]
    assumed: tuple[str, ...] = ()
    """What a word of the question was taken for, in words."""

    @property
    def left_out(self) -> str:
        """Say how many rows are left out, and why; empty for none."""
        if not self.hidden:
            return ""
        return describe_unusable([row["unusable"] for row in self.rows + self.hidden])

    @property
    def left_out_doubtful(self) -> str:
        """Count the rows that are left out as doubtful; empty for none."""
        return describe_doubtful([row["unusable"] for row in self.hidden])


def select_rows(record: Record, arguments: Row, shown: Collection[str] = ()) -> Selection:
    """Select the usable rows by the arguments of STATED_CONDITIONS.

    Rows that are not usable come for `usable` false, or for a reason in `shown`: emulated ones also
    for `origin` emulated, submitted ones for `relationship` submitted. Raises RefusalError for an
    unknown word and where no row fits.
    """
    stated = {
        name: arguments[name] for name in STATED_CONDITIONS if arguments.get(name) is not None
    }
    reading = _read_conditions(record, stated)
    assumed = tuple(reading.assumed)
    rows = [row for row in record.rows if _fits(row, reading.values)]
    if not rows:
        related = _find_related_models(record, reading)
        if len(related) != 1:
            raise _refuse_conditions(record, reading, related)
        # one other model of that name fits, such as ResNet-50 v2 for resnet50
        [model] = related
        assumed += (f"model {reading.stated['model']}: {model}, the only one of that name",)
        rest = {**reading.values, "model": related}
        rows = [row for row in record.rows if _fits(row, rest)]
    if arguments.get("usable") is False:
        unusable = [row for row in rows if row["unusable"] is not None]
        if not unusable:
            raise RefusalError("no-match", "all rows that fit are usable", "leave out usable")
        return Selection(unusable, [], assumed)
    # a question that names a kind of row asks for it
    accepted = {None, *shown, stated.get("origin"), stated.get("relationship")}
    kept = [row for row in rows if row["unusable"] in accepted]
    hidden = [row for row in rows if row["unusable"] not in accepted]
    if not kept:
        _refuse_hidden(hidden, "fits")
        raise RefusalError("no-match", "no row fits")
    return Selection(kept, hidden, assumed)


@dataclass
class StatedConditions:
    """How the conditions of a question are read, by the column that each is of."""

    values: dict[str, Collection[Any]] = field(default_factory=dict)
    """The values that a row may have."""
    stated: dict[str, Any] = field(default_factory=dict)
    """The words of the question."""
    arguments: dict[str, str] = field(default_factory=dict)
    """The argument that had the word."""
    assumed: list[str] = field(default_factory=list)
    """What an unknown word was taken for."""


def _read_conditions(record: Record, stated: Mapping[str, Any]) -> StatedConditions:
    """Read the conditions of a question.

    An unknown word is taken for the names that it is a part of, else for a name of another
    condition that is not stated. Raises RefusalError that names all words that are neither.
    """
    reading = StatedConditions()
    refusals = []
    for name, value in stated.items():
        column = name
        try:
            values = _find_values(record, name, value)
        except RefusalError as error:
            column, values = _take_for(record, name, value)
            if not values or (column != name and column in stated):
                refusals.append(error)
                continue
            words = list_named(values)
            read_as = words if column == name else f"{column} {words}"
            reading.assumed.append(f"{name} {value}: {read_as}")
        reading.values[column] = values
        reading.stated[column] = value
        reading.arguments[column] = name
    if refusals:
        raise join_refusals(refusals)
    return reading


def _take_for(record: Record, name: str, value: str) -> tuple[str, Collection[Any]]:
    """Return the names that an unknown word may mean, and their column; none where there is none."""
    if name not in NAMED_IN_PART:
        return name, ()
    if name == "chip" and (chips := find_chips_of_kind(record.rows, value)):
        return name, chips
    for column in NAMED_BY if name in NAMED_BY else ():
        known = {row[column] for row in record.rows if row[column] is not None}
        same = {other for other in known if _means(value, other, column)}
        if same and column != name:
            return column, same
    known = {row[name] for row in record.rows if row[name] is not None}
    return name, {other for other in known if name_part(value, other)}


def _fits(row: Row, meant: Mapping[str, Collection[Any]]) -> bool:
    return all(row[name] in values for name, values in meant.items())


def _refuse_conditions(
    record: Record, reading: StatedConditions, related: Sequence[str]
) -> RefusalError:
    """Refuse conditions that no row fits, and name those of which one may be left out.

    Where none is enough, name the ones to leave out together. The model stays: another is another
    question. The first way is in the arguments, as null, which counts as not stated.
    """
    meant = reading.values
    stated = reading.stated
    empty = _find_empty(record.rows, meant)
    others = [f"{name} {value}" for name, value in stated.items() if name != empty]
    among = f" with {', '.join(others)}" if others else ""
    reason = f"no row has {empty} {stated[empty]}{among}"
    if related:
        step = f"state another model of that name: {list_named(related)}"
        return RefusalError("no-match", reason, step, {"model": related[0]})
    ways = []
    for left_out in meant:
        rest = {name: values for name, values in meant.items() if name != left_out}
        rows = [row for row in record.rows if row["usable"] and _fits(row, rest)]
        if rows and rest and left_out != "model":
            ways.append((left_out, rows))
    if ways:
        options = [f"{name} ({_list_values(rows, name)})" for name, rows in ways]
        step = f"leave out one of these, or state what rows have: {'; '.join(options)}"
        return RefusalError("no-match", reason, step, {reading.arguments[ways[0][0]]: None})
    together = _find_left_out(record.rows, meant)
    if not together or len(together) == len(meant):
        return RefusalError("no-match", reason)
    kept = {name: values for name, values in meant.items() if name not in together}
    found = [row for row in record.rows if row["usable"] and _fits(row, kept)]
    options = [f"{name} ({_list_values(found, name)})" for name in together]
    step = f"leave out all of these: {'; '.join(options)}"
    arguments = [reading.arguments[name] for name in together]
    return RefusalError("no-match", reason, step, dict.fromkeys(arguments))


def _find_related_models(record: Record, reading: StatedConditions) -> list[str]:
    """Return other models with the stated word in their names that have rows that fit, the most
    common first.
    """
    word = reading.stated.get("model")
    if word is None:
        return []
    rest = {name: values for name, values in reading.values.items() if name != "model"}
    counts: Counter[str] = Counter()
    for row in record.rows:
        if row["usable"] and _fits(row, rest) and name_part(word, row["model"]):
            counts[row["model"]] += 1
    return [model for model, _ in counts.most_common()]


def _find_empty(rows: Sequence[Row], meant: Mapping[str, Collection[Any]]) -> str:
    """Return the first condition that leaves no row with those before it."""
    kept = rows
    for name, values in meant.items():
        kept = [row for row in kept if row[name] in values]
        if not kept:
            return name
    raise AssertionError("some row fits all conditions")


def _list_values(rows: Sequence[Row], name: str) -> str:
    """Name the values that rows have of a column, the most common first."""
    counts = Counter(row[name] for row in rows)
    named = [str(NOT_STATED if value is None else value) for value, _ in counts.most_common()]
    more = f", {len(named) - MAX_VALUES} more" if len(named) > MAX_VALUES else ""
    return f"{', '.join(named[:MAX_VALUES])}{more}: {format_count(len(rows), 'row')}"


def _find_left_out(rows: Sequence[Row], meant: Mapping[str, Collection[Any]]) -> list[str]:
    """Return the conditions that leave no usable row with those before them."""
    kept = [row for row in rows if row["usable"]]
    left_out = []
    for name, values in meant.items():
        fitting = [row for row in kept if row[name] in values]
        if fitting:
            kept = fitting
        else:
            left_out.append(name)
    return left_out


def _refuse_hidden(rows: Sequence[Row], what: str) -> None:
    """Refuse if there are rows, none of them usable: predictions and users' figures first."""
    reasons = [row["unusable"] for row in rows]
    codes = [code for reason, code in HIDDEN.items() if reason in reasons]
    if not codes:
        return
    words = f"no usable row {what}: {describe_unusable(reasons)}"
    refusals = [RefusalError(code, words) for code in dict.fromkeys(codes)]
    if codes == ["no-match"]:
        refusals = [RefusalError("no-match", words, "state usable false to see them")]
    raise join_refusals(refusals)


def require_figure(record: Record, selection: Selection, figure: str) -> list[Row]:
    """Return the rows that have a figure. Raises RefusalError where none has: null is not zero."""
    rows = _keep_printing(selection.rows, figure)
    if not rows:
        _refuse_hidden(_keep_printing(selection.hidden, figure), f"has {figure}")
        count = len(selection.rows)
        reason = f"none of {count} rows prints {figure}: it is unknown, and it is not zero"
        raise RefusalError("not-printed", reason, _suggest_figures(record, selection.rows, figure))
    return rows


def keep_within_latency(record: Record, selection: Selection, bound: float) -> Selection:
    """Keep the rows that print a latency up to a bound, in ms. Raises RefusalError without one."""
    rows = require_figure(record, selection, "latency_ms")
    batches = [row for row in rows if row["latency_basis"] != PER_ITEM]
    rows = batches or rows  # a latency of an item is within a bound that its batch may exceed
    kept = [row for row in rows if row["latency_ms"] <= bound]
    if not kept:
        least = min(row["latency_ms"] for row in rows)
        reason = f"no row has a latency of at most {bound:g} ms; the lowest is {least:g} ms"
        step = f"state max_latency_ms {least:g} or more"
        raise RefusalError("no-match", reason, step, {"max_latency_ms": least})
    hidden = _keep_printing(selection.hidden, "latency_ms")
    hidden = [row for row in hidden if row["latency_ms"] <= bound]
    return Selection(kept, hidden, selection.assumed)


def _keep_printing(rows: Sequence[Row], figure: str) -> list[Row]:
    return [row for row in rows if row[figure] is not None]


def _suggest_figures(record: Record, rows: Sequence[Row], figure: str) -> str:
    """Name the figures that the rows print, and the view that computes the missing one."""
    printed = [name for name in FIGURES if _keep_printing(rows, name)]
    step = f"these rows print {', '.join(printed)}"
    view = VIEWS_OF.get(figure)
    if view is None:
        return step
    ids = [row["result_id"] for row in rows]
    sql = f"SELECT count(*) FROM {view} WHERE list_contains($1, result_id)"
    [(computed,)] = record.connection.cursor().execute(sql, [ids]).fetchall()
    if not computed:
        return step
    return f"{step}; the view {view} has {figure} computed for {computed} of them, by sql"


def _find_values(record: Record, name: str, value: Any) -> Collection[Any]:
    """Return the values of a column that a condition means, None for a blank.

    Raises RefusalError for an unknown word.
    """
    if name in NUMBERS:
        return {value}
    if name in SETTINGS:
        return {value} if value else {value, None}
    if name == "phase" and value == NONE:
        return {None}
    words = record.words
    vocabulary = load_vocabulary()
    word = value
    if name in ("model", "precision", *CHECKED):
        word = _find_word(record, name, value)
    if name == "model":
        # means itself, else the models of that printed name
        models = words.models.get(word, ())
        return {word} if word in models else models or {word}
    if name == "precision":
        return {vocabulary.precision_names.get(normalise_name(word), word)}
    if name == "chip":
        word = vocabulary.name_chip(word) or word
    if name == "dataset":
        word = words.datasets.get(normalise_name(word), word)
    if name in words.fields:
        word = words.find(name, word) or word  # v2.0 is 2.0
    known = {row[name] for row in record.rows if row[name] is not None}
    values = {other for other in known if _means(word, other, name)}
    if name == "phase" and word in values:
        return {word}
    if not values and (name, value) != ("relationship", SUBMITTED):
        step = _suggest_condition(record, name, value) or suggest(value, known)
        raise RefusalError("unknown-word", f"no row of the record has {name} {value!r}", step)
    return values


def _means(stated: str, known: str, name: str) -> bool:
    """Return whether a word of a condition is the known one, or that without its version, such as
    2.4 of 2.4.0.
    """
    if normalise_name(stated) == normalise_name(known):
        return True
    if name in FAMILIES and has_in_a_row(stated, known):
        return True
    version = r"(\.\d+)*" if stated[-1:].isdigit() else r"\d[\d.]*"
    pattern = re.escape(stated.casefold()) + version
    return name in VERSIONED and bool(re.fullmatch(pattern, known.casefold()))


def _suggest_condition(record: Record, name: str, value: str) -> str:
    """Name the condition to state where a word is one of another, such as a chip for a machine;
    empty for none.
    """
    if name not in NAMED_BY:
        return ""
    for row in record.microbenchmarks:
        if row.get(name) is not None and name_part(value, row[name]):
            return (
                f"{row[name]} has microbenchmarks: sql with FROM microbenchmarks WHERE {name} ="
                f" '{row[name]}'"
            )
    for column in NAMED_BY:
        for row in record.rows:
            word = row[column]
            if column != name and word is not None and _means(value, word, column):
                named = value if column in FAMILIES else word
                return f"{named} is a {column}: state {column} {named}"
    return ""


def _find_word(record: Record, field: str, word: str) -> str:
    known = record.words.find(field, word)
    if known is None:
        step = _suggest_condition(record, field, word)
        if field == "platform" and not step:
            step = "state chip, chip_count and submitter instead: official systems have own names"
        raise RefusalError("unknown-word", record.words.describe_unknown(field, word), step)
    return known
