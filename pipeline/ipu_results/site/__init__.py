"""The data of the site: a release as classic scripts and Parquet files that a browser can read."""

from ipu_results.site.build import build_site

__all__ = ["build_site"]
