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
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipu_results.record.read.document import SourceTable
from ipu_results.record.read.pdf import read_pdf
from ipu_results.schema.vocabulary import TableHeader, normalise_header

ROOT = Path(__file__).resolve().parent.parent
TRANSCRIPTIONS = ROOT / "raw" / "independent"
PLACE = re.compile(r"page \d+, table ([\w.]+), (.*)")
COLUMN = re.compile(r"(?:^|, )column (.*?)(?:, row \d+)?$")
PRINTED_FIGURE = re.compile(r"([\d.,]*\d)\.?\s*\D*")
"""A figure with its unit: a range is not one."""

VERDICTS = ("exact", "partly", "refused")
Row = dict[str, str]
"""Figures as printed, by the column of the transcription."""
Entry = Mapping[str, Any]


def main(folder: Path) -> None:
    """Print what is read of each paper of `papers.toml` that is in the folder."""
    text = (ROOT / "benchmarks" / "papers.toml").read_text(encoding="utf-8")
    entries: dict[str, list[Entry]] = defaultdict(list)
    for entry in tomllib.loads(text)["table"]:
        entries[entry["document"]].append(entry)
    papers = {}
    for path in sorted(folder.glob("*.pdf")):
        data = path.read_bytes()
        papers[hashlib.sha256(data).hexdigest()] = data
    for document, tables in entries.items():
        text = (TRANSCRIPTIONS / f"{document}.csv.toml").read_text(encoding="utf-8")
        sidecar = tomllib.loads(text)
        found = [
            papers[source["sha256"]] for source in sidecar["sources"] if source["sha256"] in papers
        ]
        if found:
            print(measure(document, found[0], tables))
        else:
            print(f"{document}: not in {folder}, see {sidecar['url']}")


def measure(document: str, data: bytes, entries: Sequence[Entry]) -> str:
    """Return a line for each table of a paper, and one for all."""
    headers: dict[frozenset[str], TableHeader] = {}
    for entry in entries:
        header = make_header(entry)
        if len(header.keys) == len(header.fields):  # names that repeat make no entry
            headers.setdefault(header.keys, header)
    tables = {table.name: table for table in read_pdf(data, list(headers.values())).tables}
    lines = []
    verdicts: Counter[str] = Counter()
    total = Comparison()
    for entry in entries:
        found = compare_table(document, entry, tables.get(entry["number"]))
        total += found
        verdicts[found.verdict] += 1
        place = f"{document}, table {entry['number']}"
        lines.append(f"{place}: {found.verdict}, {found.describe()}")
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in VERDICTS)
    lines.append(f"{document}: {len(entries)} tables, {counts}; {total.describe()}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many figures of a table were read right, of how many, and how many rows are wrong."""

    right: int = 0
    figures: int = 0
    wrong_rows: int = 0

    @property
    def verdict(self) -> str:
        if self.right == self.figures and not self.wrong_rows:
            return "exact"
        return "partly" if self.right else "refused"

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(
            self.right + other.right,
            self.figures + other.figures,
            self.wrong_rows + other.wrong_rows,
        )

    def describe(self) -> str:
        return f"{self.right} of {self.figures} figures, {self.wrong_rows} wrong rows"


def compare_table(document: str, entry: Entry, table: SourceTable | None) -> Comparison:
    """Compare a table, if it was read, with its transcription."""
    printed = list_printed_rows(document, entry["number"])
    rows = []
    if table is not None:
        columns = match_names(entry, table.columns)
        figures = [entry["figures"].get(name, "") for name in columns]
        rows = [pick_figures(figures, row.cells) for row in table.rows]
    return compare(rows, printed)


def make_header(entry: Entry) -> TableHeader:
    fields = {
        **dict.fromkeys(entry["text"], "place"),
        **dict.fromkeys(entry.get("blank", ()), "variant"),
        **dict.fromkeys(entry["figures"], "value"),
    }
    return TableHeader("inference-paper", entry["number"], tuple(fields.items()), "inference")


def match_names(entry: Entry, columns: Sequence[str]) -> list[str]:
    """Return the names of an entry in the order of the printed columns."""
    names = {normalise_header(name): name for name, _ in make_header(entry).fields}
    return [names[normalise_header(column)] for column in columns]


def list_printed_rows(document: str, number: str) -> list[Row]:
    """Return the figures of each row of a table, as transcribed."""
    rows: dict[str, Row] = defaultdict(dict)
    with (TRANSCRIPTIONS / f"{document}.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            match = PLACE.match(line["place"])
            column = COLUMN.search(match[2]) if match else None
            if match and column and match[1] == number:
                place = match[2].replace(f"column {column[1]}", "")
                rows[place][column[1]] = line["value"]
    return list(rows.values())


def pick_figures(columns: Sequence[str], cells: Sequence[str]) -> Row:
    """Return the figures of a row; `columns` are blank where a cell is none."""
    figures = {}
    for column, cell in zip(columns, cells, strict=True):
        match = PRINTED_FIGURE.fullmatch(cell)
        if column and match:
            figures[column] = match[1]
    return figures


def compare(rows: Sequence[Row], printed: Sequence[Row]) -> Comparison:
    """Count the figures in rows that follow one another as printed, and the rows that are nowhere."""
    start = 0
    right = 0
    wrong = 0
    for row in filter(None, rows):
        if row in printed[start:]:
            start = printed.index(row, start) + 1
            right += len(row)
        else:
            wrong += 1
    return Comparison(right, sum(map(len, printed)), wrong)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m benchmarks.papers FOLDER")
    main(Path(sys.argv[1]))
