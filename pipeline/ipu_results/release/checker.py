"""Follow each certificate of a release to the bytes of its source: yes, or the first broken link.

usage: python checker.py RELEASE RAW [ROOT [LOGS]]; docs/reference/certificates.md has the format.
"""

import base64
import csv
import hashlib
import html
import io
import json
import math
import re
import sys
import zlib
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

FIGURE = re.compile(r"(-?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?)(?: \D.*)?")
SHOWN = re.compile(rb"/F2 (\S+) Tf.*\n?.*BT 1 0 0 1 (\S+) (\S+) Tm \(((?:\\.|[^\\)])*)\) Tj")
ABOVE_BASELINE = 0.783  # of the size of Times-Roman: the top of a box
CELL = ("result_id", "cell_number")
ENTRY = ("round", "path")
COMPUTED = ("derived", "run")  # by us, with 12 digits
STATING = ("results.csv", "figures.csv", "microbenchmarks.csv")
KINDS = ("printed", "minutes", "recomputed", "finding", "relation")


def require(is_so, message):
    if not is_so:
        raise ValueError(message)


def hash_bytes(data):
    return hashlib.sha256(data).hexdigest()


def read_figure(text):
    if duration := re.fullmatch(r"(\d+)h (\d+)m", text):
        return int(duration[1]) * 3600 + int(duration[2]) * 60
    return float(FIGURE.fullmatch(text)[1].replace(",", ""))


def is_same(figure, stated, digits):
    # half a unit of the twelfth digit
    return math.isclose(figure, stated, rel_tol=5e-12 if digits else 0)


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
    require(not re.search(rb"rowspan|colspan|<!--", data), "spans and comments are not read")
    for table, text in enumerate(re.findall(r"(?s)<table.*?</table>", data.decode()), 1):
        rows = [re.findall(r"(?s)<t[dh]\b[^>]*>(.*?)</t[dh]>", row) for row in text.split("<tr")]
        for number, row in enumerate(rows[2:], 1):
            texts = [html.unescape(re.sub("<[^>]*>", "", cell)) for cell in row]
            cells |= list_cells(f"table {table}, row {number}", rows[1], texts)
    return cells


def read_pdf(data):
    cells = {}
    objects = dict(re.findall(rb"(?s)(\d+) 0 obj(.*?)endobj", data))
    kids = re.search(rb"/Kids \[(.*?)\]", data)[1]
    for page, name in enumerate(re.findall(rb"(\d+) 0 R", kids), 1):
        height = float(re.search(rb"/MediaBox \[ 0 0 \S+ (\S+) \]", objects[name])[1])
        content = objects[re.search(rb"/Contents (\d+) 0 R", objects[name])[1]]
        packed = re.search(rb"(?s)stream\r?\n(.*?)~>", content)[1]
        for size, x, y, text in SHOWN.findall(zlib.decompress(base64.a85decode(packed))):
            top = height - float(y) - ABOVE_BASELINE * float(size)
            place = f"page {page}, box {float(x):.1f},{top:.1f}"
            require(place not in cells, f"two texts begin at {place}")
            # of a labelled fact, what follows the label
            cells[place] = re.sub(rb"\\(.)", rb"\1", text).decode("cp1252").split(": ")[-1]
    return cells


def time_log(data):
    times = {}
    for line in re.findall(rb":::MLLOG ([^\r\n]*)", data):
        entry = json.loads(line.decode("latin-1"))
        if entry["key"] in {"run_start", "run_stop"} and "run_stop" not in times:
            times[entry["key"]] = entry["time_ms"]
    return (times["run_stop"] - times["run_start"]) / 60_000


def read_bytes(path, sha256):
    data = path.read_bytes()
    require(hash_bytes(data) == sha256, f"{path} has other bytes")
    return data


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
    return set(map(hash_bytes, re.findall(rb'(?:[^"\n]|"[^"]*")+', path.read_bytes())))


class Checker:
    def __init__(self, release, raw, root="", logs=""):
        self.release, self.raw, self.logs = Path(release), Path(raw), Path(logs)
        self.root = root or hash_bytes((self.release / "SHA256SUMS").read_bytes())
        self.sums, self.seen, self.counts = {}, defaultdict(set), Counter()

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
        require(self.seen[kind] == expected, f"{file} has other rows than the {kind} certificates")

    def check_stated(self, line):
        key = tuple(map(str, line["key"].values()))
        [row] = read_rows(self.release / line["stated"], tuple(line["key"]))[key]
        figure = type(line["figure"])(row[line["in"]])
        require(figure == line["figure"], f"{line['stated']} has {figure}, not {line['figure']}")
        return key

    def check_printed(self, line):
        place = re.sub(r"(box [\d.]+,[\d.]+).*", r"\1", line["locator"])
        text = read_source(self.raw / line["file"], line["sha256"]).get(place)
        require(text == line["raw"], f"{line['file']} has {text!r}, not {line['raw']!r} at {place}")
        figure, digits = read_figure(text), line.get("digits")
        require(is_same(figure, line["value"], digits), f"{text!r} is not {line['value']}")
        self.check_cell(line)
        if line["factor"] is not None:
            tolerance = 1e-11 if digits else 1e-15
            is_near = math.isclose(figure * line["factor"], line["figure"], rel_tol=tolerance)
            require(is_near, f"{text!r} times {line['factor']} is not {line['figure']}")
            key = self.check_stated(line)
            is_own = line["id"].startswith(f"{key[0]} ") and key[1:] in {(), (line["column"],)}
            is_own &= line["in"] in {line["column"], "value", "canonical_value"}
            is_own &= line["stated"] in STATING
            require(is_own, f"{line['in']} of {key} is another figure")

    def check_cell(self, line):
        key = tuple(line["id"].split())
        self.seen["printed"].add(key)
        [cell] = read_rows(self.release / "cells.csv", CELL)[key]
        documents = read_rows(self.release / "documents.csv", ("document_id",))
        [document] = documents[(cell["document_id"],)]
        place = document["file"], document["sha256"], cell["locator"], cell["column_name"]
        said = line["file"], line["sha256"], line["locator"], line["column"]
        require(said == place, f"the cell is of {place}, not {said}")
        factor = float(cell["factor"]) if cell["factor"] else None
        digits = 12 if document["kind"] in COMPUTED else None
        figures = float(cell["value"]), factor, digits
        said = line["value"], line["factor"], line.get("digits")
        require(said == figures, f"the cell has value, factor and digits {figures}, not {said}")

    def check_minutes(self, line):
        key = self.check_stated(line)
        self.seen["minutes"].add(key)
        [entry] = read_rows(self.release / "mlperf_entries.csv", ENTRY)[key]
        drop = 4 if entry["benchmark"] == "unet3d" else 1
        own = float(entry["minutes"]), float(entry["scaling_factor"] or 1), drop
        said = line["figure"], line["factor"], line["drop"]
        require(said == own, f"the entry has minutes, factor and drop {own}, not {said}")
        read_source(self.raw / line["file"], line["sha256"])
        runs = read_rows(self.raw / line["file"], ENTRY)[key]
        minutes = []
        for run, log in zip(runs, line["logs"], strict=True):
            said = log["file"], log["sha256"] or "", str(log["counted"])
            require(said == (run["file"], run["sha256"], run["counted"]), f"{said} is another log")
            if log["counted"]:
                minutes.append(float(run["minutes"]))
                require(is_same(minutes[-1], log["minutes"], 12), f"{said} has other minutes")
                self.check_log(self.logs / f"v{key[0]}", key[1], log, minutes[-1])
        slowest = line["drop"] - (len(runs) - len(minutes))
        kept = sorted(minutes)[line["drop"] : len(minutes) - slowest]
        score = math.fsum(kept) / len(kept) * line["factor"]
        require(math.isclose(score, line["figure"], rel_tol=1e-11), f"{key} scores {score}")

    def check_log(self, folder, path, log, minutes):
        self.counts["logs"] += 1
        file = folder / path / log["file"]
        if file.is_file():
            logged = time_log(read_bytes(file, log["sha256"]))
            require(math.isclose(logged, minutes, rel_tol=1e-12), f"{file} has times of {logged}")
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
