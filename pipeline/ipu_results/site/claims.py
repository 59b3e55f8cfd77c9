"""The claims with their arithmetic and the printed figures they use, each one click from its page and table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import duckdb

from ipu_results.ground.sql import run_query
from ipu_results.schema import quote
from ipu_results.site.encode import encode_query
from ipu_results.site.html import Markup, join, link, tag

VALUE = "value"  # the column of `microbenchmarks` that holds the figure
MAX_PLACE = 90  # characters; the panel of the figure has all of them
SIGNS = {"error": "✖", "warn": "!"}
PLACES = """
    SELECT result_id, column_name, coalesce(source_locator, locator) AS place, source_url
    FROM provenance WHERE raw_text <> '' AND column_name IN ({columns}) ORDER BY result_id, cell_number
"""
FLAGS = "SELECT result_id, rule, severity, message FROM flags WHERE severity IN ('error', 'warn') ORDER BY ALL"


class Evidence:
    """The printed places of figures, and the flags of their rows. `columns` are those whose places are needed."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, columns: Iterable[str]) -> None:
        self._places: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._flags: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        listed = ", ".join(quote(name) for name in columns)
        for row in run_query(connection, PLACES.format(columns=listed)).to_pylist():
            self._places.setdefault((row["result_id"], row["column_name"]), row)
        for row in run_query(connection, FLAGS).to_pylist():
            self._flags[row["result_id"]].append(row)

    def format_figure(self, key: str, column: str, text: str, up: str = "") -> Markup:
        """Format a figure as a link to its panel, with its flags, and below it the place as a link to the document."""
        view = "microbenchmarks" if column == VALUE else "results"
        show = key if column == VALUE else f"{key}.{column}"
        figure = link(f"{up}index.html#/{view}?show={show}", text)
        return join(figure, self.format_flags(key), self._format_place(key, column))

    def format_flags(self, key: str) -> Markup:
        """Format the error and warning flags of a row: sign and rule, with the evidence as their title."""
        marks = {row["rule"]: row for row in self._flags[key]}  # one of each rule
        return join(
            *(
                join(" ", tag("strong", f"{SIGNS[row['severity']]} {rule}", title=row["message"], class_="flag"))
                for rule, row in marks.items()
            )
        )

    def _format_place(self, key: str, column: str) -> Markup:
        place = self._places.get((key, column))
        if place is None:
            return Markup()
        text = str(place["place"] or "document")
        short = text if len(text) <= MAX_PLACE else f"{text[: MAX_PLACE - 2]} …"
        return join(tag("br"), tag("small", link(place["source_url"] or "", short)))


def format_number(value: float | None) -> str:
    """Format a figure with every digit; nothing for a blank."""
    return "" if value is None else f"{value:,.15g}"


def format_computed(value: float | None, digits: int = 3) -> str:
    """Format what this project computed, rounded."""
    return "" if value is None else f"{float(f'{value:.{digits}g}'):,.15g}"


def format_unit(unit: str | None) -> str:
    """Format a unit; a ratio has none."""
    return "" if unit in (None, "1") else str(unit)


CLAIMS = """
    SELECT claim_id, document_id, claim, figure, value, unit, subject, baseline, model, task, metric, sdk_version,
        precision,
        batch, framework, dataset, place, interpretation, basis, verdict, gap_percent, gap_kind, not_recomputable,
        recomputation_sql, locator
    FROM claims ORDER BY document_id, claim_id
"""
VALUES = "SELECT * EXCLUDE (position) FROM recomputations ORDER BY claim_id, position"
CONTRADICTIONS = """
    SELECT contradiction_id, kind, claim_ids, what, resolution, recomputed FROM contradictions ORDER BY contradiction_id
"""
USES = """
    SELECT DISTINCT i.claim_id, coalesce(e.result_id, i.key) AS result_id
    FROM recomputation_inputs AS i
    LEFT JOIN mlperf_entries AS e ON i.table_name = 'mlperf_entries' AND i.key = e.round || '/' || e.path
    WHERE i.claim_id <> '' AND (i.table_name = 'results' OR e.result_id IS NOT NULL)
    ORDER BY ALL
"""


def build_claims(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect claims, recomputations, contradictions, and which claim uses which result, itself or as an entry."""
    return {
        "claims": encode_query(connection, CLAIMS),
        "recomputations": encode_query(connection, VALUES),
        "contradictions": encode_query(connection, CONTRADICTIONS),
        "uses": run_query(connection, USES).to_pylist(),
    }
