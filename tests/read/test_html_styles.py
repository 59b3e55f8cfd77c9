"""Styles of a page: what is understood leaves the figure as seen, all else is reported by its name."""

from __future__ import annotations

import pytest
from ipu_results.normalise import normalise

from tests.read.reading_support import (
    GPT2,
    RESNET,
    TRAINING,
    WORDS,
    make_document,
    page_html,
    problems,
    read_page,
    row_html,
    table_html,
    training_page,
)
from tests.read.test_html_hidden import read_figure, styled

HALF = "text that {} may hide, move or alter"
COLOURED = "text that may have the colour of its background that is not read"


@pytest.mark.parametrize(
    ("cell", "style", "what"),
    [
        # hidden or moved by a property whose effect is not computed
        ('<i style="font-size:0">7</i>1,590', "", "`font-size: 0`"),
        ('<b style="font-size:0">7<i style="font-size:12px">1,590</i></b>', "", "`font-size: 0`"),
        ("<i>7</i>1,590", "td i {font:0/0 a}", "`font-size: 0`"),
        ('<i style="font-size:1px">7</i>1,590', "", "`font-size: 1px`"),
        ('<i style="opacity:0.01">7</i>1,590', "", "`opacity: 0.01`"),
        ('<i style="position:absolute;left:-9999px">7</i>1,590', "", "`left: -9999px`"),
        ('<i style="margin-left:-9999px">7</i>1,590', "", "`margin-left: -9999px`"),
        ('<i style="position:relative;top:-4px">7</i>1,590', "", "`top: -4px`"),
        ('1,590<i style="vertical-align:4px">7</i>', "", "`vertical-align: 4px`"),
        ("<i class=x>7</i>1,590", ".x {transform:scale(0)}", "`transform: scale(0)`"),
        ("<i class=x>7</i>1,590", ".x {filter:opacity(0)}", "`filter: opacity(0)`"),
        ("<i class=x>7</i>1,590", ".x {clip-path:inset(50%)}", "`clip-path: inset(50%)`"),
        ("<i class=x>7</i>1,590", ".x {overflow:hidden}", "`overflow: hidden`"),
        ("<i class=x>7</i>1,590", ".x {content-visibility:hidden}", "`content-visibility: hidden`"),
        ("<i class=x>7</i>1,590", ".x {animation:a 1s forwards}", "`animation: a 1s forwards`"),
        ("<i class=x>7</i>1,590", ".x {-webkit-text-fill-color:transparent}", "`text-fill-color: transparent`"),
        ("<i class=x>7</i>1,590", ".x {all:unset}", "`all: unset`"),
        ("<i dir=rtl>1 590</i>", "", "`direction: rtl`"),
        ("<bdo>1,590</bdo>", "", "an element 'bdo'"),
        ("<i class=r>1,590</i>", ".r {unicode-bidi:isolate-override}", "`unicode-bidi: isolate-override`"),
        # order
        ("<b class=x><i>2.5</i><i>1</i></b>", ".x {flex-direction:row-reverse}", "`flex-direction: row-reverse`"),
        ("<i>2</i><i class=x>1</i>", "td {display:flex} .x {order:-1}", "`order: -1`"),
        ("<i class=x>2</i>1,590", ".x {float:right}", "`float: right`"),
        # rules that a browser may or may not apply
        ("<i class=x>7</i>1,590", "@media (prefers-x: light) {.x{display:none}}", "`@media (prefers-x: light)`"),
        ("<i class=x>7</i>1,590", "@supports not (display:grid) {.x{display:none}}", "`@supports not (display:grid)`"),
        ("<i class=x>7</i>1,590", "@container (min-width:1px) {.x{display:none}}", "`@container (min-width:1px)`"),
        ("<i class=x>7</i>1,590", "@layer b,a; @layer a{.x{display:none}} @layer b{.x{display:inline}}", "`@layer a`"),
        ("<i class=x>7</i>1,590", ".x:unheard-of, .x {display:none}", "the selector '.x:unheard-of'"),
        ("<i class=x>7</i>1,590", "td:has(.x) .x {display:none}", "the selector 'td:has(.x) .x'"),
        ("<i class=x>7</i>1,590", "tr { & .x {display:none} }", "a style rule in another one"),
        ("<i class=x>7</i>1,590", ":root{--d:none} .x {display:var(--d)}", "`display: var(--d)`"),
        ("<i class=x>7</i>1,590", ".x {display:none;display:nonesuch}", "`display: nonesuch`"),
        ("<i class=x>7</i>1,590", ".x::first-letter {font-size:0}", "the selector '.x::first-letter'"),
        # struck
        (
            '<i style="text-decoration:line-through;text-decoration-color:transparent">7</i>',
            "",
            "`text-decoration-color: transparent`",
        ),
        ('<s>7<i style="display:inline-block">1,590</i></s>', "", "a box in struck text"),
        # elements
        ("<math><msqrt><mn>1590</mn></msqrt></math>", "", "an element 'msqrt'"),
        ("<math><menclose notation='updiagonalstrike'><mn>7</mn></menclose></math>1,590", "", "an element 'menclose'"),
        ("<math><semantics><mn>1,590</mn><annotation>7</annotation></semantics></math>", "", "an element 'annotation'"),
        ("<video>1,590</video>", "", "an element 'video'"),
        ("<meter value=7>1,590</meter>", "", "an element 'meter'"),
        ("<ol><li>590</ol>", "", "an element 'ol'"),
        ("<ul><li>590</ul>", "ul {list-style-type:decimal}", "`list-style: decimal`"),
        ("<b><template shadowrootmode=open>7</template>1,590</b>", "", "a shadow tree"),
        ("<details>7</details>1,590", "", "an element 'details'"),
        # colours, by rules and through transparency
        ("<i class=x>7</i>1,590", ".x{color:white}", COLOURED),
        ("<i class=x>7</i>1,590", ".x{color:rgb(0 0 0 / 0)}", COLOURED),
        ("<i class=x>7</i>1,590", "td:last-child{background:#000}", COLOURED),
        ("<font color=ffffff>7</font>1,590", "", COLOURED),
        ("<i class=x>7</i>1,590", ":root{--c:#fff} .x{color:var(--c)}", "the colour 'var(--c)'"),
        # text of a style sheet
        ("<i>1,590</i>", "i::after{content:' thousand'}", '`content: " thousand"`'),
        ("<i data-v='Throughput'>1,590</i>", "i::before{content:attr(data-v)}", "`content: attr(data-v)`"),
        ("<i>1,590</i>", "i::before{content:'\\2212'}", '`content: "\u2212"`'),
        ("1,590", "tr:first-child + tr > td:last-child::after{content:counter(row)}", "`content: counter(row)`"),
        ("<ul><li>590</ul>", "li::marker{content:'1,'}", '`content: "1,"`'),
        ("1,590", "tr::before{content:'7'}", '`content: "7"`'),
    ],
)  # fmt: skip
def test_what_may_hide_or_alter_a_figure_rejects_its_row(cell: str, style: str, what: str) -> None:
    [problem] = read_page(styled(style, training_page([*GPT2[:8], cell]))).problems
    expected = what if what == COLOURED else HALF.format(what)
    assert problem.message == f"the cell under 'Throughput (items/sec)' holds {expected}" or (
        cell == "1,590" and what in problem.message  # the row as a whole: its header, too
    )


@pytest.mark.parametrize(
    ("cell", "style"),
    [
        ("<i class=x>1,590</i>", "</style><noscript><style>.x{display:none}</style></noscript><style>"),
        ("<i class=x>1,590</i>", "</style><template><style>.x{display:none}</style></template><style>"),
        ("<i class=x>1,590</i>", "</style><style type='text/plain'>.x{display:none}</style><style>"),
        ("<i class=x>1,590</i>", "</style><style media=print>.x{display:none}</style><style>"),
        ("<i class=x>7</i>1,590", ".x{d\\69splay:n\\6fne}"),
        ("<i class=x>7</i>1,590", ".\\78 {display:none}"),
        ("<i class=x>7</i>1,590", "/* } */ .x/**/{display:/**/none}"),
        ("<i class=x>1,590</i>", "i.x{display:inline} .x{display:none}"),
        ("<i class=x>7</i>1,590", ".x{display:none!important} i.x{display:inline}"),
        ('<i style="text-decoration:line-through;text-decoration-skip-ink:none">7</i> 1,590', ""),
        ('<s style="text-decoration:none">1,590</s>', ""),
        ("<i class=x>1,590</i>", ".X{display:none} #x{display:none} tr.x{display:none}"),
        ("<i>1,590</i>", "body{overflow:hidden;margin:0 -15px;line-height:1.5} td{padding:0;transition:all 1s}"),
        ("<i>1,590</i>", "thead tr{color:#fff} thead th{background:#000} td{background:#eee;color:#222}"),
        ("<i>1,590</i>", "*::-webkit-scrollbar{display:none} td:hover{display:none} ::selection{color:#fff}"),
        ("<i>1,590</i>", "td{vertical-align:top;font:italic 12px/1.5 Arial} @font-face{font-family:x;src:url(x)}"),
    ],
)  # fmt: skip
def test_constructs_that_are_understood_leave_the_figure_as_seen(cell: str, style: str) -> None:
    assert read_figure(cell, style) == "1,590"


@pytest.mark.parametrize(
    ("style", "what"),
    [
        ("margin-top:-120px;background:#fff", "`margin-top: -120px`"),
        ("margin:0 0 0 -100%;background:#eee", "`margin: 0 0 0 -100%`"),
        ("margin-top:-2em;background:#fff", "`margin-top: -2em`"),
        ("position:absolute;top:50px;height:90px;background:#fff", "`position: absolute`"),
        ("position:relative;top:-999px;background:url(x)", "`top: -999px`"),
        ("transform:translateY(-50px);background:#fff", "`transform: translatey(-50px)`"),
        ("margin-top:-50px' class='w", "`margin-top: -50px`"),
        ("margin-top:-1px;background:#fff", ""),
        ("margin:40px auto 0;background:#fff", ""),
        ("margin-top:-120px", ""),
        ("position:absolute;background:#fff;display:none", ""),
        ("position:relative;background:#fff", ""),
    ],
)
def test_painted_box_that_is_moved_may_lie_over_every_table(style: str, what: str) -> None:
    box = f"<style>.w p{{background:#fff}}</style><div style='{style}'><p>Next</p></div>"
    document = read_page(page_html(table_html(TRAINING, [GPT2]), box))
    assert [f"a box with {what} may" in problem.message for problem in document.problems] == (
        [True] if what else []
    )
    assert len(document.tables) == (not what)


# --- scale, units and language around a table


@pytest.mark.parametrize(
    ("before", "inside", "after"),
    [
        ("<p>All figures in <b>thousands</b></p>", "", ""),
        ("", "<caption>Throughput (in thousands)</caption>", ""),
        ("", "", "<p><small>Values × 1000</small></p>"),
        ("<figure><figcaption>in Tausend</figcaption>", "", "</figure>"),
        ("", "<tr><td colspan=9>in millions</td></tr>", ""),
        ("<style>h2::after{content:' (in thousands)'}</style><h2>Training</h2>", "", ""),
        ("", row_html(["", "", "", "", "", "", "", "", "(thousands)"]), ""),
        ("", row_html(["", "", "", "", "", "", "", "", "k items/s"]), ""),
        ("<style>th:last-child::after{content:' k'}</style>", "", ""),
        ("<style>th:last-child{transform:scaleX(-1)}</style>", "", ""),
    ],
)
def test_scale_near_a_table_is_reported_and_not_guessed(
    before: str, inside: str, after: str
) -> None:
    table = f"<table>{row_html(TRAINING, 'th')}{inside}{row_html(GPT2)}</table>"
    document = read_page(page_html(before, table, after))
    assert document.tables == ()
    assert document.problems
    plain = read_page(
        page_html(
            "<p>On 1.2 million images, in 10 minutes, of 12 hosts.</p>",
            table_html(TRAINING, [GPT2]),
        )
    )
    assert (len(plain.tables), plain.problems) == (1, ())


@pytest.mark.parametrize(("language", "results"), [("de", 0), ("fr-FR", 0), ("en", 1), ("", 1)])
def test_language_with_decimal_commas_needs_a_proof(language: str, results: int) -> None:
    page = page_html(table_html(TRAINING, [GPT2])).replace(
        b"<html", f'<html lang="{language}"'.encode()
    )
    document = read_page(page)
    assert len(normalise(make_document("performance-page"), document, WORDS).results) == results


def test_style_sheet_of_a_saved_page_may_apply() -> None:
    page = training_page([*GPT2[:8], "<i class=x>7</i>1,590"]).decode()
    parts = [("text/html", page), ("text/css", ".x{display:none}")]
    body = "".join(f"--b\nContent-Type: {kind}\n\n{text}\n" for kind, text in parts)
    document = read_page(
        f"MIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n{body}--b--\n".encode()
    )
    assert "a style sheet of the saved page" in document.problems[0].message


def test_cell_with_nothing_but_a_footnote_mark_rejects_its_row() -> None:
    document = read_page(training_page([*GPT2[:8], "<sup>5</sup>"], RESNET))
    assert problems(document) == [("bow_training", 1, "unread-cell")]
