"""A small checkout, as the paths and bytes of its files, written as a folder or as an archive."""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from conftest import ROOT
from ipu_results.mlperf.tree import Listing, LocalTree

ROUNDS = ROOT.parent / "shared" / "mlperf"
SYSTEM = {
    "division": "closed",
    "status": "Available on-premise",
    "system_name": "Pod",
    "accelerator_model_name": "IPU",
    "accelerators_per_node": "16",
    "number_of_nodes": 1,
    "framework": "PopART",
}
FOLDER = "v2.0/Acme/results/pod/resnet"


def log(minutes: float, status: str = "success") -> bytes:
    told = [("init_start", 0, {}), ("init_stop", 60_000, {}), ("run_start", 60_000, {})]
    told.append(("run_stop", 60_000 + minutes * 60_000, {"status": status}))
    lines = [{"key": key, "time_ms": at, "value": None, "metadata": metadata} for key, at, metadata in told]
    return "".join(f":::MLLOG {json.dumps(line)}\n" for line in lines).encode()


def checkout() -> dict[str, bytes]:
    """Two submitters; five runs of 10, 20, … minutes, one that is aborted and one that is a sentence."""
    files = {f"{FOLDER}/result_{run}.txt": log(10 + 10 * run) for run in range(5)}
    files |= {f"v2.0/Globex/results/box/bert/result_{run}.txt": log(5 + run) for run in range(8)}
    files["v2.0/Globex/results/box/bert/result_8.txt"] = log(1, "aborted")
    files["v2.0/Globex/results/box/rnnt/result_0.txt"] = b"a sentence\n"
    files["v2.0/Globex/benchmarks/bert/results/run/deep/result_0.txt"] = log(1)
    files["v2.0/Acme/systems/pod.json"] = json.dumps(SYSTEM).encode()
    files["v2.0/Globex/systems/box.json"] = json.dumps(SYSTEM | {"division": "open"}).encode()
    files[f"{FOLDER}/scaling.json"] = b'{"scaling_factor": 1.5}'
    files["v2.0/README.md"] = b"text"
    return files


def as_folder(target: Path, files: Mapping[str, bytes] | None = None) -> Path:
    for name, data in (checkout() if files is None else files).items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return target


Member = tuple[tarfile.TarInfo, bytes]


def member(name: str, data: bytes = b"", **values: object) -> Member:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in values.items():
        setattr(info, key, value)
    return info, data


def members(files: Mapping[str, bytes] | None = None) -> list[Member]:
    return [member(name, data) for name, data in (checkout() if files is None else files).items()]


def as_archive(target: Path, held: Iterable[Member], kind: str = "") -> Path:
    with tarfile.open(target, f"w:{kind}") as tar:  # type: ignore[call-overload]
        for info, data in held:
            tar.addfile(info, io.BytesIO(data))
    return target


@dataclass(frozen=True)
class SlowTree:
    """A folder whose files take their time, for whoever wants to do harm meanwhile."""

    root: str
    seconds: float = 0.1
    name: str = ""

    def listing(self) -> Listing:
        return LocalTree(self.root).listing()

    def chunks(self, path: str) -> Iterator[bytes]:
        time.sleep(self.seconds if path.endswith(".txt") else 0)
        return LocalTree(self.root).chunks(path)
