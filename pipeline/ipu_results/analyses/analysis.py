"""One question about the dataset: the views that answer it, the summary of their rows, and their chart."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

TITLE_CHARACTERS = 92  # of a line

Frames = Mapping[str, pd.DataFrame]


@dataclass(frozen=True, slots=True)
class Analysis:
    """A question with its views and macros by name, the first one the answer.

    `summarise` and `build_chart` take the rows of the views by name. The summary is one paragraph or several, separated
    by blank lines, and each figure in it comes from the rows. The first paragraph is the finding, one sentence, which
    is also the title of the chart. The last `caveats` paragraphs say what the rows cannot show. `build_chart` also
    takes the module altair. The page, its previews and the documentation show every analysis that is built like this.
    """

    name: str
    question: str
    views: tuple[str, ...]
    summarise: Callable[[Frames], str]
    build_chart: Callable[[Any, Frames], Any]
    caveats: int = 1


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
    sentences = [sentence for paragraph in others[count:] for sentence in split_sentences(paragraph)]
    return Answer(first, tuple(filter(None, figures)), tuple(sentences))


def split_sentences(paragraph: str) -> list[str]:
    """Split a paragraph at each full stop that a capital follows."""
    return re.split(r"(?<=[^.A-Z]\.) (?=[A-Z0-9])", paragraph)


def set_title(specification: dict[str, Any], finding: str) -> dict[str, Any]:
    """Set the finding as the title of a chart; what the chart shows becomes the first line of its subtitle."""
    title = specification["title"]
    subtitle = [title["text"], *title.get("subtitle", [])]
    lines = textwrap.wrap(finding, TITLE_CHARACTERS)
    return {**specification, "title": {**title, "text": lines, "subtitle": subtitle}}
