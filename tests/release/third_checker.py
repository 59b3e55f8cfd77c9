"""A third checker, written from docs/reference/certificates.md alone and in another way: one pass a
kind over all lines, and DuckDB for what is a comparison of tables.

It reads neither of the other two, and shows that the page has all that is needed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import zlib
from html.parser import HTMLParser
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

Line = dict[str, Any]
Cells = dict[str, str]


class Page(HTMLParser):
    """The rows of each table of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.is_cell = False
        assert not re.search("rowspan|colspan|<!--", text)
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.is_cell = True

    def handle_data(self, data: str) -> None:
        if self.is_cell:
            self.tables[-1][-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self.is_cell = False


def name_cells(place: str, header: list[str], row: list[str]) -> Cells:
    assert len(header) == len(row)
    return {
        f"{place}, column {number} ({header[number - 1]})": re.sub(r"\s+", " ", cell).strip()
        for number, cell in zip(count(1), row, strict=False)
    }


def read_csv(text: str) -> Cells:
    """Read a CSV file character by character."""
    cells: Cells = {}
    header: list[str] = []
    row, cell, is_quoted, line = [], "", False, 1
    for at, each in enumerate(text):
        if each == '"':
            if is_quoted or not (at and text[at - 1] == '"'):
                is_quoted = not is_quoted
            else:  # a quote in quotes
                cell += each
                is_quoted = True
        elif is_quoted or each not in ",\n\r":
            cell += each
        elif each != "\r":
            row.append(cell)
            cell = ""
        if each == "\n":
            if not is_quoted:
                header = header or row
                cells |= name_cells(f"line {line}", header, row)
                row = []
            line += 1
    return cells


def read_html(text: str) -> Cells:
    cells: Cells = {}
    for number, (header, *rows) in enumerate(Page(text).tables, 1):
        for position, row in enumerate(rows, 1):
            cells |= name_cells(f"table {number}, row {position}", header, row)
    return cells


def read_pdf(data: bytes) -> Cells:
    cells: Cells = {}
    parts = re.split(rb"(\d+) 0 obj", data)
    objects = dict(zip(parts[1::2], parts[2::2], strict=True))
    [kids] = re.findall(rb"/Kids \[([^]]*)\]", data)
    for page, kid in enumerate(re.findall(rb"(\d+) 0 R", kids), 1):
        [height] = re.findall(rb"/MediaBox \[(?: \S+){3} (\S+)", objects[kid])
        [contents] = re.findall(rb"/Contents (\d+)", objects[kid])
        stream = objects[contents].partition(b"stream\n")[2].partition(b"~>")[0]
        size = 0.0
        for shown in zlib.decompress(base64.a85decode(stream)).decode("cp1252").split("\n"):
            if font := re.search(r"/F2 (\S+) Tf", shown):
                size = float(font[1])
            match = re.match(r"BT 1 0 0 1 (\S+) (\S+) Tm \((.*)\) Tj", shown)
            if match:
                top = float(height) - float(match[2]) - 0.783 * size
                place = f"page {page}, box {float(match[1]):.1f},{top:.1f}"
                assert place not in cells
                cells[place] = re.sub(r"\\(.)", r"\1", match[3]).rpartition(": ")[2]
    return cells


def read_figure(text: str) -> float:
    if "h " in text and text.endswith("m"):
        hours, minutes = text[:-1].split("h ")
        return 3600.0 * int(hours) + 60 * int(minutes)
    figure, _, metric = text.partition(" ")
    assert not metric[:1].isdigit()
    assert re.fullmatch(r"-?\d{1,3}(,\d{3})*(\.\d+)?|-?\d+(\.\d+)?([eE][+-]?\d+)?", figure)
    return float(figure.replace(",", ""))


def is_near(one: float, other: float, share: float) -> bool:
    return one == other or abs(one - other) <= share * max(abs(one), abs(other))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def check(release: Path, raw: Path, root: str) -> None:
    """Raise AssertionError for anything that the page does not allow."""
    sums = (release / "SHA256SUMS").read_bytes()
    assert digest(sums) == root
    digests = {line[66:]: line[:64] for line in sums.decode().splitlines()}
    for name, sha256 in digests.items():
        assert digest((release / name).read_bytes()) == sha256, name
    text = (release / "certificates.jsonl").read_text(encoding="utf-8")
    lines: list[Line] = [json.loads(line) for line in text.splitlines()]
    kinds = ("printed", "minutes", "recomputed", "finding", "relation")
    by_kind: dict[str, list[Line]] = {kind: [] for kind in kinds}
    for line in lines:
        by_kind[line["kind"]].append(line)
    check_printed(by_kind["printed"], raw)
    for line in by_kind["minutes"]:
        check_minutes(line, raw)
    for line in by_kind["recomputed"]:
        for file, rows in line["rows"].items():
            assert set(rows) <= digest_rows((release / file).read_text(encoding="utf-8")), file
    for line in (*by_kind["finding"], *by_kind["relation"]):
        assert all(digests[file] == sha256 for file, sha256 in line["files"].items())
    check_stated([line for line in lines if "stated" in line], release)
    compare_sets(by_kind, release)


def digest_rows(text: str) -> set[str]:
    rows = []
    row = ""
    for line in text.split("\n"):
        row += line
        if row.count('"') % 2:
            row += "\n"
        else:
            rows.append(row)
            row = ""
    return {digest(each.encode()) for each in rows}


def check_printed(lines: list[Line], raw: Path) -> None:
    sources: dict[str, Cells] = {}
    for line in lines:
        file, place = line["file"], line["locator"]
        if file not in sources:
            data = (raw / file).read_bytes()
            assert digest(data) == line["sha256"]
            if file.endswith(".pdf"):
                sources[file] = read_pdf(data)
            else:
                reader = read_html if file.endswith(".html") else read_csv
                sources[file] = reader(data.decode("utf-8-sig"))
        if file.endswith(".pdf"):
            place = ",".join(place.split(",")[:3])
        assert sources[file][place] == line["raw"], place
        figure = read_figure(line["raw"])
        assert is_near(figure, line["value"], 5e-12 if "digits" in line else 0)
        if line["factor"] is not None:
            share = 1e-11 if "digits" in line else 1e-15
            assert is_near(figure * line["factor"], line["figure"], share)
            name, *metric = line["key"].values()
            assert name == line["id"].split()[0]
            assert metric in ([], [line["column"]])
            assert line["in"] in (line["column"], "value", "canonical_value")


def check_minutes(line: Line, raw: Path) -> None:
    data = (raw / line["file"]).read_bytes()
    assert digest(data) == line["sha256"]
    runs = duckdb.execute(
        "SELECT file, coalesce(sha256, ''), counted = 'True', minutes::DOUBLE"
        " FROM read_csv($file, all_varchar = true) WHERE round = $round AND path = $path",
        {**line["key"], "file": str(raw / line["file"])},
    ).fetchall()
    counted = []
    for (file, sha256, is_counted, minutes), log in zip(runs, line["logs"], strict=True):
        assert (file, sha256, is_counted) == (log["file"], log["sha256"] or "", log["counted"])
        if is_counted:
            assert is_near(minutes, log["minutes"], 5e-12)
            counted.append(minutes)
    left_out = line["drop"] - (len(runs) - len(counted))
    kept = sorted(counted)[line["drop"] : len(counted) - left_out]
    assert is_near(math.fsum(kept) / len(kept) * line["factor"], line["figure"], 1e-11)


def check_stated(lines: list[Line], release: Path) -> None:
    for file in sorted({line["stated"] for line in lines}):
        table = duckdb.read_csv(str(release / file), all_varchar=True).fetchall()
        columns = duckdb.read_csv(str(release / file), all_varchar=True).columns
        rows = [dict(zip(columns, row, strict=True)) for row in table]
        for line in lines:
            if line["stated"] != file:
                continue
            key = {name: str(value) for name, value in line["key"].items()}
            [row] = [row for row in rows if key.items() <= row.items()]
            stated = row[line["in"]]
            is_text = isinstance(line["figure"], str)
            assert (stated if is_text else float(stated)) == line["figure"]


def compare_sets(by_kind: dict[str, list[Line]], release: Path) -> None:
    printed = {
        (*line["id"].split(), line["column"], line["locator"]) for line in by_kind["printed"]
    }
    minutes = {(line["key"]["round"], line["key"]["path"]) for line in by_kind["minutes"]}
    for found, columns, file, figure in (
        (printed, "result_id, cell_number, column_name, locator", "cells.csv", "value"),
        (minutes, "round, path", "mlperf_entries.csv", "minutes"),
    ):
        rows = duckdb.read_csv(str(release / file), all_varchar=True)
        assert found == set(rows.filter(f"{figure} <> ''").project(columns).fetchall()), file
