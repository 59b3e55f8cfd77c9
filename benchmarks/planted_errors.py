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

PER_KIND, QUICK_PER_KIND, SEED = 40, 2, 34
LARGE = 0.1  # of a figure: errors below it are within what two sources differ by
MIN_RECALL = {"figures": 0.8, "batch": 0.8, "conditions": 0.5}
# Rows that an error leaves untouched and that get a flag; a wrong figure unsettles its neighbours
MAX_OTHERS = {"conditions": 0.3}
UNSEEN_KINDS = "benchmarks.planted_unseen"  # has UNSEEN, a mapping like KNOWN
# Rules of other tables and columns, which none of these errors can change
OTHER = {*(f"R{number}" for number in range(30, 36)), "R46", "R47"}
CHECKED = [rule for rule in RULES if rule.id not in OTHER]
TITLES = {rule.id: f"{rule.id} {rule.title}" for rule in CHECKED}
FIGURES = ("throughput", "latency_ms", "batch_size", "efficiency")
MACHINE = ("platform", "chip", "chip_count")

Row = Mapping[str, Any]
Tables = dict[str, pd.DataFrame]
Change = dict[str, Any]
Flags = Mapping[tuple[str, str, str], str]  # rule, result and column: severity
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


def _choose(column: str, *values: str) -> Callable[[Draw, Row, Row], Any]:
    """Return a mistake that takes another one of some values."""
    return lambda draw, row, _: {column: draw.choice([own for own in values if own != row[column]])}


def _take_length(draw: Draw, row: Row, _: Row) -> Change | None:
    """Print another sequence length in the variant."""
    printed = re.search(r"\bSL ?(\d+)", row["variant"])
    if not printed:
        return None
    length = draw.choice([own for own in LENGTHS if own != printed[1]])
    start, end = printed.span(1)
    return {"variant": row["variant"][:start] + length + row["variant"][end:]}


def _take_size(draw: Draw, row: Row, _: Row) -> Change | None:
    """Print a pod of another size."""
    pod, chips = POD.match(row["platform"]), row["chip_count"]
    if not pod or pod[2] != str(chips):
        return None
    size = draw.choice([own for own in POD_SIZES if own != chips])
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
    # those that change a figure, by more than LARGE, and those that change a condition
    large: int = 0
    flagged: int = 0  # of the large ones, as those below
    alarmed: int = 0  # with a warning or an error
    placed: int = 0  # on a column that is wrong
    others: int = 0  # untouched rows with a new flag, summed over all
    rules: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Score) -> Score:
        return Score(
            *(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__)
        )


def run(options: Options) -> Report:
    """Plant errors of every kind in turn, and print recall and new false flags by group, kind and
    rule.
    """
    tables = load_tables()
    cells = select_published_cells(tables)
    neighbours = list_neighbours(tables)
    check = cache(lambda document, model: find_severities(narrow(tables, cells, document, model)))
    count = QUICK_PER_KIND if options.quick else PER_KIND

    def score(mistake: Mistake) -> Score:
        draw = random.Random(f"{SEED} {mistake.name}")
        total = Score()
        for _ in range(count):
            row, change = draw_error(mistake, draw, neighbours)
            before = check(row["document_id"], row["model_printed"])
            changed = narrow(
                tables, cells, row["document_id"], row["model_printed"], row["result_id"], change
            )
            add_score(total, row, change, before, find_severities(changed))
        return total

    lists = {"known": KNOWN}
    if find_spec(UNSEEN_KINDS):
        lists["unseen"] = import_module(UNSEEN_KINDS).UNSEEN
    return build_report(
        {
            name: {
                group: {mistake.name: score(mistake) for mistake in mistakes}
                for group, mistakes in groups.items()
            }
            for name, groups in lists.items()
        }
    )


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
    statements = [*(view.sql for view in SHARED), *(rule.statement for rule in RULES)]
    read = {name for sql in statements for name in READ.findall(sql)}
    return tuple(each.name for each in TABLES if each.sql_name in read)


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
    return tables | {"results": kept, "cells": cells}


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
    names = ["rule", "result_id", "column_name", "severity"]
    return {(rule, own, column): level for rule, own, column, level in flags[names].to_numpy()}


def add_score(score: Score, row: Row, change: Change, before: Flags, after: Flags) -> None:
    """Count an error, whether its row has a new flag, and the other rows that have one."""
    new = {key: severity for key, severity in after.items() if key not in before}
    own = {key: severity for key, severity in new.items() if key[1] == row["result_id"]}
    score.planted += 1
    score.others += len({result_id for _, result_id, _ in new.keys() - own.keys()})
    score.rules.update({rule for rule, _, _ in own})
    figures = [name for name in change if name in FIGURES]
    if figures and not any(
        abs(change[name] / row[name] - 1) > LARGE for name in figures if row[name]
    ):
        return
    score.large += 1
    score.flagged += bool(own)
    score.alarmed += any(severity != "info" for severity in own.values())
    score.placed += any(column in change for _, _, column in own)


def build_report(lists: Mapping[str, Mapping[str, Mapping[str, Score]]]) -> Report:
    """Sum the scores of each list by group, kind and rule."""
    report = Report(
        "planted_errors",
        "errors as they happen in print, each planted alone, and the rules that flag its row",
    )
    for name, groups in lists.items():
        sums = {group: sum(kinds.values(), Score()) for group, kinds in groups.items()}
        total = sum(sums.values(), Score())
        kinds = {kind: own for group in groups.values() for kind, own in group.items()}
        report.tables += [
            build_score_table(f"By group, kinds {name}", "group", {**sums, "all": total}),
            build_score_table(f"By kind, {name}", "error", kinds),
            ReportTable(
                f"By rule, kinds {name}",
                ("rule", "errors flagged"),
                [(TITLES[rule], count) for rule, count in total.rules.most_common()],
            ),
        ]
        for group, own in sums.items():
            if group in MIN_RECALL:
                recall = own.flagged / max(own.large, 1)
                goal = MIN_RECALL[group]
                report.targets.append(ReportTarget(f"{name}, {group}", recall, goal, at_least=True))
            if group in MAX_OTHERS:
                others = own.others / max(own.planted, 1)
                what = f"{name}, {group}: other rows newly flagged per error"
                report.targets.append(ReportTarget(what, others, MAX_OTHERS[group]))
        report.notes += [
            f"{name}: {total.planted} errors, seed {SEED}; flagged none:"
            f" {', '.join(sorted(TITLES.keys() - total.rules.keys()))}."
        ]
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
    rows: list[Sequence[Value]] = [
        (
            name,
            own.planted,
            own.large,
            *(
                f"{count / max(own.large, 1):.0%}"
                for count in (own.flagged, own.alarmed, own.placed)
            ),
            f"{own.others / own.planted:.2f}",
        )
        for name, own in scores.items()
    ]
    return ReportTable(title, columns, rows)
