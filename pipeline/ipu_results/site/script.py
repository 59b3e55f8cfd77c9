"""Values as a classic script: a page that was opened from disk may load scripts, and neither modules nor JSON."""

from __future__ import annotations

import json
from typing import Any

# What could end a script element, open a comment in it or, in old engines, end a line of it.
ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def script(name: str, value: Any) -> str:
    """A script that puts a value under a name of `window.__data`."""
    told = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(ESCAPES)
    return f"(window.__data=window.__data||{{}})[{json.dumps(name)}]={told};\n"
