"""Format rows and values: a table or records for the eye, CSV or JSON for a program, Markdown for a
page.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from itertools import accumulate
from typing import Any

from ipu_results.kit.limits import MAX_TOML_CHARACTERS, MAX_TOML_DOTS
from ipu_results.kit.renamed import describe_column

# how a text begins that a spreadsheet takes for a formula, marked or not
FORMULA = re.compile(r"'*[=+\-@\t\r]")
# A figure alone, or a sign alone: a spreadsheet has nothing to compute.
FIGURE = re.compile(r"[+-]|[+-]?([0-9][0-9,]*(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?%?")
FORMULA_MARK = "'"
MAX_WRITTEN_OUT = 1e15  # from here on a whole number has an exponent
NOISE = 4e-15  # of a number: what a few steps of arithmetic on doubles add to it
MAX_NAME = 40  # characters of an unknown name in a message
# What json does not escape although a terminal acts on it, and what UTF-8 cannot hold.
UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def format_records(output: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as `table`, `record`, `csv` or `json`; a null is `NULL`, `NULL`, empty and null
    respectively.
    """
    if output == "table":
        return format_table(columns, rows)
    if output == "record":
        return _format_record_layout(columns, rows)
    values = [list(map(to_json_value, row)) for row in rows]
    if output == "csv":
        return format_csv([columns, *values])
    return format_json([dict(zip(columns, row, strict=True)) for row in values])


def format_json(value: Any) -> str:
    """Format a value as JSON that is safe on a terminal.

    Raises ValueError for a number that is not finite.
    """
    text = json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)
    return UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def format_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as CSV without the last line break.

    Texts are made safe: one that a spreadsheet takes for a formula gets an apostrophe in front, and
    characters that a terminal acts on are escaped, except line breaks and tabs.
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(_make_safe, row) for row in rows)
    return out.getvalue().removesuffix("\n")


def mark_formula(text: str) -> str:
    """Put an apostrophe in front of a text that a spreadsheet takes for a formula, but not of a
    figure.

    A text that begins with such a mark already gets one more, so that removing one always gives the
    text.
    """
    is_formula = FORMULA.match(text) and not FIGURE.fullmatch(text)
    return FORMULA_MARK + text if is_formula else text


def unmark_formula(text: str) -> str:
    """Remove the apostrophe that `mark_formula` puts in front of a text."""
    is_marked = text.startswith(FORMULA_MARK) and FORMULA.match(text)
    return text[1:] if is_marked else text


def _make_safe(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return escape_unprintable(mark_formula(value), keep="\n\t")


def format_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as a plain table as wide as its content, with figures aligned to the right."""
    # Imported here: scores can be had as CSV and JSON where it is not installed.
    from tabulate import tabulate  # noqa: PLC0415

    cells = []
    alignment = ["left"] * len(columns)
    for row in rows:
        cells.append(list(map(_format_value, row)))
        for position, value in enumerate(row):
            if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
                alignment[position] = "right"
    table = tabulate(
        cells,
        headers=list(map(escape_unprintable, columns)),
        tablefmt="simple",
        colalign=alignment if cells else None,
        disable_numparse=True,
    )
    return str(table)


def _format_record_layout(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format each row as lines of a name and its value, under a line that counts the rows."""
    names = list(map(escape_unprintable, columns))
    width = max(map(len, names), default=0)
    records = []
    for number, row in enumerate(rows, start=1):
        lines = [f"row {number} ".ljust(width + 2, "-")]
        for name, value in zip(names, row, strict=True):
            lines.append(f"{name:{width}}  {_format_value(value)}")
        records.append("\n".join(lines))
    return "\n\n".join(records)


def format_plain(value: float, digits: int = 3) -> str:
    """Format a number with this many significant digits, whole from there on, and without an
    exponent.
    """
    if abs(value) >= 10**digits:
        return f"{value:.0f}"
    return f"{Decimal(f'{value:.{digits}g}'):f}"


def trim_noise(value: float) -> float:
    """Return a number without what binary arithmetic added to it: `0.11927499999999999` becomes
    `0.119275`.

    Any other number keeps every digit, since some sources print seventeen.
    """
    if not math.isfinite(value):
        return value
    short = float(f"{value:.12g}")
    return short if abs(short - value) <= NOISE * abs(value) else value


def format_float(value: float) -> str:
    """Format a number for the eye: without float noise, and a whole one without a point."""
    value = trim_noise(value)
    is_whole = value.is_integer() and abs(value) < MAX_WRITTEN_OUT
    return repr(int(value)) if is_whole else repr(value)


def escape_unprintable(text: str, keep: str = "") -> str:
    """Escape every character that a terminal would act on instead of showing it, except those to
    keep and blanks.
    """
    if text.isprintable():
        return text
    shown = []
    for char in text:
        is_shown = char in keep or _is_shown(char)
        shown.append(char if is_shown else ascii(char)[1:-1])
    return "".join(shown)


def _is_shown(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


def escape_line(text: str) -> str:
    """Return text on one line, with the characters escaped that a terminal would act on."""
    return escape_unprintable(" ".join(text.split()))


# letters and digits besides ASCII; μ of units looks like no letter
FOREIGN = re.compile(r"[^\W\x00-\x7fµμ]")
LETTERS = re.compile(r"[^\W\d_]+")
SMALL_CAPITAL = re.compile("LATIN LETTER SMALL CAPITAL ([A-Z])")


@cache
def _find_prototype(char: str) -> str:
    """Return the ASCII letters or digits that a character looks like by Unicode's tables (UTS #39),
    else itself.
    """
    from confusable_homoglyphs.confusables import confusables_data  # noqa: PLC0415  (takes 0.2 s)

    if match := SMALL_CAPITAL.fullmatch(unicodedata.name(char, "")):  # the tables leave them out
        return match[1]
    # what looks like a character that looks like it does so, too
    alike = {char}
    for _ in range(2):
        for other in tuple(alike):
            alike.update(entry["c"] for entry in confusables_data.get(other, ()))
    plain = [text for text in alike if text.isascii() and text.isalnum()]
    longest = max(map(len, plain), default=0)
    return min((text for text in plain if len(text) == longest), default=char)


SAME_SHAPE = str.maketrans("oil", "011")


def get_skeleton(name: str) -> str:
    """Return what names that look alike share: without case, blanks and hyphens, `O` as `0`, `l`
    and `I` as `1`.
    """
    text = "".join(map(_find_prototype, unicodedata.normalize("NFKC", name)))
    return re.sub(r"[^\w.+]|_", "", text).casefold().translate(SAME_SHAPE)


# What shows nothing but is printable: joiners, fillers, variation selectors, the blank of Braille.
HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164"
    "\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def find_hidden(text: str) -> str | None:
    """Return a character of a text that shows nothing and is no blank."""
    for char in text:
        if HIDDEN.match(char) or not _is_shown(char):
            return char
    return None


def find_lookalike(text: str) -> str | None:
    """Return a letter of another script that looks like a Latin one, in a Latin word or a text that
    looks Latin.
    """
    foreign: set[str] = set(FOREIGN.findall(text))
    looks_latin = {char for char in foreign if _find_prototype(char).isascii()}
    alike = {char for char in looks_latin if not _is_latin(char)}
    if looks_latin == foreign:
        return min(alike, default=None)
    for word in LETTERS.findall(text):
        lookalikes = [char for char in word if char in alike]
        if lookalikes and any(map(_is_latin, word)):
            return str(lookalikes[0])
    return None


def _is_latin(char: str) -> bool:
    return unicodedata.name(unicodedata.normalize("NFKC", char)[0], "").startswith("LATIN")


PART = re.compile(r"[^\W\d_]+|\d+")
# the ranks of a name that has the parts of a word, the best first
SAME = 0
BEGINS = 1  # with the parts in a row
CONTAINS = 2  # them in a row
SCATTERED = 3  # has all of them, but not in a row
MIN_SIMILARITY = 0.5  # by difflib; a word that is less similar is another one


def split_parts(name: str) -> tuple[str, ...]:
    """Return the parts of a name, runs of letters or of digits: nvidia, h, 200, sxm, 5 of `NVIDIA
    H200-SXM5`.
    """
    return tuple(PART.findall(name.casefold()))


def find_nearest_words(
    word: str,
    known: Iterable[str] | Mapping[str, str],
    limit: int = 3,
    cutoff: float = MIN_SIMILARITY,
) -> list[str]:
    """Return the known words nearest to one: those that have its parts in a row, else all of them,
    else similar ones.

    Of a mapping the values are the words, and its keys are other spellings. So `h200` finds `NVIDIA
    H200-SXM5-141GB` and not `GH200`. Among words that are equally near the shortest come first.
    """
    spellings: dict[str, str] = {}
    if isinstance(known, Mapping):
        spellings.update(known)
        known = known.values()
    words = list(dict.fromkeys(known))
    near = _list_with_parts(word[:MAX_NAME], words)
    if near:
        return near[:limit]
    for other in words:
        spellings.setdefault(_spell(other), other)
    matches = get_close_matches(_spell(word[:MAX_NAME]), spellings, n=limit, cutoff=cutoff)
    return list(dict.fromkeys(spellings[match] for match in matches))


def _list_with_parts(word: str, others: Iterable[str]) -> list[str]:
    """Return the words that have the parts of one, the nearest first, and then the shortest."""
    parts = split_parts(word)
    if not parts:
        return []
    ranked = []
    for other in others:
        parts_of_other = split_parts(other)
        rank = _rank_parts(parts, parts_of_other)
        if rank is not None:
            ranked.append((rank, len(parts_of_other), other))
    return [other for _, _, other in sorted(ranked)]


def _spell(word: str) -> str:
    """Return the parts of a word as one; a word of signs alone has none."""
    return "".join(split_parts(word)) or word.casefold()


def has_in_a_row(word: str, other: str) -> bool:
    """Return whether a name has the parts of a word in a row, at least two, as `NVIDIA H200-SXM5`
    those of `h200`.
    """
    parts = split_parts(word)
    return len(parts) > 1 and _rank_parts(parts, split_parts(other)) in (BEGINS, CONTAINS)


def _rank_parts(parts: tuple[str, ...], other: tuple[str, ...]) -> int | None:
    """Return how well a name fits, None if it does not."""
    text = "".join(parts)
    whole = "".join(other)
    if text == whole:
        return SAME
    borders = {0, *accumulate(map(len, other))}  # of the parts in the whole
    start = whole.find(text)
    while start >= 0:
        stop = start + len(text)
        if start in borders and stop in borders:
            return CONTAINS if start else BEGINS
        start = whole.find(text, start + 1)
    if len(parts) > 1 and set(parts).issubset(other):
        return SCATTERED
    return None


def describe_unknown_columns(names: Iterable[str], known: Sequence[str]) -> str:
    """Describe the unknown columns of a file, each with its new name or the nearest known one."""
    texts = []
    for name in dict.fromkeys(name[:MAX_NAME] for name in names):
        hint = describe_column(name, "results", known)
        nearest = find_nearest_words(name, known, 1)
        if nearest and not hint:
            hint = f"nearest: {nearest[0]}"
        texts.append(f"{name!r} ({hint})" if hint else repr(name))
    return f"unknown columns: {', '.join(texts)}"


def format_count(count: int, noun: str) -> str:
    """Format a number of things: `1 row`, `2,000 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def collect_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises ValueError for a repeated key."""
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise ValueError(f"key {key[:40]!r} occurs twice in one object")
        fields[key] = value
    return fields


def refuse_constant(name: str) -> Any:
    """Refuse NaN and Infinity, which are not JSON. Raises ValueError."""
    raise ValueError(f"{name} is not a number")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML of a stranger.

    Raises ValueError, also for a text that tomllib would take hours for.
    """
    if len(text) > MAX_TOML_CHARACTERS:
        raise ValueError(f"it has more than {MAX_TOML_CHARACTERS:,} characters")
    for line in text.split("\n"):
        if line.count(".") > MAX_TOML_DOTS:
            raise ValueError(f"a line of it has more than {MAX_TOML_DOTS:,} points")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def split_settings(texts: Iterable[str], form: str) -> dict[str, str]:
    """Split texts such as `clock=1.5e9` at the first `=`.

    Raises ValueError for a text without name or value, which is not of this form, and for a name
    that is set twice.
    """
    settings: dict[str, str] = {}
    for text in texts:
        name, _, value = map(str.strip, text.partition("="))
        if not (name and value):
            raise ValueError(f"{text} is not {form}")
        if name in settings:
            raise ValueError(f"{name} is set twice")
        settings[name] = value
    return settings


def to_json_value(value: Any) -> Any:
    """Convert a value for JSON: dates to ISO text, bytes to hex, decimals to numbers, NaN and
    infinity to null.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (list, tuple)):
        return list(map(to_json_value, value))
    if isinstance(value, dict):
        return {str(key): to_json_value(item) for key, item in value.items()}
    return str(value)


def _format_value(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (list, tuple)):
        value = [trim_noise(item) if isinstance(item, float) else item for item in value]
    return escape_unprintable(str(to_json_value(value)))


SPECIAL = re.compile(r"([\\`*\[\]|~]|(?<!\w)_|_(?!\w))")


def escape_markdown(value: Any) -> str:
    """Return a value as one line that no reader of Markdown takes for markup; null is empty."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    one_line = " ".join(str(value).split())
    escaped = one_line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return SPECIAL.sub(r"\\\1", escaped)


def format_code(name: str) -> str:
    """Return the name of a table or column as code."""
    return f"`{name}`"


def format_markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table with every cell escaped, except those that `format_code` made."""
    lines = [header, ["---"] * len(header)]
    for row in rows:
        lines.append(list(map(_format_cell, row)))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _format_cell(value: Any) -> str:
    is_code = isinstance(value, str) and re.fullmatch(r"`[\w.-]+`", value)
    return str(value) if is_code else escape_markdown(value)
