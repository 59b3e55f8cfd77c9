"""One file per backend; `backend(name)` is its module."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ipu_results.runner.backends.base import PRECISIONS

NAMES = ("popart", "onnxruntime", "openvino", "emulator", "null")


def is_virtual(name: str) -> bool:
    """Whether its time is calculated."""
    return bool(getattr(backend(name), "VIRTUAL", False))


def computes(name: str) -> bool:
    """Whether its sessions compute outputs of images."""
    return bool(getattr(backend(name), "COMPUTES", True))


def converts(name: str) -> bool:
    """Whether it takes an fp32 model and makes the asked precision of it itself."""
    return bool(getattr(backend(name), "CONVERTS", False))


def precisions(name: str) -> tuple[str, ...]:
    """Those that can be asked of it."""
    return tuple(getattr(backend(name), "PRECISIONS", PRECISIONS))


def backend(name: str) -> Any:
    """The module with `probe()` and `open(spec)`. Imports nothing of other backends."""
    return import_module(f"{__name__}.{name}")
