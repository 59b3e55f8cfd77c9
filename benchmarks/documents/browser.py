"""What headless Chromium shows of the cells of a page: the truth about HTML, where it is installed.

`CHROMIUM` names the browser, and `site/node_modules` has the package that controls it (`npm ci` in
`site`).
"""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from ipu_results.record.read.text import clean
from PIL import Image

from benchmarks.documents.mutations import mark_unreadable
from benchmarks.documents.tables import Table

SCRIPT = Path(__file__).with_suffix(".mjs")
PACKAGE = SCRIPT.parents[2] / "site" / "node_modules" / "playwright-core"
MIN_CONTRAST = 48  # of 255: what a reader sees at a glance
MIN_HEIGHT = 4.0  # pixels: smaller text cannot be read
MIDDLE = (0.35, 0.75)  # of the height of a character: where a line strikes it
STRUCK_SHARE = 0.9  # of the width of a character
EXTRA_INK = 6  # pixels of a cell outside of its characters: what a style sheet prints
MISSING = 10_000  # a column that is not shown
SLACK = 3  # pixels around a character that its ink may take

Picture = npt.NDArray[np.int16]
Ink = npt.NDArray[np.bool_]
ShownTable = list[list[str | None]]
"""Visible text of each cell, in the order on the screen; None for one with ink that is not its
text.
"""


class Character(NamedTuple):
    """A character of a cell with its box in pixels, and whether its style strikes it."""

    text: str
    x: float
    y: float
    width: float
    height: float
    is_struck: bool

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


class DrawnCell(msgspec.Struct):
    """A cell of a page: its box in pixels as x, y, width and height, and its characters."""

    box: tuple[float, float, float, float]
    chars: list[Character]


class Answer(msgspec.Struct):
    """A page as `browser.mjs` draws it: with its text and without, and its cells."""

    pictures: tuple[str, str]
    tables: list[list[list[DrawnCell]]]


def is_installed() -> bool:
    """Check whether pages can be rendered."""
    has_node = shutil.which("node") is not None
    return bool(os.environ.get("CHROMIUM")) and has_node and PACKAGE.is_dir()


def render(pages: Iterable[str]) -> Iterator[list[ShownTable]]:
    """Yield what the tables of each page show."""
    pipe = subprocess.PIPE
    with subprocess.Popen(["node", str(SCRIPT)], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for page in pages:
            process.stdin.write(json.dumps(page) + "\n")
            process.stdin.flush()
            # json also takes the halves of a character beyond 16 bits, which are measured apart
            yield _read_answer(msgspec.convert(json.loads(process.stdout.readline()), Answer))
        process.stdin.close()


def _read_answer(answer: Answer) -> list[ShownTable]:
    with_text = _open_picture(answer.pictures[0])
    without = _open_picture(answer.pictures[1])
    # the text may make the page longer
    height = min(len(with_text), len(without))
    width = min(with_text.shape[1], without.shape[1])
    behind = without[:height, :width]
    ink = (np.abs(with_text[:height, :width] - behind) >= MIN_CONTRAST).any(axis=2)
    tables = []
    for table in answer.tables:
        tables.append([_show_row(row, ink, behind) for row in table])
    return tables


def _open_picture(text: str) -> Picture:
    picture = Image.open(io.BytesIO(base64.b64decode(text)))
    return np.asarray(picture.convert("RGB"), dtype=np.int16)


def _show_row(cells: Sequence[DrawnCell], ink: Ink, behind: Picture) -> list[str | None]:
    shown = []
    for cell in sorted(cells, key=lambda cell: cell.box[0]):
        _, _, width, height = cell.box
        if width and height:
            shown.append(_show_cell(cell, ink, behind))
    return shown


def _show_cell(cell: DrawnCell, ink: Ink, behind: Picture) -> str | None:
    """Return the characters that leave ink, line by line, each line from left to right."""
    left = ink[_cut(cell.box)].copy()
    x0 = max(0, round(cell.box[0]))
    y0 = max(0, round(cell.box[1]))
    seen: list[Character] = []
    for char in cell.chars:
        if char.text.isspace():
            if char.width:
                seen.append(char._replace(text=" "))
            continue
        if _is_seen(char, ink, behind):
            seen.append(char)
        top = max(0, round(char.y) - y0 - SLACK)
        start = max(0, round(char.x) - x0 - SLACK)
        bottom = round(char.y + char.height) - y0 + SLACK
        stop = round(char.x + char.width) - x0 + SLACK
        left[top:bottom, start:stop] = False
    if left.sum() >= EXTRA_INK:
        return None
    return _normalise(" ".join(_join_lines(seen)))


def _is_seen(char: Character, ink: Ink, behind: Picture) -> bool:
    place = _cut((char.x, char.y, char.width, char.height))
    is_on_page = char.x >= 0 and char.y >= 0
    if not is_on_page or not char.width or char.height < MIN_HEIGHT or not ink[place].any():
        return False
    return not char.is_struck and not _is_crossed(behind[place])


def _join_lines(seen: Iterable[Character]) -> Iterator[str]:
    """Yield the text of each line from the top."""
    lines: list[list[Character]] = []
    for char in sorted(seen, key=lambda char: (char.middle, char.x, char.height, char.text)):
        if not lines or char.middle - lines[-1][0].middle > char.height / 2:
            lines.append([])
        lines[-1].append(char)
    for line in lines:
        yield "".join(char.text for char in sorted(line, key=lambda char: char.x))


def _normalise(text: str) -> str:
    return clean(text).replace("- ", "-")  # a line may end after a hyphen


def _cut(box: Sequence[float]) -> tuple[slice, slice]:
    """Return the rows and columns of pixels of a box."""
    x, y, width, height = box
    rows = slice(max(0, int(y)), max(0, round(y + height)))
    return rows, slice(max(0, int(x)), max(0, round(x + width)))


def _is_crossed(behind: Picture) -> bool:
    """Check whether a line that is not text goes through the middle of a place."""
    if not behind.size:
        return False
    usual = np.median(behind.reshape(-1, 3), axis=0)
    differs = (np.abs(behind - usual) >= MIN_CONTRAST).any(axis=2)
    middle = differs[int(MIDDLE[0] * len(behind)) : int(MIDDLE[1] * len(behind))]
    return bool((middle.mean(axis=1) >= STRUCK_SHARE).any())


def mark_unseen(tables: Sequence[Table], shown: Sequence[ShownTable]) -> list[Table]:
    """Return the tables with each cell unreadable that a browser shows otherwise, or under another
    header.

    If it shows fewer rows than are printed, those that it shows whole are sought in their order.
    """
    marked = []
    for number, table in enumerate(tables):
        grid = shown[number] if number < len(shown) else []
        grid = [row for row in grid if any(text != "" for text in row)]
        header = grid[0] if grid else []
        places = []
        for column in table.columns:
            name = _normalise(column)
            places.append(header.index(name) if header.count(name) == 1 else MISSING)
        rows = []
        for printed, row in zip(table.rows, _match_rows(table, grid[1:], places), strict=True):
            cells = []
            for cell, place in zip(printed, places, strict=True):
                is_shown = row[place : place + 1] == [_normalise(cell.text)]
                cells.append(cell if is_shown else mark_unreadable(cell))
            rows.append(cells)
        marked.append(replace(table, rows=rows))
    return marked


def _match_rows(table: Table, rows: ShownTable, places: Sequence[int]) -> ShownTable:
    """Return a row for each printed one: that which shows it, or none."""
    if len(rows) >= len(table.rows):
        return rows if len(rows) == len(table.rows) else [[] for _ in table.rows]
    left = list(rows)
    matched: ShownTable = []
    for printed in table.rows:
        texts = [[_normalise(cell.text)] for cell in printed]
        is_shown = left and [left[0][place : place + 1] for place in places] == texts
        matched.append(left.pop(0) if is_shown else [])
    return matched
