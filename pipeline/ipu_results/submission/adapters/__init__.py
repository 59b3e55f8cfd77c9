"""Read the reports and logs of other tools as lines of the CSV template.

Files are read as data: no code of theirs runs, and no link is followed. What a file does not state stays blank. Each
figure keeps the digits of the file. `docs/reference/submission-formats.md` describes what each adapter reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ipu_results.errors import SubmissionError
from ipu_results.submission.adapters import (
    bytemlperf,
    jube,
    loadgen,
    mlperf_training,
    optimum_benchmark,
    poprt,
    poptorch,
    template,
)
from ipu_results.submission.adapters.files import ReadFile, SubmittedFile, read_file

__all__ = ["NAMES", "ReadFile", "read_figures"]


@dataclass(frozen=True)
class _Adapter:
    is_readable: Callable[[SubmittedFile], bool]
    read: Callable[[SubmittedFile], ReadFile]


_ADAPTERS = {
    bytemlperf.NAME: _Adapter(bytemlperf.is_readable, bytemlperf.read_report),
    jube.NAME: _Adapter(jube.is_readable, jube.read_table),
    loadgen.SUMMARY: _Adapter(loadgen.is_summary, loadgen.read_summary),
    loadgen.DETAIL: _Adapter(loadgen.is_detail, loadgen.read_detail),
    mlperf_training.NAME: _Adapter(mlperf_training.is_readable, mlperf_training.read_training_log),
    optimum_benchmark.NAME: _Adapter(optimum_benchmark.is_readable, optimum_benchmark.read_report),
    poprt.NAME: _Adapter(poprt.is_readable, poprt.read_benchmark_log),
    poptorch.NAME: _Adapter(poptorch.is_readable, poptorch.read_poptorch_log),
    template.NAME: _Adapter(template.is_readable, template.read_template),
}
NAMES = tuple(_ADAPTERS)


def read_figures(path: Path, adapter: str | None = None) -> ReadFile:
    """Read the figures of one file, by the adapter that its content suits or by the one named.

    Raises SubmissionError, naming the file and the place, for a file that cannot be read, that no adapter suits or
    several do, and for one without figures.
    """
    file = read_file(path)
    if adapter is not None:
        if adapter not in _ADAPTERS:
            raise SubmissionError(f"unknown adapter {adapter!r}; known: {', '.join(NAMES)}", document=file.path)
        return _ADAPTERS[adapter].read(file)
    suited = [name for name, candidate in _ADAPTERS.items() if candidate.is_readable(file)]
    if not suited:
        file.fail(f"is not a file that an adapter reads; adapters: {', '.join(NAMES)}")
    if len(suited) > 1:
        file.fail(f"can be read by several adapters, which may differ: name one of {', '.join(suited)}")
    return _ADAPTERS[suited[0]].read(file)
