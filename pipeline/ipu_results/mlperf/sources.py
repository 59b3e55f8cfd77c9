"""What a PATH is: an archive, a URL or a local folder; and its entries scored."""

from __future__ import annotations

import os

from ipu_results.mlperf.archive import is_archive, open_local, score_archive
from ipu_results.mlperf.remote import is_url, open_remote, open_tree
from ipu_results.mlperf.scoring import Progress, Reader, Round, score_tree
from ipu_results.mlperf.tree import LocalTree


def is_one_archive(path: str) -> bool:
    """Read as one stream; a folder may be named as it likes, and `tar://` reaches into an archive as into a folder."""
    return is_archive(path) and not os.path.isdir(path) and ("::" not in path or os.path.exists(path))


def local_root(path: str) -> str | None:
    """The local folder or file that PATH is read from; None where it lies elsewhere."""
    if not _is_elsewhere(path):
        return path
    tree = open_tree(path) if not is_archive(path) else None
    return tree.root if isinstance(tree, LocalTree) else None


def _is_elsewhere(path: str) -> bool:
    return is_url(path) and not os.path.exists(path)


def score_source(path: str, reader: Reader, *, digests: bool, round_: str | None, progress: Progress) -> Round:
    """Score every entry under PATH; an archive is read here, in one pass, and not by `reader`."""
    if is_one_archive(path):
        opened = open_remote if _is_elsewhere(path) else open_local
        return score_archive(path, digests=digests, round_=round_, progress=progress, opened=opened)
    tree = open_tree(path) if _is_elsewhere(path) else LocalTree(os.path.abspath(path) if path else path)
    return score_tree(tree, reader, digests=digests, round_=round_, progress=progress)
