"""Cleaning shared by the readers: what is not text of a cell, and how bytes become text."""

from __future__ import annotations

import codecs
import re
import unicodedata

from ipu_results.errors import DamagedDocumentError

ZERO_WIDTH = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f"))
BLANKS = re.compile(r"\s+")
SIGNS = "*†‡§¶⁎∗¹²³⁰⁴-⁹"
SIGN = frozenset(char for char in map(chr, range(0x2100)) if re.fullmatch(f"[{SIGNS}]", char)) | {"⁎", "∗"}
TRAILING_MARK = re.compile(rf"(?<=[^\s{SIGNS}])\s*([{SIGNS}][{SIGNS}\s]*)$")
POWER_BASE = re.compile(r"(?:(?:^|[^\d.,])10|^2)[⁺⁻]?$")
EXPONENT = re.compile(r"[-+−]?[\d⁰¹²³⁴-⁹]+")
WEB_ENCODING = re.compile(r"cp(?:125\d|874)|iso8859-\d+|koi8-[ru]|gb(?:k|2312|18030)|big5|euc_(?:jp|kr)|shift_jis")
MAX_CONTROL_SHARE = 0.01


def clean(raw: str) -> str:
    """The text of a cell: no zero-width characters, blanks of any kind collapsed and trimmed, NFC."""
    if raw.isascii():
        return " ".join(raw.split())
    return BLANKS.sub(" ", unicodedata.normalize("NFC", raw).translate(ZERO_WIDTH)).strip()


def lift_mark(text: str) -> tuple[str, str]:
    """Split trailing footnote signs off a cell: `'37,112*'` gives `('37,112', '*')`; `'10⁶'` is a power."""
    found = TRAILING_MARK.search(text) if text[-1:] in SIGN else None
    if found is None or is_power(text[: found.start(1)], found.group(1)):
        return text, ""
    return text[: found.start()], found.group(1)


def is_power(base: str, raised: str) -> bool:
    """Whether digits raised after `base` are an exponent. The first power needs no telling, so a 1 is a footnote."""
    return raised not in ("1", "¹") and POWER_BASE.search(base) is not None and EXPONENT.fullmatch(raised) is not None


def decode(data: bytes, declared: str | None = None) -> str:
    """Text of a document; UTF-8 (with or without a mark), UTF-16 with a mark, or what the document declares.

    Raises DamagedDocumentError for an empty document, for binary noise and for bytes that no encoding explains.
    """
    if not data.strip():
        raise DamagedDocumentError("is empty")
    encodings = ["utf-16"] if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ["utf-8-sig", *_web_encoding(declared or "")]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        control = sum(character < " " and character not in "\t\n\r\f\x1b" for character in text[:100_000])
        if control > MAX_CONTROL_SHARE * min(len(text), 100_000):
            raise DamagedDocumentError("is not text: binary data")
        return text
    raise DamagedDocumentError("is not text in UTF-8 or in an encoding that it declares")


def _web_encoding(declared: str) -> list[str]:
    """The encoding that browsers take a declared one for: ASCII and Latin-1 mean windows-1252."""
    try:
        name = codecs.lookup(declared).name
    except LookupError:
        return []
    if name in ("ascii", "iso8859-1"):
        return ["cp1252"]
    return [name] if WEB_ENCODING.fullmatch(name) else []
