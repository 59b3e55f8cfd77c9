"""Have Chromium show a saved page, and keep what its tables show as evidence.

Node runs `browser.mjs`. It needs playwright-core, and Chromium: that which CHROMIUM names, else
@sparticuz/chromium. Both are in `site/node_modules` after `npm ci` in `site`, or in `node_modules`
of the current folder. The page gets the files beside it, and no network.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from ipu_results.errors import BrowserError
from ipu_results.kit.files import SCHEMA
from ipu_results.kit.limits import MAX_SHOWING_S
from ipu_results.record.read.html import find_charset, is_message
from ipu_results.record.read.html.shown import ShownPage

SCRIPT = Path(__file__).with_suffix(".mjs")
BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def find_modules() -> Path | None:
    """Return the folder whose `node_modules` control a browser, None where none is installed."""
    if shutil.which("node") is None:
        return None
    for folder in (SCHEMA.parent / "site", Path.cwd()):
        modules = folder / "node_modules"
        has_browser = os.environ.get("CHROMIUM") or (modules / "@sparticuz" / "chromium").is_dir()
        if has_browser and (modules / "playwright-core").is_dir():
            return folder
    return None


def is_installed() -> bool:
    """Check whether pages can be shown."""
    return find_modules() is not None


class Browser:
    """A Chromium that shows one page after the other, in a process group of its own."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            ["node", str(SCRIPT), str(folder.resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        # it closes stdin, which may still hold a request that nobody reads
        with suppress(BrokenPipeError):
            self._process.__exit__(None, None, None)

    def _end(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def show(self, path: Path, data: bytes) -> bytes:
        """Return the evidence of what a saved page shows, as JSON. Raises BrowserError."""
        with tempfile.TemporaryDirectory() as scratch:
            is_saved_whole = is_message(data)
            shown_path = path
            if is_saved_whole:
                # Chromium opens MHTML by its suffix
                shown_path = Path(scratch, "page.mhtml")
                shown_path.write_bytes(data)
            has_charset = data.startswith(BYTE_ORDER_MARKS) or find_charset(data)
            charset = "" if has_charset else "utf-8"
            request = {"file": str(shown_path.resolve()), "mhtml": is_saved_whole}
            answer = self._ask(json.dumps(request | {"charset": charset}), path.name)
        answer["sha256"] = hashlib.sha256(data).hexdigest()
        try:
            shown = msgspec.convert(answer, ShownPage)
        except msgspec.ValidationError as error:
            raise BrowserError(f"Chromium gave no evidence: {error}", document=path.name) from error
        return msgspec.json.format(msgspec.json.encode(shown), indent=1) + b"\n"

    def _ask(self, request: str, name: str) -> dict[str, object]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timer = threading.Timer(MAX_SHOWING_S, self._end)
        timer.start()
        try:
            self._process.stdin.write(f"{request}\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        answer: dict[str, object] = json.loads(line) if line else {"error": self._find_reason()}
        if "error" in answer:
            raise BrowserError(f"Chromium failed: {answer['error']}", document=name)
        return answer

    def _find_reason(self) -> str:
        """Return why the process ended without an answer."""
        assert self._process.stderr is not None
        if self._process.wait() == -signal.SIGKILL:
            return f"it did not show the page within {MAX_SHOWING_S:.0f} seconds"
        lines = self._process.stderr.read().splitlines()
        return next((line for line in lines if "Error" in line), "no answer")[:300]


def show_page(path: Path, data: bytes) -> bytes:
    """Return the evidence of what Chromium shows of one saved page, as JSON.

    Raises BrowserError if there is no browser, if it fails, or if it takes too long.
    """
    folder = find_modules()
    if folder is None:
        raise BrowserError("needs Node.js, playwright-core and Chromium", document=path.name)
    with Browser(folder) as browser:
        return browser.show(path, data)
