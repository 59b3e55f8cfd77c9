"""Publish: from a warehouse to a release folder, its check, and what changed between two of them."""

from pipeline.publish.compare import compare
from pipeline.publish.release import Asked, Published, publish
from pipeline.publish.side import read_side
from pipeline.publish.verify import check

__all__ = ["Asked", "Published", "check", "compare", "publish", "read_side"]
