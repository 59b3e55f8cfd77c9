"""What one session does: batch after batch with five stamps each, for as long as it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipu_results.runner.backends.base import Session

    Feed = Callable[[], tuple[Any, int, int, int]]  # a batch; when it was asked for, was loaded, was ready

AHEAD = 2  # batches that are ready before they are asked for
POLL_S = 0.1


def repeat(session: Session, feed: Feed, until: int, least: int) -> list[tuple[int, ...]]:
    """Stamps (start, loaded, pre-processed, inferred, retrieved) of at least `least` batches, until a moment has come.

    Nanoseconds of the session's clock. Outputs are back on the host at the last stamp.
    """
    clock, run = session.clock, session.run
    stamps: list[tuple[int, ...]] = []
    keep = stamps.append
    while True:
        images, start, loaded, ready = feed()
        outputs = run(images)
        inferred = clock()
        retrieve(outputs)
        retrieved = clock()
        keep((start, loaded, ready, inferred, retrieved))
        if retrieved >= until and len(stamps) >= least:
            return stamps


def retrieve(outputs: Any) -> Any:
    """The class of each image, read on the host."""
    return None if outputs is None else outputs.argmax(axis=-1)


@contextmanager
def feeding(session: Session, source: Any, overlap: bool) -> Iterator[Feed]:
    """Batches of `source`, made when they are asked for, or ahead of time by a thread of their own.

    A session whose time is calculated gets none. In `overlap` the time until a batch is ready is the time that the
    session waits for it, counted as pre-processing.
    """
    if source is None:
        yield _nothing(session.clock)
    elif not overlap:
        yield _in_turn(session.clock, source)
    else:
        with _ahead(source) as ready:
            yield _waiting(session.clock, ready)


def _nothing(clock: Callable[[], int]) -> Feed:
    def feed() -> tuple[Any, int, int, int]:
        now = clock()
        return None, now, now, now

    return feed


def _in_turn(clock: Callable[[], int], source: Any) -> Feed:
    def feed() -> tuple[Any, int, int, int]:
        start = clock()
        data = source.load()
        loaded = clock()
        return source.prepare(data), start, loaded, clock()

    return feed


def _waiting(clock: Callable[[], int], ready: Callable[[], Any]) -> Feed:
    def feed() -> tuple[Any, int, int, int]:
        start = clock()
        images = ready()
        return images, start, start, clock()

    return feed


@contextmanager
def _ahead(source: Any) -> Iterator[Callable[[], Any]]:
    """Nothing is made yet when the block begins: what is ahead when it starts to count is left over when it ends."""
    made: Queue[Any] = Queue(AHEAD)
    stop = Event()

    def put(one: Any) -> None:
        while not stop.is_set():
            with suppress(Full):
                made.put(one, timeout=POLL_S)
                break

    def make() -> None:
        try:
            while not stop.is_set():
                put(source.prepare(source.load()))
        except Exception as error:  # told to the session that waits
            put(error)

    def ready() -> Any:
        one = made.get()
        if isinstance(one, Exception):
            raise one
        return one

    thread = Thread(target=make, daemon=True)
    thread.start()
    try:
        yield ready
    finally:
        stop.set()
        _drain(made)
        thread.join()


def _drain(made: Queue[Any]) -> None:
    with suppress(Empty):
        while True:
            made.get_nowait()
