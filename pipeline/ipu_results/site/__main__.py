"""Run `python -m ipu_results.site RELEASE OUT`, which writes the data of the site."""

from __future__ import annotations

from pathlib import Path

import click

from ipu_results.errors import IpuResultsError
from ipu_results.site import build_site
from ipu_results.site.pages import build_pages

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("release", type=FOLDER)
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--pages", type=click.Path(file_okay=False, path_type=Path), help="Write the static pages to this folder."
)
@click.option("--base-url", default="", help="Address of the site, for previews, sitemap and feed.")
def main(release: Path, out: Path, pages: Path | None, base_url: str) -> None:
    """Write the data of the site from the folder RELEASE, which holds a Parquet file per table, to the folder OUT.

    \b
    Example:
      python -m ipu_results.site warehouse site/dist/data --pages site/dist
    """
    try:
        written = build_site(release, out)
        static = build_pages(release, pages, base_url) if pages else []
    except IpuResultsError as error:
        raise click.ClickException(str(error)) from error
    for folder, files in ((out, written), (pages, static)):
        if files:
            size = sum(path.stat().st_size for path in files)
            click.echo(f"{folder}: {len(files)} files, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
