"""The site of a release: scripts and Parquet files that a browser can read, and static pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import pyarrow as pa
from pyarrow.parquet import write_table as write_parquet

from ipu_results.doors.site.charts import build_charts, build_predictions
from ipu_results.doors.site.citations import build_citations, build_mlperf, build_provenance
from ipu_results.doors.site.comparison import DATABASE, build_comparison, build_run_form
from ipu_results.doors.site.data import (
    build_claims,
    build_history,
    build_rankings,
    build_replications,
    build_results,
    build_sql,
    format_script,
)
from ipu_results.doors.site.start import build_start
from ipu_results.errors import WarehouseError
from ipu_results.kit.files import write_atomically
from ipu_results.kit.sql import Connection, run_query
from ipu_results.record.store.files import get_csv_name, get_parquet_name
from ipu_results.record.store.query import open_warehouse, read_parquet
from ipu_results.record.store.tables import write_csv
from ipu_results.release import verify_release
from ipu_results.release.files import RELEASE
from ipu_results.schema import MAIN, TABLES, VIEWS

__all__ = ["build_site"]

# One script per view of the page, which loads it when the view opens.
SCRIPTS: Mapping[str, Callable[[Connection], object]] = {
    "results": build_results,
    "provenance": build_provenance,
    "mlperf": build_mlperf,
    "claims": build_claims,
    "rankings": build_rankings,
    "replications": build_replications,
    "history": build_history,
    "emulator": build_predictions,
    "run": build_run_form,
    "sql": build_sql,
}


MAX_CSV = 5_000_000  # bytes: a larger one of a table is in the archive alone
FIRST = "results"  # what most readers want
KINDS: tuple[Literal["parquet", "csv"], ...] = ("parquet", "csv")


@dataclass(frozen=True, slots=True)
class OfferedFile:
    """A file that the page offers: of a table or view, or of all tables without a `name`."""

    name: str
    of: Literal["table", "view"]
    kind: Literal["parquet", "csv"]
    path: str
    content: bytes
    rows: int
    description: str = ""

    @property
    def size(self) -> str:
        """The size in words."""
        count = len(self.content)
        return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(1, round(count / 1e3))} kB"


def build_downloads(connection: Connection, release: Path) -> list[OfferedFile]:
    """Build `results`, the main views and the other tables as Parquet and CSV, then an archive of
    all tables for each of the two.
    """
    tables = _build_tables(release)
    views = []
    for view in VIEWS:
        if view.schema == MAIN and not view.parameters:
            rows = run_query(connection, f"FROM {view.sql_name}")
            content = BytesIO()
            write_parquet(rows, content, compression="zstd")
            views += _offer("view", view.name, view.description, rows, content.getvalue())
    first = [file for file in tables if file.name == FIRST]
    others = [file for file in tables if file.name != FIRST]
    archives = []
    for kind in KINDS:
        packed = _pack(file for file in tables if file.kind == kind)
        rows = sum(file.rows for file in tables if file.kind == kind)
        path = f"data/ipu-results-{kind}.zip"
        archives.append(OfferedFile("", "table", kind, path, packed, rows))
    return first + views + others + archives


def _build_tables(release: Path) -> list[OfferedFile]:
    files = []
    for table in TABLES:
        path = release / get_parquet_name(table.sql_name)
        content = path.read_bytes()
        rows = read_parquet(path, data=content)
        files += _offer("table", table.sql_name, table.description, rows, content)
    return files


def _offer(
    of: Literal["table", "view"], name: str, description: str, rows: pa.Table, content: bytes
) -> list[OfferedFile]:
    """Offer the rows of a table or view as the Parquet file `content` and as CSV."""
    buffer = BytesIO()
    write_csv(rows, buffer)
    text = buffer.getvalue()
    parquet_path = f"data/parquet/{get_parquet_name(name)}"
    csv_path = f"data/csv/{get_csv_name(name)}" if len(text) <= MAX_CSV else ""
    count = rows.num_rows
    return [
        OfferedFile(name, of, "parquet", parquet_path, content, count, description),
        OfferedFile(name, of, "csv", csv_path, text, count, description),
    ]


def _pack(files: Iterable[OfferedFile]) -> bytes:
    """Return an archive of files, without the time at which it was made."""
    archive = BytesIO()
    with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
        for file in files:
            name = f"ipu-results/{file.name.replace('.', '/')}.{file.kind}"
            packed.writestr(ZipInfo(name), file.content, ZIP_DEFLATED)
    return archive.getvalue()


def build_site(
    release: Path, out: Path, pages: Path | None = None, base_url: str = ""
) -> list[Path]:
    """Write the scripts, and copy the Parquet files of the release; return the files written.

    With a folder `pages`, the static pages are written there, with absolute addresses if there is a
    `base_url`. Raises WarehouseError for a folder without a whole release, and for a release that
    its own checksums contradict.
    """
    # The tables of the page come from the DuckDB file and its SQL from Parquet, so the two must
    # agree. A warehouse that was never published has no checksums.
    problems = verify_release(release) if (release / RELEASE).exists() else []
    if problems:
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        message = f"is not a release as published: {problems[0].line}{more}"
        raise WarehouseError(message, place=str(release))
    with open_warehouse(release) as connection:
        downloads = build_downloads(connection, release)
        charts = build_charts(connection)
        start = build_start(connection, release)
        scripts = {name: build(connection) for name, build in SCRIPTS.items()}
        scripts["charts"] = charts
        scripts["start"] = start
        scripts["citations"] = build_citations(connection, release)
        comparison = build_comparison(connection)
        texts: dict[str, str | bytes] = {}
        if pages:
            # needs Jinja2, which comes with the charts
            from ipu_results.doors.site.pages import build_pages  # noqa: PLC0415

            texts = build_pages(connection, charts, start, base_url, downloads=downloads)
    files = {out / DATABASE: comparison}
    for name in sorted(scripts):
        files[out / f"{name}.js"] = format_script(name, scripts[name]).encode()
    for file in downloads:
        if file.path:
            files[out / file.path.removeprefix("data/")] = file.content
    for name, text in texts.items():
        content = text if isinstance(text, bytes) else text.encode()
        files[(pages or out) / name] = content
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    return list(files)
