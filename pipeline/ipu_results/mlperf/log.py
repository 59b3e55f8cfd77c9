"""Read the log of one training run: time, outcome, batch size and evaluations.

Lines are those of the official parser (mlperf-logging): Latin-1, ended by LF, CR or both, and of
each line the JSON after its last `:::MLLOG` mark.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, TypeGuard

import msgspec

from ipu_results.kit.limits import MAX_EVALUATION, MAX_EVALUATIONS, MAX_LOG_LINE
from ipu_results.kit.physics import SECONDS_PER_MINUTE

MARK = b":::MLLOG "
ANY_MARK = b":::ML"  # how the marks of all rounds begin
OLD_SYNTAX = {b":::MLPv0.5.0 ": "0.5", b":::MLL ": "0.6"}
# benchmark, seconds, (place in the code), key and value; v0.6 has neither benchmark nor place
OLD_LINE = re.compile(rb"([a-z]\w* )?([\d.]+) (?:\(.*?\) )?(\w+)(?:: (.*))?")
CHUNK = 4 * 2**20  # bytes read at once: most logs are smaller
MS_PER_S = 1_000
MS_PER_MINUTE = 60_000
MAX_NUMBER = 2**63  # batch sizes and sample counts are below; what is larger is an error of the log
MAX_NAMED = 3  # broken lines that a problem names
PROGRESS = {
    "train_samples_since_beginning": "samples",
    "samples_count": "samples",
    "epoch_num": "epochs",
    "step_num": "steps",
}
# Stable diffusion evaluates stored models, whose step counts; such an evaluation names its metric.
STEPS_FIRST = {
    "train_samples_since_beginning": "samples",
    "samples_count": "samples",
    "step_num": "steps",
    "epoch_num": "epochs",
}
SEED = re.compile(rb'"value"\s*:\s*"?([^,"}\s]{1,40})')


class LogLine(msgspec.Struct):
    """What every line must have."""

    key: str
    time_ms: float


decode_line = msgspec.json.Decoder(LogLine).decode
DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
EVALUATION_KEYS = ("eval_accuracy", "eval_error")
# the field of `Log` that has the value of a key, a number or a text
NUMBERS = {"train_samples": "train_samples", "opt_learning_rate_training_steps": "planned_steps"}
TEXTS = {"submission_benchmark": "benchmark", "submission_division": "division"}
TIME_KEYS = ("run_start", "run_stop", "init_start", "init_stop")
# the others are not read
KEYS = {*TIME_KEYS, *EVALUATION_KEYS, *NUMBERS, *TEXTS, "global_batch_size", "seed"}
# Of a start between these, seconds are a date from 2001 on, and milliseconds one before 1974.
SECONDS_FROM = 1e9
SECONDS_TO = 1e11


class LineTooLongError(ValueError):
    """A line with a mark does not end within MAX_LOG_LINE bytes."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How far training had come at an evaluation; `unit` is samples, epochs or steps, `time_ms` is
    as logged.
    """

    metric: str | None
    value: Any
    unit: str
    count: float
    time_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class RunPower:
    """Mean power of the nodes and switches of one run, in watts; None where `problem` says why."""

    watts: float | None = None
    problem: str | None = None


NO_POWER = RunPower()


@dataclass(frozen=True, slots=True)
class Log:
    """The content of one log, minutes and milliseconds as logged; None for what it lacks.

    `evaluations` are those up to the end of the run, the last one last. `planned_steps` are those
    of the learning rate schedule. `seed` is the first one logged, `seeds` the number of different
    ones. `start_ms` and `stop_ms` are the times of the lines that begin and end the run.
    `benchmark` and `division` are those that the log names, which are compared with its folder and
    its system. `syntax` is the round of a log of v0.5 or v0.6.
    `problem` is why the log cannot be scored whatever its status; `findings` are notes that do not
    matter to the score. `power` is from the power logs beside it.
    """

    lines: int = 0
    status: str | None = None
    minutes: float | None = None
    init_minutes: float | None = None
    global_batch_size: int | None = None
    train_samples: float | None = None
    planned_steps: float | None = None
    evaluations: tuple[Evaluation, ...] = ()
    seed: str | None = None
    seeds: int = 0
    start_ms: float | None = None
    stop_ms: float | None = None
    benchmark: str | None = None
    division: str | None = None
    syntax: str | None = None
    problem: str | None = None
    findings: tuple[str, ...] = ()
    sha256: str | None = None
    power: RunPower = NO_POWER

    @property
    def energy_j(self) -> float | None:
        """The energy in joules, None without power."""
        if self.power.watts is None or self.minutes is None:
            return None
        return self.power.watts * (self.minutes * SECONDS_PER_MINUTE)


def read_log(chunks: Iterable[bytes]) -> Log:
    """Read the bytes of one log, whatever they are; a file that cannot be read makes a log with a
    problem.

    It has no sha256 where reading stopped before the end of the bytes.
    """
    reader = _Reader()
    sha256 = hashlib.sha256()

    def hash_chunks() -> Iterator[bytes]:
        for chunk in chunks:
            sha256.update(chunk)
            yield chunk

    try:
        for number, block in split_blocks(hash_chunks()):
            reader.read_block(number, block)
    except LineTooLongError as error:
        return Log(lines=reader.lines, problem=str(error))
    except OSError as error:
        return Log(problem=f"cannot be read: {describe_error(error)}")
    return replace(reader.log(), sha256=sha256.hexdigest())


def describe_error(error: Exception) -> str:
    """Describe an error, without the path that an OSError adds."""
    return getattr(error, "strerror", None) or str(error)


def split_blocks(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines in blocks of about a chunk, each with the number of its first line.

    Raises LineTooLongError.
    """
    rest = b""
    number = 1
    for chunk in chunks:
        data = rest + chunk
        cut = _find_last_end(data)
        block = data[:cut]
        rest = data[cut:]
        if len(rest) > MAX_LOG_LINE:
            rest = _shorten_line(rest)
        if len(rest) > MAX_LOG_LINE:
            raise LineTooLongError(f"a line is longer than {MAX_LOG_LINE:,} bytes")
        if block:
            yield number, block
            number += _count_lines(block)
    if rest:
        yield number, rest + b"\n"


def _find_last_end(data: bytes) -> int:
    """Return where the last line that has ended ends, 0 where none has."""
    last_feed = data.rfind(b"\n")
    # A CR at the very end may be the first half of a CR LF.
    last_return = data.rfind(b"\r", 0, len(data) - 1)
    return max(last_feed, last_return) + 1


def _shorten_line(line: bytes) -> bytes:
    """Return what matters of a line: from its last mark on, or its end, where one may begin."""
    start = line.rfind(ANY_MARK)
    if start < 0:
        start = len(line) - len(MARK)
    return line[start:]


def extract_marked(block: bytes, mark: bytes = MARK) -> list[bytes]:
    """Return the JSON texts of a block of whole lines, one per marked line."""
    if b"\r" in block:
        block = block.replace(b"\r", b"\n")
    texts = []
    for piece in block.split(mark)[1:]:
        text, end, _ = piece.partition(b"\n")
        # without an end, another mark follows on the line
        if end:
            texts.append(text)
    return texts


def rewrite_old(text: bytes) -> bytes:
    """Return what follows the mark of v0.5 or v0.6 as the JSON of later rounds.

    Raises ValueError.
    """
    match = OLD_LINE.fullmatch(text.strip())
    if match is None:
        raise ValueError("is not of the form of v0.5 or v0.6")
    benchmark, seconds, key, printed = match.groups()
    printed = printed or b"null"
    if benchmark is None:
        fields = parse_object(printed)
    else:
        fields = parse_object(b'{"value": %b}' % printed)
        fields |= _find_metadata(key, fields["value"])
    fields["key"] = key.decode()
    fields["time_ms"] = float(seconds) * MS_PER_S
    return msgspec.json.encode(fields)


def _find_metadata(key: bytes, value: Any) -> dict[str, Any]:
    """Return the metadata of a line of v0.5, which has them in its value."""
    if isinstance(value, dict):
        is_success = str(value.get("success")).lower() == "true"
        status = "success" if is_success else "aborted"
        return {"metadata": {"epoch_num": value.get("epoch"), "status": status}}
    if key == b"run_stop":
        return {"metadata": {"status": "success"}}  # v0.5 says so, or says nothing
    return {}


def number_marked(block: bytes, first_line: int, mark: bytes = MARK) -> list[int]:
    """Return the line number of each marked line of a block, in the order of `extract_marked`."""
    pieces = block.split(mark)
    numbers = []
    number = first_line + _count_lines(pieces[0])
    for piece in pieces[1:]:
        if b"\n" in piece or b"\r" in piece:
            numbers.append(number)
        number += _count_lines(piece)
    return numbers


def parse_object(text: bytes) -> dict[str, Any]:
    """Parse the JSON object of a marked line. Raises ValueError naming what is wrong."""
    # Bytes that are not UTF-8 are not an error: the official parser reads Latin-1.
    decoded = text.decode("latin-1").strip()
    with suppress(UnicodeDecodeError):
        decoded = decoded.encode("latin-1").decode()
    try:
        fields = json.loads(decoded)
    except RecursionError as error:
        raise ValueError("is not JSON: nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise ValueError("is not a JSON object")
    return fields


def _parse_line(text: bytes) -> LogLine:
    """Parse what the fast decoder refuses, the way the official parser does. Raises ValueError."""
    fields = parse_object(text)
    key = fields.get("key")
    if not isinstance(key, str):
        raise ValueError("has no key")
    with suppress(KeyError, TypeError, ValueError, OverflowError):
        time_ms = float(fields["time_ms"])
        if math.isfinite(time_ms):
            return LogLine(key, time_ms)
    raise ValueError("has no time_ms")


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


class _Reader:
    """What the lines read so far amount to."""

    def __init__(self) -> None:
        self.lines = 0
        self.broken = 0
        self.named: list[str] = []
        self.syntax: str | None = None
        self.status: str | None = None
        self.times: dict[str, float] = {}
        self.fields: dict[str, Any] = {}
        self.batch_sizes: set[float | None] = set()
        self.seeds: dict[bytes, None] = {}
        self.marks: Counter[str] = Counter()
        self.evaluations: deque[tuple[bool, float, bytes]] = deque(maxlen=MAX_EVALUATIONS)

    def read_block(self, number: int, block: bytes) -> None:
        """Read whole lines, the first of which has a number."""
        mark = self._find_mark(block)
        texts = extract_marked(block, mark)
        for index, text in enumerate(texts):
            try:
                self._read_text(text if mark == MARK else rewrite_old(text))
            except (ValueError, RecursionError) as error:
                # numbering reads the whole block again
                if self.broken < MAX_NAMED:
                    line_number = number_marked(block, number, mark)[index]
                    self.named.append(f"line {line_number} {error}")
                self.broken += 1
        self.lines += len(texts)

    def _find_mark(self, block: bytes) -> bytes:
        if MARK in block:
            return MARK
        for old, syntax in OLD_SYNTAX.items():
            if old in block:
                self.syntax = syntax
                return old
        return MARK

    def _read_text(self, text: bytes) -> None:
        try:
            line = decode_line(text)
        except DECODE_ERRORS:
            line = _parse_line(text)
        # most lines have other keys: they are only checked
        if line.key in KEYS:
            self._read_line(line.key, line.time_ms, text)

    def _read_line(self, key: str, time_ms: float, text: bytes) -> None:
        is_running = "run_stop" not in self.times
        if key in EVALUATION_KEYS:
            # parsed at the end, as only those up to the end of the run are needed
            if len(text) <= MAX_EVALUATION:
                self.evaluations.append((is_running, time_ms, text))
        elif key == "init_start":
            self.times[key] = min(time_ms, self.times.get(key, time_ms))
        elif key == "init_stop":
            self.times[key] = max(time_ms, self.times.get(key, time_ms))
        elif key == "seed":
            # its value alone: some logs have a line for each of a thousand processes
            match = SEED.search(text)
            if match:
                self.seeds[match[1]] = None
        elif key in ("run_start", "run_stop"):
            self.marks[key] += 1
            # of several ends of a run the first one counts
            if is_running:
                self._read_bound(key, time_ms, text)
        else:
            self._read_value(key, parse_object(text).get("value"))

    def _read_bound(self, key: str, time_ms: float, text: bytes) -> None:
        """Read the line that begins or ends the run."""
        if key == "run_stop":
            self.status = _parse_status(parse_object(text))
        self.times[key] = time_ms

    def _read_value(self, key: str, value: Any) -> None:
        if key == "global_batch_size":
            self.batch_sizes.add(_parse_number(value))
        elif key in NUMBERS:
            self.fields[NUMBERS[key]] = _parse_number(value)
        elif isinstance(value, str):
            self.fields[TEXTS[key]] = value

    def log(self) -> Log:
        batch_size = None
        if len(self.batch_sizes) == 1:
            batch_size = _to_count(next(iter(self.batch_sizes)))
        seed = None
        if self.seeds:
            seed = next(iter(self.seeds)).decode("ascii", "backslashreplace")
        return Log(
            lines=self.lines - self.broken,
            status=self.status,
            minutes=self._measure_minutes("run_start", "run_stop"),
            init_minutes=self._measure_minutes("init_start", "init_stop"),
            global_batch_size=batch_size,
            evaluations=self._select_evaluations(),
            seed=seed,
            seeds=len(self.seeds),
            start_ms=self.times.get("run_start"),
            stop_ms=self.times.get("run_stop"),
            syntax=self.syntax,
            problem=self._describe_problem(),
            findings=tuple(self._list_findings()),
            **self.fields,
        )

    def _list_findings(self) -> Iterator[str]:
        if len(self.batch_sizes) > 1:
            yield "logs several global batch sizes; none is used"
        starts = self.marks["run_start"]
        if starts > 1:
            yield f"has {starts} run_start lines; the last one before the run_stop counts"
        start = self.times.get("run_start", 0.0)
        if SECONDS_FROM <= start < SECONDS_TO:
            yield "its times may be in seconds; they are read as milliseconds"

    def _select_evaluations(self) -> tuple[Evaluation, ...]:
        """Select the evaluations that are written or timed before the end of the run, in order of
        time.

        Some logs write the last one behind the line that ends the run. Others evaluate stored
        models afterwards, and write the results before that line with later times.
        """
        stop_ms = self.times.get("run_stop")
        if stop_ms is None:
            return ()
        selected = []
        for is_before, time_ms, text in sorted(self.evaluations, key=itemgetter(1)):
            if is_before or time_ms <= stop_ms:
                evaluation = _parse_evaluation(text, time_ms)
                if evaluation:
                    selected.append(evaluation)
        return tuple(selected)

    def _describe_problem(self) -> str | None:
        if not self.lines:
            return "holds no :::MLLOG line"
        if self.broken > MAX_NAMED:
            return f"{'; '.join(self.named)} and {self.broken - MAX_NAMED} more"
        if self.broken:
            return "; ".join(self.named)
        stops = self.marks["run_stop"]
        if stops > 1:
            return f"has {stops} run_stop lines: more than one run"
        return None

    def _measure_minutes(self, start: str, stop: str) -> float | None:
        if start not in self.times or stop not in self.times:
            return None
        minutes = (self.times[stop] - self.times[start]) / MS_PER_MINUTE
        return minutes if math.isfinite(minutes) else None


def _parse_status(fields: Mapping[str, Any]) -> str | None:
    metadata = fields.get("metadata")
    if not isinstance(metadata, dict):
        return None
    status = metadata.get("status")
    if status is None or isinstance(status, str):
        return status
    return json.dumps(status)


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value of JSON is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _parse_number(value: Any) -> float | None:
    if not is_number(value):
        return None
    # NaN is not below, either
    return value if abs(value) < MAX_NUMBER else None


def _to_count(value: float | None) -> int | None:
    if value is None or value <= 0 or value != int(value):
        return None
    return int(value)


def _parse_evaluation(text: bytes, time_ms: float) -> Evaluation | None:
    try:
        fields = parse_object(text)
    except ValueError:
        return None
    metadata = fields.get("metadata")
    if not isinstance(metadata, dict):
        return None
    named = metadata.get("metric")
    units = PROGRESS if named is None else STEPS_FIRST
    metric = named if isinstance(named, str) else None
    for name, unit in units.items():
        count = _parse_number(metadata.get(name))
        if count is not None:
            return Evaluation(metric, fields.get("value"), unit, float(count), time_ms)
    return None
