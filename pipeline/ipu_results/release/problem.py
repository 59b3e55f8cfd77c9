"""What a check finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import duckdb
import pyarrow as pa

from ipu_results.errors import UnreadableReleaseError
from ipu_results._util.text import escape_unprintable
from ipu_results._util.sql import get_first_line


class Problem(NamedTuple):
    path: str
    message: str

    @property
    def line(self) -> str:
        return escape_unprintable(f"{self.path}: {self.message}")


Problems = Iterator[Problem]


def guarded(path: str, checks: Callable[[], Problems]) -> list[Problem]:
    """All that the checks find; what cannot even be read is one more problem and the end of them."""
    found: list[Problem] = []
    try:
        found.extend(checks())
    except UnreadableReleaseError as error:
        found.append(Problem(path, error.message))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, pa.ArrowException, duckdb.Error) as error:
        found.append(Problem(path, f"cannot be checked: {type(error).__name__}: {get_first_line(error)}"))
    return found
