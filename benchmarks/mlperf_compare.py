"""The figures of two scorers side by side, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TOLERANCE = 1e-9

Figures = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure on which the sides differ, or an entry that one of them lacks, as each tells it."""

    path: str
    figure: str
    official: str
    ours: str


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure of every entry of either side. `empty` counts those for which neither has a number, which is equal."""

    figure: str
    entries: int
    equal: int
    empty: int
    largest: float
    differences: tuple[Difference, ...]


def compared(figure: str, official: Figures, ours: Figures) -> Compared:
    """`largest` is the largest difference where both have a number; what is no number there is a difference."""
    differences, largest, empty = [], 0.0, 0
    paths = sorted(official.keys() | ours.keys())
    for path in paths:
        theirs, own = official.get(path), ours.get(path)
        apart = None if theirs is None or own is None else abs(theirs - own)
        equal = theirs is None and own is None if apart is None else apart <= TOLERANCE
        if equal and path in official and path in ours:
            empty += apart is None
        else:
            differences.append(Difference(path, figure, _told(official, path), _told(ours, path)))
        largest = max(largest, apart or 0.0)
    return Compared(figure, len(paths), len(paths) - len(differences), empty, largest, tuple(differences))


def _told(side: Figures, path: str) -> str:
    if path not in side:
        return "no such entry"
    value = side[path]
    return "none" if value is None else repr(float(value))
