"""Completeness: every number of the three texts without tables belongs to a claim or has a reason
why it does not.

`tests/data/claims_numbers.csv` has one line per number in the order of the text, with the claim
that holds it or the reason. The texts are not part of the repository: without them these tests are
skipped.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import RAW, ROOT

CLAIMS = RAW / "claims"
SOURCES = ROOT.parent / "shared" / "sources"
NUMBERS = ROOT / "tests" / "data" / "claims_numbers.csv"
PROSE = (
    "graphcore-mk2-blog-2020-12-09",
    "graphcore-mk2-charts-sdk-1.4",
    "graphcore-mlperf-v1.0-blog-2021-06-30",
)
TEXTS = {
    **{document: f"{document}.txt" for document in PROSE},
    "graphcore-performance-2023-07-04": "graphcore-performance-results-2023-07-04.txt",
    "qwant-c2-report-2020-02-28": "qwant-c2-report-arxiv-2002.11670.txt",
}
CONDITIONS = (
    "claim subject baseline model unit sdk_version precision batch framework dataset".split()
)
MAX_COPIED = 7  # words in a row that may also be in the source
NAMES = re.compile(  # names with digits, which are not numbers
    r"""<img[^>]*> | https?://\S+ | IPU-M2000s? | IPU-POD\d+ | A100(?:-SXM4)? | MK2 | ImageNet2012 | Series1
    | ResNet-?50 | ResNeXt-101(?:_32x4d)? | (?:EfficientNet|EN)-?B\d | Deep\ ?Voice\ ?3 | 32-bit""",
    re.VERBOSE | re.IGNORECASE,
)
TOKEN = re.compile(  # figures with an attached unit, and number words
    r"""(?:\d{1,3}(?:,\d{3})+(?!\d) | \d+(?:\.\d+)*(?:-\d+)?) (?:(?:x|U|GB|st|%)(?![a-z0-9]))?
    | (?<![a-z-]) (?: one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred
    |thousands?|million|half|quarter|single|both|dual|twice|orders ) (?![a-z])""",
    re.VERBOSE | re.IGNORECASE,
)

pytestmark = pytest.mark.skipif(
    not SOURCES.is_dir(), reason="the source texts are not on this machine"
)

Row = Mapping[str, str]


def read_rows(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_claims() -> dict[str, Row]:
    """Return the claims of the three texts by id."""
    claims = {}
    for document in PROSE:
        for row in read_rows(CLAIMS / f"{document}.csv"):
            claims[row["claim_id"]] = row
    return claims


def read_text(document: str) -> str:
    return (SOURCES / TEXTS[document]).read_text(encoding="utf-8")


def list_numbers(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and token of each number in the order of the text, in lower case."""
    for line, content in enumerate(text.splitlines(), start=1):
        for match in TOKEN.finditer(NAMES.sub(" ", content)):
            yield line, match[0].lower()


def get_numbers(claim: Row) -> set[str]:
    """Return the numbers in the figure and the conditions of a claim."""
    text = " | ".join(claim[column] for column in ("figure", *CONDITIONS))
    return {token for _, token in list_numbers(text)}


def find_problems(document: str, text: str, known: Mapping[str, Row]) -> list[str]:
    """Return the numbers with neither a claim nor a reason, and those that their claim does not
    hold.
    """
    rows = [row for row in read_rows(NUMBERS) if row["document_id"] == document]
    numbers = list(list_numbers(text))
    if [token for _, token in numbers] != [row["token"] for row in rows]:
        return [f"{document}: the numbers of the text are not those of {NUMBERS.name}"]
    problems = []
    for (line, token), row in zip(numbers, rows, strict=True):
        name, reason = row["claim_id"], row["why"]
        if bool(name) == bool(reason):
            problems.append(f"{document}:{line}: {token} needs a claim or a reason")
        elif name and name not in known:
            problems.append(f"{document}:{line}: {token} belongs to {name}, which is not a claim")
        elif name and token not in get_numbers(known[name]):
            problems.append(f"{document}:{line}: {token} is not in {name}")
    return problems


@pytest.mark.parametrize("document", PROSE)
def test_every_number_has_a_claim_or_a_reason(document: str) -> None:
    assert not find_problems(document, read_text(document), read_claims())


@pytest.mark.parametrize("document", TEXTS)
def test_figures_are_printed_and_words_are_ours(document: str) -> None:
    """Find each figure in its text, and no sentence of it in a claim, interpretation or reason."""
    text = " ".join(read_text(document).split()).lower()
    words, length = re.findall(r"[\w.$%-]+", text), MAX_COPIED + 1
    runs = {tuple(words[start : start + length]) for start in range(len(words))}
    for row in read_rows(CLAIMS / f"{document}.csv"):
        assert row["figure"].lower() in text, row["claim_id"]
        for column in ("claim", "interpretation", "not_recomputable"):
            ours = re.findall(r"[\w.$%-]+", row[column].lower())
            copied = {tuple(ours[at : at + length]) for at in range(len(ours) - length + 1)} & runs
            assert not copied, (row["claim_id"], copied)
