"""Which extra a missing package belongs to; loading and querying need none."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ipu_results.errors import MissingExtraError

EXTRAS = {  # the extras that bring each package that is not needed to load and query the dataset
    "altair": "plots",
    "confusable_homoglyphs": "ingest",
    "jinja2": "plots",
    "lxml": "ingest",
    "mcp": "mcp",
    "onnx": "emulator runner",
    "onnxruntime": "emulator runner",
    "openvino": "openvino",
    "pandera": "ingest",
    "pdfplumber": "ingest",
    "PIL": "runner",
    "platformdirs": "runner",
    "psutil": "runner",
    "pynvml": "nvidia",
    "requests": "ingest",
    "rich": "runner",
    "vl_convert": "plots",
}


def import_extra(module: str) -> Any:
    """Import a module of an extra. Raises MissingExtraError with the command that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise explain_missing(error) from error


def explain_missing(error: ModuleNotFoundError, extra: str | None = None) -> MissingExtraError:
    """Return an error that names an extra with the missing module: that of the command, if it
    brings the module.
    """
    module = (error.name or "").partition(".")[0]
    default = extra or "user"
    extras = EXTRAS.get(module, default).split()
    chosen = default if default in extras else extras[0]
    return MissingExtraError(
        f"{module} is not installed; install it with: {format_install(chosen)}"
    )


def format_install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'ipu-results[{extra}]'"
