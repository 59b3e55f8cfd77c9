"""The version of the package, which is that of the dataset inside it."""

from __future__ import annotations

from importlib.metadata import version

DISTRIBUTION = "ipu-results"


def read_version() -> str:
    """Return the installed version, such as `1.0.0`."""
    return version(DISTRIBUTION)
