"""Check bundles: what is wrong with each, what is doubtful, the nearest rows, and what would be published."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipu_results.comparison.report import describe_measurement
from ipu_results.comparison.verdict import Comparison, Match
from ipu_results.errors import IpuResultsError, SubmissionError
from ipu_results.ground.limits import MAX_BUNDLES
from ipu_results.ground.physics import MIN_BATCHES_IN_FLIGHT, PER_ITEM, count_items_in_flight
from ipu_results.ground.text import to_json_value
from ipu_results.normalise.values import UnreadableCellError, parse_number, parse_whole_number
from ipu_results.store.query import open_warehouse
from ipu_results.submission.bundle import SUBMISSIONS, Bundle, parse_bundle
from ipu_results.submission.contents import DESCRIPTION, RESULTS, Files, list_folders, read_contents
from ipu_results.submission.fault import Fault, Reason
from ipu_results.submission.prepare import compare_rows, describe_row, load_publishers
from ipu_results.submission.preview import Preview, preview_bundle
from ipu_results.submission.refusals import FIGURES, check_owner, check_present, is_laid
from ipu_results.submission.words import check_words, list_unknown_words, load_submission_words

PERCENT = 100
LITTLE = "R01"  # the quality rule on less than one batch in flight
COUNTS = ("batch_size", "micro_batch_size")
EMULATED = re.compile(r"\b(?:emulat|simulat)\w*|\bpredicted\b|\bIPU_?Model\b", re.I)
EMULATED_IN = {
    **dict.fromkeys(("variant", "platform", "chip", "framework", "conditions"), EMULATED),
    "model": re.compile(r"\bemulat\w*", re.I),  # networks may simulate
}


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """Where to look: `raw` with the submissions so far, the warehouse, and the account that hands in, if known."""

    raw: Path = Path("raw")
    warehouse: Path = Path("warehouse")
    account: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A row that would be published, in words, with the verdict on it and the nearest rows of the record."""

    values: Mapping[str, Any]
    description: str
    verdict: str
    nearest: tuple[Match, ...] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any], comparison: Comparison | None) -> CheckedRow:
        if comparison is None:
            return cls(describe_row(row), f"row {row['row_number']}", "no figure that a comparison knows")
        matches, verdict = comparison.matches, comparison.verdict
        return cls(describe_row(row), describe_measurement(comparison.measurement), verdict, matches)


@dataclass(frozen=True, slots=True)
class CheckedBundle:
    """What became of a bundle: it is accepted if it has no fault. `flags` do not stop it; `bundle` is what was read."""

    name: str
    faults: tuple[Fault, ...]
    flags: tuple[str, ...] = ()
    rows: tuple[CheckedRow, ...] = ()
    bundle: Bundle | None = None

    @property
    def accepted(self) -> bool:
        return not self.faults

    def to_record(self) -> dict[str, Any]:
        """Return everything as values that JSON has."""
        submission = self.bundle.submission if self.bundle else None
        return {
            "bundle": self.name,
            "accepted": self.accepted,
            "document_id": submission and submission.document_id,
            "refused": [fault._asdict() for fault in self.faults],
            "flags": list(self.flags),
            "rows": [
                {
                    "description": row.description,
                    "verdict": row.verdict,
                    "nearest": [_summarise(match) for match in row.nearest],
                    "row": {name: to_json_value(value) for name, value in row.values.items()},
                }
                for row in self.rows
            ],
        }


def _summarise(match: Match) -> dict[str, Any]:
    names = ("result_id", "document_id", "publisher", "relationship", "platform", "batch_size")
    ratios = {ratio.figure: ratio.ratio for ratio in match.ratios}
    return {**{name: match.row[name] for name in names}, "ratios": ratios, "distance": match.distance}


def check_submission(path: Path, request: CheckRequest) -> list[CheckedBundle]:
    """Check a bundle, or each new bundle of a folder `submissions` that holds `<who>/<id>/`.

    Raises SubmissionError for a path that cannot be read, WarehouseError without a dataset to compare with.
    """
    if path.is_dir() and not path.is_symlink() and not (path / DESCRIPTION).exists() and not (path / RESULTS).exists():
        return list(_check_folder(path, request))
    files, faults = read_contents(path)
    return [check_files(files, request, path.name, path, faults)]


def _check_folder(path: Path, request: CheckRequest) -> Iterator[CheckedBundle]:
    known = {place for place, _ in list_folders(request.raw / SUBMISSIONS)} if _has_submissions(request) else set()
    places = []
    for place, entry in list_folders(path):
        places.append(place)
        if len(places) > MAX_BUNDLES:
            raise SubmissionError(f"has more than {MAX_BUNDLES} bundles; hand in fewer at once", place=str(path))
        if entry.is_symlink() or not entry.is_dir() or "/" not in place:
            reason: Reason = "link" if entry.is_symlink() else "unknown-file"
            yield CheckedBundle(place, (Fault(reason, "is not a folder with a bundle", place),))
            continue
        files, faults = read_contents(Path(entry.path))
        if faults or not is_laid(request.raw, place, files):
            yield check_files(files, request, place, Path(entry.path), faults, place)
    for place in sorted(known - set(places)):
        yield CheckedBundle(place, (Fault("owner", "is here and was removed; remove nothing", place),))
    if not places and not known:
        raise SubmissionError(f"holds no bundle, which has a {DESCRIPTION}", place=str(path))


def _has_submissions(request: CheckRequest) -> bool:
    return (request.raw / SUBMISSIONS).is_dir()


def check_files(
    files: Files,
    request: CheckRequest,
    name: str,
    path: Path,
    faults: Sequence[Fault] = (),
    place: str | None = None,
) -> CheckedBundle:
    """Check the files of a bundle; `faults` are those of its folder or archive, `place` its `<who>/<id>` if any."""
    if faults:
        return CheckedBundle(name, tuple(faults))
    bundle, problems = parse_bundle(files)
    if bundle is None:
        return CheckedBundle(name, tuple(problems))
    problems += _find_emulated(bundle)
    problems += _find_unreadable(bundle)
    problems += check_present(bundle, request.raw, path)
    if problems:  # the texts cannot be relied on: nothing else looks at them
        return CheckedBundle(name, tuple(problems), bundle=bundle)
    with open_warehouse(request.warehouse) as connection:
        words = load_submission_words(connection)
        problems += check_owner(bundle, request.raw, load_publishers(connection), request.account, place)
        problems += check_words(bundle, words)
        try:
            preview, rejected = preview_bundle(bundle, FIGURES)
        except SubmissionError:
            raise
        except IpuResultsError as error:
            return CheckedBundle(name, (*problems, Fault("schema", str(error))), bundle=bundle)
        problems += rejected
        compared = compare_rows(connection, words, preview.rows, bundle.submission.document_id)
    problems += [fault for _, _, own in compared for fault in own]
    errors, doubts = _sort_flags(preview)
    problems += [Fault("implausible", f"{flag['rule']}: {flag['message']}") for flag in errors]
    flags = [f"{flag['severity']} {flag['rule']}: {flag['message']}" for flag in doubts]
    flags += [
        f"{name} {text!r} is new to the record ({rows} rows)"
        for (name, text), rows in sorted(list_unknown_words(bundle.rows, words).items())
    ]
    if word := EMULATED.search(bundle.submission.how):
        flags.append(f"how says {word[0]!r}: read whether the figures are measured")
    flags += [f"{own.measurement.label}: {own.verdict}" for _, own, _ in compared if own and own.status == "doubtful"]
    rows = tuple(CheckedRow.of(row, comparison) for row, comparison, _ in compared)
    return CheckedBundle(name, tuple(dict.fromkeys(problems)), tuple(flags), rows, bundle)


def _sort_flags(preview: Preview) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the flags that refuse a bundle, and the others.

    A bundle may state the latency of an item. It is R01's error only where a page calls it a latency.
    """
    per_item = {
        row["result_id"]
        for row in preview.rows
        if row["latency_basis"] == PER_ITEM
        and count_items_in_flight(row["throughput"] or 0.0, row["latency_ms"] or 0.0) >= MIN_BATCHES_IN_FLIGHT
    }
    errors: list[dict[str, Any]] = []
    doubts: list[dict[str, Any]] = []
    for flag in preview.flags:
        if flag["rule"] == LITTLE and flag["result_id"] in per_item:
            doubts.append({**flag, "severity": "info"})
        else:
            (errors if flag["severity"] == "error" else doubts).append(flag)
    return errors, doubts


def _find_emulated(bundle: Bundle) -> Iterator[Fault]:
    """Yield a fault for figures whose own texts say that an emulator made them."""
    for number, row in enumerate(bundle.rows, 2):
        for name, pattern in EMULATED_IN.items():
            if word := pattern.search(row[name]):
                message = f"says {word[0]!r}: an emulated figure may not be handed in as measured"
                yield Fault("emulated", message, f"{RESULTS}, line {number}, {name}")
                return
    if word := EMULATED.search(bundle.submission.machine):
        yield Fault("emulated", f"says {word[0]!r}: figures of an emulator are not measured", f"{DESCRIPTION}, machine")
    if bundle.environment.get("backend") in ("emulator", "simulator"):
        yield Fault("emulated", "the backend is an emulator: its figures are not measured", "environment.json")


def _find_unreadable(bundle: Bundle) -> Iterator[Fault]:
    """Yield a fault for a batch size that the readers would leave blank, and for a quality above 100 %."""
    for number, row in enumerate(bundle.rows, 2):
        for name in COUNTS:
            if text := row[name].strip():
                try:
                    parse_whole_number(text)
                except UnreadableCellError as error:
                    yield Fault("unreadable-figure", str(error), f"{RESULTS}, line {number}, {name}")
        if row["unit"].strip() == "%" and row["metric"].strip().startswith("quality"):
            with suppress(UnreadableCellError):  # the preview names it
                if parse_number(row["value"].strip()) > PERCENT:
                    yield Fault("implausible", f"a quality of {row['value'].strip()} %", f"{RESULTS}, line {number}")
