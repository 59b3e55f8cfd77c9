"""Damaged bytes, missing and extra files, and files whose bytes agree while their contents do not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import ipu_results
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from ipu_results.errors import WarehouseError
from ipu_results.kit.files import hash_file
from ipu_results.record.store.files import DATABASE
from ipu_results.release import verify_release
from ipu_results.release.files import CHECKSUMS, list_files, read_checksums, write_checksums
from ipu_results.release.problems import check_files

from tests.conftest import ROOT, run_cli
from tests.release.release_support import read_record, update_checksums, write_record

pytestmark = pytest.mark.slow  # whole releases are checked


@pytest.fixture
def copy(small_release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_release, tmp_path / "copy"))


def list_problems(release: Path) -> list[str]:
    return [problem.line for problem in verify_release(release)]


# Bytes


def test_flipped_byte_in_any_file_is_found(copy: Path) -> None:
    for number, (name, path) in enumerate(sorted(list_files(copy).items())):
        data = path.read_bytes()
        at = number * 997 % len(data)
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << number % 8]) + data[at + 1 :])
        problems = {problem.path for problem in check_files(copy)}
        assert problems if name == CHECKSUMS else name in problems
        path.write_bytes(data)
    assert check_files(copy) == []


@pytest.mark.parametrize(
    ("table", "column"), [("results", "throughput"), ("cells", "raw_text"), ("documents", "title")]
)
def test_flipped_byte_of_a_data_page_is_named_by_load_query_and_verify(
    copy: Path, table: str, column: str
) -> None:
    """Somebody has written the checksums of the files again, and no DuckDB file is built."""
    path = copy / f"{table}.parquet"
    rows = pq.ParquetFile(path)
    pages = rows.metadata.row_group(0).column(rows.schema_arrow.names.index(column))
    rows.close()
    at = (pages.dictionary_page_offset or pages.data_page_offset) + pages.total_compressed_size - 1
    data = path.read_bytes()
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    update_checksums(copy, path.name)
    [problem, *_] = list_problems(copy)
    assert problem.startswith(f"{path.name}: cannot be read: ")
    with pytest.raises(WarehouseError, match=f"^{path.name}: cannot be read: "):
        ipu_results.load(table, warehouse=copy)
    (copy / DATABASE).unlink()
    with (
        pytest.raises(WarehouseError, match=f"^{path.name}: cannot be read: "),
        ipu_results.connect(copy),
    ):
        pass


def test_every_bit_of_the_checksums_counts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a")
    write_checksums(tmp_path)
    path = tmp_path / CHECKSUMS
    data = path.read_bytes()
    expected = read_checksums(path)
    assert expected[1]
    for at in range(len(data)):
        for bit in range(8):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            assert read_checksums(path) != expected


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: b"".join(reversed(data.splitlines(keepends=True))),
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda _: b"",
        lambda data: data.replace(b"LICENSE", b"../LICENSE"),
    ],
)
def test_checksums_that_publish_would_not_write_are_refused(
    change: Callable[[bytes], bytes], copy: Path
) -> None:
    (copy / CHECKSUMS).write_bytes(change((copy / CHECKSUMS).read_bytes()))
    assert check_files(copy)


def test_missing_extra_and_swapped_files_are_named(copy: Path) -> None:
    (copy / "LICENSE").unlink()
    (copy / "notes.txt").write_text("mine")
    (copy / "folder").mkdir()
    (copy / os.fsdecode(b"\x1b[2J\xff")).write_text("")
    os.replace(copy / "flags.csv", copy / "x")
    os.replace(copy / "models.csv", copy / "flags.csv")
    os.replace(copy / "x", copy / "models.csv")
    assert list_problems(copy) == [
        "LICENSE: is missing",
        "flags.csv: sha256 differs from SHA256SUMS",
        "models.csv: sha256 differs from SHA256SUMS",
        r"\x1b[2J\udcff: does not belong to the release",
        "folder: does not belong to the release",
        "notes.txt: does not belong to the release",
    ]


def test_required_file_that_the_checksums_leave_out_is_named(copy: Path) -> None:
    (copy / "LICENSE").unlink()
    write_checksums(copy)
    assert list_problems(copy) == ["LICENSE: is not listed in SHA256SUMS"]


def test_links_are_not_files(copy: Path, tmp_path: Path) -> None:
    for name in ("LICENSE", CHECKSUMS):
        os.replace(copy / name, tmp_path / name)
        (copy / name).symlink_to(tmp_path / name)
        assert list_problems(copy) == [f"{name}: is not a plain file"]
    (tmp_path / CHECKSUMS).unlink()
    assert list_problems(copy) == ["SHA256SUMS: is not a plain file"]
    (copy / CHECKSUMS).unlink()
    assert list_problems(copy) == ["SHA256SUMS: is missing"]


# Contents, with checksums written again, as someone who changes a release on purpose would


def edit_lines(release: Path, name: str, edit: Callable[[list[str]], list[str]]) -> None:
    lines = (release / name).read_text(encoding="utf-8").splitlines(keepends=True)
    (release / name).write_text("".join(edit(lines)), encoding="utf-8")
    update_checksums(release, name)


def edit_table(release: Path, name: str, edit: Callable[[pa.Table], pa.Table]) -> None:
    path = release / f"{name}.parquet"
    pq.write_table(edit(pq.read_table(path)), path)
    update_checksums(release, path.name)


def test_build_and_dictionary_are_compared_with_the_tables(copy: Path) -> None:
    def count_more(rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index("row_count")
        return rows.set_column(at, rows.schema.field(at), pc.add(rows["row_count"], 1))

    edit_table(copy, "build", count_more)
    assert (
        "build.parquet: row count or build id of flags differs from release.json"
        in list_problems(copy)
    )


def test_table_that_is_left_in_duckdb_and_the_dictionary_is_found(copy: Path) -> None:
    for suffix in (".parquet", ".csv"):
        (copy / f"quarantine{suffix}").unlink()
    names = {"resources": "path", "distribution": "contentUrl", "recordSet": "name"}
    for file in ("release.json", "datapackage.json", "croissant.json"):
        record = read_record(copy, file)
        record.get("tables", {}).pop("quarantine", None)
        for part in names.keys() & record.keys():
            key = names[part]
            record[part] = [each for each in record[part] if not each[key].startswith("quarantine")]
        write_record(copy, file, record)
    write_checksums(copy)
    assert list_problems(copy) == [
        "build.parquet: row count or build id of quarantine differs from release.json",
    ]


# The command


def test_command_reports_a_sound_release(small_release: Path) -> None:
    result = run_cli("verify", small_release)
    assert result.returncode == 0
    assert result.stdout == f"OK {small_release}\n"
    [note] = result.stderr.splitlines()
    root = hash_file(small_release / CHECKSUMS)
    assert note.startswith("note: not checked: whether someone rewrote the whole release; ")
    assert note.endswith(f"with --root, here it is {root}")
    result = run_cli("verify", small_release, "--root", root, "--format", "json")
    assert json.loads(result.stdout) == {"ok": True, "problems": [], "notes": []}


def test_views_are_compared_with_release_json_alone_if_another_duckdb_wrote_them(
    copy: Path,
) -> None:
    record = read_record(copy, "environment.json")
    record["packages"]["duckdb"] = "1.2.2"
    write_record(copy, "environment.json", record)
    update_checksums(copy)
    result = run_cli("verify", copy)
    assert result.returncode == 0
    assert "not checked: DuckDB 1.2.2 wrote this release, " in result.stderr


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_signature_finds_a_release_that_was_rewritten_as_a_whole(
    copy: Path, tmp_path: Path
) -> None:
    """Run the commands of docs/how-to/publish.md."""
    page = (ROOT / "docs" / "how-to" / "publish.md").read_text(encoding="utf-8")
    commands = [line for line in page.splitlines() if "ssh-keygen -Y" in line]
    sign, check = (
        line.replace("release/", f"{copy}/").replace("~/.ssh/", f"{tmp_path}/") for line in commands
    )
    run = partial(
        subprocess.run, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    run(f"ssh-keygen -q -t ed25519 -N '' -f {tmp_path}/id_ed25519")
    (tmp_path / "signers").write_text(
        f"you@example.org {(tmp_path / 'id_ed25519.pub').read_text()}"
    )
    assert run(sign).returncode == 0
    assert run(check).returncode == 0
    result = run_cli("verify", copy)
    assert result.returncode == 0
    assert "note: not checked: SHA256SUMS.sig; check it with: ssh-keygen -Y verify" in result.stderr
    edit_lines(
        copy,
        "environment.json",
        lambda lines: [line.replace('"Linux"', '"Other"') for line in lines],
    )
    assert list_problems(copy) == []
    assert run(check).returncode != 0


def test_command_names_each_problem(copy: Path) -> None:
    (copy / "LICENSE").unlink()
    result = run_cli("verify", copy)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == "FAIL LICENSE: is missing\n"
    result = run_cli("verify", copy, "--format", "json")
    assert result.returncode == 1
    problem = {"path": "LICENSE", "message": "is missing"}
    assert json.loads(result.stdout) == {"ok": False, "problems": [problem], "notes": []}


def test_command_names_a_folder_that_is_not_there(tmp_path: Path) -> None:
    result = run_cli("verify", tmp_path / "none")
    assert result.returncode == 1
    assert result.stderr == f"error: {tmp_path / 'none'}: no such folder\n"
