"""Stage the tables and rows that the statements of `schema/links` read, and run the statements.

They read the tables of one build in one connection, and in its schema `read` the rows of documents
as they were read, each with its place. What they call that is not relational is in
`link.functions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from ipu_results.errors import DamagedDocumentError, VocabularyError
from ipu_results.kit.sql import Connection, create_table
from ipu_results.kit.statements import define_macros, execute_text, read_statement, run_text
from ipu_results.record.link.functions import COMPUTED, Caller, call_directly, define_functions
from ipu_results.record.normalise import NormalisedDocument
from ipu_results.record.normalise.passthrough import PLACE, passthrough_schema
from ipu_results.schema import LINKS, SQL, TABLES, fill_placeholders, table
from ipu_results.schema.frames import arrow_schema
from ipu_results.schema.vocabulary import KINDS, Vocabulary, normalise_header

WRONG = "wrong/"
"""The folder of statements that return what may not be: a row stops the build."""
FILLING = ("added", "measurers")
"""The statements that fill columns of `results` and `microbenchmarks`."""
READ_SCHEMA = "read"
"""The schema of the rows of documents."""
VOCABULARY = "schema/vocabulary/"
PUBLISHED = {published.name for published in TABLES}
AS_READ = (
    "configurations",
    "facts",
    "mlperf_entries",
    "mlperf_ids",
    "mlperf_published",
    "mlperf_rcp",
    "mlperf_runs",
    "peak_sources",
    "run_points",
    "runs",
)
# headers of a configuration under which a result may have a cell
CITED = ("micro_batch_size", "latency_definition")
CELLS = pa.schema(
    [
        *PLACE,
        ("document_id", pa.string()),
        ("field", pa.string()),
        ("header", pa.string()),
        ("raw_text", pa.string()),
    ]
)


def stage(
    connection: Connection,
    documents: Sequence[NormalisedDocument],
    vocabulary: Vocabulary,
) -> None:
    """Define what the statements read and call besides the tables of the build."""
    define_macros(connection)
    define_functions(connection, vocabulary)
    connection.execute(f"CREATE SCHEMA {READ_SCHEMA}")
    for name in AS_READ:
        parts = [passthrough_schema(name).empty_table()]
        for document in documents:
            if KINDS[document.document.reader].table == name:
                parts.append(document.passthrough)
        rows = pa.concat_tables(parts).select(_list_read(name, vocabulary))
        create_table(connection, f"{READ_SCHEMA}.{name}", rows)
    cells: list[dict[str, object]] = []
    for document in documents:
        if KINDS[document.document.reader].table == "configurations":
            cells += _list_cells(document)
    create_table(connection, f"{READ_SCHEMA}.cells", pa.Table.from_pylist(cells, CELLS))
    schemas = {
        "platform": pa.schema(
            [
                *arrow_schema(table("platforms")),
                ("part_of", pa.string()),
                ("described_as", pa.list_(pa.string())),
            ]
        ),
        "model": arrow_schema(table("models")),
    }
    for name, schema in schemas.items():
        entries = vocabulary.list_entries(name)
        create_table(connection, f"known_{name}", pa.Table.from_pylist(entries, schema))


def _list_read(name: str, vocabulary: Vocabulary) -> list[str]:
    """Return the columns of a table that documents fill, and those of the place of a row."""
    printed: set[str] = set()
    for header in vocabulary.table_headers:
        if KINDS[header.reader].table == name:
            printed |= header.keys
    columns = [
        column.name
        for column in table(name).columns
        if normalise_header(column.header or column.name) in printed
    ]
    return [*columns, "document_id", *PLACE.names]


def _list_cells(document: NormalisedDocument) -> Iterator[dict[str, object]]:
    """Yield the cells of configurations that a result may have."""
    for read in document.parsed.tables:
        headers = [normalise_header(header) for header in read.columns]
        for field in CITED:
            column = headers.index(normalise_header(field))
            for row in read.rows:
                yield {
                    "document_id": document.document.document_id,
                    "table_name": read.name,
                    "row_number": row.number,
                    "locator": read.cell_locator(row, column),
                    "field": field,
                    "header": read.columns[column],
                    "raw_text": row.cells[column],
                }


def link(
    connection: Connection,
    names: Sequence[str] = LINKS,
    call: Caller = call_directly,
) -> list[str]:
    """Run statements of `schema/links` in their order, each of which can read those before it.

    Returns the names of the published tables among them, each sorted by its key, and fills
    `results` and `microbenchmarks`. Raises DamagedDocumentError or VocabularyError for what
    contradicts another document.
    """
    published = []
    for name in names:
        if name in COMPUTED:
            create_table(connection, name, pa.table(COMPUTED[name](connection, call)))
            continue
        path = f"links/{name}.sql"
        sql = fill_placeholders(read_statement(path))
        if name.startswith(WRONG):
            _raise_first(run_text(connection, path, sql))
        elif name in PUBLISHED:
            definition = table(name)
            ordered = f"FROM ({sql}\n) ORDER BY {', '.join(definition.key)}"
            execute_text(connection, path, f"CREATE TABLE {definition.sql_name} AS {ordered}")
            published.append(name)
        else:
            execute_text(connection, path, f"CREATE TABLE {name} AS {sql}")
        if name in FILLING:
            _fill_columns(connection, name)
    return published


def _raise_first(rows: pa.Table) -> None:
    """Raise the error of the first row, if there is one: what is wrong, and where."""
    for row in rows.slice(0, 1).to_pylist():
        is_ours = row["document_id"].startswith(VOCABULARY)
        error = VocabularyError if is_ours else DamagedDocumentError
        raise error(row["message"], document=row["document_id"], place=row["place"])


def _fill_columns(connection: Connection, filling: str) -> None:
    """Fill columns of `results` and `microbenchmarks` with what a statement has for them."""
    changed = f"SELECT DISTINCT relation, column_name FROM {filling}"
    for relation, name in connection.execute(changed).fetchall():
        definition = table(relation)
        kind = SQL[definition.column(name).kind]
        connection.execute(
            f"UPDATE {relation} SET {name} = CAST(a.value AS {kind}) FROM {filling} a"
            f" WHERE a.id = {relation}.{definition.key[0]}"
            f" AND a.relation = '{relation}' AND a.column_name = '{name}'"
        )
