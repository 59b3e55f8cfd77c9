"""The files of a finished run: a record, one line per point, one per block, raw stamps, and their sidecars."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w

from ipu_results.runner.backends import is_virtual
from ipu_results.runner.blocks import Block
from ipu_results.runner.config import SweepTask
from ipu_results.runner.estimate import Estimate, estimate
from ipu_results.schema.vocabulary import load_vocabulary

READER, POINTS_READER = "sweep-record", "sweep-points"
POINTS_TABLE, SEQUENCES_TABLE = "sweep_points", "sweep_sequence_points"  # the latter with the variant of a text model
STAMPS = ("start_ns", "loaded_ns", "preprocessed_ns", "inferred_ns", "retrieved_ns")
ITEM, TEXT_ITEM = "image", "sequence"
LICENCE = "CC-BY-4.0"
ORIGINS = {"emulated": "emulated", "simulated": "simulated"}  # by kind of device, measured elsewhere
NOTE = "One sweep of this project's runner, {how}. Raw stamps and blocks lie beside it."  # kept: text of sidecars
COMPILED_S = 0.001  # what is ready sooner was not compiled for its batch size
MIN_COSINE = 0.99
UNSETTLED = "did not settle in {runs} warm-up runs"
ESTIMATED = tuple(column.name for column in fields(Estimate) if column.name not in ("power_w", "suspect"))
MEASURED = (
    *("interval_confidence", "latency_p90_ms", "latency_p99_ms", "rounds", "blocks", "iterations", "disturbed_blocks"),
    *("preprocess_ms", "infer_ms", "retrieve_ms", "first_run_ms", "warm_up_runs", "load_s", "compile_s"),
)  # columns that a prediction leaves blank

Point = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunData:
    """Everything that the journal holds of a run. `events` are notes on what happened, such as an interruption."""

    run_id: str
    task: SweepTask
    opened: Mapping[str, Any]
    ready: Sequence[Mapping[str, Any]]
    blocks: Sequence[Block]
    finished_at: str
    events: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        return ORIGINS.get(self.task.device.kind, "measured")

    @property
    def best_probe_ms(self) -> float | None:
        """Return the best probe of this run and of those before it on this machine; None where time is calculated."""
        known = self.opened["best_probe_ms"]
        probes = [probe for block in self.blocks for probe in block.probe_ms or ()]
        return min([*probes, *([] if known is None else [known])], default=None)

    @property
    def notes(self) -> list[str]:
        return [*self.opened["facts"]["notes"], *self.events]


def build_points(run: RunData) -> list[Point]:
    """Return one point per batch size, by the names of the columns of points.csv."""
    points = []
    for ready in run.ready:
        blocks = [block for block in run.blocks if block.batch_size == ready["batch_size"]]
        points.append(_build_point(run, ready, estimate(blocks, best_probe_ms=run.best_probe_ms), blocks))
    return sorted(points, key=lambda point: int(point["batch_size"]))


def _build_point(run: RunData, ready: Mapping[str, Any], row: Estimate, blocks: Sequence[Block]) -> Point:
    facts, opened, device, plan = run.opened["facts"], run.opened, run.task.device, run.task.plan
    power, length = opened["power"], opened["model"].get("sequence_length")
    unread = next((block.power_reason for block in blocks if block.power_reason), None)
    point: Point = {
        "batch_size": ready["batch_size"],
        "micro_batch_size": ready["batch_size"] // plan.sessions,
        "sessions": plan.sessions,
        **{name: getattr(row, name) for name in ESTIMATED},
        "latency_kind": "amortised",
        "suspect": [*row.suspect, *_list_doubts(ready)],
        "origin": run.origin,
        "model": opened["model"]["name"],
        "platform": facts["platform"],
        **{name: facts[name] for name in ("chip", "chip_count", "sdk_version", "framework")},
        "compute_precision": facts["compute_precision"] or None,
        "item": TEXT_ITEM if length else ITEM,
        "power_w": row.power_w,
        "power_scope": None if row.power_w is None else power["scope"],
        "power_reason": None,
        "calibration_id": facts["calibration_id"],
        "backend": device.backend,
        **{name: facts[name] for name in ("backend_version", "provider", "threads", "load_s")},
        "device": device.name,
        "pipeline": "overlap" if plan.overlap and not is_virtual(device.backend) else "serial",
        "preprocessing": opened["preprocessing"],
        "model_precision": opened["model"].get("precision"),
        "weights": opened["model"]["weights"],
        "model_sha256": opened["model"].get("sha256"),
        "compile_s": ready["compile_s"] if ready["compile_s"] > COMPILED_S else facts["compile_s"],
        **{name: ready[name] for name in ("cosine", "top1", "first_run_ms", "warm_up_runs")},
    }
    if length:
        point["variant"] = f"SL{length}"
    if row.power_w is None:  # no sensor, or one that could not be read
        point["power_reason"] = power["description"] if power["scope"] is None else unread
    if run.origin == "emulated":  # a prediction has its own band and no rounds that could differ
        predicted = ready["predicted"]
        point |= {**dict.fromkeys(MEASURED), **predicted, "suspect": [*predicted["suspect"], *_list_doubts(ready)]}
    point["efficiency"] = point["throughput"] / point["power_w"] if point["power_w"] else None
    point["suspect"] = "; ".join(point["suspect"]) or None
    return point


def _list_doubts(ready: Mapping[str, Any]) -> list[str]:
    doubts = [] if ready["settled"] else [UNSETTLED.format(runs=ready["warm_up_runs"])]
    if ready["cosine"] is None and ready["top1"] is not None:
        doubts.append("outputs hold no direction to compare with fp32: not finite, or all zero")
    if ready["cosine"] is not None and ready["cosine"] < MIN_COSINE:
        doubts.append(f"outputs are not those of fp32: cosine {ready['cosine']:.3f}")
    return doubts


def build_files(run: RunData, points: Sequence[Point]) -> dict[str, bytes]:
    """Return every file of the finished run by name, sidecars last."""
    table_name = SEQUENCES_TABLE if run.opened["model"].get("sequence_length") else POINTS_TABLE
    files = {
        "record.json": _format_record(run),
        "points.csv": _format_csv(points, table_name),
        "blocks.jsonl": b"".join(_format_block(block) for block in run.blocks),
        "stamps.parquet": _format_stamps(run.blocks),
    }
    attachments = {name: hashlib.sha256(files[name]).hexdigest() for name in ("blocks.jsonl", "stamps.parquet")}
    record = _build_sidecar(run, "", READER, files["record.json"], "runs", 1)
    table = _build_sidecar(run, "-points", POINTS_READER, files["points.csv"], table_name, len(points))
    files["record.json.toml"] = tomli_w.dumps(record).encode()
    files["points.csv.toml"] = tomli_w.dumps({**table, "attachments": attachments}).encode()
    return files


def _format_record(run: RunData) -> bytes:
    opened = run.opened
    setup = {
        **run.task.describe_setup(),
        **{name: opened[name] for name in ("facts", "preprocessing", "best_probe_ms")},
    }
    record = {
        "run_id": run.run_id,
        "backend": run.task.device.backend,
        "device": run.task.device.name,
        "started_at": opened["started_at"],
        "finished_at": run.finished_at,
        "command_line": run.task.config.command_line,
        "environment": opened["environment"],
        "versions": opened["versions"],
        "setup": setup,
        "plan": run.task.plan.to_json(),
        "model": opened["model"],
        "images": opened["images"],
        "notes": run.notes,
    }
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _build_sidecar(run: RunData, suffix: str, reader: str, data: bytes, table: str, rows: int) -> dict[str, Any]:
    day = date.fromisoformat(run.opened["started_at"][:10])
    what = f"{run.opened['model']['name']} on {run.opened['facts']['platform']}, {run.task.device.backend}"
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


def _format_csv(points: Sequence[Point], table_name: str) -> bytes:
    columns = load_vocabulary().header_of(POINTS_READER, table_name).names
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(points)
    return out.getvalue().encode()


def _format_block(block: Block) -> bytes:
    window = block.window
    line = {name: value for name, value in block.to_json().items() if name != "stamps"}
    line |= {"window_ns": [window.start, window.end], "items": window.items, "throughput": window.throughput}
    return json.dumps({**line, "iterations": block.iterations}, allow_nan=False).encode() + b"\n"


def _format_stamps(blocks: Sequence[Block]) -> bytes:
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
