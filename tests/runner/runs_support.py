"""Folders of finished local runs, made of a few points."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w
from ipu_results.runner.record import STAMPS
from ipu_results.schema.vocabulary import load_vocabulary

from tests.cases import read_cases

RUN_ID = "20261121-134501-onnxruntime-cpu-3fa2"
EMULATED_ID = "20261121-140000-emulator-c2-00b1"
POINT_COLUMNS = load_vocabulary().header_of("sweep-points", "sweep_points").names
RUN = read_cases(__file__, "run.toml")


def point(batch_size: int, throughput: float, **changes: Any) -> dict[str, Any]:
    """Return one line of points.csv, of a CPU measurement but for `changes`; None is a blank cell."""
    values = {**RUN["shared"], **RUN["cpu"], **changes}
    latency = batch_size / throughput * 1000
    watts = values.get("power_w")
    return {
        "batch_size": batch_size,
        "micro_batch_size": batch_size // values["sessions"],
        "throughput": throughput,
        "latency_ms": latency,
        "latency_ms_low": latency * 0.9,
        "latency_ms_high": latency * 1.1,
        "efficiency": throughput / watts if watts else None,
        **values,
    }


def emulated_point(batch_size: int, throughput: float, **changes: Any) -> dict[str, Any]:
    absent = dict.fromkeys(RUN["cpu"])
    return point(batch_size, throughput, **{**absent, **RUN["c2"], **changes})


POINTS = (
    point(1, 17.6),
    point(4, 19.1, suspect="interval of 12 %; probe 1.4 times slower"),
    point(8, 19.5),
)
EMULATED = (emulated_point(2, 1480.0), emulated_point(4, 2050.5))


def record(run_id: str = RUN_ID, **changes: Any) -> dict[str, Any]:
    return {"run_id": run_id, **RUN["record"], **changes}


def put_run(
    raw: Path,
    points: Iterable[Mapping[str, Any]] = POINTS,
    run_id: str = RUN_ID,
    folder: str | None = None,
    **changes: Any,
) -> Path:
    """Write a finished run of these points under `raw`/runs, with changes of its record; return its
    folder.
    """
    target = raw / "runs" / (folder or run_id)
    target.mkdir(parents=True)
    lines = list(points)
    text = json.dumps(record(run_id, **changes), indent=1)
    (target / "record.json").write_text(text, encoding="utf-8")
    (target / "points.csv").write_text(format_points(lines), encoding="utf-8")
    (target / "blocks.jsonl").write_text('{"block": 0}\n', encoding="utf-8")
    names = ("block", "session", "iteration", *STAMPS)
    stamps = {name: pa.array([0, 1], pa.int64()) for name in names}
    pq.write_table(pa.table(stamps), target / "stamps.parquet")
    write_sidecars(target, run_id, len(lines))
    return target


def put_emulated(
    raw: Path, run_id: str = EMULATED_ID, points: Iterable[Mapping[str, Any]] = EMULATED
) -> Path:
    return put_run(raw, points, run_id, backend="emulator", device="c2")


def format_points(points: Iterable[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, POINT_COLUMNS, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(points)
    return out.getvalue()


def write_sidecars(folder: Path, run_id: str = RUN_ID, rows: int = len(POINTS)) -> None:
    """Write the sidecars of a run for its present files."""
    attachments = {}
    for name in ("blocks.jsonl", "stamps.parquet"):
        if (folder / name).exists():
            attachments[name] = compute_digest(folder / name)
    files = {
        "record.json": {
            "document_id": f"sweep-{run_id}",
            "title": f"Local sweep {run_id}: record",
            "reader": "sweep-record",
            "tables": {"runs": {"rows": 1}},
        },
        "points.csv": {
            "document_id": f"sweep-{run_id}-points",
            "title": f"Local sweep {run_id}: points",
            "reader": "sweep-points",
            "tables": {"sweep_points": {"rows": rows}},
            "attachments": attachments,
        },
    }
    for name, own in files.items():
        entry = {**RUN["sidecar"], **own, "sha256": compute_digest(folder / name)}
        (folder / f"{name}.toml").write_text(tomli_w.dumps(entry), encoding="utf-8")


def compute_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
