"""Requests that end: within a deadline whatever the server does, and with one reason when they fail."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.util import Url

Progress = Callable[[int, int | None], None]

USER_AGENT = "ipu-results (the verified record of published IPU benchmark results)"


class Fault(Exception):
    def __init__(self, message: str, *, retry: bool = False, wait: float = 0.0) -> None:
        super().__init__(message)
        self.retry = retry
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Order:
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
            raise Fault(f"larger than the limit of {self.max_bytes} bytes")


def cleaned(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)[:120].strip().lower()


@contextmanager
def session_for(order: Order) -> Iterator[requests.Session]:
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

    def cut_when_late(self, order: Order, over: threading.Event) -> None:
        while not over.wait(0.05):
            for opened in list(self.sockets) if order.left() <= 0 else ():
                with suppress(OSError, TypeError):
                    socket.socket.shutdown(opened, socket.SHUT_RDWR)


@contextmanager
def faults_told(what: str, *, retry: bool) -> Iterator[None]:
    try:
        yield
    except (OSError, urllib3.exceptions.HTTPError) as error:
        cause = _innermost(error)
        reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        hopeless = isinstance(cause, ValueError)  # an impossible address, a refused certificate
        raise Fault(f"{what}: {cleaned(reason)}", retry=retry and not hopeless) from error


def _innermost(error: BaseException) -> BaseException:
    nearer = (getattr(error, "reason", None), *error.args, error.__cause__)
    cause = next((each for each in nearer if isinstance(each, BaseException)), None)
    return _innermost(cause) if cause else error


def get(session: requests.Session, target: Url, order: Order) -> requests.Response:
    timeout = min(order.timeout, order.left())
    if timeout <= 0:
        raise Fault("no time is left")
    with faults_told("the request failed", retry=True):
        return session.get(target.url, stream=True, allow_redirects=False, timeout=timeout)
