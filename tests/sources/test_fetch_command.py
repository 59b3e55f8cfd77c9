"""The command `fetch`: captures next to transcriptions, compared cell by cell, adding no rows."""

from __future__ import annotations

import errno
import json
import os
import re
import threading
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ipu_results.sources import download as download_module
from ipu_results.sources.capture import capture
from ipu_results.sources.catalogue import find_orphans, load_catalogue
from ipu_results.sources.download import Download

from tests.conftest import PAGE, PAGE_ID, PAPER_ID, RAW, copy_documents, run_cli, run_process
from tests.sources.http_support import Handler, Server, run_server

PAPER = "qwant/resnext101-c2-2020-02-28.pdf"


@pytest.fixture
def site() -> Iterator[Server]:
    with run_server() as running:
        yield running


def serve(site: Server, path: str, body: bytes, kind: str = "text/html", status: int = 200) -> str:
    return site.on(lambda handler, _: handler.send(body, kind=kind, status=status), path)


@pytest.fixture
def served(tmp_path: Path, site: Server) -> Path:
    """Copy documents, with addresses on the local site."""
    raw = copy_documents(tmp_path / "raw", PAGE, PAPER)
    page = serve(
        site,
        "/page",
        (RAW / PAGE).read_bytes().replace(b"6,044", b"6,045"),
        "text/html; charset=utf-8",
    )
    paper = serve(site, "/paper", (RAW / PAPER).read_bytes(), "application/pdf")
    for file, url in ((PAGE, page), (PAPER, paper)):
        sidecar = raw / f"{file}.toml"
        text = re.sub(r'\nurl = "[^"]+"', f'\nurl = "{url}"', sidecar.read_text(encoding="utf-8"))
        sidecar.write_text(text, encoding="utf-8")
    return raw


def captures(raw: Path) -> list[Path]:
    return sorted(path for path in raw.rglob("*.capture-*") if path.suffix != ".toml")


def test_fetched_document_becomes_a_capture_next_to_its_transcription(served: Path) -> None:
    done = run_cli("fetch", PAGE_ID, "--raw", served)
    assert done.returncode == 0, done.stderr
    assert f"{PAGE_ID}: captured as {PAGE_ID}@" in done.stdout
    (path,) = captures(served)
    assert path.parent == served / "graphcore"
    sidecar = tomllib.loads((path.parent / f"{path.name}.toml").read_text(encoding="utf-8"))
    assert (sidecar["kind"], sidecar["transcription_of"], sidecar["reader"]) == (
        "capture",
        PAGE_ID,
        "performance-page",
    )
    assert len(sidecar["sha256"]) == 64
    assert "finding: capture differs: " in done.stderr
    assert "'6,044' here, '6,045' there" in done.stderr


@pytest.mark.slow
def test_ingest_reports_every_differing_cell_and_adds_no_rows(served: Path, tmp_path: Path) -> None:
    assert run_cli("fetch", PAGE_ID, "--raw", served).returncode == 0
    target = tmp_path / "warehouse"
    done = run_cli("ingest", "--raw", served, "--warehouse", target)
    assert done.returncode == 0
    assert "254 results" in done.stdout
    assert len(done.stderr.splitlines()) == 1
    sql = (
        "SELECT document_id, kind, table_name, locator, transcribed, captured FROM"
        " capture_differences"
    )
    rows = json.loads(run_cli("query", "--warehouse", target, "--format", "json", sql).stdout)
    assert [list(row.values()) for row in rows] == [
        [
            PAGE_ID,
            "cell",
            "bow_training",
            "table 2, row 1, column 9 (Throughput (items/sec))",
            "6,044",
            "6,045",
        ]
    ]
    kinds = "SELECT kind, count(*) AS n FROM documents GROUP BY 1 ORDER BY 1"
    counted = json.loads(run_cli("query", "--warehouse", target, "--format", "json", kinds).stdout)
    counts = {"capture": 1, "transcription": 2}
    assert counted == [{"kind": kind, "n": n} for kind, n in counts.items()]
    assert run_cli("ingest", "--strict", "--raw", served, "--warehouse", target).returncode == 1
    (path,) = captures(served)
    path.write_bytes(path.read_bytes() + b" ")
    changed = run_cli("ingest", "--raw", served, "--warehouse", target)
    assert changed.returncode == 0, changed.stderr
    assert re.search(
        rf"finding: capture cannot be read: {PAGE_ID}@\w+: .*sha256 is", changed.stderr
    )


def test_fetch_without_names_fetches_every_document_with_an_address(served: Path) -> None:
    done = run_cli("fetch", "--raw", served)
    assert done.returncode == 0, done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [PAGE_ID, PAPER_ID]
    assert f"{PAPER_ID}: unchanged since {PAPER_ID}" in done.stdout
    assert len(captures(served)) == 1
    again = run_cli("fetch", PAGE_ID, "--raw", served)
    assert f"unchanged since {PAGE_ID}@" in again.stdout
    assert (again.returncode, len(captures(served))) == (0, 1)


def test_page_without_tables_is_kept_and_reported(served: Path, site: Server) -> None:
    serve(site, "/page", b"<html><body><h1>We have moved</h1></body></html>")
    done = run_cli("fetch", PAGE_ID, "--raw", served)
    assert done.returncode == 0
    assert re.search(
        rf"finding: capture cannot be read: {PAGE_ID}@\w+: document: has no table", done.stderr
    )


@pytest.mark.parametrize(
    ("response", "word"),
    [
        ((b"<html>gone</html>", "text/html", 404), "404"),
        ((b"%PDF-1.7", "application/pdf"), "came as application/pdf"),
        ((b"",), "empty"),
        ((b"<html>\xff\xfe\xfd</html>",), "not text"),
        ((b"<html>" + b" " * 1000,), "limit of 1000 bytes"),
    ],
)
def test_failed_download_leaves_nothing_and_is_one_line(
    served: Path, site: Server, response: tuple[Any, ...], word: str
) -> None:
    serve(site, "/page", *response)
    before = sorted(path for path in served.rglob("*"))
    done = run_cli("fetch", PAGE_ID, "--raw", served, "--retries", "0", "--max-size", "0.001")
    assert done.returncode == 1
    assert word in done.stderr
    assert done.stderr.startswith(f"error: {PAGE_ID}: ")
    assert len(done.stderr.splitlines()) == 1
    assert sorted(path for path in served.rglob("*")) == before


def test_other_documents_are_fetched_after_a_failure(served: Path, site: Server) -> None:
    serve(site, "/page", b"", status=404)
    done = run_cli("fetch", "--raw", served, "--retries", "0")
    assert done.returncode == 1
    assert f"error: {PAGE_ID}: " in done.stderr
    assert f"{PAPER_ID}: unchanged" in done.stdout


@pytest.mark.slow
def test_concurrent_fetches_of_one_document_keep_two_captures(served: Path, site: Server) -> None:
    meeting = threading.Barrier(2)

    def respond(handler: Handler, _: int) -> None:
        meeting.wait(timeout=600)
        handler.send()

    site.on(respond, "/page")
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: run_process("fetch", PAGE_ID, "--raw", served), range(2)))
    assert [(done.returncode, "captured as" in done.stdout) for done in both] == [(0, True)] * 2, (
        both
    )
    documents = load_catalogue(served)
    assert sum(document.kind == "capture" for document in documents) == len(captures(served)) == 2
    assert all(document.read_bytes() for document in documents)
    assert find_orphans(served, documents) == list(served.rglob("*.part")) == []


def test_captures_of_the_same_second_have_two_names(
    raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = iter([b"<html>1</html>", b"<html>2</html>"])
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    monkeypatch.setattr(
        download_module, "download", lambda *_, **__: Download(next(bodies), "text/html", moment)
    )
    documents = load_catalogue(raw)
    [page] = [document for document in documents if document.document_id == PAGE_ID]
    kept = [capture(page, documents) for _ in range(2)]
    assert [result.document_id for result in kept] == [
        f"{PAGE_ID}@20260102t030405z",
        f"{PAGE_ID}@20260102t030405z-2",
    ]
    assert [result.path.read_bytes() for result in kept] == [b"<html>1</html>", b"<html>2</html>"]
    assert len(load_catalogue(raw)) == len(documents) + 2


@pytest.mark.parametrize("step", ["draft", "capture", "sidecar"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()]
)
def test_full_disk_or_interrupt_leaves_nothing_and_is_one_line(
    served: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    before = sorted(served.rglob("*"))
    rename = os.replace

    def fail(*_: object) -> int:
        raise error

    def replace(source: Path, target: Path) -> None:
        if ".capture-" in target.name and (target.suffix == ".toml") == (step == "sidecar"):
            fail()
        rename(source, target)

    if step == "draft":
        monkeypatch.setattr(Path, "write_bytes", fail)
    else:
        monkeypatch.setattr(os, "replace", replace)
    done = run_cli("fetch", PAGE_ID, "--raw", served, "--retries", "0")
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1
    if isinstance(error, OSError):
        assert done.stderr.startswith(f"error: {PAGE_ID}: ")
        assert "cannot be written: No space left on device" in done.stderr
    assert sorted(served.rglob("*")) == before


@pytest.mark.parametrize(
    ("kind", "meta"),
    [("text/html; charset=windows-1252", b""), ("text/html", b'<meta charset="windows-1252">')],
)
def test_page_in_its_declared_encoding_is_kept(
    served: Path, site: Server, kind: str, meta: bytes
) -> None:
    serve(site, "/page", b"<html><head>" + meta + b"</head><body>1 \x96 2</body></html>", kind)
    done = run_cli("fetch", PAGE_ID, "--raw", served, "--retries", "0")
    assert done.returncode == 0, done.stderr
    assert len(captures(served)) == 1
