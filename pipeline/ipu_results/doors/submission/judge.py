"""Hold the rows of a bundle against the record: the statements of `schema/submission`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pyarrow as pa

from ipu_results.build import check_documents, load_document
from ipu_results.doors.comparison.statements import open_session, run_statements
from ipu_results.doors.submission.bundle import Bundle, lay_bundle
from ipu_results.doors.submission.refusals import Fault
from ipu_results.kit.files import SCHEMA, load_schema_file
from ipu_results.kit.sql import Connection
from ipu_results.kit.statements import define_macros, execute_text, read_statement, run_text
from ipu_results.record.normalise import RejectedRow
from ipu_results.record.sources.catalogue import load_catalogue
from ipu_results.record.store.tables import open_memory_store
from ipu_results.schema import fill_placeholders, table
from ipu_results.schema.vocabulary import load_vocabulary

FOLDER = "submission"
RELATIONS: Sequence[str] = load_schema_file("order.toml")[FOLDER]
RULES = tuple(path.stem for path in sorted((SCHEMA / FOLDER).glob("S*.sql")))
# the rows that a bundle is held against: not its own, and each measurement once
OTHERS = "document_id <> $document_id AND same_as IS NULL"
COMPARED = ("results", "figures", "flags")
FIGURES = ", ".join(column.name for column in table("results").as_filled().columns if column.figure)


@dataclass(frozen=True, slots=True)
class ReadBundle:
    """A bundle as `ingest` reads it."""

    results: pa.Table
    """The rows as the reader gives them."""
    unreadable: Sequence[RejectedRow]
    """The rows that the reader refused."""
    rejected: Sequence[RejectedRow]
    """These, and the rows that a gate refused."""
    tables: Mapping[str, pa.Table]


def read_bundle(bundle: Bundle) -> ReadBundle:
    """Read a bundle as `ingest` would, alone, and as a published document: quality rules look at
    those alone. Raises IpuResultsError as `ingest` would.
    """
    vocabulary = load_vocabulary()
    with TemporaryDirectory() as folder:
        raw = Path(folder)
        lay_bundle(bundle, raw)
        [document] = load_catalogue(raw)
        published = msgspec.structs.replace(document, kind="transcription")
        loaded = load_document(published, vocabulary)
    with open_memory_store() as store:
        checked = check_documents([published], [loaded], vocabulary, store)
        [accepted] = checked.documents
        tables = {name: store.fetch(name) for name in COMPARED}
        return ReadBundle(loaded.results, loaded.rejected, accepted.rejected, tables)


@contextmanager
def open_hand_in(record: Connection, bundle: Bundle, read: ReadBundle) -> Iterator[Connection]:
    """Give a connection on which the statements of `schema/submission` run: the rows of a bundle
    are compared with those of the record.
    """
    description = {
        **msgspec.to_builtins(bundle.submission, builtin_types=(date,)),
        "backend": str(bundle.environment.get("backend")),
    }
    values = {"document_id": bundle.submission.document_id}
    with open_session(record, OTHERS, values) as session:
        session.register("description", pa.Table.from_pylist([description]))
        session.register("lines", pa.Table.from_pylist(list(bundle.rows)))
        for name, rows in read.tables.items():
            session.register(f"own_{name}", rows)
        define_macros(session, f"{FOLDER}/macros.sql", temporary=True)
        for name in RELATIONS:
            create_relation(session, name)
        run_statements(session)
        yield session


def create_relation(session: Connection, name: str) -> None:
    """Create a temporary table that statements of `schema/submission` read."""
    sql = f"CREATE OR REPLACE TEMP TABLE {name} AS {_read(name)}"
    execute_text(session, _locate(name), sql)


def list_faults(session: Connection) -> list[Fault]:
    """Return what the rules on a hand-in refuse it for."""
    return [fault for name in RULES for fault in run_rule(session, name)]


def run_rule(session: Connection, name: str) -> list[Fault]:
    """Return what one rule on a hand-in refuses it for."""
    return [Fault(**row) for row in fetch_rows(session, name)]


def fetch_rows(session: Connection, name: str) -> list[dict[str, Any]]:
    """Return the rows of a statement of `schema/submission`."""
    found = run_text(session, _locate(name), _read(name))
    rows: list[dict[str, Any]] = found.to_pylist(maps_as_pydicts="strict")
    return rows


def _locate(name: str) -> str:
    return f"{FOLDER}/{name}.sql"


def _read(name: str) -> str:
    candidates = read_statement("comparison/candidates.sql")
    sql = read_statement(_locate(name)).replace("{candidates}", candidates)
    return fill_placeholders(sql.replace("{figures}", FIGURES))
