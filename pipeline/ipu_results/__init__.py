"""The verified record of what AI accelerators were said and measured to do, deepest on Graphcore IPUs.

>>> import ipu_results
>>> df = ipu_results.load("results", platform="IPU-M2000", usable=True)
>>> ipu_results.provenance(df.result_id[0])
>>> ipu_results.connect().sql("FROM inference WHERE usable AND latency_ms < 5")

Everything is imported on first use, so that `import ipu_results` costs nothing. A name whose
packages are not installed raises MissingExtraError, which names the extra to install.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ipu_results.errors import IpuResultsError

if TYPE_CHECKING:
    from ipu_results.api import claims, connect, load, pandera_schema, provenance
    from ipu_results.doors.cite import cite
    from ipu_results.doors.comparison import compare
    from ipu_results.emulator import Emulator
    from ipu_results.mlperf import score_mlperf

    __version__: str

__all__ = [
    "Emulator",
    "IpuResultsError",
    "cite",
    "claims",
    "compare",
    "connect",
    "load",
    "pandera_schema",
    "provenance",
    "score_mlperf",
]

_MODULES = {  # module and extra of each name
    **dict.fromkeys(
        ("claims", "connect", "load", "pandera_schema", "provenance"), ("ipu_results.api", None)
    ),
    "cite": ("ipu_results.doors.cite", None),
    "compare": ("ipu_results.doors.comparison", None),
    "Emulator": ("ipu_results.emulator", "emulator"),
    "score_mlperf": ("ipu_results.mlperf", "ingest"),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        # importlib.metadata takes 20 ms
        from ipu_results.kit.files import read_version  # noqa: PLC0415

        return read_version()
    if name not in _MODULES:
        raise AttributeError(f"module 'ipu_results' has no attribute {name!r}")
    module, extra = _MODULES[name]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        from ipu_results.kit.extras import explain_missing  # noqa: PLC0415

        raise explain_missing(error, extra) from error


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
