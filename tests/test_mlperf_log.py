"""MLPerf logs as tables of their lines."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from conftest import ROOT, run_cli
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import DocumentError
from ipu_results.read.mlperf_log import COLUMNS, read_mlperf_log

ARCHIVE = ROOT.parent / "shared" / "mlperf" / "training_v1.0_results_part.tar.xz"
START = {"namespace": "", "time_ms": 1624000000000, "event_type": "INTERVAL_START", "key": "run_start", "value": None}
STOP = START | {
    "time_ms": 1624000600000,
    "event_type": "INTERVAL_END",
    "key": "run_stop",
    "metadata": {"status": "success"},
}


def log(*entries: object, prefix: str = "") -> bytes:
    return "".join(f"{prefix}:::MLLOG {json.dumps(entry)}\n" for entry in entries).encode()


def test_each_line_is_a_row_with_its_place() -> None:
    reading = read_mlperf_log(b"noise\n" + log(START) + b"more noise\n" + log(STOP))
    (table,) = reading.tables
    assert table.columns == COLUMNS
    assert [(row.number, row.locator, row.cells) for row in table.rows] == [
        (1, "line 2", ("1624000000000", "", "INTERVAL_START", "run_start", "", "")),
        (2, "line 4", ("1624000600000", "", "INTERVAL_END", "run_stop", "", '{"status": "success"}')),
    ]
    assert reading.problems == ()


@pytest.mark.parametrize("prefix", ["0: ", "\x1b[32m", "10%\r 20%\r", "[rank 3] "])
def test_what_stands_before_the_mark_is_not_part_of_the_line(prefix: str) -> None:
    assert read_mlperf_log(log(START, prefix=prefix)).tables[0].rows[0].cells[3] == "run_start"


@pytest.mark.parametrize(
    "line",
    [b':::MLLOG {"key": ', b":::MLLOG 7", b":::MLLOG ", b':::MLLOG {"key": "a\tb"}', b":::MLLOG " + b"[" * 100_000],
)
def test_a_broken_line_is_named_and_the_others_are_kept(line: bytes) -> None:
    reading = read_mlperf_log(log(START) + line + b"\n" + log(STOP))
    assert [row.cells[3] for row in reading.tables[0].rows] == ["run_start", "run_stop"]
    assert [row.number for row in reading.tables[0].rows] == [1, 3]
    assert [(problem.row_number, problem.locator, problem.reason) for problem in reading.problems] == [
        (2, "line 2", "broken-log-line")
    ]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"value": "caf\xc3\xa9"}', "café"),
        (b'{"value": "caf\xe9"}', "café"),
        (b'{"value": "\\ud800"}', "\\ud800"),
        (b'{"value": [1, null]}', "[1, null]"),
    ],
)
def test_a_line_is_read_whatever_its_encoding(line: bytes, value: str) -> None:
    reading = read_mlperf_log(b":::MLLOG " + line)
    assert [row.cells[4] for row in reading.tables[0].rows] == [value]
    assert reading.problems == ()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_counts(end: bytes) -> None:
    data = end.join([b"noise", log(START).strip(), b"", log(STOP).strip()])
    assert [row.locator for row in read_mlperf_log(data).tables[0].rows] == ["line 2", "line 4"]


def test_of_several_marks_in_a_line_the_last_counts() -> None:
    reading = read_mlperf_log(b':::MLLOG {"key": :::MLLOG {"key": "run_stop"}\n:::MLLOG')
    assert [row.cells[3] for row in reading.tables[0].rows] == ["run_stop"]
    assert reading.problems == ()


@pytest.mark.parametrize("data", [b"", b" \n", b"a sentence\n", b":::MLLOG", b":::MLL 7"])
def test_a_file_without_log_lines_is_no_empty_success(data: bytes) -> None:
    with pytest.raises(DocumentError):
        read_mlperf_log(data)


def test_extract_takes_a_log_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "result_0.txt"
    path.write_bytes(log(START, STOP))
    done = run_cli("extract", path, "--format", "json")
    assert done.returncode == 0
    (table,) = json.loads(done.stdout)
    assert (table["table_name"], len(table["rows"])) == ("mlperf_log", 2)
    assert run_cli("extract", path, "--kind", "qwant-paper").returncode == 1


@pytest.mark.skipif(not ARCHIVE.exists(), reason="the official logs are not here")
def test_official_logs_are_read() -> None:
    with tarfile.open(ARCHIVE) as archive:
        member = next(m for m in archive if m.name.endswith("ipu-pod16-POPART-closed/bert/result_0.txt"))
        reading = read_mlperf_log(archive.extractfile(member).read())  # type: ignore[union-attr]
    keys = [row.cells[3] for row in reading.tables[0].rows]
    assert keys.count("run_start") == keys.count("run_stop") == 1
    assert reading.problems == ()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)
)


@given(
    st.lists(st.fixed_dictionaries({"key": st.text(), "value": json_values}), min_size=1, max_size=5),
    st.binary(max_size=60),
)
def test_arbitrary_bytes_between_lines_change_no_row(entries: list[dict[str, object]], noise: bytes) -> None:
    noise = noise.replace(b":::", b"")
    data = b"".join(log(entry) + noise + b"\n" for entry in entries)
    reading = read_mlperf_log(data)
    assert [row.cells[3] for row in reading.tables[0].rows] == [entry["key"] for entry in entries]
    assert reading.problems == ()
