"""What `add` would store of a generated page: the evidence of Chromium, where CHROMIUM names one.

It is not the judge: `browser.py` finds out by a script of its own what a page shows.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from ipu_results.record.read.html.shown import ShownPage, parse_shown
from ipu_results.record.sources.browser import Browser, find_modules

from benchmarks.documents.browser import is_installed


@cache
def _open_browser(folder: Path) -> Browser:
    """Return the one browser of this process; it ends with it."""
    return Browser(folder)


def find_shown(data: bytes) -> ShownPage | None:
    """Return what a browser shows of a page, None if none is installed.

    Raises BrowserError, and UnprovenDocumentError for a page that lacks a file.
    """
    modules = find_modules()
    if modules is None or not is_installed():
        return None
    browser = _open_browser(modules)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "page.html")
        path.write_bytes(data)
        return parse_shown(browser.show(path, data), data)
