"""Small releases with certificates, and figures that no source prints."""

from __future__ import annotations

import csv
import hashlib
import json
import random
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import duckdb
from ipu_results.kit.files import hash_file
from ipu_results.record.store.files import get_csv_name
from ipu_results.record.store.tables import write_csv
from ipu_results.release.certificates import split_records, write_certificates
from ipu_results.release.files import CERTIFICATES, write_checksums

TABLES = (
    "results",
    "figures",
    "microbenchmarks",
    "mlperf_entries",
    "claims",
    "recomputations",
    "contradictions",
    "models",
    "platforms",
    "detail.facts",
    "detail.mlperf_rcp",
    "scaling",
    "documents",
)
Line = dict[str, Any]


def certify(connection: duckdb.DuckDBPyConnection, folder: Path) -> Path:
    """Write the CSV files that certificates name, and the certificates of the whole record."""
    (folder / "detail").mkdir(parents=True)
    selects = {name: f"FROM {name}" for name in TABLES}
    selects["cells"] = "FROM cells WHERE value IS NOT NULL ORDER BY result_id, cell_number"
    for name, select in selects.items():
        write_csv(connection.sql(select).to_arrow_table(), folder / get_csv_name(name))
    write_certificates(connection, folder)
    write_checksums(folder)
    return folder


def read_lines(folder: Path) -> list[Line]:
    text = (folder / CERTIFICATES).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def select_by_source(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """Return the lines by kind, those of printed figures by the suffix of their source."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        kind = line["kind"]
        if kind == "printed":
            kind = line["file"].rpartition(".")[2]
        groups.setdefault(kind, []).append(line)
    return groups


def shrink(certified: Path, target: Path, lines: list[Line]) -> Path:
    """Make a release of some lines, with the rows that they name and no others."""
    (target / "detail").mkdir(parents=True)
    keys: dict[str, set[tuple[str, ...]]] = {get_csv_name(name): set() for name in TABLES}
    keys["cells.csv"] = {tuple(line["id"].split()) for line in lines if line["kind"] == "printed"}
    digests = set()
    for line in lines:
        if "stated" in line:
            keys[line["stated"]].add(tuple(map(str, line["key"].values())))
        for each in line.get("rows", {}).values():
            digests.update(each)
    for name, wanted in keys.items():
        (target / name).write_bytes(_keep_rows(certified / name, wanted, digests))
    shutil.copy(certified / "documents.csv", target)
    write_lines(target, lines)
    return target


def _keep_rows(path: Path, keys: set[tuple[str, ...]], digests: set[str]) -> bytes:
    """Return a CSV file with the rows of which the first columns are a key, or that have a digest."""
    sizes = {len(key) for key in keys}
    records = split_records(path.read_bytes())
    kept = [next(records)]
    for record in records:
        [cells] = csv.reader([record.decode()])
        starts = {tuple(cells[:size]) for size in sizes}
        if path.name == "mlperf_entries.csv":
            # an entry is named by its round and its path, which are not side by side
            starts = {(cells[0], cells[15])}
        if starts & keys or hashlib.sha256(record).hexdigest() in digests:
            kept.append(record)
    return b"\n".join(kept) + b"\n"


def write_lines(folder: Path, lines: list[Line]) -> None:
    """Write the certificates and the checksums that fit, as a careful forger would."""
    for line in lines:
        if "files" in line:
            names = [name for name in line["files"] if (folder / name).exists()]
            line["files"] = {name: hash_file(folder / name) for name in names}
    texts = [json.dumps(line, ensure_ascii=False) for line in lines]
    (folder / CERTIFICATES).write_text("\n".join(texts) + "\n", encoding="utf-8")
    write_checksums(folder)


def rewrite_cell(path: Path, key: dict[str, str], column: str, value: object) -> None:
    """Write another value into the row of a CSV file that has these values."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    [row] = [row for row in rows if key.items() <= row.items()]
    row[column] = str(value)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


# A figure that no source prints


def change_digit(text: str, rng: random.Random) -> str:
    """Return a figure with one digit changed, the first digit never to a zero."""
    position = rng.choice([at for at, each in enumerate(text) if each.isdigit()])
    digits = [each for each in "123456789" if each != text[position]]
    return text[:position] + rng.choice(digits) + text[position + 1 :]


def read_plain(text: str) -> float:
    hours = re.fullmatch(r"(\d+)h (\d+)m", text)
    if hours:
        return int(hours[1]) * 3600.0 + int(hours[2]) * 60
    return float(text.partition(" ")[0].replace(",", ""))


def forge_all(line: Line, rng: random.Random) -> Line:
    """Change the figure in every field, as someone who writes a wrong figure would."""
    raw = change_digit(line["raw"], rng)
    forged = {**line, "raw": raw, "value": read_plain(raw)}
    if "figure" in line:
        forged["figure"] = forged["value"] * line["factor"]
    return forged


def forge_value(line: Line, rng: random.Random) -> Line:
    return {**line, "value": _scale(line["value"], rng)}


def forge_figure(line: Line, rng: random.Random) -> Line:
    """Change the figure that the release states, or the value where it states none."""
    field = "figure" if "figure" in line else "value"
    return {**line, field: _scale(line[field], rng)}


def forge_factor(line: Line, rng: random.Random) -> Line:
    if line["factor"] is None:
        return forge_value(line, rng)
    factor = line["factor"] * rng.choice([1000, 60, 0.001])
    return {**line, "factor": factor, "figure": line["value"] * factor + 1}


def _scale(figure: Any, rng: random.Random) -> Any:
    """Return another figure, the last of its digits changed at least."""
    if isinstance(figure, str):
        return change_digit(figure, rng)
    return figure * rng.choice([10, 1 + 1e-9, 0.5]) + (figure == 0)


def forge_minutes(line: Line, rng: random.Random) -> Line:
    """Change the score, the minutes of a run, the digest of a log, or which logs count."""
    logs = [dict(log) for log in line["logs"]]
    log = rng.choice([log for log in logs if log["counted"]])
    kind = rng.randrange(5)
    if kind == 0:
        return {**line, "figure": _scale(line["figure"], rng)}
    if kind == 1:
        log["minutes"] = _scale(log["minutes"], rng)
    elif kind == 2:
        log["sha256"] = hashlib.sha256(str(log).encode()).hexdigest()
    elif kind == 3:
        log["counted"] = False
    else:
        logs.remove(log)
    return {**line, "logs": logs}


def forge_rows(line: Line, rng: random.Random) -> Line:
    """Change the recomputed figure, or a row that it was computed from."""
    if rng.random() < 0.5:
        return {**line, "figure": _scale(line["figure"], rng)}
    rows = {name: list(digests) for name, digests in line["rows"].items()}
    digests = rows[rng.choice(sorted(rows))]
    digests[0] = hashlib.sha256(digests[0].encode()).hexdigest()
    return {**line, "rows": rows}


PRINTED = (forge_all, forge_value, forge_figure, forge_factor)
FORGERIES: dict[str, tuple[Callable[[Line, random.Random], Line], ...]] = {
    "csv": PRINTED,
    "html": PRINTED,
    "pdf": PRINTED,
    "minutes": (forge_minutes,),
    "recomputed": (forge_rows,),
}
