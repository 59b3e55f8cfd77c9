"""Set generated tables as HTML pages, in the dialects of the programs that write such pages."""

from __future__ import annotations

import html
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.documents.mutations import CHARSETS, Draft
from benchmarks.documents.tables import BOLD, RAISED, Cell, Run, Table

STYLES = {RAISED: "<sup>{}</sup>", BOLD: "<b>{}</b>"}


@dataclass(frozen=True, slots=True)
class Markup:
    """How one program writes a table.

    `cell` and `header` have {spans}, {text} and {number}, a column from 0.
    """

    cell: str = "<td{spans}>{text}</td>"
    header: str = "<th>{text}</th>"
    head: str = "<thead>\n<tr>{}</tr>\n</thead>\n"
    body: str = "<tbody>\n{}</tbody>\n"
    row: str = "<tr>{cells}</tr>\n"
    table: str = "<table>\n{caption}{head}{body}</table>\n"
    caption: str = "<caption>{}</caption>\n"
    page: str = (
        "<!doctype html>\n<html><head>{head}</head><body>\n<h1>Performance</h1>\n"
        "{tables}</body></html>\n"
    )
    between: str = "<p>All 12 results of 2023 were measured on 3.5 GHz hosts.</p>\n"


def _load_markups(name: str) -> dict[str, Markup]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return {name: Markup(**entry) for name, entry in tomllib.loads(text).items()}


MARKUPS = _load_markups("markups.toml")
ORDINARY = _load_markups("ordinary.toml")
"""Pages of common programs with styles and scripts, which hide nothing."""
UNUSUAL = frozenset({"sheets", "split header", "div grid", "span table", "list", "preformatted"})
"""Dialects that the readers need not read, but must report."""


def _write_cell(cell: Cell) -> str:
    return cell.markup or "".join(map(_write_run, cell.runs))


def _write_run(run: Run) -> str:
    text = html.escape(run.text, quote=False)
    text = text.replace("\u00a0", "&nbsp;").replace("\u2009", "&thinsp;")
    return STYLES.get(run.style, "{}").format(text)


def write_table(table: Table, markup: Markup) -> str:
    """Write one table, with its note as a row of one cell."""
    header = ""
    for number, name in enumerate(table.columns):
        header += markup.header.format(text=html.escape(name), number=number)
    rows = ""
    for row in table.rows:
        cells = ""
        for number, cell in enumerate(row):
            if cell.spans != (0, 0):
                spans = _write_spans(*cell.spans)
                cells += markup.cell.format(spans=spans, text=_write_cell(cell), number=number)
        rows += markup.row.format(cells=cells)
    if table.note:
        spans = _write_spans(len(table.columns), 1)
        rows += markup.row.format(cells=markup.cell.format(spans=spans, text=table.note, number=0))
    return markup.table.format(
        caption=markup.caption.format(table.caption) if table.caption else "",
        head=markup.head.format(header),
        body=markup.body.format(rows),
    )


def _write_spans(columns: int, rows: int) -> str:
    written = f' colspan="{columns}"' if columns > 1 else ""
    return written + (f' rowspan="{rows}"' if rows > 1 else "")


def write_page(draft: Draft, markup: Markup) -> str:
    """Write a page with the tables of a draft."""
    tables = [write_table(table, markup) for table in draft.tables]
    declared = CHARSETS.get(draft.charset, draft.charset.removesuffix("-be"))
    head = f'<meta charset="{declared}">' if declared else ""
    head += "<title>Results</title>"
    page = markup.page.format(head=head, tables=markup.between.join(tables))
    if "lang=" in page[:300]:
        return page
    return page.replace("<html", f'<html lang="{draft.language}"', 1)


def _set_markup(name: str) -> Callable[[Draft], bytes]:
    def build(draft: Draft) -> bytes:
        charset = CODECS.get(draft.charset, draft.charset)
        return write_page(draft, MARKUPS[name]).encode(charset, "xmlcharrefreplace")

    return build


CODECS = {"undeclared": "utf-8", "x-sjis": "shift_jis"}
HTML_DIALECTS = {name: _set_markup(name) for name in MARKUPS}
