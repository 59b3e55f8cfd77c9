"""Read logs of MLPerf: the detail log of a LoadGen run, and the log of one training run.

`schema/forms.toml` says which key of a LoadGen log is which figure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from ipu_results.doors.submission.bundle import format_conditions
from ipu_results.doors.submission.files import FileFigures, Number, SubmittedFile
from ipu_results.kit.files import load_schema_file
from ipu_results.mlperf.log import MARK as BYTES_MARK
from ipu_results.mlperf.log import read_log
from ipu_results.schema.vocabulary import load_vocabulary

LOADGEN = "mlperf-loadgen-detail"
TRAINING = "mlperf-training-log"
MARK = BYTES_MARK.decode()
UNVERIFIED = (
    "not an official result: write `Result not verified by MLCommons Association.` where you"
    " show it"
)

FORM = load_schema_file("forms.toml")["loadgen"]
SCENARIO = "effective_scenario"
MODE = "effective_test_mode"
SAMPLES = "effective_samples_per_query"
VALIDITY = "result_validity"
KEYS = {SCENARIO, MODE, SAMPLES, VALIDITY, *FORM["environment"].values()}
KEYS.update(key for _, key in FORM["rates"].values())
for keys_of_statistic in FORM["statistics"].values():
    KEYS.update(keys_of_statistic)
MODES = ("performance", "submission")
SINGLE = "singlestream"
MULTI = "multistream"
OFFLINE = "offline"
# Up to 10²⁵ is written out; no figure of a benchmark needs more.
EXPONENT = re.compile(r"[0-9]{1,25}(?:\.[0-9]{1,25})?[eE][+-]?(?:[01]?[0-9]|2[0-5])")


def is_loadgen_log(file: SubmittedFile) -> bool:
    """Return whether LoadGen wrote the file as its mlperf_log_detail.txt."""
    return _has_key(file, SCENARIO) or _has_key(file, VALIDITY)


def _has_key(file: SubmittedFile, key: str) -> bool:
    return MARK in file.text and f'"{key}"' in file.text


@dataclass(frozen=True)
class _Field:
    """The value of a key of a LoadGen log."""

    text: str
    is_number: bool
    place: str


def read_loadgen_log(file: SubmittedFile) -> FileFigures:
    """Read throughput and latencies of a valid performance run from its mlperf_log_detail.txt.

    Raises SubmissionError for a run that is not valid, that had errors or that measured accuracy.
    """
    fields = _read_fields(file)
    texts = {key: found.text for key, found in fields.items()}
    scenario = _check_run(file, texts)
    samples = texts.get(SAMPLES, "")
    # Offline sends all samples at once, so its latencies are positions in a queue.
    latency, definition = FORM["latencies"].get(scenario, ("", ""))
    conditions = {"LoadGen": scenario, "samples a query": samples, "latency": definition}
    facts = {"task": "inference", "conditions": format_conditions(conditions)}
    is_one_sample = scenario == SINGLE and samples == "1"
    if is_one_sample:
        facts["batch_size"] = "1"  # the only sample that the system has at a time

    result = FileFigures(file, LOADGEN)
    for name, key in FORM["environment"].items():
        if key in texts:
            result.environment[name] = texts[key]
    if scenario == SINGLE and not is_one_sample:
        result.remarks.append(
            "left out: queries per second, since a query is not known to be one sample"
        )
    elif scenario in FORM["rates"]:
        unit, key = FORM["rates"][scenario]
        _add_figure(result, fields.get(key), key, {**facts, "metric": "throughput", "unit": unit})
    if latency:
        for metric, (key, query_key) in FORM["statistics"].items():
            # With several samples a query, the first key has the latencies of samples.
            name = query_key if scenario == MULTI else key
            cells = {**facts, "metric": metric or latency, "unit": "ns"}
            _add_figure(result, fields.get(name), name, cells)
        result.remarks.append("left out: other percentiles")
    else:
        result.remarks.append("left out: latencies, which wait in one queue of all samples")
    result.remarks.append(UNVERIFIED)
    return result


def _check_run(file: SubmittedFile, texts: Mapping[str, str]) -> str:
    """Return the scenario of a run. Raises SubmissionError unless it is a valid performance run."""
    printed = texts.get(SCENARIO, "")
    scenario = re.sub(r"[^a-z]", "", printed.lower())
    if scenario not in {*FORM["latencies"], OFFLINE}:
        file.fail(f"unknown scenario {printed[:40]!r}")
    mode = texts.get(MODE, "")
    if not mode.lower().startswith(MODES):
        file.fail(f"mode {mode[:40]!r} measures no performance")
    validity = texts.get(VALIDITY, "")
    if validity != "VALID":
        file.fail(f"the run is not valid: its result is {validity[:40]!r}")
    return scenario


def _read_fields(file: SubmittedFile) -> dict[str, _Field]:
    """Return the known keys of a LoadGen log. Raises SubmissionError for a logged error."""
    fields: dict[str, _Field] = {}
    for place, entry in file.parse_objects(MARK):
        key = entry.get("key")
        metadata = entry.get("metadata")
        if isinstance(metadata, dict) and metadata.get("is_error") is True:
            file.fail(f"LoadGen logged an error: {str(key)[:60]}", place)
        if not isinstance(key, str) or key not in KEYS:
            continue
        value = entry.get("value")
        if not isinstance(value, (str, Number)):
            file.fail("is neither a text nor a number", f"{place}, {key}")
        found = _Field(str(value), isinstance(value, Number), f"{place}, {key}")
        first = fields.setdefault(key, found)
        if first.text != found.text:
            file.fail(f"{key} has two values", place)
    return fields


def _add_figure(
    result: FileFigures, found: _Field | None, key: str, cells: Mapping[str, str]
) -> None:
    if found is None:
        result.remarks.append(f"no {key}, so no {cells['metric']}")
        return
    if not found.is_number:
        result.file.fail("is not a number", found.place)
    value = found.text
    if EXPONENT.fullmatch(value):  # which the template lacks
        value = format(Decimal(value), "f")
        result.remarks.append(f"{found.place}: {found.text} is written out as {value}")
    result.add({**cells, "value": value}, found.place)


START = "run_start"
STOP = "run_stop"
SUCCESS = "success"
MS_PER_SECOND = 1000
MAX_TIME_MS = 10.0**15  # since 1970; below, a float holds each whole number


def is_training_log(file: SubmittedFile) -> bool:
    """Return whether the file is the log of a run of MLPerf Training."""
    return _has_key(file, START) or _has_key(file, STOP)


def read_training_log(file: SubmittedFile) -> FileFigures:
    """Read the time from run_start to run_stop of a successful run.

    Raises SubmissionError for a run that did not end with success.
    """
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
    if log.start_ms is None or log.stop_ms is None:
        file.fail(f"has no {START} before its {STOP}")
    for time_ms in (log.start_ms, log.stop_ms):
        if not time_ms.is_integer() or not 0 <= time_ms < MAX_TIME_MS:
            file.fail(f"{time_ms} is not a whole number of milliseconds")
    if log.stop_ms <= log.start_ms:
        file.fail(f"{START} and {STOP} do not make one run")

    result = FileFigures(file, TRAINING, remarks=list(log.findings))
    benchmark = log.benchmark or ""
    conditions = {"log": "MLPerf Training", "runs": "1"}
    if log.seeds == 1:
        conditions["seed"] = str(log.seed)
    seconds = Decimal(int(log.stop_ms) - int(log.start_ms)) / MS_PER_SECOND
    cells = {
        "model": load_vocabulary().benchmarks.get(benchmark, benchmark),
        "task": "training",
        "conditions": format_conditions(conditions),
        "metric": "time to train",
        "unit": "s",
        "value": format(seconds, "f"),
    }
    if log.global_batch_size is not None:
        cells["batch_size"] = str(log.global_batch_size)
    result.add(cells, f"{STOP}.time_ms minus {START}.time_ms")
    result.remarks.append("left out: evaluations; an official score is a mean over several runs")
    result.remarks.append(UNVERIFIED)
    return result
