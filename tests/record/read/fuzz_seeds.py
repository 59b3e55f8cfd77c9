"""What the fuzzer starts from: small sound documents of each format, and the tokens of their
languages.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

from reportlab import rl_config

from benchmarks.documents.recipes import Recipe, build_document

DATA = Path(__file__).resolve().parents[2] / "data" / "fuzz"
HTML_DIALECTS = ("plain", "word", "excel", "optional ends", "newsletter", "div grid")
PDF_DIALECTS = ("ruled", "booktabs", "unruled", "turned page", "cropped", "truetype")
MUTATIONS = ("footnote raised", "merged figures", "decimal comma")


def _make_html() -> list[bytes]:
    recipes = [Recipe(f"html: {name}", False, 2, (), seed=0) for name in HTML_DIALECTS]
    recipes += [Recipe("html: plain", True, 2, (name,), seed=1) for name in MUTATIONS]
    return [build_document(recipe)[0] for recipe in recipes]


def _make_pdf() -> list[bytes]:
    """Make PDF files with and without compression: edits of bytes reach the text of the latter
    only.
    """
    seeds = []
    recipes = [Recipe(f"pdf: {name}", True, 2, (), seed=0) for name in PDF_DIALECTS]
    before = rl_config.pageCompression
    try:
        for compression in (0, 1):
            rl_config.pageCompression = compression
            seeds += [build_document(recipe)[0] for recipe in recipes]
    finally:
        rl_config.pageCompression = before
    return seeds


def _make_text(name: str, *changes: tuple[str, str]) -> Callable[[], list[bytes]]:
    """Make a text as it is, with other texts in it and in another encoding."""
    text = (DATA / name).read_text(encoding="utf-8")
    texts = [text, *(text.replace(old, new) for old, new in changes)]
    return lambda: [*(each.encode() for each in texts), text.encode("utf-16")]


RETURNS = ("\n", "\r\n")
SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "html": _make_html,
    "pdf": _make_pdf,
    "page-text": _make_text("page.txt", (" | ", "\n"), (" | ", "\t"), RETURNS),
    "paper-text": _make_text("paper.txt", RETURNS),
    "csv": _make_text("page.csv", RETURNS),
    "sweep-record": _make_text("record.json", RETURNS),
    "mlperf-log": _make_text("mlperf.log", ("\n", "\r")),
}


def make_seeds(name: str) -> list[bytes]:
    """Return sound documents of one reader, or of all of them for the one that chooses the reader."""
    if name == "dispatch":
        return [seed for other in SEEDS for seed in SEEDS[other]()]
    return SEEDS[name]()


WORDS = (
    "Model Variant Platform Batch\u00a0size Throughput Latency (ms) 10⁶ 1,234 0,5 ± * ² \u202e"
    " \ufeff \0 \x1b[2J é"
)
COMMON = [word.encode() for word in WORDS.split(" ")]
COMMON += [b"\xff\xfe", b"\x80", b"\n", b"\r", b"\t", b" ", b'"', b",", b"|"]
STATED = tomllib.loads((DATA / "tokens.toml").read_text(encoding="utf-8"))
TOKENS = {name: COMMON + [word.encode() for word in words] for name, words in STATED.items()}
TOKENS["dispatch"] = [token for tokens in TOKENS.values() for token in tokens]
