"""Find the first row of each table in a document without a known header, from which one can be drafted."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

from bs4 import BeautifulSoup
from bs4.filter import SoupStrainer

from ipu_results.read.csv_table import parse_line
from ipu_results.read.html import TABLE_TAG, find_charset
from ipu_results.read.text import clean, decode, is_fenced, lift_footnote, split_line

MIN_COLUMNS = 3
FIGURE = re.compile(r"[\d.,\s%]+")

FirstRow = tuple[str, tuple[str, ...]]
"""Where a table is, and its first row of words."""


def find_first_rows(data: bytes, suffix: str) -> list[FirstRow]:
    """Return the first row of words of each HTML table, of each block of delimited text, or of a CSV file.

    Of a PDF, `ipu_results.read.pdf.continued` finds them.
    """
    text = decode(data, find_charset(data))
    if suffix == ".csv":
        columns = tuple(parse_line(text.split("\n", 1)[0]))
        return [("line 1", columns)] if _is_header(columns) else []
    return list(_iter_html(text) if TABLE_TAG.search(text) else _iter_text(text))


def _iter_html(text: str) -> Iterator[FirstRow]:
    with warnings.catch_warnings(action="ignore"):  # about XHTML that is read as HTML
        soup = BeautifulSoup(text, "lxml", parse_only=SoupStrainer("table"))
    for number, table in enumerate(soup.find_all("table"), start=1):
        rows = (
            tuple(_clean(cell.get_text(" ")) for cell in row.find_all(["th", "td"])) for row in table.find_all("tr")
        )
        if (columns := next(filter(_is_header, rows), None)) is not None:
            yield f"table {number}", columns


def _iter_text(text: str) -> Iterator[FirstRow]:
    within = False
    for number, line in enumerate(text.splitlines(), start=1):
        columns = tuple(map(_clean, split_line(line, is_fenced(line))))
        if not within and _is_header(columns):
            yield f"line {number}", columns
        within = len(columns) >= MIN_COLUMNS


def _is_header(columns: tuple[str, ...]) -> bool:
    words = [text for text in columns if text and not FIGURE.fullmatch(text)]
    return len(words) >= MIN_COLUMNS and len(words) == len(columns)


def _clean(text: str) -> str:
    return lift_footnote(clean(text))[0]
