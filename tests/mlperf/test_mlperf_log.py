"""Logs as the official parser reads them, whatever is between their lines; and logs as tables of
their lines.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import tracemalloc
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import DocumentError
from ipu_results.kit.limits import MAX_LOG_LINE
from ipu_results.mlperf.log import CHUNK, KEYS, MARK, MAX_NAMED, Evaluation, Log, read_log
from ipu_results.mlperf.tree import LocalTree
from ipu_results.record.read.records import COLUMNS, read_mlperf_log

from tests.conftest import run_cli
from tests.mlperf.mlperf_support import (
    BEGIN,
    T0,
    evaluation,
    line,
    load_cases,
    log,
    put,
    read,
    stop,
    write,
)

CASES = load_cases("log")


def test_all_of_a_log() -> None:
    inner = line("train_samples", 0, 1000)
    inner += evaluation(9, 0.7, epoch_num=3) + evaluation(10, 0.76, epoch_num=4)
    inner += line("opt_learning_rate_training_steps", 0, 700)
    for seed in (42, 43, 42):
        inner += line("seed", 0, seed)
    data = log(inner=inner)
    assert read(data) == Log(
        lines=12,
        status="success",
        minutes=10.0,
        init_minutes=2.0,
        global_batch_size=256,
        train_samples=1000,
        evaluations=(
            Evaluation(None, 0.7, "epochs", 3.0, T0 + 9 * 60_000.0),
            Evaluation(None, 0.76, "epochs", 4.0, T0 + 10 * 60_000.0),
        ),
        planned_steps=700,
        seed="42",
        seeds=2,
        sha256=hashlib.sha256(data).hexdigest(),
        start_ms=float(T0),
        stop_ms=T0 + 10 * 60_000.0,
    )


LONG_NUMBER = b'{"key": "global_batch_size", "time_ms": 1, "value": ' + b"9" * 5000 + b"}"
DEEP = b'{"key": "epoch", "time_ms": 1, "value": ' + b"[" * 100_000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"key": "run_sto', "is not JSON: Unterminated string"),
        (b"", "is not JSON: Expecting value"),
        (b"[1]", "is not a JSON object"),
        (b'{"key": 7, "time_ms": 1}', "has no key"),
        (b'{"key": "epoch", "time_ms": null}', "has no time_ms"),
        (b'{"key": "epoch", "time_ms": NaN}', "has no time_ms"),
        (b'{"key": "epoch", "time_ms": ' + b"1" * 400 + b"}", "has no time_ms"),
        (DEEP, "is not JSON: nested too deeply"),
        (LONG_NUMBER, "is not JSON: Exceeds the limit"),
    ],
)
def test_broken_line_is_named_with_its_number(text: bytes, reason: str) -> None:
    parsed = read(b"noise\n", BEGIN, MARK + text + b"\n", stop())
    assert str(parsed.problem).startswith(f"line 5 {reason}")
    assert parsed.lines == 4
    assert parsed.minutes == 10.0
    assert parsed.status == "success"


def test_only_the_first_broken_lines_are_named() -> None:
    parsed = read(BEGIN, (MARK + b"{\n") * 20_000, stop())  # numbering each would take minutes
    assert re.findall(r"line (\d+) is", str(parsed.problem)) == ["4", "5", "6"]
    assert str(parsed.problem).endswith(f"and {20_000 - MAX_NAMED} more")


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        ({"status": "success"}, "success"),
        ({"status": 1.5}, "1.5"),
        ({"status": {"code": 0}}, '{"code": 0}'),
        ({"status": None}, None),
        (None, None),
        ([""], None),
    ],
)
def test_the_status_is_in_the_metadata_only(metadata: object, status: str | None) -> None:
    fields = {"key": "run_stop", "time_ms": T0 + 600_000, "value": {"status": "success"}}
    parsed = read(BEGIN, MARK + json.dumps({**fields, "metadata": metadata}).encode())
    assert parsed.status == status
    assert parsed.minutes == 10.0
    assert parsed.problem is None


@pytest.mark.parametrize("case", CASES["span"], ids=lambda case: case["minutes"])
def test_a_run_is_from_the_last_start_before_the_first_stop(case: dict[str, Any]) -> None:
    parsed = read(write(case["lines"]))
    assert parsed.minutes == case["minutes"]
    assert parsed.status == case["status"]


def test_a_stop_before_the_start_is_of_no_run() -> None:
    assert read(stop(10), line("run_start", 11)).minutes is None


def test_initialisation_is_from_the_first_start_to_the_last_stop() -> None:
    starts = line("init_start", -5) + line("init_start", -9) + line("init_start", -7)
    stops = line("init_stop", -2) + line("init_stop", -1) + line("init_stop", -3)
    assert read(starts, stops).init_minutes == 8.0


@pytest.mark.parametrize("value", [-4, 2.5, math.nan, [256], "256", True, 10**400])
def test_the_batch_size_is_a_whole_number_or_unknown(value: object) -> None:
    parsed = read(BEGIN, line("global_batch_size", 0, value), stop())
    assert parsed.global_batch_size is None
    assert parsed.findings == ()
    assert parsed.problem is None


def test_the_batch_size_may_be_written_twice() -> None:
    sizes = line("global_batch_size", 0, 256) + line("global_batch_size", 0, 256.0)
    parsed = read(BEGIN, sizes, stop())
    assert parsed.global_batch_size == 256
    assert parsed.findings == ()


def test_several_batch_sizes_are_a_finding() -> None:
    sizes = line("global_batch_size", 0, 256) + line("global_batch_size", 0, None)
    parsed = read(BEGIN, sizes, stop())
    assert parsed.global_batch_size is None
    assert parsed.problem is None
    assert parsed.findings == ("logs several global batch sizes; none is used",)


def write_evaluations(stated: list[dict[str, Any]]) -> bytes:
    return b"".join(evaluation(**each) for each in stated)


@pytest.mark.parametrize("case", CASES["evaluations"])
def test_evaluations_up_to_the_end_of_the_run_are_kept(case: dict[str, Any]) -> None:
    written = write_evaluations(case.get("written", []))
    parsed = read(BEGIN, written, stop(), write_evaluations(case.get("ended", [])))
    kept = []
    for each in parsed.evaluations:
        kept.append([each.metric or "none", each.value, each.unit, each.count])
    assert kept == case["read"]
    assert parsed.problem is None


@pytest.mark.parametrize("metadata", ["none", {"epoch_num": 10**400}])
def test_an_evaluation_without_progress_is_not_kept(metadata: object) -> None:
    parsed = read(BEGIN, line("eval_accuracy", 5, 0.7, metadata), stop())
    assert parsed.evaluations == ()
    assert parsed.problem is None


def test_a_line_without_end_is_abandoned(tmp_path: Path) -> None:
    put(tmp_path, "huge.txt", log(inner=b""))
    with (tmp_path / "huge.txt").open("r+b") as file:
        file.truncate(2**28)
    tracemalloc.start()
    parsed = read_log(LocalTree(str(tmp_path)).chunks("huge.txt"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert parsed.lines == 5
    assert parsed.minutes == 10.0
    assert parsed.problem is None
    assert peak < 8 * CHUNK


def test_a_line_with_a_mark_is_not_read_without_end() -> None:
    endless = [log(inner=b""), MARK, *[b" " * CHUNK] * 3]
    parsed = read_log(endless)
    assert parsed == Log(lines=5, problem=f"a line is longer than {MAX_LOG_LINE:,} bytes")


def test_a_mark_at_the_end_of_a_long_line_is_found() -> None:
    whole = log()
    noise = b"x" * (MAX_LOG_LINE + CHUNK - 3)  # the mark crosses the end of a chunk
    assert read_log([noise, noise + whole[:5], whole[5:]]).minutes == 10.0


@pytest.mark.parametrize("end", [b"\r", b"\n"])
def test_a_long_file_is_not_a_long_line(end: bytes) -> None:
    progress = (b"99%" + end) * (MAX_LOG_LINE // 3)
    chunks = [log(), progress, progress, log().replace(b"\n", end)]
    assert read_log(chunks).minutes == 10.0


TIMES = (
    st.integers(0, 10**7)
    | st.floats(-1e12, 1e12)
    | st.integers(0, 99).map(str)
    | st.sampled_from([None, [], "a"])
)
SMALL = (
    st.none()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.lists(st.integers(), max_size=3)
)
STATUS = st.sampled_from(["success", "aborted", None, 1.5])
VALID = st.fixed_dictionaries(
    {"key": st.sampled_from([*KEYS, "x"]), "time_ms": TIMES},
    optional={
        "value": SMALL,
        "metadata": (
            SMALL
            | st.fixed_dictionaries(
                {}, optional={"status": STATUS, "epoch_num": SMALL, "metric": SMALL}
            )
        ),
    },
).map(lambda fields: MARK + json.dumps(fields).encode())
NOISE = st.binary(max_size=12) | st.sampled_from(
    [MARK, b":::MLLOG", MARK * 2, b"{", b"\xc3", b"\xe2\x80\xa8", b"\x85"]
)
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\r", b"", b" ", b"\x0b", b"\x1c\n"])


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Replace one byte of a valid line."""
    text = draw(VALID)
    at = draw(st.integers(0, len(text) - 1))
    return text[:at] + draw(st.binary(max_size=2)) + text[at + 1 :]


PIECES = st.tuples(NOISE | st.just(b""), VALID | mutated() | NOISE, ENDS).map(b"".join)
DATA = st.lists(PIECES, max_size=12).map(b"".join)


def parse_officially(data: bytes) -> Iterator[dict[str, Any] | None]:
    """Yield the fields of each marked line as the official parser reads it, None if it refuses."""
    for text in io.TextIOWrapper(io.BytesIO(data), encoding="latin-1"):
        if ":::MLLOG " not in text:
            yield {}
            continue
        marked = re.sub(".*:::MLLOG ", ":::MLLOG ", text).strip()
        try:
            fields = json.loads(marked.removeprefix(":::MLLOG "))
            fields["time_ms"] = float(fields["time_ms"])
            is_line = isinstance(fields["key"], str) and math.isfinite(fields["time_ms"])
        except (ValueError, TypeError, KeyError, OverflowError):
            is_line = False
        yield fields if is_line else None


def find_run(lines: Iterable[dict[str, Any]]) -> tuple[float | None, bool]:
    """Return the minutes of a run, and whether it says that it succeeded."""
    start = None
    for fields in lines:
        if fields["key"] == "run_start":
            start = fields["time_ms"]
        if fields["key"] == "run_stop":
            metadata = fields.get("metadata")
            minutes = None if start is None else (fields["time_ms"] - start) / 60_000
            return minutes, isinstance(metadata, dict) and metadata.get("status") == "success"
    return None, False


@given(DATA)
def test_lines_are_those_of_the_official_parser(data: bytes) -> None:
    expected = list(parse_officially(data))
    parsed = read_log([data])
    marked = [fields for fields in expected if fields]
    assert parsed.lines == len(marked)
    refused = [str(number) for number, fields in enumerate(expected, 1) if fields is None]
    named = re.findall(r"line (\d+) (?:is|has)", parsed.problem or "")
    assert named == refused[:MAX_NAMED]
    assert (parsed.minutes, parsed.status == "success") == find_run(marked)


@given(DATA, st.lists(st.integers(0, 400), max_size=12))
def test_chunks_may_end_anywhere(data: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(data)]
    chunks = [data[a:b] for a, b in pairwise(places)]
    assert repr(read_log(chunks)) == repr(read_log([data]))


START = {"namespace": "", "time_ms": T0, "event_type": "INTERVAL_START", "key": "run_start"}
STOP = {**START, "key": "run_stop", "value": None, "metadata": {"status": "success"}}


def lines(*entries: object) -> bytes:
    return "".join(f":::MLLOG {json.dumps(fields)}\n" for fields in entries).encode()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_each_line_is_a_row_of_the_table(end: bytes) -> None:
    data = b"noise\n0: " + lines(START) + b"more noise\n" + lines(STOP)
    document = read_mlperf_log(data.replace(b"\n", end))
    [table] = document.tables
    assert table.columns == COLUMNS
    first, second = table.rows
    assert (first.number, first.locator) == (1, "line 2")
    assert first.cells == (str(T0), "", "INTERVAL_START", "run_start", "", "")
    assert (second.number, second.locator) == (2, "line 4")
    assert second.cells == (str(T0), "", "INTERVAL_START", "run_stop", "", '{"status": "success"}')
    assert document.problems == ()


@pytest.mark.parametrize("text", [b'{"key": ', b"7", b"", b'{"key": "a\tb"}', b"[" * 100_000])
def test_a_broken_line_is_a_problem_of_the_table(text: bytes) -> None:
    document = read_mlperf_log(lines(START) + MARK + text + b"\n" + lines(STOP))
    assert [row.number for row in document.tables[0].rows] == [1, 3]
    [problem] = document.problems
    assert problem.row_number == 2
    assert problem.locator == "line 2"
    assert problem.reason == "broken-log-line"


def test_values_in_any_encoding_are_cells() -> None:
    values = {
        b'"caf\xc3\xa9"': "café",
        b'"caf\xe9"': "café",
        b'"\\ud800"': "\\ud800",
        b"[1, null]": "[1, null]",
    }
    document = read_mlperf_log(b"".join(b':::MLLOG {"value": %b}\n' % value for value in values))
    assert [row.cells[4] for row in document.tables[0].rows] == list(values.values())
    assert document.problems == ()


@pytest.mark.parametrize("data", [b"", b" \n", b"a sentence\n", b":::MLLOG", b":::MLL 7"])
def test_a_file_without_lines_is_refused(data: bytes) -> None:
    with pytest.raises(DocumentError):
        read_mlperf_log(data)


def test_extract_recognises_a_log(tmp_path: Path) -> None:
    path = put(tmp_path, "result_0.txt", lines(START, STOP))
    done = run_cli("extract", path, "--format", "json")
    assert done.returncode == 0
    [table] = json.loads(done.stdout)
    assert table["table_name"] == "mlperf_log"
    assert len(table["rows"]) == 2
    assert run_cli("extract", path, "--kind", "inference-paper").returncode == 1
