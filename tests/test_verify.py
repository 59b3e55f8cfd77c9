"""A flipped byte anywhere, a missing, extra or swapped file, and files that agree in bytes and not in rows."""

from __future__ import annotations

import functools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from conftest import run_cli
from hypothesis import given, settings
from hypothesis import strategies as st
from ipu_results.errors import UnreadableReleaseError
from ipu_results.release.sums import SUMS, digest, read_sums, write_sums
from ipu_results.release.verify import check, check_sums
from ipu_results.store.files import DATABASE


@pytest.fixture
def copy(small_release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_release, tmp_path / "copy"))


def lines(release: Path) -> list[str]:
    return [problem.line for problem in check(release)]


# bytes


def test_one_flipped_byte_in_any_file_is_found(copy: Path) -> None:
    for path in sorted(copy.iterdir()):
        data = path.read_bytes()

        @settings(max_examples=4, database=None)
        @given(st.integers(0, len(data) - 1), st.integers(1, 255))
        def flipped(path: Path, data: bytes, at: int, bits: int) -> None:
            path.write_bytes(data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :])
            assert any(problem.path in (path.name, SUMS) or path.name == SUMS for problem in check_sums(copy))

        functools.partial(flipped, path, data)()
        path.write_bytes(data)
    assert check_sums(copy) == []


def test_every_byte_of_the_sums_counts(copy: Path) -> None:
    """Each bit of two lines; the others are alike."""
    path = copy / SUMS
    data = path.read_bytes()
    told = read_sums(path)
    for at in range(2 * data.index(b"\n")):
        for bit in range(8):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            assert read_sums(path) != told


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data + b"\n",
        lambda data: data + data.splitlines(keepends=True)[0],
        lambda data: b"".join(reversed(data.splitlines(keepends=True))),
        lambda data: data.replace(b"  ", b" *"),
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda _: b"",
        lambda data: data.replace(b"LICENSE", b"../LICENSE"),
    ],
)
def test_sums_that_are_not_as_we_write_them(change: Callable[[bytes], bytes], copy: Path) -> None:
    (copy / SUMS).write_bytes(change((copy / SUMS).read_bytes()))
    assert check_sums(copy)


def test_missing_extra_and_swapped_files(copy: Path) -> None:
    (copy / "LICENSE").unlink()
    (copy / "notes.txt").write_text("mine")
    (copy / "folder").mkdir()
    (copy / os.fsdecode(b"\x1b[2J\xff")).write_text("")
    os.replace(copy / "flags.csv", copy / "x")
    os.replace(copy / "models.csv", copy / "flags.csv")
    os.replace(copy / "x", copy / "models.csv")
    assert lines(copy) == [
        "LICENSE: is missing",
        "flags.csv: has another sha256 than SHA256SUMS says",
        "models.csv: has another sha256 than SHA256SUMS says",
        r"\x1b[2J\udcff: does not belong to the release",
        "folder: does not belong to the release",
        "notes.txt: does not belong to the release",
    ]


def test_a_link_is_no_file(copy: Path, tmp_path: Path) -> None:
    os.replace(copy / "LICENSE", tmp_path / "LICENSE")
    (copy / "LICENSE").symlink_to(tmp_path / "LICENSE")
    assert lines(copy) == ["LICENSE: is no plain file"]


def test_sums_that_are_a_link_are_none(copy: Path, tmp_path: Path) -> None:
    os.replace(copy / SUMS, tmp_path / SUMS)
    (copy / SUMS).symlink_to(tmp_path / SUMS)
    assert lines(copy) == ["SHA256SUMS: is no plain file"]
    (tmp_path / SUMS).unlink()
    assert lines(copy) == ["SHA256SUMS: is no plain file"]


def test_without_sums_there_is_nothing_to_trust(copy: Path) -> None:
    (copy / SUMS).unlink()
    assert lines(copy) == ["SHA256SUMS: is missing"]


# rows: every digest is made anew, as one would who changes a release on purpose


def sealed(release: Path, *changed: str) -> None:
    """Digests of changed files written anew in the descriptions and in SHA256SUMS."""
    for name in ("datapackage.json", "croissant.json"):
        text = (release / name).read_text(encoding="utf-8")
        told = json.loads(text)
        for one in [*told.get("resources", ()), *told.get("distribution", ())]:
            path = release / (one.get("path") or one["contentUrl"])
            if path.name in changed and path.exists():
                hashed = {"hash": f"sha256:{digest(path)}", "bytes": path.stat().st_size}
                one.update(hashed if "hash" in one else {"sha256": digest(path)})
        if changed:
            (release / name).write_text(json.dumps(told), encoding="utf-8")
    write_sums(release)


def test_other_rows_in_csv(copy: Path) -> None:
    path = copy / "models.csv"
    text = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(text[:-1]), encoding="utf-8")
    sealed(copy, "models.csv")
    assert lines(copy) == ["models.csv: holds other rows than models.parquet"]


def test_rows_in_another_order_are_the_same(copy: Path) -> None:
    path = copy / "models.csv"
    head, *rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([head, *reversed(rows)]), encoding="utf-8")
    sealed(copy, "models.csv")
    assert lines(copy) == []


def test_a_csv_that_is_none(copy: Path) -> None:
    (copy / "models.csv").write_text('"model","item"\n"a","b","c"\n')
    sealed(copy, "models.csv")
    (told,) = lines(copy)
    assert told.startswith("models: cannot be checked: ArrowInvalid: ")


def test_other_rows_in_parquet(copy: Path) -> None:
    path = copy / "models.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    sealed(copy, "models.parquet")
    assert lines(copy) == [
        "models.parquet: holds other rows than release.json says",
        "models.csv: holds other rows than models.parquet",
        "ipu_results.duckdb: holds other rows of models than models.parquet",
    ]


def test_other_rows_in_duckdb(copy: Path) -> None:
    with duckdb.connect(str(copy / DATABASE)) as connection:
        connection.execute("UPDATE flags SET message = 'otherwise'")
    sealed(copy)
    assert lines(copy) == ["ipu_results.duckdb: holds other rows of flags than flags.parquet"]


DEFINED = "defines {} otherwise than release.json says"
COLUMNS = "has other columns of {} than the dictionary says"


@pytest.mark.parametrize(
    ("change", "name", "said"),
    [
        (
            "CREATE OR REPLACE VIEW latest AS SELECT * REPLACE (2 * throughput AS throughput) FROM results",
            *("latest", DEFINED),
        ),
        ("CREATE VIEW more AS FROM results", "more", DEFINED),
        ("DROP VIEW latest", "latest", DEFINED),
        ("CREATE MACRO more(a) AS a + 1", "more", DEFINED),
        ("DROP MACRO TABLE per_dollar", "per_dollar", DEFINED),
        ("CREATE TABLE more AS FROM models", "more", COLUMNS),
        ("CREATE SCHEMA s; CREATE TABLE s.models AS FROM models", "s.models", COLUMNS),
        ("ALTER TABLE build ADD COLUMN more INTEGER", "build", COLUMNS),
        ("CREATE OR REPLACE VIEW latest AS SELECT result_id FROM results", "latest", COLUMNS),
    ],
)
def test_other_tables_and_definitions_in_duckdb(change: str, name: str, said: str, copy: Path) -> None:
    with duckdb.connect(str(copy / DATABASE)) as connection:
        connection.execute(change)
    sealed(copy)
    assert f"ipu_results.duckdb: {said.format(name)}" in lines(copy)


def test_a_table_that_is_gone_but_in_duckdb_and_the_dictionary(copy: Path) -> None:
    for suffix in (".parquet", ".csv"):
        (copy / f"quarantine{suffix}").unlink()
    for name in ("release.json", "datapackage.json", "croissant.json"):
        told = json.loads((copy / name).read_text(encoding="utf-8"))
        told.get("tables", {}).pop("quarantine", None)
        for listed, key in (("resources", "path"), ("distribution", "contentUrl"), ("recordSet", "name")):
            told[listed] = [one for one in told.get(listed, ()) if not one[key].startswith("quarantine")]
        (copy / name).write_text(json.dumps(told), encoding="utf-8")
    write_sums(copy)
    assert lines(copy) == [
        "build.parquet: tells other rows or another build of quarantine than release.json",
        "columns.parquet: has the table quarantine",
    ]


def test_a_count_of_rows_that_are_not_there(copy: Path) -> None:
    path = copy / "build.parquet"
    table = pq.read_table(path)
    at = table.schema.get_field_index("row_count")
    pq.write_table(table.set_column(at, table.schema.field(at), pc.add(table["row_count"], 1)), path)
    sealed(copy, "build.parquet")
    assert "build.parquet: tells other rows or another build of flags than release.json" in lines(copy)


def test_a_database_that_is_none(copy: Path) -> None:
    (copy / DATABASE).write_bytes(b"none")
    sealed(copy)
    (told,) = lines(copy)
    assert told.startswith("ipu_results.duckdb: cannot be opened: ")


def edited(release: Path, name: str, edit: Callable[[dict[str, Any]], object]) -> None:
    told = json.loads((release / name).read_text(encoding="utf-8"))
    edit(told)
    (release / name).write_text(json.dumps(told), encoding="utf-8")
    write_sums(release)


def resource(told: dict[str, Any], path: str) -> dict[str, Any]:
    return next(one for one in told["resources"] if one["path"] == path)


def record_set(told: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in told["recordSet"] if one["name"] == name)


EDITS: dict[str, tuple[str, Callable[[dict[str, Any]], object], str]] = {
    "rows": ("release.json", lambda told: told["tables"]["flags"].update(rows=1), "flags.parquet: holds other rows"),
    "version": ("release.json", lambda told: told.update(version="9.9.9"), "datapackage.json: is of version 1.0.0"),
    "a table less": ("release.json", lambda told: told["tables"].pop("flags"), "flags.csv: is of no table"),
    "no tables": ("release.json", lambda told: told.pop("tables"), "release.json: cannot be checked: KeyError"),
    "tables of no kind": ("release.json", lambda told: told.update(tables=1), "release.json: cannot be checked"),
    "bytes": (
        "datapackage.json",
        lambda told: resource(told, "flags.csv").update(bytes=1),
        "datapackage.json: tells other bytes or another hash of flags.csv",
    ),
    "a resource less": (
        "datapackage.json",
        lambda told: told["resources"].remove(resource(told, "flags.csv")),
        "datapackage.json: says nothing of flags.csv",
    ),
    "a unit": (
        "datapackage.json",
        lambda told: resource(told, "results.csv")["schema"]["fields"][0].update(unit="s"),
        "datapackage.json: tells other columns of results.csv than there are",
    ),
    "no resources": ("datapackage.json", lambda told: told.pop("resources"), "cannot be checked: KeyError"),
    "sha256": (
        "croissant.json",
        lambda told: told["distribution"][0].update(sha256="0" * 64),
        "croissant.json: tells another sha256 of documents.parquet",
    ),
    "another build": (
        "release.json",
        lambda told: told.update(build_id="0" * 64),
        "flags.parquet: is of another build than release.json says",
    ),
    "another day": (
        "release.json",
        lambda told: told.update(published_on="2026-01-01"),
        "CITATION.cff: is of 2026-11-21, release.json of 2026-01-01",
    ),
    "another format": (
        "release.json",
        lambda told: told.update(format=2),
        "release.json: is of format 2, and only 1 is known",
    ),
    "another day in the package": (
        "datapackage.json",
        lambda told: told.update(created="2026-01-01T00:00:00Z"),
        "datapackage.json: is of 2026-01-01, release.json of 2026-11-21",
    ),
    "another day in croissant": (
        "croissant.json",
        lambda told: told.pop("datePublished"),
        "croissant.json: is of None, release.json of 2026-11-21",
    ),
    "no sources": ("datapackage.json", lambda told: told.pop("sources"), "datapackage.json: lacks sources"),
    "no licence": ("croissant.json", lambda told: told.pop("license"), "croissant.json: lacks license"),
    "another name": (
        "datapackage.json",
        lambda told: resource(told, "flags.csv").update(name="x"),
        "datapackage.json: calls flags.csv x",
    ),
    "no key": (
        "datapackage.json",
        lambda told: resource(told, "flags.csv")["schema"].pop("primaryKey"),
        "datapackage.json: tells another key of flags.csv than there is",
    ),
    "no foreign key": (
        "datapackage.json",
        lambda told: resource(told, "flags.parquet")["schema"].pop("foreignKeys"),
        "datapackage.json: tells other foreign keys of flags.parquet than there are",
    ),
    "no reference": (
        "croissant.json",
        lambda told: [one.pop("references", None) for one in record_set(told, "flags")["field"]],
        "croissant.json: tells other references of flags than there are",
    ),
    "no record set": (
        "croissant.json",
        lambda told: told["recordSet"].remove(record_set(told, "flags")),
        "croissant.json: has a record set flags too few",
    ),
    "a record set more": (
        "croissant.json",
        lambda told: told["recordSet"].append({**record_set(told, "flags"), "name": "more"}),
        "croissant.json: has a record set more too many",
    ),
    "no field": (
        "croissant.json",
        lambda told: record_set(told, "flags")["field"].pop(),
        "croissant.json: tells other columns of flags than there are",
    ),
    "another unit in croissant": (
        "croissant.json",
        lambda told: next(one for one in record_set(told, "results")["field"] if one["name"] == "latency_ms").update(
            description="Latency [s]"
        ),
        "croissant.json: tells other columns of results than there are",
    ),
    "no key in croissant": (
        "croissant.json",
        lambda told: record_set(told, "flags").pop("key"),
        "croissant.json: tells another key of flags than there is",
    ),
    "a foreign file": (
        "croissant.json",
        lambda told: told["distribution"].append({"contentUrl": "../secret", "sha256": ""}),
        "croissant.json: describes ../secret, which is no table",
    ),
}


def test_what_a_release_tells_does_not_reach_the_terminal_as_it_is(copy: Path) -> None:
    edited(copy, "release.json", lambda told: told.update(version="1.0.0\n\x1b[31mOK"))
    assert r"CITATION.cff: is of version 1.0.0, release.json of 1.0.0\n\x1b[31mOK" in lines(copy)


@pytest.mark.parametrize("kind", EDITS)
def test_descriptions_that_say_something_else(kind: str, copy: Path) -> None:
    name, edit, expected = EDITS[kind]
    edited(copy, name, edit)
    assert any(expected in line for line in lines(copy))


def test_a_citation_of_another_version(copy: Path) -> None:
    path = copy / "CITATION.cff"
    path.write_text(path.read_text(encoding="utf-8").replace("version: 1.0.0", "version: 1.0.1"), encoding="utf-8")
    write_sums(copy)
    assert lines(copy) == ["CITATION.cff: is of version 1.0.1, release.json of 1.0.0"]


def test_a_needed_file_that_the_sums_leave_out(copy: Path) -> None:
    (copy / "LICENSE").unlink()
    write_sums(copy)
    assert lines(copy) == ["LICENSE: is not named in SHA256SUMS"]


def test_columns_that_the_dictionary_does_not_have(copy: Path) -> None:
    path = copy / "columns.parquet"
    table = pq.read_table(path)
    rows = [row for row in table.to_pylist() if (row["table_name"], row["column_name"]) != ("flags", "message")]
    pq.write_table(type(table).from_pylist(rows, schema=table.schema), path)
    sealed(copy, "columns.parquet")
    assert "flags.parquet: has other columns than the dictionary says" in lines(copy)


# the command


def test_the_command_says_ok(small_release: Path) -> None:
    done = run_cli("verify", small_release)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"OK {small_release}\n", "")
    done = run_cli("verify", small_release, "--format", "json")
    assert json.loads(done.stdout) == {"ok": True, "problems": []}


def test_the_command_names_each_problem(copy: Path) -> None:
    (copy / "LICENSE").unlink()
    done = run_cli("verify", copy)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "FAIL LICENSE: is missing\n")
    done = run_cli("verify", copy, "--format", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == {"ok": False, "problems": [{"path": "LICENSE", "message": "is missing"}]}


def test_no_folder_is_one_line(tmp_path: Path) -> None:
    done = run_cli("verify", tmp_path / "none")
    assert (done.returncode, done.stderr) == (1, f"error: {tmp_path / 'none'}: no such folder\n")
    with pytest.raises(UnreadableReleaseError):
        check(tmp_path / "none")
