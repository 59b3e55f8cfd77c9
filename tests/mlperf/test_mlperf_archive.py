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
    as_folder,
    log,
    member,
    members,
    pack,
    put,
    texts,
)

LOG = f"{FOLDER}/result_0.txt"
SPARSE_BY_NAME = {
    "GNU.sparse.map": "0,0",
    "GNU.sparse.size": str(2**60),
    "GNU.sparse.name": f"{FOLDER}/result_9.txt",
}
UNREAD_LINK = "is a link to a file that is not read"


def score_with(tmp_path: Path, *more: Member) -> ScoredRound:
    return score_path(str(put(tmp_path, "round.tar", pack([*members(), *more]))))


def new_findings(tmp_path: Path, scored: ScoredRound) -> set[str]:
    """Return the findings that the checkout itself does not have."""
    return set(texts(scored)) - set(texts(score_with(tmp_path)))


@pytest.mark.parametrize(("kind", "prefix"), [("gz", "./"), ("xz", "")])
def test_an_archive_is_scored_like_its_folder(tmp_path: Path, kind: str, prefix: str) -> None:
    held = [member(f"{prefix}{info.name}", data) for info, data in reversed(members())]
    scored = score_path(str(put(tmp_path, f"round.tar.{kind}", pack(held, kind))))
    # which may be named like an archive
    assert scored == score_path(str(as_folder(tmp_path / "unpacked.tar")))
    assert sum(len(each.runs) for each in scored.entries) == 15


def test_the_archive_may_name_the_round(tmp_path: Path) -> None:
    inner = [member(info.name.removeprefix("v2.0/"), data) for info, data in members()]
    scored = score_path(str(put(tmp_path, "training_v1.1_results.tar", pack(inner))))
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


def write_header(name: str, kind: bytes, size: int) -> bytes:
    header = tarfile.TarInfo(name)
    header.type = kind
    header.size = size
    return header.tobuf(tarfile.GNU_FORMAT)


def write_sparse_header(name: str, size: int, *, has_map: bool = False) -> bytes:
    """Write an old GNU sparse header: nothing is stored, all of `size` is a hole."""
    data = bytearray(write_header(name, tarfile.GNUTYPE_SPARSE, 0))
    data[482] = has_map
    data[483:495] = b"\x80" + size.to_bytes(11, "big")
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data)
    return bytes(data)


TAR = pack(members())
END = len(TAR.rstrip(b"\0")) // 512 * 512 + 512  # of the last member


def insert(headers: bytes) -> bytes:
    """Write headers behind the members of an archive."""
    return TAR[:END] + headers + TAR[END:]


@pytest.mark.parametrize(
    "data",
    [
        insert(write_sparse_header(f"{FOLDER}/result_9.txt", 2**60)),
        pack([*members(), member("x", pax_headers=SPARSE_BY_NAME)]),
    ],
)
def test_a_sparse_log_does_not_count(tmp_path: Path, data: bytes) -> None:
    scored = score_path(str(put(tmp_path, "round.tar", data)))
    assert scored.entries[0].runs[-1].reason == "is a sparse file; not read"
    assert len(scored.entries) == 3


def write_bomb(kind: bytes, size: int) -> bytes:
    """Write a member that claims `size` zeros, and a stream that holds them."""
    return gzip.compress(write_header(LOG, kind, size) + bytes(size + 2**20), 1)


@pytest.fixture
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take for a bomb what decompresses to 4 MB, and to a hundred times its size."""
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 2**22)
    monkeypatch.setattr(archive, "MAX_RATIO", 100)


@pytest.mark.usefixtures("low_limits")
def test_a_bomb_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "bomb.tar.gz", write_bomb(tarfile.REGTYPE, 2**25))
    message = r"bomb\.tar\.gz: at its start: decompresses to more than .*: a bomb"
    with pytest.raises(DocumentTooLargeError, match=message):
        score_path(str(path))


@pytest.mark.usefixtures("low_limits")
def test_a_bomb_after_the_end_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "round.tar.xz", lzma.compress(TAR + bytes(2**25), preset=0))
    with pytest.raises(DocumentTooLargeError, match="a bomb"):
        score_path(str(path))


@pytest.mark.parametrize("limit", ["MAX_MEMBERS", "MAX_KEPT"])
def test_too_many_members_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(archive, limit, 10)
    with pytest.raises(DocumentTooLargeError, match="members"):
        score_with(tmp_path)


def cut(data: bytes, part: float) -> bytes:
    return data[: int(len(data) * part)]


def ask_for_memory() -> bytes:
    """Write an .xz file with a dictionary of 512 MB."""
    data = bytearray(lzma.compress(b"x"))
    data[16] = 34  # the size of the dictionary in the header of the block
    data[20:24] = struct.pack("<I", zlib.crc32(data[12:20]))
    return bytes(data)


def change_byte(data: bytes) -> bytes:
    changed = bytearray(data)
    changed[len(data) // 2] ^= 0xFF
    return bytes(changed)


GZ = gzip.compress(TAR)
XZ = lzma.compress(TAR)
NESTED = write_header("long", tarfile.GNUTYPE_LONGNAME, 1) + b"x".ljust(512, b"\0")
MAP = struct.pack("504s8s", b"00000000001\0" * 42, b"\x01") * 5000
OTHER_NAME = TAR.replace(b"v2.0/Globex/results", b"w2.0/Globex/results", 1)
LAST = f"{FOLDER}/result_4.txt"
NO_ARCHIVE = "at its start: is damaged"
TRUNCATED = "is damaged or truncated: "
LONG_HEADER = "a header is longer than 1,048,576 bytes"


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (cut(TAR[:END], 0.2), DamagedDocumentError, TRUNCATED),
        (cut(TAR[:END], 0.999), DamagedDocumentError, TRUNCATED),
        (cut(GZ, 0.2), DamagedDocumentError, TRUNCATED),
        (cut(GZ, 0.999), DamagedDocumentError, TRUNCATED),
        (cut(XZ, 0.2), DamagedDocumentError, TRUNCATED),
        (cut(XZ, 0.999), DamagedDocumentError, TRUNCATED),
        (OTHER_NAME, DamagedDocumentError, f"after {LAST}: {TRUNCATED}"),
        (change_byte(XZ), DamagedDocumentError, TRUNCATED),
        (b"", DamagedDocumentError, NO_ARCHIVE),
        (b"text\n", DamagedDocumentError, NO_ARCHIVE),
        (b"PK\x03\x04" + b"x" * 4000, DamagedDocumentError, NO_ARCHIVE),
        (b"\x1f\x8bx", DamagedDocumentError, NO_ARCHIVE),
        (b"\xfd7zXZ\x00", DamagedDocumentError, NO_ARCHIVE),
        (ask_for_memory(), DamagedDocumentError, "[Mm]emory usage limit"),
        (write_bomb(tarfile.GNUTYPE_LONGNAME, 2**23), DocumentTooLargeError, LONG_HEADER),
        (write_bomb(tarfile.XHDTYPE, 2**23), DocumentTooLargeError, LONG_HEADER),
        (
            insert(write_sparse_header("x", 5, has_map=True) + MAP),
            DocumentTooLargeError,
            LONG_HEADER,
        ),
        (insert(NESTED * 1000), DocumentError, ""),
        (insert(write_header(LOG, tarfile.REGTYPE, 2**62)), DocumentTooLargeError, "a bomb"),
        (pack([]), UnrecognisedDocumentError, "has no entry"),
        (pack([member("README.md", b"text")]), UnrecognisedDocumentError, "has no entry"),
    ],
)
def test_what_is_no_archive_of_a_round_is_refused(
    tmp_path: Path, data: bytes, error: type[Exception], message: str
) -> None:
    path = put(tmp_path, "round.tar.gz", data)
    with pytest.raises(error, match=rf"round\.tar\.gz: .*{message}"):
        score_path(str(path))


def test_an_archive_that_is_not_there_is_named(tmp_path: Path) -> None:
    message = r"none\.tar: cannot be opened: No such file or directory"
    with pytest.raises(UnrecognisedDocumentError, match=message):
        score_path(str(tmp_path / "none.tar"))


def test_data_after_the_end_is_a_finding(tmp_path: Path) -> None:
    scored = score_path(str(put(tmp_path, "round.tar", TAR * 2)))
    assert ".: ignoring data after the end of the archive" in texts(scored)


def test_all_streams_of_an_xz_file_are_read(tmp_path: Path) -> None:
    streams = lzma.compress(TAR[:5000]) + bytes(8) + lzma.compress(TAR[5000:]) + bytes(4)
    packed = put(tmp_path, "round.tar.xz", streams)
    assert score_path(str(packed)) == score_with(tmp_path)


@given(st.data())
def test_any_changed_archive_is_scored_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    changed = bytearray(TAR)
    for place in data.draw(st.lists(st.integers(0, len(changed) - 1), min_size=1, max_size=20)):
        changed[place] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(changed)))
    path = put(tmp_path_factory.mktemp("fuzz"), "round.tar", bytes(changed[:end]))
    with suppress(DocumentError):
        assert score_path(str(path)).entries


def test_progress_counts_up_to_the_size_of_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MEGABYTE", 1)
    path = put(tmp_path, "round.tar", TAR)
    seen = []
    score_path(str(path), progress=lambda *pair: seen.append(pair))
    assert seen[-1] == (len(TAR), len(TAR))
