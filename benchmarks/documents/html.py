"""Set generated tables as HTML pages, in the dialects of the programs that write such pages."""

from __future__ import annotations

import base64
import html
import quopri
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import pandas as pd
from bs4 import BeautifulSoup, Comment, NavigableString, Tag
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
ROW_HIDING = {"attribute": " hidden", "class": ' class="mobile-label"', "visibility": ' style="visibility:collapse"'}
RULES = """.mobile-label { display: none } #x1 { display:none; } .old { text-decoration: line-through }
.sr-only { position: absolute; width: 1px; height: 1px; overflow: hidden; clip: rect(0,0,0,0) }
.figure::before { content: attr(data-value) } body { background: #fff; color: #222 }"""

TablePart = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Markup:
    """How one program writes a table. `cell` and `header` have {spans}, {text} and {number}, a column from 0."""

    cell: str = "<td{spans}>{text}</td>"
    header: str = "<th>{text}</th>"
    head: str = "<thead>\n<tr>{}</tr>\n</thead>\n"
    body: str = "<tbody>\n{}</tbody>\n"
    row: str = "<tr{hide}>{cells}</tr>\n"
    table: str = "<table>\n{caption}{head}{body}</table>\n"
    caption: str = "<caption>{}</caption>\n"
    page: str = "<!doctype html>\n<html><head>{head}</head><body>\n<h1>Performance</h1>\n{tables}</body></html>\n"
    between: str = "<p>All 12 results of 2023 were measured on 3.5 GHz hosts.</p>\n"


WORD = Markup(
    cell="<td width=91 valign=top{spans} style='width:68.2pt;border:solid windowtext 1.0pt;padding:0cm 5.4pt 0cm 5.4pt'>\n"
    "  <p class=MsoNormal style='margin-bottom:0cm'><span lang=EN-GB style='font-size:9.0pt'>{text}<o:p></o:p></span></p>\n  </td>",
    header="<td width=91 valign=top style='width:68.2pt'>\n  <p class=MsoNormal><b><span lang=EN-GB>{text}<o:p></o:p></span></b></p></td>",
    head="<tr style='mso-yfti-irow:0;mso-yfti-firstrow:yes'>{}</tr>\n",
    body="{}",
    table="<table class=MsoTableGrid border=1 cellspacing=0 cellpadding=0 style='border-collapse:collapse'>\n{head}{body}</table>\n"
    "<p class=MsoCaption>{caption}</p>\n",
    caption="{}",
    page='<html xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office"'
    ' xmlns="http://www.w3.org/TR/REC-html40">\n<head>{head}<meta name=Generator content="Microsoft Word 15">\n'
    "<!--[if gte mso 9]><xml><o:OfficeDocumentSettings/></xml><![endif]--></head>\n<body lang=EN-GB>\n"
    "<div class=WordSection1>\n{tables}</div></body></html>\n",
    between="<p class=MsoNormal><o:p>&nbsp;</o:p></p>\n",
)
EXCEL = Markup(
    cell='<td height=20 class=xl65 align=right{spans} style="height:15.0pt" x:num>{text}</td>',
    header="<td height=20 class=xl66 width=64>{text}</td>",
    head="<tr height=20 style='height:15.0pt'>{}</tr>\n",
    body="{}<![if supportMisalignedColumns]>\n<tr height=0 style='display:none'>\n<td width=64></td>\n<td width=64></td>\n</tr>\n<![endif]>\n",
    table="<table border=0 cellpadding=0 cellspacing=0 width=640 style='border-collapse:collapse'>\n<col width=64 span=9>\n"
    "{head}{body}</table>\n",
    page='<html xmlns:x="urn:schemas-microsoft-com:office:excel"><head>{head}</head><body link=blue>\n{tables}</body></html>',
)
MARKUPS: dict[str, Markup] = {
    "plain": Markup(),
    "headless": Markup(header="<td><b>{text}</b></td>", head="<tr>{}</tr>\n", body="{}"),
    "row headings": Markup(header='<th scope="col">{text}</th>', cell="<th{spans} scope='row'>{text}</th>"),
    "optional ends": Markup(
        cell="<TD{spans}>{text}\n",
        header="<TH>{text}\n",
        head="<TR>{}\n",
        body="{}",
        row="<TR{hide}>{cells}",
        table="<TABLE BORDER=1>\n{caption}{head}{body}</TABLE>\n",
        page="<HTML><HEAD>{head}</HEAD><BODY>\n{tables}</BODY></HTML>\n",
    ),
    "xhtml": Markup(
        table='<table xmlns="http://www.w3.org/1999/xhtml" summary="">\n{caption}<colgroup><col /><col /></colgroup>{head}{body}</table>\n',
        page='<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" '
        '"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">\n<html xmlns="http://www.w3.org/1999/xhtml">'
        "<head>{head}</head><body>\n{tables}</body></html>",
    ),
    "wordpress": Markup(
        cell='<td{spans} class="has-text-align-center" data-align="center">{text}</td>',
        header="<th><strong>{text}</strong></th>",
        table='<figure class="wp-block-table is-style-stripes"><table class="has-fixed-layout">{head}{body}</table>'
        '<figcaption class="wp-element-caption">{caption}</figcaption></figure>\n',
        caption="{}",
    ),
    "tablepress": Markup(
        cell='<td{spans} class="column-{number}">{text}</td>',
        header='<th class="column-{number}"><div>{text}</div></th>',
        row='\t<tr{hide}>\n\t{cells}</tr>\n',
        table='<div class="dataTables_wrapper"><table id="tablepress-1" class="tablepress dataTable">{head}{body}</table>'
        '<div class="dataTables_info">Showing 1 to 10 of 57 entries</div></div>\n',
    ),
    "elementor": Markup(
        cell='<td{spans} class="jet-table__cell"><div class="jet-table__cell-inner"><div class="jet-table__cell-content">'
        '<div class="jet-table__cell-text">{text}</div></div></div></td>',
        header='<th class="jet-table__cell"><div class="jet-table__cell-inner"><div class="jet-table__cell-text">{text}</div>'
        '<i class="jet-table__sort-icon"></i></div></th>',
        table='<section class="elementor-section"><div class="elementor-container"><div class="elementor-widget-wrap">'
        '<div class="jet-table-wrapper"><table class="jet-table">{head}{body}</table></div></div></div></section>\n',
    ),
    "word": WORD,
    "excel": EXCEL,
    "libreoffice": Markup(
        cell='<td width="11%"{spans} style="border: 1px solid #000000; padding: 0.1cm"><p align="right">\n\t\t\t'
        '<font face="Liberation Serif, serif"><font size="2" style="font-size: 10pt">{text}</font></font></p>\n\t\t</td>',
        header='<th width="11%" bgcolor="#eeeeee"><p class="western" align="center"><b>{text}</b></p></th>',
        table='<table width="643" cellpadding="4" cellspacing="0">\n\t<col width="71"/>\n{head}{body}</table>\n<p>{caption}</p>',
        caption="{}",
    ),
    "google docs": Markup(
        cell='<td class="c3" colspan="1" rowspan="1"{spans}><p class="c1"><span class="c0">{text}</span></p></td>',
        header='<td class="c3" colspan="1" rowspan="1"><p class="c1"><span class="c0 c5">{text}</span></p></td>',
        head='<tr class="c6">{}</tr>',
        body="{}",
        row='<tr class="c6"{hide}>{cells}</tr>',
        table='<a id="t.7b1c"></a><a id="t.0"></a><table class="c8">{head}{body}</table>',
        page="<html><head>{head}</head><body class='c7 doc-content'>{tables}</body></html>",
        between="<p class='c2'><span class='c0'></span></p>",
    ),
    "notion": Markup(
        cell='<td{spans} id="a~b{number}" class="" style="width:170px">{text}</td>',
        header='<th id="a~b{number}" class="simple-table-header-color simple-table-header">{text}</th>',
        table='<table id="7d4" class="simple-table">{head}{body}</table>',
        page="<html><head>{head}</head><body><article class='page sans'><div class='page-body'>{tables}</div></article></body></html>",
    ),
    "confluence": Markup(
        cell='<td{spans} class="confluenceTd"><p>{text}</p></td>',
        header='<th class="confluenceTh"><p><strong>{text}</strong></p></th>',
        head="<tbody><tr>{}</tr>",
        body="{}</tbody>",
        table='<div class="table-wrap"><table data-layout="default" class="confluenceTable"><colgroup><col style="width: 90.0px;" />'
        "</colgroup>{head}{body}</table></div>",
    ),
    "wikipedia": Markup(
        cell="<td{spans}>{text}\n</td>",
        header='<th scope="col" class="headerSort" title="Sort ascending">{text}\n</th>',
        head="<tbody><tr>\n{}</tr>\n",
        body="{}</tbody>",
        table='<table class="wikitable sortable">\n{caption}{head}{body}</table>\n',
    ),
    "docutils": Markup(
        cell='<td{spans}><p>{text}</p></td>',
        header='<th class="head stub"><p>{text}</p></th>',
        head='<thead>\n<tr class="row-odd">{}</tr>\n</thead>\n',
        row='<tr class="row-even"{hide}>{cells}\n</tr>\n',
        table='<div class="wy-table-responsive"><table class="docutils align-default" id="id1">\n{caption}'
        '<colgroup>\n<col style="width: 10%" />\n</colgroup>\n{head}{body}</table></div>\n',
        caption='<caption><span class="caption-number">Table 1 </span><span class="caption-text">{}</span></caption>\n',
    ),
    "asciidoc": Markup(
        cell='<td{spans} class="tableblock halign-left valign-top"><p class="tableblock">{text}</p></td>',
        header='<th class="tableblock halign-left valign-top">{text}</th>',
        table='<table class="tableblock frame-all grid-all stretch">\n{caption}{head}{body}</table>\n',
    ),
    "latexml": Markup(
        cell='<td{spans} class="ltx_td ltx_align_right ltx_border_r" style="padding-top:1pt">{text}</td>',
        header='<th class="ltx_td ltx_align_center ltx_th ltx_th_column"><span class="ltx_text ltx_font_bold">{text}</span></th>',
        row='<tr class="ltx_tr"{hide}>{cells}</tr>\n',
        table='<figure class="ltx_table" id="S4.T1"><figcaption class="ltx_caption">{caption}</figcaption>'
        '<table class="ltx_tabular ltx_centering ltx_guessed_headers">{head}{body}</table></figure>\n',
        caption='<span class="ltx_tag ltx_tag_table">Table 1: </span>{}',
    ),
    "github": Markup(
        cell='<td{spans} align="right">{text}</td>',
        table='<markdown-accessiblity-table><table tabindex="0">{head}{body}</table></markdown-accessiblity-table>',
        page='<!DOCTYPE html><html lang="en" data-color-mode="auto"><head>{head}</head><body>'
        '<article class="markdown-body entry-content">{tables}</article></body></html>',
    ),
    "bootstrap": Markup(
        cell='<td{spans} class="text-end" data-label="figure"><span class="value">{text}</span></td>',
        header='<th scope="col" data-sortable="true">{text} <span class="caret"></span></th>',
        table='<div class="table-responsive"><table class="table table-striped">{caption}{head}{body}<tfoot></tfoot></table></div>',
    ),
    "react": Markup(
        cell='<td{spans} class="MuiTableCell-root css-1ex1afd"><!-- -->{text}<!-- --></td>',
        header='<th class="MuiTableCell-root"><span class="MuiTableSortLabel-root" role="button">{text}'
        '<svg class="MuiSvgIcon-root" aria-hidden="true"><path d="M20 12l-1.41-1.41"></path></svg></span></th>',
        table='<div id="root"><div class="MuiPaper-root"><table class="MuiTable-root">{head}{body}</table></div></div>',
    ),
    "newsletter": Markup(
        cell='<td{spans} align="center" style="padding:6px;font-family:Arial">{text}</td>',
        head="<tr>{}</tr>",
        body="{}",
        table='<table role="presentation" width="100%"><tr><td align="center"><table role="presentation" width="600"><tr><td>'
        "<table border=1>{head}{body}</table></td></tr></table></td></tr></table>",
    ),
    "print": Markup(cell="<td{spans}>\n        {text}\n      </td>\n", row="  <tr{hide}>\n{cells}  </tr>\n"),
    "sheets": Markup(
        cell='<td{spans} class="s1" dir="ltr">{text}</td>',
        header='<td class="s0" dir="ltr">{text}</td>',
        head='<thead><tr><th class="row-header freezebar-origin-ltr"></th><th>A</th><th>B</th></tr></thead>'
        '<tbody><tr style="height: 20px"><th id="0R0" style="height: 20px;"><div>1</div></th>{}</tr>',
        body="{}</tbody>",
        row='<tr style="height: 20px"{hide}><th id="0R1"><div>2</div></th>{cells}</tr>',
        table='<div class="ritz grid-container" dir="ltr"><table class="waffle" cellspacing="0">{head}{body}</table></div>',
    ),
    "split header": Markup(
        table='<div class="dataTables_scrollHead"><table>{head}</table></div><div class="dataTables_scrollBody"><table>{body}</table></div>',
    ),
    "div grid": Markup(
        cell='<div role="cell">{text}</div>',
        header='<div role="columnheader">{text}</div>',
        head='<div role="row">{}</div>',
        body="{}",
        row='<div role="row"{hide}>{cells}</div>',
        table='<div role="table">{head}{body}</div>',
    ),
    "span table": Markup(
        cell='<span class="ltx_td">{text}</span>',
        header='<span class="ltx_td ltx_th">{text}</span>',
        head='<span class="ltx_tr">{}</span>',
        body="{}",
        row='<span class="ltx_tr"{hide}>{cells}</span>',
        table='<span class="ltx_tabular">{head}{body}</span>',
    ),
    "list": Markup(
        cell="<li>{text}</li>",
        header="<li>{text}</li>",
        head="<ul>{}</ul>",
        body="{}",
        row="<ul{hide}>{cells}</ul>",
        table="<div>{head}{body}</div>",
    ),
    "preformatted": Markup(
        cell="{text} | ", header="{text} | ", head="{}\n", body="{}", row="{cells}\n", table="<pre>{head}{body}</pre>"
    ),
}
NOT_TABLES = frozenset({"div grid", "span table", "list", "preformatted"})
UNUSUAL = frozenset({"sheets", "split header", "transposed", "notebook index", "mhtml", "mail", *NOT_TABLES})
"""Dialects that the readers need not read, but must report."""


def write_cell(cell: Cell, style: dict[str, str]) -> str:
    return cell.markup or "".join(_write_run(run, style) for run in cell.runs)


def _write_run(run: Run, style: dict[str, str]) -> str:
    text = html.escape(run.text, quote=False).replace("\u00a0", "&nbsp;").replace("\u2009", "&thinsp;")
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
    header = "".join(markup.header.format(text=html.escape(name), number=n) for n, name in enumerate(table.columns))
    hiding = ROW_HIDING.get(style.get("hide", ""), ' style="display:none"')
    rows = []
    for number, row in enumerate(table.rows):
        cells = [
            markup.cell.format(spans=_write_spans(cell), text=write_cell(cell, style), number=column)
            for column, cell in enumerate(row)
            if cell.spans != (0, 0)
        ]
        rows.append(markup.row.format(cells="".join(cells), hide=hiding if number in table.hidden_rows else ""))
    for note in table.notes:
        text = markup.cell.format(spans=f' colspan="{len(table.columns)}"', text=note, number=0)
        rows.append(markup.row.format(cells=text, hide=""))
    caption = markup.caption.format(table.caption) if table.caption else ""
    return markup.table.format(caption=caption, head=markup.head.format(header), body=markup.body.format("".join(rows)))


def _write_spans(cell: Cell) -> str:
    names = ("colspan", "rowspan")
    return "".join(f' {name}="{count}"' for name, count in zip(names, cell.spans, strict=True) if count > 1)


def write_page(draft: Draft, tables: Sequence[str], markup: Markup) -> str:
    declared = CHARSETS.get(draft.style.get("charset", ""), ("utf-8", "utf-8"))[0]
    head = f'<meta charset="{declared}">' if declared else ""
    language = draft.style.get("lang", "en")
    head += f"<title>Results</title><style>{RULES}</style>"
    page = markup.page.format(head=head, tables=markup.between.join(tables))
    return page.replace("<html", f'<html lang="{language}"', 1) if "lang=" not in page[:300] else page


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
            [" ".join(write_cell(cell, draft.style).split("\n")).replace("|", "&#124;") for cell in row]
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
            text = pd.DataFrame(rows, columns=list(table.columns)).to_html(escape=False, index=index)
            scoped = "<style scoped>.dataframe tbody tr th { vertical-align: top; }</style>"
            tables.append(f'<div class="jp-RenderedHTML"><div>{scoped}{text}</div></div>' if notebook else text)
        return _encode(write_page(draft, tables, Markup()), draft.style)

    return build


def _visible_rows(table: Table) -> list[tuple[Cell, ...]]:
    return [row for number, row in enumerate(table.rows) if number not in table.hidden_rows]


def _set_transposed(draft: Draft, _: Random) -> bytes:
    tables = []
    for table in draft.tables:
        columns = zip(*_visible_rows(table), strict=True)
        lines = [
            f"<tr><th>{html.escape(name)}</th>{''.join(f'<td>{write_cell(cell, draft.style)}</td>' for cell in column)}</tr>"
            for name, column in zip(table.columns, columns, strict=True)
        ]
        tables.append(f"<table>{''.join(lines)}</table>")
    return _encode(write_page(draft, tables, Markup()), draft.style)


WRAPPERS = ("span", "font", "b", "em", "div", "a", "u", "small", "section", "center", "label", "mark", "code", "tt")


def _set_soup(draft: Draft, random: Random) -> bytes:
    """Set a plain page, then wrap, comment, indent and decorate what is in it without changing what it shows."""
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
            table.wrap(soup.new_tag(random.choice(("div", "section", "article", "figure", "center"))))
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
        part = f'Content-Type: text/html; charset="{charset}"\nContent-Transfer-Encoding: {encoding}\n'
        if not mhtml:
            return f"From: a@example.org\nSubject: Results\nMIME-Version: 1.0\n{part}\n{body}\n".encode()
        return (
            "From: <Saved by Blink>\nSnapshot-Content-Location: https://example.org/\nSubject: Results\nMIME-Version: 1.0\n"
            'Content-Type: multipart/related;\n\ttype="text/html";\n\tboundary="----MB--x"\n\n\n------MB--x\n'
            f"{part}Content-Location: https://example.org/\n\n{body}\n------MB--x--\n"
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
