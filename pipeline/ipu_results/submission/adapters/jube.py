"""Read the result table of a CARAML run, as `jube result` prints it: comma-separated or drawn with bars."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from ipu_results.schema.vocabulary import load_vocabulary, normalise_name
from ipu_results.submission.adapters.files import Draft, ReadFile, SubmittedFile

NAME = "jube-caraml"
BAR = "|"
RULE = re.compile(r"[|+\-:=\s]+")
TITLE = re.compile(r"[\w.-]+:")
SYSTEM, BATCH, STEP, TOKENS = "system", "globalbatchsize", "time/iteration(s)", "tokens/second"
FIGURES = {
    "images/second": ("throughput", "images/s", ""),
    TOKENS: ("throughput", "tokens/s", ""),
    "energy/device(wh)": ("energy", "Wh", "chip"),
}
CONDITIONS = {
    "nodes": "{} node(s)",
    "tasks/node": "{} task(s) a node",
    "batchsize/device": "batch of {} a device",
    "ipu/replica": "{} IPUs a replica",
    "dataparallel": "data parallel {}",
    "pipelineparallel": "pipeline parallel {}",
    "tensorparallel": "tensor parallel {}",
    "jobid": "job {}",
}
ENVIRONMENT = ("version", "queue", "jobtime", "runtime(s)", "runtime(min)", "iterations", "energyfile")
DIES = {"MI250": "MI250 GCD"}  # a device of CARAML is one of the two dies
BATCH_TOLERANCE = Decimal("0.02")  # times are printed to two decimals
BATCH_RATE = (
    "the rate is the global batch over the time of an iteration, so it counts sequences, or the batch counts tokens"
)


@dataclass(frozen=True)
class _Table:
    line: int
    header: dict[str, int]  # column by lower-case name
    titles: list[str]
    rows: list[tuple[int, list[str]]]


def is_readable(file: SubmittedFile) -> bool:
    """Return whether a line of the file is a header of such a table."""
    return any(_is_header(_split(line)) for _, line in file.list_lines() if _may_be_header(line))


def read_table(file: SubmittedFile) -> ReadFile:
    """Read the figures of every row. Raises SubmissionError."""
    draft = Draft(file)
    draft.remark("the version of CARAML's table is that of the system's software stage, not of an SDK")
    for table in _find_tables(file):
        left_out = [
            title
            for title in table.titles
            if title.lower() not in {SYSTEM, BATCH, "model", "modelsize", "dataset", "devices", *FIGURES, *CONDITIONS}
            and title.lower() not in ENVIRONMENT
        ]
        if left_out:
            draft.remark(f"left out: {', '.join(left_out)}")
        for number, cells in table.rows:
            row = {name: cells[index] for name, index in table.header.items()}
            _add_row(draft, table, number, row)
    return draft.finish(NAME)


def _add_row(draft: Draft, table: _Table, number: int, row: dict[str, str]) -> None:
    place = f"line {number}"
    chip = load_vocabulary().chips.get(normalise_name(row[SYSTEM]))
    if chip in DIES:
        chip = DIES[chip]
        draft.remark(f"chip: a device of this table is one {chip}")
    for name in (BATCH, "devices"):
        if row.get(name):
            draft.file.check_count(row[name], f"{place}, {_title(table, name)}")
    conditions = [text.format(row[name]) for name, text in CONDITIONS.items() if row.get(name)]
    facts = {
        "model": "-".join(filter(None, (row.get("model", ""), row.get("modelsize", "")))),
        "dataset": row.get("dataset", ""),
        "task": "training",
        "platform": "" if chip else row[SYSTEM],
        "chip": chip or "",
        "chip_count": row.get("devices", ""),
        "batch_size": row.get(BATCH, ""),
    }
    for name in ENVIRONMENT:
        draft.state(f"{_title(table, name)} of line {number}", row.get(name, ""))
    for name, (metric, unit, scope) in FIGURES.items():
        value = row.get(name)
        if value is None:
            continue
        where = f"{place}, {_title(table, name)}"
        if not value:
            draft.remark(f"{where}: blank, so no figure")
            continue
        notes = [*conditions]
        if name == TOKENS and _is_batch_rate(row):
            notes.append(BATCH_RATE)
            draft.remark(f"{where}: {BATCH_RATE}; the printed unit is kept")
        draft.add({**facts, "conditions": "; ".join(notes), "power_scope": scope}, metric, unit, value, where)


def _is_batch_rate(row: dict[str, str]) -> bool:
    """Return whether the tokens per second are those of a batch counted in tokens, by the table's own figures."""
    try:
        rate, time, batch = (Decimal(row.get(name) or "NaN") for name in (TOKENS, STEP, BATCH))
    except InvalidOperation:
        return False
    if not (rate.is_finite() and time.is_finite() and batch.is_finite() and batch):
        return False
    return abs(rate * time / batch - 1) <= BATCH_TOLERANCE


def _find_tables(file: SubmittedFile) -> Iterator[_Table]:
    """Yield the tables, each up to the next blank line. Raises SubmissionError for a row of another width."""
    table: _Table | None = None
    for number, line in file.list_lines():
        if not line.strip() or TITLE.fullmatch(line.strip()):
            if table is not None:
                yield _check_table(file, table)
            table = None
            continue
        cells = _split(line)
        if _may_be_header(line) and _is_header(cells):
            if table is not None:
                yield _check_table(file, table)
            names = [cell.lower() for cell in cells]
            if len(set(names)) != len(names):
                file.fail("a column occurs twice", f"line {number}")
            table = _Table(number, {name: index for index, name in enumerate(names)}, cells, [])
        elif table is not None and not RULE.fullmatch(line):
            if len(cells) != len(table.titles):
                file.fail(f"has {len(cells)} cells, the header {len(table.titles)}", f"line {number}")
            if table.titles[-1].lower() in FIGURES and not line.rstrip().endswith(BAR):
                file.require_line_end(number, f"line {number}")
            table.rows.append((number, cells))
    if table is not None:
        yield _check_table(file, table)


def _check_table(file: SubmittedFile, table: _Table) -> _Table:
    if not table.rows:
        file.fail("the table has no row", f"line {table.line}")
    return table


def _split(line: str) -> list[str]:
    if BAR in line:
        return [cell.strip() for cell in line.strip().removeprefix(BAR).removesuffix(BAR).split(BAR)]
    try:
        return [cell.strip() for cell in next(csv.reader([line], strict=True), [])]
    except csv.Error:
        return [line]


def _may_be_header(line: str) -> bool:
    return SYSTEM in line.lower()


def _is_header(cells: list[str]) -> bool:
    names = {cell.lower() for cell in cells}
    return SYSTEM in names and not names.isdisjoint(FIGURES)


def _title(table: _Table, name: str) -> str:
    return table.titles[table.header[name]] if name in table.header else name
