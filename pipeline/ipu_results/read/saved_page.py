"""Unpack a web page that a browser saved with its images (MHTML), or that was sent as an e-mail."""

from __future__ import annotations

import binascii
import re
from email import message_from_bytes
from email.message import Message
from typing import NamedTuple

from ipu_results.errors import DamagedDocumentError

HEADER_LINE = re.compile(rb"(?:[!-9;-~]+:[^\r\n]*|[ \t]+\S[^\r\n]*|From [^\r\n]*)\r?\n")
MAIL_FIELDS = re.compile(rb"^(?:mime-version|content-type|content-transfer-encoding)[ \t]*:", re.I | re.M)
MAX_HEADER_BYTES = 100_000
BAD_ESCAPE = re.compile(rb"=(?![0-9A-Fa-f]{2}|[ \t]*\r?\n|[ \t]*\Z)")
TABLE = re.compile(rb"<table\b", re.I)


class SavedPage(NamedTuple):
    """The HTML of a saved page, and the encoding that its header states."""

    data: bytes
    charset: str | None


def is_message(data: bytes) -> bool:
    """Check whether a document begins with the header of an e-mail, as MHTML does too."""
    start = data[:MAX_HEADER_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    end = 0
    while match := HEADER_LINE.match(start, end):
        end = match.end()
    return MAIL_FIELDS.search(start[:end]) is not None


def unpack_saved_page(data: bytes) -> SavedPage:
    """Return the page in a message for which `is_message` holds.

    Raises DamagedDocumentError for a message that is cut off or badly encoded, that has no page, or that has tables in
    several pages.
    """
    message = message_from_bytes(data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n"))
    parts = [part for part in message.walk() if part.get_content_type() in ("text/html", "application/xhtml+xml")]
    for part in (message, *parts):
        if part.defects:
            raise DamagedDocumentError(f"is a saved page that is damaged: {type(part.defects[0]).__name__}")
    if not parts:
        raise DamagedDocumentError("is an e-mail or saved page without an HTML part")
    pages = [_decode_part(part) for part in parts]
    with_tables = [page for page in pages if TABLE.search(page.data)]
    if len(with_tables) > 1:
        raise DamagedDocumentError(f"has tables in {len(with_tables)} pages: save the frame with the table alone")
    return with_tables[0] if with_tables else pages[0]


def _decode_part(part: Message) -> SavedPage:
    encoding = str(part.get("Content-Transfer-Encoding", "7bit")).strip().lower()
    if encoding not in ("quoted-printable", "base64", "7bit", "8bit", "binary"):
        raise DamagedDocumentError(f"is a saved page in an unknown encoding {encoding!r}")
    body = str(part.get_payload()).encode("utf-8", "surrogateescape")
    if encoding == "quoted-printable" and (bad := BAD_ESCAPE.search(body)):
        text = body[bad.start() : bad.start() + 3].decode("utf-8", "replace")
        raise DamagedDocumentError(f"is a saved page that is damaged: {text!r} is not quoted-printable")
    if encoding == "base64":
        try:
            data = binascii.a2b_base64(b"".join(body.split()), strict_mode=True)
        except binascii.Error as error:
            raise DamagedDocumentError(f"is a saved page that is damaged: not base64: {error}") from error
    else:
        payload = part.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
    return SavedPage(data, part.get_content_charset())
