"""The site of a release: scripts and Parquet files that a browser can read, and static pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import duckdb

from ipu_results.doors.site.charts import build_charts, build_predictions
from ipu_results.doors.site.citations import build_citations, build_mlperf, build_provenance
from ipu_results.doors.site.comparison import DATABASE, build_comparison, build_run_form
from ipu_results.doors.site.data import (
    build_claims,
    build_rankings,
    build_replications,
    build_results,
    build_sql,
    format_script,
)
from ipu_results.doors.site.start import build_start
from ipu_results.errors import WarehouseError
from ipu_results.kit.files import write_atomically
from ipu_results.record.store.files import get_csv_name, get_parquet_name
from ipu_results.record.store.query import open_warehouse, read_parquet
from ipu_results.record.store.tables import write_csv
from ipu_results.release import verify_release
from ipu_results.release.files import RELEASE
from ipu_results.schema import TABLES

__all__ = ["build_site"]

# One script per view of the page, which loads it when the view opens.
SCRIPTS: Mapping[str, Callable[[duckdb.DuckDBPyConnection], Any]] = {
    "results": build_results,
    "provenance": build_provenance,
    "mlperf": build_mlperf,
    "claims": build_claims,
    "charts": build_charts,
    "rankings": build_rankings,
    "replications": build_replications,
    "emulator": build_predictions,
    "run": build_run_form,
    "sql": build_sql,
}


MAX_CSV = 2_000_000  # bytes: a larger one is in the archive alone


@dataclass(frozen=True, slots=True)
class OfferedFile:
    """A file that the page offers: of a table, or of all tables where there is no `name`."""

    name: str
    kind: str
    path: str
    content: bytes
    rows: int
    description: str = ""

    @property
    def size(self) -> str:
        """The size in words."""
        count = len(self.content)
        return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(1, round(count / 1e3))} kB"


def build_downloads(release: Path) -> list[OfferedFile]:
    """Build each table as Parquet and CSV, then an archive of all tables for each of the two."""
    files = []
    for table in TABLES:
        parquet = get_parquet_name(table.sql_name)
        csv = get_csv_name(table.sql_name)
        content = (release / parquet).read_bytes()
        rows = read_parquet(release / parquet, data=content)
        buffer = BytesIO()
        write_csv(rows, buffer)
        text = buffer.getvalue()
        csv_path = f"data/csv/{csv}" if len(text) <= MAX_CSV else ""
        about = (rows.num_rows, table.description)
        files.append(
            OfferedFile(table.sql_name, "parquet", f"data/parquet/{parquet}", content, *about)
        )
        files.append(OfferedFile(table.sql_name, "csv", csv_path, text, *about))
    total = sum(each.rows for each in files if each.kind == "csv")
    for kind in ("parquet", "csv"):
        archive = BytesIO()
        with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
            for each in files:
                if each.kind == kind:
                    packed.writestr(
                        ZipInfo(f"ipu-results/{each.name.replace('.', '/')}.{kind}"),
                        each.content,
                        ZIP_DEFLATED,
                    )
        files.append(
            OfferedFile("", kind, f"data/ipu-results-{kind}.zip", archive.getvalue(), total)
        )
    return files


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
    if (release / RELEASE).exists() and (problems := verify_release(release)):
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        raise WarehouseError(
            f"is not a release as published: {problems[0].line}{more}", place=str(release)
        )
    with open_warehouse(release) as connection:
        downloads = build_downloads(release)
        data = {name: build(connection) for name, build in SCRIPTS.items()}
        data["start"] = build_start(connection, release)
        data["citations"] = build_citations(connection, release)
        comparison = build_comparison(connection)
        if pages:
            # needs Jinja2, which comes with the charts
            from ipu_results.doors.site.pages import build_pages  # noqa: PLC0415

            texts = build_pages(
                connection, data["charts"], data["start"], base_url, downloads=downloads
            )
    files = {out / f"{name}.js": format_script(name, data[name]).encode() for name in sorted(data)}
    files[out / DATABASE] = comparison
    files |= {
        out / each.path.removeprefix("data/"): each.content for each in downloads if each.path
    }
    if pages:
        files |= {
            pages / name: text if isinstance(text, bytes) else text.encode()
            for name, text in texts.items()
        }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    return list(files)
