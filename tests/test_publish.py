"""The release folder: what is in it, that it is the same each time, and that it is there whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import filecmp
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, Ask, run_cli
from filelock import FileLock
from ipu_results._util.markdown import escape_markdown
from ipu_results.errors import ReleaseError, UnreadableReleaseError
from ipu_results.release import check, folder
from ipu_results.release.folder import work_folder
from ipu_results.release.texts import read_csv, write_csv
from ipu_results.schema import TABLES
from ipu_results.store.files import DATABASE, get_parquet_name
from release_support import DAY, altered, released

NAMES = [table.name for table in TABLES]
TEXTS = (
    *("README.md", "DICTIONARY.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "SHA256SUMS"),
    *("release.json", "environment.json", "datapackage.json", "croissant.json"),
)
KILLED = """
import os, signal, sys
from datetime import date
from pathlib import Path
from ipu_results.release import Asked, publish, release
release.check = lambda _: os.kill(os.getpid(), signal.SIGKILL)
publish(Asked(Path(sys.argv[1]), Path(sys.argv[2]), date(2026, 11, 21), version="2.0.0"))
"""


def told(release: Path) -> dict[str, Any]:
    return json.loads((release / "release.json").read_text(encoding="utf-8"))


def page(release: Path) -> str:
    return (release / "README.md").read_text(encoding="utf-8")


# what is in it


def test_it_holds_each_table_in_three_formats_and_its_texts(release: Path) -> None:
    tables = [f"{name}{suffix}" for name in NAMES for suffix in (".parquet", ".csv")]
    assert sorted(path.name for path in release.iterdir()) == sorted([*tables, *TEXTS, DATABASE])


def test_it_is_what_the_warehouse_holds(release: Path, warehouse: Path) -> None:
    found = told(release)
    assert (found["version"], found["published_on"], found["previous"]) == ("1.0.0", DAY.isoformat(), None)
    for name in NAMES:
        assert (release / get_parquet_name(name)).read_bytes() == (warehouse / get_parquet_name(name)).read_bytes()
        assert found["tables"][name]["rows"] == pq.read_metadata(release / get_parquet_name(name)).num_rows


def test_it_verifies_and_sha256sum_agrees(release: Path) -> None:
    assert check(release) == []
    done = subprocess.run(["sha256sum", "-c", "--strict", "--quiet", "SHA256SUMS"], cwd=release, check=False)
    assert done.returncode == 0


def test_the_card_counts_what_is_there(release: Path, ask: Ask) -> None:
    lines = page(release)
    for name in NAMES:
        (count,) = ask(f"SELECT count(*) FROM {name}")[0]
        assert f"| `{name}` | {count:,} |" in lines
    for rule, severity, flags in ask("SELECT rule, severity, count(*) FROM flags GROUP BY ALL"):
        assert re.search(rf"\| {rule} \| [^|]+ \| {severity} \| {flags:,} \|", lines)
    for verdict, claims in ask("SELECT verdict, count(*) FROM claims GROUP BY ALL"):
        assert f"| {verdict} | {claims} |" in lines
    for document, licence in ask("SELECT document_id, licence FROM documents"):
        assert f"- {escape_markdown(licence)}: " in lines
        assert document in lines


def test_the_dictionary_has_every_column(release: Path, ask: Ask) -> None:
    lines = (release / "DICTIONARY.md").read_text(encoding="utf-8")
    for column, kind in ask("SELECT column_name, type FROM columns WHERE column_name <> ''"):
        assert f"| `{column}` | {kind} |" in lines
    assert "| `latency_ms` | DOUBLE | ms |" in lines


def test_the_citation_is_of_the_version(release: Path) -> None:
    lines = (release / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert "version: 1.0.0" in lines
    assert f"date-released: {DAY}" in lines


def test_the_environment_names_packages_and_no_machine(release: Path) -> None:
    found = json.loads((release / "environment.json").read_text(encoding="utf-8"))
    assert {"duckdb", "pyarrow", "pandas"} <= found["packages"].keys()
    assert os.uname().nodename not in json.dumps(found)


def test_the_data_package_describes_each_column(release: Path) -> None:
    package = json.loads((release / "datapackage.json").read_text(encoding="utf-8"))
    resources = {one["name"]: one for one in package["resources"]}
    assert resources.keys() == {*NAMES, *(f"{name}.parquet" for name in NAMES)}
    for table in TABLES:
        schema = resources[table.name]["schema"]
        assert [field["name"] for field in schema["fields"]] == list(table.names)
        assert schema["primaryKey"] == list(table.key)
        for link in schema.get("foreignKeys", []):
            assert link["reference"]["resource"] in resources
    fields = {field["name"]: field for field in resources["results"]["schema"]["fields"]}
    assert fields["latency_ms"]["unit"] == "ms"
    assert fields["latency_ms"]["constraints"] == {"minimum": 0, "exclusiveMinimum": 0, "maximum": 1e15}
    assert fields["origin"]["constraints"]["enum"][0] == "published"


# Croissant


def test_mlcroissant_takes_the_description_and_reads_records(release: Path) -> None:
    pytest.importorskip("mlcroissant", reason="the extra croissant is not installed")
    code = (
        "import mlcroissant, sys; d = mlcroissant.Dataset(sys.argv[1]); issues = d.metadata.ctx.issues; "
        "print(len(issues.errors), len(issues.warnings), next(iter(d.records('models')))['models/model'].decode())"
    )
    command = [sys.executable, "-c", code, str(release / "croissant.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    first = pq.read_table(release / "models.parquet").column("model")[0].as_py()
    assert done.stdout.strip() == f"0 0 {first}"


# the same each time


def test_the_same_warehouse_gives_the_same_bytes(small: Path, small_release: Path, tmp_path: Path) -> None:
    released(small, tmp_path / "again")
    again = {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    first = {path.name: path.read_bytes() for path in small_release.iterdir()}
    assert first.keys() == again.keys()
    assert {name for name in first if first[name] != again[name]} <= {DATABASE, "SHA256SUMS"}
    lines = set(first["SHA256SUMS"].splitlines()) ^ set(again["SHA256SUMS"].splitlines())
    assert all(line.endswith(DATABASE.encode()) for line in lines)


# texts of any kind

STRANGE = (
    *(
        "<script>alert(1)</script>",
        '=HYPERLINK("http://x","y")',
        "+1",
        "@SUM(A1)",
        'a "quoted", text',
        "two\nlines\r\n",
    ),
    *("", " ", "Ünïcödé 计算机 🚀", "| pipe | `code` *star* [link](x) \\", "NULL", "NA", "\t=1", "'"),
)


def test_any_text_comes_through_in_every_format(small: Path, tmp_path: Path) -> None:
    def titled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {**row, "title": STRANGE[at % len(STRANGE)], "licence": STRANGE[at % len(STRANGE)]}
            for at, row in enumerate(rows)
        ]

    released(altered(small, tmp_path / "warehouse", documents=titled), tmp_path / "release")
    assert check(tmp_path / "release") == []
    with (tmp_path / "release" / "documents.csv").open(encoding="utf-8", newline="") as file:
        assert {row["title"] for row in csv.DictReader(file)} == set(STRANGE)
    card = page(tmp_path / "release")
    assert "<script" not in card
    assert "&lt;script&gt;" in card
    assert re.search(r"\d+ texts begin with `=`", card)


def test_a_long_text_comes_through(tmp_path: Path) -> None:
    long = pa.table({"text": ["a, b" * 1_000_000, "c"]})
    write_csv(long, tmp_path / "long.csv")
    assert read_csv(tmp_path / "long.csv", long.schema) == long


# all or nothing


def version(release: Path) -> str:
    assert check(release) == []
    return str(told(release)["version"])


def copy(release: Path, target: Path) -> Path:
    target.mkdir()
    for path in release.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def test_a_folder_of_something_else_stays(small: Path, small_release: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    mixed = copy(small_release, tmp_path / "mixed")
    (mixed / "mine.txt").write_text("mine")
    for out, said in (("notes", "holds no release"), ("file", "is no folder"), ("mixed", "mine.txt, which is no part")):
        with pytest.raises(ReleaseError, match=said):
            released(small, tmp_path / out)
    assert (tmp_path / "notes" / "mine.txt").read_text() == (mixed / "mine.txt").read_text() == "mine"


def test_a_failure_leaves_what_was_there(small: Path, small_release: Path, tmp_path: Path) -> None:
    out = copy(small_release, tmp_path / "out")
    lacking = altered(small, tmp_path / "warehouse")
    (lacking / "flags.parquet").unlink()
    done = run_cli("publish", "--warehouse", lacking, "--out", out)
    assert done.returncode == 1
    assert done.stderr == f"error: {lacking}: lacks flags.parquet; build it with: ipu-results ingest\n"
    assert version(out) == "1.0.0"


def test_a_table_that_is_not_of_the_build_is_refused(small: Path, tmp_path: Path) -> None:
    target = altered(small, tmp_path / "warehouse")
    arrow = pq.read_table(target / "models.parquet")
    pq.write_table(arrow.slice(1), target / "models.parquet")
    with pytest.raises(ReleaseError, match="other rows than its build says"):
        released(target, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_build_that_counts_other_rows_is_refused(small: Path, tmp_path: Path) -> None:
    target = altered(small, tmp_path / "warehouse")
    arrow = pq.read_table(target / "build.parquet")
    rows = [{**row, "row_count": row["row_count"] + 1} for row in arrow.to_pylist()]
    pq.write_table(arrow.from_pylist(rows, schema=arrow.schema), target / "build.parquet")
    with pytest.raises(ReleaseError, match="capture_differences: holds other rows than its build says"):
        released(target, tmp_path / "out")


def put(release: Path, out: Path) -> None:
    """A release in the place of another, without making one."""
    with folder.replacing(out, 10.0) as new:
        for path in release.iterdir():
            (new / path.name).write_bytes(path.read_bytes())


@pytest.fixture(params=["exchange", "two renames"])
def _swapped_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "two renames":
        monkeypatch.setattr(folder, "_exchange", lambda *_: False)


@pytest.mark.usefixtures("_swapped_by")
@pytest.mark.parametrize("there", ["nothing", "an empty folder", "a release"])
def test_absent_empty_and_released_folders_are_taken(there: str, small_release: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if there == "an empty folder":
        out.mkdir()
    if there == "a release":
        (copy(small_release, out) / "LICENSE").write_text("old")
    put(small_release, out)
    assert version(out) == "1.0.0"
    assert sorted(path.name for path in work_folder(out).iterdir()) == [".lock"]


def test_a_killed_process_leaves_the_old_and_its_remains_go(small: Path, small_release: Path, tmp_path: Path) -> None:
    out = copy(small_release, tmp_path / "out")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(small), str(out)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-500:]
    assert (work_folder(out) / "new" / "SHA256SUMS").exists()
    assert version(out) == "1.0.0"
    put(small_release, out)
    assert sorted(path.name for path in work_folder(out).iterdir()) == [".lock"]


@pytest.mark.parametrize("where", ["new", "old"])
def test_what_was_killed_in_the_swap_is_put_right(where: str, small_release: Path, tmp_path: Path) -> None:
    """After the exchange the old release is in `new`; between two renames it is in `old`, and nowhere else."""
    out = tmp_path / "out"
    work_folder(out).mkdir()
    copy(small_release, work_folder(out) / where)
    if where == "new":
        copy(small_release, out)
    with contextlib.suppress(KeyboardInterrupt), folder.replacing(out, 1.0):
        assert version(out) == "1.0.0"
        raise KeyboardInterrupt
    assert version(out) == "1.0.0"
    assert sorted(path.name for path in work_folder(out).iterdir()) == [".lock"]


@pytest.mark.parametrize("end", [OSError("no space"), KeyboardInterrupt()])
def test_what_ends_between_two_renames_is_put_back(
    end: BaseException, small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, renamed = copy(small_release, tmp_path / "out"), os.replace

    def replace(source: Path, target: Path) -> None:
        if Path(source).name == "new":
            raise end
        renamed(source, target)

    monkeypatch.setattr(folder, "_exchange", lambda *_: False)
    monkeypatch.setattr(folder.os, "replace", replace)
    with pytest.raises((ReleaseError, KeyboardInterrupt)):
        put(small_release, out)
    assert version(out) == "1.0.0"
    assert sorted(path.name for path in work_folder(out).iterdir()) == [".lock"]


def test_an_empty_folder_made_meanwhile_does_not_cost_the_old_release(small_release: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    work_folder(out).mkdir()
    copy(small_release, work_folder(out) / "old")
    out.mkdir()
    with contextlib.suppress(KeyboardInterrupt), folder.replacing(out, 1.0):
        assert version(out) == "1.0.0"
        raise KeyboardInterrupt


def test_what_cannot_be_put_back_is_told(small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    work_folder(out).mkdir()
    old = copy(small_release, work_folder(out) / "old")
    monkeypatch.setattr(folder.os, "replace", refused)
    with pytest.raises(ReleaseError, match=f"what was there is in {old}"), folder.replacing(out, 1.0):
        pass
    assert version(old) == "1.0.0"


def refused(*_: object, **_named: object) -> None:
    raise PermissionError("refused")


def test_after_the_swap_nothing_is_said_to_have_stayed(
    small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = folder.sync_to_disk
    monkeypatch.setattr(folder, "sync_to_disk", lambda path: refused() if path == tmp_path else sync(path))
    with pytest.raises(ReleaseError, match="out: is the new release, which may not be on disk yet: refused"):
        put(small_release, tmp_path / "out")
    assert version(tmp_path / "out") == "1.0.0"


def test_what_cannot_be_read_is_named_and_not_what_was_to_be_written(
    small: Path, small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filecmp, "cmp", refused)
    with pytest.raises(UnreadableReleaseError, match=r"parquet: cannot be compared: refused"):
        released(small, tmp_path / "out", previous=small_release)
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: refused() if path.parent == small else read_bytes(path))
    with pytest.raises(ReleaseError, match=f"{small}/.*parquet: cannot be read"):
        released(small, tmp_path / "out")


def test_a_full_disk_is_one_line(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "write_bytes", refused)
    with pytest.raises(ReleaseError, match="out: could not be written, what was there stays: refused"):
        released(small, tmp_path / "out")


def test_two_at_once_take_turns(small_release: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: put(small_release, tmp_path / "out"), range(8)))
    assert version(tmp_path / "out") == "1.0.0"


def test_a_busy_folder_is_one_line(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    work_folder(out).mkdir()
    with FileLock(work_folder(out) / ".lock"):
        done = run_cli("publish", "--warehouse", small, "--out", out, "--wait", 0)
    assert done.returncode == 1
    assert re.fullmatch(rf"error: {re.escape(str(out))}: another process has been building it .*\n", done.stderr)


# the command


def test_the_command_tells_version_and_seal(small: Path, tmp_path: Path) -> None:
    done = run_cli(
        "publish", "--warehouse", small, "--out", tmp_path / "out", "--date", "2026-01-02", "--version", "0.9.0"
    )
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path / 'out'}: version 0.9.0, " in done.stdout
    assert re.search(r"sha256 of SHA256SUMS [0-9a-f]{64}$", done.stdout.strip())
    assert told(tmp_path / "out")["published_on"] == "2026-01-02"


def test_the_packages_of_the_extra_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"]["croissant"] == ["mlcroissant>=1.1"]
