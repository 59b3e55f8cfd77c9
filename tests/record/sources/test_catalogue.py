"""Sidecars, and the bytes that they describe."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from ipu_results.errors import CatalogueError, DamagedDocumentError, DocumentTooLargeError
from ipu_results.record.sources import catalogue
from ipu_results.record.sources.catalogue import (
    Document,
    check_file_type,
    find_orphans,
    find_unfinished_copies,
    find_unfinished_runs,
    load_catalogue,
)

from tests.cases import every_case
from tests.conftest import RAW

DATA = b"<html><body>a page</body></html>\n"
ATTACHED = b"stamps"
ENTRY: dict[str, Any] = {
    "document_id": "a-page",
    "title": "A page",
    "publisher": "Somebody",
    "url": "https://example.org/page",
    "published_on": date(2023, 7, 4),
    "kind": "transcription",
    "licence": "none",
    "sha256": hashlib.sha256(DATA).hexdigest(),
    "reader": "performance-page",
    "note": "made for a test",
    "tables": {"bow_training": {"rows": 1}},
}
RUN: dict[str, Any] = {"kind": "run", "publisher": "local", "reader": "sweep-points"}
Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Write a document with its sidecar; `keys` are added to ENTRY, `without` is left out."""

    def put(
        name: str = "page.html", data: bytes | None = DATA, *, without: str = "", **keys: Any
    ) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if data is not None:
            path.write_bytes(data)
        entry = {key: value for key, value in {**ENTRY, **keys}.items() if key != without}
        path.with_name(f"{path.name}.toml").write_text(tomli_w.dumps(entry), encoding="utf-8")
        return tmp_path

    return put


def load_single(raw: Path) -> Document:
    [document] = load_catalogue(raw)
    return document


def test_sidecar_becomes_a_document_with_its_bytes(put: Put) -> None:
    document = load_single(put("deep/page.html"))
    assert (document.file, document.published_on) == ("deep/page.html", date(2023, 7, 4))
    assert document.read_bytes() == DATA
    stated = {**ENTRY, "file": "deep/page.html"}
    del stated["tables"], stated["reader"]
    recorded = document.record()
    assert {name: value for name, value in recorded.items() if value is not None} == stated


def test_all_missing_and_unknown_keys_are_named_with_the_accepted_words(put: Put) -> None:
    with pytest.raises(CatalogueError) as caught:
        load_catalogue(put(without="kind", retreived_on=date(2023, 7, 4)))
    message = str(caught.value)
    assert "missing required field `kind` (one of transcription, derived, curated" in message
    assert "unknown field `retreived_on`, nearest: `retrieved_on`" in message


def test_committed_documents_match_their_sidecars() -> None:
    documents = load_catalogue(RAW)
    ids = [document.document_id for document in documents]
    assert ids == sorted(ids)
    assert all(document.read_bytes() for document in documents)
    assert find_orphans(RAW, documents) == []


@every_case(__file__, "invalid")
def test_invalid_sidecar_is_refused_and_the_key_named(
    put: Put, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(CatalogueError) as caught:
        load_catalogue(put(**keys))
    assert str(caught.value).startswith("page.html.toml: the sidecar is invalid: ")
    assert message in str(caught.value)


@pytest.mark.parametrize("data", [b"title = ", b"\xff\xfe", b"a = 1\na = 2\n"])
def test_sidecar_that_is_not_toml_is_named(put: Put, data: bytes) -> None:
    raw = put()
    (raw / "page.html.toml").write_bytes(data)
    with pytest.raises(CatalogueError, match=r"page.html.toml: is not a readable sidecar"):
        load_catalogue(raw)


def test_folder_without_sidecars_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="contains no sidecar"):
        load_catalogue(tmp_path)
    with pytest.raises(CatalogueError, match="no-such-folder: no such folder"):
        load_catalogue(tmp_path / "no-such-folder")


def test_two_documents_with_one_id_or_the_same_bytes_are_refused_except_runs(
    put: Put, tmp_path: Path
) -> None:
    run = {**RUN, "document_id": "sweep-one-points"}
    put("one/a.csv", without="url", **run)
    same_id = r"sweep-one-points: is the id of both one/\w.csv and one/\w.csv"
    with pytest.raises(CatalogueError, match=same_id):
        load_catalogue(put("one/b.csv", **run))
    (tmp_path / "one/b.csv.toml").unlink()
    documents = load_catalogue(put("two/a.csv", **{**run, "document_id": "sweep-two-points"}))
    assert [document.record()["url"] for document in documents] == [None, ENTRY["url"]]
    put("three.csv", document_id="third")
    with pytest.raises(CatalogueError, match=r"has the same bytes as"):
        load_catalogue(put("four.csv", document_id="fourth"))


def test_changed_missing_or_oversized_file_is_named(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = f"a-page: page.html: sha256 is [0-9a-f]{{12}}…, the sidecar says {ENTRY['sha256'][:12]}"
    with pytest.raises(CatalogueError, match=wrong):
        load_single(put(data=DATA + b"\n")).read_bytes()
    document = load_single(put())
    monkeypatch.setattr(catalogue, "MAX_BYTES", len(DATA))
    assert document.read_bytes() == DATA
    monkeypatch.setattr(catalogue, "MAX_BYTES", len(DATA) - 1)
    too_large = f"a-page: is too large: the limit is {len(DATA) - 1:,} bytes"
    with pytest.raises(DocumentTooLargeError, match=too_large):
        document.read_bytes()
    document.path.unlink()
    with pytest.raises(CatalogueError, match=r"a-page: page.html: cannot be read: No such file"):
        document.read_bytes()


@pytest.mark.parametrize(
    ("name", "data"), [("a.pdf", b"%PDF-1.4"), ("a.pdf", b"\n %PDF-1"), ("a.csv", b"a,b\n")]
)
def test_file_of_its_type_is_accepted(name: str, data: bytes) -> None:
    check_file_type(name, data, "a-page")


@every_case(__file__, "other_type")
def test_file_type_must_match_the_suffix(name: str, text: str, message: str) -> None:
    with pytest.raises(DamagedDocumentError, match=f"^a-page: .*{message}$"):
        check_file_type(name, text.encode(), "a-page")


def test_files_without_a_sidecar_are_listed(put: Put) -> None:
    raw = put()
    for name in ("left.pdf", "deep/other.html", "README.md", "make.py", "page.html.part"):
        (raw / name).parent.mkdir(exist_ok=True)
        (raw / name).write_bytes(b"x")
    assert find_orphans(raw, load_catalogue(raw)) == ["deep/other.html", "left.pdf"]


def test_attachment_belongs_to_its_document(attached: Path) -> None:
    document = load_single(attached)
    assert document.read_bytes() == DATA
    assert find_orphans(attached, [document]) == []
    (attached / "stamps.parquet").write_bytes(ATTACHED)
    assert find_orphans(attached, [document]) == ["stamps.parquet"]


@pytest.fixture
def attached(put: Put) -> Path:
    raw = put(
        "deep/points.csv", attachments={"stamps.parquet": hashlib.sha256(ATTACHED).hexdigest()}
    )
    (raw / "deep" / "stamps.parquet").write_bytes(ATTACHED)
    return raw


def test_linked_folder_is_refused(put: Put) -> None:
    """No file behind the link would be found: a build would lose all of them without a word."""
    raw = put()
    (raw.parent / "elsewhere").mkdir()
    (raw / "runs").symlink_to(raw.parent / "elsewhere")
    with pytest.raises(CatalogueError, match=r"^runs: is a link: copy the folder itself$"):
        load_catalogue(raw)


def test_unfinished_run_is_skipped_as_a_whole(put: Put) -> None:
    raw = put()
    folder = raw / "runs" / "20261121-134501-x.unfinished"
    (folder / "deep").mkdir(parents=True)
    for name in ("journal.jsonl", "points.csv", "deep/stamps.parquet"):
        (folder / name).write_bytes(b"x")
        (folder / f"{name}.toml").write_bytes(b"not a sidecar")
    assert load_single(raw).document_id == "a-page"
    assert find_unfinished_runs(raw) == ["20261121-134501-x"]
    (raw / "runs" / "copied.part").mkdir()
    assert find_unfinished_copies(raw) == ["runs/copied.part"]
    (raw / "a.unfinished").write_bytes(b"a file, not a folder")
    assert find_orphans(raw, load_catalogue(raw)) == ["a.unfinished"]
