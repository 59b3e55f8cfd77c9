"""What a reader of a page cannot see is not read, and what looks like a figure or a table is never
lost silently.
"""

from __future__ import annotations

import base64
import quopri

import pytest
from ipu_results.errors import DamagedDocumentError, DocumentTooLargeError
from ipu_results.normalise import normalise
from ipu_results.normalise.decimal_mark import DecimalMark, find_decimal_marks
from ipu_results.read import ParsedDocument
from ipu_results.read.dispatch import read_document

from tests.read.reading_support import (
    GPT2,
    INFERENCE,
    OGB,
    RESNET,
    TRAINING,
    UNET,
    WORDS,
    grids,
    list_results,
    make_document,
    normalise_page,
    normalise_table,
    page_html,
    problems,
    read_page,
    rejections,
    row_html,
    table_html,
    training_page,
)

OGB_ROW = [
    "PCQM4Mv2",
    "GPS++",
    "Bow Pod16",
    "SDK 3.0",
    "TensorFlow2",
    "14,000",
    "23h 43m",
    "0.0719 MAE",
    "First",
]


def styled(style: str, page: bytes) -> bytes:
    return page.replace(b"</head>", f"<style>{style}</style></head>".encode())


def read_figure(cell: str, style: str = "") -> str:
    """Return the throughput written as `cell`, or why its row is a problem."""
    document = read_page(styled(style, training_page([*GPT2[:8], cell], RESNET)))
    *others, last = grids(document)["bow_training"]
    assert last == RESNET
    if others:
        assert (document.problems, [row[:8] for row in others]) == ((), [GPT2[:8]])
        return others[0][8]
    [problem] = document.problems
    assert (problem.table_name, problem.row_number) == ("bow_training", 1)
    return problem.message


# --- decimal commas


@pytest.mark.parametrize(
    ("texts", "throughput", "values", "rejected"),
    [
        pytest.param(
            ["0,920", "1,360", "12,5", "3"],
            "7",
            [0.920, 1.360, 12.5, 3.0],
            [],
            id="leading zero proves",
        ),
        pytest.param(
            ["0,920", "1,360"],
            "1,920",
            [],
            [1, 2],
            id="commas of one column make the others ambiguous",
        ),
        pytest.param(
            ["0,920", "1,360", "1.4"], "7", [1.4], [1, 2], id="commas and points in one column"
        ),
        pytest.param(
            ["1,474", "2,586"], "1,920", [1474.0, 2586.0], [], id="thousands without a proof"
        ),
        pytest.param(
            ["1,474", "2,58", "1.4"], "7", [1474.0, 1.4], [2], id="lost digit among decimal points"
        ),
        pytest.param(["1,474", "2,58"], "7", [], [1, 2], id="lost digit without a decimal point"),
    ],
)
def test_commas_are_decimal_only_where_proved(
    texts: list[str], throughput: str, values: list[float], rejected: list[int]
) -> None:
    rows = [
        [*UNET[:6], str(number), UNET[7], throughput, text]
        for number, text in enumerate(texts, start=1)
    ]
    normalised = normalise_page(*rows, header=INFERENCE, name="bow_inference")
    assert [result["latency_ms"] for result in list_results(normalised)] == values
    assert [(number, reason) for number, reason, _ in rejections(normalised)] == [
        (number, "unreadable-figure") for number in rejected
    ]
    if throughput == "1,920" and rejected:
        assert "'1,920' can be read in two ways" in rejections(normalised)[0][2]


def test_proof_in_a_row_that_cannot_be_read_makes_its_table_ambiguous() -> None:
    row = [*UNET[:6], "1", UNET[7], "7", "1,360"]
    document = read_page(page_html(table_html(INFERENCE, [row, [*row[:8], "0,920"]])))
    [table] = document.tables
    marks = find_decimal_marks(
        [(table, WORDS.header_of("performance-page", table.name))], document.problems
    )
    assert marks[table.name, INFERENCE[-1]] is DecimalMark.UNCLEAR
    assert find_decimal_marks([(table, WORDS.header_of("performance-page", table.name))]) == {}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "7.19 × 10⁻² MAE",
            "7.19 x 10^-2 MAE",
            "7.19 e-2 MAE",
            "1 234 MAE",
            "0.07 ± 0.01",
            "0.07 MAE ± 0.01",
        ),
        *(
            "0.07 – 0.08 MAE",
            "0.07 to 0.08 MAE",
            "0.07 (0.06-0.08) MAE",
            "0.07 +/- 0.01 MAE",
            "1.2 million MAE",
        ),
        *("0.07 MAE 824,", "0.07 MAE 8; 9"),
    ],
)
def test_metric_cell_that_is_not_one_figure_rejects_its_row(text: str) -> None:
    normalised = normalise_table(
        "graphcore-performance", "ogb_lsc", OGB, OGB_ROW, [*OGB_ROW[:7], text, OGB_ROW[8]]
    )
    assert [result["quality_value"] for result in list_results(normalised)] == [0.0719]
    assert [(number, reason) for number, reason, _ in rejections(normalised)] == [
        (2, "unreadable-figure")
    ]


# --- text that is hidden, or drawn otherwise than it is written


@pytest.mark.parametrize(
    ("cell", "style"),
    [
        ('<span style="visibility:hidden">7</span>1,590', ""),
        ('<span style="DISPLAY : none !important">7</span>1,590', ""),
        ("<del>1,591</del> 1,590", ""),
        ("<s>7</s>1,590", ""),
        ('<span style="text-decoration: line-through red">7</span> 1,590', ""),
        ('<i class="a b">7</i>1,590', ".b{display:none}"),
        ('<i id="b">7</i>1,590', "p, #b { color: red; visibility: hidden }"),
        ("<i>7</i>1,590", "td > i {display:none}"),
        ("<i>7</i>1,590", "@media screen { td i {display:none} }"),
        ("<i>7</i>1,590", "@media (min-width: 600px) { i {display:none} }"),
        ("<div class=x><b>7</b></div>1,590", ".x{display:none} .x b{display:inline}"),
        ("<template>7</template>1,590", ""),
        ('<b style="visibility:hidden">7<i style="visibility:visible">1,590</i></b>', ""),
        ("<i class=x>1,590</i>", ".x{display:none} i.x{display:inline}"),
        (
            "<i class=x>1,590</i>",
            "@media print {.x{display:none}} @media (max-width:600px) {.x{display:none}}",
        ),
        (
            "<i class=x>1,590</i>",
            "@keyframes a {from {display:none}} .x:hover{display:none} .x::after{display:none}",
        ),
        ('<i class=x style="display:inline">1,590</i>', ".x{display:none}"),
        ('<i aria-hidden="true">1,590</i>', ""),
        # icons and scripts next to a figure
        ('1,590<img src="up.png" alt="up">', ""),
        ('1,590<input type="checkbox" value="1">', ""),
        ("1,590<svg><style>.a1{width:1}</style><path d='M1 1'/></svg>", ""),
        ("1,590<script>f(7)</script>", ""),
        ("1,590<noscript>9</noscript>", ""),
        # drawn as written
        ('1,590<i style="vertical-align: super; font-size: 70%">2</i>', ""),
        ("1,590<i class=n>a</i>", ".n{vertical-align:super}"),
        ('<i style="vertical-align:super">1,590</i>', ""),
        ('<i dir="ltr">1,590</i>', ""),
        ('<i style="color:#fff;background:#222">1,590</i>', ""),
        ('<i style="color:#fff;background:#fff"><b style="color:#000">1,590</b></i>', ""),
        ("<i>1,590</i>", "i::before{content:'\\f0dc'} i::after{content:''}"),
        ('<i data-v="7">1,590</i>', "@media (max-width:600px) {i::before{content:attr(data-v)}}"),
    ],
)
def test_only_what_a_reader_sees_is_the_figure(cell: str, style: str) -> None:
    assert read_figure(cell, style) == "1,590"


@pytest.mark.parametrize(
    ("cell", "style", "what"),
    [
        ("<table><tr><td>1,590</td></tr></table>", "", "a table"),
        ('<input value="1,590">', "", "an input field"),
        ('<img src="f.png" alt="1,590">', "", "an image"),
        ('<img src="f.png">', "", "an image"),
        ("<svg><text>1,590</text></svg>", "", "a drawing"),
        ("<![CDATA[1,590]]>", "", "a CDATA section"),
        ("<script>document.write('1,590')</script>", "", "a script"),
        ("1,590<table><tr><td>7</td></tr></table>", "", "a table"),
        ("1,590<svg><text>9</text></svg>", "", "a drawing"),
        ("1,590<select><option>9</select>", "", "a list of choices"),
        (
            '<i data-v="7"></i>',
            "i::before{content:attr(data-v)}",
            "an element that `content: attr(data-v)`",
        ),
        ("<ruby>1,590<rt>x</rt></ruby>", "", "an annotation in ruby text"),
        ("1,590<sub>a</sub>", "", "a raised or lowered mark"),
        ("1,590 it<sub>7</sub>/s", "", "a raised or lowered mark"),
        ("1,590 it<i>7</i>", "", "a word and a number that are glued together"),
        ("1,590 it<i>1,590</i> it", "", "a word and a number that are glued together"),
        (
            '<i style="color:#fff;background:White">1,590</i>',
            "",
            "text that may have the colour of its background",
        ),
        ('<i style="color:#FFF">1,</i>590', "", "text that may have the colour of its background"),
    ],
)
def test_figure_that_is_not_text_or_drawn_otherwise_rejects_its_row(
    cell: str, style: str, what: str
) -> None:
    end = "may hide, move or alter" if "`" in what else "that is not read"
    expected = f"the cell under 'Throughput (items/sec)' holds {what} {end}"
    assert read_figure(cell, style) == expected


def test_cell_that_is_not_displayed_takes_no_column() -> None:
    row = row_html(GPT2).replace("<td>8,192", '<td style="display:none">7</td><td>8,192')
    assert grids(read_page(page_html("<table>", row_html(TRAINING, "th"), row, "</table>"))) == {
        "bow_training": [GPT2]
    }


@pytest.mark.parametrize("hide", ["hidden", 'style="display:none"', 'class="x"'])
def test_hidden_row_is_quarantined(hide: str) -> None:
    page = training_page(GPT2, RESNET).replace(b"<tr><td>GPT2", f"<tr {hide}><td>GPT2".encode())
    document = read_page(styled("tr.x{display:none}", page))
    assert grids(document) == {"bow_training": [RESNET]}
    assert problems(document) == [("bow_training", 1, "hidden-row")]


@pytest.mark.parametrize(
    "wrap",
    ["<div hidden>{}</div>", "<div style='display: none'><p>{}</div>", "<div class=x>{}</div>"],
)
def test_hidden_table_is_a_problem_and_not_read(wrap: str) -> None:
    page = page_html(table_html(TRAINING, [GPT2]), wrap.format(table_html(INFERENCE, [UNET])))
    document = read_page(styled(".x *{} body .x{visibility:hidden}", page))
    assert grids(document) == {"bow_training": [GPT2]}
    assert [(problem.reason, problem.locator) for problem in document.problems] == [
        ("unknown-header", "table 2")
    ]
    assert "hidden" in document.problems[0].message


def test_style_rules_that_would_take_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipu_results.read.html_visible.MAX_STYLE_MATCHES", 10)
    with pytest.raises(DocumentTooLargeError, match="style rules"):
        read_page(styled("table td{display:none}", training_page(GPT2, RESNET)))
    with pytest.raises(DocumentTooLargeError, match="style rules that are nested too deeply"):
        read_page(styled("a{" * 9_000 + "display:none", training_page(GPT2)))
    with pytest.raises(DocumentTooLargeError, match="style rule of more"):
        read_page(styled(f"{'a ' * 9_000}{{display:none}}", training_page(GPT2)))
    long = ",".join(f".column-{number}" for number in range(2_000))
    assert (
        read_page(styled(f"{long}{{color:red}} .x{{display:none}}", training_page(GPT2))).problems
        == ()
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


@pytest.mark.parametrize(
    "cell", ['<img alt="{}">', '<i class="f" data-v="{}"></i>', "<![CDATA[{}]]>"]
)
def test_table_on_its_side_whose_figures_are_not_text_is_reported(cell: str) -> None:
    cells = [*GPT2[:6], *(cell.format(text) for text in GPT2[6:])]
    rows = [
        f"<tr><th>{name}</th><td>{text}</td></tr>"
        for name, text in zip(TRAINING, cells, strict=True)
    ]
    document = read_page(
        styled(".f::before{content:attr(data-v)}", page_html("<table>", *rows, "</table>"))
    )
    assert [problem.reason for problem in document.problems] == ["unread-table"]


def test_prose_filters_and_column_names_around_a_table_are_no_problem() -> None:
    around = (
        "".join(f"<label>{name}</label>" for name in TRAINING[:5])
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
    document = read_page(page_html("<table>", row_html(INFERENCE, "th"), *rows, "</table>"))
    assert grids(document) == {"bow_inference": [[*UNET[:8], "n/a", "n/a"]]}
    [problem] = document.problems
    assert (problem.row_number, problem.reason) == (1, "unread-cell")
    assert problem.message == "one cell spans 'Throughput (items/sec)' and 'Latency (ms)'"


def test_row_of_cells_that_are_not_text_is_quarantined_and_a_decorated_blank_one_is_not() -> None:
    fields = [f'<input value="{text}">' for text in GPT2]
    images = ["", *['<img src="f.png">'] * 8]
    icons = ["<svg></svg>", *[""] * 8]
    spacer = '<tr><td colspan="9"><img src="line.png"></td></tr>'
    rows = [*map(row_html, (GPT2, fields, images, icons)), spacer, row_html(RESNET)]
    document = read_page(page_html("<table>", row_html(TRAINING, "th"), *rows, "</table>"))
    assert grids(document) == {"bow_training": [GPT2, RESNET]}
    assert problems(document) == [
        ("bow_training", 2, "unread-cell"),
        ("bow_training", 3, "unread-cell"),
    ]


def read_ogb(column: int, cell: str) -> ParsedDocument:
    row = [*OGB_ROW[:column], cell, *OGB_ROW[column + 1 :]]
    return read_page(page_html("<table>", row_html(OGB, "th"), row_html(row), "</table>"))


@pytest.mark.parametrize(
    ("text", "metric"), [("MAE", "MAE"), ("F<sub>1</sub>", "F1"), ("AP<sub>50</sub>", "AP50")]
)
def test_mark_is_no_part_of_the_name_of_a_metric(text: str, metric: str) -> None:
    for mark in ("", '<i style="vertical-align:super">7</i>'):
        assert grids(read_ogb(7, f"0.0719 {text}{mark}"))["ogb_lsc"][0][7] == f"0.0719 {metric}"
    for mark in (
        "<sub>7</sub>",
        "<small>7</small>",
        "<font size=1>12</font>",
        "<ruby>x<rt>7</rt></ruby>",
    ):
        assert grids(read_ogb(7, f"0.0719 MAE{mark}")) == {}


def test_duration_in_several_elements_is_read() -> None:
    assert [
        read_ogb(6, cell).problems for cell in ("1<b>h</b>13<b>m</b>", "<b>1h</b> <b>13m</b>")
    ] == [(), ()]


@pytest.mark.parametrize(
    "element",
    [
        *(
            f"<{tag}>SL128</{tag}>"
            for tag in "section summary article figure main fieldset center dl address".split()
        ),
        '<span style="display:block">SL128</span>',
    ],
)
def test_block_elements_divide_words(element: str) -> None:
    document = read_page(training_page([GPT2[0], f"Large{element}", *GPT2[2:]]))
    assert grids(document)["bow_training"][0][1] == "Large SL128"


def test_unit_that_is_wrapped_is_a_unit() -> None:
    header = [*TRAINING[:8], "Throughput\n(items/ sec)"]
    parsed = read_page(page_html("<table>", row_html(header, "th"), row_html(GPT2), "</table>"))
    normalised = normalise(make_document("graphcore-performance"), parsed, WORDS)
    assert [result["throughput"] for result in list_results(normalised)] == [1590.0]


# --- saved pages and e-mails


def save_page(encoding: str, charset: str = "utf-8") -> bytes:
    page = (
        training_page([GPT2[0], "Größe\u00a0128", *GPT2[2:]])
        .decode()
        .replace('<meta charset="utf-8">', "")
    )
    encode = {"quoted-printable": quopri.encodestring, "base64": base64.encodebytes, "8bit": bytes}[
        encoding
    ]
    body = encode(page.encode(charset)).replace(b"\n", b"\r\n")
    head = (
        "From: <Saved by Blink>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n"
        " boundary=B\r\n"
    )
    part = (
        f"\r\n--B\r\nContent-Type: text/html; charset={charset}\r\nContent-Transfer-Encoding:"
        f" {encoding}\r\n\r\n"
    )
    image = (
        b"\r\n--B\r\nContent-Type: image/png\r\nContent-Transfer-Encoding:"
        b" base64\r\n\r\niVBO\r\n--B--\r\n"
    )
    return (head + part).encode() + body + image


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64", "8bit"])
@pytest.mark.parametrize("charset", ["utf-8", "windows-1252"])
def test_saved_page_is_decoded(encoding: str, charset: str) -> None:
    document = read_document(save_page(encoding, charset), WORDS.table_headers)
    assert grids(document) == {"bow_training": [[GPT2[0], "Größe 128", *GPT2[2:]]]}


WHOLE, IMAGE = save_page("8bit"), b"--B\r\nContent-Type: image"


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
    assert grids(read_page(page)) == {"bow_training": [GPT2]}
    with pytest.raises(DamagedDocumentError, match="ends in the middle"):
        read_page(page.replace(b"</body>", b""))


@pytest.mark.parametrize(
    "nested", ["<table><tr><td>" * 50_000, "<table>" + "<div>" * 50_000 + "<tr><td>x" * 10]
)
def test_deeply_nested_page_is_refused_at_once(nested: str) -> None:
    with pytest.raises(DocumentTooLargeError, match="deep"):
        read_page(page_html(nested))
