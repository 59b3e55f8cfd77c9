"""Write certificates.jsonl: how each figure of a release follows from the bytes of its source.

docs/reference/certificates.md has the format. Each release has programs that follow it without this
package.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from ipu_results.doors.analyses.findings import FINDINGS, fill_finding
from ipu_results.errors import ReleaseError, TooFewRowsError
from ipu_results.kit.files import hash_file
from ipu_results.kit.statements import read_statement, run_statement
from ipu_results.mlperf.rules import load_rules
from ipu_results.record.store.files import get_csv_name
from ipu_results.release.files import CERTIFICATES, CHECKERS
from ipu_results.schema import FILE_VIEWS, READ, VIEWS, fill_placeholders, table

COMPUTED_DIGITS = 12
"""Significant digits of a figure that we computed."""

Line = dict[str, Any]


def write_certificates(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Write certificates.jsonl and the checkers into a release that has its CSV files.

    `connection` reads the DuckDB file of the release. The same tables give the same bytes.
    Raises ReleaseError if a row that a recomputation read is missing.
    """
    with (folder / CERTIFICATES).open("w", encoding="utf-8", newline="\n") as file:
        for line in list_certificates(connection, folder):
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
            file.write("\n")
    for name in CHECKERS:
        source = Path(__file__).with_name(name)
        (folder / name).write_bytes(source.read_bytes())


def list_certificates(connection: duckdb.DuckDBPyConnection, folder: Path) -> Iterator[Line]:
    """Yield the lines in their order: printed figures, minutes, recomputed figures, findings and
    relations.
    """
    release = _CsvFiles(folder)
    yield from list_printed(connection)
    yield from _list_minutes(connection)
    yield from _list_recomputed(connection, release)
    yield from _list_findings(connection, release)
    yield from _list_relations(release)


def list_printed(connection: duckdb.DuckDBPyConnection) -> Iterator[Line]:
    """Yield a line for each cell with a figure, by result and cell."""
    for row in run_statement(connection, "release/printed.sql").to_pylist():
        line = {
            "kind": "printed",
            "id": f"{row['result_id']} {row['cell_number']}",
            "column": row["column_name"],
            "file": row["file"],
            "sha256": row["sha256"],
            "locator": row["locator"],
            "raw": row["raw_text"],
            "value": row["value"],
            "unit": row["unit"],
            "factor": row["factor"],
        }
        if row["is_computed"]:
            line["digits"] = COMPUTED_DIGITS
        if row["stated_by"]:
            line |= _state(row, _name_key(row))
        yield line


def _name_key(row: Mapping[str, Any]) -> Line:
    """Return the key of the row that states a printed figure."""
    if row["stated_by"] == "microbenchmarks":
        return {"microbenchmark_id": row["result_id"]}
    if row["stated_by"] == "figures":
        return {"result_id": row["result_id"], "metric": row["column_name"]}
    return {"result_id": row["result_id"]}


def _state(row: Mapping[str, Any], key: Line) -> Line:
    """Return which cell of the release states a figure."""
    return {
        "stated": get_csv_name(row["stated_by"]),
        "key": key,
        "in": row["stated_in"],
        "figure": row["figure"],
    }


def _list_minutes(connection: duckdb.DuckDBPyConnection) -> Iterator[Line]:
    rules = load_rules()
    for row in run_statement(connection, "release/minutes.sql").to_pylist():
        stated = {"stated_by": "mlperf_entries", "stated_in": "minutes", "figure": row["figure"]}
        yield {
            "kind": "minutes",
            "file": row["file"],
            "sha256": row["sha256"],
            "logs": row["logs"],
            "drop": rules.benchmark(row["benchmark"]).drop,
            "factor": row["factor"],
            **_state(stated, {"round": row["round"], "path": row["path"]}),
        }


def _list_recomputed(connection: duckdb.DuckDBPyConnection, release: _CsvFiles) -> Iterator[Line]:
    for row in run_statement(connection, "release/recomputed.sql").to_pylist():
        row["figure"] = json.loads(row["figure"])
        rows = defaultdict(set)
        for given in row["inputs"]:
            relation = table(given["name"])
            name = get_csv_name(relation.sql_name)
            digest = release.digest_rows(name, relation.key).get(given["key"])
            if digest is None:
                message = f"a recomputation read the row {given['key']}, which is not there"
                raise ReleaseError(message, place=name)
            rows[name].add(digest)
        yield {
            "kind": "recomputed",
            **_state(row, json.loads(row["key"])),
            "statement": row["statement"],
            "rows": {name: sorted(rows[name]) for name in sorted(rows)},
        }


def _list_findings(connection: duckdb.DuckDBPyConnection, release: _CsvFiles) -> Iterator[Line]:
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
            "files": release.digest_read(finding.sql.values()),
        }


def _list_relations(release: _CsvFiles) -> Iterator[Line]:
    """Yield a line for the derived columns of `results`, and one a view."""
    statement = fill_placeholders(read_statement("derived/results.sql"))
    yield _describe_relation(get_csv_name("results"), statement, release)
    for view in FILE_VIEWS:
        yield _describe_relation(get_csv_name(view.sql_name), view.sql, release)


def _describe_relation(id_: str, statement: str, release: _CsvFiles) -> Line:
    files = release.digest_read([statement])
    return {"kind": "relation", "id": id_, "statement": statement, "files": files}


class _CsvFiles:
    """The CSV files of a release, and the digests of their bytes and rows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.views = {view.sql_name: view for view in VIEWS}
        self.digest_file = cache(self._digest_file)
        self.digest_rows = cache(self._digest_rows)

    def digest_read(self, statements: Iterable[str]) -> dict[str, str]:
        """Return the digest of each file that statements read, by its name.

        A view without a file is replaced by the files that its own statement reads.
        """
        names = {name for statement in statements for name in READ.findall(statement)}
        files: dict[str, str] = {}
        for name in sorted(names):
            if (self.folder / get_csv_name(name)).is_file():
                files[get_csv_name(name)] = self.digest_file(get_csv_name(name))
            elif name in self.views:
                files |= self.digest_read([self.views[name].sql])
        return dict(sorted(files.items()))

    def _digest_file(self, name: str) -> str:
        return hash_file(self.folder / name)

    def _digest_rows(self, name: str, key: tuple[str, ...]) -> dict[str, str]:
        """Return the digest of each row by the values of its key, joined by `/`."""
        data = (self.folder / name).read_bytes()
        records = split_records(data)
        [header] = csv.reader([next(records).decode()])
        positions = [header.index(column) for column in key]
        digests = {}
        for record in records:
            [cells] = csv.reader([record.decode()])
            values = [cells[position] for position in positions]
            digests["/".join(values)] = hashlib.sha256(record).hexdigest()
        return digests


def split_records(data: bytes) -> Iterator[bytes]:
    """Yield the rows of a CSV file without their line breaks; one in quotes is part of a row."""
    record = b""
    for line in data.splitlines(keepends=True):
        record += line
        # inside a quoted text the number of quotes so far is odd
        if record.count(b'"') % 2 == 0:
            yield record.removesuffix(b"\n")
            record = b""
