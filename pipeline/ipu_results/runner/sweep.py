"""A sweep from its first step to a finished run: open, warm up and compare with fp32, measure in
rounds, publish.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import msgspec

from ipu_results.errors import BackendError, DamagedRunError
from ipu_results.runner.backends import SessionSpec, load_backend
from ipu_results.runner.config import RUNS, Progress, SweepConfig, SweepTask, Visit, plan_sweeps
from ipu_results.runner.environment import (
    announce_sweep,
    describe_environment,
    load_best_probe,
    read_versions,
    save_best_probe,
)
from ipu_results.runner.estimate import NS, Block
from ipu_results.runner.power import find_meter
from ipu_results.runner.record import Journal, RunData, build_files, build_points, list_unfinished
from ipu_results.runner.sessions import Observer, SessionPool, open_sessions
from ipu_results.runner.workload import Workload, compare_outputs, prepare_workload

SETTLED = 0.05  # two medians of warm-up runs that differ by less agree
MAX_WARM_SETS = 8
VERSIONS = ("ipu-results", "numpy", "onnx", "onnxruntime", "openvino", "pillow", "psutil")
# what a resumed sweep must share with its beginning
SAME = ("environment", "versions", "model", "images", "facts")
LOOSE = ("load_average", "load_s", "compile_s")  # what may differ even so


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A finished run: its folder, and its points by the names of the columns of points.csv, with
    `run_id`.
    """

    run_id: str
    folder: Path
    points: Sequence[dict[str, Any]]


def run_sweep(
    config: SweepConfig, out: Path | str = RUNS, progress: Progress | None = None
) -> list[SweepResult]:
    """Sweep every device that the configuration selects, one after the other, and append the runs
    to `out`.

    Raises RunnerError. Blocks measured so far are kept then: go on with `resume_sweep`.
    """
    tasks = plan_sweeps(config, Path(out))
    return [run_task(task, Path(out), progress or Progress()) for task in tasks]


def run_task(task: SweepTask, out: Path, progress: Progress) -> SweepResult:
    """Measure, or predict, every batch size on one device and append the run to `out`."""
    journal = Journal(out, make_run_id(task, datetime.now(UTC)))
    with journal.lock():
        return _Sweep(task, journal, progress).run()


def resume_sweep(run_id: str | None, out: Path, progress: Progress | None = None) -> SweepResult:
    """Go on with an interrupted sweep, the latest one where `run_id` is None.

    Raises DamagedRunError where there is none, or where the machine or a version has changed.
    """
    unfinished = list_unfinished(out)
    if run_id is None and not unfinished:
        raise DamagedRunError("holds no interrupted run", place=str(out))
    run_id = run_id or unfinished[-1]
    if run_id not in unfinished:
        raise DamagedRunError("is not an unfinished run", document=run_id, place=str(out))
    journal = Journal(out, run_id)
    with journal.lock():
        journal.load()
        if not journal.select("opened"):
            raise DamagedRunError(
                "was interrupted before anything was measured: delete its folder", document=run_id
            )
        try:
            sweep = _Sweep(
                msgspec.convert(journal.select("opened")[0]["task"], SweepTask),
                journal,
                progress or Progress(),
            )
        except (KeyError, msgspec.ValidationError) as error:
            raise DamagedRunError(
                f"its journal is not one of this version: {error!r}", document=run_id
            ) from error
        return sweep.run()


def make_run_id(task: SweepTask, now: datetime) -> str:
    """Return a new id, such as 20261121-134501-onnxruntime-cpu-3fa2."""
    device = "".join(letter if letter.isalnum() else "-" for letter in task.device.name.lower())
    precision = f"-{task.config.precision}" if task.config.precision else ""
    return f"{now:%Y%m%d-%H%M%S}-{task.device.backend}-{device}{precision}-{uuid4().hex[:4]}"


class _Sweep:
    def __init__(self, task: SweepTask, journal: Journal, progress: Progress) -> None:
        self.task = task
        self.plan = task.plan
        self.journal = journal
        self.progress = progress
        self.blocks = [msgspec.convert(step["block"], Block) for step in journal.select("block")]
        self.batch_s: dict[int, float] = {}  # those of the batch sizes that are measured

    @property
    def spent_s(self) -> float:
        """Return the seconds measured so far, by the clock of the sessions."""
        return sum(block.window.end - block.window.start for block in self.blocks) / NS

    def run(self) -> SweepResult:
        # sessions, meters and names must count alike
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        task = self.task
        device = self.task.device
        with ExitStack() as stack:
            work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ipu-results-")))
            concurrent = stack.enter_context(announce_sweep(self.journal.run_id))
            if concurrent.reason:
                self.progress.warn(
                    f"other sweeps on this machine cannot be seen: {concurrent.reason}"
                )
            self.progress.stage("building the model and its inputs")
            workload = (
                prepare_workload(task, work)
                if load_backend(device.backend).TRAITS.computes
                else None
            )
            meter, reason = find_meter(
                device.kind, device.name, task.config.power_command, task.config.power_declared
            )
            observer = Observer(concurrent, meter, reason, self.progress.warn)
            stack.callback(observer.close)
            self.progress.stage(f"opening {self.plan.sessions} sessions on {device.description}")
            pool = self._open_sessions(workload)
            stack.callback(pool.close)
            self._record_opening(pool, workload, observer)
            for batch in self.plan.batch_sizes:
                try:
                    self._make_ready(pool, workload, batch)
                except BackendError as error:
                    self._exclude(batch, error)
            if not self.batch_s:
                raise BackendError(self.journal.select("excluded")[0]["reason"], place=device.name)
            done = {Visit(block.round, block.batch_size, block.kind) for block in self.blocks}
            number = 0
            while self.plan.needs_round(self.spent_s, number):
                for visit in self.plan.list_visits(number):
                    if visit not in done and visit.batch_size in self.batch_s:
                        self._measure_block(pool, observer, visit)
                number += 1
        return self._publish()

    def _open_sessions(self, workload: Workload | None) -> SessionPool:
        task = self.task
        sessions = self.plan.sessions
        specs = [
            SessionSpec(
                device=task.device.name,
                model=str(workload.model.path) if workload else "",
                precision=task.config.precision,
                micro_batches=tuple(batch // sessions for batch in self.plan.batch_sizes),
                threads=task.threads,
                sessions=sessions,
                session=session,
                options=dict(workload.options if workload else task.config.options),
            )
            for session in range(sessions)
        ]
        images = workload.images if workload else None
        python = task.config.python or sys.executable
        return open_sessions(
            task.device.backend, specs, images, overlap=self.plan.overlap, python=python
        )

    def _record_opening(
        self, pool: SessionPool, workload: Workload | None, observer: Observer
    ) -> None:
        """Write the first step of the journal, or compare it: a resumed sweep must find all as it
        was.
        """
        opening = {
            "task": asdict(self.task),
            "started_at": _format_now(),
            "environment": describe_environment(),
            "versions": {**read_versions(VERSIONS), **pool.facts.versions},
            "model": _describe_model(workload),
            "images": dict(workload.metadata) if workload else {},
            "preprocessing": workload.preprocessing if workload else None,
            "facts": asdict(pool.facts),
            "best_probe_ms": None if pool.virtual else load_best_probe(),
            "power": {
                "scope": observer.meter.scope if observer.meter else None,
                "description": observer.meter_reason,
            },
        }
        if not self.journal.steps:
            for line in workload.excluded if workload else ():
                self.progress.warn(f"image left out: {line}")
            self.journal.append("opened", **opening)
        elif changes := _list_changes(self.journal.select("opened")[0], opening):
            raise DamagedRunError(
                f"cannot be resumed here: {'; '.join(changes)}", document=self.journal.run_id
            )
        else:
            self.journal.append("resumed", at=opening["started_at"], block=len(self.blocks))

    def _exclude(self, batch: int, error: BackendError) -> None:
        """Leave out a batch size that the device does not accept."""
        self.batch_s.pop(batch, None)
        self.progress.warn(f"batch {batch} is left out: {error}")
        if not any(step["batch_size"] == batch for step in self.journal.select("excluded")):
            self.journal.append("excluded", batch_size=batch, reason=error.message)

    def _make_ready(self, pool: SessionPool, workload: Workload | None, batch: int) -> None:
        """Compile and warm up one batch size, and compare its outputs with fp32."""
        self.progress.stage(f"warming up batch {batch}")
        compile_s, predicted = pool.prepare(batch, "amortised")
        # a batch alone is another program: one that does not fit must show here
        if pool.batches_per_step > 1:
            alone_s, _ = pool.prepare(batch, "isolated")
            pool.prepare(batch, "amortised")
            compile_s += alone_s
        first = Block(
            0, 0, batch, "amortised", _format_now(), pool.run_stream(0.0, 1)
        ).latencies_ms[0]
        runs, settled = self._warm_up(pool, batch)
        first = first / pool.batches_per_step
        runs = runs * pool.batches_per_step
        if any(step["batch_size"] == batch for step in self.journal.select("ready")):
            return
        cosine = None
        top1 = None
        if (
            workload
            and (reference := workload.select_reference(batch, self.plan.sessions)) is not None
        ):
            cosine, top1 = compare_outputs(pool.compute_outputs(batch), reference)
        self.journal.append(
            "ready",
            batch_size=batch,
            compile_s=compile_s,
            first_run_ms=first,
            warm_up_runs=runs,
            settled=settled,
            cosine=cosine,
            top1=top1,
            predicted=predicted,
        )

    def _warm_up(self, pool: SessionPool, batch: int) -> tuple[int, bool]:
        """Run until the medians of two sets in turn agree; return the number of runs and whether
        they did.
        """
        before = None
        for sets in range(1, MAX_WARM_SETS + 1):
            stamps = pool.run_stream(0.0, self.plan.warm_runs)
            now = median((end - start) / NS for session in stamps for start, *_, end in session)
            self.batch_s[batch] = now
            if before is not None and abs(now - before) <= SETTLED * before:
                return sets * self.plan.warm_runs, True
            before = now
        return MAX_WARM_SETS * self.plan.warm_runs, False

    def _measure_block(self, pool: SessionPool, observer: Observer, visit: Visit) -> None:
        total, left_s = self._estimate_rest()
        self.progress.visit(visit, len(self.blocks), total, left_s)
        pool.prepare(visit.batch_size, visit.kind)
        started_at = _format_now()
        # where time is calculated there is nothing to observe
        watch = nullcontext(dict[str, Any]()) if pool.virtual else observer.observe()
        # what the power meter needs may be longer than a block
        seconds = max(self.plan.block_s, observer.meter.min_window_s if observer.meter else 0.0)
        with watch as observation:
            run = pool.run_stream if visit.kind == "amortised" else pool.run_isolated
            stamps = run(seconds, self.plan.iterations)
        number = len(self.blocks)
        steps = {"batches_per_step": pool.batches_per_step, **observation}
        block = Block(
            number, visit.round, visit.batch_size, visit.kind, started_at, stamps, **steps
        )
        self.journal.append("block", block=block.to_json())
        self.blocks.append(block)

    def _estimate_rest(self) -> tuple[int, float]:
        """Estimate the blocks in all and the seconds left."""
        round_s = self.plan.estimate_round_s(self.batch_s)
        rounds = int(
            min(
                max(self.plan.least_rounds, -(-self.plan.budget_s // round_s)),
                self.plan.most_rounds,
            )
        )
        visits = [visit for number in range(rounds) for visit in self.plan.list_visits(number)]
        total = sum(visit.batch_size in self.batch_s for visit in visits)
        left = max(0, total - len(self.blocks))
        return max(total, len(self.blocks)), left * round_s * rounds / total

    def _publish(self) -> SweepResult:
        select = self.journal.select
        events = [
            f"batch {step['batch_size']} left out: {step['reason']}" for step in select("excluded")
        ]
        events += [
            f"interrupted; resumed before block {step['block']} at {step['at']}"
            for step in select("resumed")
        ]
        opened = select("opened")[0]
        ready = select("ready")
        run = RunData(
            self.journal.run_id, self.task, opened, ready, self.blocks, _format_now(), tuple(events)
        )
        points = build_points(run)
        if run.best_probe_ms is not None:
            save_best_probe(run.best_probe_ms)
        folder = self.journal.publish(build_files(run, points))
        return SweepResult(
            run.run_id, folder, [{"run_id": run.run_id, **point} for point in points]
        )


def _describe_model(workload: Workload | None) -> dict[str, Any]:
    if workload is None:
        return {"name": "none", "weights": "none"}
    sizes = ("sequence_length",) if workload.model.sequence_length else ("height", "width")
    names = ("name", "precision", "weights", "sha256", "source_sha256", *sizes, "outputs")
    return {name: getattr(workload.model, name) for name in names}


def _list_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe what is not as it was when a resumed sweep began."""
    changes = []
    for part in SAME:
        was = before[part]
        is_ = now[part]
        for name in sorted(was.keys() | is_.keys()):
            if name not in LOOSE and was.get(name) != is_.get(name):
                changes.append(f"{part} {name} was {was.get(name)}, is {is_.get(name)}")
    return changes


def _format_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
