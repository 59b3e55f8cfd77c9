"""The lines that an adapter makes: columns of the CSV template, each figure in the digits of the file."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from ipu_results._util.limits import MAX_SUBMITTED_CELL, MAX_SUBMITTED_FIGURES
from ipu_results.normalise.values import UnreadableCellError, parse_number
from ipu_results.submission.adapters.files import SubmittedFile
from ipu_results.submission.template import COLUMNS

FACTS = (
    *("model", "task", "platform", "chip", "chip_count", "framework", "sdk_version", "precision", "batch_size"),
)  # what a row should say and a submitter must add
UNVERIFIED = "not an official result: write `Result not verified by MLCommons Association.` where you show it"
EXPONENT = re.compile(r"[0-9]{1,25}(?:\.[0-9]{1,25})?[eE]([+-]?[0-9]{1,2})")
UNSAFE = ("Cc", "Cf", "Cs")  # control characters, directions of text, halves of characters


@dataclass(frozen=True)
class ReadFile:
    """What an adapter read: lines of the template, facts of the environment, and remarks for the submitter."""

    adapter: str
    figures: list[dict[str, str]]
    environment: dict[str, str]
    remarks: list[str]


@dataclass
class Draft:
    """The lines, environment and remarks of a file while an adapter reads it. Methods raise SubmissionError."""

    file: SubmittedFile
    figures: list[dict[str, str]] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def add(self, facts: Mapping[str, str], metric: str, unit: str, value: str, place: str) -> None:
        """Add one figure of a configuration; `place` is a key or line of the file."""
        if len(self.figures) == MAX_SUBMITTED_FIGURES:
            self.file.fail(f"holds more than {MAX_SUBMITTED_FIGURES} figures", place)
        text = self.to_figure(value, place)
        cells = {**facts, "metric": metric, "unit": unit, "value": text, "place": f"{self.file.name}, {place}"}
        for name, cell in cells.items():
            self._check_cell(name, cell, place)
        self.figures.append({name: cells.get(name, "") for name in COLUMNS})

    def to_figure(self, text: str, place: str) -> str:
        """Return the digits of a figure; only an exponent, which the template lacks, is written out, exactly."""
        plain = text
        if (match := EXPONENT.fullmatch(text)) and abs(int(match[1])) <= 25:
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

    def finish(self, adapter: str) -> ReadFile:
        """Return the result, with a remark on the facts that the file does not state."""
        if not self.figures:
            self.file.fail(f"holds no figure that the adapter {adapter} reads", None)
        missing = [name for name in FACTS if any(not figure[name] for figure in self.figures)]
        if missing:
            self.remarks.insert(0, f"the file does not state {', '.join(missing)}: fill in what you know")
        return ReadFile(adapter, self.figures, self.environment, self.remarks)

    def _check_cell(self, name: str, text: str, place: str) -> None:
        if len(text) > MAX_SUBMITTED_CELL:
            self.file.fail(f"{name} is longer than {MAX_SUBMITTED_CELL} characters", place)
        if any(unicodedata.category(character) in UNSAFE for character in text):
            self.file.fail(f"{name} holds a control character", place)
