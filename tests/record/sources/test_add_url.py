"""`ipu-results add URL`: one download within limits, then the draft as for a file."""

from __future__ import annotations

import errno
import hashlib
import os
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ipu_results.errors import FetchError
from ipu_results.record.sources import download as download_module
from ipu_results.record.sources.catalogue import load_catalogue
from ipu_results.record.sources.download import download

from tests.cases import every_case
from tests.conftest import PAPER, RAW, get_failure, read_files, run_cli
from tests.record.dataset.test_add import fill_in
from tests.record.read.reading_support import GPT2, RESNET, training_page
from tests.record.sources.http_support import Handler, Responder, Server, run_server

PAGE = training_page(GPT2, RESNET)


@pytest.fixture
def site() -> Iterator[Server]:
    with run_server() as running:
        yield running


def send(body: bytes, **options: Any) -> Responder:
    return lambda handler: handler.send(body, **options)


def redirect(location: str) -> Responder:
    return lambda handler: handler.send(status=302, Location=location)


def test_download_is_saved_with_its_drafted_sidecar(site: Server, tmp_path: Path) -> None:
    last = site.on("/b", send(PAGE, kind="text/html; charset=utf-8"))
    url = site.on("/results/L2(new)?x=1", redirect(last))
    raw = tmp_path / "raw"
    done = run_cli("add", url, "--raw", raw)
    assert (done.returncode, done.stderr) == (0, "")
    assert "table bow_training: 2 rows" in done.stdout
    file = raw / "downloads" / "127.0.0.1" / "L2-new.html"
    assert file.read_bytes() == PAGE
    entry = tomllib.loads(file.with_name(f"{file.name}.toml").read_text(encoding="utf-8"))
    assert (entry["document_id"], entry["kind"]) == ("127.0.0.1-l2-new", "capture")
    assert (entry["url"], entry["retrieved_on"]) == (url, datetime.now(UTC).date())
    assert entry["sha256"] == hashlib.sha256(PAGE).hexdigest()
    fill_in(file)
    [document] = load_catalogue(raw)
    assert document.read_bytes() == PAGE
    assert "L2-new.html: exists: remove it first" in get_failure("add", url, "--raw", raw)


def test_next_command_names_the_folder_and_a_new_download_its_address(
    site: Server, tmp_path: Path
) -> None:
    raw = tmp_path / "raw of mine"
    first = site.on("/page?version=1", send(PAGE))
    second = site.on("/page?version=2", send(PAGE))
    done = run_cli("add", first, "--raw", raw)
    file = raw / "downloads" / "127.0.0.1" / "page.html"
    assert f"\nnext: ipu-results add '{file}' --dry-run --raw '{raw}'\n" in done.stdout
    file.unlink()
    assert run_cli("add", second, "--raw", raw, "--force").returncode == 0
    entry = tomllib.loads(file.with_name("page.html.toml").read_text(encoding="utf-8"))
    assert entry["url"] == second


def test_download_is_not_written_through_a_link(site: Server, tmp_path: Path) -> None:
    url = site.on("/page", send(PAGE))
    downloads = tmp_path / "raw" / "downloads"
    downloads.parent.mkdir()
    (tmp_path / "elsewhere").mkdir()
    downloads.symlink_to(tmp_path / "elsewhere")
    line = get_failure("add", url, "--raw", tmp_path / "raw")
    assert "downloads/127.0.0.1: leads out of" in line
    downloads.unlink()
    (downloads / "127.0.0.1").mkdir(parents=True)
    (downloads / "127.0.0.1" / "page.html").symlink_to(tmp_path / "elsewhere" / "evil")
    assert "page.html: exists" in get_failure("add", url, "--raw", tmp_path / "raw")
    assert read_files(tmp_path) == {}


def test_paper_is_downloaded_and_printed_and_nothing_stays(site: Server, tmp_path: Path) -> None:
    data = (RAW / PAPER).read_bytes()
    url = site.on("/pdf/2002.11670", send(data, kind="application/pdf"))
    done = run_cli("add", url, "--raw", tmp_path / "raw", "--print")
    assert done.stdout == run_cli("extract", RAW / PAPER).stdout
    done = run_cli("add", url, "--raw", tmp_path / "raw", "--dry-run")
    assert done.stdout.startswith("127.0.0.1-2002.11670: 18 rows, 18 accepted")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("path", "kind", "name"),
    [
        ("/", "text/html", "index.html"),
        ("/a/b.htm", "application/xhtml+xml", "b.html"),
        ("/a/..%2Fpasswd", "text/plain", "passwd.txt"),
        ("/rows.CSV", "text/plain", "rows.csv"),
        ("/.hidden", "text/csv", "hidden.csv"),
        ("/" + "%E8%A1%A8" * 99, "text/csv", f"{'表' * 33}.csv"),  # 100 bytes, and no half of one
    ],
)
def test_file_is_named_after_the_path_and_the_type(
    site: Server, path: str, kind: str, name: str
) -> None:
    document = download(site.on(path, send(b"x", kind=kind)))
    assert (document.folder, document.name) == ("127.0.0.1", name)


def send_without_end(handler: Handler) -> None:
    handler.send(length=10**9, kind="application/pdf")
    handler.drip(b"x" * 50_000, 0)


def drip_body(handler: Handler) -> None:
    handler.send(length=1000)
    handler.drip(b"x", 0.05)


def drip_headers(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    handler.drip(b"x", 0.05)


@pytest.fixture
def _little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download_module, "MAX_BYTES", 50_000)
    monkeypatch.setattr(download_module, "MAX_SILENCE_S", 0.3)
    monkeypatch.setattr(download_module, "MAX_DOWNLOAD_S", 0.8)


TOO_LARGE = "larger than the limit of 50,000 bytes"
NO_ADDRESS = "redirects to what is not an http address"
FAILURES: dict[str, tuple[Responder, str]] = {
    "too large": (send(b"", length=60_000), TOO_LARGE),
    "endless": (send_without_end, TOO_LARGE),
    "silent": (lambda own: own.server.over.wait(20), "sent nothing for 0.3 s"),
    "slow body": (drip_body, "not done within 0.8 s"),
    "slow headers": (drip_headers, "not done within 0.8 s"),
    "interrupted": (send(PAGE[:99], length=len(PAGE)), "IncompleteRead(99 bytes"),
    "wrong type": (send(b"PK", kind="application/zip"), "is of type 'application/zip', not one of"),
    "packed": (send(PAGE, Content_Encoding="gzip"), "in the encoding 'gzip'"),
    "404": (send(PAGE, status=404), "the server answers 404"),
    "redirect loop": (redirect("/page.html"), "more than 5 redirects"),
    "redirect to a file": (redirect("file:///etc/passwd"), NO_ADDRESS),
    "redirect to a password": (redirect("http://me:secret@127.0.0.1/"), NO_ADDRESS),
    "redirect to nonsense": (redirect("http://[::1"), NO_ADDRESS),
    "not HTTP": (lambda own: own.wfile.write(b"SSH-2.0\r\n"), "SSH-2.0"),
    "unknown table": (send(b"<table><tr><td>1</table>"), "no table with a known"),
    "page for a PDF": (send(PAGE, kind="application/pdf"), "is not a PDF but"),
}


@pytest.mark.usefixtures("_little_time")
@pytest.mark.parametrize(("respond", "message"), FAILURES.values(), ids=FAILURES)
def test_failure_is_one_line_and_leaves_nothing(
    site: Server, tmp_path: Path, respond: Responder, message: str
) -> None:
    line = get_failure("add", site.on("/page.html", respond), "--raw", tmp_path / "raw")
    assert line.startswith("error: ")
    assert message in line
    assert "secret" not in line
    assert [*tmp_path.iterdir()] == []


@every_case(__file__, "address")
def test_address_that_cannot_be_downloaded_is_one_line(url: str, message: str) -> None:
    line = get_failure("add", url)
    assert message in line
    assert "secret" not in line


def test_redirect_from_https_to_http_is_refused() -> None:
    resolve = download_module._resolve_redirect
    assert resolve("", "https://a.org/x", "/y") == "https://a.org/y"
    assert resolve("", "http://a.org/x", "https://b.org/y") == "https://b.org/y"
    with pytest.raises(FetchError, match="redirects from https to http"):
        resolve("https://a.org/x", "https://a.org/x", "http://a.org/y")


def test_no_password_of_the_user_is_sent(
    site: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    assert download(site.on("/", send(PAGE))).data == PAGE
    assert site.authorisations == [None]


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()]
)
@pytest.mark.parametrize("suffix", [".html", ".toml"])
def test_full_disk_or_interrupt_leaves_nothing(
    site: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, error: BaseException
) -> None:
    rename = os.replace

    def replace(source: Path, target: Path) -> None:
        if target.suffix == suffix:
            raise error
        rename(source, target)

    monkeypatch.setattr(os, "replace", replace)
    url = site.on("/page.html", send(PAGE))
    assert get_failure("add", url, "--raw", tmp_path / "raw")
    assert [*tmp_path.iterdir()] == []
