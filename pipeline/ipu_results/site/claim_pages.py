"""A static page for each claim, and the list of all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import duckdb

from ipu_results.ground.sql import run_query
from ipu_results.site.claims import CLAIMS, CONTRADICTIONS, USES, VALUES
from ipu_results.site.html import define, format_table, join, link, list_items, tag
from ipu_results.site.page import Page

# Words for a gap by the column `gap_kind`.
GAPS = {
    "last-digit": "within the last digit",
    "within-run-to-run-spread": "within the spread of the runs",
    "beyond": "more than rounding or the spread of runs",
}
MAX_RESULTS = 40  # results that a page links
DOCUMENTS = "SELECT document_id, title, url FROM documents"
RESULTS = """
    SELECT result_id, concat_ws(', ', model, task, platform, framework, precision, 'batch ' || batch_size) AS label
    FROM results
"""
CONDITIONS = ("model", "task", "sdk_version", "precision", "batch", "framework", "dataset")
Row = Mapping[str, Any]


def build_claim_pages(connection: duckdb.DuckDBPyConnection) -> Iterator[Page]:
    """Yield a page for each claim, headline claims first, then the list of all."""
    claims = _load_claims(connection)
    documents = {row["document_id"]: row for row in run_query(connection, DOCUMENTS).to_pylist()}
    labels = {row["result_id"]: row["label"] for row in run_query(connection, RESULTS).to_pylist()}
    values, uses = _group(connection, VALUES), _group(connection, USES)
    tensions = run_query(connection, CONTRADICTIONS).to_pylist()
    for claim in claims:
        key = claim["claim_id"]
        named = [tension for tension in tensions if key in (tension["claim_ids"] or "").split()]
        results = {use["result_id"]: labels[use["result_id"]] for use in uses[key] if use["result_id"] in labels}
        yield _build_page(claim, values[key], results, documents[claim["document_id"]], named)
    yield _build_list(claims)


def _load_claims(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Load the claims, headline ones first: recomputed ones of a factor, the largest first."""
    return sorted(run_query(connection, CLAIMS).to_pylist(), key=_rank_headline)


def _rank_headline(claim: Row) -> float:
    return -claim["value"] if claim["unit"] == "x" and claim["verdict"] != "not-recomputable" else 0.0


def _group(connection: duckdb.DuckDBPyConnection, sql: str) -> defaultdict[str, list[dict[str, Any]]]:
    groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in run_query(connection, sql).to_pylist():
        groups[row["claim_id"]].append(row)
    return groups


def describe_verdict(claim: Row) -> str:
    """Describe verdict and gap: `contradicted, gap -83 %, beyond the spread`."""
    gap = claim["gap_percent"]
    size = [] if gap is None or claim["gap_kind"] == "none" else [f"gap {gap:+.2g} %"]
    kind = GAPS.get(claim["gap_kind"], "")
    return ", ".join([claim["verdict"].replace("-", " "), *size, *([kind] if size and kind else [])])


def _build_page(claim: Row, values: list[Any], results: Mapping[str, str], document: Row, tensions: list[Any]) -> Page:
    verdict = describe_verdict(claim)
    recomputed = [f"{value['arithmetic']} ({value['baseline']}): {value['outcome']}" for value in values]
    content = join(
        tag("p", tag("strong", f"Claimed: {claim['figure']}. "), f"Recomputed from this dataset: {verdict}."),
        tag("h2", "Recomputed") if values else None,
        list_items(*recomputed),
        tag("p", f"Not recomputable: {claim['not_recomputable']}.") if claim["not_recomputable"] else None,
        define(
            Conditions=", ".join(claim[name] for name in CONDITIONS if claim[name]),
            Interpretation=claim["interpretation"],
            Basis=claim["basis"],
            Document=join(link(document["url"] or "", document["title"]), f": {claim['place']}"),
            Transcribed_at=claim["locator"],
        ),
        tag("h2", "Results that the recomputation used") if results else None,
        list_items(*(_link_result(key, label) for key, label in list(results.items())[:MAX_RESULTS])),
        tag("p", f"and {len(results) - MAX_RESULTS} more.") if len(results) > MAX_RESULTS else None,
        tag("h2", "Other statements that it does not fit, or fits") if tensions else None,
        list_items(*(f"{row['kind'].capitalize()}: {row['what']}. {row['resolution']}." for row in tensions)),
        join(tag("h2", "SQL"), tag("pre", claim["recomputation_sql"])) if claim["recomputation_sql"] else None,
    )
    key = claim["claim_id"]
    lines = (f"Claimed: {claim['figure']}", f"Verdict: {verdict}", *(f"Recomputed: {line}" for line in recomputed[:1]))
    path, live = f"claim/{quote(key)}.html", f"#/claims/{quote(key)}"
    return Page(path, claim["claim"], ". ".join(lines), content, live, card=lines)


def _link_result(key: str, label: str) -> str:
    shown = link(f"../index.html#/results?show={key}.throughput", label)
    return join(shown, " (", link(f"../r/{key}.json", "JSON"), ")")


def _build_list(claims: list[Any]) -> Page:
    rows = [
        [link(f"claim/{quote(claim['claim_id'])}.html", claim["claim"]), claim["figure"], describe_verdict(claim)]
        for claim in claims
    ]
    description = f"{len(claims)} claims of vendors in figures, each computed again from the figures that were printed."
    table = format_table(["Claim", "Claimed", "Verdict"], rows)
    return Page("claims.html", "Claims, recomputed", description, join(tag("p", description), table), "#/claims")
