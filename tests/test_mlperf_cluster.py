"""The workers of a cluster give what this machine gives, and what a lost one has read is read again."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from archive_support import ROUNDS, SlowTree, as_archive, as_folder, checkout, log, members
from conftest import run_cli, run_process
from distributed import Client, LocalCluster
from ipu_results.errors import ClusterError
from ipu_results.mlperf.cluster import on_cluster
from ipu_results.mlperf.scoring import in_processes, score_tree
from ipu_results.mlperf.tree import LocalTree

ONE_ROUND = ROUNDS / "training_v1.0_results_part.tar.xz"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Two worker processes."""
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The small checkout with twenty more entries."""
    more = {f"v2.0/Acme/results/pod{pod}/resnet/result_{run}.txt": log(9) for pod in range(20) for run in range(2)}
    return as_folder(tmp_path / "unpacked", checkout() | more)


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_cluster_gives_what_this_machine_gives(cluster: LocalCluster, folder: Path, prefix: str) -> None:
    local = run_cli("mlperf", folder, "--format", "json", "--runs", "--workers", 1)
    done = run_process("mlperf", f"{prefix}{folder}", "--format", "json", "--runs", "--dask", cluster.scheduler_address)
    assert local.returncode == 0
    assert (done.returncode, done.stdout, done.stderr) == (local.returncode, local.stdout, local.stderr)


def test_a_relative_path_is_that_of_the_command(
    cluster: LocalCluster, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    done = run_cli("mlperf", folder.name, "--format", "csv", "--dask", cluster.scheduler_address)
    assert done.stdout == run_cli("mlperf", folder, "--format", "csv", "--workers", 1).stdout


def test_a_worker_killed_in_the_middle_loses_nothing(cluster: LocalCluster, folder: Path) -> None:
    with Client(cluster, set_as_default=False) as client:
        before = client.run(os.getpid)
    seen: list[int] = []

    def kill(done: int, _: int) -> None:
        seen.append(done)
        if done == 3:
            os.kill(min(before.values()), signal.SIGKILL)

    local = score_tree(LocalTree(str(folder)), in_processes(1), digests=True)
    reader = on_cluster(cluster.scheduler_address)
    assert score_tree(SlowTree(str(folder)), reader, digests=True, progress=kill) == local
    assert seen == list(range(1, 24))
    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=30)
        assert set(client.run(os.getpid).values()) != set(before.values())


def test_one_who_stops_takes_the_work_off_the_cluster(cluster: LocalCluster, folder: Path) -> None:
    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_tree(SlowTree(str(folder)), on_cluster(cluster.scheduler_address), progress=stop)
    with Client(cluster, set_as_default=False) as client:
        assert client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) == 0


def test_workers_that_do_not_see_the_data_are_named(cluster: LocalCluster, folder: Path) -> None:
    tree = HereOnly(str(folder), os.getpid())
    with pytest.raises(ClusterError, match=r"worker tcp://\S+ does not see the data: .*No such file"):
        score_tree(tree, on_cluster(cluster.scheduler_address))


class HereOnly(SlowTree):
    """A folder that one process alone sees."""

    def chunks(self, path: str) -> Iterator[bytes]:
        return LocalTree(self.root if os.getpid() == self.seconds else "/absent").chunks(path)


def test_a_tree_of_one_process_is_refused_before_anything_is_sent(cluster: LocalCluster) -> None:
    memory = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem()
    for name, data in checkout().items():
        memory.pipe_file(f"/sent/{name}", data)
    done = run_cli("mlperf", "memory://sent", "--dask", cluster.scheduler_address)
    assert done.stderr == "error: memory://sent: lies in one process, no other can read it; use --workers 1\n"
    memory.rm("/sent", recursive=True)


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_an_address_where_no_scheduler_answers_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"tcp://127.0.0.1:{closed_port()}"
    monkeypatch.setattr("ipu_results.mlperf.cluster.on_cluster", lambda told: on_cluster(told, timeout=0.5))
    done = run_cli("mlperf", folder, "--dask", address)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {address}: no scheduler answers within 0.5 s: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("address", ["", "nonsense", "a:b:c", "foo://127.0.0.1:1"])
def test_what_is_no_address_is_one_line(folder: Path, address: str) -> None:
    done = run_cli("mlperf", folder, "--dask", address)
    assert done.returncode == 1
    assert "is no address of a scheduler: " in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_scheduler_without_workers_is_one_line(folder: Path) -> None:
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0", protocol="tcp") as empty,
        pytest.raises(ClusterError, match=r"has no worker within 0\.5 s"),
    ):
        score_tree(LocalTree(str(folder)), on_cluster(empty.scheduler_address, timeout=0.5))


def test_an_archive_or_workers_with_a_cluster_are_wrong_usage(tmp_path: Path, folder: Path) -> None:
    archive = run_cli("mlperf", as_archive(tmp_path / "round.tar", members()), "--dask", "tcp://127.0.0.1:1")
    assert (archive.returncode, "--dask cannot read an archive" in archive.stderr) == (2, True)
    workers = run_cli("mlperf", folder, "--dask", "tcp://127.0.0.1:1", "--workers", 2)
    assert (workers.returncode, "give one of them" in workers.stderr) == (2, True)


def test_without_the_extra_one_line_names_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = run_cli("mlperf", folder, "--dask", "tcp://127.0.0.1:1")
    assert (done.returncode, done.stderr) == (
        1,
        "error: --dask needs dask: pip install 'ipu-results[distributed]'\n",
    )


def test_a_reader_can_be_made_without_a_cluster() -> None:
    assert pickle.loads(pickle.dumps(on_cluster("tcp://127.0.0.1:1"))).args[0] == "tcp://127.0.0.1:1"
