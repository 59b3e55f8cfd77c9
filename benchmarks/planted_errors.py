"""Plant errors as they happen in print, one at a time, and count which of them the quality rules
flag.

Each error changes a row of the published results and its cells, as if the source had printed it so.
Only the rows that share a document or a model with it are checked again.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from ipu_results.check.rules import RULES, find_flags, list_read, open_tables
from ipu_results.derive import build_figure_frame
from ipu_results.ground.files import DATASET
from ipu_results.schema import table
from ipu_results.schema.frames import frame_dtypes
from ipu_results.store.files import get_parquet_name

from benchmarks.report import Options, Report, ReportTable, ReportTarget

ERRORS, QUICK_ERRORS, SEED = 1000, 40, 34
LARGE = 0.1  # of a figure: errors below it are within what two sources differ by
MIN_RECALL, MAX_FALSE = 0.8, 0.01
# Rules of other tables and columns, which none of these errors can change
OTHER = {*(f"R{number}" for number in range(30, 36)), "R46", "R47"}
CHECKED = [rule for rule in RULES if rule.id not in OTHER]
FIGURES = ("throughput", "latency_ms", "batch_size", "efficiency")
MACHINE = ("platform", "chip", "chip_count")

Row = Mapping[str, Any]
Tables = dict[str, pd.DataFrame]
Change = dict[str, Any]
Draw = random.Random


@dataclass(frozen=True, slots=True)
class Mistake:
    """A kind of error: what it changes in a row, given its neighbours in print; None where it
    cannot happen there.
    """

    name: str
    change: Callable[[Draw, Row, Row], Change | None]


def _edit_digits(
    edit: Callable[[Draw, str], str], column: str = "throughput"
) -> Callable[[Draw, Row, Row], Any]:
    """Return a mistake in the whole digits of a figure."""

    def change(draw: Draw, row: Row, _: Row) -> Change | None:
        whole, point, rest = f"{row[column]:.12g}".partition(".")
        edited = edit(draw, whole) if len(whole) > 1 and whole.isdigit() else ""
        return (
            {column: float(edited + point + rest)}
            if edited and not edited.startswith("0")
            else None
        )

    return change


def _drop(draw: Draw, digits: str) -> str:
    place = draw.randrange(len(digits))
    return digits[:place] + digits[place + 1 :]


def _double(draw: Draw, digits: str) -> str:
    place = draw.randrange(len(digits))
    return digits[:place] + digits[place] + digits[place:]


def _swap(draw: Draw, digits: str) -> str:
    place = draw.randrange(len(digits) - 1)
    return digits[:place] + digits[place + 1] + digits[place] + digits[place + 2 :]


def _misread(draw: Draw, digits: str) -> str:
    place = draw.randrange(len(digits))
    return digits[:place] + draw.choice("123456789") + digits[place + 1 :]


def _scale(column: str, factor: Callable[[Row], float]) -> Callable[[Draw, Row, Row], Any]:
    return lambda _, row, __: {column: row[column] * factor(row)}


def _copy(*columns: str) -> Callable[[Draw, Row, Row], Any]:
    """Return a mistake that takes columns from the neighbour in print."""
    return lambda _, __, other: {name: other[name] for name in columns}


def _take_clock(draw: Draw, row: Row, _: Row) -> Change | None:
    """Scale a rate to the clock of another IPU, as if the row were of that."""
    if pd.isna(row["clock_ghz"]):
        return None
    return {"throughput": row["throughput"] * draw.choice(row["other_clocks"]) / row["clock_ghz"]}


MISTAKES = (
    Mistake("digit dropped", _edit_digits(_drop)),
    Mistake("digit printed twice", _edit_digits(_double)),
    Mistake("two digits swapped", _edit_digits(_swap)),
    Mistake("digit misread", _edit_digits(_misread)),
    Mistake("digit of a latency misread", _edit_digits(_misread, "latency_ms")),
    Mistake("decimal point one place off", _scale("throughput", lambda _: 10)),
    Mistake("thousands mark read as a decimal point", _scale("throughput", lambda _: 1e-3)),
    Mistake("seconds for milliseconds", _scale("latency_ms", lambda _: 1e-3)),
    Mistake("microseconds for milliseconds", _scale("latency_ms", lambda _: 1e3)),
    Mistake("efficiency per kilowatt", _scale("efficiency", lambda _: 1e3)),
    Mistake("batches for items", _scale("throughput", lambda row: 1 / row["batch_size"])),
    Mistake("one chip for the system", _scale("throughput", lambda row: 1 / row["chip_count"])),
    Mistake("batch doubled", _scale("batch_size", lambda _: 2)),
    Mistake("latency of the neighbour", _copy("latency_ms")),
    Mistake("throughput of the neighbour", _copy("throughput")),
    Mistake("row copied from the neighbour", _copy("throughput", "latency_ms", "batch_size")),
    Mistake("throughput at the other generation's clock", _take_clock),
    Mistake("machine of the neighbour", _copy(*MACHINE)),
    Mistake("precision of the neighbour", _copy("precision_printed")),
    Mistake("SDK of the neighbour", _copy("sdk_version")),
    Mistake("model of the neighbour", _copy("model_printed", "variant")),
)


@dataclass(slots=True)
class Score:
    """What became of the errors of one kind."""

    planted: int = 0
    large: int = (
        0  # of those that change a figure, by more than LARGE, and those that change a condition
    )
    flagged: int = 0
    flagged_large: int = 0
    others: int = 0  # untouched rows with a new flag, summed
    rules: Counter[str] = field(default_factory=Counter)


def run(options: Options) -> Report:
    """Plant errors of every kind in turn, and print recall and new false flags by kind and by rule."""
    tables = load_tables()
    cells = select_published_cells(tables)
    neighbours = list_neighbours(tables)
    draw = random.Random(SEED)
    scores: dict[str, Score] = defaultdict(Score)
    check = cache(lambda document, model: find_keys(narrow(tables, cells, document, model)))
    for number in range(QUICK_ERRORS if options.quick else ERRORS):
        mistake = MISTAKES[number % len(MISTAKES)]
        row, change = draw_error(mistake, draw, neighbours)
        before = check(row["document_id"], row["model_printed"])
        changed = narrow(
            tables, cells, row["document_id"], row["model_printed"], row["result_id"], change
        )
        add_score(scores[mistake.name], row, change, find_keys(changed) - before)
    return build_report(scores, len(neighbours))


def load_tables() -> Tables:
    """Load what the rules look at from the published tables; `results` as the sources fill it."""
    tables = {}
    for name in list_read():
        read = pq.read_table(DATASET / get_parquet_name(table(name).sql_name))
        tables[name] = read.to_pandas().astype(frame_dtypes(table(name)))
    wide = tables["figures"].pivot(index="result_id", columns="metric", values="value")
    definition = table("results").as_filled()
    results = tables["results"].merge(wide, on="result_id", how="left")
    tables["results"] = results.reindex(columns=definition.names).astype(frame_dtypes(definition))
    return tables


def list_neighbours(tables: Tables) -> list[tuple[Row, Row]]:
    """List each published row with the next one of its table."""
    clocks = (
        tables["platforms"]
        .dropna(subset="clock_ghz")
        .drop_duplicates("chip")
        .set_index("chip")["clock_ghz"]
    )
    rows = tables["results"].query("origin == 'published'")
    rows = rows.sort_values(["document_id", "table_name", "row_number", "result_id"])
    rows = rows.assign(clock_ghz=rows["chip"].map(clocks))
    others = [sorted(set(clocks) - {own}) for own in rows["clock_ghz"]]
    records = rows.assign(other_clocks=others).to_dict("records")
    return [
        (row, other) for row, other in pairwise(records) if row["table_name"] == other["table_name"]
    ]


def draw_error(
    mistake: Mistake, draw: Draw, neighbours: Sequence[tuple[Row, Row]]
) -> tuple[Row, Change]:
    """Draw rows until the mistake can happen in one; return the row and what changes in it."""
    for row, other in draw.sample(neighbours, len(neighbours)):
        try:
            change = mistake.change(draw, row, other) or {}
        except (TypeError, ZeroDivisionError):  # a figure that is not printed
            continue
        if changed := {name: value for name, value in change.items() if _differs(row[name], value)}:
            return row, changed
    raise ValueError(f"no row can have the mistake: {mistake.name}")


def _differs(printed: Any, changed: Any) -> bool:
    return not pd.isna(printed) and not pd.isna(changed) and bool(printed != changed)


def narrow(
    tables: Tables,
    cells: pd.DataFrame,
    document: str,
    model: str,
    result_id: str = "",
    change: Change | None = None,
) -> Tables:
    """Return the rows of a document and of a model, with one row changed as if it had been
    printed so.
    """
    results = tables["results"]
    kept = results[
        ((results["document_id"] == document) | (results["model_printed"] == model))
        & (results["origin"] == "published")
    ]
    cells = cells[cells["result_id"].isin(kept["result_id"])]
    if change:
        kept, cells = kept.copy(), cells.copy()
        for name, value in change.items():
            kept.loc[kept["result_id"] == result_id, name] = value
            own = (cells["result_id"] == result_id) & (cells["column_name"] == name)
            cells.loc[own, "raw_text"] = [
                _print_like(text, value) for text in cells.loc[own, "raw_text"]
            ]
            cells.loc[own, "value"] = value if name in FIGURES else cells.loc[own, "value"]
    figures = build_figure_frame(kept)
    return tables | {"results": kept, "cells": cells, "figures": figures}


def _print_like(printed: str, value: Any) -> str:
    """Print a value in the format of its cell, so that no rule sees the planting by the format
    alone.
    """
    if not isinstance(value, float):
        return str(value)
    fraction = re.search(r"\.(\d+)", printed)
    text = f"{value:{',' if ',' in printed else ''}.{len(fraction[1]) if fraction else 0}f}"
    return text if float(text.replace(",", "")) else f"{value:.3g}"


def select_published_cells(tables: Tables) -> pd.DataFrame:
    """Return the cells of published results alone."""
    results, cells = tables["results"], tables["cells"]
    published = results.loc[results["origin"] == "published", "result_id"]
    return cells[cells["result_id"].isin(published)]


def find_keys(tables: Tables) -> frozenset[tuple[str, ...]]:
    """Return rule, result and column of every flag."""
    names = ["rule", "result_id", "column_name"]
    with open_tables(tables) as connection:
        flags = find_flags(connection, CHECKED)[names]
    return frozenset(flags.itertuples(index=False, name=None))


def add_score(score: Score, row: Row, change: Change, new: frozenset[tuple[str, ...]]) -> None:
    """Count an error, whether its row has a new flag, and the other rows that have one."""
    own = {rule for rule, result_id, _ in new if result_id == row["result_id"]}
    figures = [name for name in change if name in FIGURES]
    is_large = not figures or any(
        abs(change[name] / row[name] - 1) > LARGE for name in figures if row[name]
    )
    score.planted += 1
    score.large += is_large
    score.flagged += bool(own)
    score.flagged_large += bool(own) and is_large
    score.others += len({result_id for _, result_id, _ in new} - {row["result_id"]})
    score.rules.update(own)


def build_report(scores: Mapping[str, Score], count: int) -> Report:
    """Sum the scores by kind and by rule; `count` is the number of published rows."""
    planted, large, flagged, others = (
        sum(getattr(own, name) for own in scores.values())
        for name in ("planted", "large", "flagged_large", "others")
    )
    rows = [
        (
            name,
            own.planted,
            own.flagged,
            own.large,
            own.flagged_large,
            f"{own.others / own.planted:.1f}",
        )
        for name, own in sorted(
            scores.items(), key=lambda item: -item[1].flagged_large / max(item[1].large, 1)
        )
    ]
    rules = sum((own.rules for own in scores.values()), Counter())
    titles = {rule.id: f"{rule.id} {rule.title}" for rule in CHECKED}
    above = f"above {LARGE:.0%}"
    return Report(
        "planted_errors",
        "errors as they happen in print, each planted alone, and the rules that flag its row",
        [
            ReportTable(
                "By kind of error",
                (
                    "error",
                    "planted",
                    "flagged",
                    above,
                    f"{above}, flagged",
                    "other rows flagged per error",
                ),
                rows,
            ),
            ReportTable(
                "By rule",
                ("rule", "errors flagged"),
                [(titles[name], number) for name, number in rules.most_common()],
            ),
        ],
        [
            ReportTarget(f"flagged, of errors {above}", flagged / large, MIN_RECALL, at_least=True),
            ReportTarget(
                "other rows newly flagged, share of the record", others / planted / count, MAX_FALSE
            ),
        ],
        [
            f"{planted} errors, seed {SEED}, in the published rows of `results`.",
            f"Rules that flagged none: {', '.join(sorted(titles.keys() - rules.keys()))}.",
            f"Rules that look at other tables are left out: {', '.join(sorted(OTHER))}.",
        ],
    )
