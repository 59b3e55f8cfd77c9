"""The file of the views that compare: a DuckDB database with the rows of the record, what the
vocabulary knows, macros, and the statements of `schema/` that the page runs over them.

It is one file, since DuckDB in a browser opens it in a tenth of the time that it takes to read the
same rows from Parquet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from ipu_results.doors.comparison.lookups import build_lookups
from ipu_results.doors.comparison.statements import (
    MACROS,
    STATEMENTS,
    open_session,
    read_comparison,
)
from ipu_results.doors.comparison.words import load_known_words
from ipu_results.kit.sql import ATTACHED, Connection, run_query
from ipu_results.kit.statements import read_statement, run_statement
from ipu_results.record.store.query import create_database
from ipu_results.schema.accelerators import load_accelerators
from ipu_results.schema.vocabulary import load_vocabulary

DATABASE = "comparison.duckdb"
NOT_SUBMITTED = "relationship IS DISTINCT FROM 'submitted'"  # those rows are left to the command
RECORD = ("candidates", "machines", "operations", "stated_peaks")
RUN = "SELECT NULL::BIGINT AS run, * FROM record.candidates WHERE FALSE"
OF_MODEL = "FROM record.candidates WHERE model IN (SELECT model FROM mine)"
MODELS = """
    SELECT DISTINCT model
    FROM results
    LEFT JOIN documents USING (document_id)
    WHERE figures_are IS NULL
    ORDER BY 1
"""
PRECISIONS = "SELECT DISTINCT precision FROM results WHERE precision IS NOT NULL ORDER BY 1"

# Of `schema/side_by_side/`: what the file has as tables, then what the page runs for each question.
PREPARED = ("measures", "texts", "tested")
ASKED = ("asked", "names", "chosen", "rows", "machines", "pairs", "gaps", "answer")


def build_comparison(connection: Connection) -> bytes:
    """Build the file. Its bytes differ between two builds, its rows do not."""
    with open_session(connection, NOT_SUBMITTED) as session:
        tables = {name: run_query(session, f"FROM {name}") for name in RECORD}
        for name in PREPARED:
            tables[name] = run_statement(session, f"side_by_side/{name}.sql")
            session.register(name, tables[name])
    chips = {chip for chip in tables["candidates"]["chip"].to_pylist() if chip}
    for name, records in build_lookups(chips | set(list_accelerators())).items():
        tables[name] = pa.Table.from_pylist(records)
    tables["statements"] = pa.Table.from_pylist(list(list_statements()))
    with TemporaryDirectory() as folder:
        path = Path(folder) / DATABASE
        _write(path, tables)
        return path.read_bytes()


def _write(path: Path, tables: Mapping[str, pa.Table]) -> None:
    with create_database(path) as engine, engine.cursor() as file:
        file.execute(f"USE {ATTACHED}")
        for name, rows in tables.items():
            file.register("incoming", rows)
            file.execute(f"CREATE TABLE {name} AS FROM incoming")
            file.unregister("incoming")


def list_statements() -> Iterator[dict[str, str | int]]:
    """Yield the macros, then the statements of each question in their order. Of each a temporary
    table is made: what is stated fills the first, and the last has the answer.
    """
    this_file = "ipu_results/doors/site/comparison.py"
    # Macros as text: DuckDB 1.4 does not understand all that DuckDB 2.0 stores of one.
    statements = [("macros", "macros", path, read_statement(path)) for path in MACROS]
    statements.append(("comparison", "mine", this_file, RUN))
    statements.append(("comparison", "candidates", this_file, OF_MODEL))
    for name in STATEMENTS:
        statements.append(("comparison", name, f"comparison/{name}.sql", read_comparison(name)))
    for name in ASKED:
        path = f"side_by_side/{name}.sql"
        statements.append(("side_by_side", name, path, read_statement(path)))
    for position, (question, name, path, sql) in enumerate(statements):
        yield {"position": position, "question": question, "name": name, "path": path, "sql": sql}


def list_accelerators() -> list[str]:
    """Return the names of chips that a visitor may have, also those of no machine of the record."""
    vocabulary = load_vocabulary()
    return sorted(str(vocabulary.name_chip(each.chip)) for each in load_accelerators())


def build_run_form(connection: Connection) -> dict[str, object]:
    """Collect what the form of a run offers, and what follows from a machine and a model."""
    words = load_known_words(connection)
    machines = sorted(words.machines.items())
    return {
        "machines": {name: [facts["chip"], facts["chip_count"]] for name, facts in machines},
        "models": run_query(connection, MODELS)["model"].to_pylist(),
        "items": dict(sorted(words.items.items())),
        "accelerators": list_accelerators(),
        "precision_names": run_query(connection, PRECISIONS)["precision"].to_pylist(),
        "precisions": load_vocabulary().precision_names,
    }
