"""The schema: every table, view and column is defined once, as data, and everything else is generated from that."""

from ipu_results.schema.definitions import FILE_VIEWS, TABLES, VIEWS, Column, Kind, Table, View, table
from ipu_results.schema.generate import arrow_schema, dictionary_rows, frame_dtypes, quote, sql_table, sql_view

__all__ = [
    "FILE_VIEWS",
    "TABLES",
    "VIEWS",
    "Column",
    "Kind",
    "Table",
    "View",
    "arrow_schema",
    "dictionary_rows",
    "frame_dtypes",
    "quote",
    "sql_table",
    "sql_view",
    "table",
]
