"""A round in a tar archive is scored as the folder that it would unpack to, and nothing in it is followed."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import struct
import subprocess
import sys
import tarfile
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from archive_support import FOLDER, ROUNDS, Member, as_archive, as_folder, log, member, members
from conftest import run_cli
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import DamagedDocumentError, DocumentError, DocumentTooLargeError, UnrecognisedDocumentError
from ipu_results.mlperf import archive, unpacked
from ipu_results.mlperf.archive import score_archive
from ipu_results.mlperf.scoring import Round, in_processes, score_tree
from ipu_results.mlperf.tree import LocalTree

LOG = f"{FOLDER}/result_0.txt"


def told(scored: Round) -> list[str]:
    return [str(finding) for finding in scored.findings]


def scored(tmp_path: Path, *more: Member) -> Round:
    return score_archive(str(as_archive(tmp_path / "round.tar", [*members(), *more])))


@pytest.fixture
def as_usual(tmp_path: Path) -> list[str]:
    """The findings of the checkout itself."""
    return told(score_archive(str(as_archive(tmp_path / "usual.tar", members()))))


@pytest.mark.parametrize("kind", ["", "gz", "xz"])
@pytest.mark.parametrize("options", [[], ["--runs"]])
def test_an_archive_gives_what_its_folder_gives(tmp_path: Path, kind: str, options: list[str]) -> None:
    path = as_archive(tmp_path / f"round.tar{kind and '.'}{kind}", members(), kind)
    folder = as_folder(tmp_path / "unpacked")
    from_folder = run_cli("mlperf", folder, "--format", "json", "--workers", 1, *options)
    from_archive = run_cli("mlperf", path, "--format", "json", *options)
    assert from_archive.returncode == 0
    assert len(json.loads(from_archive.stdout)) == (15 if options else 3)
    assert (from_archive.stdout, from_archive.stderr) == (from_folder.stdout, from_folder.stderr)


def test_the_whole_of_what_is_scored_is_equal_and_members_may_come_in_any_order(tmp_path: Path) -> None:
    folder = score_tree(LocalTree(str(as_folder(tmp_path / "unpacked"))), in_processes(1), digests=True)
    path = as_archive(tmp_path / "round.tar", reversed(members()))
    assert score_archive(str(path), digests=True) == folder


def test_paths_may_begin_with_a_dot_and_have_folders_of_their_own(tmp_path: Path) -> None:
    as_folder(tmp_path / "unpacked")
    path = tmp_path / "round.tgz"
    subprocess.run(["tar", "-C", tmp_path / "unpacked", "-czf", path, "."], check=True)
    assert score_archive(str(path)) == score_archive(str(as_archive(tmp_path / "other.tar", members())))


@pytest.mark.parametrize(
    ("name", "round_"), [("training_v1.1_results.tar", "1.1"), ("v1.0.tar", "1.0"), ("a.tar", None)]
)
def test_the_round_may_come_from_the_name_of_the_archive(tmp_path: Path, name: str, round_: str | None) -> None:
    inner = [member(info.name.removeprefix("v2.0/"), data) for info, data in members()]
    found = score_archive(str(as_archive(tmp_path / name, inner)))
    assert {one.entry.round for one in found.entries} == {round_}


def test_a_folder_without_logs_is_a_hole(tmp_path: Path) -> None:
    found = scored(tmp_path, member("v2.0/Acme/results/pod/bert", type=tarfile.DIRTYPE))
    assert found.entries[0].reason == "its logs are missing"
    assert "v2.0/Acme/results/pod/bert: is a hole: its logs are missing" in told(found)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("target", ["/etc/passwd", "../../../../../secret", "nothing.txt", "result_9.txt"])
def test_a_link_to_what_is_not_read_is_a_run_that_does_not_count(tmp_path: Path, kind: bytes, target: str) -> None:
    found = scored(tmp_path, member(f"{FOLDER}/result_9.txt", type=kind, linkname=target))
    assert found.entries[0].runs[-1].reason == "is a link to what is not read"
    assert (len(found.entries[0].runs), found.entries[0].n_success) == (6, 5)
    assert f"{FOLDER}/result_9.txt: does not count: is a link to what is not read" in told(found)


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (tarfile.LNKTYPE, f"{FOLDER}/result_1.txt"),
        (tarfile.SYMTYPE, "result_1.txt"),
        (tarfile.SYMTYPE, "../../../results/pod/resnet/result_1.txt"),
    ],
)
def test_a_link_to_a_log_that_is_read_is_that_log(tmp_path: Path, kind: bytes, target: str) -> None:
    [entry, *_] = scored(tmp_path, member(f"{FOLDER}/result_9.txt", type=kind, linkname=target)).entries
    assert (entry.runs[-1].file, entry.runs[-1].log) == ("result_9.txt", entry.runs[1].log)
    assert entry.n_success == 6


def test_a_folder_and_its_archive_agree_on_hard_links(tmp_path: Path) -> None:
    folder = as_folder(tmp_path / "tree") / FOLDER
    for number in (0, 1):
        (folder / f"result_{number}.txt").unlink()
        (folder / f"result_{number}.txt").hardlink_to(folder / "result_4.txt")
    with tarfile.open(tmp_path / "v.tar", "w") as tar:
        tar.add(tmp_path / "tree" / "v2.0", "v2.0")
    packed, unpacked = (
        score_archive(str(tmp_path / "v.tar")),
        score_tree(LocalTree(f"{tmp_path}/tree"), in_processes(1)),
    )
    assert [one.minutes for one in packed.entries] == [one.minutes for one in unpacked.entries]
    assert packed.entries[0].n_success == 5


def test_a_linked_scaling_file_that_is_not_read_gives_no_score(tmp_path: Path) -> None:
    found = scored(tmp_path, member(f"{FOLDER}/scaling.json", type=tarfile.SYMTYPE, linkname="/etc/passwd"))
    assert (found.entries[0].minutes, found.entries[0].scaling_factor) == (None, None)


def test_a_link_in_place_of_a_folder_leads_nowhere(tmp_path: Path, as_usual: list[str]) -> None:
    outside = as_folder(tmp_path / "outside")
    link = member("v2.0/Initech", type=tarfile.SYMTYPE, linkname=str(outside / "v2.0" / "Acme"))
    found = scored(tmp_path, link)
    assert {one.entry.submitter for one in found.entries} == {"Acme", "Globex"}
    assert set(told(found)) - set(as_usual) == {"v2.0/Initech: is a link or no folder: not followed"}


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_a_device_is_told_and_not_read(tmp_path: Path, kind: bytes, as_usual: list[str]) -> None:
    found = scored(tmp_path, member(f"{FOLDER}/result_9.txt", type=kind))
    assert f"{FOLDER}/result_9.txt: does not count: is a link to what is not read" in set(told(found)) - set(as_usual)


@pytest.mark.parametrize("name", [f"/{FOLDER}/result_9.txt", f"v2.0/../{FOLDER}/result_9.txt", f"../{LOG}", "/etc/x"])
def test_a_path_out_of_the_archive_is_told_and_not_read(tmp_path: Path, name: str, as_usual: list[str]) -> None:
    found = scored(tmp_path, member(name, log(1)))
    assert set(told(found)) - set(as_usual) == {f"{name}: leads out of the archive: not read"}
    assert len(found.entries[0].runs) == 5


@pytest.mark.parametrize("name", [LOG, f"./{LOG}"])
def test_of_a_file_that_comes_twice_the_last_counts(tmp_path: Path, name: str) -> None:
    found = scored(tmp_path, member(name, log(12)))
    assert found.entries[0].runs[0].log.minutes == 12
    assert f"{LOG}: stands in the archive twice: the last one counts, as when it is unpacked" in told(found)


def test_a_link_that_replaces_a_file_takes_its_place(tmp_path: Path) -> None:
    found = scored(tmp_path, member(LOG, type=tarfile.SYMTYPE, linkname="/dev/zero"))
    assert [run.counted for run in found.entries[0].runs] == [False, True, True, True, True]


def test_a_system_that_is_too_large_is_unknown(tmp_path: Path) -> None:
    found = scored(tmp_path, member("v2.0/Acme/systems/pod.json", b" " * 1_000_001))
    assert found.entries[0].system.division is None
    assert any("pod.json: cannot be read" in line and "larger than 1,000,000 bytes" in line for line in told(found))


def sparse_header(name: str, size: int, extended: bytes = b"") -> bytes:
    """An old GNU sparse header: nothing is stored, all of `size` is a hole."""
    info = tarfile.TarInfo(name)
    info.type = tarfile.GNUTYPE_SPARSE
    data = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    data[482] = bool(extended)
    data[483:495] = b"\x80" + size.to_bytes(11, "big")
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data)
    return bytes(data) + extended


def raw_archive(tmp_path: Path, *headers: bytes) -> Path:
    path = as_archive(tmp_path / "plain.tar", members())
    with tarfile.open(path) as tar:
        tar.getmembers()
        end = tar.offset
    data = path.read_bytes()
    path.write_bytes(data[:end] + b"".join(headers) + data[end:])
    return path


def test_a_sparse_member_of_an_absurd_size_is_a_run_that_does_not_count(tmp_path: Path) -> None:
    found = score_archive(str(raw_archive(tmp_path, sparse_header(f"{FOLDER}/result_9.txt", 2**60))))
    assert found.entries[0].runs[-1].reason == "is a sparse file: not read"
    assert len(found.entries) == 3


def test_a_pax_sparse_member_is_a_run_that_does_not_count(tmp_path: Path) -> None:
    sparse = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(2**60), "GNU.sparse.name": f"{FOLDER}/result_9.txt"}
    found = scored(tmp_path, member("x", pax_headers=sparse))
    assert found.entries[0].runs[-1].reason == "is a sparse file: not read"


def bomb(tmp_path: Path, header: tarfile.TarInfo, size: int) -> Path:
    """A member that claims `size` zeros and a stream that holds them."""
    path = tmp_path / "bomb.tar.gz"
    header.size = size
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT))
        for _ in range(size // 2**20 + 1):
            file.write(bytes(2**20))
    return path


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacked, "MAX_UNPACKED", 2**22)
    monkeypatch.setattr(unpacked, "MAX_RATIO", 100)


@pytest.mark.usefixtures("small_limits")
def test_a_bomb_is_refused(tmp_path: Path) -> None:
    path = bomb(tmp_path, tarfile.TarInfo(LOG), 2**25)
    with pytest.raises(DocumentTooLargeError, match=r"bomb\.tar\.gz: at its start: unpacks to more than .*: a bomb"):
        score_archive(str(path))


@pytest.mark.usefixtures("small_limits")
def test_zeros_after_the_end_of_an_archive_are_a_bomb_too(tmp_path: Path) -> None:
    path = as_archive(tmp_path / "round.tar", members())
    packed = tmp_path / "round.tar.xz"
    packed.write_bytes(lzma.compress(path.read_bytes() + bytes(2**25)))
    with pytest.raises(DocumentTooLargeError, match="a bomb"):
        score_archive(str(packed))


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_a_header_as_long_as_a_file_is_refused_before_it_is_held_in_memory(tmp_path: Path, kind: bytes) -> None:
    header = tarfile.TarInfo("long")
    header.type = kind
    with pytest.raises(DocumentTooLargeError, match="a header is longer than 1,048,576 bytes"):
        score_archive(str(bomb(tmp_path, header, 2**23)))


def test_an_endless_map_of_a_sparse_file_is_refused(tmp_path: Path) -> None:
    block = struct.pack("504s8s", b"00000000001\0" * 42, b"\x01")
    with pytest.raises(DocumentTooLargeError, match="a header is longer"):
        score_archive(str(raw_archive(tmp_path, sparse_header("x", 5, block * 5000))))


def test_headers_in_headers_are_damage(tmp_path: Path) -> None:
    name = tarfile.TarInfo("long")
    name.type, name.size = tarfile.GNUTYPE_LONGNAME, 1
    nested = (name.tobuf(tarfile.GNU_FORMAT) + b"x".ljust(512, b"\0")) * 1000
    with pytest.raises(DocumentError):
        score_archive(str(raw_archive(tmp_path, nested)))


def test_a_member_that_claims_more_than_there_can_be_is_refused_at_once(tmp_path: Path) -> None:
    info = tarfile.TarInfo(LOG)
    info.size = 2**62
    with pytest.raises(DocumentTooLargeError):
        score_archive(str(raw_archive(tmp_path, info.tobuf(tarfile.GNU_FORMAT))))


@pytest.mark.parametrize("limit", ["MAX_MEMBERS", "MAX_KEPT"])
def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(archive, limit, 10)
    with pytest.raises(DocumentTooLargeError, match="members"):
        scored(tmp_path)


@pytest.mark.parametrize("kind", ["", "gz", "xz"])
@pytest.mark.parametrize("part", [0.2, 0.5, 0.9, 0.999])
def test_a_truncated_archive_is_named_with_the_place(tmp_path: Path, kind: str, part: float) -> None:
    path = as_archive(tmp_path / "round.tar", members(), kind)
    data = path.read_bytes() if kind else path.read_bytes().rstrip(b"\0")
    path.write_bytes(data[: int(len(data) * part)])
    done = run_cli("mlperf", path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {path}: a")
    assert "is damaged or truncated: " in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_header_that_is_broken_is_not_the_end(tmp_path: Path) -> None:
    path = as_archive(tmp_path / "round.tar", members())
    data = bytearray(path.read_bytes())
    place = data.index(b"v2.0/Globex/results")
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedDocumentError, match=r"after v2\.0/Acme/results/pod/resnet/result_4\.txt: is damaged"):
        score_archive(str(path))


def test_a_flipped_byte_of_compressed_data_is_damage(tmp_path: Path) -> None:
    path = as_archive(tmp_path / "round.tar.xz", members(), "xz")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(DamagedDocumentError):
        score_archive(str(path))


@pytest.mark.parametrize(
    "data", [b"", b"text\n", b"PK\x03\x04" + b"x" * 4000, b"\x1f\x8bx", b"\xfd7zXZ\x00", b"<" * 9999]
)
def test_what_is_no_tar_is_damage(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "round.tar.gz"
    path.write_bytes(data)
    with pytest.raises(DamagedDocumentError, match=r"round\.tar\.gz: at its start: is damaged"):
        score_archive(str(path))


@pytest.mark.parametrize("held", [[], [member("README.md", b"text")]])
def test_an_archive_without_entries_is_no_success(tmp_path: Path, held: list[Member]) -> None:
    with pytest.raises(UnrecognisedDocumentError, match="holds no entry"):
        score_archive(str(as_archive(tmp_path / "round.tar", held)))


def test_an_archive_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = run_cli("mlperf", tmp_path / "round.tar")
    assert (done.returncode, done.stderr) == (
        1,
        f"error: {tmp_path}/round.tar: cannot be opened: No such file or directory\n",
    )


def test_a_folder_may_be_named_as_an_archive(tmp_path: Path) -> None:
    done = run_cli("mlperf", as_folder(tmp_path / "round.tar"), "--workers", 1, "--format", "json")
    assert len(json.loads(done.stdout)) == 3


def test_a_second_archive_behind_the_first_is_told(tmp_path: Path) -> None:
    path = as_archive(tmp_path / "round.tar", members())
    path.write_bytes(path.read_bytes() * 2)
    assert ".: something stands behind the end of the archive: not read" in told(score_archive(str(path)))


def test_an_xz_file_of_several_streams_is_read_whole(tmp_path: Path) -> None:
    path = as_archive(tmp_path / "round.tar", members())
    data, packed = path.read_bytes(), tmp_path / "round.tar.xz"
    packed.write_bytes(lzma.compress(data[:5000]) + bytes(8) + lzma.compress(data[5000:]) + bytes(4))
    assert score_archive(str(packed)) == score_archive(str(path))


def test_an_xz_file_that_asks_for_too_much_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "round.tar.xz"
    changed = bytearray(lzma.compress(b"x"))
    changed[12 + 4] = 34  # the dictionary's size in the block header: 512 MB
    changed[12 + 8 : 12 + 12] = struct.pack("<I", zlib.crc32(bytes(changed[12 : 12 + 8])))
    path.write_bytes(changed)
    with pytest.raises(DamagedDocumentError, match=r"[Mm]emory usage limit"):
        score_archive(str(path))


@given(st.data())
def test_whatever_is_changed_in_an_archive_it_is_scored_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = as_archive(tmp_path_factory.mktemp("fuzz") / "round.tar", members())
    changed = bytearray(path.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(changed) - 1), min_size=1, max_size=20)):
        changed[place] = data.draw(st.integers(0, 255))
    path.write_bytes(changed[: data.draw(st.integers(0, len(changed)))])
    with suppress(DocumentError):
        assert score_archive(str(path)).entries


def test_progress_counts_up_to_the_size_of_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacked, "MEGABYTE", 1)
    path, seen = as_archive(tmp_path / "round.tar", members()), []
    score_archive(str(path), progress=lambda *pair: seen.append(pair))
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


@pytest.mark.skipif(not ROUNDS.is_dir(), reason="the shared rounds are not here")
def test_the_real_part_of_a_round_gives_what_its_folder_gives(tmp_path: Path) -> None:
    path = ROUNDS / "training_v1.0_results_part.tar.xz"
    with tarfile.open(path) as tar:
        tar.extractall(tmp_path, filter="data")
    from_archive = run_cli("mlperf", path, "--format", "json", "--runs")
    from_folder = run_cli("mlperf", tmp_path, "--format", "json", "--runs", "--workers", 1)
    assert len(json.loads(from_archive.stdout)) == 175
    assert (from_archive.stdout, from_archive.stderr) == (from_folder.stdout, from_folder.stderr)


PEAK = """
import resource, sys
from ipu_results.mlperf.archive import score_archive
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
score_archive(sys.argv[1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_does_not_grow_with_the_size_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "round.tar"
    large = io.BytesIO(b"noise\n" * (100 * 2**20 // 6))
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo(LOG)
        info.size = len(large.getbuffer())
        tar.addfile(info, large)
    done = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) < 50 * 1024
