"""Check bundles: what is wrong with each, what is doubtful, the nearest rows, and what would be
published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipu_results.doors.submission.bundle import DESCRIPTION, RESULTS, SUBMISSIONS, Bundle, Files
from ipu_results.doors.submission.contents import list_folders, parse_bundle, read_contents
from ipu_results.doors.submission.judge import fetch_rows, list_faults, open_hand_in, read_bundle
from ipu_results.doors.submission.refusals import (
    Fault,
    Reason,
    check_owner,
    check_present,
    check_words,
    list_rejected,
    list_unknown_words,
    load_submission_words,
)
from ipu_results.errors import IpuResultsError, SubmissionError
from ipu_results.kit.limits import MAX_BUNDLES
from ipu_results.kit.text import escape_unprintable, format_count, format_json, to_json_value
from ipu_results.record.store.query import open_warehouse
from ipu_results.schema import table


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """Where to look: `raw` with the submissions so far, the warehouse, and the account that hands
    in, if known.
    """

    raw: Path = Path("raw")
    warehouse: Path = Path("warehouse")
    account: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedBundle:
    """What became of a bundle: it is accepted if it has no fault.

    `flags` do not stop it; `bundle` is what was read. `rows` are those of
    `schema/submission/answers.sql`.
    """

    name: str
    faults: Sequence[Fault]
    flags: Sequence[str] = ()
    rows: Sequence[Mapping[str, Any]] = ()
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
            "document_id": submission.document_id if submission else None,
            "refused": [fault._asdict() for fault in self.faults],
            "flags": list(self.flags),
            "rows": [
                {name: row[name] for name in ("description", "verdict", "nearest", "row")}
                for row in self.rows
            ],
        }


def check_submission(path: Path, request: CheckRequest) -> list[CheckedBundle]:
    """Check a bundle, or each new bundle of a folder `submissions` that holds `<who>/<id>/`.

    Raises SubmissionError for a path that cannot be read, WarehouseError without a dataset to
    compare with.
    """
    is_bundle = (path / DESCRIPTION).exists() or (path / RESULTS).exists()
    if path.is_dir() and not path.is_symlink() and not is_bundle:
        return list(_check_folder(path, request))
    files, faults = read_contents(path)
    return [check_files(files, request, path.name, path, faults)]


def _check_folder(path: Path, request: CheckRequest) -> Iterator[CheckedBundle]:
    laid = request.raw / SUBMISSIONS
    present = list_folders(laid) if laid.is_dir() else {}
    found = list_folders(path)
    if len(found) > MAX_BUNDLES:
        raise SubmissionError(
            f"has more than {MAX_BUNDLES} bundles; hand in fewer at once", place=str(path)
        )
    if not found and not present:
        raise SubmissionError(f"holds no bundle, which has a {DESCRIPTION}", place=str(path))
    for place, entry in found.items():
        if entry.is_symlink() or not entry.is_dir() or "/" not in place:
            reason: Reason = "link" if entry.is_symlink() else "unknown-file"
            yield CheckedBundle(place, [Fault(reason, "is not a folder with a bundle", place)])
            continue
        files, faults = read_contents(entry)
        if place in present and not faults:
            files_here, _ = read_contents(present[place])
            if files_here == files:
                continue
        yield check_files(files, request, place, entry, faults, place)
    for place in sorted(present.keys() - found.keys()):
        fault = Fault("owner", "is here and was removed; remove nothing", place)
        yield CheckedBundle(place, [fault])


def check_files(
    files: Files,
    request: CheckRequest,
    name: str,
    path: Path,
    faults: Sequence[Fault] = (),
    place: str | None = None,
) -> CheckedBundle:
    """Check the files of a bundle; `faults` are those of its folder or archive, `place` its
    `<who>/<id>` if any.
    """
    if faults:
        return CheckedBundle(name, faults)
    bundle, problems = parse_bundle(files)
    if bundle is None:
        return CheckedBundle(name, problems)
    problems += check_present(bundle, request.raw, path)
    if problems:  # the texts cannot be relied on: nothing else looks at them
        return CheckedBundle(name, problems, bundle=bundle)
    with open_warehouse(request.warehouse) as record:
        words = load_submission_words(record)
        problems += check_owner(bundle, request.raw, record, request.account, place)
        problems += check_words(bundle, words)
        try:
            read = read_bundle(bundle)
        except SubmissionError:
            raise
        except IpuResultsError as error:
            problems.append(Fault("schema", str(error)))
            return CheckedBundle(name, problems, bundle=bundle)
        problems += list_rejected(read.rejected, read.unreadable)
        with open_hand_in(record, bundle, read) as session:
            problems += list_faults(session)
            flags = [doubt["text"] for doubt in fetch_rows(session, "doubts")]
            rows = fetch_rows(session, "answers")
    # what would be published: the columns that a source fills, and those that are derived
    filled_by_id = {filled["result_id"]: filled for filled in read.results.to_pylist()}
    for row in rows:
        answer = row["row"]
        published = filled_by_id[answer["result_id"]]
        published |= {column: answer[column] for column in table("results").names}
        stated = {column: value for column, value in published.items() if value is not None}
        row["row"] = to_json_value(stated)
    for (column, text), count in sorted(list_unknown_words(bundle.rows, words).items()):
        flags.append(f"{column} {text!r} is new to the record ({count} rows)")
    return CheckedBundle(name, list(dict.fromkeys(problems)), flags, rows, bundle)


MAX_LINES = 50  # of each kind in text; JSON has all
MAX_LINE = 600  # characters


def format_checks(checks: Sequence[CheckedBundle], output: str) -> str:
    """Format checks as `text` or `json`."""
    if output == "json":
        return format_json([check.to_record() for check in checks])
    if not checks:
        return "nothing new: every bundle is here already"
    return "\n\n".join("\n".join(map(_shorten, _list_lines(check))) for check in checks)


def _shorten(line: str) -> str:
    text = escape_unprintable(line)
    return text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}…"


def _list_lines(check: CheckedBundle) -> Iterator[str]:
    outcome = f"refused, {format_count(len(check.faults), 'reason')}"
    yield f"{check.name}: {'accepted' if check.accepted else outcome}"
    yield from _limit([f"refused: {fault}" for fault in check.faults])
    yield from _limit([f"flag: {flag}" for flag in check.flags])
    if check.bundle and check.accepted:
        submission = check.bundle.submission
        yield (
            f"document {submission.document_id}, {len(check.bundle.rows)} figures,"
            f" {submission.licence}"
        )
    rows = []
    for row in check.rows:
        published = f"result {row['row']['result_id']}, {row['row']['relationship']}"
        rows += [f"row: {row['description']} ({published})", f"  {row['verdict']}"]
        rows += [f"  {remark}" for remark in row["remarks"]]
    yield from _limit(rows)


def _limit(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:MAX_LINES]
    if len(lines) > MAX_LINES:
        yield f"and {len(lines) - MAX_LINES} more lines; see --format json"
