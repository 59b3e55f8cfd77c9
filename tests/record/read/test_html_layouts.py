"""Tables in other layouts, cells in several elements, saved pages and e-mails, and deep nesting."""

from __future__ import annotations

import base64
import quopri

import pytest
from ipu_results.errors import DamagedDocumentError, DocumentTooLargeError
from ipu_results.record.read import ParsedDocument
from ipu_results.record.read.dispatch import read_document

from tests.record.normalise.test_decimal_marks import OGB_ROW
from tests.record.read.reading_support import (
    GPT2,
    INFERENCE,
    OGB,
    RESNET,
    TRAINING,
    UNET,
    WORDS,
    assert_read,
    assert_told,
    grids,
    page_html,
    problems,
    read_page,
    row_html,
    table_html,
    table_page,
    training_page,
    with_cell,
)

# --- tables in other layouts

PAIRS = list(zip(INFERENCE, with_cell(UNET, 9, "1.4"), strict=True))


@pytest.mark.parametrize(
    "block",
    [
        "".join(f"<div><span>{name}</span><span>{text}</span></div>" for name, text in PAIRS),
        "".join(f"<div>{text}</div>" for text in [*INFERENCE, *UNET[:9], "1.4"]),
        "<dl>" + "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in PAIRS) + "</dl>",
        "<table>" + "".join(row_html([name, text, text]) for name, text in PAIRS) + "</table>",
        "<ul>" + "".join(f"<li>{text}</li>" for text in GPT2) + "</ul>",
    ],
)
def test_block_that_looks_like_a_known_table_is_a_problem(block: str) -> None:
    document = read_page(page_html(table_html(TRAINING, [RESNET]), block))
    assert grids(document) == {"bow_training": [RESNET]}
    [problem] = document.problems
    assert problem.reason == "unread-table"
    assert problem.locator in ("after table 1", "table 2")


def test_each_table_of_a_block_is_reported() -> None:
    cell = "<table><tr><td>1,590</td></tr></table>"
    texts = [*TRAINING, *GPT2[:8], cell, *OGB, *OGB_ROW]
    document = read_page(page_html(*(f"<div>{text}</div>" for text in texts)))
    assert problems(document) == ["unread-table"] * 2
    places = [problem.locator for problem in document.problems]
    assert places == ["before table 1", "before table 1, part 2"]


def test_prose_filters_and_column_names_around_a_table_are_no_problem() -> None:
    filters = [f"<p>{name}</p>" for name in TRAINING[:5]]
    found = "<p>16 results for Bow Pod16, SDK 3.3</p>"
    names = [f"<dl><dt>{name}</dt><dd>What it means.</dd></dl>" for name in TRAINING]
    page = page_html(*filters, found, table_html(TRAINING, [GPT2]), *names)
    assert read_page(page).problems == ()


# --- cells


def test_one_cell_over_two_figures_rejects_its_row() -> None:
    wide = row_html([*UNET[:8], "9,801"]).replace("<td>9", "<td colspan=2>9")
    page = table_page(row_html(INFERENCE, "th"), wide, wide.replace("9,801", "n/a"))
    document = read_page(page)
    assert_told(
        document, ["bow_inference 1 unread-cell"], bow_inference=[[*UNET[:8], "n/a", "n/a"]]
    )
    message = "one cell spans 'Throughput (items/sec)' and 'Latency (ms)'"
    assert document.problems[0].message == message


def read_ogb(column: int, cell: str) -> ParsedDocument:
    row = with_cell(OGB_ROW, column, cell)
    return read_page(table_page(row_html(OGB, "th"), row_html(row)))


@pytest.mark.parametrize(
    ("text", "metric"), [("MAE", "MAE"), ("F<sub>1</sub>", "F1"), ("AP<sub>50</sub>", "AP50")]
)
def test_mark_is_no_part_of_the_name_of_a_metric(text: str, metric: str) -> None:
    for mark in ("", "<sup>7</sup>"):
        assert grids(read_ogb(7, f"0.0719 {text}{mark}"))["ogb_lsc"][0][7] == f"0.0719 {metric}"
    for mark in ("<sub>7</sub>", "<small>7</small>", "<i>12</i>"):
        assert grids(read_ogb(7, f"0.0719 MAE{mark}")) == {}


def test_duration_in_several_elements_is_read() -> None:
    for cell in ("1<b>h</b>13<b>m</b>", "<b>1h</b> <b>13m</b>"):
        assert read_ogb(6, cell).problems == ()


# --- saved pages and e-mails


ENCODE = {"quoted-printable": quopri.encodestring, "base64": base64.encodebytes, "8bit": bytes}
SAVED = """\
From: <Saved by Blink>
MIME-Version: 1.0
Content-Type: multipart/related;
 boundary=B

--B
Content-Type: text/html; charset={charset}
Content-Transfer-Encoding: {encoding}

{body}
--B
Content-Type: image/png
Content-Transfer-Encoding: base64

iVBO
--B--
"""


def save_page(encoding: str, charset: str = "utf-8") -> bytes:
    page = training_page([GPT2[0], "Größe\u00a0128", *GPT2[2:]]).decode()
    page = page.replace('<meta charset="utf-8">', "")
    body = ENCODE[encoding](page.encode(charset)).decode("latin-1")
    lines = SAVED.format(encoding=encoding, charset=charset, body=body)
    return lines.replace("\n", "\r\n").encode("latin-1")


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64", "8bit"])
@pytest.mark.parametrize("charset", ["utf-8", "windows-1252"])
def test_saved_page_is_decoded(encoding: str, charset: str) -> None:
    document = read_document(save_page(encoding, charset), WORDS.table_headers)
    assert_read(document, bow_training=[[GPT2[0], "Größe 128", *GPT2[2:]]])


@pytest.mark.parametrize(
    ("encoding", "old", "new"),
    [
        ("quoted-printable", b"=C3", b"=ZZ"),
        ("base64", b"--B--", b""),
        ("base64", b"Encoding: base64", b"Encoding: x"),
    ],
)
def test_damaged_saved_page_is_refused(encoding: str, old: bytes, new: bytes) -> None:
    page = save_page(encoding)
    for damaged in (page.replace(old, new, 1), page[:600]):
        with pytest.raises(DamagedDocumentError):
            read_document(damaged, WORDS.table_headers)


def test_message_without_one_page_is_refused() -> None:
    page = save_page("8bit")
    image = b"--B\r\nContent-Type: image"
    part = page[page.index(b"--B\r\n") : page.index(image)]
    with pytest.raises(DamagedDocumentError, match="2 pages"):
        read_document(page.replace(image, part + image), WORDS.table_headers)
    message = b"MIME-Version: 1.0\nContent-Type: text/plain\n\n<table>\n"
    with pytest.raises(DamagedDocumentError, match="without an HTML part"):
        read_document(message, WORDS.table_headers)


# --- damage and size


def test_page_with_the_end_of_its_body_only_is_whole() -> None:
    page = training_page(GPT2).replace(b"</html>", b"")
    assert_read(read_page(page), bow_training=[GPT2])
    with pytest.raises(DamagedDocumentError, match="ends in the middle"):
        read_page(page.replace(b"</body>", b""))


@pytest.mark.parametrize(
    "nested", ["<table><tr><td>" * 50_000, "<table>" + "<div>" * 50_000 + "<tr><td>x" * 10]
)
def test_deeply_nested_page_is_refused_at_once(nested: str) -> None:
    with pytest.raises(DocumentTooLargeError, match="deep"):
        read_page(page_html(nested))
