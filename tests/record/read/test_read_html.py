"""Tables from HTML: the committed page cell by cell, the ways to write a table, and every kind of
damage.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import DamagedDocumentError, DocumentError, UnrecognisedDocumentError

from tests.cases import every_case
from tests.record.read.reading_support import (
    GPT2,
    INFERENCE,
    PAGE,
    RESNET,
    TRAINING,
    UNET,
    Tables,
    assert_read,
    assert_told,
    grids,
    page_html,
    page_tables,
    read_page,
    row_html,
    table_html,
    table_page,
    texts,
    training_page,
    with_cell,
)

COMMITTED = PAGE.read_bytes()


def without(row: Sequence[str], column: int) -> list[str]:
    return [*row[:column], *row[column + 1 :]]


def read_cell(cell: str, header: str = "Throughput (items/sec)") -> tuple[str, str]:
    """Read a row with one cell written as `cell`; return its text and its footnote mark."""
    column = TRAINING.index(header)
    document = read_page(training_page(with_cell(GPT2, column, cell)))
    assert document.problems == ()
    [row] = document.tables[0].rows
    assert without(row.cells, column) == without(GPT2, column)
    marks = dict(row.footnotes)
    assert set(marks) <= {column}
    return row.cells[column], marks.get(column, "")


# --- text of a cell


@every_case(__file__, "figure")
def test_figure_of_a_cell_and_its_footnote_mark(cell: str, text: str, mark: str) -> None:
    assert read_cell(cell) == (text, mark)


@every_case(__file__, "label")
def test_text_of_a_label(cell: str, text: str) -> None:
    assert read_cell(cell, "Variant") == (text, "")
    assert read_cell("GPT2<sup>3</sup>", "Model") == ("GPT2", "3")
    assert read_cell("<b>" * 1000 + "x", "Variant") == ("x", "")


@pytest.mark.parametrize(
    "cell",
    ["1,590<sub>2</sub>", '1,590<a href="#fn">2</a>', "1,590<span>2</span>", "1,590<sup>100</sup>"],
)
def test_digits_of_two_elements_are_never_one_figure(cell: str) -> None:
    assert " " in read_cell(cell)[0]


# --- ways to write a table

HEAD = row_html(TRAINING, "th")
ROW = row_html(GPT2)
OTHER = row_html(RESNET)
PARTS = {
    "head": HEAD,
    "gpt2": ROW,
    "resnet": OTHER,
    "head of inference": row_html(INFERENCE, "th"),
    "unet": row_html(UNET),
}
ROWS = {"gpt2": GPT2, "resnet": RESNET, "unet": UNET}


@every_case(__file__, "way")
def test_every_way_to_write_a_table_is_read(markup: str, names: list[str]) -> None:
    document = read_page(table_page(markup.format_map(PARTS)))
    read = [row for table in grids(document).values() for row in table]
    assert read == [ROWS[name] for name in names]
    assert document.problems == ()


def test_spanned_cells_are_repeated() -> None:
    wide = '<tr><td rowspan="3">GPT2</td><td colspan="2" rowspan="2">Bow Pod16</td>'
    rows = [row_html(GPT2[3:]).replace("<tr>", wide), row_html(RESNET[3:]), row_html(GPT2[1:])]
    repeated = ["GPT2", "Bow Pod16", "Bow Pod16"]
    expected = [[*repeated, *GPT2[3:]], [*repeated, *RESNET[3:]], GPT2]
    assert_read(read_page(table_page(HEAD, *rows)), bow_training=expected)


def test_columns_may_be_in_another_order() -> None:
    page = table_page(row_html(TRAINING[::-1], "th"), row_html(GPT2[::-1]))
    assert_read(read_page(page), bow_training=[GPT2[::-1]])


def test_footnote_of_a_spanned_cell_is_repeated() -> None:
    first = row_html(GPT2).replace("<td>GPT2</td>", '<td rowspan="2">GPT2<sup>1</sup></td>')
    document = read_page(table_page(HEAD, first, row_html(GPT2[1:])))
    for row in document.tables[0].rows:
        assert (row.cells[0], row.footnotes) == ("GPT2", ((0, "1"),))


@every_case(__file__, "damage")
def test_damage_is_a_problem_and_the_other_rows_are_kept(
    markup: str, told: list[str], message: str | None
) -> None:
    document = read_page(table_page(markup.format_map(PARTS)))
    assert_told(document, told, bow_training=[GPT2])
    if message:
        assert document.problems[0].message == message


@pytest.mark.parametrize("above", [[], [["Training"] * 9], [["x"], [""] * 9]])
def test_rows_above_the_header_are_told_as_they_were_printed(above: list[list[str]]) -> None:
    lost = map(row_html, [*above, GPT2, RESNET])
    document = read_page(table_page(*lost, HEAD, ROW))
    assert_told(document, ["unknown-header"], bow_training=[GPT2])
    assert document.problems[0].raw == tuple(GPT2)


@pytest.mark.parametrize("span", ["1000000000", "-4", "²"])
def test_absurd_spans_are_limited_and_not_a_row(span: str) -> None:
    wide = f'<tr><td colspan="{span}" rowspan="{span}">x</td></tr>' * 50
    document = read_page(training_page(GPT2).replace(b"</table>", wide.encode() + b"</table>"))
    assert grids(document) == {"bow_training": [GPT2]}
    assert {problem.reason for problem in document.problems} == {"row-width"}
    assert max(len(problem.raw) for problem in document.problems) <= 1100


PLAIN = training_page(GPT2)
MARKS = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_byte_order_mark_says_the_encoding(encoding: str) -> None:
    page = MARKS.get(encoding, b"") + PLAIN.decode().encode(encoding)
    assert_read(read_page(page), bow_training=[GPT2])


@pytest.mark.parametrize("name", [b"BATCH-size", b"Batch&nbsp; Size", b"Batch Size<sup>1</sup>"])
def test_header_written_otherwise_is_the_same(name: bytes) -> None:
    page = b"<!-- <table><html> -->" + PLAIN.replace(b"Batch Size", name)
    assert_read(read_page(page), bow_training=[GPT2])


def test_declared_latin_1_is_read_as_browsers_do() -> None:
    page = training_page([GPT2[0], "Ré\x96seau", *GPT2[2:]]).decode()
    data = page.replace("utf-8", "iso-8859-1").encode("latin-1")
    assert grids(read_page(data))["bow_training"][0][1] == "Ré–seau"


NOT_TEXT = PLAIN.replace(b"<title>", b"<title>\xe9\\d\xff")
CUT = PLAIN.partition(b"</tr>")[0]


@pytest.mark.parametrize("charset", [b"utf-8", b"punycode", b"hex", b"no-such", b"undefined"])
def test_page_in_no_encoding_of_pages_is_refused(charset: bytes) -> None:
    with pytest.raises(DamagedDocumentError, match="encoding"):
        read_page(NOT_TEXT.replace(b"utf-8", charset))


@pytest.mark.parametrize("tag", [b"<style>", b"<title>", b"<textarea>", b"<iframe>"])
def test_element_that_swallows_a_table_is_told(tag: bytes) -> None:
    page = PLAIN.replace(b"<body>", b"<body><table><tr><td>1</td></tr></table>" + tag)
    with pytest.raises(DamagedDocumentError, match="hides 1 of"):
        read_page(page)


@pytest.mark.parametrize("end", [b"<!-- </table></html>", b"<script>'</table></html>'"])
def test_page_that_ends_in_the_middle_is_refused(end: bytes) -> None:
    with pytest.raises(DamagedDocumentError, match="ends in the middle"):
        read_page(CUT + end)


def test_many_open_comments_are_refused() -> None:
    with pytest.raises(DamagedDocumentError):
        read_page(b"<html>" + b"<!--<script " * 30_000 + PLAIN)


@pytest.mark.parametrize("body", ["<h1>503 Service Unavailable</h1>", "<table><tr><td>x</table>"])
def test_page_without_a_known_table_is_not_recognised(body: str) -> None:
    with pytest.raises(UnrecognisedDocumentError):
        read_page(page_html(body))


@pytest.mark.parametrize("name", ["Data set", "Model", "", "Dataset 2"])
def test_renamed_repeated_or_nameless_column_is_a_problem_of_the_table(name: str) -> None:
    assert "'Dataset'" in refuse_header(with_cell(TRAINING, 5, name), GPT2)
    message = refuse_header([*TRAINING, ""], [*GPT2, ""])
    assert "the header has a column without a name" in message


def refuse_header(header: list[str], row: list[str]) -> str:
    """Check that a table is not read, and the one before it is; return why."""
    document = read_page(page_html(table_html(INFERENCE, [UNET]), table_html(header, [row])))
    assert_told(document, ["unknown-header"], bow_inference=[UNET])
    assert document.problems[0].locator == "table 2"
    return document.problems[0].message


@pytest.mark.parametrize("row", [GPT2[:-1], [*GPT2, "7"], GPT2[1:], ["x"]])
def test_row_too_short_or_too_long_is_a_problem_and_the_others_are_kept(row: list[str]) -> None:
    document = read_page(training_page(RESNET, row, GPT2))
    assert_told(document, ["bow_training 2 row-width"], bow_training=[RESNET, GPT2])
    assert [row.number for row in document.tables[0].rows] == [1, 3]
    [problem] = document.problems
    assert problem.locator == "table 1, row 2"
    assert list(problem.raw) == row


@given(st.integers(0, COMMITTED.rindex(b"</body>")))
def test_truncated_page_is_refused(size: int) -> None:
    with pytest.raises(DocumentError):
        read_page(COMMITTED[:size])


def test_page_in_one_open_tag_is_refused() -> None:
    page = training_page(GPT2, RESNET).replace(b"lang='en'>", b"lang='>")
    with pytest.raises(DamagedDocumentError, match="a tag at its beginning is left open"):
        read_page(page)


@given(page_tables())
def test_any_tables_are_read_back_cell_by_cell(
    tables: Tables,
) -> None:
    parts = []
    expected = {}
    for name, (header, rows) in tables.items():
        parts.append(table_html(header, rows))
        expected[name] = [header, *rows]
    document = read_page(page_html(*parts))
    assert texts(document) == expected
    assert document.problems == ()
