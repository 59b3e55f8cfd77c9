"""Which version of the dataset a citation names: a release with its digest, else the build."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.compute as pc

from ipu_results.errors import QueryError, WarehouseError
from ipu_results.ground.files import DATASET
from ipu_results.ground.text import escape_line, escape_markdown, format_json
from ipu_results.serve.facts import (
    AUTHOR,
    LEGEND,
    CitedResult,
    describe_row,
    find_figures,
    format_figure,
    load_results,
    mark_name,
)
from ipu_results.store.query import open_warehouse, read_build_id, read_one_build, read_parquet

REPOSITORY = "https://github.com/ipu-results/ipu-results"
NAME = "ipu-results: the open, verified record of Graphcore IPU performance"
RELEASE, CHECKSUMS = "release.json", "SHA256SUMS"  # as in release/files.py, which needs an extra


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
        newest = pc.max(
            read_parquet(warehouse / "documents.parquet", ["retrieved_on"])["retrieved_on"]
        ).as_py()
        return DatasetVersion(build_id, newest_source=newest and str(newest))
    try:
        release = json.loads(path.read_text(encoding="utf-8"))
        checksum = hashlib.sha256((warehouse / CHECKSUMS).read_bytes()).hexdigest()
        stated = DatasetVersion(
            release["build_id"], release["version"], release["published_on"], checksum
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WarehouseError(
            "is not a release that can be read; check it with: ipu-results verify", place=str(path)
        ) from error
    if stated.build_id != build_id:
        raise WarehouseError(
            f"names another build than the tables: {stated.build_id[:12]}", place=str(path)
        )
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


def make_key(text: str) -> str:
    """Return text as a BibTeX key."""
    return re.sub(r"[^A-Za-z0-9.:-]+", "-", text)


FORMATS = ("markdown", "bibtex", "csl-json")
KEY = "ipu-results"


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
    names = [ids] if isinstance(ids, str) else list(ids)
    folder = DATASET if warehouse is None else Path(warehouse)
    version, results = read_one_build(folder, lambda folder: _load(folder, names))
    return format_citation(results, version, format)


def format_citation(results: Sequence[CitedResult], version: DatasetVersion, format: str) -> str:
    """Format the citation of loaded results in one of `FORMATS`."""
    if format == "csl-json":
        return format_json(_build_items(results, version))
    write = {"markdown": _format_markdown, "bibtex": _format_bibtex}[format]
    return write(results, version)


def _load(folder: Path, ids: Sequence[str]) -> tuple[DatasetVersion, list[CitedResult]]:
    with open_warehouse(folder) as connection:
        return read_dataset_version(folder, read_build_id(folder)), load_results(connection, ids)


def group_by_source(results: Sequence[CitedResult]) -> dict[str, list[CitedResult]]:
    """Return results by document, in the order of their first result."""
    grouped: dict[str, list[CitedResult]] = {}
    for result in results:
        grouped.setdefault(result.source.document_id, []).append(result)
    return grouped


def describe_source(item: Mapping[str, Any]) -> str:
    """Describe the document of a CSL item: publisher, title, day, address, day of retrieval."""
    retrieved = _format_day(item, "accessed")
    parts = (
        item["author"][0]["literal"],
        f"“{item['title']}”",
        _format_day(item, "issued"),
        item.get("URL"),
        retrieved and f"retrieved {retrieved}",
    )
    return ", ".join(part for part in parts if part)


def describe_dataset(version: DatasetVersion) -> str:
    """Describe the dataset in words."""
    return f"{NAME}, {version}"


def describe_disclosures(results: Sequence[CitedResult]) -> list[str]:
    """Return what must be said with results: emulated, suspect, flagged, and MLPerf's attribution."""
    notes = list(dict.fromkeys(note for result in results for note in result.notes))
    attributions = list(
        dict.fromkeys(result.attribution for result in results if result.attribution)
    )
    return [*notes, *attributions, *([LEGEND] if attributions else [])]


def describe_figures(result: CitedResult) -> str:
    """Return the figures with their places, and the id of the result."""
    figures = "; ".join(
        f"{figure.label} {format_figure(figure, result.status)} ({figure.place})"
        for figure in find_figures(result)
    )
    return mark_name(f"{describe_row(result.row)}: {figures}; result {result.result_id}")


def format_footnote(
    results: Sequence[CitedResult], version: DatasetVersion, *, places: bool = True
) -> str:
    """Return the footnote for results of one source, as plain text."""
    where = " ".join(f"{describe_figures(result)}." for result in results) if places else ""
    source = mark_name(describe_source(_build_source_item(results, version)))
    parts = [
        f"{source}.",
        where,
        f"In: {describe_dataset(version)}.",
        *describe_disclosures(results),
    ]
    return " ".join(part for part in parts if part)


def format_sources(results: Sequence[CitedResult], version: DatasetVersion) -> str:
    """Format a citation without the figures: each source with the ids of its results, and what must
    be disclosed.
    """
    lines = []
    for own in group_by_source(results).values():
        ids = ", ".join(f"result {result.result_id}" for result in own)
        lines.append(f"{mark_name(describe_source(_build_source_item(own, version)))}: {ids}.")
    lines += [f"In: {KEY}, {version}.", *describe_disclosures(results)]
    return escape_markdown_line(" ".join(lines))


def _build_items(results: Sequence[CitedResult], version: DatasetVersion) -> list[dict[str, Any]]:
    """Build the CSL items of a citation, from which the other formats are made: the dataset, then
    each source.
    """
    dataset: dict[str, Any] = {
        "id": KEY,
        "type": "dataset",
        "title": NAME,
        "author": [{"literal": AUTHOR}],
        "version": version.version or "unreleased",
        "note": str(version),
        "URL": REPOSITORY,
    }
    if version.published_on:
        dataset["issued"] = _build_date(date.fromisoformat(version.published_on))
    return [
        dataset,
        *(_build_source_item(own, version) for own in group_by_source(results).values()),
    ]


def _build_source_item(results: Sequence[CitedResult], version: DatasetVersion) -> dict[str, Any]:
    """Build the CSL item of one source, with the address that leads nearest to all its results."""
    source = results[0].source
    urls = {result.source.url for result in results}
    figures = (f"{describe_figures(result)}." for result in results)
    checked = f"Checked in: {describe_dataset(version)}."
    item: dict[str, Any] = {
        "id": f"{KEY}:{make_key(source.document_id)}",
        "type": "dataset" if is_dataset(results[0].row) else "webpage",
        "title": mark_name(source.title),
        "author": [{"literal": source.publisher}],
        "note": " ".join([*figures, *describe_disclosures(results), checked]),
    }
    if url := escape_url((urls.pop() if len(urls) == 1 else source.document_url) or ""):
        item["URL"] = url
    days = {"issued": source.published_on, "accessed": source.retrieved_on}
    return item | {name: _build_date(day) for name, day in days.items() if day}


def _build_date(day: date) -> dict[str, Any]:
    return {"date-parts": [[day.year, day.month, day.day]]}


def _format_day(item: Mapping[str, Any], name: str) -> str:
    """Return a date of a CSL item in ISO 8601, "" without one."""
    return date(*item[name]["date-parts"][0]).isoformat() if name in item else ""


def _format_markdown(results: Sequence[CitedResult], version: DatasetVersion) -> str:
    lines = []
    notes = []
    for number, of_source in enumerate(group_by_source(results).values(), 1):
        for result in of_source:
            figures = (
                f"{figure.label} {format_figure(figure, result.status)}"
                for figure in find_figures(result)
            )
            what = mark_name(describe_row(result.row))
            lines.append(
                f"* {escape_markdown_line(what)}:"
                f" {escape_markdown_line('; '.join(figures))}[^{number}]"
            )
        notes.append(f"[^{number}]: {escape_markdown_line(format_footnote(of_source, version))}")
    return "\n".join([*lines, "", *notes])


def is_dataset(row: Mapping[str, Any]) -> bool:
    """Return whether a result is of this project's own data, and not of a page."""
    return row["origin"] in ("measured", "emulated")


def _format_bibtex(results: Sequence[CitedResult], version: DatasetVersion) -> str:
    dataset, *sources = _build_items(results, version)
    dataset["note"] = f"Dataset, CC-BY-4.0, {version}"
    return "\n\n".join([_format_entry(dataset, version.year), *map(_format_entry, sources)])


def _format_entry(item: Mapping[str, Any], year: str | None = None) -> str:
    """Format a CSL item as an entry of type misc, which every BibTeX style knows; blank fields are
    left out.

    `year` is that of the dataset, whose address comes before its day.
    """
    day = _format_day(item, "issued")
    url = item.get("URL", "")
    fields = {
        "author": f"{{{escape_latex(item['author'][0]['literal'])}}}",
        "title": f"{{{escape_latex(item['title'])}}}",
        "year": day[:4] if year is None else year,
        **({"date": day, "url": url} if year is None else {"url": url, "date": day}),
        "urldate": _format_day(item, "accessed"),
        "version": escape_latex(item.get("version", "")),
        "note": escape_latex(item["note"]),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@misc{{{item['id']},", *lines, "}"])
