"""Read the log of an application of graphcore/examples: its summary, or the last of its logged steps."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ipu_results.submission.adapters.files import Draft, ReadFile, SubmittedFile

NAME = "poptorch"
RATE = re.compile(r"(?:\b([A-Za-z]{1,30}) )?throughput: ?(\S{1,60}) (samples|imgs|img|sequences)/sec\b", re.I)
UNITS = {"samples": "samples/sec", "imgs": "img/sec", "img": "img/sec", "sequences": "sequences/s"}
AVERAGES = ("average", "inference")  # words before `throughput` of a mean over an epoch or a run
MEAN = re.compile(r"\(mean\)")
LATENCY = re.compile(r"latency avg: (\S{1,60}) ms(?: \(mean\) \(min: (\S{1,60}), max: (\S{1,60})\))?", re.I)
EXTREME = re.compile(r"Average (Min|Max) Latency per Batch: (\S{1,60}) ms")
SETTING = re.compile(r"(?:^|[\s:\]])(micro_batch_size|global_batch_size|num_ipus|data_mode|data_type): ?(\S{1,60})$")
SETTING_COLUMNS = {"micro_batch_size": "micro_batch_size", "global_batch_size": "batch_size", "num_ipus": "chip_count"}
RESULTS = re.compile(r"(?:^|[\s:\]])([^\s:\]]{1,100}) results:$")
TRAINING_SUMMARY = "Training Metrics"
SYNTHETIC = "Using synthetic data, ignore these latency values"
LOSS = re.compile(r"\b(?:loss|lr)\b", re.I)
LOSS_REACH = 3  # lines between the loss of an epoch and its throughput
IS_LATENCY = re.compile(r"\blatency\b", re.I)
FRAMEWORK = re.compile("poptorch", re.I)
BATCH_LATENCY = "latency is that of a micro-batch, PopTorch getLatency"
STEP_LATENCY = "latency is the time of one step with all replicas and device iterations"
STEP_METRIC = "latency"


@dataclass
class _Summary:
    """What a run printed at its end, or a step, with the settings known then. Figures: metric, unit, text, place."""

    task: str
    settings: dict[str, str]
    notes: list[str] = field(default_factory=list)
    figures: list[tuple[str, str, str, str]] = field(default_factory=list)


class _Log:
    """The lines read so far."""

    def __init__(self, file: SubmittedFile) -> None:
        self.draft = Draft(file)
        self.settings: dict[str, str] = {}
        self.summaries: list[_Summary] = []
        self.steps: dict[str, tuple[int, _Summary]] = {}  # by task: number of steps, the last
        self.in_training_summary = False
        self.unread: list[int] = []
        self.loss_line = -LOSS_REACH - 1

    def read_line(self, number: int, line: str) -> None:
        if match := RESULTS.search(line):
            self.settings = {"model": match[1]}
        elif TRAINING_SUMMARY in line:
            self.settings, self.in_training_summary = {}, True
        elif match := SETTING.search(line):
            self._read_setting(match[1], match[2], f"line {number}")
        elif RATE.search(line):
            self._read_rates(number, line)
        elif LATENCY.search(line) or EXTREME.search(line):
            self._read_latencies(number, line)
        elif SYNTHETIC in line and self.summaries:
            last = self.summaries[-1]
            last.figures = [figure for figure in last.figures if not figure[0].startswith("latency")]
            self.draft.remark(f"line {number}: left out latencies, which the log says to ignore")
        elif "throughput:" in line.lower():
            self.unread.append(number)
        if LOSS.search(line):
            self.loss_line = number

    def _read_setting(self, name: str, text: str, place: str) -> None:
        column = SETTING_COLUMNS.get(name, name)
        if name in SETTING_COLUMNS:
            self.draft.file.check_count(text, f"{place}, {name}")
        if self.settings.setdefault(column, text) != text:
            self.draft.file.fail(f"{name} has two values in one run", place)

    def _read_rates(self, number: int, line: str) -> None:
        matches = list(RATE.finditer(line))
        for match in matches:
            word, text, unit = (match[1] or ""), match[2], UNITS[match[3].lower()]
            is_average = word.lower() in AVERAGES
            if word and not is_average and not word.isupper():
                self.draft.remark(f"left out: {word} throughput")
                continue
            figure = ("throughput", unit, text, f"line {number}, throughput")
            is_summary = bool(MEAN.search(line)) or word.lower() == "inference" or self.in_training_summary
            task = self._find_task(number, line, word)
            if is_summary:
                note = "throughput is the mean over the run"
                self.summaries.append(_Summary(task, self.settings, [note], [figure]))
            else:
                self._read_step(task, number, line, figure)

    def _find_task(self, number: int, line: str, word: str) -> str:
        if self.in_training_summary or LOSS.search(line) or number - self.loss_line <= LOSS_REACH:
            return "training"
        return "inference" if MEAN.search(line) or IS_LATENCY.search(line) or word.lower() == "inference" else ""

    def _read_step(self, task: str, number: int, line: str, figure: tuple[str, str, str, str]) -> None:
        steps, last = self.steps.get(task, (0, None))
        if last is not None and last.figures[0][1] != figure[1]:
            self.draft.file.fail(f"the unit changes from {last.figures[0][1]} to {figure[1]}", f"line {number}")
        step = _Summary(task, self.settings, [], [figure])
        if match := LATENCY.search(line):
            step.notes.append(STEP_LATENCY)
            step.figures.append((STEP_METRIC, "ms", match[1], f"line {number}, latency avg"))
        self.steps[task] = steps + 1, step

    def _read_latencies(self, number: int, line: str) -> None:
        if not self.summaries or self.summaries[-1].settings is not self.settings:
            self.summaries.append(_Summary("inference", self.settings))
        summary, place = self.summaries[-1], f"line {number}, "
        if BATCH_LATENCY not in summary.notes:
            summary.notes.append(BATCH_LATENCY)
        if match := EXTREME.search(line):
            summary.figures.append((f"latency {match[1].lower()}", "ms", match[2], f"{place}{match[1]}"))
        elif match := LATENCY.search(line):
            summary.figures.append(("latency of a batch", "ms", match[1], f"{place}latency avg"))
            for name, text in (("min", match[2]), ("max", match[3])):
                if text:
                    summary.figures.append((f"latency {name}", "ms", text, f"{place}{name}"))


def is_readable(file: SubmittedFile) -> bool:
    """Return whether a line of the file prints a throughput the way these applications do."""
    return any(RATE.search(line) for _, line in file.list_lines() if "hroughput" in line)


def read_poptorch_log(file: SubmittedFile) -> ReadFile:
    """Read the summaries, and of a task without one the last step. Raises SubmissionError."""
    log = _Log(file)
    for number, line in file.list_lines():
        log.read_line(number, line.strip())
    draft = log.draft
    if log.unread:
        draft.remark(f"left out: {len(log.unread)} throughput(s) of another form, the first in line {log.unread[0]}")
    framework = "PyTorch" if FRAMEWORK.search(file.text) else ""
    for summary in log.summaries:
        _add_figures(draft, summary, framework)
    for task, (count, step) in log.steps.items():
        if any(summary.task in (task, "") or not task for summary in log.summaries):
            draft.remark(f"left out: {count} throughputs of single steps")
            continue
        step.notes.insert(0, f"throughput of the last of {count} logged steps")
        draft.remark("a log without a summary gives its last step: a mean over steps may differ")
        _add_figures(draft, step, framework)
    return draft.finish(NAME)


def _add_figures(draft: Draft, summary: _Summary, framework: str) -> None:
    settings = summary.settings
    notes = [*summary.notes, *(f"{name} {settings[name]}" for name in ("data_mode", "data_type") if name in settings)]
    columns = {name: settings[name] for name in ("model", *SETTING_COLUMNS.values()) if name in settings}
    facts = {"task": summary.task, "framework": framework, **columns, "conditions": "; ".join(notes)}
    for metric, unit, text, place in summary.figures:
        draft.add(facts, metric, unit, text, place)
