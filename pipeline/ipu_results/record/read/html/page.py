"""Read the tables of a web page, in an HTML file or in the MHTML or e-mail that a browser saved it
as.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from lxml import etree
from lxml.etree import _Element as Element

from ipu_results.errors import (
    DamagedDocumentError,
    DocumentTooLargeError,
    UnrecognisedDocumentError,
)
from ipu_results.kit.limits import MAX_PARENTS_OF_A_ROW, MAX_TABLE_DEPTH
from ipu_results.record.read.assemble import Assembler
from ipu_results.record.read.document import Headers, ParsedDocument
from ipu_results.record.read.html.blocks import find_unread_tables
from ipu_results.record.read.html.cells import HtmlRow, expand_rows
from ipu_results.record.read.html.message import is_message, unpack_message
from ipu_results.record.read.html.shown import ShownCell, ShownPage, refuse_if_not_plain
from ipu_results.record.read.html.words import list_words
from ipu_results.record.read.text import decode, prints_decimal_points

CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.I)
CHARSET_BYTES = 4096  # four times what the HTML standard has browsers look at
TABLE_TAG = re.compile(r"<table\b", re.I)
PAGE_TAG = re.compile(r"<(/?)(html|body|table)\b", re.I)
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)|<script\b.*?(?:</script\s*>|\Z)", re.S | re.I)
CELLS = ("td", "th")
SECTIONS = ("thead", "tbody", "tfoot", "table")
OTHER = ShownCell("", "a browser builds another table")

# Where a page declares its language
LANGUAGES = "//@*[name()='lang' or name()='xml:lang']"
AROUND_TABLES = "self::table or ancestor::table or descendant::table"
LANGUAGE_PROPERTIES = {"content-language", "og:locale"}


def read_html(data: bytes, headers: Headers, shown: ShownPage | None = None) -> ParsedDocument:
    """Read every table whose header is one of `headers`, wherever the table and its header row are.

    Spans are expanded and footnote marks lifted off. `shown` is what a browser shows of the page:
    without it, the page must be plain. Raises DamagedDocumentError for an empty, binary or
    truncated page, DocumentTooLargeError for one nested too deeply, UnrecognisedDocumentError if no
    table has a header that resembles a known one, and UnprovenDocumentError for a page that is not
    plain.
    """
    charset = None
    if is_message(data):
        data, charset = unpack_message(data)
    text = decode(data, charset or find_charset(data))
    opened = _count_opened_tables(text)
    if not TABLE_TAG.search(text):
        raise UnrecognisedDocumentError("has no table")
    # from here on, the parser has mended what the text left open
    root = parse_page(text)
    tables = _collect_tables(root)
    # an element left open, such as a style or a text area, swallows what follows
    if len(tables) < opened:
        hidden = opened - len(tables)
        raise DamagedDocumentError(
            f"hides {hidden} of its {opened} tables in an element that is left open"
        )
    if shown is not None:
        _add_shown(tables, shown)
    document = _read_tables(root, tables, headers)
    document = replace(
        document, context=list_words(root, document, shown), language=_find_language(root)
    )
    # last, for a page without a known table is told so first
    if shown is None:
        refuse_if_not_plain(root, text)
    return document


def find_charset(data: bytes) -> str | None:
    """Return the encoding that a page declares in its first bytes."""
    match = CHARSET.search(data[:CHARSET_BYTES])
    return match[1].decode("ascii") if match else None


def parse_page(text: str) -> Element:
    """Return the tree of a page, as its parser mends it.

    Raises DocumentTooLargeError for elements nested so deeply that the parser leaves some out, and
    DamagedDocumentError for a page of which it leaves nothing, such as one open quotation mark
    does.
    """
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)
    root = etree.fromstring(text.encode(), parser)
    limits = parser.error_log.filter_types(etree.ErrorTypes.ERR_RESOURCE_LIMIT)
    if limits:
        raise DocumentTooLargeError(f"is nested too deeply: {limits[0].message}")
    if root is None:
        raise DamagedDocumentError("has no element: a tag at its beginning is left open")
    return root


def _count_opened_tables(text: str) -> int:
    """Count the tables that the page opens.

    Raises DamagedDocumentError for a truncated page: one that lacks the end tag of its body and its
    own, or that of a table. Rows and cells without an end tag are ordinary. Raises
    DocumentTooLargeError for tables nested too deeply.
    """
    opened = 0
    depth = {"html": 0, "body": 0, "table": 0}
    is_ended = False
    for slash, tag in PAGE_TAG.findall(COMMENT.sub("", text)):
        name = tag.lower()
        if slash:
            depth[name] -= 1
            if name != "table":
                is_ended = True
            continue
        depth[name] += 1
        if name == "table":
            opened += 1
        if depth["table"] > MAX_TABLE_DEPTH:
            raise DocumentTooLargeError(f"has tables in tables, more than {MAX_TABLE_DEPTH} deep")
    if not is_ended and (depth["html"] > 0 or depth["table"] > 0):
        raise DamagedDocumentError(
            "an HTML page that ends in the middle, without the end tag of a table, of its body or"
            " of itself: download it again, or name what the file is with --kind",
            place="end of page",
        )
    return opened


def _collect_tables(root: Element) -> dict[Element, list[HtmlRow]]:
    """Return each table with its rows in page order, whatever is between a table, its rows and
    their cells.
    """
    tables: dict[Element, list[HtmlRow]] = {}
    latest: HtmlRow | None = None
    for node in root.iter("table", "tr", *CELLS):
        if node.tag == "table":
            tables[node] = []
            continue
        # most cells are directly in the row before them: they need no search for it
        if latest is not None and node.tag in CELLS and node.getparent() is latest.owner:
            latest.cells.append(node)
            continue
        table = _find_parent(node, ("table",))
        if table is None:  # a row or a cell in no table is ordinary text
            continue
        rows = tables[table]
        if node.tag == "tr":
            rows.append(HtmlRow(node, _find_parent(node, SECTIONS)))
        else:
            owner = _find_parent(node, ("tr", "table"))
            if not rows or rows[-1].owner is not owner:  # cells outside of any row
                rows.append(HtmlRow(owner, owner))
            rows[-1].cells.append(node)
        latest = rows[-1]
    return tables


def _find_parent(node: Element, names: Sequence[str]) -> Element | None:
    """Return the nearest of such elements around another."""
    for steps, parent in enumerate(node.iterancestors()):
        if parent.tag in names:
            return parent
        if steps >= MAX_PARENTS_OF_A_ROW:
            raise DocumentTooLargeError(
                f"has rows more than {MAX_PARENTS_OF_A_ROW} elements deep in their table"
            )
    return None


def _add_shown(tables: dict[Element, list[HtmlRow]], shown: ShownPage) -> None:
    """Add to each cell what a browser shows of it; it may build other tables, rows or cells."""
    has_same_tables = len(shown.tables) == len(tables)
    for table_number, rows in enumerate(tables.values()):
        grid = shown.tables[table_number] if has_same_tables else ()
        for number, row in enumerate(rows):
            row.shown = [OTHER] * len(row.cells)
            if len(grid) == len(rows) and len(grid[number]) == len(row.cells):
                row.shown = grid[number]


def _read_tables(
    root: Element, tables: dict[Element, list[HtmlRow]], headers: Headers
) -> ParsedDocument:
    assembler = Assembler(headers)
    read = set()
    # what became neither a table nor a problem is searched for blocks
    for number, (table, rows) in enumerate(tables.items(), start=1):
        if assembler.add_grid(f"table {number}", [("", row) for row in expand_rows(rows)]):
            read.add(table)
    message = "this looks like a known table, but it is not in rows under a header: not read"
    for unread in find_unread_tables(root, read, headers):
        assembler.refuse_table("", unread.place, "unread-table", message, unread.names)
    return assembler.finish()


def _find_language(root: Element) -> str:
    """Return a language that the page or a part of its tables declares, first one that has decimal
    commas; "" where none is declared.
    """
    languages = set()
    for declared in root.xpath(LANGUAGES):
        if declared and declared.getparent().xpath(AROUND_TABLES):
            languages.add(str(declared))
    for node in root.iter("meta"):
        properties = {node.get(name, "").casefold() for name in ("http-equiv", "property")}
        content = node.get("content")
        if content and properties & LANGUAGE_PROPERTIES:
            languages.add(content.replace("_", "-"))
    with_commas = [each for each in languages if not prints_decimal_points(each)]
    return min(with_commas or languages, default="")
