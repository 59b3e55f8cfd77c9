"""Write what the scorer reads of a round to a folder: `python raw/mlperf/export_round.py REPOSITORY TARGET [COMMIT]`.

REPOSITORY is a git directory, also a bare or an incomplete one, of which `git checkout` would fail. The paths of the
files whose content it lacks are printed, one a line.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PARTS = ("results", "systems")
LINK = "120000"
ENVIRONMENT = {
    **os.environ,
    "GIT_NO_LAZY_FETCH": "1",
}  # what is absent is reported, and not downloaded


def export_round(repository: Path, target: Path, commit: str = "HEAD") -> Iterator[str]:
    """Write the files under each submitter's `results` and `systems`; yield the paths of those that are absent."""
    files = list_files(repository, commit)
    for (mode, _, path), data in zip(
        files, read_blobs(repository, [digest for _, digest, _ in files]), strict=True
    ):
        if data is None:
            yield path
            continue
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if mode == LINK:
            file.symlink_to(os.fsdecode(data))
        else:
            file.write_bytes(data)


def list_files(repository: Path, commit: str) -> list[tuple[str, str, str]]:
    """Return mode, digest and path of each file that is exported."""
    listing = subprocess.run(
        ["git", "-C", repository, "ls-tree", "-rz", commit],
        capture_output=True,
        check=True,
        env=ENVIRONMENT,
    )
    files = []
    for line in os.fsdecode(listing.stdout).split("\0"):
        fields, _, path = line.partition("\t")
        if (
            path
            and path.split("/")[1:2] != []
            and path.split("/")[1] in PARTS
            and " blob " in fields
        ):
            mode, _, digest = fields.split()
            files.append((mode, digest, path))
    return files


def read_blobs(repository: Path, digests: Sequence[str]) -> Iterator[bytes | None]:
    """Yield the content of each blob, None where it is absent."""
    command = ["git", "-C", repository, "cat-file", "--batch"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
    ) as git:
        assert git.stdin is not None
        assert git.stdout is not None
        for digest in digests:
            git.stdin.write(f"{digest}\n".encode())
            git.stdin.flush()
            header = git.stdout.readline().split()
            if header[1] == b"missing":
                yield None
            else:
                yield git.stdout.read(int(header[2]))
                git.stdout.read(1)


if __name__ == "__main__":
    for path in export_round(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]):
        print(path)
