"""Tables from HTML: the committed page cell by cell, the ways to write a table, and every kind of damage."""

from __future__ import annotations

import gc
from contextlib import suppress

import pytest
from bs4.element import Tag
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import DamagedDocumentError, DocumentError, UnrecognisedDocumentError
from ipu_results.read import ParsedDocument
from ipu_results.read.html import read_html
from ipu_results.read.page_text import read_page_text

from tests.read.reading_support import (
    GPT2,
    INFERENCE,
    LAYOUTS,
    PAGE,
    PAGE_TEXT,
    RESNET,
    TGN,
    TRAINING,
    UNET,
    assert_read_or_refused,
    grids,
    page_html,
    page_tables,
    problems,
    row_html,
    table_html,
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
GOLDEN = {
    ("ogb_lsc", 2): "WikiKG90Mv2|TransE (256)|Bow Pod16|SDK 3.0|Poplar|1,260,000|11h 50m|0.2562 MRR|First",
    ("bow_training", 36): "TGN|Temporal Graph Network|1x Bow IPU|SDK 3.3|Pytorch Geometric||||31,617",
    ("bow_training", 41): "Cluster-GCN||Bow-2000|SDK 3.2|TensorFlow2|ogbn-mag||16.16|2,586,673",
    (
        "bow_inference",
        28,
    ): "EfficientDet-D1||Bow-2000|SDK 3.3|TF2 w/Keras|Synthetic (host-generated)|12|16.16|2,875|1.4",
    ("bow_inference", 32): "Unet (Medical)||Bow-2000|SDK 3.3|TensorFlow2|Synthetic (host-generated)|4|16.16|1,920|",
    ("mlperf_v2_training", 1): (
        "Closed|ResNet50 v1.5|75.90% classification|Bow Pod16|SDK 2.5.1|TensorFlow|2.0-2047|ImageNet2012|16.16|19.64"
    ),
    ("pod_training", 40): "ResNet-50 v1.5||IPU-POD256|SDK 2.4.0|TensorFlow1|ImageNet2012|10,240|16.16|365,040",
    ("pod_time_to_result", 1): "MCMC TFP||IPU-M2000|SDK 2.4.0|TensorFlow1|Proprietary||32.32|49",
    ("pod_inference", 71): (
        "Unet (Medical)||IPU-M2000|SDK 2.4.0|TensorFlow2|Synthetic (host-generated)|8|16.16|1,190|"
    ),
}
COMMITTED = PAGE.read_bytes()


def read(data: bytes) -> ParsedDocument:
    return read_html(data, LAYOUTS)


def only_row(data: bytes) -> list[str]:
    """Read the one row of a page of one training table."""
    document = read(data)
    assert document.problems == ()
    [row] = grids(document)["bow_training"]
    return row


def read_cell(cell: str, header: str = "Throughput (items/sec)") -> tuple[str, tuple[tuple[int, str], ...]]:
    """Read a row with one cell written as `cell`; return its text and the row's footnote marks."""
    column = TRAINING.index(header)
    document = read(training_page([*GPT2[:column], cell, *GPT2[column + 1 :]]))
    assert document.problems == ()
    [row] = document.tables[0].rows
    assert [*row.cells[:column], *row.cells[column + 1 :]] == [*GPT2[:column], *GPT2[column + 1 :]]
    return row.cells[column], row.footnotes


# --- the committed page


@pytest.fixture(scope="module")
def committed() -> ParsedDocument:
    return read(COMMITTED)


def test_committed_page_has_its_seven_tables_in_printed_order(committed: ParsedDocument) -> None:
    assert [(table.name, len(table.rows)) for table in committed.tables] == list(COUNTS.items())
    assert committed.problems == ()


def test_whole_rows_of_the_committed_page(committed: ParsedDocument) -> None:
    rows = {(name, number): grids(committed)[name][number - 1] for name, number in GOLDEN}
    assert rows == {place: text.split("|") for place, text in GOLDEN.items()}


def test_row_numbers_and_locators_of_the_committed_page(committed: ParsedDocument) -> None:
    for place, table in enumerate(committed.tables, start=1):
        assert [row.number for row in table.rows] == list(range(1, len(table.rows) + 1))
        assert table.locator == f"table {place}"
        assert {row.locator for row in table.rows} == {f"table {place}, row {row.number}" for row in table.rows}
    tgn = committed.tables[1].rows[35]
    assert committed.tables[1].cell_locator(tgn, 8) == "table 2, row 36, column 9 (Throughput (items/sec))"


@pytest.mark.skipif(not PAGE_TEXT.exists(), reason="the page's text is not here")
def test_committed_page_equals_the_page_text(committed: ParsedDocument) -> None:
    assert texts(committed) == texts(read_page_text(PAGE_TEXT.read_text(encoding="utf-8"), LAYOUTS))


# --- text of a cell


@pytest.mark.parametrize(
    ("cell", "text", "mark"),
    [
        ("37,112<sup>2</sup>", "37,112", "2"),
        ("37,112<sup>[1]</sup>", "37,112", "[1]"),
        ("37,112<sup>(a)</sup>", "37,112", "(a)"),
        ("37,112 <sup>1, 2</sup>", "37,112", "1, 2"),
        ('37,112<sup><a href="#n">2</a></sup>', "37,112", "2"),
        ("37,112²", "37,112", "²"),
        ("37,112*", "37,112", "*"),
        ("37,112 * †", "37,112", "* †"),
        ("37,112<sup>*</sup>", "37,112", "*"),
        ("37,112<sup>2</sup>*", "37,112", "2 *"),
        ("10<sup>1</sup>", "10", "1"),
        ("10<sup>[2]</sup>", "10", "[2]"),
        ("2¹", "2", "¹"),
        ("110<sup>2</sup>", "110", "2"),
        ("1,410²", "1,410", "²"),
    ],
)
def test_footnote_marks_are_lifted_off_and_kept(cell: str, text: str, mark: str) -> None:
    assert read_cell(cell) == (text, ((8, mark),))


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("10<sup>6</sup>", "10^6"),
        ("1.2 × 10<sup>6</sup>", "1.2 × 10^6"),
        ("1.2×10<sup>-3</sup>", "1.2×10^-3"),
        ("10⁶", "10⁶"),
        ("1.2 × 10⁶", "1.2 × 10⁶"),
        ("10⁻³", "10⁻³"),
        ("2<sup>16</sup>", "2^16"),
        ("2¹⁶", "2¹⁶"),
        ("1<sup>st</sup>", "1st"),
        ("**", "**"),
    ],
)
def test_powers_and_raised_words_stay_text(cell: str, text: str) -> None:
    assert read_cell(cell) == (text, ())


def test_name_that_ends_in_two_can_have_a_footnote() -> None:
    assert read_cell("GPT2<sup>3</sup>", "Model") == ("GPT2", ((0, "3"),))


@pytest.mark.parametrize(
    "cell",
    [
        "<p><strong>1,</strong>590</p>",
        "\n\t&nbsp;1,590&nbsp; \n",
        "1,&#8203;5&#57;0",
        "1,\u200b590\ufeff",
        "1,590<!-- was 2 -->",
        "1,590<script>document.write('7')</script>",
        "<style>td{}</style>1,590",
        "<br/>1,590<br>",
        "1,590<?php 7 ?>",
        '<span style="display: none">7</span>1,590',
        "<span hidden>7</span>1,590",
        "<template>7</template>1,590",
        "1,590<noscript>9</noscript>",
        "1,590<svg>9</svg>",
        "1<wbr>,590",
    ],
)
def test_markup_blanks_and_hidden_parts_are_not_text(cell: str) -> None:
    assert read_cell(cell) == ("1,590", ())


def test_line_breaks_of_any_kind_divide_two_figures() -> None:
    for tag in ("br", "p", "div", "li", "hr", "h3", "pre", "dd"):
        assert read_cell(f"16<{tag}>16", "Precision") == ("16 16", ())


@pytest.mark.parametrize(
    "cell",
    [
        "1,590<sub>2</sub>",
        '1,590<a href="#fn">2</a>',
        "1,590<span>2</span>",
        "1,590<sup>100</sup>",
    ],
)
def test_digits_of_two_elements_are_never_one_figure(cell: str) -> None:
    assert " " in read_cell(cell)[0]


def test_entities_are_decoded_and_are_not_tags() -> None:
    assert read_cell("A &amp; B &lt;sup&gt;2&lt;/sup&gt; &micro;", "Variant") == ("A & B <sup>2</sup> µ", ())


def test_composed_and_decomposed_letters_are_one_text() -> None:
    assert read_cell("Re\u0301seau", "Variant") == read_cell("R\u00e9seau", "Variant") == ("R\u00e9seau", ())


def test_blank_cells_of_all_kinds_are_empty_text() -> None:
    for blank in ("", "&nbsp;", "\u00a0\u200b", "<p></p>", "<br>", " \n "):
        assert read_cell(blank, "Variant") == ("", ())


def test_deep_markup_in_a_cell_is_read() -> None:
    assert read_cell("<b>" * 3000 + "x", "Variant") == ("x", ())


# --- ways to write a table

HEAD, ROW, OTHER = row_html(TRAINING, "th"), row_html(GPT2), row_html(RESNET)
UNCLOSED = ["".join("<tr>" + "".join(f"<td>{cell}" for cell in row)) for row in (GPT2, RESNET)]
BLANK = row_html(["", "&nbsp;"] + [""] * 7)
CAPTION = '<caption>c</caption><tr><td colspan="9">Training</td></tr><tr><td>n</td></tr><tr></tr>'
HEADED = ROW.replace("<td>GPT2</td>", "<th>GPT2</th>")
TALL = ROW.replace("<td>GPT2</td>", '<td rowspan="0">GPT2</td>')
WIDE = '<tr><td rowspan="3">GPT2</td><td colspan="2" rowspan="2">Bow Pod16</td>' + row_html(GPT2[3:])[4:]
ABOVE = "".join(f'<th rowspan="2">{name}</th>' for name in INFERENCE[:8]) + '<th colspan="2">Performance</th>'
BELOW = "<tr><th>Throughput (items/sec)</th><th>Latency (ms)</th></tr>"
LOOSE = "".join(f"<td>{cell}</td>" for cell in RESNET)
WAYS = {
    "unclosed rows and cells": (["<tr>", HEAD[4:].replace("</th>", ""), *UNCLOSED], [GPT2, RESNET]),
    "header in the body, header cells in a row": (["<tbody>", row_html(TRAINING), HEADED, "</tbody>"], [GPT2]),
    "caption rows before the header": ([CAPTION, HEAD, ROW], [GPT2]),
    "repeated header, blank row": ([HEAD, ROW, HEAD, BLANK, OTHER], [GPT2, RESNET]),
    "rows in a form": ([HEAD, ROW, f"<form>{OTHER}</form>"], [GPT2, RESNET]),
    "cells outside of a row": ([HEAD, ROW, LOOSE], [GPT2, RESNET]),
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
            "<tr><td>menu</td><td>",
            table_html(TRAINING, [GPT2]),
            "<p>text</p>",
            table_html(INFERENCE, [UNET]),
            "</td></tr>",
        ],
        [GPT2, UNET],
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_a_table_is_read(way: str) -> None:
    parts, rows = WAYS[way]
    document = read(page_html("<table>", *parts, "</table>"))
    assert [row for table in grids(document).values() for row in table] == rows
    assert document.problems == ()


def test_footnote_of_a_spanned_cell_is_repeated() -> None:
    first = row_html(GPT2).replace("<td>GPT2</td>", '<td rowspan="2">GPT2<sup>1</sup></td>')
    document = read(page_html("<table>", row_html(TRAINING, "th"), first, row_html(GPT2[1:]), "</table>"))
    assert [(row.cells[0], row.footnotes) for row in document.tables[0].rows] == [("GPT2", ((0, "1"),))] * 2


def test_row_span_never_fills_a_later_short_row() -> None:
    spanned = "".join(f"<td{' rowspan=2' if i == 8 else ''}>{cell}</td>" for i, cell in enumerate(GPT2))
    rows = [f"<tr>{spanned}</tr>", row_html(RESNET[:7]), row_html(RESNET[:8])]
    document = read(page_html("<table>", row_html(TRAINING, "th"), *rows, "</table>"))
    assert grids(document) == {"bow_training": [GPT2]}
    assert problems(document) == [("bow_training", 2, "row-width"), ("bow_training", 3, "row-width")]


def test_overlapping_spans_are_a_problem() -> None:
    first = row_html(GPT2).replace("<td>Wikipedia</td>", '<td rowspan="2">Wikipedia</td>')
    second = "<tr><td>GPT2</td><td>v</td><td>Bow Pod16</td><td>SDK 3.3</td><td colspan=5>PyTorch</td></tr>"
    document = read(page_html("<table>", row_html(TRAINING, "th"), first, second, "</table>"))
    assert grids(document) == {"bow_training": [GPT2]}
    assert document.problems[0].message == "two cells span one place"


def test_cell_across_the_whole_row_is_not_a_row() -> None:
    page = training_page(GPT2).decode().replace("</table>", '<tr><td colspan="9">GPT2</td></tr></table>')
    document = read(page.encode())
    assert grids(document) == {"bow_training": [GPT2]}
    assert problems(document) == [("bow_training", 2, "row-width")]


@pytest.mark.parametrize("span", ["1000000000", "-4", "x", "1e9", "²"])
def test_absurd_spans_are_limited_and_not_a_row(span: str) -> None:
    wide = f'<tr><td colspan="{span}" rowspan="{span}">x</td></tr>' * 50
    document = read(training_page(GPT2).replace(b"</table>", wide.encode() + b"</table>"))
    assert grids(document) == {"bow_training": [GPT2]}
    assert {reason for _, _, reason in problems(document)} == {"row-width"}
    assert max(len(problem.raw) for problem in document.problems) <= 1100


def test_tables_with_one_header_are_named_by_their_machines_in_any_order() -> None:
    pod = [*GPT2[:2], "IPU-POD16", *GPT2[3:]]
    pod_inference = [*UNET[:2], "GC200 IPU", *UNET[3:]]
    parts = [(INFERENCE, pod_inference), (TRAINING, pod), (INFERENCE, UNET), (TRAINING, GPT2)]
    assert grids(read(page_html(*(table_html(header, [row]) for header, row in parts)))) == {
        "pod_inference": [pod_inference],
        "pod_training": [pod],
        "bow_inference": [UNET],
        "bow_training": [GPT2],
    }


def test_columns_in_another_order_keep_their_order() -> None:
    document = read(page_html(table_html(TRAINING[::-1], [GPT2[::-1]])))
    assert texts(document) == {"bow_training": [TRAINING[::-1], GPT2[::-1]]}


def test_header_names_match_without_case_blanks_hyphens_and_marks() -> None:
    for name in ("batch size", "Batch-Size", "BATCH_SIZE", "Batch&nbsp; Size", "Batch Size<sup>1</sup>"):
        assert only_row(training_page(GPT2).replace(b"Batch Size", name.encode())) == GPT2


# --- encodings


def test_declared_latin_1_is_read_as_browsers_do() -> None:
    page = training_page([*GPT2[:1], "Ré\x96seau", *GPT2[2:]]).decode().replace("utf-8", "iso-8859-1")
    assert only_row(page.encode("latin-1"))[1] == "Ré–seau"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_byte_order_marks(encoding: str) -> None:
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    assert only_row(mark + training_page(GPT2).decode().encode(encoding)) == GPT2


@pytest.mark.parametrize("declared", ["utf-8", "unicode_escape", "punycode", "hex", "no-such", "undefined"])
def test_bytes_that_fit_no_encoding_are_damaged(declared: str) -> None:
    page = training_page(GPT2).replace(b"utf-8", declared.encode()).replace(b"<title>", b"<title>\xe9\\d\xff")
    with pytest.raises(DamagedDocumentError, match="encoding"):
        read(page)


@pytest.mark.parametrize(
    "data", [b"", b" \r\n\t", b"\x00\x01\x02" * 400, b"\x89PNG\r\n\x1a\n" + bytes(range(32)) * 40, b"\xff\xfe<\x00t"]
)
def test_empty_and_binary_data_are_document_errors(data: bytes) -> None:
    with pytest.raises(DocumentError):
        read(data)


# --- damage is reported, and never makes a wrong row


def read_with_damage(header: list[str], *rows: list[str]) -> ParsedDocument:
    """Read a page of one good inference table and one damaged training table."""
    document = read(page_html(table_html(INFERENCE, [UNET]), table_html(header, rows)))
    assert grids(document) == {"bow_inference": [UNET]}
    assert [(p.table_name, p.reason, p.row_number, p.locator) for p in document.problems] == [
        ("", "unknown-header", None, "table 2")
    ]
    return document


def test_dropped_column_is_a_problem_of_the_table() -> None:
    for column, name in enumerate(TRAINING):
        header, *rows = ([*row[:column], *row[column + 1 :]] for row in (TRAINING, GPT2, RESNET))
        assert repr(name.split(" (")[0]) in read_with_damage(header, *rows).problems[0].message
        read_with_damage(header, GPT2, RESNET)  # the header cell alone is lost


@pytest.mark.parametrize("name", ["Data set", "Datasets", "Model", "", "Dataset 2"])
def test_renamed_repeated_or_nameless_header_is_a_problem_of_the_table(name: str) -> None:
    document = read_with_damage([*TRAINING[:5], name, *TRAINING[6:]], GPT2, RESNET)
    assert "'Dataset'" in document.problems[0].message


def test_extra_column_without_a_name_is_a_problem_of_the_table() -> None:
    [problem] = read_with_damage([*TRAINING, ""], [*GPT2, ""]).problems
    assert problem.message == "the header has a column without a name"


def test_rows_without_their_header_are_a_problem() -> None:
    document = read(page_html(table_html(INFERENCE, [UNET]), "<table>", row_html(GPT2), row_html(RESNET), "</table>"))
    assert grids(document) == {"bow_inference": [UNET]}
    assert problems(document) == [("", None, "unknown-header")]


@pytest.mark.parametrize("above", [[], [["Training"] * 9], [["x"], [""] * 9]])
def test_rows_above_the_header_are_a_problem(above: list[list[str]]) -> None:
    lost = "".join(map(row_html, [*above, GPT2, RESNET, TGN]))
    document = read(page_html("<table>", lost, row_html(TRAINING, "th"), row_html(GPT2), "</table>"))
    assert grids(document) == {"bow_training": [GPT2]}
    assert problems(document) == [("", None, "unknown-header")]
    assert document.problems[0].raw == tuple(GPT2)


@pytest.mark.parametrize("row", [GPT2[:-1], [*GPT2, "7"], GPT2[1:], ["x"]])
def test_row_too_short_or_too_long_is_a_problem_and_the_others_are_kept(row: list[str]) -> None:
    document = read(training_page(RESNET, row, GPT2))
    assert [(r.number, list(r.cells)) for r in document.tables[0].rows] == [(1, RESNET), (3, GPT2)]
    [problem] = document.problems
    assert (problem.table_name, problem.row_number, problem.locator) == ("bow_training", 2, "table 1, row 2")
    assert list(problem.raw) == row


def test_table_without_rows_is_a_problem() -> None:
    assert problems(read(page_html(table_html(TRAINING, [])))) == [("bow_training", None, "no-rows")]


def test_repeated_table_is_a_problem() -> None:
    document = read(page_html(table_html(TRAINING, [GPT2]), table_html(TRAINING, [RESNET])))
    assert grids(document) == {"bow_training": [GPT2]}
    assert problems(document) == [("bow_training", None, "duplicate-table")]


@pytest.mark.parametrize("page", [page_html("<h1>503 Service Unavailable</h1>"), page_html("<table><tr><td>x</table>")])
def test_page_without_a_known_table_is_not_recognised(page: bytes) -> None:
    with pytest.raises(UnrecognisedDocumentError):
        read(page)


@given(st.integers(0, COMMITTED.rindex(b"</body>")))
def test_truncated_page_is_refused(size: int) -> None:
    with pytest.raises(DocumentError):
        read(COMMITTED[:size])


@pytest.mark.parametrize("tail", ["<!-- </table></html>", '<script>"</table></html>"'])
def test_end_of_the_page_inside_of_an_open_comment_or_script_does_not_count(tail: str) -> None:
    cut = training_page(GPT2, RESNET).partition(row_html(RESNET).encode())[0]
    with pytest.raises(DamagedDocumentError, match="truncated"):
        read(cut + tail.encode())


def test_tags_in_comments_and_scripts_do_not_make_a_whole_page_truncated() -> None:
    noise = b"<!-- <table><html> --><script>'<table><html>'</script><table>"
    assert only_row(noise + training_page(GPT2)) == GPT2


def test_many_open_comments_end() -> None:
    with pytest.raises(DamagedDocumentError):
        read(b"<html>" + b"<!--<script " * 30_000 + training_page(GPT2))


def test_element_that_hides_a_table_is_damage() -> None:
    for tag in ("style", "title", "textarea", "iframe"):
        page = training_page(GPT2).replace(b"<body>", f"<body><table><tr><td>1</td></tr></table><{tag}>".encode())
        with pytest.raises(DamagedDocumentError, match="hides 1 of its 2 tables"):
            read(page)


def test_another_header_inside_a_table_begins_another_table() -> None:
    swapped = [TRAINING[0], TRAINING[5], *TRAINING[2:5], TRAINING[1], *TRAINING[6:]]
    page = training_page(GPT2).replace(b"</table>", (row_html(swapped, "th") + row_html(GPT2)).encode() + b"</table>")
    document = read(page)
    assert grids(document) == {"bow_training": [GPT2]}
    assert [reason for _, _, reason in problems(document)] == ["duplicate-table"]


@given(st.data())
def test_page_with_changed_or_lost_bytes_is_read_or_refused(data: st.DataObject) -> None:
    page = training_page(GPT2, RESNET)
    start = data.draw(st.integers(0, len(page)))
    stop = data.draw(st.integers(start, min(start + 30, len(page))))
    noise = data.draw(st.one_of(st.just(b""), st.binary(max_size=8), st.sampled_from([b"<td>", b"</table>", b"<!--"])))
    assert_read_or_refused(read, page[:start] + noise + page[stop:])


@pytest.mark.parametrize("page", [training_page(GPT2), page_html(table_html(["Model"], [["GPT2"]]))])
def test_tree_of_a_page_is_freed_without_the_cycle_collector(page: bytes) -> None:
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        before = sum(type(value) is Tag for value in gc.get_objects())
        for _ in range(3):
            with suppress(UnrecognisedDocumentError):
                read(page)
        assert sum(type(value) is Tag for value in gc.get_objects()) == before
    finally:
        if was_on:
            gc.enable()


# --- any table


@given(page_tables())
def test_any_tables_are_read_back_cell_by_cell(tables: dict[str, tuple[list[str], list[list[str]]]]) -> None:
    document = read(page_html(*(table_html(header, rows) for header, rows in tables.values())))
    expected = {name: [header, *rows] for name, (header, rows) in tables.items()}
    assert texts(document) == expected
    assert document.problems == ()


@given(page_tables(), st.data())
def test_lost_cell_costs_its_row_and_no_other(
    tables: dict[str, tuple[list[str], list[list[str]]]], data: st.DataObject
) -> None:
    header, rows = data.draw(st.sampled_from(list(tables.values())))
    row = data.draw(st.integers(0, len(rows) - 1))
    column = data.draw(st.integers(0, len(header) - 1))
    damaged = [[cell for i, cell in enumerate(cells) if (r, i) != (row, column)] for r, cells in enumerate(rows)]
    document = read(page_html(table_html(header, damaged)))
    assert [(p.row_number, p.reason) for p in document.problems] == [(row + 1, "row-width")]
    kept = [cells for r, cells in enumerate(rows) if r != row]
    assert list(grids(document).values()) == ([kept] if kept else [])


@given(st.one_of(st.binary(max_size=300), st.text(max_size=200).map(str.encode)))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert_read_or_refused(read, data)
    assert_read_or_refused(read, training_page([data.decode("utf-8", "replace")]))
