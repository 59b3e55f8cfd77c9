"""Read the tables of a web page, in an HTML file or in the MHTML or e-mail that a browser saved it
as.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from email import message_from_bytes
from email.message import Message
from itertools import chain, islice

from lxml import etree
from lxml.etree import _Element as Element

from ipu_results.errors import (
    DamagedDocumentError,
    DocumentTooLargeError,
    UnrecognisedDocumentError,
)
from ipu_results.kit.limits import MAX_PARENTS_OF_A_ROW, MAX_TABLE_DEPTH
from ipu_results.record.read.context import NO_TEXT, list_page_words
from ipu_results.record.read.document import Assembler, ParsedDocument, Words, contains_row
from ipu_results.record.read.html_cells import NOT_DISPLAYED, HtmlRow, expand_rows, list_nodes
from ipu_results.record.read.html_shown import ShownCell, ShownPage, refuse_if_not_plain
from ipu_results.record.read.text import (
    clean,
    decode,
    prints_decimal_points,
)
from ipu_results.schema.vocabulary import TableHeader, normalise_header

# Saved pages
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HEADER_LINE = re.compile(rb"(?:[!-9;-~]+:[^\r\n]*|[ \t]+\S[^\r\n]*|From [^\r\n]*)\r?\n")
MAIL_FIELDS = re.compile(
    rb"^(?:mime-version|content-type|content-transfer-encoding)[ \t]*:", re.I | re.M
)
MAX_HEADER_BYTES = 100_000  # of an e-mail; what is longer is another file
PAGES = ("text/html", "application/xhtml+xml")
ENCODINGS = ("quoted-printable", "base64", "7bit", "8bit", "binary")
BAD_ESCAPE = re.compile(r"=(?![0-9A-Fa-f]{2}|[ \t]*\r?\n|[ \t]*\Z).{0,2}", re.S)
TABLE = re.compile(rb"<table\b", re.I)

# Pages
CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.I)
CHARSET_BYTES = 4096  # four times what the HTML standard has browsers look at
TABLE_TAG = re.compile(r"<table\b", re.I)
PAGE_TAG = re.compile(r"<(/?)(html|body|table)\b", re.I)
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)|<script\b.*?(?:</script\s*>|\Z)", re.S | re.I)
CELLS = ("td", "th")
OTHER = ShownCell("", "a browser builds another table")
TABLE_PARTS = frozenset({"table", "tr", *CELLS})
SECTIONS = ("thead", "tbody", "tfoot", "table")

# Where a page declares its language
LANGUAGES = "//@*[name()='lang' or name()='xml:lang']"
PRINTED = f"//text()[not({' or '.join(f'ancestor::{name}' for name in sorted(NO_TEXT))})]"
AROUND_TABLES = "self::table or ancestor::table or descendant::table"
LANGUAGE_PROPERTIES = {"content-language", "og:locale"}

# Blocks that were not read
FIGURE = re.compile(r"\d[\d.,]*")
MAX_MISSING_NAMES = 1
MIN_NAMES = 2  # a single name is ordinary text
FIGURE_WITHIN_HEADERS = (
    3  # a figure follows the last name of the header within the texts of this many headers
)


def is_message(data: bytes) -> bool:
    """Check whether a document begins with the header of an e-mail, as MHTML does too."""
    start = data[:MAX_HEADER_BYTES].removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n")
    end = 0
    while match := HEADER_LINE.match(start, end):
        end = match.end()
    return MAIL_FIELDS.search(start[:end]) is not None


def _unpack_message(data: bytes) -> tuple[bytes, str | None]:
    """Return the page in a message for which `is_message` holds, and the encoding that its part
    states.

    Raises DamagedDocumentError for a message that is cut off or badly encoded, that has no page, or
    that has tables in several pages.
    """
    message = message_from_bytes(data.removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n"))
    parts = [part for part in message.walk() if part.get_content_type() in PAGES]
    if not parts:
        raise DamagedDocumentError("is an e-mail or saved page without an HTML part")
    pages = [(_decode_part(part), part.get_content_charset()) for part in parts]
    for defect in chain(message.defects, *(part.defects for part in parts)):
        raise DamagedDocumentError(f"is a saved page that is damaged: {type(defect).__name__}")
    with_tables = [page for page in pages if TABLE.search(page[0])]
    if len(with_tables) > 1:
        raise DamagedDocumentError(
            f"has tables in {len(with_tables)} pages: save the frame with the table alone"
        )
    return (with_tables or pages)[0]


def _decode_part(part: Message) -> bytes:
    """Decode a part; the library notes a defect in what is not base64, and passes over the rest."""
    encoding = str(part.get("Content-Transfer-Encoding", "7bit")).strip().lower()
    if encoding not in ENCODINGS:
        raise DamagedDocumentError(f"is a saved page in an unknown encoding {encoding!r}")
    body = str(part.get_payload())
    if encoding == "quoted-printable" and (bad := BAD_ESCAPE.search(body)):
        raise DamagedDocumentError(
            f"is a saved page that is damaged: {bad[0]!r} is not quoted-printable"
        )
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def read_html(
    data: bytes, headers: Sequence[TableHeader], shown: ShownPage | None = None
) -> ParsedDocument:
    """Read every table whose header is one of `headers`, wherever the table and its header row are.

    Spans are expanded and footnote marks lifted off. `shown` is what a browser shows of the page:
    without it, the page must be plain. Raises DamagedDocumentError for an empty, binary or
    truncated page, DocumentTooLargeError for one nested too deeply, UnrecognisedDocumentError if no
    table has a header that resembles a known one, and UnprovenDocumentError for a page that is not
    plain.
    """
    charset: str | None = None
    if is_message(data):
        data, charset = _unpack_message(data)
    text = decode(data, charset or find_charset(data))
    opened = _count_opened_tables(text)
    if not TABLE_TAG.search(text):
        raise UnrecognisedDocumentError("has no table")
    root = parse_page(text)
    document = _read_tables(root, opened, headers, shown)
    if shown is None:
        refuse_if_not_plain(root, text)
    return document


def parse_page(text: str) -> Element:
    """Return the tree of a page, as its parser mends it.

    Raises DocumentTooLargeError for elements nested so deeply that the parser leaves some out.
    """
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)
    root = etree.fromstring(text.encode(), parser)
    if limits := parser.error_log.filter_types(etree.ErrorTypes.ERR_RESOURCE_LIMIT):
        raise DocumentTooLargeError(f"is nested too deeply: {limits[0].message}")
    return root


def _read_tables(
    root: Element, opened: int, headers: Sequence[TableHeader], shown: ShownPage | None
) -> ParsedDocument:
    tables = _collect_tables(root)
    # an element left open, such as a style or a text area, swallows what follows
    if len(tables) < opened:
        hidden = opened - len(tables)
        raise DamagedDocumentError(
            f"hides {hidden} of its {opened} tables in an element that is left open"
        )
    assembler = Assembler(headers)
    read = set()
    for number, (table, rows) in enumerate(tables, start=1):
        before = assembler.count
        seen = rows if shown is None else _add_shown(rows, shown, number, len(tables))
        assembler.add_grid(f"table {number}", (("", row) for row in expand_rows(seen)))
        if assembler.count > before:
            read.add(table)
    for place, texts in _collect_blocks(root, read).items():
        for number, part in enumerate(_split_block(texts, headers), start=1):
            if names := _find_table(part, headers):
                assembler.add_unread_block(
                    place if number == 1 else f"{place}, part {number}", names
                )
    document = assembler.finish()
    return replace(
        document,
        context=_list_words(root, document, shown),
        language=_find_language(root),
    )


def _list_words(
    root: Element, document: ParsedDocument, shown: ShownPage | None
) -> tuple[Words, ...]:
    """Return the words of a page outside of its rows, with those that a browser alone shows."""
    words = list_page_words(root, document)
    if shown is None:
        return words
    written = {"", *map(clean, root.xpath(PRINTED)), *(text for _, text in words)}
    # a script or a style sheet may print a text near a table
    added = [Words("shown", text) for text in map(clean, shown.around) if text not in written]
    return (*words, *added)


def _find_language(root: Element) -> str:
    """Return a language that the page or a part of its tables declares, first one that has decimal
    commas.
    """
    languages = set()
    for declared in root.xpath(LANGUAGES):
        if declared and declared.getparent().xpath(AROUND_TABLES):
            languages.add(str(declared))
    for node in root.iter("meta"):
        says = {node.get(name, "").casefold() for name in ("http-equiv", "property")}
        if says & LANGUAGE_PROPERTIES and node.get("content"):
            languages.add(node.get("content", "").replace("_", "-"))
    in_order = sorted(languages, key=lambda each: (prints_decimal_points(each), each))
    return in_order[0] if in_order else ""


def _add_shown(
    rows: Sequence[HtmlRow], shown: ShownPage, number: int, tables: int
) -> list[HtmlRow]:
    """Add to the cells of a table what a browser shows of each; it may build another table."""
    grid = shown.tables[number - 1] if len(shown.tables) == tables else ()
    if len(grid) != len(rows):
        grid = ((),) * len(rows)
    return [
        replace(row, shown=cells if len(cells) == len(row.cells) else [OTHER] * len(row.cells))
        for row, cells in zip(rows, grid, strict=True)
    ]


def find_charset(data: bytes) -> str | None:
    """Return the encoding that a page declares in its first bytes."""
    match = CHARSET.search(data[:CHARSET_BYTES])
    return match[1].decode("ascii") if match else None


def _count_opened_tables(text: str) -> int:
    """Count the tables that the page opens.

    Raises DamagedDocumentError for a truncated page: one that lacks the end tag of its body and its
    own, or that of a table. Rows and cells without an end tag are ordinary. Raises
    DocumentTooLargeError for tables nested too deeply.
    """
    opened = 0
    depth = dict.fromkeys(("html", "body", "table"), 0)
    ended = False
    for match in PAGE_TAG.finditer(COMMENT.sub("", text)):
        closing = bool(match[1])
        name = match[2].lower()
        depth[name] += -1 if closing else 1
        ended |= closing and name != "table"
        opened += not closing and name == "table"
        if depth["table"] > MAX_TABLE_DEPTH:
            raise DocumentTooLargeError(f"has tables in tables, more than {MAX_TABLE_DEPTH} deep")
    if not ended and (depth["html"] > 0 or depth["table"] > 0):
        raise DamagedDocumentError(
            "an HTML page that ends in the middle, without the end tag of a table, of its body or"
            " of itself: download it again, or name what the file is with --kind",
            place="end of page",
        )
    return opened


def _collect_tables(root: Element) -> list[tuple[Element, list[HtmlRow]]]:
    """Return each table with its rows in page order, whatever is between a table, its rows and
    their cells.
    """
    tables: dict[Element, list[HtmlRow]] = {}
    rows: list[HtmlRow] = []
    for node in root.iter(*TABLE_PARTS):
        if rows and node.getparent() is rows[-1].owner and node.tag in CELLS:
            rows[-1].cells.append(node)
            continue
        if node.tag == "table":
            tables[node] = []
            continue
        table = _find_parent(node, ("table",))
        if table is None:  # a row or a cell in no table is ordinary text
            continue
        rows = tables[table]
        if node.tag == "tr":
            section = _find_parent(node, SECTIONS)
            rows.append(HtmlRow(node, table if section is None else section))
            continue
        owner = _find_parent(node, ("tr", "table"))
        assert owner is not None  # it is in the table at least
        if not rows or rows[-1].owner is not owner:  # cells outside of any row
            rows.append(HtmlRow(owner, owner))
        rows[-1].cells.append(node)
    return [*tables.items()]


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


def _collect_blocks(root: Element, read: Collection[Element]) -> dict[str, list[str]]:
    """Return the texts of the page outside of the tables that were read, by place.

    A block is a table that was not read, or all other text between two tables: it may be a grid of
    blocks, a list or a table on its side, which `_find_table` reports if it has the names and
    figures of a known one.
    """
    blocks: dict[str, list[str]] = {}
    nodes: list[tuple[str | Element, str]] = [(root, "")]
    tables = last = 0  # tables so far, and the last that is not a mere cell of a block
    while nodes:
        node, table = nodes.pop()
        if isinstance(node, str):
            place = table or (f"after table {last}" if last else "before table 1")
            if text := clean(node):
                blocks.setdefault(place, []).append(text)
        elif node.tag not in NOT_DISPLAYED and node.tag != "head":
            if node.tag == "table":
                tables += 1
                if node in read:
                    last = tables = tables + len(node.findall(".//table"))
                    continue
                texts = (text for text in node.itertext() if not text.isspace())
                if len([*islice(texts, 2)]) > 1:
                    last = tables
                    table = f"table {tables}"
            nodes += [(child, table) for child in reversed(list_nodes(node))]
    return blocks


def _split_block(texts: Sequence[str], headers: Sequence[TableHeader]) -> Iterator[Sequence[str]]:
    """Cut the texts of a block before each further header whose names are next to each other."""
    keys = [*map(normalise_header, texts)]
    groups = [header.keys for header in headers]
    starts = [
        place
        for place, key in enumerate(keys)
        if any(key in group and set(keys[place : place + len(group)]) == group for group in groups)
    ]
    for start, end in zip([0, *starts[1:]], [*starts[1:], len(texts)], strict=True):
        yield texts[start:end]


def _find_table(texts: Sequence[str], headers: Sequence[TableHeader]) -> tuple[str, ...]:
    """Return the names of a known header among `texts`, if figures follow them, or a row without
    its header.
    """
    if len(texts) < min((len(header.keys) for header in headers), default=0):
        return ()
    places: dict[str, int] = {}
    for place, text in enumerate(texts):
        places.setdefault(normalise_header(text), place)
    for header in headers:
        names = sorted(places[key] for key in header.keys if key in places)
        if len(names) < max(MIN_NAMES, len(header.keys) - MAX_MISSING_NAMES):
            continue
        stop = names[-1] + FIGURE_WITHIN_HEADERS * len(header.keys)
        if any(map(FIGURE.fullmatch, texts[names[0] : stop])):
            return tuple(texts[place] for place in names)
    return tuple(texts[:1]) if contains_row(texts, headers) else ()
