"""Windows and latencies by hand on small stamps, and what holds for any."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.runner.blocks import Block, Kind, Stamps, Window

SECOND = 1_000_000_000


def session(*ends: int, start: int = 0) -> tuple[Stamps, ...]:
    """Iterations one after the other, of which only the ends matter."""
    starts = (start, *ends[:-1])
    return tuple((begin, begin, begin, end, end) for begin, end in zip(starts, ends, strict=True))


def block(*stamps: tuple[Stamps, ...], batch: int = 2, kind: Kind = "amortised") -> Block:
    return Block(7, 3, batch, kind, "2026-11-21T13:45:01Z", stamps)


sessions = st.lists(
    st.tuples(st.integers(0, 50), st.lists(st.integers(0, 40), min_size=1, max_size=12)), min_size=1, max_size=4
)


def made(drawn: list[tuple[int, list[int]]]) -> Block:
    """A block of sessions that are given by their start and the lengths of their iterations."""
    rows = []
    for start, lengths in drawn:
        ends, now = [], start
        for length in lengths:
            now += length
            ends.append(now)
        rows.append(session(*ends, start=start))
    return block(*rows, batch=3 * len(rows))


def test_window_of_one_session_is_all_of_it() -> None:
    assert block(session(10, 20, 40), batch=4).window == Window(0, 40, 12.0)


def test_window_begins_with_the_last_session_and_ends_with_the_first() -> None:
    found = block(session(10, 20, 30, 40), session(15, 25, 35, 45, 55, start=5)).window
    assert (found.start, found.end) == (5, 40)
    assert found.items == pytest.approx((0.5 + 3) + (3 + 0.5))


def test_iteration_counts_for_the_part_within_the_window() -> None:
    """A session of one long iteration beside one of four: three quarters of the long one lie within."""
    found = block(session(40), session(15, 20, 25, 30, start=10)).window
    assert (found.start, found.end) == (10, 30)
    assert found.items == pytest.approx(20 / 40 + 4)


def test_items_are_those_of_each_sessions_share_of_the_batch() -> None:
    assert block(session(10, 20), session(10, 20), batch=12).window.items == pytest.approx(24)
    assert block(session(10, 20), batch=12).window.items == pytest.approx(24)


def test_gap_before_an_iteration_is_its_own() -> None:
    """Between 10 and 20 nothing is stamped: the time belongs to the second iteration, whose half is within."""
    late = ((0, 0, 0, 10, 10), (20, 20, 20, 30, 30))
    found = block(late, session(20)).window
    assert (found.end, found.items) == (20, pytest.approx(1.5 + 1))


def test_images_made_ahead_do_not_count_twice() -> None:
    """The second iteration's image was asked for while the first was still at work."""
    overlapping = ((0, 5, 10, 18, 20), (12, 14, 20, 28, 30))
    assert block(overlapping, batch=1).window == Window(0, 30, 2.0)


def test_sessions_never_at_work_together_are_measured_from_first_to_last() -> None:
    found = block(session(10, 20), session(40, 50, start=30)).window
    assert found == Window(0, 50, 4.0)
    assert found.throughput > 0


def test_iteration_shorter_than_the_clock_can_tell_counts() -> None:
    assert block(session(10, 10, 20), batch=1).window.items == pytest.approx(3)


def test_throughput_is_per_second() -> None:
    assert Window(SECOND, 3 * SECOND, 40.0).throughput == pytest.approx(20)


def test_latencies_are_from_the_first_start_to_the_last_end() -> None:
    one = ((1_000_000, 0, 0, 0, 5_000_000), (10_000_000, 0, 0, 0, 12_000_000))
    two = ((2_000_000, 0, 0, 0, 4_000_000), (9_000_000, 0, 0, 0, 15_000_000))
    assert block(one, two, kind="isolated").latencies_ms == [4.0, 6.0]


def test_iterations_are_those_of_all_sessions() -> None:
    found = block(session(10, 20), session(10, 20, 30))
    assert (found.sessions, found.iterations) == (2, 5)


@given(sessions)
def test_items_are_never_negative_nor_more_than_were_done(drawn: list[tuple[int, list[int]]]) -> None:
    found = made(drawn)
    assert 0 <= found.window.items <= found.iterations * 3 + 1e-9


@given(sessions)
def test_window_is_no_longer_than_the_block(drawn: list[tuple[int, list[int]]]) -> None:
    found = made(drawn)
    starts, ends = [row[0][0] for row in found.stamps], [row[-1][-1] for row in found.stamps]
    assert min(starts) <= found.window.start <= found.window.end <= max(ends)


@given(st.integers(1, 4), st.integers(1, 30), st.integers(1, 1000), st.integers(0, 10**6))
def test_equal_sessions_do_batch_times_iterations_over_time(count: int, runs: int, length: int, start: int) -> None:
    ends = [start + length * (run + 1) for run in range(runs)]
    found = block(*[session(*ends, start=start)] * count, batch=6 * count)
    assert found.window.throughput == pytest.approx(6 * count * runs / (length * runs) * SECOND)


@given(sessions, st.integers(1, 10**12))
def test_later_is_the_same(drawn: list[tuple[int, list[int]]], later: int) -> None:
    here, there = made(drawn), made([(start + later, lengths) for start, lengths in drawn])
    assert there.window.items == pytest.approx(here.window.items)
    assert there.window.end - there.window.start == here.window.end - here.window.start


@given(sessions)
def test_order_of_the_sessions_does_not_matter(drawn: list[tuple[int, list[int]]]) -> None:
    here, there = made(drawn).window, made(drawn[::-1]).window
    assert (there.start, there.end) == (here.start, here.end)
    assert there.items == pytest.approx(here.items)


@given(sessions, st.none() | st.tuples(st.floats(1, 9), st.floats(1, 9)), st.none() | st.floats(0, 1))
def test_block_comes_back_from_json(
    drawn: list[tuple[int, list[int]]], probe: tuple[float, float] | None, share: float | None
) -> None:
    told = replace(made(drawn), probe_ms=probe, foreign_cpu=share, others=2, notes={"what": "was seen"})
    assert Block.from_json(json.loads(json.dumps(told.as_json()))) == told
