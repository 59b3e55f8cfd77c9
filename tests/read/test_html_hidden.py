"""What a reader of a page cannot see is not read, and what looks like a figure or a table is never lost silently."""

from __future__ import annotations

import base64
import quopri

import pytest
from ipu_results.errors import DamagedDocumentError, DocumentTooLargeError
from ipu_results.normalise import NormalisedDocument, normalise
from ipu_results.normalise.decimal_mark import DecimalMark, find_decimal_marks
from ipu_results.read import ParsedDocument, read_document
from ipu_results.read.html import read_html

from tests.read.reading_support import (
    GPT2,
    INFERENCE,
    LAYOUTS,
    OGB,
    RESNET,
    TRAINING,
    UNET,
    WORDS,
    grids,
    make_document,
    normalise_page,
    normalise_table,
    page_html,
    problems,
    rejections,
    row_html,
    table_html,
    training_page,
)

OGB_ROW = ["PCQM4Mv2", "GPS++", "Bow Pod16", "SDK 3.0", "TensorFlow2", "14,000", "23h 43m", "0.0719 MAE", "First"]


def read(data: bytes) -> ParsedDocument:
    return read_html(data, LAYOUTS)


def styled(style: str, *parts: str) -> bytes:
    return page_html(*parts).replace(b"</head>", f"<style>{style}</style></head>".encode())


def read_figure(cell: str, style: str = "") -> str | None:
    """Read the throughput written as `cell`; None if its row is a problem."""
    page = training_page([*GPT2[:8], cell], RESNET).replace(b"</head>", f"<style>{style}</style></head>".encode())
    document = read(page)
    rows = grids(document)["bow_training"]
    assert rows[-1] == RESNET
    if len(rows) == 1:
        [problem] = document.problems
        assert (problem.table_name, problem.row_number) == ("bow_training", 1)
        return None
    assert document.problems == ()
    assert rows[0][:8] == GPT2[:8]
    return rows[0][8]


# --- decimal commas


def list_latencies(*texts: str, throughput: str = "1,920") -> tuple[list[float], list[tuple[int, str, str]]]:
    rows = [[*UNET[:6], str(number), UNET[7], throughput, text] for number, text in enumerate(texts, start=1)]
    normalised = normalise_page(*rows, header=INFERENCE, name="bow_inference")
    return [result.values["latency_ms"] for result in normalised.results], rejections(normalised)


def test_leading_zero_proves_a_decimal_comma_for_its_column() -> None:
    assert list_latencies("0,920", "1,360", "12,5", "3", throughput="7") == ([0.920, 1.360, 12.5, 3.0], [])


def test_decimal_commas_of_one_column_make_the_others_ambiguous() -> None:
    values, rejected = list_latencies("0,920", "1,360")
    assert values == []
    assert [reason for _, reason, _ in rejected] == ["unreadable-figure"] * 2
    assert "'1,920' can be read in two ways" in rejected[0][2]


def test_column_with_decimal_commas_and_points_is_refused_where_it_is_ambiguous() -> None:
    values, rejected = list_latencies("0,920", "1,360", "1.4", throughput="7")
    assert values == [1.4]
    assert [number for number, _, _ in rejected] == [1, 2]


def test_proof_in_a_row_that_cannot_be_read_makes_its_table_ambiguous() -> None:
    row = [*UNET[:6], "1", UNET[7], "7", "1,360"]
    document = read(page_html(table_html(INFERENCE, [row, [*row[:8], "0,920"]])))
    [table] = document.tables
    marks = find_decimal_marks([(table, WORDS.header_of("performance-page", table.name))], document.problems)
    assert marks[table.name, INFERENCE[-1]] is DecimalMark.UNCLEAR
    assert find_decimal_marks([(table, WORDS.header_of("performance-page", table.name))]) == {}


def test_thousands_marks_without_proof_of_a_decimal_comma_stay_exact() -> None:
    assert list_latencies("1,474", "2,586") == ([1474.0, 2586.0], [])


def test_lost_digit_costs_its_row_in_a_document_with_decimal_points_and_the_column_in_another() -> None:
    values, rejected = list_latencies("1,474", "2,58", "1.4", throughput="7")
    assert (values, [number for number, _, _ in rejected]) == ([1474.0, 1.4], [2])
    assert list_latencies("1,474", "2,58", throughput="7")[0] == []


# --- metrics


@pytest.mark.parametrize(
    "text",
    [
        *("7.19 × 10⁻² MAE", "7.19 x 10^-2 MAE", "7.19 e-2 MAE", "1 234 MAE", "0.07 ± 0.01", "0.07 MAE ± 0.01"),
        *("0.07 – 0.08 MAE", "0.07 to 0.08 MAE", "0.07 (0.06-0.08) MAE", "0.07 +/- 0.01 MAE", "1.2 million MAE"),
        *("0.07 MAE 824,", "0.07 MAE 8; 9"),
    ],
)
def test_metric_cell_that_is_not_one_figure_rejects_its_row(text: str) -> None:
    normalised = normalise_table("graphcore-performance", "ogb_lsc", OGB, OGB_ROW, [*OGB_ROW[:7], text, OGB_ROW[8]])
    assert [result.values["quality_value"] for result in normalised.results] == [0.0719]
    assert [(number, reason) for number, reason, _ in rejections(normalised)] == [(2, "unreadable-figure")]


# --- hidden text


@pytest.mark.parametrize(
    ("cell", "style"),
    [
        ('<span style="visibility:hidden">7</span>1,590', ""),
        ('<span style="DISPLAY : none !important">7</span>1,590', ""),
        ('<span style="font-size:0">7</span>1,590', ""),
        ('<span style="opacity:0">7</span>1,590', ""),
        ('<span style="position:absolute;left:-9999px">7</span>1,590', ""),
        ("<del>1,591</del> 1,590", ""),
        ("<s>7</s>1,590", ""),
        ('<span style="text-decoration: line-through red">7</span> 1,590', ""),
        ('<i class="a b">7</i>1,590', ".b{display:none}"),
        ('<i id="b">7</i>1,590', "p, #b { color: red; visibility: hidden }"),
        ("<i>7</i>1,590", "td > i {display:none}"),
        ("<i>7</i>1,590", "@media screen { td i {display:none} }"),
        ("<i>7</i>1,590", "@media (max-width: 2000px) { i {display:none} }"),
        ("<i class=x>7</i>1,590", ".sr, .x:not(.y) {position:absolute; clip:rect(0,0,0,0)}"),
        ("<div class=x><b>7</b></div>1,590", ".x{display:none} .x b{display:inline}"),
        ("<template>7</template>1,590", ""),
        ('<b style="visibility:hidden">7<i style="visibility:visible">1,590</i></b>', ""),
        ('<b style="font-size:0">7<i style="font-size:12px">1,590</i></b>', ""),
        ("<i class=x>1,590</i>", ".x{display:none} i.x{display:inline}"),
        ("<i class=x>1,590</i>", "@media print {.x{display:none}} @media (max-width:600px) {.x{display:none}}"),
        ("<i class=x>1,590</i>", "@keyframes a {from {display:none}} .x:hover{display:none} .x::after{display:none}"),
        ('<i class=x style="display:inline">1,590</i>', ".x{display:none}"),
        ('<i aria-hidden="true">1,590</i>', ""),
    ],
)
def test_only_what_a_reader_sees_is_the_figure(cell: str, style: str) -> None:
    assert read_figure(cell, style) == "1,590"


def test_struck_digits_never_join_a_figure() -> None:
    assert read_figure("<del>1,</del>112") == "112"
    assert read_figure("1,<strike>5</strike>90") == "1, 90" or read_figure("1,<strike>5</strike>90") == "1,90"
    assert read_figure("<s>1,590</s>") is None


def test_cell_that_is_not_displayed_takes_no_column() -> None:
    row = row_html(GPT2).replace("<td>8,192", '<td style="display:none">7</td><td>8,192')
    assert grids(read(page_html("<table>", row_html(TRAINING, "th"), row, "</table>"))) == {"bow_training": [GPT2]}


@pytest.mark.parametrize("hide", ["hidden", 'style="display:none"', 'class="x"'])
def test_hidden_row_is_quarantined(hide: str) -> None:
    row = row_html(GPT2).replace("<tr>", f"<tr {hide}>")
    document = read(
        styled("tr.x{display:none}", "<table>", row_html(TRAINING, "th"), row, row_html(RESNET), "</table>")
    )
    assert grids(document) == {"bow_training": [RESNET]}
    assert problems(document) == [("bow_training", 1, "hidden-row")]


@pytest.mark.parametrize(
    "wrap", ["<div hidden>{}</div>", "<div style='display: none'><p>{}</div>", "<div class=x>{}</div>"]
)
def test_hidden_table_is_a_problem_and_not_read(wrap: str) -> None:
    hidden = wrap.format(table_html(INFERENCE, [UNET]))
    document = read(styled(".x *{} body .x{visibility:hidden}", table_html(TRAINING, [GPT2]), hidden))
    assert grids(document) == {"bow_training": [GPT2]}
    assert [(problem.reason, problem.locator) for problem in document.problems] == [("unknown-header", "table 2")]
    assert "hidden" in document.problems[0].message


def test_style_rules_that_would_take_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipu_results.read.html_visible.MAX_STYLE_MATCHES", 10)
    with pytest.raises(DocumentTooLargeError, match="style rules"):
        read(styled("table td{display:none}", table_html(TRAINING, [GPT2, RESNET])))
    with pytest.raises(DocumentTooLargeError, match="style rule of more"):
        read(styled("a{" * 9_000 + "display:none", table_html(TRAINING, [GPT2])))
    long = ",".join(f".column-{number}" for number in range(2_000))
    assert read(styled(f"{long}{{color:red}} .x{{display:none}}", table_html(TRAINING, [GPT2]))).problems == ()


# --- tables in other layouts


@pytest.mark.parametrize(
    "block",
    [
        "".join(
            f"<div><span>{a}</span><span>{b}</span></div>" for a, b in zip(INFERENCE, [*UNET[:9], "1.4"], strict=True)
        ),
        "".join(f"<div>{text}</div>" for text in [*INFERENCE, *UNET[:9], "1.4"]),
        "<dl>" + "".join(f"<dt>{a}</dt><dd>{b}</dd>" for a, b in zip(INFERENCE, UNET, strict=True)) + "</dl>",
        "<table>" + "".join(row_html([a, b, b]) for a, b in zip(INFERENCE, UNET, strict=True)) + "</table>",
        "<ul>" + "".join(f"<li>{text}</li>" for text in GPT2) + "</ul>",
    ],
)
def test_block_that_looks_like_a_known_table_is_a_problem(block: str) -> None:
    document = read(page_html(table_html(TRAINING, [RESNET]), block))
    assert grids(document) == {"bow_training": [RESNET]}
    [problem] = document.problems
    assert problem.reason == "unread-table"
    assert problem.locator in ("after table 1", "table 2")


def test_prose_filters_and_column_names_around_a_table_are_no_problem() -> None:
    around = "".join(f"<label>{name}</label>" for name in TRAINING[:5]) + "<p>16 results for Bow Pod16, SDK 3.3</p>"
    names = "<dl>" + "".join(f"<dt>{name}</dt><dd>What it means.</dd>" for name in TRAINING) + "</dl>"
    assert read(page_html(around, table_html(TRAINING, [GPT2]), names)).problems == ()


# --- cells


def test_one_cell_over_two_figures_rejects_its_row() -> None:
    wide = "<tr>" + "".join(f"<td>{cell}</td>" for cell in UNET[:8]) + '<td colspan="2">9,801</td></tr>'
    below = "<tr>" + "".join(f"<td>{cell}</td>" for cell in UNET[:8]) + '<td colspan="2">n/a</td></tr>'
    document = read(page_html("<table>", row_html(INFERENCE, "th"), wide, below, "</table>"))
    assert grids(document) == {"bow_inference": [[*UNET[:8], "n/a", "n/a"]]}
    [problem] = document.problems
    assert (problem.row_number, problem.reason) == (1, "unread-cell")
    assert problem.message == "one cell spans 'Throughput (items/sec)' and 'Latency (ms)'"


@pytest.mark.parametrize(
    ("cell", "what"),
    [
        ("<table><tr><td>1,590</td></tr></table>", "a table"),
        ('<input value="1,590">', "an input field"),
        ('<img src="f.png" alt="1,590">', "an image"),
        ('<img src="f.png">', "an image"),
        ("<svg><text>1,590</text></svg>", "a drawing"),
        ("<![CDATA[1,590]]>", "a CDATA section"),
        ("<script>document.write('1,590')</script>", "a script"),
        ("1,590<table><tr><td>7</td></tr></table>", "a table"),
        ("1,590<svg><text>9</text></svg>", "a drawing"),
        ("1,590<select><option>9</select>", "a list of choices"),
    ],
)
def test_figure_that_is_not_text_rejects_its_row(cell: str, what: str) -> None:
    document = read(training_page([*GPT2[:8], cell], RESNET))
    assert grids(document) == {"bow_training": [RESNET]}
    [problem] = document.problems
    assert problem.reason == "unread-cell"
    assert problem.message == f"the cell under 'Throughput (items/sec)' holds {what} that is not read"


@pytest.mark.parametrize(
    "cell",
    [
        '1,590<img src="up.png" alt="up">',
        '1,590<input type="checkbox" value="1">',
        "1,590<svg><style>.a1{width:1}</style><path d='M1 1'/></svg>",
        "1,590<script>f(7)</script>",
        "1,590<noscript>9</noscript>",
    ],
)
def test_icon_or_script_next_to_a_figure_is_no_problem(cell: str) -> None:
    assert read_figure(cell) == "1,590"


def test_row_of_cells_that_are_not_text_is_quarantined_and_a_decorated_blank_one_is_not() -> None:
    fields = [f'<input value="{text}">' for text in GPT2]
    images = ["", *['<img src="f.png">'] * 8]
    icons = ["<svg></svg>", *[""] * 8]
    spacer = '<tr><td colspan="9"><img src="line.png"></td></tr>'
    rows = [*map(row_html, (GPT2, fields, images, icons)), spacer, row_html(RESNET)]
    document = read(page_html("<table>", row_html(TRAINING, "th"), *rows, "</table>"))
    assert grids(document) == {"bow_training": [GPT2, RESNET]}
    assert problems(document) == [("bow_training", 2, "unread-cell"), ("bow_training", 3, "unread-cell")]


# --- text that is drawn otherwise than it is written


@pytest.mark.parametrize(
    ("cell", "style", "what"),
    [
        ("<bdo dir=rtl>1,590</bdo>", "", "a number from right to left"),
        ('<i dir="rtl" style="unicode-bidi:bidi-override">1,590</i>', "", "a number from right to left"),
        ("<i class=r>1,590</i>", ".r{direction:rtl;unicode-bidi:isolate-override}", "a number from right to left"),
        ('<i dir="rtl">1 590</i>', "", "a number from right to left"),
        ("<ruby>1,590<rt>x</rt></ruby>", "", "an annotation in ruby text"),
        ("1,590<sub>a</sub>", "", "a raised or lowered mark"),
        ('1,590<i style="font-size:70%;position:relative;top:-4px">a</i>', "", "a raised or lowered mark"),
        ('1,590<i style="font-size:70%;vertical-align:4px">a</i>', "", "a raised or lowered mark"),
        ("1,590 it<sub>7</sub>/s", "", "a raised or lowered mark"),
        ("1,590 it<i>7</i>", "", "a word and a number that are glued together"),
        ("1,590 it<i>1,590</i> it", "", "a word and a number that are glued together"),
        ('<i style="color:#fff;background:White">1,590</i>', "", "text that may have the colour of its background"),
        ('<i style="color:#FFF">1,</i>590', "", "text that may have the colour of its background"),
        ('<i data-v="1,590"></i>', "i::before{content:attr(data-v)}", "text of a style sheet"),
        ('1,590<i data-v="7"></i>', "td i:after{content:attr(data-v)}", "text of a style sheet"),
        ("<i>1,590</i>", "i::before{content:'\\2212'}", "text of a style sheet"),
        ("1,590", "tr > td:last-child::after{content:' k'}", "text of a style sheet"),
        ("1,590", "td:last-child::after{content:counter(row)}", "text of a style sheet"),
    ],
)
def test_figure_that_is_drawn_otherwise_than_written_rejects_its_row(cell: str, style: str, what: str) -> None:
    page = training_page([*GPT2[:8], cell])
    document = read(page.replace(b"</head>", f"<style>{style}</style></head>".encode()))
    [problem] = document.problems
    assert problem.message == f"the cell under 'Throughput (items/sec)' holds {what} that is not read"


@pytest.mark.parametrize(
    ("cell", "style"),
    [
        ('1,590<i style="vertical-align: super; font-size: 70%">2</i>', ""),
        ("1,590<i class=n>a</i>", ".n{vertical-align:super}"),
        ('<i style="vertical-align:super">1,590</i>', ""),
        ('<i dir="rtl">1,590</i>', ""),
        ("<bdo dir=ltr>1,590</bdo>", ""),
        ('<i dir="rtl"><bdo dir="ltr">1,590</bdo></i>', ""),
        ('<i style="color:#fff;background:#222">1,590</i>', ""),
        ('<i style="color:#fff;background:#fff"><b style="color:#000">1,590</b></i>', ""),
        ('<i style="color:#fff">1,590</i>', ""),
        ('<i data-v="Throughput">1,590</i>', "i::before{content:attr(data-v)}"),
        ("<i>1,590</i>", "i::before{content:'\\f0dc'} i::after{content:''}"),
        ('<i data-v="7">1,590</i>', "@media (max-width:600px) {i::before{content:attr(data-v)}}"),
        ('<i data-v="7">1,590</i>', "i::before{content:attr(data-v);display:none}"),
        ('<i data-v="7">1,590</i>', "i::before{content:attr(data-v)} td i::before{content:none}"),
        ('<i data-v="7">1,590</i>', "i::marker{content:attr(data-v)}"),
    ],
)
def test_figure_that_is_drawn_as_written_is_read(cell: str, style: str) -> None:
    assert read_figure(cell, style) == "1,590"


@pytest.mark.parametrize(("text", "metric"), [("MAE", "MAE"), ("F<sub>1</sub>", "F1"), ("AP<sub>50</sub>", "AP50")])
def test_mark_is_no_part_of_the_name_of_a_metric(text: str, metric: str) -> None:
    def read_metric(cell: str) -> list[str]:
        document = read(
            page_html("<table>", row_html(OGB, "th"), row_html([*OGB_ROW[:7], cell, OGB_ROW[8]]), "</table>")
        )
        return [rows[0][7] for rows in grids(document).values()]

    assert read_metric(f"0.0719 {text}") == [f"0.0719 {metric}"]
    assert read_metric(f'0.0719 {text}<i style="vertical-align:super">7</i>') == [f"0.0719 {metric}"]
    for mark in ("<sub>7</sub>", "<small>7</small>", "<font size=1>12</font>", "<ruby>x<rt>7</rt></ruby>"):
        assert read_metric(f"0.0719 MAE{mark}") == []


def test_duration_in_several_elements_is_read() -> None:
    cells = ["1<b>h</b>13<b>m</b>", "<b>1h</b> <b>13m</b>"]
    for cell in cells:
        document = read(
            page_html("<table>", row_html(OGB, "th"), row_html([*OGB_ROW[:6], cell, *OGB_ROW[7:]]), "</table>")
        )
        assert document.problems == ()


def test_each_table_of_a_block_is_reported() -> None:
    def write_grid(header: list[str], row: list[str]) -> str:
        return "".join(f"<div>{text}</div>" for text in [*header, *row])

    cell = "<table><tr><td>1,590</td></tr></table>"
    blocks = write_grid(TRAINING, [*GPT2[:8], cell]), write_grid(OGB, OGB_ROW)
    document = read(page_html(*blocks))
    assert [(problem.reason, problem.locator) for problem in document.problems] == [
        ("unread-table", "before table 1"),
        ("unread-table", "before table 1, part 2"),
    ]


@pytest.mark.parametrize("cell", ['<img alt="{}">', '<i class="f" data-v="{}"></i>', "<![CDATA[{}]]>"])
def test_table_on_its_side_whose_figures_are_not_text_is_reported(cell: str) -> None:
    cells = [*GPT2[:6], *(cell.format(text) for text in GPT2[6:])]
    rows = [f"<tr><th>{name}</th><td>{text}</td></tr>" for name, text in zip(TRAINING, cells, strict=True)]
    document = read(styled(".f::before{content:attr(data-v)}", f"<table>{''.join(rows)}</table>"))
    assert [problem.reason for problem in document.problems] == ["unread-table"]


@pytest.mark.parametrize(
    "tag", ["section", "summary", "article", "figure", "main", "fieldset", "center", "dl", "address"]
)
def test_block_elements_divide_words(tag: str) -> None:
    document = read(training_page([GPT2[0], f"Large<{tag}>SL128</{tag}>", *GPT2[2:]]))
    assert grids(document)["bow_training"][0][1] == "Large SL128"


def test_element_displayed_as_a_block_divides_words() -> None:
    cell = '<span style="display:block">Large</span>SL128'
    assert grids(read(training_page([GPT2[0], cell, *GPT2[2:]])))["bow_training"][0][1] == "Large SL128"


# --- saved pages and e-mails


def save_page(encoding: str, charset: str = "utf-8", name: str = "Größe") -> bytes:
    page = training_page([GPT2[0], f"{name}\u00a0128", *GPT2[2:]]).decode().replace('<meta charset="utf-8">', "")
    encode = {"quoted-printable": quopri.encodestring, "base64": base64.encodebytes, "8bit": bytes}[encoding]
    body = encode(page.encode(charset)).replace(b"\n", b"\r\n")
    head = "From: <Saved by Blink>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n boundary=B\r\n"
    part = f"\r\n--B\r\nContent-Type: text/html; charset={charset}\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n"
    image = b"\r\n--B\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\niVBO\r\n--B--\r\n"
    return (head + part).encode() + body + image


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64", "8bit"])
@pytest.mark.parametrize("charset", ["utf-8", "windows-1252"])
def test_saved_page_is_decoded(encoding: str, charset: str) -> None:
    document = read_document(save_page(encoding, charset), WORDS.table_headers)
    assert grids(document) == {"bow_training": [[GPT2[0], "Größe 128", *GPT2[2:]]]}


@pytest.mark.parametrize(
    "page",
    [
        save_page("quoted-printable").replace(b"=C3", b"=ZZ", 1),
        save_page("base64").replace(b"--B--", b""),
        save_page("base64")[:600],
        save_page("8bit")[:600],
        save_page("base64").replace(b"Encoding: base64", b"Encoding: x", 1),
    ],
)
def test_damaged_saved_page_is_refused(page: bytes) -> None:
    with pytest.raises(DamagedDocumentError):
        read_document(page, WORDS.table_headers)


def test_message_without_one_page_is_refused() -> None:
    with pytest.raises(DamagedDocumentError, match="without an HTML part"):
        read_document(b"MIME-Version: 1.0\nContent-Type: text/plain\n\n<table>\n", WORDS.table_headers)
    first, _, rest = save_page("8bit").partition(b"--B\r\nContent-Type: image")
    part = first[first.index(b"--B\r\n") :]
    with pytest.raises(DamagedDocumentError, match="2 pages"):
        read_document(first + part + b"--B\r\nContent-Type: image" + rest, WORDS.table_headers)


# --- damage and size


def test_page_with_the_end_of_its_body_only_is_whole() -> None:
    page = training_page(GPT2).replace(b"</html>", b"")
    assert grids(read(page)) == {"bow_training": [GPT2]}
    with pytest.raises(DamagedDocumentError, match="truncated"):
        read(page.replace(b"</body>", b""))


def test_unit_that_is_wrapped_is_a_unit() -> None:
    header = [*TRAINING[:8], "Throughput\n(items/ sec)"]
    parsed = read(page_html("<table>", row_html(header, "th"), row_html(GPT2), "</table>"))
    normalised: NormalisedDocument = normalise(make_document("graphcore-performance"), parsed, WORDS)
    assert [result.values["throughput"] for result in normalised.results] == [1590.0]


@pytest.mark.parametrize("nested", ["<table><tr><td>" * 50_000, "<table>" + "<div>" * 50_000 + "<tr><td>x" * 10])
def test_deeply_nested_page_is_refused_at_once(nested: str) -> None:
    with pytest.raises(DocumentTooLargeError, match="deep"):
        read(page_html(nested))
