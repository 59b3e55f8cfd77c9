"""Tampering with CSV, descriptors and texts that `verify` must find: name, change of a folder, part
of the message.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

from tests.release.release_support import read_record, replace_file, write_record
from tests.release.tampering_tables import Kind, Record, Tamper

# CSV


def edit_csv(edit: Callable[[list[list[str]]], list[list[str]]], name: str = "models") -> Tamper:
    def change(folder: Path) -> None:
        text = (folder / f"{name}.csv").read_text(encoding="utf-8")
        rows = list(csv.reader(io.StringIO(text, newline="")))
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(edit(rows))
        replace_file(folder / f"{name}.csv", out.getvalue().encode())

    return change


def edit_bytes(name: str, edit: Callable[[bytes], bytes]) -> Tamper:
    def change(folder: Path) -> None:
        data = (folder / name).read_bytes()
        assert edit(data) != data, name
        replace_file(folder / name, edit(data))

    return change


def replace_bytes(name: str, old: bytes, new: bytes) -> Tamper:
    return edit_bytes(name, lambda data: data.replace(old, new, 1))


CSV_KINDS: list[Kind] = [
    (
        "row removed",
        edit_csv(lambda rows: rows[:-1]),
        "models.csv: rows differ from models.parquet",
    ),
    (
        "order of rows",
        edit_csv(lambda rows: [rows[0], *rows[:0:-1]]),
        "models.csv: rows differ from models.parquet",
    ),
    (
        "wider row",
        edit_csv(lambda rows: [*rows[:-1], [*rows[-1], "x"]]),
        "models: cannot be checked: ArrowInvalid: ",
    ),
    ("null as empty text", replace_bytes("flags.csv", b",\n", b',""\n'), "flags.csv"),
    ("not UTF-8", edit_bytes("models.csv", lambda data: data + b'"\xff"\n'), "models"),
]


# Descriptors


def edit_record(name: str, edit: Callable[[Record], object]) -> Tamper:
    def change(folder: Path) -> None:
        record = read_record(folder, name)
        edit(record)
        write_record(folder, name, record)

    return change


def state(name: str, **values: object) -> Tamper:
    """Change values of a JSON file, or add them."""
    return edit_record(name, lambda record: record.update(values))


def drop(name: str, key: str) -> Tamper:
    return edit_record(name, lambda record: record.pop(key))


def edit_release(edit: Callable[[Record], object]) -> Tamper:
    return edit_record(RELEASE, edit)


RELEASE = "release.json"
PACKAGE = "datapackage.json"
PACKAGE_KINDS: list[Kind] = [
    ("version", state(PACKAGE, version="9.9.9"), "has version 9.9.9"),
    (
        "created",
        state(PACKAGE, created="2020-01-01T00:00:00Z"),
        "has date 2020-01-01",
    ),
    ("not JSON", edit_bytes(PACKAGE, lambda _: b"{"), "is not a JSON object"),
    ("deep JSON", edit_bytes(PACKAGE, lambda _: b'{"a":' * 10_000), "is not a JSON object"),
]
CROISSANT = "croissant.json"
CROISSANT_KINDS: list[Kind] = [
    ("version", state(CROISSANT, version="9.9.9"), "has version 9.9.9"),
    ("date", drop(CROISSANT, "datePublished"), "has date None"),
]


def forge_history(record: Record) -> None:
    record.update(previous={"version": "0.9.0", "build_id": "0" * 64}, least_version="0.9.1")
    record["changes"] = [{"level": "major", "what": "x"}]


RELEASE_KINDS: list[Kind] = [
    ("version", state(RELEASE, version="9.9.9"), "has version"),
    ("version that is none", state(RELEASE, version="x"), "is not a version"),
    (
        "control characters",
        state(RELEASE, version="1\n\x1b[31mOK"),
        r"has 1\n\x1b",
    ),
    (
        "no tables",
        drop(RELEASE, "tables"),
        f"{RELEASE}: cannot be checked: KeyError",
    ),
    (
        "table of another folder",
        edit_release(lambda record: record["tables"].update({"../x": {}})),
        "x.csv: is missing",
    ),
    ("date", state(RELEASE, published_on="2020-01-01"), "has date"),
    ("build id", state(RELEASE, build_id="0" * 64), "build id differs"),
    ("rows", edit_release(lambda record: record["tables"]["flags"].update(rows=1)), "rows differ"),
    (
        "digest",
        edit_release(lambda record: record["tables"]["flags"].update(rows_sha256="0" * 64)),
        "rows differ",
    ),
    ("table removed", edit_release(lambda record: record["tables"].pop("flags")), "does not list"),
    (
        "view",
        edit_release(lambda record: record["views"].update(latest="0" * 64)),
        "definition of latest",
    ),
    ("key added", state(RELEASE, note="x"), "other keys"),
    ("history", edit_release(forge_history), "does not follow 0.9.0"),
    (
        "change",
        edit_release(lambda record: record["changes"].append({"level": "patch", "what": "x"})),
        "without a previous",
    ),
    (
        "correction",
        edit_release(lambda record: record["corrections"].append({"table": "x"})),
        "without a previous",
    ),
    ("format", state(RELEASE, format=2), "only 1 is supported"),
]
TEXT_KINDS: list[Kind] = [
    (
        "version in the citation",
        replace_bytes("CITATION.cff", b": 1.0.0", b": 1.0.1"),
        "has version 1.0.1",
    ),
]


FILE_KINDS: list[Kind] = [
    ("file added", lambda folder: replace_file(folder / "notes.txt", b"mine"), "notes.txt"),
]
