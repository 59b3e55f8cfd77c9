"""Set generated tables as HTML pages, in the dialects of the programs that write such pages."""

from __future__ import annotations

import base64
import html
import quopri
import re
import textwrap
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pandas as pd
from bs4 import BeautifulSoup
from bs4.element import Comment, NavigableString, Tag
from markdown_it import MarkdownIt

from benchmarks.documents.mutations import Draft
from benchmarks.documents.tables import BOLD, HIDDEN, RAISED, STRUCK, Cell, Run, Table

CHARSETS = {
    "cp1252": ("windows-1252", "cp1252"),
    "utf-16": ("utf-16", "utf-16"),
    "utf-8-sig": ("utf-8", "utf-8-sig"),
    "undeclared": ("", "utf-8"),
    "gb18030": ("gb18030", "gb18030"),
    "x-sjis": ("shift_jis", "shift_jis"),
    "utf-16-be": ("utf-16", "utf-16-be"),
}
HIDDEN_MARKUP = {
    "display": '<span style="color:red; display: none !important">{}</span>',
    "attribute": "<span hidden>{}</span>",
    "class": '<span class="mobile-label">{}</span>',
    "visibility": '<span style="visibility:hidden">{}</span>',
    "opacity": '<span style="opacity:0">{}</span>',
    "zero-size": '<span style="font-size:0">{}</span>',
    "background-colour": '<span style="color:#fff">{}</span>',
    "off-screen": '<span style="position:absolute;left:-9999px">{}</span>',
    "screen-reader": '<span class="sr-only">{}</span>',
    "closed-details": "<details>{}</details>",
    "template": "<template>{}</template>",
    "comment": "<!-- {} -->",
    "id-rule": '<span id="x1">{}</span>',
    "clip": '<span style="display:inline-block;width:0;overflow:hidden">{}</span>',
}
STRUCK_MARKUP = {
    "s": "<s>{}</s>",
    "strike": "<strike>{}</strike>",
    "style": '<span style="text-decoration: line-through">{}</span>',
    "class": '<span class="old">{}</span>',
}
ROW_HIDING = {
    "attribute": " hidden",
    "class": ' class="mobile-label"',
    "visibility": ' style="visibility:collapse"',
}
RULES = """.mobile-label { display: none } #x1 { display:none; } .old { text-decoration: line-through }
.sr-only { position: absolute; width: 1px; height: 1px; overflow: hidden; clip: rect(0,0,0,0) }
.figure::before { content: attr(data-value) } body { background: #fff; color: #222 }"""

RULED = re.compile(r'class="(?:mobile-label|old|sr-only|figure)"|id="x1"')
"""A page without any of these needs no rules, and may be plain."""


@dataclass(frozen=True, slots=True)
class Markup:
    """How one program writes a table.

    `cell` and `header` have {spans}, {text} and {number}, a column from 0.
    """

    cell: str = "<td{spans}>{text}</td>"
    header: str = "<th>{text}</th>"
    head: str = "<thead>\n<tr>{}</tr>\n</thead>\n"
    body: str = "<tbody>\n{}</tbody>\n"
    row: str = "<tr{hide}>{cells}</tr>\n"
    table: str = "<table>\n{caption}{head}{body}</table>\n"
    caption: str = "<caption>{}</caption>\n"
    page: str = (
        "<!doctype"
        " html>\n<html><head>{head}</head><body>\n<h1>Performance</h1>\n{tables}</body></html>\n"
    )
    between: str = "<p>All 12 results of 2023 were measured on 3.5 GHz hosts.</p>\n"


MARKUPS = {
    name: Markup(**entry)
    for name, entry in tomllib.loads(
        Path(__file__).with_name("markups.toml").read_text(encoding="utf-8")
    ).items()
}
NOT_TABLES = frozenset({"div grid", "span table", "list", "preformatted"})
UNUSUAL = frozenset(
    {"sheets", "split header", "transposed", "notebook index", "mhtml", "mail", *NOT_TABLES}
)
"""Dialects that the readers need not read, but must report."""


def write_cell(cell: Cell, style: dict[str, str]) -> str:
    return cell.markup or "".join(_write_run(run, style) for run in cell.runs)


def _write_run(run: Run, style: dict[str, str]) -> str:
    text = (
        html.escape(run.text, quote=False).replace("\u00a0", "&nbsp;").replace("\u2009", "&thinsp;")
    )
    if run.style == RAISED:
        span = '<span style="vertical-align:super;font-size:70%">{}</span>'
        return (span if style.get("raise") == "span" else "<sup>{}</sup>").format(text)
    if run.style == BOLD:
        return f"<b>{text}</b>"
    if run.style == STRUCK:
        return STRUCK_MARKUP.get(style.get("strike", ""), "<del>{}</del>").format(text)
    if run.style == HIDDEN:
        return HIDDEN_MARKUP[style["hide"]].format(text)
    return text


def write_table(table: Table, markup: Markup, style: dict[str, str]) -> str:
    """Write one table, hidden rows and notes included."""
    header = "".join(
        markup.header.format(text=html.escape(name), number=n)
        for n, name in enumerate(table.columns)
    )
    hiding = ROW_HIDING.get(style.get("hide", ""), ' style="display:none"')
    rows = []
    for number, row in enumerate(table.rows):
        cells = [
            markup.cell.format(
                spans=_write_spans(cell), text=write_cell(cell, style), number=column
            )
            for column, cell in enumerate(row)
            if cell.spans != (0, 0)
        ]
        rows.append(
            markup.row.format(
                cells="".join(cells), hide=hiding if number in table.hidden_rows else ""
            )
        )
    for note in table.notes:
        text = markup.cell.format(spans=f' colspan="{len(table.columns)}"', text=note, number=0)
        rows.append(markup.row.format(cells=text, hide=""))
    caption = markup.caption.format(table.caption) if table.caption else ""
    return markup.table.format(
        caption=caption, head=markup.head.format(header), body=markup.body.format("".join(rows))
    )


def _write_spans(cell: Cell) -> str:
    names = ("colspan", "rowspan")
    return "".join(
        f' {name}="{count}"' for name, count in zip(names, cell.spans, strict=True) if count > 1
    )


def write_page(draft: Draft, tables: Sequence[str], markup: Markup) -> str:
    declared = CHARSETS.get(draft.style.get("charset", ""), ("utf-8", "utf-8"))[0]
    head = f'<meta charset="{declared}">' if declared else ""
    language = draft.style.get("lang", "en")
    head += "<title>Results</title>"
    if any(RULED.search(table) for table in tables):
        head += f"<style>{RULES}</style>"
    page = markup.page.format(head=head, tables=markup.between.join(tables))
    return (
        page.replace("<html", f'<html lang="{language}"', 1) if "lang=" not in page[:300] else page
    )


def _encode(text: str, style: dict[str, str]) -> bytes:
    encoding = CHARSETS.get(style.get("charset", ""), ("", "utf-8"))[1]
    return text.encode(encoding, "xmlcharrefreplace")


def _set_markup(name: str) -> Callable[[Draft, Random], bytes]:
    def build(draft: Draft, _: Random) -> bytes:
        markup = MARKUPS[name]
        tables = [write_table(table, markup, draft.style) for table in draft.tables]
        return _encode(write_page(draft, tables, markup), draft.style)

    return build


def _set_markdown(draft: Draft, _: Random) -> bytes:
    """Set the tables in Markdown and render it."""
    render = MarkdownIt("commonmark", {"html": True}).enable("table").render
    tables = []
    for table in draft.tables:
        rows = [
            [
                " ".join(write_cell(cell, draft.style).split("\n")).replace("|", "&#124;")
                for cell in row
            ]
            for number, row in enumerate(table.rows)
            if number not in table.hidden_rows
        ]
        lines = [list(table.columns), ["---:"] * len(table.columns), *rows]
        tables.append(render("\n".join(f"| {' | '.join(line)} |" for line in lines)))
    return _encode(write_page(draft, tables, Markup()), draft.style)


def _set_pandas(index: bool, notebook: bool) -> Callable[[Draft, Random], bytes]:
    def build(draft: Draft, _: Random) -> bytes:
        tables = []
        for table in draft.tables:
            rows = [[write_cell(cell, draft.style) for cell in row] for row in _visible_rows(table)]
            text = pd.DataFrame(rows, columns=list(table.columns)).to_html(
                escape=False, index=index
            )
            scoped = "<style scoped>.dataframe tbody tr th { vertical-align: top; }</style>"
            tables.append(
                f'<div class="jp-RenderedHTML"><div>{scoped}{text}</div></div>'
                if notebook
                else text
            )
        return _encode(write_page(draft, tables, Markup()), draft.style)

    return build


def _visible_rows(table: Table) -> list[tuple[Cell, ...]]:
    return [row for number, row in enumerate(table.rows) if number not in table.hidden_rows]


def _set_transposed(draft: Draft, _: Random) -> bytes:
    tables = []
    for table in draft.tables:
        columns = zip(*_visible_rows(table), strict=True)
        lines = []
        for name, column in zip(table.columns, columns, strict=True):
            cells = "".join(f"<td>{write_cell(cell, draft.style)}</td>" for cell in column)
            lines.append(f"<tr><th>{html.escape(name)}</th>{cells}</tr>")
        tables.append(f"<table>{''.join(lines)}</table>")
    return _encode(write_page(draft, tables, Markup()), draft.style)


WRAPPERS = (
    "span",
    "font",
    "b",
    "em",
    "div",
    "a",
    "u",
    "small",
    "section",
    "center",
    "label",
    "mark",
    "code",
    "tt",
)


def _set_soup(draft: Draft, random: Random) -> bytes:
    """Set a plain page, then wrap, comment, indent and decorate what is in it without changing what
    it shows.
    """
    tables = [write_table(table, Markup(), draft.style) for table in draft.tables]
    soup = BeautifulSoup(write_page(draft, tables, Markup()), "lxml")
    for cell in soup.find_all(["td", "th"]):
        for text in [node for node in cell.children if type(node) is NavigableString]:
            for _ in range(random.choice((0, 0, 1, 2))):
                text.wrap(soup.new_tag(random.choice(WRAPPERS), attrs={"class": "c7"}))
            if random.random() < 0.1:
                text.insert_before(Comment(" 7 "))
        if random.random() < 0.2:
            cell.insert(0, "\n   ")
        cell["data-n"] = str(random.randint(0, 99))
    for table in soup.find_all("table"):
        for _ in range(random.randint(0, 3)):
            table.wrap(
                soup.new_tag(random.choice(("div", "section", "article", "figure", "center")))
            )
        if random.random() < 0.3 and isinstance(table, Tag) and table.tbody is not None:
            table.tbody.unwrap()
    return _encode(soup.decode(formatter=random.choice(("minimal", "html", "html5"))), draft.style)


def _set_mail(mhtml: bool) -> Callable[[Draft, Random], bytes]:
    """Wrap a page as a mail or as a page saved with its resources, with quoted-printable or base64."""

    def build(draft: Draft, random: Random) -> bytes:
        page = _set_markup("plain")(draft, random)
        if quoted := random.random() < 0.7:
            body = quopri.encodestring(page).decode("ascii")
        else:
            body = "\n".join(textwrap.wrap(base64.b64encode(page).decode(), 76))
        encoding = "quoted-printable" if quoted else "base64"
        charset = CHARSETS.get(draft.style.get("charset", ""), ("utf-8", ""))[0] or "utf-8"
        part = (
            f'Content-Type: text/html; charset="{charset}"\nContent-Transfer-Encoding: {encoding}\n'
        )
        if not mhtml:
            return f"From: a@example.org\nSubject: Results\nMIME-Version: 1.0\n{part}\n{body}\n".encode()
        return (
            "From: <Saved by Blink>\nSnapshot-Content-Location:"
            " https://example.org/\nMIME-Version: 1.0\nContent-Type:"
            f' multipart/related;\n\ttype="text/html";\n\tboundary="----MB--x"\n\n\n------MB--x\n{part}Content-Location:'
            f" https://example.org/\n\n{body}\n------MB--x--\n"
        ).encode()

    return build


HTML_DIALECTS: dict[str, Callable[[Draft, Random], bytes]] = {
    **{name: _set_markup(name) for name in MARKUPS},
    "markdown": _set_markdown,
    "pandas": _set_pandas(index=False, notebook=False),
    "notebook": _set_pandas(index=False, notebook=True),
    "notebook index": _set_pandas(index=True, notebook=True),
    "transposed": _set_transposed,
    "soup": _set_soup,
    "mhtml": _set_mail(mhtml=True),
    "mail": _set_mail(mhtml=False),
}
