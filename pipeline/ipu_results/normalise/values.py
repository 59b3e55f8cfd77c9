"""Figures, durations and versions out of printed text. Exact: every figure goes through Decimal."""

from __future__ import annotations

import math
import re
from decimal import Decimal

NUMBER = re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?")
MAX_DIGITS = 15
DERIVED = re.compile(r"[0-9]{1,25}(?:\.[0-9]{1,25})?(?:e[+-]?[0-9]{1,3})?")  # 17 significant digits and zeros
DURATION = re.compile(
    r"(?=[0-9])(?:([0-9]{1,9})\s*d)?\s*(?:([0-9]{1,9})\s*h)?\s*(?:([0-9]{1,9})\s*m)?"
    r"\s*(?:([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*s)?"
)
DURATION_SECONDS = (86_400, 3_600, 60, 1)
SDK = re.compile(r"(?:Poplar\s+)?SDK\s*([0-9]+(?:\.[0-9]+)*)", re.I)
BARE_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+")
MLPERF_ID = re.compile(r"([0-9]+\.[0-9]+)-[0-9]+")
QUALITY = re.compile(rf"({NUMBER.pattern})\s+(\S.*)")
TARGET = re.compile(rf"{NUMBER.pattern}\s*%?\s+(\S.*)")


class Unreadable(ValueError):
    """A cell that cannot be normalised: a stable reason code and a message naming the word."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def number(text: str) -> Decimal:
    """`'1,260,000'` or `'0.0719'`; misplaced thousands marks, letters and signs are unreadable.

    So is a figure of more digits than a double holds exactly.
    """
    if not NUMBER.fullmatch(text):
        raise Unreadable("unreadable-figure", f"{text!r} is not a figure")
    if sum(character.isdecimal() for character in text) > MAX_DIGITS:
        raise Unreadable("unreadable-figure", f"{text!r} has more than {MAX_DIGITS} digits")
    return Decimal(text.replace(",", ""))


def derived_number(text: str) -> Decimal:
    """A figure that we computed, in whatever form a double that is not negative is written."""
    if not DERIVED.fullmatch(text) or not math.isfinite(float(text)):
        raise Unreadable("unreadable-figure", f"{text[:40]!r} is not a figure")
    return Decimal(text)


def whole_number(text: str) -> int:
    value = number(text)
    if value != int(value) or value < 1:
        raise Unreadable("unreadable-figure", f"{text!r} is not a whole number from 1")
    return int(value)


def duration_s(text: str) -> Decimal | None:
    """Seconds of a duration such as `23h 43m`; None where the text has no units of time."""
    found = DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    return sum(
        (Decimal(part) * seconds for part, seconds in zip(found.groups(), DURATION_SECONDS, strict=True) if part),
        Decimal(0),
    )


def sdk_version(text: str) -> str | None:
    """`'SDK 2.4.0'` gives `'2.4.0'`; None where the text is not of that form."""
    found = SDK.fullmatch(text)
    if found:
        return found.group(1)
    return text if BARE_VERSION.fullmatch(text) else None


def mlperf_round(text: str) -> str:
    """`'2.0-2047'` gives `'2.0'`."""
    found = MLPERF_ID.fullmatch(text)
    if found is None:
        raise Unreadable("unknown-mlperf-id", f"{text!r} is not an MLPerf id")
    return found.group(1)


def quality(text: str) -> tuple[Decimal, str]:
    """`'0.0719 MAE'` gives `(Decimal('0.0719'), 'MAE')`."""
    found = QUALITY.fullmatch(text)
    if found is None:
        raise Unreadable("unreadable-figure", f"{text!r} is not a figure with the name of a metric")
    return number(found.group(1)), found.group(2)


def target_metric(text: str) -> str | None:
    """`'75.90% classification'` gives `'classification'`."""
    found = TARGET.fullmatch(text)
    return found.group(1) if found else None
