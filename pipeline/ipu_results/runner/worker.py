"""One session in a process of its own, controlled by lines of JSON: `python -m
ipu_results.runner.worker`.

A request is `{"method": ..., "params": {...}}`. Replies go to the standard output that the process
was started with. Whatever a library prints goes to standard error, and its standard input is empty.
Runs under Python 3.8.
"""

from __future__ import annotations

import json
import os
import traceback
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ipu_results.runner.backends import Session

    # a batch, and the moments when it was requested, loaded and ready
    Feed = Callable[[], tuple[Any, int, int, int]]

AHEAD = 3  # batches that are made before they are requested


class WorkerServer:
    """The session of this process.

    Each public method serves a request, and what it returns is the reply.
    """

    def __init__(self) -> None:
        self.session: Any = None
        self.images: Any = None
        self.micro_batch = 0  # items of one run

    def probe(self, backend: str) -> dict[str, Any]:
        """List the devices of a backend, seen from this process."""
        # PopART is imported before all else
        from ipu_results.runner.backends import load_backend  # noqa: PLC0415

        return {"devices": [vars(device) for device in load_backend(backend).probe()]}

    def open(
        self, backend: str, spec: dict[str, Any], images: dict[str, Any] | None
    ) -> dict[str, Any]:
        """Open the session.

        `images` are the arguments of its stream but for type and size of a batch.
        """
        from ipu_results.runner.backends import SessionSpec, load_backend  # noqa: PLC0415

        micro_batches = tuple(spec["micro_batches"])
        self.session = load_backend(backend).open(
            SessionSpec(**{**spec, "micro_batches": micro_batches})
        )
        self.images = images
        return {
            "facts": vars(self.session.facts),
            "virtual": self.session.virtual,
            "clock": self.session.clock(),
        }

    def prepare(self, micro_batch: int, kind: str) -> dict[str, Any]:
        """Make ready for batches of this size; reply with the seconds that took and what is
        predicted for it.
        """
        start = self.session.clock()
        self.session.prepare(micro_batch, kind)
        self.micro_batch = micro_batch * self.session.batches_per_step
        seconds = (self.session.clock() - start) / 1e9
        return {
            "seconds": seconds,
            "predicted": self.session.predict_point(),
            "steps": self.session.batches_per_step,
        }

    def run_block(self, at: int, seconds: float, min_batches: int, overlap: bool) -> dict[str, Any]:
        """Run batches from the moment `at` for at least this time and this number of batches; reply
        with their stamps.

        In overlap one batch goes before them without a stamp. After it the images are as far ahead
        as they stay, so that no work is left out which was done before the block began.
        """
        stream = self._open_stream()
        with open_feed(self.session, stream, overlap) as feed:
            self.session.wait_until(at)
            if overlap and stream is not None:
                self.session.run(feed()[0])
            until = max(at, self.session.clock()) + int(seconds * 1e9)
            stamps = run_batches(self.session, feed, until, min_batches)
        return {"stamps": stamps, "clock": self.session.clock()}

    def write_outputs(self, count: int, file: str) -> dict[str, Any]:
        """Write the outputs for this session's first `count` images to a .npy file."""
        import numpy as np  # noqa: PLC0415

        stream = self._open_stream(always=True)
        batches = -(-count // self.micro_batch)
        outputs = [self.session.run(stream.prepare(stream.load())) for _ in range(batches)]
        np.save(file, np.concatenate(outputs)[:count])
        return {}

    def close(self) -> dict[str, Any]:
        if self.session is not None:
            self.session.close()
        return {}

    def _open_stream(self, always: bool = False) -> Any:
        """Return the session's images or sequences from the first one on, or None where nothing is
        computed.
        """
        if self.images is None or (self.session.virtual and not always):
            return None
        shape = {"dtype": self.session.dtype, "micro_batch": self.micro_batch}
        if "file" in self.images:
            from ipu_results.runner.inputs import SequenceStream  # noqa: PLC0415

            return SequenceStream(**self.images, **shape)
        from ipu_results.runner.inputs import ImageStream  # noqa: PLC0415

        place = {**self.images, "folder": Path(self.images["folder"])}
        return ImageStream(**place, **shape)


def run_batches(
    session: Session, feed: Feed, until: int, min_batches: int
) -> list[tuple[int, ...]]:
    """Run batch after batch until a moment has come, at least `min_batches`, and return five stamps
    of each.

    Stamps are start, loaded, pre-processed, inferred and retrieved, in ns of the session's clock.
    At the last one the outputs are back on the host.
    """
    clock = session.clock
    run = session.run
    stamps: list[tuple[int, ...]] = []
    append = stamps.append  # this loop is what is measured: no look-up, no branch more than needed
    while True:
        images, start, loaded, ready = feed()
        outputs = run(images)
        inferred = clock()
        read_classes(outputs)
        retrieved = clock()
        append((start, loaded, ready, inferred, retrieved))
        if retrieved >= until and len(stamps) >= min_batches:
            return stamps


def read_classes(outputs: Any) -> Any:
    """Return the class of each image, read on the host."""
    return None if outputs is None else outputs.argmax(axis=-1)


@contextmanager
def open_feed(session: Session, stream: Any, overlap: bool) -> Iterator[Feed]:
    """Yield a function that returns the next batch and its first three stamps.

    Batches are made when they are requested, or ahead of time in a thread (`overlap`): then the
    time that the session waits for one counts as pre-processing. A session whose time is calculated
    has no stream and gets no images.
    """
    clock = session.clock

    def feed_nothing() -> tuple[Any, int, int, int]:
        now = clock()
        return None, now, now, now

    def feed_in_turn() -> tuple[Any, int, int, int]:
        start = clock()
        data = stream.load()
        loaded = clock()
        return stream.prepare(data), start, loaded, clock()

    if stream is None:
        yield feed_nothing
    elif not overlap:
        yield feed_in_turn
    else:
        with _prefetch(stream) as next_batch:

            def feed_ahead() -> tuple[Any, int, int, int]:
                start = clock()
                images = next_batch()
                return images, start, start, clock()

            yield feed_ahead


@contextmanager
def _prefetch(stream: Any) -> Iterator[Callable[[], Any]]:
    """Make batches in a thread while the block runs; yield a function that waits for the next one."""

    def make() -> Any:
        return stream.prepare(stream.load())

    with ThreadPoolExecutor(1) as thread:
        made = deque(thread.submit(make) for _ in range(AHEAD))

        def next_batch() -> Any:
            made.append(thread.submit(make))
            return made.popleft().result()  # raises here what the thread raised

        try:
            yield next_batch
        finally:
            for future in made:
                future.cancel()


def serve_request(server: WorkerServer, request: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to a request; an error by its class and text, so that the other side can
    raise it again.
    """
    try:
        reply: dict[str, Any] = getattr(server, request["method"])(**request["params"])
        return reply
    except Exception as error:
        message = getattr(error, "message", None) or f"{type(error).__name__}: {error}"
        place = {name: getattr(error, name, None) for name in ("document", "place")}
        return {
            "error": type(error).__name__,
            "message": message,
            **place,
            "traceback": traceback.format_exc(),
        }


def main() -> None:
    """Serve requests until the one that closes the session, or the end of the input."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    server = WorkerServer()
    for line in requests:
        request = json.loads(line)
        replies.write(json.dumps(serve_request(server, request)) + "\n")
        replies.flush()
        if request["method"] == "close":
            return


if __name__ == "__main__":
    main()
