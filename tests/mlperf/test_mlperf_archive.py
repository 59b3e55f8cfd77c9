"""A round in a tar archive is scored as the folder that it would unpack to, and nothing in it is
followed.
"""

from __future__ import annotations

import gzip
import lzma
import struct
import tarfile
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import (
    DamagedDocumentError,
    DocumentError,
    DocumentTooLargeError,
    UnrecognisedDocumentError,
)
from ipu_results.mlperf import archive
from ipu_results.mlperf.round import ScoredRound, score_path

from tests.mlperf.mlperf_support import (
    FOLDER,
    Member,
    as_archive,
    as_folder,
    log,
    member,
    members,
    put,
    texts,
)

LOG = f"{FOLDER}/result_0.txt"
UNREAD_LINK = "is a link to a file that is not read"


def score_with(tmp_path: Path, *more: Member) -> ScoredRound:
    return score_path(str(as_archive(tmp_path / "round.tar", [*members(), *more])))


def new_findings(tmp_path: Path, scored: ScoredRound) -> set[str]:
    """Return the findings that the checkout itself does not have."""
    usual = score_path(str(as_archive(tmp_path / "usual.tar", members())))
    return set(texts(scored)) - set(texts(usual))


@pytest.mark.parametrize(("kind", "prefix"), [("gz", "./"), ("xz", "")])
def test_an_archive_is_scored_like_its_folder(tmp_path: Path, kind: str, prefix: str) -> None:
    held = [member(f"{prefix}{info.name}", data) for info, data in reversed(members())]
    scored = score_path(str(as_archive(tmp_path / f"round.tar.{kind}", held, kind)))
    # which may be named like an archive
    assert scored == score_path(str(as_folder(tmp_path / "unpacked.tar")))
    assert sum(len(each.runs) for each in scored.entries) == 15


def test_the_archive_may_name_the_round(tmp_path: Path) -> None:
    inner = [member(info.name.removeprefix("v2.0/"), data) for info, data in members()]
    scored = score_path(str(as_archive(tmp_path / "training_v1.1_results.tar", inner)))
    assert {each.entry.round for each in scored.entries} == {"1.1"}


def test_a_benchmark_folder_without_logs_is_an_entry(tmp_path: Path) -> None:
    scored = score_with(tmp_path, member("v2.0/Acme/results/pod/bert", type=tarfile.DIRTYPE))
    assert scored.entries[0].reason == "its logs are missing"
    assert "v2.0/Acme/results/pod/bert: has no logs" in texts(scored)


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.SYMTYPE, "../../../../../secret"),
        (tarfile.SYMTYPE, "no.txt"),
        (tarfile.SYMTYPE, "result_9.txt"),
        (tarfile.LNKTYPE, "/etc/passwd"),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
        (tarfile.FIFOTYPE, ""),
    ],
)
def test_a_link_to_an_unread_file_does_not_count(tmp_path: Path, kind: bytes, target: str) -> None:
    scored = score_with(tmp_path, member(f"{FOLDER}/result_9.txt", type=kind, linkname=target))
    [changed, *_] = scored.entries
    assert changed.runs[-1].reason == UNREAD_LINK
    assert len(changed.runs) == 6
    assert changed.n_success == 5
    assert f"{FOLDER}/result_9.txt: does not count: {UNREAD_LINK}" in new_findings(tmp_path, scored)


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (tarfile.LNKTYPE, f"{FOLDER}/result_1.txt"),
        (tarfile.SYMTYPE, "result_1.txt"),
        (tarfile.SYMTYPE, "../../../results/pod/resnet/result_1.txt"),
    ],
)
def test_a_link_to_a_log_is_that_log(tmp_path: Path, kind: bytes, target: str) -> None:
    link = member(f"{FOLDER}/result_9.txt", type=kind, linkname=target)
    [scored, *_] = score_with(tmp_path, link).entries
    assert scored.runs[-1].file == "result_9.txt"
    assert scored.runs[-1].log == scored.runs[1].log
    assert scored.n_success == 6


def test_a_linked_scaling_file_makes_no_score(tmp_path: Path) -> None:
    link = member(f"{FOLDER}/scaling.json", type=tarfile.SYMTYPE, linkname="/etc/passwd")
    [scored, *_] = score_with(tmp_path, link).entries
    assert scored.minutes is None
    assert scored.scaling_factor is None


def test_a_link_in_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    outside = as_folder(tmp_path / "outside")
    link = member("v2.0/Initech", type=tarfile.SYMTYPE, linkname=str(outside / "v2.0" / "Acme"))
    scored = score_with(tmp_path, link)
    assert {each.entry.submitter for each in scored.entries} == {"Acme", "Globex"}
    assert new_findings(tmp_path, scored) == {
        "v2.0/Initech: is a link or not a folder; not followed"
    }


@pytest.mark.parametrize(
    "name", [f"/{FOLDER}/result_9.txt", f"v2.0/../{FOLDER}/result_9.txt", f"../{LOG}", "/etc/x"]
)
def test_a_path_out_of_the_archive_is_not_read(tmp_path: Path, name: str) -> None:
    scored = score_with(tmp_path, member(name, log(1)))
    assert new_findings(tmp_path, scored) == {f"{name}: leads out of the archive; not read"}
    assert len(scored.entries[0].runs) == 5


@pytest.mark.parametrize("name", [LOG, f"./{LOG}"])
def test_the_last_of_two_members_is_used(tmp_path: Path, name: str) -> None:
    scored = score_with(tmp_path, member(name, log(12)))
    assert scored.entries[0].runs[0].log.minutes == 12
    assert f"{LOG}: occurs twice in the archive; the last one is used" in texts(scored)
    scored = score_with(tmp_path, member(name, type=tarfile.SYMTYPE, linkname="/dev/zero"))
    assert [run.counted for run in scored.entries[0].runs] == [False, True, True, True, True]


def test_a_description_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    scored = score_with(tmp_path, member("v2.0/Acme/systems/pod.json", b" " * 1_000_001))
    assert scored.entries[0].system.division is None
    assert "is larger than 1,000,000 bytes" in "".join(texts(scored))


def sparse_header(name: str, size: int, extended: bytes = b"") -> bytes:
    """Write an old GNU sparse header: nothing is stored, all of `size` is a hole."""
    info = tarfile.TarInfo(name)
    info.type = tarfile.GNUTYPE_SPARSE
    data = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    data[482] = bool(extended)
    data[483:495] = b"\x80" + size.to_bytes(11, "big")
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data)
    return bytes(data) + extended


def raw_archive(tmp_path: Path, headers: bytes) -> str:
    path = as_archive(tmp_path / "plain.tar", members())
    with tarfile.open(path) as tar:
        tar.getmembers()
        end = tar.offset
    data = path.read_bytes()
    path.write_bytes(data[:end] + headers + data[end:])
    return str(path)


def test_a_sparse_log_does_not_count(tmp_path: Path) -> None:
    scored = score_path(raw_archive(tmp_path, sparse_header(f"{FOLDER}/result_9.txt", 2**60)))
    assert scored.entries[0].runs[-1].reason == "is a sparse file; not read"
    assert len(scored.entries) == 3


def test_a_log_that_a_header_calls_sparse_does_not_count(tmp_path: Path) -> None:
    pax = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(2**60)}
    pax["GNU.sparse.name"] = f"{FOLDER}/result_9.txt"
    scored = score_with(tmp_path, member("x", pax_headers=pax))
    assert scored.entries[0].runs[-1].reason == "is a sparse file; not read"
    assert len(scored.entries) == 3


def bomb(tmp_path: Path, header: tarfile.TarInfo, size: int) -> str:
    """Write a member that claims `size` zeros, and a stream that holds them."""
    path = tmp_path / "bomb.tar.gz"
    header.size = size
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT))
        for _ in range(size // 2**20 + 1):
            file.write(bytes(2**20))
    return str(path)


@pytest.fixture
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take for a bomb what decompresses to 4 MB, and to a hundred times its size."""
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 2**22)
    monkeypatch.setattr(archive, "MAX_RATIO", 100)


@pytest.mark.usefixtures("low_limits")
def test_a_bomb_is_refused(tmp_path: Path) -> None:
    message = r"bomb\.tar\.gz: at its start: decompresses to more than .*: a bomb"
    with pytest.raises(DocumentTooLargeError, match=message):
        score_path(bomb(tmp_path, tarfile.TarInfo(LOG), 2**25))


@pytest.mark.usefixtures("low_limits")
def test_a_bomb_after_the_end_is_refused(tmp_path: Path) -> None:
    data = as_archive(tmp_path / "round.tar", members()).read_bytes()
    path = put(tmp_path, "round.tar.xz", lzma.compress(data + bytes(2**25), preset=0))
    with pytest.raises(DocumentTooLargeError, match="a bomb"):
        score_path(str(path))


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_a_huge_header_is_refused_before_it_is_in_memory(tmp_path: Path, kind: bytes) -> None:
    header = tarfile.TarInfo("long")
    header.type = kind
    with pytest.raises(DocumentTooLargeError, match="a header is longer than 1,048,576 bytes"):
        score_path(bomb(tmp_path, header, 2**23))


def test_an_endless_sparse_map_is_refused(tmp_path: Path) -> None:
    blocks = struct.pack("504s8s", b"00000000001\0" * 42, b"\x01") * 5000
    with pytest.raises(DocumentTooLargeError, match="a header is longer"):
        score_path(raw_archive(tmp_path, sparse_header("x", 5, blocks)))


def test_nested_headers_are_refused(tmp_path: Path) -> None:
    name = tarfile.TarInfo("long")
    name.type = tarfile.GNUTYPE_LONGNAME
    name.size = 1
    header = name.tobuf(tarfile.GNU_FORMAT) + b"x".ljust(512, b"\0")
    with pytest.raises(DocumentError):
        score_path(raw_archive(tmp_path, header * 1000))


def test_an_absurd_size_is_refused(tmp_path: Path) -> None:
    absurd = tarfile.TarInfo(LOG)
    absurd.size = 2**62
    with pytest.raises(DocumentTooLargeError):
        score_path(raw_archive(tmp_path, absurd.tobuf(tarfile.GNU_FORMAT)))


@pytest.mark.parametrize("limit", ["MAX_MEMBERS", "MAX_KEPT"])
def test_too_many_members_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(archive, limit, 10)
    with pytest.raises(DocumentTooLargeError, match="members"):
        score_with(tmp_path)


@pytest.mark.parametrize("part", [0.2, 0.999])
@pytest.mark.parametrize("kind", ["", "gz", "xz"])
def test_a_truncated_archive_is_damaged(tmp_path: Path, kind: str, part: float) -> None:
    path = as_archive(tmp_path / "round.tar", members(), kind)
    data = path.read_bytes()
    if not kind:
        data = data.rstrip(b"\0")
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(DamagedDocumentError, match=r"round\.tar: a.*is damaged or truncated: "):
        score_path(str(path))


def test_a_changed_byte_is_damage_and_not_the_end(tmp_path: Path) -> None:
    path = as_archive(tmp_path / "round.tar", members())
    data = path.read_bytes()
    path.write_bytes(data.replace(b"v2.0/Globex/results", b"w2.0/Globex/results", 1))
    last = "v2.0/Acme/results/pod/resnet/result_4.txt"
    with pytest.raises(DamagedDocumentError, match=f"after {last}: is damaged"):
        score_path(str(path))


def test_a_changed_byte_of_a_packed_archive_is_damage(tmp_path: Path) -> None:
    path = as_archive(tmp_path / "round.tar.xz", members(), "xz")
    packed = bytearray(path.read_bytes())
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(packed)
    with pytest.raises(DamagedDocumentError):
        score_path(str(path))


@pytest.mark.parametrize(
    "data",
    [b"", b"text\n", b"PK\x03\x04" + b"x" * 4000, b"\x1f\x8bx", b"\xfd7zXZ\x00", b"<" * 9999],
)
def test_other_files_are_damaged_archives(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "round.tar.gz").write_bytes(data)
    with pytest.raises(DamagedDocumentError, match=r"round\.tar\.gz: at its start: is damaged"):
        score_path(str(tmp_path / "round.tar.gz"))


@pytest.mark.parametrize("held", [[], [member("README.md", b"text")]])
def test_an_archive_without_entries_is_refused(tmp_path: Path, held: list[Member]) -> None:
    with pytest.raises(UnrecognisedDocumentError, match="has no entry"):
        score_path(str(as_archive(tmp_path / "round.tar", held)))


def test_an_archive_that_is_not_there_is_named(tmp_path: Path) -> None:
    message = r"none\.tar: cannot be opened: No such file or directory"
    with pytest.raises(UnrecognisedDocumentError, match=message):
        score_path(str(tmp_path / "none.tar"))


def test_data_after_the_end_is_a_finding(tmp_path: Path) -> None:
    path = as_archive(tmp_path / "round.tar", members())
    path.write_bytes(path.read_bytes() * 2)
    assert ".: ignoring data after the end of the archive" in texts(score_path(str(path)))


def test_all_streams_of_an_xz_file_are_read(tmp_path: Path) -> None:
    path = as_archive(tmp_path / "round.tar", members())
    data = path.read_bytes()
    streams = [lzma.compress(data[:5000]), bytes(8), lzma.compress(data[5000:]), bytes(4)]
    packed = put(tmp_path, "round.tar.xz", b"".join(streams))
    assert score_path(str(packed)) == score_path(str(path))


def test_an_xz_file_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    changed = bytearray(lzma.compress(b"x"))
    changed[12 + 4] = 34  # the dictionary's size in the block header: 512 MB
    changed[12 + 8 : 12 + 12] = struct.pack("<I", zlib.crc32(bytes(changed[12 : 12 + 8])))
    (tmp_path / "round.tar.xz").write_bytes(changed)
    with pytest.raises(DamagedDocumentError, match=r"[Mm]emory usage limit"):
        score_path(str(tmp_path / "round.tar.xz"))


@given(st.data())
def test_any_changed_archive_is_scored_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = as_archive(tmp_path_factory.mktemp("fuzz") / "round.tar", members())
    changed = bytearray(path.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(changed) - 1), min_size=1, max_size=20)):
        changed[place] = data.draw(st.integers(0, 255))
    path.write_bytes(changed[: data.draw(st.integers(0, len(changed)))])
    with suppress(DocumentError):
        assert score_path(str(path)).entries


def test_progress_counts_up_to_the_size_of_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MEGABYTE", 1)
    path = as_archive(tmp_path / "round.tar", members())
    size = path.stat().st_size
    seen = []
    score_path(str(path), progress=lambda *pair: seen.append(pair))
    assert seen[-1] == (size, size)
