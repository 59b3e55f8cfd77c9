"""Compare two predictions that were saved by `predict --format json`: what changed and by which ratio."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isclose
from pathlib import Path
from typing import Any

from ipu_results.errors import InconsistentModelError, UnrecognisedModelError

KEYS = ("batch_size", "operator")  # what names a record, those that it has
TOLERANCE = 1e-9  # relative: sums in another order differ by less
FIELDS = ("batch_size", "operator", "field", "before", "after", "ratio")

Record = Mapping[str, Any]
Key = tuple[Any, ...]


def load_predictions(path: Path) -> list[dict[str, Any]]:
    """Load the records of a file. Raises UnrecognisedModelError where `predict --format json` did not make it."""
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnrecognisedModelError(f"cannot be read: {error.strerror or error}", document=str(path)) from error
    except (UnicodeDecodeError, ValueError) as error:
        raise UnrecognisedModelError("is not JSON", document=str(path)) from error
    if not isinstance(records, list) or not records or not all(map(_is_prediction, records)):
        raise UnrecognisedModelError("was not saved by `ipu-results predict --format json`", document=str(path))
    return records


def _is_prediction(record: Any) -> bool:
    return isinstance(record, dict) and record.get("origin") == "emulated" and "batch_size" in record


def compare_predictions(before: Sequence[Record], after: Sequence[Record]) -> list[dict[str, Any]]:
    """Return FIELDS of every field that differs between records of one batch size and, with `--layers`, operator.

    `ratio` is after ÷ before, None for text and where before is 0. A record that one side lacks is one row whose field
    is `record`. Raises InconsistentModelError where no record is in both.
    """
    old, new = _index(before), _index(after)
    if not old.keys() & new.keys():
        raise InconsistentModelError("the two predictions have no batch size and operator in common")
    rows = []
    for key in dict.fromkeys((*old, *new)):
        place = {"batch_size": key[0], "operator": key[1]}
        if key not in old or key not in new:
            sides = ["present" if key in side else "absent" for side in (old, new)]
            rows.append({**place, "field": "record", "before": sides[0], "after": sides[1], "ratio": None})
            continue
        for field in dict.fromkeys((*old[key], *new[key])):
            first, second = old[key].get(field), new[key].get(field)
            if not _is_equal(first, second):
                change = {"field": field, "before": first, "after": second, "ratio": _divide(second, first)}
                rows.append({**place, **change})
    return rows


def _index(records: Sequence[Record]) -> dict[Key, Record]:
    """Name records by batch size, operator, and their number among equal names."""
    index: dict[Key, Record] = {}
    for record in records:
        name, number = tuple(record.get(key) for key in KEYS), 1
        while (*name, number) in index:
            number += 1
        index[(*name, number)] = record
    return index


def _is_equal(first: Any, second: Any) -> bool:
    return bool(first == second or (_are_numbers(first, second) and isclose(first, second, rel_tol=TOLERANCE)))


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _divide(dividend: Any, divisor: Any) -> float | None:
    return dividend / divisor if _are_numbers(dividend, divisor) and divisor else None
