"""Read the log of one MLPerf Training run (`:::MLLOG` lines) as its time to train."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ipu_results.mlperf.log import MARK as BYTES_MARK
from ipu_results.mlperf.log import read_log
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.submission.adapters.files import UNVERIFIED, Draft, Number, ReadFile, Section, SubmittedFile

NAME = "mlperf-training-log"
MARK = BYTES_MARK.decode()
START, STOP, SUCCESS = "run_start", "run_stop", "success"
SIGNS = ('"run_start"', '"run_stop"')
MS_PER_SECOND = 1000
KEYS = {
    "submission_benchmark": "benchmark",
    "submission_platform": "platform",
    "submission_org": "submitter",
    "submission_division": "division",
}


def is_readable(file: SubmittedFile) -> bool:
    """Return whether the file has the lines that begin or end a training run."""
    return MARK in file.text and any(sign in file.text for sign in SIGNS)


def read_training_log(file: SubmittedFile) -> ReadFile:
    """Read the time from run_start to run_stop of a successful run. Raises SubmissionError."""
    log = read_log([file.data.removeprefix(b"\xef\xbb\xbf")])
    if log.problem:
        file.fail(log.problem)
    if log.status is None:
        file.fail("the run has no run_stop with a status, so it did not end")
    if log.status != SUCCESS:
        file.fail(f"the run ended with status {log.status[:40]!r}: only a successful run has a time to train")
    draft = Draft(file)
    texts, times = _read_lines(file)
    if START not in times:
        file.fail(f"has no {START} before its {STOP}")
    (start, start_line), (stop, stop_line) = times[START], times[STOP]
    if (float(start), float(stop)) != (log.start_ms, log.stop_ms) or stop <= start:
        file.fail(f"{START} and {STOP} do not make one run", f"lines {start_line} and {stop_line}")
    benchmark = texts.get("submission_benchmark", "")
    notes = ["one run", f"seed {log.seed}" if log.seed and log.seeds == 1 else ""]
    facts = {
        "model": load_vocabulary().benchmarks.get(benchmark, benchmark),
        "task": "training",
        "platform": texts.get("submission_platform", ""),
        "batch_size": "" if log.global_batch_size is None else str(log.global_batch_size),
        "conditions": "; ".join(filter(None, ["MLPerf Training log", *notes])),
    }
    seconds = format((stop - start) / MS_PER_SECOND, "f")
    place = f"line {stop_line}, {STOP}.time_ms minus line {start_line}, {START}.time_ms"
    draft.add(facts, "time to train", "s", seconds, place)
    for key, name in KEYS.items():
        draft.state(name, texts.get(key, ""))
    for finding in log.findings:
        draft.remark(finding)
    draft.remark("left out: evaluations; an official score is a mean over several runs")
    draft.remark(UNVERIFIED)
    return draft.finish(NAME)


def _read_lines(file: SubmittedFile) -> tuple[dict[str, str], dict[str, tuple[Decimal, int]]]:
    """Return the texts of the submission, and time in ms and line of the start and the stop, with the file's digits."""
    texts: dict[str, str] = {}
    times: dict[str, tuple[Decimal, int]] = {}
    for number, line in file.list_lines():
        if MARK not in line or not any(f'"{key}"' in line for key in (START, STOP, *KEYS)):
            continue
        place = f"line {number}"
        entry = Section(file, file.parse(line.rpartition(MARK)[2], place))
        entry.place = place
        key = entry.read_text("key")
        if key in KEYS:
            text = entry.read_text("value")
            if texts.setdefault(key, text) != text:
                file.fail(f"{key} has two values", place)
        elif key == STOP and STOP not in times:
            times[STOP] = _read_time(entry), number
        elif key == START and STOP not in times:
            times[START] = _read_time(entry), number
    return texts, times


def _read_time(entry: Section) -> Decimal:
    value: Any = entry.fields.get("time_ms")
    if not isinstance(value, Number) or not value.isdecimal() or len(value) > 15:
        entry.file.fail("is not a whole number of milliseconds", entry.get_key("time_ms"))
    return Decimal(value)
