"""The release folder: what is in it, that it is reproducible, and that it is replaced as a whole."""

from __future__ import annotations

import csv
import filecmp
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filelock import FileLock
from ipu_results.errors import ReleaseError, UnreadableReleaseError
from ipu_results.kit.text import escape_markdown, mark_formula
from ipu_results.record.store.files import DATABASE, get_parquet_name
from ipu_results.record.store.tables import read_csv, write_csv
from ipu_results.release import (
    Problem,
    diff_releases,
    publishing,
    replacing,
    verify_release,
)
from ipu_results.release.files import list_files, list_table_files
from ipu_results.release.replacing import get_work_folder, replace_release
from ipu_results.schema import FILE_VIEWS, TABLES

from tests.conftest import ROOT, Query, once, read_files, run_cli
from tests.release.release_support import (
    PUBLISHED_ON,
    alter_warehouse,
    publish_release,
    read_record,
    read_rows,
)

pytestmark = pytest.mark.slow  # whole releases are made

NAMES = [table.sql_name for table in TABLES]
TEXTS = {
    "README.md",
    "DICTIONARY.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "SHA256SUMS",
    "release.json",
    "environment.json",
    "certificates.jsonl",
    "checker.py",
    "checker.mjs",
    "datapackage.json",
    "croissant.json",
}

# Contents


def test_release_holds_each_table_of_the_warehouse_and_the_texts(
    release: Path, warehouse: Path
) -> None:
    names = [*NAMES, *(view.sql_name for view in FILE_VIEWS)]
    assert set(list_files(release)) == list_table_files(names) | TEXTS | {DATABASE}
    record = read_record(release)
    expected = ("1.0.0", PUBLISHED_ON.isoformat(), None)
    assert (record["version"], record["published_on"], record["previous"]) == expected
    for name in NAMES:
        path = release / get_parquet_name(name)
        assert path.read_bytes() == (warehouse / get_parquet_name(name)).read_bytes()
        assert record["tables"][name]["rows"] == pq.read_metadata(path).num_rows


def test_release_verifies_and_sha256sum_agrees(release: Path) -> None:
    assert verify_release(release) == []
    sums = subprocess.run(
        ["sha256sum", "-c", "--strict", "--quiet", "SHA256SUMS"], cwd=release, check=False
    )
    assert sums.returncode == 0


def test_card_counts_rows_flags_and_claims(release: Path, query: Query) -> None:
    card = (release / "README.md").read_text(encoding="utf-8")
    for name in NAMES:
        (count,) = query(f"SELECT count(*) FROM {name}")[0]
        assert f"| `{name}` | {count:,} |" in card
    for rule, severity, flags in query("SELECT rule, severity, count(*) FROM flags GROUP BY ALL"):
        assert re.search(rf"\| {rule} \| [^|]+ \| {severity} \| {flags:,} \|", card)
    for verdict, claims in query("SELECT verdict, count(*) FROM claims GROUP BY ALL"):
        assert f"| {verdict} | {claims} |" in card
    for document, licence in query("SELECT document_id, licence FROM documents"):
        assert f"- {escape_markdown(licence)}: " in card
        assert document in card
    assert not re.search(r"[{}]", card)


def test_dictionary_lists_every_column(release: Path, query: Query) -> None:
    dictionary = (release / "DICTIONARY.md").read_text(encoding="utf-8")
    for column, kind in query("SELECT column_name, type FROM columns WHERE column_name <> ''"):
        assert f"| `{column}` | {kind} |" in dictionary
    assert "| `latency_ms` | DOUBLE | ms |" in dictionary


def test_citation_and_environment(release: Path) -> None:
    citation = (release / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert "version: 1.0.0" in citation
    assert f"date-released: {PUBLISHED_ON}" in citation
    environment = read_record(release, "environment.json")
    assert {"duckdb", "pyarrow", "pandas"} <= environment["packages"].keys()
    assert environment["packages"].keys().isdisjoint({"onnx", "openvino"})  # those of extras
    assert os.uname().nodename not in json.dumps(environment)


def test_data_package_describes_each_column(release: Path) -> None:
    package = read_record(release, "datapackage.json")
    resources = {resource["name"]: resource for resource in package["resources"]}
    without_hash = [name for name, resource in resources.items() if "hash" not in resource]
    assert without_hash == [DATABASE]
    for table in TABLES:
        schema = resources[table.sql_name]["schema"]
        assert [field["name"] for field in schema["fields"]] == list(table.names)
        assert schema["primaryKey"] == list(table.key)
        for link in schema.get("foreignKeys", []):
            assert link["reference"]["resource"] in resources
    fields = {field["name"]: field for field in resources["results"]["schema"]["fields"]}
    latency = fields["latency_ms"]
    assert latency["unit"] == "ms"
    assert latency["constraints"] == {"minimum": 0, "exclusiveMinimum": 0, "maximum": 1e15}
    assert fields["origin"]["constraints"]["enum"][0] == "published"


def test_same_warehouse_makes_the_same_bytes(
    small: Path, small_release: Path, tmp_path: Path
) -> None:
    publish_release(small, tmp_path / "again")
    again = read_files(tmp_path / "again")
    first = read_files(small_release)
    assert first.keys() == again.keys()
    assert {name for name in first if first[name] != again[name]} <= {DATABASE, "SHA256SUMS"}
    lines = set(first["SHA256SUMS"].splitlines()) ^ set(again["SHA256SUMS"].splitlines())
    assert all(line.endswith(DATABASE.encode()) for line in lines)


STRANGE = (
    "<script>alert(1)</script>",
    '=HYPERLINK("http://x","y")',
    "+1",
    "@SUM(A1)",
    'a "quoted", text',
    "\t=1",
    "'",
    "two\nlines\r\n",
    "",
    " ",
    "Ünïcödé 计算机 🚀",
    "| pipe | `code` *star* [link](x) \\ {brace}",
    "NULL",
    "NA",
)


def test_any_text_survives_every_format(small: Path, tmp_path: Path) -> None:
    documents = read_rows(small, "documents")
    for row, text in zip(documents, cycle(STRANGE), strict=False):
        row.update(title=text, licence=text)
    out = tmp_path / "release"
    publish_release(alter_warehouse(small, tmp_path / "warehouse", documents=documents), out)
    assert verify_release(out) == []
    with (out / "documents.csv").open(encoding="utf-8", newline="") as file:
        assert {row["title"] for row in csv.DictReader(file)} == set(map(mark_formula, STRANGE))
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "<script" not in card
    assert "&lt;script&gt;" in card
    assert re.search(r"\d+ texts begin with `=`", card)
    long = pa.table({"text": ["a, b" * 1_000_000, "c"]})
    write_csv(long, tmp_path / "long.csv")
    assert read_csv(tmp_path / "long.csv", long.schema) == long


# Replacing a release as a whole


def put(release: Path, out: Path) -> None:
    """Replace a release by another, without publishing one."""
    with replace_release(out, 60.0) as new:
        shutil.copytree(release, new, dirs_exist_ok=True)


def read_version(release: Path) -> str:
    assert verify_release(release) == []
    return str(read_record(release)["version"])


def list_work_files(out: Path) -> list[str]:
    return sorted(path.name for path in get_work_folder(out).iterdir())


def refuse(*_: object, **_options: object) -> None:
    raise PermissionError("refused")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("out", "is not a folder"),
        ("out/mine.txt", "not empty and not a release"),
    ],
)
def test_folder_of_something_else_is_refused(
    file: str, message: str, small: Path, tmp_path: Path
) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    with pytest.raises(ReleaseError, match=message):
        publish_release(small, tmp_path / "out")
    assert path.read_text() == "mine"


def test_release_with_a_file_of_somebody_is_refused(
    small: Path, small_release: Path, tmp_path: Path
) -> None:
    mixed = Path(shutil.copytree(small_release, tmp_path / "mixed"))
    (mixed / "mine.txt").write_text("mine")
    with pytest.raises(ReleaseError, match=r"mine\.txt, which does not belong"):
        publish_release(small, mixed)
    assert (mixed / "mine.txt").read_text() == "mine"


def test_incomplete_warehouse_leaves_the_release(
    small: Path, small_release: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(small_release, tmp_path / "out"))
    incomplete = Path(shutil.copytree(small, tmp_path / "warehouse"))
    (incomplete / "flags.parquet").unlink()
    result = run_cli("publish", "--warehouse", incomplete, "--out", out)
    assert result.returncode == 1
    assert re.fullmatch(rf"error: {incomplete}: .*flags\.parquet.*\n", result.stderr)
    assert read_version(out) == "1.0.0"


@pytest.mark.parametrize("name", ["models", "build"])
def test_warehouse_that_contradicts_its_build_is_refused(
    name: str, small: Path, tmp_path: Path
) -> None:
    warehouse = Path(shutil.copytree(small, tmp_path / "warehouse"))
    rows = pq.read_table(warehouse / f"{name}.parquet")
    pq.write_table(rows.slice(1), warehouse / f"{name}.parquet")
    with pytest.raises(ReleaseError, match="rows differ from what its build recorded"):
        publish_release(warehouse, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_release_that_fails_verification_is_discarded(
    small: Path, small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Path(shutil.copytree(small_release, tmp_path / "out"))
    monkeypatch.setattr(publishing, "verify_release", lambda *_: [Problem("flags.csv", "is wrong")])
    with pytest.raises(ReleaseError, match=r"fails verification: flags\.csv: is wrong"):
        publish_release(small, out, version="2.0.0")
    assert read_version(out) == "1.0.0"


KILL_BEFORE_VERIFYING = """
import os, signal, sys
from datetime import date
from pathlib import Path
from ipu_results.release import ReleaseRequest, publish, publishing
publishing.verify_release = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
publish(ReleaseRequest(Path(sys.argv[1]), Path(sys.argv[2]), date(2026, 11, 21), version="2.0.0"))
"""
KILL_AT_RENAME = """
import os, shutil, signal, sys
from pathlib import Path
from ipu_results.release.replacing import replace_release
release, out, kill_after, rename, renames = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), os.replace, []
def replace(source, target):
    if len(renames) == kill_after:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target)
    renames.append(source)
    if len(renames) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
os.replace = replace
with replace_release(out, 10.0) as new:
    shutil.copytree(release, new, dirs_exist_ok=True)
"""


def run_killed(code: str, *arguments: object) -> None:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == -signal.SIGKILL, process.stderr[-500:]


def test_kill_before_the_renames_leaves_the_old_release(
    small: Path, small_release: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(small_release, tmp_path / "out"))
    run_killed(KILL_BEFORE_VERIFYING, small, out)
    assert (get_work_folder(out) / "new" / "SHA256SUMS").exists()
    assert read_version(out) == "1.0.0"
    put(small_release, out)
    assert list_work_files(out) == [".lock"]


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory, small: Path) -> Path:
    """Publish another version, which no test changes."""
    with once(tmp_path_factory, "other_released") as (folder, first):
        if first:
            publish_release(small, folder / "release", version="0.9.0")
    return folder / "release"


@pytest.mark.parametrize(("kill_after", "version"), [(0, "1.0.0"), (1, "1.0.0"), (2, "0.9.0")])
def test_kill_at_any_rename_leaves_a_whole_release(
    kill_after: int, version: str, other: Path, small_release: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(small_release, tmp_path / "out"))
    run_killed(KILL_AT_RENAME, other, out, kill_after)
    assert out.exists() is (kill_after != 1)
    assert read_version(out) == version
    put(small_release, out)
    assert list_work_files(out) == [".lock"]


def compare_with_itself(out: Path) -> None:
    assert diff_releases(out, out).is_empty


@pytest.mark.parametrize("has_empty_folder", [False, True])
@pytest.mark.parametrize("use", [verify_release, compare_with_itself])
def test_release_between_the_renames_is_put_back(
    use: Callable[[Path], object], has_empty_folder: bool, small_release: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    get_work_folder(out).mkdir()
    shutil.copytree(small_release, get_work_folder(out) / "old")
    if has_empty_folder:
        out.mkdir()
    use(out)
    assert read_version(out) == "1.0.0"
    assert list_work_files(out) == [".lock"]


@pytest.mark.parametrize("end", [OSError("no space"), KeyboardInterrupt()])
def test_failure_between_the_renames_puts_the_old_release_back(
    end: BaseException, small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Path(shutil.copytree(small_release, tmp_path / "out"))
    rename = os.replace

    def replace(source: Path, target: Path) -> None:
        if Path(source).name == "new":
            raise end
        rename(source, target)

    monkeypatch.setattr(replacing.os, "replace", replace)
    with pytest.raises((ReleaseError, KeyboardInterrupt)):
        put(small_release, out)
    assert read_version(out) == "1.0.0"
    assert list_work_files(out) == [".lock"]


def test_release_that_cannot_be_put_back_is_located(
    small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    get_work_folder(out).mkdir()
    old = Path(shutil.copytree(small_release, get_work_folder(out) / "old"))
    monkeypatch.setattr(replacing.os, "replace", refuse)
    with pytest.raises(ReleaseError, match=f"the old release is in {old}"):
        verify_release(out)
    assert read_version(old) == "1.0.0"


def test_unreadable_and_unwritable_files_are_named(
    small: Path, small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(filecmp, "cmp", refuse)
        with pytest.raises(UnreadableReleaseError, match="cannot be compared: refused"):
            publish_release(small, out, previous=small_release)
    with monkeypatch.context() as patch:
        patch.setattr(publishing, "open_regular_file", refuse)
        with pytest.raises(ReleaseError, match=f"{small}/.*parquet: cannot be read"):
            publish_release(small, out)
    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(
        ReleaseError, match="out: could not be written, the old content stays: refused"
    ):
        publish_release(small, out)
    assert not out.exists()


def test_concurrent_publishers_take_turns(small_release: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: put(small_release, tmp_path / "out"), range(8)))
    assert read_version(tmp_path / "out") == "1.0.0"


def test_busy_folder_is_refused(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    get_work_folder(out).mkdir()
    with FileLock(get_work_folder(out) / ".lock"):
        result = run_cli("publish", "--warehouse", small, "--out", out, "--wait", 0)
    assert result.returncode == 1
    assert re.fullmatch(rf"error: {re.escape(str(out))}: another process .*\n", result.stderr)


def test_command_publishes_what_verify_and_diff_accept(
    small: Path, small_release: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    options = ("--warehouse", small, "--out", out, "--date", "2026-01-02", "--version", "0.9.0")
    result = run_cli("publish", *options)
    assert result.returncode == 0, result.stderr
    assert f"{out}: version 0.9.0, " in result.stdout
    assert re.search(r"sha256 of SHA256SUMS [0-9a-f]{64}$", result.stdout.strip())
    assert read_record(out)["published_on"] == "2026-01-02"
    assert run_cli("verify", out).stdout == f"OK {out}\n"
    assert f"no difference in {len(NAMES)} tables" in run_cli("diff", out, small_release).stdout


def test_date_before_the_previous_release_is_refused(
    small: Path, small_release: Path, tmp_path: Path
) -> None:
    old = Path(shutil.copytree(small_release, tmp_path / "old"))
    before = read_files(old)
    done = run_cli("publish", "--warehouse", small, "--out", old, "--date", "2026-11-20")
    message = "date 2026-11-20 is before 2026-11-21, the date of the previous release 1.0.0; "
    assert done.returncode == 1
    assert done.stderr == f"error: {message}give that date or a later one with --date\n"
    assert read_files(old) == before
