"""Words near a table that change what its figures mean: a person signs them before a build."""

from __future__ import annotations

import re

import msgspec
import pytest
from ipu_results.errors import (
    DamagedDocumentError,
    UnsignedContextError,
)
from ipu_results.record.check.conservation import check_signature
from ipu_results.record.normalise import normalise
from ipu_results.record.read.context import digest_context
from ipu_results.record.read.dispatch import read_document
from ipu_results.record.read.document import ParsedDocument
from ipu_results.record.sources.catalogue import SUBMISSION

from tests.cases import read_cases
from tests.record.read.pdf_support import place_rows, set_texts
from tests.record.read.reading_support import (
    GPT2,
    RESNET,
    TRAINING,
    WORDS,
    list_results,
    make_document,
    page_html,
    row_html,
    table_html,
    training_page,
)

PAGE = "performance-page"
PAPER = "inference-paper"
CSV = "comparators"
PLAIN = table_html(TRAINING, [GPT2, RESNET])
CASES = read_cases(__file__)
WORDINGS = CASES["wordings"]
PAGES = CASES["pages"]
HALF = "Batch per chip: half of the batch size"


def read(kind: str, data: bytes) -> ParsedDocument:
    return read_document(data, WORDS.table_headers, kind)


def refuse(kind: str, parsed: ParsedDocument) -> str:
    """Check that a document is refused, and read once it is signed; return the words to be signed."""
    assert parsed.tables
    with pytest.raises(UnsignedContextError, match=re.escape(parsed.context[0].text)):
        check_signature(make_document(kind), parsed)
    signature = {"context": digest_context(parsed.context), "means": "as printed"}
    signature["decimal_mark"] = "point"
    signed = msgspec.structs.replace(make_document(kind), **signature)
    check_signature(signed, parsed)
    assert list_results(normalise(signed, parsed, WORDS))
    return "\n".join(text for _, text in parsed.context)


def build_page(place: str, words: str) -> bytes:
    """Put words near a table of a page."""
    rows = {"head": row_html(TRAINING, "th"), "row": row_html(GPT2), "other": row_html(RESNET)}
    return page_html(PAGES[place].format(words=words, table=PLAIN, **rows))


@pytest.mark.parametrize("place", PAGES)
def test_words_anywhere_on_a_page_are_refused_until_they_are_signed(place: str) -> None:
    for words in WORDINGS:
        page = read(PAGE, build_page(place, words))
        if page.tables:
            assert words in refuse(PAGE, page)
        else:  # a scale under the header
            assert page.problems


@pytest.mark.parametrize("words", WORDINGS)
def test_words_of_text_and_pdf_are_refused_until_they_are_signed(words: str) -> None:
    lines = [words, "", " | ".join(TRAINING), " | ".join(GPT2)]
    assert words in refuse(PAGE, read(PAGE, "\n".join(lines).encode()))
    if words.isascii():
        cells = [("Batch size", "Throughput (images/second)"), ("8", "6.25"), ("16", "12.5")]
        setup = ("Platform: C2", "Chips: 2", "Model: ResNeXt101", HALF)
        grid = place_rows(680, cells, (100, 190), pitch=12)
        facts = place_rows(600, [(fact,) for fact in setup], (100,), pitch=12)
        page = set_texts([(100, 720, words), *grid, *facts])
        assert words in refuse(PAPER, read(PAPER, page))


def build_csv(**changed: str) -> bytes:
    """Write a figure of a comparator; a name of `header` stands for that of the column of values."""
    header = WORDS.header_of(CSV, "independent_results").names
    cells = {"model": "ResNet-50", "task": "training", "platform": "Bow-2000", "chip_count": "4"}
    cells |= {"batch_size": "8", "metric": "throughput", "unit": "images/s", "value": "5"}
    cells |= {"place": "page 1", **changed}
    names = ",".join(header).replace("value", cells.get("header", "value"))
    row = ",".join(cells.get(name, "") for name in header)
    return f"{names}\n{row}\n".encode()


def test_columns_and_conditions_of_a_csv_are_refused_until_they_are_signed() -> None:
    scaled = read(CSV, build_csv(header="value (k)"))
    assert ("independent_results, header", "value (k)") in scaled.context
    twice = "states a unit, which the column of units does too"
    with pytest.raises(DamagedDocumentError, match=twice):
        list(normalise(make_document(CSV), scaled, WORDS).converted)
    for words in ("x1000", *WORDINGS):
        texts = [text for _, text in read(CSV, build_csv(conditions=f"two hosts; {words}")).context]
        assert {"two hosts", words} <= set(texts)
    assert "x1000" in refuse(CSV, read(CSV, build_csv(conditions="x1000")))


def test_page_without_words_needs_no_signature_and_a_changed_one_a_new_one() -> None:
    untitled = page_html("<h2>Training results</h2>", PLAIN).replace(b"<title>t</title>", b"")
    places = {words.place for words in read(PAGE, untitled).context}
    assert places == {"bow_training, header", "bow_training, Variant"}
    before = read(PAGE, page_html("<p>On 2 hosts.</p>", PLAIN)).context
    marked = read(PAGE, page_html("<p>On <b>2</b>\n hosts.</p>", PLAIN)).context
    assert digest_context(marked) == digest_context(before)
    after = read(PAGE, page_html("<p>On 3 hosts.</p>", PLAIN))
    document = make_document(PAGE)
    signed = msgspec.structs.replace(document, context=digest_context(before), means="m")
    with pytest.raises(UnsignedContextError, match="no longer those that the sidecar signs"):
        check_signature(signed, after)
    check_signature(msgspec.structs.replace(document, kind=SUBMISSION), after)


def print_figure(figure: str, old: bytes = b"", new: bytes = b"") -> ParsedDocument:
    """Read a page with one throughput and another text in its markup."""
    page = training_page([*GPT2[:6], "8", "16.16", figure])
    assert old in page
    return read(PAGE, page.replace(old, new, 1))


@pytest.mark.parametrize(
    ("mark", "figure", "values"),
    [
        ("comma", "9.801", [9801.0]),
        ("point", "9.801", [9.801]),
        ("comma", "9,801", [9.801]),
        (None, "9.801", []),
    ],
)
def test_person_decides_the_mark_of_a_page_in_a_language_with_decimal_commas(
    mark: str | None, figure: str, values: list[float]
) -> None:
    document = msgspec.structs.replace(make_document(PAGE), decimal_mark=mark)
    page = print_figure(figure, b"lang='en'", b"lang='de'")
    results = list_results(normalise(document, page, WORDS))
    assert [result["throughput"] for result in results] == values


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"<html", b"<html xml:lang='de'"),
        (b"<head>", b"<head><meta http-equiv='Content-Language' content='de'>"),
        (b"<head>", b"<head><meta property='og:locale' content='de_DE'>"),
        (b"<table", b"<div lang='de'><div><table"),  # any part around a table counts
    ],
)
def test_page_declares_its_language_in_several_places(old: bytes, new: bytes) -> None:
    assert print_figure("9.801", old, new).language.startswith("de")


@pytest.mark.parametrize("language", [b"und", b"x"])
def test_no_language_is_no_proof_of_a_point(language: bytes) -> None:
    page = print_figure("9,801", b"lang='en'", b"lang='%s'" % language)
    assert list_results(normalise(make_document(PAGE), page, WORDS)) == []
