"""The loop of one session: its stamps, its feeds, and the thread that makes images ahead."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from ipu_results.errors import UnusableImagesError
from ipu_results.runner.backends import Session
from ipu_results.runner.worker import AHEAD, WorkerServer, open_feed, read_classes, run_batches


class CountingSession(Session):
    """Counts the looks at its clock and keeps the images of its runs.

    The host waits for its outputs when it reads them: 100 ns.
    """

    def __init__(self) -> None:
        self.now = 0
        self.batches: list[Any] = []

    def clock(self) -> int:
        self.now += 1
        return self.now

    def run(self, batch: Any) -> Any:
        self.batches.append(batch)
        return self

    def argmax(self, axis: int) -> None:
        assert axis == -1
        self.now += 100


class NumberStream:
    """Images that are numbers. Loading the one of number `bad` fails."""

    def __init__(self, bad: int | None = None) -> None:
        self.bad = bad
        self.loaded = 0
        self.error = UnusableImagesError("is gone", document="7.jpg")

    def load(self) -> int:
        if self.loaded == self.bad:
            raise self.error
        self.loaded += 1
        return self.loaded - 1

    def prepare(self, number: int) -> int:
        return 10 * number


def catch(work: Callable[[], object]) -> BaseException | None:
    """Return the error of work that must come to an end and leave no thread."""
    before = set(threading.enumerate())
    try:
        work()
        caught = None
    except UnusableImagesError as error:
        caught = error
    assert set(threading.enumerate()) <= before
    return caught


def run_block(
    session: Session, stream: Any, overlap: bool, until: int = 0, count: int = 1
) -> list[tuple[int, ...]]:
    with open_feed(session, stream, overlap) as feed:
        return run_batches(session, feed, until, count)


def test_stamps_have_no_gap_and_outputs_are_read_on_the_host_before_the_last_one() -> None:
    stamps = run_block(CountingSession(), NumberStream(), False, count=2)
    assert stamps == [(1, 2, 3, 4, 105), (106, 107, 108, 109, 210)]
    assert read_classes(np.array([[0.0, 2.0, 1.0], [5.0, 2.0, 1.0]])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("until", "count", "batches"), [(0, 1, 1), (0, 4, 4), (105, 1, 1), (106, 1, 2), (300, 2, 3)]
)
def test_batches_run_until_the_moment_and_the_minimum(until: int, count: int, batches: int) -> None:
    stamps = run_block(CountingSession(), NumberStream(), False, until, count)
    assert len(stamps) == batches


def test_wait_for_images_made_ahead_is_pre_processing() -> None:
    stamps = run_block(CountingSession(), NumberStream(), True, count=6)
    for start, loaded, ready, inferred, retrieved in stamps:
        assert start == loaded < ready < inferred < retrieved
    assert all(later[0] == sooner[-1] + 1 for sooner, later in pairwise(stamps))


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("bad", [0, AHEAD, 7])
def test_error_of_the_images_reaches_the_caller_after_the_batches_before(
    bad: int, overlap: bool
) -> None:
    session = CountingSession()
    stream = NumberStream(bad)
    assert catch(lambda: run_block(session, stream, overlap, count=10)) is stream.error
    assert session.batches == [10 * number for number in range(bad)]


@pytest.mark.parametrize("used", [0, 1, 20])
@pytest.mark.parametrize("bad", [None, 0, 2])
def test_block_that_ends_early_leaves_no_thread(used: int, bad: int | None) -> None:
    stream = NumberStream(bad)

    def work() -> None:
        with open_feed(CountingSession(), stream, True) as feed:
            for _ in range(used):
                feed()

    assert catch(work) is (stream.error if bad is not None and bad < used else None)


@pytest.mark.parametrize(("overlap", "unstamped"), [(True, 1), (False, 0)])
def test_overlapping_block_counts_from_its_second_batch(
    overlap: bool, unstamped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work done ahead of the block would else cost nothing, wherever images are the bottleneck."""
    session = CountingSession()
    session.clock = Session.clock  # type: ignore[method-assign]
    server = WorkerServer()
    server.session = session
    monkeypatch.setattr(server, "_open_stream", NumberStream)
    reply = server.run_block(session.clock(), 0.0, 5, overlap)
    assert len(session.batches) == len(reply["stamps"]) + unstamped == 5 + unstamped
