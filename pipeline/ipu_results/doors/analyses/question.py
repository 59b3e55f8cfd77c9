"""A question of the folder `schema`: statements that read the warehouse, and sentences that they
fill.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from string import Formatter
from types import MappingProxyType
from typing import Any, ClassVar

from ipu_results.errors import GateError
from ipu_results.kit.sql import Connection
from ipu_results.kit.statements import run_text

Values = dict[str, Any]
"""A row by column."""
Settings = Mapping[str, float]
LISTED: Settings = MappingProxyType({})  # every parameter has its default


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, and the statements that answer it by name, each of which may read those before
    it.

    The one row of `answer` fills the sentences.
    """

    folder: ClassVar[str]

    name: str
    question: str
    sql: Mapping[str, str]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters of its statements, which a reader may set."""
        return ()

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}.toml"


def select_rows(
    connection: Connection,
    question: Question,
    name: str,
    settings: Settings = LISTED,
) -> list[Values]:
    """Return the rows of one statement, with integers where a number is one."""
    before = []
    for other, statement in question.sql.items():
        if other == name:
            break
        before.append(f"{other} AS ({statement})")
    sql = question.sql[name]
    if before:
        sql = f"WITH {', '.join(before)} {sql}"
    parameters = {each: settings.get(each) for each in question.parameters}
    place = f"{question.path}, {name}"
    rows: list[Values] = run_text(connection, place, sql, parameters).to_pylist()
    for row in rows:
        for column, value in row.items():
            row[column] = _to_plain(value)
    return rows


def _to_plain(value: Any) -> Any:
    """Return an integer where a number is one, so that a sentence has no `.0`."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def fill_sentences(question: Question, text: str, values: Mapping[str, Any]) -> list[str]:
    """Fill the sentences of each paragraph; one that names a null is left out.

    Raises GateError that names the file, for a placeholder that is no column.
    """
    paragraphs = []
    for paragraph in text.strip().split("\n\n"):
        filled = []
        for sentence in paragraph.splitlines():
            names = [name for _, name, _, _ in Formatter().parse(sentence) if name]
            try:
                used = [Formatter().get_field(name, (), values)[0] for name in names]
            except LookupError as error:
                message = f"no column of its answer is {error}, which a sentence names"
                raise GateError(message, place=f"schema/{question.path}") from error
            except TypeError:  # a part of a null
                used = [None]
            if None not in used:
                filled.append(sentence.format_map(values))
        paragraphs.append(" ".join(filled))
    return [paragraph for paragraph in paragraphs if paragraph]
