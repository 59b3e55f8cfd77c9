"""The marked lines of a log, as the official parser sees them: text from the last mark of a line to its end."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

MARK = b":::MLLOG "
CHUNK = 4 * 2**20
MAX_LINE = 4 * 2**20


class Line(msgspec.Struct):
    """What every line must have."""

    key: str
    time_ms: float


class LineTooLong(ValueError):
    """No end of line within MAX_LINE bytes."""


decode = msgspec.json.Decoder(Line).decode
REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def blocks(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Whole lines in blocks of about a chunk, each with the number of its first line.

    A line ends with LF, CR or both, as in the official parser. Raises LineTooLong.
    """
    rest, number, before = b"", 1, b""
    for chunk in chunks:
        data = rest + chunk
        cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1
        rest = data[cut:]
        if len(rest) > MAX_LINE:
            raise LineTooLong(f"a line is longer than {MAX_LINE:,} bytes")
        if cut:
            number += line_count(before)
            before = data[:cut]
            yield number, before
    if rest:
        yield number + line_count(before), rest + b"\n"


def line_count(data: bytes) -> int:
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def marked(block: bytes) -> list[bytes]:
    """The JSON texts of a block of whole lines, one a marked line.

    Where a line has several marks the last one counts, as in the official parser.
    """
    if b"\r" in block:
        block = block.replace(b"\r", b"\n")
    pieces = block.split(MARK)
    return [piece[:end] for piece in pieces[1:] if (end := piece.find(b"\n")) >= 0]


def places(block: bytes, first_line: int) -> list[int]:
    """The line number of each of the block's marked lines, in the order of `marked`."""
    pieces = block.split(MARK)
    numbers, number = [], first_line + line_count(pieces[0])
    for piece in pieces[1:]:
        if b"\n" in piece or b"\r" in piece:
            numbers.append(number)
        number += line_count(piece)
    return numbers


def parse(told: bytes) -> dict[str, Any]:
    """The JSON object of a marked line. Raises ValueError naming what is wrong.

    Bytes that are not UTF-8 are no fault: the official parser reads Latin-1.
    """
    text = told.decode("latin-1").strip()
    with suppress(UnicodeDecodeError):
        text = text.encode("latin-1").decode()
    try:
        entry = json.loads(text)
    except RecursionError as error:
        raise ValueError("is not JSON: nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from error
    if not isinstance(entry, dict):
        raise ValueError("is not a JSON object")
    return entry


def parse_strictly(told: bytes) -> Line:
    """What the fast decoder refuses, looked at the way the official parser does. Raises ValueError."""
    entry = parse(told)
    key = entry.get("key")
    if not isinstance(key, str):
        raise ValueError("has no key")
    try:
        time_ms = float(entry["time_ms"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError("has no time_ms") from error
    if not math.isfinite(time_ms):
        raise ValueError("has no time_ms")
    return Line(key, time_ms)
