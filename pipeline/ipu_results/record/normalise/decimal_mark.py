"""Decide for each column whether a comma divides thousands or decimals, by all figures of the
document.

A figure that can be read with one mark alone proves it, as `docs/reference/figures.md` says: a point
for its document, a comma for its column. A figure such as `1,360` in another column of the document
can then mean two things, and so can each one in a table in which the proof is part of a row that
could not be read, or in a document without a proof and without a language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from ipu_results.record.read.document import ReadProblem, SourceTable
from ipu_results.record.read.figures import LOST_DIGIT, list_marks
from ipu_results.record.read.text import prints_decimal_points
from ipu_results.schema.vocabulary import NUMERIC_FIELDS, TableHeader

FIGURE = re.compile(r"(?<![\w.,])[0-9]+[.,][0-9.,]*[0-9](?!\w)")


class DecimalMark(Enum):
    """What divides the decimals of the figures in a column."""

    POINT = "point"
    COMMA = "comma"
    SIGNED_COMMA = "signed comma"
    """A person read so: a point is then a thousands mark."""
    UNCLEAR = "unclear"
    """Nothing decides it: a figure that can be read in two ways is refused."""


def find_decimal_marks(
    tables: Iterable[tuple[SourceTable, TableHeader]],
    problems: Iterable[ReadProblem] = (),
    language: str = "",
    signed: str | None = None,
) -> dict[tuple[str, str], DecimalMark]:
    """Return the columns, by table and printed name, that do not simply have a decimal point.

    A figure that can be read in two ways needs a proof, a document in a language with decimal
    points, or a mark that a person has `signed`, which holds where no figure proves another.
    """
    figures = {
        (table.name, name): FIGURE.findall("\n".join(table.texts[column].distinct))
        for table, header in tables
        if not header.derived
        for column, name in enumerate(table.columns)
        if header.field_of(name) in NUMERIC_FIELDS
    }
    proved = {column for column, texts in figures.items() if any(map(_proves_comma, texts))}
    hinted = {column for column, texts in figures.items() if "," in map(list_marks, texts)}
    unread = {
        problem.table_name
        for problem in problems
        if any(map(_proves_comma, FIGURE.findall(" ".join(problem.raw))))
    }
    pointed = {column for column, texts in figures.items() if "." in map(list_marks, texts)}
    if signed is not None:
        has_commas = bool(proved or unread)
        mark = DecimalMark.SIGNED_COMMA if signed == "comma" else DecimalMark.POINT
        is_denied = bool(pointed) if signed == "comma" else has_commas
        return dict.fromkeys(figures, DecimalMark.UNCLEAR if is_denied else mark)
    if pointed:
        doubtful = {column for column in figures if column in proved or column[0] in unread}
        if not prints_decimal_points(language):
            doubtful |= hinted - pointed
        return dict.fromkeys(doubtful, DecimalMark.UNCLEAR)
    if proved or unread:
        return {
            column: DecimalMark.COMMA if column in proved else DecimalMark.UNCLEAR
            for column in figures
        }
    undecided = hinted if prints_decimal_points(language) else figures
    return dict.fromkeys(undecided, DecimalMark.UNCLEAR)


def _proves_comma(text: str) -> bool:
    return list_marks(text) == "," and LOST_DIGIT.fullmatch(text) is None
