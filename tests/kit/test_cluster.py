"""A dask cluster is an executor like any other: a score and a sweep are the same there."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import ipu_results
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from ipu_results import build
from ipu_results.build import IngestConfig, ingest
from ipu_results.emulator.network import load_network
from ipu_results.emulator.settings import select_protocol
from ipu_results.emulator.sweep import Sweep, parse_sweeps, run_sweep
from ipu_results.emulator.target import load_target
from ipu_results.errors import WorkerError
from ipu_results.kit.parallel import run_tasks
from ipu_results.mlperf.round import EntryTask
from ipu_results.mlperf.tree import LocalTree
from ipu_results.record.store.cache import Cache

from tests.conftest import PAGE, PAPER, copy_documents
from tests.mlperf.mlperf_support import as_folder


def test_a_dask_cluster_gives_what_this_process_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry of a round is a task, a design of a sweep, and a document of a build."""
    monkeypatch.setattr(build, "open_cache", lambda _: Cache(tmp_path / ".cache", "code"))
    raw = copy_documents(tmp_path / "raw", PAGE, PAPER)
    round_ = as_folder(tmp_path / "round")
    target = load_target("m2000")
    designs = parse_sweeps(["clock=1e9,1.33e9", "tiles=1000,1472"])
    sweep = Sweep(load_network("resnet50"), target, select_protocol(None, target), [4], designs)
    run_sweep(sweep, tmp_path / "here.csv")
    with (
        LocalCluster(n_workers=2, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        executor = client.get_executor(pure=False)
        scores = ipu_results.score_mlperf(round_, executor=executor)
        there = ingest(IngestConfig(raw, tmp_path / "there"), executor=executor)
        run_sweep(sweep, tmp_path / "cluster.csv", executor)
        with pytest.raises(WorkerError, match=r"^x: failed in a worker: ValueError: invalid"):
            list(run_tasks(int, ["x"], executor))
    assert there.build_id == ingest(IngestConfig(raw, tmp_path / "warehouse")).build_id
    expected = ipu_results.score_mlperf(round_)
    pd.testing.assert_frame_equal(scores, expected)
    assert scores.attrs == expected.attrs
    assert (tmp_path / "cluster.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


def test_a_worker_that_does_not_see_the_folder_is_an_error(tmp_path: Path) -> None:
    """It would find every log to be missing."""
    round_ = as_folder(tmp_path / "round")

    def read_elsewhere(function: Callable[[EntryTask], object], task: EntryTask) -> object:
        return function(replace(task, tree=LocalTree(str(tmp_path / "absent"))))

    class Elsewhere(ThreadPoolExecutor):
        def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
            return super().submit(read_elsewhere, function, *args, **kwargs)

    message = r"absent/v2.0/\w+/results/\w+/\w+: is not seen by a worker on "
    with Elsewhere(1) as executor, pytest.raises(WorkerError, match=message):
        ipu_results.score_mlperf(round_, executor=executor)
