"""The data of the site: what a release holds, as classic scripts and Parquet files that a browser can read."""

from ipu_results.site.folder import build

__all__ = ["build"]
