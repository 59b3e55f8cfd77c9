"""Downloads from a local server that misbehaves in every way that the download must survive."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import FetchError
from ipu_results.sources import download as download_module
from ipu_results.sources.download import Download, TransferOptions, download

from tests.sources.http_support import PAGE, Handler, Responder, Server, run_server

PDF = b"%PDF-1.7\n" + bytes(range(256)) * 600 + b"\n%%EOF\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server() as running:
        yield running


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def get(url: str, media_type: str = "text/html", **changes: Any) -> Download:
    options = {"max_bytes": 1_000_000, "timeout": 2.0, "deadline": 10.0, "backoff": 0.01}
    return download(url, media_type, TransferOptions(**{**options, **changes}))


def failure(url: str, **changes: Any) -> str:
    with pytest.raises(FetchError) as caught:
        get(url, **changes)
    assert str(caught.value).isprintable(), "one line, nothing that moves the cursor"
    return caught.value.message


def redirect(to: str, status: int = 302) -> Responder:
    return lambda handler, _: handler.send(b"", status=status, Location=to)


def test_page_arrives_whole(server: Server) -> None:
    steps: list[tuple[int, int | None]] = []
    url = server.on(lambda handler, _: handler.send(kind="text/html; charset=UTF-8"))
    result = get(url + "#results", progress=lambda *step: steps.append(step))
    assert (result.data, result.content_type) == (PAGE, "text/html; charset=UTF-8")
    assert abs(datetime.now(UTC) - result.retrieved_at) < timedelta(minutes=1)
    assert steps[-1] == (len(PAGE), len(PAGE))
    assert "ipu-results" in server.headers["/" + url.rpartition("/")[2]]["User-Agent"]


@pytest.mark.parametrize(
    ("media_type", "served_as", "body"),
    [
        ("application/pdf", "application/pdf", PDF),
        ("text/html", "application/xhtml+xml; charset=utf-8", b"<?xml version='1.0'?>\n<html/>"),
        (
            "text/html",
            "TEXT/HTML ; charset=x",
            b"\xef\xbb\xbf<!-- saved -->\r\n<TABLE border=1></TABLE>",
        ),
        ("text/plain", "text/plain", b"ResNet-50 30690\n"),
        ("text/markdown", "text/plain; charset=utf-8", b"| a | b |\n"),
        ("text/csv", "text/csv", b"a,b\n1,2\n"),
    ],
)
def test_each_media_type_is_accepted(
    server: Server, media_type: str, served_as: str, body: bytes
) -> None:
    url = server.on(lambda handler, _: handler.send(body, kind=served_as))
    assert get(url, media_type=media_type).data == body


@pytest.mark.parametrize(
    ("media_type", "served", "message"),
    [
        ("application/pdf", ("text/html", PAGE), "came as text/html, not as application/pdf"),
        ("text/csv", ("text/html", PAGE), "came as text/html, not as text/csv"),
        ("text/html", (None, PAGE), "came as no type, not as text/html"),
        ("text/html", ("text/\x1b[2Jhtml\n evil", PAGE), "not as text/html"),
        ("application/pdf", ("application/pdf", b"\n" + PDF), "does not start as one"),
        ("text/html", ("text/html", b"%PDF-1.4 <html>"), "does not start as one"),
        ("text/html", ("text/html", b"{}" + b" " * 5000 + PAGE), "does not start as one"),
        ("text/plain", ("text/plain", b"a" * 90_000 + b"\0"), "has nul bytes"),
        ("text/html", ("text/html", b""), "came empty"),
        ("application/zip", ("application/zip", b"PK"), "not a type that can be downloaded"),
    ],
)
def test_other_content_is_refused_without_a_retry(
    server: Server, media_type: str, served: tuple[str | None, bytes], message: str
) -> None:
    url = server.on(lambda handler, _: handler.send(served[1], kind=served[0]))
    assert message in failure(url, media_type=media_type)
    assert server.hits_of(url) <= 1


@pytest.mark.parametrize(
    ("responses", "hits", "message"),
    [
        ([500, 500, 200], 3, None),
        ([503] * 3, 3, "answered 503 (after 3 attempts)"),
        *(
            ([status], 1, f"answered {status} (after 1 attempt)")
            for status in (204, 206, 300, 304, 403, 404)
        ),
    ],
)
def test_server_errors_are_retried_and_other_statuses_are_not(
    server: Server, responses: list[int], hits: int, message: str | None
) -> None:
    def respond(handler: Handler, hit: int) -> None:
        status = responses[hit - 1]
        handler.send(b"" if status in (204, 304) else PAGE, status=status)

    url = server.on(respond)
    if message:
        assert failure(url, retries=2) == message
    else:
        assert get(url).data == PAGE
    assert server.hits_of(url) == hits


def test_retry_after_lengthens_the_pause(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(download_module.time, "sleep", pauses.append)
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    waits = ["7", date, "soon", "9" * 5000, "Wed, 99 Foo 2026 99:99:99 GMT", "86400"]
    url = server.on(
        lambda handler, hit: (
            handler.send(status=429, Retry_After=waits[hit - 1]) if hit < 7 else handler.send()
        )
    )
    get(url, retries=6, deadline=500.0)
    assert pauses[0] == 7
    assert 20 < pauses[1] <= 30
    assert max(pauses[2:5]) < 1
    assert pauses[5] == 60, "no server makes the download wait longer"
    late = server.on(lambda handler, _: handler.send(status=429, Retry_After="86400"))
    assert "answered 429, and no time is left to wait 60 s (after 1 attempt)" in failure(late)


def test_silent_server_times_out_and_is_retried(server: Server) -> None:
    def respond(handler: Handler, hit: int) -> None:
        handler.server.over.wait(1.0 if hit == 1 else 0)
        handler.send()

    url = server.on(respond)
    get(url, timeout=0.2)
    assert server.hits_of(url) == 2
    silent = server.on(lambda handler, _: handler.server.over.wait(1.0))
    assert "the request failed: timed out (after 2 attempts)" in failure(
        silent, timeout=0.1, retries=1
    )


def test_refused_connection_is_retried_and_reported_without_the_query() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/a?token=hidden"
        assert (
            failure(url, retries=1) == "the request failed: connection refused (after 2 attempts)"
        )
    with pytest.raises(FetchError, match=r"^127\.0\.0\.1/a: ") as caught:
        get(url, retries=0)
    assert "hidden" not in str(caught.value)
    assert failure("http://*.invalid/").endswith("(after 1 attempt)")


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n<html>",
        b"\x1b[2Jnot http\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    ],
)
def test_response_that_is_not_http_is_an_error(server: Server, data: bytes) -> None:
    def respond(handler: Handler, _: int) -> None:
        handler.close_connection = True
        handler.wfile.write(data)

    assert "the request failed" in failure(server.on(respond), retries=1)


@pytest.mark.parametrize(
    ("start", "drip"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>", b"x"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 500000\r\n\r\n<html>",
            b"x",
        ),
        (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"X"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_slow_body_and_endless_headers_end_at_the_deadline(
    server: Server, start: bytes, drip: bytes
) -> None:
    def respond(handler: Handler, _: int) -> None:
        handler.close_connection = True
        handler.wfile.write(start)
        handler.drip(drip, 0.05)

    started = time.monotonic()
    assert "not done within 0.4 s" in failure(server.on(respond), deadline=0.4)
    assert time.monotonic() - started < 30, "the server drips for a minute"


def test_truncated_body_is_retried(server: Server) -> None:
    url = server.on(
        lambda handler, hit: handler.send(PAGE[:20] if hit == 1 else PAGE, length=len(PAGE))
    )
    assert get(url).data == PAGE
    always = server.on(lambda handler, _: handler.send(length=len(PAGE) + 1))
    assert "the body broke off" in failure(always, retries=2)
    assert (server.hits_of(url), server.hits_of(always)) == (2, 3)


@pytest.mark.parametrize(
    "frame", [b"5\r\n<html\r\n", b"ff\r\n<html>", b"zz\r\n<html>", b"-5\r\n<html>"]
)
def test_broken_chunks_are_an_error(server: Server, frame: bytes) -> None:
    url = server.on(
        lambda handler, _: handler.send(frame, length=None, Transfer_Encoding="chunked")
    )
    assert "the body broke off" in failure(url, retries=1)
    assert server.hits_of(url) == 2


def test_announced_length_over_the_limit_is_refused_before_the_body(server: Server) -> None:
    steps: list[int] = []
    url = server.on(lambda handler, _: handler.send(b"", length=10**12))
    assert "larger than the limit" in failure(url, progress=lambda size, _: steps.append(size))
    assert not steps


def test_document_as_large_as_the_limit_is_accepted(server: Server) -> None:
    url = server.on(lambda handler, _: handler.send())
    assert get(url, max_bytes=len(PAGE)).data == PAGE
    assert "larger than the limit" in failure(url, max_bytes=len(PAGE) - 1)


def send_gzip(
    handler: Handler, body: bytes, length: int | None = -1, encoding: str = "gzip"
) -> None:
    handler.send(body, length=length, Content_Encoding=encoding)


def test_gzip_is_decompressed_to_the_limit_and_the_total_is_unknown(server: Server) -> None:
    steps: list[tuple[int, int | None]] = []
    url = server.on(lambda handler, _: send_gzip(handler, gzip.compress(PAGE, mtime=0)))
    assert get(url, progress=lambda *step: steps.append(step)).data == PAGE
    assert steps[-1] == (len(PAGE), None)
    assert (
        len(next(download_module._decompress(iter([gzip.compress(bytes(5_000_000))]), 1000)))
        <= 1001
    )


@pytest.mark.parametrize(
    ("body", "encoding", "message"),
    [
        (gzip.compress(b"<html>" + bytes(5_000_000), mtime=0), "gzip", "larger than the limit"),
        (gzip.compress(PAGE, mtime=0)[:-9], "gzip", "truncated gzip (after 2 attempts)"),
        (gzip.compress(PAGE, mtime=0) + b"more", "gzip", "truncated gzip"),
        (b"not gzip at all", "gzip", "damaged gzip (after 2 attempts)"),
        (b"", "gzip", "truncated gzip"),
        (PAGE, "br", "came in the encoding br (after 1 attempt)"),
    ],
)
def test_damaged_gzip_and_other_encodings_are_errors(
    server: Server, body: bytes, encoding: str, message: str
) -> None:
    for length in (-1, None):
        url = server.on(
            lambda handler, _, length=length: send_gzip(handler, body, length, encoding)
        )  # type: ignore[misc]
        assert message in failure(url, retries=1)


EMPTY = zlib.compressobj(wbits=31)


@pytest.mark.parametrize(
    ("start", "drip", "encoding"),
    [
        (PAGE, b"<tr>" * 5000, {}),
        (
            EMPTY.compress(b"") + EMPTY.flush(zlib.Z_SYNC_FLUSH),
            b"\0\0\0\xff\xff" * 2000,
            {"Content_Encoding": "gzip"},
        ),
    ],
)
def test_endless_body_ends_at_the_size_limit(
    server: Server, start: bytes, drip: bytes, encoding: Any
) -> None:
    def respond(handler: Handler, _: int) -> None:
        handler.send(start, length=None, **encoding)
        handler.drip(drip, 0)

    assert "larger than the limit of 50000 bytes (after 1 attempt)" in failure(
        server.on(respond), max_bytes=50_000
    )


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_on_the_same_host_are_followed(server: Server, status: int) -> None:
    last = server.on(lambda handler, _: handler.send())
    relative = server.on(redirect("." + last[last.rindex("/") :], status))
    assert get(server.on(redirect(relative, status))).data == PAGE
    assert [server.hits_of(url) for url in (relative, last)] == [1, 1]


@pytest.mark.parametrize(
    "location",
    [
        "http://localhost:{port}/0",
        "http://127.0.0.1/0",
        "//evil.invalid/0",
        "http://127.0.0.1:{port}@evil.invalid/",
        "file:///etc/passwd",
        "http://[::1",
        "http://user:secret@127.0.0.1:{port}/0",
        "http://127.0.0.1:{port}0/",
        "\xff\xfe",
    ],
)
def test_redirects_elsewhere_are_refused(server: Server, location: str) -> None:
    message = failure(server.on(redirect(location.format(port=server.server_port))))
    assert message.endswith("(after 1 attempt)")
    assert "secret" not in message


@pytest.mark.parametrize(
    ("old", "new", "followed"),
    [
        ("http://a.org/x", "https://a.org/x", True),
        ("http://a.org:80/x", "https://A.org:443/x", True),
        ("https://a.org/x", "https://a.org:443/y", True),
        ("https://a.org/x", "http://a.org/x", False),
        ("http://a.org/x", "https://a.org:8443/x", False),
        ("http://a.org/x", "http://a.org:0/x", False),
        ("https://a.org/x", "https://a.org.evil.org/x", False),
    ],
)
def test_redirects_may_only_become_more_secure(old: str, new: str, followed: bool) -> None:
    response = requests.Response()
    response.status_code, response.headers["Location"] = 301, new
    with (
        nullcontext()
        if followed
        else pytest.raises(download_module.TransferError, match="redirects to another")
    ):
        address = download_module._resolve_redirect(
            requests.Session(), response, download_module._parse_address(old)
        )
        assert str(address) == new.replace("A.", "a.")


def test_more_than_five_redirects_are_refused(server: Server) -> None:
    chain = server.on(lambda handler, _: handler.send())
    for length in range(1, 7):
        chain = server.on(redirect(chain))
        if length == 5:
            assert get(chain).data == PAGE
    loop = server.on(lambda handler, _: handler.send(b"", status=302, Location=handler.path))
    assert failure(chain) == failure(loop) == "more than 5 redirects (after 1 attempt)"


def test_body_of_a_redirect_is_not_read(server: Server) -> None:
    last = server.on(lambda handler, _: handler.send())

    def respond(handler: Handler, _: int) -> None:
        handler.send(b"", status=302, length=None, Location=last)
        handler.drip(b"<tr>" * 5000, 0.05)

    assert get(server.on(respond)).data == PAGE


@pytest.mark.parametrize(
    "url",
    ["", "page", "ftp://127.0.0.1/a", "file:///etc/passwd", "http:///a", "http://[::1", "http://127.0.0.1:99999/",
     "http://user:secret@127.0.0.1/", "http://secret@127.0.0.1/", "javascript:alert(1)", "a\nb\x1b[2J"],
)  # fmt: skip
def test_only_plain_web_addresses_are_requested(url: str) -> None:
    message = failure(url)
    assert "attempt" not in message
    assert "secret" not in message


def test_no_password_of_the_user_is_sent(
    server: Server, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    url = server.on(lambda handler, _: handler.send())
    get(url)
    assert "Authorization" not in server.headers["/" + url.rpartition("/")[2]]


def test_failed_download_leaves_no_connection_and_no_thread(server: Server) -> None:
    closed = threading.Event()

    def respond(handler: Handler, _: int) -> None:
        handler.send(b"not a page")
        handler.rfile.read(1)
        handler.close_connection = True
        closed.set()

    with pytest.raises(FetchError) as kept:
        get(server.on(respond))
    assert closed.wait(20)
    assert kept.value.__cause__
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(20)
            assert not thread.is_alive()


@given(body=st.binary(max_size=3000), packed=st.booleans(), length=st.sampled_from([-1, None]))
def test_any_document_arrives_unchanged(
    server: Server, body: bytes, packed: bool, length: int | None
) -> None:
    whole = b"%PDF-" + body * (len(body) % 50)
    more: Any = {"Content_Encoding": "gzip"} if packed else {}
    sent = gzip.compress(whole, 1, mtime=0) if packed else whole
    url = server.on(
        lambda handler, _: handler.send(sent, kind="application/pdf", length=length, **more)
    )
    assert get(url, media_type="application/pdf").data == whole
    cut = server.on(
        lambda handler, _: handler.send(sent[:-1], kind="application/pdf", length=len(sent), **more)
    )
    assert "the body broke off" in failure(cut, media_type="application/pdf", retries=0)
