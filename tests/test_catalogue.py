"""Sidecars and the bytes that they vouch for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from ipu_results.errors import CatalogueError, DamagedDocumentError, DocumentError, DocumentTooLargeError
from ipu_results.sources.catalogue import (
    Document,
    check_file_type,
    find_orphans,
    find_unfinished_runs,
    load_catalogue,
    read_limited,
)

from tests.reading_support import GPT2, ROOT, training_page

DATA = training_page(GPT2)
ENTRY: dict[str, Any] = {
    "document_id": "a-page",
    "title": "A page",
    "publisher": "Somebody",
    "url": "https://example.org/page",
    "published_on": date(2023, 7, 4),
    "kind": "transcription",
    "licence": "none",
    "sha256": hashlib.sha256(DATA).hexdigest(),
    "reader": "graphcore-performance",
    "note": "made for a test",
    "tables": {"bow_training": {"rows": 1}},
}
Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def put(name: str = "page.html", data: bytes | None = DATA, *, without: str = "", **keys: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if data is not None:
            path.write_bytes(data)
        entry = {key: value for key, value in {**ENTRY, **keys}.items() if key != without}
        path.with_name(f"{path.name}.toml").write_text(tomli_w.dumps(entry), encoding="utf-8")
        return tmp_path

    return put


def only(raw: Path) -> Document:
    [document] = load_catalogue(raw)
    return document


def test_a_document_and_its_bytes(put: Put) -> None:
    document = only(put("deep/page.html"))
    assert (document.document_id, document.file, document.published_on) == (
        "a-page",
        "deep/page.html",
        date(2023, 7, 4),
    )
    assert document.bytes() == DATA
    assert document.record() == {
        **{key: ENTRY[key] for key in ENTRY if key not in ("tables", "reader")},
        "retrieved_on": None,
        "file": "deep/page.html",
    }


def test_carried_documents_are_what_their_sidecars_say() -> None:
    documents = load_catalogue(ROOT / "raw")
    assert [document.document_id for document in documents] == sorted(document.document_id for document in documents)
    assert all(document.bytes() for document in documents)
    assert find_orphans(ROOT / "raw", documents) == []


@pytest.mark.parametrize(
    "key", ["document_id", "title", "publisher", "url", "kind", "licence", "sha256", "reader", "note"]
)
def test_a_missing_key_is_named(put: Put, key: str) -> None:
    with pytest.raises(CatalogueError, match=rf"page.html.toml: the sidecar lacks {key}$"):
        load_catalogue(put(without=key))


def test_an_unknown_key_is_named(put: Put) -> None:
    with pytest.raises(CatalogueError, match=r"has unknown retreived_on"):
        load_catalogue(put(retreived_on=date(2023, 7, 4)))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("title", 5),
        ("sha256", ["x"]),
        ("document_id", {"a": "b"}),
        ("published_on", "2023-07-04"),
        ("retrieved_on", 2023),
        ("transcription_of", 5),
        ("fetch", "https://example.org"),
        ("fetch", {"url": 5}),
        ("tables", 7),
        ("tables", {"bow_training": 7}),
        ("tables", {"bow_training": {}}),
        ("tables", {"bow_training": {"rows": "7"}}),
        ("tables", {"bow_training": {"rows": True}}),
        ("attachments", "stamps.parquet"),
        ("attachments", {"stamps.parquet": 5}),
        ("attachments", {"stamps.parquet": "abc"}),
        ("attachments", {"../stamps.parquet": "a" * 64}),
        ("attachments", {"": "a" * 64}),
    ],
)
def test_a_key_of_the_wrong_type_is_named(put: Put, key: str, value: Any) -> None:
    with pytest.raises(CatalogueError, match=f"has no valid {key}$"):
        load_catalogue(put(**{key: value}))


@pytest.mark.parametrize("data", [b"title = ", b"\xff\xfe", b"a = 1\na = 2\n", b"\x00"])
def test_a_sidecar_that_is_no_toml_is_named(put: Put, data: bytes) -> None:
    raw = put()
    (raw / "page.html.toml").write_bytes(data)
    with pytest.raises(CatalogueError, match=r"page.html.toml: is not a readable sidecar"):
        load_catalogue(raw)


@pytest.mark.parametrize("where", ["", "no-such-folder"])
def test_a_folder_without_sidecars(tmp_path: Path, where: str) -> None:
    with pytest.raises(CatalogueError, match=r"no such folder|holds no sidecar"):
        load_catalogue(tmp_path / where)


def test_two_documents_of_one_id(put: Put) -> None:
    put("one.html")
    with pytest.raises(CatalogueError, match=r"a-page: stands in one.html and in two.html"):
        load_catalogue(put("two.html"))


def test_bytes_that_the_sidecar_does_not_vouch_for(put: Put) -> None:
    document = only(put(data=DATA + b"\n"))
    with pytest.raises(CatalogueError, match=r"a-page: page.html: sha256 is [0-9a-f]{12}…, the sidecar says") as caught:
        document.bytes()
    assert ENTRY["sha256"][:12] in str(caught.value)


def test_a_sidecar_without_its_file(put: Put) -> None:
    with pytest.raises(CatalogueError, match=r"a-page: page.html: cannot be read: No such file"):
        only(put(data=None)).bytes()


def test_a_folder_in_place_of_the_file(put: Put) -> None:
    raw = put(data=None)
    (raw / "page.html").mkdir()
    with pytest.raises(CatalogueError, match=r"cannot be read"):
        only(raw).bytes()


def test_a_file_over_the_limit(put: Put) -> None:
    document = only(put())
    assert document.bytes(max_bytes=len(DATA)) == DATA
    with pytest.raises(DocumentTooLargeError, match=f"a-page: is too large: the limit is {len(DATA) - 1:,} bytes"):
        document.bytes(max_bytes=len(DATA) - 1)
    with pytest.raises(DocumentTooLargeError):
        read_limited(document.path, "a-page", 1)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.pdf", DATA, "is not a PDF but an HTML page"),
        ("a.PDF", b"PK\x03\x04", "is not a PDF but something else"),
        ("a.html", b"%PDF-1.4\n", "is a PDF under another suffix"),
        ("a.html", b" \n", "is empty"),
        ("a.pdf", b"", "is empty"),
    ],
)
def test_a_file_that_is_not_what_its_suffix_says(put: Put, name: str, data: bytes, message: str) -> None:
    document = only(put(name, data, sha256=hashlib.sha256(data).hexdigest()))
    with pytest.raises(DamagedDocumentError, match=f"^a-page: .*{message}$"):
        document.bytes()


@pytest.mark.parametrize(("name", "data"), [("a.pdf", b"%PDF-1.4"), ("a.pdf", b"\n %PDF-1"), ("a.csv", b"a,b\n")])
def test_a_file_that_is_what_its_suffix_says(name: str, data: bytes) -> None:
    check_file_type(name, data, "a")


def test_files_that_no_sidecar_speaks_of(put: Put) -> None:
    raw = put()
    for name in ("left.pdf", "deep/other.html", "README.md", "make.py", "page.html.part"):
        (raw / name).parent.mkdir(exist_ok=True)
        (raw / name).write_bytes(b"x")
    assert find_orphans(raw, load_catalogue(raw)) == ["deep/other.html", "left.pdf"]


RUN: dict[str, Any] = {"kind": "run", "publisher": "local", "reader": "sweep-points"}


def test_a_local_run_alone_needs_no_address(put: Put) -> None:
    document = only(put(without="url", **RUN))
    assert document.url is None
    assert document.record()["url"] is None
    assert only(put(**RUN)).url == ENTRY["url"]
    with pytest.raises(CatalogueError, match=r"lacks url$"):
        load_catalogue(put(without="url"))


@pytest.mark.parametrize(
    ("keys", "wrong"),
    [
        ({"kind": "curated"}, "reader, publisher"),
        ({"reader": "page-history"}, "reader"),
        ({"publisher": "Graphcore"}, "publisher"),
        ({"kind": "curated", "reader": "page-history"}, "publisher"),
    ],
)
def test_only_a_run_has_the_readers_and_the_publisher_of_one(put: Put, keys: dict[str, str], wrong: str) -> None:
    with pytest.raises(CatalogueError, match=rf"has no valid {wrong}$"):
        load_catalogue(put(**(RUN | keys)))


def test_two_runs_may_have_the_same_bytes_and_no_other_documents(put: Put) -> None:
    put("one.csv", **RUN)
    assert len(load_catalogue(put("two.csv", document_id="another", **RUN))) == 2
    put("three.csv", document_id="third")
    with pytest.raises(CatalogueError, match=r"has the same bytes as"):
        load_catalogue(put("four.csv", document_id="fourth"))


ATTACHED = b"stamps"


@pytest.fixture
def attached(put: Put) -> Path:
    raw = put("deep/points.csv", attachments={"stamps.parquet": hashlib.sha256(ATTACHED).hexdigest()})
    (raw / "deep" / "stamps.parquet").write_bytes(ATTACHED)
    return raw


def test_an_attachment_belongs_to_its_document(attached: Path) -> None:
    document = only(attached)
    assert document.bytes() == DATA
    assert find_orphans(attached, [document]) == []
    (attached / "stamps.parquet").write_bytes(ATTACHED)
    assert find_orphans(attached, [document]) == ["stamps.parquet"]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path: path.unlink(), "cannot be read: No such file or directory"),
        (lambda path: path.write_bytes(ATTACHED[:-1]), "sha256 is [0-9a-f]{12}…, the sidecar says .* was changed"),
        (lambda path: (path.unlink(), path.mkdir()), "cannot be read: Is a directory"),
    ],
)
def test_a_damaged_attachment_is_named(attached: Path, damage: Callable[[Path], object], told: str) -> None:
    damage(attached / "deep" / "stamps.parquet")
    with pytest.raises(CatalogueError, match=f"^a-page: stamps.parquet: {told}$"):
        only(attached).bytes()


def test_an_unfinished_run_is_passed_over_whole(put: Put) -> None:
    raw = put()
    folder = raw / "runs" / "20261121-134501-x.unfinished"
    (folder / "deep").mkdir(parents=True)
    for name in ("journal.jsonl", "points.csv", "deep/stamps.parquet"):
        (folder / name).write_bytes(b"x")
        (folder / f"{name}.toml").write_bytes(b"no sidecar")
    assert only(raw).document_id == "a-page"
    assert find_orphans(raw, load_catalogue(raw)) == []
    assert find_unfinished_runs(raw) == ["20261121-134501-x"]
    (raw / "a.unfinished").write_bytes(b"a file of that name is a file like others")
    assert (find_orphans(raw, load_catalogue(raw)), find_unfinished_runs(raw)) == (
        ["a.unfinished"],
        ["20261121-134501-x"],
    )


def test_every_error_is_one_line_that_names_the_document(put: Put) -> None:
    for keys in ({"data": b"x"}, {"data": None}, {"name": "page.pdf"}):
        raw = put(**keys)
        [document] = [d for d in load_catalogue(raw) if d.file == keys.get("name", "page.html")]
        with pytest.raises((CatalogueError, DocumentError)) as caught:
            document.bytes()
        assert str(caught.value).startswith("a-page: ")
        assert "\n" not in str(caught.value)
        document.path.with_name(f"{document.path.name}.toml").unlink()
