"""Parse figures, durations and versions from printed text, exactly: every figure goes through
Decimal.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple

from ipu_results.kit.text import find_nearest_words, format_count
from ipu_results.record.normalise.decimal_mark import DecimalMark
from ipu_results.record.read.figures import FIGURES, list_marks, read_figure
from ipu_results.schema.vocabulary import Vocabulary, normalise_name

MAX_SHOWN = 40  # characters of a text of ours in a message
# Marks in a figure that is refused if it can be read in two ways. With a decimal comma a lone comma
# is clear: the column proves it.
DOUBTFUL = {DecimalMark.UNCLEAR: ".,", DecimalMark.COMMA: "."}
MAX_DIGITS = 15  # that a double gives back, whatever the figure is
# 17 significant digits and zeros
DOUBLE = re.compile(r"-?[0-9]{1,25}(?:\.[0-9]{1,25})?(?:[eE][+-]?[0-9]{1,3})?")
DURATION = re.compile(
    r"(?=[0-9])(?:([0-9]{1,9})\s*d)?\s*(?:([0-9]{1,9})\s*h)?\s*(?:([0-9]{1,9})\s*m)?"
    r"\s*(?:([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*s)?"
)
DURATION_SECONDS = (86_400, 3_600, 60, 1)  # of the units in DURATION
SDK = re.compile(r"(?:Poplar\s+)?SDK\s*([0-9]+(?:\.[0-9]+)*)", re.I)
# Two numbers at least: a lone figure is not a version.
BARE_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+")
MLPERF_ID = re.compile(r"([0-9]+\.[0-9]+)-[0-9]+")
QUALITY = re.compile(r"([0-9][0-9.,]*)\s+(\S.*)")
TARGET = re.compile(rf"{FIGURES['.'].pattern}\s*%?\s+(\S.*)")
# After a figure: what makes it another figure instead of naming its metric.
NOT_A_METRIC = re.compile(
    r"""
    (?! % | [(\[]? [^\W\d_] )                  # neither a percent sign nor a letter
    | [xe] \s* [-+−–^]? \s* \d                 # a power of ten
    | (?: thousand | million | billion | [kmg] ) \s
    | (?: to | or | and ) \s+ \d               # a second figure
    """,
    re.IGNORECASE | re.VERBOSE,
)
SECOND_FIGURE = re.compile(r"[±×÷~≈<>=]|\+/|(?:^|\s)[-+−–.(]*[0-9]+(?:[.,][0-9]+)*[.,;:]*(?!\S)")
# Brackets with words explain a metric, as in `MAE (lower is better)`; those with figures alone are
# an interval.
BRACKETED_WORDS = re.compile(r"\((?=[^()]*[^\W\d_])[^()±]*\)")
FILES = {
    "platform": "platforms",
    "model": "models",
    "framework": "frameworks",
    "precision": "precisions",
    "unit": "units",
    "metric": "units",
    "benchmark": "mlperf",
    "task": "table_headers",
    "header": "table_headers",
}
"""The file of `schema/vocabulary` that a word of each kind is added to."""
MIN_SIMILARITY = 0.5  # by difflib; a word that is less similar is another one
MAX_LISTED = 12  # known words that a message lists where none is near: more are not read
MAX_COMPARED = 300  # words that are compared with the vocabulary: each takes about a millisecond


class UnreadableCellError(ValueError):
    """A cell that cannot be normalised, with a stable reason code and a message that names the
    word.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def _refuse_figure(text: str, problem: str = "is not a figure") -> UnreadableCellError:
    return UnreadableCellError("unreadable-figure", f"{text!r} {problem}")


def parse_number(text: str, mark: DecimalMark = DecimalMark.POINT) -> Decimal:
    """Parse a printed figure such as `1,260,000` or `0.0719`, or `0,0719` in a column with a
    decimal comma.

    Raises UnreadableCellError for misplaced thousands marks, letters and signs, for more digits
    than a double gives back, and if the column does not say which mark divides the decimals.
    """
    has_two_readings = list_marks(text) == ".,"
    if has_two_readings and any(sign in text for sign in DOUBTFUL.get(mark, "")):
        problem = "can be read in two ways: state `decimal_mark` in the sidecar, or transcribe"
        raise _refuse_figure(text, problem)
    has_commas = mark in (DecimalMark.COMMA, DecimalMark.SIGNED_COMMA)
    value = read_figure(text, "," if has_commas else ".")
    if value is None:
        raise _refuse_figure(text)
    # most texts are too short to have their digits counted
    is_long = len(text) > MAX_DIGITS and sum(map(str.isdecimal, text)) > MAX_DIGITS
    # all digits of a double, as logs print them, are exact
    if is_long and Decimal(repr(float(value))) != value:
        raise _refuse_figure(text, f"has more than {MAX_DIGITS} digits")
    return value


def parse_derived_number(text: str) -> Decimal:
    """Parse a figure that we computed, in any form in which a non-negative double is written."""
    if parse_double(text) < 0:
        raise _refuse_figure(text[:MAX_SHOWN])
    return Decimal(text)


def parse_double(text: str) -> float:
    """Parse a figure that we computed, with a sign or not: no blanks, digits of other scripts, NaN
    or infinity.
    """
    value = float(text) if DOUBLE.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise _refuse_figure(text[:MAX_SHOWN])
    return value


def parse_whole_number(text: str, mark: DecimalMark = DecimalMark.POINT) -> int:
    """Parse a whole number from 1."""
    value = parse_number(text, mark)
    if value != int(value) or value < 1:
        raise _refuse_figure(text, "is not a whole number from 1")
    return int(value)


def parse_duration_s(text: str) -> Decimal | None:
    """Return the seconds of a duration such as `23h 43m`, None if the text has no units of time."""
    match = DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    duration = Decimal(0)
    for part, seconds in zip(match.groups(default="0"), DURATION_SECONDS, strict=True):
        duration += Decimal(part) * seconds
    return duration


def parse_sdk_version(text: str) -> str | None:
    """Return the version of `SDK 2.4.0` or `2.4.0`, None for another form."""
    if match := SDK.fullmatch(text):
        return match.group(1)
    return text if BARE_VERSION.fullmatch(text) else None


def parse_mlperf_round(text: str) -> str:
    """Return the round of an MLPerf id: `2.0` for `2.0-2047`."""
    match = MLPERF_ID.fullmatch(text)
    if match is None:
        raise UnreadableCellError("unknown-mlperf-id", f"{text!r} is not an MLPerf id")
    return match.group(1)


def parse_quality(text: str, mark: DecimalMark = DecimalMark.POINT) -> tuple[Decimal, str]:
    """Split a quality such as `0.0719 MAE` into figure and metric; a power, a range or an interval
    is refused.
    """
    match = QUALITY.fullmatch(text)
    if match is None:
        raise _refuse_figure(text, "is not a figure with the name of a metric")
    value = parse_number(match.group(1), mark)
    metric = match.group(2)
    if NOT_A_METRIC.match(metric) or SECOND_FIGURE.search(BRACKETED_WORDS.sub("", metric)):
        raise _refuse_figure(text, f"is not one figure: {metric!r} is not a metric")
    return value, metric


def parse_target_metric(text: str) -> str | None:
    """Return the metric of a quality target: `classification` for `75.90% classification`.

    Raises UnreadableCellError if the figure goes on instead, as in `7.19 × 10⁻² MAE`.
    """
    match = TARGET.fullmatch(text)
    if match is None:
        return None
    if NOT_A_METRIC.match(match.group(1)):
        raise _refuse_figure(text, "is not one figure with the name of a metric")
    return match.group(1)


class UnknownWord(NamedTuple):
    """A word that the vocabulary does not have: its kind, such as `platform`, and the column that
    it is for.
    """

    kind: str
    column: str
    text: str


class UnknownWordError(UnreadableCellError):
    """A cell with an unknown word."""

    def __init__(self, word: UnknownWord, message: str) -> None:
        super().__init__(f"unknown-{word.kind}", message)
        self.word = word


def find_nearest(text: str, known: Mapping[str, str], cutoff: float = MIN_SIMILARITY) -> str | None:
    """Return the known word that is most similar to a text, None if none is similar."""
    matches = difflib.get_close_matches(normalise_name(text), known, 1, cutoff)
    return known[matches[0]] if matches else None


def describe_unknown_words(words: Iterable[UnknownWord], vocabulary: Vocabulary) -> list[str]:
    """Describe each distinct word in one line: its number of rows, the nearest known word and the
    file to add it to.
    """
    lines = []
    for number, (word, count) in enumerate(sorted(Counter(words).items())):
        line = (
            f"unknown {word.kind} {word.text!r} for {word.column} in {format_count(count, 'row')}"
        )
        if number < MAX_COMPARED:
            line += f"; {_suggest(word, vocabulary)}"
        if word.kind in FILES:
            line += f" (schema/vocabulary/{FILES[word.kind]}.toml)"
        lines.append(line)
    return lines


def _suggest(word: UnknownWord, vocabulary: Vocabulary) -> str:
    owners = [column for column in vocabulary.units if vocabulary.find_unit(column, word.text)]
    if word.kind == "unit" and owners:
        return f"a unit of {', '.join(owners)}; is it the right metric?"
    known = _list_known_words(word, vocabulary)
    if nearest := find_nearest_words(word.text, known, 1):
        return f"nearest known: {nearest[0]!r}"
    names = sorted(set(known.values()))
    if 0 < len(names) <= MAX_LISTED:
        return f"known: {', '.join(names)}"
    return "no known one is near"


def _list_known_words(word: UnknownWord, vocabulary: Vocabulary) -> Mapping[str, str]:
    """Return the known words of the kind of another as they are printed, by normalised name."""
    if word.kind == "platform":
        return vocabulary.platform_names
    if word.kind == "model":
        return vocabulary.model_names
    words: Mapping[str, Iterable[str]] = {
        "framework": vocabulary.frameworks.values(),
        "precision": vocabulary.precision_bits,
        "unit": vocabulary.units.get(word.column, ()),
        "metric": vocabulary.metrics,
        "benchmark": vocabulary.benchmarks,
        "task": vocabulary.tasks,
        "division": ("open", "closed"),
    }
    return {normalise_name(known): known for known in words.get(word.kind, ())}
