"""Read the reports and logs of other tools as lines of the CSV template.

Files are read as data: no code of theirs runs, and no link is followed. What a file does not state
stays blank. Each figure keeps the digits of the file. `docs/reference/submission-formats.md`
describes what each adapter reads, and `schema/adapters.toml` says which key or column of a file is
which column of the template.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from ipu_results.errors import SubmissionError
from ipu_results.ground.files import open_regular_file
from ipu_results.ground.limits import (
    MAX_SUBMITTED_BYTES,
    MAX_SUBMITTED_CELL,
    MAX_SUBMITTED_FIGURES,
    MAX_SUBMITTED_LINE,
)
from ipu_results.normalise.values import UnreadableCellError, parse_number
from ipu_results.submission.bundle import COLUMNS

MODULES = {  # the module of each adapter, imported only when a file is read
    "bytemlperf": "reports",
    "jube-caraml": "logs",
    "mlperf-loadgen-summary": "mlperf",
    "mlperf-loadgen-detail": "mlperf",
    "mlperf-training-log": "mlperf",
    "optimum-benchmark": "reports",
    "poprt": "logs",
    "poptorch": "logs",
    "trtexec": "tools",
    "benchmark_app": "tools",
    "trainer": "tools",
    "vllm": "tools",
    "csv-template": "reports",
}
NAMES = tuple(MODULES)
# What a row should say and a submitter must add.
FACTS = (
    "model",
    "task",
    "platform",
    "chip",
    "chip_count",
    "framework",
    "sdk_version",
    "precision",
    "batch_size",
)
MAX_EXPONENT = 25  # powers of ten that are written out; no figure of a benchmark needs more
EXPONENT = re.compile(r"[0-9]{1,25}(?:\.[0-9]{1,25})?[eE]([+-]?[0-9]{1,2})")
UNSAFE = ("Cc", "Cf", "Cs")  # control characters, directions of text, halves of characters
COUNT = re.compile(r"(?=0*[1-9])[0-9]{1,10}")
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Adapter:
    """A form of file that another tool writes.

    Its module lists it in ADAPTERS, and MODULES names that module.
    """

    is_readable: Callable[[SubmittedFile], bool]
    """Whether the content of a file has this form; called for every file that no `--adapter` was
    named for.
    """
    read: Callable[[ReadFile], None]
    """Add the figures, the environment and the remarks of the file.

    Raises SubmissionError with the place.
    """


def read_figures(path: Path, adapter: str | None = None) -> ReadFile:
    """Read the figures of one file, by the adapter that its content suits or by the one named.

    Raises SubmissionError, naming the file and the place, for a file that cannot be read, that no
    adapter suits or several do, and for one without figures.
    """
    file = read_file(path)
    if adapter is None:
        suited = [name for name in NAMES if load_adapter(name).is_readable(file)]
        if not suited:
            own = (
                "a table of your own has the columns model, task, platform, batch_size, metric,"
                " unit, value"
            )
            file.fail(f"is not a file that an adapter reads; adapters: {', '.join(NAMES)}; {own}")
        if len(suited) > 1:
            file.fail(
                "can be read by several adapters, which may differ: name one of"
                f" {', '.join(suited)}"
            )
        [adapter] = suited
    elif adapter not in MODULES:
        raise SubmissionError(
            f"unknown adapter {adapter!r}; known: {', '.join(NAMES)}", document=file.path
        )
    result = ReadFile(file, adapter)
    load_adapter(adapter).read(result)
    return result.finish()


def load_adapter(name: str) -> Adapter:
    """Load an adapter by its name."""
    adapter: Adapter = import_module(f"{__name__}.{MODULES[name]}").ADAPTERS[name]
    return adapter


def describe_missing(figures: Iterable[Mapping[str, str]]) -> str | None:
    """Describe the facts that some figure lacks, None if all are stated."""
    rows = list(figures)
    missing = [name for name in FACTS if any(not row[name] for row in rows)]
    return (
        f"the file does not state {', '.join(missing)}: fill in what you know (--set NAME=TEXT)"
        if missing
        else None
    )


@dataclass
class ReadFile:
    """What an adapter read: lines of the template, facts of the environment, and remarks for the
    submitter.

    The methods raise SubmissionError.
    """

    file: SubmittedFile
    adapter: str
    figures: list[dict[str, str]] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def add(self, facts: Mapping[str, str], metric: str, unit: str, value: str, place: str) -> None:
        """Add one figure of a configuration; `place` is a key or line of the file."""
        if len(self.figures) == MAX_SUBMITTED_FIGURES:
            self.file.fail(f"holds more than {MAX_SUBMITTED_FIGURES} figures", place)
        text = self.to_figure(value, place)
        cells = {
            **facts,
            "metric": metric,
            "unit": unit,
            "value": text,
            "place": f"{self.file.name}, {place}",
        }
        for name, cell in cells.items():
            self._check_cell(name, cell, place)
        self.figures.append({name: cells.get(name, "") for name in COLUMNS})

    def to_figure(self, text: str, place: str) -> str:
        """Return the digits of a figure; only an exponent, which the template lacks, is written
        out, exactly.
        """
        plain = text
        if (match := EXPONENT.fullmatch(text)) and abs(int(match[1])) <= MAX_EXPONENT:
            plain = format(Decimal(text), "f")
        try:
            parse_number(plain)
        except UnreadableCellError as error:
            shown = repr(text[:40])
            message = str(error) if str(error).startswith(shown) else f"{shown} is not a figure"
            self.file.fail(message, place)
        if plain != text:
            self.remark(f"{place}: {text} is written out as {plain}")
        return plain

    def state(self, name: str, text: str) -> None:
        """Add a fact of the environment, unless it is blank."""
        if text:
            self._check_cell(name, text, name)
            self.environment[name] = text

    def remark(self, text: str) -> None:
        """Add a remark once."""
        if text not in self.remarks:
            self.remarks.append(text)

    def finish(self) -> ReadFile:
        """Refuse a file without figures, and put a remark on the facts that it does not state
        before the others.
        """
        if not self.figures:
            self.file.fail(f"holds no figure that the adapter {self.adapter} reads")
        if missing := describe_missing(self.figures):
            self.remarks.insert(0, missing)
        return self

    def _check_cell(self, name: str, text: str, place: str) -> None:
        if len(text) > MAX_SUBMITTED_CELL:
            self.file.fail(f"{name} is longer than {MAX_SUBMITTED_CELL} characters", place)
        if any(unicodedata.category(character) in UNSAFE for character in text):
            self.file.fail(f"{name} holds a control character", place)


class Number(str):
    """A JSON number, in the digits that the file writes."""

    __slots__ = ()


@dataclass(frozen=True)
class SubmittedFile:
    """The content of one file.

    `path` is what errors name, `name` what the place of a figure names.
    """

    path: str
    name: str
    data: bytes
    text: str

    @cached_property
    def value(self) -> Any:
        """The JSON value of the file, None if it is not meant to be JSON.

        Raises SubmissionError.
        """
        text = self.text.strip()
        if not text.startswith(("{", "[")):
            return None
        try:
            return self.parse(text)
        except SubmissionError:
            # A line of a log may begin with a bracket or with a Python dictionary.
            if text.startswith("{") and text[1:].lstrip()[:1] in ('"', "}", ""):
                raise
            return None

    def list_lines(self) -> Iterator[tuple[int, str]]:
        """Yield line number and text; what a progress bar wrote over is a piece of its own with the
        same number.

        Raises SubmissionError for a line that is too long. JSON has no lines.
        """
        if self.value is not None:
            return
        for number, line in enumerate(self.text.split("\n"), 1):
            for piece in line.split("\r"):
                if len(piece) > MAX_SUBMITTED_LINE:
                    self.fail(f"is longer than {MAX_SUBMITTED_LINE:,} characters", f"line {number}")
                yield number, piece

    def require_line_end(self, number: int, place: str) -> None:
        """Refuse a figure that the end of the file may have cut. Raises SubmissionError."""
        if not self.text.endswith(("\n", "\r")) and number == self.text.count("\n") + 1:
            self.fail(
                "the file ends in this line, so digits may be missing; if not, add a line end",
                place,
            )

    def check_count(self, text: str, place: str) -> str:
        """Return the text of a whole number from 1. Raises SubmissionError."""
        if not COUNT.fullmatch(text):
            self.fail(f"{text[:40]!r} is not a whole number from 1 to 10 digits long", place)
        return text

    def fail(self, message: str, place: str | None = None) -> NoReturn:
        """Raise SubmissionError that names the file and the place."""
        raise SubmissionError(
            _to_printable(message), document=self.path, place=_to_printable(place or "") or None
        )

    def parse(self, text: str, place: str | None = None) -> Any:
        """Parse JSON text strictly: no repeated keys, numbers as `Number`.

        Raises SubmissionError.
        """
        decoder = json.JSONDecoder(
            parse_float=Number,
            parse_int=Number,
            parse_constant=float,
            object_pairs_hook=_collect_unique,
            # a constant is NaN or an infinity: harmless where nothing is read, refused where a figure
            # is
        )
        try:
            return decoder.decode(text)
        except RecursionError:
            self.fail("is not readable JSON: it is nested too deeply", place)
        except json.JSONDecodeError as error:
            self.fail(
                f"is not JSON: {error.msg}", place or f"line {error.lineno}, column {error.colno}"
            )
        except ValueError as error:
            self.fail(str(error), place)


def read_file(path: Path) -> SubmittedFile:
    """Read a file.

    Raises SubmissionError if it is empty, too large, binary or not a regular file.
    """
    place = str(path)
    try:
        with open_regular_file(path) as file:
            data = file.read(MAX_SUBMITTED_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise SubmissionError(
            f"cannot be read: {getattr(error, 'strerror', None) or error}", document=place
        ) from error
    if len(data) > MAX_SUBMITTED_BYTES:
        raise SubmissionError(
            f"is larger than {MAX_SUBMITTED_BYTES // MEGABYTE} MB", document=place
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SubmissionError(
            "is not text in UTF-8", document=place, place=f"byte {error.start}"
        ) from error
    if position := text.find("\0") + 1:
        raise SubmissionError(
            "is not text: it holds a NUL", document=place, place=f"character {position}"
        )
    if not text.strip():
        raise SubmissionError("is empty", document=place)
    return SubmittedFile(place, path.name, data, text)


class Section:
    """One JSON object of a file, whose fields are read with their types.

    Every method raises SubmissionError.
    """

    def __init__(self, file: SubmittedFile, value: Any, place: str = "") -> None:
        if not isinstance(value, dict):
            file.fail("is not a JSON object", place or None)
        self.file, self.place, self.fields = file, place, value

    def get_key(self, key: str) -> str:
        """Return the path of a field, as the place of a figure names it."""
        return f"{self.place}.{key}" if self.place else key

    def read_text(self, key: str) -> str:
        """Return a string, "" if it is absent or null."""
        value = self.fields.get(key)
        if value is None:
            return ""
        if not isinstance(value, str) or isinstance(value, Number):
            self.file.fail("is not a string", self.get_key(key))
        return value.strip()

    def read_number(self, key: str) -> str:
        """Return the text of a number, "" if it is absent or null."""
        value = self.fields.get(key)
        if value is None:
            return ""
        if not isinstance(value, Number):
            shown = f"{json.dumps(value)}, " if isinstance(value, float) else ""
            self.file.fail(f"is {shown}not a number", self.get_key(key))
        return value

    def read_count(self, key: str) -> str:
        """Return the text of a whole number from 1, "" if it is absent or null."""
        text = self.read_number(key)
        return self.file.check_count(text, self.get_key(key)) if text else ""

    def read(self, path: str, kind: str = "text") -> str:
        """Return a `text`, `number` or `count` at a path such as `config.backend.name`, "" where it
        is absent.
        """
        *parents, key = path.split(".")
        section: Section | None = self
        for parent in parents:
            section = section.read_section(parent) if section else None
        text: str = getattr(section, f"read_{kind}")(key) if section else ""
        return text

    def read_section(self, key: str) -> Section | None:
        """Return an object, None if it is absent or null."""
        value = self.fields.get(key)
        return None if value is None else Section(self.file, value, self.get_key(key))

    def read_sections(self, key: str) -> list[Section]:
        """Return the objects of a list, or of the lists that it holds."""
        value = self.fields.get(key)
        if not isinstance(value, list):
            self.file.fail(
                "is not a list" if key in self.fields else "is absent", self.get_key(key)
            )
        sections = []
        for index, item in enumerate(value):
            place = f"{self.get_key(key)}[{index}]"
            if isinstance(item, list):
                sections += [
                    Section(self.file, part, f"{place}[{number}]")
                    for number, part in enumerate(item)
                ]
            else:
                sections.append(Section(self.file, item, place))
        return sections


def _to_printable(text: str) -> str:
    """Return text of a file that is safe in a message: short, with characters that a terminal acts
    on escaped.
    """
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1]
        for character in text[:MAX_SUBMITTED_CELL]
    )


def _collect_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise ValueError(f"key {key[:40]!r} occurs twice in one object")
        fields[key] = value
    return fields
