"""Pools run a function on many tasks, whatever happens to their workers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import pytest
from distributed import Client, LocalCluster
from ipu_results.errors import ClusterError, MissingExtraError, WorkerLostError
from ipu_results.ground.parallel import DaskCluster, ProcessPool, TaskPool

from tests.conftest import ROOT

pytestmark = pytest.mark.slow  # processes are started


def square(number: int) -> int:
    if number < 0:
        raise ValueError("is negative")
    return number * number


def kill_worker(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def finish_later(path: Path | None) -> None:
    if path is not None:
        time.sleep(20)
        path.touch()


def wait_shortly(number: int) -> int:
    time.sleep(0.05)
    return number


def touch_and_wait(path: str) -> None:
    Path(path).touch()
    time.sleep(60)


def explain_other_process(pid: int) -> str:
    return "" if os.getpid() == pid else "it is another process"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Two worker processes."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as running:
        yield running


@pytest.fixture(params=["one process", "two processes", "dask"])
def pool(request: pytest.FixtureRequest) -> TaskPool:
    if request.param == "dask":
        return DaskCluster(request.getfixturevalue("cluster").scheduler_address)
    return ProcessPool(1 if request.param == "one process" else 2)


def test_every_task_has_a_result(pool: TaskPool) -> None:
    assert sorted(pool.map_unordered(square, range(20))) == [
        number * number for number in range(20)
    ]
    assert list(pool.map_unordered(square, [])) == []


def test_an_error_of_the_function_is_raised(pool: TaskPool) -> None:
    with pytest.raises(ValueError, match="is negative"):
        list(pool.map_unordered(square, [1, 2, -3]))


def test_one_task_needs_no_other_process() -> None:
    assert list(ProcessPool(8).map_unordered(explain_other_process, [os.getpid()])) == [""]
    assert list(ProcessPool(1).map_unordered(explain_other_process, [os.getpid()] * 3)) == [""] * 3


@pytest.mark.slow
def test_a_killed_process_is_an_error() -> None:
    with pytest.raises(
        WorkerLostError, match="a worker process was killed, perhaps for lack of memory"
    ):
        list(ProcessPool(2).map_unordered(kill_worker, [1, 2]))


def test_a_closed_generator_ends_the_processes(tmp_path: Path) -> None:
    before = set(active_children())
    results = ProcessPool(2).map_unordered(finish_later, [None, tmp_path / "finished"])
    next(results)
    results.close()
    assert set(active_children()) == before
    assert not (tmp_path / "finished").exists()


INTERRUPTED = """
import sys
from ipu_results.ground.parallel import ProcessPool
from tests.ground.test_parallel import touch_and_wait
try:
    list(ProcessPool(2).map_unordered(touch_and_wait, sys.argv[1:] * 4))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.slow
def test_ctrl_c_reaches_this_process_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, tmp_path / "begun"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, cwd=ROOT, text=True, start_new_session=True
    ) as process:
        while not (tmp_path / "begun").exists() and process.poll() is None:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=50) == ("interrupted\n", "")  # each task takes 60 s


def test_a_closed_generator_takes_the_tasks_off_the_cluster(cluster: LocalCluster) -> None:
    results = DaskCluster(cluster.scheduler_address).map_unordered(wait_shortly, range(50))
    next(results)
    results.close()
    with Client(cluster, set_as_default=False) as client:
        assert client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) == 0


@pytest.mark.slow
def test_tasks_of_a_killed_cluster_worker_go_to_another(cluster: LocalCluster) -> None:
    with Client(cluster, set_as_default=False) as client:
        before = client.run(os.getpid)
    results = DaskCluster(cluster.scheduler_address).map_unordered(wait_shortly, range(60))
    first = [next(results) for _ in range(3)]
    os.kill(min(before.values()), signal.SIGKILL)
    assert sorted([*first, *results]) == list(range(60))
    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=30)
        assert set(client.run(os.getpid).values()) != set(before.values())


def test_cluster_workers_are_checked_first(cluster: LocalCluster) -> None:
    check = partial(explain_other_process, os.getpid())
    with pytest.raises(
        ClusterError, match=r"worker tcp://\S+ cannot do the work: it is another process"
    ):
        list(DaskCluster(cluster.scheduler_address).map_unordered(square, [1], check))
    fails_here = partial(explain_other_process, 0)
    assert list(DaskCluster(cluster.scheduler_address).map_unordered(square, [3], fails_here)) == [
        9
    ]


def closed_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


@pytest.mark.parametrize("address", ["", "nonsense", "a:b:c", "foo://127.0.0.1:1"])
def test_a_malformed_address_is_refused(address: str) -> None:
    with pytest.raises(ClusterError, match="is not the address of a scheduler: "):
        list(DaskCluster(address).map_unordered(square, [1]))


def test_a_missing_scheduler_is_an_error() -> None:
    address = f"tcp://127.0.0.1:{closed_port()}"
    with pytest.raises(ClusterError, match=rf"{address}: no scheduler answers within 0\.5 s: "):
        list(DaskCluster(address, timeout=0.5).map_unordered(square, [1]))


def test_a_scheduler_without_workers_is_an_error() -> None:
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0", protocol="tcp") as empty,
        pytest.raises(ClusterError, match=r"has no worker within 0\.5 s"),
    ):
        list(DaskCluster(empty.scheduler_address, timeout=0.5).map_unordered(square, [1]))


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        MissingExtraError, match=r"needs dask: pip install 'ipu-results\[distributed\]'"
    ):
        list(DaskCluster("tcp://127.0.0.1:1").map_unordered(square, [1]))
