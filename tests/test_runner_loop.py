"""The loop of one session: its stamps, its feeds, and the thread that makes images ahead."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import UnusableImagesError
from ipu_results.runner.backends.base import Session, VirtualSession
from ipu_results.runner.loop import AHEAD, feeding, repeat, retrieve
from ipu_results.runner.worker import Host

STAMPS = 5


class Outputs:
    """Outputs that the host waits for when it reads them: 100 ns."""

    def __init__(self, session: Counting) -> None:
        self._session = session

    def argmax(self, axis: int) -> None:
        assert axis == -1
        self._session.now += 100


class Counting(Session):
    """Its clock counts how often it was looked at; it keeps what it was given."""

    def __init__(self, outputs: bool = False) -> None:
        self.now, self.given, self._outputs = 0, [], outputs

    def clock(self) -> int:
        self.now += 1
        return self.now

    def run(self, images: Any) -> Any:
        self.given.append(images)
        return Outputs(self) if self._outputs else None


class Numbers:
    """Images that are numbers. Loading the one of number `bad` fails."""

    def __init__(self, bad: int | None = None) -> None:
        self.bad, self.loaded, self.error = bad, 0, UnusableImagesError("is gone", document="7.jpg")

    def load(self) -> int:
        if self.loaded == self.bad:
            raise self.error
        self.loaded += 1
        return self.loaded - 1

    def prepare(self, number: int) -> int:
        return 10 * number


def ended(work: Callable[[], object]) -> BaseException | None:
    """The error that it ends with. It must come to an end, and leave no thread."""
    before, errors = set(threading.enumerate()), []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert set(threading.enumerate()) <= before
    return errors[0] if errors else None


def block(session: Session, source: Any, overlap: bool, until: int = 0, least: int = 1) -> list[tuple[int, ...]]:
    with feeding(session, source, overlap) as feed:
        return repeat(session, feed, until, least)


def test_stamps_follow_each_other_without_a_gap() -> None:
    stamps = block(Counting(), Numbers(), False, least=4)
    assert [one for row in stamps for one in row] == list(range(1, 4 * STAMPS + 1))


@given(st.integers(0, 200), st.integers(1, 30))
def test_as_many_batches_as_the_moment_and_the_least_ask_for(until: int, least: int) -> None:
    stamps = block(Counting(), Numbers(), False, until, least)
    assert len(stamps) == max(least, -(-until // STAMPS))


def test_outputs_are_read_on_the_host_before_the_last_stamp() -> None:
    ((*_, ready, inferred, retrieved),) = block(Counting(outputs=True), Numbers(), False)
    assert (inferred - ready, retrieved - inferred) == (1, 101)


def test_what_is_read_is_the_class_of_each_image() -> None:
    assert retrieve(np.array([[0.0, 2.0, 1.0], [5.0, 2.0, 1.0]])).tolist() == [1, 0]
    assert retrieve(None) is None


@pytest.mark.parametrize("overlap", [False, True])
def test_images_come_in_their_order(overlap: bool) -> None:
    session = Counting()
    block(session, Numbers(), overlap, least=25)
    assert session.given == [10 * number for number in range(25)]


def test_in_overlap_the_wait_is_pre_processing() -> None:
    stamps = block(Counting(), Numbers(), True, least=6)
    assert all(start == loaded < ready < inferred < retrieved for start, loaded, ready, inferred, retrieved in stamps)
    assert all(later[0] == sooner[-1] + 1 for sooner, later in pairwise(stamps))


def test_a_block_begins_with_images_made_ahead() -> None:
    source = Numbers()
    with feeding(Counting(), source, True):
        assert source.loaded >= AHEAD


def test_no_more_is_made_ahead_than_told() -> None:
    source = Numbers()
    with feeding(Counting(), source, True) as feed:
        for _ in range(5):
            feed()
    assert 5 + AHEAD - 1 <= source.loaded <= 5 + 2 * AHEAD


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("bad", [0, 1, AHEAD, 7])
def test_an_error_of_the_images_reaches_the_caller(bad: int, overlap: bool) -> None:
    """As itself, and after the batches before it."""
    session, source = Counting(), Numbers(bad)
    assert ended(lambda: block(session, source, overlap, least=10)) is source.error
    assert session.given == [10 * number for number in range(bad)]


def test_an_error_of_preparing_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Numbers, "prepare", lambda _, number: 1 // number)
    assert type(ended(lambda: block(Counting(), Numbers(), True))) is ZeroDivisionError


@pytest.mark.parametrize("taken", [0, 1, AHEAD, 20])
@pytest.mark.parametrize("bad", [None, 0, 1, 2, 3])
def test_a_block_that_ends_early_leaves_no_thread(taken: int, bad: int | None) -> None:
    source = Numbers(bad)

    def work() -> None:
        with feeding(Counting(), source, True) as feed:
            for _ in range(taken):
                feed()

    reached = bad is not None and bad < taken
    assert ended(work) is (source.error if reached else None)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_error_of_the_session_leaves_no_thread(error: type[BaseException]) -> None:
    def run(_: Any) -> None:
        raise error

    session = Counting()
    session.run = run  # type: ignore[method-assign]
    assert type(ended(lambda: block(session, Numbers(), True))) is error


@pytest.mark.parametrize("overlap", [False, True])
def test_a_session_of_calculated_time_gets_no_images(overlap: bool) -> None:
    class Calculated(VirtualSession):
        def run(self, images: Any) -> None:
            assert images is None
            self.advance(2.0)

    stamps = block(Calculated(), None, overlap, until=5 * 10**9)
    assert [tuple(one / 1e9 for one in row) for row in stamps] == [
        (0, 0, 0, 2, 2), (2, 2, 2, 4, 4), (4, 4, 4, 6, 6),
    ]  # fmt: skip


def _moments(start: int) -> Iterator[int]:
    yield from (start - 10**9, start, start + 50_000, start + 3_000_000)


def test_waiting_ends_at_the_moment_and_not_before() -> None:
    session = Session()
    for moment in _moments(session.clock()):
        session.wait_until(moment)
        assert session.clock() >= moment


@pytest.mark.parametrize(("overlap", "unstamped"), [(True, 1), (False, 0)])
def test_a_block_in_overlap_counts_from_its_second_batch(
    overlap: bool, unstamped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was made ahead before the count would be counted for nothing, wherever images are what is waited for."""
    ran: list[Any] = []

    class Counting(Session):
        def run(self, images: Any) -> Any:
            ran.append(images)
            return np.zeros((1, 2))

    host = Host()
    host.session, host.micro_batch = Counting(), 1
    monkeypatch.setattr(host, "_source", lambda: SimpleNamespace(load=lambda: [b""], prepare=len))
    told = host.block(host.session.clock(), 0.0, 5, overlap)
    assert len(ran) == len(told["stamps"]) + unstamped == 5 + unstamped
