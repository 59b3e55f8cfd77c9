"""Pages that show something else than they say are told or read as shown: with Chromium where it is
installed, and by the list of plain elements where it is not.
"""

from __future__ import annotations

import json
import quopri
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from ipu_results.add import AddConfig, add_source, extract
from ipu_results.errors import BrowserError, UnprovenDocumentError
from ipu_results.record.read import ParsedDocument
from ipu_results.record.read.document import Words
from ipu_results.record.read.html import read_html
from ipu_results.record.read.html.shown import parse_shown
from ipu_results.record.sources import browser
from ipu_results.record.sources.browser import Browser, find_modules, is_installed

from tests.cases import every_case
from tests.record.read.reading_support import (
    GPT2,
    LAYOUTS,
    RESNET,
    assert_read,
    training_page,
)

HOSTILE = Path(__file__).resolve().parents[2] / "corpus" / "hostile"
TRUTH = json.loads((HOSTILE / "truth.json").read_text(encoding="utf-8"))
CONTEXT = frozenset({"html_h359.html", "html_h411.html", "html_h799.html"})
"""What words near the table and its language mean is not for a browser to say."""
PLAIN = frozenset({"html_h505.html", "html_h571.html"})
COLUMNS = ("Batch Size", "Throughput (items/sec)", "Latency (ms)")
needs_browser = pytest.mark.skipif(
    not is_installed(), reason="needs Chromium and the Node packages of site/"
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    folder = find_modules()
    assert folder is not None
    with Browser(folder) as opened:
        yield opened


def read_rows(document: ParsedDocument) -> list[list[float]]:
    rows = []
    for table in document.tables:
        for row in table.rows:
            texts = dict(zip(table.columns, row.cells, strict=True))
            rows.append([float(texts[name].replace(",", "")) for name in COLUMNS])
    return rows


def assert_told_or_exact(document: ParsedDocument, shown: list[list[float]]) -> None:
    rows = read_rows(document)
    assert [row for row in rows if row not in shown] == []
    assert rows == shown or document.problems


@pytest.mark.parametrize("name", sorted(TRUTH.keys() - CONTEXT))
def test_hostile_page_is_told_or_exact_without_a_browser(name: str) -> None:
    data = (HOSTILE / name).read_bytes()
    if name not in PLAIN:
        with pytest.raises(UnprovenDocumentError, match="open it with `ipu-results add`"):
            read_html(data, LAYOUTS)
    else:
        assert_told_or_exact(read_html(data, LAYOUTS), TRUTH[name]["shown"])


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("name", sorted(TRUTH.keys() - CONTEXT))
def test_hostile_page_is_told_or_exact_with_a_browser(name: str, chromium: Browser) -> None:
    data = (HOSTILE / name).read_bytes()
    evidence = chromium.show(HOSTILE / name, data)
    if name == "public_texml322.html":
        with pytest.raises(UnprovenDocumentError, match=r"needs LaTeXML\.css"):
            parse_shown(evidence, data)
        return
    document = read_html(data, LAYOUTS, parse_shown(evidence, data))
    assert_told_or_exact(document, TRUTH[name]["shown"])
    assert name != "ord_tailwind4_flat.html" or document.problems == ()


@pytest.mark.slow
@needs_browser
def test_added_page_is_read_with_its_evidence_and_never_with_that_of_other_bytes(
    tmp_path: Path,
) -> None:
    page = tmp_path / "raw" / "vendor" / "my page.html"
    page.parent.mkdir(parents=True)
    shutil.copyfile(HOSTILE / "html_h001.html", page)
    shutil.copyfile(HOSTILE / "ext0.css", page.with_name("ext0.css"))
    draft = add_source(AddConfig(page, tmp_path / "raw"))
    assert set(draft.entry["attachments"]) == {"ext0.css", "my page.html.shown.json"}
    assert read_rows(extract(page)) == TRUTH["html_h001.html"]["shown"]
    page.write_bytes(page.read_bytes().replace(b"12,100", b"12,101"))
    with pytest.raises(Exception, match=r"my page\.html: has evidence of other bytes"):
        extract(page)


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("hidden", [False, True])
def test_saved_page_is_opened_as_mhtml(hidden: bool, chromium: Browser) -> None:
    style = "<link rel=stylesheet href='cid:a@b'>"
    page = training_page(GPT2, RESNET).replace(b"</head>", f"{style}</head>".encode())
    rule = "td:last-child { visibility: hidden }" if hidden else "td { color: oklch(0.2 0.1 20) }"
    data = (
        b"From: <Saved by Blink>\r\nSnapshot-Content-Location: https://example.org/\r\n"
        b'MIME-Version: 1.0\r\nContent-Type: multipart/related; type="text/html";\r\n'
        b' boundary="B"\r\n\r\n--B\r\nContent-Type: text/html; charset=utf-8\r\n'
        b"Content-Transfer-Encoding: quoted-printable\r\nContent-Location: https://example.org/\r\n"
        b"\r\n" + quopri.encodestring(page).replace(b"\n", b"\r\n") + b"\r\n--B\r\n"
        b"Content-Type: text/css\r\nContent-ID: <a@b>\r\nContent-Location: cid:a@b\r\n\r\n"
        + rule.encode()
        + b"\r\n--B--\r\n"
    )
    document = read_html(data, LAYOUTS, parse_shown(chromium.show(Path("page.mht"), data), data))
    if hidden:
        assert (document.tables, len(document.problems)) == ((), 2)
    else:
        assert_read(document, bow_training=[GPT2, RESNET])


def show(page: bytes, folder: Path, chromium: Browser) -> ParsedDocument:
    path = folder / "page.html"
    path.write_bytes(page)
    return read_html(page, LAYOUTS, parse_shown(chromium.show(path, page), page))


@pytest.mark.slow
@needs_browser
@every_case(__file__, "otherwise")
def test_figure_that_is_shown_otherwise_is_told(
    old: str, new: str, chromium: Browser, tmp_path: Path
) -> None:
    page = training_page(GPT2).decode().replace(old, new)
    document = show(page.encode(), tmp_path, chromium)
    assert document.tables == ()
    assert document.problems


@pytest.mark.slow
@needs_browser
@every_case(__file__, "words")
def test_words_that_only_a_browser_shows_are_signed(
    markup: str, chromium: Browser, tmp_path: Path
) -> None:
    near = f"<p>in thousands of nodes</p><template><p>in thousands</p></template>{markup}"
    page = training_page(GPT2).decode().replace("<table", f"{near}<table")
    document = show(page.encode(), tmp_path, chromium)
    assert_read(document, bow_training=[GPT2])
    assert Words("shown", "in thousands") in document.context


@pytest.mark.slow
@needs_browser
def test_page_that_never_ends_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(browser, "MAX_SHOWING_S", 5.0)
    page = tmp_path / "endless.html"
    page.write_bytes(training_page(GPT2).replace(b"</body>", b"<script>for(;;);</script></body>"))
    with pytest.raises(BrowserError, match=r"endless\.html: .*within 5 seconds"):
        browser.show_page(page, page.read_bytes())


@needs_browser
def test_browser_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_bytes(training_page(GPT2))
    with Browser(tmp_path) as opened:
        opened._process.wait()
        with pytest.raises(BrowserError, match=r"a\.html: Chromium failed"):
            opened.show(page, page.read_bytes())


def test_no_browser_is_an_error_that_says_what_is_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrowserError, match=r"a\.html: needs Node\.js, playwright-core and Chrom"):
        browser.show_page(Path("a.html"), b"<table>")
