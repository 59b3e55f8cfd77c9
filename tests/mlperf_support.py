"""A small checkout of official results, written file by file, and trees that go wrong while they are read."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ipu_results.mlperf.log import Log, read_log
from ipu_results.mlperf.records import Record, entry_record, run_records
from ipu_results.mlperf.scoring import Round, in_processes, score_tree
from ipu_results.mlperf.tree import LocalTree

T0 = 1_650_000_000_000
MINUTE = 60_000
SYSTEM = {
    "division": "closed",
    "submitter": "ACME",
    "status": "onprem",
    "system_name": "ACME-1 x8",
    "number_of_nodes": "2",
    "accelerators_per_node": "8",
    "accelerator_model_name": "ACME-1",
    "framework": "PyTorch 1.11",
}


def line(key: str, at: float = 0, value: object = None, metadata: object = None, prefix: str = "") -> bytes:
    """One line; `at` is in minutes from the start of the run."""
    told = {"namespace": "", "time_ms": T0 + at * MINUTE, "key": key, "value": value, "metadata": metadata or {}}
    return f"{prefix}:::MLLOG {json.dumps(told)}\n".encode()


def stop(at: float = 10, status: object = "success") -> bytes:
    return line("run_stop", at, metadata={"status": status})


def evaluation(at: float, value: object = 0.76, key: str = "eval_accuracy", **metadata: object) -> bytes:
    return line(key, at, value, metadata)


def log(
    minutes: float = 10, *, status: object = "success", init: float = 2, gbs: object = 256, inner: bytes = b""
) -> bytes:
    """A log of one run; `inner` stands between its start and its end."""
    return b"".join(
        [
            line("init_start", -init),
            line("global_batch_size", -init, gbs),
            line("init_stop", 0),
            line("run_start", 0),
            inner,
            stop(minutes, status),
        ]
    )


def logs(*minutes: float) -> list[bytes]:
    return [log(each) for each in minutes]


def read(*pieces: bytes) -> Log:
    return read_log([b"".join(pieces)])


def put(root: Path, path: str, data: bytes | str | Mapping[str, Any]) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data) if isinstance(data, Mapping) else data
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def entry(
    root: Path,
    written: Sequence[bytes],
    benchmark: str = "resnet",
    *,
    submitter: str = "ACME",
    name: str = "acme1",
    described: bytes | str | Mapping[str, Any] | None = SYSTEM,
    scaling: bytes | str | Mapping[str, Any] | None = None,
) -> Path:
    """Write an entry; its folder."""
    folder = root / submitter / "results" / name / benchmark
    folder.mkdir(parents=True)
    for number, data in enumerate(written):
        (folder / f"result_{number}.txt").write_bytes(data)
    if described is not None:
        put(root, f"{submitter}/systems/{name}.json", described)
    if scaling is not None:
        put(folder, "scaling.json", scaling)
    return folder


def scored(root: Path, round_: str | None = "2.0") -> Round:
    return score_tree(LocalTree(str(root)), in_processes(1), round_=round_)


def told(found: Round) -> list[str]:
    return [str(finding) for finding in found.findings]


def the_record(root: Path) -> Record:
    """The only entry's."""
    (one,) = scored(root).entries
    return entry_record(one)


def the_runs(root: Path) -> list[Record]:
    (one,) = scored(root).entries
    return list(run_records(one))


class SlowTree(LocalTree):
    """Takes its time over each log, and says when it has begun."""

    def chunks(self, path: str) -> Iterator[bytes]:
        if path.endswith(".txt"):
            Path(os.environ["BEGUN"]).touch()
            time.sleep(5)
        yield from super().chunks(path)


class KillingTree(LocalTree):
    """Has the process killed that reads a log, as the kernel does when memory runs out."""

    def chunks(self, path: str) -> Iterator[bytes]:
        if path.endswith(".txt"):
            os.kill(os.getpid(), signal.SIGKILL)
        yield from super().chunks(path)


class VanishingTree(LocalTree):
    """Loses each log between the listing and the reading."""

    def chunks(self, path: str) -> Iterator[bytes]:
        Path(self.root, path).unlink(missing_ok=True)
        yield from super().chunks(path)
