"""Downloads from a server on the loopback interface that misbehaves in every way the pipeline must survive."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import socket
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import FetchError, IpuResultsError
from ipu_results.sources.capture import download as fetch
from ipu_results.sources.capture.download import Download, download

PAGE = b"<!doctype html>\n<html><table><tr><td>ResNet-50</td><td>30690</td></tr></table></html>\n"
PDF = b"%PDF-1.7\n" + bytes(range(256)) * 600 + b"\n%%EOF\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5
    server: Server

    def do_GET(self) -> None:
        self.server.hits[self.path] += 1
        self.server.headers[self.path] = dict(self.headers)
        self.server.answers[self.path](self, self.server.hits[self.path])

    def log_message(self, *args: object) -> None:
        pass

    def reply(
        self,
        body: bytes = PAGE,
        *,
        status: int = 200,
        kind: str | None = "text/html",
        length: int | None = -1,
        **more: str,
    ) -> None:
        self.send_response(status)
        if kind is not None:
            self.send_header("Content-Type", kind)
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        if length is not None:
            self.send_header("Content-Length", str(len(body) if length < 0 else length))
        self.close_connection = length != -1
        self.end_headers()
        self.wfile.write(body)

    def drip(self, data: bytes, pause: float) -> None:
        for _ in range(200):
            self.wfile.write(data)
            if self.server.over.wait(pause):
                return


Answer = Callable[[Handler, int], object]


class Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, Answer] = {}
        self.headers: dict[str, dict[str, str]] = {}
        self.hits: Counter[str] = Counter()
        self.over = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        pass

    def on(self, answer: Answer) -> str:
        path = f"/{len(self.answers)}"
        self.answers[path] = answer
        return f"http://127.0.0.1:{self.server_port}{path}"

    def hits_of(self, url: str) -> int:
        return self.hits["/" + url.rpartition("/")[2]]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield running
        finally:
            running.over.set()
            running.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def get(url: str, folder: Path, **changes: Any) -> Download:
    options = {"media_type": "text/html", "max_bytes": 1_000_000, "timeout": 2.0, "deadline": 10.0, "backoff": 0.01}
    return download(url, folder / "page", **{**options, **changes})


def refusal(url: str, folder: Path, **changes: Any) -> str:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(FetchError) as caught:
        get(url, folder, **changes)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    text = str(caught.value)
    assert text.isprintable(), "one line, nothing that moves the cursor"
    assert caught.value.message == caught.value.message.lower()
    return caught.value.message


def redirect(to: str, status: int = 302) -> Answer:
    return lambda handler, _: handler.reply(b"", status=status, Location=to)


def test_a_page_arrives_whole_and_says_where_it_is_from(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    url = server.on(lambda handler, _: handler.reply(kind="text/html; charset=UTF-8"))
    came = get(url + "#results", tmp_path, progress=lambda *step: seen.append(step))
    assert (came.url, came.final_url, came.content_type) == (url + "#results", url, "text/html; charset=UTF-8")
    assert (came.path, came.path.read_bytes(), came.size) == (tmp_path / "page", PAGE, len(PAGE))
    assert came.sha256 == hashlib.sha256(PAGE).hexdigest()
    assert abs(datetime.now(UTC) - came.retrieved_at) < timedelta(seconds=10)
    assert seen[-1] == (len(PAGE), len(PAGE))
    assert [path.name for path in tmp_path.iterdir()] == ["page"]
    assert "ipu-results" in server.headers["/" + url.rpartition("/")[2]]["User-Agent"]


@pytest.mark.parametrize(
    ("media_type", "served_as", "body"),
    [
        ("application/pdf", "application/pdf", PDF),
        ("text/html", "application/xhtml+xml; charset=utf-8", b"<?xml version='1.0'?>\n<html/>"),
        ("text/html", "TEXT/HTML ; charset=x", b"\xef\xbb\xbf<!-- saved -->\r\n<TABLE border=1></TABLE>"),
        ("text/plain", "text/plain", b"ResNet-50 30690\n"),
        ("text/markdown", "text/markdown; charset=utf-8", b"| a | b |\n"),
        ("text/markdown", "text/plain; charset=utf-8", b"| a | b |\n"),
        ("text/csv", "text/csv", b"a,b\n1,2\n"),
    ],
)
def test_each_kind_is_taken(server: Server, tmp_path: Path, media_type: str, served_as: str, body: bytes) -> None:
    url = server.on(lambda handler, _: handler.reply(body, kind=served_as))
    assert get(url, tmp_path, media_type=media_type).path.read_bytes() == body


@pytest.mark.parametrize(
    ("media_type", "served", "message"),
    [
        ("application/pdf", ("text/html", PAGE), "came as text/html, not as application/pdf"),
        ("text/html", ("application/pdf", PDF), "came as application/pdf, not as text/html"),
        ("text/csv", ("text/html", PAGE), "came as text/html, not as text/csv"),
        ("text/html", (None, PAGE), "came as no type, not as text/html"),
        ("text/html", ("text/\x1b[2Jhtml\n evil", PAGE), "not as text/html"),
        ("application/pdf", ("application/pdf", PAGE), "does not start as one"),
        ("application/pdf", ("application/pdf", b"\n" + PDF), "does not start as one"),
        ("text/html", ("text/html", PDF + PAGE), "does not start as one"),
        ("text/html", ("text/html", b"%PDF-1.4 <html>"), "does not start as one"),
        ("text/html", ("text/html", b"{}" + b" " * 5000 + PAGE), "does not start as one"),
        ("text/plain", ("text/plain", b"a" * 90_000 + b"\0"), "has nul bytes"),
        ("text/html", ("text/html", b""), "came empty"),
        ("application/zip", ("application/zip", b"PK"), "not a type that can be downloaded"),
    ],
)
def test_what_is_not_the_document_is_refused_at_once(
    server: Server, tmp_path: Path, media_type: str, served: tuple[str | None, bytes], message: str
) -> None:
    url = server.on(lambda handler, _: handler.reply(served[1], kind=served[0]))
    assert message in refusal(url, tmp_path, media_type=media_type)
    assert server.hits_of(url) <= 1


def test_a_server_that_recovers_is_asked_until_it_does(server: Server, tmp_path: Path) -> None:
    url = server.on(lambda handler, hit: handler.reply(status=500 if hit < 3 else 200))
    assert get(url, tmp_path).size == len(PAGE)
    assert server.hits_of(url) == 3


def test_a_server_that_does_not_recover_is_given_up(server: Server, tmp_path: Path) -> None:
    url = server.on(lambda handler, _: handler.reply(status=503))
    assert refusal(url, tmp_path, retries=2) == "answered 503 (after 3 attempts)"
    assert server.hits_of(url) == 3


@pytest.mark.parametrize("status", [201, 204, 206, 300, 304, 400, 401, 403, 404, 410, 418])
def test_an_answer_that_will_not_change_is_not_asked_for_again(server: Server, tmp_path: Path, status: int) -> None:
    url = server.on(lambda handler, _: handler.reply(b"" if status in (204, 304) else PAGE, status=status))
    assert refusal(url, tmp_path) == f"answered {status} (after 1 attempt)"
    assert server.hits_of(url) == 1


def test_retry_after_is_kept_to(server: Server, tmp_path: Path) -> None:
    stamps: list[float] = []

    def answer(handler: Handler, hit: int) -> None:
        stamps.append(time.monotonic())
        handler.reply(status=429 if hit < 3 else 200, Retry_After="01"[hit - 1] if hit < 3 else "9")

    get(server.on(answer), tmp_path)
    waits = [later - earlier for earlier, later in pairwise(stamps)]
    assert waits[0] < 0.9
    assert waits[1] >= 1.0


def test_a_retry_after_beyond_the_deadline_is_not_waited_for(server: Server, tmp_path: Path) -> None:
    url = server.on(lambda handler, _: handler.reply(status=429, Retry_After="86400"))
    assert "answered 429, and no time is left to wait 60 s (after 1 attempt)" in refusal(url, tmp_path)


def test_retry_after_as_a_date_or_as_nonsense() -> None:
    assert 25 < fetch._seconds(format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)) <= 30
    assert fetch._seconds("120") == 120
    for nonsense in ("", "soon", "-5", "9" * 5000, "1e9", "Wed, 99 Foo 2026 99:99:99 GMT"):
        assert fetch._seconds(nonsense) == 0


@pytest.mark.parametrize("data", [b"x", b"<html>" * 10])
@pytest.mark.parametrize("length", [None, 500_000])
def test_a_slow_drip_ends_at_the_deadline(server: Server, tmp_path: Path, data: bytes, length: int | None) -> None:
    def answer(handler: Handler, _: int) -> None:
        handler.reply(b"<html>", length=length)
        handler.drip(data, 0.05)

    started = time.monotonic()
    assert "not done within 0.4 s" in refusal(server.on(answer), tmp_path, deadline=0.4)
    assert time.monotonic() - started < 3


@pytest.mark.parametrize("drip", [b"X", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_headers_that_never_end_end_at_the_deadline(server: Server, tmp_path: Path, drip: bytes) -> None:
    def answer(handler: Handler, _: int) -> None:
        handler.close_connection = True
        handler.wfile.write(b"" if drip.startswith(b"HTTP") else b"HTTP/1.1 200 OK\r\nX-Slow: ")
        handler.drip(drip, 0.05)

    started = time.monotonic()
    assert "not done within 0.4 s" in refusal(server.on(answer), tmp_path, deadline=0.4)
    assert time.monotonic() - started < 3


def test_a_silent_server_is_a_timeout_and_tried_again(server: Server, tmp_path: Path) -> None:
    def answer(handler: Handler, hit: int) -> None:
        handler.server.over.wait(1.0 if hit == 1 else 0)
        handler.reply()

    url = server.on(answer)
    get(url, tmp_path, timeout=0.2).path.unlink()
    assert server.hits_of(url) == 2
    silent = server.on(lambda handler, _: handler.server.over.wait(1.0))
    assert "the request failed: timed out (after 2 attempts)" in refusal(silent, tmp_path, timeout=0.1, retries=1)


def test_a_truncated_body_is_tried_again(server: Server, tmp_path: Path) -> None:
    url = server.on(lambda handler, hit: handler.reply(PAGE[:20] if hit == 1 else PAGE, length=len(PAGE)))
    assert get(url, tmp_path).path.read_bytes() == PAGE
    assert server.hits_of(url) == 2


def test_a_body_that_is_always_truncated_is_no_document(server: Server, tmp_path: Path) -> None:
    url = server.on(lambda handler, _: handler.reply(length=len(PAGE) + 1))
    assert "the body broke off" in refusal(url, tmp_path, retries=2)
    assert server.hits_of(url) == 3


@pytest.mark.parametrize("frame", [b"5\r\n<html\r\n", b"ff\r\n<html>", b"zz\r\n<html>", b"-5\r\n<html>"])
def test_broken_chunks_are_no_document(server: Server, tmp_path: Path, frame: bytes) -> None:
    url = server.on(lambda handler, _: handler.reply(frame, length=None, Transfer_Encoding="chunked"))
    assert "the body broke off" in refusal(url, tmp_path, retries=1)
    assert server.hits_of(url) == 2


def test_an_endless_body_ends_at_the_limit(server: Server, tmp_path: Path) -> None:
    def answer(handler: Handler, _: int) -> None:
        handler.reply(length=None)
        handler.drip(b"<tr>" * 5000, 0)

    url = server.on(answer)
    assert "larger than the limit of 50000 bytes (after 1 attempt)" in refusal(url, tmp_path, max_bytes=50_000)


def test_a_length_over_the_limit_is_refused_before_the_body(server: Server, tmp_path: Path) -> None:
    seen: list[int] = []
    url = server.on(lambda handler, _: handler.reply(b"", length=10**12))
    assert "larger than the limit" in refusal(url, tmp_path, progress=lambda size, _: seen.append(size))
    assert not seen


def test_the_limit_itself_is_allowed(server: Server, tmp_path: Path) -> None:
    url = server.on(lambda handler, _: handler.reply())
    assert get(url, tmp_path, max_bytes=len(PAGE)).size == len(PAGE)


def zipped(handler: Handler, body: bytes, length: int | None = -1, encoding: str = "gzip") -> None:
    handler.reply(body, length=length, Content_Encoding=encoding)


def test_gzip_is_unpacked_and_the_total_not_promised(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    url = server.on(lambda handler, _: zipped(handler, gzip.compress(PAGE, mtime=0)))
    came = get(url, tmp_path, progress=lambda *step: seen.append(step))
    assert (came.path.read_bytes(), came.size, seen[-1]) == (PAGE, len(PAGE), (len(PAGE), None))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (gzip.compress(b"<html>" + bytes(5_000_000), mtime=0), "larger than the limit"),
        (gzip.compress(PAGE, mtime=0)[:-9], "truncated gzip (after 2 attempts)"),
        (gzip.compress(PAGE, mtime=0) + b"more", "truncated gzip"),
        (b"not gzip at all", "damaged gzip (after 2 attempts)"),
        (b"", "truncated gzip"),
    ],
)
@pytest.mark.parametrize("length", [-1, None])
def test_bad_gzip(server: Server, tmp_path: Path, body: bytes, message: str, length: int | None) -> None:
    url = server.on(lambda handler, _: zipped(handler, body, length))
    assert message in refusal(url, tmp_path, retries=1)


def test_a_bomb_is_not_unpacked_beyond_the_limit() -> None:
    assert len(next(fetch._inflated(iter([gzip.compress(bytes(5_000_000))]), 1000))) <= 1001


def test_gzip_that_unpacks_to_nothing_for_ever_ends_at_the_limit(server: Server, tmp_path: Path) -> None:
    packer = zlib.compressobj(wbits=31)
    start = packer.compress(b"") + packer.flush(zlib.Z_SYNC_FLUSH)

    def answer(handler: Handler, _: int) -> None:
        zipped(handler, start, None)
        handler.drip(b"\x00\x00\x00\xff\xff" * 2000, 0)

    assert "larger than the limit" in refusal(server.on(answer), tmp_path, max_bytes=50_000)


def test_another_encoding_is_refused(server: Server, tmp_path: Path) -> None:
    url = server.on(lambda handler, _: zipped(handler, PAGE, encoding="br"))
    assert "came in the encoding br (after 1 attempt)" in refusal(url, tmp_path)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_on_the_same_host_is_followed(server: Server, tmp_path: Path, status: int) -> None:
    last = server.on(lambda handler, _: handler.reply())
    url = server.on(redirect(server.on(redirect(last, status)), status))
    came = get(url, tmp_path)
    assert (came.url, came.final_url) == (url, last)
    relative = get(server.on(redirect("." + last[last.rindex("/") :], status)), tmp_path / "..", media_type="text/html")
    assert relative.final_url == last
    relative.path.unlink()


@pytest.mark.parametrize(
    "location",
    [
        "http://localhost:{port}/0",
        "http://127.0.0.1/0",
        "http://127.0.0.2:{port}/0",
        "//evil.invalid/0",
        "http://127.0.0.1:{port}@evil.invalid/",
        "ftp://127.0.0.1:{port}/0",
        "file:///etc/passwd",
        "http://[::1",
        "http://user:secret@127.0.0.1:{port}/0",
        "http://127.0.0.1:{port}0/",
        "\xff\xfe",
    ],
)
def test_a_redirect_elsewhere_is_refused(server: Server, tmp_path: Path, location: str) -> None:
    url = server.on(redirect(location.format(port=server.server_port)))
    message = refusal(url, tmp_path)
    assert message.endswith("(after 1 attempt)")
    assert "secret" not in message


@pytest.mark.parametrize(
    ("old", "new", "followed"),
    [
        ("http://a.org/x", "https://a.org/x", True),
        ("http://a.org:80/x", "https://A.org:443/x", True),
        ("http://a.org:8080/x", "https://a.org:8080/x", True),
        ("https://a.org/x", "https://a.org:443/y", True),
        ("https://a.org/x", "http://a.org/x", False),
        ("https://a.org/x", "http://a.org:443/x", False),
        ("http://a.org/x", "https://a.org:8443/x", False),
        ("http://a.org/x", "http://a.org:0/x", False),
        ("http://a.org/x", "https://www.a.org/x", False),
        ("http://a.org/x", "https://a.org.evil.org/x", False),
    ],
)
def test_the_same_place_may_only_become_more_secure(old: str, new: str, followed: bool) -> None:
    response = requests.Response()
    response.status_code, response.headers["Location"] = 301, new
    if followed:
        assert str(fetch._redirect(response, fetch._parsed(old))) == new.replace("A.", "a.")
    else:
        with pytest.raises(fetch.Fault, match="redirects to another place"):
            fetch._redirect(response, fetch._parsed(old))


def test_redirect_loops_and_chains_end(server: Server, tmp_path: Path) -> None:
    loop = server.on(lambda handler, _: handler.reply(b"", status=302, Location=handler.path))
    assert refusal(loop, tmp_path) == "redirects in a loop (after 1 attempt)"
    assert server.hits_of(loop) == 1
    chain = server.on(lambda handler, _: handler.reply())
    for length in range(1, 7):
        chain = server.on(redirect(chain))
        if length == 5:
            get(chain, tmp_path).path.unlink()
    assert refusal(chain, tmp_path) == "more than 5 redirects (after 1 attempt)"


def test_the_body_of_a_redirect_is_not_read(server: Server, tmp_path: Path) -> None:
    last = server.on(lambda handler, _: handler.reply())

    def answer(handler: Handler, _: int) -> None:
        handler.reply(b"", status=302, length=None, Location=last)
        handler.drip(b"<tr>" * 5000, 0.05)

    started = time.monotonic()
    assert get(server.on(answer), tmp_path).final_url == last
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n<html>", b"\x1b[2Jnot http\r\n\r\n", b"",
     b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"],
)  # fmt: skip
def test_what_is_not_http_is_no_document(server: Server, tmp_path: Path, answer: bytes) -> None:
    def reply(handler: Handler, _: int) -> None:
        handler.close_connection = True
        handler.wfile.write(answer)

    assert "the request failed" in refusal(server.on(reply), tmp_path, retries=1)


def test_a_refused_connection_is_tried_again_and_reported(tmp_path: Path) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unheard.getsockname()[1]}/a?token=hidden"
        assert refusal(url, tmp_path, retries=1) == "the request failed: connection refused (after 2 attempts)"
    with pytest.raises(IpuResultsError, match=r"^127\.0\.0\.1/a: ") as caught:
        get(url, tmp_path, retries=0)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["", "page", "ftp://127.0.0.1/a", "file:///etc/passwd", "http://", "http:///a", "http://[::1", "//127.0.0.1/a",
     "http://127.0.0.1:99999/", "http://user:secret@127.0.0.1/", "http://secret@127.0.0.1/", "javascript:alert(1)",
     "a\nb\x1b[2J"],
)  # fmt: skip
def test_only_plain_web_addresses_are_asked(tmp_path: Path, url: str) -> None:
    message = refusal(url, tmp_path)
    assert "attempt" not in message
    assert "secret" not in message


def test_an_impossible_host_is_not_asked_for_again(tmp_path: Path) -> None:
    assert refusal("http://*.invalid/", tmp_path).endswith("(after 1 attempt)")


def test_an_existing_destination_is_never_touched(server: Server, tmp_path: Path) -> None:
    (tmp_path / "page").write_text("mine")
    url = server.on(lambda handler, _: handler.reply())
    assert refusal(url, tmp_path) == "page exists already"
    assert server.hits_of(url) == 0


def test_a_destination_that_appears_meanwhile_is_not_touched(server: Server, tmp_path: Path) -> None:
    url = server.on(lambda handler, _: handler.reply())
    with pytest.raises(FetchError, match="page exists already"):
        get(url, tmp_path, progress=lambda *_: (tmp_path / "page").write_text("mine"))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"page": "mine"}


def test_what_a_killed_download_left_is_replaced(server: Server, tmp_path: Path) -> None:
    (tmp_path / "page.part").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("mine")
    get(server.on(lambda handler, _: handler.reply()), tmp_path)
    assert not os.path.lexists(tmp_path / "page.part")
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_of_two_downloads_of_one_document_the_later_wins(server: Server, tmp_path: Path) -> None:
    slow = server.on(lambda handler, _: handler.reply(PAGE * 2))
    quick = server.on(lambda handler, _: handler.reply())
    with pytest.raises(FetchError, match="another download of the same document"):
        get(slow, tmp_path, progress=lambda *_: (tmp_path / "page").exists() or get(quick, tmp_path))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"page": PAGE}


def test_the_part_of_another_download_is_not_removed(server: Server, tmp_path: Path) -> None:
    def begin_another(*_: object) -> None:
        (tmp_path / "page.part").unlink()
        (tmp_path / "page.part").write_text("theirs")

    with pytest.raises(FetchError, match="another download of the same document"):
        get(server.on(lambda handler, _: handler.reply()), tmp_path, progress=begin_another)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"page.part": "theirs"}


def test_a_failure_that_is_kept_keeps_no_connection(server: Server, tmp_path: Path) -> None:
    closed = threading.Event()

    def answer(handler: Handler, _: int) -> None:
        handler.reply(b"not a page")
        handler.rfile.read(1)
        handler.close_connection = True
        closed.set()

    with pytest.raises(FetchError) as kept:
        get(server.on(answer), tmp_path)
    assert closed.wait(2)
    assert kept.value.__cause__


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, OSError])
def test_an_interrupt_leaves_nothing_half_written(server: Server, tmp_path: Path, stop: type[BaseException]) -> None:
    def progress(*_: object) -> None:
        assert (tmp_path / "page.part").exists()
        raise stop

    threads = threading.active_count()
    with pytest.raises(stop):
        get(server.on(lambda handler, _: handler.reply(PDF, kind="application/pdf")), tmp_path,
            media_type="application/pdf", progress=progress)  # fmt: skip
    assert not list(tmp_path.iterdir())
    assert threading.active_count() <= threads + 1, "the server's own thread may still be ending"


class FullDisk(io.FileIO):
    def write(self, _: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["open", "write", "fsync", "replace"])
def test_a_full_disk_leaves_everything_as_it_was(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def open_full(path: Path, mode: str) -> FullDisk:
        return FullDisk(path, mode)

    (tmp_path / "other").write_text("mine")
    url = server.on(lambda handler, _: handler.reply())
    with monkeypatch.context() as patch:
        if step in ("open", "write"):
            patch.setattr(Path, "open", full if step == "open" else open_full)
        else:
            patch.setattr(os, step, full)
        with pytest.raises(FetchError, match=r"cannot write: no space left on device \(after 1 attempt\)"):
            get(url, tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"other": "mine"}


def test_a_missing_folder_is_said(server: Server, tmp_path: Path) -> None:
    url = server.on(lambda handler, _: handler.reply())
    with pytest.raises(FetchError, match="cannot write: no such file or directory"):
        get(url, tmp_path / "absent")


def test_no_password_of_the_user_is_sent(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    url = server.on(lambda handler, _: handler.reply())
    get(url, tmp_path)
    assert "Authorization" not in server.headers["/" + url.rpartition("/")[2]]


@given(body=st.binary(max_size=3000), packed=st.booleans(), length=st.sampled_from([-1, None]))
def test_any_document_keeps_its_checksum(
    server: Server, tmp_path_factory: pytest.TempPathFactory, body: bytes, packed: bool, length: int | None
) -> None:
    whole = b"%PDF-" + body * (len(body) % 50)
    more: Any = {"Content_Encoding": "gzip"} if packed else {}
    sent = gzip.compress(whole, 1, mtime=0) if packed else whole
    url = server.on(lambda handler, _: handler.reply(sent, kind="application/pdf", length=length, **more))
    came = get(url, tmp_path_factory.mktemp("any"), media_type="application/pdf")
    assert (came.sha256, came.size) == (hashlib.sha256(whole).hexdigest(), len(whole))
    assert came.path.read_bytes() == whole


@given(cut=st.integers(0, len(PAGE) - 1), packed=st.booleans())
def test_no_truncation_passes(server: Server, tmp_path_factory: pytest.TempPathFactory, cut: int, packed: bool) -> None:
    body = gzip.compress(PAGE, mtime=0) if packed else PAGE
    more: Any = {"Content_Encoding": "gzip"} if packed else {}
    url = server.on(lambda handler, _: handler.reply(body[: cut % len(body)], length=len(body), **more))
    assert "the body broke off" in refusal(url, tmp_path_factory.mktemp("cut"), retries=0)


@given(st.text() | st.from_regex(r"https?://[a-z@:\\/\[\]?#%.0-9\s]*"))
def test_an_address_is_plain_or_refused(url: str) -> None:
    fetch._place(url)
    try:
        parts = fetch._parsed(url)
    except fetch.Fault:
        return
    assert parts.scheme in ("http", "https")
    assert parts.host
    assert parts.auth is None
    assert fetch._parsed(str(parts)) == parts
