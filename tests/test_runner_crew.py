"""Sessions in processes of their own: what they answer, how they are lost, and that none is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from ipu_results.errors import BackendError, RunnerError, SessionLostError, UnusableImagesError
from ipu_results.runner import seats
from ipu_results.runner.backends.base import Facts, Spec
from ipu_results.runner.blocks import NS, Block
from ipu_results.runner.crew import Crew, open_crew
from ipu_results.runner.images import Source
from ipu_results.runner.scene import Scene
from ipu_results.runner.seats import Apart
from runner_support import (
    CLASSES,
    ODD,
    SIDE,
    TESTS,
    OddSession,
    children,
    install_odd,
    odd_python,
    pictures,
    runs,
    until,
)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return odd_python(tmp_path_factory.mktemp("odd"))


@pytest.fixture(autouse=True)
def _odd_and_nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The odd backend is known, sessions that hang are not waited for long, and no process outlives its test."""
    monkeypatch.setitem(sys.modules, ODD, None)  # type: ignore[arg-type]
    install_odd()
    monkeypatch.setattr(seats, "LEAVE_S", 0.2)
    before = children()
    yield
    assert until(lambda: children() <= before, 5)


def specs(count: int = 2, **options: Any) -> list[Spec]:
    return [
        Spec("odd", "", micro_batches=(2,), sessions=count, session=number, options=options) for number in range(count)
    ]


def opened(python: str, count: int = 2, images: dict[str, Any] | None = None, **options: Any) -> Crew:
    return open_crew("odd", specs(count, **options), images, overlap=images is not None, python=python)


def shown(folder: Path, count: int) -> dict[str, Any]:
    names = sorted(path.name for path in pictures(folder, ["RGB"] * count).iterdir())
    return {"folder": str(folder), "names": names, "height": SIDE, "width": SIDE}


# --- a crew at work


def test_every_session_works_for_as_long_as_told(python: str) -> None:
    crew = opened(python)
    try:
        crew.prepare(4, "amortised")
        before = crew._now()
        stamps = crew.stream(0.05, 3)
    finally:
        crew.close()
    assert crew.facts.framework == "odd"
    assert len(stamps) == 2
    for session in stamps:
        assert len(session) >= 3
        assert session[-1][-1] >= before + 0.05 * NS
        flat = [one for row in session for one in row]
        assert flat == sorted(flat)


def test_isolated_batches_are_one_at_a_time(python: str) -> None:
    crew = opened(python)
    try:
        crew.prepare(4, "isolated")
        stamps = crew.one_by_one(0.0, 4)
    finally:
        crew.close()
    assert [len(one) for one in stamps] == [4, 4]
    for batch in range(3):
        assert min(one[batch + 1][0] for one in stamps) > max(one[batch][-1] for one in stamps)
    block = Block(0, 0, 4, "isolated", "", stamps)
    assert len(block.latencies_ms) == 4


class Seat:
    """A session whose every batch takes 7 ns; it keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def ask(self, do: str, **given: Any) -> None:
        self.asked.append((do, given))

    def reply(self, timeout_s: float = 0.0) -> dict[str, Any]:  # noqa: ARG002
        at = self.asked[-1][1].get("at", 0)
        return {"stamps": [[at, at, at, at, at + 7]], "clock": at + 7, "seconds": 1, "told": {}}

    def leave(self) -> None:
        pass


FACTS = Facts("odd", "odd", "odd", "1", "fp32")


@pytest.mark.parametrize("virtual", [True, False])
def test_isolated_batches_start_together(virtual: bool) -> None:
    """All are told one moment, in the future where time is real, and none the next before the last has ended."""
    seats = [Seat(), Seat(), Seat()]
    Crew(seats, FACTS, virtual=virtual, overlap=True).one_by_one(0.0, 5)
    asked = [[given for _, given in seat.asked] for seat in seats]
    assert asked[0] == asked[1] == asked[2]
    assert len(asked[0]) == 5 if virtual else len(asked[0]) >= 5
    assert all((one["seconds"], one["least"], one["overlap"]) == (0, 1, False) for one in asked[0])
    assert all(later["at"] >= sooner["at"] + (7 if virtual else 0) for sooner, later in pairwise(asked[0]))


@pytest.mark.parametrize(("batch", "sessions"), [(1, 1), (8, 1), (8, 4), (6, 3)])
def test_a_batch_is_dealt_to_the_sessions_evenly(batch: int, sessions: int) -> None:
    seats = [Seat() for _ in range(sessions)]
    assert Crew(seats, FACTS, virtual=False, overlap=True).prepare(batch, "isolated") == (1, {})
    told = ("prepare", {"micro_batch": batch // sessions, "kind": "isolated"})
    assert [seat.asked for seat in seats] == [[told]] * sessions


@pytest.mark.parametrize("count", [3, 6, 7])
def test_outputs_are_in_the_order_of_the_reference(python: str, tmp_path: Path, count: int) -> None:
    """Also where a batch has more images than there are."""
    images = shown(tmp_path, count)
    crew = opened(python, images=images)
    try:
        crew.prepare(6, "amortised")
        crew.stream(0.0, 2)
        found = crew.outputs(6)
    finally:
        crew.close()
    source = Source(tmp_path, images["names"], SIDE, SIDE, micro_batch=count)
    every = source.prepare(source.load())
    wanted = every.reshape(count, -1)[:, :CLASSES]
    scene = Scene(SimpleNamespace(), images, wanted, {}, (), {})  # type: ignore[arg-type]
    assert len(np.unique(every, axis=0)) == count
    assert np.array_equal(found, scene.wanted_of(6, 2))


def test_what_a_library_prints_is_no_answer(python: str) -> None:
    """And what one reads is no request."""
    crew = opened(python, count=1, when="run", do="chatter")
    try:
        crew.prepare(1, "amortised")
        assert len(crew.stream(0.0, 3)[0]) == 3
    finally:
        crew.close()


# --- sessions that are lost


def lost(python: str, **options: Any) -> str:
    """What SessionLostError says of a crew that is asked for a block."""
    crew = opened(python, **options)
    try:
        crew.prepare(4, "amortised")
        with pytest.raises(SessionLostError) as caught:
            crew.stream(0.0, 2)
    finally:
        crew.close()
    return str(caught.value)


@pytest.mark.parametrize("session", [0, 1])
def test_a_killed_session_is_named_with_its_signal(python: str, session: int) -> None:
    assert (
        lost(python, when="run", do="die", session=session) == f"the process of session {session} was killed by SIGKILL"
    )


def test_a_session_killed_from_outside_in_a_block(python: str) -> None:
    crew = opened(python)
    try:
        crew.prepare(4, "amortised")
        seat = crew.seats[1]
        assert isinstance(seat, Apart)
        for one in crew.seats:
            one.ask("block", at=0, seconds=1e6, least=1, overlap=False)
        os.kill(seat.pid, signal.SIGTERM)
        with pytest.raises(SessionLostError, match=r"^the process of session 1 was killed by SIGTERM$"):
            seat.reply()
        with pytest.raises(SessionLostError, match=r"session 1 was killed by SIGTERM"):
            until(lambda: seat.ask("close") is not None, 5)
    finally:
        crew.close()


def test_a_session_that_ended_tells_its_status(python: str) -> None:
    assert lost(python, when="run", do="exit", session=1) == "the process of session 1 ended with 3"


def test_a_session_that_hangs(python: str) -> None:
    (spec,) = specs(1, when="run", do="hang")
    seat = Apart(4, python)
    try:
        seat.ask("open", backend="odd", spec=vars(spec), images=None)
        seat.reply()
        seat.ask("block", at=0, seconds=0, least=1, overlap=False)
        with pytest.raises(SessionLostError, match=r"^session 4 has not answered for 0 s$"):
            seat.reply(0.05)
    finally:
        seat.leave()
    assert not runs(seat.pid)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("import absent_library", r"^the process of session 0 ended with 1: .*ModuleNotFoundError: No module named"),
        ("import os; os.write(1, b'{\"half'); os._exit(5)", "^the process of session 0 ended with 5$"),
        ("print('Welcome')", "^session 0 said what is no answer: 'Welcome'$"),
        ("raise SystemExit", "^the process of session 0 ended with 0$"),
    ],
)
def test_a_worker_that_does_not_begin(tmp_path: Path, first: str, message: str) -> None:
    with pytest.raises(SessionLostError, match=message):
        opened(odd_python(tmp_path, first), count=2)


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SessionLostError, match=r"absent: cannot be started: No such file or directory$"):
        opened(str(tmp_path / "absent"))


# --- errors that are told


@pytest.mark.parametrize(
    ("when", "deed", "error", "message", "document", "place"),
    [
        ("open", "refuse", BackendError, "takes no such batch", "tiny", "odd"),
        ("prepare", "refuse", BackendError, "takes no such batch", "tiny", "odd"),
        ("run", "miss-image", UnusableImagesError, "cannot be read", "one.jpg", None),
        ("run", "fail", RunnerError, "ValueError: not one of ours", None, None),
    ],
)
def test_an_error_in_a_session_is_raised_as_what_it_was(
    python: str, when: str, deed: str, error: type[RunnerError], message: str, document: str | None, place: str | None
) -> None:
    crew = None
    with pytest.raises(RunnerError) as caught:  # noqa: PT012 (which of the calls raises is told by `when`)
        crew = opened(python, when=when, do=deed, session=1)
        crew.prepare(4, "amortised")
        crew.stream(0.0, 1)
    if crew is not None:
        crew.close()
    found = caught.value
    assert type(found) is error
    assert found.message == message
    assert (found.document, found.place) == (document, place)


def test_a_crew_goes_on_after_an_error(python: str, tmp_path: Path) -> None:
    """No answer is left behind that the next question would get."""
    flag = tmp_path / "flag"
    crew = opened(python, when="prepare", do="refuse", session=0, flag=str(flag))
    try:
        crew.prepare(4, "amortised")
        flag.touch()
        with pytest.raises(BackendError):
            crew.prepare(2, "amortised")
        flag.unlink()
        crew.prepare(2, "amortised")
        assert [len(one) for one in crew.stream(0.0, 3)] == [3, 3]
    finally:
        crew.close()


def test_an_error_in_this_process_is_the_same() -> None:
    with pytest.raises(BackendError, match="the null device has no option 'speed'"):
        open_crew("null", [Spec("null", "", options={"speed": 1})], None, overlap=False)


# --- nothing is left behind


def test_sessions_are_gone_after_closing(python: str) -> None:
    crew = opened(python)
    seats = [seat for seat in crew.seats if isinstance(seat, Apart)]
    assert [runs(seat.pid) for seat in seats] == [True, True]
    crew.close()
    assert [runs(seat.pid) for seat in seats] == [False, False]
    assert [seat._process.returncode for seat in seats] == [0, 0], "closed, not killed"
    crew.close()


@pytest.mark.parametrize("deed", ["refuse", "die", "hang"])
def test_sessions_are_gone_after_a_failed_opening(python: str, monkeypatch: pytest.MonkeyPatch, deed: str) -> None:
    begun: list[Apart] = []

    class Kept(Apart):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            begun.append(self)

        def reply(self, timeout_s: float = 0.0) -> dict[str, Any]:  # noqa: ARG002
            return super().reply(1.0 if deed == "hang" else 60.0)

    monkeypatch.setattr("ipu_results.runner.crew.Apart", Kept)
    with pytest.raises(RunnerError):
        opened(python, count=3, when="open", do=deed, session=1)
    assert len(begun) == 3
    assert not any(runs(seat.pid) for seat in begun)


def test_ctrl_c_while_opening_leaves_no_session(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Apart, "reply", stopped)
    before = children()
    with pytest.raises(KeyboardInterrupt):
        opened(python)
    assert children() == before


PARENT = """
import sys
sys.path.insert(0, {tests!r})
from runner_support import install_odd
from ipu_results.runner.backends.base import Spec
from ipu_results.runner.crew import open_crew
install_odd()
specs = [Spec("odd", "", sessions=2, session=number) for number in range(2)]
crew = open_crew("odd", specs, None, overlap=False, python={python!r})
crew.prepare(2, "amortised")
print([seat.pid for seat in crew.seats], flush=True)
if {busy}:
    while True:
        crew.stream(0.3, 1)
sys.stdin.read()
"""


@pytest.mark.parametrize("busy", [False, True])
def test_sessions_end_when_the_sweep_is_killed(python: str, busy: bool) -> None:
    program = PARENT.format(tests=str(TESTS), python=python, busy=busy)
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, **pipes) as parent:
        assert parent.stdout is not None
        pids: Sequence[int] = json.loads(parent.stdout.readline())
        assert [runs(pid) for pid in pids] == [True, True]
        parent.kill()
    assert until(lambda: not any(runs(pid) for pid in pids))


def test_the_odd_session_is_a_session() -> None:
    """The stand-in of these tests keeps to what a backend is."""
    session = OddSession(specs(1)[0])
    assert not session.virtual
    assert session.run(np.ones((2, 3, 4, 4), np.float32)).shape == (2, CLASSES)
