"""What every package builds on. Here: which extra a missing package belongs to; loading and querying need none."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ipu_results.errors import MissingExtraError

EXTRAS = {  # the extra of each package that is not needed to load and query the dataset
    "altair": "plots",
    "vl_convert": "plots",
    "openvino": "openvino",
    "pynvml": "nvidia",
    "fsspec": "remote",
    "dask": "distributed",
    "distributed": "distributed",
    "mlcroissant": "croissant",
    "mcp": "mcp",
}


def import_extra(module: str) -> Any:
    """Import a module of an extra. Raises MissingExtraError with the command that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise explain_missing(error) from error


def explain_missing(error: ModuleNotFoundError, extra: str | None = None) -> MissingExtraError:
    """Return an error that names the extra of a missing module: its own, else that of the command that needs it."""
    module = (error.name or "").partition(".")[0]
    install = f"ipu-results[{EXTRAS.get(module, extra or 'user')}]"
    return MissingExtraError(f"{module} is not installed; install it with: pip install '{install}'")
