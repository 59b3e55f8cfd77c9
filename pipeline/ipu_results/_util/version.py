"""The version of the package, which is that of the dataset inside it and of its next release."""

from __future__ import annotations

import tomllib
from importlib.metadata import version

from ipu_results._util.resources import CHECKOUT

DISTRIBUTION = "ipu-results"
PROJECT = CHECKOUT / "pyproject.toml"


def read_version() -> str:
    """Return the version of the checkout, else the installed one, such as `1.0.0`."""
    if PROJECT.is_file():
        project = tomllib.loads(PROJECT.read_text(encoding="utf-8")).get("project", {})
        if project.get("name") == DISTRIBUTION:
            return str(project["version"])
    return version(DISTRIBUTION)
