"""Tampering with rows is found, whether the forger wrote the checksums again or not, and any other
change with the announced root.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ipu_results.kit.files import hash_file
from ipu_results.release import verify_release
from ipu_results.release.files import CHECKSUMS, list_files
from ipu_results.release.problems import check_files

from tests.release.release_support import link_release, replace_file, update_checksums
from tests.release.tampering_tables import DATABASE_KINDS, PARQUET_KINDS, VIEW_KINDS, edit_parquet
from tests.release.tampering_texts import (
    CROISSANT_KINDS,
    CSV_KINDS,
    FILE_KINDS,
    PACKAGE_KINDS,
    RELEASE_KINDS,
    TEXT_KINDS,
)

pytestmark = pytest.mark.slow  # a whole release is verified for each kind

GROUPS = {
    "duckdb": DATABASE_KINDS,
    "parquet": PARQUET_KINDS,
    "view": VIEW_KINDS,
    "csv": CSV_KINDS,
    "datapackage": PACKAGE_KINDS,
    "croissant": CROISSANT_KINDS,
    "release": RELEASE_KINDS,
    "text": TEXT_KINDS,
    "files": FILE_KINDS,
}
KINDS = {
    f"{group}: {name}": (tamper, message)
    for group, kinds in GROUPS.items()
    for name, tamper, message in kinds
}
assert len(KINDS) == sum(map(len, GROUPS.values())) > 40


def list_changed(folder: Path, original: Path) -> list[str]:
    """Return the files that are no longer hard links of the original's."""
    return [
        name
        for name, path in list_files(folder).items()
        if not (original / name).exists() or not path.samefile(original / name)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_tampering_is_found(kind: str, small_release: Path, tmp_path: Path) -> None:
    tamper, message = KINDS[kind]
    folder = link_release(small_release, tmp_path / "release")
    tamper(folder)
    assert check_files(folder), "with the old checksums"
    update_checksums(folder, *list_changed(folder, small_release))
    lines = [problem.line for problem in verify_release(folder)]
    assert any(message in line for line in lines), lines
    assert not any("\x1b" in line for line in lines)


def test_other_compression_of_the_same_rows_is_sound(small_release: Path, tmp_path: Path) -> None:
    folder = link_release(small_release, tmp_path / "release")
    edit_parquet("flags", lambda rows: rows, compression="gzip")(folder)
    update_checksums(folder, "flags.parquet")
    assert verify_release(folder) == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("README.md", b" results", b"0 results"), ("DICTIONARY.md", b"| ms |", b"| s |")],
)
def test_rewritten_text_is_found_with_the_announced_root(
    name: str, old: bytes, new: bytes, small_release: Path, tmp_path: Path
) -> None:
    folder = link_release(small_release, tmp_path / "release")
    announced = hash_file(folder / CHECKSUMS)
    assert verify_release(folder, root=announced) == []
    replace_file(folder / name, (folder / name).read_bytes().replace(old, new, 1))
    update_checksums(folder, name)
    assert verify_release(folder) == []
    [problem] = verify_release(folder, root=announced)
    assert problem.line.endswith(f", {announced} was announced")
