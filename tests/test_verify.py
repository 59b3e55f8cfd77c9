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
import pyarrow.parquet as pq
import pytest
from conftest import run_cli
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ReleaseUnreadable
from pipeline.publish.sums import SUMS, digest, read_sums, write_sums
from pipeline.publish.verify import check, check_sums
from pipeline.write import DATABASE


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


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("CREATE OR REPLACE VIEW latest AS SELECT * REPLACE (2 * throughput AS throughput) FROM results", "latest"),
        ("CREATE VIEW more AS FROM results", "more"),
        ("DROP VIEW latest", "latest"),
        ("CREATE MACRO more(a) AS a + 1", "more"),
        ("DROP MACRO TABLE per_dollar", "per_dollar"),
    ],
)
def test_other_definitions_in_duckdb(change: str, name: str, copy: Path) -> None:
    with duckdb.connect(str(copy / DATABASE)) as connection:
        connection.execute(change)
    sealed(copy)
    assert f"ipu_results.duckdb: defines {name} otherwise than release.json says" in lines(copy)


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
    "a foreign file": (
        "croissant.json",
        lambda told: told["distribution"].append({"contentUrl": "../secret", "sha256": ""}),
        "croissant.json: describes ../secret, which is no table",
    ),
}


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
    with pytest.raises(ReleaseUnreadable):
        check(tmp_path / "none")
