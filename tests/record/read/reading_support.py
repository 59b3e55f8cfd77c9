"""Small documents, the rows that they are made of, and strategies that generate more of both."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from ipu_results.record.normalise import NormalisedDocument, normalise
from ipu_results.record.read.document import ParsedDocument, SourceRow, SourceTable
from ipu_results.record.read.html import read_html
from ipu_results.record.read.text import clean
from ipu_results.record.sources.catalogue import Document
from ipu_results.schema.vocabulary import load_vocabulary

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "raw" / "graphcore" / "performance-2023-07-04.html"

WORDS = load_vocabulary()
LAYOUTS = WORDS.headers_of("performance-page")
PAPER_HEADERS = WORDS.headers_of("inference-paper")

COMMON = "Model|Variant|Platform|SDK Version|Framework|Dataset|Batch Size|Precision".split("|")
TRAINING = [*COMMON, "Throughput (items/sec)"]
INFERENCE = [*TRAINING, "Latency (ms)"]
OGB = (
    "Dataset Challenge|Model|Platform|SDK Version|Framework|Throughput (items/sec)|Time to"
    " Train|Evaluation Metric|OGB-LSC 2022 Ranking"
).split("|")
GPT2 = "GPT2|GPT2-Medium|Bow Pod16|SDK 3.3|PyTorch|Wikipedia|8,192|16.16|1,590".split("|")
RESNET = "ResNet-50 v1.5||Bow Pod16|SDK 3.0|TensorFlow1|ImageNet2012|3,520|16.16|44,059".split("|")
TGN = "TGN|Temporal Graph Network|1x Bow IPU|SDK 3.3|Pytorch Geometric||||31,617".split("|")
UNET = "Unet (Medical)||Bow-2000|SDK 3.3|TensorFlow2|Synthetic|4|16.16|1,920|".split("|")

BATCHES = ("2", "4", "6", "8", "10", "12")
FIGURES = {
    1: ("1.36", "1.94", "2.82", "3.32", "4.13", "4.75"),
    2: ("1474.16", "2063.03", "2131.01", "2409.79", "2421.82", "2526.35"),
    3: ("6.51", "7.80", "7.87", "9.07", "9.68", "9.49"),
}
"""The three tables of the paper: latencies, throughputs and efficiencies."""

Grid = Sequence[Sequence[str]]


def with_cell(row: Sequence[Any], column: int, text: Any) -> list[Any]:
    """Return a row with another text in one column."""
    changed = list(row)
    changed[column] = text
    return changed


# --- documents


def row_html(cells: Iterable[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>\n"


def table_html(header: Sequence[str], rows: Grid) -> str:
    head = row_html(map(html.escape, header), "th")
    body = "".join(row_html(map(html.escape, row)) for row in rows)
    return f"<table>\n<thead>{head}</thead>\n<tbody>\n{body}</tbody>\n</table>\n"


def page_html(*parts: str) -> bytes:
    head = '<head><meta charset="utf-8"><title>t</title></head>'
    body = "".join(parts)
    return f"<!doctype html>\n<html lang='en'>{head}<body>\n{body}</body></html>\n".encode()


def table_page(*parts: str) -> bytes:
    """Write a page of one table."""
    return page_html("<table>", *parts, "</table>")


def training_page(*rows: Sequence[str]) -> bytes:
    """Write a page of one training table, its cells as HTML."""
    return table_page(row_html(TRAINING, "th"), *map(row_html, rows))


def one_cell_a_line(header: Sequence[str], rows: Grid) -> list[str]:
    return [cell or "\u00a0" for row in (header, *rows) for cell in row]


def delimited(header: Sequence[str], rows: Grid, delimiter: str = " | ") -> list[str]:
    return [delimiter.join(row) for row in (header, *rows)]


def markdown(header: Sequence[str], rows: Grid) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in (header, *rows)]
    return [lines[0], "|" + "---|" * len(header), *lines[1:]]


# --- parsed documents in short


def read_page(data: bytes) -> ParsedDocument:
    return read_html(data, LAYOUTS)


def grids(document: ParsedDocument) -> dict[str, list[list[str]]]:
    """Return the rows of every table."""
    return {table.name: [list(row.cells) for row in table.rows] for table in document.tables}


def texts(document: ParsedDocument) -> dict[str, list[list[str]]]:
    """Return header and rows of every table."""
    return {
        table.name: [list(table.columns), *grids(document)[table.name]] for table in document.tables
    }


def problems(document: ParsedDocument) -> list[str]:
    """Return table, row and reason of every problem, such as "bow_training 2 row-width"."""
    told = []
    for problem in document.problems:
        words = (problem.table_name, str(problem.row_number or ""), problem.reason)
        told.append(" ".join(word for word in words if word))
    return told


def assert_read(document: ParsedDocument, **tables: Grid) -> None:
    """Check that a document has these rows, and no problem."""
    assert_told(document, [], **tables)


def assert_told(document: ParsedDocument, told: list[str], **tables: Grid) -> None:
    """Check that a document has these rows, and these problems in short."""
    assert problems(document) == told
    assert grids(document) == tables


# --- parsed documents made by hand


def make_table(name: str, header: Sequence[str], rows: Grid, caption: str = "") -> SourceTable:
    made = tuple(
        SourceRow(number, tuple(cells), f"{name}, row {number}")
        for number, cells in enumerate(rows, start=1)
    )
    return SourceTable.from_rows(name, header, made, name, caption)


def make_document(
    reader: str, document_id: str = "a-document", publisher: str = "Somebody"
) -> Document:
    return Document(
        document_id=document_id,
        title="t",
        publisher=publisher,
        url="https://example.org",
        kind="transcription",
        licence="l",
        sha256="0",
        reader=reader,
        note="n",
        path=Path("a"),
        file="a",
        published_on=date(2023, 7, 4),
    )


def normalise_table(
    reader: str, name: str, header: Sequence[str], *rows: Sequence[str]
) -> NormalisedDocument:
    parsed = ParsedDocument((make_table(name, header, rows),), language="en")
    return normalise(make_document(reader), parsed, WORDS)


def normalise_page(
    *rows: Sequence[str], header: Sequence[str] = TRAINING, name: str = "bow_training"
) -> NormalisedDocument:
    return normalise_table("performance-page", name, header, *rows)


def list_results(normalised: NormalisedDocument) -> list[dict[str, Any]]:
    """Return each result with the columns that it fills."""
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in normalised.results.to_pylist()
    ]


def list_cells(normalised: NormalisedDocument, number: int = 0) -> list[dict[str, Any]]:
    """Return the cells of one result."""
    [key, *_] = (name for name in normalised.results.column_names if name.endswith("_id"))
    result_id = normalised.results[key][number].as_py()
    return [cell for cell in normalised.cells.to_pylist() if cell["result_id"] == result_id]


def list_numbers(normalised: NormalisedDocument, status: str) -> list[int]:
    """Return the numbers of the rows that make up or repeat a result."""
    rows = normalised.source_rows.to_pylist()
    return [row["row_number"] for row in rows if row["status"] == status]


def rejections(normalised: NormalisedDocument) -> list[tuple[int, str, str]]:
    return [
        (rejected.row_number, rejected.reason, rejected.message) for rejected in normalised.rejected
    ]


# --- strategies

CHARACTERS = st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"], exclude_characters="|")
TEXT = st.text(CHARACTERS, max_size=12).map(clean)
LETTERS = st.text("abcdefg XYZ-/().", max_size=14).map("w{}".format).map(clean)
Tables = dict[str, tuple[list[str], list[list[str]]]]
COMMITTED = read_html(PAGE.read_bytes(), LAYOUTS)


@st.composite
def page_tables(draw: st.DrawFn) -> Tables:
    """Generate some of the page's tables, in any order, each with its header and a few rows; a cell
    is one of its column, or a text in a column of texts.
    """
    drawn = draw(st.lists(st.sampled_from(COMMITTED.tables), unique_by=id, min_size=1, max_size=3))
    tables = {}
    for table in drawn:
        cells = []
        for number, name in enumerate(table.columns):
            cell = st.sampled_from([row.cells[number] for row in table.rows])
            cells.append(cell | LETTERS if name in ("Variant", "Dataset") else cell)
        row = st.tuples(*cells).map(list)
        rows = draw(st.lists(row, min_size=1, max_size=5))
        tables[table.name] = (list(table.columns), rows)
    return tables
