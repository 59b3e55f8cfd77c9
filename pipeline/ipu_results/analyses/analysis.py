"""One question about the dataset: its views, the summary of their rows, their chart, and the page
of all questions.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ipu_results.ground.text import format_count

TITLE_CHARACTERS = 92  # of a line

Frames = Mapping[str, pd.DataFrame]
CONSIDERED = "considered"


@dataclass(frozen=True, slots=True)
class Analysis:
    """A question with its views and macros by name, the first one the answer.

    `summarise` and `build_chart` take the rows of the views by name. The summary is one paragraph
    or several, separated by blank lines, and each figure in it comes from the rows. The first
    paragraph is the finding, one sentence, which is also the title of the chart. The last `caveats`
    paragraphs say what the rows cannot show. `build_chart` also takes the module altair. The page,
    its previews and the documentation show every analysis that is built like this.

    `considered` is a condition on `measurements`: the rows that views choose from which hold usable
    ones alone. Whether each is usable is the frame CONSIDERED.
    """

    name: str
    question: str
    views: tuple[str, ...]
    summarise: Callable[[Frames], str]
    build_chart: Callable[[Any, Frames], Any]
    caveats: int = 1
    considered: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A summary in parts: the finding, one sentence; other figures; and caveats, a sentence each."""

    finding: str
    figures: tuple[str, ...]
    caveats: tuple[str, ...]


def split_summary(summary: str, caveats: int) -> Answer:
    """Split a summary, of which the last `caveats` paragraphs are caveats; no word is lost."""
    finding, *others = summary.split("\n\n")
    first, *more = split_sentences(finding)
    count = max(0, len(others) - caveats)
    figures = [" ".join(more), *others[:count]]
    sentences = [
        sentence for paragraph in others[count:] for sentence in split_sentences(paragraph)
    ]
    return Answer(first, tuple(filter(None, figures)), tuple(sentences))


def split_sentences(paragraph: str) -> list[str]:
    """Split a paragraph at each full stop that a capital follows."""
    return re.split(r"(?<=[^.A-Z]\.) (?=[A-Z0-9])", paragraph)


def set_title(specification: dict[str, Any], finding: str) -> dict[str, Any]:
    """Set the finding as the title of a chart; what the chart shows becomes the first line of its
    subtitle.
    """
    title = specification["title"]
    subtitle = [title["text"], *title.get("subtitle", [])]
    lines = textwrap.wrap(finding, TITLE_CHARACTERS)
    return {**specification, "title": {**title, "text": lines, "subtitle": subtitle}}


Record = dict[str, Any]

UNVERIFIED = "Computed from the logs by ipu-results, not verified by MLCommons Association."


def make_records(frame: pd.DataFrame, order: Sequence[str] = ()) -> list[Record]:
    """Convert rows to records, sorted by the columns of `order`: None for a missing value, integers
    where exact.
    """
    rows = frame.sort_values(list(order), kind="stable") if order else frame
    return [
        {str(name): _to_plain(value) for name, value in row.items()}
        for row in rows.to_dict("records")
    ]


def select_usable(frame: pd.DataFrame, **values: str) -> pd.DataFrame:
    """Select the usable rows that have these values, by column."""
    rows = frame[frame["usable"]]
    for column, value in values.items():
        rows = rows[rows[column] == value]
    return rows


def describe_left_out(rows: pd.DataFrame, noun: str = "row") -> str:
    """Describe how many of the rows are not usable; each analysis leaves them out."""
    return f"Left out as not usable: {format_count((~rows['usable']).sum(), noun)}."


def _to_plain(value: Any) -> Any:
    if pd.isna(value):
        return None
    plain = value.item() if hasattr(value, "item") else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def compute_mean(ratios: pd.Series) -> float:
    """Compute the geometric mean; NaN for no ratios."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if len(ratios) else math.nan


def describe_range(ratios: pd.Series) -> str:
    """Format the number of pairs and the ends of their ratios."""
    return (
        "one pair"
        if len(ratios) == 1
        else f"{len(ratios)} pairs, {ratios.min():.2f} to {ratios.max():.2f}"
    )


def format_percent(share: float) -> str:
    """Format a share as a whole percentage."""
    return f"{100 * share:.0f} %"


def format_chips(count: Any) -> str:
    """Format a number of chips: `1 chip`, `4 chips`."""
    return f"{count:.0f} chip{'s' * (count != 1)}"


def join_words(words: Iterable[str]) -> str:
    """Join words, each once: `a`, `a and b`, `a, b and c`."""
    *first, last = dict.fromkeys(words) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def join_cells(row: Mapping[str, Any], *columns: str) -> str:
    """Join the cells of a row that are not blank."""
    return ", ".join(str(row[name]) for name in columns if not pd.isna(row[name]))


def join_paragraphs(*paragraphs: Iterable[str]) -> str:
    """Join sentences to paragraphs, separated by a blank line; empty sentences and paragraphs are
    dropped.
    """
    texts = (" ".join(filter(None, sentences)) for sentences in paragraphs)
    return "\n\n".join(filter(None, texts))
