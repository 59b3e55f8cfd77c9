"""Select rows of the record by conditions. What is not a measurement of its own is left out and counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ipu_results.comparison.comparable import name_precision
from ipu_results.ground.sql import run_query
from ipu_results.schema import quote
from ipu_results.schema.vocabulary import normalise_name
from ipu_results.serve.answers import EMULATED, FIGURES, SUBMITTED, Record, RefusalError, Row, suggest

COLUMNS = {"network": "network", "machine": "platform", "precision": "effective_precision"}  # of arguments
WORDS = {"machine": "platform", "task": "task", "framework": "framework", "division": "division"}
NUMBERS = ("batch_size", "chips", "sequence_length")
TEXTS = (
    *("variant", "publisher", "submitter", "sdk_version", "phase", "benchmark", "mlperf_round", "chip", "dataset"),
    *("relationship", "origin", "latency_basis"),
)
VIEWS_OF = {"energy_per_item_j": "energy_per_item"}  # which computes the figure of a result
CONDITIONS = ("network", *WORDS, "precision", *NUMBERS, *TEXTS)


@dataclass(frozen=True)
class Selection:
    """The rows that fit, and those that fit but are left out, by reason."""

    rows: list[Row]
    hidden: Mapping[str, Sequence[Row]]

    @property
    def left_out(self) -> dict[str, int]:
        """Return how many rows are left out, by reason."""
        return {reason: len(rows) for reason, rows in self.hidden.items() if rows}


def select_rows(record: Record, arguments: Mapping[str, Any], *, repeats: bool = False) -> Selection:
    """Select rows by the arguments of CONDITIONS.

    Emulated rows come only for `origin` emulated, submitted ones only for `relationship` submitted, and repeated
    prints of one measurement only with `repeats`. Raises RefusalError for an unknown word and where no row fits.
    """
    stated = {name: arguments[name] for name in CONDITIONS if arguments.get(name) is not None}
    rows = list(record.rows)
    for name, value in stated.items():
        fitting = _filter(record, rows, name, value)
        if not fitting:
            others = ", ".join(f"{key} {other}" for key, other in stated.items() if key != name)
            raise RefusalError("no-match", f"no row has {name} {value}{f' with {others}' if others else ''}")
        rows = fitting
    kept: list[Row] = []
    hidden: dict[str, list[Row]] = {EMULATED: [], SUBMITTED: [], "repeated": []}
    for row in rows:
        if row["origin"] == EMULATED and stated.get("origin") != EMULATED:
            hidden[EMULATED].append(row)
        elif row["relationship"] == SUBMITTED and stated.get("relationship") != SUBMITTED:
            hidden[SUBMITTED].append(row)
        elif row["same_as"] is not None and not repeats:
            hidden["repeated"].append(row)
        else:
            kept.append(row)
    if not kept:
        _refuse_hidden({reason: len(rows) for reason, rows in hidden.items()}, "fit")
        raise RefusalError("no-match", "only repeated prints of other results fit", "leave out publisher or document")
    return Selection(kept, hidden)


def _refuse_hidden(counts: Mapping[str, int], what: str) -> None:
    """Refuse if the only rows that fit are emulated or submitted."""
    if count := counts[EMULATED]:
        reason = f"only emulated rows {what} ({count}), and they are not measurements"
        raise RefusalError("emulated-not-measured", reason)
    if count := counts[SUBMITTED]:
        raise RefusalError("submitted-not-requested", f"only rows that users handed in {what} ({count})")


def require_figure(record: Record, selection: Selection, figure: str) -> list[Row]:
    """Return the rows that have a figure. Raises RefusalError where none has: null is not zero."""
    rows = _keep_printing(selection.rows, figure)
    if not rows:
        hidden = {reason: _keep_printing(others, figure) for reason, others in selection.hidden.items()}
        _refuse_hidden({reason: len(others) for reason, others in hidden.items()}, f"have {figure}")
        reason = f"none of {len(selection.rows)} rows prints {figure}: it is unknown, and it is not zero"
        raise RefusalError("not-printed", reason, _suggest_figures(record, selection.rows, figure))
    return rows


def _keep_printing(rows: Sequence[Row], figure: str) -> list[Row]:
    return [row for row in rows if row[figure] is not None]


def _suggest_figures(record: Record, rows: Sequence[Row], figure: str) -> str:
    """Name the figures that the rows print, and the view that computes the missing one from them."""
    step = f"these rows print {', '.join(name for name in FIGURES if _keep_printing(rows, name))}"
    view = VIEWS_OF.get(figure)
    if view is None:
        return step
    ids = ", ".join(quote(row["result_id"]) for row in rows)
    with record.connection.cursor() as cursor:
        computed = run_query(cursor, f"FROM {view} WHERE result_id IN ({ids})").num_rows
    return f"{step}; the view {view} has {figure} computed for {computed} of them, by sql" if computed else step


def _filter(record: Record, rows: Sequence[Row], name: str, value: Any) -> list[Row]:
    if name == "network":
        networks = _find_networks(record, value)
        return [row for row in rows if row["network"] in networks]
    if name in NUMBERS:
        return [row for row in rows if row[name] == value]
    if name == "precision":
        precision = name_precision(_find_word(record, "precision", value))
        return [row for row in rows if name_precision(row["effective_precision"]) == precision]
    if name in WORDS:
        word = _find_word(record, WORDS[name], value)
        return [row for row in rows if row[WORDS[name]] == word]
    known = {row[name] for row in record.rows if row[name] is not None}
    words = {word for word in known if normalise_name(word) == normalise_name(value)}
    if not words and not (name == "relationship" and value == SUBMITTED):
        raise RefusalError("unknown-word", f"no row of the record has {name} {value!r}", suggest(value, known))
    return [row for row in rows if row[name] in words]


def _find_word(record: Record, field: str, word: str) -> str:
    known = record.words.find(field, word)
    if known is None:
        raise RefusalError("unknown-word", record.words.describe_unknown(field, word))
    return known


def _find_networks(record: Record, word: str) -> frozenset[str]:
    """Return the networks that a name means: itself, else those of the model of that name."""
    model = _find_word(record, "model", word)
    networks = record.words.networks.get(model, (model,))
    return frozenset((model,) if model in networks else networks)
