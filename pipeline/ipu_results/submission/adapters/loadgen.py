"""Read the summary or the detail log of an MLPerf LoadGen run (mlperf_log_summary.txt, mlperf_log_detail.txt)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ipu_results.submission.adapters.files import UNVERIFIED, Draft, Number, ReadFile, Section, SubmittedFile

SUMMARY, DETAIL = "mlperf-loadgen-summary", "mlperf-loadgen-detail"
TITLE, PARAMETERS, PER_SAMPLE = "MLPerf Results Summary", "Test Parameters Used", "Per-sample latency:"
MARK = ":::MLLOG "
DETAIL_SIGNS = ('"loadgen_version"', '"result_validity"', '"effective_scenario"')
MODES, VALID = ("performance", "submission"), "VALID"
ERRORS = re.compile(r"([0-9]{1,20}) ERRORS? encountered.*")
WARNINGS = re.compile(r"([0-9]{1,20}) warnings? encountered.*")
CLEAN = "No errors encountered during test."
SINGLE, MULTI, SERVER, OFFLINE = "singlestream", "multistream", "server", "offline"
LATENCY_DEFINITIONS = {
    SINGLE: ("latency of a batch", "latency is the time of one query, one at a time"),
    MULTI: ("latency of a batch", "latency is the time of one query with all its samples"),
    SERVER: ("latency among several", "latency is the time of one query from its arrival, waiting included"),
}  # Offline sends all samples at once, so its latencies are positions in a queue.
# (metric, key of the summary, of the detail log, and of the detail log for queries of several samples);
# a blank metric is that of the scenario.
LATENCIES = (
    ("", "Mean latency (ns)", "result_mean_latency_ns", "result_mean_query_latency_ns"),
    ("latency min", "Min latency (ns)", "result_min_latency_ns", "result_min_query_latency_ns"),
    ("latency max", "Max latency (ns)", "result_max_latency_ns", "result_max_query_latency_ns"),
    *(
        (
            metric,
            f"{percentile} percentile latency (ns)",
            f"result_{percentile}_percentile_latency_ns",
            f"result_{percentile}_percentile_per_query_latency_ns",
        )
        for metric, percentile in (("latency median", "50.00"), ("latency p90", "90.00"), ("latency p99", "99.00"))
    ),
)
# Throughput by scenario: (unit, key of the summary, key of the detail log). What a server was sent is not what it did.
RATES = {
    SINGLE: ("QPS", "QPS w/ loadgen overhead", "result_qps_with_loadgen_overhead"),
    SERVER: ("samples/s", "Completed samples per second", "result_completed_samples_per_sec"),
    OFFLINE: ("samples/s", "Samples per second", "result_samples_per_second"),
}
SETTINGS = (
    ("Scenario", "effective_scenario"),
    ("Mode", "effective_test_mode"),
    ("Result is", "result_validity"),
    ("samples_per_query", "effective_samples_per_query"),
)
ENVIRONMENT = (("SUT name", "sut_name"), ("target_qps", "effective_target_qps"), ("LoadGen version", "loadgen_version"))
KEYS = tuple(
    {entry[source] for entry in (*SETTINGS, *ENVIRONMENT)}
    | {entry[source + 1] for entry in (*RATES.values(), *LATENCIES)}
    | ({entry[3] for entry in LATENCIES} if source else set())
    for source in (0, 1)
)


@dataclass
class _Run:
    """Texts and places by key. `source` is 0 for the summary, 1 for the detail log."""

    draft: Draft
    source: int
    fields: dict[str, tuple[str, str]] = field(default_factory=dict)

    def store(self, key: str, text: str, place: str) -> None:
        """Store a field that is read. Raises SubmissionError if it has another value already."""
        if key not in KEYS[self.source]:
            return
        if self.fields.setdefault(key, (text, place))[0] != text:
            self.draft.file.fail(f"{key} has two values", place)

    def read(self, keys: tuple[str, ...]) -> str:
        """Return the text of a field, "" without it."""
        return self.fields.get(keys[self.source], ("", ""))[0]


def is_summary(file: SubmittedFile) -> bool:
    """Return whether the file has the title of a summary."""
    return TITLE in file.text and any(line.strip() == TITLE for _, line in file.list_lines())


def is_detail(file: SubmittedFile) -> bool:
    """Return whether the file has keys of LoadGen in lines of MLPerf's log format."""
    return MARK in file.text and any(sign in file.text for sign in DETAIL_SIGNS)


def read_summary(file: SubmittedFile) -> ReadFile:
    """Read throughput and latencies of a valid performance run. Raises SubmissionError."""
    run = _Run(Draft(file), 0)
    has_parameters = is_clean = is_per_sample = False
    for number, line in file.list_lines():
        text = line.strip()
        has_parameters |= text == PARAMETERS
        is_clean |= text == CLEAN
        is_per_sample = text.startswith(PER_SAMPLE) or (is_per_sample and not has_parameters)
        if match := ERRORS.fullmatch(text):
            file.fail(f"LoadGen counted errors in the run: {match[1]}", f"line {number}")
        if match := WARNINGS.fullmatch(text):
            run.draft.remark(f"LoadGen counted warnings in the run: {match[1]}")
        # The latencies of samples have the names of those of queries.
        if not is_per_sample:
            key, _, value = map(str.strip, line.partition(":"))
            run.store(key, value, f"line {number}, {key}")
    if not (has_parameters and is_clean):
        file.fail("is not whole: a summary ends with its test parameters and a count of errors")
    return _read_run(run, SUMMARY)


def read_detail(file: SubmittedFile) -> ReadFile:
    """Read throughput and latencies of a valid performance run from its detail log. Raises SubmissionError."""
    run = _Run(Draft(file), 1)
    for number, line in file.list_lines():
        if MARK not in line:
            continue
        place = f"line {number}"
        entry = Section(file, file.parse(line.rpartition(MARK)[2], place), place)
        key, value, metadata = entry.read_text("key"), entry.fields.get("value"), entry.read_section("metadata")
        if metadata and metadata.fields.get("is_error") is True:
            file.fail(f"LoadGen logged an error: {key[:60]}", place)
        if key in KEYS[1]:
            if not isinstance(value, str):  # a Number is a string as well
                file.fail("is neither a text nor a number", f"{place}, {key}")
            run.store(key, value, f"{place}, {key}")
    return _read_run(run, DETAIL)


def _read_run(run: _Run, adapter: str) -> ReadFile:
    """Refuse what is not a valid performance run, and read the figures of its scenario."""
    draft, file = run.draft, run.draft.file
    printed, mode, validity, samples = map(run.read, SETTINGS)
    scenario = re.sub(r"[^a-z]", "", printed.lower())
    if scenario not in {*LATENCY_DEFINITIONS, OFFLINE}:
        file.fail(f"unknown scenario {printed[:40]!r}")
    if not mode.lower().startswith(MODES):
        file.fail(f"mode {mode[:40]!r} measures no performance")
    if validity != VALID:
        file.fail(f"the run is not valid: its result is {validity[:40]!r}")
    for keys in ENVIRONMENT:
        draft.state(keys[0], run.read(keys))
    metric, definition = LATENCY_DEFINITIONS.get(scenario, ("", ""))
    conditions = [f"MLPerf LoadGen {printed}", f"{samples} sample(s) a query" if samples else "", definition]
    facts = {"task": "inference", "conditions": "; ".join(filter(None, conditions))}
    if scenario == SINGLE and samples == "1":
        facts["batch_size"] = "1"  # the only sample that the system has at a time
    if scenario in RATES:
        unit, *keys_of_rate = RATES[scenario]
        if scenario == SINGLE and samples != "1":
            draft.remark("left out: queries per second, since a query is not known to be one sample")
        else:
            _add(run, facts, "throughput", unit, keys_of_rate[run.source])
    for name, *keys_of_latency in LATENCIES if metric else ():
        _add(run, facts, name or metric, "ns", keys_of_latency[2 if run.source and scenario == MULTI else run.source])
    draft.remark(f"left out: {'other percentiles' if metric else 'latencies, which wait in one queue of all samples'}")
    draft.remark(UNVERIFIED)
    return draft.finish(adapter)


def _add(run: _Run, facts: dict[str, str], metric: str, unit: str, key: str) -> None:
    if key not in run.fields:
        run.draft.remark(f"no {key}, so no {metric}")
        return
    text, place = run.fields[key]
    if run.source and not isinstance(text, Number):
        run.draft.file.fail("is not a number", place)
    run.draft.add(facts, metric, unit, text, place)
