"""Turn bytes into text, and text into cells: what every reader cleans in the same way."""

from __future__ import annotations

import codecs
import re
import unicodedata

from ipu_results.errors import DamagedDocumentError
from ipu_results.record.read.figures import is_power

ZERO_WIDTH = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f"))
MARKS = "*†‡§¶⁎∗⁰¹²³⁴⁵⁶⁷⁸⁹"
TRAILING_MARKS = re.compile(rf"(?<=[^\s{MARKS}])\s*([{MARKS}][{MARKS}\s]*)$")
# Encodings of web pages. Python knows others, such as punycode, in which no page is written.
WEB_ENCODING = re.compile(
    r"cp(?:125\d|874)|iso8859-\d+|koi8-[ru]|gb(?:k|2312|18030)|big5|euc_(?:jp|kr)|shift_jis"
)
MAX_CONTROL_SHARE = 0.01  # of the characters of a text; binary data has far more
# but tab, line and page breaks, and escape
CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
CONTROL_SAMPLE = 100_000  # characters at the start of a document that are searched for them
# ff fi fl ffi ffl st
LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
# Languages whose numbers have decimal points
POINT_LANGUAGES = frozenset("en zh ja ko th he hi bn ur ms fil ga cy".split())


def clean(raw: str) -> str:
    """Return the text of a cell: blanks of any kind collapsed and trimmed, in NFC, without
    zero-width characters but those in a figure, which may stand for a mark of it.
    """
    if raw.isascii():
        return " ".join(raw.split())
    words = map(_drop_zero_width, unicodedata.normalize("NFC", raw).split())
    return " ".join(word for word in words if word)


def _drop_zero_width(word: str) -> str:
    shown = word.translate(ZERO_WIDTH)
    is_name = shown[:1].isalpha() or not any(map(str.isdigit, shown))
    return shown if is_name else word


def spell_out(raw: str) -> str:
    """Clean text and spell out its ligatures; superscripts and the like stay as they are."""
    return clean(raw.translate(LIGATURES))


def lift_footnote(text: str) -> tuple[str, str]:
    """Split trailing footnote marks off a cell: `'37,112*'` becomes `('37,112', '*')`; `'10⁶'` is a
    power.
    """
    # most texts end with no mark, which is quicker to see than to search
    if not text or text[-1] not in MARKS:
        return text, ""
    match = TRAILING_MARKS.search(text)
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
    encodings = ["utf-8-sig", *_find_web_encoding(declared or "")]
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encodings = ["utf-16"]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        sample = text[:CONTROL_SAMPLE]
        if len(CONTROL.findall(sample)) > MAX_CONTROL_SHARE * len(sample):
            raise DamagedDocumentError("is not text: binary data")
        return text
    raise DamagedDocumentError("is not text in UTF-8 or in an encoding that it declares")


def _find_web_encoding(declared: str) -> list[str]:
    """Return the encoding that browsers use for a declared one, if they know it."""
    try:
        name = codecs.lookup(declared).name
    except LookupError:
        return []
    # to a browser, ASCII and Latin-1 mean windows-1252
    if name in ("ascii", "iso8859-1"):
        return ["cp1252"]
    return [name] if WEB_ENCODING.fullmatch(name) else []


def prints_decimal_points(language: str) -> bool:
    """Check whether numbers in a language, such as "en-GB", have decimal points in general; without
    a language nobody knows.
    """
    return language.casefold().partition("-")[0] in POINT_LANGUAGES
