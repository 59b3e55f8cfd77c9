"""Publish: from a warehouse to a release folder, its check, and what changed between two of them."""

from ipu_results.release.compare import compare
from ipu_results.release.release import Asked, Published, publish
from ipu_results.release.side import read_side
from ipu_results.release.verify import check

__all__ = ["Asked", "Published", "check", "compare", "publish", "read_side"]
