"""Tables in other layouts, cells in several elements, saved pages and e-mails, and deep nesting."""

from __future__ import annotations

import base64
import quopri

import pytest
from ipu_results.errors import DamagedDocumentError, DocumentTooLargeError
from ipu_results.record.normalise import normalise
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
    grids,
    list_results,
    make_document,
    page_html,
    read_page,
    row_html,
    table_html,
    table_page,
    training_page,
)

# --- tables in other layouts

PAIRS = list(zip(INFERENCE, [*UNET[:9], "1.4"], strict=True))


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
    blocks = [*TRAINING, *GPT2[:8], cell], [*OGB, *OGB_ROW]
    document = read_page(
        page_html(*("".join(f"<div>{text}</div>" for text in block) for block in blocks))
    )
    assert [(problem.reason, problem.locator) for problem in document.problems] == [
        ("unread-table", "before table 1"),
        ("unread-table", "before table 1, part 2"),
    ]


def test_prose_filters_and_column_names_around_a_table_are_no_problem() -> None:
    around = (
        "".join(f"<p>{name}</p>" for name in TRAINING[:5])
        + "<p>16 results for Bow Pod16, SDK 3.3</p>"
    )
    names = (
        "<dl>" + "".join(f"<dt>{name}</dt><dd>What it means.</dd>" for name in TRAINING) + "</dl>"
    )
    assert read_page(page_html(around, table_html(TRAINING, [GPT2]), names)).problems == ()


# --- cells


def test_one_cell_over_two_figures_rejects_its_row() -> None:
    rows = [
        row_html([*UNET[:8], text]).replace(f"<td>{text}", f'<td colspan="2">{text}')
        for text in ("9,801", "n/a")
    ]
    document = read_page(table_page(row_html(INFERENCE, "th"), *rows))
    assert grids(document) == {"bow_inference": [[*UNET[:8], "n/a", "n/a"]]}
    [problem] = document.problems
    assert (problem.row_number, problem.reason) == (1, "unread-cell")
    assert problem.message == "one cell spans 'Throughput (items/sec)' and 'Latency (ms)'"


def read_ogb(column: int, cell: str) -> ParsedDocument:
    row = [*OGB_ROW[:column], cell, *OGB_ROW[column + 1 :]]
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
    assert [
        read_ogb(6, cell).problems for cell in ("1<b>h</b>13<b>m</b>", "<b>1h</b> <b>13m</b>")
    ] == [(), ()]


def test_unit_that_is_wrapped_is_a_unit() -> None:
    header = [*TRAINING[:8], "Throughput\n(items/ sec)"]
    parsed = read_page(table_page(row_html(header, "th"), row_html(GPT2)))
    normalised = normalise(make_document("graphcore-performance"), parsed, WORDS)
    assert [result["throughput"] for result in list_results(normalised)] == [1590.0]


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
    page = (
        training_page([GPT2[0], "Größe\u00a0128", *GPT2[2:]])
        .decode()
        .replace('<meta charset="utf-8">', "")
    )
    body = ENCODE[encoding](page.encode(charset)).decode("latin-1")
    lines = SAVED.format(encoding=encoding, charset=charset, body=body)
    return lines.replace("\n", "\r\n").encode("latin-1")


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64", "8bit"])
@pytest.mark.parametrize("charset", ["utf-8", "windows-1252"])
def test_saved_page_is_decoded(encoding: str, charset: str) -> None:
    document = read_document(save_page(encoding, charset), WORDS.table_headers)
    assert_read(document, bow_training=[[GPT2[0], "Größe 128", *GPT2[2:]]])


WHOLE = save_page("8bit")
IMAGE = b"--B\r\nContent-Type: image"


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (save_page("quoted-printable").replace(b"=C3", b"=ZZ", 1), None),
        (save_page("base64").replace(b"--B--", b""), None),
        (save_page("base64")[:600], None),
        (WHOLE[:600], None),
        (save_page("base64").replace(b"Encoding: base64", b"Encoding: x", 1), None),
        (b"MIME-Version: 1.0\nContent-Type: text/plain\n\n<table>\n", "without an HTML part"),
        (
            WHOLE.replace(IMAGE, WHOLE[WHOLE.index(b"--B\r\n") : WHOLE.index(IMAGE)] + IMAGE),
            "2 pages",
        ),
    ],
)
def test_damaged_saved_page_or_message_without_one_page_is_refused(
    page: bytes, message: str | None
) -> None:
    with pytest.raises(DamagedDocumentError, match=message):
        read_document(page, WORDS.table_headers)


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
