"""Limits on what is read, in one place (`docs/reference/limits.md` lists them), and the pause of
garbage collection.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Documents
MAX_BYTES = 50_000_000  # bytes of a document, in raw/ or downloaded
MAX_PAGES = 500  # pages of a PDF

# Pages
MAX_TABLE_DEPTH = 50  # tables inside of each other in a page
MAX_PARENTS_OF_A_ROW = 100  # elements between a row of a page and its table
MAX_EVIDENCE_BYTES = 100_000_000  # bytes of what a browser shows of a page, as `add` stores it
MAX_SHOWING_S = 180.0  # seconds in which a browser must show a page

# PDFs
MAX_PAGE_OBJECTS = 250_000  # characters of one page of a PDF
MAX_IMAGE_PIXELS = 250_000_000  # pixels of one image in a PDF
MAX_UNPACKED_STREAM_BYTES = 100_000_000  # bytes that any other stream of a PDF unpacks to
MAX_DRAWN_BYTES = 10_000_000  # bytes of the instructions that draw one page of a PDF
MAX_UNPACKED_PDF_BYTES = 2_000_000_000  # bytes that all streams of a PDF unpack to

# Downloads
MAX_REDIRECTS = 5  # redirects that one download follows
MAX_SILENCE_S = 30.0  # seconds without a byte after which a download is given up
MAX_DOWNLOAD_S = 300.0  # seconds that one download may take

# MLPerf archives and logs
MAX_LOG_LINE = 4 * 2**20  # bytes of a line of a log
MAX_EVALUATIONS = 4_000  # evaluations of one run
MAX_EVALUATION = 2**12  # bytes of one evaluation line
MAX_SMALL = 1_000_000  # bytes of a description or a scaling file
MAX_MEMBERS = 1_000_000  # files in an archive
MAX_KEPT = 250_000  # files of an archive that are read
MAX_LINKS = 8  # links that lead to one file of an archive
MAX_UNPACKED_BYTES = 10**9  # bytes that any archive may unpack to
MAX_RATIO = (
    500  # unpacked bytes per byte of an archive; the logs of v2.0 compress by a factor of 20
)
MAX_HEADER = 2**20  # bytes of a header in an archive
MAX_XZ_MEMORY = 2**28  # bytes of memory to unpack an xz file

# Submissions
MAX_BUNDLE_BYTES = 5_000_000  # bytes of the archive of a bundle, and of what it unpacks to
MAX_BUNDLE_FILE = 2_000_000  # bytes of one file of a bundle
MAX_BUNDLE_FILES = 16  # entries of a bundle's folder or archive
MAX_BUNDLE_RATIO = 100  # unpacked bytes per byte of a file in the archive of a bundle
MAX_BUNDLES = 200  # bundles of one folder that are checked
MAX_SUBMITTED_ROWS = 1_000  # figures of a bundle
MAX_SUBMITTED_TEXT = 2_000  # characters of the text on how it was measured
MAX_SUBMITTED_BYTES = 20_000_000  # bytes of a file that figures are handed in from
MAX_TOML_CHARACTERS = 200_000  # characters of a sidecar, or of the description of a bundle
MAX_TOML_DOTS = (
    2_000  # points in one line of it: the time that a dotted key takes grows with their square
)
MAX_SUBMITTED_CELL = 500  # characters of one cell of a submission


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Run a block without cycle collection, which saves a third of its time, then restore the
    previous state.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def exempt_from_collection() -> Iterator[None]:
    """Run a block in which the collector leaves alone what is in memory before it, such as loaded
    modules.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
