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
NO_FIGURE_OR_SDK = rf"(?!{SHAPE}$)(?!(?:Pre-?)?SDK\s*\d)"
# free text: anything but a figure or an SDK version
WORDS = re.compile(rf"{NO_FIGURE_OR_SDK}.*", re.I)
WORDS_NEVER_BLANK = re.compile(rf"{NO_FIGURE_OR_SDK}.+", re.I)
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
    tried = set()
    for header in headers:
        fields = tuple(field for _, field in header.fields)
        if fields in tried or DISTINCTIVE_FIELD not in fields:
            continue
        if find_well_shaped(cells, fields):
            return True
        tried.add(fields)
    return False


def find_well_shaped(cells: Sequence[str], fields: Sequence[str]) -> Sequence[int]:
    """Return where a row starts: that cell and those after it have the shapes of `fields`."""
    # where there is room for a row
    starts: Sequence[int] = range(len(cells) - len(fields) + 1)
    for place, field in enumerate(fields):
        matches = SHAPES.get(field, WORDS).fullmatch
        starts = [start for start in starts if matches(cells[start + place])]
    return starts
