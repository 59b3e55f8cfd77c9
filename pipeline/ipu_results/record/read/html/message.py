"""Unpack the page in an MHTML file or an e-mail, as browsers save pages."""

from __future__ import annotations

import re
from email import message_from_bytes
from email.message import Message
from typing import NamedTuple

from ipu_results.errors import DamagedDocumentError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HEADER_LINE = re.compile(rb"(?:[!-9;-~]+:[^\r\n]*|[ \t]+\S[^\r\n]*|From [^\r\n]*)\r?\n")
MAIL_FIELDS = re.compile(
    rb"^(?:mime-version|content-type|content-transfer-encoding)[ \t]*:", re.I | re.M
)
MAX_HEADER_BYTES = 100_000  # of an e-mail; what is longer is another file
PAGE_TYPES = ("text/html", "application/xhtml+xml")
ENCODINGS = ("quoted-printable", "base64", "7bit", "8bit", "binary")
BAD_ESCAPE = re.compile(r"=(?![0-9A-Fa-f]{2}|[ \t]*\r?\n|[ \t]*\Z).{0,2}", re.S)
TABLE = re.compile(rb"<table\b", re.I)


class SavedPage(NamedTuple):
    """A page of a message, and the encoding that its part states."""

    data: bytes
    charset: str | None


def is_message(data: bytes) -> bool:
    """Check whether a document begins with the header of an e-mail, as MHTML does too."""
    start = data[:MAX_HEADER_BYTES].removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n")
    end = 0
    while match := HEADER_LINE.match(start, end):
        end = match.end()
    return MAIL_FIELDS.search(start[:end]) is not None


def unpack_message(data: bytes) -> SavedPage:
    """Return the page in a message for which `is_message` holds.

    Raises DamagedDocumentError for a message that is cut off or badly encoded, that has no page, or
    that has tables in several pages.
    """
    message = message_from_bytes(data.removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n"))
    parts = [part for part in message.walk() if part.get_content_type() in PAGE_TYPES]
    if not parts:
        raise DamagedDocumentError("is an e-mail or saved page without an HTML part")
    # the library notes the defects of a part when it decodes it
    pages = [SavedPage(_decode_part(part), part.get_content_charset()) for part in parts]
    for part in (message, *parts):
        if part.defects:
            defect = type(part.defects[0]).__name__
            raise DamagedDocumentError(f"is a saved page that is damaged: {defect}")
    with_tables = [page for page in pages if TABLE.search(page.data)]
    if len(with_tables) > 1:
        raise DamagedDocumentError(
            f"has tables in {len(with_tables)} pages: save the frame with the table alone"
        )
    return (with_tables or pages)[0]


def _decode_part(part: Message) -> bytes:
    """Decode a part; the library notes a defect in what is not base64, and passes over the rest."""
    encoding = str(part.get("Content-Transfer-Encoding", "7bit")).strip().lower()
    if encoding not in ENCODINGS:
        raise DamagedDocumentError(f"is a saved page in an unknown encoding {encoding!r}")
    if encoding == "quoted-printable":
        bad = BAD_ESCAPE.search(str(part.get_payload()))
        if bad:
            raise DamagedDocumentError(
                f"is a saved page that is damaged: {bad[0]!r} is not quoted-printable"
            )
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""
