"""What a golden must not depend on, each rule with its reason. Nothing else is masked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

SIGNIFICANT = 6
MEASURED = 9  # digits of a figure that is not emulated are kept up to so many
FLOAT = re.compile(r"(?<![\w.])-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)(?![\w.])")
HASH = re.compile(r"\b[0-9a-f]{64}\b")
# Written for each machine: processor, cores, memory, system, versions of Python and packages
MACHINE = re.compile(
    r'"(cpu|machine|logical_cores|physical_cores|usable_cores|cpu_quota|memory_gb|governor|system|kernel|python'
    r"|implementation|container|virtual_machine|numpy|onnx|onnxruntime|openvino|pillow|psutil|click|duckdb|pandas"
    r'|pyarrow|tabulate|ipu-results)": ("[^"]*"|[\d.]+|null)'
)
LISTS = re.compile(r'"(cpu_flags|load_average)": \[[^\]]*\]')
DURATION = re.compile(r"(?<=about )\d+ s(?= left)|(?<= in )\d+(?:\.\d+)? s\b")
# The last column of the table that `ingest` prints: seconds, as wide as they are long; an id of a build has 12 digits
SECONDS = re.compile(r" +(?:[\d.]{1,9}|-+|s)$", re.MULTILINE)
# Words of one version of Python
RECURSION = re.compile(r"(?<=maximum recursion depth exceeded).*")
# Devices of the machine, and columns as wide as its processor's name
DEVICES = re.compile(r"^(onnxruntime|openvino) .*\n?", re.MULTILINE)
# Temporary folders and memory addresses
PLACE = re.compile(r"/tmp/[\w./-]+|0x[0-9a-f]{6,}")


@dataclass(frozen=True)
class Masks:
    """The masks of one build and version of the package."""

    build_id: str
    version: str
    sources: frozenset[str]

    @classmethod
    def of(cls, warehouse: Path, version: str) -> Masks:
        """Read the build's id, and the digests of the sources, which are facts and stay."""
        build_id = pq.read_table(warehouse / "build.parquet")["build_id"][0].as_py()
        sources = pq.read_table(warehouse / "documents.parquet")["sha256"].to_pylist()
        return cls(build_id, version, frozenset(sources))

    def apply(self, text: str, *, emulated: bool = False, today: bool = False) -> str:
        """Return the text without what changes with a commit, a day or a machine."""
        # The id of a build follows from the code, so every commit has its own.
        text = re.sub(rf"{self.build_id}|\b{self.build_id[:12]}\b", "<build>", text)
        # Digests of files that were built, of code and of docs; those of sources are facts.
        text = HASH.sub(lambda digest: digest[0] if digest[0] in self.sources else "<sha256>", text)
        # A release raises the version. Only where a text calls it a version: data hold such
        # numbers, too.
        version = re.escape(self.version)
        text = re.sub(
            r'((?:[vV]ersion|VERSION|ipu-results|ipu_results|emulator|\bv)["\'}>:=,'
            rf" {{/]*){version}",
            r"\1<version>",
            text,
        )
        text = MACHINE.sub(r'"\1": "<machine>"', LISTS.sub(r'"\1": []', text))
        if text.startswith("exit 0\nbackend "):
            text = re.sub(r" {2,}|-{3,}", "  ", DEVICES.sub("", text))
        text = RECURSION.sub("", text)
        if text.startswith("exit 0\ndocument "):
            text = SECONDS.sub("", text)
        text = PLACE.sub("<place>", DURATION.sub("<time>", text))
        # The last digits of a float depend on the processor and on the number of threads that sum.
        digits = SIGNIFICANT if emulated else MEASURED
        text = FLOAT.sub(lambda number: _round(number[0], digits), text)
        # Only where a command writes the day: sources have the same form of dates.
        return _mask_today(text) if today else text


def _mask_today(text: str) -> str:
    # midnight, time zones
    for days in (0, -1, 1):
        day = datetime.now(UTC) + timedelta(days)
        text = re.sub(rf"{day:%Y%m%d}-\d{{6}}-[\w-]+?-[0-9a-f]{{4}}\b", "<run>", text)
        text = re.sub(rf"{day:%Y-%m-%d}(T[\d:.]+Z?)?", "<today>", text)
    # of a bundle, by its day; not of a calibration
    return re.sub(r"(?<![\w.])(?<!c2-)(?<!2000-)[0-9a-f]{12}\b", "<id>", text)


def _round(text: str, digits: int) -> str:
    significant = re.sub(r"[eE].*|\D", "", text).lstrip("0")
    return f"{float(text):.{SIGNIFICANT}g}" if len(significant) > digits else text


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.found.append(data.strip())


def read_drawing(path: Path) -> str:
    """Return the words of an SVG: positions depend on the fonts of a machine, and so do all pixels
    of a PNG.
    """
    parser = _Texts()
    parser.feed(path.read_text(encoding="utf-8") if path.suffix == ".svg" else "")
    return "\n".join(sorted(parser.found))


def read_rows(path: Path) -> str:
    """Return columns, types and rows of a Parquet file without the id of the build: its bytes hold
    that id.
    """
    table = pq.read_table(path)
    # times in nanoseconds, of which only form and number are the same everywhere
    if path.name == "stamps.parquet":
        return f"{table.schema.names}\n{table.num_rows}"
    if "build_id" in table.column_names:
        table = table.drop_columns(["build_id"])
    lines = list(map(str, table.schema.remove_metadata()))
    lines += [repr(tuple(row.values())) for row in table.to_pylist()]
    return "\n".join(lines)


READERS: dict[str, Callable[[Path], str]] = {
    ".parquet": read_rows,
    ".svg": read_drawing,
    ".png": read_drawing,
}
# Files that hold docs, the licence, the changes, or the digests of other files. Only their names
# are compared.
CHANGING = frozenset(
    {"CHANGELOG.md", "LICENSE", "SHA256SUMS", "build.csv", "build.parquet", "environment.json"}
)


def read_file(path: Path) -> str:
    """Return a text that is the same on every machine for the same content."""
    if path.name in CHANGING or path.suffix == ".duckdb":
        return "present"
    if path.suffix in READERS:
        return READERS[path.suffix](path)
    return path.read_bytes().decode(errors="replace")


def list_files(folder: Path, kept: Callable[[Path], Any] = bool) -> Iterable[tuple[str, str]]:
    """Yield the files below a folder with their texts, in order of their names."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and kept(path):
            yield path.relative_to(folder).as_posix(), read_file(path)
