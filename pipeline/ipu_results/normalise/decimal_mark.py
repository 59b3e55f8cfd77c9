"""Decide for each column whether a comma divides thousands or decimals, by all figures of the
document.

A comma is a thousands mark unless a figure proves another use: the first group of `0,920` has no
digit but 0. The proof holds for its column. A figure such as `1,360` in another column of the
document can then mean two things, and so can each one in a table in which the proof is part of a
row that could not be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from ipu_results.read.document import ReadProblem, SourceTable
from ipu_results.read.text import prints_decimal_points
from ipu_results.schema.vocabulary import NUMERIC_FIELDS, TableHeader

FIGURE = re.compile(r"[0-9][0-9.,]*(?=\s|$)")
# `0,920`, `1.234,5` and `1.234.567` are not figures with a decimal point.
COMMA_PROOF = re.compile(r"0+,[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+|[0-9]{1,3}(?:\.[0-9]{3}){2,}")
# `1,234,567`, `1,234.5` and `1.5` are not figures with a decimal comma.
POINT_PROOF = re.compile(
    r"[1-9][0-9]{0,2}(?:,[0-9]{3}){2,}|[1-9][0-9]{0,2}(?:,[0-9]{3})*\.[0-9]+|[0-9]+\.[0-9]+"
)
# These are figures in either way of printing, and another one in each.
THOUSANDS_POINT = re.compile(r"[1-9][0-9]{0,2}\.[0-9]{3}")
THOUSANDS_COMMA = re.compile(r"[1-9][0-9]{0,2},[0-9]{3}")
UNREAD_PROOF = re.compile(rf"(?<![\w.,])(?:{COMMA_PROOF.pattern})(?![\w.,])")
ONE_COMMA = re.compile(r"[0-9]+,[0-9]+")


class DecimalMark(Enum):
    """What divides the decimals of the figures in a column."""

    POINT = "point"
    COMMA = "comma"
    SIGNED_COMMA = "signed comma"
    """A person read so: a point is then a thousands mark."""
    UNCLEAR = "unclear"
    """The figures contradict each other: one that can be read in two ways is refused."""


def find_decimal_marks(
    tables: Iterable[tuple[SourceTable, TableHeader]],
    problems: Iterable[ReadProblem] = (),
    language: str = "",
    signed: str | None = None,
) -> dict[tuple[str, str], DecimalMark]:
    """Return the columns, by table and printed name, that do not simply have a decimal point.

    In a document in a language with decimal commas, a figure that can be read in two ways needs a
    proof, or a mark that a person has `signed`: it holds where no figure of the document proves
    another.
    """
    figures = {
        (table.name, name): _find_figures(table, column)
        for table, header in tables
        if not header.derived
        for column, name in enumerate(table.columns)
        if header.field_of(name) in NUMERIC_FIELDS
    }
    proved = {column for column, texts in figures.items() if any(map(COMMA_PROOF.fullmatch, texts))}
    unread = {
        problem.table_name for problem in problems if any(map(UNREAD_PROOF.search, problem.raw))
    }
    has_points = any(_proves_point(text) for texts in figures.values() for text in texts)
    if signed is not None:
        has_commas = bool(proved or unread)
        mark = DecimalMark.SIGNED_COMMA if signed == "comma" else DecimalMark.POINT
        is_denied = has_points if signed == "comma" else has_commas
        return dict.fromkeys(figures, DecimalMark.UNCLEAR if is_denied else mark)
    if has_points:
        doubtful = {column for column in figures if column in proved or column[0] in unread}
        return dict.fromkeys(doubtful, DecimalMark.UNCLEAR)
    if proved or unread:
        return {
            column: DecimalMark.COMMA if column in proved else DecimalMark.UNCLEAR
            for column in figures
        }
    hinted = not prints_decimal_points(language)
    return {
        column: DecimalMark.UNCLEAR
        for column, texts in figures.items()
        if hinted or any(map(_hints_at_comma, texts))
    }


def _find_figures(table: SourceTable, column: int) -> list[str]:
    """Return the figures of a column that have a mark, each text once."""
    matches = (
        FIGURE.match(text) for text in table.texts[column].distinct if "," in text or "." in text
    )
    return [match[0] for match in matches if match]


def _proves_point(text: str) -> bool:
    return POINT_PROOF.fullmatch(text) is not None and THOUSANDS_POINT.fullmatch(text) is None


def _hints_at_comma(text: str) -> bool:
    """Check for groups that thousands cannot have, as in `12,5`.

    A lost digit makes them too, so it proves little.
    """
    return ONE_COMMA.fullmatch(text) is not None and THOUSANDS_COMMA.fullmatch(text) is None


def names_two_figures(text: str) -> bool:
    """Check whether a text is one figure with a decimal comma or point, and another with a
    thousands mark.
    """
    return any(pattern.fullmatch(text) for pattern in (THOUSANDS_COMMA, THOUSANDS_POINT))
