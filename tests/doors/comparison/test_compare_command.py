"""Compare runs from the command line: files that are read, formats that are written, and what is
refused.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from ipu_results import compare
from ipu_results.errors import ComparisonError, DamagedRunError

from tests.cases import every_case
from tests.conftest import run_cli
from tests.doors.comparison.comparison_support import RESNET, compare_many, compare_one
from tests.doors.comparison.test_comparison import EMULATED_RUN

CLEAR = "\x1b[2J"


def set_columns(**columns: Any) -> list[str]:
    """Return the options of `compare` that state these columns."""
    options = []
    for name, value in columns.items():
        options += ["--set", f"{name}={value}"]
    return options


def test_a_slip_of_the_unit_is_doubtful(warehouse: Path) -> None:
    stated = set_columns(**RESNET, throughput=7.8)
    done = run_cli("compare", "--strict", *stated, "--warehouse", warehouse)
    assert (done.returncode, done.stderr) == (1, "")
    assert "\ndoubtful: " in done.stdout


def check_refused(file: Path, content: bytes, message: str, warehouse: Path) -> None:
    """Check that a file is refused in one line."""
    file.write_bytes(content)
    done = run_cli("compare", file, "--warehouse", warehouse)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_csv_is_read_row_by_row_and_blank_is_not_zero(tmp_path: Path, warehouse: Path) -> None:
    file = tmp_path / "runs.csv"
    header = "model,platform,batch_size,throughput,latency_ms\n"
    rows = "resnet50,IPU-M2000,4,7800,\nresnet50,C2,4,,0.5\n"
    file.write_text(header + rows, encoding="utf-8-sig")
    first, second = compare(file, warehouse=warehouse)
    assert (first.measurement.label, first.measurement.latency_ms) == ("runs.csv, row 1", None)
    assert (second.measurement.throughput, second.measurement.latency_ms) == (None, 0.5)
    assert first.matches[0].ratio.ratio == 7800 / 7152


@every_case(__file__, "csv")
def test_bad_csv_is_one_line(content: str, message: str, tmp_path: Path, warehouse: Path) -> None:
    check_refused(tmp_path / "runs.csv", content.encode(), message, warehouse)


def test_csv_of_too_many_rows_or_of_no_text_is_one_line(tmp_path: Path, warehouse: Path) -> None:
    rows = b"model,throughput\n" + b"resnet50,3\n" * 1001
    check_refused(tmp_path / "runs.csv", rows, "at most 1000", warehouse)
    no_text = b"model,throughput\n\xff\xfe,3\n"
    check_refused(tmp_path / "runs.csv", no_text, "is not CSV in UTF-8", warehouse)


def test_folder_that_is_not_a_run_or_was_edited_is_refused(tmp_path: Path, warehouse: Path) -> None:
    with pytest.raises(ComparisonError, match=r"has no points\.csv"):
        compare(tmp_path, warehouse=warehouse)
    shutil.copytree(EMULATED_RUN, run := tmp_path / EMULATED_RUN.name)
    points = run / "points.csv"
    points.write_bytes(points.read_bytes().replace(b"emulated", b"measured"))
    with pytest.raises(DamagedRunError, match="is not the file that"):
        compare(run, warehouse=warehouse)


def test_formats_hold_hostile_text(tmp_path: Path, warehouse: Path) -> None:
    file = tmp_path / f"<script>alert(1)<_script>{CLEAR}.csv"
    hostile = f"<img src=x>{CLEAR}"
    header = "model,platform,batch_size,throughput,variant\n"
    file.write_text(f'{header}resnet50,IPU-M2000,4,7800,"{hostile}"\n', "utf-8")
    assert CLEAR not in run_cli("compare", file, "--warehouse", warehouse).stdout
    done = run_cli("compare", file, "--format", "json", "--warehouse", warehouse)
    [record] = json.loads(done.stdout)
    assert record["measurement"]["variant"] == hostile
    assert record["matches"][0]["ratios"][0]["ratio"] == 7800 / 7152


@every_case(__file__, "usage")
def test_wrong_usage_exits_with_2(arguments: list[str], message: str) -> None:
    done = run_cli("compare", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_set_states_any_column(warehouse: Path) -> None:
    stated = {**RESNET, "throughput": 7800, "latency_ms": 1.66, "latency_basis": "per-batch"}
    expected = [own.to_record() for own in compare(warehouse=warehouse, **stated)]
    options = ["--model", "resnet50", "--platform", "ipu-m2000", "--batch-size", 4]
    options += ["--throughput", 7800, "--latency-ms", 1.66, "--set", "latency_basis=per-batch"]
    done = run_cli("compare", *options, "--format", "json", "--warehouse", warehouse)
    assert json.loads(done.stdout) == expected


@pytest.mark.parametrize(
    ("name", "hint"),
    # two are names of parameters
    [("latency_bases", " (nearest: latency_basis)"), ("warehouse", ""), ("source", "")],
)
def test_set_names_an_unknown_column_and_the_nearest(name: str, hint: str) -> None:
    done = run_cli("compare", *set_columns(**RESNET, throughput=7800, **{name: "x"}))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f"unknown columns: '{name}'{hint}" in done.stderr


RUN = """
model = "resnet50"
platform = "ipu-m2000"
batch_size = 4
throughput = 7800
precision = 16.16
packed = false
"""


def test_run_of_a_toml_file_is_that_of_its_columns(tmp_path: Path, warehouse: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(RUN, encoding="utf-8")
    [own] = compare(file, warehouse=warehouse)
    [expected] = compare(
        warehouse=warehouse, **RESNET, throughput=7800, precision="16.16", packed=False
    )
    assert own.measurement.label == "run.toml"
    assert own.verdict == expected.verdict
    assert [match.ratios for match in own.matches] == [match.ratios for match in expected.matches]


@every_case(__file__, "toml")
def test_wrong_key_of_a_toml_file_is_one_line(
    added: str, message: str, tmp_path: Path, warehouse: Path
) -> None:
    content = f"{RUN}{added}\n".encode()
    check_refused(tmp_path / "run.toml", content, f"run.toml: {message}", warehouse)


def test_variant_states_the_sequence_length(warehouse: Path) -> None:
    run = {"model": "bert-large", "platform": "bow-2000", "batch_size": 4, "throughput": 2000}
    by_length = {**run, "sequence_length": 128, "packed": False}
    named, counted = compare_many(warehouse, [{**run, "variant": "SL128"}, by_length])
    assert named.measurement.sequence_length == 128
    assert named.matches
    assert [match.row for match in named.matches] == [match.row for match in counted.matches]
    with pytest.raises(
        ComparisonError, match="variant SL128 and sequence length 384 contradict each other"
    ):
        compare_one(warehouse, variant="SL128", sequence_length=384, **run)
