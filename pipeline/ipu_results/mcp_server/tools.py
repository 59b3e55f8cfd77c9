"""The tools that a program can call: each takes the record and checked arguments, and returns an answer."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ipu_results._util.sql import run_query
from ipu_results._util.text import to_json_value
from ipu_results.citation.cite import describe_dataset
from ipu_results.mcp_server.claimed import check_claimed_figure
from ipu_results.mcp_server.pairs import DIVISIBLE, PER_CHIP, SAME, check_ranking, compare_run, compare_two
from ipu_results.mcp_server.record import FIGURES, ORIGINS, Record, Row, get_unit, suggest
from ipu_results.mcp_server.refusal import CODES, RefusalError
from ipu_results.mcp_server.selection import require_figure, select_rows
from ipu_results.schema import TABLES, VIEWS, quote

DESCRIPTIONS = Path(__file__).with_name("tools.toml")
DEFAULT_RESULTS = 10
MAX_CELLS = 60
CLAIM_COLUMNS = (
    *("claim_id", "claim", "figure", "value", "unit", "verdict", "recomputed", "gap_percent", "gap_kind"),
    *("interpretation", "not_recomputable", "model", "task", "metric", "subject", "baseline", "document_id", "place"),
)
CLAIMS = """
    SELECT c.*, d.publisher, d.title, d.url, d.published_on FROM claims c JOIN documents d USING (document_id)
    ORDER BY document_id, claim_id
"""


@cache
def load_descriptions() -> dict[str, Any]:
    """Load instructions, tools and arguments in words, from tools.toml."""
    return tomllib.loads(DESCRIPTIONS.read_text(encoding="utf-8"))


def overview(record: Record, _: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the record: what it holds, its words, units, tables and rules."""
    machines = {row["platform"] for row in record.rows if row["relationship"] != "official"}
    counts = Counter((row["relationship"], row["origin"], row["task"]) for row in record.rows)
    return {
        "dataset": describe_dataset(record.version),
        "results": [
            {"relationship": who, "origin": how, "task": task, "results": count}
            for (who, how, task), count in sorted(counts.items(), key=str)
        ],
        "origins": ORIGINS,
        "figures": {name: get_unit(name, {"item": None}) for name in FIGURES},
        "networks": sorted({row["network"] for row in record.rows}),
        "machines": sorted(machines),
        "machines_with_official_entries_only": len({row["platform"] for row in record.rows} - machines),
        "tables_for_sql": {published.name: published.description for published in TABLES},
        "views_for_sql": {view.name: view.description for view in VIEWS},
        "refusal_codes": CODES,
        "rules": load_descriptions()["instructions"],
        "citation": f"{describe_dataset(record.version)}. Each answer about results cites their sources.",
    }


def find(record: Record, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Find results by conditions, ranked by a figure where `order` is stated."""
    figure, order = arguments.get("figure"), arguments.get("order")
    selection = select_rows(record, arguments)
    rows = selection.rows if figure is None else require_figure(record, selection, figure)
    counts = {"rows_without_this_figure": len(selection.rows) - len(rows)} if figure else {}
    if order is not None:
        if figure is None:
            raise RefusalError("wrong-input", "order needs figure", "state which figure to rank by")
        sound = [row for row in rows if not row["errors"] and not row["suspect"]]
        if not sound:
            raise RefusalError("flagged", f"all {len(rows)} rows are flagged as errors or suspect")
        counts["flagged_rows_not_ranked"] = len(rows) - len(sound)
        basis = arguments.get("chips_basis", SAME)
        check_ranking(sound, figure, basis)
        rows = sorted(sound, key=lambda row: _rank(row, figure, basis), reverse=order == "highest")
    else:
        rows = sorted(rows, key=lambda row: (str(row["published_on"] or ""), row["result_id"]), reverse=True)
    shown = rows[: arguments.get("limit", DEFAULT_RESULTS)]
    results, citation = record.load([row["result_id"] for row in shown])
    return {
        "rows_that_fit": len(rows),
        "rows_shown": len(shown),
        **counts,
        "left_out": selection.left_out,
        "results": results,
        "citation": citation,
    }


def _rank(row: Row, figure: str, basis: str) -> float:
    chips = row["chips"] if basis == PER_CHIP and figure in DIVISIBLE else 1
    return float(row[figure] / chips)


def provenance(record: Record, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Say where each figure of a result or microbenchmark was printed."""
    row = record.sources.get(arguments["result_id"]) or record.get_row(arguments["result_id"])
    results, citation = record.load([row["result_id"]])
    columns = (
        *("column_name", "header", "raw_text", "value", "unit", "factor", "document_id", "title", "source_url"),
        *("source_locator", "locator", "locator_in"),
    )
    where = f"result_id = {quote(row['result_id'])} LIMIT {MAX_CELLS}"
    with record.connection.cursor() as cursor:
        cells = run_query(cursor, f"SELECT {', '.join(columns)} FROM provenance WHERE {where}").to_pylist()
    return {
        "figures": [{name: to_json_value(value) for name, value in cell.items()} for cell in cells],
        "not_printed": results[0]["not_printed"],
        "results": results,
        "citation": citation,
    }


def claims(record: Record, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """List claims of documents with their verdicts."""
    with record.connection.cursor() as cursor:
        rows = run_query(cursor, CLAIMS).to_pylist()
    for name in ("claim_id", "verdict", "document_id", "model"):
        if (value := arguments.get(name)) is not None:
            known = {row[name] for row in rows if row[name]}
            if value not in known:
                raise RefusalError("unknown-word", f"no claim has {name} {value!r}", suggest(value, known))
            rows = [row for row in rows if row[name] == value]
    if text := arguments.get("text"):
        rows = [row for row in rows if text.casefold() in f"{row['claim']} {row['figure']} {row['subject']}".casefold()]
    if not rows:
        raise RefusalError("no-match", "no claim fits", "claims without arguments lists all")
    shown = rows[: arguments.get("limit", DEFAULT_RESULTS)]
    return {
        "rows_that_fit": len(rows),
        "rows_shown": len(shown),
        "claims": [_describe_claim(row) for row in shown],
        "citation": "\n".join(
            [*dict.fromkeys(_cite_claim(row) for row in shown), f"In: {describe_dataset(record.version)}."]
        ),
    }


def _describe_claim(row: Row) -> dict[str, Any]:
    described = {name: to_json_value(row[name]) for name in CLAIM_COLUMNS}
    described["recomputed"] = json.loads(row["recomputed"] or "[]")
    return {**described, "origin": "published", "publisher": row["publisher"]}


def _cite_claim(row: Row) -> str:
    day = str(row["published_on"] or "day not known")
    parts = (row["publisher"], f"“{row['title']}”", day, row["url"], row["place"])
    return ", ".join(part for part in parts if part)


TOOLS: Mapping[str, Callable[[Record, Mapping[str, Any]], dict[str, Any]]] = {
    "overview": overview,
    "find": find,
    "provenance": provenance,
    "compare": compare_two,
    "compare_run": compare_run,
    "claims": claims,
    "check_claimed_figure": check_claimed_figure,
}
