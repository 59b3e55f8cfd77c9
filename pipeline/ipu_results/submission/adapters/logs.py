"""Read logs: result tables of CARAML, benchmarks of PopRT, and applications of graphcore/examples
(PopTorch).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import chain

from ipu_results.ground.files import load_schema_file
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name
from ipu_results.submission.adapters import Adapter, ReadFile, SubmittedFile

FORMS = load_schema_file("adapters.toml")
JUBE, POPRT, POPTORCH = FORMS["jube-caraml"], FORMS["poprt"], FORMS["poptorch"]

BAR = "|"
RULE = re.compile(r"[|+\-:=\s]+")
TITLE = re.compile(r"[\w.-]+:")
SYSTEM, BATCH, STEP, TOKENS = "system", "globalbatchsize", "time/iteration(s)", "tokens/second"
KNOWN = {*JUBE["facts"], *JUBE["figures"], *JUBE["conditions"], *JUBE["environment"]}
DIES = {"MI250": "MI250 GCD"}  # a device of CARAML is one of the two dies
BATCH_TOLERANCE = Decimal("0.02")  # times are printed to two decimals
BATCH_RATE = (
    "the rate is the global batch over the time of an iteration, so it counts sequences, or the"
    " batch counts tokens"
)


@dataclass(frozen=True)
class _Table:
    """A printed table: `titles` of the columns, and each row as texts by column in lower case."""

    line: int
    titles: dict[str, str]
    rows: list[tuple[int, dict[str, str]]]


def _read_jube(result: ReadFile) -> None:
    """Read the figures of every row of the tables, comma-separated or drawn with bars, that `jube
    result` prints.
    """
    result.remark(
        "the version of CARAML's table is that of the system's software stage, not of an SDK"
    )
    for table in _find_tables(result.file):
        if left_out := [title for name, title in table.titles.items() if name not in KNOWN]:
            result.remark(f"left out: {', '.join(left_out)}")
        for number, row in table.rows:
            _add_row(result, table.titles, f"line {number}", row)


def _add_row(result: ReadFile, titles: dict[str, str], place: str, row: dict[str, str]) -> None:
    chip = load_vocabulary().chips.get(normalise_name(row[SYSTEM]))
    if chip in DIES:
        chip = DIES[chip]
        result.remark(f"chip: a device of this table is one {chip}")
    for name in (BATCH, "devices"):
        if row.get(name):
            result.file.check_count(row[name], f"{place}, {titles[name]}")
    conditions = [
        text.format(row[name]) for name, text in JUBE["conditions"].items() if row.get(name)
    ]
    facts = {
        "model": "-".join(filter(None, (row.get("model", ""), row.get("modelsize", "")))),
        "dataset": row.get("dataset", ""),
        "task": "training",
        "platform": "" if chip else row[SYSTEM],
        "chip": chip or "",
        "chip_count": row.get("devices", ""),
        "batch_size": row.get(BATCH, ""),
    }
    for name in JUBE["environment"]:
        result.state(f"{titles.get(name, name)} of {place}", row.get(name, ""))
    for name, (metric, unit, scope) in JUBE["figures"].items():
        if name not in row:
            continue
        where, notes = f"{place}, {titles[name]}", [*conditions]
        if not row[name]:
            result.remark(f"{where}: blank, so no figure")
            continue
        if name == TOKENS and _is_batch_rate(row):
            notes.append(BATCH_RATE)
            result.remark(f"{where}: {BATCH_RATE}; the printed unit is kept")
        result.add(
            {**facts, "conditions": "; ".join(notes), "power_scope": scope},
            metric,
            unit,
            row[name],
            where,
        )


def _is_batch_rate(row: dict[str, str]) -> bool:
    """Return whether the tokens per second are those of a batch counted in tokens, by the table's
    own figures.
    """
    try:
        rate, time, batch = (Decimal(row.get(name) or "NaN") for name in (TOKENS, STEP, BATCH))
    except InvalidOperation:
        return False
    is_known = rate.is_finite() and time.is_finite() and batch.is_finite() and batch
    return bool(is_known) and abs(rate * time / batch - 1) <= BATCH_TOLERANCE


def _find_tables(file: SubmittedFile) -> Iterator[_Table]:
    """Yield the tables, each up to the next blank line.

    Raises SubmissionError for a row of another width.
    """
    table: _Table | None = None
    for number, line in chain(file.list_lines(), [(0, "")]):
        place, is_header = f"line {number}", _is_header(line)
        if table is not None and (is_header or not line.strip() or TITLE.fullmatch(line.strip())):
            if not table.rows:
                file.fail("the table has no row", f"line {table.line}")
            yield table
            table = None
        cells = _split(line)
        if is_header:
            table = _Table(number, {cell.lower(): cell for cell in cells}, [])
            if len(table.titles) != len(cells):
                file.fail("a column occurs twice", place)
        elif table is not None and not RULE.fullmatch(line):
            if len(cells) != len(table.titles):
                file.fail(f"has {len(cells)} cells, the header {len(table.titles)}", place)
            if list(table.titles)[-1] in JUBE["figures"] and not line.rstrip().endswith(BAR):
                file.require_line_end(
                    number, place
                )  # the end of a file may cut the digits of the last column
            table.rows.append((number, dict(zip(table.titles, cells, strict=True))))


def _split(line: str) -> list[str]:
    if BAR in line:
        return [
            cell.strip() for cell in line.strip().removeprefix(BAR).removesuffix(BAR).split(BAR)
        ]
    try:
        return [cell.strip() for cell in next(csv.reader([line], strict=True), [])]
    except csv.Error:
        return [line]


def _is_header(line: str) -> bool:
    if SYSTEM not in line.lower():
        return False
    names = {cell.lower() for cell in _split(line)}
    return SYSTEM in names and not names.isdisjoint(JUBE["figures"])


RUN = re.compile(r"Run batch size (\S{1,60}):")
TPUT = re.compile(r"Tput ?(\([^()]{0,100}\))?: (\S{1,60})")
PIXELS = "(800 * 800 / time_per_image)"
RECORD = "'log_type': 'BenchmarkOutput'"
PACKED = re.compile(
    r"(?:[A-Z]{1,10}:)?(?:Pack (?P<model>[\w -]{1,60}?),? Batch Size:"
    r" (?P<batch>\S{1,60})|\[(?P<mode>[^\]]{1,100})\])"
    r" Throughput: (?P<rate>\S{1,60}) samples/s, Latency ?: (?P<latency>\S{1,60}) ms"
)
FIELD = re.compile(r"'([\w/]{1,60})': (\[[^\]]{0,200}\]|'[^']{0,200}'|[^,}\s]{1,60})")
FIGURE_SIGNS = ("Tput", "{'accuracy/", "] Throughput: ", " Batch Size: ")
SIGNS = ("Run batch size", "Tput", "BenchmarkOutput", "samples/s, Latency")
WHOLE_SET = "latency is the time of the whole set over its samples"
THREADS = 5  # of run_benchmark in benchmarks/benchmark.py
UNSTATED = (
    "model, variant, packing and the chip are those of the command, which the log does not print"
)


def _is_poprt(file: SubmittedFile) -> bool:
    lines = (line.strip() for _, line in file.list_lines() if any(sign in line for sign in SIGNS))
    return any(
        TPUT.fullmatch(line) or _find_record(line) or PACKED.fullmatch(line) for line in lines
    )


def _read_poprt(result: ReadFile) -> None:
    """Read throughputs and latencies of `benchmarks/` and of the packing examples, as their scripts
    print them.
    """
    file, batch = result.file, ""
    result.remark(UNSTATED)
    for number, line in file.list_lines():
        text, place = line.strip(), f"line {number}"
        if match := RUN.fullmatch(text):
            batch = file.check_count(match[1], place)
        elif match := TPUT.fullmatch(text):
            if match[1] and match[1] != PIXELS:
                file.fail(f"throughput of unknown definition {match[1][:40]}", place)
            file.require_line_end(number, place)
            facts = {"batch_size": batch, "conditions": "asynchronous calls"}
            unit = "pixels/s" if match[1] else "items/s"
            _add_poprt(result, facts, "throughput", unit, match[2], f"{place}, Tput")
            result.remark(
                "left out: the average session time, which is the batch over the throughput"
            )
        elif match := PACKED.fullmatch(text):
            facts = {
                "model": (match["model"] or "").strip(),
                "batch_size": file.check_count(match["batch"], place) if match["batch"] else "",
                "conditions": f"{match['mode']}; {WHOLE_SET}" if match["mode"] else WHOLE_SET,
            }
            _add_poprt(
                result, facts, "throughput", "samples/s", match["rate"], f"{place}, Throughput"
            )
            _add_poprt(
                result, facts, "latency per item", "ms", match["latency"], f"{place}, Latency"
            )
        elif (record := _find_record(text)) is not None:
            _add_record(result, record, place)
        elif any(sign in text for sign in FIGURE_SIGNS):
            file.fail("is not a whole line of a PopRT benchmark", place)


def _add_poprt(
    result: ReadFile, facts: dict[str, str], metric: str, unit: str, value: str, place: str
) -> None:
    result.add({"task": "inference", "framework": "PopRT", **facts}, metric, unit, value, place)


def _add_record(result: ReadFile, record: str, place: str) -> None:
    fields: dict[str, str] = {}
    for key, value in FIELD.findall(record):
        if key in fields:
            result.file.fail(f"key {key!r} occurs twice", place)
        fields[key] = value
    calls = result.file.check_count(fields.get("iteration", ""), f"{place}, iteration")
    facts = {
        "precision": _read_text(fields.get("precision", "")),
        "batch_size": result.file.check_count(fields.get("batch_size", ""), f"{place}, batch_size"),
        "conditions": f"{calls} calls, {THREADS} threads with one batch each",
    }
    for key, (metric, unit) in POPRT["figures"].items():
        if key not in fields:
            result.file.fail("is absent", f"{place}, {key}")
        _add_poprt(result, facts, metric, unit, fields[key], f"{place}, {key}")
    result.remark(
        "left out of records: accuracy (differences from ONNX Runtime) and the time to compile"
    )
    for key in ("size", "onnx_file"):
        if text := _read_text(fields.get(key, "")):
            result.remark(f"{place}: {key} {text}; state the model and its variant")


def _find_record(text: str) -> str | None:
    """Return the printed dictionary of a line, in Markdown as well."""
    start, end = text.find("{"), text.rfind("}")
    is_record = RECORD in text and 0 <= start < end
    return text[start : end + 1].replace("\\[", "[").replace("\\]", "]") if is_record else None


def _read_text(printed: str) -> str:
    """Return the text of a printed Python value, "" for None."""
    text = printed.strip("'")
    return "" if text == "None" else text


RATE = re.compile(
    r"(?:\b([A-Za-z]{1,30}) )?throughput: ?(\S{1,60}) (samples|imgs|img|sequences)/sec\b", re.I
)
AVERAGES = ("average", "inference")  # words before `throughput` of a mean over an epoch or a run
MEAN = "(mean)"
LATENCY = re.compile(
    r"latency avg: (\S{1,60}) ms(?: \(mean\) \(min: (\S{1,60}), max: (\S{1,60})\))?", re.I
)
EXTREME = re.compile(r"Average (Min|Max) Latency per Batch: (\S{1,60}) ms")
SETTING = re.compile(
    r"(?:^|[\s:\]])(micro_batch_size|global_batch_size|num_ipus|data_mode|data_type): ?(\S{1,60})$"
)
RESULTS = re.compile(r"(?:^|[\s:\]])([^\s:\]]{1,100}) results:$")
TRAINING_SUMMARY = "Training Metrics"
SYNTHETIC = "Using synthetic data, ignore these latency values"
LOSS = re.compile(r"\b(?:loss|lr)\b", re.I)
LOSS_REACH = 3  # lines between the loss of an epoch and its throughput
IS_LATENCY = re.compile(r"\blatency\b", re.I)
BATCH_LATENCY = "latency is that of a micro-batch, PopTorch getLatency"
STEP_LATENCY = "latency is the time of one step with all replicas and device iterations"


@dataclass
class _Summary:
    """What a run printed at its end, or a step, with the settings known then.

    Figures: metric, unit, text, place.
    """

    task: str
    settings: dict[str, str]
    notes: list[str] = field(default_factory=list)
    figures: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add_to(self, result: ReadFile, framework: str) -> None:
        known = self.settings
        notes = [
            *self.notes,
            *(f"{name} {known[name]}" for name in ("data_mode", "data_type") if name in known),
        ]
        columns = {
            name: known[name] for name in ("model", *POPTORCH["columns"].values()) if name in known
        }
        facts = {
            "task": self.task,
            "framework": framework,
            **columns,
            "conditions": "; ".join(notes),
        }
        for figure in self.figures:
            result.add(facts, *figure)


@dataclass
class _Log:
    """The lines read so far."""

    result: ReadFile
    settings: dict[str, str] = field(default_factory=dict)
    summaries: list[_Summary] = field(default_factory=list)
    steps: dict[str, tuple[int, _Summary]] = field(
        default_factory=dict
    )  # by task: number of steps, the last
    in_training_summary: bool = False
    unread: list[int] = field(default_factory=list)
    loss_line: int = -LOSS_REACH - 1

    def read_line(self, number: int, line: str) -> None:
        if match := RESULTS.search(line):
            self.settings = {"model": match[1]}
        elif TRAINING_SUMMARY in line:
            self.settings, self.in_training_summary = {}, True
        elif match := SETTING.search(line):
            name, text = match.groups()
            if name in POPTORCH["columns"]:
                self.result.file.check_count(text, f"line {number}, {name}")
            if self.settings.setdefault(POPTORCH["columns"].get(name, name), text) != text:
                self.result.file.fail(f"{name} has two values in one run", f"line {number}")
        elif RATE.search(line):
            for match in RATE.finditer(line):
                self._read_rate(number, line, match)
        elif LATENCY.search(line) or EXTREME.search(line):
            self._read_latencies(line, f"line {number}, ")
        elif SYNTHETIC in line and self.summaries:
            last = self.summaries[-1]
            last.figures = [
                figure for figure in last.figures if not figure[0].startswith("latency")
            ]
            self.result.remark(f"line {number}: left out latencies, which the log says to ignore")
        elif "throughput:" in line.lower():
            self.unread.append(number)
        if LOSS.search(line):
            self.loss_line = number

    def _read_rate(self, number: int, line: str, match: re.Match[str]) -> None:
        word, is_inference = match[1] or "", (match[1] or "").lower() == "inference"
        if (
            word and word.lower() not in AVERAGES and not word.isupper()
        ):  # upper case is a level of logging
            self.result.remark(f"left out: {word} throughput")
            return
        task = "inference" if MEAN in line or IS_LATENCY.search(line) or is_inference else ""
        if self.in_training_summary or LOSS.search(line) or number - self.loss_line <= LOSS_REACH:
            task = "training"
        figure = (
            "throughput",
            POPTORCH["units"][match[3].lower()],
            match[2],
            f"line {number}, throughput",
        )
        if MEAN in line or is_inference or self.in_training_summary:
            self.summaries.append(
                _Summary(task, self.settings, ["throughput is the mean over the run"], [figure])
            )
            return
        steps, last = self.steps.get(task, (0, None))
        if last is not None and last.figures[0][1] != figure[1]:
            self.result.file.fail(
                f"the unit changes from {last.figures[0][1]} to {figure[1]}", f"line {number}"
            )
        step = _Summary(task, self.settings, [], [figure])
        if latency := LATENCY.search(line):
            step.notes.append(STEP_LATENCY)
            step.figures.append(("latency", "ms", latency[1], f"line {number}, latency avg"))
        self.steps[task] = steps + 1, step

    def _read_latencies(self, line: str, place: str) -> None:
        if not self.summaries or self.summaries[-1].settings is not self.settings:
            self.summaries.append(_Summary("inference", self.settings))
        summary = self.summaries[-1]
        if BATCH_LATENCY not in summary.notes:
            summary.notes.append(BATCH_LATENCY)
        if match := EXTREME.search(line):
            summary.figures.append(
                (f"latency {match[1].lower()}", "ms", match[2], f"{place}{match[1]}")
            )
        elif match := LATENCY.search(line):
            summary.figures.append(("latency of a batch", "ms", match[1], f"{place}latency avg"))
            for name, text in (("min", match[2]), ("max", match[3])):
                if text:
                    summary.figures.append((f"latency {name}", "ms", text, f"{place}{name}"))


def _read_poptorch(result: ReadFile) -> None:
    """Read the summaries of an application, and of a task without one the last of its logged steps."""
    log = _Log(result)
    for number, line in result.file.list_lines():
        log.read_line(number, line.strip())
    if log.unread:
        result.remark(
            f"left out: {len(log.unread)} throughput(s) of another form, the first in line"
            f" {log.unread[0]}"
        )
    framework = "PyTorch" if "poptorch" in result.file.text.lower() else ""
    for summary in log.summaries:
        summary.add_to(result, framework)
    for task, (count, step) in log.steps.items():
        if any(summary.task in (task, "") or not task for summary in log.summaries):
            result.remark(f"left out: {count} throughputs of single steps")
            continue
        step.notes.insert(0, f"throughput of the last of {count} logged steps")
        result.remark("a log without a summary gives its last step: a mean over steps may differ")
        step.add_to(result, framework)


ADAPTERS = {
    "jube-caraml": Adapter(
        lambda file: any(_is_header(line) for _, line in file.list_lines()), _read_jube
    ),
    "poprt": Adapter(_is_poprt, _read_poprt),
    "poptorch": Adapter(
        lambda file: any(RATE.search(line) for _, line in file.list_lines() if "hroughput" in line),
        _read_poptorch,
    ),
}
