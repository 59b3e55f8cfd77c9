"""A third checker, written from docs/reference/certificates.md alone, by someone who had read
neither of the others. What that page then lacked it now says, and is checked here, too.
"""

from __future__ import annotations

import base64
import csv
import functools
import hashlib
import json
import pathlib
import re
import sys
import zlib

NUMBER = re.compile(r"-?([0-9]+|[0-9]{1,3}(,[0-9]{3})+)(\.[0-9]+)?(e[+-]?[0-9]+)?")
COUNT = "([1-9][0-9]*)"
LINE_PLACE = re.compile(rf"line {COUNT}, column {COUNT} \((.*)\)", re.DOTALL)
TABLE_PLACE = re.compile(rf"table {COUNT}, row {COUNT}, column {COUNT} \((.*)\)", re.DOTALL)
BOX_PLACE = re.compile(r"page 1, box ([0-9.-]+),([0-9.-]+),[0-9.-]+,[0-9.-]+")
HTML_CELL = re.compile(r"<(t[dh])\b[^>]*>(.*?)</\1>", re.DOTALL)
PDF_TEXT = re.compile(r"/F2 (\S+) Tf.*\nBT 1 0 0 1 (\S+) (\S+) Tm \(((?:[^\\()]|\\.)*)\) Tj")
CELL = ("result_id", "cell_number")
ENTRY = ("round", "path")
STATING = ("results.csv", "figures.csv", "microbenchmarks.csv")


def need(holds, link):
    if not holds:
        raise ValueError(link)


def near(figure, other, tolerance):
    return abs(figure - other) <= tolerance * abs(other)


def squeeze(text):
    return " ".join(text.split())


def figure_of(text):
    clock = re.fullmatch("([0-9]+)h ([0-9]+)m", text)
    if clock:
        return 3600.0 * int(clock[1]) + 60.0 * int(clock[2])
    number, _, metric = text.partition(" ")
    need(NUMBER.fullmatch(number) and not metric[:1].isdigit(), f"{text!r} is no figure")
    return float(number.replace(",", ""))


@functools.cache
def digest_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.cache
def csv_rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file, strict=True)
        rows = {}
        for row in reader:
            rows[reader.line_num] = row
    need(len({len(row) for row in rows.values()}) == 1, f"the rows of {path} differ in length")
    return rows


@functools.cache
def rows_by(path, columns):
    head, *rows = csv_rows(path).values()
    found = {}
    for cells in rows:
        row = dict(zip(head, cells, strict=True))
        found.setdefault(tuple(row[column] for column in columns), []).append(row)
    return found


@functools.cache
def row_digests(path):
    rows = re.findall(rb'(?:"[^"]*"|[^"\r\n]+)+', path.read_bytes())
    return {hashlib.sha256(row).hexdigest() for row in rows[1:]}


@functools.cache
def html_tables(path):
    page = path.read_text("utf-8")
    spanned = re.search("rowspan|colspan|<!--|&", page, re.I)
    need(not spanned, f"{path} has a span, a comment or an entity")
    tables = re.findall(r"<table\b.*?</table>", page, re.DOTALL)
    return [[HTML_CELL.findall(row) for row in table.split("<tr")[1:]] for table in tables]


@functools.cache
def pdf_texts(path):
    document = path.read_text("latin-1")
    boxes = re.findall(r"/MediaBox \[([^]]*)\]", document)
    streams = re.findall(r"stream\n(.*?~>)", document, re.DOTALL)
    need(len(boxes) == len(streams) == 1, f"{path} has not one page with one stream")
    height = float(boxes[0].split()[3])
    content = zlib.decompress(base64.a85decode(streams[0], adobe=True)).decode("latin-1")
    texts = {}
    for size, left, base, text in PDF_TEXT.findall(content):
        top = height - float(base) - 0.783 * float(size)
        place = f"{float(left):.1f}", f"{top:.1f}"
        need(place not in texts, f"two texts at {place}")
        texts[place] = squeeze(re.sub(r"\\(.)", r"\1", text).rpartition(": ")[2])
    need(len(texts) == content.count("Tj") > 0, f"{path} is of another writer")
    return texts


def text_at(path, locator):
    if path.suffix == ".csv":
        line, column, name = LINE_PLACE.fullmatch(locator).groups()
        rows, column = csv_rows(path), int(column) - 1
        need(squeeze(next(iter(rows.values()))[column]) == squeeze(name), "another header")
        return squeeze(rows[int(line)][column])
    if path.suffix == ".html":
        table, row, column, name = TABLE_PLACE.fullmatch(locator).groups()
        rows, column = html_tables(path)[int(table) - 1], int(column) - 1
        need(squeeze(rows[0][column][1]) == squeeze(name), "another header")
        tag, inside = rows[int(row)][column]
        even = len({len(cells) for cells in rows}) == 1
        need(tag == "td" and even, "no cell of its own, or rows that differ in length")
        return squeeze(inside)
    left, top = BOX_PLACE.fullmatch(locator).groups()
    return pdf_texts(path)[left, top]


def log_took(path):
    for text in path.read_text("utf-8", "replace").split("\n"):
        event = json.loads(text.partition(":::MLLOG ")[2] or '{"key": null}')
        if event["key"] == "run_start":
            start = event["time_ms"]
        if event["key"] == "run_stop":
            return event["time_ms"] - start
    raise ValueError(f"{path} has no run_stop")


class Checker:
    """Follows the certificates of a release; each method but the first ones is a kind."""

    def __init__(self, release, raw, logs):
        self.release, self.raw, self.logs = map(pathlib.Path, (release, raw, logs))
        sums = (self.release / "SHA256SUMS").read_text("utf-8").splitlines()
        self.sums = {line[66:]: line[:64] for line in sums}
        for name, digest in self.sums.items():
            need(digest_of(self.release / name) == digest, f"digest of {name}")
        self.cells = self.figures("cells.csv", CELL, "value")
        self.entries = self.figures("mlperf_entries.csv", ENTRY, "minutes")

    def figures(self, name, columns, column):
        """Return the rows with a figure, by their key: each needs a certificate."""
        rows = rows_by(self.file(name), columns)
        return {key: row for key, [row] in rows.items() if row[column]}

    def file(self, name):
        need(name in self.sums, f"{name} is not in SHA256SUMS")
        return self.release / name

    def source(self, line):
        need(digest_of(self.raw / line["file"]) == line["sha256"], f"digest of {line['file']}")
        return self.raw / line["file"]

    def stated(self, line):
        path, key = self.file(line["stated"]), line["key"]
        [row] = rows_by(path, tuple(key))[tuple(map(str, key.values()))]
        figure, text = line["figure"], row[line["in"]]
        same = text == figure if isinstance(figure, str) else float(text) == figure
        need(same, f"{line['stated']} states {text!r} and not {figure!r}")

    def printed(self, line):
        text = text_at(self.source(line), line["locator"])
        need(text == line["raw"], f"the place has {text!r}")
        cell = self.cells.pop(tuple(line["id"].split(" ")))
        documents = rows_by(self.file("documents.csv"), ("document_id",))
        [document] = documents[(cell["document_id"],)]
        need(line["file"] == document["file"], "another file")
        need(line["sha256"] == document["sha256"], "other bytes than the document's")
        need(line["column"] == cell["column_name"], "another column")
        need(line["locator"] == cell["locator"], "another place")
        computed = document["kind"] in ("derived", "run")
        need(line.get("digits") == (12 if computed else None), "other digits")
        value = figure_of(text)
        need(near(value, line["value"], 5e-12 if computed else 0), f"the figure is {value}")
        need(float(cell["value"]) == line["value"], "cells.csv has another value")
        if not cell["factor"]:
            need(line["factor"] is None, "cells.csv has no factor")
            return
        need(float(cell["factor"]) == line["factor"], "cells.csv has another factor")
        product = value * line["factor"]
        need(near(product, line["figure"], 5.001e-12 if computed else 1e-15), f"factor: {product}")
        self.own(line, cell)
        self.stated(line)

    def own(self, line, cell):
        """Check that the row and column which state the figure are those of the cell."""
        need(line["stated"] in STATING, "another table")
        result, *column = line["key"].values()
        need(result == cell["result_id"], "another result")
        need(column in ([], [cell["column_name"]]), "another row")
        need(line["in"] in (cell["column_name"], "value", "canonical_value"), "another column")

    def minutes(self, line):
        path = self.source(line)
        key = tuple(line["key"][column] for column in ENTRY)
        entry = self.entries.pop(key)
        self.stated(line)
        of_entry = line["stated"], line["in"]
        need(of_entry == ("mlperf_entries.csv", "minutes"), "another table or column")
        need(line["drop"] == (4 if entry["benchmark"] == "unet3d" else 1), "drop")
        need(line["factor"] == float(entry["scaling_factor"] or 1), "factor")
        runs = rows_by(path, ENTRY)[key]
        counted = []
        for run, log in zip(runs, line["logs"], strict=True):
            of_log = log["file"], log["sha256"] or "", str(log["counted"])
            need((run["file"], run["sha256"], run["counted"]) == of_log, f"log {of_log}")
            if log["minutes"] is None:
                need(run["minutes"] == "", f"minutes of {of_log}")
            else:
                need(near(float(run["minutes"]), log["minutes"], 5e-12), f"minutes of {of_log}")
            if log["counted"]:
                counted.append(float(run["minutes"]))
                self.log(self.logs / f"v{key[0]}" / key[1] / run["file"], run)
        last = line["drop"] - (len(runs) - len(counted))
        rest = sorted(counted)[line["drop"] : len(counted) - last]
        need(last >= 0, "too many logs are not counted")
        score = sum(rest) / len(rest) * line["factor"]
        need(near(score, line["figure"], 1e-11), f"the mean is {score}")

    def log(self, path, run):
        """Check a log, where it is at hand."""
        if path.is_file():
            need(digest_of(path) == run["sha256"], f"digest of {path}")
            took = 60_000 * float(run["minutes"])
            need(near(log_took(path), took, 1e-12), f"time of {path}")

    def recomputed(self, line):
        self.stated(line)
        for name, digests in line["rows"].items():
            need(row_digests(self.file(name)).issuperset(digests), f"{name} lacks such a row")

    def finding(self, line):
        for name, digest in line["files"].items():
            need(self.sums.get(name) == digest, f"digest of {name}")

    relation = finding

    def follow(self):
        counts = dict.fromkeys(("printed", "minutes", "recomputed", "finding", "relation"), 0)
        for certificate in self.file("certificates.jsonl").read_bytes().splitlines():
            line = json.loads(certificate)
            try:
                counts[line["kind"]] += 1
                getattr(self, line["kind"])(line)
            except Exception as error:
                raise ValueError(f"{error!r} in {certificate[:200]!r}") from error
        lacking = [*self.cells, *self.entries]
        need(not lacking, f"{len(lacking)} figures lack a certificate: {lacking[:1]}")
        return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def check(release, raw, root, logs="/dev/null"):
    """Return what was counted. Raises ValueError, with the first broken link."""
    found = digest_of(pathlib.Path(release, "SHA256SUMS"))
    need(root in (None, found), f"the root is {found}")
    return Checker(release, raw, logs).follow()


if __name__ == "__main__":
    print(f"yes: {check(*sys.argv[1:])}; no statement was run")
