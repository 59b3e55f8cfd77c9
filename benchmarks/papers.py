"""Measure what `extract` reads of the tables of papers: `python -m benchmarks.papers FOLDER`, with
the PDFs in FOLDER.

`papers.toml` has a header entry for each table. Each row that is read must be the next one of the
transcription in `raw/independent` with its figures. The PDFs are known by the sha256 in the
sidecars. The repository does not have them.
"""

from __future__ import annotations

import csv
import hashlib
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ipu_results.record.read.pdf import read_pdf
from ipu_results.schema.vocabulary import TableHeader, normalise_header

ROOT = Path(__file__).resolve().parent.parent
TRANSCRIPTIONS = ROOT / "raw" / "independent"
PLACE = re.compile(r"page \d+, table ([\w.]+), (.*)")
COLUMN = re.compile(r"(?:^|, )column (.*?)(?:, row \d+)?$")
PRINTED_FIGURE = re.compile(r"([\d.,]*\d)\.?\s*\D*")
"""A figure with its unit: a range is not one."""

Row = dict[str, str]
"""Figures as printed, by the column of the transcription."""
Entry = Mapping[str, Any]


def main(folder: Path) -> None:
    entries = tomllib.loads((ROOT / "benchmarks" / "papers.toml").read_text(encoding="utf-8"))[
        "table"
    ]
    files = {
        hashlib.sha256(path.read_bytes()).hexdigest(): path for path in sorted(folder.glob("*.pdf"))
    }
    for document in dict.fromkeys(entry["document"] for entry in entries):
        sidecar = tomllib.loads(
            (TRANSCRIPTIONS / f"{document}.csv.toml").read_text(encoding="utf-8")
        )
        path = next(
            (files[source["sha256"]] for source in sidecar["sources"] if source["sha256"] in files),
            None,
        )
        if path is None:
            print(f"{document}: not in {folder}, see {sidecar['url']}")
            continue
        print(
            measure(
                document,
                path.read_bytes(),
                [entry for entry in entries if entry["document"] == document],
            )
        )


def measure(document: str, data: bytes, entries: Sequence[Entry]) -> str:
    """Return a line for each table of a paper, and one for all."""
    headers: dict[frozenset[str], TableHeader] = {}
    for entry in entries:
        header = make_header(entry)
        if len(header.keys) == len(header.fields):  # names that repeat make no entry
            headers.setdefault(header.keys, header)
    read = {table.name: table for table in read_pdf(data, list(headers.values())).tables}
    lines, verdicts, totals = [], [], [0, 0, 0]
    for entry in entries:
        printed = list(list_printed_rows(document, entry["number"]))
        table = read.get(entry["number"])
        columns = (
            [entry["figures"].get(name, "") for name in match_names(entry, table.columns)]
            if table
            else []
        )
        rows = [pick_figures(columns, row.cells) for row in table.rows] if table else []
        right, wrong = compare(rows, printed)
        count = sum(map(len, printed))
        verdicts.append(
            "exact" if right == count and not wrong else "partly" if right else "refused"
        )
        totals = [
            total + number for total, number in zip(totals, (right, count, wrong), strict=True)
        ]
        lines.append(
            f"{document}, table {entry['number']}: {verdicts[-1]}, {right} of {count} figures,"
            f" {wrong} wrong rows"
        )
    shares = ", ".join(
        f"{verdicts.count(verdict)} {verdict}" for verdict in ("exact", "partly", "refused")
    )
    return "\n".join(
        [
            *lines,
            (
                f"{document}: {len(entries)} tables, {shares}; {totals[0]} of {totals[1]} figures,"
                f" {totals[2]} wrong rows"
            ),
        ]
    )


def make_header(entry: Entry) -> TableHeader:
    fields = dict.fromkeys(entry["text"], "place") | dict.fromkeys(
        entry.get("blank", ()), "variant"
    )
    fields |= dict.fromkeys(entry["figures"], "value")
    return TableHeader("inference-paper", entry["number"], tuple(fields.items()), "inference")


def match_names(entry: Entry, columns: Sequence[str]) -> list[str]:
    """Return the names of an entry in the order of the printed columns."""
    names = {
        normalise_header(name): name
        for name in (*entry["text"], *entry.get("blank", ()), *entry["figures"])
    }
    return [names[normalise_header(column)] for column in columns]


def list_printed_rows(document: str, number: str) -> Iterator[Row]:
    """Yield the figures of each row of a table, as transcribed."""
    rows: dict[str, Row] = {}
    with (TRANSCRIPTIONS / f"{document}.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            match = PLACE.match(line["place"])
            column = COLUMN.search(match[2]) if match else None
            if match and column and match[1] == number:
                rows.setdefault(match[2].replace(f"column {column[1]}", ""), {})[column[1]] = line[
                    "value"
                ]
    yield from rows.values()


def pick_figures(columns: Sequence[str], cells: Sequence[str]) -> Row:
    pairs = (
        (column, PRINTED_FIGURE.fullmatch(cell))
        for column, cell in zip(columns, cells, strict=True)
        if column
    )
    return {column: match[1] for column, match in pairs if match}


def compare(rows: Sequence[Row], printed: Sequence[Row]) -> tuple[int, int]:
    """Return how many figures are in rows that follow one another as printed, and how many rows are
    nowhere.
    """
    start = right = wrong = 0
    for row in filter(None, rows):
        place = next(
            (number for number in range(start, len(printed)) if printed[number] == row), None
        )
        if place is None:
            wrong += 1
        else:
            start, right = place + 1, right + len(row)
    return right, wrong


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.papers FOLDER")
    main(Path(sys.argv[1]))
