"""Findings: what the record found, each one a file of `schema/findings/`.

The README, docs/explanation/findings.md and the start page take their sentences from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ipu_results.doors.analyses.question import Question, fill_sentences, select_rows
from ipu_results.errors import TooFewRowsError
from ipu_results.kit.files import list_in_order, load_schema_file
from ipu_results.kit.sql import Connection


@dataclass(frozen=True, slots=True)
class Card:
    """How the start page shows a finding: its large figure, and the bars of the statement `bars`.

    `reading` says what the bars show, and `rule` is what they are compared with, as label and value
    in their unit. `link` is a view of the page.
    """

    figure: str
    unit: str
    reading: str
    link: str
    link_text: str
    rule: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFinding(Question):
    """What was found, how much, and the best objection: a sentence each, without its full stop."""

    folder: ClassVar[str] = "findings"

    statement: str
    figure: str
    objection: str
    in_readme: bool = False
    card: Card | None = None


def load_finding(name: str) -> RecordFinding:
    """Load `schema/findings/NAME.toml`."""
    content = load_schema_file(f"findings/{name}.toml")
    if "card" in content:
        content["card"] = Card(**content["card"])
    return RecordFinding(name=name, **content)


FINDINGS = tuple(load_finding(name) for name in list_in_order("findings", "findings", ".toml"))


@dataclass(frozen=True, slots=True)
class FilledFinding:
    """The sentences of a finding with their figures, and the values that fill them."""

    statement: str
    figure: str
    objection: str
    values: Mapping[str, Any]


def fill_finding(connection: Connection, finding: RecordFinding) -> FilledFinding:
    """Fill the sentences of a finding.

    Raises TooFewRowsError where the record has no rows for them, or no longer says what they do.
    """
    rows = select_rows(connection, finding, "answer")
    if not rows:
        raise TooFewRowsError("the record does not say it", place=f"finding {finding.name}")
    [values] = rows
    return FilledFinding(
        statement=fill_text(finding, finding.statement, values),
        figure=fill_text(finding, finding.figure, values),
        objection=fill_text(finding, finding.objection, values),
        values=values,
    )


def fill_text(finding: RecordFinding, text: str, values: Mapping[str, Any]) -> str:
    """Fill one sentence. Raises TooFewRowsError for a null."""
    filled = fill_sentences(finding, text, values)
    if not filled:
        raise TooFewRowsError("a figure has no rows", place=f"finding {finding.name}")
    return filled[0]
