"""List claims of documents with their verdicts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ipu_results.doors.cite.citation import describe_dataset_briefly
from ipu_results.doors.mcp.answers import Record
from ipu_results.doors.mcp.brief import MAX_BRIEF, describe_claim, shorten_claims
from ipu_results.doors.mcp.names import is_part_of_name, list_first, suggest
from ipu_results.doors.mcp.refusal import Answer, RefusalError, join_refusals
from ipu_results.doors.mcp.rows import list_values
from ipu_results.schema.vocabulary import normalise_name

MAX_CLAIMS = 10
MAX_OF_MANY = 2  # claims of a brief answer that leaves some out
TITLE = re.compile(" “[^”]*”,(?=.*https?:)")  # of a document whose address follows
CONDITIONS = ("claim_id", "verdict", "document_id", "model_printed")


def claims(
    record: Record,
    text: str = "",
    model: str | None = None,
    limit: int | None = None,
    **stated: str,
) -> Answer:
    """List claims of documents with their verdicts; `stated` are columns of them."""
    if model is not None:
        stated["model_printed"] = model
    rows, assumed = _keep_claims(record.query("serve/claims.sql", text=text), stated)
    fitting = [row for row in rows if not row["missing"]]
    if not fitting:
        raise _refuse_claims(rows)
    if limit is None:
        limit = _count_shown(record, len(fitting))
    shown = fitting[:limit]
    described = list(map(describe_claim, shown))
    if record.is_brief:
        described = shorten_claims(described)
        source = TITLE.sub("", shown[0]["source"])
        citation = f"{source}. {describe_dataset_briefly(record.shown_version)}"
    else:
        sources = list_values(shown, "source")
        citation = "\n".join([*sources, f"In: ipu-results, {record.shown_version}."])
    return {
        "assumed": assumed,
        "rows_that_fit": len(fitting),
        "claims": described,
        "citation": citation,
    }


def _count_shown(record: Record, found: int) -> int:
    """Return how many claims an answer shows, unless a limit is stated."""
    if not record.is_brief:
        return MAX_CLAIMS
    if found > MAX_BRIEF:
        return MAX_OF_MANY
    return MAX_BRIEF


def _keep_claims(
    rows: Sequence[Answer], stated: Mapping[str, str]
) -> tuple[Sequence[Answer], list[str]]:
    """Keep the claims that have the stated words, and say which models a part of a name means.

    Raises RefusalError that names all words that no claim has.
    """
    kept = rows
    assumed = []
    refusals = []
    for name in CONDITIONS:
        if name not in stated:
            continue
        word = stated[name]
        known = list_values(rows, name)
        meant = [other for other in known if normalise_name(other) == normalise_name(word)]
        if not meant and name == "model_printed":
            meant = [other for other in known if is_part_of_name(word, other)]
            assumed.append(f"model {word}: {list_first(sorted(meant))}")
        if not meant:
            reason = f"no claim has {name} {word!r}"
            refusals.append(RefusalError("unknown-word", reason, suggest(word, known)))
        kept = [row for row in kept if row[name] in meant]
    if refusals:
        raise join_refusals(refusals)
    return kept, assumed


def _refuse_claims(rows: Sequence[Answer]) -> RefusalError:
    """Refuse a text that no claim has; say how many claims have each of its words."""
    reason = "no claim fits"
    if rows:
        counts = []
        for word in rows[0]["words"]:
            found = [row for row in rows if word not in row["missing"]]
            counts.append(f"{word} {len(found)}")
        reason = f"no claim has all words of text; claims with each: {', '.join(counts)}"
    step = "state fewer words; claims with limit 150 and no other argument lists all"
    return RefusalError("no-match", reason, step)
