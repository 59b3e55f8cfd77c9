"""Recognise the rows of a table that has lost its header, by the shapes of their cells."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ipu_results.record.read.document import Headers
from ipu_results.record.read.figures import SHAPE
from ipu_results.schema import table

# Without a header, only rows with this field are recognised: other text hardly has its shape.
DISTINCTIVE_FIELD = "sdk_version"
PRECISIONS = "|".join(map(re.escape, table("results").choices("precision")))
FIGURE = re.compile(SHAPE)
# Free text: anything but a figure or an SDK version.
WORDS = re.compile(rf"(?!{SHAPE}$)(?!(?:Pre-?)?SDK\s*\d).*", re.I)
WORDS_NEVER_BLANK = re.compile(WORDS.pattern.replace(".*", ".+"), re.I)
SHAPES: dict[str, re.Pattern[str]] = {
    "model": WORDS_NEVER_BLANK,
    "platform": WORDS_NEVER_BLANK,
    "framework": WORDS_NEVER_BLANK,
    "sdk_version": re.compile(r"(?:Pre-?)?SDK\s*\d[\w.]*", re.I),
    "precision": re.compile(rf"(?:\d+\.\d+|{PRECISIONS})?"),
    "batch_size": re.compile(r"(?:\d[\d,]*)?"),
    "throughput": FIGURE,
    "latency_ms": re.compile(rf"(?:{SHAPE})?"),
    "time_to_result_s": FIGURE,
    "time_to_train_s": re.compile(rf"{SHAPE}|(?:\d+\s*[dhms]\s*)+"),
    "mlperf_id": re.compile(r"(?:\d+\.\d+-\d+)?"),
    "division": re.compile(r"open|closed", re.I),
}
"""The shape of the cells of a field; those of other fields are `WORDS`."""


def contains_row(cells: Sequence[str], headers: Headers) -> bool:
    """Check whether consecutive cells have the shapes of a row of one of `headers`."""
    for fields in {tuple(field for _, field in header.fields) for header in headers}:
        if DISTINCTIVE_FIELD in fields and any(find_well_shaped(cells, fields)):
            return True
    return False


def find_well_shaped(cells: Sequence[str], fields: Sequence[str]) -> list[bool]:
    """Check for each cell whether a row starts there: whether it and those after it have the shapes
    of `fields`.
    """
    starts = [start + len(fields) <= len(cells) for start in range(len(cells))]
    for place, field in enumerate(fields):
        matches = SHAPES.get(field, WORDS).fullmatch
        for start, is_shaped in enumerate(starts):
            if is_shaped:
                starts[start] = matches(cells[start + place]) is not None
    return starts
