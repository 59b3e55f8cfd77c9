"""The CSV template: the columns of `results.csv` in a bundle, one figure a line, each as it was printed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

from ipu_results.schema.vocabulary import load_vocabulary

READER, TABLE = "comparators", "independent_results"
HEADER = load_vocabulary().header_of(READER, TABLE)
COLUMNS: tuple[str, ...] = tuple(name for name, _ in HEADER.fields)
IDENTITY: tuple[str, ...] = tuple(HEADER.identity or ())
REQUIRED = ("model", "task", "platform", "metric", "value", "place")


def format_rows(rows: Iterable[Mapping[str, str]]) -> bytes:
    """Format rows as the template; a column that a row lacks is blank."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()
