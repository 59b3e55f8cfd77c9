"""Shared parts of the commands: one-line errors, `--debug`, common options, progress and findings
on stderr.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ipu_results.errors import IpuResultsError
from ipu_results.kit.extras import explain_missing, format_install
from ipu_results.kit.files import DATASET, DamagedCommitWarning
from ipu_results.kit.text import escape_line, escape_unprintable, split_settings

MAX_LINE = 400
MIN_ADDRESS_SPACE = 4 * 2**30
"""Bytes. `ingest` on two cores ended by SIGSEGV, ABORT or a message of a library at 3 GB and less;
threads take address space that they never use.
"""
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]  # what `click.option` returns
IMAGES = (".svg", ".png")
LARGEST_BATCH = 100_000
SHOWN_AFTER_S = 1.0  # of the line that says what a command is doing
REFRESH_S = 0.2
LABEL_COLOURS = {"error": "red", "warning": "yellow", "finding": "yellow"}
FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


def echo_text(text: str, err: bool = False) -> None:
    """Print lines, with every character escaped that a terminal would act on."""
    click.echo(escape_unprintable(text, keep="\n"), err=err)


def echo_labelled(label: str, text: str) -> None:
    """Print a line on stderr after its label, which has a colour on a terminal."""
    styled = click.style(f"{label}:", fg=LABEL_COLOURS[label])
    click.echo(f"{styled} {escape_unprintable(text)}", err=True)


def is_wider_than_terminal(text: str) -> bool:
    """Return whether stdout is a terminal that breaks lines of the text."""
    if not sys.stdout.isatty():
        return False
    return max(map(len, text.splitlines())) > shutil.get_terminal_size().columns


class Failure(click.ClickException):
    """A data or environment error, reported in one line."""

    exit_code = 1

    def show(self, file: Any = None) -> None:  # noqa: ARG002
        echo_labelled("error", self.message)


class Command(click.Command):
    """A command with `--debug`, which shows tracebacks instead of one line; `extra` installs what
    it needs.
    """

    def __init__(self, *args: Any, extra: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.extra = extra
        text = "Show the traceback of an error."
        self.params.append(click.Option(["--debug"], is_flag=True, expose_value=False, help=text))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        if self.extra:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(f"Needs: {format_install(self.extra)}")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["debug"] = "--debug" in args
        # a pasted statement may begin with a comment, which no option looks like
        args = [f" {arg}" if arg.startswith("-- ") else arg for arg in args]
        with _escape_usage_errors():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        _check_address_space()
        try:
            with _escape_usage_errors(), _print_warnings():
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt as error:
            raise Failure("interrupted; the next command cleans up") from error
        except Exception as error:
            if ctx.meta["debug"]:
                raise
            raise Failure(_format_error(error, self.extra)) from error


def _check_address_space() -> None:
    """Refuse to start under a limit on address space at which the libraries end without a word."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limits
        return
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed != resource.RLIM_INFINITY and allowed < MIN_ADDRESS_SPACE:
        raise Failure(
            f"the limit on memory (ulimit -v) is {allowed / 2**30:.1f} GiB: raise it to"
            f" {MIN_ADDRESS_SPACE // 2**30} GiB or remove it"
        )


@contextmanager
def _escape_usage_errors() -> Iterator[None]:
    """Escape the message of wrong usage, which repeats what was typed."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:  # its message is the help
        raise
    except click.UsageError as error:
        vars(error)["message"] = escape_unprintable(error.message)
        raise


@contextmanager
def _print_warnings() -> Iterator[None]:
    """Print a warning of this project as one line on stderr."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_line(
            message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any
        ) -> None:
            if issubclass(category, DamagedCommitWarning):
                echo_labelled("warning", str(message))
            else:
                show(message, category, *args, **kwargs)

        warnings.showwarning = show_line
        warnings.simplefilter("always", DamagedCommitWarning)
        yield


def echo_error(error: IpuResultsError) -> None:
    """Print an error that did not stop the command: one line, or its traceback with `--debug`."""
    if click.get_current_context().meta["debug"]:
        click.echo("".join(traceback.format_exception(error)), err=True)
    else:
        echo_labelled("error", escape_line(str(error)))


def _format_error(error: Exception, extra: str | None) -> str:
    if isinstance(error, ModuleNotFoundError):
        error = explain_missing(error, extra)
    # Python keeps the bytes of a name that is not UTF-8 as surrogates
    if isinstance(error, UnicodeEncodeError):
        return escape_unprintable(
            f"{str(error.object)[:MAX_LINE]}: is not UTF-8; rename the file or folder"
        )
    message = escape_line(str(error))
    if isinstance(error, IpuResultsError):
        return message
    return f"{type(error).__name__}: {message[:300]} (--debug shows where)"


def _read_first_sentence(command: click.Command) -> str:
    paragraph = (command.help or "").split("\n\n")[0]
    one_line = " ".join(paragraph.split())
    return f"{one_line.split('. ')[0].removesuffix('.')}."


class Group(click.Group):
    """A group that lists its commands by section, in the order added, with the whole first sentence
    of each.
    """

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sections: dict[str, list[click.Command]] = {}

    def add_to_section(self, section: str, command: click.Command) -> None:
        self._sections.setdefault(section, []).append(command)
        self.add_command(command)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, self.commands))  # of the first column, in every section
        for section, commands in self._sections.items():
            lines = [(str(each.name).ljust(width), _read_first_sentence(each)) for each in commands]
            with formatter.section(section):
                formatter.write_dl(lines)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _escape_usage_errors():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _escape_usage_errors():
            return super().invoke(ctx)


def format_option(*formats: str, text: str | None = None) -> Decorator:
    """Return the option `--format`, the first of the formats by default."""
    kind = click.Choice(formats)
    return click.option(
        "--format", "output", type=kind, default=formats[0], show_default=True, help=text
    )


def wait_option(what: str) -> Decorator:
    text = f"Seconds to wait while another process {what}."
    at_least_none = click.FloatRange(min=0)
    return click.option("--wait", type=at_least_none, default=60.0, show_default=True, help=text)


def folder_option(name: str, default: str | Path, text: str | None = None) -> Decorator:
    return click.option(name, type=FOLDER, default=default, show_default=True, help=text)


def _find_warehouse(_: click.Context, __: click.Parameter, value: Path | None) -> Path:
    """Return the given folder, else `warehouse` in the current folder, else the dataset that came
    with the package.
    """
    local = Path("warehouse")
    if value is not None:
        return value
    return local if local.is_dir() else DATASET


def warehouse_option(function: Callable[..., Any]) -> Callable[..., Any]:
    text = "Dataset to read.  [default: ./warehouse, else the installed dataset]"
    return click.option("--warehouse", type=FOLDER, callback=_find_warehouse, help=text)(function)


def _check_plot_file(_: click.Context, param: click.Parameter, value: Any) -> Any:
    if value is not None and value.suffix.lower() not in IMAGES:
        raise click.BadParameter(f"{value.name} ends in neither .svg nor .png", param=param)
    return value


def plot_option(text: str) -> Decorator:
    return click.option("--plot", type=FILE, callback=_check_plot_file, metavar="FILE", help=text)


def _parse_batch_sizes(
    _: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    if value is None:
        return None
    try:
        sizes = tuple(int(size) for size in value.split(","))
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is not a list of batch sizes such as 2,4,6", param=param
        ) from error
    if not all(0 < size <= LARGEST_BATCH for size in sizes):
        raise click.BadParameter(f"a batch size is from 1 to {LARGEST_BATCH:,}", param=param)
    return sizes


def parse_settings(
    _: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Split the values of a repeatable option, whose metavar is their form."""
    try:
        return split_settings(values, str(param.metavar))
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from error


def batch_sizes_option(text: str) -> Decorator:
    return click.option("--batch-sizes", callback=_parse_batch_sizes, metavar="LIST", help=text)


def report_findings(
    findings: Sequence[str], strict: bool, limit: int | None = 50, where: str = ""
) -> None:
    """Print up to `limit` findings on stderr; `where` names the table that holds the others.

    Exits with status 1 if `strict` is set and there are findings.
    """
    for line in findings[:limit]:
        shown = line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"
        echo_labelled("finding", shown)
    if limit is not None and len(findings) > limit:
        echo_labelled("finding", f"and {len(findings) - limit} more; see {where}")
    if findings and strict:
        raise click.exceptions.Exit(1)


class StatusLine(threading.Thread):
    """The last line of a terminal: the seconds since the start and the current step, from the first
    second on.
    """

    def __init__(self, text: str) -> None:
        super().__init__(daemon=True)
        self.text = text
        self._began = time.monotonic()
        self._end = threading.Event()

    def run(self) -> None:
        while not self._end.wait(REFRESH_S):
            seconds = time.monotonic() - self._began
            if seconds >= SHOWN_AFTER_S:
                width = shutil.get_terminal_size().columns - 1
                line = escape_unprintable(f"{seconds:.0f} s  {self.text}")[:width]
                print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        self._end.set()
        self.join()
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def show_step(step: str = "", text: str = "") -> Iterator[Callable[[str, str], None]]:
    """Show the current step on a terminal if it takes longer than a second, and nothing if stderr
    is not a terminal.
    """
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    status = StatusLine(f"{step} {text}")

    def update(step: str, text: str) -> None:
        status.text = f"{step} {text}"

    status.start()
    try:
        yield update
    finally:
        status.close()


@contextmanager
def show_progress(unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many units are done on a terminal, and nothing if stderr is not a terminal."""
    with show_step(unit) as update:
        yield lambda done, total: update(unit, f"{done:,} of {total:,}")
