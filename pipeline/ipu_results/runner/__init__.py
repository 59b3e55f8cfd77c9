"""The runner: sweeps an inference workload over batch sizes on this machine, and appends the run as
documents.

From Python:

    from ipu_results.runner import SweepConfig, run_sweep

    (run,) = run_sweep(SweepConfig(backend="emulator", target="c2", batch_sizes=(2, 4)), out="my-runs")
    for point in run.points:
        print(point["batch_size"], point["throughput"], point["latency_ms"], point["origin"])

`run_sweep` returns a result for each device that the configuration selects. `resume_sweep` goes on
with an interrupted run. A `Progress` reports what a sweep does.

`worker`, `inputs`, `backends` and `backends.popart` keep to Python 3.8, the newest version that
PopART's wheels support, and the command line starts without the extra `runner`. So nothing is
imported here before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipu_results.runner.config import Progress, SweepConfig
    from ipu_results.runner.sweep import SweepResult, resume_sweep, run_sweep

__all__ = ["Progress", "SweepConfig", "SweepResult", "resume_sweep", "run_sweep"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 (see above)

    home = "config" if name in ("Progress", "SweepConfig") else "sweep"
    try:
        return getattr(import_module(f"{__name__}.{home}"), name)
    except ModuleNotFoundError as error:
        from ipu_results.kit.extras import explain_missing  # noqa: PLC0415

        raise explain_missing(error, "runner") from error
