"""Run `python -m ipu_results.doors.site RELEASE OUT`, which writes the data of the site."""

from __future__ import annotations

import warnings
from pathlib import Path

import click

from ipu_results.doors.site import build_site
from ipu_results.doors.site.charts import IncompleteRecordWarning
from ipu_results.errors import IpuResultsError

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("release", type=FOLDER)
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--pages",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the static pages to this folder.",
)
@click.option("--base-url", default="", help="Address of the site, for previews, sitemap and feed.")
def main(release: Path, out: Path, pages: Path | None, base_url: str) -> None:
    """Write the data of the site from the folder RELEASE, which holds a Parquet file per table, to the folder OUT.

    \b
    Example:
      python -m ipu_results.doors.site warehouse site/dist/data --pages site/dist
    """
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", IncompleteRecordWarning)
            written = build_site(release, out, pages, base_url)
    except IpuResultsError as error:
        raise click.ClickException(str(error)) from error
    for each in caught:
        click.echo(f"warning: {each.message}", err=True)
    size = sum(path.stat().st_size for path in written)
    click.echo(f"{out}: {size / 1e6:.1f} MB in {len(written):,} files")


if __name__ == "__main__":
    main()
