"""Write certificates.jsonl: how each figure of a release follows from the bytes of its source.

docs/reference/certificates.md has the format. Each release has programs that follow it without this
package.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb

from ipu_results.doors.analyses.findings import FINDINGS, fill_finding
from ipu_results.errors import ReleaseError, TooFewRowsError
from ipu_results.kit.files import hash_file
from ipu_results.kit.statements import read_statement, run_statement
from ipu_results.mlperf.rules import load_rules
from ipu_results.record.store.files import get_csv_name
from ipu_results.release.files import CERTIFICATES, CHECKERS, list_files
from ipu_results.schema import FILE_VIEWS, READ, VIEWS, fill_placeholders, table

OPTIONAL = ("digits", "stated", "key", "in", "figure")  # left out of a line where they are null

Line = dict[str, Any]
Digests = dict[str, str]  # by the name of a file, or by the key of a row


def write_certificates(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Write certificates.jsonl and the checkers into a release that has its CSV files.

    `connection` reads the DuckDB file of the release. The same tables give the same bytes.
    Raises ReleaseError if a row that a recomputation read is missing.
    """
    with (folder / CERTIFICATES).open("w", encoding="utf-8", newline="\n") as file:
        for line in list_certificates(connection, folder):
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
            file.write("\n")
    # each release brings the programs, so that nobody needs this package to check it
    for name in CHECKERS:
        source = Path(__file__).with_name(name)
        (folder / name).write_bytes(source.read_bytes())


def list_certificates(connection: duckdb.DuckDBPyConnection, folder: Path) -> Iterator[Line]:
    """Yield the lines in their order: printed figures, minutes, recomputed figures, findings and
    relations.
    """
    digests = {}
    for name, path in list_files(folder).items():
        if path.suffix == ".csv":
            digests[name] = hash_file(path)
    yield from _list_printed(connection)
    yield from _list_minutes(connection)
    yield from _list_recomputed(connection, folder)
    yield from _list_findings(connection, digests)
    yield from _list_relations(digests)


def _list_printed(connection: duckdb.DuckDBPyConnection) -> Iterator[Line]:
    """Yield a line for each cell with a figure, by result and cell."""
    for line in _select_lines(connection, "release/printed.sql"):
        for name in OPTIONAL:
            if line[name] is None:
                del line[name]
        yield line


def _list_minutes(connection: duckdb.DuckDBPyConnection) -> Iterator[Line]:
    """Yield a line for each score of MLPerf, by round and path."""
    rules = load_rules()
    for line in _select_lines(connection, "release/minutes.sql"):
        benchmark = line.pop("benchmark")
        # the rule of MLPerf, which the statement cannot read
        line["drop"] = rules.benchmark(benchmark).drop
        yield line


def _list_recomputed(connection: duckdb.DuckDBPyConnection, folder: Path) -> Iterator[Line]:
    """Yield a line for each recomputed figure, with the digests of the rows that it read."""
    digests_by_file: dict[str, Digests] = {}
    for line in _select_lines(connection, "release/recomputed.sql"):
        # a figure here may be a number or a text, which the statement gives as JSON
        line["figure"] = json.loads(line["figure"])
        rows_read = defaultdict(set)
        for row in line["rows"]:
            relation = table(row["name"])
            file = get_csv_name(relation.sql_name)
            # only some tables are read by a recomputation
            if file not in digests_by_file:
                digests_by_file[file] = _digest_rows(folder / file, relation.key)
            digest = digests_by_file[file].get(row["key"])
            if digest is None:
                message = f"a recomputation read the row {row['key']}, which is not there"
                raise ReleaseError(message, place=file)
            rows_read[file].add(digest)
        line["rows"] = {file: sorted(rows_read[file]) for file in sorted(rows_read)}
        yield line


def _select_lines(connection: duckdb.DuckDBPyConnection, statement: str) -> Iterator[Line]:
    """Yield what a statement gives, whose columns are the fields of a certificate."""
    for line in run_statement(connection, statement).to_pylist():
        # each table has other key columns, so the statement gives a key as JSON
        if line["key"] is not None:
            line["key"] = json.loads(line["key"])
        yield line


def _list_findings(connection: duckdb.DuckDBPyConnection, digests: Digests) -> Iterator[Line]:
    """Yield a line a finding; one that the record has no rows for is left out."""
    for finding in FINDINGS:
        try:
            filled = fill_finding(connection, finding)
        except TooFewRowsError:
            continue
        yield {
            "kind": "finding",
            "id": finding.name,
            "sentence": f"{filled.statement}: {filled.figure}",
            "statement": finding.sql,
            "files": _find_digests(finding.sql.values(), digests),
        }


def _list_relations(digests: Digests) -> Iterator[Line]:
    """Yield a line for the derived columns of `results`, and one a view."""
    statements = {"results": fill_placeholders(read_statement("derived/results.sql"))}
    for view in FILE_VIEWS:
        statements[view.sql_name] = view.sql
    for name, statement in statements.items():
        yield {
            "kind": "relation",
            "id": get_csv_name(name),
            "statement": statement,
            "files": _find_digests([statement], digests),
        }


def _find_digests(statements: Iterable[str], digests: Digests) -> Digests:
    """Return the digest of each file that statements read, by its name.

    A view without a file is replaced by the files that its own statement reads.
    """
    views = {view.sql_name: view for view in VIEWS}
    files: Digests = {}
    for statement in statements:
        for name in READ.findall(statement):
            file = get_csv_name(name)
            if file in digests:
                files[file] = digests[file]
            elif name in views:
                files |= _find_digests([views[name].sql], digests)
    return dict(sorted(files.items()))


def _digest_rows(path: Path, key: Iterable[str]) -> Digests:
    """Return the digest of each row of a CSV file by the values of its key, joined by `/`."""
    records = split_records(path.read_bytes())
    header = _split_cells(next(records))
    digests = {}
    for record in records:
        row = dict(zip(header, _split_cells(record), strict=True))
        name = "/".join(row[column] for column in key)
        digests[name] = hashlib.sha256(record).hexdigest()
    return digests


def _split_cells(record: bytes) -> list[str]:
    [cells] = csv.reader([record.decode()])
    return cells


def split_records(data: bytes) -> Iterator[bytes]:
    """Yield the rows of a CSV file without their line breaks; one in quotes is part of a row."""
    record = b""
    for line in data.splitlines(keepends=True):
        record += line
        # inside a quoted text the number of quotes so far is odd
        if record.count(b'"') % 2 == 0:
            yield record.removesuffix(b"\n")
            record = b""
