"""Downloads one catalogued document, or leaves everything as it was.

The answer is checked (status, host, type, size, first bytes) while it is written to `<destination>.part`, which becomes
the destination only once it is complete. What may pass by itself is tried again, with growing pauses.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urljoin

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.util import Url, parse_url

from pipeline.errors import FetchError

Progress = Callable[[int, int | None], None]

USER_AGENT = "ipu-results (the verified record of published IPU benchmark results)"
KINDS = {  # what the catalogue expects: the types a server may give it, how it starts (in its first HEAD_BYTES)
    "text/html": ({"text/html", "application/xhtml+xml"}, rb"(?is)(?!%PDF-).*?<(!doctype|html|head|body|table)\b"),
    "application/pdf": ({"application/pdf"}, rb"%PDF-"),
    "text/plain": ({"text/plain"}, rb""),
    "text/markdown": ({"text/markdown", "text/plain"}, rb""),
    "text/csv": ({"text/csv"}, rb""),
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


class _Fault(Exception):
    def __init__(self, message: str, *, retry: bool = False, wait: float = 0.0) -> None:
        super().__init__(message)
        self.retry = retry
        self.wait = wait


@dataclass(frozen=True, slots=True)
class _Order:
    destination: Path
    media_type: str
    max_bytes: int
    timeout: float
    ends_at: float
    progress: Progress | None

    def left(self) -> float:
        return self.ends_at - time.monotonic()

    def check_size(self, size: int) -> None:
        if size > self.max_bytes:
            raise _Fault(f"larger than the limit of {self.max_bytes} bytes")


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
    order = _Order(destination, media_type, max_bytes, timeout, time.monotonic() + deadline, progress)
    attempt = 0
    try:
        target = _checked(url, order)
        with _session(order) as session:
            for attempt in range(1, retries + 1):
                try:
                    return _attempt(session, url, target, order)
                except _Fault as fault:
                    _pause(fault, backoff * 2 ** (attempt - 1), order)
            attempt += 1
            return _attempt(session, url, target, order)
    except _Fault as fault:
        late = "" if order.left() > 0 else f"not done within {deadline:g} s: "
        attempts = "1 attempt" if attempt == 1 else f"{attempt} attempts"
        raise FetchError(f"{late}{fault} (after {attempts})", document=_place(url)) from fault


def _checked(url: str, order: _Order) -> Url:
    if order.media_type not in KINDS:
        raise _Fault(f"{_clean(order.media_type)} is not a type that can be downloaded")
    if os.path.lexists(order.destination):
        raise _Fault(f"{order.destination.name} exists already")
    return _parsed(url)


def _parsed(url: str) -> Url:
    with suppress(urllib3.exceptions.LocationParseError):
        parts = parse_url(url)
        if parts.auth is not None:
            raise _Fault("a url with credentials is refused")
        if parts.scheme in DEFAULT_PORTS and parts.host:
            return parts._replace(fragment=None)
    raise _Fault("not an http or https url")


def _place(url: str) -> str | None:
    with suppress(urllib3.exceptions.LocationParseError):
        parts = parse_url(url)
        return f"{parts.host or ''}{parts.path or ''}" or None
    return None


def _clean(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)[:120].strip().lower()


def _pause(fault: _Fault, backoff: float, order: _Order) -> None:
    seconds = min(max(backoff, fault.wait), MAX_WAIT)
    if not fault.retry or order.left() <= 0:
        raise fault
    if seconds >= order.left():
        raise _Fault(f"{fault}, and no time is left to wait {seconds:g} s") from fault
    time.sleep(seconds)


@contextmanager
def _session(order: _Order) -> Iterator[requests.Session]:
    adapter, over = _Adapter(), threading.Event()
    watcher = threading.Thread(target=adapter.cut_when_late, args=(order, over), daemon=True)
    with _Session() as session:
        session.headers.update({"User-Agent": USER_AGENT, "Accept-Encoding": "identity"})
        session.auth = lambda request: request  # or an entry in a netrc file would be sent
        session.mount("http://", adapter)
        session.mount("https://", adapter)
        watcher.start()
        try:
            yield session
        finally:
            over.set()
            watcher.join()


class _Session(requests.Session):
    """Leaves redirects alone: even unfollowed, the usual session reads their whole body."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        del resp


class _Adapter(HTTPAdapter):
    """Knows the sockets it opened: a timeout alone never ends a server that sends a byte now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.sockets: list[Any] = []

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> urllib3.HTTPConnectionPool:
        pool = super().get_connection_with_tls_context(*args, **kwargs)
        usual: Any = type(pool).ConnectionCls
        sockets = self.sockets

        class Watched(usual):  # type: ignore[misc]
            def connect(self) -> None:
                super().connect()
                sockets.append(self.sock)

        pool.ConnectionCls = Watched
        return pool

    def close(self) -> None:
        super().close()
        for opened in self.sockets:
            opened.close()

    def cut_when_late(self, order: _Order, over: threading.Event) -> None:
        while not over.wait(0.05):
            for opened in list(self.sockets) if order.left() <= 0 else ():
                with suppress(OSError, TypeError):
                    socket.socket.shutdown(opened, socket.SHUT_RDWR)


@contextmanager
def _fault(what: str, *, retry: bool) -> Iterator[None]:
    try:
        yield
    except (OSError, urllib3.exceptions.HTTPError) as error:
        cause = _innermost(error)
        reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        hopeless = isinstance(cause, ValueError)  # an impossible address, a refused certificate
        raise _Fault(f"{what}: {_clean(reason)}", retry=retry and not hopeless) from error


def _innermost(error: BaseException) -> BaseException:
    nearer = (getattr(error, "reason", None), *error.args, error.__cause__)
    cause = next((each for each in nearer if isinstance(each, BaseException)), None)
    return _innermost(cause) if cause else error


def _attempt(session: requests.Session, url: str, target: Url, order: _Order) -> Download:
    seen = {target.url}
    for _ in range(MAX_REDIRECTS + 1):
        with closing(_get(session, target, order)) as response:
            following = _redirect(response, target)
            if following is None:
                sha256, size = _keep(response, order)
                kind, now = response.headers["Content-Type"], datetime.now(UTC).replace(microsecond=0)
                return Download(url, target.url, kind, order.destination, sha256, size, now)
        if following.url in seen:
            raise _Fault("redirects in a loop")
        seen.add(following.url)
        target = following
    raise _Fault(f"more than {MAX_REDIRECTS} redirects")


def _get(session: requests.Session, target: Url, order: _Order) -> requests.Response:
    timeout = min(order.timeout, order.left())
    if timeout <= 0:
        raise _Fault("no time is left")
    with _fault("the request failed", retry=True):
        return session.get(target.url, stream=True, allow_redirects=False, timeout=timeout)


def _redirect(response: requests.Response, old: Url) -> Url | None:
    if not response.is_redirect:
        return None
    try:
        new = _parsed(urljoin(old.url, response.headers["Location"].encode("latin-1").decode()))
    except ValueError as error:
        raise _Fault("redirects to an unreadable address") from error
    ports = [DEFAULT_PORTS[str(each.scheme)] if each.port is None else each.port for each in (old, new)]
    secured = (old.scheme, new.scheme) == ("http", "https")
    same_port = ports[0] == ports[1] or (secured and ports == [80, 443])
    if old.host != new.host or not same_port or not (secured or old.scheme == new.scheme):
        raise _Fault(f"redirects to another place, {new.scheme}://{new.netloc}")
    return new


def _keep(response: requests.Response, order: _Order) -> tuple[str, int]:
    status, headers = response.status_code, response.headers
    if status != 200:
        retry = status == 429 or status >= 500
        raise _Fault(f"answered {status}", retry=retry, wait=_seconds(headers.get("Retry-After", "")))
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind not in KINDS[order.media_type][0]:
        raise _Fault(f"came as {_clean(kind) or 'no type'}, not as {order.media_type}")
    encoding = headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip"):
        raise _Fault(f"came in the encoding {_clean(encoding)}")
    order.check_size(response.raw.length_remaining or 0)
    with _published(order.destination) as file:
        return _receive(response, file, order, gzip=encoding == "gzip")


def _seconds(retry_after: str) -> float:
    if re.fullmatch(r"[0-9]{1,9}", retry_after.strip()):
        return float(retry_after)
    with suppress(ValueError, OverflowError):
        return parsedate_to_datetime(retry_after).timestamp() - time.time()
    return 0.0


def _receive(response: requests.Response, file: BinaryIO, order: _Order, *, gzip: bool) -> tuple[str, int]:
    total = None if gzip else response.raw.length_remaining
    digest, size, head = hashlib.sha256(), 0, b""
    chunks = _raw(response, order)
    for chunk in _inflated(chunks, order.max_bytes) if gzip else chunks:
        size += len(chunk)
        order.check_size(size)
        if b"\0" in chunk and not KINDS[order.media_type][1]:
            raise _Fault(f"came as {order.media_type} but has nul bytes")
        with _fault("cannot write", retry=False):
            file.write(chunk)
        digest.update(chunk)
        head += chunk[: HEAD_BYTES - len(head)]
        if order.progress:
            order.progress(size, total)
    if not size:
        raise _Fault("came empty")
    if not re.match(KINDS[order.media_type][1], head):
        raise _Fault(f"came as {order.media_type} but does not start as one")
    return digest.hexdigest(), size


def _raw(response: requests.Response, order: _Order) -> Iterator[bytes]:
    size, chunk = 0, b"-"
    while chunk and order.left() > 0:
        with _fault("the body broke off", retry=True):
            chunk = response.raw.read1(CHUNK_BYTES, decode_content=False)
        size += len(chunk)
        order.check_size(size)
        yield chunk
    if order.left() <= 0:
        raise _Fault("the body did not end")


def _inflated(chunks: Iterator[bytes], limit: int) -> Iterator[bytes]:
    inflate = zlib.decompressobj(wbits=31)
    for chunk in chunks:
        try:
            yield inflate.decompress(chunk, limit + 1)
        except zlib.error as error:
            raise _Fault("the body is damaged gzip", retry=True) from error
    if not inflate.eof or inflate.unused_data:
        raise _Fault("the body is truncated gzip", retry=True)


@contextmanager
def _published(destination: Path) -> Iterator[BinaryIO]:
    part = destination.with_name(f"{destination.name}.part")
    with _fault("cannot write", retry=False):
        part.unlink(missing_ok=True)
        file = part.open("xb")
    try:
        yield file
        with _fault("cannot write", retry=False):
            file.flush()
            os.fsync(file.fileno())
            if not _is(part, file):
                raise _Fault("another download of the same document began")
            if os.path.lexists(destination):
                raise _Fault(f"{destination.name} exists already")
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
