"""The small files of a release: citation, licence, changelog and the environment that built it."""

from __future__ import annotations

import platform
import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version

from ipu_results._util.resources import CHECKOUT
from ipu_results._util.text import format_json
from ipu_results.errors import ReleaseError
from ipu_results.release.files import CITATION

DISTRIBUTION = "ipu-results"
REPOSITORY_FILES = (CITATION, "LICENSE-DATA", "CHANGELOG.md")
REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def format_texts(release_version: str, published_on: str) -> dict[str, str]:
    """Return citation, licence of the data and changelog by file name.

    Raises ReleaseError without the files of the repository: a wheel cannot publish.
    """
    return {
        CITATION: _format_citation(release_version, published_on),
        "LICENSE": _read_repository_file("LICENSE-DATA"),
        "CHANGELOG.md": _read_repository_file("CHANGELOG.md"),
    }


def _format_citation(release_version: str, published_on: str) -> str:
    """Return CITATION.cff of the repository with the version and date of the release."""
    text = _read_repository_file(CITATION)
    for name, value in (("version", release_version), ("date-released", published_on)):
        text = re.sub(rf"(?m)^{name}:.*$", f"{name}: {value}", text)
    return text


def _read_repository_file(name: str) -> str:
    try:
        return (CHECKOUT / name).read_text(encoding="utf-8")
    except OSError as error:
        raise ReleaseError(f"cannot be read, publish from a clone: {error.strerror}", place=name) from error


def format_environment() -> str:
    """Return Python, the kind of system and the installed packages as JSON; nothing that names a machine or user."""
    environment = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": {name: _get_version(name) for name in (DISTRIBUTION, *_list_requirements())},
    }
    return format_json(environment) + "\n"


def _list_requirements() -> list[str]:
    try:
        requirements = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        requirements = ["duckdb", "pandas", "pyarrow"]
    matches = (REQUIREMENT_NAME.match(line) for line in requirements if "extra ==" not in line)
    return sorted(match[0] for match in matches if match)


def _get_version(name: str) -> str | None:
    with suppress(PackageNotFoundError):
        return version(name)
    return None
