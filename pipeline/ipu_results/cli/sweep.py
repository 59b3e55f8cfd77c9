"""The command that measures, or emulates, the inference sweep here and appends the run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ipu_results.cli.common import FOLDER, Command, Failure, batch_sizes_option, plot_option
from ipu_results.emulator.target import TARGETS
from ipu_results.errors import IpuResultsError
from ipu_results.runner.backends import NAMES
from ipu_results.runner.backends.base import PRECISIONS

if TYPE_CHECKING:
    from ipu_results.runner.asked import Asked
    from ipu_results.runner.beside import Published
    from ipu_results.runner.choice import Choice
    from ipu_results.runner.plan import Plan, Visit
    from ipu_results.runner.sweep import Finished

AUTO, LATEST = "auto", "latest"
RUNS = Path("raw/runs")
SUSPECT = 3  # exit status
QUICK = {"least_rounds": 2, "most_rounds": 2, "block_s": 0.5, "iterations": 2, "warm_runs": 1}
QUICK_SIZES = 2  # of the batch sizes
BESIDE_RESUME = frozenset({"resume", "out", "plot", "warehouse", "ingest", "output", "strict"})


@click.command(cls=Command)
@click.option("--backend", type=click.Choice((AUTO, *NAMES)), default=AUTO, show_default=True)
@click.option("--device", metavar="NAME", help="Device of the backend, as --list-devices names it.")
@click.option("--target", type=click.Choice(TARGETS), default="c2", show_default=True, help="Machine to emulate.")
@batch_sizes_option("Batches over all sessions.  [default: 2,4,6,8,10,12; 4,8,16,32,64 on four emulated chips]")
@click.option("--model", default="resnext101-32x4d", show_default=True, metavar="FILE", help="ONNX file or built-in.")
@click.option("--precision", type=click.Choice(PRECISIONS), help="Asked of the backend.  [default: the backend's own]")
@click.option("--images", type=FOLDER, help="JPEG and PNG files to feed; else seeded ones are generated.")
@click.option("--sessions", type=click.IntRange(min=1), help="Each in a process of its own.  [default: 2; one a chip]")
@click.option("--threads", type=click.IntRange(min=1), help="Of each session.  [default: its share of the cores]")
@click.option("--pipeline", type=click.Choice(("overlap", "serial")), default="overlap", show_default=True)
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    help="Begin no round after so many seconds.  [default: 90, after six]",
)
@click.option("--rounds", type=click.IntRange(min=1), help="Exactly so many rounds.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the order of the visits.")
@click.option("--quick", is_flag=True, help="Two short rounds of two batch sizes: shows that it runs, not how fast.")
@click.option("--power-cmd", metavar="CMD", help="Prints the watts of a wall meter, asked every second.")
@click.option("--power-declared", type=float, metavar="W", help="Watts to state as declared.")
@click.option("--python", metavar="FILE", help="Interpreter that has PopART.")
@click.option("--option", "options", multiple=True, metavar="NAME=JSON", help="Passed to the backend; repeatable.")
@click.option("--out", type=FOLDER, default=RUNS, show_default=True, help="Where the run is appended.")
@click.option("--resume", is_flag=False, flag_value=LATEST, metavar="[RUN_ID]", help="Go on with an interrupted run.")
@click.option("--list-devices", is_flag=True, help="Every device of every backend, and why it cannot be used.")
@click.option("--dry-run", is_flag=True, help="Say what would run where, and run nothing.")
@plot_option("Draw published and fresh points as .svg or .png; repeatable.", multiple=True)
@click.option(
    "--warehouse", type=FOLDER, default="warehouse", show_default=True, help="Published rows to stand beside."
)
@click.option("--ingest/--no-ingest", default=None, help="Ingest afterwards.  [default: asked on a terminal]")
@click.option("--format", "output", type=click.Choice(("table", "json")), default="table", show_default=True)
@click.option("--strict", is_flag=True, help="Exit 3 when a row is suspect.")
@click.pass_context
def sweep(context: click.Context, /, **given: Any) -> None:
    """Run the paper's ResNeXt101 inference sweep on what is here and append the run to OUT.

    On a real IPU where there is one, else on a GPU, else on an emulated C2 and on this CPU. Rounds visit every batch
    size in random order; intervals are over rounds. What looks disturbed is marked as suspect and kept. Emulated rows
    are predicted, never measured, and marked so everywhere.

    A run that was interrupted keeps every finished block: go on with --resume.

    \b
    Extras:
      --backend openvino: pip install 'ipu-results[openvino]'
      power of NVIDIA GPUs: pip install 'ipu-results[nvidia]'
      --plot: pip install 'ipu-results[plots]'

    \b
    Example:
      ipu-results sweep --list-devices
      ipu-results sweep --backend emulator --target c2
      ipu-results sweep --backend onnxruntime --batch-sizes 2,8 --budget 60
      ipu-results sweep --backend openvino --precision int8 --plot sweep.svg --plot sweep.png
      ipu-results sweep --resume
    """
    if given["list_devices"]:
        _list_devices(given["python"])
        return
    with _told() as progress:
        runs = _runs(context, given, progress)
        if given["dry_run"]:
            return
    _show(runs, given)
    _ingest(given)
    if given["strict"] and any(point["suspect"] for run in runs for point in run.points):
        raise click.exceptions.Exit(SUSPECT)


def _runs(context: click.Context, given: dict[str, Any], progress: _Lines) -> list[Finished]:
    from ipu_results.runner.journal import unfinished
    from ipu_results.runner.sweep import resume, sweep

    out = given["out"]
    before = unfinished(out)
    runs: list[Finished] = []

    def appended(run: Finished) -> None:
        runs.append(run)
        click.echo(f"appended: {run.folder}", err=True)

    try:
        if given["resume"]:
            _refuse_beside_resume(context)
            appended(resume(_which(given["resume"], before, out), out, progress))
            return runs
        asked = _all_asked(given)
        if given["dry_run"]:
            return _dry(asked)
        for one, choice in asked:
            progress.stage(f"{one.device.backend} {one.device.name}: {choice.why}")
            appended(sweep(one, out, progress))
        return runs
    except KeyboardInterrupt as error:
        left = [run_id for run_id in unfinished(out) if given["resume"] or run_id not in before]
        how = f"finished blocks are kept; go on with: --resume {left[-1]}" if left else "nothing had been measured"
        raise Failure(f"interrupted; {how}") from error


def _refuse_beside_resume(context: click.Context) -> None:
    """A resumed run does what it was asked at its start."""
    typed = click.core.ParameterSource.COMMANDLINE
    given = {name for name in context.params if context.get_parameter_source(name) is typed}
    if beside := sorted(given - BESIDE_RESUME):
        raise click.UsageError(f"--resume goes on as the run was begun: not with --{beside[0].replace('_', '-')}")


def _which(resumed: str, left: Sequence[str], out: Path) -> str:
    if resumed != LATEST:
        return resumed
    if not left:
        raise Failure(f"{out}: no run was interrupted here")
    return left[-1]


def _all_asked(given: dict[str, Any]) -> list[tuple[Asked, Choice]]:
    from ipu_results.runner.choice import choose

    found = choose(given["backend"], given["device"], given["target"], _probe(given["python"]), given["precision"])
    if any(one.device.kind == "simulated" for one in found) and given["out"].resolve() == RUNS.resolve():
        raise click.UsageError(f"a simulated run is no result and is not appended to {RUNS}: give --out")
    return [(_asked(one, given), one) for one in found]


def _asked(choice: Choice, given: dict[str, Any]) -> Asked:
    from ipu_results.runner.asked import Asked, cores, options_of, sessions_of
    from ipu_results.runner.environment import command_line

    sessions = given["sessions"] or sessions_of(choice.device)
    shared = max(1, cores() // sessions) if choice.device.kind == "cpu" else None
    return Asked(
        device=choice.device,
        plan=_plan(choice, sessions, given),
        model=given["model"],
        precision=given["precision"],
        threads=given["threads"] or shared,
        images=None if given["images"] is None else str(given["images"]),
        power_command=given["power_cmd"],
        power_declared=given["power_declared"],
        python=given["python"],
        options=options_of(given["options"]),
        command_line=command_line(sys.argv),
    )


def _plan(choice: Choice, sessions: int, given: dict[str, Any]) -> Plan:
    from ipu_results.runner.asked import default_sizes
    from ipu_results.runner.plan import BUDGET_S, LEAST_ROUNDS, MOST_ROUNDS, Plan, checked_batches

    sizes = given["batch_sizes"] or default_sizes(sessions)[: QUICK_SIZES if given["quick"] else None]
    rounds, budget = given["rounds"], given["budget"]
    emulated = choice.device.kind == "emulated"
    if rounds and emulated and given["backend"] != AUTO:
        raise click.UsageError("an emulated sweep has one round: every other would be the same")
    exactly = 1 if emulated else rounds
    told: dict[str, Any] = {
        "least_rounds": LEAST_ROUNDS if budget is None else 1,
        "most_rounds": MOST_ROUNDS,
        **(QUICK if given["quick"] else {}),
        **({"least_rounds": exactly, "most_rounds": exactly} if exactly else {}),
    }
    return Plan(
        checked_batches(sizes, sessions),
        sessions,
        seed=given["seed"],
        budget_s=BUDGET_S if budget is None else budget,
        overlap=given["pipeline"] == "overlap",
        **told,
    )


def _probe(python: str | None) -> Any:
    from ipu_results.runner.choice import probed

    return lambda name: probed(name, python or sys.executable)


def _list_devices(python: str | None) -> None:
    from ipu_results._util.text import format_table
    from ipu_results.runner.choice import listing

    rows = [(one.backend, one.name, one.kind, one.description, why) for one, why in listing(_probe(python))]
    click.echo(format_table(("backend", "device", "kind", "description", "use"), rows))


def _dry(asked: Sequence[tuple[Asked, Choice]]) -> list[Finished]:
    for one, choice in asked:
        plan = one.plan
        click.echo(f"{one.device.backend} {one.device.name} ({one.device.description}): {choice.why}")
        click.echo(f"  {one.model} in {one.precision or 'the precision of the backend'}, {plan.sessions} sessions")
        rounds = f"{plan.least_rounds} rounds however long they take, and more until {plan.budget_s:g} s are measured"
        if plan.least_rounds == plan.most_rounds:
            rounds = f"{plan.least_rounds} {'round' if plan.least_rounds == 1 else 'rounds'}"
        click.echo(f"  batch sizes {', '.join(map(str, plan.batch_sizes))}; {rounds}, seed {plan.seed}")
    return []


class _Lines:
    """What a sweep tells, a line at a time; `shown` is rich's progress on a terminal."""

    def __init__(self, shown: Any = None) -> None:
        self._shown, self._round = shown, -1
        self._task = shown.add_task("", total=None, left="") if shown else None

    def stage(self, what: str) -> None:
        if self._shown:
            self._shown.update(self._task, description=what)
        else:
            click.echo(what, err=True)

    def visit(self, visit: Visit, done: int, total: int, left_s: float | None) -> None:
        left = "" if left_s is None else f"about {_minutes(left_s)} left"
        if self._shown:
            what = f"round {visit.round + 1}, batch {visit.batch_size}, {visit.kind}"
            self._shown.update(self._task, description=what, completed=done, total=total, left=left)
        elif visit.round != self._round:
            self._round = visit.round
            click.echo(f"round {visit.round + 1}: {done} of {total} blocks measured, {left}", err=True)

    def warn(self, what: str) -> None:
        click.echo(f"warning: {what}", err=True)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


@contextmanager
def _told() -> Iterator[_Lines]:
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        yield _Lines(shown)


def _show(runs: Sequence[Finished], given: dict[str, Any]) -> None:
    from ipu_results._util.text import format_json
    from ipu_results.runner.summary import records, summary

    points = [point for run in runs for point in run.points]
    published, note = _published(given["warehouse"], points)
    told = format_json(records(points, published)) if given["output"] == "json" else summary(points, published, note)
    click.echo(told)
    if given["plot"]:
        from ipu_results._util.files import write_atomically
        from ipu_results.runner.chart import draw

        for file in given["plot"]:
            write_atomically(file, draw(points, published, file.suffix.lower()))


def _published(warehouse: Path, points: Sequence[dict[str, Any]]) -> tuple[list[Published], str | None]:
    """The published rows of the model that ran, or why there are none: the run stands without them."""
    from ipu_results.runner.beside import published_rows

    try:
        return published_rows(warehouse, str(points[0]["model"])), None
    except IpuResultsError as error:
        return [], f"no published rows beside these: {error}"


def _ingest(given: dict[str, Any]) -> None:
    """Ingest what was appended, if that is wanted; never asks without a terminal."""
    raw, wanted = given["out"].parent, given["ingest"]
    if wanted is None and sys.stdin.isatty() and sys.stdout.isatty() and given["out"] == RUNS:
        wanted = click.confirm("Ingest it now?", default=True)
    if wanted:
        from ipu_results.build import ingest

        summary = ingest(raw, given["warehouse"])
        click.echo(f"{summary.results} results in {given['warehouse']}, build {summary.build_id[:12]}", err=True)
    elif wanted is None and given["out"].name == RUNS.name and given["backend"] != "null":
        click.echo(f"the next `ipu-results ingest --raw {raw}` takes it in", err=True)
