"""Check texts of a stranger: refuse what a terminal, a spreadsheet, a browser, a shell or a database acts on."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from ipu_results.ground.limits import MAX_SUBMITTED_CELL
from ipu_results.ground.text import mark_formula
from ipu_results.submission.fault import Fault

HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # categories of Unicode that show nothing
# What shows nothing in another category: joiners, fillers, variation selectors, the blank of Braille.
BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
# Latin letters, and what looks like them: Cyrillic, Armenian, Cherokee, and Greek without the letters of units.
LATIN, LOOKALIKE = (
    re.compile("[A-Za-z]"),
    re.compile("[\u0400-\u058f\u13a0-\u13ff\uab70-\uabbf\u0391-\u0393\u0395-\u03a8\u03bf\u03f2]"),
)
SHORTEST_WORD = 3  # letters of another script between hyphens or digits that are a word of their own
WORD = re.compile(r"[^\W\d_]+(?:[-_\d]+[^\W\d_]+)*")
MARKUP = re.compile(
    r"<\s*[a-z!/?]|&(?:#\w{1,8}|[a-z]{2,8});|\]\(\s*(?:[a-z]+:|//|www\.)", re.I
)  # HTML, links of Markdown
MAX_MARKS = 30  # combining marks on one letter: the Stream-Safe Text Format of Unicode (UAX #15) has no more
CODE = re.compile(r"\$\(|\$\{|\{\{|`|<%|(?:javascript|vbscript|data|file)\s*:(?!\s)", re.I)
SQL = re.compile(
    r"\b(?:drop|alter|create)\s+(?:table|view|schema|database|macro)\b|\b(?:delete|select)\b.*\bfrom\s+\w+\s*(?:;|where\b|$)"
    r"|\binsert\s+into\b|\bupdate\s+\w+\s+set\b|\bunion\s+(?:all\s+)?select\b|\b(?:attach|install|load|copy)\s+'"
    r"|'\s*(?:or|and)\s+['\d]|/\*",
    re.I,
)


def check_text(text: str, place: str, limit: int = MAX_SUBMITTED_CELL, *, lines: bool = False) -> Iterator[Fault]:
    """Yield what is wrong with a text. With `lines` it is prose: line breaks, lists and quotes are accepted."""
    if len(text) > limit:
        yield Fault("too-large", f"has {len(text):,} characters, at most {limit:,} are accepted", place)
        return
    kept = text.replace("\n", " ").replace("`", " ") if lines else text
    if hidden := next((char for char in kept if unicodedata.category(char) in HIDDEN or BLANK.match(char)), None):
        yield Fault("control-characters", f"has the character U+{ord(hidden):04X}, which shows nothing", place)
    if _has_stacked_marks(kept):
        yield Fault("control-characters", f"has more than {MAX_MARKS} combining marks on one letter", place)
    if mixed := next(filter(_is_mixed, WORD.findall(kept)), None):
        like = ord(LOOKALIKE.findall(mixed)[0])
        message = f"{mixed!r} mixes Latin letters with U+{like:04X}, which looks like one; write one script"
        yield Fault("control-characters", message, place)
    start = unicodedata.normalize("NFKC", kept.strip())  # a spreadsheet takes a wide sign for the sign
    if not lines and mark_formula(start) != start:
        yield Fault("formula", "begins like a formula of a spreadsheet; write text or a figure", place)
    if MARKUP.search(kept):
        yield Fault("markup", "holds HTML or a link of Markdown; write plain text", place)
    if CODE.search(kept) or SQL.search(kept):
        yield Fault("code", "holds a script, a shell expression or SQL; write plain text", place)


def _has_stacked_marks(text: str) -> bool:
    run = 0
    for char in text:
        run = run + 1 if unicodedata.combining(char) else 0
        if run > MAX_MARKS:
            return True
    return False


def _is_mixed(word: str) -> bool:
    """Return whether a Latin word has letters of a lookalike script; `GPU-память` is not one."""
    if not LATIN.search(word) or not LOOKALIKE.search(word):
        return False
    parts = re.split(r"[-_\d]+", word)
    return any(LOOKALIKE.search(part) and (LATIN.search(part) or len(part) < SHORTEST_WORD) for part in parts)


def decode_text(data: bytes, place: str) -> str | Fault:
    """Decode UTF-8; return what is wrong otherwise."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Fault("encoding", f"is not UTF-8: byte {error.start + 1}", place)
    if "\0" in text:
        return Fault("encoding", "holds a NUL character", place)
    return text
