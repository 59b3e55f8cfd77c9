"""Downloads one catalogued document, or leaves everything as it was.

The answer is checked (status, host, type, size, first bytes) while it is written to `<destination>.part`, which becomes
the destination only once it is complete. What may pass by itself is tried again, with growing pauses.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urljoin

import requests
import urllib3
from urllib3.util import Url, parse_url

from ipu_results.errors import FetchError
from ipu_results.sources.capture.transport import Fault, Order, Progress, cleaned, faults_told, get, session_for

KINDS = {  # what the catalogue expects: the types a server may give it, how it starts (in its first HEAD_BYTES)
    "text/html": ({"text/html", "application/xhtml+xml"}, rb"(?is)(?!%PDF-).*?<(!doctype|html|head|body|table)\b"),
    "application/pdf": ({"application/pdf"}, rb"%PDF-"),
    "text/plain": ({"text/plain"}, rb""),
    "text/markdown": ({"text/markdown", "text/plain"}, rb""),
    "text/csv": ({"text/csv", "text/plain"}, rb""),
}
DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_REDIRECTS = 5
MAX_WAIT = 60.0
CHUNK_BYTES = 65536
HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Download:
    """What was asked for and what came: content_type as the server sent it, charset included; sha256 and size of the
    file as written, after any decompression; retrieved_at aware, in UTC, to the second.
    """

    url: str
    final_url: str
    content_type: str
    path: Path
    sha256: str
    size: int
    retrieved_at: datetime


def download(
    url: str,
    destination: Path,
    *,
    media_type: str,
    max_bytes: int,
    timeout: float = 30.0,
    deadline: float = 300.0,
    retries: int = 4,
    backoff: float = 0.5,
    progress: Progress | None = None,
) -> Download:
    """Fetches url into destination, whose folder must exist and which must not.

    timeout is seconds of silence, deadline seconds for everything, pauses and retries included. progress is called with
    the bytes written so far and the total where known, and starts anew with each attempt. Raises FetchError.
    """
    order = Order(destination, media_type, max_bytes, timeout, time.monotonic() + deadline, progress)
    attempt = 0
    try:
        target = _checked(url, order)
        with session_for(order) as session:
            for attempt in range(1, retries + 1):
                try:
                    return _attempt(session, url, target, order)
                except Fault as fault:
                    _pause(fault, backoff * 2 ** (attempt - 1), order)
            attempt += 1
            return _attempt(session, url, target, order)
    except Fault as fault:
        late = "" if order.left() > 0 else f"not done within {deadline:g} s: "
        tried = f" (after {attempt} attempt{'' if attempt == 1 else 's'})" if attempt else ""
        raise FetchError(f"{late}{fault}{tried}", document=_place(url)) from fault


def _checked(url: str, order: Order) -> Url:
    if order.media_type not in KINDS:
        raise Fault(f"{cleaned(order.media_type)} is not a type that can be downloaded")
    if os.path.lexists(order.destination):
        raise Fault(f"{order.destination.name} exists already")
    return _parsed(url)


def _parsed(url: str) -> Url:
    with suppress(urllib3.exceptions.LocationParseError):
        parts = parse_url(url)
        if parts.auth is not None:
            raise Fault("a url with credentials is refused")
        if parts.scheme in DEFAULT_PORTS and parts.host:
            return parts._replace(path=parts.path or "/", fragment=None)
    raise Fault("not an http or https url")


def _place(url: str) -> str | None:
    with suppress(urllib3.exceptions.LocationParseError):
        parts = parse_url(url)
        return f"{parts.host or ''}{parts.path or ''}" or None
    return None


def _pause(fault: Fault, backoff: float, order: Order) -> None:
    seconds = min(max(backoff, fault.wait), MAX_WAIT)
    if not fault.retry or order.left() <= 0:
        raise fault
    if seconds >= order.left():
        raise Fault(f"{fault}, and no time is left to wait {seconds:g} s") from fault
    time.sleep(seconds)


def _attempt(session: requests.Session, url: str, target: Url, order: Order) -> Download:
    seen = {target.url}
    for _ in range(MAX_REDIRECTS + 1):
        with closing(get(session, target, order)) as response:
            following = _redirect(response, target)
            if following is None:
                sha256, size = _keep(response, order)
                kind, now = response.headers["Content-Type"], datetime.now(UTC).replace(microsecond=0)
                return Download(url, target.url, kind, order.destination, sha256, size, now)
        if following.url in seen:
            raise Fault("redirects in a loop")
        seen.add(following.url)
        target = following
    raise Fault(f"more than {MAX_REDIRECTS} redirects")


def _redirect(response: requests.Response, old: Url) -> Url | None:
    if not response.is_redirect:
        return None
    try:
        new = _parsed(urljoin(old.url, response.headers["Location"].encode("latin-1").decode()))
    except ValueError as error:
        raise Fault("redirects to an unreadable address") from error
    ports = [DEFAULT_PORTS[str(each.scheme)] if each.port is None else each.port for each in (old, new)]
    secured = (old.scheme, new.scheme) == ("http", "https")
    same_port = ports[0] == ports[1] or (secured and ports == [80, 443])
    if old.host != new.host or not same_port or not (secured or old.scheme == new.scheme):
        raise Fault(f"redirects to another place, {new.scheme}://{new.netloc}")
    return new


def _keep(response: requests.Response, order: Order) -> tuple[str, int]:
    status, headers = response.status_code, response.headers
    if status != 200:
        retry = status == 429 or status >= 500
        raise Fault(f"answered {status}", retry=retry, wait=_seconds(headers.get("Retry-After", "")))
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind not in KINDS[order.media_type][0]:
        raise Fault(f"came as {cleaned(kind) or 'no type'}, not as {order.media_type}")
    encoding = headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip"):
        raise Fault(f"came in the encoding {cleaned(encoding)}")
    order.check_size(response.raw.length_remaining or 0)
    with _published(order.destination) as file:
        return _receive(response, file, order, gzip=encoding == "gzip")


def _seconds(retry_after: str) -> float:
    if re.fullmatch(r"[0-9]{1,9}", retry_after.strip()):
        return float(retry_after)
    with suppress(ValueError, OverflowError):
        return parsedate_to_datetime(retry_after).timestamp() - time.time()
    return 0.0


def _receive(response: requests.Response, file: BinaryIO, order: Order, *, gzip: bool) -> tuple[str, int]:
    total = None if gzip else response.raw.length_remaining
    digest, size, head = hashlib.sha256(), 0, b""
    chunks = _raw(response, order)
    for chunk in _inflated(chunks, order.max_bytes) if gzip else chunks:
        size += len(chunk)
        order.check_size(size)
        if b"\0" in chunk and not KINDS[order.media_type][1]:
            raise Fault(f"came as {order.media_type} but has nul bytes")
        with faults_told("cannot write", retry=False):
            file.write(chunk)
        digest.update(chunk)
        head += chunk[: HEAD_BYTES - len(head)]
        if order.progress:
            order.progress(size, total)
    if not size:
        raise Fault("came empty")
    if not re.match(KINDS[order.media_type][1], head):
        raise Fault(f"came as {order.media_type} but does not start as one")
    return digest.hexdigest(), size


def _raw(response: requests.Response, order: Order) -> Iterator[bytes]:
    size, chunk = 0, b"-"
    while chunk and order.left() > 0:
        with faults_told("the body broke off", retry=True):
            chunk = response.raw.read1(CHUNK_BYTES, decode_content=False)
        size += len(chunk)
        order.check_size(size)
        yield chunk
    if order.left() <= 0:
        raise Fault("the body did not end")


def _inflated(chunks: Iterator[bytes], limit: int) -> Iterator[bytes]:
    inflate = zlib.decompressobj(wbits=31)
    for chunk in chunks:
        try:
            yield inflate.decompress(chunk, limit + 1)
        except zlib.error as error:
            raise Fault("the body is damaged gzip", retry=True) from error
    if not inflate.eof or inflate.unused_data:
        raise Fault("the body is truncated gzip", retry=True)


@contextmanager
def _published(destination: Path) -> Iterator[BinaryIO]:
    part = destination.with_name(f"{destination.name}.part")
    with faults_told("cannot write", retry=False):
        part.unlink(missing_ok=True)
        file = part.open("xb")
    try:
        yield file
        with faults_told("cannot write", retry=False):
            file.flush()
            os.fsync(file.fileno())
            if not _is(part, file):
                raise Fault("another download of the same document began")
            if os.path.lexists(destination):
                raise Fault(f"{destination.name} exists already")
            os.replace(part, destination)
    except BaseException:
        with suppress(OSError):
            if _is(part, file):
                part.unlink()
        raise
    finally:
        with suppress(OSError):
            file.close()


def _is(path: Path, file: BinaryIO) -> bool:
    return path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno()))
