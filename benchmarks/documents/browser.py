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
from typing import Any

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
ShownTable = list[list[str | None]]
"""Visible text of each cell, in the order on the screen; None for one with ink that is not its
text.
"""


def is_installed() -> bool:
    """Check whether pages can be rendered."""
    return (
        bool(os.environ.get("CHROMIUM")) and shutil.which("node") is not None and PACKAGE.is_dir()
    )


def render(pages: Iterable[str]) -> Iterator[list[ShownTable]]:
    """Yield what the tables of each page show."""
    command = ["node", str(SCRIPT)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for page in pages:
            process.stdin.write(json.dumps(page) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            with_text, without = map(_open_picture, answer["pictures"])
            height, width = (
                min(sides) for sides in zip(with_text.shape[:2], without.shape[:2], strict=True)
            )
            with_text, without = with_text[:height, :width], without[:height, :width]
            ink = (np.abs(with_text - without) >= MIN_CONTRAST).any(axis=2)
            yield [[_show_row(row, ink, without) for row in table] for table in answer["tables"]]
        process.stdin.close()


def _open_picture(text: str) -> Picture:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGB"), dtype=np.int16)


def _show_row(
    cells: Sequence[dict[str, Any]], ink: npt.NDArray[np.bool_], behind: Picture
) -> list[str | None]:
    shown = sorted(cells, key=lambda cell: cell["box"][0])
    return [_show_cell(cell, ink, behind) for cell in shown if cell["box"][2] and cell["box"][3]]


def _show_cell(cell: dict[str, Any], ink: npt.NDArray[np.bool_], behind: Picture) -> str | None:
    """Return the characters that leave ink, line by line, each line from left to right."""
    left = ink[_cut(cell["box"])].copy()
    x0, y0 = (max(0, round(side)) for side in cell["box"][:2])
    seen: list[tuple[float, float, float, str]] = []
    for char, x, y, width, height, is_struck in cell["chars"]:
        if char.isspace():
            seen += [(y + height / 2, x, height, " ")] if width else []
            continue
        if (
            height >= MIN_HEIGHT
            and width
            and x >= 0
            and y >= 0
            and ink[_cut((x, y, width, height))].any()
        ):
            is_crossed = is_struck or _is_crossed(behind[_cut((x, y, width, height))])
            seen += [] if is_crossed else [(y + height / 2, x, height, char)]
        across, down = max(0, round(x) - x0 - SLACK), max(0, round(y) - y0 - SLACK)
        left[down : round(y + height) - y0 + SLACK, across : round(x + width) - x0 + SLACK] = False
    if left.sum() >= EXTRA_INK:
        return None
    lines: list[list[tuple[float, float, float, str]]] = []
    for item in sorted(seen):
        if not lines or item[0] - lines[-1][0][0] > item[2] / 2:
            lines.append([])
        lines[-1].append(item)
    return _normalise(
        " ".join(
            "".join(char for *_, char in sorted(line, key=lambda item: item[1])) for line in lines
        )
    )


def _normalise(text: str) -> str:
    return clean(text).replace("- ", "-")  # a line may end after a hyphen


def _cut(box: Sequence[float]) -> tuple[slice, slice]:
    x, y, width, height = box
    return slice(max(0, int(y)), max(0, round(y + height))), slice(
        max(0, int(x)), max(0, round(x + width))
    )


def _is_crossed(behind: Picture) -> bool:
    """Check whether a line that is not text goes through the middle of a place."""
    if not behind.size:
        return False
    height = len(behind)
    low, high = (int(share * height) for share in MIDDLE)
    usual = np.median(behind.reshape(-1, 3), axis=0)
    differs = (np.abs(behind - usual) >= MIN_CONTRAST).any(axis=2)
    return bool((differs[low:high].mean(axis=1) >= STRUCK_SHARE).any())


def mark_unseen(tables: Sequence[Table], shown: Sequence[ShownTable]) -> list[Table]:
    """Return the tables with each cell unreadable that a browser shows otherwise, or under another
    header.

    If it shows fewer rows than are printed, those that it shows whole are looked for in their order.
    """
    marked = []
    for number, table in enumerate(tables):
        grid = shown[number] if number < len(shown) else []
        header, *rows = [row for row in grid if any(text != "" for text in row)] or [[]]
        places = [
            header.index(name) if header.count(name := _normalise(column)) == 1 else MISSING
            for column in table.columns
        ]
        if len(rows) < len(table.rows):
            rows = _spread_rows(table, rows, places)
        kept = [
            [
                cell if row[place : place + 1] == [_normalise(cell.text)] else mark_unreadable(cell)
                for cell, place in zip(printed, places, strict=True)
            ]
            for printed, row in zip(
                table.rows,
                rows if len(rows) == len(table.rows) else [[]] * len(table.rows),
                strict=True,
            )
        ]
        marked.append(replace(table, rows=kept))
    return marked


def _spread_rows(
    table: Table, rows: Sequence[list[str | None]], places: Sequence[int]
) -> list[list[str | None]]:
    """Return a row for each printed one: that which shows it, or none."""
    left = [*rows]
    spread: list[list[str | None]] = []
    for printed in table.rows:
        texts = [[_normalise(cell.text)] for cell in printed]
        is_shown = left and [left[0][place : place + 1] for place in places] == texts
        spread.append(left.pop(0) if is_shown else [])
    return spread
