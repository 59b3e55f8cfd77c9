"""A sweep from its first step to a finished run: open, warm up and check, measure in rounds, publish."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Protocol
from uuid import uuid4

from ipu_results.errors import BackendError, DamagedRunError
from ipu_results.runner.asked import Asked
from ipu_results.runner.backends import computes
from ipu_results.runner.backends.base import Spec
from ipu_results.runner.best import best_known, remember
from ipu_results.runner.blocks import NS, Block
from ipu_results.runner.companions import announced
from ipu_results.runner.crew import Crew, open_crew
from ipu_results.runner.environment import environment, versions
from ipu_results.runner.journal import Journal, unfinished
from ipu_results.runner.observe import Observer, unobserved
from ipu_results.runner.plan import Visit
from ipu_results.runner.power import find
from ipu_results.runner.record import Run, files_of, points_of
from ipu_results.runner.reference import agreement
from ipu_results.runner.scene import Scene, set_up

SETTLED = 0.05  # two medians of warm-up runs are as one
WARM_RUNS, MOST_WARM = 5, 8  # runs of a set, sets
VERSIONS = ("ipu-results", "numpy", "onnx", "onnxruntime", "openvino", "pillow", "psutil")
SAME = ("environment", "versions", "model", "images", "facts")  # what a resumed sweep must share with its beginning
LOOSE = ("load_average", "load_s", "compile_s")  # what may differ even so


class Progress(Protocol):
    """What a sweep tells while it goes on. `left_s` is None until it can be told."""

    def stage(self, what: str) -> None: ...

    def visit(self, visit: Visit, done: int, total: int, left_s: float | None) -> None: ...

    def warn(self, what: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Finished:
    run_id: str
    folder: Path
    points: Sequence[dict[str, Any]]


def new_id(asked: Asked, now: datetime) -> str:
    """A run's id, such as 20261121-134501-onnxruntime-cpu-3fa2."""
    device = "".join(letter if letter.isalnum() else "-" for letter in asked.device.name.lower())
    precision = f"-{asked.precision}" if asked.precision else ""
    return f"{now:%Y%m%d-%H%M%S}-{asked.device.backend}-{device}{precision}-{uuid4().hex[:4]}"


def sweep(asked: Asked, out: Path, progress: Progress) -> Finished:
    """Measure, or predict, every batch size and append the run to `out`. Raises RunnerError; blocks are kept then."""
    now = datetime.now(UTC)
    journal = Journal(out, new_id(asked, now))
    with journal.held():
        return _Sweep(asked, journal, progress).run()


def resume(run_id: str, out: Path, progress: Progress) -> Finished:
    """Go on with a sweep that was interrupted. Raises DamagedRunError where machine or versions are not as they were."""
    journal = Journal(out, run_id)
    if run_id not in unfinished(out):
        raise DamagedRunError("is no unfinished run", document=run_id, place=str(out))
    with journal.held():
        journal.read()
        if not journal.of("opened"):
            raise DamagedRunError("was interrupted before anything was measured: delete its folder", document=run_id)
        return _begun(journal, progress).run()


def _begun(journal: Journal, progress: Progress) -> _Sweep:
    try:
        return _Sweep(Asked.from_json(journal.of("opened")[0]["asked"]), journal, progress)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DamagedRunError(f"its journal is not one of this version: {error!r}", document=journal.run_id) from error


class _Sweep:
    def __init__(self, asked: Asked, journal: Journal, progress: Progress) -> None:
        self.asked, self.plan, self.journal, self.progress = asked, asked.plan, journal, progress
        self.blocks = [Block.from_json(one["block"]) for one in journal.of("block")]
        self.batch_s: dict[int, float] = {}  # those of the batch sizes that are measured

    @property
    def spent_s(self) -> float:
        """Seconds measured so far, by the clock of the sessions."""
        return sum(block.window.end - block.window.start for block in self.blocks) / NS

    def run(self) -> Finished:
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # sessions, sensors and names count alike
        with ExitStack() as stack:
            work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ipu-results-")))
            companions = stack.enter_context(announced(self.journal.run_id))
            if companions.reason:
                self.progress.warn(f"other sweeps on this machine cannot be seen: {companions.reason}")
            self.progress.stage("building the model and the images")
            scene = set_up(self.asked, work) if computes(self.asked.device.backend) else None
            sensor, reason = find(
                self.asked.device.kind, self.asked.device.name, self.asked.power_command, self.asked.power_declared
            )
            observer = Observer(companions, sensor, reason, self.progress.warn)
            stack.callback(observer.close)
            self.progress.stage(f"opening {self.plan.sessions} sessions on {self.asked.device.description}")
            crew = self._crew(scene)
            stack.callback(crew.close)
            self._opened(crew, scene, observer)
            for batch in self.plan.batch_sizes:
                self._tried(crew, scene, batch)
            if not self.batch_s:
                raise BackendError(self.journal.of("left_out")[0]["reason"], place=self.asked.device.name)
            self._rounds(crew, observer)
        return self._finish()

    def _crew(self, scene: Scene | None) -> Crew:
        asked, sessions = self.asked, self.plan.sessions
        micro = tuple(batch // sessions for batch in self.plan.batch_sizes)
        specs = [
            Spec(
                device=asked.device.name,
                model=str(scene.model.path) if scene else "",
                precision=asked.precision,
                micro_batches=micro,
                threads=asked.threads,
                sessions=sessions,
                session=session,
                options=dict(scene.options if scene else asked.options),
            )
            for session in range(sessions)
        ]
        images = scene.images if scene else None
        python = asked.python or sys.executable
        return open_crew(asked.device.backend, specs, images, overlap=self.plan.overlap, python=python)

    def _opened(self, crew: Crew, scene: Scene | None, observer: Observer) -> None:
        """The first step of a journal; a resumed sweep must find all as it was."""
        told = {
            "asked": self.asked.as_json(),
            "started_at": _now(),
            "environment": environment(),
            "versions": {**versions(VERSIONS), **crew.facts.versions},
            "model": _model(scene),
            "images": dict(scene.told) if scene else {},
            "preprocessing": scene.preprocessing if scene else None,
            "facts": asdict(crew.facts),
            "best_probe_ms": None if crew.virtual else best_known(),
            "power": {"scope": observer.sensor.scope if observer.sensor else None, "told": observer.sensor_reason},
        }
        if not self.journal.steps:
            for line in scene.left_out if scene else ():
                self.progress.warn(f"image left out: {line}")
            self.journal.add("opened", **told)
        elif differing := _differing(self.journal.of("opened")[0], told):
            raise DamagedRunError(f"cannot go on here: {'; '.join(differing)}", document=self.journal.run_id)
        else:
            self.journal.add("resumed", at=told["started_at"], block=len(self.blocks))

    def _tried(self, crew: Crew, scene: Scene | None, batch: int) -> None:
        """Make a batch size ready, or leave it out where the device does not take it."""
        try:
            self._ready(crew, scene, batch)
        except BackendError as error:
            self.batch_s.pop(batch, None)
            self.progress.warn(f"batch {batch} is left out: {error}")
            if not any(one["batch_size"] == batch for one in self.journal.of("left_out")):
                self.journal.add("left_out", batch_size=batch, reason=error.message)

    def _ready(self, crew: Crew, scene: Scene | None, batch: int) -> None:
        """First run, warm-up and the comparison with fp32, each batch size on its own."""
        self.progress.stage(f"warming up batch {batch}")
        compile_s, predicted = crew.prepare(batch, "amortised")
        first = Block(0, 0, batch, "amortised", _now(), crew.stream(0.0, 1)).latencies_ms[0]
        runs, settled = self._warmed(crew, batch)
        if any(one["batch_size"] == batch for one in self.journal.of("ready")):
            return
        cosine, top1 = (None, None)
        if scene is not None and (wanted := scene.wanted_of(batch, self.plan.sessions)) is not None:
            cosine, top1 = agreement(crew.outputs(batch), wanted)
        self.journal.add(
            "ready",
            batch_size=batch,
            compile_s=compile_s,
            first_run_ms=first,
            warm_up_runs=runs,
            settled=settled,
            cosine=cosine,
            top1=top1,
            told=predicted,
        )

    def _warmed(self, crew: Crew, batch: int) -> tuple[int, bool]:
        """Runs until two medians in turn agree; whether they did."""
        before = None
        for sets in range(1, MOST_WARM + 1):
            stamps = crew.stream(0.0, self.plan.warm_runs)
            now = median((one[-1] - one[0]) / NS for session in stamps for one in session)
            self.batch_s[batch] = now
            if before is not None and abs(now - before) <= SETTLED * before:
                return sets * self.plan.warm_runs, True
            before = now
        return MOST_WARM * self.plan.warm_runs, False

    def _rounds(self, crew: Crew, observer: Observer) -> None:
        done = {Visit(one.round, one.batch_size, one.kind) for one in self.blocks}
        number = 0
        while self.plan.rounds(self.spent_s, number):
            for visit in self.plan.visits(number):
                if visit not in done and visit.batch_size in self.batch_s:
                    self._measure(crew, observer, visit)
            number += 1

    def _measure(self, crew: Crew, observer: Observer, visit: Visit) -> None:
        total, left_s = self._outlook()
        self.progress.visit(visit, len(self.blocks), total, left_s)
        crew.prepare(visit.batch_size, visit.kind)
        seconds = self.plan.block_s if crew.virtual else observer.least_window_s(self.plan.block_s)
        started_at = _now()
        with unobserved() if crew.virtual else observer.around() as seen:
            at_work = crew.stream if visit.kind == "amortised" else crew.one_by_one
            stamps = at_work(seconds, self.plan.iterations)
        block = Block(len(self.blocks), visit.round, visit.batch_size, visit.kind, started_at, stamps, **asdict(seen))
        self.journal.add("block", block=block.as_json())
        self.blocks.append(block)

    def _outlook(self) -> tuple[int, float | None]:
        """Blocks in all as things stand, and the seconds left."""
        round_s = self.plan.expected_s(self.batch_s)
        rounds = min(max(self.plan.least_rounds, -(-self.plan.budget_s // round_s)), self.plan.most_rounds)
        visits = sum(visit.batch_size in self.batch_s for one in range(int(rounds)) for visit in self.plan.visits(one))
        left = max(0, visits - len(self.blocks))
        return max(visits, len(self.blocks)), left * round_s * rounds / visits

    def _finish(self) -> Finished:
        opened, ready = self.journal.of("opened")[0], self.journal.of("ready")
        told = [f"batch {one['batch_size']} left out: {one['reason']}" for one in self.journal.of("left_out")]
        told += [
            f"interrupted; resumed before block {one['block']} at {one['at']}" for one in self.journal.of("resumed")
        ]
        run = Run(self.journal.run_id, self.asked, opened, ready, self.blocks, _now(), tuple(told))
        points = points_of(run)
        if run.best_probe_ms is not None:
            remember(run.best_probe_ms)
        folder = self.journal.finish(files_of(run, points))
        return Finished(run.run_id, folder, [{"run_id": run.run_id, **point} for point in points])


def _model(scene: Scene | None) -> dict[str, Any]:
    if scene is None:
        return {"name": "none", "weights": "none"}
    model = scene.model
    told = ("name", "precision", "weights", "sha256", "source_sha256", "height", "width", "outputs")
    return {name: getattr(model, name) for name in told}


def _differing(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    found = []
    for part in SAME:
        was, is_ = before[part], now[part]
        for name in sorted(was.keys() | is_.keys()):
            if name not in LOOSE and was.get(name) != is_.get(name):
                found.append(f"{part} {name} was {was.get(name)}, is {is_.get(name)}")
    return found


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
