"""Print the rows of the tables that Python reads, as types: `pipeline/ipu_results/schema/records.py`.

usage: python .ci/records.py
"""

from __future__ import annotations

import subprocess
import sys

from ipu_results.schema import Column, Table, table

# What a row as a dictionary is read of. Others are read column by column, or by SQL alone.
READ = (
    "documents",
    "claims",
    "recomputations",
    "contradictions",
    "build",
)
TYPES = {
    "text": "str",
    "integer": "int",
    "double": "float",
    "boolean": "bool",
    "date": "date",
}
HEAD = '''"""The rows of tables as Python reads them, with the types of their columns.

Made from `schema/tables/` by `python .ci/records.py`; a test holds the two equal.
"""

from __future__ import annotations

from datetime import date
from typing import TypedDict
'''


def name_record(name: str) -> str:
    """Name the type of a row: `mlperf_runs` has `MlperfRunsRow`."""
    return "".join(word.capitalize() for word in name.split("_")) + "Row"


def format_column(column: Column) -> str:
    """Format one column as a field. A column that a row may lack is None there."""
    python_type = TYPES[column.kind]
    return f"    {column.name}: {python_type if column.required else f'{python_type} | None'}"


def format_record(table: Table) -> str:
    """Format the type of a table's rows."""
    fields = [format_column(column) for column in table.columns]
    return "\n".join([f"class {name_record(table.name)}(TypedDict):", *fields, ""])


def format_module() -> str:
    """Format the whole module."""
    text = "\n\n".join([HEAD, *(format_record(table(name)) for name in READ)])
    formatter = [sys.executable, "-m", "ruff", "format", "-", "--stdin-filename", "records.py"]
    return subprocess.run(formatter, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.stdout.write(format_module())
