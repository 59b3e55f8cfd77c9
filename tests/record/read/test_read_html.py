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
    TGN,
    TRAINING,
    UNET,
    assert_read,
    assert_read_or_refused,
    grids,
    page_html,
    page_tables,
    problems,
    read_page,
    row_html,
    table_html,
    table_page,
    texts,
    training_page,
)

COUNTS = {
    "ogb_lsc": 2,
    "bow_training": 64,
    "bow_inference": 37,
    "mlperf_v2_training": 11,
    "pod_training": 62,
    "pod_time_to_result": 1,
    "pod_inference": 71,
}
GOLDEN = """
ogb_lsc|2|WikiKG90Mv2|TransE (256)|Bow Pod16|SDK 3.0|Poplar|1,260,000|11h 50m|0.2562 MRR|First
bow_training|36|TGN|Temporal Graph Network|1x Bow IPU|SDK 3.3|Pytorch Geometric||||31,617
bow_training|41|Cluster-GCN||Bow-2000|SDK 3.2|TensorFlow2|ogbn-mag||16.16|2,586,673
bow_inference|32|Unet (Medical)||Bow-2000|SDK 3.3|TensorFlow2|Synthetic (host-generated)|4|16.16|1,920|
pod_training|40|ResNet-50 v1.5||IPU-POD256|SDK 2.4.0|TensorFlow1|ImageNet2012|10,240|16.16|365,040
pod_time_to_result|1|MCMC TFP||IPU-M2000|SDK 2.4.0|TensorFlow1|Proprietary||32.32|49
"""
COMMITTED = PAGE.read_bytes()


def without(row: Sequence[str], column: int) -> list[str]:
    return [*row[:column], *row[column + 1 :]]


def read_cell(cell: str, header: str = "Throughput (items/sec)") -> tuple[str, str]:
    """Read a row with one cell written as `cell`; return its text and its footnote mark."""
    column = TRAINING.index(header)
    document = read_page(training_page([*GPT2[:column], cell, *GPT2[column + 1 :]]))
    assert document.problems == ()
    [row] = document.tables[0].rows
    assert without(row.cells, column) == without(GPT2, column)
    marks = dict(row.footnotes)
    assert set(marks) <= {column}
    return row.cells[column], marks.get(column, "")


# --- the committed page


def test_committed_page_has_its_rows_and_locators() -> None:
    committed = read_page(COMMITTED)
    assert committed.problems == ()
    assert [(table.name, len(table.rows)) for table in committed.tables] == list(COUNTS.items())
    for line in GOLDEN.strip().splitlines():
        name, number, *cells = line.split("|")
        assert grids(committed)[name][int(number) - 1] == cells
    for place, table in enumerate(committed.tables, start=1):
        assert [row.number for row in table.rows] == list(range(1, len(table.rows) + 1))
        assert table.locator == f"table {place}"
        for row in table.rows:
            assert row.locator == f"table {place}, row {row.number}"
    training = committed.tables[1]
    place = "table 2, row 36, column 9 (Throughput (items/sec))"
    assert training.cell_locator(training.rows[35], 8) == place


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
UNCLOSED = ["".join("<tr>" + "".join(f"<td>{cell}" for cell in row)) for row in (GPT2, RESNET)]
BLANK = row_html(["", "&nbsp;"] + [""] * 7)
CAPTION = '<caption>c</caption><tr><td colspan="9">Training</td></tr><tr><td>n</td></tr><tr></tr>'
HEADED = ROW.replace("<td>GPT2</td>", "<th>GPT2</th>")
TALL = ROW.replace("<td>GPT2</td>", '<td rowspan="0">GPT2</td>')
WIDE = (
    '<tr><td rowspan="3">GPT2</td><td colspan="2" rowspan="2">Bow Pod16</td>'
    + row_html(GPT2[3:])[4:]
)
ABOVE = (
    "".join(f'<th rowspan="2">{name}</th>' for name in INFERENCE[:8])
    + '<th colspan="2">Performance</th>'
)
BELOW = "<tr><th>Throughput (items/sec)</th><th>Latency (ms)</th></tr>"
WAYS = {
    "unclosed rows and cells": (["<tr>", HEAD[4:].replace("</th>", ""), *UNCLOSED], [GPT2, RESNET]),
    "header in the body, header cells in a row": (
        ["<tbody>", row_html(TRAINING), HEADED, "</tbody>"],
        [GPT2],
    ),
    "caption rows before the header": ([CAPTION, HEAD, ROW], [GPT2]),
    "repeated header, blank row": ([HEAD, ROW, HEAD, BLANK, OTHER], [GPT2, RESNET]),
    "row span of zero ends with its section": (
        [HEAD, f"<tbody>{TALL}{row_html(GPT2[1:])}</tbody><tbody>{OTHER}</tbody>"],
        [GPT2, GPT2, RESNET],
    ),
    "spanned cells are repeated": (
        [HEAD, WIDE, row_html(RESNET[3:]), row_html(GPT2[1:])],
        [["GPT2", "Bow Pod16", "Bow Pod16", *row[3:]] for row in (GPT2, RESNET)] + [GPT2],
    ),
    "two header rows joined by spans": (
        ["<thead><tr>", ABOVE, "</tr>", BELOW, "</thead>", row_html(UNET)],
        [UNET],
    ),
    "layout table around two others": (
        [
            "<tr><td>",
            table_html(TRAINING, [GPT2]),
            "<p>text</p>",
            table_html(INFERENCE, [UNET]),
            "</td></tr>",
        ],
        [GPT2, UNET],
    ),
    "columns in another order": (
        [row_html(TRAINING[::-1], "th"), row_html(GPT2[::-1])],
        [GPT2[::-1]],
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_a_table_is_read(way: str) -> None:
    parts, rows = WAYS[way]
    document = read_page(table_page(*parts))
    assert [row for table in grids(document).values() for row in table] == rows
    assert document.problems == ()


def test_footnote_of_a_spanned_cell_is_repeated() -> None:
    first = row_html(GPT2).replace("<td>GPT2</td>", '<td rowspan="2">GPT2<sup>1</sup></td>')
    document = read_page(table_page(HEAD, first, row_html(GPT2[1:])))
    for row in document.tables[0].rows:
        assert (row.cells[0], row.footnotes) == ("GPT2", ((0, "1"),))


SWAPPED = row_html([TRAINING[0], TRAINING[5], *TRAINING[2:5], TRAINING[1], *TRAINING[6:]], "th")
TWO = "bow_training 2 row-width"
THREE = "bow_training 3 row-width"
AGAIN = "bow_training duplicate-table"
DAMAGES = {
    "row span never fills a later short row": (
        [
            ROW.replace("<td>1,590", "<td rowspan=2>1,590"),
            row_html(RESNET[:7]),
            row_html(RESNET[:8]),
        ],
        [TWO, THREE],
    ),
    "overlapping spans": (
        [
            ROW.replace("<td>Wiki", "<td rowspan=2>Wiki"),
            row_html(GPT2[:5]).replace("<td>PyT", "<td colspan=5>PyT"),
        ],
        [TWO],
    ),
    "cell across the whole row": ([ROW, '<tr><td colspan="9">GPT2</td></tr>'], [TWO]),
    "repeated table": ([ROW, "</table><table>", HEAD, OTHER], [AGAIN]),
    "another header inside of a table begins another": ([ROW, SWAPPED, ROW], [AGAIN]),
    "rows without their header": (
        [ROW, "</table><table>", ROW, OTHER],
        ["unknown-header"],
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_a_problem_and_the_other_rows_are_kept(name: str) -> None:
    parts, expected = DAMAGES[name]
    document = read_page(table_page(HEAD, *parts))
    assert (grids(document), problems(document)) == ({"bow_training": [GPT2]}, expected)
    assert name != "overlapping spans" or document.problems[0].message == "two cells span one place"


def test_row_of_two_texts_under_a_broken_header_is_lost_and_a_title_is_not() -> None:
    broken = HEAD.replace("Precision", "Precisoin")
    for row, lost in ((["GPT2", "16.16"], 1), (["Training"] * 2, 0)):
        document = read_page(table_page(broken, row_html(row), HEAD, ROW))
        assert grids(document) == {"bow_training": [GPT2]}
        assert problems(document) == ["unknown-header"] * lost


def test_table_without_rows_is_a_problem() -> None:
    assert problems(read_page(training_page())) == ["bow_training no-rows"]


@pytest.mark.parametrize("span", ["1000000000", "-4", "²"])
def test_absurd_spans_are_limited_and_not_a_row(span: str) -> None:
    wide = f'<tr><td colspan="{span}" rowspan="{span}">x</td></tr>' * 50
    document = read_page(training_page(GPT2).replace(b"</table>", wide.encode() + b"</table>"))
    assert grids(document) == {"bow_training": [GPT2]}
    assert {problem.reason for problem in document.problems} == {"row-width"}
    assert max(len(problem.raw) for problem in document.problems) <= 1100


PLAIN = training_page(GPT2)
MARKS = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
NAMES = ("BATCH-size", "Batch&nbsp; Size", "Batch Size<sup>1</sup>")
SAME = {
    **{f"header {name}": PLAIN.replace(b"Batch Size", name.encode()) for name in NAMES},
    **{
        f"byte order mark of {name}": MARKS.get(name, b"") + PLAIN.decode().encode(name)
        for name in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")
    },
    "tags in comments": b"<!-- <table><html> -->" + PLAIN,
}


@pytest.mark.parametrize("page", SAME.values(), ids=SAME)
def test_page_written_otherwise_has_the_same_row(page: bytes) -> None:
    document = read_page(page)
    assert_read(document, bow_training=[GPT2])


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


@pytest.mark.parametrize(
    ("page", "error", "message"),
    [
        (CUT + b"<!-- </table></html>", DamagedDocumentError, "ends in the middle"),
        (CUT + b"<script>'</table></html>'", DamagedDocumentError, "ends in the middle"),
        (b"<html>" + b"<!--<script " * 30_000 + PLAIN, DamagedDocumentError, None),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(32)) * 40, DocumentError, None),
        (b"\xff\xfe<\x00t", DocumentError, None),
        (page_html("<h1>503 Service Unavailable</h1>"), UnrecognisedDocumentError, None),
        (table_page("<tr><td>x"), UnrecognisedDocumentError, None),
    ],
)
def test_damaged_or_other_page_is_refused(
    page: bytes, error: type[DocumentError], message: str | None
) -> None:
    with pytest.raises(error, match=message):
        read_page(page)


@pytest.mark.parametrize("name", ["Data set", "Model", "", "Dataset 2"])
def test_renamed_repeated_or_nameless_column_is_a_problem_of_the_table(name: str) -> None:
    assert "'Dataset'" in refuse_header([*TRAINING[:5], name, *TRAINING[6:]], GPT2)
    message = refuse_header([*TRAINING, ""], [*GPT2, ""])
    assert "the header has a column without a name" in message


def refuse_header(header: list[str], row: list[str]) -> str:
    """Check that a table is not read, and the one before it is; return why."""
    document = read_page(page_html(table_html(INFERENCE, [UNET]), table_html(header, [row])))
    assert grids(document) == {"bow_inference": [UNET]}
    assert problems(document) == ["unknown-header"]
    assert document.problems[0].locator == "table 2"
    return document.problems[0].message


@pytest.mark.parametrize("above", [[], [["Training"] * 9], [["x"], [""] * 9]])
def test_rows_above_the_header_are_a_problem(above: list[list[str]]) -> None:
    lost = map(row_html, [*above, GPT2, RESNET, TGN])
    document = read_page(table_page(*lost, HEAD, ROW))
    assert grids(document) == {"bow_training": [GPT2]}
    assert problems(document) == ["unknown-header"]
    assert document.problems[0].raw == tuple(GPT2)


@pytest.mark.parametrize("row", [GPT2[:-1], [*GPT2, "7"], GPT2[1:], ["x"]])
def test_row_too_short_or_too_long_is_a_problem_and_the_others_are_kept(row: list[str]) -> None:
    document = read_page(training_page(RESNET, row, GPT2))
    assert [(r.number, list(r.cells)) for r in document.tables[0].rows] == [(1, RESNET), (3, GPT2)]
    [problem] = document.problems
    assert (problem.table_name, problem.row_number, problem.locator) == (
        "bow_training",
        2,
        "table 1, row 2",
    )
    assert list(problem.raw) == row


@given(st.integers(0, COMMITTED.rindex(b"</body>")))
def test_truncated_page_is_refused(size: int) -> None:
    with pytest.raises(DocumentError):
        read_page(COMMITTED[:size])


def test_page_in_one_open_tag_is_refused() -> None:
    page = training_page(GPT2, RESNET).replace(b"lang='en'>", b"lang='>")
    with pytest.raises(DamagedDocumentError, match="a tag at its beginning is left open"):
        read_page(page)


@given(st.data())
def test_page_with_changed_or_lost_bytes_is_read_or_refused(data: st.DataObject) -> None:
    page = training_page(GPT2, RESNET)
    start = data.draw(st.integers(0, len(page)))
    stop = data.draw(st.integers(start, min(start + 30, len(page))))
    noise = data.draw(
        st.one_of(
            st.just(b""), st.binary(max_size=8), st.sampled_from([b"<td>", b"</table>", b"<!--"])
        )
    )
    assert_read_or_refused(read_page, page[:start] + noise + page[stop:])


@given(page_tables())
def test_any_tables_are_read_back_cell_by_cell(
    tables: dict[str, tuple[list[str], list[list[str]]]],
) -> None:
    document = read_page(page_html(*(table_html(header, rows) for header, rows in tables.values())))
    expected = {name: [header, *rows] for name, (header, rows) in tables.items()}
    assert texts(document) == expected
    assert document.problems == ()
