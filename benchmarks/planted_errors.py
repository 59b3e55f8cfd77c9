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
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from ipu_results.kit.files import DATASET
from ipu_results.kit.sql import STAGED, open_database, open_engine
from ipu_results.record.check.rules import RULES, Rule, add_table, find_flags
from ipu_results.record.derive import derive_figures
from ipu_results.record.store.files import get_parquet_name
from ipu_results.schema import DETAIL, READ, RULES_SCHEMA, SHARED, TABLES, table
from ipu_results.schema.frames import frame_dtypes, to_pandas

from benchmarks.report import Options, Report, ReportTable, ReportTarget, Value

PER_KIND = 40  # errors
QUICK_PER_KIND = 1
QUICK_KINDS = 2  # of a group
SEED = 34
LARGE = 0.1  # of a figure: errors below it are within what two sources differ by
MIN_RECALL = {"figures": 0.8, "batch": 0.8, "conditions": 0.5}
# Rows that an error leaves untouched and that get a flag; a wrong figure unsettles its neighbours
MAX_OTHERS = {"conditions": 0.3}
UNSEEN_KINDS = "benchmarks.planted_unseen"  # has UNSEEN, a mapping like KNOWN
# Rules of other tables and columns, which none of these errors can change
OTHER = {"R30", "R31", "R32", "R33", "R34", "R35", "R46", "R47"}
CHECKED = [rule for rule in RULES if rule.id not in OTHER]
TITLES = {rule.id: f"{rule.id} {rule.title}" for rule in CHECKED}
FIGURES = ("throughput", "latency_ms", "batch_size", "efficiency")
MACHINE = ("platform", "chip", "chip_count")

Row = Mapping[str, Any]
Tables = dict[str, pd.DataFrame]
Change = dict[str, Any]
Flags = Mapping[tuple[str, str, str], str]  # rule, result and column: severity
Draw = random.Random
Changer = Callable[[Draw, Row, Row], Change | None]
"""What an error changes in a row, given the next one in print; None where it cannot happen."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A kind of error, and what it changes."""

    name: str
    change: Changer


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


def _scale(column: str, factor: Callable[[Row], float]) -> Changer:
    return lambda _, row, __: {column: row[column] * factor(row)}


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
KNOWN: Mapping[str, tuple[Mistake, ...]] = {
    "figures": (
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
        Mistake("latency of the neighbour", _copy("latency_ms")),
        Mistake("throughput of the neighbour", _copy("throughput")),
        Mistake("row copied from the neighbour", _copy("throughput", "latency_ms", "batch_size")),
        Mistake("throughput at the other generation's clock", _take_clock),
    ),
    "batch": (Mistake("batch doubled", _scale("batch_size", lambda _: 2)),),
    "conditions": (
        Mistake("machine of the neighbour", _copy(*MACHINE)),
        Mistake("precision of the neighbour", _copy("precision_printed")),
        Mistake("SDK of the neighbour", _copy("sdk_version")),
        Mistake("network of the neighbour", _copy("model_printed", "variant")),
        Mistake("framework of the neighbour", _copy("framework")),
        Mistake("data of the neighbour", _copy("dataset_printed")),
        Mistake(
            "framework of another row", _choose("framework", "PyTorch", "TensorFlow2", "PopART")
        ),
        Mistake("another item", _choose("item", "image", "sequence", "token")),
        Mistake("the other task", _choose("task", "training", "inference")),
        Mistake("another sequence length", _take_length),
        Mistake("pod of another size", _take_size),
        Mistake("machine of the other generation", _take_generation),
    ),
}


@dataclass(slots=True)
class Score:
    """What became of the errors of one kind, or of several."""

    planted: int = 0
    large: int = 0  # that change a figure by more than LARGE, or a condition
    flagged: int = 0  # of the large ones, as those below
    alarmed: int = 0  # with a warning or an error
    placed: int = 0  # on a column that is wrong
    others: int = 0  # untouched rows with a new flag, summed over all
    rules: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Score) -> Score:
        return Score(
            self.planted + other.planted,
            self.large + other.large,
            self.flagged + other.flagged,
            self.alarmed + other.alarmed,
            self.placed + other.placed,
            self.others + other.others,
            self.rules + other.rules,
        )


def run(options: Options) -> Report:
    """Plant errors of every kind in turn, and print recall and new false flags by group, kind and
    rule.
    """
    tables = load_tables()
    neighbours = list_neighbours(tables)
    count = QUICK_PER_KIND if options.quick else PER_KIND

    @cache
    def check_printed(document: str, model: str) -> Flags:
        return find_severities(narrow(tables, document, model))

    def score(mistake: Mistake) -> Score:
        draw = random.Random(f"{SEED} {mistake.name}")
        total = Score()
        for _ in range(count):
            row, change = draw_error(mistake, draw, neighbours)
            document = row["document_id"]
            model = row["model_printed"]
            changed = plant(narrow(tables, document, model), row["result_id"], change)
            printed = check_printed(document, model)
            add_score(total, row, change, printed, find_severities(changed))
        return total

    lists = {"known": KNOWN}
    if find_spec(UNSEEN_KINDS):
        lists["unseen"] = import_module(UNSEEN_KINDS).UNSEEN
    scores: dict[str, dict[str, dict[str, Score]]] = {}
    for name, groups in lists.items():
        scores[name] = {}
        for group, mistakes in groups.items():
            chosen = mistakes[:QUICK_KINDS] if options.quick else mistakes
            scores[name][group] = {mistake.name: score(mistake) for mistake in chosen}
    return build_report(scores)


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
    mistake: Mistake, draw: Draw, neighbours: Sequence[tuple[Row, Row]]
) -> tuple[Row, Change]:
    """Draw rows until the mistake can happen in one; return the row and what changes in it."""
    for row, other in draw.sample(neighbours, len(neighbours)):
        try:
            change = mistake.change(draw, row, other) or {}
        except (TypeError, ZeroDivisionError):  # a figure that is not printed
            continue
        changed = {name: value for name, value in change.items() if _differs(row[name], value)}
        if changed:
            return row, changed
    raise ValueError(f"no row can have the mistake: {mistake.name}")


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


def flag(tables: Tables, rules: Sequence[Rule]) -> pd.DataFrame:
    """Return the flags of rules over the tables of one build, whose figures are derived first."""
    frames = {name: frame for name, frame in tables.items() if name != "figures"}
    with open_staged(frames) as connection:
        derive_figures(connection)
        find_flags(connection, rules)
        return to_pandas(connection.table("flags").to_arrow_table())


def find_severities(tables: Tables) -> Flags:
    """Return the severity of every flag."""
    flags = flag(tables, CHECKED)
    severities = {}
    for found in flags.itertuples():
        severities[found.rule, found.result_id, found.column_name] = found.severity
    return severities


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
    score.planted += 1
    score.others += len(others)
    score.rules.update(rules)
    sizes = [abs(change[name] / row[name] - 1) for name in change if name in FIGURES and row[name]]
    is_condition = not any(name in FIGURES for name in change)
    if is_condition or any(size > LARGE for size in sizes):
        score.large += 1
        score.flagged += bool(rules)
        score.alarmed += not severities <= {"info"}
        score.placed += not columns.isdisjoint(change)


def build_report(lists: Mapping[str, Mapping[str, Mapping[str, Score]]]) -> Report:
    """Sum the scores of each list by group, kind and rule."""
    report = Report(
        "planted_errors",
        "errors as they happen in print, each planted alone, and the rules that flag its row",
    )
    for name, groups in lists.items():
        sums: dict[str, Score] = {}
        kinds: dict[str, Score] = {}
        for group, scores in groups.items():
            sums[group] = sum(scores.values(), Score())
            kinds |= scores
        total = sum(sums.values(), Score())
        by_rule = [(TITLES[rule], count) for rule, count in total.rules.most_common()]
        report.tables += [
            build_score_table(f"By group, kinds {name}", "group", {**sums, "all": total}),
            build_score_table(f"By kind, {name}", "error", kinds),
            ReportTable(f"By rule, kinds {name}", ("rule", "errors flagged"), by_rule),
        ]
        for group, of_group in sums.items():
            if group in MIN_RECALL:
                recall = of_group.flagged / max(of_group.large, 1)
                goal = MIN_RECALL[group]
                report.targets.append(ReportTarget(f"{name}, {group}", recall, goal, at_least=True))
            if group in MAX_OTHERS:
                others = of_group.others / max(of_group.planted, 1)
                what = f"{name}, {group}: other rows newly flagged per error"
                report.targets.append(ReportTarget(what, others, MAX_OTHERS[group]))
        silent = ", ".join(sorted(TITLES.keys() - total.rules.keys()))
        report.notes.append(f"{name}: {total.planted} errors, seed {SEED}; flagged none: {silent}.")
    report.notes += [
        f"Large: a figure changes by more than {LARGE:.0%}, or a condition does.",
        f"Rules that look at other tables are left out: {', '.join(sorted(OTHER))}.",
    ]
    return report


def build_score_table(title: str, what: str, scores: Mapping[str, Score]) -> ReportTable:
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
        large = max(score.large, 1)
        row = (
            name,
            score.planted,
            score.large,
            f"{score.flagged / large:.0%}",
            f"{score.alarmed / large:.0%}",
            f"{score.placed / large:.0%}",
            f"{score.others / score.planted:.2f}",
        )
        rows.append(row)
    return ReportTable(title, columns, rows)
