"""Decide for each column whether a comma divides thousands or decimals, by all figures of the
document.

A figure that can be read with one mark alone proves it, as `docs/reference/figures.md` says: a
point for its document, a comma for its column. A figure such as `1,360` in another column of the
document can then mean two things, and so can each one in a table in which the proof is part of a
row that could not be read, or in a document without a proof and without a language.
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
Column = tuple[str, str]
"""A column by its table and its printed name."""


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
) -> dict[Column, DecimalMark]:
    """Return the columns that do not simply have a decimal point.

    A figure that can be read in two ways needs a proof, a document in a language with decimal
    points, or a mark that a person has `signed`, which holds where no figure proves another.
    """
    figures = _collect_figures(tables)
    # columns with a figure that has a decimal point, that has a comma, and that proves the comma
    pointed: set[Column] = set()
    hinted: set[Column] = set()
    proved: set[Column] = set()
    for column, printed in figures.items():
        marks = set(map(list_marks, printed))
        if "." in marks:
            pointed.add(column)
        if "," in marks:
            hinted.add(column)
        if any(map(_proves_comma, printed)):
            proved.add(column)
    unread = _find_unread_proofs(problems)
    has_commas = bool(proved or unread)
    if signed is not None:
        mark = _read_as_signed(signed, has_points=bool(pointed), has_commas=has_commas)
        return dict.fromkeys(figures, mark)
    language_has_points = prints_decimal_points(language)
    if pointed:  # the document has decimal points: what speaks against them is in doubt
        doubtful = set(proved)
        doubtful.update(column for column in figures if column[0] in unread)
        if not language_has_points:
            doubtful |= hinted - pointed
        return dict.fromkeys(doubtful, DecimalMark.UNCLEAR)
    if has_commas:  # of the columns that prove them alone
        decided = dict.fromkeys(figures, DecimalMark.UNCLEAR)
        return decided | dict.fromkeys(proved, DecimalMark.COMMA)
    undecided = hinted if language_has_points else figures
    return dict.fromkeys(undecided, DecimalMark.UNCLEAR)


def _collect_figures(
    tables: Iterable[tuple[SourceTable, TableHeader]],
) -> dict[Column, list[str]]:
    """Return the figures with marks in each column of printed numbers."""
    figures: dict[Column, list[str]] = {}
    for table, header in tables:
        if header.derived:
            continue
        for name, texts in zip(table.columns, table.texts, strict=True):
            if header.field_of(name) in NUMERIC_FIELDS:
                figures[table.name, name] = _list_figures(texts.distinct)
    return figures


def _read_as_signed(signed: str, *, has_points: bool, has_commas: bool) -> DecimalMark:
    """Return the mark that a person read, unless a figure proves the other one."""
    if signed == "comma":
        return DecimalMark.UNCLEAR if has_points else DecimalMark.SIGNED_COMMA
    return DecimalMark.UNCLEAR if has_commas else DecimalMark.POINT


def _find_unread_proofs(problems: Iterable[ReadProblem]) -> set[str]:
    """Return the tables with a proof of a comma in a row that could not be read."""
    tables = set()
    for problem in problems:
        if any(map(_proves_comma, _list_figures(problem.raw))):
            tables.add(problem.table_name)
    return tables


def _list_figures(texts: Iterable[str]) -> list[str]:
    """Return the figures with marks in some texts."""
    return FIGURE.findall("\n".join(texts))


def _proves_comma(text: str) -> bool:
    return list_marks(text) == "," and LOST_DIGIT.fullmatch(text) is None
