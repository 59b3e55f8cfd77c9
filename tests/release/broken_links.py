"""Small releases in which one link between a figure and its source is broken.

Each function below breaks one, and writes all that would follow from it, as a careful forger would.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

from ipu_results.release.files import write_checksums

from tests.release.certificate_support import (
    Line,
    read_lines,
    rewrite_cell,
    select_by_source,
    write_lines,
)


class Broken:
    """A release with its certificates, also by source, which are written after the change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines = read_lines(folder)
        self.of = select_by_source(self.lines)

    def find(self, kind: str, field: str) -> Line:
        """Return the first certificate of a kind that has a field."""
        return next(line for line in self.of[kind] if field in line)

    def rewrite_row(self, line: Line, value: object) -> None:
        """Write another value in the row that states the figure of a certificate."""
        key = {name: str(each) for name, each in line["key"].items()}
        rewrite_cell(self.folder / line["stated"], key, line["in"], value)

    def rewrite_cell_of(self, line: Line, column: str, value: object) -> None:
        """Write another value in the cell of a certificate."""
        result_id, number = line["id"].split()
        key = {"result_id": result_id, "cell_number": number}
        rewrite_cell(self.folder / "cells.csv", key, column, value)

    def add_copy(self, line: Line, **changed: Any) -> None:
        self.lines.append({**line, **changed})


Break = Callable[[Broken], object]
BROKEN: dict[str, Break] = {}

# The first certificate of a source, and what it says instead.
FIELDS: dict[str, tuple[str, Line]] = {
    "no figure": ("html", {"raw": "x"}),
    "other text": ("html", {"raw": "1"}),
    "other bytes": ("csv", {"sha256": "0" * 64}),
    "other value": ("pdf", {"value": 1.0}),
    "other factor": ("csv", {"factor": 7.0}),
    "other column": ("csv", {"column": "x"}),
    "other digits": ("csv", {"digits": 12}),
    "other drop": ("minutes", {"drop": 0}),
    "other recomputation": ("recomputed", {"figure": 7.0}),
}
for name, (source, fields) in FIELDS.items():
    BROKEN[name] = lambda release, source=source, fields=fields: release.of[source][0].update(
        fields
    )

# The first log of a score, and what is said of it instead.
LOG_FIELDS: dict[str, Line] = {"other log": {"sha256": "x"}, "other run": {"minutes": 1.0}}
for name, fields in LOG_FIELDS.items():
    BROKEN[name] = lambda release, fields=fields: release.of["minutes"][0]["logs"][0].update(fields)

# Kinds that the format does not have, but for which a checker has a function.
for name in ("stated", "checkStated"):
    BROKEN[f"kind {name}"] = lambda release, name=name: release.add_copy(
        release.find("csv", "stated"), kind=name
    )


def breaks(change: Break) -> Break:
    """List a change under its name."""
    BROKEN[change.__name__.replace("_", " ")] = change
    return change


def exchange(release: Broken, *names: str) -> None:
    """Exchange fields of two certificates of HTML."""
    first, second = release.of["html"][:2]
    for name in names:
        kept = first[name]
        first[name] = second[name]
        second[name] = kept


@breaks
def other_id(release: Broken) -> None:
    exchange(release, "id")


@breaks
def other_row(release: Broken) -> None:
    exchange(release, "key", "in", "figure")


@breaks
def other_place(release: Broken) -> None:
    exchange(release, "locator")


def pick_same_figures(release: Broken) -> list[Line]:
    """Return two certificates of the same text in one file, and of the same figure."""
    first, second = [line for line in release.of["csv"] if line.get("in") == "chip_count"][-2:]
    for field in ("file", "raw", "figure"):
        assert first[field] == second[field]
    return [first, second]


@breaks
def other_row_of_this_figure(release: Broken) -> None:
    first, second = pick_same_figures(release)
    first["key"] = second["key"]


@breaks
def other_place_of_this_text(release: Broken) -> None:
    first, second = pick_same_figures(release)
    first["locator"] = second["locator"]


@breaks
def other_column_of_this_figure(release: Broken) -> None:
    [*_, line] = [line for line in release.of["csv"] if line.get("in") == "throughput"]
    line["in"] = "throughput_per_chip"


@breaks
def other_document(release: Broken) -> None:
    first, second = find_twins(release.of["csv"])
    first["file"] = second["file"]
    first["sha256"] = second["sha256"]


def find_twins(lines: list[Line]) -> tuple[Line, Line]:
    """Return two figures that two sources print in the same words at the same place."""
    seen: dict[tuple[str, str], Line] = {}
    for line in lines:
        twin = seen.setdefault((line["locator"], line["raw"]), line)
        if twin["file"] != line["file"]:
            return twin, line
    raise LookupError("no two sources print the same at one place")


@breaks
def no_factor(release: Broken) -> None:
    """State that no table has the figure, so that its row can hold any other."""
    line = release.find("csv", "stated")
    for field in ("stated", "key", "in", "figure"):
        del line[field]
    line["factor"] = None


def name_other_table(release: Broken, line: Line) -> None:
    """Name a table of the forger's own, which states the same figure."""
    shutil.copy(release.folder / line["stated"], release.folder / "more.csv")
    line["stated"] = "more.csv"


@breaks
def other_table_of_this_figure(release: Broken) -> None:
    name_other_table(release, release.find("csv", "stated"))


@breaks
def other_table_of_this_score(release: Broken) -> None:
    name_other_table(release, release.of["minutes"][0])


@breaks
def other_bytes_in_the_document_too(release: Broken) -> None:
    file = release.of["csv"][0]["file"]
    rewrite_cell(release.folder / "documents.csv", {"file": file}, "sha256", "0" * 64)
    for line in release.lines:
        if line.get("file") == file:
            line["sha256"] = "0" * 64


@breaks
def other_value_in_the_cell(release: Broken) -> None:
    line = release.of["html"][0]
    release.rewrite_cell_of(line, "value", line["value"] + 1)


@breaks
def other_value_in_the_cell_too(release: Broken) -> None:
    line = next(line for line in release.of["csv"] if "stated" not in line)
    line["value"] *= 1000
    release.rewrite_cell_of(line, "value", line["value"])


@breaks
def other_factor_in_the_cell_too(release: Broken) -> None:
    line = release.find("csv", "stated")
    line["factor"] *= 1000
    release.rewrite_cell_of(line, "factor", line["factor"])


@breaks
def cell_is_there_twice(release: Broken) -> None:
    path = release.folder / "cells.csv"
    rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*rows, rows[-1]]), encoding="utf-8")


@breaks
def two_certificates_of_one_cell(release: Broken) -> None:
    """Put a second certificate of one cell in the place of that of another."""
    first, second = release.of["html"][:2]
    second.update(first, id=f"{first['id']} 0")


@breaks
def id_of_three_words(release: Broken) -> None:
    release.of["html"][0]["id"] += " 0"


@breaks
def no_certificate(release: Broken) -> None:
    release.of["html"][0].clear()


@breaks
def certificate_is_there_twice(release: Broken) -> None:
    release.add_copy(release.find("csv", "stated"))


# Scores


@breaks
def no_minutes(release: Broken) -> None:
    release.of["minutes"][0].clear()


@breaks
def score_is_there_twice(release: Broken) -> None:
    release.add_copy(release.of["minutes"][0])


@breaks
def other_minutes_in_the_entry(release: Broken) -> None:
    line = release.of["minutes"][0]
    release.rewrite_row(line, line["figure"] + 1)


def state_score(release: Broken, line: Line, figure: float) -> None:
    line["figure"] = figure
    release.rewrite_row(line, figure)


@breaks
def other_minutes_in_the_entry_too(release: Broken) -> None:
    line = release.of["minutes"][0]
    state_score(release, line, line["figure"] + 1)


@breaks
def other_factor_of_a_score(release: Broken) -> None:
    """Change the factor of a score, and the score to fit."""
    line = release.of["minutes"][0]
    line["factor"] *= 2
    state_score(release, line, line["figure"] * 2)


def find_complete_score(release: Broken) -> Line:
    """Return a score of which all runs count."""
    scores = release.of["minutes"]
    return next(line for line in scores if all(log["counted"] for log in line["logs"]))


@breaks
def mean_of_all_runs_in_the_entry_too(release: Broken) -> None:
    line = find_complete_score(release)
    line["drop"] = 0
    mean = fmean(log["minutes"] for log in line["logs"])
    state_score(release, line, mean * line["factor"])


@breaks
def other_count_of_runs(release: Broken) -> None:
    """Say that the slowest run does not count, which the mean leaves out anyway."""
    logs = find_complete_score(release)["logs"]
    slowest = max(logs, key=lambda log: float(log["minutes"]))
    slowest["counted"] = False


@breaks
def log_left_out(release: Broken) -> None:
    release.of["minutes"][0]["logs"].pop()


@breaks
def log_added(release: Broken) -> None:
    logs = release.of["minutes"][0]["logs"]
    logs.append(logs[-1])


# Recomputations


@breaks
def row_that_is_gone(release: Broken) -> None:
    [digests, *_] = release.of["recomputed"][0]["rows"].values()
    digests.append("0" * 64)


@breaks
def no_figure_of_a_recomputation(release: Broken) -> None:
    """Name a column that is not there, and no figure."""
    line = release.of["recomputed"][0]
    del line["figure"]
    line["in"] = "nothing"


@breaks
def empty_figure(release: Broken) -> None:
    """Name an empty cell, and null as its figure."""
    line = release.of["recomputed"][0]
    line["figure"] = None
    release.rewrite_row(line, "")


# Files, which the checksums or the certificates no longer fit


def change_bytes(folder: Path) -> None:
    with (folder / "results.csv").open("ab") as file:
        file.write(b"\n")


def leave_out_table(folder: Path) -> None:
    (folder / "models.csv").unlink()


def name_other_digest(folder: Path) -> None:
    """Change the digest of a file that a finding read."""
    path = folder / "certificates.jsonl"
    text = path.read_text(encoding="utf-8")
    changed, count = re.subn(r'("files": \{"[^"]*": ")', r"\g<1>0", text, count=1)
    assert count
    path.write_text(changed, encoding="utf-8")
    write_checksums(folder)


BROKEN_FILES: dict[str, Callable[[Path], None]] = {
    "bytes of a table": change_bytes,
    "a table is gone": leave_out_table,
    "other file was read": name_other_digest,
}
KINDS = [*BROKEN, *BROKEN_FILES]


def break_link(sound: Path, folder: Path, kind: str) -> Path:
    """Copy a release and break one link in it."""
    shutil.copytree(sound, folder)
    if kind in BROKEN_FILES:
        BROKEN_FILES[kind](folder)
        return folder
    release = Broken(folder)
    BROKEN[kind](release)
    write_lines(folder, [line for line in release.lines if line])
    return folder
