"""A local HTTP server that misbehaves as each test asks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5
    server: Server

    def do_GET(self) -> None:
        self.server.authorisations.append(self.headers.get("Authorization"))
        self.server.responders[self.path](self)

    def log_message(self, *args: object) -> None:
        pass

    def send(
        self,
        body: bytes = b"",
        *,
        status: int = 200,
        kind: str = "text/html",
        length: int | None = None,
        **more: str,
    ) -> None:
        """Send a response; its Content-Length is that of the body but for `length`."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        self.close_connection = True
        self.end_headers()
        self.wfile.write(body)

    def drip(self, data: bytes, pause: float) -> None:
        """Send data again and again, for some seconds or until the server is closed."""
        for _ in range(200):
            self.wfile.write(data)
            self.wfile.flush()
            if self.server.over.wait(pause):
                return


Responder = Callable[[Handler], object]


class Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.responders: dict[str, Responder] = {}
        self.authorisations: list[str | None] = []
        self.over = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        pass

    def on(self, path: str, respond: Responder) -> str:
        """Respond at a path, and return its address."""
        self.responders[path] = respond
        return f"http://127.0.0.1:{self.server_port}{path}"


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
