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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no row"),
        (b"model,thruput\nresnet50,3\n", "unknown columns: 'thruput' (nearest: throughput)"),
        (b"model,model\na,b\n", "column 'model' occurs twice"),
        (b"model,throughput\nresnet50\n", "row 1 has another number of cells"),
        (b"model,throughput\nresnet50,nan\n", "runs.csv, row 1: throughput 'nan' is not a number"),
        (b"model,batch_size,throughput\nresnet50,2.5,1\n", "batch_size 2.5 is not a whole number"),
        (b"model,throughput\n\xff\xfe,3\n", "is not CSV in UTF-8"),
        (b"model,throughput\n" + b"resnet50,3\n" * 1001, "at most 1000"),
        (b"model,chips,throughput\nresnet50,1,3\n", "`chips` is `chip_count` in results since 2.0"),
        (b"model,latency_ms,latency_ms_low,latency_ms_high\nresnet50,1,2,3\n", "is outside"),
    ],
)
def test_bad_csv_is_one_line(content: bytes, message: str, tmp_path: Path, warehouse: Path) -> None:
    check_refused(tmp_path / "runs.csv", content, message, warehouse)


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "state either a FILE or the figures of a run"),
        ([EMULATED_RUN, "--throughput", 3], "state either a FILE or the figures of a run"),
        (["--set", "chip"], "chip is not COLUMN=VALUE"),
        (["--set", "chip=1", "--set", "chip=2"], "chip is set twice"),
        (["--throughput", 3, "--set", "throughput=4"], "throughput is stated twice"),
        (["--throughput", "7,800"], "'7,800' is not a valid float"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[Any], message: str) -> None:
    done = run_cli("compare", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_set_states_any_column_and_names_the_nearest_to_an_unknown_one(warehouse: Path) -> None:
    stated = {**RESNET, "throughput": 7800, "latency_ms": 1.66, "latency_basis": "per-batch"}
    expected = [own.to_record() for own in compare(warehouse=warehouse, **stated)]
    options = ["--model", "resnet50", "--platform", "ipu-m2000", "--batch-size", 4]
    options += ["--throughput", 7800, "--latency-ms", 1.66, "--set", "latency_basis=per-batch"]
    done = run_cli("compare", *options, "--format", "json", "--warehouse", warehouse)
    assert json.loads(done.stdout) == expected
    # two are names of parameters
    for name, hint in (
        ("latency_bases", "(nearest: latency_basis)"),
        ("warehouse", ""),
        ("source", ""),
    ):
        done = run_cli("compare", *set_columns(**RESNET, throughput=7800, **{name: "x"}))
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert f"unknown columns: '{name}'" in done.stderr
        assert hint in done.stderr


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


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ("latency_s = 0.0019", "run.toml: unknown columns: 'latency_s' (nearest: latency_ms)"),
        ('latency_ms = "1.9 ms"', "run.toml: latency_ms '1.9 ms' is not a number"),
        ("latency_ms = [1, 2]", "run.toml: latency_ms [1, 2] is not a number"),
        ("latency_ms = true", "run.toml: latency_ms True is not a number"),
        ("chip_count = 2.5", "run.toml: chip_count 2.5 is not a whole number"),
        ("chip_count = -1", "run.toml: chip_count -1 is not above 0"),
        ("framework = 2024-01-01", "run.toml: framework datetime.date(2024, 1, 1) is not a text"),
        ("[figures]\nx = 3", "run.toml: unknown columns: 'figures'"),
        ("chip_count = ", "run.toml: is not TOML in UTF-8"),
    ],
)
def test_wrong_key_of_a_toml_file_is_one_line(
    added: str, message: str, tmp_path: Path, warehouse: Path
) -> None:
    check_refused(tmp_path / "run.toml", f"{RUN}{added}\n".encode(), message, warehouse)


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
