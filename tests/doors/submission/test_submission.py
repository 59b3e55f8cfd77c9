"""Bundles that are accepted: `submit` writes them whole or not at all, and `check-submission` shows
what they add.
"""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ipu_results.doors.submission.bundle import (
    COLUMNS,
    DESCRIPTION,
    RESULTS,
    format_rows,
    make_slug,
)
from ipu_results.doors.submission.contents import parse_bundle
from ipu_results.doors.submission.prepare import SubmissionRequest, prepare_bundle
from ipu_results.errors import SubmissionError

from tests.conftest import run_cli
from tests.doors.submission.submission_support import (
    BUNDLES,
    ROWS,
    Check,
    figure,
    make_files,
    put_folder,
    put_zip,
    throughput,
)
from tests.runner.runs_support import put_emulated, put_run

HOW = {"licence": "CC-BY-4.0", "how": "machine idle"}
WHO = "--who Ada-Example --licence CC-BY-4.0 --how idle"


@pytest.mark.slow
@pytest.mark.parametrize("case", BUNDLES["good"].values(), ids=list(BUNDLES["good"]))
def test_good_bundle_is_accepted_as_it_was_printed(
    case: dict[str, Any], tmp_path: Path, check: Check
) -> None:
    checked = check(put_folder(tmp_path / "bundle", make_files(**case)))
    assert list(checked.faults) == []
    held: set[object] = set()
    for row in checked.to_record()["rows"]:
        result = row["row"]
        assert result["relationship"] == "submitted"
        assert result["origin"] == "measured"
        held.update(value for value in result.values() if isinstance(value, float))
    for row in case.get("rows", ROWS):
        # in the unit of the figure, or of the column: ms and mJ, or min
        printed = float(row["value"])
        assert held & {printed, printed * 0.001, printed * 60}, row


def test_good_archive_is_accepted_and_not_unpacked(tmp_path: Path, check: Check) -> None:
    path = put_zip(tmp_path / "bundle.zip", make_files())
    checked = check(path)
    assert checked.accepted
    assert [row["verdict"][:9] for row in checked.rows] == ["plausible"]
    assert os.listdir(tmp_path) == ["bundle.zip"]


def test_run_of_sweep_is_handed_in_figure_by_figure(tmp_path: Path, warehouse: Path) -> None:
    run = put_run(tmp_path / "elsewhere")
    out = tmp_path / "out"
    command = ("submit", run, *WHO.split(), "--out", out, "--warehouse", warehouse)
    done = run_cli(*command)
    assert (done.returncode, done.stderr) == (0, "")
    [bundle] = (out / "ada-example").iterdir()
    assert sorted(os.listdir(bundle)) == ["environment.json", RESULTS, DESCRIPTION]
    points = (run / "points.csv").read_text(encoding="utf-8")
    text = (bundle / RESULTS).read_text(encoding="utf-8")
    header, *lines = csv.reader(io.StringIO(text))
    assert tuple(header) == COLUMNS
    assert len(lines) > 6
    assert all(line[header.index("value")] in points for line in lines)
    options = ("--raw", tmp_path / "raw", "--warehouse", warehouse, "--format", "json")
    again = run_cli("check-submission", bundle, *options)
    [record] = json.loads(again.stdout)
    assert again.returncode == 0
    assert record["accepted"]
    assert len(record["rows"]) == 3
    twice = run_cli(*command)
    assert (twice.returncode, twice.stderr.count("\n")) == (1, 1)


def test_run_of_the_emulator_cannot_be_handed_in(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match="is emulated: only measured figures"):
        prepare_bundle(SubmissionRequest([put_emulated(tmp_path)], "Ada Example", **HOW))


def test_stated_cell_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "figures.csv"
    file.write_bytes(format_rows(ROWS))
    with pytest.raises(SubmissionError, match="says batch_size '16', not '4'"):
        prepare_bundle(SubmissionRequest([file], "Ada", **HOW, stated={"batch_size": "4"}))


def test_wrong_unit_and_scope_are_reported_once_with_what_fits(
    check: Check, tmp_path: Path
) -> None:
    wrong_scope = figure("power", "912.5", "W", power_scope="socket")
    rows = [figure("throughput", "5011.5", "ms"), wrong_scope]
    checked = check(put_folder(tmp_path / "own", make_files(rows)))
    text = "\n".join(map(str, checked.faults))
    assert text.count("unknown unit") == 1
    assert "a unit of latency_ms" in text
    assert "which is not one of device, board, package, machine, wall, declared" in text


def test_original_files_and_their_folders_stay_out_of_the_bundle(tmp_path: Path) -> None:
    file = tmp_path / "secret-folder" / "figures.csv"
    file.parent.mkdir()
    file.write_bytes(format_rows(ROWS))
    _, files, _ = prepare_bundle(SubmissionRequest([file], "Ada", **HOW))
    assert set(files) == {DESCRIPTION, RESULTS}
    assert b"secret-folder" not in b"".join(files.values())


@pytest.mark.parametrize("name", ["my résumé [1] #2,v&co.csv", ".hidden.csv", "x" * 250 + ".csv"])
def test_any_name_of_a_file_can_be_handed_in(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(format_rows(ROWS))
    _, files, _ = prepare_bundle(SubmissionRequest([tmp_path / name], "Ada", **HOW))
    bundle, faults = parse_bundle(files)
    assert bundle is not None
    assert not faults


def test_bundle_may_have_a_thousand_rows() -> None:
    _, faults = parse_bundle(make_files([throughput(str(number)) for number in range(1000, 2000)]))
    assert faults == []


def test_option_that_is_not_utf8_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "figures.csv").write_bytes(format_rows(ROWS))
    with pytest.raises(SubmissionError, match="not UTF-8"):
        prepare_bundle(SubmissionRequest([tmp_path / "figures.csv"], "A\udcff", **HOW))


def test_refused_figures_are_not_written(tmp_path: Path, warehouse: Path) -> None:
    file = tmp_path / "figures.csv"
    file.write_bytes(format_rows([throughput("14377.25"), throughput("14377.75")]))
    out = tmp_path / "out"
    done = run_cli("submit", file, *WHO.split(), "--out", out, "--warehouse", warehouse)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "refused: contradiction: " in done.stdout
    assert not out.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        "submit",
        f"submit {__file__}",
        "check-submission",
        f"submit {__file__} {WHO} --set modell=resnet50",
        f"submit {__file__} {WHO} --set model=",
        f"submit {__file__} {WHO} --set value=1",
        f"submit {__file__} {WHO} --set model=bert --set model=resnet50",
    ],
)
def test_wrong_usage_exits_with_two(arguments: str) -> None:
    assert run_cli(*arguments.split()).returncode == 2


def test_set_states_the_machine_and_the_person(tmp_path: Path, warehouse: Path) -> None:
    file = tmp_path / "figures.csv"
    file.write_bytes(format_rows([{**ROWS[0], "platform": ""}]))
    person = {"account": "ada", "orcid": "0000-0002-1825-0097", "affiliation": "Home"}
    stated = {"platform": "IPU-M2000", "machine": "My rack", "relation": "customer", **person}
    options: list[object] = ["--out", tmp_path / "out", "--warehouse", warehouse]
    for name, text in stated.items():
        options += ["--set", f"{name}={text}"]
    done = run_cli("submit", file, *WHO.split(), *options)
    assert (done.returncode, done.stderr) == (0, "")
    [bundle] = (tmp_path / "out" / "ada-example").iterdir()
    description = tomllib.loads((bundle / DESCRIPTION).read_text(encoding="utf-8"))
    assert description["machine"] == "My rack"
    assert description["relation"] == "customer"
    assert description["who"] == {"name": "Ada-Example", **person}
    assert b",IPU-M2000,GC200," in (bundle / RESULTS).read_bytes()


@pytest.mark.slow
def test_killed_submit_leaves_no_half_bundle(tmp_path: Path, warehouse: Path) -> None:
    run = put_run(tmp_path / "elsewhere")
    out = tmp_path / "out"
    code = (
        "import datetime, os, signal, sys; from ipu_results.kit import files\n"
        "from ipu_results.doors.submission import prepare\n"
        "class Day(datetime.date):\n"  # the id of a bundle has the day
        "    today = classmethod(lambda cls: cls(2026, 11, 22))\n"
        "prepare.date = Day; n, out = int(sys.argv.pop(1)), sys.argv[-1]\n"
        "calls = [0]\n"
        "def sync(path, old=files.sync_to_disk):\n"
        "    calls[0] += str(path).startswith(out)\n"
        "    os.kill(os.getpid(), signal.SIGKILL) if calls[0] == n else old(path)\n"
        "files.sync_to_disk = sync\n"
        "from ipu_results.doors.cli import main; main()"
    )
    command = ("submit", run, *WHO.split(), "--warehouse", warehouse, "--out", out)
    for number, killed in ((1, True), (2, True), (3, True), (4, True), (99, False)):
        done = subprocess.run(
            [sys.executable, "-c", code, str(number), *map(str, command)], check=False, timeout=600
        )
        assert done.returncode == (-signal.SIGKILL if killed else 0)
        assert [path.name[0] == "." for path in (out / "ada-example").iterdir()] == [killed]
    [bundle] = (out / "ada-example").iterdir()
    assert {path.name for path in bundle.iterdir()} == {"environment.json", RESULTS, DESCRIPTION}


def test_folder_of_a_name_is_plain() -> None:
    assert make_slug("Ada  Lovelace-Example, Ph.D.") == "ada-lovelace-example-ph-d"
    assert make_slug("../../etc") == "etc"
    assert make_slug("李").isalnum()
    assert make_slug("李") != make_slug("王")
