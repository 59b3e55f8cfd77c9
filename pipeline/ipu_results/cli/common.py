"""Shared parts of the commands: one-line errors, `--debug`, common options, progress and findings on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ipu_results._util.extras import explain_missing
from ipu_results._util.limits import MAX_BYTES, MAX_PAGES
from ipu_results._util.resources import DATASET
from ipu_results._util.text import escape_unprintable
from ipu_results.errors import IpuResultsError

MEGABYTE = 1_000_000
MAX_MEGABYTES = 1_000_000
MAX_LINE = 400
IMAGES = (".svg", ".png")
LARGEST_BATCH = 100_000
FOLDER = click.Path(file_okay=False, path_type=Path)


class Failure(click.ClickException):
    """A data or environment error, reported in one line."""

    exit_code = 1

    def show(self, file: Any = None) -> None:  # noqa: ARG002
        click.echo(f"error: {self.message}", err=True)


class Command(click.Command):
    """A command with `--debug`, which shows tracebacks instead of one line; `extra` installs what it needs."""

    def __init__(self, *args: Any, extra: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.extra = extra
        self.params.append(
            click.Option(["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error.")
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["debug"] = "--debug" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt as error:
            raise Failure("interrupted; the next command cleans up") from error
        except Exception as error:
            if ctx.meta["debug"]:
                raise
            raise Failure(_format_error(error, self.extra)) from error


def _format_error(error: Exception, extra: str | None) -> str:
    if isinstance(error, ModuleNotFoundError):
        error = explain_missing(error, extra)
    message = escape_unprintable(" ".join(str(error).split()))
    if isinstance(error, IpuResultsError):
        return message
    return f"{type(error).__name__}: {message[:300]} (--debug shows where)"


class Group(click.Group):
    command_class = Command


def _find_warehouse(_: click.Context, __: click.Parameter, value: Path | None) -> Path:
    """Return the given folder, else `warehouse` in the current folder, else the dataset that came with the package."""
    local = Path("warehouse")
    return value or (local if local.is_dir() else DATASET)


def warehouse_option(function: Callable[..., Any]) -> Callable[..., Any]:
    text = "Dataset to read.  [default: ./warehouse, else the installed dataset]"
    return click.option("--warehouse", type=FOLDER, callback=_find_warehouse, help=text)(function)


def _megabytes(_: click.Context, param: click.Parameter, value: float) -> int:
    """Bytes of a size in MB."""
    if not 0 < value <= MAX_MEGABYTES:
        raise click.BadParameter(f"{value:g} is not a size from 0 to {MAX_MEGABYTES:,} MB", param=param)
    return int(value * MEGABYTE)


def size_option(function: Callable[..., Any]) -> Callable[..., Any]:
    said = "Refuse a document over so many MB."
    return click.option(
        "--max-size", "max_bytes", default=MAX_BYTES / MEGABYTE, show_default=True, callback=_megabytes, help=said
    )(function)


def limit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    pages = click.option(
        "--max-pages", type=click.IntRange(min=1), default=MAX_PAGES, show_default=True, help="Refuse a longer PDF."
    )
    return size_option(pages(function))


def _shortened(line: str) -> str:
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"


def _plot(_: click.Context, param: click.Parameter, value: Any) -> Any:
    for file in value if isinstance(value, tuple) else (value,):
        if file is not None and file.suffix.lower() not in IMAGES:
            raise click.BadParameter(f"{file.name} ends in neither .svg nor .png", param=param)
    return value


def plot_option(said: str, multiple: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    kind = click.Path(dir_okay=False, path_type=Path)
    return click.option("--plot", type=kind, callback=_plot, multiple=multiple, metavar="FILE", help=said)


def _batch_sizes(_: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    try:
        found = tuple(int(one) for one in value.split(","))
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is no list of batch sizes such as 2,4,6", param=param) from error
    if not all(0 < one <= LARGEST_BATCH for one in found):
        raise click.BadParameter(f"a batch size is from 1 to {LARGEST_BATCH:,}", param=param)
    return found


def batch_sizes_option(said: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option("--batch-sizes", callback=_batch_sizes, metavar="LIST", help=said)


def tell(findings: Sequence[str], strict: bool, most: int | None = 50, where: str = "") -> None:
    """Name the findings on stderr, `most` of them; `where` tells where the others are."""
    for line in findings[:most]:
        click.echo(f"finding: {_shortened(line)}", err=True)
    if most is not None and len(findings) > most:
        click.echo(f"finding: and {len(findings) - most} more; see {where}", err=True)
    if findings and strict:
        raise click.exceptions.Exit(1)


@contextmanager
def spinner() -> Iterator[Callable[[str, str], None]]:
    """Shows the current step on a terminal, and nothing where stderr is not one."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda step, what: status.update(f"{step} {what}")


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows how much of the work is done and the time left on a terminal, and nothing where stderr is not one."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
