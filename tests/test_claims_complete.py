"""None left out: every number of the three texts without tables belongs to a claim or to a named reason.

`tests/data/claims_numbers.csv` has one line per number in the order of the text, with the claim that holds it or why it
is none. The texts are not part of the repository: without them these tests are skipped.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.numbers_support import numbers

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = ROOT / "raw" / "claims"
SOURCES = ROOT.parent / "shared" / "sources"
TOLD = ROOT / "tests" / "data" / "claims_numbers.csv"
PROSE = ("graphcore-mk2-blog-2020-12-09", "graphcore-mk2-charts-sdk-1.4", "graphcore-mlperf-v1.0-blog-2021-06-30")
TEXTS = {
    **{document: f"{document}.txt" for document in PROSE},
    "graphcore-performance-2023-07-04": "graphcore-performance-results-2023-07-04.txt",
    "qwant-c2-report-2020-02-28": "qwant-c2-report-arxiv-2002.11670.txt",
}
HOLDING = (  # the figure and the conditions
    *("figure", "claim", "subject", "baseline", "model", "unit"),
    *("sdk_version", "precision", "batch", "framework", "dataset"),
)
RUN = 8  # words in a row that would be the source's prose and not ours

pytestmark = pytest.mark.skipif(not SOURCES.is_dir(), reason="the shared sources are not here")

Row = Mapping[str, str]


def read(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def claims() -> dict[str, Row]:
    """The claims of the three texts by id."""
    return {row["claim_id"]: row for document in PROSE for row in read(CLAIMS / f"{document}.csv")}


def text(document: str) -> str:
    return (SOURCES / TEXTS[document]).read_text(encoding="utf-8")


def held(claim: Row, columns: Sequence[str] = HOLDING) -> set[str]:
    """The numbers that a claim's own columns hold."""
    return {token for column in columns for _, token in numbers(claim[column])}


def left_out(document: str, content: str, known: Mapping[str, Row]) -> list[str]:
    """What in a text is neither held by a claim nor told to be none, and claims that the table names in vain."""
    told = [row for row in read(TOLD) if row["document_id"] == document]
    found = list(numbers(content))
    if [token for _, token in found] != [row["token"] for row in told]:
        return [f"{document}: the numbers of the text are not those of {TOLD.name}"]
    problems = []
    for (line, token), row in zip(found, told, strict=True):
        name, why = row["claim_id"], row["why"]
        if bool(name) == bool(why):
            problems.append(f"{document}:{line}: {token} needs a claim or a reason")
        elif name and name not in known:
            problems.append(f"{document}:{line}: {token} belongs to {name}, which is no claim")
        elif name and token not in held(known[name]):
            problems.append(f"{document}:{line}: {token} is not in {name}")
    return problems


@pytest.mark.parametrize("document", PROSE)
def test_every_number_is_a_claim_or_told_to_be_none(document: str) -> None:
    assert not left_out(document, text(document), claims())


@pytest.mark.parametrize("document", PROSE)
def test_a_claim_that_is_dropped_is_reported(document: str) -> None:
    known = claims()
    bearing = [row["claim_id"] for row in read(CLAIMS / f"{document}.csv") if held(row, ["figure"])]
    assert len(bearing) > 15
    for name in bearing:
        rest = {claim_id: row for claim_id, row in known.items() if claim_id != name}
        assert any(f"belongs to {name}," in problem for problem in left_out(document, text(document), rest)), name


@pytest.mark.parametrize("document", PROSE)
def test_a_figure_that_is_changed_is_reported(document: str) -> None:
    known = claims()
    rows = read(CLAIMS / f"{document}.csv")
    figures = [held(row, ["figure"]) for row in rows]
    others = [column for column in HOLDING if column != "figure"]
    unique = [
        row
        for row, figure in zip(rows, figures, strict=True)
        if figure and figures.count(figure) == 1 and not figure & held(row, others)
    ]
    assert len(unique) > 8
    for row in unique:
        changed = {**known, row["claim_id"]: {**row, "figure": "0.123"}}
        assert any(f"is not in {row['claim_id']}" in problem for problem in left_out(document, text(document), changed))


def test_a_number_more_in_the_text_is_reported() -> None:
    document = PROSE[0]
    content = text(document).replace("2.6x more", "2.6x and 9.9x more")
    assert content != text(document)
    assert left_out(document, content, claims())


@pytest.mark.parametrize("document", TEXTS)
def test_figures_are_printed_and_words_are_ours(document: str) -> None:
    """Each figure stands in its text; no claim, reading or reason has a sentence of it."""
    content = " ".join(text(document).split()).lower()
    words = re.findall(r"[\w.$%-]+", content)
    runs = {tuple(words[start : start + RUN]) for start in range(len(words))}
    for row in read(CLAIMS / f"{document}.csv"):
        assert row["figure"].lower() in content, row["claim_id"]
        for column in ("claim", "interpretation", "not_recomputable"):
            ours = re.findall(r"[\w.$%-]+", row[column].lower())
            copied = [run for run in (tuple(ours[at : at + RUN]) for at in range(len(ours) - RUN + 1)) if run in runs]
            assert not copied, (row["claim_id"], copied)
