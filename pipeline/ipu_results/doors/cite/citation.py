"""Cite results as Markdown, BibTeX or CSL-JSON, with the version of the dataset: a release with its
digest, else the build.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.compute as pc

from ipu_results.doors.cite.facts import AUTHOR, LEGEND, CitedResult, load_results, mark_name
from ipu_results.errors import QueryError, WarehouseError
from ipu_results.kit.files import DATASET
from ipu_results.kit.text import escape_line, escape_markdown, format_json
from ipu_results.record.store.query import (
    open_warehouse,
    read_build_id,
    read_one_build,
    read_parquet,
)

REPOSITORY = "https://github.com/ipu-results/ipu-results"
NAME = "ipu-results: the verified record of what AI accelerators were said and measured to do"
# as in release/files.py, which needs an extra
RELEASE = "release.json"
CHECKSUMS = "SHA256SUMS"
FORMATS = ("markdown", "bibtex", "csl-json")
KEY = "ipu-results"
COMMIT = re.compile(r"/[0-9a-f]{7,40}/")  # in the address of a file of a repository


Item = dict[str, Any]
"""An item of CSL-JSON."""


@dataclass(frozen=True, slots=True)
class DatasetVersion:
    """The release that was read, or the build where it is not a release.

    `checksum` is the sha256 of SHA256SUMS.

    `newest_source` is the day on which the newest source of an unreleased build was read.
    """

    build_id: str
    version: str | None = None
    published_on: str | None = None
    checksum: str | None = None
    newest_source: str | None = None

    @property
    def year(self) -> str:
        """Return the year of the release, else that in which the newest source of the build was
        read.
        """
        return (self.published_on or self.newest_source or "")[:4]

    def __str__(self) -> str:
        if self.version is None:
            return f"unreleased, build {self.build_id}"
        return (
            f"version {self.version}, sha256 of SHA256SUMS {self.checksum}, build {self.build_id}"
        )


def read_dataset_version(warehouse: Path, build_id: str) -> DatasetVersion:
    """Return the version of a release folder, the build alone of any other folder.

    Raises WarehouseError for a damaged release.
    """
    path = warehouse / RELEASE
    if not path.exists():
        documents = read_parquet(warehouse / "documents.parquet", ["retrieved_on"])
        newest = pc.max(documents["retrieved_on"]).cast("string").as_py()
        return DatasetVersion(build_id, newest_source=newest)
    try:
        release = json.loads(path.read_text(encoding="utf-8"))
        checksum = hashlib.sha256((warehouse / CHECKSUMS).read_bytes()).hexdigest()
        stated = DatasetVersion(
            release["build_id"], release["version"], release["published_on"], checksum
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = "is not a release that can be read; check it with: ipu-results verify"
        raise WarehouseError(message, place=str(path)) from error
    if stated.build_id != build_id:
        message = f"names another build than the tables: {stated.build_id[:12]}"
        raise WarehouseError(message, place=str(path))
    return stated


LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\textbraceleft{}",  # not \{: BibTeX counts braces, escaped or not
    "}": r"\textbraceright{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\symbol{34}",
    "`": r"\textasciigrave{}",
    "[": "{[}",  # \\ before it would read an option
    "]": "{]}",
    "*": "{*}",  # likewise
    "-": "-{}",  # two hyphens are a dash
    "®": r"\textregistered{}",
    "×": r"\texttimes{}",
    "µ": r"\textmu{}",
    "±": r"\textpm{}",
    "–": "--",
    "—": "---",
    "’": "'",
    "“": "``",
    "”": "''",
}
SPECIAL = re.compile("|".join(map(re.escape, LATEX)))
SAFE_IN_URL = "%/:=&?~#+!$,;'@()*[]-._"


def escape_latex(text: str) -> str:
    """Return text on one line that LaTeX and BibTeX print unchanged."""
    escaped = SPECIAL.sub(lambda match: LATEX[match[0]], escape_line(text))
    return re.sub(r"-\{\}(?!-)", "-", escaped)  # a hyphen alone needs no guard


def escape_url(url: str) -> str:
    """Return an http or https address without characters that a format acts on; "" for any other
    text.
    """
    return quote(url, safe=SAFE_IN_URL) if re.match(r"https?://", url) else ""


def escape_markdown_line(text: str) -> str:
    """Return text on one line that Markdown shows unchanged."""
    return escape_markdown(escape_line(text))


def make_key(source: CitedResult) -> str:
    """Return the key of a source in BibTeX and CSL."""
    return f"{KEY}:{re.sub(r'[^A-Za-z0-9.:-]+', '-', source.document_id)}"


def cite(
    ids: str | Iterable[str], *, format: str = "markdown", warehouse: str | Path | None = None
) -> str:
    """Return how to cite results: `format` is "markdown", "bibtex" or "csl-json".

    Each figure is as its source prints it, with source, place, day of retrieval, and the version
    and digest of the dataset, or its build where it is not a release. MLPerf figures come with the
    attribution that MLCommons requires, emulated ones say that they are not measured. BibTeX and
    CSL-JSON have an item per source and one for the dataset.

    Raises `ipu_results.errors.QueryError` for an unknown result or format, WarehouseError without a
    dataset.
    """
    if format not in FORMATS:
        raise QueryError(f"unknown format {format!r}; choose from: {', '.join(FORMATS)}")
    if isinstance(ids, str):
        ids = [ids]
    names = list(ids)

    def load(folder: Path) -> tuple[Sequence[CitedResult], DatasetVersion]:
        with open_warehouse(folder) as connection:
            version = read_dataset_version(folder, read_build_id(folder))
            return load_results(connection, names), version

    cited = read_one_build(DATASET if warehouse is None else Path(warehouse), load)
    return format_citation(*cited, format)


def format_citation(results: Sequence[CitedResult], version: DatasetVersion, format: str) -> str:
    """Format the citation of loaded results in one of `FORMATS`."""
    if format == "markdown":
        return _format_markdown(results, version)
    sources = group_by_source(results).values()
    if format == "csl-json":
        items = [_build_source_item(cited, version) for cited in sources]
        return format_json([_build_dataset_item(version), *items])
    entries = [_format_source(cited, version) for cited in sources]
    return "\n\n".join([_format_dataset(version), *entries])


def group_by_source(results: Sequence[CitedResult]) -> dict[str, list[CitedResult]]:
    """Return results by document, in the order of their first result."""
    grouped: dict[str, list[CitedResult]] = {}
    for result in results:
        grouped.setdefault(result.document_id, []).append(result)
    return grouped


def describe_dataset(version: DatasetVersion) -> str:
    """Describe the dataset in words."""
    return f"{NAME}, {version}"


def _describe_source(results: Sequence[CitedResult]) -> str:
    """Describe the document of results: publisher, title, day, address, day of retrieval."""
    source = results[0]
    parts = [source.author, f"“{source.title}”", source.issued_on, _find_address(results)]
    if source.retrieved_on:
        parts.append(f"retrieved {source.retrieved_on}")
    return _join_stated(parts)


def _join_stated(parts: Iterable[str | None]) -> str:
    return mark_name(", ".join(filter(None, parts)))


def _find_address(results: Sequence[CitedResult]) -> str:
    """Return the address that leads nearest to all results of a source."""
    urls = {result.url for result in results}
    url = urls.pop() if len(urls) == 1 else results[0].document_url
    return escape_url(url or "")


def _describe_disclosures(results: Sequence[CitedResult]) -> list[str]:
    """Return what must be said with results: emulated, suspect, flagged, MLPerf's attribution."""
    notes = _list_notes(results)
    attributions = []
    for result in results:
        if result.attribution:
            attributions.append(mark_name(result.attribution))
    if attributions:
        attributions.append(LEGEND)
    return list(dict.fromkeys(notes + attributions))


def _list_notes(results: Sequence[CitedResult]) -> list[str]:
    notes: list[str] = []
    for result in results:
        notes += result.notes
    return notes


def _describe_figures(results: Sequence[CitedResult]) -> str:
    """Return the figures with their places, and the ids of the results."""
    described = []
    for result in results:
        figures = [f"{result.format_figure(figure)} ({figure.place})" for figure in result.figures]
        described.append(f"{result.description}: {'; '.join(figures)}; result {result.result_id}.")
    return mark_name(" ".join(described))


def format_footnote(
    results: Sequence[CitedResult], version: DatasetVersion, *, places: bool = True
) -> str:
    """Return the footnote for results of one source, as plain text."""
    parts = [f"{_describe_source(results)}."]
    if places:
        parts.append(_describe_figures(results))
    parts.append(f"In: {describe_dataset(version)}.")
    return " ".join(parts + _describe_disclosures(results))


def format_sources(results: Sequence[CitedResult], version: DatasetVersion) -> str:
    """Format a citation without the figures: each source, and what must be disclosed.

    The ids of the results stand with several sources only. Of official MLPerf entries of one source
    the first has its attribution, and the others are counted.
    """
    grouped = group_by_source(results)
    lines = []
    for cited in grouped.values():
        words = _describe_briefly(cited)
        if len(grouped) > 1:
            ids = ", ".join(result.result_id for result in cited)
            words = f"{ids}: {words}"
        lines.append(words)
    lines.append(describe_dataset_briefly(version))
    lines += dict.fromkeys(_list_notes(results))
    return escape_markdown_line(" ".join(lines))


def describe_dataset_briefly(version: DatasetVersion) -> str:
    """Name the dataset with its version, else its build."""
    return f"In: {KEY} {version.version or version.build_id}."


def _describe_briefly(results: Sequence[CitedResult]) -> str:
    """Describe the document of results by day and address, else its title, or the MLPerf entry.

    A title tells the versions of a page apart of which no day is known.
    """
    source = results[0]
    if source.attribution is None:
        address = _find_address(results)
        parts = [source.author, source.issued_on, address]
        # an address with a commit is that of one version
        is_dated = address and (source.issued_on or COMMIT.search(address))
        if not is_dated:
            parts.insert(1, f"“{source.title}”")
        return f"{_join_stated(parts)}."
    words = mark_name(source.attribution)
    others = len(results) - 1
    if others:
        words += f" Likewise {others} more of that round: detail whole names them."
    return words


def _build_dataset_item(version: DatasetVersion) -> Item:
    """Build the CSL item of the dataset."""
    item: Item = {
        "id": KEY,
        "type": "dataset",
        "title": NAME,
        "author": [{"literal": AUTHOR}],
        "version": version.version or "unreleased",
        "note": str(version),
        "URL": REPOSITORY,
    }
    if version.published_on:
        item["issued"] = _build_date(version.published_on)
    return item


def _build_source_item(results: Sequence[CitedResult], version: DatasetVersion) -> Item:
    """Build the CSL item of one source."""
    source = results[0]
    is_data = source.origin in ("measured", "emulated")  # of this project, and no page
    item: Item = {
        "id": make_key(source),
        "type": "dataset" if is_data else "webpage",
        "title": mark_name(source.title),
        "author": [{"literal": source.author}],
        "note": _describe_note(results, version),
    }
    url = _find_address(results)
    if url:
        item["URL"] = url
    if source.issued_on:
        item["issued"] = _build_date(source.issued_on)
    if source.retrieved_on:
        item["accessed"] = _build_date(source.retrieved_on)
    return item


def _describe_note(results: Sequence[CitedResult], version: DatasetVersion) -> str:
    checked = f"Checked in: {describe_dataset(version)}."
    return " ".join([_describe_figures(results), *_describe_disclosures(results), checked])


def _build_date(day: str) -> Item:
    return {"date-parts": [list(map(int, day.split("-")))]}


def _format_markdown(results: Sequence[CitedResult], version: DatasetVersion) -> str:
    lines = []
    notes = [""]  # a blank line ends the list
    for number, cited in enumerate(group_by_source(results).values(), 1):
        for result in cited:
            what = escape_markdown_line(mark_name(result.description))
            figures = "; ".join(map(result.format_figure, result.figures))
            lines.append(f"* {what}: {escape_markdown_line(figures)}[^{number}]")
        notes.append(f"[^{number}]: {escape_markdown_line(format_footnote(cited, version))}")
    return "\n".join(lines + notes)


def _format_dataset(version: DatasetVersion) -> str:
    fields = {
        "year": version.year,
        "url": REPOSITORY,
        "date": version.published_on,
        "version": version.version or "unreleased",
        "note": f"Dataset, CC-BY-4.0, {version}",
    }
    return _format_entry(KEY, AUTHOR, NAME, fields)


def _format_source(results: Sequence[CitedResult], version: DatasetVersion) -> str:
    source = results[0]
    fields = {
        "year": source.issued_on and source.issued_on[:4],
        "date": source.issued_on,
        "url": _find_address(results),
        "urldate": source.retrieved_on,
        "note": _describe_note(results, version),
    }
    return _format_entry(make_key(source), source.author, mark_name(source.title), fields)


def _format_entry(key: str, author: str, title: str, fields: Mapping[str, str | None]) -> str:
    """Format an entry of type misc, which every BibTeX style knows; blank fields are left out."""
    lines = [
        f"@misc{{{key},",
        # the second braces keep a name whole, and the case of a title
        f"  author = {{{{{escape_latex(author)}}}}},",
        f"  title = {{{{{escape_latex(title)}}}}},",
    ]
    for name, value in fields.items():
        if value:
            text = value if name == "url" else escape_latex(value)
            lines.append(f"  {name} = {{{text}}},")
    lines.append("}")
    return "\n".join(lines)
