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
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import PAGE, PAGE_ID, PAPER_ID, RAW, copy_documents, run_cli, run_process
from ipu_results.sources.capture import capture as capture_module
from ipu_results.sources.capture.capture import capture
from ipu_results.sources.capture.download import Download
from ipu_results.sources.catalogue import find_orphans, load_catalogue

PAPER = "qwant/resnext101-c2-2020-02-28.pdf"


@dataclass
class Site:
    """What the server sends, by path: status, type and body. With `meeting`, bodies wait for each other halfway."""

    address: str = ""
    responses: dict[str, tuple[int, str, bytes]] = field(default_factory=dict)
    meeting: threading.Barrier | None = None


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, kind, body = site.responses.get(self.path, (404, "text/html", b"<html>gone</html>"))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2])
            if site.meeting:
                site.meeting.wait(timeout=60)
            self.wfile.write(body[len(body) // 2 :])

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Ignore clients that hang up early."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    site.address = f"http://127.0.0.1:{server.server_port}"
    yield site
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def served(tmp_path: Path, site: Site) -> Path:
    """Copy documents, with addresses on the local site."""
    raw = copy_documents(tmp_path / "raw", PAGE, PAPER)
    for file, path in ((PAGE, "/page"), (PAPER, "/paper")):
        sidecar = raw / f"{file}.toml"
        text = re.sub(r'\nurl = "[^"]+"', f'\nurl = "{site.address}{path}"', sidecar.read_text(encoding="utf-8"))
        sidecar.write_text(text, encoding="utf-8")
    site.responses["/page"] = (200, "text/html; charset=utf-8", (RAW / PAGE).read_bytes().replace(b"6,044", b"6,045"))
    site.responses["/paper"] = (200, "application/pdf", (RAW / PAPER).read_bytes())
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
        "graphcore-performance",
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
    sql = "SELECT document_id, kind, table_name, locator, transcribed, captured FROM capture_differences"
    rows = json.loads(run_cli("query", "--warehouse", target, "--format", "json", sql).stdout)
    assert [list(row.values()) for row in rows] == [
        [PAGE_ID, "cell", "bow_training", "table 2, row 1, column 9 (Throughput (items/sec))", "6,044", "6,045"]
    ]
    kinds = "SELECT kind, count(*) AS n FROM documents GROUP BY 1 ORDER BY 1"
    counted = json.loads(run_cli("query", "--warehouse", target, "--format", "json", kinds).stdout)
    counts = {"capture": 1, "transcription": 2}
    assert counted == [{"kind": kind, "n": n} for kind, n in counts.items()]
    assert run_cli("ingest", "--strict", "--raw", served, "--warehouse", target).returncode == 1


def test_fetch_without_names_fetches_every_document_with_an_address(served: Path) -> None:
    done = run_cli("fetch", "--raw", served)
    assert done.returncode == 0, done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [PAGE_ID, PAPER_ID]
    assert f"{PAPER_ID}: unchanged since {PAPER_ID}" in done.stdout
    assert len(captures(served)) == 1


def test_unchanged_document_is_not_kept_twice(served: Path) -> None:
    assert run_cli("fetch", PAGE_ID, "--raw", served).returncode == 0
    again = run_cli("fetch", PAGE_ID, "--raw", served)
    assert again.returncode == 0
    assert f"unchanged since {PAGE_ID}@" in again.stdout
    assert len(captures(served)) == 1


def test_page_without_tables_is_kept_and_reported(served: Path, site: Site) -> None:
    site.responses["/page"] = (200, "text/html", b"<html><body><h1>We have moved</h1></body></html>")
    done = run_cli("fetch", PAGE_ID, "--raw", served)
    assert done.returncode == 0
    assert re.search(rf"finding: capture cannot be read: {PAGE_ID}@\w+: document: has no table", done.stderr)


@pytest.mark.parametrize(
    ("response", "word"),
    [
        ((404, "text/html", b"<html>gone</html>"), "404"),
        ((200, "application/pdf", b"%PDF-1.7"), "came as application/pdf"),
        ((200, "text/html", b""), "empty"),
        ((200, "text/html", b"<html>\xff\xfe\xfd</html>"), "not text"),
    ],
)
def test_failed_download_leaves_nothing_and_is_one_line(
    served: Path, site: Site, response: tuple[int, str, bytes], word: str
) -> None:
    site.responses["/page"] = response
    before = sorted(path for path in served.rglob("*"))
    done = run_cli("fetch", PAGE_ID, "--raw", served, "--retries", "0")
    assert done.returncode == 1
    assert word in done.stderr
    assert done.stderr.startswith(f"error: {PAGE_ID}: ")
    assert len(done.stderr.splitlines()) == 1
    assert sorted(path for path in served.rglob("*")) == before


def test_other_documents_are_fetched_after_a_failure(served: Path, site: Site) -> None:
    del site.responses["/page"]
    done = run_cli("fetch", "--raw", served, "--retries", "0")
    assert done.returncode == 1
    assert f"error: {PAGE_ID}: " in done.stderr
    assert f"{PAPER_ID}: unchanged" in done.stdout


def test_download_over_the_limit_is_refused(served: Path) -> None:
    done = run_cli("fetch", PAGE_ID, "--raw", served, "--max-size", "0.001", "--retries", "0")
    assert done.returncode == 1
    assert "limit of 1000 bytes" in done.stderr
    assert captures(served) == []


@pytest.mark.slow
def test_concurrent_fetches_of_one_document_keep_two_captures(served: Path, site: Site) -> None:
    site.meeting = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: run_process("fetch", PAGE_ID, "--raw", served), range(2)))
    assert [(done.returncode, "captured as" in done.stdout) for done in both] == [(0, True)] * 2, both
    documents = load_catalogue(served)
    assert sum(document.kind == "capture" for document in documents) == len(captures(served)) == 2
    assert all(document.read_bytes() for document in documents)
    assert find_orphans(served, documents) == list(served.rglob("*.part")) == []


def test_captures_of_the_same_second_have_two_names(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = iter([b"<html>1</html>", b"<html>2</html>"])
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    monkeypatch.setattr(capture_module, "download", lambda *_, **__: Download(next(bodies), "text/html", moment))
    documents = load_catalogue(raw)
    [page] = [document for document in documents if document.document_id == PAGE_ID]
    kept = [capture(page, documents) for _ in range(2)]
    assert [result.document_id for result in kept] == [f"{PAGE_ID}@20260102t030405z", f"{PAGE_ID}@20260102t030405z-2"]
    assert [result.path.read_bytes() for result in kept] == [b"<html>1</html>", b"<html>2</html>"]
    assert len(load_catalogue(raw)) == len(documents) + 2


@pytest.mark.parametrize("step", ["draft", "capture", "sidecar"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()])
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
def test_page_in_its_declared_encoding_is_kept(served: Path, site: Site, kind: str, meta: bytes) -> None:
    site.responses["/page"] = (200, kind, b"<html><head>" + meta + b"</head><body>1 \x96 2</body></html>")
    done = run_cli("fetch", PAGE_ID, "--raw", served, "--retries", "0")
    assert done.returncode == 0, done.stderr
    assert len(captures(served)) == 1


@pytest.mark.slow
def test_changed_capture_does_not_stop_a_build(served: Path, tmp_path: Path) -> None:
    assert run_cli("fetch", PAGE_ID, "--raw", served).returncode == 0
    (path,) = captures(served)
    path.write_bytes(path.read_bytes() + b" ")
    done = run_cli("ingest", "--raw", served, "--warehouse", tmp_path / "warehouse")
    assert done.returncode == 0, done.stderr
    assert re.search(rf"finding: capture cannot be read: {PAGE_ID}@\w+: .*sha256 is", done.stderr)
