"""The files of a finished run: a record, one line per point, one per block, raw stamps, and their sidecars."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w

from ipu_results.runner.asked import Asked
from ipu_results.runner.backends import is_virtual
from ipu_results.runner.blocks import Block
from ipu_results.runner.estimate import Estimate, estimate
from ipu_results.schema.vocabulary import load_vocabulary

READER, POINTS_READER, POINTS_TABLE = "sweep-record", "sweep-points", "sweep_points"
STAMPS = ("start_ns", "loaded_ns", "preprocessed_ns", "inferred_ns", "retrieved_ns")
ITEM = "image"
LICENCE = "CC-BY-4.0"
ORIGINS = {"emulated": "emulated", "simulated": "simulated"}  # by kind of device, measured elsewhere
NOTE = "One sweep of this project's runner, {how}. Raw stamps and blocks lie beside it."
COMPILED_S = 0.001  # what is ready sooner was not compiled for its batch size
LEAST_COSINE = 0.99
UNSETTLED = "did not settle in {runs} warm-up runs"

ESTIMATED = (
    *("throughput", "latency_ms", "latency_ms_low", "latency_ms_high", "interval_confidence", "latency_isolated_ms"),
    *("latency_p90_ms", "latency_p99_ms", "rounds", "blocks", "iterations", "disturbed_blocks", "preprocess_ms"),
    *("infer_ms", "retrieve_ms", "probe_ms", "foreign_cpu", "steal"),
)
MEASURED = (
    *("interval_confidence", "latency_p90_ms", "latency_p99_ms", "rounds", "blocks", "iterations", "disturbed_blocks"),
    *("preprocess_ms", "infer_ms", "retrieve_ms", "first_run_ms", "warm_up_runs", "load_s", "compile_s"),
)  # columns that a prediction leaves blank

Point = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """A run as its journal tells it."""

    run_id: str
    asked: Asked
    opened: Mapping[str, Any]
    ready: Sequence[Mapping[str, Any]]
    blocks: Sequence[Block]
    finished_at: str
    happened: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        return ORIGINS.get(self.asked.device.kind, "measured")

    @property
    def best_probe_ms(self) -> float | None:
        """Of this run and of those before it on this machine; None where time is calculated."""
        known = self.opened["best_probe_ms"]
        probes = [one for block in self.blocks for one in block.probe_ms or ()]
        return min([*probes, *([] if known is None else [known])], default=None)

    @property
    def notes(self) -> list[str]:
        return [*self.opened["facts"]["notes"], *self.happened]


def points_of(run: Run) -> list[Point]:
    """One point per batch size, by the names of the columns of points.csv."""
    found = []
    for told in run.ready:
        blocks = [block for block in run.blocks if block.batch_size == told["batch_size"]]
        found.append(_point(run, told, estimate(blocks, best_probe_ms=run.best_probe_ms), blocks))
    return sorted(found, key=lambda point: int(point["batch_size"]))


def _point(run: Run, ready: Mapping[str, Any], found: Estimate, blocks: Sequence[Block]) -> Point:
    facts, opened, asked = run.opened["facts"], run.opened, run.asked
    watts = found.power_w
    reason = opened["power"]["told"] if watts is None and opened["power"]["scope"] is None else None
    point: Point = {
        "batch_size": ready["batch_size"],
        "micro_batch_size": ready["batch_size"] // asked.plan.sessions,
        "sessions": asked.plan.sessions,
        **{name: getattr(found, name) for name in ESTIMATED},
        "latency_kind": "amortised",
        "suspect": [*found.suspect, *_doubts(ready)],
        "origin": run.origin,
        "model": opened["model"]["name"],
        "platform": facts["platform"],
        **{name: facts[name] for name in ("chip", "chip_count", "sdk_version", "framework")},
        "compute_precision": facts["compute_precision"] or None,
        "item": ITEM,
        "power_w": watts,
        "power_scope": opened["power"]["scope"] if watts is not None else None,
        "power_reason": reason or _unread(blocks) if watts is None else None,
        "calibration_id": facts["calibration_id"],
        "backend": asked.device.backend,
        **{name: facts[name] for name in ("backend_version", "provider", "threads", "load_s")},
        "device": asked.device.name,
        "pipeline": "overlap" if asked.plan.overlap and not is_virtual(asked.device.backend) else "serial",
        "preprocessing": opened["preprocessing"],
        "model_precision": opened["model"].get("precision"),
        "weights": opened["model"]["weights"],
        "model_sha256": opened["model"].get("sha256"),
        "compile_s": ready["compile_s"] if ready["compile_s"] > COMPILED_S else facts["compile_s"],
        **{name: ready[name] for name in ("cosine", "top1", "first_run_ms", "warm_up_runs")},
    }
    point |= _predicted(run, ready)
    point["efficiency"] = point["throughput"] / point["power_w"] if point["power_w"] else None
    point["suspect"] = "; ".join(point["suspect"]) or None
    return point


def _unread(blocks: Sequence[Block]) -> str | None:
    """Why a sensor that is there gave nothing."""
    return next((block.power_reason for block in blocks if block.power_reason), None)


def _doubts(ready: Mapping[str, Any]) -> list[str]:
    doubts = [] if ready["settled"] else [UNSETTLED.format(runs=ready["warm_up_runs"])]
    if ready["cosine"] is None and ready["top1"] is not None:
        doubts.append("outputs hold no direction to compare with fp32: not finite, or all zero")
    if ready["cosine"] is not None and ready["cosine"] < LEAST_COSINE:
        doubts.append(f"outputs are not those of fp32: cosine {ready['cosine']:.3f}")
    return doubts


def _predicted(run: Run, ready: Mapping[str, Any]) -> Point:
    """What takes the place of statistics where nothing was measured: a prediction has no rounds to differ."""
    if run.origin != "emulated":
        return {}
    told = ready["told"]
    doubts = {"suspect": [*told["suspect"], *_doubts(ready)]}
    return {**dict.fromkeys(MEASURED), **told, **doubts}


def files_of(run: Run, points: Sequence[Point]) -> dict[str, bytes]:
    """Every file of the finished run, sidecars last."""
    files = {
        "record.json": _json(_record(run)),
        "points.csv": _csv(points),
        "blocks.jsonl": b"".join(_line(block) for block in run.blocks),
        "stamps.parquet": _stamps(run.blocks),
    }
    beside = {name: hashlib.sha256(files[name]).hexdigest() for name in ("blocks.jsonl", "stamps.parquet")}
    record = _sidecar(run, "", READER, files["record.json"], "runs", 1)
    told = _sidecar(run, "-points", POINTS_READER, files["points.csv"], POINTS_TABLE, len(points))
    files["record.json.toml"] = tomli_w.dumps(record).encode()
    files["points.csv.toml"] = tomli_w.dumps({**told, "attachments": beside}).encode()
    return files


def _record(run: Run) -> dict[str, Any]:
    opened = run.opened
    setup = {
        **run.asked.published(),
        **{name: opened[name] for name in ("facts", "preprocessing", "best_probe_ms")},
    }
    return {
        "run_id": run.run_id,
        "backend": run.asked.device.backend,
        "device": run.asked.device.name,
        "started_at": opened["started_at"],
        "finished_at": run.finished_at,
        "command_line": run.asked.command_line,
        "environment": opened["environment"],
        "versions": opened["versions"],
        "setup": setup,
        "plan": run.asked.plan.as_json(),
        "model": opened["model"],
        "images": opened["images"],
        "notes": run.notes,
    }


def _sidecar(run: Run, suffix: str, reader: str, data: bytes, table: str, rows: int) -> dict[str, Any]:
    day = date.fromisoformat(run.opened["started_at"][:10])
    what = f"{run.opened['model']['name']} on {run.opened['facts']['platform']}, {run.asked.device.backend}"
    return {
        "document_id": f"sweep-{run.run_id}{suffix}",
        "title": f"Sweep {run.run_id}: {what}" + (" (points)" if suffix else ""),
        "publisher": "local",
        "published_on": day,
        "retrieved_on": day,
        "kind": "run",
        "licence": LICENCE,
        "sha256": hashlib.sha256(data).hexdigest(),
        "reader": reader,
        "note": NOTE.format(how=run.origin),
        "tables": {table: {"rows": rows}},
    }


def _json(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _csv(points: Sequence[Point]) -> bytes:
    columns = load_vocabulary().layout(POINTS_READER, POINTS_TABLE).names
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(points)
    return out.getvalue().encode()


def _line(block: Block) -> bytes:
    window = block.window
    told = {name: value for name, value in block.as_json().items() if name != "stamps"}
    told |= {"window_ns": [window.start, window.end], "items": window.items, "throughput": window.throughput}
    return json.dumps({**told, "iterations": block.iterations}, allow_nan=False).encode() + b"\n"


def _stamps(blocks: Sequence[Block]) -> bytes:
    rows = [
        (block.block, session, iteration, *stamps)
        for block in blocks
        for session, of_session in enumerate(block.stamps)
        for iteration, stamps in enumerate(of_session)
    ]
    names = ("block", "session", "iteration", *STAMPS)
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, names=list(names)), out, compression="zstd", write_page_checksum=True)
    return out.getvalue()
