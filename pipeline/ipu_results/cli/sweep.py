"""The commands that measure, or emulate, the inference sweep on this machine, and that merge runs
of many machines.

Stderr shows a progress bar on a terminal, else a line for each stage and round.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ipu_results.cli import common
from ipu_results.emulator.target import TARGETS
from ipu_results.errors import IpuResultsError, SweepConfigError
from ipu_results.ground import format_install
from ipu_results.ground.files import DATASET
from ipu_results.runner.backends import NAMES, PRECISIONS
from ipu_results.runner.config import RUNS, Progress, SweepConfig, Visit, parse_options, plan_sweeps

if TYPE_CHECKING:
    from ipu_results.runner.reference_rows import ReferenceRow
    from ipu_results.runner.sweep import SweepResult


class SweepLines(Progress):
    """Shows the progress of a sweep.

    `bar` is rich's progress bar, None where stderr is not a terminal.
    """

    def __init__(self, bar: Any = None) -> None:
        self._bar, self._round = bar, -1
        self._task = bar.add_task("", total=None, left="") if bar else None

    def stage(self, what: str) -> None:
        if self._bar:
            self._bar.update(self._task, description=what)
        else:
            click.echo(what, err=True)

    def visit(self, visit: Visit, done: int, total: int, left_s: float) -> None:
        left = f"about {left_s:.0f} s left" if left_s < 90 else f"about {left_s / 60:.0f} min left"
        if self._bar:
            what = f"round {visit.round + 1}, batch {visit.batch_size}, {visit.kind}"
            self._bar.update(self._task, description=what, completed=done, total=total, left=left)
        elif visit.round != self._round:
            self._round = visit.round
            click.echo(
                f"round {visit.round + 1}: {done} of {total} blocks measured, {left}", err=True
            )

    def warn(self, what: str) -> None:
        click.echo(f"warning: {what}", err=True)


@contextmanager
def show_sweep() -> Iterator[SweepLines]:
    """Show a sweep while the block runs."""
    if not sys.stderr.isatty():
        yield SweepLines()
        return
    from rich import progress
    from rich.console import Console

    texts = (progress.TextColumn("{task.description}"), progress.TextColumn("{task.fields[left]}"))
    columns = (progress.BarColumn(), progress.MofNCompleteColumn(), *texts)
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield SweepLines(bar)


LATEST = "latest"
SUSPECT = 3  # exit status
WITH_RESUME = frozenset({"resume", "out", "plot", "warehouse", "ingest", "output", "strict"})


@click.command(cls=common.Command, extra="runner")
@click.option("--backend", type=click.Choice(("auto", *NAMES)), default="auto", show_default=True)
@click.option(
    "--device", metavar="NAME", help="Device of the backend, as --list-devices prints it."
)
@click.option(
    "--target",
    type=click.Choice(TARGETS),
    default="c2",
    show_default=True,
    help="Machine to emulate.",
)
@common.batch_sizes_option(
    "Batches over all sessions.  [default: 2,4,6,8,10,12; 4,8,16,32,64 on four emulated chips]"
)
@click.option(
    "--model",
    default="resnext101-32x4d",
    show_default=True,
    metavar="FILE",
    help="ONNX file or built-in.",
)
@click.option(
    "--network",
    metavar="NAME",
    help="Network in an ONNX file, such as resnet50. [default: the file's name]",
)
@click.option(
    "--sequence-length",
    type=click.IntRange(min=1),
    help="Tokens of a text.  [default: the model's, or 128]",
)
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    help="Requested precision.  [default: the backend's own]",
)
@click.option(
    "--images",
    type=common.FOLDER,
    help="JPEG and PNG files to feed.  [default: seeded ones are generated]",
)
@click.option(
    "--sessions",
    type=click.IntRange(min=1),
    help="Processes that share a batch.  [default: 2; one a chip]",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Of each session.  [default: its share of the cores]",
)
@click.option(
    "--pipeline", type=click.Choice(("overlap", "serial")), default="overlap", show_default=True
)
@click.option(
    "--budget",
    "budget_s",
    type=click.FloatRange(min=0),
    help="Begin no round after this many seconds.  [default: 90, after six]",
)
@click.option("--rounds", type=click.IntRange(min=1), help="Exactly this many rounds.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the order of the blocks."
)
@click.option(
    "--quick",
    is_flag=True,
    help="Two short rounds of two batch sizes: shows that it runs, not how fast.",
)
@click.option(
    "--power-cmd",
    "power_command",
    metavar="CMD",
    help="Prints the watts of a wall meter, run every second.",
)
@click.option("--power-declared", type=float, metavar="W", help="Watts to state as declared.")
@click.option("--python", metavar="FILE", help="Interpreter that has PopART or PopTorch.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=JSON",
    help="Passed to the backend; repeatable.",
)
@click.option(
    "--out",
    type=common.FOLDER,
    default=RUNS,
    show_default=True,
    help="Folder to append the run to.",
)
@click.option(
    "--resume",
    is_flag=False,
    flag_value=LATEST,
    metavar="[RUN_ID]",
    help="Go on with an interrupted run.",
)
@click.option(
    "--list-devices",
    is_flag=True,
    help="List every device of every backend, and why it cannot be used.",
)
@click.option("--dry-run", is_flag=True, help="Print what would run where, and run nothing.")
@common.plot_option("Draw published and new points as .svg or .png; repeatable.", multiple=True)
@click.option(
    "--warehouse",
    type=common.FOLDER,
    default="warehouse",
    show_default=True,
    help=(
        "Published rows to compare with; those of the installed dataset if this folder is missing."
    ),
)
@click.option(
    "--ingest/--no-ingest", default=None, help="Ingest afterwards.  [default: prompt on a terminal]"
)
@common.format_option("table", "json")
@click.option("--strict", is_flag=True, help="Exit 3 when a row is suspect.")
@click.pass_context
def sweep(
    context: click.Context,
    /,
    *,
    images: Path | None,
    pipeline: str,
    options: Sequence[str],
    out: Path,
    resume: str | None,
    list_devices: bool,
    dry_run: bool,
    ingest: bool | None,
    strict: bool,
    plot: Sequence[Path],
    warehouse: Path,
    output: str,
    **fields: Any,  # those of SweepConfig that are options of the same name
) -> None:
    """Run an inference sweep, by default the paper's of ResNeXt101, on this machine and append the run to OUT.

    On a real IPU where there is one, else on a GPU, else on an emulated C2 and on this CPU. Rounds
    visit every batch size in random order; intervals are over rounds. What looks disturbed is
    marked as suspect and kept. Emulated rows are predicted, never measured, and marked so
    everywhere.

    --model takes a built-in network (resnext101-32x4d, resnext101-32x8d, resnet50, efficientnet-b0,
    efficientnet-b4, bert-base, bert-large) or an ONNX file of images or of text. The weights of a
    built-in one are random: the run measures time, not accuracy. Published rows of the same network
    are shown next to it, and drawn by --plot.

    An interrupted run keeps every finished block: go on with --resume.

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
      ipu-results sweep --backend onnxruntime --model bert-base --sequence-length 128 --batch-sizes 2,4,8,16
      ipu-results sweep --backend onnxruntime --model my.onnx --network resnet50
      ipu-results sweep --resume
    """
    if list_devices:
        from ipu_results.ground.text import format_table
        from ipu_results.runner import config as runner

        devices = [
            own
            for name in NAMES
            for own in runner.list_devices(name, fields["python"] or sys.executable)
        ]
        rows = [
            (own.backend, own.name, own.kind, own.description, own.reason or "can be used")
            for own in devices
        ]
        click.echo(format_table(("backend", "device", "kind", "description", "use"), rows))
        return
    from ipu_results.runner.environment import format_command_line

    if resume:
        _refuse_with_resume(context)
    try:
        config = SweepConfig(
            **fields,
            images=None if images is None else str(images),
            overlap=pipeline == "overlap",
            options=parse_options(options),
            command_line=format_command_line(sys.argv),
        )
        with show_sweep() as progress:
            runs = _run(config, resume, out, progress, dry_run)
    except SweepConfigError as error:
        raise click.UsageError(str(error)) from error
    if dry_run:
        return
    _print_points(runs, warehouse if warehouse.is_dir() else DATASET, output, plot)
    _print_next_steps(runs)
    _offer_ingest(ingest, out, warehouse)
    if strict and any(point["suspect"] for run in runs for point in run.points):
        raise click.exceptions.Exit(SUSPECT)


def _run(
    config: SweepConfig, resume: str | None, out: Path, progress: SweepLines, dry_run: bool
) -> list[SweepResult]:
    from ipu_results.runner.record import list_unfinished
    from ipu_results.runner.sweep import resume_sweep, run_task

    before = [] if resume else list_unfinished(out)
    runs: list[SweepResult] = []
    try:
        if resume:
            runs.append(resume_sweep(None if resume == LATEST else resume, out, progress))
            common.echo_text(f"appended: {runs[-1].folder}", err=True)
            return runs
        tasks = plan_sweeps(config, out)
        if dry_run:
            click.echo("\n".join(task.describe() for task in tasks))
            return []
        for task in tasks:
            progress.stage(f"{task.device.backend} {task.device.name}: {task.reason}")
            runs.append(run_task(task, out, progress))
            common.echo_text(f"appended: {runs[-1].folder}", err=True)
        return runs
    except KeyboardInterrupt as error:
        left = [run_id for run_id in list_unfinished(out) if run_id not in before]
        how = (
            f"finished blocks are kept; go on with: --resume {left[-1]}"
            if left
            else "nothing had been measured"
        )
        raise common.Failure(f"interrupted; {how}") from error


def _refuse_with_resume(context: click.Context) -> None:
    """Refuse options of a new run: a resumed one keeps those of its start."""
    typed = click.core.ParameterSource.COMMANDLINE
    names = {
        name: option
        for option in context.command.params
        if (name := option.name or "") not in WITH_RESUME
    }
    if refused := sorted(
        option.opts[0]
        for name, option in names.items()
        if context.get_parameter_source(name) is typed
    ):
        raise click.UsageError(
            f"--resume keeps the options of the run's start: not with {refused[0]}"
        )


def _print_points(
    runs: Sequence[SweepResult], warehouse: Path, output: str, plot: Sequence[Path]
) -> None:
    from ipu_results.ground.files import write_atomically
    from ipu_results.ground.text import format_json
    from ipu_results.runner.reference_rows import load_reference_rows
    from ipu_results.runner.report import build_records, draw_chart, format_summary

    points = [point for run in runs for point in run.points]
    rows: list[ReferenceRow] = []
    note = None
    try:
        rows = load_reference_rows(warehouse, str(points[0]["model"]))
    except IpuResultsError as error:  # the run is complete without them
        note = f"no published rows to compare with: {error}"
    click.echo(
        format_json(build_records(points, rows))
        if output == "json"
        else format_summary(points, rows, note)
    )
    for file in plot:
        write_atomically(file, draw_chart(points, rows, file.suffix.lower()))


def _print_next_steps(runs: Sequence[SweepResult]) -> None:
    """Print the commands that take a run further: to compare it, and to hand it in where it was
    measured.
    """
    for run in runs:
        folder = shlex.quote(str(run.folder))
        common.echo_text(f"next: ipu-results compare {folder}", err=True)
        if all(point.get("origin") == "measured" for point in run.points):
            needed = "" if find_spec("pandera") else f", after {format_install('ingest')}"
            submit = f'ipu-results submit {folder} --who "NAME" --licence CC-BY-4.0 --how "TEXT"'
            common.echo_text(f"then{needed}: {submit}", err=True)


def _offer_ingest(requested: bool | None, out: Path, warehouse: Path) -> None:
    """Ingest what was appended, if requested; prompts on a terminal only, and only where there is
    more than runs.
    """
    is_alone = all(path.name == out.name for path in out.parent.iterdir())
    if requested is None and is_alone:
        return
    if requested is None and sys.stdin.isatty() and sys.stdout.isatty() and out == RUNS:
        requested = click.confirm("Ingest it now?", default=True)
    if requested:
        from ipu_results.build import IngestConfig, ingest

        summary = ingest(IngestConfig(raw=out.parent, warehouse=warehouse))
        click.echo(
            f"{summary.results} results in {warehouse}, build {summary.build_id[:12]}", err=True
        )
    elif requested is None and out.name == RUNS.name:
        click.echo(f"the next `ipu-results ingest --raw {out.parent}` includes it", err=True)
