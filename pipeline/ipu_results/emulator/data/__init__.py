"""The emulator's data files: machines, host paths, validation rows, and the frozen calibration and predictions."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any


def read_text(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def read_toml(name: str) -> dict[str, Any]:
    return tomllib.loads(read_text(name))
