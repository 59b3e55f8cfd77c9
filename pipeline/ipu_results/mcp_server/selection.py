"""Select rows of the record by conditions. What is not a measurement of its own is left out and counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ipu_results.comparison.candidates import name_precision
from ipu_results.mcp_server.record import EMULATED, SUBMITTED, Record, Row, suggest
from ipu_results.mcp_server.refusal import RefusalError
from ipu_results.schema.vocabulary import normalise_name

COLUMNS = {"network": "network", "machine": "platform", "precision": "effective_precision"}  # of arguments
WORDS = {"machine": "platform", "task": "task", "framework": "framework", "division": "division"}
NUMBERS = ("batch_size", "chips", "sequence_length")
TEXTS = (
    *("variant", "publisher", "submitter", "sdk_version", "phase", "benchmark", "mlperf_round", "chip", "dataset"),
    *("relationship", "origin", "latency_basis"),
)
CONDITIONS = ("network", *WORDS, "precision", *NUMBERS, *TEXTS)


@dataclass(frozen=True)
class Selection:
    """The rows that fit, and how many more fit but are left out, by reason."""

    rows: list[Row]
    left_out: dict[str, int]


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
    left_out = {EMULATED: 0, SUBMITTED: 0, "repeated": 0}
    for row in rows:
        if row["origin"] == EMULATED and stated.get("origin") != EMULATED:
            left_out[EMULATED] += 1
        elif row["relationship"] == SUBMITTED and stated.get("relationship") != SUBMITTED:
            left_out[SUBMITTED] += 1
        elif row["same_as"] is not None and not repeats:
            left_out["repeated"] += 1
        else:
            kept.append(row)
    if not kept:
        refuse_left_out(left_out)
    return Selection(kept, {reason: count for reason, count in left_out.items() if count})


def refuse_left_out(left_out: Mapping[str, int]) -> None:
    """Refuse because the only rows that fit are emulated or submitted."""
    if left_out[EMULATED]:
        raise RefusalError(
            "emulated-not-measured",
            f"only emulated rows fit ({left_out[EMULATED]}), and they are not measurements",
            "ask with origin emulated if predictions of the emulator will do",
        )
    if left_out[SUBMITTED]:
        raise RefusalError(
            "submitted-not-requested",
            f"only rows that users handed in fit ({left_out[SUBMITTED]})",
            "ask with relationship submitted if figures that no one else checked will do",
        )
    raise RefusalError("no-match", "only repeated prints of other results fit", "leave out publisher or document")


def require_figure(selection: Selection, figure: str) -> list[Row]:
    """Return the rows that have a figure. Raises RefusalError where none has: null is not zero."""
    rows = [row for row in selection.rows if row[figure] is not None]
    if not rows:
        if selection.left_out.get(EMULATED):
            reason = f"no measured row has {figure}; emulated rows are left out, and they are not measurements"
            raise RefusalError("emulated-not-measured", reason, "ask with origin emulated for predictions")
        others = sorted({name for row in selection.rows for name in _list_figures(row)})
        reason = f"none of {len(selection.rows)} rows prints {figure}: it is unknown, and it is not zero"
        raise RefusalError("not-printed", reason, f"these rows print {', '.join(others)}")
    return rows


def _list_figures(row: Row) -> list[str]:
    return [name for name in ("throughput", "latency_ms", "minutes", "efficiency", "power_w") if row[name] is not None]


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
