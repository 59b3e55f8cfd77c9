"""The grammar of printed figures: what a figure is, and what it is worth with either decimal mark.

`docs/reference/figures.md` is its page. Digits are those of ASCII, and thousands marks divide
groups of three. Signs, exponents, units, ranges and blanks are no part of a figure.
"""

from __future__ import annotations

import re
from decimal import Decimal

# A figure begins with no 0 but that of its decimals, so `0,920` has a decimal comma.
GRAMMAR = r"(?:[1-9][0-9]{{0,2}}(?:{thousands}[0-9]{{3}})+|0|[1-9][0-9]*)(?:{decimals}[0-9]+)?"
FIGURES = {
    ".": re.compile(GRAMMAR.format(thousands=",", decimals=r"\.")),
    ",": re.compile(GRAMMAR.format(thousands=r"\.", decimals=",")),
}
"""What a figure is with each decimal mark; the other mark divides thousands."""
# `12,5` has a decimal comma, or lost a digit of `12,500`
LOST_DIGIT = re.compile(r"[1-9][0-9]*,[0-9]+")
SHAPE = r"\d[\d,]*(?:\.\d+)?"
"""What may be a figure where a row is recognised by the shapes of its cells."""
PRINTED = re.compile(r"[~≈<>≤≥±]?\s?(?:\d{1,3}(?:,\d{3})+|\d+)(?:[.,]\d+)?\s?%?[*†‡§¶]*")
"""What stands for a figure in a table, whether it can be read or not."""
TEN_IN_TEXT = r"(?:^|[^\d.,])10"
WHOLE_NUMBER = r"^\d+"
NOT_FIRST = r"(?![1¹]\Z)"
EXPONENT = r"[-+−]?[\d⁰¹²³⁴-⁹]+\Z"
POWER = re.compile(rf"(?:{TEN_IN_TEXT}|{WHOLE_NUMBER})[⁺⁻]?\^{NOT_FIRST}{EXPONENT}")
"""A base, `^` and what is raised after it."""


def list_marks(text: str) -> str:
    """Return the decimal marks with which a text is a figure: "." or "," proves one."""
    return "".join(mark for mark, pattern in FIGURES.items() if pattern.fullmatch(text))


def read_figure(text: str, mark: str) -> Decimal | None:
    """Return a figure with a decimal mark, None for a text that is none."""
    if mark not in list_marks(text):
        return None
    thousands = "," if mark == "." else "."
    return Decimal(text.replace(thousands, "").replace(mark, "."))


def is_figure(text: str) -> bool:
    """Check whether a text stands for a figure, readable or not."""
    return PRINTED.fullmatch(text) is not None


def is_power(base: str, raised: str) -> bool:
    """Check whether digits raised after `base` may be an exponent, as in `10⁶` and `143²`.

    No one prints a first power, so a 1 is a footnote.
    """
    return POWER.search(f"{base}^{raised}") is not None
