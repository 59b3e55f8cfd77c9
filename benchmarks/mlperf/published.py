"""Compare the scores of the record with the minutes that MLCommons publishes unrounded.

`python -m benchmarks.mlperf.published REPOSITORY`: REPOSITORY is a git directory of
mlcommons/cm4mlperf-results, also a bare one, which has five rounds. `--out FILE` writes the minutes
of entries without a score, as `raw/mlperf/published-mlcommons.csv` has them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import ipu_results
from ipu_results.kit.text import format_csv

COMMIT = "84d8b84c6d6e3d646e27d511e438fd12d144ade9"
ROUND_FOLDER = re.compile(r"experiment/mlperf-training--[\d.]+--.*/cm-result\.json")
SYSTEM = re.compile(r"/(?:main|master)/([^/]+)/systems/(.+)\.json$")
TOLERANCE = 1e-9  # relative
COLUMNS = ("round", "path", "minutes_published", "place", "identified_by")
IDENTIFIED_BY = "round, system description and benchmark"


@dataclass(frozen=True, slots=True)
class PublishedScore:
    """Minutes as published; `place` is the file and the identifier of the record in it."""

    round: str
    submitter: str
    system: str
    benchmark: str
    minutes: float
    place: str

    @property
    def path(self) -> str:
        return f"{self.submitter}/results/{self.system}/{self.benchmark}"


def read_published(repository: Path) -> Iterator[PublishedScore]:
    """Yield every score of the rounds in the repository."""
    for path in run_git(repository, "ls-tree", "-r", "--name-only", COMMIT).splitlines():
        if ROUND_FOLDER.fullmatch(path):
            for record in json.loads(run_git(repository, "show", f"{COMMIT}:{path}")):
                described = SYSTEM.search(record["details_url"])
                assert described, record["details_url"]
                yield PublishedScore(
                    record["version"],
                    described[1],
                    described[2],
                    record["Model_ID"],
                    record["Result"],
                    f"{path}, uid {record['uid']}",
                )


def run_git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    entries = ipu_results.load("mlperf_entries")
    held = defaultdict(list)
    for entry in entries.itertuples():
        for key in list_keys(entry.round, entry.path):
            held[key].append(entry)
    verdicts: dict[str, list[PublishedScore]] = defaultdict(list)
    rows = []
    for score in read_published(given.repository):
        own = next((held[key] for key in list_keys(score.round, score.path) if held[key]), [])
        verdict = judge(score.minutes, [entry.minutes for entry in own])
        verdicts[verdict].append(score)
        if verdict == "has no score here":
            rows.append((score.round, own[0].path, score.minutes, score.place, IDENTIFIED_BY))
    for verdict, scores in verdicts.items():
        print(f"{len(scores):5} {verdict}")
        if verdict != "equal":
            print(*(f"      v{each.round} {each.path} {each.minutes}" for each in scores), sep="\n")
    if given.out:
        given.out.write_text(f"{format_csv([COLUMNS, *sorted(rows)])}\n", encoding="utf-8")


def list_keys(round_: str, path: str) -> list[tuple[str, ...]]:
    """Return what identifies an entry, the surest first: MLCommons spells some folders of submitters
    and systems in another way.
    """
    submitter, _, system, benchmark = path.split("/")
    plain = re.sub(r"\W|_", "", system.lower())
    return [
        (round_, path),
        (round_, submitter.lower(), plain, benchmark),
        (round_, plain, benchmark),
    ]


def judge(published: float, minutes: list[float]) -> str:
    if not minutes:
        return "no such entry"
    if len(minutes) > 1:
        return "several entries"
    if minutes[0] != minutes[0]:
        return "has no score here"
    return "equal" if abs(minutes[0] / published - 1) <= TOLERANCE else "DIFFERS"


if __name__ == "__main__":
    main()
