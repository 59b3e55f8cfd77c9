"""Find the entries of a results checkout from its paths alone, and read the system of each.

A round's folder holds `<submitter>/results/<system>/<benchmark>/result_*.txt` and
`<submitter>/systems/<system>.json`. The `submission_*` lines of a log are never a source.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from ipu_results.kit.text import escape_unprintable
from ipu_results.mlperf.rules import Rules, round_key

# our columns of a system's description that have one text, and the fields of the file
TEXTS = {
    "system": "system_name",
    "submitter": "submitter",
    "status": "status",
    "accelerator": "accelerator_model_name",
    "framework": "framework",
    "host_processor": "host_processor_model_name",
    "operating_system": "operating_system",
}
# those that may be a list or an object
LISTS = {
    "other_software": "other_software_stack",
    "accelerator_memory": "accelerator_memory_capacity",
    "accelerator_memory_type": "accelerator_memory_configuration",
    "accelerator_interconnect": "accelerator_interconnect",
    "host_memory": "host_memory_capacity",
    "host_network": "host_networking",
    "hardware_notes": "hw_notes",
    "software_notes": "sw_notes",
}
WHOLE_NUMBER = re.compile(r"\s*([0-9]{1,9})(?:\.0*)?\s*")  # the files have 8, 8.0 and "8"

LOG_PATTERN = "result_*.txt"
SCALING_FILE = "scaling.json"
MAX_DEPTH = 5  # of a submitter: v0.5 has v0.5.0/google/cloud_v2.8/gnmt-tpuv2-8/results
# names in a path that may lead out of the root, or are of an absolute one
UNSAFE_PARTS = frozenset({"", ".", ".."})
# Which part of a submitter's folder a path belongs to, by the number of its names from the
# submitter on: the first that fits.
FOLDER_DEPTHS = (
    ("results", 4),  # a benchmark
    ("results", 3),  # a system
    ("results", 2),  # the folder of all results
    ("systems", 2),  # that of all descriptions
)
FILE_DEPTHS = (
    ("results", 5),  # in a benchmark's folder, such as a log
    ("systems", 3),  # a description
    ("results", 7),  # a power log
    ("results", 6),  # astray below a benchmark's folder
    ("results", 4),  # astray beside the benchmarks
)
POWER_FOLDER = "power"
LOG_DEPTH = 3  # names of a path behind `results`
POWER_DEPTH = 5
OTHER_SUITE = "is refused: it holds {} results; only MLPerf Training is scored"
NO_ROUND = "names no round; pass one with --round"


@dataclass(frozen=True, slots=True)
class System:
    """What a description says; None is unknown.

    `division` and `availability` are in the words of the rules, `texts` as printed, by our columns.
    """

    division: str | None = None
    availability: str | None = None
    accelerators: int | None = None
    nodes: int | None = None
    host_processors_per_node: int | None = None
    texts: Mapping[str, str | None] = field(default_factory=dict)
    sha256: str | None = None
    findings: tuple[str, ...] = ()


def read_system(data: bytes | None, rules: Rules) -> System:
    """Read a description; one that is missing or is not JSON makes an unknown system with a
    finding.
    """
    if data is None:
        return System(findings=("is missing; the system is unknown",))
    digest = hashlib.sha256(data).hexdigest()
    try:
        fields = json.loads(_decode(data))
    except (ValueError, RecursionError) as error:
        return System(sha256=digest, findings=(f"is not JSON; the system is unknown: {error}",))
    if not isinstance(fields, dict):
        return System(sha256=digest, findings=("is not a JSON object; the system is unknown",))
    return replace(_parse_system(fields, rules), sha256=digest)


def _decode(data: bytes) -> str:
    # some files begin with a byte order mark, and others have an é of Latin-1
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _parse_system(fields: Mapping[str, Any], rules: Rules) -> System:
    texts = {}
    for column, name in TEXTS.items():
        texts[column] = _parse_text(fields.get(name))
    for column, name in LISTS.items():
        texts[column] = _format_text(fields.get(name))
    printed_division = _parse_text(fields.get("division"))
    division = rules.divisions.get((printed_division or "").lower())
    availability = rules.availabilities.get((texts["status"] or "").lower())
    findings = []
    if division is None:
        findings.append(f"division is not closed or open: {printed_division!r}")
    if availability is None:
        findings.append(f"status is not a known availability: {texts['status']!r}")
    per_node = _parse_whole(fields.get("accelerators_per_node"))
    nodes = _parse_whole(fields.get("number_of_nodes"))
    for name, number in (("accelerators_per_node", per_node), ("number_of_nodes", nodes)):
        if number is None:
            findings.append(f"{name} is not a whole number: {fields.get(name)!r}")
    accelerators = None
    if per_node is not None and nodes is not None:
        accelerators = per_node * nodes
    return System(
        division=division,
        availability=availability,
        accelerators=accelerators,
        nodes=nodes,
        host_processors_per_node=_parse_whole(fields.get("host_processors_per_node")),
        texts=texts,
        findings=tuple(findings),
    )


def _parse_text(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return value.strip() or None


def _format_text(value: Any) -> str | None:
    """Return a printed text on one line: names and versions of an object, the items of a list."""
    if isinstance(value, dict):
        items = []
        for name, version in value.items():
            items.append(f"{name} {version}" if version else name)
        value = items
    if isinstance(value, list):
        value = ", ".join(_join_words(str(item)) for item in value)
    if not isinstance(value, str):
        return None
    return _join_words(value) or None


def _join_words(text: str) -> str:
    return " ".join(text.split())


def _parse_whole(value: Any) -> int | None:
    # True is an int, and no number of nodes
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    match = WHOLE_NUMBER.fullmatch(str(value))
    if not match:
        return None
    return int(match[1])


@dataclass(frozen=True, slots=True)
class FileFinding:
    """A note about a file or folder; `path` is relative to what was scored."""

    path: str
    message: str

    def __str__(self) -> str:
        return escape_unprintable(f"{self.path}: {self.message}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One benchmark on one system of a submitter. `round_folder` is empty where that is the root.

    `missing` are logs whose content is absent although the repository lists them. `power` are power
    logs, as `<log>/<file>` within the entry's folder of them. Of logs outside the layout of a round
    `loose` is their folder: submitter and system are then empty, and a `system.json` beside the
    logs describes the system.
    """

    round_folder: str
    round: str | None
    submitter: str
    system: str
    folder: str
    logs: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    power: tuple[str, ...] = ()
    loose: str = ""

    @property
    def path(self) -> str:
        return self.loose or f"{self.submitter}/results/{self.system}/{self.folder}"

    @property
    def full_path(self) -> str:
        return _join(self.round_folder, self.path)

    @property
    def system_file(self) -> str:
        """The description of the system within the round's folder."""
        if self.loose:
            return f"{self.loose}/system.json"
        return f"{self.submitter}/systems/{self.system}.json"

    @property
    def system_path(self) -> str:
        return _join(self.round_folder, self.system_file)

    @property
    def scaling_path(self) -> str:
        return f"{self.full_path}/{SCALING_FILE}"


@dataclass(frozen=True, slots=True)
class RoundInventory:
    """The entries in order of round, submitter, system and benchmark, and what the paths show to be
    wrong.
    """

    entries: tuple[Entry, ...]
    findings: tuple[FileFinding, ...] = ()


Root = tuple[str, ...]  # the names that lead to the submitters of a round


class Location(NamedTuple):
    """A path of the known layout: `names` follow `part` ("results" or "systems") in the submitter's
    folder, and `root` leads to that.
    """

    root: Root
    submitter: str
    part: str
    names: tuple[str, ...]
    is_folder: bool


@dataclass
class _Files:
    """The files of one benchmark's folder, as `Entry` has them."""

    logs: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    power: list[str] = field(default_factory=list)

    def add(self, names: tuple[str, ...], is_missing: bool) -> None:
        """Add a file, by its names behind `results`."""
        if is_log(names) and is_missing:
            self.missing.append(names[2])
        elif is_log(names):
            self.logs.append(names[2])
        elif is_power_log(names):
            self.power.append("/".join(names[3:]))


@dataclass
class _RoundFolder:
    """What the paths of one round's folder hold: of benchmarks, which are (submitter, system,
    benchmark), and of systems, which are (submitter, system).
    """

    benchmarks: dict[tuple[str, str, str], _Files] = field(default_factory=dict)
    astray: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    systems: set[tuple[str, str]] = field(default_factory=set)
    described: set[tuple[str, str]] = field(default_factory=set)

    def add(self, location: Location, is_missing: bool) -> None:
        submitter = location.submitter
        names = location.names
        if not names:
            return
        if location.part == "systems":
            self.described.add((submitter, names[0].removesuffix(".json")))
            return
        system = (submitter, names[0])
        self.systems.add(system)
        is_benchmark = location.is_folder and len(names) == 2
        # a file beside the benchmarks is not one of them
        if is_benchmark or len(names) > 2:
            files = self.benchmarks.setdefault((*system, names[1]), _Files())
            files.add(names, is_missing)
        if not location.is_folder and is_astray(names):
            astray = self.astray.setdefault(system, [])
            astray.append("/".join(names[1:]))


def is_log(names: tuple[str, ...]) -> bool:
    """Return whether a file behind `results` is the log of a run."""
    return len(names) == LOG_DEPTH and fnmatchcase(names[-1], LOG_PATTERN)


def is_astray(names: tuple[str, ...]) -> bool:
    """Return whether a file behind `results` is named like a log but not where logs are."""
    is_placed = len(names) == LOG_DEPTH or is_power_log(names)
    return not is_placed and fnmatchcase(names[-1], LOG_PATTERN)


def is_power_log(names: tuple[str, ...]) -> bool:
    """Return whether a file behind `results` is in the folder of a run's power logs."""
    return len(names) == POWER_DEPTH and names[2] == POWER_FOLDER


def find_entries(
    paths: Iterable[str], rules: Rules, name: str = "", missing: Iterable[str] = ()
) -> RoundInventory:
    """Return the entries that `paths` make up; a folder ends with a slash.

    `name` is that of the root: it tells the round where no folder below it does.

    `missing` are logs that are left out as if their content were absent.
    """
    absent = frozenset(missing)
    findings = []
    locations = {}
    for path in sorted({*paths, *absent}):
        if not is_plain(path):
            findings.append(FileFinding(path, "is not a plain relative path; ignored"))
        location = locate(path)
        if location:
            locations[path] = location
    folders = {root: _RoundFolder() for root in _find_roots(locations.values())}
    for path, location in locations.items():
        if location.root in folders:
            folders[location.root].add(location, path in absent)
    entries: list[Entry] = []
    for root, folder in folders.items():
        round_folder = "/".join(root)
        place = round_folder or name or "."
        suite = _find_other_suite(place, folder, rules)
        if suite:
            findings.append(FileFinding(place, OTHER_SUITE.format(suite)))
            continue
        round_ = rules.find_round((*root, name))
        doubt = _doubt_round(round_, rules)
        if doubt:
            findings.append(FileFinding(place, doubt))
        entries += _list_entries(round_folder, round_, folder, rules)
        for path, gap in _find_gaps(folder, rules):
            findings.append(FileFinding(_join(round_folder, path), gap))
    entries.sort(key=_entry_key)
    return RoundInventory(tuple(entries), tuple(findings))


def _doubt_round(round_: str | None, rules: Rules) -> str | None:
    if round_ is None:
        return NO_ROUND
    if round_ not in rules.rounds:
        return f"round {round_} is later than v{rules.rounds[-1]}, the last known round"
    return None


def is_plain(path: str) -> bool:
    """Return whether a path cannot lead out of the root."""
    return UNSAFE_PARTS.isdisjoint(path.rstrip("/").split("/"))


def locate(path: str) -> Location | None:
    """Find the submitter in a path; None outside the known layout, too deep, and for a path that
    may lead out of the root.
    """
    if not is_plain(path):
        return None
    parts = path.rstrip("/").split("/")
    is_folder = path.endswith("/")
    depths = FOLDER_DEPTHS if is_folder else FILE_DEPTHS
    for part, depth in depths:
        at = len(parts) - depth  # the place of the submitter
        fits = 0 <= at < MAX_DEPTH and parts[at + 1] == part
        # of the files beside descriptions of systems none is read
        is_ignored = part == "systems" and not is_folder and not path.endswith(".json")
        if fits and not is_ignored:
            return Location(
                root=tuple(parts[:at]),
                submitter=parts[at],
                part=part,
                names=tuple(parts[at + 2 :]),
                is_folder=is_folder,
            )
    return None


def _find_roots(locations: Iterable[Location]) -> list[Root]:
    """Find the rounds' folders, without `results` folders within the code of a submitter.

    Only a benchmark's folder or a file makes a round, so an empty `results` next to the rounds
    hides none of them.
    """
    submitters: dict[Root, set[str]] = {}
    for location in locations:
        if not location.is_folder or len(location.names) > 1:
            submitters.setdefault(location.root, set()).add(location.submitter)
    roots: list[Root] = []
    # a root comes after those that it may lie in
    for root in sorted(submitters, key=lambda root: (len(root), root)):
        if not any(_is_code(root, outer, submitters[outer]) for outer in roots):
            roots.append(root)
    return sorted(roots)


def _is_code(root: Root, outer: Root, submitters: set[str]) -> bool:
    """Return whether `root` lies in the folder of a submitter of the round `outer`."""
    depth = len(outer)
    return root[:depth] == outer and root[depth] in submitters


def _find_other_suite(name: str, folder: _RoundFolder, rules: Rules) -> str | None:
    """Return the MLPerf suite of a round that is not of MLPerf Training, by its benchmarks or else
    by its name.
    """
    benchmarks = {benchmark for _, _, benchmark in folder.benchmarks}
    by_benchmark = rules.find_other_suite(benchmarks)
    is_known = not benchmarks.isdisjoint(rules.benchmarks)
    # a folder may have any name: what its benchmarks say comes first
    if by_benchmark or is_known:
        return by_benchmark
    words = re.split(r"[^a-z]+", name.lower())
    for suite in rules.other_suites:
        short_name = suite.split()[-1]  # HPC of MLPerf HPC
        if short_name.lower() in words:
            return suite
    return None


def _list_entries(
    round_folder: str, round_: str | None, folder: _RoundFolder, rules: Rules
) -> Iterable[Entry]:
    """Yield an entry for each folder with logs, and for one named like a benchmark even where its
    logs are missing.
    """
    for (submitter, system, benchmark), files in folder.benchmarks.items():
        if _is_entry(benchmark, files, rules):
            yield Entry(
                round_folder=round_folder,
                round=round_,
                submitter=submitter,
                system=system,
                folder=benchmark,
                logs=tuple(files.logs),
                missing=tuple(files.missing),
                power=tuple(files.power),
            )


def _is_entry(benchmark: str, files: _Files, rules: Rules) -> bool:
    return bool(files.logs or files.missing) or benchmark in rules.benchmarks


def _find_gaps(folder: _RoundFolder, rules: Rules) -> Iterable[tuple[str, str]]:
    """Yield path and finding for each folder and system without an entry."""
    for key in sorted(folder.benchmarks):
        submitter, system, benchmark = key
        if not _is_entry(benchmark, folder.benchmarks[key], rules):
            message = f"has no {LOG_PATTERN} and is not a known benchmark; ignored"
            yield f"{submitter}/results/{system}/{benchmark}", message
    for (submitter, system), names in sorted(folder.astray.items()):
        message = f"{len(names)} logs are not directly in a benchmark's folder; ignored: {names[0]}"
        yield f"{submitter}/results/{system}", message
    with_entries = {(submitter, system) for submitter, system, _ in folder.benchmarks}
    for submitter, system in sorted(folder.systems - with_entries - folder.astray.keys()):
        yield f"{submitter}/results/{system}", "has no benchmark folder"
    for submitter, system in sorted(folder.described - folder.systems):
        yield f"{submitter}/systems/{system}.json", "describes a system without results"


def _entry_key(entry: Entry) -> tuple[tuple[int, ...], str, str, str, str]:
    return (
        round_key(entry.round or "0"),
        entry.round_folder,
        entry.submitter,
        entry.system,
        entry.folder,
    )


def _join(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path
