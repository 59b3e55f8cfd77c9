"""Select rows by stated conditions. What is not usable is left out and counted."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ipu_results.doors.cite.facts import EMULATED, SUBMITTED
from ipu_results.doors.comparison.statements import Row
from ipu_results.doors.mcp.answers import FIGURES, Record
from ipu_results.doors.mcp.names import (
    find_chips_of_kind,
    is_part_of_name,
    list_by_count,
    list_first,
    name_value,
    suggest,
)
from ipu_results.doors.mcp.refusal import RefusalError, join_refusals
from ipu_results.doors.mcp.rows import get_column, keep_stating, list_values
from ipu_results.kit.text import format_count, has_in_a_row
from ipu_results.schema.usable import describe_doubtful, describe_unusable
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

# the view that computes a figure for results that do not print it
COMPUTED_IN = {"energy_per_item_j": "energy_per_item"}
# conditions whose words are checked against those of the record
CHECKED = ("platform", "task", "framework", "division", "item", "power_scope")
NUMBERS = ("batch_size", "chip_count", "sequence_length")
SETTINGS = ("packed", "sparsity")  # a row that states none is not packed, and dense
# conditions of which a word without a version means all versions
VERSIONED = ("framework", "dataset", "sdk_version")
MAX_VALUES = 4  # that a refusal names of a condition
REPEATED = "repeated"  # a second print of a measurement
PER_ITEM = "per-item"  # a latency_basis
NO_PHASE = "none"  # the word for rows that state no phase
# Conditions of which a word means all names that have it as a part: A100 means A100-40GB, too, but
# GC means neither GC2 nor GC200.
FAMILIES = ("chip", "phase")
# conditions of which people take one for another
CONFUSED = ("chip", "platform", "publisher", "submitter")
# Conditions of which an unknown word is looked for in all names: DGX A100 means
# `8x A100-40GB (DGX A100)`.
NAMED_IN_PART = ("model", *CONFUSED)
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
# the codes of a refusal where no row is usable, by the reasons of the rows: all, in this order
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
    assumed: Sequence[str] = ()
    """What a word of the question was taken for, in words."""

    @property
    def left_out(self) -> str:
        """Say how many rows are left out, and why; empty for none."""
        if not self.hidden:
            return ""
        return describe_unusable(get_column(self.rows + self.hidden, "unusable"))

    @property
    def left_out_doubtful(self) -> str:
        """Count the rows that are left out as doubtful; empty for none."""
        return describe_doubtful(get_column(self.hidden, "unusable"))


class StatedCondition(NamedTuple):
    """A condition of a question: the argument that states it, its word, and the values that a row
    may have.
    """

    argument: str
    word: Any
    values: Collection[Any]


Conditions = Mapping[str, StatedCondition]
"""The conditions of a question by the column that each is of."""


def select_rows(record: Record, arguments: Row, shown: Collection[str] = ()) -> Selection:
    """Select usable rows by the arguments of STATED_CONDITIONS; with `usable` false the others.

    Rows that are not usable for a reason in `shown` are selected, too, and so are emulated ones for
    `origin` emulated and submitted ones for `relationship` submitted. Raises RefusalError for an
    unknown word and where no row fits.
    """
    stated = {}
    for name in STATED_CONDITIONS:
        if arguments.get(name) is not None:
            stated[name] = arguments[name]
    conditions, assumed = _read_conditions(record, stated)
    rows = _keep_fitting(record.rows, conditions)
    if not rows:
        related = _find_related_models(record, conditions)
        if len(related) != 1:
            raise _refuse_conditions(record, conditions, related)
        # one other model of that name fits, such as ResNet-50 v2 for resnet50
        [model] = related
        assumed.append(f"model {stated['model']}: {model}, the only one of that name")
        conditions["model"] = StatedCondition("model", model, related)
        rows = _keep_fitting(record.rows, conditions)
    if arguments.get("usable") is False:
        unusable = [row for row in rows if not row["usable"]]
        if not unusable:
            raise RefusalError("no-match", "all rows that fit are usable", "leave out usable")
        return Selection(unusable, [], assumed)
    # Usable rows have no reason. A question that states emulated or submitted asks for such rows.
    accepted = {None, *shown, stated.get("origin"), stated.get("relationship")}
    selection = Selection([], [], assumed)
    for row in rows:
        if row["unusable"] in accepted:
            selection.rows.append(row)
        else:
            selection.hidden.append(row)
    if not selection.rows:
        _raise_if_hidden(selection.hidden, "fits")
        raise RefusalError("no-match", "no row fits")  # for a reason without a code of its own
    return selection


def _read_conditions(
    record: Record, stated: Mapping[str, Any]
) -> tuple[dict[str, StatedCondition], list[str]]:
    """Read the conditions of a question, and say what unknown words were taken for.

    An unknown word is taken for a kind of chip, else for a name of another condition that is not
    stated, else for the names that it is a part of. Raises RefusalError that names all others.
    """
    conditions = {}
    assumed = []
    refusals = []
    for name, word in stated.items():
        try:
            conditions[name] = StatedCondition(name, word, _find_values(record, name, word))
        except RefusalError as error:
            column, values = _take_for(record, name, word)
            is_stated_itself = column != name and column in stated
            if not values or is_stated_itself:
                refusals.append(error)
                continue
            conditions[column] = StatedCondition(name, word, values)
            meaning = list_first(sorted(values))
            if column != name:
                meaning = f"{column} {meaning}"
            assumed.append(f"{name} {word}: {meaning}")
    if refusals:
        raise join_refusals(refusals)
    return conditions, assumed


def _take_for(record: Record, name: str, word: str) -> tuple[str, list[str]]:
    """Return the column that an unknown word of a condition is of, and the names that it may mean.

    Where it means nothing, the names are empty.
    """
    if name not in NAMED_IN_PART:
        return name, []
    known = list_values(record.rows, name)
    if name == "chip":
        chips = find_chips_of_kind(known, word)
        if chips:
            return name, chips
    column, meant = _find_elsewhere(record, name, word)
    if meant:
        return column, meant
    return name, [other for other in known if is_part_of_name(word, other)]


def _find_elsewhere(record: Record, name: str, word: str) -> tuple[str, list[str]]:
    """Return the column of CONFUSED, other than the stated one, that has a word, and the names that
    it means there; no names where none has.
    """
    if name in CONFUSED:
        for column in CONFUSED:
            meant = _find_meant(record, column, word)
            if meant and column != name:
                return column, meant
    return name, []


def _keep_fitting(rows: Sequence[Row], conditions: Conditions) -> list[Row]:
    kept = list(rows)
    for column, condition in conditions.items():
        kept = [row for row in kept if row[column] in condition.values]
    return kept


def _leave_out(conditions: Conditions, columns: Collection[str]) -> Conditions:
    return {column: each for column, each in conditions.items() if column not in columns}


def _refuse_conditions(
    record: Record, conditions: Conditions, related: Sequence[str]
) -> RefusalError:
    """Refuse conditions that no row fits, and name those of which one may be left out.

    Where none is enough, name the ones to leave out together. The model stays: another is another
    question. The arguments that would pass have null for what is left out.
    """
    [empty, *_] = _list_emptying(record.rows, conditions)
    others = _leave_out(conditions, [empty])
    stated = ", ".join(f"{column} {each.word}" for column, each in others.items())
    among = f" with {stated}" if stated else ""
    reason = f"no row has {empty} {conditions[empty].word}{among}"
    if related:
        step = f"state another model of that name: {list_first(related)}"
        return RefusalError("no-match", reason, step, {"model": related[0]})
    if not others:
        return RefusalError("no-match", reason)
    # the rows that fit without a column
    without = {}
    for column in conditions:
        rows = _keep_fitting(record.usable_rows, _leave_out(conditions, [column]))
        if rows and column != "model":
            without[column] = rows
    if without:
        what = "one of these, or state what rows have"
        [one, *_] = without
        left_out = [one]
    else:
        what = "all of these"
        left_out = _list_emptying(record.usable_rows, conditions)
        if len(left_out) == len(conditions):
            return RefusalError("no-match", reason)
        rows = _keep_fitting(record.usable_rows, _leave_out(conditions, left_out))
        without = dict.fromkeys(left_out, rows)
    options = [f"{column} ({_count_values(rows, column)})" for column, rows in without.items()]
    step = f"leave out {what}: {'; '.join(options)}"
    arguments = {conditions[column].argument: None for column in left_out}
    return RefusalError("no-match", reason, step, arguments)


def _find_related_models(record: Record, conditions: Conditions) -> list[str]:
    """Return other models with the stated word in their names that have rows that fit, the most
    common first.
    """
    if "model" not in conditions:
        return []
    rest = _leave_out(conditions, ["model"])
    models = get_column(_keep_fitting(record.usable_rows, rest), "model")
    word = conditions["model"].word
    return list_by_count(model for model in models if is_part_of_name(word, model))


def _list_emptying(rows: Sequence[Row], conditions: Conditions) -> list[str]:
    """Apply one condition after the other, and return those that would leave no row: they are
    skipped.
    """
    kept = rows
    emptying = []
    for column, condition in conditions.items():
        fitting = _keep_fitting(kept, {column: condition})
        if fitting:
            kept = fitting
        else:
            emptying.append(column)
    return emptying


def _count_values(rows: Sequence[Row], column: str) -> str:
    """Name the values that rows have of a column, the most common first, and count the rows."""
    names = list_by_count(map(name_value, get_column(rows, column)))
    return f"{list_first(names, MAX_VALUES)}: {format_count(len(rows), 'row')}"


def _raise_if_hidden(rows: Sequence[Row], what: str) -> None:
    """Raise RefusalError if some row is not usable for a reason in HIDDEN."""
    reasons = get_column(rows, "unusable")
    codes = [code for reason, code in HIDDEN.items() if reason in reasons]
    if not codes:
        return
    words = f"no usable row {what}: {describe_unusable(reasons)}"
    step = ""  # that of each code
    if codes == [HIDDEN[REPEATED]]:
        step = "state usable false to see them"
    raise join_refusals([RefusalError(code, words, step) for code in codes])


def require_figure(record: Record, selection: Selection, figure: str) -> list[Row]:
    """Return the rows that have a figure. Raises RefusalError where none has: null is not zero."""
    rows = keep_stating(selection.rows, figure)
    if not rows:
        _raise_if_hidden(keep_stating(selection.hidden, figure), f"has {figure}")
        count = len(selection.rows)
        reason = f"none of {count} rows prints {figure}: it is unknown, and it is not zero"
        raise RefusalError("not-printed", reason, _suggest_figures(record, selection.rows, figure))
    return rows


def keep_within_latency(record: Record, selection: Selection, bound: float) -> Selection:
    """Keep the rows that print a latency up to a bound, in ms. Raises RefusalError without one."""
    rows = require_figure(record, selection, "latency_ms")
    batches = [row for row in rows if row["latency_basis"] != PER_ITEM]
    if batches:
        # an item may be within a bound that its batch exceeds
        rows = batches
    kept = _keep_up_to(rows, bound)
    if not kept:
        least = min(get_column(rows, "latency_ms"))
        reason = f"no row has a latency of at most {bound:g} ms; the lowest is {least:g} ms"
        step = f"state max_latency_ms {least:g} or more"
        raise RefusalError("no-match", reason, step, {"max_latency_ms": least})
    hidden = _keep_up_to(keep_stating(selection.hidden, "latency_ms"), bound)
    return Selection(kept, hidden, selection.assumed)


def _keep_up_to(rows: Sequence[Row], bound: float) -> list[Row]:
    return [row for row in rows if row["latency_ms"] <= bound]


def list_printed(rows: Sequence[Row]) -> str:
    """Name the figures that the rows print."""
    printed = ", ".join(name for name in FIGURES if keep_stating(rows, name))
    return f"these rows print {printed}"


def _suggest_figures(record: Record, rows: Sequence[Row], figure: str) -> str:
    """Name the figures that the rows print, and the view that computes the missing one."""
    step = list_printed(rows)
    if figure not in COMPUTED_IN:
        return step
    view = COMPUTED_IN[figure]
    sql = f"SELECT count(*) FROM {view} WHERE list_contains($1, result_id)"
    ids = get_column(rows, "result_id")
    with record.connection.cursor() as cursor:
        [(computed,)] = cursor.execute(sql, [ids]).fetchall()
    if not computed:
        return step
    return f"{step}; the view {view} has {figure} computed for {computed} of them, by sql"


def _find_values(record: Record, name: str, value: Any) -> Collection[Any]:
    """Return the values of a column that a condition means, None for a blank.

    Raises RefusalError for an unknown word.
    """
    if name in NUMBERS:
        return [value]
    if name in SETTINGS:
        return [value] if value else [value, None]
    if name == "phase" and value == NO_PHASE:
        return [None]
    if name == "model":
        return _find_models(record, value)
    word = _name_word(record, name, value)
    if name == "precision":
        spellings = load_vocabulary().precision_names
        return [spellings.get(normalise_name(word), word)]
    values = _find_meant(record, name, word)
    if name == "phase" and word in values:
        return [word]  # and none of which it is a part
    is_known = name == "relationship" and value == SUBMITTED  # even where no row has it
    if values or is_known:
        return values
    known = list_values(record.rows, name)
    step = _suggest_condition(record, name, value) or suggest(value, known)
    raise RefusalError("unknown-word", f"no row of the record has {name} {value!r}", step)


def _find_models(record: Record, value: str) -> Collection[str]:
    """Return the model of a name, else the models of that printed name."""
    word = _find_word(record, "model", value)
    models_printed_so = record.words.models.get(word, ())
    if word in models_printed_so:
        return [word]
    return models_printed_so or [word]


def _name_word(record: Record, name: str, value: str) -> str:
    """Return the name that a word of a condition is a spelling of."""
    words = record.words
    if name in ("precision", *CHECKED):
        return _find_word(record, name, value)
    if name == "chip":
        return load_vocabulary().name_chip(value) or value
    if name == "dataset":
        return words.datasets.get(normalise_name(value), value)
    if name in words.fields:
        return words.find(name, value) or value  # v2.0 is 2.0
    return value


def _find_meant(record: Record, column: str, word: str) -> list[str]:
    """Return the values of a column that a word means, in the order of the rows."""
    return [known for known in list_values(record.rows, column) if _means(word, known, column)]


def _means(stated: str, known: str, name: str) -> bool:
    """Return whether a word of a condition is the known one, or that without its version: 2.4 means
    2.4.0, and TensorFlow means TensorFlow1.
    """
    if normalise_name(stated) == normalise_name(known):
        return True
    if name in FAMILIES and has_in_a_row(stated, known):
        return True
    if name not in VERSIONED:
        return False
    version = r"\d[\d.]*"
    if stated[-1:].isdigit():
        version = r"(\.\d+)*"  # 2.4 does not mean 2.41
    pattern = re.escape(stated.casefold()) + version
    return re.fullmatch(pattern, known.casefold()) is not None


def _suggest_condition(record: Record, name: str, value: str) -> str:
    """Name the condition to state where a word is one of another, such as a chip for a machine;
    empty for none.
    """
    if name not in CONFUSED:
        return ""
    for row in record.microbenchmarks:
        known = row.get(name)
        if known is not None and is_part_of_name(value, known):
            where = f"sql with FROM microbenchmarks WHERE {name} = '{known}'"
            return f"{known} has microbenchmarks: {where}"
    column, meant = _find_elsewhere(record, name, value)
    if not meant:
        return ""
    named = meant[0]
    if column in FAMILIES:
        named = value  # which means all of them
    return f"{named} is a {column}: state {column} {named}"


def _find_word(record: Record, field: str, word: str) -> str:
    known = record.words.find(field, word)
    if known is None:
        step = _suggest_condition(record, field, word)
        if field == "platform" and not step:
            step = "state chip, chip_count and submitter instead: official systems have own names"
        raise RefusalError("unknown-word", record.words.describe_unknown(field, word), step)
    return known
