"""Find the captions on a page, and the table that each belongs to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ipu_results.record.read.document import Headers
from ipu_results.record.read.figures import is_figure
from ipu_results.record.read.papers import (
    is_caption,
    join_lines,
    known_names,
    mentions_measure,
    normalise_text,
    split_metadata,
)
from ipu_results.record.read.pdf.lines import Line, Strip, enclose
from ipu_results.record.read.pdf.tables import PrintedTable, is_close

PROSE_WIDTH = 0.8  # a line of prose is at least this share as wide as its column
CAPTION_SIZE = 0.5  # the lines of a caption differ in size by at most this, in points
MAX_CAPTION_LINES = 8  # what follows is prose
# A caption that does not name what its table measures is at most this far away, in points.
NEAR_CAPTION = 40.0


class Offer(NamedTuple):
    """A caption that may be that of a table; the best offer comes first in order."""

    is_unnamed: bool
    """Whether it does not name what the table measures."""
    gap: float
    """Between the two, in points."""
    table: int
    caption: int


def find_captions(strip: Strip, headers: Headers) -> Iterator[Strip]:
    """Yield the lines of each caption in one column of a page."""
    names = known_names(headers)
    for place, line in enumerate(strip):
        if not is_caption(line.text) or _is_in_prose(strip, place):
            continue
        stop = place + 1
        for following in strip[stop : place + MAX_CAPTION_LINES]:
            if not _continues(strip[stop - 1], following, names):
                break
            stop += 1
        yield strip[place:stop]


def _is_in_prose(strip: Strip, place: int) -> bool:
    """Check whether the line above is close, as long as those of a paragraph, and no row of a
    table: a sentence may name a table.
    """
    if place == 0:
        return False
    above = strip[place - 1]
    if len(above.cells) > 1 or not is_close(above, strip[place]):
        return False
    column = enclose(strip)
    return above.box.width >= PROSE_WIDTH * column.width


def _continues(last: Line, line: Line, names: Collection[str]) -> bool:
    """Check whether a line goes on with a caption, and is neither a table nor metadata."""
    is_alike = abs(last.largest.size - line.largest.size) <= CAPTION_SIZE
    if not is_alike or not is_close(last, line):
        return False
    text = normalise_text(line.cells[0].text)
    is_header = any(name.startswith(text) for name in names)
    return not (is_header or is_figure(text) or split_metadata(line.text))


def join_caption(caption: Strip) -> str:
    return join_lines(line.text for line in caption)


def assign_captions(
    tables: Sequence[PrintedTable], captions: Sequence[Strip], headers: Headers
) -> dict[int, Strip]:
    """Return the caption of each table by its number: one close by, best if it names its measure.
    No caption is assigned twice.
    """
    offers = []
    for place, table in enumerate(tables):
        for number, caption in enumerate(captions):
            box = enclose(caption)
            gap = max(table.box.top - box.bottom, box.top - table.box.bottom, 0.0)
            is_named = mentions_measure(join_caption(caption), table.header, headers)
            if is_named or (gap <= NEAR_CAPTION and table.box.overlaps(box)):
                offers.append(Offer(not is_named, gap, place, number))
    assigned: dict[int, Strip] = {}
    used = set()
    for offer in sorted(offers):
        if offer.table not in assigned and offer.caption not in used:
            assigned[offer.table] = captions[offer.caption]
            used.add(offer.caption)
    return assigned
