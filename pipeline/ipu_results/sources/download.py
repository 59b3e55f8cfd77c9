"""Download one document over HTTP within a hard total deadline, and check what arrives.

requests sends the requests and urllib3's Retry spaces the attempts. This module adds what they
lack: a deadline for all attempts together, a limit of size, a check of type and first bytes, and
redirects that stay on the host.
"""

from __future__ import annotations

import re
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urljoin

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.util import Retry, Url, parse_url

from ipu_results.errors import FetchError
from ipu_results.ground.limits import MAX_BYTES, MAX_REDIRECTS, MAX_RETRY_WAIT_S
from ipu_results.ground.text import format_count
from ipu_results.sources import RETRIES, TIMEOUT_S


class MediaType(NamedTuple):
    """A type that can be downloaded: the suffix of its files, what a server may call it, and how
    its content starts.

    ANYTHING may have any name and content: whoever downloads it compares its digest.
    """

    suffix: str
    served_as: set[str]
    start: bytes = b""


MEDIA_TYPES = {
    "text/html": MediaType(
        ".html",
        {"text/html", "application/xhtml+xml"},
        rb"(?is)(?!%PDF-).*?<(!doctype|html|head|body|table)\b",
    ),
    "application/pdf": MediaType(".pdf", {"application/pdf"}, rb"%PDF-"),
    "text/plain": MediaType(".txt", {"text/plain"}),
    "text/markdown": MediaType(".txt", {"text/markdown", "text/plain"}),
    "text/csv": MediaType(".csv", {"text/csv", "text/plain"}),
    (ANYTHING := "*/*"): MediaType("", set()),
}
USER_AGENT = "ipu-results (the verified record of published IPU benchmark results)"
CHUNK_BYTES = 65536
HEAD_BYTES = (
    4096  # in which the start of a type is looked for: a saved page may begin with comments
)
GZIP = 31  # zlib's window bits for the gzip format

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class TransferOptions:
    """How long to try, and how much to accept."""

    max_bytes: int = MAX_BYTES
    """Of the document, decompressed."""
    timeout: float = TIMEOUT_S
    """Seconds of silence after which an attempt is given up."""
    retries: int = RETRIES
    deadline: float = 300.0
    """Seconds for everything, pauses and retries included."""
    backoff: float = 0.5
    """Seconds of which the pauses are multiples."""
    progress: Progress = lambda size, total: None  # noqa: ARG005
    """Called with the bytes received so far and the total if known; starts again with each attempt.
    """
    out: BinaryIO | None = None
    """A file to write the document to, which is then not in the memory."""


@dataclass(frozen=True, slots=True)
class Download:
    """A document, decompressed, with its type as the server sent it, charset included; `data` is
    empty if in a file.
    """

    data: bytes
    content_type: str
    retrieved_at: datetime
    """In UTC, to the second."""


class TransferError(Exception):
    """One attempt failed.

    A `transient` failure may pass, after `retry_after` seconds if the server named a time.
    """

    def __init__(self, message: str, *, transient: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after = retry_after


def download(url: str, media_type: str, options: TransferOptions | None = None) -> Download:
    """Download one document.

    Raises FetchError, and OSError where `options.out` cannot be written.
    """
    options = options or TransferOptions()
    ends_at = time.monotonic() + options.deadline
    policy = Retry(options.retries, backoff_factor=options.backoff, backoff_max=MAX_RETRY_WAIT_S)
    attempts = 0
    try:
        if media_type not in MEDIA_TYPES:
            raise TransferError(f"{_printable(media_type)} is not a type that can be downloaded")
        target = _parse_address(url)
        with _open_session(ends_at) as session:
            while True:
                attempts += 1
                try:
                    return _attempt(session, target, media_type, ends_at, options)
                except TransferError as error:
                    policy = _pause(policy, error, ends_at)
    except TransferError as error:
        late = "" if time.monotonic() < ends_at else f"not done within {options.deadline:g} s: "
        count = f" (after {format_count(attempts, 'attempt')})" if attempts else ""
        place = None
        with suppress(
            urllib3.exceptions.LocationParseError
        ):  # host and path alone: a query may hold a secret
            place = f"{parse_url(url).host or ''}{parse_url(url).path or ''}" or None
        raise FetchError(f"{late}{error}{count}", document=place) from error


def _parse_address(url: str) -> Url:
    with suppress(urllib3.exceptions.LocationParseError):
        parts = parse_url(url)
        if parts.auth is not None:
            raise TransferError("a url with credentials is refused")
        if parts.scheme in ("http", "https") and parts.host:
            return parts._replace(path=parts.path or "/", fragment=None)
    raise TransferError("not an http or https url")


def _pause(policy: Retry, error: TransferError, ends_at: float) -> Retry:
    """Wait before the next attempt and count it, or raise the error again if there is none."""
    if not error.transient or time.monotonic() >= ends_at:
        raise error
    try:
        policy = policy.increment(error=error)
    except urllib3.exceptions.MaxRetryError:
        raise error from None
    seconds = min(max(policy.get_backoff_time(), error.retry_after), MAX_RETRY_WAIT_S)
    if seconds >= ends_at - time.monotonic():
        raise TransferError(f"{error}, and no time is left to wait {seconds:g} s") from error
    time.sleep(seconds)
    return policy


def _attempt(
    session: requests.Session,
    target: Url,
    media_type: str,
    ends_at: float,
    options: TransferOptions,
) -> Download:
    for _ in range(MAX_REDIRECTS + 1):
        timeout = min(options.timeout, ends_at - time.monotonic())
        if timeout <= 0:
            raise TransferError("no time is left")
        with _translate_errors("the request failed"):
            response = session.get(target.url, stream=True, allow_redirects=False, timeout=timeout)
        with response:
            if not response.is_redirect:
                _check_headers(response, media_type, options.max_bytes)
                body = options.out or BytesIO()
                _read_body(response, media_type, ends_at, options, body)
                data = body.getvalue() if isinstance(body, BytesIO) else b""
                kind = response.headers.get("Content-Type", "")
                return Download(data, kind, datetime.now(UTC).replace(microsecond=0))
            target = _resolve_redirect(session, response, target)
    raise TransferError(f"more than {MAX_REDIRECTS} redirects")


def _resolve_redirect(session: requests.Session, response: requests.Response, old: Url) -> Url:
    """Return the new address, if requests would send it credentials for the old one: same host, not
    less secure.
    """
    try:
        new = _parse_address(
            urljoin(old.url, requests.Session.get_redirect_target(session, response) or "")
        )
    except ValueError as error:
        raise TransferError("redirects to an unreadable address") from error
    if session.should_strip_auth(old.url, new.url):
        raise TransferError(f"redirects to another place, {new.scheme}://{new.netloc}")
    return new


def _check_headers(response: requests.Response, media_type: str, max_bytes: int) -> None:
    status, headers = response.status_code, response.headers
    if status != 200:
        retry_after = 0.0
        with suppress(urllib3.exceptions.InvalidHeader, ValueError, OverflowError):
            retry_after = Retry().parse_retry_after(headers.get("Retry-After", ""))
        raise TransferError(
            f"answered {status}", transient=status == 429 or status >= 500, retry_after=retry_after
        )
    content_type = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if media_type != ANYTHING and content_type not in MEDIA_TYPES[media_type].served_as:
        raise TransferError(f"came as {_printable(content_type) or 'no type'}, not as {media_type}")
    if headers.get("Content-Encoding", "").strip().lower() not in ("", "identity", "gzip"):
        raise TransferError(f"came in the encoding {_printable(headers['Content-Encoding'])}")
    _check_size(response.raw.length_remaining or 0, max_bytes)


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise TransferError(f"larger than the limit of {max_bytes} bytes")


def _read_body(
    response: requests.Response,
    media_type: str,
    ends_at: float,
    options: TransferOptions,
    out: BinaryIO,
) -> None:
    """Write the body to a file, in place of what an earlier attempt wrote."""
    is_packed = "gzip" in response.headers.get("Content-Encoding", "").lower()
    total = None if is_packed else response.raw.length_remaining
    chunks = _read_chunks(response, ends_at, options.max_bytes)
    start, head, size = MEDIA_TYPES[media_type].start, b"", 0
    out.seek(0)
    out.truncate()
    for chunk in _decompress(chunks, options.max_bytes) if is_packed else chunks:
        size += len(chunk)
        _check_size(size, options.max_bytes)
        if b"\0" in chunk and not start and media_type != ANYTHING:
            raise TransferError(f"came as {media_type} but has nul bytes")
        head += chunk[: HEAD_BYTES - len(head)]
        out.write(chunk)
        options.progress(size, total)
    if not size and media_type != ANYTHING:
        raise TransferError("came empty")
    if not re.match(start, head):
        raise TransferError(f"came as {media_type} but does not start as one")


def _read_chunks(response: requests.Response, ends_at: float, max_bytes: int) -> Iterator[bytes]:
    size, chunk = 0, b"-"
    while chunk and time.monotonic() < ends_at:
        with _translate_errors("the body broke off"):
            chunk = response.raw.read1(CHUNK_BYTES, decode_content=False)
        size += len(chunk)
        _check_size(size, max_bytes)
        yield chunk
    if (
        time.monotonic() >= ends_at
    ):  # a connection that was cut looks like the end of a body without a length
        raise TransferError("the body did not end")


def _decompress(chunks: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    """Decompress gzip, at most to just above the limit. urllib3 would accept a stream that lacks
    its end.
    """
    decompressor = zlib.decompressobj(wbits=GZIP)
    for chunk in chunks:
        try:
            yield decompressor.decompress(chunk, max_bytes + 1)
        except zlib.error as error:
            raise TransferError("the body is damaged gzip", transient=True) from error
    if not decompressor.eof or decompressor.unused_data:
        raise TransferError("the body is truncated gzip", transient=True)


def _open_session(ends_at: float) -> requests.Session:
    """Open a session that sends no password of the user and cuts its connections at the deadline."""
    session = requests.Session()
    session.headers.update({"User-Agent": USER_AGENT, "Accept-Encoding": "identity"})
    session.auth = lambda request: request  # otherwise an entry in a netrc file would be sent
    # Even if it does not follow a redirect, a usual session reads the whole body of one.
    session.get_redirect_target = lambda resp: None  # type: ignore[method-assign]  # noqa: ARG005
    adapter = _DeadlineAdapter(ends_at)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


class _DeadlineAdapter(HTTPAdapter):
    """Cuts its connections at the deadline: a timeout alone never ends a server that sends a byte
    now and then.
    """

    def __init__(self, ends_at: float) -> None:
        super().__init__()
        self.sockets: list[Any] = []
        self.timer = threading.Timer(ends_at - time.monotonic(), self._cut)
        self.timer.daemon = True
        self.timer.start()

    def get_connection_with_tls_context(
        self, *args: Any, **kwargs: Any
    ) -> urllib3.HTTPConnectionPool:
        pool = super().get_connection_with_tls_context(*args, **kwargs)
        usual: Any = type(pool).ConnectionCls
        adapter = self

        class Tracked(usual):  # type: ignore[misc]
            def connect(self) -> None:
                super().connect()
                adapter.sockets.append(self.sock)
                if adapter.timer.finished.is_set():
                    raise TimeoutError("connected too late")

        pool.ConnectionCls = Tracked
        return pool

    def _cut(self) -> None:
        for opened in list(self.sockets):
            with suppress(OSError):
                socket.socket.shutdown(opened, socket.SHUT_RDWR)

    def close(self) -> None:
        self.timer.cancel()
        super().close()
        for opened in self.sockets:
            opened.close()


@contextmanager
def _translate_errors(what: str) -> Iterator[None]:
    """Turn errors of the network into TransferError, with the innermost reason."""
    try:
        yield
    except (OSError, urllib3.exceptions.HTTPError) as error:
        cause: BaseException = error
        nearer: BaseException | None = error
        while nearer is not None:
            cause = nearer
            causes = (getattr(cause, "reason", None), *cause.args, cause.__cause__)
            nearer = next((other for other in causes if isinstance(other, BaseException)), None)
        reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        permanent = isinstance(cause, ValueError)  # an impossible address, a refused certificate
        raise TransferError(f"{what}: {_printable(reason)}", transient=not permanent) from error


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)[:120].strip().lower()
