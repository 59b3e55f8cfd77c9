"""Download one document over HTTP, within limits on size, time, type and redirects."""

from __future__ import annotations

import re
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import PurePosixPath
from urllib.parse import unquote, urljoin, urlsplit

import requests
import urllib3

from ipu_results.errors import FetchError
from ipu_results.kit.limits import MAX_BYTES, MAX_DOWNLOAD_S, MAX_REDIRECTS, MAX_SILENCE_S

SUFFIXES = {  # of the file, by the type that the server names
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/pdf": ".pdf",
    "text/csv": ".csv",
    "text/plain": ".txt",
    "text/markdown": ".txt",
}
USER_AGENT = "ipu-results (the verified record of published IPU benchmark results)"
CHUNK_BYTES = 65536
NOT_IN_NAME = re.compile(r"[^\w.-]+")
MAX_NAME = 100  # bytes of a file name or folder name; a file system has 255, with the suffixes


@dataclass(frozen=True, slots=True)
class Download:
    """A document as the server sent it."""

    data: bytes
    folder: str
    """The host that was asked, as the name of a folder."""
    name: str
    """The last part of the path, as the name of a file, with the suffix of its type."""
    retrieved_on: date
    """In UTC."""


def download(url: str) -> Download:
    """Download one document. Raises FetchError that says why it could not."""
    _check_address(url)
    future: Future[Download] = Future()
    # A server that sends a byte now and then never meets a timeout of a socket. This thread may be
    # left behind, and as a daemon it does not keep the process alive.
    threading.Thread(target=_run, args=(future, url), daemon=True).start()
    try:
        return future.result(timeout=MAX_DOWNLOAD_S)
    except TimeoutError as error:
        raise FetchError(f"not done within {MAX_DOWNLOAD_S:g} s", document=url) from error


def _run(future: Future[Download], url: str) -> None:
    try:
        future.set_result(_transfer(url))
    except FetchError as error:
        future.set_exception(error)
    except requests.Timeout:
        future.set_exception(FetchError(f"sent nothing for {MAX_SILENCE_S:g} s", document=url))
    except (OSError, ValueError, urllib3.exceptions.HTTPError) as error:
        future.set_exception(FetchError(_find_reason(error), document=url))
    except BaseException as error:
        future.set_exception(error)  # else the caller would wait for the end of its time


def _transfer(url: str) -> Download:
    with requests.Session() as session:
        session.headers.update({"User-Agent": USER_AGENT, "Accept-Encoding": "identity"})
        # Without this, requests would send the password of a .netrc file.
        session.auth = lambda request: request
        # Redirects are followed below: requests would read the whole body of each, however large.
        session.get_redirect_target = lambda resp: None  # type: ignore[method-assign]  # noqa: ARG005
        target = url
        for _ in range(MAX_REDIRECTS + 1):
            with session.get(target, stream=True, timeout=MAX_SILENCE_S) as response:
                if not response.is_redirect:
                    suffix = _check_headers(url, response)
                    data = _read_body(url, response)
                    today = datetime.now(UTC).date()
                    return Download(data, _make_folder(url), _make_name(url, suffix), today)
                target = _resolve_redirect(url, target, response.headers["Location"])
    raise FetchError(f"more than {MAX_REDIRECTS} redirects", document=url)


def _check_address(url: str) -> None:
    """Refuse all but an http or https address without a password: the sidecar would repeat it."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise FetchError("is not an http or https address", document=url) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise FetchError("is not an http or https address", document=url)
    if parts.username is not None:
        address = url.replace(f"{parts.netloc.rpartition('@')[0]}@", "")
        raise FetchError("has a user or a password: leave them out", document=address)


def _resolve_redirect(url: str, old: str, location: str) -> str:
    """Return the address that a redirect leads to: on any host, but not less secure."""
    try:
        new = urljoin(old, location)
        _check_address(new)
    except (FetchError, ValueError) as error:
        raise FetchError("redirects to what is not an http address", document=url) from error
    if old.startswith("https:") and not new.startswith("https:"):
        raise FetchError("redirects from https to http", document=url)
    return new


def _check_headers(url: str, response: requests.Response) -> str:
    """Check what the server says of the document; return the suffix of its type."""
    if response.status_code != 200:
        raise FetchError(f"the server answers {response.status_code}", document=url)
    content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if content_type not in SUFFIXES:
        kinds = ", ".join(SUFFIXES)
        raise FetchError(f"is of type {content_type!r}, not one of {kinds}", document=url)
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding != "identity":
        raise FetchError(f"comes in the encoding {encoding!r}", document=url)
    _check_size(url, response.raw.length_remaining or 0)
    return SUFFIXES[content_type]


def _read_body(url: str, response: requests.Response) -> bytes:
    data = bytearray()
    for chunk in response.iter_content(CHUNK_BYTES):
        data += chunk
        _check_size(url, len(data))
    return bytes(data)


def _check_size(url: str, size: int) -> None:
    if size > MAX_BYTES:
        raise FetchError(f"is larger than the limit of {MAX_BYTES:,} bytes", document=url)


def _find_reason(error: BaseException) -> str:
    """Return the text of the innermost error, which requests wraps in several others."""
    inner: BaseException | None = error
    while inner is not None:
        error = inner
        inner = error.__cause__ or error.__context__
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _make_folder(url: str) -> str:
    return _clean_name(urlsplit(url).hostname or "") or "host"


def _make_name(url: str, suffix: str) -> str:
    path = PurePosixPath(unquote(urlsplit(url).path))
    if suffix == ".txt" and path.suffix.lower() == ".csv":  # many servers call CSV plain text
        suffix = ".csv"
    stem = path.name
    if path.suffix.lower() in (".htm", *SUFFIXES.values()):
        stem = path.stem
    return f"{_clean_name(stem) or 'index'}{suffix}"


def _clean_name(text: str) -> str:
    name = NOT_IN_NAME.sub("-", text).encode()[:MAX_NAME].decode(errors="ignore")
    return name.strip("-._")
