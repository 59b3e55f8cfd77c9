"""A sweep from its first step to a finished run: open, warm up and compare with fp32, measure in
rounds, publish.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import msgspec

from ipu_results.errors import BackendError, DamagedRunError
from ipu_results.runner.backends import SessionSpec
from ipu_results.runner.config import (
    RUNS,
    Progress,
    SweepConfig,
    SweepPlan,
    SweepTask,
    Visit,
    plan_sweeps,
)
from ipu_results.runner.environment import (
    announce_sweep,
    describe_environment,
    load_best_probe,
    read_versions,
    save_best_probe,
)
from ipu_results.runner.estimate import NS, Block
from ipu_results.runner.power import find_meter
from ipu_results.runner.record import (
    Journal,
    Opened,
    Point,
    PowerSource,
    Ready,
    RunData,
    build_files,
    build_points,
    list_unfinished,
)
from ipu_results.runner.sessions import Observation, Observer, SessionPool, open_sessions
from ipu_results.runner.workload import (
    Agreement,
    Workload,
    compare_outputs,
    prepare_workload,
)

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
    points: Sequence[Point]


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
    if run_id is None:
        if not unfinished:
            raise DamagedRunError("holds no interrupted run", place=str(out))
        run_id = unfinished[-1]
    elif run_id not in unfinished:
        raise DamagedRunError("is not an unfinished run", document=run_id, place=str(out))
    journal = Journal(out, run_id)
    with journal.lock():
        journal.load()
        steps = journal.select("opened")
        if not steps:
            raise DamagedRunError(
                "was interrupted before anything was measured: delete its folder", document=run_id
            )
        try:
            before = msgspec.convert(steps[0], Opened)
            sweep = _Sweep(before.task, journal, progress or Progress(), before)
        except (KeyError, msgspec.ValidationError) as error:
            raise DamagedRunError(
                f"its journal is not one of this version: {error!r}", document=run_id
            ) from error
        return sweep.run()


def make_run_id(task: SweepTask, now: datetime) -> str:
    """Return a new id, such as 20261121-134501-onnxruntime-cpu-3fa2."""
    device = ""
    for letter in task.device.name.lower():
        device += letter if letter.isalnum() else "-"
    parts = [f"{now:%Y%m%d-%H%M%S}", task.device.backend, device]
    if task.config.precision:
        parts.append(task.config.precision)
    parts.append(uuid4().hex[:4])
    return "-".join(parts)


class _Sweep:
    """One sweep: what its journal holds already is not measured again.

    `before` is how a resumed sweep began.
    """

    def __init__(
        self, task: SweepTask, journal: Journal, progress: Progress, before: Opened | None = None
    ) -> None:
        self.task = task
        self.before = before
        self.plan = task.plan
        self.journal = journal
        self.progress = progress
        self.ready = [msgspec.convert(step, Ready) for step in journal.select("ready")]
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
        device = task.device
        with ExitStack() as stack:
            work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ipu-results-")))
            concurrent = stack.enter_context(announce_sweep(self.journal.run_id))
            if concurrent.reason:
                self.progress.warn(
                    f"other sweeps on this machine cannot be seen: {concurrent.reason}"
                )
            self.progress.stage("building the model and its inputs")
            workload = prepare_workload(task, work)
            meter, reason = find_meter(
                device.kind, device.name, task.config.power_command, task.config.power_declared
            )
            observer = Observer(concurrent, meter, reason, self.progress.warn)
            stack.callback(observer.close)
            self.progress.stage(f"opening {self.plan.sessions} sessions on {device.description}")
            pool = self._open_sessions(workload)
            stack.callback(pool.close)
            opened = self._record_opening(pool, workload, observer)
            for batch in self.plan.batch_sizes:
                try:
                    self._make_ready(pool, workload, batch)
                except BackendError as error:
                    self._exclude(batch, error)
            if not self.batch_s:
                raise BackendError(self.journal.select("excluded")[0]["reason"], place=device.name)
            self._measure_rounds(pool, observer)
        return self._publish(opened)

    def _open_sessions(self, workload: Workload) -> SessionPool:
        task = self.task
        sessions = self.plan.sessions
        specs = []
        for session in range(sessions):
            specs.append(
                SessionSpec(
                    device=task.device.name,
                    model=workload.path,
                    precision=task.config.precision,
                    micro_batches=tuple(batch // sessions for batch in self.plan.batch_sizes),
                    threads=task.threads,
                    sessions=sessions,
                    session=session,
                    options=dict(workload.options),
                )
            )
        return open_sessions(
            task.device.backend,
            specs,
            workload.inputs.stream,
            overlap=self.plan.overlap,
            python=task.config.python or sys.executable,
        )

    def _record_opening(self, pool: SessionPool, workload: Workload, observer: Observer) -> Opened:
        """Write the first step of the journal, or compare it: a resumed sweep must find all as it
        was. Return it.
        """
        inputs = workload.inputs
        meter = observer.meter
        now = Opened(
            task=self.task,
            started_at=_format_now(),
            environment=describe_environment(),
            versions={**read_versions(VERSIONS), **pool.facts.versions},
            model=workload.describe_model(),
            images=dict(inputs.metadata),
            preprocessing=inputs.preprocessing,
            facts=pool.facts,
            best_probe_ms=None if pool.virtual else load_best_probe(),
            power=PowerSource(meter.scope if meter else None, observer.meter_reason),
        )
        if self.before is None:
            for line in inputs.left_out:
                self.progress.warn(f"image left out: {line}")
            self.journal.append("opened", **asdict(now))
            return now
        changes = _list_changes(self.before, now)
        if changes:
            raise DamagedRunError(
                f"cannot be resumed here: {'; '.join(changes)}", document=self.journal.run_id
            )
        self.journal.append("resumed", at=now.started_at, block=len(self.blocks))
        return self.before

    def _exclude(self, batch: int, error: BackendError) -> None:
        """Leave out a batch size that the device does not accept."""
        self.batch_s.pop(batch, None)
        self.progress.warn(f"batch {batch} is left out: {error}")
        if not any(step["batch_size"] == batch for step in self.journal.select("excluded")):
            self.journal.append("excluded", batch_size=batch, reason=error.message)

    def _make_ready(self, pool: SessionPool, workload: Workload, batch: int) -> None:
        """Compile and warm up one batch size, and compare its outputs with fp32."""
        self.progress.stage(f"warming up batch {batch}")
        prepared = pool.prepare(batch, "amortised")
        compile_s = prepared.seconds
        # a batch alone is another program: one that does not fit must show here
        if pool.batches_per_step > 1:
            compile_s += pool.prepare(batch, "isolated").seconds
            pool.prepare(batch, "amortised")
        first = Block(
            block=0,
            round=0,
            batch_size=batch,
            kind="amortised",
            started_at=_format_now(),
            stamps=pool.run_stream(0.0, 1),
        )
        warm = pool.warm_up(self.plan.warm_runs)
        self.batch_s[batch] = warm.batch_s
        if any(ready.batch_size == batch for ready in self.ready):
            return
        reference = workload.select_reference(batch, self.plan.sessions)
        agreement = Agreement()
        if reference is not None:
            agreement = compare_outputs(pool.compute_outputs(batch), reference)
        ready = Ready(
            batch_size=batch,
            compile_s=compile_s,
            first_run_ms=first.latencies_ms[0] / pool.batches_per_step,
            warm_up_runs=warm.runs * pool.batches_per_step,
            settled=warm.settled,
            cosine=agreement.cosine,
            top1=agreement.top1,
            predicted=prepared.predicted,
        )
        self.journal.append("ready", **asdict(ready))
        self.ready.append(ready)

    def _measure_rounds(self, pool: SessionPool, observer: Observer) -> None:
        done = {Visit(block.round, block.batch_size, block.kind) for block in self.blocks}
        number = 0
        while self.plan.needs_round(self.spent_s, number):
            for visit in self.plan.list_visits(number):
                if visit not in done and visit.batch_size in self.batch_s:
                    self._report_visit(visit)
                    block = measure_block(pool, observer, self.plan, visit, len(self.blocks))
                    self.journal.append("block", block=block.to_json())
                    self.blocks.append(block)
            number += 1

    def _report_visit(self, visit: Visit) -> None:
        """Report the block that begins, and estimate the number of all blocks and seconds left."""
        plan = self.plan
        done = len(self.blocks)
        round_s = plan.estimate_round_s(self.batch_s)
        within_budget = -(-plan.budget_s // round_s)  # rounded up
        rounds = int(min(max(plan.least_rounds, within_budget), plan.most_rounds))
        total = 0
        for number in range(rounds):
            total += sum(visit.batch_size in self.batch_s for visit in plan.list_visits(number))
        block_s = round_s * rounds / total
        left_s = max(0, total - done) * block_s
        self.progress.visit(visit, done, max(total, done), left_s)

    def _publish(self, opened: Opened) -> SweepResult:
        events = []
        for step in self.journal.select("excluded"):
            events.append(f"batch {step['batch_size']} left out: {step['reason']}")
        for step in self.journal.select("resumed"):
            events.append(f"interrupted; resumed before block {step['block']} at {step['at']}")
        run_id = self.journal.run_id
        run = RunData(run_id, opened, self.ready, self.blocks, _format_now(), events)
        points = build_points(run)
        if run.best_probe_ms is not None:
            save_best_probe(run.best_probe_ms)
        folder = self.journal.publish(build_files(run, points))
        return SweepResult(run_id, folder, [{"run_id": run_id, **point} for point in points])


def _list_changes(before: Opened, now: Opened) -> list[str]:
    """Describe what is not as it was when a resumed sweep began."""
    changes = []
    old = asdict(before)
    new = asdict(now)
    for part in SAME:
        for name in sorted(old[part].keys() | new[part].keys()):
            was = old[part].get(name)
            now_is = new[part].get(name)
            if name not in LOOSE and was != now_is:
                changes.append(f"{part} {name} was {was}, is {now_is}")
    return changes


def measure_block(
    pool: SessionPool, observer: Observer, plan: SweepPlan, visit: Visit, number: int
) -> Block:
    """Measure a block, and observe the machine around it."""
    pool.prepare(visit.batch_size, visit.kind)
    started_at = _format_now()
    run = pool.run_stream if visit.kind == "amortised" else pool.run_isolated
    if pool.virtual:  # where time is calculated there is nothing to observe
        observation = Observation()
        stamps = run(plan.block_s, plan.iterations)
    else:
        # what the power meter needs may be longer than a block
        meter_s = observer.meter.min_window_s if observer.meter else 0.0
        with observer.observe() as observation:
            stamps = run(max(plan.block_s, meter_s), plan.iterations)
    return Block(
        block=number,
        round=visit.round,
        batch_size=visit.batch_size,
        kind=visit.kind,
        started_at=started_at,
        stamps=stamps,
        batches_per_step=pool.batches_per_step,
        **asdict(observation),
    )


def _format_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
