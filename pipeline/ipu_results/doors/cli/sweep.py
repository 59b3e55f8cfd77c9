"""The command that measures, or emulates, the inference sweep on this machine.

Stderr shows a progress bar on a terminal, else a line for each stage and round.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ipu_results.doors.cli import common
from ipu_results.emulator.target import DEFAULT_NETWORK, TARGETS
from ipu_results.errors import IpuResultsError, SweepConfigError
from ipu_results.kit.extras import format_install
from ipu_results.kit.files import DATASET
from ipu_results.runner.backends import NAMES, PRECISIONS
from ipu_results.runner.config import (
    RUNS,
    Progress,
    SweepConfig,
    Visit,
    parse_settings,
    plan_sweeps,
)

if TYPE_CHECKING:
    from ipu_results.runner.sweep import SweepResult


LONG_S = 90  # from here on a rest is told in minutes


class SweepLines(Progress):
    """Shows the progress of a sweep.

    `bar` is rich's progress bar, None where stderr is not a terminal.
    """

    def __init__(self, bar: Any = None) -> None:
        self._bar = bar
        self._round = -1
        self._task = bar.add_task("", total=None, left="") if bar else None

    def stage(self, what: str) -> None:
        if self._bar:
            self._bar.update(self._task, description=what)
        else:
            click.echo(what, err=True)

    def visit(self, visit: Visit, done: int, total: int, left_s: float) -> None:
        left = f"about {left_s:.0f} s left"
        if left_s >= LONG_S:
            left = f"about {left_s / 60:.0f} min left"
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
WITH_RESUME = frozenset({"resume", "out", "warehouse", "ingest", "output", "strict", "debug"})


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
    default=DEFAULT_NETWORK,
    show_default=True,
    metavar="FILE",
    help="ONNX file or built-in.",
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
    "--quick",
    is_flag=True,
    help="Two short rounds of two batch sizes: shows that it runs, not how fast.",
)
@click.option(
    "--power-command",
    metavar="CMD",
    help="Prints the watts of any other meter, run every second.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting that is needed less often, of those above; repeatable.",
)
@common.folder_option("--out", RUNS, "Folder to append the run to.")
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
@common.folder_option(
    "--warehouse",
    "warehouse",
    "Published rows to compare with; those of the installed dataset if this folder is missing.",
)
@click.option("--ingest", is_flag=True, help="Ingest the folder around OUT afterwards.")
@common.format_option("table", "json")
@click.option("--strict", is_flag=True, help="Exit 3 when a row is suspect.")
@click.pass_context
def sweep(
    context: click.Context,
    /,
    *,
    images: Path | None,
    settings: Sequence[str],
    out: Path,
    resume: str | None,
    list_devices: bool,
    dry_run: bool,
    ingest: bool,
    strict: bool,
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
    built-in one are random: the run measures time, not accuracy. The nearest rows of the record are
    shown next to it; `compare` says what differs and draws them.

    An interrupted run keeps every finished block: go on with --resume.

    \b
    Keys of --set:
      network=NAME         network in an ONNX file, such as resnet50 (the file's name)
      sequence_length=N    tokens of a text (the model's, or 128)
      sessions=N           processes that share a batch (2; one a chip)
      threads=N            threads of each session (its share of the cores)
      overlap=false        do not prepare images ahead
      budget_s=SECONDS     begin no round after this time (90, after six rounds)
      rounds=N             exactly this many rounds
      seed=N               seed of the order of the blocks (0)
      power_declared=W     watts to state as declared
      python=FILE          interpreter that has PopART
      options.NAME=JSON    passed to the backend

    \b
    Extras:
      --backend openvino: pip install 'ipu-results[openvino]'
      power of NVIDIA GPUs: pip install 'ipu-results[nvidia]'

    \b
    Example:
      ipu-results sweep --list-devices
      ipu-results sweep --backend emulator --target c2
      ipu-results sweep --backend onnxruntime --batch-sizes 2,8 --set budget_s=60
      ipu-results sweep --backend openvino --precision int8
      ipu-results sweep --backend onnxruntime --model bert-base --set sequence_length=128 --batch-sizes 2,4,8,16
      ipu-results sweep --backend onnxruntime --model my.onnx --set network=resnet50
      ipu-results sweep --resume
    """
    if resume:
        _refuse_with_resume(context)
    try:
        config = SweepConfig(
            **fields,
            **parse_settings(settings),
            images=None if images is None else str(images),
            command_line=format_command_line(sys.argv),
        )
        if list_devices:
            _print_devices(config)
            return
        with show_sweep() as progress:
            runs = _run(config, resume, out, progress, dry_run)
    except SweepConfigError as error:
        raise click.UsageError(str(error)) from error
    if dry_run:
        return
    _print_points(runs, warehouse if warehouse.is_dir() else DATASET, output)
    _print_next_steps(runs)
    if ingest:
        _ingest(out.parent, warehouse)
    if strict and any(point["suspect"] for run in runs for point in run.points):
        raise click.exceptions.Exit(SUSPECT)


def _print_devices(config: SweepConfig) -> None:
    from ipu_results.kit.text import format_table
    from ipu_results.runner import config as runner

    rows = []
    for name in NAMES:
        for device in runner.list_devices(name, config.python or sys.executable):
            use = device.reason or "can be used"
            rows.append((device.backend, device.name, device.kind, device.description, use))
    click.echo(format_table(("backend", "device", "kind", "description", "use"), rows))


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
        how = "nothing had been measured"
        if left:
            how = f"finished blocks are kept; go on with: --resume {left[-1]}"
        raise common.Failure(f"interrupted; {how}") from error


def _refuse_with_resume(context: click.Context) -> None:
    """Refuse options of a new run: a resumed one keeps those of its start."""
    typed = click.core.ParameterSource.COMMANDLINE
    refused = []
    for option in context.command.params:
        name = option.name or ""
        if name not in WITH_RESUME and context.get_parameter_source(name) is typed:
            refused.append(option.opts[0])
    if refused:
        raise click.UsageError(
            f"--resume keeps the options of the run's start: not with {min(refused)}"
        )


def _print_points(runs: Sequence[SweepResult], warehouse: Path, output: str) -> None:
    from ipu_results.kit.text import format_json
    from ipu_results.runner.report import format_summary

    if output == "json":
        click.echo(format_json([point for run in runs for point in run.points]))
        return
    for number, run in enumerate(runs):
        if number:
            click.echo()
        click.echo(format_summary(run.points))
        common.echo_text("\n".join(_list_nearest_rows(run, warehouse)))


def _list_nearest_rows(run: SweepResult, warehouse: Path) -> list[str]:
    """Say of each point what it is times the nearest row of each kind in the record."""
    from ipu_results.doors.comparison import compare

    try:
        comparisons = compare(run.folder, warehouse=warehouse)
    except IpuResultsError as error:  # the run is complete without them
        return [f"no row to compare with: {error}"]
    lines = []
    for comparison in comparisons:
        nearest = [match.description for match in comparison.matches] or [comparison.verdict]
        for text in nearest:
            lines.append(f"batch {comparison.measurement.batch_size}: {text}")
    return lines


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


def _ingest(raw: Path, warehouse: Path) -> None:
    from ipu_results.build import IngestConfig, ingest

    summary = ingest(IngestConfig(raw=raw, warehouse=warehouse))
    click.echo(f"{summary.results} results in {warehouse}, build {summary.build_id[:12]}", err=True)


# The value of this option is a command, which may name a user, a machine or a path anywhere.
COMMAND_OPTION = "--power-command"
PREFIXED = re.compile(r"(--?[\w-]+=|[\w.-]+=)?(.*)", re.DOTALL)


def format_command_line(argv: Sequence[str]) -> str:
    """Format `sys.argv` for a shell: of a path its last component, of a power command its program."""
    shown = ["ipu-results"]
    for before, word in pairwise(argv):
        shown.append(_shorten_command(word) if before == COMMAND_OPTION else _shorten_word(word))
    return shlex.join(shown)


def _shorten_word(word: str) -> str:
    """Remove the folders from `--name=path`, `key=path` or a path."""
    if word.startswith(f"{COMMAND_OPTION}="):
        return f"{COMMAND_OPTION}={_shorten_command(word.partition('=')[2])}"
    match = PREFIXED.fullmatch(word)
    assert match is not None
    head = match[1] or ""
    rest = match[2]
    if head and "=" in rest:
        return head + _shorten_word(rest)
    return head + _last_component(rest)


def _last_component(path: str) -> str:
    """Return the last component, whichever system wrote the path."""
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]


def _shorten_command(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words:
        return "..."
    program = _last_component(words[0])
    return f"{program} ..." if len(words) > 1 else program
