"""Turn bytes into text, and text into cells: what every reader cleans in the same way."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import multimode

from ipu_results.errors import DamagedDocumentError
from ipu_results.record.read.document import ParsedDocument, ReadProblem
from ipu_results.record.read.figures import is_power
from ipu_results.schema.vocabulary import TableHeader, normalise_header

ZERO_WIDTH = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f"))
MARKS = "*†‡§¶⁎∗¹²³⁰⁴-⁹"  # inside of a character class
MARK_CHARACTERS = frozenset(
    char for char in map(chr, range(0x2300)) if re.fullmatch(f"[{MARKS}]", char)
)
TRAILING_MARKS = re.compile(rf"(?<=[^\s{MARKS}])\s*([{MARKS}][{MARKS}\s]*)$")
# Encodings of web pages. Python knows others, such as punycode, in which no page is written.
WEB_ENCODING = re.compile(
    r"cp(?:125\d|874)|iso8859-\d+|koi8-[ru]|gb(?:k|2312|18030)|big5|euc_(?:jp|kr)|shift_jis"
)
MAX_CONTROL_SHARE = 0.01  # of the characters of a text; binary data has far more
# but tab, line and page breaks, and escape
CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
CONTROL_SAMPLE = 100_000  # characters at the start of a document that are searched for them
METADATA_LABELS = (
    "Platform,Chips,SDK version,Framework,Model,Precision,Dataset,Images,Batch per chip".split(",")
)
# Fields that label a row: a row without its label is readable, one without its figure is not.
LABEL_FIELDS = frozenset({"batch_size"})
# fields that performance pages leave blank where a model has none
BLANK_FIELDS = frozenset({"variant", "dataset"})
# ff fi fl ffi ffl st
LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
CAPTION = re.compile(r"table\s+(?:\d+|[ivxl]+)\s*(?:[.:|–—-]|$)", re.IGNORECASE)
CAPTION_NUMBER = re.compile(r"table\s+(?:\d+|[ivxl]+)\s*[.:]?$", re.IGNORECASE)
METADATA = re.compile(rf"({'|'.join(map(re.escape, METADATA_LABELS))})\s*:\s*(.*)", re.IGNORECASE)
POINT_LANGUAGES = frozenset("en zh ja ko th he hi bn ur ms fil ga cy".split())
NOT_WORDS = re.compile(r"[\W_]+")
HYPHENATED = re.compile(r"(?<=[^\W\d_])-$")

MIN_LETTERS = 3  # a column name that a caption mentions has at least this many letters


def clean(raw: str) -> str:
    """Return the text of a cell: blanks of any kind collapsed and trimmed, in NFC, without
    zero-width characters but those in a figure, which may stand for a mark of it.
    """
    if raw.isascii():
        return " ".join(raw.split())
    words = unicodedata.normalize("NFC", raw).split()
    return " ".join(filter(None, map(_drop_zero_width, words)))


def _drop_zero_width(word: str) -> str:
    shown = word.translate(ZERO_WIDTH)
    is_name = shown[:1].isalpha() or not any(map(str.isdigit, shown))
    return shown if is_name else word


def lift_footnote(text: str) -> tuple[str, str]:
    """Split trailing footnote marks off a cell: `'37,112*'` becomes `('37,112', '*')`; `'10⁶'` is a
    power.
    """
    match = TRAILING_MARKS.search(text) if text[-1:] in MARK_CHARACTERS else None
    if match is None or is_power(text[: match.start(1)], match[1]):
        return text, ""
    return text[: match.start()], match[1]


def clean_cell(raw: str) -> str:
    """Return the text of a cell without its footnote marks."""
    return lift_footnote(clean(raw))[0]


def decode(data: bytes, declared: str | None = None) -> str:
    """Decode a document: UTF-8 (with or without a BOM), UTF-16 with a BOM, or the encoding that it
    declares.

    Raises DamagedDocumentError for an empty document, for binary data and for bytes that fit none
    of these encodings.
    """
    if not data.strip():
        raise DamagedDocumentError("is empty")
    has_mark = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    for encoding in ["utf-16"] if has_mark else ["utf-8-sig", *_web_encoding(declared or "")]:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        sample = text[:CONTROL_SAMPLE]
        if len(CONTROL.findall(sample)) > MAX_CONTROL_SHARE * len(sample):
            raise DamagedDocumentError("is not text: binary data")
        return text
    raise DamagedDocumentError("is not text in UTF-8 or in an encoding that it declares")


def _web_encoding(declared: str) -> list[str]:
    """Return the encoding that browsers use for a declared one: ASCII and Latin-1 mean
    windows-1252.
    """
    try:
        name = codecs.lookup(declared).name
    except LookupError:
        return []
    if name in ("ascii", "iso8859-1"):
        return ["cp1252"]
    return [name] if WEB_ENCODING.fullmatch(name) else []


CaptionOffer = tuple[bool, float, int, int]
"""Whether the caption does not name the table's measure, distance, number of the table, number of
the caption.
"""


def spell_out(raw: str) -> str:
    """Clean text and spell out its ligatures; superscripts and the like stay as they are."""
    return clean(raw.translate(LIGATURES))


def normalise_text(text: str) -> str:
    """Return text in the form in which header names are compared."""
    return normalise_header(spell_out(text))


def is_caption(text: str) -> bool:
    return CAPTION.match(text) is not None


def join_lines(lines: Iterable[str]) -> str:
    """Join set lines to one text; a word hyphenated at the end of a line becomes whole."""
    text = ""
    for line in lines:
        broken = HYPHENATED.search(text) and line[:1].islower()
        text = text[:-1] + line if broken else f"{text} {line}".strip()
    return text


def split_metadata(line: str) -> tuple[str, str] | None:
    """Split `Label: value` if the label is a known one, and spell it as in METADATA_LABELS."""
    match = METADATA.match(line)
    if match is None or not match[2]:
        return None
    label = next(label for label in METADATA_LABELS if label.casefold() == match[1].casefold())
    return label, match[2]


def known_names(headers: Iterable[TableHeader]) -> frozenset[str]:
    """Return all header names, normalised."""
    return frozenset().union(*(header.keys for header in headers))


def mentions_measure(caption: str, header: TableHeader, headers: Sequence[TableHeader]) -> bool:
    """Check whether a caption has a column name that only `header` has, and that is not short: "is"
    may be a word.
    """
    text = NOT_WORDS.sub(" ", f" {caption} ").casefold()
    distinctive = header.keys - known_names(other for other in headers if other is not header)
    return any(
        f" {name} " in text for name in distinctive if sum(map(str.isalpha, name)) >= MIN_LETTERS
    )


def assign_captions(offers: Iterable[CaptionOffer]) -> dict[int, int]:
    """Return the caption of each table, the best offer first. No caption is assigned twice."""
    assigned: dict[int, int] = {}
    used: set[int] = set()
    for _, _, table, caption in sorted(offers):
        if table not in assigned and caption not in used:
            assigned[table] = caption
            used.add(caption)
    return assigned


def prints_decimal_points(language: str) -> bool:
    """Check whether numbers in a language, such as "en-GB", have decimal points in general; without
    a language nobody knows.
    """
    return language.casefold().partition("-")[0] in POINT_LANGUAGES


def refuse_incomplete_tables(
    document: ParsedDocument, headers: Iterable[TableHeader]
) -> ParsedDocument:
    """Turn each table that has another number of rows than most of those that it is joined with
    into a problem.

    The tables whose rows are joined list one sweep, so such a table has lost or gained cells. If
    two numbers of rows are equally common, nobody knows which is right.
    """
    joined = {header.table for header in headers if header.joins}
    unread = Counter(
        problem.table_name for problem in document.problems if problem.row_number is not None
    )
    sizes = {
        table.name: len(table.numbers) + unread[table.name]
        for table in document.tables
        if table.name in joined
    }
    usual = multimode(sizes.values())
    kept = []
    problems = [*document.problems]
    for table in document.tables:
        size = sizes.get(table.name)
        if size is None or [size] == usual:
            kept.append(table)
            continue
        message = f"has {size} rows, others {' or '.join(map(str, usual))}"
        problems.append(ReadProblem(table.name, None, table.locator, "cells-missing", message))
    return replace(document, tables=tuple(kept), problems=tuple(problems))
