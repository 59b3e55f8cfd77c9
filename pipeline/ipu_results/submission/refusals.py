"""Who owns a folder of submissions, an ORCID iD or a name, and whether a bundle is here already."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from ipu_results.comparison.comparable import Row
from ipu_results.ground.physics import count_batches_in_flight
from ipu_results.schema import table
from ipu_results.schema.vocabulary import normalise_name
from ipu_results.submission.bundle import SUBMISSIONS, Bundle, format_sidecar, get_folder, make_slug
from ipu_results.submission.contents import DESCRIPTION, KNOWN, SIDECAR
from ipu_results.submission.fault import Fault

PERSON = ("name", "orcid", "account")


def check_owner(
    bundle: Bundle, raw: Path, publishers: frozenset[str], account: str | None, place: str | None
) -> Iterator[Fault]:
    """Yield what is wrong with whose bundle it says it is; `place` is its `<who>/<id>` in a folder of submissions.

    `account` is the account that hands it in, None where it is not known. A damaged description here raises
    nothing: its folder still has an owner, whom no other bundle can be.
    """
    submission = bundle.submission
    who = submission.who
    own = f"{submission.folder}/{submission.id}"
    if place is not None and place != own:
        yield Fault("out-of-place", f"belongs in {SUBMISSIONS}/{own}", place)
    if {normalise_name(who.name), submission.folder} & {
        form(name) for name in publishers for form in (normalise_name, make_slug)
    }:
        message = f"{who.name} publishes figures that the record has from elsewhere; use your own name and affiliation"
        yield Fault("owner", message, f"{DESCRIPTION}, who.name")
    if account is not None and (who.account or "").casefold() != account.casefold():
        message = f"is {who.account or 'not stated'}, but {account} hands the bundle in (submit --account {account})"
        yield Fault("owner", message, f"{DESCRIPTION}, who.account")
    for folder, other in _list_others(raw):
        if folder == submission.folder and (differing := _list_differing(other, who)):
            message = f"{SUBMISSIONS}/{folder} belongs to somebody with another {' and '.join(differing)}"
            yield Fault("owner", f"{message}; add --orcid or --account as before, or use another name", DESCRIPTION)
            break
        if folder != submission.folder and who.orcid and other.get("orcid") == who.orcid:
            yield Fault("owner", f"is that of {SUBMISSIONS}/{folder}", f"{DESCRIPTION}, who.orcid")
            break


def check_present(bundle: Bundle, raw: Path, path: Path) -> Iterator[Fault]:
    """Yield a fault for a bundle that `raw` has elsewhere, and for a sidecar that does not follow from it."""
    folder = get_folder(raw, bundle.submission)
    if folder.is_dir() and folder.resolve() != path.resolve():
        yield Fault("duplicate", f"is here already: {SUBMISSIONS}/{bundle.submission.folder}/{bundle.submission.id}")
    sidecar = bundle.files.get(SIDECAR)
    if sidecar is not None and sidecar != format_sidecar(bundle):
        yield Fault("unknown-file", "is not the sidecar of this bundle; leave it out", SIDECAR)


def is_laid(raw: Path, place: str, files: dict[str, bytes]) -> bool:
    """Return whether `raw` has the same files of a bundle at `<who>/<id>`."""
    folder = raw / SUBMISSIONS / place
    present = {name: (folder / name).read_bytes() for name in KNOWN if (folder / name).is_file()}
    return bool(present) and present == files


def _list_others(raw: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the folder and the submitter of each bundle in `raw`."""
    for path in sorted((raw / SUBMISSIONS).glob(f"*/*/{DESCRIPTION}")):
        try:
            who = tomllib.loads(path.read_text(encoding="utf-8")).get("who")
        except (OSError, ValueError, RecursionError):
            who = None
        yield path.parent.parent.name, who if isinstance(who, dict) else {}


def _list_differing(other: dict[str, Any], who: Any) -> list[str]:
    """Return what tells two submitters apart: a stated ORCID or account that the other has not, or else the name."""
    stated = [name for name in PERSON if other.get(name) is not None or getattr(who, name) is not None]
    return [name for name in stated if other.get(name) != getattr(who, name)]


FIGURES = tuple(column.name for column in table("results").columns if column.figure)
TABLE_COLUMNS = ("task", "batch_size")
COPIED_COLUMNS = (*TABLE_COLUMNS, "platform")
# Significant digits of equal figures from which a row counts as copied: on one machine and batch, of one network, of
# any row, and of any row after rounding, a change of unit or a division by the chips; and from which it is one of a
# copied table. tests/submission/test_submission_evidence.py counts how often a row of the record has as many by chance.
DIGITS_OF_SAME, DIGITS_OF_NETWORK, DIGITS_OF_ANY, DIGITS_OF_SCALED, DIGITS_OF_TABLE = 5, 6, 7, 8, 4
MIN_DIGITS, MAX_DIGITS = 2, 12  # of a figure that counts, and that is looked up
ROWS_OF_TABLE = 3  # rows with figures of one document from which a table counts as copied
ONE_BATCH = 0.02  # by which throughput × latency may differ from a batch if one of them was computed from the other


class SharedFigures(NamedTuple):
    """Figures that a row has in common with a row of the record; `exact` if none is rounded, scaled or per chip."""

    other: Row
    names: tuple[str, ...]
    digits: int
    exact: bool


class FigureIndex:
    """The figures of the record by their significant digits, rounded to each number of them."""

    def __init__(self, rows: Sequence[Row]) -> None:
        """Index rows of `results`, each measurement once."""
        self._rows = [row for row in rows if row["same_as"] is None]
        self._places: dict[tuple[str, int, str], list[int]] = defaultdict(list)
        for place, row in enumerate(self._rows):
            for name in _list_figures(row):
                self._add(name, row[name], count_digits(row[name]), place)
            if row["throughput"] and (row["chips"] or 1) > 1:
                per_chip = row["throughput"] / row["chips"]
                self._add("throughput", per_chip, count_digits(per_chip), place)

    def _add(self, name: str, value: float, digits: int, place: int) -> None:
        for size in range(MIN_DIGITS, min(digits, MAX_DIGITS) + 1):
            self._places[name, size, _format_digits(value, size)].append(place)

    def find(self, row: Row) -> Iterator[SharedFigures]:
        """Yield the rows of the record that share figures with a row of a bundle, in the order of the record."""
        names: dict[int, list[str]] = defaultdict(list)
        for name in _list_figures(row):
            size = min(count_digits(row[name]), MAX_DIGITS)
            for place in dict.fromkeys(self._places.get((name, size, _format_digits(row[name], size)), ())):
                names[place].append(name)
        for place in sorted(names):
            other, shared = self._rows[place], tuple(names[place])
            exact = all(row[name] == other[name] for name in shared)
            yield SharedFigures(other, shared, _count_independent_digits(row, shared), exact)


def count_digits(value: float) -> int:
    """Count the significant digits of a figure, zeros at its end excluded."""
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


def find_copies(
    row: Row, rows_of_network: Sequence[Row], shared: Sequence[SharedFigures], place: str
) -> Iterator[Fault]:
    """Yield a fault for a row whose figures are those of a row of the record, of its network first."""
    for other in rows_of_network:
        if row["task"] != other["task"]:
            continue
        equal = [name for name in FIGURES if row.get(name) is not None and row[name] == other.get(name)]
        same = all(row[name] == other[name] for name in COPIED_COLUMNS)
        if _count_independent_digits(row, equal) >= (DIGITS_OF_SAME if same else DIGITS_OF_NETWORK):
            yield _describe_copy(row, other, equal, place)
            return
    for own in shared:
        if own.digits >= (DIGITS_OF_ANY if own.exact else DIGITS_OF_SCALED):
            yield _describe_copy(row, own.other, own.names, place)
            return


def find_copied_table(rows: Sequence[tuple[Row, Sequence[SharedFigures]]]) -> Iterator[Fault]:
    """Yield a fault if most rows have the figures of one document, whatever machine and network are called."""
    figures: dict[str, set[tuple[float, ...]]] = defaultdict(set)
    for row, shared in rows:
        for own in shared:
            same = all(row[name] == own.other[name] for name in TABLE_COLUMNS)
            if own.digits >= (DIGITS_OF_TABLE if same else DIGITS_OF_SAME):
                whose = f"{own.other['publisher']} ({own.other['document_id']})"
                figures[whose].add(tuple(row[name] for name in own.names))
    for whose, distinct in figures.items():
        if len(distinct) >= max(ROWS_OF_TABLE, len(rows) / 2):
            message = f"{len(distinct)} of {len(rows)} rows have figures that the record has from {whose}"
            yield Fault("copied", f"{message}, under other names; hand in figures of your own", "results.csv")
            return


def _list_figures(row: Row) -> Iterator[str]:
    return (name for name in FIGURES if row.get(name))


def _format_digits(value: float, size: int) -> str:
    """Return the first digits of a figure, rounded, without its power of ten."""
    return f"{value:.{size - 1}e}".partition("e")[0]


def _count_independent_digits(row: Row, names: Sequence[str]) -> int:
    """Count the digits of figures; of a throughput and a latency that follow from each other, only those of one."""
    counts = {name: count_digits(row[name]) for name in names}
    digits = {name: count for name, count in counts.items() if count >= MIN_DIGITS}
    if {"throughput", "latency_ms"} <= digits.keys() and row["batch_size"]:
        batches = count_batches_in_flight(row["throughput"], row["latency_ms"], row["batch_size"])
        if abs(batches - 1) <= ONE_BATCH:
            return sum(digits.values()) - min(digits["throughput"], digits["latency_ms"])
    return sum(digits.values())


def _describe_copy(row: Row, other: Row, names: Sequence[str], place: str) -> Fault:
    texts = ", ".join(
        f"{name} {row[name]:.12g}" + ("" if row[name] == other[name] else f" (there {other[name]:.12g})")
        for name in names
    )
    whose = f"{other['publisher']} ({other['document_id']}, result {other['result_id']})"
    if row["network"] != other["network"]:
        whose += f" for {other['network']} on {other['platform']}"
    if other["origin"] == "emulated":
        return Fault("emulated", f"{texts}: the figure of the emulator, {whose}; hand in what was measured", place)
    return Fault("copied", f"{texts}: the record has this figure from {whose}; hand in figures of your own", place)
