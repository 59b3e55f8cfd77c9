"""One session in a process of its own, controlled by lines of JSON: `python -m
ipu_results.runner.worker`.

A request is `{"method": ..., "params": {...}}`. Replies go to the standard output that the process
was started with. Whatever a library prints goes to standard error, and its standard input is empty.
Runs under Python 3.8.
"""

from __future__ import annotations

import json
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np

    from ipu_results.runner.backends import Batch, Session
    from ipu_results.runner.inputs import InputStream

    # a batch, and the moments when it was requested, loaded and ready: a plain tuple, for it is
    # made in the time that is measured
    FedBatch = tuple[Batch | None, int, int, int]
    Feed = Callable[[], FedBatch]
    Stamps = tuple[int, int, int, int, int]
    Reply = dict[str, Any]  # of JSON; each method of WorkerServer has its own

AHEAD = 3  # batches that are made before they are requested


class WorkerServer:
    """The session of this process.

    Each public method serves a request, and what it returns is the reply.
    """

    session: Session
    images: Mapping[str, Any] | None = None
    micro_batch = 0  # items of one run

    def probe(self, backend: str) -> Reply:
        """List the devices of a backend, seen from this process."""
        # PopART is imported before all else
        from ipu_results.runner.backends import load_backend  # noqa: PLC0415

        return {"devices": [vars(device) for device in load_backend(backend).probe()]}

    def open(self, backend: str, spec: dict[str, Any], images: Mapping[str, Any] | None) -> Reply:
        """Open the session.

        `images` are the arguments of its stream but for type and size of a batch.
        """
        from ipu_results.runner.backends import SessionSpec, load_backend  # noqa: PLC0415

        spec["micro_batches"] = tuple(spec["micro_batches"])
        self.session = load_backend(backend).open(SessionSpec(**spec))
        self.images = images
        return {"facts": vars(self.session.facts)}

    def prepare(self, micro_batch: int, kind: str) -> Reply:
        """Make ready for batches of this size; reply with the seconds that took and what is
        predicted for it.
        """
        session = self.session
        start = session.clock()
        session.prepare(micro_batch, kind)
        seconds = (session.clock() - start) / 1e9
        steps = session.batches_per_step
        self.micro_batch = micro_batch * steps
        return {"seconds": seconds, "predicted": session.predict_point(), "steps": steps}

    def run_block(self, at: int, seconds: float, min_batches: int, overlap: bool) -> Reply:
        """Run batches from the moment `at` for at least this time and this number of batches; reply
        with their stamps.

        In overlap one batch goes before them without a stamp. From then on one is made for each that
        is run, so that the block pays for as many as it runs.
        """
        session = self.session
        stream = None if session.virtual else self._open_stream()
        with open_feed(session, stream, overlap) as feed:
            session.wait_until(at)
            if overlap and stream is not None:
                session.run(feed()[0])
            # from the real start: a session may be late for `at`
            until = max(at, session.clock()) + int(seconds * 1e9)
            stamps = run_batches(session, feed, until, min_batches)
        return {"stamps": stamps, "clock": session.clock()}

    def write_outputs(self, count: int, file: str) -> Reply:
        """Write the outputs for this session's first `count` images to a .npy file."""
        import numpy as np  # noqa: PLC0415

        stream = self._open_stream()
        assert stream is not None
        outputs: list[Any] = []
        for _ in range(0, count, self.micro_batch):
            outputs.append(self.session.run(stream.prepare(stream.load())))
        np.save(file, np.concatenate(outputs)[:count])
        return {}

    def close(self) -> Reply:
        if hasattr(self, "session"):
            self.session.close()
        return {}

    def _open_stream(self) -> InputStream | None:
        """Return the session's images or sequences from the first one on, None for a device that
        computes nothing.
        """
        if self.images is None:
            return None
        from ipu_results.runner.inputs import ImageStream, SequenceStream  # noqa: PLC0415

        kind = SequenceStream if "file" in self.images else ImageStream
        return kind(**self.images, dtype=self.session.dtype, micro_batch=self.micro_batch)


def run_batches(session: Session, feed: Feed, until: int, min_batches: int) -> list[Stamps]:
    """Run batch after batch until a moment has come, at least `min_batches`, and return five stamps
    of each.

    Stamps are start, loaded, pre-processed, inferred and retrieved, in ns of the session's clock.
    At the last one the outputs are back on the host.
    """
    clock = session.clock
    run = session.run
    stamps: list[Stamps] = []
    append = stamps.append  # this loop is what is measured: no look-up, no branch more than needed
    while True:
        batch, start, loaded, ready = feed()
        outputs = run(batch)
        inferred = clock()
        read_classes(outputs)
        retrieved = clock()
        append((start, loaded, ready, inferred, retrieved))
        if retrieved >= until and len(stamps) >= min_batches:
            return stamps


def read_classes(outputs: np.ndarray | None) -> np.ndarray | None:
    """Return the class of each image, read on the host."""
    if outputs is None:
        return None
    classes: np.ndarray = outputs.argmax(axis=-1)
    return classes


@contextmanager
def open_feed(session: Session, stream: InputStream | None, overlap: bool) -> Iterator[Feed]:
    """Yield a function that returns the next batch and its first three stamps.

    Batches are made when they are requested, or ahead of time in a thread (`overlap`): then the
    time that the session waits for one counts as pre-processing. A session whose time is calculated
    has no stream and gets no images.
    """
    clock = session.clock
    if stream is None:

        def feed_nothing() -> FedBatch:
            now = clock()
            return None, now, now, now

        yield feed_nothing
    elif overlap:
        with _prefetch(stream) as next_batch:

            def feed_ahead() -> FedBatch:
                start = clock()
                batch = next_batch()
                return batch, start, start, clock()

            yield feed_ahead
    else:

        def feed_in_turn() -> FedBatch:
            start = clock()
            data = stream.load()
            loaded = clock()
            return stream.prepare(data), start, loaded, clock()

        yield feed_in_turn


@contextmanager
def _prefetch(stream: InputStream) -> Iterator[Callable[[], Batch]]:
    """Make batches in a thread while the block runs; yield what waits for the next one."""

    def make() -> Batch:
        return stream.prepare(stream.load())

    with ThreadPoolExecutor(1) as thread:
        made = deque(thread.submit(make) for _ in range(AHEAD))

        def next_batch() -> Batch:
            made.append(thread.submit(make))
            return made.popleft().result()  # raises here what the thread raised

        try:
            yield next_batch
        finally:
            for future in made:
                future.cancel()


def serve_request(server: WorkerServer, request: Mapping[str, Any]) -> Reply:
    """Return the reply to a request; an error by its class and text, so that the other side can
    raise it again.
    """
    try:
        reply: Reply = getattr(server, request["method"])(**request["params"])
        return reply
    except Exception as error:
        return {
            "error": type(error).__name__,
            "message": getattr(error, "message", None) or f"{type(error).__name__}: {error}",
            "document": getattr(error, "document", None),
            "place": getattr(error, "place", None),
        }


def main() -> None:
    """Serve requests until the one that closes the session, or the end of the input."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    # libraries print to descriptor 1: that must not reach the replies
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
