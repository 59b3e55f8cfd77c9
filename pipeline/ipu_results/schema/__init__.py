"""What a row may be: one definition per column, from which every gate, file format and dictionary is generated."""

from ipu_results.schema.columns import Column, Table
from ipu_results.schema.generate import arrow_schema, dictionary_rows, frame_dtypes, pandera_model, sql_table
from ipu_results.schema.tables import TABLES, table

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
