"""Cleaning shared by the readers: what is not text of a cell, and how bytes become text."""

from __future__ import annotations

import re
import unicodedata

from pipeline.errors import DocumentDamaged

ZERO_WIDTH = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f"))
BLANKS = re.compile(r"\s+")
TRAILING_MARK = re.compile(r"(?<=\S)\s*([*†‡§¶⁎∗¹²³⁰⁴-⁹]+)$")
MAX_CONTROL_SHARE = 0.01


def clean(raw: str) -> str:
    """The text of a cell: no zero-width characters, blanks of any kind collapsed and trimmed, NFC."""
    return BLANKS.sub(" ", unicodedata.normalize("NFC", raw).translate(ZERO_WIDTH)).strip()


def lift_mark(text: str) -> tuple[str, str]:
    """Split trailing footnote signs off a cell: `'37,112*'` gives `('37,112', '*')`."""
    found = TRAILING_MARK.search(text)
    return (text[: found.start()], found.group(1)) if found else (text, "")


def decode(data: bytes, declared: str | None = None) -> str:
    """Text of a document; UTF-8 (with or without a mark), UTF-16 with a mark, or what the document declares.

    Raises DocumentDamaged for an empty document, for binary noise and for bytes that no encoding explains.
    """
    if not data.strip():
        raise DocumentDamaged("is empty")
    encodings = (
        ["utf-16"] if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ["utf-8-sig", *([declared] if declared else [])]
    )
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
        control = sum(character < " " and character not in "\t\n\r\f\x1b" for character in text[:100_000])
        if control > MAX_CONTROL_SHARE * min(len(text), 100_000):
            raise DocumentDamaged("is not text: binary data")
        return text
    raise DocumentDamaged("is not text in UTF-8 or in an encoding that it declares")
