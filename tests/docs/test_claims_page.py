"""The page of the claims is made from the dataset; `make docs` writes its generated parts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from ipu_results.kit.sql import run_query
from ipu_results.kit.text import format_code, format_markdown_table
from ipu_results.record.recompute.claims import (
    Claim,
    format_claim,
    format_gap,
    format_range,
    load_claims,
)
from ipu_results.record.recompute.run import measure_sdk_margins
from ipu_results.record.recompute.verdict import Gap
from ipu_results.record.store.query import open_warehouse
from ipu_results.schema import table

from tests.docs.docs_support import REFERENCE, check_part

PAGE = REFERENCE / "claims.md"
VERDICTS = {
    "confirmed": "all values that count agree, and come from outside the document",
    "confirmed-internally": "the same, but at least in part from the same document or another claim",
    "circular": "the same, but a value is arithmetic over claims and datasheets: no measurement",
    "last-digit-differs": "all values agree, or differ by one unit of the last printed digit",
    "reached-by-later-sdk": "figures of a later SDK are at or above the claim: no confirmation",
    "nearly-reached-by-later-sdk": "they fall short of it by no more than two SDKs have differed",
    "exceeded-by-later-sdk": "they exceed it by more than two SDKs have differed",
    "not-supported": "they fall short of it by more than two SDKs have differed",
    "depends-on-division": "it names no MLPerf division, and the two give it different answers",
    "depends-on-system": "it names none of several machines, and they give it different answers",
    "depends-on-source": "files or parties that print the same work give it different answers",
    "depends-on-reading": "readings of its words give it different answers",
    "depends-on-baseline": "rows of the baseline that it names give it different answers",
    "swapped-baseline": "all values have another baseline, as its own is not at hand or not named",
    "contradicted": "no value agrees",
    "within-run-to-run-spread": "a difference of MLPerf scores that runs cannot separate",
    "not-recomputable": "no table has the figures, or none in the set-up of the claim",
}
NOT_LISTED = ("confirmed", "confirmed-internally", "circular", "not-recomputable")


def count_verdicts(claims: Sequence[Claim]) -> str:
    counts = Counter(claim["verdict"] for claim in claims)
    return ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])


def format_anchor(title: str) -> str:
    """Return a link to a heading, as GitHub names it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def format_verdicts(claims: Sequence[Claim]) -> str:
    """Return the claims of each verdict, of performance and in all, with when it is given."""
    counts = Counter(claim["verdict"] for claim in claims)
    performance = [claim for claim in claims if claim["kind"] == "performance"]
    performance_counts = Counter(claim["verdict"] for claim in performance)
    rows = [
        (format_code(name), counts[name], performance_counts[name], when)
        for name, when in VERDICTS.items()
    ]
    rows.append(("all", len(claims), len(performance), ""))
    return format_markdown_table(("verdict", "claims", "of performance", "when"), rows)


def format_groups(claims: Sequence[Claim], column: str) -> str:
    """Return the number of claims and their verdicts for each value of a column."""
    values = dict.fromkeys(claim[column] for claim in claims)
    lines = [f"| {column.replace('_', ' ')} | claims | verdicts |\n|---|---|---|\n"]
    for value in values:
        group = [claim for claim in claims if claim[column] == value]
        lines.append(f"| {value} | {len(group)} | {count_verdicts(group)} |\n")
    return "".join(lines)


def format_unconfirmed(claims: Sequence[Claim]) -> str:
    """Return the claims that were not confirmed, the widest gap first."""
    listed = [claim for claim in claims if claim["verdict"] not in NOT_LISTED]
    listed.sort(key=lambda claim: Gap(claim["gap_percent"], claim["gap_kind"]).rank(), reverse=True)
    rows = [
        (
            format_code(claim["claim_id"]),
            claim["figure"],
            format_range(claim),
            format_gap(claim),
            claim["verdict"],
        )
        for claim in listed
    ]
    return format_markdown_table(("claim", "printed", "recomputed", "gap", "verdict"), rows)


def format_contradiction(row: Mapping[str, Any]) -> str:
    text = (
        f"### `{row['contradiction_id']}`: {row['kind']}\n\n{row['what']}. {row['resolution']}.\n"
    )
    if row["claim_ids"]:
        names = ", ".join(format_code(name) for name in row["claim_ids"].split())
        text += f"Claims: {names}.\n"
    values = json.loads(row["recomputed"])
    lines = [f"- {value['arithmetic']} · {value['baseline']}\n" for value in values]
    return f"{text}\n{''.join(lines)}" if lines else text


def format_documents(claims: Sequence[Claim], documents: dict[str, dict[str, Any]]) -> str:
    """Return each claim in full, under the title of its document and what was read of it."""
    parts = []
    for document_id, group in groupby(claims, key=lambda claim: claim["document_id"]):
        listed = list(group)
        note = documents[listed[0]["ledger_id"]]["note"]
        parts.append(f"## {documents[document_id]['title']}\n\n{note}\n")
        parts += ["\n".join(format_claim(claim)) + "\n" for claim in listed]
    return "\n".join(parts)


@pytest.mark.docs
def test_page_of_the_claims_is_that_of_the_dataset(warehouse: Path) -> None:
    with open_warehouse(warehouse) as connection:
        claims = load_claims(connection)
        contradictions = run_query(connection, "FROM contradictions").to_pylist()
        documents = {
            row["document_id"]: row for row in run_query(connection, "FROM documents").to_pylist()
        }
        slow_down, speed_up = measure_sdk_margins(connection)
    assert set(VERDICTS) == set(table("claims").choices("verdict"))
    named = []
    for claim in claims:
        document = documents[claim["document_id"]]
        title = document["title"]
        link = f"[{title}](#{format_anchor(title)})"
        named.append({**claim, "document": link, "publisher": document["publisher"]})
    check_part(PAGE, "verdicts", format_verdicts(claims))
    check_part(PAGE, "documents", format_groups(named, "document"))
    check_part(PAGE, "publishers", format_groups(named, "publisher"))
    check_part(PAGE, "kinds", format_groups(named, "kind"))
    check_part(PAGE, "unconfirmed", format_unconfirmed(claims))
    margins = f"a slow-down of at most {slow_down:.1%}, and a speed-up of at most {speed_up:.1%}"
    margins = margins.replace("%", " %")
    check_part(PAGE, "margins", f"* Between two SDKs the view `detail.sdk_effect` has {margins}.\n")
    check_part(PAGE, "contradictions", "\n".join(map(format_contradiction, contradictions)))
    check_part(PAGE, "claims", format_documents(claims, documents))
