"""Lines and logs as the official parser sees them, whatever stands between them."""

from __future__ import annotations

import io
import json
import math
import re
import time
import tracemalloc
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.mlperf.lines import CHUNK, MARK, MAX_LINE
from ipu_results.mlperf.log import MAX_NAMED, Evaluation, Log, read_log
from ipu_results.mlperf.tree import LocalTree
from mlperf_support import T0, evaluation, line, log, put, read, stop

BEGIN = line("init_start", -2) + line("init_stop") + line("run_start")
GOOD = Log(lines=5, status="success", minutes=10.0, init_minutes=2.0, global_batch_size=256)


def test_a_log_is_what_its_lines_say() -> None:
    inner = line("train_samples", 0, 1000) + evaluation(9, 0.7, epoch_num=3) + evaluation(10, 0.76, epoch_num=4)
    assert read(log(inner=inner)) == Log(
        lines=8,
        status="success",
        minutes=10.0,
        init_minutes=2.0,
        global_batch_size=256,
        train_samples=1000,
        evaluations=(Evaluation(None, 0.76, "epochs", 4.0),),
    )


@pytest.mark.parametrize(
    "noise",
    [
        b"INFO starting\n",
        b"10%|#    | 1/10\r 20%|##   | 2/10\r",
        b"\r\r\n\r\n\n\r",
        b"\x1b[32mdone\x1b[0m\n",
        b"\xff\xfe\x00 caf\xe9 \x85\x1c\n",
        b":::MLLOG",
        b":::MLL 1.0 run_stop\n",
        b"loss: 1.0 ",
        b"\x1b[2K\r0: ",
    ],
)
def test_noise_between_lines_changes_nothing(noise: bytes) -> None:
    pieces = log().splitlines(keepends=True)
    data = noise + b"".join(noise.join([piece, b"\n"]) for piece in pieces) + b"\n" + noise
    if noise == b":::MLLOG":
        data = data.replace(noise * 2, noise)
    assert read(data) == GOOD


@pytest.mark.parametrize("prefix", ["0: ", "[1,3]<stdout>:", "\x1b[36m(worker)\x1b[0m ", "10%\r", ":::MLLOG {broken "])
def test_what_stands_before_the_last_mark_is_no_part_of_the_line(prefix: str) -> None:
    data = b"".join(prefix.encode() + one for one in log().splitlines(keepends=True))
    assert read(data) == GOOD


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b"\n\r", b" \t\r\n", b"\x85\n", b"\xa0\x1c\n"])
def test_a_line_ends_as_the_official_parser_ends_it(end: bytes) -> None:
    assert read(log().replace(b"\n", end)) == GOOD
    assert read(log().replace(b"\n", end).rstrip()) == GOOD


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (b'{"key": "run_sto', "is not JSON: Unterminated string"),
        (b'{"key": "epoch", "time_ms": 1} trailing', "is not JSON: Extra data"),
        (b'{"key": "a\tb", "time_ms": 1}', "is not JSON: Invalid control character"),
        (b"", "is not JSON: Expecting value"),
        (b"[1]", "is not a JSON object"),
        (b'{"time_ms": 1}', "has no key"),
        (b'{"key": 7, "time_ms": 1}', "has no key"),
        (b'{"key": "epoch"}', "has no time_ms"),
        (b'{"key": "epoch", "time_ms": null}', "has no time_ms"),
        (b'{"key": "epoch", "time_ms": "1.2.3"}', "has no time_ms"),
        (b'{"key": "epoch", "time_ms": NaN}', "has no time_ms"),
        (b'{"key": "epoch", "time_ms": 1e999}', "has no time_ms"),
        (b'{"key": "epoch", "time_ms": ' + b"1" * 400 + b"}", "has no time_ms"),
        (b'{"key": "epoch", "time_ms": 1, "value": ' + b"[" * 100_000, "is not JSON: nested too deeply"),
        (
            b'{"key": "global_batch_size", "time_ms": 1, "value": ' + b"9" * 5000 + b"}",
            "is not JSON: Exceeds the limit",
        ),
    ],
)
def test_a_broken_line_is_named_with_its_number(told: bytes, reason: str) -> None:
    found = read(b"noise\n", BEGIN, MARK + told + b"\n", stop())
    assert found.problem is not None
    assert found.problem.startswith(f"line 5 {reason}")
    assert (found.lines, found.minutes, found.status) == (4, 10.0, "success")


def test_only_the_first_broken_lines_are_named() -> None:
    broken = MARK + b"{\n"
    found = read(BEGIN, broken * 40, stop())
    assert found.problem is not None
    assert re.findall(r"line (\d+) is", found.problem) == ["4", "5", "6"]
    assert found.problem.endswith(f"and {40 - MAX_NAMED} more")


def test_a_file_of_broken_lines_is_read_in_linear_time() -> None:
    begun = time.monotonic()
    assert read((MARK + b"{\n") * 20_000).problem is not None
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    "told",
    [
        b'{"key": "caf\xe9", "time_ms": 1}',
        b'{"key": "caf\xc3\xa9", "time_ms": 1}',
        b'{"key": "\\ud800", "time_ms": 1}',
        b'{"key": "x", "time_ms": "1650000000000"}',
        b'{"key": "x", "time_ms": true}',
        b'{"key": "x", "time_ms": 1, "value": NaN, "metadata": -Infinity}',
        b'\x0b\xa0{"key": "x", "time_ms": 1}\x1c',
        b'{"key": "x", "time_ms": 1, "value": "\xff\xfe"}',
    ],
)
def test_what_the_official_parser_takes_is_no_fault(told: bytes) -> None:
    found = read(BEGIN, MARK + told + b"\n", stop())
    assert (found.lines, found.problem, found.minutes) == (5, None, 10.0)


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        ({"status": "success"}, "success"),
        ({"status": "aborted"}, "aborted"),
        ({"status": "abort"}, "abort"),
        ({"status": "fail"}, "fail"),
        ({"status": "succuss"}, "succuss"),
        ({"status": None}, None),
        ({"status": 1.5}, "1.5"),
        ({"status": {"code": 0}}, '{"code": 0}'),
        ({}, None),
        (None, None),
        ("success", None),
        (["success"], None),
    ],
)
@pytest.mark.parametrize("value", [None, {"status": "success"}, 0.5, "success", [1]])
def test_the_status_is_the_metadata_and_never_the_value(metadata: object, status: str | None, value: object) -> None:
    entry = {"key": "run_stop", "time_ms": T0 + 600_000, "value": value, "metadata": metadata}
    found = read(BEGIN, MARK + json.dumps(entry).encode())
    assert (found.status, found.minutes, found.problem) == (status, 10.0, None)


@pytest.mark.parametrize(
    ("pieces", "minutes", "status"),
    [
        ([line("run_start"), stop(10)], 10.0, "success"),
        ([line("run_start"), line("run_start", 2), stop(10)], 8.0, "success"),
        ([line("run_start"), stop(10), stop(20, "aborted")], 10.0, "success"),
        ([line("run_start"), stop(10, "aborted"), line("run_start", 11), stop(20)], 10.0, "aborted"),
        ([stop(10), line("run_start", 11)], None, "success"),
        ([line("run_start")], None, None),
        ([line("run_start", 12), stop(10)], -2.0, "success"),
    ],
)
def test_a_run_is_from_the_last_start_before_the_first_stop(
    pieces: list[bytes], minutes: float | None, status: str | None
) -> None:
    found = read(*pieces)
    assert (found.minutes, found.status) == (minutes, status)


def test_initialisation_is_from_the_first_start_to_the_last_stop() -> None:
    pieces = [line("init_start", -5), line("init_start", -9), line("init_stop", -2), line("init_stop", -1)]
    assert read(*pieces).init_minutes == 8.0


@pytest.mark.parametrize(
    ("values", "taken", "several"),
    [
        ([256], 256, False),
        ([256, 256.0], 256, False),
        ([256, 512], None, True),
        ([256, None], None, True),
        ([[256]], None, False),
        (["256"], None, False),
        ([True], None, False),
        ([-4], None, False),
        ([2.5], None, False),
        ([10**400], None, False),
        ([math.nan], None, False),
        ([1e300], None, False),
        ([], None, False),
    ],
)
def test_the_batch_size_is_one_whole_number_or_unknown(values: list[object], taken: int | None, several: bool) -> None:
    found = read(BEGIN, *(line("global_batch_size", 0, value) for value in values), stop())
    assert found.global_batch_size == taken
    assert found.findings == (("names several global batch sizes: none is taken",) if several else ())
    assert found.problem is None


@pytest.mark.parametrize(
    ("value", "taken"), [(1000, 1000), (1e6, 1e6), ([1000, 2000], None), ("1000", None), (10**400, None)]
)
def test_train_samples_that_are_no_number_are_unknown(value: object, taken: float | None) -> None:
    found = read(BEGIN, line("train_samples", 0, value), stop())
    assert (found.train_samples, found.problem) == (taken, None)


@pytest.mark.parametrize(
    ("pieces", "evaluations"),
    [
        ([evaluation(5, epoch_num=2)], (Evaluation(None, 0.76, "epochs", 2.0),)),
        ([evaluation(5, step_num=200)], (Evaluation(None, 0.76, "steps", 200.0),)),
        (
            [evaluation(5, samples_count=9, epoch_num=2)],
            (Evaluation(None, 0.76, "samples", 9.0),),
        ),
        (
            [evaluation(5, {"BBOX": 0.38, "SEGM": 0.34}, epoch_num=13)],
            (Evaluation(None, {"BBOX": 0.38, "SEGM": 0.34}, "epochs", 13.0),),
        ),
        ([evaluation(5, epoch_num=1), evaluation(11, epoch_num=2)], (Evaluation(None, 0.76, "epochs", 1.0),)),
        ([evaluation(5, epoch_num="1")], ()),
        ([evaluation(5, epoch_num=10**400)], ()),
        ([line("eval_accuracy", 5, 0.7, "none")], ()),
        ([], ()),
        (
            [
                evaluation(5, 95.0, "eval_error", metric="FID", samples_count=8),
                evaluation(6, 0.16, metric="CLIP", samples_count=8),
            ],
            (Evaluation("FID", 95.0, "samples", 8.0), Evaluation("CLIP", 0.16, "samples", 8.0)),
        ),
    ],
)
def test_the_evaluation_that_counts(pieces: list[bytes], evaluations: tuple[Evaluation, ...]) -> None:
    found = read(BEGIN, *pieces, stop())
    assert (found.evaluations, found.problem) == (evaluations, None)


def test_an_evaluation_behind_the_last_line_counts_by_its_time() -> None:
    assert read(BEGIN, stop(), evaluation(10, epoch_num=4)).evaluations == (Evaluation(None, 0.76, "epochs", 4.0),)


@pytest.mark.parametrize("seeds", [[], [1234.5], [None], list(range(1280)), ["seed"]])
def test_seeds_are_no_matter(seeds: list[object]) -> None:
    found = read(log(inner=b"".join(line("seed", 0, seed) for seed in seeds)))
    assert found == Log(lines=5 + len(seeds), status="success", minutes=10.0, init_minutes=2.0, global_batch_size=256)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "holds no :::MLLOG line"),
        (b"The logs of this run are withheld.", "holds no :::MLLOG line"),
        (b":::MLPv0.5.0 resnet 1541635013.0 (train.py:10) run_start\n", "has the syntax of v0.5"),
        (b':::MLL 1558631910.779 run_start: {"value": null}\n', "has the syntax of v0.6"),
        (b"0: :::MLL 1558631910.779 run_start: {}\n", "has the syntax of v0.6"),
    ],
)
def test_a_log_without_lines_says_so(data: bytes, problem: str) -> None:
    assert read(data) == Log(problem=problem)


def test_a_line_without_end_is_given_up(tmp_path: Path) -> None:
    put(tmp_path, "huge.txt", log())
    with (tmp_path / "huge.txt").open("r+b") as file:
        file.truncate(2 * 2**30)
    begun = time.monotonic()
    tracemalloc.start()
    found = read_log(LocalTree(str(tmp_path)).chunks("huge.txt"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == Log(lines=5, problem=f"a line is longer than {MAX_LINE:,} bytes")
    assert time.monotonic() - begun < 5
    assert peak < 8 * CHUNK


@pytest.mark.parametrize("end", [b"\r", b"\n"])
def test_a_long_file_is_no_long_line(end: bytes) -> None:
    progress = (b"99%" + end) * (MAX_LINE // 3)
    chunks = [log(), progress, progress, log().replace(b"\n", end)]
    assert read_log(chunks).minutes == 10.0


KEYS = ["run_start", "run_stop", "init_start", "init_stop", "global_batch_size", "train_samples", "eval_accuracy", "x"]
TIMES = st.integers(0, 10**7) | st.floats(-1e12, 1e12) | st.integers(0, 99).map(str) | st.sampled_from([None, [], "a"])
SMALL = st.none() | st.integers() | st.floats() | st.text(max_size=4) | st.lists(st.integers(), max_size=3)
STATUS = st.sampled_from(["success", "aborted", None, 1.5])
VALID = st.fixed_dictionaries(
    {"key": st.sampled_from(KEYS), "time_ms": TIMES},
    optional={
        "value": SMALL,
        "metadata": SMALL | st.fixed_dictionaries({}, optional={"status": STATUS, "epoch_num": SMALL, "metric": SMALL}),
    },
).map(lambda told: MARK + json.dumps(told).encode())
NOISE = st.binary(max_size=12) | st.sampled_from([MARK, b":::MLLOG", MARK * 2, b"{", b"\xc3", b"\xe2\x80\xa8", b"\x85"])
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\r", b"", b" ", b"\x0b", b"\x1c\n"])


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A valid line of which one byte is another."""
    told = draw(VALID)
    at = draw(st.integers(0, len(told) - 1))
    return told[:at] + draw(st.binary(max_size=2)) + told[at + 1 :]


PIECES = st.tuples(NOISE | st.just(b""), VALID | mutated() | NOISE, ENDS).map(b"".join)
DATA = st.lists(PIECES, max_size=12).map(b"".join)


def official(data: bytes) -> tuple[list[tuple[str, float, dict[str, object]]], list[int]]:
    """Lines as the official parser reads them, and the numbers of those that it refuses."""
    taken, refused = [], []
    for number, text in enumerate(io.TextIOWrapper(io.BytesIO(data), encoding="latin-1"), start=1):
        if ":::MLLOG " not in text:
            continue
        told = re.sub(".*:::MLLOG ", ":::MLLOG ", text).strip()
        try:
            if not told.startswith(":::MLLOG "):
                raise ValueError("does not match regex")
            entry = json.loads(told[len(":::MLLOG ") :])
            at = float(entry["time_ms"])
            if not isinstance(entry["key"], str) or not math.isfinite(at):
                raise ValueError("is beyond what a log can say")
        except (ValueError, TypeError, KeyError, OverflowError):
            refused.append(number)
        else:
            taken.append((entry["key"], at, entry))
    return taken, refused


def official_run(taken: Iterable[tuple[str, float, dict[str, object]]]) -> tuple[float | None, str | None]:
    start = None
    for key, at, entry in taken:
        if key == "run_start":
            start = at
        if key == "run_stop":
            metadata = entry.get("metadata")
            status = metadata.get("status") if isinstance(metadata, dict) else None
            minutes = None if start is None else (at - start) / 60_000
            return minutes, "success" if status == "success" else None
    return None, None


@given(DATA)
def test_lines_are_those_of_the_official_parser(data: bytes) -> None:
    taken, refused = official(data)
    found = read_log([data])
    assert found.lines == len(taken)
    named = re.findall(r"line (\d+) (?:is|has)", found.problem or "")
    assert named == [str(number) for number in refused[:MAX_NAMED]]
    assert (found.minutes, found.status if found.status == "success" else None) == official_run(taken)


@given(DATA, st.lists(st.integers(0, 400), max_size=12))
def test_it_is_no_matter_where_chunks_end(data: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(data)]
    chunks = [data[a:b] for a, b in pairwise(places)]
    assert repr(read_log(chunks)) == repr(read_log([data]))
