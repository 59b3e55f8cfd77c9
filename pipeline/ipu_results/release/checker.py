"""Follow each certificate of a release to the bytes of its source: yes, or the first broken link.

usage: python checker.py RELEASE RAW [ROOT [LOGS]]; docs/reference/certificates.md has the format.
"""

import base64
import csv
import hashlib
import io
import json
import re
import sys
import zlib
from collections import Counter, defaultdict
from functools import cache
from math import fsum, isclose
from pathlib import Path

KINDS = ("printed", "minutes", "recomputed", "finding", "relation")
STATING = ("results.csv", "figures.csv", "microbenchmarks.csv")
CELL = ("result_id", "cell_number")
ENTRY = ("round", "path")
# What a certificate says, and the column that has it.
OF_CELL = {"column": "column_name", "locator": "locator", "value": "value", "factor": "factor"}
OF_DOCUMENT = {"file": "file", "sha256": "sha256"}
OF_LOG = {name: name for name in ("file", "sha256", "counted", "minutes")}
FIGURE = re.compile(r"(-?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?)(?: \D.*)?")
SHOWN = re.compile(rb"/F2 (\S+) Tf.*\n?.*BT 1 0 0 1 (\S+) (\S+) Tm \(((?:\\.|[^\\)])*)\) Tj")
ABOVE_BASELINE = 0.783  # of the size of Times-Roman: the top of a box
ROUNDED = 5e-12  # half a unit of the twelfth digit, which what we computed has
MULTIPLIED = 1e-15  # what a product of doubles may be off


def require(is_so, message):
    if not is_so:
        raise ValueError(message)


def hash_bytes(data):
    return hashlib.sha256(data).hexdigest()


def read_bytes(path, sha256):
    data = path.read_bytes()
    require(hash_bytes(data) == sha256, f"{path} has other bytes")
    return data


def read_figure(text):
    if duration := re.fullmatch(r"(\d+)h (\d+)m", text):
        return int(duration[1]) * 3600 + int(duration[2]) * 60
    return float(FIGURE.fullmatch(text)[1].replace(",", ""))


def list_cells(place, header, row):
    for number, (name, text) in enumerate(zip(header, row, strict=True), 1):
        yield f"{place}, column {number} ({name})", " ".join(text.split())


def read_csv(data):
    cells = {}
    reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    header = next(reader)
    for row in reader:
        cells |= list_cells(f"line {reader.line_num}", header, row)
    return cells


def read_html(data):
    cells = {}
    is_plain = not re.search(rb"rowspan|colspan|<!--|&", data)
    require(is_plain, "a page with spans, comments or entities is not read")
    for table, text in enumerate(re.findall(r"(?s)<table.*?</table>", data.decode()), 1):
        rows = [re.findall(r"(?s)<t[dh]\b[^>]*>(.*?)</t[dh]>", row) for row in text.split("<tr")]
        # before the first <tr> there is no row, and the next one is the header
        for number, row in enumerate(rows[2:], 1):
            cells |= list_cells(f"table {table}, row {number}", rows[1], row)
    return cells


def read_pdf(data):
    cells = {}
    [height] = re.findall(rb"/MediaBox \[ 0 0 \S+ (\S+) \]", data)  # of the only page
    [packed] = re.findall(rb"(?s)stream\r?\n(.*?)~>", data)
    for size, x, y, text in SHOWN.findall(zlib.decompress(base64.a85decode(packed))):
        top = float(height) - float(y) - ABOVE_BASELINE * float(size)
        place = f"page 1, box {float(x):.1f},{top:.1f}"
        require(place not in cells, f"two texts begin at {place}")
        # of a labelled fact, what follows the label
        cells[place] = re.sub(rb"\\(.)", rb"\1", text).decode("cp1252").split(": ")[-1]
    return cells


def time_log(data):
    times = {}
    for line in re.findall(rb":::MLLOG ([^\r\n]*)", data):
        entry = json.loads(line.decode("latin-1"))
        # the last start before the first stop counts
        if "run_stop" not in times:
            times[entry["key"]] = entry["time_ms"]
    return (times["run_stop"] - times["run_start"]) / 60_000


@cache
def read_source(path, sha256):
    readers = {".csv": read_csv, ".html": read_html, ".pdf": read_pdf}
    return readers[path.suffix](read_bytes(path, sha256))


@cache
def read_rows(path, names):
    rows = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows[tuple(row[name] for name in names)].append(row)
    return rows


@cache
def digest_rows(path):
    # a line break in quotes is part of a row
    return set(map(hash_bytes, re.findall(rb'(?:[^"\n]|"[^"]*")+', path.read_bytes())))


def compare(line, columns, row, tolerance=0):
    for field, column in columns.items():
        said = line[field]
        if isinstance(said, (int, float)) and not isinstance(said, bool):
            is_same = isclose(float(row[column]), said, rel_tol=tolerance)
        else:
            is_same = row[column] == str("" if said is None else said)
        require(is_same, f"{column} is {row[column]}, not {said}")


class Checker:
    def __init__(self, release, raw, root="", logs=""):
        self.release = Path(release)
        self.raw = Path(raw)
        self.logs = Path(logs)
        # without an announced root, the one that the release has
        self.root = root or hash_bytes((self.release / "SHA256SUMS").read_bytes())
        self.sums = {}
        self.seen = defaultdict(set)
        self.counts = Counter()

    def check_all(self):
        for line in read_bytes(self.release / "SHA256SUMS", self.root).decode().splitlines():
            sha256, name = line.split("  ")
            read_bytes(self.release / name, sha256)
            self.sums[name] = sha256
        with (self.release / "certificates.jsonl").open(encoding="utf-8") as file:
            for text in file:
                self.check_line(json.loads(text))
        self.check_all_seen("printed", "cells.csv", CELL, "value")
        self.check_all_seen("minutes", "mlperf_entries.csv", ENTRY, "minutes")

    def check_line(self, line):
        self.counts["lines"] += 1
        require(line["kind"] in KINDS, f"{line['kind']} is no kind of certificate")
        self.counts[line["kind"]] += 1
        getattr(self, f"check_{line['kind']}")(line)

    def check_all_seen(self, kind, file, names, needed):
        rows = read_rows(self.release / file, names)
        expected = {key for key in rows if rows[key][0][needed]}
        is_once = len(self.seen[kind]) == self.counts[kind]
        require(is_once, f"a row of {file} has two certificates")
        require(self.seen[kind] == expected, f"{file} has other rows than the {kind} certificates")

    def check_row(self, line, columns, file, key):
        [row] = read_rows(self.release / file, tuple(key))[tuple(map(str, key.values()))]
        compare(line, columns, row)
        return row

    def check_stated(self, line):
        require(line["figure"] is not None, f"{line['in']} has no figure")
        return self.check_row(line, {"figure": line["in"]}, line["stated"], line["key"])

    def check_printed(self, line):
        key = tuple(line["id"].split())
        self.seen["printed"].add(key)
        cell = self.check_row(line, OF_CELL, "cells.csv", dict(zip(CELL, key, strict=True)))
        source = {"document_id": cell["document_id"]}
        document = self.check_row(line, OF_DOCUMENT, "documents.csv", source)
        digits = 12 if document["kind"] in ("derived", "run") else None
        require(line.get("digits") == digits, f"figures of {line['file']} have {digits} digits")
        # of a box, the left edge and the top
        place = re.sub(r"(box [\d.]+,[\d.]+).*", r"\1", line["locator"])
        text = read_source(self.raw / line["file"], line["sha256"]).get(place)
        require(text == line["raw"], f"{line['file']} has {text!r}, not {line['raw']!r} at {place}")
        figure = read_figure(text)
        tolerance = ROUNDED if digits else 0
        is_same = isclose(figure, line["value"], rel_tol=tolerance)
        require(is_same, f"{text!r} is not {line['value']}")
        # without a factor no other table has the figure
        if line["factor"] is not None:
            figure *= line["factor"]
            is_same = isclose(figure, line["figure"], rel_tol=tolerance + MULTIPLIED)
            require(is_same, f"{text!r} times {line['factor']} is not {line['figure']}")
            self.check_stated(line)
            # the row is that of the cell's result, or of the result and the column
            own = key[0], line["column"]
            is_own = tuple(line["key"].values()) in (own[:1], own)
            is_own &= line["in"] in {line["column"], "value", "canonical_value"}
            is_own &= line["stated"] in STATING
            require(is_own, f"{line['in']} of {line['key']} is another figure")

    def check_minutes(self, line):
        entry = self.check_stated(line)
        is_own = (line["stated"], line["in"]) == ("mlperf_entries.csv", "minutes")
        is_own &= line["factor"] == float(entry["scaling_factor"] or 1)
        is_own &= line["drop"] == (4 if entry["benchmark"] == "unet3d" else 1)
        require(is_own, f"{line['key']} has another figure, factor or drop")
        key = entry["round"], entry["path"]
        self.seen["minutes"].add(key)
        read_source(self.raw / line["file"], line["sha256"])  # for its digest
        runs = read_rows(self.raw / line["file"], ENTRY)[key]
        minutes = []
        for run, log in zip(runs, line["logs"], strict=True):
            compare(log, OF_LOG, run, ROUNDED)
            if log["counted"]:
                minutes.append(float(run["minutes"]))
                self.check_log(self.logs / f"v{key[0]}", key[1], log, minutes[-1])
        # a run that does not count is one of the slowest that are left out
        kept = sorted(minutes)[line["drop"] : len(runs) - line["drop"]]
        score = fsum(kept) / len(kept) * line["factor"]
        require(isclose(score, line["figure"], rel_tol=2 * ROUNDED), f"{key} scores {score}")

    def check_log(self, folder, path, log, minutes):
        self.counts["logs"] += 1
        file = folder / path / log["file"]
        if file.is_file():
            logged = time_log(read_bytes(file, log["sha256"]))
            require(isclose(logged, minutes, rel_tol=1e-12), f"{file} has times of {logged}")
            self.counts["logs read"] += 1

    def check_recomputed(self, line):
        self.check_stated(line)
        for file, digests in line["rows"].items():
            require(set(digests) <= digest_rows(self.release / file), f"{file} has other rows")

    def check_finding(self, line):
        require(line["files"].items() <= self.sums.items(), f"{line['id']} read other files")

    check_relation = check_finding


if __name__ == "__main__":
    checker = Checker(*sys.argv[1:])
    try:
        checker.check_all()
    except (ValueError, LookupError, TypeError, OSError) as error:
        sys.exit(f"no: line {checker.counts['lines']}: {error!r}")
    print(f"yes, for root {checker.root}: {dict(checker.counts)}; no statement was run")
