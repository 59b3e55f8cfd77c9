"""Plant errors as they happen in print, one at a time, and count which of them the quality rules
flag.

Each error changes a row of the published results and its cells, as if the source had printed it so.
Only the rows that share a document or a model with it are checked again. Two lists of kinds are
counted apart: `KNOWN`, which the authors of the rules had in view, and `UNSEEN` of
benchmarks/planted_unseen.py, which they had not.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from ipu_results.kit.files import DATASET
from ipu_results.kit.sql import STAGED, open_database, open_engine
from ipu_results.record.check.rules import RULES, add_table, find_flags
from ipu_results.record.derive import derive_figures
from ipu_results.record.store.files import get_parquet_name
from ipu_results.schema import DETAIL, READ, RULES_SCHEMA, SHARED, TABLES, table
from ipu_results.schema.frames import frame_dtypes

from benchmarks.report import Options, Report, ReportTable, ReportTarget, Value

PER_KIND = 40  # errors
QUICK_PER_KIND = 1
QUICK_KINDS = 2  # of a group
SEED = 34
LARGE = 0.1  # of a figure: errors below it are within what two sources differ by
MIN_RECALL = {"figures": 0.8, "batch": 0.8, "conditions": 0.5}
# Rows that an error leaves untouched and that get a flag; a wrong figure unsettles its neighbours
MAX_OTHERS = {"conditions": 0.3}
# Rules of other tables and columns, which none of these errors can change
OTHER = {"R30", "R31", "R32", "R33", "R34", "R35", "R46", "R47"}
CHECKED = [rule for rule in RULES if rule.id not in OTHER]
TITLES = {rule.id: f"{rule.id} {rule.title}" for rule in CHECKED}
FLAGGED = "SELECT rule, result_id, column_name, severity FROM flags"
FIGURES = ("throughput", "latency_ms", "batch_size", "efficiency")

Row = Mapping[str, Any]
Tables = dict[str, pd.DataFrame]
Change = dict[str, Any]
Flags = Mapping[tuple[str, str, str], str]  # rule, result and column: severity
Draw = random.Random
Changer = Callable[[Draw, Row, Row], Change | None]
"""What an error changes in a row, given the next one in print; None where it cannot happen."""
Mistakes = Mapping[str, Changer]
"""Kinds of errors by name."""


def _edit_digits(edit: Callable[[Draw, str], str], column: str = "throughput") -> Changer:
    """Return a mistake in the whole digits of a figure."""

    def change(draw: Draw, row: Row, _: Row) -> Change | None:
        whole, point, decimals = f"{row[column]:.12g}".partition(".")
        if len(whole) < 2 or not whole.isdigit():
            return None
        edited = edit(draw, whole)
        if edited.startswith("0"):
            return None
        return {column: float(edited + point + decimals)}

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


def _scale(column: str, factor: float) -> Changer:
    """Return a mistake that multiplies a figure."""
    return lambda _, row, __: {column: row[column] * factor}


def _divide(column: str, by: str) -> Changer:
    """Return a mistake that divides a figure by another one of its row."""
    return lambda _, row, __: {column: row[column] * (1 / row[by])}


def _copy(*columns: str) -> Changer:
    """Return a mistake that takes columns from the neighbour in print."""
    return lambda _, __, other: {name: other[name] for name in columns}


def _take_clock(draw: Draw, row: Row, _: Row) -> Change | None:
    """Scale a rate to the clock of another IPU, as if the row were of that."""
    if pd.isna(row["clock_ghz"]):
        return None
    return {"throughput": row["throughput"] * draw.choice(row["other_clocks"]) / row["clock_ghz"]}


def _choose(column: str, *values: str) -> Changer:
    """Return a mistake that takes another one of some values."""

    def change(draw: Draw, row: Row, _: Row) -> Change | None:
        return {column: draw.choice([value for value in values if value != row[column]])}

    return change


def _take_length(draw: Draw, row: Row, _: Row) -> Change | None:
    """Print another sequence length in the variant."""
    printed = re.search(r"\bSL ?(\d+)", row["variant"])
    if not printed:
        return None
    length = draw.choice([length for length in LENGTHS if length != printed[1]])
    start, end = printed.span(1)
    return {"variant": row["variant"][:start] + length + row["variant"][end:]}


def _take_size(draw: Draw, row: Row, _: Row) -> Change | None:
    """Print a pod of another size."""
    pod = POD.match(row["platform"])
    chips = row["chip_count"]
    if not pod or pod[2] != str(chips):
        return None
    size = draw.choice([size for size in POD_SIZES if size != chips])
    return {"platform": f"{pod[1]}{size}", "chip_count": size}


def _take_generation(_: Draw, row: Row, __: Row) -> Change | None:
    """Print the machine of the other generation with as many chips."""
    platform = row["platform"]
    for bow, classic in GENERATIONS:
        if bow in platform:
            return {"platform": platform.replace(bow, classic), "chip": "GC200"}
        if classic in platform:
            return {"platform": platform.replace(classic, bow), "chip": "Bow"}
    return None


LENGTHS = ("128", "384", "512")
POD = re.compile(r"(Bow Pod|IPU-POD)(\d+)$")
POD_SIZES = (16, 64, 128, 256)
GENERATIONS = (("Bow Pod", "IPU-POD"), ("Bow-2000", "IPU-M2000"))
KNOWN: Mapping[str, Mistakes] = {
    "figures": {
        "digit dropped": _edit_digits(_drop),
        "digit printed twice": _edit_digits(_double),
        "two digits swapped": _edit_digits(_swap),
        "digit misread": _edit_digits(_misread),
        "digit of a latency misread": _edit_digits(_misread, "latency_ms"),
        "decimal point one place off": _scale("throughput", 10),
        "thousands mark read as a decimal point": _scale("throughput", 1e-3),
        "seconds for milliseconds": _scale("latency_ms", 1e-3),
        "microseconds for milliseconds": _scale("latency_ms", 1e3),
        "efficiency per kilowatt": _scale("efficiency", 1e3),
        "batches for items": _divide("throughput", "batch_size"),
        "one chip for the system": _divide("throughput", "chip_count"),
        "latency of the neighbour": _copy("latency_ms"),
        "throughput of the neighbour": _copy("throughput"),
        "row copied from the neighbour": _copy("throughput", "latency_ms", "batch_size"),
        "throughput at the other generation's clock": _take_clock,
    },
    "batch": {"batch doubled": _scale("batch_size", 2)},
    "conditions": {
        "machine of the neighbour": _copy("platform", "chip", "chip_count"),
        "precision of the neighbour": _copy("precision_printed"),
        "SDK of the neighbour": _copy("sdk_version"),
        "network of the neighbour": _copy("model_printed", "variant"),
        "framework of the neighbour": _copy("framework"),
        "data of the neighbour": _copy("dataset_printed"),
        "framework of another row": _choose("framework", "PyTorch", "TensorFlow2", "PopART"),
        "another item": _choose("item", "image", "sequence", "token"),
        "the other task": _choose("task", "training", "inference"),
        "another sequence length": _take_length,
        "pod of another size": _take_size,
        "machine of the other generation": _take_generation,
    },
}


@dataclass(slots=True)
class Score:
    """What became of the errors of one kind, or of several."""

    counts: Counter[str] = field(default_factory=Counter)
    """`planted` ones; `others`, untouched rows with a new flag, summed over all; `large` ones that
    change a figure by more than LARGE, or a condition; of these those `flagged`, those `alarmed`
    with a warning or an error, and those `placed` on a column that is wrong.
    """
    rules: Counter[str] = field(default_factory=Counter)

    def add(self, other: Score) -> None:
        self.counts.update(other.counts)
        self.rules.update(other.rules)

    def format_share(self, name: str) -> str:
        return f"{self.counts[name] / max(self.counts['large'], 1):.0%}"


Scores = dict[str, Score]
"""By kind."""


class Planter:
    """Plants errors in the published rows."""

    def __init__(self) -> None:
        self.tables = load_tables()
        self.neighbours = list_neighbours(self.tables)
        self._printed: dict[tuple[str, str], Flags] = {}

    def score(self, name: str, change: Changer, count: int) -> Score:
        """Plant errors of one kind in turn."""
        draw = random.Random(f"{SEED} {name}")
        score = Score()
        for _ in range(count):
            row, changed = draw_error(change, draw, self.neighbours)
            near = (row["document_id"], row["model_printed"])
            printed = narrow(self.tables, *near)
            if near not in self._printed:
                self._printed[near] = find_severities(printed)
            flags = find_severities(plant(printed, row["result_id"], changed))
            add_score(score, row, changed, self._printed[near], flags)
        return score


def run(options: Options) -> Report:
    """Plant errors of every kind in turn, and print recall and new false flags by group, kind and
    rule.
    """
    # planted_unseen imports this module
    unseen = import_module("benchmarks.planted_unseen").UNSEEN
    count = QUICK_PER_KIND if options.quick else PER_KIND
    planter = Planter()
    report = Report(
        "planted_errors",
        "errors as they happen in print, each planted alone, and the rules that flag its row",
    )
    for name, groups in {"known": KNOWN, "unseen": unseen}.items():
        scores = {}
        for group, mistakes in groups.items():
            kinds = list(mistakes)[:QUICK_KINDS] if options.quick else list(mistakes)
            scores[group] = {kind: planter.score(kind, mistakes[kind], count) for kind in kinds}
        add_scores(report, name, scores)
    report.notes += [
        f"Large: a figure changes by more than {LARGE:.0%}, or a condition does.",
        f"Rules that look at other tables are left out: {', '.join(sorted(OTHER))}.",
    ]
    return report


@contextmanager
def open_staged(
    frames: Mapping[str, pd.DataFrame | pa.Table],
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection to a database in memory with the tables of one build, staged for what reads
    them: links, rules, derived columns.

    A table may lack columns that nothing has filled yet.
    """
    with open_engine() as engine, open_database(engine, STAGED, DETAIL, RULES_SCHEMA) as staged:
        for name, frame in frames.items():
            add_table(staged, name, frame)
        yield staged


@cache
def list_read() -> tuple[str, ...]:
    """Return the names of the tables that rules read."""
    read: set[str] = set()
    for view in SHARED:
        read.update(view.list_read())
    for rule in RULES:
        read.update(READ.findall(rule.statement))
    return tuple(table.name for table in TABLES if table.sql_name in read)


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
    platforms = tables["platforms"].dropna(subset="clock_ghz").drop_duplicates("chip")
    clocks = platforms.set_index("chip")["clock_ghz"]
    rows = tables["results"].query("origin == 'published'")
    rows = rows.sort_values(["document_id", "table_name", "row_number", "result_id"])
    records = rows.assign(clock_ghz=rows["chip"].map(clocks)).to_dict("records")
    for row in records:
        row["other_clocks"] = sorted(set(clocks) - {row["clock_ghz"]})
    pairs = pairwise(records)
    return [(row, other) for row, other in pairs if row["table_name"] == other["table_name"]]


def draw_error(
    mistake: Changer, draw: Draw, neighbours: Sequence[tuple[Row, Row]]
) -> tuple[Row, Change]:
    """Draw rows until the mistake can happen in one; return the row and what changes in it."""
    for row, other in draw.sample(neighbours, len(neighbours)):
        try:
            change = mistake(draw, row, other) or {}
        except (TypeError, ZeroDivisionError):  # a figure that is not printed
            continue
        changed = {name: value for name, value in change.items() if _differs(row[name], value)}
        if changed:
            return row, changed
    raise ValueError("no row can have the mistake")


def _differs(printed: Any, changed: Any) -> bool:
    return not pd.isna(printed) and not pd.isna(changed) and bool(printed != changed)


def narrow(tables: Tables, document: str, model: str) -> Tables:
    """Return the published rows of a document and of a model, with their cells."""
    results = tables["results"]
    is_near = (results["document_id"] == document) | (results["model_printed"] == model)
    results = results[is_near & (results["origin"] == "published")]
    cells = tables["cells"]
    cells = cells[cells["result_id"].isin(results["result_id"])]
    return tables | {"results": results, "cells": cells}


def plant(tables: Tables, result_id: str, change: Change) -> Tables:
    """Return the tables with one row changed as if it had been printed so."""
    results = tables["results"].copy()
    cells = tables["cells"].copy()
    for name, value in change.items():
        results.loc[results["result_id"] == result_id, name] = value
        is_changed = (cells["result_id"] == result_id) & (cells["column_name"] == name)
        texts = cells.loc[is_changed, "raw_text"]
        cells.loc[is_changed, "raw_text"] = [_print_like(text, value) for text in texts]
        if name in FIGURES:
            cells.loc[is_changed, "value"] = value
    return tables | {"results": results, "cells": cells}


def _print_like(printed: str, value: Any) -> str:
    """Print a value in the format of its cell, so that no rule sees the planting by the format
    alone.
    """
    if not isinstance(value, float):
        return str(value)
    fraction = re.search(r"\.(\d+)", printed)
    decimals = len(fraction[1]) if fraction else 0
    thousands = "," if "," in printed else ""
    text = f"{value:{thousands}.{decimals}f}"
    return text if float(text.replace(",", "")) else f"{value:.3g}"


def find_severities(tables: Tables) -> Flags:
    """Return the severity of every flag over the tables of one build; its figures are derived
    first.
    """
    frames = {name: frame for name, frame in tables.items() if name != "figures"}
    with open_staged(frames) as connection:
        derive_figures(connection)
        find_flags(connection, CHECKED)
        rows = connection.execute(FLAGGED).fetchall()
    return {(rule, result, column): severity for rule, result, column, severity in rows}


def add_score(score: Score, row: Row, change: Change, before: Flags, after: Flags) -> None:
    """Count an error, whether its row has a new flag, and the other rows that have one."""
    others = set()
    columns = set()
    severities = set()
    rules = set()
    for key in after.keys() - before.keys():
        rule, result_id, column = key
        if result_id == row["result_id"]:
            rules.add(rule)
            columns.add(column)
            severities.add(after[key])
        else:
            others.add(result_id)
    score.rules.update(rules)
    counts = score.counts
    counts["planted"] += 1
    counts["others"] += len(others)
    if is_large(row, change):
        counts["large"] += 1
        counts["flagged"] += bool(rules)
        counts["alarmed"] += not severities <= {"info"}
        counts["placed"] += not columns.isdisjoint(change)


def is_large(row: Row, change: Change) -> bool:
    """Check whether an error changes a figure by more than LARGE, or a condition and no figure."""
    figures = [name for name in change if name in FIGURES]
    if not figures:
        return True
    return any(row[name] and abs(change[name] / row[name] - 1) > LARGE for name in figures)


def add_scores(report: Report, name: str, groups: Mapping[str, Scores]) -> None:
    """Add the scores of one list, summed by group, kind and rule."""
    total = Score()
    sums: Scores = {}
    kinds: Scores = {}
    for group, scores in groups.items():
        sums[group] = Score()
        for score in scores.values():
            sums[group].add(score)
            total.add(score)
        kinds |= scores
    by_rule = [(TITLES[rule], count) for rule, count in total.rules.most_common()]
    report.tables += [
        build_score_table(f"By group, kinds {name}", "group", {**sums, "all": total}),
        build_score_table(f"By kind, {name}", "error", kinds),
        ReportTable(f"By rule, kinds {name}", ("rule", "errors flagged"), by_rule),
    ]
    for group, score in sums.items():
        counts = score.counts
        if group in MIN_RECALL:
            recall = counts["flagged"] / max(counts["large"], 1)
            goal = MIN_RECALL[group]
            report.targets.append(ReportTarget(f"{name}, {group}", recall, goal, at_least=True))
        if group in MAX_OTHERS:
            others = counts["others"] / max(counts["planted"], 1)
            what = f"{name}, {group}: other rows newly flagged per error"
            report.targets.append(ReportTarget(what, others, MAX_OTHERS[group]))
    silent = ", ".join(sorted(TITLES.keys() - total.rules.keys()))
    planted = total.counts["planted"]
    report.notes.append(f"{name}: {planted} errors, seed {SEED}; flagged none: {silent}.")


def build_score_table(title: str, what: str, scores: Scores) -> ReportTable:
    """Tell of each group or kind how many of the large errors were flagged, and how."""
    columns = (
        what,
        "planted",
        "large",
        "any flag",
        "warn or error",
        "on the column that is wrong",
        "other rows flagged per error",
    )
    rows: list[Sequence[Value]] = []
    for name, score in scores.items():
        planted = score.counts["planted"]
        shares = [score.format_share(share) for share in ("flagged", "alarmed", "placed")]
        others = f"{score.counts['others'] / planted:.2f}"
        rows.append((name, planted, score.counts["large"], *shares, others))
    return ReportTable(title, columns, rows)
