"""Escape text for LaTeX, BibTeX, Markdown and HTML: no cell can end a row, open a command or a tag."""

from __future__ import annotations

import html
import re
from urllib.parse import quote

from ipu_results._util.markdown import escape_markdown
from ipu_results._util.text import escape_line

LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\textbraceleft{}",  # not \{: BibTeX counts braces, escaped or not
    "}": r"\textbraceright{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\symbol{34}",
    "`": r"\textasciigrave{}",
    "[": "{[}",  # \\ before it would read an option
    "]": "{]}",
    "*": "{*}",  # likewise
    "-": "-{}",  # two hyphens are a dash
    "®": r"\textregistered{}",
    "×": r"\texttimes{}",
    "µ": r"\textmu{}",
    "±": r"\textpm{}",
    "–": "--",
    "—": "---",
    "’": "'",
    "“": "``",
    "”": "''",
}
SPECIAL = re.compile("|".join(map(re.escape, LATEX)))
SAFE_IN_URL = "%/:=&?~#+!$,;'@()*[]-._"


def escape_latex(text: str) -> str:
    """Return text on one line that LaTeX and BibTeX print unchanged."""
    escaped = SPECIAL.sub(lambda match: LATEX[match[0]], escape_line(text))
    return re.sub(r"-\{\}(?!-)", "-", escaped)  # a hyphen alone needs no guard


def escape_url(url: str) -> str:
    """Return an http or https address without characters that a format acts on; "" for any other text."""
    return quote(url, safe=SAFE_IN_URL) if re.match(r"https?://", url) else ""


def escape_markdown_line(text: str) -> str:
    """Return text on one line that Markdown shows unchanged."""
    return escape_markdown(escape_line(text))


def escape_html(text: str) -> str:
    """Return text that HTML shows unchanged, in content and in quoted attributes."""
    return html.escape(escape_line(text))


def make_key(text: str) -> str:
    """Return text as a BibTeX key."""
    return re.sub(r"[^A-Za-z0-9.:-]+", "-", text)
