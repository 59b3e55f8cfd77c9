"""The folder of a run: a journal while it is measured, and a finished run that appears whole.

`<run_id>.unfinished/` holds `journal.jsonl`, a line on disk for each finished step. A killed sweep
loses the step that was in flight. A finished run is built within it and renamed in one step.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w
from filelock import FileLock, Timeout

from ipu_results.errors import DamagedRunError, IpuResultsError
from ipu_results.kit.files import UNFINISHED, write_folder
from ipu_results.runner.backends import load_backend
from ipu_results.runner.config import SweepTask
from ipu_results.runner.estimate import Block, Estimate, estimate
from ipu_results.schema.vocabulary import load_vocabulary

JOURNAL = "journal.jsonl"
LOCK = ".lock"
PART = "finished"


class Journal:
    """The steps of one run, each a JSON object with a `step`. Only whole lines count."""

    def __init__(self, folder: Path, run_id: str) -> None:
        self.run_id = run_id
        self.out = folder
        self.folder = folder / f"{run_id}{UNFINISHED}"
        self.steps: list[dict[str, Any]] = []
        self._length = 0

    @property
    def path(self) -> Path:
        return self.folder / JOURNAL

    def select(self, step: str) -> list[dict[str, Any]]:
        return [entry for entry in self.steps if entry["step"] == step]

    def load(self) -> None:
        """Read what a killed sweep left, up to its last whole line.

        Raises DamagedRunError for anything else.
        """
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise DamagedRunError(
                f"has no journal: {error.strerror}", document=self.run_id
            ) from error
        self._length = data.rfind(b"\n") + 1
        for number, line in enumerate(data[: self._length].splitlines(), start=1):
            try:
                self.steps.append({"step": None, **json.loads(line)})
            except (ValueError, TypeError) as error:
                message = f"is not a step of a journal: {error}"
                raise DamagedRunError(
                    message, document=self.run_id, place=f"line {number}"
                ) from error

    def append(self, step: str, **values: Any) -> None:
        """Append a step and bring it to disk.

        Raises DamagedRunError; half a step on a full disk is removed again.
        """
        line = json.dumps({"step": step, **values}, allow_nan=False).encode() + b"\n"
        try:
            self._write(line)
        except OSError as error:
            message = (
                f"{len(self.steps)} steps are kept, the next cannot be written: {error.strerror}"
            )
            raise DamagedRunError(message, document=self.run_id, place=str(self.folder)) from error
        self._length += len(line)
        self.steps.append(json.loads(line))

    def _write(self, line: bytes) -> None:
        """Write after the last whole line, over what a kill may have left there, or leave the file
        at that length.
        """
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.ftruncate(descriptor, self._length)
            os.lseek(descriptor, self._length, os.SEEK_SET)
            written = 0
            try:
                while written < len(line):
                    written += os.write(descriptor, line[written:])
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, self._length)
                raise
        finally:
            os.close(descriptor)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from going on with this run.

        Raises DamagedRunError when one does.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / LOCK, timeout=0)
            lock.acquire()
        except Timeout as error:
            raise DamagedRunError(
                "another process is measuring it", document=self.run_id
            ) from error
        except OSError as error:
            raise DamagedRunError(
                f"cannot be written: {error.strerror}", document=self.run_id
            ) from error
        try:
            yield
        finally:
            lock.release()
            if self._is_empty():
                shutil.rmtree(self.folder, ignore_errors=True)

    def _is_empty(self) -> bool:
        """Report whether nothing was written.

        A journal that cannot be read is damaged, not empty: it is kept.
        """
        try:
            return not self.steps and self.path.stat().st_size == 0
        except FileNotFoundError:
            return True
        except OSError:
            return False

    def publish(self, files: Mapping[str, bytes]) -> Path:
        """Publish the files as the finished run, then drop the journal.

        Raises DamagedRunError, and keeps it then.
        """
        target = self.out / self.run_id
        try:
            write_folder(target, files, self.folder / PART)
        except IpuResultsError as error:
            raise DamagedRunError(error.message, document=self.run_id) from error
        shutil.rmtree(self.folder, ignore_errors=True)
        return target


def list_unfinished(out: Path) -> list[str]:
    """Return the ids of unfinished runs, the latest last; remove what a finished one left behind."""
    run_ids = sorted(
        path.name.removesuffix(UNFINISHED) for path in out.glob(f"*{UNFINISHED}") if path.is_dir()
    )
    for run_id in run_ids:
        if (out / run_id).is_dir():
            shutil.rmtree(out / f"{run_id}{UNFINISHED}", ignore_errors=True)
    return [run_id for run_id in run_ids if not (out / run_id).is_dir()]


READER, POINTS_READER = "sweep-record", "sweep-points"
# the latter with the variant of a text model
POINTS_TABLE, SEQUENCES_TABLE = "sweep_points", "sweep_sequence_points"
STAMPS = ("start_ns", "loaded_ns", "preprocessed_ns", "inferred_ns", "retrieved_ns")
ITEM, TEXT_ITEM = "image", "sequence"
LICENCE = "CC-BY-4.0"
# kept: text of sidecars
NOTE = "One sweep of this project's runner, {how}. Raw stamps and blocks lie beside it."
COMPILED_S = 0.001  # what is ready sooner was not compiled for its batch size
MIN_COSINE = 0.99
UNSETTLED = "did not settle in {runs} warm-up runs"
ESTIMATED = tuple(
    column.name for column in fields(Estimate) if column.name not in ("power_w", "suspect")
)
MEASURED = (
    *(
        "interval_confidence",
        "latency_p90_ms",
        "latency_p99_ms",
        "rounds",
        "blocks",
        "iterations",
        "disturbed_blocks",
    ),
    *(
        "preprocess_ms",
        "infer_ms",
        "retrieve_ms",
        "first_run_ms",
        "warm_up_runs",
        "load_s",
        "compile_s",
    ),
)  # columns that a prediction leaves blank

Point = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunData:
    """Everything that the journal holds of a run.

    `events` are notes on what happened, such as an interruption.
    """

    run_id: str
    task: SweepTask
    opened: Mapping[str, Any]
    ready: Sequence[Mapping[str, Any]]
    blocks: Sequence[Block]
    finished_at: str
    events: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        return (
            self.task.device.kind
            if self.task.device.kind in ("emulated", "simulated")
            else "measured"
        )

    @property
    def best_probe_ms(self) -> float | None:
        """Return the best probe of this run and of those before it on this machine; None where time
        is calculated.
        """
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
        points.append(
            _build_point(run, ready, estimate(blocks, best_probe_ms=run.best_probe_ms), blocks)
        )
    return sorted(points, key=lambda point: int(point["batch_size"]))


def _build_point(
    run: RunData, ready: Mapping[str, Any], row: Estimate, blocks: Sequence[Block]
) -> Point:
    facts = run.opened["facts"]
    opened = run.opened
    device = run.task.device
    plan = run.task.plan
    power = opened["power"]
    length = opened["model"].get("sequence_length")
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
        "pipeline": (
            "overlap"
            if plan.overlap and not load_backend(device.backend).TRAITS.virtual
            else "serial"
        ),
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
        point |= {
            **dict.fromkeys(MEASURED),
            **predicted,
            "suspect": [*predicted["suspect"], *_list_doubts(ready)],
        }
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
    table_text = io.StringIO()
    columns = load_vocabulary().header_of(POINTS_READER, table_name).names
    writer = csv.DictWriter(table_text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(points)
    files = {
        "record.json": _format_record(run),
        "points.csv": table_text.getvalue().encode(),
        "blocks.jsonl": b"".join(_format_block(block) for block in run.blocks),
        "stamps.parquet": _format_stamps(run.blocks),
    }
    attachments = {
        name: hashlib.sha256(files[name]).hexdigest() for name in ("blocks.jsonl", "stamps.parquet")
    }
    record = _build_sidecar(run, "", READER, files["record.json"], "runs", 1)
    table = _build_sidecar(
        run, "-points", POINTS_READER, files["points.csv"], table_name, len(points)
    )
    files["record.json.toml"] = tomli_w.dumps(record).encode()
    files["points.csv.toml"] = tomli_w.dumps({**table, "attachments": attachments}).encode()
    return files


def _format_record(run: RunData) -> bytes:
    opened = run.opened
    setup = run.task.describe_setup()
    setup |= {name: opened[name] for name in ("facts", "preprocessing", "best_probe_ms")}
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
        "plan": asdict(run.task.plan),
        "model": opened["model"],
        "images": opened["images"],
        "notes": run.notes,
    }
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _build_sidecar(
    run: RunData, suffix: str, reader: str, data: bytes, table: str, rows: int
) -> dict[str, Any]:
    day = date.fromisoformat(run.opened["started_at"][:10])
    what = (
        f"{run.opened['model']['name']} on {run.opened['facts']['platform']},"
        f" {run.task.device.backend}"
    )
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


def _format_block(block: Block) -> bytes:
    window = block.window
    line = {name: value for name, value in block.to_json().items() if name != "stamps"}
    line |= {
        "window_ns": [window.start, window.end],
        "items": window.items,
        "throughput": window.throughput,
    }
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
    pq.write_table(
        pa.Table.from_arrays(columns, names=list(names)),
        out,
        compression="zstd",
        write_page_checksum=True,
    )
    return out.getvalue()
