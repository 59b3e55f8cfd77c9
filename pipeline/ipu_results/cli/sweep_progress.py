"""What a running sweep shows on stderr: a progress bar on a terminal, else a line for each stage and round."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from ipu_results.runner.plan import Visit
from ipu_results.runner.sweep import Progress


class SweepLines(Progress):
    """Shows the progress of a sweep. `bar` is rich's progress bar, None where stderr is not a terminal."""

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
            click.echo(f"round {visit.round + 1}: {done} of {total} blocks measured, {left}", err=True)

    def warn(self, what: str) -> None:
        click.echo(f"warning: {what}", err=True)


@contextmanager
def show_progress() -> Iterator[SweepLines]:
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
