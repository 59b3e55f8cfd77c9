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
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w
from filelock import FileLock, Timeout

from ipu_results.errors import DamagedRunError, IpuResultsError
from ipu_results.kit.files import UNFINISHED, write_folder
from ipu_results.runner.backends import PredictedPoint, SessionFacts, load_backend
from ipu_results.runner.config import SweepTask
from ipu_results.runner.environment import Environment
from ipu_results.runner.estimate import Block, estimate, list_probes
from ipu_results.schema.vocabulary import load_vocabulary

# kept: a sweep of an earlier release is resumed by this name
JOURNAL = "journal.jsonl"
LOCK = ".lock"
# where a finished run is built, before it is renamed
PART = "finished"

Step = dict[str, Any]  # of JSON: `Opened`, `Ready` and `Block` are the typed ones


class Journal:
    """The steps of one run, each a JSON object with a `step`. Only whole lines count."""

    def __init__(self, folder: Path, run_id: str) -> None:
        self.run_id = run_id
        self.out = folder
        self.folder = folder / f"{run_id}{UNFINISHED}"
        self.steps: list[Step] = []
        self._length = 0

    @property
    def path(self) -> Path:
        return self.folder / JOURNAL

    def select(self, step: str) -> list[Step]:
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
        # half a line is what a kill left of the step in flight
        self._length = data.rfind(b"\n") + 1
        for number, line in enumerate(data[: self._length].splitlines(), start=1):
            try:
                # `select` passes over an object without a step
                self.steps.append({"step": None, **json.loads(line)})
            except (ValueError, TypeError) as error:
                raise DamagedRunError(
                    f"is not a step of a journal: {error}",
                    document=self.run_id,
                    place=f"line {number}",
                ) from error

    def append(self, step: str, **values: object) -> None:
        """Append a step and bring it to disk.

        Raises DamagedRunError; half a step on a full disk is removed again.
        """
        line = json.dumps({"step": step, **values}, allow_nan=False).encode() + b"\n"
        try:
            self._write(line)
        except OSError as error:
            raise DamagedRunError(
                f"{len(self.steps)} steps are kept, the next cannot be written: {error.strerror}",
                document=self.run_id,
                place=str(self.folder),
            ) from error
        self._length += len(line)
        self.steps.append(json.loads(line))

    def _write(self, line: bytes) -> None:
        """Write after the last whole line, over what a kill may have left there, or leave the file
        at that length.
        """
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            # what a kill left behind the last whole line
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
            # a sweep that failed before its first step has nothing to resume
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
    """Return the ids of unfinished runs, the latest last; remove what finished ones left."""
    run_ids = []
    for folder in sorted(out.glob(f"*{UNFINISHED}")):
        run_id = folder.name.removesuffix(UNFINISHED)
        if (out / run_id).is_dir():
            shutil.rmtree(folder, ignore_errors=True)
        elif folder.is_dir():
            run_ids.append(run_id)
    return run_ids


READER = "sweep-record"
POINTS_READER = "sweep-points"
POINTS_TABLE = "sweep_points"
SEQUENCES_TABLE = "sweep_sequence_points"  # with the variant of a text model
STAMPS = ("start_ns", "loaded_ns", "preprocessed_ns", "inferred_ns", "retrieved_ns")
COMPILED_S = 0.001  # what is ready sooner was not compiled for its batch size
# below it the conversion has gone wrong, or another model was run
MIN_COSINE = 0.99
# columns that a prediction leaves blank
MEASURED = (
    "interval_confidence",
    "latency_p90_ms",
    "latency_p99_ms",
    "rounds",
    "blocks",
    "iterations",
    "disturbed_blocks",
    "preprocess_ms",
    "infer_ms",
    "retrieve_ms",
    "first_run_ms",
    "warm_up_runs",
    "load_s",
    "compile_s",
)


@dataclass(frozen=True)
class PowerSource:
    """What a meter covers, None where there is none, and its name or the reason."""

    scope: str | None
    description: str


@dataclass(frozen=True)
class Opened:
    """The first step of a journal: what is run, which a resumed sweep must find unchanged."""

    task: SweepTask
    started_at: str
    environment: Environment
    versions: dict[str, str]
    model: dict[str, Any]
    images: dict[str, Any]
    preprocessing: str | None
    facts: SessionFacts
    best_probe_ms: float | None
    power: PowerSource


@dataclass(frozen=True)
class Ready:
    """The step of a batch size that is compiled, warm and compared with fp32."""

    batch_size: int
    compile_s: float
    first_run_ms: float
    warm_up_runs: int
    settled: bool
    cosine: float | None
    top1: float | None
    predicted: PredictedPoint

    def list_doubts(self) -> list[str]:
        doubts = []
        if not self.settled:
            doubts.append(f"did not settle in {self.warm_up_runs} warm-up runs")
        if self.cosine is None and self.top1 is not None:
            doubts.append("outputs hold no direction to compare with fp32: not finite, or all zero")
        if self.cosine is not None and self.cosine < MIN_COSINE:
            doubts.append(f"outputs are not those of fp32: cosine {self.cosine:.3f}")
        return doubts


class Point(TypedDict, total=False):
    """A line of points.csv, in its order but for the run's id; None is a blank cell."""

    run_id: str
    batch_size: int
    micro_batch_size: int
    sessions: int
    throughput: float
    latency_ms: float
    latency_ms_low: float | None
    latency_ms_high: float | None
    interval_confidence: float | None
    latency_isolated_ms: float | None
    latency_p90_ms: float | None
    latency_p99_ms: float | None
    rounds: int | None
    blocks: int | None
    iterations: int | None
    disturbed_blocks: int | None
    preprocess_ms: float | None
    infer_ms: float | None
    retrieve_ms: float | None
    probe_ms: float | None
    foreign_cpu: float | None
    steal: float | None
    latency_kind: str
    suspect: str | None
    origin: str
    model: str
    platform: str
    chip: str | None
    chip_count: int | None
    sdk_version: str | None
    framework: str
    compute_precision: str | None
    item: str
    power_w: float | None
    power_scope: str | None
    power_reason: str | None
    calibration_id: str | None
    backend: str
    backend_version: str
    provider: str
    threads: int | None
    load_s: float | None
    device: str
    pipeline: str
    preprocessing: str | None
    model_precision: str | None
    weights: str
    model_sha256: str | None
    compile_s: float | None
    cosine: float | None
    top1: float | None
    first_run_ms: float | None
    warm_up_runs: int | None
    variant: str
    efficiency: float | None


@dataclass(frozen=True)
class RunData:
    """Everything that the journal holds of a run.

    `events` are notes on what happened, such as an interruption.
    """

    run_id: str
    opened: Opened
    ready: Sequence[Ready]
    blocks: Sequence[Block]
    finished_at: str
    events: Sequence[str] = ()

    @property
    def origin(self) -> str:
        kind = self.opened.task.device.kind
        return kind if kind in ("emulated", "simulated") else "measured"

    @property
    def best_probe_ms(self) -> float | None:
        """Return the best probe of this run and of those before it on this machine; None where time
        is calculated.
        """
        probes = list_probes(self.blocks)
        if self.opened.best_probe_ms is not None:
            probes.append(self.opened.best_probe_ms)
        return min(probes, default=None)


def build_points(run: RunData) -> list[Point]:
    """Return one point per batch size, by the names of the columns of points.csv."""
    ordered = sorted(run.ready, key=lambda ready: ready.batch_size)
    return [_build_point(run, ready) for ready in ordered]


def _build_point(run: RunData, ready: Ready) -> Point:
    opened = run.opened
    facts = opened.facts
    plan = opened.task.plan
    device = opened.task.device
    blocks = [block for block in run.blocks if block.batch_size == ready.batch_size]
    # power_w and suspect have places of their own in points.csv
    figures = estimate(blocks, run.best_probe_ms)._asdict()
    watts = figures.pop("power_w")
    doubts = figures.pop("suspect")
    length = opened.model.get("sequence_length")
    overlap = plan.overlap and not load_backend(device.backend).TRAITS.virtual
    point = {
        "batch_size": ready.batch_size,
        "micro_batch_size": ready.batch_size // plan.sessions,
        "sessions": plan.sessions,
        **figures,
        "latency_kind": "amortised",
        "suspect": None,
        "origin": run.origin,
        "model": opened.model["name"],
        "platform": facts.platform,
        "chip": facts.chip,
        "chip_count": facts.chip_count,
        "sdk_version": facts.sdk_version,
        "framework": facts.framework,
        "compute_precision": facts.compute_precision or None,
        "item": "sequence" if length else "image",
        "power_w": watts,
        "power_scope": None if watts is None else opened.power.scope,
        "power_reason": _explain_no_power(opened.power, blocks) if watts is None else None,
        "calibration_id": facts.calibration_id,
        "backend": device.backend,
        "backend_version": facts.backend_version,
        "provider": facts.provider,
        "threads": facts.threads,
        "load_s": facts.load_s,
        "device": device.name,
        "pipeline": "overlap" if overlap else "serial",
        "preprocessing": opened.preprocessing,
        "model_precision": opened.model.get("precision"),
        "weights": opened.model["weights"],
        "model_sha256": opened.model.get("sha256"),
        "compile_s": ready.compile_s if ready.compile_s > COMPILED_S else facts.compile_s,
        "cosine": ready.cosine,
        "top1": ready.top1,
        "first_run_ms": ready.first_run_ms,
        "warm_up_runs": ready.warm_up_runs,
    }
    if length:
        point["variant"] = f"SL{length}"
    if run.origin == "emulated":  # a prediction has its own band and no rounds that could differ
        point |= dict.fromkeys(MEASURED)
        point |= ready.predicted
        # rounds and blocks say nothing of a time that is calculated
        doubts = ready.predicted["suspect"]
    # the power may be a predicted one
    power_w = point["power_w"]
    point["efficiency"] = point["throughput"] / power_w if power_w else None
    point["suspect"] = "; ".join([*doubts, *ready.list_doubts()]) or None
    return cast("Point", point)


def _explain_no_power(power: PowerSource, blocks: Sequence[Block]) -> str | None:
    """Return why there is no sensor, or why it could not be read."""
    if power.scope is None:
        return power.description
    for block in blocks:
        if block.power_reason:
            return block.power_reason
    return None


def build_files(run: RunData, points: Sequence[Point]) -> dict[str, bytes]:
    """Return every file of the finished run by name, sidecars last."""
    table = SEQUENCES_TABLE if run.opened.model.get("sequence_length") else POINTS_TABLE
    text = io.StringIO()
    columns = load_vocabulary().header_of(POINTS_READER, table).names
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(points)
    files = {
        "record.json": _format_record(run),
        "points.csv": text.getvalue().encode(),
        "blocks.jsonl": b"".join(_format_block(block) for block in run.blocks),
        "stamps.parquet": _format_stamps(run.blocks),
    }
    digests = {}
    for name, data in files.items():
        digests[name] = hashlib.sha256(data).hexdigest()
    document_id = f"sweep-{run.run_id}"
    title = (
        f"Sweep {run.run_id}: {run.opened.model['name']} on {run.opened.facts.platform},"
        f" {run.opened.task.device.backend}"
    )
    of_record = _build_sidecar(run, document_id, title, digests["record.json"], READER)
    of_record["tables"] = {"runs": {"rows": 1}}
    of_points = _build_sidecar(
        run, f"{document_id}-points", f"{title} (points)", digests["points.csv"], POINTS_READER
    )
    of_points["tables"] = {table: {"rows": len(points)}}
    of_points["attachments"] = {
        "blocks.jsonl": digests["blocks.jsonl"],
        "stamps.parquet": digests["stamps.parquet"],
    }
    files["record.json.toml"] = tomli_w.dumps(of_record).encode()
    files["points.csv.toml"] = tomli_w.dumps(of_points).encode()
    return files


def _format_record(run: RunData) -> bytes:
    opened = run.opened
    task = opened.task
    setup = {
        **task.describe_setup(),
        "facts": asdict(opened.facts),
        "preprocessing": opened.preprocessing,
        "best_probe_ms": opened.best_probe_ms,
    }
    record = {
        "run_id": run.run_id,
        "backend": task.device.backend,
        "device": task.device.name,
        "started_at": opened.started_at,
        "finished_at": run.finished_at,
        "command_line": task.config.command_line,
        "environment": opened.environment,
        "versions": opened.versions,
        "setup": setup,
        "plan": asdict(task.plan),
        "model": opened.model,
        "images": opened.images,
        "notes": [*opened.facts.notes, *run.events],
    }
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _build_sidecar(
    run: RunData, document_id: str, title: str, sha256: str, reader: str
) -> dict[str, object]:
    """Describe a file of the run, but for its tables."""
    day = date.fromisoformat(run.opened.started_at[:10])
    return {
        "document_id": document_id,
        "title": title,
        "publisher": "local",
        "published_on": day,
        "retrieved_on": day,
        "kind": "run",
        "licence": "CC-BY-4.0",
        "sha256": sha256,
        "reader": reader,
        # kept: text of sidecars
        "note": (
            f"One sweep of this project's runner, {run.origin}."
            " Raw stamps and blocks lie beside it."
        ),
    }


def _format_block(block: Block) -> bytes:
    window = block.window
    line = block.to_json()
    del line["stamps"]
    line["window_ns"] = [window.start, window.end]
    line["items"] = window.items
    line["throughput"] = window.throughput
    line["iterations"] = block.iterations
    return json.dumps(line, allow_nan=False).encode() + b"\n"


def _format_stamps(blocks: Sequence[Block]) -> bytes:
    rows = []
    for block in blocks:
        for session, iterations in enumerate(block.stamps):
            for iteration, stamps in enumerate(iterations):
                rows.append((block.block, session, iteration, *stamps))
    names = ("block", "session", "iteration", *STAMPS)
    columns = np.array(rows, np.int64).T
    out = io.BytesIO()
    pq.write_table(
        pa.table(list(columns), names=names), out, compression="zstd", write_page_checksum=True
    )
    return out.getvalue()
