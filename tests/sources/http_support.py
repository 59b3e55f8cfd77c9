"""A local HTTP server that misbehaves as each test asks."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = b"<!doctype html>\n<html><table><tr><td>ResNet-50</td><td>30690</td></tr></table></html>\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5
    server: Server

    def do_GET(self) -> None:
        self.server.hits[self.path] += 1
        self.server.headers[self.path] = dict(self.headers)
        self.server.responders[self.path](self, self.server.hits[self.path])

    def log_message(self, *args: object) -> None:
        pass

    def send(
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
        """Send data again and again, for a minute or until the server is closed."""
        for _ in range(1200):
            self.wfile.write(data)
            if self.server.over.wait(pause):
                return


Responder = Callable[[Handler, int], object]


class Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.responders: dict[str, Responder] = {}
        self.headers: dict[str, dict[str, str]] = {}
        self.hits: Counter[str] = Counter()
        self.over = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        pass

    def on(self, respond: Responder, path: str = "") -> str:
        """Respond at a path, by default a new one, and return its address."""
        path = path or f"/{len(self.responders)}"
        self.responders[path] = respond
        return f"http://127.0.0.1:{self.server_port}{path}"

    def hits_of(self, url: str) -> int:
        return self.hits["/" + url.rpartition("/")[2]]


@contextmanager
def run_server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield running
        finally:
            running.over.set()
            running.shutdown()
            thread.join()
