"""Check the project's words: no banned dialect in names, docstrings, comments, messages, docs and the page.

usage: python .ci/prose.py [PATH ...]      (default: every tracked file); exits 1 and lists each finding

A line that ends in `# kept: REASON` is exempt: its text is part of a file format.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PHRASES = re.compile(
    r"\b(?:told|(?<!there )(?:is|are) no (?!longer|more)|stands? (?:in|beside|there|for itself|alone)|anew|so many"
    r"|what it takes|nobody|as it (?:is|stands)|gives? nothing|beside|(?:is|was) asked|asked for|tells apart)\b",
    re.IGNORECASE,
)
NAMES = frozenset(
    """
    told tell tells said say says found one ones asked ask asks given wanted beside crew seat seats halves photos
    least most anew takes gives hear fold seal companions scene
    """.split()
)
PARTS = NAMES - {"one", "ones", "most", "least", "found", "given", "say", "ask", "takes", "gives", "seal", "fold"}
MAX_WORDS, MAX_SEMICOLONS = 25, 10  # a sentence on average; per 100 sentences
TYPESCRIPT = (".ts", ".tsx", ".mjs")
GENERATED = ("docs/reference/claims.md", "docs/reference/analyses.md", "docs/reference/rules.md")
SKIPPED = ("warehouse/", "raw/", "requirements", "site/package-lock.json", "LICENSE", ".ci/prose.py", "tests/data/")
KEPT = "# kept: "
SENTENCE = re.compile(r"[.!?](?=\s|$)")

Finding = tuple[str, int, str]


def check_file(path: Path, name: str) -> Iterator[Finding]:
    """Yield (file, line, message) for each finding in one file."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".py":
        yield from _check_python(text, name)
    elif path.suffix in (*TYPESCRIPT, ".md", ".toml", ".sql", ".html", ".yml", ".cff") or path.name == "Makefile":
        for number, line in enumerate(text.splitlines(), 1):
            if KEPT not in line:
                yield from _check_prose(line, name, number)
    if path.suffix == ".md" and not name.startswith(GENERATED):
        yield from _check_sentences(text, name)


def _check_prose(text: str, name: str, number: int) -> Iterator[Finding]:
    for match in PHRASES.finditer(text):
        yield name, number, f"write {match[0]!r} in plain words (see CONTRIBUTING.md, Words)"


def _check_python(text: str, name: str) -> Iterator[Finding]:
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)):
            for number, line in enumerate(token.string.splitlines(), token.start[0]):
                if KEPT not in lines[number - 1]:
                    yield from _check_prose(line, name, number)
    for node in ast.walk(ast.parse(text)):
        for identifier in _defined_names(node):
            parts = set(identifier.strip("_").lower().split("_"))
            if identifier.strip("_").lower() in NAMES or parts & PARTS:
                yield name, getattr(node, "lineno", 0), f"rename {identifier!r}: use the field's word"


def _defined_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node defines: functions, classes, arguments and assigned variables."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


def _check_sentences(text: str, name: str) -> Iterator[Finding]:
    """Check the average length of a page's sentences and its semicolons; code, tables and headings do not count."""
    prose = re.sub(r"```.*?```|^\s*[|#].*$|`[^`]*`", " ", text, flags=re.S | re.M)
    sentences = [part for part in SENTENCE.split(prose) if len(part.split()) > 2]
    if len(sentences) < 5:
        return
    words = sum(len(part.split()) for part in sentences) / len(sentences)
    semicolons = 100 * prose.count(";") / len(sentences)
    if words > MAX_WORDS:
        yield name, 1, f"{words:.0f} words a sentence on average, at most {MAX_WORDS}"
    if semicolons > MAX_SEMICOLONS:
        yield name, 1, f"{semicolons:.0f} semicolons in 100 sentences, at most {MAX_SEMICOLONS}"


def main() -> int:
    """Check the given files, or all tracked ones, and return the exit status."""
    names = sys.argv[1:] or subprocess.run(
        ["git", "ls-files"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split("\n")
    findings = [
        finding
        for name in names
        if name and not name.startswith(SKIPPED) and (ROOT / name).is_file()
        for finding in check_file(ROOT / name, name)
    ]
    for name, number, message in findings:
        print(f"{name}:{number}: {message}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
