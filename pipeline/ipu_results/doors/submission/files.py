"""Read a file with figures as text, and hold what is read from it.

A file is data: no code of it runs and no link of it is followed.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from ipu_results.doors.submission.bundle import COLUMNS
from ipu_results.errors import SubmissionError
from ipu_results.kit.files import read_up_to
from ipu_results.kit.limits import MAX_SUBMITTED_BYTES
from ipu_results.kit.text import collect_unique

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class SubmittedFile:
    """The content of one file."""

    path: str
    """What errors name."""
    name: str
    """What the place of a figure names."""
    data: bytes
    text: str

    def fail(self, message: str, place: str | None = None) -> NoReturn:
        """Raise SubmissionError that names the file and the place."""
        raise SubmissionError(message, document=self.path, place=place)

    def parse_objects(self, mark: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the place and the JSON object of each line with a mark, which is before the object.

        Numbers are `Number`. Raises SubmissionError for text that is not an object, and for a
        repeated key.
        """
        for number, line in enumerate(io.StringIO(self.text, newline=None), 1):
            if mark in line:
                place = f"line {number}"
                yield place, self._parse_object(line.rpartition(mark)[2], place)

    def _parse_object(self, text: str, place: str) -> dict[str, Any]:
        try:
            value = json.loads(
                text, parse_float=Number, parse_int=Number, object_pairs_hook=collect_unique
            )
        except RecursionError:
            self.fail("is not readable JSON: it is nested too deeply", place)
        except ValueError as error:
            self.fail(f"is not JSON: {error}", place)
        if not isinstance(value, dict):
            self.fail("is not a JSON object", place)
        return value


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number, in the digits that the file writes."""

    digits: str

    def __str__(self) -> str:
        return self.digits


@dataclass
class FileFigures:
    """What was read from a file."""

    file: SubmittedFile
    form: str
    """The form of the file, as `submission.toml` names it."""
    figures: list[dict[str, str]] = field(default_factory=list)
    """Lines of the template."""
    environment: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    """What the submitter should know."""

    def add(self, cells: Mapping[str, str], place: str) -> None:
        """Add one figure by column; `place` is where it stands in the file."""
        placed = {**cells, "place": f"{self.file.name}, {place}"}
        self.figures.append({name: placed.get(name, "") for name in COLUMNS})


def read_file(path: Path) -> SubmittedFile:
    """Read a file.

    Raises SubmissionError if it is empty, too large, not a regular file, or not text in UTF-8.
    """
    place = str(path)
    try:
        data = read_up_to(path, MAX_SUBMITTED_BYTES + 1)
    except OSError as error:
        raise SubmissionError(
            f"cannot be read: {error.strerror or error}", document=place
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
    if not text.strip():
        raise SubmissionError("is empty", document=place)
    return SubmittedFile(place, path.name, data, text)
