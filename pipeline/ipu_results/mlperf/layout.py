"""Which files of a results checkout make which entry, told from their paths alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ipu_results.mlperf.rules import Rules, in_order

VERSION = r"([0-9]{1,3}\.[0-9]{1,3})(?:\.[0-9]{1,3})?(?![\d.]*\d)"
ROUND = re.compile(rf"(?<![A-Za-z\d.])v{VERSION}", re.I)
BARE_ROUND = re.compile(rf"(?<![\d.]){VERSION}")
LOG = "result_*.txt"
SCALING = "scaling.json"
ASTRAY = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth telling about a file or folder; `path` is relative to what was scored."""

    path: str
    message: str

    def __str__(self) -> str:
        return printable(f"{self.path}: {self.message}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One benchmark on one system of a submitter; `checkout` is the round's folder, empty where that is the root."""

    checkout: str
    round: str | None
    submitter: str
    system: str
    folder: str
    logs: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return f"{self.submitter}/results/{self.system}/{self.folder}"

    @property
    def full_path(self) -> str:
        return _join(self.checkout, self.path)

    @property
    def system_path(self) -> str:
        return _join(self.checkout, f"{self.submitter}/systems/{self.system}.json")

    @property
    def scaling_path(self) -> str:
        return f"{self.full_path}/{SCALING}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The entries in order of round, submitter, system and benchmark, and what the paths already show."""

    entries: tuple[Entry, ...]
    findings: tuple[Finding, ...] = ()


@dataclass
class _Checkout:
    """What the paths of one round's folder hold."""

    logs: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    systems: set[tuple[str, str]] = field(default_factory=set)
    described: set[tuple[str, str]] = field(default_factory=set)


def plan(paths: Iterable[str], rules: Rules, name: str = "") -> Plan:
    """The entries that `paths` make up; a folder ends with a slash. `name` is the root's, for the round it may name."""
    every = [(path, path.rstrip("/").split("/")) for path in sorted(set(paths))]
    parted = [(path, parts) for path, parts in every if not ASTRAY & set(parts)]
    roots, inner = _outermost(parted)
    checkouts: dict[tuple[str, ...], _Checkout] = {root: _Checkout() for root in roots}
    for path, parts in parted:
        if (root := _root(path, parts)) in checkouts:
            _place(checkouts[root], path, parts)
    entries: list[Entry] = []
    findings = [Finding(path, "is no path within a tree: left out") for path, parts in every if ASTRAY & set(parts)]
    findings += [Finding("/".join(root), "lies within a submitter's folder: left out") for root in inner]
    for root, held in checkouts.items():
        checkout = "/".join(root)
        place = checkout or name or "."
        round_ = round_of(checkout) or round_of(name)
        if refusal := _refusal(round_, rules):
            findings.append(Finding(place, refusal))
            continue
        if round_ is None:
            findings.append(Finding(place, "names no round; give one with --round"))
        elif in_order(round_) > in_order(rules.last_round):
            findings.append(Finding(place, f"round {round_} is later than v{rules.last_round}, the last one known"))
        entries += _entries(checkout, round_, held, rules)
        findings += _gaps(checkout, held, rules)
    return Plan(tuple(sorted(entries, key=_order)), tuple(findings))


def printable(text: str) -> str:
    """A log may hold line ends and terminal codes in its texts, a path bytes that are not UTF-8."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def round_of(name: str) -> str | None:
    """`2.0` of `training_results_v2.0`, `v2.0.0` or `2.0`; None where a name holds no version, or several without v."""
    found = ROUND.findall(name) or BARE_ROUND.findall(name)
    return found[0] if len(set(found)) == 1 else None


def _order(entry: Entry) -> tuple[tuple[int, ...], str, str, str, str]:
    return in_order(entry.round or "0"), entry.checkout, entry.submitter, entry.system, entry.folder


def _root(path: str, parts: Sequence[str]) -> tuple[str, ...] | None:
    """The folders above the submitter, for a path of the known layout."""
    if path.endswith("/"):
        depth = next((depth for depth in (4, 3, 2) if _is_part(parts, depth, "results")), None)
        depth = depth or (2 if _is_part(parts, 2, "systems") else None)
    elif _is_part(parts, 5, "results"):
        depth = 5
    else:
        depth = 3 if _is_part(parts, 3, "systems") and path.endswith(".json") else None
    return None if depth is None else tuple(parts[:-depth])


def _is_part(parts: Sequence[str], depth: int, name: str) -> bool:
    return len(parts) >= depth and parts[1 - depth] == name


def _outermost(parted: Iterable[tuple[str, Sequence[str]]]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The roots that hold an entry or a system, and those within a submitter's folder of another, which are no rounds.

    A `results` folder deep in somebody's code is none, and an empty one beside the rounds hides none of them.
    """
    submitters: dict[tuple[str, ...], set[str]] = {}
    for path, parts in parted:
        root = _root(path, parts)
        if root is not None and not _is_bare(path, parts):
            submitters.setdefault(root, set()).add(parts[len(root)])
    roots: list[tuple[str, ...]] = []
    inner: list[tuple[str, ...]] = []
    for root in sorted(submitters, key=lambda root: (len(root), root)):
        within = any(root[: len(outer)] == outer and root[len(outer)] in submitters[outer] for outer in roots)
        (inner if within else roots).append(root)
    return sorted(roots), inner


def _is_bare(path: str, parts: Sequence[str]) -> bool:
    """A folder above those of the benchmarks, which shows no round by itself."""
    return path.endswith("/") and not _is_part(parts, 4, "results")


def _place(held: _Checkout, path: str, parts: Sequence[str]) -> None:
    if path.endswith("/"):
        if _is_part(parts, 4, "results"):
            held.logs.setdefault((parts[-4], parts[-2], parts[-1]), [])
            held.systems.add((parts[-4], parts[-2]))
        elif _is_part(parts, 3, "results"):
            held.systems.add((parts[-3], parts[-1]))
    elif _is_part(parts, 5, "results"):
        logs = held.logs.setdefault((parts[-5], parts[-3], parts[-2]), [])
        held.systems.add((parts[-5], parts[-3]))
        if fnmatchcase(parts[-1], LOG):
            logs.append(parts[-1])
    else:
        held.described.add((parts[-3], parts[-1].removesuffix(".json")))


def _entries(checkout: str, round_: str | None, held: _Checkout, rules: Rules) -> Iterable[Entry]:
    """A folder named as a benchmark is an entry even where its logs are missing: a hole, to be seen as one."""
    for (submitter, system, folder), logs in held.logs.items():
        if logs or rules.knows(folder):
            yield Entry(checkout, round_, submitter, system, folder, tuple(sorted(logs)))


def _gaps(checkout: str, held: _Checkout, rules: Rules) -> Iterable[Finding]:
    """Folders and systems that give no entry."""
    for (submitter, system, folder), logs in sorted(held.logs.items()):
        if not logs and not rules.knows(folder):
            path = _join(checkout, f"{submitter}/results/{system}/{folder}")
            yield Finding(path, f"holds no {LOG} and is no benchmark: left out")
    with_entries = {(submitter, system) for submitter, system, _ in held.logs}
    for submitter, system in sorted(held.systems - with_entries):
        yield Finding(_join(checkout, f"{submitter}/results/{system}"), "holds no benchmark folder")
    for submitter, system in sorted(held.described - held.systems):
        yield Finding(_join(checkout, f"{submitter}/systems/{system}.json"), "describes a system without results")


def _refusal(round_: str | None, rules: Rules) -> str | None:
    if round_ is not None and in_order(round_) < in_order(rules.first_round):
        return f"round {round_} is refused: its logs have another syntax; v{rules.first_round} and later are scored"
    return None


def _join(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path
