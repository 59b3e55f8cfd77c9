"""Rated power of accelerators (`schema/vocabulary/accelerators.toml`), found by the name of a chip."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from ipu_results.kit.files import load_schema_file

COUNT = re.compile(r"(?<!\w)\d+x(?=[a-z])")  # of chips, before a name: `8xH200`
SOCKET = re.compile(r"(?<=sxm)\d")  # the generation of a socket: `SXM5` is `SXM`


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The names of one chip, and its rated power with its document. The relation `peaks` has what it
    can do at most, by the same `chip`.
    """

    chip: str
    names: tuple[str, ...]
    power_w: float | None
    power_document: str


@cache
def load_accelerators() -> tuple[Accelerator, ...]:
    """Load the accelerators once."""
    file = load_schema_file("vocabulary/accelerators.toml")

    def describe_document(key: str | None) -> str:
        if key is None:
            return ""
        document = file["documents"][key]
        return f"{document['url']}, read on {document['read_on']}"

    accelerators = []
    for entry in file["accelerator"]:
        accelerator = Accelerator(
            chip=entry["chip"],
            names=tuple(entry["names"]),
            power_w=entry.get("power_w"),
            power_document=describe_document(entry.get("power_document")),
        )
        accelerators.append(accelerator)
    return tuple(accelerators)


@lru_cache(maxsize=1000)  # chips repeat from row to row; users name others
def find_accelerator(name: str | None) -> Accelerator | None:
    """Return the accelerator with the most words of its name in that of a chip, None where none has
    all of them.
    """
    words = set(_split_chip(name or ""))
    most_words = 0
    found = None
    for accelerator in load_accelerators():
        for own_name in accelerator.names:
            own_words = _split_chip(own_name)
            if len(own_words) > most_words and words.issuperset(own_words):
                most_words = len(own_words)
                found = accelerator
    return found


def _split_chip(name: str) -> list[str]:
    """Return the words of a chip's name, such as nvidia, h200, sxm, 141gb."""
    return re.findall(r"[a-z\d]+", SOCKET.sub("", COUNT.sub(" ", name.casefold())))
