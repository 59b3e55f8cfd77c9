"""Set generated tables as PDF with programs that are not dependencies: WeasyPrint, Typst and
Chromium.
"""

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
from benchmarks.documents.tables import BOLD, HIDDEN, RAISED, STRUCK, Run

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


TYPST_HEAD = (
    "#set page(width: 420mm, height: 297mm, margin: 15mm)\n#set text(size: 8pt)\n#set table(stroke:"
    " {stroke})\n"
)


def _print_with_typst(stroke: str) -> Callable[[Draft, Random], bytes]:
    def build(draft: Draft, _: Random) -> bytes:
        import typst  # noqa: PLC0415  (not a dependency)

        parts = [TYPST_HEAD.format(stroke=stroke)]
        for table in draft.tables:
            rows = [row for number, row in enumerate(table.rows) if number not in table.hidden_rows]
            cells = [f"[{_escape(name)}]" for name in table.columns]
            cells += [f"[{''.join(map(_write_run, cell.runs))}]" for row in rows for cell in row]
            grid = f"table(columns: {len(table.columns)}, {', '.join(cells)})"
            caption = _escape(table.caption.split(". ", 1)[-1])
            parts.append(
                f"#figure({grid}, caption: [{caption}])\n" if table.caption else f"#{grid}\n"
            )
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "page.typ")
            source.write_text("\n".join(parts), encoding="utf-8")
            return bytes(typst.compile(str(source)))

    return build


def _escape(text: str) -> str:
    return "".join(
        char if char.isalnum() or char in " ,.\u00a0\u2009" else f"\\u{{{ord(char):x}}}"
        for char in text
    )


def _write_run(run: Run) -> str:
    text = _escape(run.text)
    wrap = {
        RAISED: "#super[{}]",
        BOLD: "#strong[{}]",
        STRUCK: "#strike[{}]",
        HIDDEN: "#text(fill: white)[{}]",
    }
    return wrap.get(run.style, "{}").replace("{}", text)


TYPESETTERS: dict[str, Callable[[Draft, Random], bytes]] = {}
if find_spec("weasyprint"):
    TYPESETTERS |= {
        f"weasyprint, {name}": _print_with_weasyprint(MARKUPS[name]) for name in HTML_MARKUPS
    }
if find_spec("typst"):
    TYPESETTERS |= {
        "typst": _print_with_typst("0.5pt"),
        "typst, unruled": _print_with_typst("none"),
    }
if CHROMIUM:
    TYPESETTERS["chromium"] = _print_with_chromium
"""What is installed here."""
SLOW = frozenset({"chromium"})
