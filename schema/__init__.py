"""What a row may be: one definition per column, from which every gate, file format and dictionary is generated."""

from schema.columns import Column, Table
from schema.generate import arrow_schema, dictionary_rows, frame_dtypes, pandera_model, sql_table
from schema.tables import TABLES, table

__all__ = [
    "TABLES",
    "Column",
    "Table",
    "arrow_schema",
    "dictionary_rows",
    "frame_dtypes",
    "pandera_model",
    "sql_table",
    "table",
]
