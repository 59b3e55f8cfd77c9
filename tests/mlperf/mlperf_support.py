"""A small checkout of official results, as a folder or an archive, and trees that fail while they
are read.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ipu_results.mlperf.log import Log, read_log
from ipu_results.mlperf.records import Record, entry_record, run_records
from ipu_results.mlperf.round import ScoredRound, score_path

from tests.cases import read_cases
from tests.conftest import ROOT

OFFICIAL = ROOT.parent / "shared" / "mlperf"
V1, V2 = OFFICIAL / "training_v1.0_results_part.tar.xz", OFFICIAL / "training_v2.0_results.tar.xz"
T0 = 1_650_000_000_000
GOOD = 0.95  # reaches every target of one number that is better when higher
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
    "host_processor_model_name": "ACME Xenon",
    "host_processors_per_node": "2",
    "operating_system": "Linux 5.4",
    "other_software_stack": {"NCCL": "2.9"},
}
OPEN = SYSTEM | {"division": "open"}
PLACE = "ACME/results/acme1"
DESCRIPTION = "ACME/systems/acme1.json"
FOLDER = "v2.0/Acme/results/pod/resnet"


def line(key: str, at: float = 0, value: object = None, metadata: object = None) -> bytes:
    """Write one line; `at` is in minutes from the start of the run."""
    fields = {
        "namespace": "",
        "time_ms": T0 + at * MINUTE,
        "key": key,
        "value": value,
        "metadata": metadata or {},
    }
    return f":::MLLOG {json.dumps(fields)}\n".encode()


def write(lines: Iterable[Mapping[str, Any]]) -> bytes:
    """Write lines with the parameters of `line`."""
    return b"".join(line(**each) for each in lines)


def load_cases(name: str) -> dict[str, Any]:
    """Load the cases of a module of tests, which lie beside it."""
    return read_cases(__file__, f"{name}.toml")


def stop(at: float = 10, status: object = "success") -> bytes:
    return line("run_stop", at, metadata={"status": status})


BEGIN = line("init_start", -2) + line("init_stop") + line("run_start")


def evaluation(
    at: float, value: object = 0.76, key: str = "eval_accuracy", **metadata: object
) -> bytes:
    return line(key, at, value, metadata)


def log(
    minutes: float = 10,
    *,
    status: object = "success",
    init: float = 2,
    gbs: object = 256,
    inner: bytes | None = None,
) -> bytes:
    """Write a log of one run, with `inner` between its start and its end, or else an evaluation."""
    inner = evaluation(minutes / 2, GOOD, epoch_num=1) if inner is None else inner
    start = (
        line("init_start", -init)
        + line("global_batch_size", -init, gbs)
        + line("init_stop")
        + line("run_start")
    )
    return start + inner + stop(minutes, status)


def logs(*minutes: float) -> list[bytes]:
    return [log(each) for each in minutes]


FIVE = logs(10, 11, 12, 13, 20)  # a score of 12 minutes
FOUR = FIVE[:4]  # with a run that does not count, again 12


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
    """Write an entry and return its folder."""
    folder = root / submitter / "results" / name / benchmark
    folder.mkdir(parents=True)
    for number, data in enumerate(written):
        (folder / f"result_{number}.txt").write_bytes(data)
    if described is not None:
        put(root, f"{submitter}/systems/{name}.json", described)
    if scaling is not None:
        put(folder, "scaling.json", scaling)
    return folder


def score(root: Path, round_: str | None = "2.0") -> ScoredRound:
    return score_path(str(root), round_=round_)


def texts(scored: ScoredRound) -> list[str]:
    return [str(finding) for finding in scored.findings]


def score_one(root: Path) -> tuple[Record, list[Record], list[str]]:
    """Return the records of the only entry and of its runs, and the findings."""
    scored = score(root)
    [scored_entry] = scored.entries
    return entry_record(scored_entry), run_records(scored_entry), texts(scored)


def checkout() -> dict[str, bytes]:
    """Two submitters; five runs of 10, 20, … minutes, an aborted one and a log that is a sentence."""
    files = {f"{FOLDER}/result_{run}.txt": log(10 + 10 * run) for run in range(5)}
    files |= {f"v2.0/Globex/results/box/bert/result_{run}.txt": log(5 + run) for run in range(8)}
    files["v2.0/Globex/results/box/bert/result_8.txt"] = log(1, status="aborted")
    files["v2.0/Globex/results/box/rnnt/result_0.txt"] = b"a sentence\n"
    files["v2.0/Globex/benchmarks/bert/results/run/deep/result_0.txt"] = log(1)
    files["v2.0/Acme/systems/pod.json"] = json.dumps(SYSTEM).encode()
    files["v2.0/Globex/systems/box.json"] = json.dumps(SYSTEM | {"division": "open"}).encode()
    files[f"{FOLDER}/scaling.json"] = b'{"scaling_factor": 1.5}'
    files["v2.0/README.md"] = b"text"
    return files


def as_folder(target: Path) -> Path:
    for name, data in checkout().items():
        put(target, name, data)
    return target


Member = tuple[tarfile.TarInfo, bytes]


def member(name: str, data: bytes = b"", **values: object) -> Member:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in values.items():
        setattr(info, key, value)
    return info, data


def members() -> list[Member]:
    return [member(name, data) for name, data in checkout().items()]


def pack(held: Iterable[Member], kind: str = "") -> bytes:
    """Return an archive, packed as `kind` says."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=f"w:{kind}") as tar:  # type: ignore[call-overload]
        for info, data in held:
            tar.addfile(info, io.BytesIO(data))
    return packed.getvalue()
