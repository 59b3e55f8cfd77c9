"""Set generated tables as PDF with programs that are not dependencies: WeasyPrint and Chromium."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from random import Random

from benchmarks.documents.html import MARKUPS, Markup, write_page, write_table
from benchmarks.documents.mutations import Draft

CHROMIUM = next(
    (path for name in ("chromium", "google-chrome", "chrome") if (path := shutil.which(name))), None
)
TIMEOUT_S = 60
SHEET = (
    "@page { size: 420mm 297mm; margin: 15mm } table { border-collapse: collapse; font-size: 8pt;"
    " margin: 6pt } td, th { white-space: nowrap; padding: 2pt 7pt; border: 0.5pt solid #888 }"
    " @media print { a { color: #222 } }"
)
HIDING = {
    "white": "background-colour",
    "covered": "clip",
    "transparent": "opacity",
    "mode-3": "visibility",
}
HTML_MARKUPS = ("plain", "wordpress", "docutils", "word")


def _write_sheet(draft: Draft, markup: Markup) -> str:
    style = dict(draft.style)
    if "hide" in style:
        style["hide"] = HIDING.get(style["hide"], style["hide"])
    if "raise" in style:
        style["raise"] = "span"
    tables = [write_table(table, markup, style) for table in draft.tables]
    return write_page(draft, tables, markup).replace("</style>", f"{SHEET}</style>")


def _print_with_weasyprint(markup: Markup) -> Callable[[Draft, Random], bytes]:
    def build(draft: Draft, _: Random) -> bytes:
        from weasyprint import HTML  # noqa: PLC0415  (not a dependency)

        return bytes(HTML(string=_write_sheet(draft, markup)).write_pdf())

    return build


def _print_with_chromium(draft: Draft, _: Random) -> bytes:
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory() as folder:
        page, out = Path(folder, "page.html"), Path(folder, "page.pdf")
        page.write_text(_write_sheet(draft, Markup()), encoding="utf-8")
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder}/profile",
        ]
        command = [
            CHROMIUM,
            *options,
            f"--print-to-pdf={out}",
            "--no-pdf-header-footer",
            page.as_uri(),
        ]
        subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
        return out.read_bytes()


TYPESETTERS: dict[str, Callable[[Draft, Random], bytes]] = {}
if find_spec("weasyprint"):
    TYPESETTERS |= {
        f"weasyprint, {name}": _print_with_weasyprint(MARKUPS[name]) for name in HTML_MARKUPS
    }
if CHROMIUM:
    TYPESETTERS["chromium"] = _print_with_chromium
"""What is installed here."""
SLOW = frozenset({"chromium"})
