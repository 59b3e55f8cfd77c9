"""Turn bytes into text, and text into cells: what every reader cleans in the same way."""

from __future__ import annotations

import codecs
import re
import unicodedata

from ipu_results.errors import DamagedDocumentError

ZERO_WIDTH = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f"))
BLANKS = re.compile(r"\s+")
MARKS = "*†‡§¶⁎∗¹²³⁰⁴-⁹"  # inside of a character class
MARK_CHARACTERS = frozenset(char for char in map(chr, range(0x2300)) if re.fullmatch(f"[{MARKS}]", char))
TRAILING_MARKS = re.compile(rf"(?<=[^\s{MARKS}])\s*([{MARKS}][{MARKS}\s]*)$")
POWER_BASE = re.compile(r"(?:(?:^|[^\d.,])10|^2)[⁺⁻]?$")
EXPONENT = re.compile(r"[-+−]?[\d⁰¹²³⁴-⁹]+")
# Encodings of web pages. Python knows others, such as punycode, in which no page is written.
WEB_ENCODING = re.compile(r"cp(?:125\d|874)|iso8859-\d+|koi8-[ru]|gb(?:k|2312|18030)|big5|euc_(?:jp|kr)|shift_jis")
MAX_CONTROL_SHARE = 0.01
CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")  # but tab, line and page breaks, and escape
CONTROL_SAMPLE = 100_000


def clean(raw: str) -> str:
    """Return the text of a cell: no zero-width characters, blanks of any kind collapsed and trimmed, in NFC."""
    if raw.isascii():
        return " ".join(raw.split())
    return BLANKS.sub(" ", unicodedata.normalize("NFC", raw).translate(ZERO_WIDTH)).strip()


def lift_footnote(text: str) -> tuple[str, str]:
    """Split trailing footnote marks off a cell: `'37,112*'` becomes `('37,112', '*')`; `'10⁶'` is a power."""
    match = TRAILING_MARKS.search(text) if text[-1:] in MARK_CHARACTERS else None
    if match is None or is_power(text[: match.start(1)], match[1]):
        return text, ""
    return text[: match.start()], match[1]


def is_power(base: str, raised: str) -> bool:
    """Check whether digits raised after `base` are an exponent. No one prints a first power, so a 1 is a footnote."""
    return raised not in ("1", "¹") and POWER_BASE.search(base) is not None and EXPONENT.fullmatch(raised) is not None


def decode(data: bytes, declared: str | None = None) -> str:
    """Decode a document: UTF-8 (with or without a BOM), UTF-16 with a BOM, or the encoding that it declares.

    Raises DamagedDocumentError for an empty document, for binary data and for bytes that fit none of these encodings.
    """
    if not data.strip():
        raise DamagedDocumentError("is empty")
    encodings = ["utf-16"] if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ["utf-8-sig", *_web_encoding(declared or "")]
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


def _web_encoding(declared: str) -> list[str]:
    """Return the encoding that browsers use for a declared one: ASCII and Latin-1 mean windows-1252."""
    try:
        name = codecs.lookup(declared).name
    except LookupError:
        return []
    if name in ("ascii", "iso8859-1"):
        return ["cp1252"]
    return [name] if WEB_ENCODING.fullmatch(name) else []
