"""Number-bearing tokens of a text: figures with an attached unit, and number words. Names that hold digits are none."""

from __future__ import annotations

import re
from collections.abc import Iterator

NAMES = re.compile(
    r"""<img[^>]*> | https?://\S+ | IPU-M2000s? | IPU-POD\d+ | A100(?:-SXM4)? | MK2 | ImageNet2012 | Series1
    | ResNet-?50 | ResNeXt-101(?:_32x4d)? | (?:EfficientNet|EN)-?B\d | Deep\ ?Voice\ ?3 | 32-bit""",
    re.VERBOSE | re.IGNORECASE,
)
WORDS = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "dozen"),
    *("hundred", "thousand", "thousands", "million", "half", "quarter", "single", "both", "dual", "twice", "orders"),
)
TOKEN = re.compile(
    rf"""(?:\d{{1,3}}(?:,\d{{3}})+(?!\d) | \d+(?:\.\d+)*(?:-\d+)?) (?:(?:x|U|GB|st|%)(?![a-z0-9]))?
    | (?<![a-z-]) (?:{"|".join(WORDS)}) (?![a-z])""",
    re.VERBOSE | re.IGNORECASE,
)


def numbers(text: str) -> Iterator[tuple[int, str]]:
    """Each token in the order of the text with its line, in lower case."""
    for line, content in enumerate(text.splitlines(), start=1):
        for match in TOKEN.finditer(NAMES.sub(" ", content)):
            yield line, match[0].lower()
