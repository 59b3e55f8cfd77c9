"""Sessions in processes of their own: what they reply, how they are lost, and that none is left
behind.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ipu_results.errors import BackendError, RunnerError, SessionLostError, UnusableImagesError
from ipu_results.runner import sessions
from ipu_results.runner.backends import SessionSpec
from ipu_results.runner.estimate import NS
from ipu_results.runner.inputs import ImageStream
from ipu_results.runner.sessions import SessionPool, Subprocess, open_sessions
from ipu_results.runner.workload import Workload

from tests.conftest import ROOT
from tests.runner.faulty_backend import OUTPUTS, register_faulty, write_faulty_python
from tests.runner.runner_support import SIDE, is_running, list_children, wait_for, write_images

pytestmark = pytest.mark.slow  # processes are started


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_faulty_python(tmp_path_factory.mktemp("faulty"))


@pytest.fixture(autouse=True)
def _no_process_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sessions that hang are not waited for long, and no process outlives its test."""
    register_faulty()
    monkeypatch.setattr(sessions, "CLOSE_TIMEOUT_S", 0.2)
    before = list_children()
    yield
    assert wait_for(lambda: list_children() <= before, 5)


def specs(count: int = 2, **options: Any) -> list[SessionSpec]:
    first = SessionSpec("faulty", "", micro_batches=(2,), sessions=count, options=options)
    return [replace(first, session=number) for number in range(count)]


def open_pool(
    python: str, count: int = 2, images: dict[str, Any] | None = None, **options: Any
) -> SessionPool:
    return open_sessions(
        "faulty", specs(count, **options), images, overlap=images is not None, python=python
    )


# --- a pool at work


def test_every_session_runs_for_the_time_of_the_block(python: str) -> None:
    with closing(open_pool(python)) as pool:
        pool.prepare(4, "amortised")
        before = pool._now()
        stamps = pool.run_stream(0.05, 3)
        pool.prepare(4, "isolated")
        isolated = pool.run_isolated(0.0, 4)
    assert pool.facts.framework == "faulty"
    assert len(stamps) == 2
    for session in stamps:
        assert len(session) >= 3
        assert session[-1][-1] >= before + 0.05 * NS
        assert list(session) == sorted(session)
    assert [len(session) for session in isolated] == [4, 4]
    for batch in range(3):
        end = max(session[batch][-1] for session in isolated)
        assert min(session[batch + 1][0] for session in isolated) > end


def test_outputs_are_in_the_order_of_the_reference(python: str, tmp_path: Path) -> None:
    """Also where a batch has more images than the folder."""
    count = 4
    write_images(tmp_path, ["RGB"] * count)
    names = sorted(path.name for path in tmp_path.iterdir())
    images = {"folder": str(tmp_path), "names": names, "height": SIDE, "width": SIDE}
    with closing(open_pool(python, images=images)) as pool:
        pool.prepare(6, "amortised")
        pool.run_stream(0.0, 2)
        outputs = pool.compute_outputs(6)
    stream = ImageStream(tmp_path, names, SIDE, SIDE, micro_batch=count)
    reference = stream.prepare(stream.load()).reshape(count, -1)[:, :OUTPUTS]
    workload = Workload({}, reference=reference)
    assert len(np.unique(reference, axis=0)) == count
    assert np.array_equal(outputs, workload.select_reference(6, 2))


def test_output_of_a_library_is_not_a_reply(python: str) -> None:
    """And what a library reads is not a request."""
    with closing(open_pool(python, count=1, when="run", do="print")) as pool:
        pool.prepare(1, "amortised")
        assert len(pool.run_stream(0.0, 3)[0]) == 3


# --- sessions that are lost


@pytest.mark.parametrize(
    ("fault", "end"), [("die", "was killed by SIGKILL"), ("exit", "ended with 3")]
)
def test_lost_session_is_named_with_its_end(python: str, fault: str, end: str) -> None:
    with closing(open_pool(python, when="run", do=fault, session=1)) as pool:
        pool.prepare(4, "amortised")
        with pytest.raises(SessionLostError, match=f"^the process of session 1 {end}$"):
            pool.run_stream(0.0, 2)


def test_session_that_hangs_is_killed(python: str) -> None:
    (spec,) = specs(1, when="run", do="hang")
    transport = Subprocess(4, python)
    try:
        transport.send("open", backend="faulty", spec=vars(spec), images=None)
        transport.recv()
        transport.send("run_block", at=0, seconds=0, min_batches=1, overlap=False)
        with pytest.raises(SessionLostError, match=r"^session 4 has not replied for 0 s$"):
            transport.recv(0.05)
    finally:
        transport.close()
    assert not is_running(transport.pid)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("import absent_library", "session 0 ended with 1: .*Error: No module named 'absent_lib"),
        ("import os; os.write(1, b'{\"half'); os._exit(5)", "session 0 ended with 5$"),
        ("print('Welcome')", "^session 0 sent an invalid reply: 'Welcome'$"),
    ],
)
def test_worker_that_does_not_start_is_reported(tmp_path: Path, first: str, message: str) -> None:
    with pytest.raises(SessionLostError, match=message):
        open_pool(write_faulty_python(tmp_path, first), count=1)


# --- errors of a session


@pytest.mark.parametrize(
    ("fault", "error", "text"),
    [
        ("refuse", BackendError, "tiny: faulty: has no room for this batch"),
        ("miss-image", UnusableImagesError, "one.jpg: cannot be read"),
        ("fail", RunnerError, "ValueError: not one of ours"),
    ],
)
def test_error_in_a_session_is_raised_as_what_it_was(
    python: str, fault: str, error: type[RunnerError], text: str
) -> None:
    with closing(open_pool(python, when="run", do=fault, session=1)) as pool:
        pool.prepare(4, "amortised")
        with pytest.raises(error, match=f"^{text}$") as caught:
            pool.run_stream(0.0, 1)
    assert type(caught.value) is error


def test_pool_works_on_after_an_error(python: str, tmp_path: Path) -> None:
    """No reply is left behind for the next request."""
    flag = tmp_path / "flag"
    with closing(open_pool(python, when="prepare", do="refuse", session=0, flag=str(flag))) as pool:
        pool.prepare(4, "amortised")
        flag.touch()
        with pytest.raises(BackendError):
            pool.prepare(2, "amortised")
        flag.unlink()
        pool.prepare(2, "amortised")
        assert [len(session) for session in pool.run_stream(0.0, 3)] == [3, 3]


# --- nothing is left behind


def test_closed_sessions_end_by_themselves(python: str) -> None:
    pool = open_pool(python)
    assert all(is_running(transport.pid) for transport in pool.transports)
    pool.close()
    for transport in pool.transports:
        assert not is_running(transport.pid)
        assert isinstance(transport, Subprocess)
        assert transport._process.returncode == 0, "closed, not killed"
    pool.close()


@pytest.mark.parametrize("fault", ["refuse", "die"])
def test_failed_opening_leaves_no_session(python: str, fault: str) -> None:
    """The fixture sees the processes."""
    with pytest.raises(RunnerError):
        open_pool(python, count=3, when="open", do=fault, session=1)


def test_ctrl_c_while_opening_leaves_no_session(
    python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Subprocess, "recv", stop)
    with pytest.raises(KeyboardInterrupt):
        open_pool(python)


PARENT = """
import sys
sys.path.insert(0, {root!r})
from tests.runner.faulty_backend import register_faulty
from ipu_results.runner.backends import SessionSpec
from ipu_results.runner.sessions import open_sessions
register_faulty()
specs = [SessionSpec("faulty", "", sessions=2, session=number) for number in range(2)]
pool = open_sessions("faulty", specs, None, overlap=False, python={python!r})
pool.prepare(2, "amortised")
print([transport.pid for transport in pool.transports], flush=True)
while {busy}:
    pool.run_stream(0.3, 1)
sys.stdin.read()
"""


@pytest.mark.parametrize("busy", [False, True])
def test_sessions_end_when_the_sweep_is_killed(python: str, busy: bool) -> None:
    program = PARENT.format(root=str(ROOT), python=python, busy=busy)
    command = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as parent:
        assert parent.stdout is not None
        pids = json.loads(parent.stdout.readline())
        assert all(is_running(pid) for pid in pids)
        parent.kill()
    assert wait_for(lambda: not any(is_running(pid) for pid in pids))
