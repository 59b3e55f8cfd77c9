"""Read logs of MLPerf: the summary or the detail log of a LoadGen run, and the log of one training
run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ipu_results.ground.files import load_schema_file
from ipu_results.mlperf.log import MARK as BYTES_MARK
from ipu_results.mlperf.log import read_log
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.submission.adapters import Adapter, Number, ReadFile, Section, SubmittedFile

FORMS = load_schema_file("adapters.toml")
LOADGEN, TRAINING = FORMS["mlperf-loadgen"], FORMS["mlperf-training-log"]["environment"]
MARK = BYTES_MARK.decode()
UNVERIFIED = (
    "not an official result: write `Result not verified by MLCommons Association.` where you"
    " show it"
)

TITLE, PARAMETERS, PER_SAMPLE = (
    "MLPerf Results Summary",
    "Test Parameters Used",
    "Per-sample latency:",
)
DETAIL_MARK = ":::MLLOG "
DETAIL_SIGNS = ('"loadgen_version"', '"result_validity"', '"effective_scenario"')
MODES, VALID = ("performance", "submission"), "VALID"
ERRORS = re.compile(r"([0-9]{1,20}) ERRORS? encountered.*")
WARNINGS = re.compile(r"([0-9]{1,20}) warnings? encountered.*")
CLEAN = "No errors encountered during test."
SINGLE, MULTI, OFFLINE = "singlestream", "multistream", "offline"


@dataclass
class _Run:
    """Texts and places by key, of a summary or a detail log.

    `source` is the position of its keys in LOADGEN.
    """

    result: ReadFile
    source: int
    fields: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def keys(self) -> set[str]:
        """The keys that are read."""
        known = [
            *LOADGEN["settings"].values(),
            *LOADGEN["environment"].values(),
            *LOADGEN["statistics"].values(),
        ]
        known += [keys for _, *keys in LOADGEN["rates"].values()]
        return {key for keys in known for key in (keys[:1] if self.source == 0 else keys[1:])}

    def store(self, key: str, text: str, place: str) -> None:
        """Store a field. Raises SubmissionError if it has another value already."""
        if self.fields.setdefault(key, (text, place))[0] != text:
            self.result.file.fail(f"{key} has two values", place)

    def read(self, keys: list[str]) -> str:
        """Return the text of a field, "" without it."""
        return self.fields.get(keys[self.source], ("", ""))[0]

    def add(self, facts: dict[str, str], metric: str, unit: str, key: str) -> None:
        """Add a figure, or a remark where the file lacks it."""
        if key not in self.fields:
            self.result.remark(f"no {key}, so no {metric}")
            return
        text, place = self.fields[key]
        if self.source and not isinstance(text, Number):
            self.result.file.fail("is not a number", place)
        self.result.add(facts, metric, unit, text, place)

    def add_figures(self) -> None:
        """Refuse what is not a valid performance run, and add the figures of its scenario."""
        result, file = self.result, self.result.file
        printed, mode, validity, samples = map(self.read, LOADGEN["settings"].values())
        scenario = re.sub(r"[^a-z]", "", printed.lower())
        if scenario not in {*LOADGEN["latencies"], OFFLINE}:
            file.fail(f"unknown scenario {printed[:40]!r}")
        if not mode.lower().startswith(MODES):
            file.fail(f"mode {mode[:40]!r} measures no performance")
        if validity != VALID:
            file.fail(f"the run is not valid: its result is {validity[:40]!r}")
        for name, keys in LOADGEN["environment"].items():
            result.state(name, self.read(keys))
        latency, definition = LOADGEN["latencies"].get(scenario, ("", ""))
        conditions = [
            f"MLPerf LoadGen {printed}",
            f"{samples} sample(s) a query" if samples else "",
            definition,
        ]
        facts = {"task": "inference", "conditions": "; ".join(filter(None, conditions))}
        if scenario == SINGLE and samples == "1":
            facts["batch_size"] = "1"  # the only sample that the system has at a time
        if scenario == SINGLE and samples != "1":
            result.remark(
                "left out: queries per second, since a query is not known to be one sample"
            )
        elif scenario in LOADGEN["rates"]:
            unit, *keys = LOADGEN["rates"][scenario]
            self.add(facts, "throughput", unit, keys[self.source])
        for metric, keys in LOADGEN["statistics"].items() if latency else ():
            # The detail log of several samples a query has latencies of samples under the first
            # key.
            self.add(
                facts,
                metric or latency,
                "ns",
                keys[2 if self.source and scenario == MULTI else self.source],
            )
        left_out = (
            "other percentiles" if latency else "latencies, which wait in one queue of all samples"
        )
        result.remark(f"left out: {left_out}")
        result.remark(UNVERIFIED)


def _read_summary(result: ReadFile) -> None:
    """Read throughput and latencies of a valid performance run from its mlperf_log_summary.txt."""
    run, file = _Run(result, 0), result.file
    known = run.keys
    has_parameters = is_clean = is_per_sample = False
    for number, line in file.list_lines():
        text = line.strip()
        has_parameters |= text == PARAMETERS
        is_clean |= text == CLEAN
        is_per_sample = text.startswith(PER_SAMPLE) or (is_per_sample and not has_parameters)
        if match := ERRORS.fullmatch(text):
            file.fail(f"LoadGen counted errors in the run: {match[1]}", f"line {number}")
        if match := WARNINGS.fullmatch(text):
            result.remark(f"LoadGen counted warnings in the run: {match[1]}")
        key, _, value = map(str.strip, line.partition(":"))
        if (
            key in known and not is_per_sample
        ):  # the latencies of samples have the names of those of queries
            run.store(key, value, f"line {number}, {key}")
    if not (has_parameters and is_clean):
        file.fail("is not whole: a summary ends with its test parameters and a count of errors")
    run.add_figures()


def _read_detail(result: ReadFile) -> None:
    """Read throughput and latencies of a valid performance run from its mlperf_log_detail.txt."""
    run, file = _Run(result, 1), result.file
    known = run.keys
    for number, line in file.list_lines():
        if DETAIL_MARK not in line:
            continue
        place = f"line {number}"
        entry = Section(file, file.parse(line.rpartition(DETAIL_MARK)[2], place), place)
        key, value, metadata = (
            entry.read_text("key"),
            entry.fields.get("value"),
            entry.read_section("metadata"),
        )
        if metadata and metadata.fields.get("is_error") is True:
            file.fail(f"LoadGen logged an error: {key[:60]}", place)
        if key in known:
            if not isinstance(value, str):  # a Number is a string as well
                file.fail("is neither a text nor a number", f"{place}, {key}")
            run.store(key, value, f"{place}, {key}")
    run.add_figures()


START, STOP, SUCCESS = "run_start", "run_stop", "success"
MS_PER_SECOND = 1000
MAX_TIME_DIGITS = 15  # of a time in ms since 1970, up to the year 33658


def _read_training(result: ReadFile) -> None:
    """Read the time from run_start to run_stop of a successful run."""
    file = result.file
    log = read_log([file.data.removeprefix(b"\xef\xbb\xbf")])
    if log.problem:
        file.fail(log.problem)
    if log.status is None:
        file.fail("the run has no run_stop with a status, so it did not end")
    if log.status != SUCCESS:
        file.fail(
            f"the run ended with status {log.status[:40]!r}: only a successful run has a time to"
            " train"
        )
    texts, times = _read_lines(file)
    if START not in times:
        file.fail(f"has no {START} before its {STOP}")
    (start, start_line), (stop, stop_line) = times[START], times[STOP]
    if (float(start), float(stop)) != (log.start_ms, log.stop_ms) or stop <= start:
        file.fail(f"{START} and {STOP} do not make one run", f"lines {start_line} and {stop_line}")
    benchmark = texts.get("submission_benchmark", "")
    facts = {
        "model": load_vocabulary().benchmarks.get(benchmark, benchmark),
        "task": "training",
        "platform": texts.get("submission_platform", ""),
        "batch_size": "" if log.global_batch_size is None else str(log.global_batch_size),
        "conditions": (
            "MLPerf Training log; one run"
            + (f"; seed {log.seed}" if log.seed and log.seeds == 1 else "")
        ),
    }
    seconds = format((stop - start) / MS_PER_SECOND, "f")
    place = f"line {stop_line}, {STOP}.time_ms minus line {start_line}, {START}.time_ms"
    result.add(facts, "time to train", "s", seconds, place)
    for key, name in TRAINING.items():
        result.state(name, texts.get(key, ""))
    for remark in (
        *log.findings,
        "left out: evaluations; an official score is a mean over several runs",
        UNVERIFIED,
    ):
        result.remark(remark)


def _read_lines(file: SubmittedFile) -> tuple[dict[str, str], dict[str, tuple[Decimal, int]]]:
    """Return the texts of the submission, and time in ms and line of the start and the stop, with
    the file's digits.
    """
    texts: dict[str, str] = {}
    times: dict[str, tuple[Decimal, int]] = {}
    for number, line in file.list_lines():
        if MARK not in line or not any(f'"{key}"' in line for key in (START, STOP, *TRAINING)):
            continue
        place = f"line {number}"
        entry = Section(file, file.parse(line.rpartition(MARK)[2], place))
        entry.place = place
        key = entry.read_text("key")
        if key in TRAINING:
            text = entry.read_text("value")
            if texts.setdefault(key, text) != text:
                file.fail(f"{key} has two values", place)
        elif key in (START, STOP) and STOP not in times:
            time: Any = entry.fields.get("time_ms")
            if not isinstance(time, Number) or not time.isdecimal() or len(time) > MAX_TIME_DIGITS:
                file.fail("is not a whole number of milliseconds", entry.get_key("time_ms"))
            times[key] = Decimal(time), number
    return texts, times


ADAPTERS = {
    "mlperf-loadgen-summary": Adapter(
        lambda file: (
            TITLE in file.text and any(line.strip() == TITLE for _, line in file.list_lines())
        ),
        _read_summary,
    ),
    "mlperf-loadgen-detail": Adapter(
        lambda file: DETAIL_MARK in file.text and any(sign in file.text for sign in DETAIL_SIGNS),
        _read_detail,
    ),
    "mlperf-training-log": Adapter(
        lambda file: MARK in file.text and any(f'"{key}"' in file.text for key in (START, STOP)),
        _read_training,
    ),
}
